//! Checkpoints of git work trees, from the outside.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::{Facts, checkpoint, commit, repository, roll_back, survives};
use testkit::TestEnv;
use testkit::tree::{git, git_command};

#[test]
fn st_13_a_checkpoint_leaves_tree_index_head_branches_and_stashes_untouched() {
    let env = repository();
    let root = env.project();
    git(&root, &["stash", "push", "-q", "--", "changed.txt"]);
    env.write("project/changed.txt", "changed again\n");
    let before = Facts::of(&root);
    let id = checkpoint(&env);
    let mut after = Facts::of(&root);
    let (newest, rest) = after.stashes.split_once('\n').unwrap();
    assert!(
        newest.ends_with(&format!(" checkpoint:{id}:why")),
        "{newest}"
    );
    after.stashes = rest.to_owned();
    before.assert_same(&after);
    git(&root, &["fsck", "--strict"]);
}

/// Puts a change on the shelf, with this name.
fn shelve(env: &TestEnv, name: &str) {
    env.write("project/changed.txt", &format!("{name}\n"));
    let push = ["stash", "push", "-q", "-m", name, "--", "changed.txt"];
    git(&env.project(), &push);
}

/// Runs a command as an action, and tells which.
fn exec(env: &TestEnv, words: &[&str]) -> String {
    let run = env.run(&[&["exec", "--no-tui", "--json", "--"], words].concat());
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["outcome"], "ok", "{reply}");
    reply["action_id"].as_str().unwrap().to_owned()
}

fn shelved(env: &TestEnv) -> String {
    git(&env.project(), &["stash", "list", "--format=%s"])
}

#[test]
fn st_35_a_dropped_stash_is_told_and_taken_back() {
    let env = repository();
    for name in ["one", "two", "three"] {
        shelve(&env, name);
    }
    let all = git(&env.project(), &["stash", "list", "--format=%H"]);
    let action = exec(&env, &["git", "stash", "drop", "-q", "stash@{1}"]);
    assert!(!shelved(&env).contains("two"));
    let log = env.json(&["log"])["actions"][0].clone();
    assert_eq!(
        log["changes"],
        serde_json::json!([{ "path": ".git/logs/refs/stash", "change": "modified" }])
    );
    env.json(&["undo", &action]);
    assert_eq!(git(&env.project(), &["stash", "list", "--format=%H"]), all);
    // Once is enough.
    let again = env.run(&["undo", &action]);
    assert_eq!(again.code, 9, "{again:?}");
    assert!(again.stderr.contains("took it back already"), "{again:?}");
    // What came onto the shelf later stays, and so does what others took from it.
    let cleared = exec(&env, &["git", "stash", "clear"]);
    assert_eq!(shelved(&env), "");
    shelve(&env, "four");
    let dry = env.json(&["undo", &cleared, "--dry-run"]);
    assert_eq!(dry["changes"][0]["path"], ".git/logs/refs/stash", "{dry}");
    env.json(&["undo"]);
    let listed = shelved(&env);
    for name in ["one", "two", "three", "four"] {
        assert!(listed.contains(name), "{listed}");
    }
    git(&env.project(), &["stash", "apply", "-q", "stash@{0}"]);
    git(&env.project(), &["fsck", "--strict"]);
}

#[test]
fn st_35_only_the_stash_that_an_action_took_comes_back() {
    let env = repository();
    shelve(&env, "one");
    shelve(&env, "two");
    let first = exec(&env, &["git", "stash", "drop", "-q", "stash@{1}"]);
    exec(&env, &["git", "stash", "drop", "-q"]);
    checkpoint(&env); // which puts an entry there as well
    env.json(&["undo", &first]);
    let listed = shelved(&env);
    assert!(
        listed.contains("one") && !listed.contains("two") && listed.contains("checkpoint:"),
        "{listed}"
    );
    // That checkpoints are put onto the shelf is nothing that happened.
    let log = env.json(&["log"]);
    for action in log["actions"].as_array().unwrap() {
        assert_ne!(action["action"], "workspace.change", "{log:#}");
    }
}

