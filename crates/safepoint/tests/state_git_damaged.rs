//! Repositories that are damaged, partly there, or no repositories any more: the way back leads
//! through each of them.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;

use serde_json::Value;
use support::{Facts, checkpoint, commit, repository, roll_back, survives};
use testkit::TestEnv;
use testkit::tree::{git, git_command};

/// What a program may make of a repository, and whether git knows it as one afterwards.
const DAMAGES: [&str; 16] = [
    "rm -rf .git; mkdir .git",
    "rm -rf .git; mkdir -p .git/refs/heads; echo mine >.git/note",
    "rm .git/HEAD",
    "rm -rf .git/HEAD .git/refs",
    "rm -rf .git/refs .git/logs .git/HEAD .git/config",
    "find .git -type f -delete",
    "find .git -type f -exec truncate -s0 {} +",
    "rm -rf .git; echo 'gitdir: /nonexist' >.git",
    "rm -rf .git; echo nothing >.git",
    "rm -rf .git; ln -s /nonexist .git",
    "mv .git .git-old; ln -s .git-old .git",
    "rm -rf .git; mkfifo .git",
    "rm .git/HEAD; mkdir .git/HEAD",
    "rm -rf .git/refs; echo file >.git/refs",
    "rm -rf .git/objects; ln -s /nonexist .git/objects",
    "rm -rf .git; git init -q",
];

/// Runs a line as an action, which may leave the repository in any state, and tells which.
fn act(env: &TestEnv, line: &str) -> String {
    let words = ["exec", "--no-tui", "--json", "--", "sh", "-c", line];
    let run = env.run(&words);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["outcome"], "ok", "{line}: {reply}");
    reply["action_id"].as_str().unwrap().to_owned()
}

/// A script that the shell runs as an action: its words are no reason to ask anybody.
fn act_by_script(env: &TestEnv, script: &str) -> String {
    env.write("project/damage.sh", script);
    act(env, "sh damage.sh")
}

fn stash(env: &TestEnv, name: &str) {
    env.write("project/changed.txt", &format!("{name}\n"));
    let push = ["stash", "push", "-q", "-m", name, "--", "changed.txt"];
    git(&env.project(), &push);
}

fn stashes(env: &TestEnv) -> String {
    git(&env.project(), &["stash", "list", "--format=%H %gs"])
}

/// Takes a going back back. A directory that holds what is never taken away stays one, and is
/// named.
fn redo(env: &TestEnv, damage: &str) {
    let run = env.run(&["redo", "--json"]);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let unrestored = reply["not_restored"].as_array().unwrap();
    assert!(unrestored.len() < 2, "{damage}: {reply}");
    assert_eq!(reply["verification"]["match"], unrestored.is_empty());
    for one in unrestored {
        let path = one["path"].as_str().unwrap();
        assert!(
            [".git/refs", ".git/objects"].contains(&path),
            "{damage}: {reply}"
        );
        assert!(damage.contains(&format!("{path};")), "{damage}: {reply}");
    }
}

fn assert_whole(env: &TestEnv, before: &Facts, all: &str, what: &str) {
    before.assert_same(&Facts::of(&env.project()));
    assert_eq!(stashes(env), all, "{what}");
    git(&env.project(), &["fsck", "--strict"]);
}

#[test]
fn st_30_a_roll_back_makes_a_repository_of_whatever_is_left_of_one() {
    for packed in [false, true] {
        let env = repository();
        stash(&env, "mine");
        if packed {
            git(&env.project(), &["pack-refs", "--all"]);
        }
        env.write("project/damage.sh", "");
        let (before, all) = (Facts::of(&env.project()), stashes(&env));
        let id = checkpoint(&env);
        for damage in DAMAGES.iter().take(if packed { 6 } else { DAMAGES.len() }) {
            let run = std::process::Command::new("sh")
                .args(["-c", damage])
                .current_dir(env.project())
                .status();
            assert!(run.unwrap().success(), "{damage}");
            let reply = env.json(&["rollback", &id]);
            assert_eq!(reply["verification"]["match"], true, "{damage}: {reply}");
            assert_whole(&env, &before, &all, damage);
            // And it was known what was there.
            redo(&env, damage);
            roll_back(&env, &id);
            assert_whole(&env, &before, &all, damage);
        }
    }
}

