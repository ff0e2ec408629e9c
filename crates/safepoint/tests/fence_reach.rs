//! What programs behind the fence want outside it: how it is decided, what is recorded of it,
//! and what that means for taking an action back.

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

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{Claude, passes};
use serde_json::{Value, json};
use support::{
    add, approve, approve_with, assert_sound, bare, denied, entries, exec, exec_command, exec_with,
    executable, reply_of, run, runs, show, text, try_approve, waiting,
};
use testkit::TestEnv;

/// A service of this machine, which counts who came.
struct Service {
    port: u16,
    calls: Arc<AtomicUsize>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = stream;
                let mut word = [0; 4];
                if stream.read_exact(&mut word).is_ok() {
                    seen.fetch_add(1, Ordering::SeqCst);
                    let _ = stream.write_all(b"done");
                }
            }
        });
        Self { port, calls }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Tells a service to do something, and says whether it did.
const CALL: &str = "\
import socket, sys
try:
    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=120)
    s.sendall(b'drop')
    print(s.recv(4).decode())
except OSError as error:
    print('no', error.strerror)
";

/// A project under the built-in rules whose script calls a service.
fn project() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/a", "content of a\n");
    env.write("project/call.py", CALL);
    add(&env, "ann");
    env
}

/// Runs the script; whether it reached the service, and the reply.
#[track_caller]
fn calls(env: &TestEnv, service: &Service) -> (bool, Value) {
    let reply = runs(env, &["python3", "call.py", &service.port.to_string()]);
    (text(&reply["stdout"]).contains("done"), reply)
}

/// The one hold there is.
#[track_caller]
fn the_hold(env: &TestEnv) -> Value {
    let holds = waiting(env);
    assert_eq!(holds.len(), 1, "{holds:#?}");
    holds[0].clone()
}

/// Ends the session of the workspace: what comes next begins another.
fn end_session(env: &TestEnv, reply: &Value) {
    env.json(&["session", "end", reply["session_id"].as_str().unwrap()]);
}

#[test]
fn fe_16_what_the_fence_refuses_is_decided_once() {
    let (env, service) = (project(), Service::start());
    let (reached, reply) = calls(&env, &service);
    assert!(!reached && service.calls() == 0, "{reply:#}");
    let hold = the_hold(&env);
    let id = text(&hold["hold_id"]);
    assert_eq!(reply["refused"].as_array().unwrap().len(), 1, "{reply:#}");
    assert!(text(&reply["refused"][0]).contains(&id), "{reply:#}");
    // It belongs to the directory, and says in plain words what it opens.
    let workspace = env.project().canonicalize().unwrap();
    assert_eq!(
        hold["canonical_form"]["workspace"]["path"],
        workspace.to_str().unwrap()
    );
    let summary = text(&hold["canonical_request_summary"]);
    assert_eq!(summary, format!("net.connect {}", service.address()));
    let means = text(&hold["authorization_statement"]);
    let opens = format!("lets this session connect to {} once", service.address());
    assert!(means.contains(&opens), "{means}");
    assert!(!means.contains("Nobody knows"), "{means}");
    let shown = env.run(&["hold", "show", &id]).stdout;
    assert!(shown.contains("--for session"), "{shown}");
    // Asked again, it is the same hold.
    assert!(!calls(&env, &service).0);
    assert_eq!(text(&the_hold(&env)["hold_id"]), id);
    let reply = approve(&env, &id);
    assert!(reply["permit"].is_object(), "{reply:#}");
    assert!(calls(&env, &service).0);
    assert_eq!(service.calls(), 1);
    // Once.
    assert!(!calls(&env, &service).0);
    assert_eq!(service.calls(), 1);
    assert_sound(&env);
}

