//! Lines that a client runs in a sandbox of its own: a relay outside keeps their record, and
//! without one they do not run.

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

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use client::{Claude, passes};
use serde_json::{Value, json};
use support::bare;
use testkit::TestEnv;

/// A project whose client has switched its sandbox on.
fn sandboxed() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/app.py", "one\n");
    env.write(
        "user/.claude/settings.json",
        &json!({"sandbox": {"enabled": true}}).to_string(),
    );
    env
}

/// The client's shell, where the store is on a file system that can only be read, as in the
/// sandboxes of Codex and Claude Code.
fn command_in_sandbox(env: &TestEnv, line: &str) -> Command {
    let home = env.home();
    let script =
        "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec bash -c \"$1\"";
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--", "sh", "-c", script]);
    command.arg(&home).arg(line).current_dir(env.project());
    command.env_clear();
    let given = env.command(&[]);
    for (name, value) in given.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.stdin(Stdio::null());
    command
}

fn in_sandbox(env: &TestEnv, line: &str) -> Output {
    command_in_sandbox(env, line).output().unwrap()
}

/// The directories of the relays that there are.
fn relays(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.home().join("runtime/relays"));
    let entries = entries.into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn only_relay(env: &TestEnv) -> PathBuf {
    let [relay] = relays(env).try_into().unwrap();
    relay
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what}");
}

/// The process that has the pipes of a relay.
fn process_of(relay: &Path) -> u32 {
    let found = fs::read_dir("/proc").unwrap().find_map(|entry| {
        let entry = entry.unwrap();
        let process = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        let words: Vec<&str> = words.split('\0').collect();
        let is_it = words.contains(&"relay") && words.contains(&relay.to_str().unwrap());
        is_it.then_some(process)
    });
    found.unwrap()
}

fn only_action(env: &TestEnv) -> Value {
    let log = env.json(&["log"]);
    let actions = log["actions"].as_array().unwrap();
    assert_eq!(actions.len(), 1, "{log:#}");
    actions.first().unwrap().clone()
}

#[test]
fn fe_06_a_line_in_a_sandbox_runs_behind_the_fence_and_is_recorded() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    env.write(
        "project/poke.sh",
        "for pipe in \"$SAFEPOINT_HOME\"/runtime/relays/*/*; do echo garbage > \"$pipe\"; done\n",
    );
    let line = "echo two > app.py; cat \"$SAFEPOINT_HOME\"/data/store.db; \
         mkdir d && mv d e; sh poke.sh; exit 3";
    let replacement = passes(&claude.asks("t-1", line)).unwrap();
    let ended = in_sandbox(&env, &replacement);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    // The store is hidden, and so are the pipes: garbage would end the relay.
    assert!(said.matches("denied").count() >= 3, "{said}");
    let app = || fs::read_to_string(env.project().join("app.py")).unwrap();
    assert_eq!(app(), "two\n");
    passes(&claude.after("t-1", "Bash", json!({"command": replacement})));
    let action = only_action(&env);
    assert_eq!(action["outcome"], "error");
    let changes = action["changes"].as_array().unwrap().iter();
    let changes: Vec<&str> = changes.map(|it| it["path"].as_str().unwrap()).collect();
    assert_eq!(changes, ["app.py", "e"]);
    env.json(&["undo", action["action_id"].as_str().unwrap()]);
    assert_eq!(app(), "one\n");
    wait_until("no pipes are left", || relays(&env).is_empty());
    // Leave is for once.
    let again = in_sandbox(&env, &replacement);
    assert_eq!(again.status.code(), Some(126), "{again:?}");
    assert_eq!(app(), "one\n");
}

#[test]
fn fe_06_a_line_that_only_calls_safepoint_is_done_outside() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    let first = passes(&claude.asks("t-1", "echo two > app.py")).unwrap();
    assert!(in_sandbox(&env, &first).status.success());
    let does = |id: &str, words: &str| {
        let line = format!("{} {words}", env!("CARGO_BIN_EXE_safepoint"));
        let replacement = passes(&claude.asks(id, &line)).unwrap();
        (replacement.clone(), in_sandbox(&env, &replacement))
    };
    let (replacement, log) = does("t-2", "log");
    let said = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.status.success() && said.contains("echo two"), "{log:?}");
    // Once, and no other line.
    assert_eq!(in_sandbox(&env, &replacement).status.code(), Some(126));
    let ours = env!("CARGO_BIN_EXE_safepoint");
    let replacement = passes(&claude.asks("t-3", &format!("{ours} log"))).unwrap();
    let other = replacement.replace(&format!("{ours} log"), &format!("{ours} status"));
    assert_ne!(other, replacement);
    assert_eq!(in_sandbox(&env, &other).status.code(), Some(126));
    let (_, undone) = does("t-4", "undo");
    assert!(undone.status.success(), "{undone:?}");
    let app = fs::read_to_string(env.project().join("app.py")).unwrap();
    assert_eq!(app, "one\n");
}

