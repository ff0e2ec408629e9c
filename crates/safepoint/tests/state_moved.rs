//! Projects that were moved, and other ones in their old places: whose history is shown, and
//! what is never overwritten.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests do what the product may not"
)]

use std::fs;
use std::path::Path;

use serde_json::json;
use testkit::TestEnv;
use testkit::tree::git;

#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use client::{Claude, passes};
use support::{exec, is_denied, show, waiting};

fn project() -> (TestEnv, String, String) {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    git(&env.project(), &["init", "-q"]);
    env.write("project/a.txt", "one\n");
    let id = env.json(&["checkpoint", "--reason", "first"])["checkpoint_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let action = edit(&env, &env.project());
    (env, id, action)
}

/// Changes the file in a directory, and says which action that was.
fn edit(env: &TestEnv, place: &Path) -> String {
    let line = ["--json", "exec", "--", "sed", "-i", "s/one/two/", "a.txt"];
    let run = env.run(&at(place, &line));
    assert_eq!(run.code, 0, "{run:?}");
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    reply["action_id"].as_str().unwrap().to_owned()
}

/// The arguments, in a directory beside the project.
fn at<'a>(place: &'a Path, rest: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["-C", place.to_str().unwrap()];
    all.extend(rest);
    all
}

fn ids(env: &TestEnv, place: &Path) -> Vec<String> {
    let listed = env.json(&at(place, &["list"]));
    let listed = listed["checkpoints"].as_array().unwrap();
    let id = |one: &serde_json::Value| one["id"].as_str().unwrap().to_owned();
    listed.iter().map(id).collect()
}

fn actions(env: &TestEnv, place: &Path) -> Vec<String> {
    let log = env.json(&at(place, &["log"]));
    let log = log["actions"].as_array().unwrap();
    let id = |one: &serde_json::Value| one["action_id"].as_str().unwrap().to_owned();
    log.iter().map(id).collect()
}

fn read(place: &Path) -> String {
    fs::read_to_string(place.join("a.txt")).unwrap()
}

#[test]
fn st_09_a_project_that_was_moved_keeps_its_log_and_its_undo() {
    let (env, id, action) = project();
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap(); // where the commands start

    // Until somebody says so it is shown, and nothing is done in the old place.
    let listed = env.run(&at(&new, &["list"]));
    assert!(listed.stdout.contains(&id), "{listed:?}");
    let command = format!("safepoint init --moved-from {}", old.display());
    assert!(listed.stderr.contains(&command), "{listed:?}");
    assert_eq!(actions(&env, &new), [action.as_str()]);
    let refused = env.run(&at(&new, &["undo", &action]));
    assert_eq!(refused.code, 9, "{refused:?}");
    assert!(refused.stderr.contains(&command), "{refused:?}");
    assert_eq!(fs::read_dir(&old).unwrap().count(), 0);

    let old_place = old.to_str().unwrap();
    env.json(&at(&new, &["init", "--moved-from", old_place]));
    assert_eq!(ids(&env, &new), [id.as_str()]);
    let undone = env.json(&at(&new, &["undo"]));
    assert_eq!(undone["taken_back"]["action_id"], action.as_str());
    assert_eq!(read(&new), "one\n");
    env.json(&at(&new, &["redo"]));
    assert_eq!(read(&new), "two\n");
    let rolled_back = env.json(&at(&new, &["rollback", &id]));
    assert_eq!(rolled_back["verification"]["match"], true);
    assert_eq!(read(&new), "one\n");
    assert_eq!(actions(&env, &new).len(), 4);
    env.json(&["trail", "verify"]);

    // And back again.
    fs::remove_dir_all(&old).unwrap();
    fs::rename(&new, &old).unwrap();
    fs::create_dir(&new).unwrap();
    env.json(&["init", "--moved-from", new.to_str().unwrap()]);
    assert_eq!(ids(&env, &old), [id.as_str()]);
    assert_eq!(actions(&env, &old).len(), 4);
}

