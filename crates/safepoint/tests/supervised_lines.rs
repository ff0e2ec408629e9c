//! Lines of Claude Code behind the fence with its supervisor: hosts, sockets and files outside are
//! refused and become holds, a yes opens exactly that, and who wrote what is observed.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/client.rs"]
mod client;
#[path = "supervised_lines/effects.rs"]
mod effects;
#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use client::{Claude, denied, passes};
use serde_json::{Value, json};
use support::{approve, bare, entries};
use testkit::TestEnv;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

/// Dials a host and a port, or a socket with a path, and says what came of it.
const DIAL: &str = r#"
import socket, sys
for target in sys.argv[1:]:
    try:
        if target.startswith("/"):
            one = socket.socket(socket.AF_UNIX); one.connect(target)
        else:
            host, port = target.rsplit(":", 1)
            one = socket.create_connection((host, int(port)), 5)
        one.sendall(b"hello"); print("reached", target)
    except OSError as error:
        print("refused", target, error.errno)
"#;

/// A server of the line's own.
const OWN_SERVER: &str = r#"
import socket, threading
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b"own"), daemon=True).start()
print(socket.create_connection(server.getsockname()).recv(3).decode())
"#;

/// A steward who has left the network open, without a word about it.
const SILENT: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.silent"
version: "1.0.0"
name: "Silent"
description: "Nothing is said of hosts"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "process.*", "shell.*", "git.*", "net.*", "socket.*", "agent.*", "safepoint.*"]
"#;

/// The same, with a policy that names them.
const NAMED: &str = r#"
policies:
  - policy_id: "hosts"
    type: allow
    actions: ["net.connect"]
    reason: "The tests of this project need it"
"#;

fn plain() -> TestEnv {
    let mut env = bare();
    env.write("project/safepoint.yaml", "");
    prepare(&mut env);
    env
}

fn under(atlas: &str) -> TestEnv {
    let mut env = support::project(atlas);
    prepare(&mut env);
    env
}

fn prepare(env: &mut TestEnv) {
    env.write("project/src/app.py", "one\ntwo\nthree\n");
    env.write("project/dial.py", DIAL);
    env.write("project/own.py", OWN_SERVER);
    env.set(
        "CLAUDE_CODE_SHELL_PREFIX",
        &safepoint_clients::shell_prefix(SAFEPOINT),
    );
    env.set("CLAUDE_CODE_SESSION_ID", "s-1");
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

fn shell(env: &TestEnv, line: &str) -> Command {
    let text = format!(
        "true && eval {} < /dev/null && pwd -P >| /dev/null",
        quoted(line)
    );
    let program = safepoint_clients::shell_prefix(SAFEPOINT);
    let mut command = Command::new("bash");
    command
        .args(["-c", &format!("{} {}", quoted(&program), quoted(&text))])
        .current_dir(env.project());
    for (name, value) in env.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

#[track_caller]
fn call(claude: &Claude<'_>, id: &str, line: &str) -> Output {
    assert_eq!(passes(&claude.asks(id, line)), None);
    let output = shell(claude.env, line).output().unwrap();
    passes(&claude.after(id, "Bash", json!({"command": line})));
    output
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The hold that the agent is told of, and that waits in the inbox for exactly this.
#[track_caller]
fn waiting(env: &TestEnv, output: &Output, action: &str, target: &str) -> String {
    let told = told(output);
    assert!(told.contains(&format!("{action} {target}")), "{told}");
    let is_hold = |word: &&str| word.starts_with("hld_");
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(is_hold)
        .unwrap_or_else(|| panic!("{told}"));
    let shown = support::show(env, hold);
    let form = &shown["canonical_form"];
    assert_eq!(form["argv"][0], action, "{shown:#}");
    let parameters: Value = serde_json::from_str(form["argv"][1].as_str().unwrap()).unwrap();
    assert_eq!(parameters["target"], target, "{shown:#}");
    hold.to_owned()
}

#[track_caller]
fn ended(env: &TestEnv) -> Value {
    entries(env, "action_ended").last().unwrap()["body"].clone()
}

#[test]
fn fe_16_a_refused_host_is_a_question_and_the_yes_opens_exactly_that_host() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let (host, beside) = (
        listener.local_addr().unwrap().to_string(),
        other.local_addr().unwrap().to_string(),
    );
    let line = format!("python3 dial.py {host}");
    let output = call(&claude, "t-1", &line);
    assert!(
        told(&output).contains(&format!("refused {host} ")),
        "{output:?}"
    );
    let hold = waiting(&env, &output, "net.connect", &host);
    // The same is not put before a person twice.
    let again = call(&claude, "t-2", &line);
    assert_eq!(waiting(&env, &again, "net.connect", &host), hold);
    assert_eq!(env.json(&["hold", "list"])["total"], 1);
    approve(&env, &hold);
    let output = call(&claude, "t-3", &format!("python3 dial.py {host} {beside}"));
    assert!(
        told(&output).contains(&format!("reached {host}")),
        "{output:?}"
    );
    assert!(
        told(&output).contains(&format!("refused {beside} ")),
        "{output:?}"
    );
    let mut said = [0; 5];
    listener.accept().unwrap().0.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"hello");
    // The yes was for once.
    let output = call(&claude, "t-4", &line);
    assert!(
        told(&output).contains(&format!("refused {host} ")),
        "{output:?}"
    );
    // A control: what the line starts itself is reached unasked.
    let output = call(&claude, "t-5", "python3 own.py");
    assert!(told(&output).contains("own"), "{output:?}");
}

#[test]
fn fe_16_a_refused_socket_is_a_question() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let socket = place.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let line = format!("python3 dial.py {}", socket.display());
    let output = call(&claude, "t-1", &line);
    let hold = waiting(
        &env,
        &output,
        "socket.connect",
        &socket.display().to_string(),
    );
    approve(&env, &hold);
    let output = call(&claude, "t-2", &line);
    assert!(told(&output).contains("reached"), "{output:?}");
    assert!(listener.accept().is_ok());
}