#[test]
fn fe_16_a_yes_for_the_session_is_good_for_this_target_in_this_session() {
    let (env, service, other) = (project(), Service::start(), Service::start());
    calls(&env, &service);
    let hold = text(&the_hold(&env)["hold_id"]);
    let reply = approve_with(&env, &hold, &["--for", "session"]);
    assert_eq!(reply["scope"], "session", "{reply:#}");
    assert!(reply["permit"].is_null(), "{reply:#}");
    assert!(
        text(&reply["opens"]).contains(&service.address()),
        "{reply:#}"
    );
    for _ in 0..3 {
        assert!(calls(&env, &service).0);
    }
    assert_eq!(service.calls(), 3);
    assert_eq!(waiting(&env).len(), 0);
    // Another target is another question.
    let (reached, reply) = calls(&env, &other);
    assert!(!reached && other.calls() == 0, "{reply:#}");
    let told = text(&the_hold(&env)["canonical_request_summary"]);
    assert!(told.contains(&other.address()), "{told}");
    // And so is another session.
    end_session(&env, &reply);
    assert!(!calls(&env, &service).0);
    assert_eq!(service.calls(), 3);
    assert_sound(&env);
}

#[test]
fn fe_16_a_yes_for_the_project_is_good_until_it_is_revoked() {
    let (env, service) = (project(), Service::start());
    let (_, reply) = calls(&env, &service);
    let hold = text(&the_hold(&env)["hold_id"]);
    approve_with(&env, &hold, &["--for", "project"]);
    end_session(&env, &reply);
    let (reached, reply) = calls(&env, &service);
    assert!(reached, "{reply:#}");
    end_session(&env, &reply);
    assert!(calls(&env, &service).0);
    // In another directory it is nobody's.
    env.write("other/safepoint.yaml", "");
    env.write("other/call.py", CALL);
    let other = env.root().join("other");
    let port = service.port.to_string();
    let words = [
        "-C",
        other.to_str().unwrap(),
        "--json",
        "exec",
        "--no-tui",
        "--",
        "python3",
    ];
    let words = [words.as_slice(), &["call.py", &port]].concat();
    let (_, reply) = reply_of(&mut env.command(&words));
    assert!(text(&reply["stdout"]).starts_with("no"), "{reply:#}");
    // It is listed, recorded, and taken back.
    let list = env.json(&["trust", "list"]);
    let boundary = text(&list["trust"][0]["boundary"]);
    let workspace = env.project().canonicalize().unwrap();
    assert_eq!(
        boundary,
        format!("host:{} in {}", service.address(), workspace.display())
    );
    let told = entries(&env, "trust_changed");
    assert_eq!(told[0]["body"]["event"], "opened", "{told:#?}");
    let before = service.calls();
    env.json(&["trust", "revoke", &boundary]);
    assert!(!calls(&env, &service).0);
    assert_eq!(service.calls(), before);
    assert_sound(&env);
}