#[test]
fn st_13_plain_git_can_restore_the_stash_entry() {
    let env = repository();
    let root = env.project();
    let id = checkpoint(&env);
    let before = Facts::of(&root);
    let listed = git(&root, &["stash", "list"]);
    assert!(listed.contains(&format!("checkpoint:{id}:why")), "{listed}");
    git(&root, &["reset", "-q", "--hard"]);
    fs::remove_dir_all(root.join("untracked")).unwrap();
    git(&root, &["stash", "apply", "-q", "--index"]);
    let after = Facts::of(&root);
    assert_eq!(before.status, after.status);
    let contents = |facts: &Facts| -> Vec<_> {
        let tree = &facts.tree;
        tree.iter()
            .map(|(path, seen)| (path.clone(), seen.content.clone()))
            .collect()
    };
    assert_eq!(contents(&before), contents(&after));
}

#[test]
fn st_13_a_clean_tree_and_no_identity_are_no_obstacle() {
    let env = repository();
    let root = env.project();
    git(&root, &["reset", "-q", "--hard"]);
    fs::remove_dir_all(root.join("untracked")).unwrap();
    let before = Facts::of(&root);
    let id = checkpoint(&env); // the environment of the tests names nobody
    let listed = git(&root, &["stash", "list"]);
    assert!(listed.contains(&id), "{listed}");
    assert_eq!(before.status, Facts::of(&root).status);
    assert_eq!(before.index, Facts::of(&root).index);
}

