//! What an agent calls `safepoint` for is an agent's call, whoever starts it: it decides nothing,
//! reads no key and runs nothing outside the fence, also from a process without ancestors.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::process::Output;

use client::{Claude, denied, passes};
use serde_json::{Value, json};
use support::bare;
use testkit::TestEnv;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

fn plain() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\n");
    env
}

/// Runs a line as the client would after the hook.
fn run_line(claude: &Claude<'_>, id: &str, line: &str) -> Output {
    let instead = passes(&claude.asks(id, line)).unwrap_or_else(|| line.to_owned());
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-c", &instead])
        .current_dir(claude.env.project());
    for (name, value) in claude.env.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    passes(&claude.after(id, "Bash", json!({"command": line})));
    output
}

/// Lets go of every ancestor, and then tries everything that decides or reads a key.
const ATTACK: &str = r#"
import ctypes, glob, json, os, socket, subprocess, sys
given = json.loads(open("given.json").read())
safepoint, home, key = given["safepoint"], given["home"], given["key"]
if os.fork(): os._exit(0)
os.setsid()
between = os.getpid()
if os.fork(): os._exit(0)
while os.getppid() == between:
    pass
kept = dict(os.environ)
path = {"PATH": kept.get("PATH", "/usr/bin")}
places = {
    "nothing": path,
    "all": kept,
    "no broker": {n: v for n, v in kept.items() if not n.startswith("SAFEPOINT_")},
    "home": dict(path, SAFEPOINT_HOME=home),
    "home of a person": dict(path, HOME=os.path.dirname(home), SAFEPOINT_HOME=home, SAFEPOINT_FENCED=""),
    "store": dict(path, SAFEPOINT_HOME=home, SAFEPOINT_STORE="sqlite:" + home + "/data/store.db"),
    "other home": dict(path, SAFEPOINT_HOME=os.getcwd() + "/elsewhere"),
    "with a key": dict(path, SAFEPOINT_HOME=home, SAFEPOINT_KEY=key),
}
results = {}
for name, variables in places.items():
    for words in given["calls"]:
        done = subprocess.run([safepoint] + words, env=variables, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=60)
        label = name + ": " + " ".join(words[:3])
        results[label] = [done.returncode, (done.stdout + done.stderr).decode(errors="replace")]
read = []
def attempt(path):
    try:
        read.append([path, open(path, "rb").read(200).decode(errors="replace")])
    except OSError as error:
        pass
attempt(key)
attempt(home + "/data/store.db")
libc = ctypes.CDLL(None, use_errno=True)
traced = []
inside = os.getsid(0)
for process in [p for p in os.listdir("/proc") if p.isdigit()]:
    attempt("/proc/" + process + "/root" + key)
    attempt("/proc/" + process + "/cwd/../home/data/operators/ann.key")
    for name in glob.glob("/proc/" + process + "/fd/*"):
        try:
            if "safepoint" in os.readlink(name) or home in os.readlink(name):
                attempt(name)
        except OSError:
            pass
    try:
        if os.getsid(int(process)) != inside and libc.ptrace(16, int(process), 0, 0) == 0:
            traced.append(process)
            libc.ptrace(17, int(process), 0, 0)
    except OSError:
        pass
reached = []
for line in open("/proc/net/unix").read().splitlines()[1:]:
    words = line.split()
    if len(words) > 7:
        name = words[7]
        try:
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(2)
            client.connect("\0" + name[1:] if name[0] == "@" else name)
            reached.append(name)
        except OSError:
            pass
results = {"calls": results, "read": read, "traced": traced, "reached": reached, "parent": os.getppid() }
with open("results.tmp", "w") as file:
    json.dump(results, file)
os.rename("results.tmp", "results.json")
"#;