#[test]
fn st_09_a_project_that_is_moved_again_and_again_keeps_its_history() {
    let (env, id, action) = project();
    let mut last = env.project();
    for name in ["once", "twice", "thrice"] {
        let next = env.root().join(name);
        fs::rename(&last, &next).unwrap();
        fs::create_dir_all(env.project()).unwrap(); // where the commands start
        let listed = env.run(&at(&next, &["list"]));
        assert!(listed.stdout.contains(&id), "{listed:?}");
        env.json(&at(
            &next,
            &["init", "--moved-from", last.to_str().unwrap()],
        ));
        assert_eq!(ids(&env, &next), [id.as_str()]);
        last = next;
    }
    assert_eq!(actions(&env, &last), [action.as_str()]);
    env.json(&at(&last, &["undo"]));
    assert_eq!(read(&last), "one\n");
}

#[test]
fn st_09_a_new_project_in_an_old_place_has_a_history_of_its_own() {
    let (env, id, action) = project();
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    git(&old, &["init", "-q"]);
    env.write("project/a.txt", "another\n");

    assert!(ids(&env, &old).is_empty());
    for arguments in [&["rollback", &id] as &[&str], &["undo", &action]] {
        let refused = env.run(arguments);
        assert_eq!(refused.code, 9, "{refused:?}");
        assert!(refused.stderr.contains("another directory"), "{refused:?}");
    }
    assert_eq!(env.run(&["undo"]).code, 8);
    let own = env.json(&["checkpoint"]);
    let own = own["checkpoint_id"].as_str().unwrap();
    assert_eq!(ids(&env, &old), [own]);
    assert_eq!(env.run(&["rollback", &id]).code, 9);
    assert_eq!(read(&old), "another\n");

    // The other one has what was its own, and nothing else.
    env.json(&at(&new, &["init", "--moved-from", old.to_str().unwrap()]));
    assert_eq!(ids(&env, &new), [id.as_str()]);
    assert_eq!(ids(&env, &old), [own]);
    assert_eq!(actions(&env, &new), [action.as_str()]);
    env.json(&at(&new, &["undo"]));
    assert_eq!(read(&new), "one\n");
    assert_eq!(read(&old), "another\n");
}

#[test]
fn st_09_copies_begin_anew_and_what_is_still_there_was_not_moved() {
    let (env, id, _) = project();
    let copy = env.root().join("copy");
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .args([env.project(), copy.clone()])
        .status();
    assert!(copied.unwrap().success());
    let listed = env.run(&at(&copy, &["list"]));
    assert!(!listed.stdout.contains(&id), "{listed:?}");
    assert!(!listed.stderr.contains("moved"), "{listed:?}");
    let old = env.project();
    let refused = env.run(&at(&copy, &["init", "--moved-from", old.to_str().unwrap()]));
    assert!(refused.stderr.contains("still there"), "{refused:?}");
    assert_eq!(ids(&env, &old), [id]);
}

#[test]
fn st_09_a_directory_that_was_deleted_and_made_anew_is_the_same_one() {
    let (env, id, _) = project();
    for _ in 0..2 {
        fs::remove_dir_all(env.project()).unwrap();
        fs::create_dir(env.project()).unwrap();
        let rolled_back = env.run(&["rollback", &id]);
        assert_eq!(rolled_back.code, 0, "{rolled_back:?}");
        assert!(rolled_back.stderr.contains("made anew"), "{rolled_back:?}");
        assert_eq!(read(&env.project()), "one\n");
        assert_eq!(ids(&env, &env.project()), [id.as_str()]);
    }
    // One that somebody put there is the same when somebody says so.
    fs::remove_dir_all(env.project()).unwrap();
    env.write("project/a.txt", "from a backup\n");
    assert_eq!(env.run(&["rollback", &id]).code, 9);
    let here = env.project();
    env.json(&["init", "--moved-from", here.to_str().unwrap()]);
    env.json(&["rollback", &id]);
    assert_eq!(read(&env.project()), "one\n");
}

