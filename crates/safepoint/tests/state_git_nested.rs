//! Repositories inside others, and the stashes of people.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;

use support::{Facts, checkpoint, commit, repository, roll_back, survives};
use testkit::tree::git;

#[test]
fn st_13_a_submodule_comes_back() {
    let env = repository();
    let library = env.root().join("library");
    fs::create_dir(&library).unwrap();
    git(&library, &["init", "-q", "-b", "main"]);
    env.write("library/lib.txt", "one\n");
    commit(&library, "library");
    let root = env.project();
    git(
        &root,
        &[
            "submodule",
            "--quiet",
            "add",
            library.to_str().unwrap(),
            "vendor/lib",
        ],
    );
    git(&root, &["commit", "-qm", "with a submodule"]);
    env.write("project/vendor/lib/lib.txt", "changed in the submodule\n");
    let inner = root.join("vendor/lib");
    let inner_before = git(&inner, &["status", "--porcelain=v2", "--branch"]);
    survives(&env, |root| {
        git(
            &root.join("vendor/lib"),
            &["commit", "-qam", "in the submodule"],
        );
        git(root, &["commit", "-qam", "moved"]);
    });
    env.undo_seen();
    assert_eq!(
        git(&inner, &["status", "--porcelain=v2", "--branch"]),
        inner_before
    );
    survives(&env, |root| {
        git(root, &["rm", "-qrf", "vendor/lib"]);
        fs::remove_dir_all(root.join(".git/modules")).unwrap();
    });
    env.undo_seen();
    assert_eq!(
        git(&inner, &["status", "--porcelain=v2", "--branch"]),
        inner_before
    );
}

#[test]
fn st_13_a_nested_repository_comes_back_even_after_rm_rf() {
    let env = repository();
    let nested = env.project().join("tools/nested");
    fs::create_dir_all(&nested).unwrap();
    git(&nested, &["init", "-q", "-b", "trunk"]);
    env.write("project/tools/nested/n.txt", "n\n");
    commit(&nested, "nested");
    env.write("project/tools/nested/n.txt", "n, changed\n");
    let status = git(&nested, &["status", "--porcelain=v2", "--branch"]);
    let history = git(&nested, &["log", "--format=%H"]);
    survives(&env, |root| fs::remove_dir_all(root.join("tools")).unwrap());
    env.undo_seen();
    assert_eq!(
        git(&nested, &["status", "--porcelain=v2", "--branch"]),
        status
    );
    assert_eq!(git(&nested, &["log", "--format=%H"]), history);
    git(&nested, &["fsck", "--strict"]);
    let id = checkpoint(&env);
    git(&nested, &["commit", "-qam", "more"]);
    git(&nested, &["switch", "-q", "-c", "elsewhere"]);
    roll_back(&env, &id);
    assert_eq!(git(&nested, &["log", "--format=%H"]), history);
    let after = git(&nested, &["status", "--porcelain=v2", "--branch"]);
    assert_eq!(after, status);
}

#[test]
fn st_13_a_nested_repository_that_was_made_since_is_gone_after_a_roll_back() {
    let env = repository();
    survives(&env, |root| {
        let nested = root.join("tools/nested");
        fs::create_dir_all(&nested).unwrap();
        git(&nested, &["init", "-q"]);
        fs::write(nested.join("n.txt"), "n\n").unwrap();
        commit(&nested, "nested");
    });
}

#[test]
fn st_13_a_repository_that_is_removed_altogether_comes_back() {
    let env = repository();
    let id = checkpoint(&env);
    let before = Facts::of(&env.project());
    fs::remove_dir_all(env.project().join(".git")).unwrap();
    let reply = env.json(&["rollback", &id]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    let after = Facts::of(&env.project());
    before.assert_same(&after);
}

#[test]
fn st_13_stashes_made_later_stay_and_dropped_ones_come_back() {
    let env = repository();
    let root = env.project();
    git(
        &root,
        &["stash", "push", "-q", "-m", "mine", "--", "changed.txt"],
    );
    let commits = || -> Vec<String> {
        let listed = git(&root, &["stash", "list", "--format=%H"]);
        listed.lines().map(str::to_owned).collect()
    };
    let mine = commits();
    let id = checkpoint(&env);
    // One more: it stays.
    env.write("project/changed.txt", "for later\n");
    git(
        &root,
        &["stash", "push", "-q", "-m", "later", "--", "changed.txt"],
    );
    let all = commits();
    assert_eq!(all.len(), 2);
    roll_back(&env, &id);
    assert_eq!(commits(), all);
    // Dropped: it comes back, and nothing that is newer goes.
    git(&root, &["stash", "drop", "-q", "stash@{1}"]);
    roll_back(&env, &id);
    let found = commits();
    for one in &all {
        assert!(
            found.contains(one),
            "{one} of {all:?} (mine: {mine:?}) in {found:?}"
        );
    }
    git(&root, &["fsck", "--strict"]);
}

#[test]
fn st_13_stashes_survive_when_git_packs_references() {
    let env = repository();
    let root = env.project();
    git(
        &root,
        &["stash", "push", "-q", "-m", "mine", "--", "changed.txt"],
    );
    survives(&env, |root| {
        git(root, &["commit", "-qam", "agent"]);
        git(root, &["gc", "-q"]);
    });
    assert_eq!(git(&root, &["stash", "list"]).lines().count(), 1);
}

#[test]
fn st_13_all_stashes_cleared_come_back() {
    let env = repository();
    let root = env.project();
    git(
        &root,
        &["stash", "push", "-q", "-m", "mine", "--", "changed.txt"],
    );
    let mine = git(&root, &["stash", "list", "--format=%H"]);
    let id = checkpoint(&env);
    git(&root, &["stash", "clear"]);
    git(&root, &["gc", "-q", "--prune=now"]);
    roll_back(&env, &id);
    assert!(git(&root, &["stash", "list", "--format=%H"]).contains(mine.trim()));
    git(&root, &["fsck", "--strict"]);
}

#[test]
fn st_13_automatic_states_make_no_stash_entries() {
    let env = repository();
    let id = checkpoint(&env);
    let listed = git(&env.project(), &["stash", "list"]);
    env.write("project/kept.txt", "x\n");
    roll_back(&env, &id);
    env.json(&["redo"]);
    env.undo_seen();
    assert!(
        env.json(&["list", "-a"])["checkpoints"]
            .as_array()
            .unwrap()
            .len()
            > 3
    );
    assert_eq!(git(&env.project(), &["stash", "list"]), listed);
}

#[test]
fn st_13_a_stash_made_since_the_first_commit_stays() {
    let env = testkit::TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.project();
    git(&root, &["init", "-q", "-b", "main"]);
    env.write("project/a.txt", "a\n");
    let id = checkpoint(&env);
    commit(&root, "first");
    env.write("project/a.txt", "for later\n");
    git(&root, &["stash", "push", "-q", "-m", "mine"]);
    let listed = git(&root, &["stash", "list", "--format=%H"]);
    let reply = env.json(&["rollback", &id]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    assert_eq!(git(&root, &["stash", "list", "--format=%H"]), listed);
}