#[test]
fn st_35_an_undo_makes_a_repository_of_whatever_an_action_left_of_one() {
    for packed in [false, true] {
        let env = repository();
        stash(&env, "mine");
        if packed {
            git(&env.project(), &["pack-refs", "--all"]);
        }
        // What lies where makes a difference to some of them only.
        for damage in DAMAGES.iter().take(if packed { 6 } else { DAMAGES.len() }) {
            env.write(
                "project/damage.sh",
                &format!("{damage}\nrm -f changed.txt\n"),
            );
            let (before, all) = (Facts::of(&env.project()), stashes(&env));
            let action = act(&env, "sh damage.sh");
            let log = env.json(&["log"])["actions"][0].clone();
            assert_eq!(log["action_id"], action.as_str(), "{damage}");
            assert!(
                log["changes"].to_string().contains("\".git"),
                "{damage}: {log}"
            );
            for _ in 0..2 {
                let reply = env.json(&["undo", &action]);
                assert_eq!(reply["verification"]["match"], true, "{damage}: {reply}");
                assert_whole(&env, &before, &all, damage);
                redo(&env, damage);
            }
            env.json(&["undo", &action]);
        }
    }
}

#[test]
fn st_35_redo_takes_the_whole_repository_away_again_with_its_stashes() {
    let env = repository();
    stash(&env, "mine");
    let (before, all) = (Facts::of(&env.project()), stashes(&env));
    let id = checkpoint(&env);
    act_by_script(&env, "rm -rf .git changed.txt\n");
    fs::remove_file(env.project().join("damage.sh")).unwrap();
    for back in [&["undo"][..], &["rollback", &id]] {
        env.json(back);
        assert_whole(&env, &before, &all, back[0]);
        let reply = env.json(&["redo"]);
        assert_eq!(reply["verification"]["match"], true, "{reply}");
        assert!(!env.project().join(".git").exists(), "{reply}");
    }
    env.json(&["undo"]);
    assert_whole(&env, &before, &all, "undo");
    // A stash that was made since is not taken away, and no half of a repository is left.
    stash(&env, "later");
    let later = Facts::of(&env.project());
    let refused = env.run(&["redo"]);
    assert_eq!(refused.code, 9, "{refused:?}");
    assert!(refused.stderr.contains("moved on since"), "{refused:?}");
    later.assert_same(&Facts::of(&env.project()));
}

#[test]
fn st_35_a_lost_reference_to_the_stash_is_told_and_comes_back() {
    let env = repository();
    stash(&env, "one");
    stash(&env, "two");
    git(&env.project(), &["pack-refs"]);
    for damage in [
        "rm .git/refs/stash",
        "rm -rf .git/refs",
        "echo junk >.git/refs/stash",
    ] {
        let (before, all) = (Facts::of(&env.project()), stashes(&env));
        act_by_script(&env, &format!("{damage}\nrm damage.sh\n"));
        let log = env.json(&["log"])["actions"][0].clone();
        assert!(
            log["changes"].to_string().contains(".git/refs/stash"),
            "{damage}: {log}"
        );
        env.json(&["undo"]);
        fs::remove_file(env.project().join("damage.sh")).unwrap();
        assert_whole(&env, &before, &all, damage);
    }
}

#[test]
fn st_23_a_command_that_destroys_a_repository_lists_what_it_destroyed() {
    let env = repository();
    for damage in ["rm -rf .git/objects", "rm -rf .git/refs", "rm .git/index"] {
        let operation = serde_json::json!({ "type": "command", "argv": ["sh", "-c", damage] });
        let operation = operation.to_string();
        let reply = env.json(&[
            "mutate",
            ".",
            "--auto-checkpoint",
            "--operation",
            &operation,
        ]);
        let destroyed = damage.rsplit(' ').next().unwrap();
        let changes = reply["changes"].to_string();
        assert!(changes.contains(destroyed), "{damage}: {reply}");
        env.json(&["undo"]);
        git(&env.project(), &["fsck", "--strict"]);
    }
}