#[test]
fn fe_04_a_daemon_of_an_agents_line_decides_nothing_and_reads_no_key() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let copy = format!("cp src/app.py {}/new", outside.path().display());
    let told = denied(&claude.asks("t-1", &copy));
    let mut words = told.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let hold = words.find(|word| word.starts_with("hld_")).unwrap();
    let yes = support::yes_to(&env, hold, &[]);
    let key = env.home().join("data/operators/ann.key");
    let secret = fs::read_to_string(&key).unwrap();
    let named = ["--operator", "ann", "--key", key.to_str().unwrap()];
    let with_key = [yes.clone(), named.map(str::to_owned).to_vec()].concat();
    let given = json!({
        "safepoint": SAFEPOINT, "home": env.home(), "key": key,
        "calls": [
            yes,
            with_key,
            ["hold", "deny", hold, "--reason", "no"],
            ["operator", "add", "eve"],
            ["operator", "remove", "ann"],
            ["trust", "grant", "tool:/usr/bin/git"],
            ["permit", "list"],
            ["token", "create", "eve"],
            ["notify", "list"],
        ],
    });
    env.write("project/given.json", &given.to_string());
    env.write("project/attack.py", ATTACK);
    let output = run_line(&claude, "t-2", "python3 attack.py");
    assert!(output.status.success(), "{output:?}");
    let results = env.project().join("results.json");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while !results.exists() {
        assert!(std::time::Instant::now() < until, "the daemon is gone");
        std::thread::yield_now();
    }
    let found: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert!(found["calls"].as_object().unwrap().len() >= 8, "{found:#}");
    for (label, call) in found["calls"].as_object().unwrap() {
        let is_harmless = label.contains("list") || label.starts_with("other home");
        assert!(is_harmless || call[0] != 0, "{label}: {call:#}");
        assert!(!call.to_string().contains(secret.trim()), "{label}");
    }
    let read = found["read"].to_string();
    assert!(!read.contains(secret.lines().last().unwrap()), "{read}");
    assert_eq!(found["read"], json!([]));
    assert_eq!(found["traced"], json!([]));
    assert!(support::entries(&env, "approval_decision").is_empty());
    assert_eq!(
        support::waiting(&env).len(),
        1,
        "{:#}",
        env.json(&["hold", "list"])
    );
    let operators = env.json(&["operator", "list"]);
    assert_eq!(operators["operators"].as_array().unwrap().len(), 1);
    // A control: the person does the same.
    support::approve(&env, hold);
}

#[test]
fn fe_04_a_line_under_hooks_runs_no_provider_of_states() {
    let prefix = safepoint_clients::shell_prefix(SAFEPOINT);
    let line = format!("{SAFEPOINT} checkpoint state:x");
    for (flags, is_prefixed) in [(vec![], false), (vec![], true), (vec!["--no-fence"], false)] {
        let mut env = bare();
        let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
        let made = outside.path().join("made");
        let settings = format!(
            "state_providers:\n  x: {{ capture: 'touch {}', restore: cat }}\n",
            made.display()
        );
        env.write("project/safepoint.yaml", &settings);
        env.write("project/a", "a");
        if is_prefixed {
            env.set("CLAUDE_CODE_SHELL_PREFIX", &prefix);
            env.set("CLAUDE_CODE_SESSION_ID", "s-1");
        }
        let claude = Claude {
            flags,
            ..Claude::new(&env)
        };
        let case = format!("{:?}, {is_prefixed}", claude.flags);
        let asked = claude.asks("t-1", &line);
        if asked.code == 0 {
            let line = passes(&asked).unwrap_or_else(|| line.clone());
            let line = match is_prefixed {
                true => format!("{prefix} \"eval '{line}'\""),
                false => line,
            };
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", &line]).current_dir(env.project());
            for (name, value) in env.command(&[]).get_envs() {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
            let output = shell.output().unwrap();
            assert!(!made.exists(), "{case}: {output:?}");
            assert!(!output.status.success(), "{case}: {output:?}");
        }
        // A control: a person's.
        let run = env.run(&["checkpoint", "state:x"]);
        assert!(made.exists(), "{case}: {run:?}");
    }
}

/// A server that says nothing: whether somebody came.
fn was_reached(listener: &std::net::TcpListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

#[test]
fn fe_12_an_agent_names_no_server_of_a_database_that_nobody_opened() {
    let mut env = plain();
    env.set("PGCONNECT_TIMEOUT", "1");
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = [
        format!("{SAFEPOINT} checkpoint postgres://u@127.0.0.1:{port}/shop"),
        format!("{SAFEPOINT} checkpoint mysql://u@127.0.0.1:{port}/shop"),
        format!(
            "{SAFEPOINT} mutate postgres://u@127.0.0.1:{port}/shop --auto-checkpoint --operation '{{\"type\":\"sql\",\"sql\":\"DELETE FROM t\"}}'"
        ),
    ];
    let mut told = String::new();
    for (number, line) in lines.iter().enumerate() {
        let output = run_line(&claude, &format!("t-{number}"), line);
        told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("is not open to agents"), "{line}: {output:?}");
        assert!(!was_reached(&listener), "{line}: {output:?}");
    }
    // It is a question like any other about a host, and the yes is for once.
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap();
    let shown = support::show(&env, hold);
    assert_eq!(
        shown["canonical_form"]["argv"][0], "net.connect",
        "{shown:#}"
    );
    support::approve(&env, hold);
    let output = run_line(&claude, "t-5", &lines[0]);
    assert!(was_reached(&listener), "{output:?}");
    let output = run_line(&claude, "t-6", &lines[0]);
    assert!(!was_reached(&listener), "{output:?}");
    // Controls: the user's own settings name it; and a person names what they like.
    let output = env.run(&["checkpoint", &format!("postgres://u@127.0.0.1:{port}/shop")]);
    assert!(was_reached(&listener), "{output:?}");
    let service = format!("services: [\"localhost:{port}\"]\n");
    env.write("home/config/config.yaml", &service);
    let output = run_line(&claude, "t-7", &lines[0]);
    assert!(was_reached(&listener), "{output:?}");
}