#[test]
fn fe_16_a_refused_file_outside_is_a_question_and_the_next_line_may_write_it() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let (file, beside) = (place.path().join("made"), place.path().join("beside"));
    let script = format!("echo x > {}\n", file.display());
    env.write("project/build.sh", &script);
    let output = call(&claude, "t-1", "sh build.sh");
    assert!(!file.exists());
    let hold = waiting(&env, &output, "file.write", &file.display().to_string());
    approve(&env, &hold);
    env.write(
        "project/build.sh",
        &format!("{script}echo x > {}\n", beside.display()),
    );
    let output = call(&claude, "t-2", "sh build.sh");
    assert!(file.exists(), "{output:?}");
    assert!(
        !beside.exists(),
        "its directory was not approved: {output:?}"
    );
}

#[test]
fn fe_16_nobody_is_asked_about_safepoint_itself() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.says("SessionStart", json!({"source": "startup"})));
    let store = env.home().join("data/store.db");
    let before = fs::metadata(&store).unwrap().len();
    let line = format!(
        "echo x > {}; mkdir {}/new\n",
        store.display(),
        env.home().display()
    );
    env.write("project/reach.sh", &line);
    let output = call(&claude, "t-1", "sh reach.sh");
    assert!(told(&output).contains("Permission denied"), "{output:?}");
    assert_eq!(env.json(&["hold", "list"])["total"], 0, "{output:?}");
    assert!(fs::metadata(&store).unwrap().len() >= before && !env.home().join("new").exists());
}

#[test]
fn fe_16_what_the_rules_leave_open_is_a_persons_to_decide() {
    let env = under(SILENT);
    let claude = Claude::new(&env);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let output = call(&claude, "t-1", &format!("python3 dial.py {host}"));
    waiting(&env, &output, "net.connect", &host);
    // A control: a policy that names it opens it.
    let env = under(&format!("{SILENT}{NAMED}"));
    let claude = Claude::new(&env);
    let output = call(&claude, "t-2", &format!("python3 dial.py {host}"));
    assert!(
        told(&output).contains(&format!("reached {host}")),
        "{output:?}"
    );
}