#[test]
fn fe_06_a_line_that_reaches_the_store_itself_needs_no_relay() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    claude.does("t-1", "echo two > app.py");
    assert_eq!(only_action(&env)["outcome"], "ok");
    wait_until("the relay has ended", || relays(&env).is_empty());
    // Nor does one that the client did not run in the end.
    passes(&claude.asks("t-2", "echo three > app.py"));
    assert_eq!(relays(&env).len(), 1);
    passes(&claude.says("Stop", json!({"stop_hook_active": false})));
    assert!(relays(&env).is_empty());
}

#[test]
fn fe_06_no_relay_is_started_where_the_client_has_no_sandbox() {
    let env = sandboxed();
    env.write("user/.claude/settings.json", "{}");
    passes(&Claude::new(&env).asks("t-1", "echo two > app.py"));
    assert!(relays(&env).is_empty());
}

#[test]
fn fe_06_where_nobody_answers_outside_a_line_does_not_run() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    let refused = |replacement: &str| {
        let ended = in_sandbox(&env, replacement);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(126), "{said}");
        assert!(said.contains("this line was not run"), "{said}");
        assert_eq!(
            fs::read_to_string(env.project().join("app.py")).unwrap(),
            "one\n"
        );
        said
    };
    let ask = |id: &str| passes(&claude.asks(id, "echo two > app.py")).unwrap();
    // It was killed.
    let replacement = ask("t-1");
    let process = process_of(&only_relay(&env)).to_string();
    Command::new("kill")
        .args(["-KILL", &process])
        .status()
        .unwrap();
    wait_until("it is gone", || {
        !PathBuf::from(format!("/proc/{process}/fd/0")).exists()
    });
    let said = refused(&replacement);
    assert!(said.contains("no process of Safepoint"), "{said}");
    fs::remove_dir_all(env.home().join("runtime/relays")).unwrap();
    // Its pipes are somebody else's work: a file, a link, a directory that others may write.
    let replacement = ask("t-2");
    let relay = only_relay(&env);
    fs::set_permissions(&relay, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&replacement);
    fs::set_permissions(&relay, fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(relay.join("ask"), relay.join("pipe")).unwrap();
    std::os::unix::fs::symlink("pipe", relay.join("ask")).unwrap();
    refused(&replacement);
    fs::remove_file(relay.join("ask")).unwrap();
    fs::write(relay.join("ask"), "").unwrap();
    refused(&replacement);
    fs::remove_dir_all(&relay).unwrap();
    // Somebody else has the line, and another line is not the one that was let through.
    let replacement = ask("t-3");
    refused(&replacement.replace("echo two", "echo evil"));
}

/// What a hostile program says to a relay whose pipes it could reach, and what comes back.
fn say(env: &TestEnv, words: &[u8]) -> String {
    let relay = only_relay(env);
    let mut ask = File::options().write(true).open(relay.join("ask")).unwrap();
    let mut answer = File::open(relay.join("answer")).unwrap();
    ask.write_all(words).unwrap();
    wait_until("the relay ends", || relays(env).is_empty());
    let mut said = String::new();
    answer.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn fe_06_a_relay_serves_its_own_line_and_nothing_else() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    let claim = |line: &str| json!({"kind": "claim", "format": 1, "line": line}).to_string() + "\n";
    let other = "echo other > app.py";
    passes(&claude.asks("o-1", other));
    for relay in relays(&env) {
        fs::remove_dir_all(relay).unwrap();
    }
    for (number, words) in [
        "garbage\n".to_owned(),
        "\n".to_owned(),
        json!({"kind": "claim", "format": 2, "line": "true"}).to_string() + "\n",
        json!({"kind": "claim", "format": 1, "line": "true", "path": "/etc"}).to_string() + "\n",
        json!({"kind": "ended", "report": {"code": 0, "is_fenced": true, "seen": null, "error": null}}).to_string() + "\n",
        json!({"kind": "approve", "hold": "hld_1"}).to_string() + "\n",
        // Another action's line.
        claim(other),
        // It is claimed twice.
        claim("echo two > app.py") + &claim("echo two > app.py"),
    ]
    .iter()
    .enumerate()
    {
        passes(&claude.asks(&format!("t-{number}"), "echo two > app.py"));
        let said = say(&env, words.as_bytes());
        let is_own = words.starts_with(&claim("echo two > app.py"));
        assert_eq!(said.contains("\"order\""), is_own, "{words}: {said}");
        assert!(!said.contains("recorded"), "{words}: {said}");
    }
    let log = env.json(&["log"]);
    let ended_well = log["actions"].as_array().unwrap().iter();
    assert_eq!(
        ended_well.filter(|it| it["outcome"] == "ok").count(),
        0,
        "{log:#}"
    );
    assert_eq!(
        fs::read_to_string(env.project().join("app.py")).unwrap(),
        "one\n"
    );
}

#[test]
fn fe_06_a_line_ends_when_what_keeps_its_record_is_killed() {
    let env = sandboxed();
    let claude = Claude::new(&env);
    let replacement = passes(&claude.asks("t-1", "touch begun; sleep 60; touch over")).unwrap();
    let relay = process_of(&only_relay(&env)).to_string();
    let mut child: Child = command_in_sandbox(&env, &replacement)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("it has begun", || env.project().join("begun").exists());
    Command::new("kill")
        .args(["-KILL", &relay])
        .status()
        .unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success(), "{status:?}");
    assert!(!env.project().join("over").exists());
}
