//! What a change needs: a checkpoint that is there, whole, in time, unused and of
//! this workspace; and that one change uses it up.

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
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{
    Still, actions, assert_sound, batch, checkpoint, damage, env, listed, mutate, run, spent_by,
    text,
};
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

/// Lets a checkpoint expire without waiting for it.
fn expire(env: &TestEnv, id: &str) {
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let set = "UPDATE state_snapshots SET expiry = 1 WHERE id = ?1";
    assert_eq!(store.execute(set, [id]).unwrap(), 1);
}

#[test]
fn st_20_without_a_checkpoint_nothing_is_changed() {
    let env = one();
    checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let operation = fitting().to_string();
    let answer = run(&env, &["src/a.txt", "--operation", &operation]);
    let reply = answer.failed(2, "F501");
    assert_eq!(reply["error"]["name"], "CHECKPOINT_REQUIRED");
    assert_eq!(
        reply["error"]["message"],
        "a change needs a checkpoint: none was given"
    );
    assert_eq!(reply["checkpoint_id"], "");
    for id in ["", "chk_20990101_000000_aaaaaa", "nonsense"] {
        let answer = mutate(&env, id, "src/a.txt", &fitting(), &[]);
        answer.failed(2, "F501");
    }
    still.assert_untouched();
    assert!(actions(&env).is_empty());
    assert_sound(&env);
}

#[test]
fn st_20_an_expired_one_allows_nothing_and_is_still_restorable() {
    let env = one();
    let reply = env.json(&["checkpoint", "--expiry", "1h"]);
    let id = text(&reply["checkpoint_id"]);
    expire(&env, &id);
    let still = Still::of(&env.project());
    let reply = mutate(&env, &id, "src/a.txt", &fitting(), &[]).failed(2, "F501");
    assert!(
        text(&reply["error"]["message"]).contains("expired"),
        "{reply}"
    );
    still.assert_untouched();
    env.write("project/src/a.txt", "else\n");
    env.json(&["rollback", &id, "--expired"]);
    still.assert_back();
}

#[test]
fn st_20_a_damaged_one_allows_nothing() {
    let env = one();
    let id = checkpoint(&env, &[]);
    damage(&env);
    let still = Still::of(&env.project());
    let reply = mutate(&env, &id, "src/a.txt", &fitting(), &[]).failed(2, "F501");
    assert!(
        text(&reply["error"]["message"]).contains("damaged"),
        "{reply}"
    );
    still.assert_untouched();
    assert_eq!(spent_by(&env, &id), None);
}

/// Of a large checkpoint not everything is read each time; what is to be replaced is.
#[test]
fn st_20_a_large_one_whose_target_is_damaged_allows_nothing() {
    let env = one();
    let noise = |seed: u8, length: usize| {
        let mut bytes = vec![0; length];
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[seed]).finalize_xof().fill(&mut bytes);
        bytes
    };
    fs::create_dir(env.project().join("data")).unwrap();
    fs::write(env.project().join("large"), noise(1, 33 << 20)).unwrap();
    fs::write(env.project().join("data/target"), noise(2, 3 << 20)).unwrap();
    let id = checkpoint(&env, &[]);
    let wanted = noise(2, 3 << 20)[1 << 20..(1 << 20) + 64].to_vec();
    let damage = || {
        let mut damaged = 0;
        for entry in fs::read_dir(env.objects().join("packs")).unwrap() {
            let pack = entry.unwrap().path();
            let mut bytes = fs::read(&pack).unwrap();
            if let Some(at) = bytes.windows(64).position(|window| window == wanted) {
                bytes[at] ^= 1;
                fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
                fs::write(&pack, bytes).unwrap();
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1);
    };
    let still = Still::of(&env.project());
    for (target, operation) in [
        ("data/target", json!({ "type": "write", "content": "x" })),
        ("data/target", json!({ "type": "append", "content": "x" })),
        ("data/target", json!({ "type": "delete" })),
        ("data/target", json!({ "type": "move", "to": "moved" })),
        ("data", json!({ "type": "delete", "recursive": true })),
        (
            "src/a.txt",
            json!({ "type": "move", "to": "data/target", "overwrite": true }),
        ),
    ] {
        checkpoint(&env, &[]); // it stores anew what is missing
        damage();
        let reply = mutate(&env, &id, target, &operation, &[]).failed(2, "F501");
        let message = text(&reply["error"]["message"]);
        assert!(message.contains("damaged"), "{message}");
        still.assert_untouched();
    }
    // What is whole can be changed, and a checkpoint after a refusal is whole again.
    checkpoint(&env, &[]);
    damage();
    mutate(&env, &id, "src/a.txt", &fitting(), &[]).done();
    let write = json!({ "type": "write", "content": "x" });
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, "data/target", &write, &[]).failed(2, "F501");
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, "data/target", &write, &[]).done();
}