#[test]
fn fe_16_a_program_that_tries_many_hosts_asks_for_a_few() {
    let env = plain();
    let claude = Claude::new(&env);
    let listeners: Vec<TcpListener> = (0..40)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let hosts = listeners
        .iter()
        .map(|it| it.local_addr().unwrap().to_string());
    let hosts: Vec<String> = hosts.collect();
    let output = call(
        &claude,
        "t-1",
        &format!("python3 dial.py {}", hosts.join(" ")),
    );
    assert!(output.status.success(), "{output:?}");
    let total = env.json(&["hold", "list"])["total"].as_u64().unwrap();
    assert_eq!(total, 32);
    assert!(!told(&output).contains("reached"), "{output:?}");
}

#[test]
fn fe_31_the_record_lists_what_was_reached_and_refused() {
    let mut env = bare();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let beside = other.local_addr().unwrap().to_string();
    env.write("project/safepoint.yaml", "");
    env.write(
        "home/config/config.yaml",
        &format!("services: [\"{host}\"]\n"),
    );
    prepare(&mut env);
    let claude = Claude::new(&env);
    let line = format!("python3 dial.py {host} {beside}");
    // A service that is named is told before the line runs: no checkpoint holds what it does.
    support::add(&env, "ann");
    denied(&claude.asks("t-0", &line));
    let held = support::waiting(&env);
    approve(&env, held[0]["hold_id"].as_str().unwrap());
    let output = call(&claude, "t-1", &line);
    let body = ended(&env);
    assert_eq!(
        body["reached"]["hosts"],
        json!([host]),
        "{output:?} {body:#}"
    );
    let refused = &body["refused"][0];
    assert_eq!(refused["action"], "net.connect", "{body:#}");
    assert_eq!(refused["target"], beside, "{body:#}");
    assert!(refused["hold_id"].is_string(), "{body:#}");
}

#[test]
fn fe_01_what_was_approved_opens_no_other_name_beside_it() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let at = |name: &str| place.path().join(name).display().to_string();
    env.write("project/more.sh", &format!("echo x > {}\n", at("other")));
    let line = format!("cp src/app.py {}; sh more.sh", at("new"));
    let said = denied(&claude.asks("t-1", &line));
    let hold = said
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap();
    approve(&env, hold);
    let output = call(&claude, "t-2", &line);
    assert!(Path::new(&at("new")).exists(), "{output:?}");
    assert!(!Path::new(&at("other")).exists(), "{output:?}");
}

/// Opens a path again and again, while a thread exchanges it for another one.
const RACE: &str = r#"
import ctypes, os, sys, threading
libc, over = ctypes.CDLL(None), []
one = sys.argv[1].encode()
other = one[:-1] + b"X"
path = ctypes.create_string_buffer(one)
def exchange():
    while not over:
        ctypes.memmove(path, other, len(other)); ctypes.memmove(path, one, len(one))
thread = threading.Thread(target=exchange); thread.start()
for _ in range(600):
    number = libc.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    if number >= 0: os.close(number)
over.append(1); thread.join()
open(one, "w").write("done")
"#;

#[test]
fn fe_01_what_was_approved_opens_no_other_name_to_a_program_that_races() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let new = place.path().join("reportA");
    env.write("project/race.py", RACE);
    let line = format!("cp src/app.py {0}; python3 race.py {0}", new.display());
    let said = denied(&claude.asks("t-1", &line));
    let hold = said
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap();
    approve(&env, hold);
    let output = call(&claude, "t-2", &line);
    assert!(!place.path().join("reportX").exists(), "{output:?}");
    // A control: the one that was approved was made, by each of them.
    assert_eq!(fs::read_to_string(&new).unwrap(), "done", "{output:?}");
    // What is approved and not made is not there afterwards.
    let left = place.path().join("left");
    let line = format!("false && cp src/app.py {}; sh -c true", left.display());
    let said = denied(&claude.asks("t-3", &line));
    let hold = said
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap();
    approve(&env, hold);
    let output = call(&claude, "t-4", &line);
    assert!(!left.exists(), "{output:?}");
}