#[test]
fn st_09_an_undo_that_fails_leaves_no_directory_behind() {
    let (env, _, action) = project();
    env.write("project/a.txt", "three\n");
    env.json(&["checkpoint"]);
    fs::remove_dir_all(env.project()).unwrap();
    let place = env.project();
    fs::create_dir(env.root().join("elsewhere")).unwrap();
    let run = env
        .command(&at(&place, &["undo", &action]))
        .current_dir(env.root().join("elsewhere"))
        .output()
        .unwrap();
    assert!(!run.status.success(), "{run:?}");
    assert!(!place.exists(), "{run:?}");
}

#[test]
fn st_09_what_was_deleted_is_found_from_inside_it_and_over_a_link() {
    let (env, id, _) = project();
    let inner = env.project().join("inner");
    fs::create_dir(&inner).unwrap();
    env.write("project/inner/a.txt", "one\n");
    let listed = env.json(&at(&inner, &["checkpoint"]));
    let own = listed["checkpoint_id"].as_str().unwrap().to_owned();
    std::os::unix::fs::symlink(&inner, env.root().join("link")).unwrap();
    fs::remove_dir_all(&inner).unwrap();
    let below = inner.join("deep/down");
    for place in [&inner, &below, &env.root().join("link")] {
        assert_eq!(ids(&env, place), [own.as_str()]);
        for command in ["show", "diff", "verify"] {
            let run = env.run(&at(place, &[command, &own]));
            assert!(run.code < 2, "{command}: {run:?}");
        }
        for command in ["status", "audit", "du"] {
            let run = env.run(&at(place, &[command]));
            assert_eq!(run.code, 0, "{command}: {run:?}");
        }
    }
    assert_eq!(env.run(&at(&inner, &["checkpoint"])).code, 8);
    assert!(!inner.exists());
    assert_eq!(ids(&env, &env.project()), [id]);
    let undone = env.json(&at(&below, &["undo"]));
    assert_eq!(undone["verification"]["match"], true, "{undone}");
    assert_eq!(fs::read_to_string(inner.join("a.txt")).unwrap(), "one\n");
    assert_eq!(read(&env.project()), "two\n");
}

/// A yes to what waited at the old path could let nothing run any more; a halt is a person's word
/// about the project, wherever it is.
#[test]
fn st_09_holds_of_a_moved_project_are_closed_and_what_was_halted_stays_so() {
    let (env, _, _) = project();
    support::add(&env, "ann");
    let push = ["git", "push"];
    let hold = support::hold_of(&env, &push);
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    env.json(&at(&new, &["init", "--moved-from", old.to_str().unwrap()]));
    assert_eq!(show(&env, &hold)["state"], "closed");
    assert_eq!(waiting(&env).len(), 0);

    // Back in the first place somebody halts it, and moves it once more.
    fs::remove_dir(&old).unwrap();
    fs::rename(&new, &old).unwrap();
    fs::create_dir(&new).unwrap();
    env.json(&["init", "--moved-from", new.to_str().unwrap()]);
    let hold = support::hold_of(&env, &push);
    env.json(&["hold", "halt", &hold, "--reason", "not now"]);
    let (exit, reply) = exec(&env, &["touch", "b"]);
    is_denied(exit, &reply, "SESSION_HALTED");
    fs::remove_dir(&new).unwrap();
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    env.json(&at(&new, &["init", "--moved-from", old.to_str().unwrap()]));
    let line = ["--json", "exec", "--no-tui", "--", "touch", "b"];
    let (exit, reply) = support::reply_of(&mut env.command(&at(&new, &line)));
    is_denied(exit, &reply, "SESSION_HALTED");
    assert!(!new.join("b").exists());
}

