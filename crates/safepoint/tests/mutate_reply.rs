//! What a change answers, and what becomes of the file besides its content.

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
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::fs::{FlockOperation, XattrFlags, fcntl_lock, flock};
use serde_json::{Value, json};
use support::{Still, assert_sound, checkpoint, env, kinds, mutate, text};
use testkit::TestEnv;

/// An operation that fits the file that [`one`] makes.
fn fitting() -> Value {
    json!({ "type": "edit", "changes": [{ "line": 2, "old": "two", "new": "2" }] })
}

/// A workspace with a file in it.
fn one() -> TestEnv {
    let env = env();
    env.write("project/src/a.txt", "one\ntwo\nthree\n");
    env.write("project/other.txt", "other\n");
    env
}

#[test]
fn st_26_a_file_of_somebody_else_is_not_taken_from_them() {
    let env = one();
    env.write("project/theirs.txt", "theirs\n");
    for path in ["", "project", "project/src", "project/src/a.txt"] {
        let path = env.root().join(path);
        // Only a superuser can make this scene.
        let _ = std::os::unix::fs::chown(path, Some(65_534), Some(65_534));
    }
    let theirs = env.project().join("theirs.txt");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).unwrap();
    let Some(run) = support::bound(&env, &["checkpoint", "--json"]) else {
        return;
    };
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = text(&reply["checkpoint_id"]);
    let still = Still::of(&env.project());
    let append = r#"{"type":"append","content":"more\n"}"#;
    let away = r#"{"type":"move","to":"mine.txt"}"#;
    let arguments = ["mutate", "--json", "--checkpoint", &id, "--operation"];
    for operation in [append, away] {
        let whole = [&arguments[..], &[operation, "theirs.txt"]].concat();
        let run = support::bound(&env, &whole).unwrap();
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.contains("F511"), "{run:?}");
        assert!(run.stdout.contains("it belongs to user 0"), "{run:?}");
        still.assert_untouched();
    }
    let run = support::bound(&env, &[&arguments[..], &[append, "src/a.txt"]].concat());
    assert_eq!(run.unwrap().code, 0);
}

/// A project of somebody whom permissions bind, with things in it that are a superuser's.
fn mixed() -> TestEnv {
    let env = one();
    env.write("project/theirs.txt", "theirs\n");
    env.write("project/theirs/deep.txt", "deep\n");
    for path in ["", "project", "project/src", "project/src/a.txt"] {
        let path = env.root().join(path);
        // Only a superuser can make this scene.
        let _ = std::os::unix::fs::chown(path, Some(65_534), Some(65_534));
    }
    let theirs = env.project().join("other.txt");
    let _ = std::os::unix::fs::chown(theirs, Some(65_534), Some(0));
    env
}