#[test]
fn st_20_one_that_was_used_or_is_of_another_workspace_allows_nothing() {
    let env = one();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &fitting(), &[]).done();
    let still = Still::of(&env.project());
    let again = json!({ "type": "write", "content": "again" });
    let reply = mutate(&env, &id, "other.txt", &again, &[]).failed(2, "F501");
    let action = text(&done["action_id"]);
    assert!(
        text(&reply["error"]["message"]).contains(&action),
        "{reply}"
    );
    still.assert_untouched();

    env.write("elsewhere/a.txt", "theirs\n");
    let elsewhere = env.root().join("elsewhere");
    let theirs = env.json(&["-C", elsewhere.to_str().unwrap(), "checkpoint"]);
    let theirs = text(&theirs["checkpoint_id"]);
    mutate(&env, &theirs, "src/a.txt", &again, &[]).failed(2, "F501");
    let path = elsewhere.join("a.txt");
    mutate(&env, &theirs, path.to_str().unwrap(), &again, &[]).failed(2, "F501");
    still.assert_untouched();
    assert_eq!(fs::read_to_string(path).unwrap(), "theirs\n");
    assert_sound(&env);
}

#[test]
fn st_21_one_success_spends_it_and_it_stays_restorable() {
    let env = one();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    assert_eq!(spent_by(&env, &id), None);
    // The beginning of an id is enough.
    let beginning = &id[..id.len() - 2];
    let done = mutate(&env, beginning, "src/a.txt", &fitting(), &[]).done();
    assert_eq!(done["checkpoint_id"], id.as_str());
    assert_eq!(spent_by(&env, &id).as_deref(), done["action_id"].as_str());
    let shown = env.run(&["list"]).stdout;
    assert!(shown.contains("used up"), "{shown}");
    let shown = env.run(&["show", &id]).stdout;
    assert!(shown.contains("used up by"), "{shown}");
    env.json(&["verify", &id]);
    let back = env.json(&["rollback", &id]);
    assert_eq!(back["verification"]["match"], true);
    still.assert_back();
    // Going back does not make it good for another change.
    mutate(&env, &id, "src/a.txt", &fitting(), &[]).failed(2, "F501");
}

#[test]
fn st_21_a_failure_does_not_spend_it() {
    let env = one();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let unfitting = json!({ "type": "edit", "changes": [{ "old": "zwei", "new": "2" }] });
    mutate(&env, &id, "src/a.txt", &unfitting, &[]).failed(1, "F511");
    still.assert_untouched();
    mutate(&env, &id, "src/a.txt", &fitting(), &["--verify", "false"]).failed(1, "F513");
    still.assert_back();
    let outside = json!({ "type": "write", "content": "x" });
    mutate(&env, &id, "../x", &outside, &[]).failed(2, "F501");
    assert_eq!(spent_by(&env, &id), None);
    mutate(&env, &id, "src/a.txt", &fitting(), &[]).done();
    assert!(spent_by(&env, &id).is_some());
    assert_sound(&env);
}

#[test]
fn st_21_taking_back_a_failure_makes_no_checkpoint_and_is_nothing_to_undo() {
    let env = one();
    let id = checkpoint(&env, &[]);
    env.write("project/other.txt", "by hand\n");
    let still = Still::of(&env.project());
    mutate(&env, &id, "src/a.txt", &fitting(), &["--verify", "false"]).failed(1, "F513");
    still.assert_back();
    let asked = env.json(&["list"]);
    assert_eq!(asked["checkpoints"].as_array().unwrap().len(), 1, "{asked}");
    let undone = env.undo_seen();
    assert_eq!(undone["changes_reverted"][0]["path"], "other.txt");
    assert_eq!(
        fs::read_to_string(env.project().join("other.txt")).unwrap(),
        "other\n"
    );
}

#[test]
fn st_21_a_batch_is_done_as_a_whole_or_not_at_all() {
    let env = one();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let bad = json!([
        { "target": "new/b.txt", "type": "write", "content": "b\n" },
        { "target": "other.txt", "type": "delete" },
        { "target": "src/a.txt", "type": "edit", "changes": [{ "old": "zwei", "new": "2" }] },
    ]);
    let reply = batch(&env, &id, &bad, &[]).failed(1, "F511");
    assert_eq!(reply["target"], "new/b.txt, other.txt, src/a.txt");
    still.assert_untouched();
    assert_eq!(spent_by(&env, &id), None);
    let good = json!([
        { "target": "new/b.txt", "type": "write", "content": "b\n" },
        { "target": "new/b.txt", "type": "append", "content": "c\n" },
        { "target": "other.txt", "type": "delete" },
        { "target": "src/a.txt", "type": "edit", "changes": [{ "old": "two", "new": "2" }] },
    ]);
    let done = batch(&env, &id, &good, &[]).done();
    let top = env.project();
    assert_eq!(fs::read_to_string(top.join("new/b.txt")).unwrap(), "b\nc\n");
    assert_eq!(
        fs::read_to_string(top.join("src/a.txt")).unwrap(),
        "one\n2\nthree\n"
    );
    assert!(!top.join("other.txt").exists());
    assert_eq!(done["new_state"]["snapshot"]["new/b.txt"], "b\nc\n");
    assert_eq!(done["previous_state"]["snapshot"]["other.txt"], "other\n");
    assert_eq!(done["new_state"]["snapshot"]["other.txt"], Value::Null);
    assert_eq!(actions(&env).len(), 1);
    assert_eq!(actions(&env)[0]["action"], "batch");
    assert_sound(&env);
}