#[test]
fn fe_16_what_was_opened_is_held_against_the_trail() {
    let (env, service) = (project(), Service::start());
    let (_, reply) = calls(&env, &service);
    let hold = text(&the_hold(&env)["hold_id"]);
    approve_with(&env, &hold, &["--for", "project"]);
    assert!(calls(&env, &service).0);
    let list = env.json(&["trust", "list"]);
    env.json(&["trust", "revoke", &text(&list["trust"][0]["boundary"])]);
    assert!(!calls(&env, &service).0);
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let changed = store.execute(
        "UPDATE control_documents SET state = replace(state, 'untrusted', 'trusted') WHERE kind = 'trust'",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(store);
    let before = service.calls();
    let port = service.port.to_string();
    exec(&env, &["python3", "call.py", &port]);
    end_session(&env, &reply);
    exec(&env, &["python3", "call.py", &port]);
    assert_eq!(service.calls(), before);
}

#[test]
fn fe_16_only_what_the_fence_refuses_is_opened_for_longer() {
    let env = support::held();
    let hold = support::hold_of(&env, &["touch", "b"]);
    let (code, reply) = try_approve(&env, &hold, &["--for", "session"]);
    assert_ne!(code, 0, "{reply:#}");
    assert!(
        text(&reply["error"]["message"]).contains("outside the fence"),
        "{reply:#}"
    );
    assert_eq!(show(&env, &hold)["state"], "pending");
    assert_eq!(env.json(&["trust", "list"])["trust"], json!([]));
}

#[test]
fn fe_16_an_envelope_may_name_hosts() {
    let (env, service, other) = (project(), Service::start(), Service::start());
    calls(&env, &service);
    let hold = text(&the_hold(&env)["hold_id"]);
    let envelope = json!({"actions": ["net.connect"], "side_effects": ["network"],
        "hosts": [service.address()]});
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    assert!(calls(&env, &service).0);
    assert!(calls(&env, &service).0);
    assert!(!calls(&env, &other).0);
    assert_eq!(other.calls(), 0);
}

#[test]
fn fe_16_a_call_waits_for_the_answer() {
    let (env, service) = (project(), Service::start());
    let port = service.port.to_string();
    let mut command = exec_command(&env, &["--wait", "2m"], &["python3", "call.py", &port]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let hold = wait_for_hold(&env);
    assert_eq!(service.calls(), 0);
    approve(&env, &hold);
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["stdout"], "done\n", "{reply:#}");
    assert_eq!(reply["refused"], json!([]), "{reply:#}");
    assert_eq!(service.calls(), 1);
}

#[test]
fn fe_16_a_no_ends_the_wait() {
    let (env, service) = (project(), Service::start());
    let port = service.port.to_string();
    let mut command = exec_command(&env, &["--wait", "10m"], &["python3", "call.py", &port]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let hold = wait_for_hold(&env);
    env.json(&["hold", "deny", &hold]);
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(text(&reply["stdout"]).starts_with("no"), "{reply:#}");
    assert_eq!(service.calls(), 0);
}

#[test]
fn fe_16_a_line_of_a_client_waits_as_long_as_its_hook() {
    let (env, service) = (project(), Service::start());
    env.write("project/safepoint.yaml", "hook_wait: 2m\n");
    let claude = Claude::new(&env);
    let line = format!("python3 call.py {} > said", service.port);
    let instead = passes(&claude.asks("t-1", &line)).unwrap();
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &instead]).current_dir(env.project());
    for (name, value) in env.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let child = shell.spawn().unwrap();
    let hold = wait_for_hold(&env);
    approve(&env, &hold);
    assert!(child.wait_with_output().unwrap().status.success());
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    let said = std::fs::read_to_string(env.project().join("said")).unwrap();
    assert_eq!(said, "done\n");
    assert_eq!(service.calls(), 1);
}

/// Looks until something waits.
#[track_caller]
fn wait_for_hold(env: &TestEnv) -> String {
    let begun = Instant::now();
    loop {
        if let Some(hold) = waiting(env).first() {
            return text(&hold["hold_id"]);
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "nothing waits");
        std::thread::yield_now();
    }
}

#[test]
fn fe_30_what_was_reached_decides_whether_it_can_be_taken_back() {
    let (env, service) = (project(), Service::start());
    env.write("project/build.py", "open('made', 'w').write('x')\n");
    let reply = runs(&env, &["python3", "build.py"]);
    assert_eq!(reply["reversibility"], "reversible", "{reply:#}");
    // Refused is not reached.
    let (_, reply) = calls(&env, &service);
    assert_eq!(reply["reversibility"], "reversible", "{reply:#}");
    approve(&env, &text(&the_hold(&env)["hold_id"]));
    let (reached, reply) = calls(&env, &service);
    assert!(reached);
    assert_eq!(reply["reversibility"], "irreversible", "{reply:#}");
    let log = env.json(&["log"]);
    let [called, refused, built] = [0, 1, 2].map(|place| log["actions"][place].clone());
    assert_eq!(
        called["reached"]["hosts"],
        json!([service.address()]),
        "{called:#}"
    );
    assert_eq!(called["reversibility"], "irreversible");
    assert!(
        text(&called["remainder"][0]).contains(&service.address()),
        "{called:#}"
    );
    assert_eq!(
        refused["refused"][0]["action"], "net.connect",
        "{refused:#}"
    );
    assert_eq!(refused["refused"][0]["target"], service.address().as_str());
    assert_eq!(refused["reversibility"], "reversible");
    assert_eq!(built["reached"]["hosts"], json!([]));
    assert_eq!(built["reversibility"], "reversible");
    // Text, trail and `undo` say the same.
    let shown = env.run(&["log"]).stdout;
    assert!(
        shown.contains(&format!("reached   {}", service.address())),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("refused   net.connect {}", service.address())),
        "{shown}"
    );
    let ended = entries(&env, "action_ended");
    let ended = &ended.last().unwrap()["body"];
    assert_eq!(ended["reversibility"], "irreversible", "{ended:#}");
    assert_eq!(ended["remainder"], called["remainder"]);
    let undone = env.run(&["undo", &text(&called["action_id"])]);
    assert!(undone.stdout.contains(&service.address()), "{undone:?}");
    let audit = env.json(&["audit"]);
    let told = audit["effects"].as_array().unwrap();
    let told = told
        .iter()
        .find(|it| it["action_id"] == called["action_id"]);
    assert_eq!(told.unwrap()["remainder"], called["remainder"], "{audit:#}");
}

