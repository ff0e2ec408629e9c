//! Whether a change holds: the user's own check, what changed besides, and that
//! nothing is left of a change that does not hold.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Still, actions, assert_sound, checkpoint, env, kinds, mutate, run, spent_by, text};
use testkit::TestEnv;
use testkit::tree::git;

fn edit() -> Value {
    json!({ "type": "edit", "changes": [{ "old": "two", "new": "2" }] })
}

fn some() -> TestEnv {
    let env = env();
    env.write("project/a.txt", "one\ntwo\n");
    env.write("project/b.txt", "b\n");
    env.write("project/d/c.txt", "c\n");
    env
}

/// Whether a process runs: one that has ended but was not waited for does not.
fn is_running(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn st_27_a_check_that_passes_keeps_the_change() {
    let env = some();
    let id = checkpoint(&env, &[]);
    // It runs in the workspace, sees what was done, and has nothing to read.
    let line = "test \"$PWD\" = \"$WANTED\" && grep -q '^2$' a.txt && test -z \"$(cat)\"";
    let operation = edit().to_string();
    let arguments = [
        "mutate",
        "--json",
        "--checkpoint",
        &id,
        "a.txt",
        "--verify",
        line,
    ];
    let mut command = env.command(&[&arguments[..], &["--operation", &operation]].concat());
    let output = command.env("WANTED", env.project()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verification = &reply["verification"];
    assert_eq!(verification["verdict"], "PASS");
    assert_eq!(verification["failures"], json!([]));
    assert_eq!(
        verification["coverage"],
        json!({ "checked": 4, "total": 4, "percentage": 100.0 })
    );
    let names: Vec<&str> = verification["checks_run"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "checkpoint_whole",
            "command",
            "target_as_meant",
            "nothing_else_changed"
        ]
    );
    assert_eq!(verification["checks_run"][1]["type"], "assertion");
    assert_eq!(verification["checks_run"][1]["target"], line);
}

#[test]
fn st_27_only_what_was_checked_counts() {
    let env = some();
    let id = checkpoint(&env, &[]);
    // Nobody knows what a command is to lead to.
    let command = json!({ "type": "command", "argv": ["touch", "made"] });
    let reply = mutate(&env, &id, ".", &command, &[]).done();
    assert_eq!(
        reply["verification"]["coverage"],
        json!({ "checked": 2, "total": 4, "percentage": 50.0 })
    );
    assert_eq!(reply["confidence"], 0.5);
}

#[test]
fn st_27_a_check_that_fails_rolls_back_all_of_it() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let cases = [
        ("echo why >&2; exit 3", "exit status: 3: why"),
        (
            "echo on standard output; false",
            "exit status: 1: on standard",
        ),
        ("kill -9 $$", "signal: 9"),
        ("no-such-program-anywhere", "exit status: 127"),
        ("head -c 3000000 /dev/zero; exit 1", "exit status: 1"),
    ];
    for (line, why) in cases {
        let more = ["--verify", line, "--verify-timeout", "500ms"];
        let reply = mutate(&env, &id, "a.txt", &edit(), &more).failed(1, "F513");
        assert_eq!(reply["error"]["name"], "VERIFICATION_FAILED");
        let message = text(&reply["error"]["message"]);
        assert!(message.contains(why), "{message}");
        let suggestion = text(&reply["error"]["suggestion"]);
        assert!(
            suggestion.contains("everything is as it was"),
            "{suggestion}"
        );
        assert_eq!(reply["verification"]["verdict"], "FAIL");
        assert_eq!(reply["verification"]["failures"][0]["check"], "command");
        assert_eq!(reply["verification"]["failures"][0]["severity"], "high");
        still.assert_back();
        let action = text(&reply["action_id"]);
        assert_eq!(
            kinds(&env, &action),
            [
                "mutation_started",
                "mutation_rolled_back",
                "mutation_failed"
            ],
            "{line}"
        );
    }
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
    mutate(&env, &id, "a.txt", &edit(), &["--verify", "true"]).done();
}