#[test]
fn st_41_of_many_processes_with_one_checkpoint_exactly_one_succeeds() {
    const MANY: usize = 64;
    let mut env = one();
    env.set("SAFEPOINT_LOCK_TIMEOUT", "30m");
    let id = checkpoint(&env, &[]);
    let running: Vec<_> = (0..MANY)
        .map(|number| {
            let operation = json!({ "type": "write", "content": format!("{number}\n") });
            let arguments = ["mutate", "src/a.txt", "--checkpoint", &id, "--json"];
            let operation = operation.to_string();
            let mut command = env.command(&[&arguments[..], &["--operation", &operation]].concat());
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let mut winners = Vec::new();
    for (number, child) in running.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        match output.status.code() {
            Some(0) => winners.push((number, text(&reply["action_id"]))),
            code => {
                assert_eq!(code, Some(2), "{reply}");
                assert_eq!(reply["error"]["code"], "F501", "{reply}");
            }
        }
    }
    assert_eq!(winners.len(), 1);
    let (number, action) = winners.remove(0);
    let content = fs::read_to_string(env.project().join("src/a.txt")).unwrap();
    assert_eq!(content, format!("{number}\n"));
    assert_eq!(spent_by(&env, &id), Some(action));
    assert_eq!(actions(&env).len(), 1);
    assert_sound(&env);
}

#[test]
fn st_41_changes_of_many_processes_come_one_after_the_other_and_whole() {
    const MANY: usize = 12;
    let mut env = env();
    env.set("SAFEPOINT_LOCK_TIMEOUT", "30m");
    let block = |number: usize| format!("{number:02} {}\n", "x".repeat(60_000));
    env.write("project/log", "");
    let ids: Vec<String> = (0..MANY).map(|_| checkpoint(&env, &[])).collect();
    let running: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(number, id)| {
            let operation = json!({ "type": "append", "content": block(number) });
            let operation = operation.to_string();
            let arguments = ["mutate", "log", "--checkpoint", id, "--operation"];
            let mut command = env.command(&[&arguments[..], &[&operation]].concat());
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    // Whoever reads meanwhile sees whole blocks, and never fewer than before.
    let path = env.project().join("log");
    let mut seen = 0;
    while seen < MANY {
        let content = fs::read_to_string(&path).unwrap();
        assert_eq!(content.len() % block(0).len(), 0);
        let blocks = content.lines().count();
        assert!(blocks >= seen, "{blocks} after {seen}");
        seen = blocks;
        std::thread::yield_now();
    }
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let content = fs::read_to_string(&path).unwrap();
    let mut blocks: Vec<&str> = content.lines().map(|line| &line[..2]).collect();
    blocks.sort_unstable();
    let all: Vec<String> = (0..MANY).map(|number| format!("{number:02}")).collect();
    assert_eq!(blocks, all);
    assert_sound(&env);
}

#[test]
fn st_20_an_automatic_checkpoint_is_made_when_asked_for() {
    let env = one();
    let still = Still::of(&env.project());
    let operation = fitting().to_string();
    let arguments = ["src/a.txt", "--auto-checkpoint", "--operation", &operation];
    let done = run(&env, &arguments).done();
    let id = text(&done["checkpoint_id"]);
    assert_eq!(listed(&env, &id)["automatic"], true);
    assert_eq!(spent_by(&env, &id).as_deref(), done["action_id"].as_str());
    assert_eq!(env.json(&["list"])["checkpoints"], json!([]));
    env.json(&["undo", &text(&done["action_id"])]);
    still.assert_back();
    let both = ["--auto-checkpoint", "--checkpoint", &id];
    let run = env.run(&[&["mutate", "src/a.txt", "--operation", "{}"], &both[..]].concat());
    assert_eq!(run.code, 7, "{run:?}");
}

#[test]
fn st_35_what_an_undo_did_is_nobody_elses_change() {
    for scope in [&["f.txt"][..], &["f.txt", "g.txt"]] {
        let env = env();
        env.write("project/f.txt", "before\n");
        env.write("project/g.txt", "other\n");
        let id = checkpoint(&env, scope);
        let write = json!({ "type": "write", "content": "after\n" });
        mutate(&env, &id, "f.txt", &write, &[]).done();
        env.json(&["undo"]);
        let told = actions(&env).len();
        checkpoint(&env, scope);
        assert_eq!(actions(&env).len(), told, "{scope:?}: {:?}", actions(&env));
        // What somebody does is told all the same.
        env.write("project/f.txt", "by hand\n");
        checkpoint(&env, scope);
        assert_eq!(actions(&env)[0]["action"], "workspace.change", "{scope:?}");
    }
}