#[test]
fn st_13_nothing_that_the_repository_configures_is_ever_run() {
    let env = repository();
    let root = env.project();
    let ran = env.root().join("ran");
    let trap = env.write(
        "trap",
        &format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display()),
    );
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "post-rewrite",
        "post-merge",
    ] {
        std::os::unix::fs::symlink(trap, root.join(".git/hooks").join(hook)).unwrap();
    }
    for (name, value) in [
        ("core.fsmonitor", trap),
        ("diff.external", trap),
        ("diff.x.textconv", trap),
        ("diff.x.command", trap),
        ("filter.x.clean", trap),
        ("filter.x.smudge", trap),
        ("filter.x.process", trap),
        ("gpg.program", trap),
        ("commit.gpgSign", "true"),
        ("tag.gpgSign", "true"),
        ("core.pager", trap),
        ("core.editor", trap),
        ("core.sshCommand", trap),
        ("core.askPass", trap),
        ("credential.helper", trap),
    ] {
        // Written as they are: git itself would run some of them to set the next.
        let mut config = fs::read_to_string(root.join(".git/config")).unwrap();
        let (section, key) = name.split_once('.').unwrap();
        let header = match key.split_once('.') {
            Some((sub, _)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        let key = key.rsplit('.').next().unwrap();
        config.push_str(&format!("{header}\n\t{key} = {value}\n"));
        fs::write(root.join(".git/config"), config).unwrap();
    }
    env.write("project/.gitattributes", "*.txt diff=x filter=x\n");
    let id = checkpoint(&env);
    assert!(
        git(
            &root,
            &[
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
                "rev-parse",
                "refs/stash"
            ]
        )
        .len()
            > 30
    );
    let _ = fs::remove_file(&ran); // what the line above ran is no business of ours
    env.write("project/changed.txt", "changed once more\n");
    env.json(&["diff", &id]);
    env.json(&["checkpoint"]);
    env.json(&["rollback", &id]);
    env.json(&["undo"]);
    let told = fs::read_to_string(&ran).unwrap_or_default();
    assert_eq!(told, "");
}

#[test]
fn st_13_roll_back_after_a_commit() {
    survives(&repository(), |root| {
        fs::write(root.join("kept.txt"), "agent\n").unwrap();
        git(root, &["add", "-A"]);
        git(root, &["commit", "-qm", "agent"]);
    });
}

#[test]
fn st_13_roll_back_after_an_amended_commit() {
    survives(&repository(), |root| {
        git(root, &["commit", "-q", "--amend", "-am", "amended"]);
    });
}

#[test]
fn st_13_roll_back_after_switching_the_branch() {
    survives(&repository(), |root| {
        git(root, &["switch", "-q", "--discard-changes", "other"]);
        git(root, &["branch", "-qD", "main"]);
        git(root, &["switch", "-q", "-c", "third"]);
    });
}

#[test]
fn st_13_roll_back_after_a_hard_reset() {
    survives(&repository(), |root| {
        git(root, &["reset", "-q", "--hard", "HEAD~1"]);
        git(
            root,
            &["clean", "-qfdx", "-e", ".checkpoints", "-e", ".audit"],
        );
    });
}

#[test]
fn st_13_roll_back_after_references_were_packed_and_objects_collected() {
    let env = repository();
    survives(&env, |root| {
        git(root, &["commit", "-qam", "agent"]);
        git(root, &["reset", "-q", "--hard", "HEAD~2"]);
        git(root, &["pack-refs", "--all"]);
        let mut expire = vec![
            "reflog",
            "expire",
            "--expire=now",
            "--expire-unreachable=now",
        ];
        expire.extend(["HEAD", "refs/heads/main", "refs/heads/other"]);
        git(root, &expire);
        git(root, &["gc", "-q", "--prune=now"]);
    });
}

/// Two branches that change the same line.
fn diverged() -> TestEnv {
    let env = repository();
    let root = env.project();
    git(&root, &["reset", "-q", "--hard"]);
    env.write("project/kept.txt", "ours\n");
    commit(&root, "ours");
    git(&root, &["switch", "-q", "other"]);
    env.write("project/kept.txt", "theirs\n");
    commit(&root, "theirs");
    git(&root, &["switch", "-q", "main"]);
    env
}

#[test]
fn st_13_a_merge_in_progress_comes_back() {
    let env = diverged();
    let merge = git_command(&env.project(), &["merge", "other"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    survives(&env, |root| {
        git(root, &["merge", "--abort"]);
        fs::write(root.join("kept.txt"), "something else\n").unwrap();
    });
    env.json(&["undo"]); // of the redo's
    survives(&env, |root| {
        fs::write(root.join("kept.txt"), "resolved\n").unwrap();
        git(root, &["add", "kept.txt"]);
        git(root, &["commit", "-qm", "merged"]);
    });
}

#[test]
fn st_13_a_rebase_in_progress_comes_back() {
    let env = diverged();
    let rebase = git_command(&env.project(), &["rebase", "other"])
        .output()
        .unwrap();
    assert!(!rebase.status.success());
    assert!(env.project().join(".git/rebase-merge").exists());
    survives(&env, |root| {
        git(root, &["rebase", "--abort"]);
    });
}

#[test]
fn st_13_a_merge_that_began_since_is_gone_after_a_roll_back() {
    let env = diverged();
    survives(&env, |root| {
        let merge = git_command(root, &["merge", "other"]).output().unwrap();
        assert!(!merge.status.success());
    });
}

#[test]
fn st_13_an_unborn_branch_works() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.project();
    git(&root, &["init", "-q", "-b", "main"]);
    env.write("project/a.txt", "a\n");
    git(&root, &["add", "a.txt"]);
    let reply = env.json(&["checkpoint"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    assert!(
        reply["warnings"].to_string().contains("no stash entry"),
        "{reply}"
    );
    let before = Facts::of(&root);
    git(&root, &["commit", "-qm", "first"]);
    roll_back(&env, id);
    before.assert_same(&Facts::of(&root));
}

#[test]
fn st_13_a_detached_head_works() {
    let env = repository();
    git(&env.project(), &["checkout", "-q", "--detach"]);
    survives(&env, |root| {
        git(root, &["commit", "-qam", "on no branch"]);
        git(root, &["switch", "-q", "main"]);
    });
}

#[test]
fn st_13_without_git_it_is_a_file_backup_with_a_warning() {
    let mut env = repository();
    let empty = env.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let path = empty.to_str().unwrap().to_owned();
    env.set("PATH", &path);
    let before = Facts::of(&env.project());
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["checkpoint"]["type"], "file_backup");
    assert!(reply["warnings"].to_string().contains("git"), "{reply}");
    let id = reply["checkpoint_id"].as_str().unwrap();
    git(&env.project(), &["commit", "-qam", "agent"]);
    env.json(&["rollback", id]);
    before.assert_same(&Facts::of(&env.project()));
}