/// Nobody can tell it from what a person did meanwhile.
#[test]
fn st_27_what_a_failed_check_did_itself_is_left_and_named() {
    let cases = [
        (
            "echo x > b.txt; rm -r d; mkdir e; ln -s b.txt l; exit 1",
            json!(["b.txt", "d", "d/c.txt", "e", "l"]),
        ),
        ("rm -r -- b.txt d; exit 1", json!(["b.txt", "d", "d/c.txt"])),
    ];
    for (line, beside) in cases {
        let env = some();
        let id = checkpoint(&env, &[]);
        let before = fs::read_to_string(env.project().join("a.txt")).unwrap();
        let reply = mutate(&env, &id, "a.txt", &edit(), &["--verify", line]).failed(1, "F513");
        let after = fs::read_to_string(env.project().join("a.txt")).unwrap();
        assert_eq!(after, before);
        assert_eq!(reply["side_effects"], beside, "{reply}");
        let message = text(&reply["error"]["message"]);
        assert!(message.contains("left as it is: `b.txt`"), "{message}");
        let back = env.json(&["rollback", &id]);
        assert_eq!(back["verification"]["match"], true);
        assert_sound(&env);
    }
    // Of what it made of the target it is said that it is there.
    let env = some();
    let id = checkpoint(&env, &[]);
    let more = ["--verify", "rm a.txt; mkdir a.txt; exit 1"];
    let answer = mutate(&env, &id, "a.txt", &edit(), &more);
    assert_eq!(answer.reply["error"]["code"], "F513", "{answer:?}");
    assert_eq!(answer.reply["changes"][0]["path"], "a.txt", "{answer:?}");
    assert!(env.project().join("a.txt").is_dir());
    assert_sound(&env);
}

#[test]
fn st_27_a_check_that_takes_too_long_is_no_answer() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let line = "echo said; exec sleep 1000";
    let more = ["--verify", line, "--verify-timeout", "200ms"];
    let reply = mutate(&env, &id, "a.txt", &edit(), &more).failed(3, "H302");
    assert_eq!(reply["error"]["name"], "TIMED_OUT");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("it took too long: said"), "{message}");
    assert_eq!(reply["verification"]["verdict"], "FAIL");
    still.assert_back();
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
    // Kept when told, and the exit code is the same.
    let answer = mutate(
        &env,
        &id,
        "a.txt",
        &edit(),
        &[&more[..], &["--keep-failed"]].concat(),
    );
    assert_eq!(answer.code, 3, "{answer:?}");
    assert_eq!(answer.reply["verification"]["verdict"], "FAIL");
    assert_eq!(actions(&env)[0]["outcome"], "unverified");
    env.json(&["undo"]);
    still.assert_back();
}

#[test]
fn st_27_a_failed_check_takes_a_command_back_too() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let line = "cd ..; rm -r d; echo x >> a.txt; echo new > new";
    let command = json!({ "type": "command", "argv": ["sh", "-c", line] });
    let more = ["--verify", "test -d d"];
    mutate(&env, &id, "d", &command, &more).failed(1, "F513");
    still.assert_back();
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
}

#[test]
fn st_27_a_command_that_failed_in_a_repository_is_taken_back_and_that_is_recorded() {
    let env = some();
    let project = env.project();
    for words in [
        &["init", "-q"][..],
        &["config", "user.name", "a"],
        &["config", "user.email", "a@b"],
        &["add", "a.txt"],
        &["commit", "-qm", "first"],
    ] {
        git(&project, words);
    }
    for line in [
        "echo x >> a.txt; git add a.txt",
        "git commit -q --allow-empty -m x",
        "mkdir .git/zz; echo x > .git/zz/x",
        "touch -d yesterday a.txt; git status",
    ] {
        let id = checkpoint(&env, &[]);
        let before = git(&project, &["status", "--porcelain=v2", "--branch"]);
        let line = format!("{line}; exit 1");
        let command = json!({ "type": "command", "argv": ["sh", "-c", line] });
        let answer = mutate(&env, &id, ".", &command, &[]);
        assert_eq!(answer.code, 1, "{line}: {answer:?}");
        assert_eq!(
            answer.reply["not_restored"],
            json!([]),
            "{line}: {answer:?}"
        );
        let log = actions(&env);
        assert_eq!(log[0]["action"], "checkpoint.take_back", "{line}: {log:?}");
        assert_eq!(log[0]["outcome"], "ok", "{line}: {log:?}");
        let after = git(&project, &["status", "--porcelain=v2", "--branch"]);
        assert_eq!(after, before, "{line}");
        assert!(!project.join(".git/zz").exists());
    }
}

