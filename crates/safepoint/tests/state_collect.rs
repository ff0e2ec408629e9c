//! What `gc` keeps, and what it leaves behind.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::TestEnv;
use testkit::tree::git;

/// It is past before the command that names it has ended.
const SOON: &str = "1us";

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv, more: &[&str]) -> String {
    let reply = env.json(&[&["checkpoint"], more].concat());
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

/// Waits until there is such a file.
#[track_caller]
fn wait_for(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "{} never comes", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn st_07_gc_keeps_the_state_before_an_action_that_runs() {
    let env = env();
    env.write("project/g", "only here\n");
    let id = checkpoint(&env, &["--expiry", "never"]);
    let line = "touch begun; until [ -e go ]; do sleep 0.01; done; rm g";
    let child = env
        .command(&["exec", "--no-tui", "--json", "--", "sh", "-c", line])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&env.project().join("begun"));
    for more in [&[][..], &["--force"], &["--dry-run"]] {
        let run = env.run(&[&["gc", "--checkpoint", &id], more].concat());
        assert_eq!(run.code, 9, "{run:?}");
        assert!(run.stderr.contains("is running"), "{run:?}");
    }
    assert_eq!(env.json(&["gc"])["deleted"], json!([]));
    env.write("project/go", "");
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    let reply: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(reply["checkpoint_id"], json!(id), "{reply}");
    env.json(&["undo", reply["action_id"].as_str().unwrap()]);
    assert_eq!(fs::read(env.project().join("g")).unwrap(), b"only here\n");
}

#[test]
fn st_07_gc_keeps_both_states_of_a_change_by_hand() {
    let env = env();
    env.write("project/a", "old\n");
    let before = checkpoint(&env, &["--expiry", SOON]);
    env.write("project/a", "new\n");
    let after = checkpoint(&env, &["--expiry", SOON]);
    let reply = env.json(&["gc"]);
    assert_eq!(reply["deleted"], json!([]), "{reply}");
    let kept = reply["kept_for_undo"].to_string();
    assert!(kept.contains(&before) && kept.contains(&after), "{reply}");
    let log = env.json(&["log"]);
    env.json(&["undo", log["actions"][0]["action_id"].as_str().unwrap()]);
    assert_eq!(fs::read(env.project().join("a")).unwrap(), b"old\n");
}

#[test]
fn st_07_a_checkpoint_of_another_workspace_is_deleted_only_there() {
    let env = env();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("f"), "x\n").unwrap();
    let there = ["-C", other.to_str().unwrap()];
    let reply = env.json(&[&there[..], &["checkpoint"]].concat());
    let id = reply["checkpoint_id"].as_str().unwrap();
    for more in [None, Some("--force")] {
        let mut arguments = vec!["gc", "--checkpoint", id];
        arguments.extend(more);
        let run = env.run(&arguments);
        assert_eq!(run.code, 9, "{run:?}");
        assert!(run.stderr.contains("-C"), "{run:?}");
    }
    env.json(&["verify", id]);
    // Its directory need not be there any more.
    fs::remove_dir_all(&other).unwrap();
    let reply = env.json(&[&there[..], &["gc", "--checkpoint", id]].concat());
    assert_eq!(reply["deleted"], json!([id]));
}

#[test]
fn st_07_a_collected_checkpoint_of_a_removed_work_tree_leaves_nothing_in_git() {
    let env = env();
    let top = env.project();
    git(&top, &["init", "-q"]);
    env.write("project/a", "a\n");
    git(&top, &["add", "--all"]);
    git(&top, &["commit", "-q", "-m", "first"]);
    let linked = env.root().join("linked");
    let place = linked.to_str().unwrap();
    git(&top, &["worktree", "add", "-q", place]);
    fs::write(linked.join("a"), "changed\n").unwrap();
    let made = env.json(&["-C", place, "checkpoint", "--expiry", SOON]);
    let name = made["git_reference"].as_str().unwrap();
    assert_ne!(git(&top, &["for-each-ref", name]), "");
    git(&top, &["worktree", "remove", "--force", place]);
    let reply = env.json(&["gc"]);
    assert_eq!(reply["deleted"], json!([made["checkpoint_id"]]), "{reply}");
    assert_eq!(reply["warnings"], json!([]));
    assert_eq!(git(&top, &["for-each-ref", name]), "");
}

#[test]
fn st_07_what_a_collection_cannot_reach_is_removed_by_a_later_one() {
    let env = env();
    let top = env.project();
    git(&top, &["init", "-q"]);
    env.write("project/a", "a\n");
    git(&top, &["add", "--all"]);
    git(&top, &["commit", "-q", "-m", "first"]);
    let made = env.json(&["checkpoint", "--expiry", SOON]);
    let name = made["git_reference"].as_str().unwrap();
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let away = env.root().join("away");
    fs::rename(&top, &away).unwrap();
    let gc = || {
        let mut command = env.command(&["gc", "--json"]);
        let output = command.current_dir(&elsewhere).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    assert_eq!(gc()["deleted"], json!([made["checkpoint_id"]]));
    fs::rename(&away, &top).unwrap();
    assert_ne!(git(&top, &["for-each-ref", name]), "");
    assert_eq!(gc()["deleted"], json!([]));
    assert_eq!(git(&top, &["for-each-ref", name]), "");
    // Once is enough: nothing waits any more.
    assert_eq!(gc()["warnings"], json!([]));
}