#[test]
fn st_30_what_only_a_superuser_can_give_is_told_and_is_no_failure() {
    let env = mixed();
    let Some(run) = support::bound(&env, &["checkpoint", "--json"]) else {
        return;
    };
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = text(&reply["checkpoint_id"]);
    fs::remove_file(env.project().join("theirs.txt")).unwrap();
    fs::remove_file(env.project().join("other.txt")).unwrap();
    fs::remove_dir_all(env.project().join("theirs")).unwrap();
    fs::write(env.project().join("src/a.txt"), "changed\n").unwrap();
    let run = support::bound(&env, &["rollback", "--json", &id]).unwrap();
    assert_eq!(run.code, 0, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    let told = reply["warnings"].to_string();
    for name in ["other.txt", "theirs.txt", "theirs/deep.txt"] {
        assert!(told.contains(&format!("`{name}`")), "{told}");
        assert_eq!(env.project().join(name).metadata().unwrap().uid(), 65_534);
    }
    assert!(!told.contains("src/a.txt"), "{told}");
    assert!(told.contains("only a superuser"), "{told}");
}

#[test]
fn pr_07_files_of_somebody_else_are_copied_for_an_agent() {
    let env = mixed();
    let coordinator = ["workspace", "create", "--json", "--role", "coordinator"];
    let coordinator = [&coordinator[..], &["--directive", "lead"]].concat();
    let Some(run) = support::bound(&env, &coordinator) else {
        return;
    };
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let root = text(&reply["workspace_id"]);
    let make = ["workspace", "create", "--json", "--parent", &root];
    let make = [&make[..], &["--role", "worker", "--isolated"]].concat();
    let run = support::bound(&env, &make).unwrap();
    assert_eq!(run.code, 0, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let made = std::path::PathBuf::from(text(&reply["path"]));
    for name in ["other.txt", "theirs.txt", "theirs/deep.txt", "src/a.txt"] {
        let found = made.join(name).metadata().unwrap();
        assert_eq!((found.uid(), found.gid()), (65_534, 65_534), "{name}");
        let (ours, copy) = (env.project().join(name), made.join(name));
        assert_eq!(fs::read(ours).unwrap(), fs::read(copy).unwrap());
    }
}

#[test]
fn st_42_a_directory_that_may_not_be_written_is_named_and_not_the_store() {
    let env = one();
    let _ = std::os::unix::fs::chown(env.root(), Some(65_534), Some(65_534));
    let Some(run) = support::bound(&env, &["checkpoint", "--json"]) else {
        return;
    };
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let error = &reply["error"];
    assert_eq!(error["name"], "FILE_FAILED", "{reply}");
    let project = env.project().display().to_string();
    assert_eq!(error["location"], project.as_str(), "{reply}");
    assert!(
        text(&error["message"]).contains(&format!("`{project}`")),
        "{reply}"
    );
    assert!(!error.to_string().contains("--store"), "{reply}");
    assert!(
        text(&error["suggestion"]).contains("give yourself the right to write"),
        "{reply}"
    );
}

#[test]
fn st_42_what_the_system_refuses_is_told_with_its_cause() {
    let env = one();
    for path in ["", "project", "project/other.txt", "project/src/a.txt"] {
        let path = env.root().join(path);
        let _ = std::os::unix::fs::chown(path, Some(65_534), Some(65_534));
    }
    let Some(run) = support::bound(&env, &["checkpoint", "--json"]) else {
        return;
    };
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = text(&reply["checkpoint_id"]);
    let still = Still::of(&env.project());
    // The first would work: the directory of the second belongs to the superuser.
    let operations = json!([
        { "target": "other.txt", "type": "append", "content": "x" },
        { "target": "src/new.txt", "type": "write", "content": "x" },
    ])
    .to_string();
    let arguments = [
        "mutate",
        "--json",
        "--checkpoint",
        &id,
        "--operation",
        &operations,
    ];
    let run = support::bound(&env, &arguments).unwrap();
    assert_eq!(run.code, 1, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "F508", "{reply}");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("src/new.txt"), "{message}");
    assert!(
        message.contains("not permitted") || message.contains("denied"),
        "{message}"
    );
    still.assert_back();
    assert_eq!(support::bound(&env, &["list"]).unwrap().code, 0);
}

#[test]
fn st_24_the_reply_is_the_whole_contract() {
    let env = env();
    let lines: String = (1..=41).map(|line| format!("# {line}\n")).collect();
    let path = "project/src/services/user_service.rb";
    env.write(path, &format!("{lines}  user.email\nend\n"));
    let id = checkpoint(&env, &[]);
    let operation = json!({
        "type": "edit",
        "description": "Add null check for user parameter",
        "changes": [{ "line": 42, "old": "user.email", "new": "user&.email" }],
    });
    let target = "src/services/user_service.rb";
    let reply = mutate(&env, &id, target, &operation, &[]).done();
    assert_eq!(reply["target"], target);
    assert_eq!(reply["operation"], "Add null check for user parameter");
    let before = format!("{lines}  user.email\nend\n");
    let after = format!("{lines}  user&.email\nend\n");
    assert_eq!(reply["previous_state"]["snapshot"], before.as_str());
    assert_eq!(reply["new_state"]["snapshot"], after.as_str());
    assert_eq!(fs::read_to_string(env.root().join(path)).unwrap(), after);
    let (captured, verified) = (
        text(&reply["previous_state"]["captured_at"]),
        text(&reply["new_state"]["verified_at"]),
    );
    assert!(captured < verified, "{captured} {verified}");
    assert_eq!(reply["diff"]["type"], "unified");
    let content = text(&reply["diff"]["content"]);
    assert!(
        content.contains("-  user.email\n+  user&.email\n"),
        "{content}"
    );
    assert_eq!(reply["checkpoint_id"], id.as_str());
    assert_eq!(reply["before_checkpoint_id"], id.as_str());
    let anchors = reply["evidence_anchors"].to_string();
    assert!(anchors.contains(&format!("{target}:42")), "{anchors}");
    assert!(anchors.contains(&id), "{anchors}");
    let action = text(&reply["action_id"]);
    assert_eq!(
        kinds(&env, &action),
        ["mutation_started", "mutation_done"],
        "{reply}"
    );
    assert_eq!(reply["confidence"], 0.75);
    assert_eq!(reply["side_effects"], json!([]));
    // With a check of one's own everything was checked that can be.
    let id = checkpoint(&env, &[]);
    let back =
        json!({ "type": "edit", "changes": [{ "old": "user&.email", "new": "user.email" }] });
    let reply = mutate(&env, &id, target, &back, &["--verify", "true"]).done();
    assert_eq!(reply["confidence"], 1.0);
    let run = env.run(&["status"]);
    assert!(!run.stdout.is_empty() && run.code == 0);
    let audit = fs::read_to_string(env.project().join(".audit/checkpoint-operations.log")).unwrap();
    assert!(audit.contains("\"mutate\""), "{audit}");
}

#[test]
fn st_42_a_locked_file_is_left_alone_and_the_caller_may_try_again() {
    let env = env();
    env.write("project/config/database.yml", "pool: 5\n");
    env.write("project/config/other.yml", "pool: 6\n");
    let path = env.project().join("config/database.yml");
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let operation = json!({
        "type": "edit",
        "description": "Update connection pool size",
        "changes": [{ "old": "pool: 5", "new": "pool: 10" }],
    });
    let replacing = json!({ "type": "move", "to": "config/database.yml", "overwrite": true });
    type Lock = fn(&fs::File) -> rustix::io::Result<()>;
    // They wait: a process that another test is just starting may still have the file of the last
    // round open, and its lock with it.
    let locks: [Lock; 3] = [
        |file| flock(file, FlockOperation::LockExclusive),
        |file| flock(file, FlockOperation::LockShared),
        |file| fcntl_lock(file, FlockOperation::LockExclusive),
    ];
    for lock in locks {
        let file = fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        lock(&file).unwrap();
        let answer = mutate(&env, &id, "config/database.yml", &operation, &[]);
        let reply = answer.failed(1, "F512");
        assert_eq!(reply["operation"], "Update connection pool size (FAILED)");
        assert_eq!(reply["previous_state"]["snapshot"], "pool: 5\n");
        assert!(reply["previous_state"]["captured_at"].is_string());
        let message = text(&reply["error"]["message"]);
        assert!(message.contains("locked by another process"), "{message}");
        assert_eq!(reply["error"]["recoverable"], true);
        let suggestion = text(&reply["error"]["suggestion"]);
        assert!(suggestion.contains("try again"), "{suggestion}");
        // Nor is it replaced by another.
        let answer = mutate(&env, &id, "config/other.yml", &replacing, &[]);
        answer.failed(1, "F512");
        still.assert_untouched();
    }
    mutate(&env, &id, "config/database.yml", &operation, &[]).done();
    assert_eq!(fs::read_to_string(&path).unwrap(), "pool: 10\n");
}

#[test]
fn st_26_mode_owner_and_attributes_stay_and_the_file_is_another() {
    let env = one();
    let path = env.project().join("src/a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&path, Some(12_345), Some(23_456)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    }
    let kept = rustix::fs::setxattr(&path, "user.colour", b"blue\0", XattrFlags::empty()).is_ok();
    let before = fs::metadata(&path).unwrap();
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, "src/a.txt", &fitting(), &[]).done();
    let after = fs::metadata(&path).unwrap();
    assert_eq!(before.mode(), after.mode());
    assert_eq!((before.uid(), before.gid()), (after.uid(), after.gid()));
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.nlink(), 1);
    assert!(after.modified().unwrap() > before.modified().unwrap());
    if kept {
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.colour", &mut value).unwrap();
        assert_eq!(&value[..length], b"blue\0");
    }
    assert_sound(&env);
    let names: Vec<_> = fs::read_dir(env.project().join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["a.txt"]);
}