#[test]
fn fe_30_sockets_and_files_outside_cannot_be_taken_back() {
    let env = project();
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let elsewhere = elsewhere.path().canonicalize().unwrap();
    let socket = elsewhere.join("service.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().flatten().for_each(drop));
    let file = elsewhere.join("file");
    std::fs::write(&file, "before").unwrap();
    env.write(
        "project/ask.py",
        &format!(
            "import socket\n\
             for step in (lambda: socket.socket(socket.AF_UNIX).connect('{}'),\n\
             \x20            lambda: open('{}', 'w').write('after')):\n\
             \x20   try: step()\n\
             \x20   except OSError as error: print(error)\n",
            socket.display(),
            file.display()
        ),
    );
    runs(&env, &["python3", "ask.py"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    let holds = waiting(&env);
    assert_eq!(holds.len(), 2, "{holds:#?}");
    for hold in &holds {
        approve_with(&env, &text(&hold["hold_id"]), &["--for", "session"]);
    }
    let reply = runs(&env, &["python3", "ask.py"]);
    assert_eq!(
        std::fs::read_to_string(&file).unwrap(),
        "after",
        "{reply:#}"
    );
    assert_eq!(reply["reversibility"], "irreversible", "{reply:#}");
    let action = env.json(&["log"])["actions"][0].clone();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    assert_eq!(
        action["reached"]["sockets"],
        json!([path(&socket)]),
        "{action:#}"
    );
    assert_eq!(
        action["reached"]["outside"],
        json!([path(&file)]),
        "{action:#}"
    );
    assert_eq!(
        action["remainder"].as_array().unwrap().len(),
        2,
        "{action:#}"
    );
}

/// What the user's own settings say.
fn settings(env: &TestEnv, text: &str) {
    let place = env.home().join("config/config.yaml");
    std::fs::create_dir_all(place.parent().unwrap()).unwrap();
    std::fs::write(place, text).unwrap();
}

/// A migration tool, as far as it matters: it drops what is in the database.
fn alembic(env: &mut TestEnv, service: &Service) {
    let tools = env.root().join("tools");
    env.write(
        "tools/alembic",
        &format!(
            "#!/usr/bin/env python3\nimport sys\nsys.argv[1:] = ['{}']\n{CALL}",
            service.port
        ),
    );
    executable(&tools.join("alembic"));
    let search = std::env::var("PATH").unwrap();
    env.set("PATH", &format!("{}:{search}", tools.display()));
}

#[test]
fn fe_30_a_migration_against_a_database_that_nobody_named_is_refused() {
    let (mut env, service) = (project(), Service::start());
    alembic(&mut env, &service);
    let reply = runs(&env, &["alembic", "downgrade", "base"]);
    assert_eq!(service.calls(), 0, "{reply:#}");
    assert_eq!(reply["reversibility"], "reversible", "{reply:#}");
    let hold = the_hold(&env);
    assert_eq!(hold["canonical_form"]["hosts"], json!([service.address()]));
}

#[test]
fn fe_30_a_migration_against_a_named_database_is_told_before_it_runs() {
    let (mut env, service) = (project(), Service::start());
    alembic(&mut env, &service);
    settings(&env, &format!("services: ['{}']\n", service.address()));
    let words = ["alembic", "downgrade", "base"];
    let denial = denied(&env, &words, "APPROVAL_REQUIRED");
    assert_eq!(service.calls(), 0);
    let hold = show(&env, &text(&denial["hold_id"]));
    assert_eq!(hold["reversibility_class"], "irreversible", "{hold:#}");
    let told = hold["canonical_form"]["remainder"].to_string();
    assert!(told.contains(&service.address()), "{told}");
    approve(&env, &text(&denial["hold_id"]));
    let reply = runs(&env, &words);
    assert_eq!(service.calls(), 1, "{reply:#}");
    assert_eq!(reply["reversibility"], "irreversible", "{reply:#}");
}

#[test]
fn fe_30_named_hosts_make_a_program_reversible_in_part() {
    let env = project();
    env.write("project/build.py", "open('made', 'w').write('x')\n");
    let rehearse = |env: &TestEnv| {
        let words = ["exec", "--dry-run", "--no-tui", "--", "python3", "build.py"];
        run(env, &words).1["canonical_form"].clone()
    };
    assert_eq!(rehearse(&env)["reversibility"], "reversible");
    settings(&env, "network: {hosts: ['example.org:443']}\n");
    let form = rehearse(&env);
    assert_eq!(form["reversibility"], "partly", "{form:#}");
    assert_eq!(
        form["remainder"],
        json!(["may send data to example.org:443"])
    );
    // It reached nothing, so all of it can be taken back.
    let reply = runs(&env, &["python3", "build.py"]);
    assert_eq!(reply["reversibility"], "reversible", "{reply:#}");
}

#[test]
fn fe_31_an_action_that_only_wanted_out_is_in_the_log() {
    let (env, service) = (project(), Service::start());
    let claude = Claude::new(&env);
    // Words say that it only reads.
    claude.does("t-1", "cat a");
    assert_eq!(env.json(&["log"])["actions"], json!([]));
    // It changes nothing, and it is told what it wanted.
    claude.does("t-2", &format!("python3 call.py {}", service.port));
    let log = env.json(&["log"]);
    let action = &log["actions"][0];
    assert_eq!(
        action["refused"][0]["target"],
        service.address().as_str(),
        "{log:#}"
    );
    assert_eq!(action["refused"][0]["hold_id"], the_hold(&env)["hold_id"]);
    assert_eq!(action["changes"], json!([]), "{log:#}");
}

#[test]
fn fe_32_disagreements_of_words_and_effects_are_counted() {
    let (env, service) = (project(), Service::start());
    let counts = |env: &TestEnv| run(env, &["doctor"]).1["disagreements"].clone();
    assert_eq!(counts(&env)["actions"], 0);
    env.write("project/build.py", "open('made', 'w').write('x')\n");
    runs(&env, &["python3", "build.py"]);
    assert_eq!(counts(&env)["actions"], 0);
    calls(&env, &service);
    let counted = counts(&env);
    assert_eq!(counted["inside_but_refused"], 1, "{counted:#}");
    assert_eq!(counted["inside_but_reached"], 0, "{counted:#}");
    approve(&env, &text(&the_hold(&env)["hold_id"]));
    calls(&env, &service);
    let counted = counts(&env);
    assert_eq!(counted["inside_but_reached"], 1, "{counted:#}");
    assert_eq!(counted["actions"], 2, "{counted:#}");
    let shown = env.run(&["doctor"]).stdout;
    assert!(shown.contains("words and effects"), "{shown}");
}

#[test]
fn fe_16_settings_are_suggested_from_what_was_wanted() {
    let (env, service, other) = (project(), Service::start(), Service::start());
    let empty = env.run(&["atlas", "suggest"]).stdout;
    assert_eq!(empty, "# nothing outside was reached or refused\n");
    calls(&env, &other);
    for _ in 0..2 {
        calls(&env, &service);
    }
    let before = std::fs::read_to_string(env.project().join("safepoint.yaml")).unwrap();
    let suggested = env.run(&["atlas", "suggest", "--since", "1d"]).stdout;
    assert_eq!(
        suggested,
        format!(
            "services:\n  # reached 0 times, refused 2 times\n  - '{}'\n  # reached 0 times, refused once\n  - '{}'\n",
            service.address(),
            other.address()
        )
    );
    let after = std::fs::read_to_string(env.project().join("safepoint.yaml")).unwrap();
    assert_eq!(after, before, "nothing is written");
    // It is what settings take.
    settings(&env, &suggested);
    let (_, reply) = exec_with(&env, &["--dry-run"], &["python3", "call.py", "1"]);
    let told = reply["canonical_form"]["remainder"].to_string();
    assert!(told.contains(&service.address()), "{told}");
}
