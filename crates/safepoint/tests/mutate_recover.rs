//! After a change that failed or was cut off: only what it wrote is taken back, never what a
//! person did since, and nobody who only reads writes the tree.

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
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use support::{Answer, assert_sound, checkpoint, env, mutate, spent_by, text};
use testkit::TestEnv;
use testkit::tree::look;

/// Every command that only looks.
const READING: [&[&str]; 9] = [
    &["list"],
    &["log"],
    &["status"],
    &["diff"],
    &["show"],
    &["audit"],
    &["du"],
    &["trail", "list"],
    &["hold", "list"],
];

/// Large enough that something is appended while it is read.
const BUSY_BYTES: usize = 4 << 20;

/// Changes `f.txt` while somebody appends to `busy` without a pause, from when the check runs.
fn mutate_beside(env: &TestEnv, id: &str, busy: &str) -> Answer {
    let started = env.scratch().join("started");
    let busy = env.project().join(busy);
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !started.exists() && !done.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            fs::write(&busy, "busy\n".repeat(BUSY_BYTES / 5)).unwrap();
            let mut file = fs::File::options().append(true).open(&busy).unwrap();
            while !done.load(Ordering::Relaxed) {
                file.write_all(b"busy\n").unwrap();
            }
        });
        let edit = json!({ "type": "write", "content": "by the change\n" });
        let line = format!("touch '{}'; sleep 0.2", started.display());
        let answer = mutate(env, id, "f.txt", &edit, &["--verify", &line]);
        done.store(true, Ordering::Relaxed);
        answer
    })
}

/// A change that failed since `busy` never held still. On a busy machine the writer may not get
/// its turn while the file is read: then it did hold still, and that is another story.
fn failed_beside(busy: &str) -> (TestEnv, String, Answer) {
    for _ in 0..40 {
        let (env, id) = some();
        let answer = mutate_beside(&env, &id, busy);
        if answer.reply["error"]["code"] == "F507" {
            return (env, id, answer);
        }
    }
    panic!("`{busy}` held still every time");
}

fn some() -> (TestEnv, String) {
    let env = env();
    env.write("project/f.txt", "before\n");
    env.write("project/g.txt", "before\n");
    let id = checkpoint(&env, &[]);
    (env, id)
}

fn read(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.project().join(name)).unwrap()
}

#[track_caller]
fn nothing_is_written_by_reading(env: &TestEnv) {
    let before = look(&env.project());
    for arguments in READING {
        env.run(arguments);
        assert_eq!(look(&env.project()), before, "{arguments:?}");
    }
}

#[test]
fn st_27_a_failed_change_takes_back_only_what_it_wrote() {
    let (env, id, answer) = failed_beside("busy.txt");
    let reply = answer.failed(1, "F507");
    assert_eq!(read(&env, "f.txt"), "before\n", "{reply}");
    assert_eq!(reply["changes"], json!([]));
    let busy = read(&env, "busy.txt");
    env.write("project/f.txt", "by hand\n");
    env.write("project/mine.txt", "mine\n");
    nothing_is_written_by_reading(&env);
    env.json(&["checkpoint"]);
    assert_eq!(read(&env, "f.txt"), "by hand\n");
    assert_eq!(read(&env, "mine.txt"), "mine\n");
    assert_eq!(read(&env, "busy.txt"), busy);
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
}

#[test]
fn st_27_a_failed_change_says_what_is_still_there() {
    let (env, _, answer) = failed_beside("f.txt");
    let reply = &answer.reply;
    assert_eq!(answer.code, 1, "{reply}");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("is still there in `f.txt`"), "{message}");
    let changes = json!([{ "path": "f.txt", "change": "modified" }]);
    assert_eq!(reply["changes"], changes);
    let command = text(&reply["rollback_command"]);
    assert!(command.ends_with("-- ./f.txt"), "{command}");
    let theirs = read(&env, "f.txt");
    assert_ne!(theirs, "before\n");
    nothing_is_written_by_reading(&env);
    env.run(&["checkpoint"]);
    assert_eq!(read(&env, "f.txt"), theirs);
    assert_sound(&env);
    // It does what it says.
    support::paste(&env, &command);
    assert_eq!(read(&env, "f.txt"), "before\n");
}

#[test]
fn st_32_after_a_kill_what_a_person_did_since_is_left_alone() {
    let (env, id) = some();
    let operations = json!([
        { "target": "f.txt", "type": "write", "content": "by the change\n" },
        { "target": "g.txt", "type": "write", "content": "by the change\n" },
        { "target": "new/h.txt", "type": "write", "content": "by the change\n" },
    ]);
    let operations = operations.to_string();
    let arguments = ["mutate", "--checkpoint", &id, "--operation", &operations];
    let mut command = env.command(&arguments);
    let output = command.env("SAFEPOINT_FAULT", "mutate.acted").output();
    assert_eq!(output.unwrap().status.signal(), Some(9));
    assert_eq!(read(&env, "f.txt"), "by the change\n");
    env.write("project/f.txt", "by hand\n");
    env.write("project/new/mine.txt", "mine\n");
    nothing_is_written_by_reading(&env);
    let listed = env.run(&["list"]);
    assert!(listed.stderr.contains("was cut off"), "{listed:?}");
    assert!(
        listed.stderr.contains("`safepoint checkpoint`"),
        "{listed:?}"
    );
    let run = env.run(&["checkpoint"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("`f.txt`"), "{run:?}");
    let mine: PathBuf = env.project().join("new/mine.txt");
    assert_eq!(read(&env, "f.txt"), "by hand\n");
    assert_eq!(fs::read_to_string(mine).unwrap(), "mine\n");
    assert_eq!(read(&env, "g.txt"), "before\n");
    assert!(!env.project().join("new/h.txt").exists());
    let quiet = env.run(&["list"]);
    assert!(!quiet.stderr.contains("cut off"), "{quiet:?}");
    assert_sound(&env);
}
