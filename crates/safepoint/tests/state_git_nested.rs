//! Repositories inside others, and the stashes of people.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

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
    env.json(&["undo"]);
    assert_eq!(
        git(&inner, &["status", "--porcelain=v2", "--branch"]),
        inner_before
    );
    survives(&env, |root| {
        git(root, &["rm", "-qrf", "vendor/lib"]);
        fs::remove_dir_all(root.join(".git/modules")).unwrap();
    });
    env.json(&["undo"]);
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
    env.json(&["undo"]);
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

/// A linked work tree of the branch `other`, beside the project.
fn link(env: &testkit::TestEnv) -> PathBuf {
    let linked = env.root().join("linked");
    let add = ["worktree", "add", "-q", linked.to_str().unwrap(), "other"];
    git(&env.project(), &add);
    linked
}

/// What git says of a work tree, and of the branches that are not its own.
fn git_facts(linked: &Path) -> [String; 5] {
    [
        git(linked, &["rev-parse", "HEAD"]),
        git(linked, &["symbolic-ref", "HEAD"]),
        git(linked, &["status", "--porcelain"]),
        git(linked, &["diff", "--cached"]),
        git(linked, &["rev-parse", "main"]),
    ]
}

#[test]
fn st_13_head_branch_and_index_of_a_linked_work_tree_come_back() {
    let env = repository();
    let linked = link(&env);
    let directory = linked.to_str().unwrap();
    fs::write(linked.join("kept.txt"), "staged\n").unwrap();
    git(&linked, &["add", "kept.txt"]);
    fs::write(linked.join("kept.txt"), "not staged\n").unwrap();
    let before = git_facts(&linked);
    let reply = env.json(&["-C", directory, "checkpoint"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    assert!(
        !reply["warnings"].to_string().contains("not captured"),
        "{reply}"
    );
    git(&linked, &["commit", "-qam", "agent"]);
    git(&linked, &["switch", "-q", "-c", "agents"]);
    git(&linked, &["commit", "-q", "--allow-empty", "-m", "again"]);
    // Somebody goes on in the main work tree.
    git(&env.project(), &["commit", "-qam", "mine"]);
    let main = git(&env.project(), &["rev-parse", "main"]);
    let reply = env.json(&["-C", directory, "rollback", id]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    assert_eq!(reply["not_restored"], serde_json::json!([]), "{reply}");
    let after = git_facts(&linked);
    assert_eq!(before[..4], after[..4]);
    assert_eq!(after[4], main);
    assert_eq!(
        fs::read_to_string(linked.join("kept.txt")).unwrap(),
        "not staged\n"
    );
    // And the going back is taken back.
    env.json(&["-C", directory, "redo"]);
    assert_eq!(
        git(&linked, &["symbolic-ref", "HEAD"]).trim(),
        "refs/heads/agents"
    );
    git(&linked, &["fsck", "--strict"]);
}

#[test]
fn st_13_a_branch_that_another_work_tree_uses_is_not_moved_and_that_is_told() {
    let env = repository();
    let linked = link(&env);
    let directory = linked.to_str().unwrap();
    let reply = env.json(&["-C", directory, "checkpoint"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    git(&linked, &["switch", "-q", "-c", "agents"]);
    git(&env.project(), &["stash", "-q"]);
    git(&env.project(), &["switch", "-q", "other"]);
    git(
        &env.project(),
        &["commit", "-q", "--allow-empty", "-m", "mine"],
    );
    let mine = git(&env.project(), &["rev-parse", "other"]);
    let run = env.run(&["-C", directory, "rollback", id, "--json"]);
    assert!(
        run.stdout.contains("another work tree has the branch"),
        "{run:?}"
    );
    assert_eq!(git(&env.project(), &["rev-parse", "other"]), mine);
}

#[test]
fn st_35_a_commit_in_a_linked_work_tree_is_made_behind_the_fence_and_taken_back() {
    let env = testkit::TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    // Temporary folders can be written from behind the fence.
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let (main, linked) = (place.path().join("main"), place.path().join("linked"));
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    fs::write(main.join("kept.txt"), "kept\n").unwrap();
    commit(&main, "first");
    let directory = linked.to_str().unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "other", directory]);
    let before = git_facts(&linked);
    let script = "set -e; echo x >> kept.txt; git add -A; \
        git -c user.name=a -c user.email=a@b commit -qm agent; git branch agents; \
        git checkout -q agents; git checkout -q other\n";
    fs::write(linked.join("work.sh"), script).unwrap();
    let exec = [
        "-C", directory, "exec", "--no-tui", "--json", "--", "sh", "work.sh",
    ];
    let run = env.run(&exec);
    assert_eq!(run.code, 0, "{run:?}");
    assert_ne!(git_facts(&linked)[0], before[0]);
    let log = env.json(&["-C", directory, "log"]);
    assert!(
        log["actions"][0]["changes"]
            .to_string()
            .contains(".git/HEAD"),
        "{log:#}"
    );
    let dry = env.json(&["-C", directory, "undo", "--dry-run"]);
    assert!(dry["changes"].to_string().contains(".git/HEAD"), "{dry}");
    let undone = env.json(&["-C", directory, "undo"]);
    assert_eq!(undone["verification"]["match"], true, "{undone}");
    assert_eq!(git_facts(&linked)[..2], before[..2]);
    // Nothing that chooses what git runs can be written from there.
    for place in [
        "config",
        "hooks/pre-commit",
        "info/attributes",
        "packed-refs",
        "HEAD",
    ] {
        let file = main.join(".git").join(place);
        let was = fs::read(&file).ok();
        let script = format!("echo x >> {}\n", file.display());
        fs::write(linked.join("work.sh"), script).unwrap();
        env.run(&exec);
        assert_eq!(fs::read(&file).ok(), was, "{place}");
    }
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
    env.json(&["undo"]);
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