#[test]
fn st_09_a_client_resumes_its_session_in_a_moved_project() {
    let (env, _, _) = project();
    let claude = Claude::new(&env);
    claude.does("1", "echo x > b.txt");
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    let call = json!({
        "cwd": new, "tool_name": "Bash", "tool_use_id": "2",
        "tool_input": {"command": "echo y > c.txt"},
    });
    fs::create_dir(&old).unwrap(); // where the commands start
    env.json(&at(&new, &["init", "--moved-from", old.to_str().unwrap()]));
    passes(&claude.says("PreToolUse", call));
}

/// A project whose roll back to its first checkpoint was killed half-way.
fn cut_off() -> (TestEnv, String) {
    let (env, id, _) = project();
    env.write("project/b.txt", "one\n");
    git(&env.project(), &["add", "."]);
    git(&env.project(), &["commit", "-q", "-m", "first"]);
    let id = env.json(&["checkpoint"])["checkpoint_id"]
        .as_str()
        .map_or(id, str::to_owned);
    env.write("project/a.txt", "three\n");
    env.write("project/b.txt", "three\n");
    let mut killed = env.command(&["rollback", &id]);
    let output = killed.env("SAFEPOINT_FAULT", "restore.step:2").output();
    assert_eq!(output.unwrap().status.code(), None, "it was killed");
    assert!(is_half_way(&env), "something waits");
    (env, id)
}

/// Whether something waits to be finished.
fn is_half_way(env: &TestEnv) -> bool {
    let journals = env.home().join("state/journals");
    fs::read_dir(journals).is_ok_and(|mut found| found.next().is_some())
}

#[test]
fn st_32_a_roll_back_cut_off_before_a_move_is_finished_in_the_new_place() {
    let (env, _) = cut_off();
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    // Whoever works elsewhere makes no directory in the old place.
    for words in [["checkpoint"], ["list"]] {
        let mut command = env.command(&at(&new, &words));
        let output = command.current_dir(&other).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains("moved or deleted since"), "{told}");
        assert!(!old.exists());
    }
    let adopt = ["init", "--moved-from", old.to_str().unwrap()];
    let mut command = env.command(&at(&new, &adopt));
    let output = command.current_dir(&other).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    fs::create_dir(&old).unwrap(); // where the commands start
    let told = env.run(&at(&new, &["checkpoint"]));
    assert!(told.stderr.contains("is now finished"), "{told:?}");
    assert_eq!(read(&new), "two\n");
    assert_eq!(fs::read_to_string(new.join("b.txt")).unwrap(), "one\n");
    assert!(!is_half_way(&env));
    env.json(&["trail", "verify"]);
}

#[test]
fn st_32_a_roll_back_cut_off_before_a_move_leaves_a_new_project_in_the_old_place_alone() {
    let (env, _) = cut_off();
    let (old, new) = (env.project(), env.root().join("moved"));
    fs::rename(&old, &new).unwrap();
    fs::create_dir(&old).unwrap();
    env.write("project/a.txt", "own\n");
    let told = env.run(&["checkpoint"]);
    assert!(told.stderr.contains("moved or deleted since"), "{told:?}");
    assert_eq!(read(&old), "own\n");
    let id = ids(&env, &old).remove(0);
    env.write("project/a.txt", "changed\n");
    env.json(&["rollback", &id]);
    assert_eq!(read(&old), "own\n");
    assert!(is_half_way(&env), "it still waits for its directory");
    env.json(&at(&new, &["init", "--moved-from", old.to_str().unwrap()]));
    env.json(&at(&new, &["checkpoint"]));
    assert_eq!(read(&new), "two\n");
    assert_eq!(read(&old), "own\n");
    assert!(!is_half_way(&env));
}

#[test]
fn st_32_a_roll_back_cut_off_in_a_directory_that_was_deleted_keeps_no_way_back_shut() {
    let (env, id) = cut_off();
    let old = env.project();
    fs::remove_dir_all(&old).unwrap();
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    let mut command = env.command(&at(&old, &["rollback", &id]));
    let output = command.current_dir(&other).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(&old), "two\n");
    assert!(!is_half_way(&env));
}