#[test]
fn st_26_other_names_of_a_file_keep_their_content_and_that_is_told() {
    let env = one();
    let top = env.project();
    fs::hard_link(top.join("src/a.txt"), top.join("inside")).unwrap();
    fs::hard_link(top.join("src/a.txt"), env.root().join("outside")).unwrap();
    let id = checkpoint(&env, &[]);
    let reply = mutate(&env, &id, "src/a.txt", &fitting(), &[]).done();
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("other names"), "{warnings}");
    for other in [top.join("inside"), env.root().join("outside")] {
        assert_eq!(fs::read_to_string(other).unwrap(), "one\ntwo\nthree\n");
    }
    // One that has its other name outside the workspace is no different.
    fs::hard_link(top.join("other.txt"), env.root().join("another")).unwrap();
    let id = checkpoint(&env, &[]);
    let append = json!({ "type": "append", "content": "more\n" });
    let reply = mutate(&env, &id, "other.txt", &append, &[]).done();
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("other names"), "{warnings}");
    assert_eq!(
        fs::read_to_string(env.root().join("another")).unwrap(),
        "other\n"
    );
}

#[test]
fn st_24_what_a_command_printed_and_a_long_diff_for_people() {
    let env = one();
    let line = "echo said; seq 100 > numbers";
    let operation = json!({ "type": "command", "argv": ["sh", "-c", line] }).to_string();
    let run = env.run(&[
        "mutate",
        ".",
        "--auto-checkpoint",
        "--operation",
        &operation,
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("\n  │ said\ndiff --git"), "{run:?}");
    assert!(
        run.stdout.contains("\n+55\n  … and 45 lines more\n"),
        "{run:?}"
    );
}

#[test]
fn st_24_a_change_for_people() {
    let env = one();
    let id = checkpoint(&env, &[]);
    let operation = fitting().to_string();
    let arguments = ["src/a.txt", "--checkpoint", &id, "--operation", &operation];
    let shown = env.snapshot(&[&["mutate"], &arguments[..]].concat());
    let shown = shown.replace(env!("CARGO_BIN_EXE_safepoint"), "safepoint");
    insta::assert_snapshot!(shown, @"
    exit 0
    ----- stdout
    done  edit src/a.txt
      act_[id], 1 change
    diff --git a/src/a.txt b/src/a.txt
    --- a/src/a.txt
    +++ b/src/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
      ✓ checkpoint whole  sha256:[hash]
      ✓ target as meant  the same
      ✓ nothing else changed  none
      undo with  safepoint -C [root]/project rollback chk_[id] -- ./src/a.txt
    ");
    let shown = env.snapshot(&[&["mutate"], &arguments[..]].concat());
    insta::assert_snapshot!(shown, @"
    exit 2
    ----- stderr
    error: checkpoint `chk_[id]` allows no change here: it is used up by act_[id]
    hint: nothing was changed; `safepoint checkpoint` makes one, or add `--auto-checkpoint`
    ");
}

#[test]
fn st_24_an_edit_that_does_not_say_what_fails_with_what_is_there() {
    let env = env();
    env.write("project/config/database.yml", "pool: 5\n");
    let id = checkpoint(&env, &[]);
    let edit = json!({ "type": "edit", "description": "Update connection pool size" });
    let reply = mutate(&env, &id, "config/database.yml", &edit, &[]).failed(1, "F511");
    assert_eq!(reply["operation"], "Update connection pool size (FAILED)");
    assert_eq!(reply["previous_state"]["snapshot"], "pool: 5\n");
    assert!(reply["previous_state"]["captured_at"].is_string());
    let anchors = reply["evidence_anchors"].to_string();
    assert!(anchors.contains("error:"), "{anchors}");
    // What is wrong in itself keeps its description too.
    let wrong = json!({ "type": "edit", "description": "Update it", "changes": [] });
    let reply = mutate(&env, &id, "config/database.yml", &wrong, &[]).reply;
    assert_eq!(reply["operation"], "Update it (FAILED)");
    // While somebody else has it locked, that is what is said.
    let file = fs::File::open(env.project().join("config/database.yml")).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let reply = mutate(&env, &id, "config/database.yml", &edit, &[]).failed(1, "F512");
    assert_eq!(reply["evidence_anchors"][0], "error:file_locked");
    assert_eq!(reply["previous_state"]["snapshot"], "pool: 5\n");
}

#[test]
fn st_24_programs_are_evidence() {
    let env = env();
    env.write("project/a.txt", "a\n");
    let id = checkpoint(&env, &[]);
    let command = json!({ "type": "command", "argv": ["touch", "b.txt"] });
    let reply = mutate(&env, &id, ".", &command, &["--verify", "test -e b.txt"]).done();
    let anchors = reply["evidence_anchors"].to_string();
    assert!(anchors.contains("\"command:touch b.txt\""), "{anchors}");
    assert!(anchors.contains("\"command:test -e b.txt\""), "{anchors}");
    // Everything that was tried is in the log of operations, with what came of it.
    let fails = json!({ "type": "command", "argv": ["false"] });
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, ".", &fails, &[]).failed(1, "F514");
    mutate(&env, "chk_none", ".", &fails, &[]).failed(2, "F501");
    let log = env.project().join(".audit/checkpoint-operations.log");
    let log = fs::read_to_string(log).unwrap();
    let outcomes: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["outcome"].clone())
        .collect();
    let all = json!(["ok", "ok", "ok", "failed, taken back", "refused"]);
    assert_eq!(Value::from(outcomes), all, "{log}");
}