#[test]
fn st_35_a_lock_that_nobody_holds_does_not_stop_the_way_back() {
    let env = repository();
    stash(&env, "mine");
    let (before, all) = (Facts::of(&env.project()), stashes(&env));
    let id = checkpoint(&env);
    for back in [&["undo"][..], &["rollback", &id]] {
        act_by_script(
            &env,
            "touch .git/index.lock; rm .git/refs/heads/main damage.sh\n",
        );
        let reply = env.json(back);
        let warnings = reply["warnings"].to_string();
        assert!(warnings.contains(".git/index.lock` stays"), "{reply}");
        fs::remove_file(env.project().join(".git/index.lock")).unwrap();
        let _ = fs::remove_file(env.project().join("damage.sh"));
        assert_whole(&env, &before, &all, back[0]);
    }
    // One that somebody holds does.
    act_by_script(&env, "rm .git/refs/heads/main damage.sh\n");
    let lock = env.project().join(".git/index.lock");
    let held = fs::File::create(&lock).unwrap();
    let run = env.run(&["undo"]);
    assert_eq!(run.code, 9, "{run:?}");
    drop(held);
}

#[test]
fn st_35_references_in_tables_are_told_and_come_back() {
    let env = repository();
    let root = env.project();
    fs::remove_dir_all(root.join(".git")).unwrap();
    let init = ["init", "-q", "-b", "main", "--ref-format=reftable"];
    if !git_command(&root, &init).status().unwrap().success() {
        return; // git is too old to have them
    }
    git(&root, &["config", "user.name", "a"]);
    git(&root, &["config", "user.email", "a@b"]);
    commit(&root, "first");
    stash(&env, "mine");
    let facts = || {
        let listed = git(&root, &["for-each-ref"]);
        let own = |line: &&str| !line.contains("refs/safepoint/");
        let listed: Vec<String> = listed.lines().filter(own).map(str::to_owned).collect();
        (listed, git(&root, &["status", "--porcelain"]))
    };
    for damage in [
        "git commit -q --allow-empty -m agent",
        "rm -rf .git/reftable",
    ] {
        env.write("project/damage.sh", &format!("{damage}\n"));
        let before = facts();
        act(&env, "sh damage.sh");
        let log = env.json(&["log"])["actions"][0]["changes"].to_string();
        assert!(log.contains(".git/reftable"), "{damage}: {log}");
        env.json(&["undo"]);
        assert_eq!(facts(), before, "{damage}");
        assert!(stashes(&env).contains("mine"), "{damage}");
    }
    // What has moved on stays, and is named.
    env.write(
        "project/damage.sh",
        "git commit -q --allow-empty -m agent; echo made >made.txt\n",
    );
    let action = act(&env, "sh damage.sh");
    git(&root, &["branch", "later"]);
    let run = env.run(&["undo", &action, "--json"]);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let unrestored = reply["not_restored"].to_string();
    assert!(unrestored.contains(".git/reftable"), "{reply}");
    assert!(!root.join("made.txt").exists());
    git(&root, &["rev-parse", "-q", "--verify", "later"]);
    git(&root, &["fsck", "--strict"]);
}

#[test]
fn st_34_a_repository_goes_back_as_a_whole_or_not_at_all() {
    let env = repository();
    let id = checkpoint(&env);
    git(&env.project(), &["commit", "-qam", "later"]);
    fs::remove_file(env.project().join(".git/hooks/pre-push.sample")).unwrap();
    env.write("project/changed.txt", "later\n");
    let before = Facts::of(&env.project());
    let part = env.run(&["rollback", &id, "--", ".git/refs/heads/main"]);
    assert_eq!(part.code, 7, "{part:?}");
    assert!(part.stderr.contains("name `.git`"), "{part:?}");
    // A pattern is about the files.
    env.json(&["rollback", &id, "*.sample"]);
    before.assert_same(&Facts::of(&env.project()));
    let reply = env.json(&["rollback", &id, ".git"]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    let log = git(&env.project(), &["log", "--format=%s"]);
    assert!(!log.contains("later"), "{log}");
}

#[test]
fn st_30_an_index_that_was_deleted_comes_back() {
    let env = repository();
    survives(&env, |root| {
        fs::remove_file(root.join(".git/index")).unwrap();
    });
}