#[test]
fn fe_33_what_a_person_saves_meanwhile_is_theirs() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo agent > made; touch there; until [ -e on ]; do sleep 0.01; done; rm there on";
    passes(&claude.asks("t-1", line));
    let mut child = shell(&env, line).spawn().unwrap();
    while !env.project().join("there").exists() {
        std::thread::yield_now();
    }
    env.write("project/essay.md", "mine\n");
    env.write("project/src/app.py", "one\ntwo\nmine\n");
    env.write("project/on", "");
    assert!(child.wait().unwrap().success());
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    let log = env.json(&["log"]);
    let action = &log["actions"][0];
    let paths: Vec<&str> = action["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["made"], "{log:#}");
    env.json(&["undo", action["action_id"].as_str().unwrap()]);
    assert!(!env.project().join("made").exists());
    assert_eq!(
        fs::read_to_string(env.project().join("essay.md")).unwrap(),
        "mine\n"
    );
    let app = fs::read_to_string(env.project().join("src/app.py")).unwrap();
    assert_eq!(app, "one\ntwo\nmine\n");
}

#[test]
fn fe_33_a_commit_that_a_person_makes_meanwhile_is_theirs() {
    let env = plain();
    let git = |words: &[&str]| {
        let mut all = vec!["-c", "user.name=N", "-c", "user.email=n@example.invalid"];
        all.extend(words);
        let output = Command::new("git")
            .args(all)
            .current_dir(env.project())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "-m", "start"]);
    let claude = Claude::new(&env);
    let line = "echo agent > made; touch there; until [ -e on ]; do sleep 0.01; done; rm there on";
    passes(&claude.asks("t-1", line));
    let mut child = shell(&env, line).spawn().unwrap();
    while !env.project().join("there").exists() {
        std::thread::yield_now();
    }
    env.write("project/essay.md", "mine\n");
    git(&["add", "essay.md"]);
    git(&["commit", "--quiet", "-m", "mine"]);
    env.write("project/on", "");
    assert!(child.wait().unwrap().success());
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    let action = env.json(&["log"])["actions"][0].clone();
    env.json(&["undo", action["action_id"].as_str().unwrap()]);
    assert_eq!(git(&["log", "--format=%s"]), "mine\nstart\n");
    assert!(env.project().join("essay.md").exists());
    assert!(!env.project().join("made").exists());
}

/// A line that was taken for one that only reads gets its checkpoint before its first write.
#[test]
fn fe_01_a_line_whose_words_say_nothing_can_be_undone() {
    let env = plain();
    let claude = Claude::new(&env);
    env.write("project/number", "a[$(echo x > src/app.py)]\n");
    // The model of bash calls this harmless.
    let line = "[[ $(cat number) -gt 0 ]]; true";
    call(&claude, "t-1", line);
    assert_eq!(
        fs::read_to_string(env.project().join("src/app.py")).unwrap(),
        "x\n"
    );
    let action = env.json(&["log"])["actions"][0].clone();
    env.json(&["undo", action["action_id"].as_str().unwrap()]);
    let app = fs::read_to_string(env.project().join("src/app.py")).unwrap();
    assert_eq!(app, "one\ntwo\nthree\n");
}

/// Whoever lives on is supervised on.
#[test]
fn fe_02_what_a_line_leaves_running_keeps_its_rights_and_no_more() {
    let env = plain();
    let claude = Claude::new(&env);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let line = format!(
        "(until [ -e go ]; do sleep 0.01; done; echo late > late; python3 dial.py {host} > dialled) > /dev/null 2>&1 & echo started"
    );
    call(&claude, "t-1", &line);
    env.write("project/go", "");
    let dialled = loop {
        match fs::read_to_string(env.project().join("dialled")) {
            Ok(text) if text.ends_with('\n') => break text,
            _ => std::thread::yield_now(),
        }
    };
    assert!(dialled.starts_with("refused "), "{dialled}");
    assert_eq!(
        fs::read_to_string(env.project().join("late")).unwrap(),
        "late\n"
    );
}