#[test]
fn st_27_outside_the_scope_nothing_is_rolled_back() {
    let env = some();
    let id = checkpoint(&env, &["a.txt"]);
    let still = Still::of(&env.project().join("d"));
    let more = ["--verify", "echo x > b.txt; exit 1"];
    mutate(&env, &id, "a.txt", &edit(), &more).failed(1, "F513");
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap();
    assert_eq!(read("a.txt"), "one\ntwo\n");
    assert_eq!(read("b.txt"), "x\n");
    still.assert_untouched();
}

#[test]
fn st_27_a_change_that_does_not_hold_is_kept_when_told() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let more = ["--verify", "exit 4", "--keep-failed"];
    let answer = mutate(&env, &id, "a.txt", &edit(), &more);
    assert_eq!(answer.code, 1, "{answer:?}");
    let reply = answer.reply;
    assert_eq!(reply["verification"]["verdict"], "FAIL", "{reply}");
    assert_eq!(
        (&reply["success"], &reply["kept"]),
        (&json!(false), &json!(true))
    );
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("it was kept, as"), "{reply}");
    assert_eq!(reply["new_state"]["snapshot"], "one\n2\n");
    assert_eq!(reply["confidence"], 0.75);
    assert_eq!(spent_by(&env, &id).as_deref(), reply["action_id"].as_str());
    assert_eq!(actions(&env)[0]["outcome"], "unverified");
    env.json(&["undo"]);
    still.assert_back();
}

#[test]
fn st_27_what_changes_besides_is_told_and_under_strict_is_a_failure() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let line = "echo made > made; echo c >> d/c.txt; touch b.txt; chmod 600 b.txt";
    let more = ["--strict", "--verify", line];
    let reply = mutate(&env, &id, "a.txt", &edit(), &more).failed(2, "F504");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("b.txt, d/c.txt, made"), "{message}");
    assert_eq!(reply["verification"]["verdict"], "FAIL");
    assert_eq!(reply["side_effects"], json!(["b.txt", "d/c.txt", "made"]));
    env.json(&["rollback", &id]);
    still.assert_back();
    assert_eq!(spent_by(&env, &id), None);

    let reply = mutate(&env, &id, "a.txt", &edit(), &["--verify", line]).done();
    assert_eq!(reply["side_effects"], json!(["b.txt", "d/c.txt", "made"]));
    assert_eq!(
        reply["verification"]["failures"][0]["check"],
        "nothing_else_changed"
    );
    assert_eq!(reply["verification"]["failures"][0]["severity"], "low");
    assert_eq!(reply["confidence"], 0.75);
    // What nobody asked the change for is no part of it, and is undone by itself.
    assert_eq!(reply["changes"].as_array().unwrap().len(), 1, "{reply}");
    let observed = actions(&env)[0].clone();
    assert_eq!(observed["outcome"], "observed", "{observed}");
    env.json(&["undo", &text(&reply["action_id"])]);
    env.json(&["undo", &text(&observed["action_id"])]);
    still.assert_back();
    // A change that touches nothing else is fine under it.
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, "a.txt", &edit(), &["--strict"]).done();
    assert_sound(&env);
}

#[test]
fn st_27_nothing_that_a_check_started_is_left_running() {
    let env = some();
    let pids = env.scratch().join("pids");
    let started = format!("echo $! >> {}", pids.display());
    let lines = [
        format!("sleep 1000 & {started}"),
        format!("nohup sleep 1000 >/dev/null 2>&1 & {started}"),
        format!("setsid sleep 1000 >/dev/null 2>&1 & {started}"),
        format!("(setsid sleep 1000 & {started}) & wait"),
        format!("sleep 1000 & {started}; exit 1"),
        format!("setsid sleep 1000 & {started}; sleep 1000"),
    ];
    for line in &lines {
        let id = checkpoint(&env, &[]);
        let operation = json!({ "type": "append", "content": "x\n" });
        let more = ["--verify", line, "--verify-timeout", "1s"];
        mutate(&env, &id, "a.txt", &operation, &more);
    }
    let id = checkpoint(&env, &[]);
    let command = format!("setsid sleep 1000 & {started}");
    let command = json!({ "type": "command", "argv": ["sh", "-c", command] });
    mutate(&env, &id, ".", &command, &[]).done();
    let pids = fs::read_to_string(pids).unwrap();
    assert_eq!(pids.lines().count(), lines.len() + 1, "{pids}");
    let running: Vec<&str> = pids.lines().filter(|pid| is_running(pid)).collect();
    assert!(running.is_empty(), "{running:?} of {pids}");
}

fn make_pipe(path: &Path) {
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

#[test]
fn st_27_an_interrupted_change_is_rolled_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let env = some();
        let pipe = env.scratch().join("pipe");
        make_pipe(&pipe);
        let id = checkpoint(&env, &[]);
        let still = Still::of(&env.project());
        // The check says when it is there, and does not end by itself.
        let line = format!("echo $$ > {}; sleep 1000", pipe.display());
        let command = format!("echo x > b.txt; {line}");
        let command = json!({ "type": "command", "argv": ["sh", "-c", &command] }).to_string();
        let edit = edit().to_string();
        let cases: [&[&str]; 2] = [
            &["a.txt", "--operation", &edit, "--verify", &line],
            &[".", "--operation", &command],
        ];
        for arguments in cases {
            let whole = [&["mutate", "--json", "--checkpoint", &id], arguments].concat();
            let mut command = env.command(&whole);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let child = child.spawn().unwrap();
            let inner = fs::read_to_string(&pipe).unwrap();
            kill_process(Pid::from_child(&child), signal).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(3), "{output:?}");
            let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(reply["success"], false, "{reply}");
            assert_eq!(reply["error"]["code"], "H301", "{reply}");
            let message = text(&reply["error"]["message"]);
            assert!(message.contains("interrupted"), "{message}");
            assert!(!is_running(&inner), "{inner}");
            still.assert_back();
            assert_eq!(spent_by(&env, &id), None);
            assert_sound(&env);
        }
    }
}

#[test]
fn st_15_an_interrupted_provider_makes_no_checkpoint() {
    let env = some();
    let pipe = env.scratch().join("pipe");
    make_pipe(&pipe);
    let line = format!("echo $$ > {}; sleep 1000", pipe.display());
    let settings = format!("state_providers:\n  slow: {{ capture: '{line}', restore: cat }}\n");
    env.write("project/safepoint.yaml", &settings);
    let mut command = env.command(&["checkpoint", "state:slow", "--json"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let inner = fs::read_to_string(&pipe).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "H301", "{reply}");
    assert_eq!(reply["checkpoint_created"], false, "{reply}");
    assert!(!is_running(&inner), "{inner}");
    assert_eq!(env.json(&["list"])["checkpoints"], json!([]));
    assert_sound(&env);
}

/// It runs behind the fence, whatever allows it: what needs the store says why it does not work.
#[test]
fn st_27_a_check_may_use_of_safepoint_what_needs_no_store() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let operation = edit().to_string();
    let safepoint = env!("CARGO_BIN_EXE_safepoint");
    let arguments = ["a.txt", "--checkpoint", &id, "--operation", &operation];
    let with = |line: &str| run(&env, &[&arguments[..], &["--verify", line]].concat());
    let reply = with(&format!("{safepoint} list --all-workspaces")).failed(1, "F513");
    assert!(reply.to_string().contains("store is hidden"), "{reply}");
    with(&format!("{safepoint} schema >/dev/null")).done();
}
