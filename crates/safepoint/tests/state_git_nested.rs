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
    // What chooses what git runs is told when it changes, and taken back.
    for name in ["config", "hooks/pre-commit", "info/attributes"] {
        let git_dir = main.join(".git");
        let file = git_dir.join(name);
        let was = fs::read(&file).ok();
        let path = git_dir.display();
        let script = format!("mkdir -p {path}/info; echo '#x' >> {path}/{name}");
        let reply = act(&env, &linked, &script);
        let changes = reply["changes"].to_string();
        assert!(changes.contains(&format!(".git/{name}")), "{reply:#}");
        assert_ne!(fs::read(&file).ok(), was, "{name}");
        env.json(&["-C", directory, "undo"]);
        assert_eq!(fs::read(&file).ok(), was, "{name}");
    }
}

/// A repository outside of temporary folders with a linked work tree of the branch `other`.
fn linked_outside() -> (testkit::TestEnv, tempfile::TempDir, PathBuf) {
    let env = testkit::TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let (main, linked) = (place.path().join("main"), place.path().join("linked"));
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    git(&main, &["config", "user.name", "a"]);
    git(&main, &["config", "user.email", "a@b"]);
    fs::write(main.join("kept.txt"), "kept\n").unwrap();
    commit(&main, "first");
    let directory = linked.to_str().unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "other", directory]);
    (env, place, linked)
}

/// Runs a script in a work tree, as an action.
#[track_caller]
fn act(env: &testkit::TestEnv, linked: &Path, script: &str) -> serde_json::Value {
    fs::write(linked.join("work.sh"), format!("set -e\n{script}\n")).unwrap();
    let directory = linked.to_str().unwrap();
    let exec = [
        "-C", directory, "exec", "--no-tui", "--json", "--", "sh", "work.sh",
    ];
    let run = env.run(&exec);
    assert_eq!(run.code, 0, "{script}: {run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// Where every branch and tag points, and the stash.
fn references(directory: &Path) -> String {
    let listed = git(
        directory,
        &[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "refs/heads",
            "refs/tags",
        ],
    );
    format!(
        "{listed}{}",
        git(directory, &["stash", "list", "--format=%H"])
    )
}

#[test]
fn st_35_git_works_in_a_linked_work_tree_behind_the_fence_and_is_taken_back() {
    let (env, _place, linked) = linked_outside();
    let directory = linked.to_str().unwrap();
    for name in ["gone", "moved"] {
        git(&linked, &["branch", name]);
    }
    git(&linked, &["tag", "old"]);
    for text in ["one", "two"] {
        fs::write(linked.join("kept.txt"), text).unwrap();
        git(&linked, &["stash", "push", "-q"]);
    }
    git(&linked, &["pack-refs", "--all"]);
    for script in [
        "git branch -q -D gone",
        "git branch -m moved elsewhere",
        "git tag -d old",
        "git stash drop -q",
        "git stash clear",
        "git update-ref -d refs/heads/gone",
        "git pack-refs --all; git gc -q",
        "git commit -q --allow-empty -m x; git branch -f moved HEAD; git switch -q -c new",
    ] {
        let before = references(&linked);
        let reply = act(&env, &linked, script);
        assert!(!reply["stderr"].to_string().contains("error:"), "{reply:#}");
        let after = references(&linked);
        let undone = env.run(&["-C", directory, "undo", "--json"]);
        if before == after {
            continue;
        }
        assert!(
            reply["changes"].to_string().contains(".git/"),
            "{script}: {reply:#}"
        );
        assert_eq!(undone.code, 0, "{script}: {undone:?}");
        assert_eq!(references(&linked), before, "{script}: {undone:?}");
    }
    // What it is put back to is what it was, also where somebody else has moved it since.
    act(
        &env,
        &linked,
        "git branch -f moved HEAD^0; git branch extra",
    );
    git(&linked, &["commit", "-q", "--allow-empty", "-m", "mine"]);
    git(&linked, &["branch", "-f", "extra", "HEAD"]);
    let mine = git(&linked, &["rev-parse", "extra"]);
    let undone = env.run(&["-C", directory, "undo", "--json"]);
    assert_eq!(git(&linked, &["rev-parse", "extra"]), mine, "{undone:?}");
    git(&linked, &["fsck", "--strict"]);
}

#[test]
fn st_35_what_a_program_can_destroy_of_a_shared_repository_is_said() {
    let (env, place, linked) = linked_outside();
    let reply = act(&env, &linked, "echo x > new.txt");
    assert_eq!(reply["decision"], "allow", "{reply}");
    assert_eq!(reply["reversibility"], "partly", "{reply}");
    let told = reply["not_covered"].to_string();
    let main = place.path().join("main/.git");
    assert!(
        told.contains("objects of the repository") && told.contains(main.to_str().unwrap()),
        "{reply}"
    );
    // In the main work tree everything is in the checkpoint.
    let reply = act(&env, &place.path().join("main"), "echo x > new.txt");
    assert_eq!(reply["reversibility"], "reversible", "{reply}");
    // A repository that is gone is no success.
    let directory = linked.to_str().unwrap();
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
    fs::rename(place.path().join("main"), place.path().join("elsewhere")).unwrap();
    let run = env.run(&["-C", directory, "rollback", id.as_str().unwrap(), "--json"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["verification"]["match"], false, "{reply:#}");
    assert!(
        reply["not_restored"]
            .to_string()
            .contains("its repository is gone"),
        "{reply:#}"
    );
}

#[test]
fn st_13_what_is_in_progress_in_a_linked_work_tree_comes_and_goes() {
    let (env, _place, linked) = linked_outside();
    let directory = linked.to_str().unwrap();
    git(&linked, &["switch", "-q", "-c", "theirs"]);
    fs::write(linked.join("kept.txt"), "theirs\n").unwrap();
    git(&linked, &["commit", "-qam", "theirs"]);
    git(&linked, &["switch", "-q", "other"]);
    fs::write(linked.join("kept.txt"), "ours\n").unwrap();
    git(&linked, &["commit", "-qam", "ours"]);
    let own = PathBuf::from(git(&linked, &["rev-parse", "--absolute-git-dir"]).trim());
    let state = || {
        let mut names: Vec<String> = fs::read_dir(&own)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("HEAD") || name.contains("rebase") || name == "sequencer")
            .filter(|name| name != "ORIG_HEAD")
            .collect();
        names.sort();
        (
            names,
            git(&linked, &["status", "--porcelain=v2", "--branch"]),
        )
    };
    for command in [
        &["merge", "-q", "theirs"][..],
        &["rebase", "-q", "theirs"],
        &["cherry-pick", "theirs"],
    ] {
        let calm = state();
        let before = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
        assert!(
            !testkit::tree::git_command(&linked, command)
                .output()
                .unwrap()
                .status
                .success()
        );
        let busy = state();
        assert_ne!(calm, busy, "{command:?}");
        let during = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
        for (id, wanted) in [(&before, &calm), (&during, &busy), (&before, &calm)] {
            let reply = env.json(&["-C", directory, "rollback", id.as_str().unwrap()]);
            assert_eq!(reply["verification"]["match"], true, "{command:?}: {reply}");
            assert_eq!(
                reply["not_restored"],
                serde_json::json!([]),
                "{command:?}: {reply}"
            );
            assert_eq!(&state(), wanted, "{command:?}");
        }
    }
}

#[test]
fn st_13_work_trees_of_bare_and_separate_repositories_come_back() {
    let env = testkit::TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.root();
    let seed = root.join("seed");
    fs::create_dir(&seed).unwrap();
    git(&seed, &["init", "-q", "-b", "main"]);
    fs::write(seed.join("kept.txt"), "kept\n").unwrap();
    commit(&seed, "first");
    git(root, &["clone", "-q", "--bare", "seed", "bare.git"]);
    let linked = root.join("linked");
    git(
        &root.join("bare.git"),
        &["worktree", "add", "-q", linked.to_str().unwrap(), "main"],
    );
    let apart = root.join("apart");
    git(
        root,
        &[
            "clone",
            "-q",
            "--separate-git-dir",
            "apart.git",
            "seed",
            "apart",
        ],
    );
    git(
        &seed,
        &[
            "submodule",
            "--quiet",
            "add",
            root.join("bare.git").to_str().unwrap(),
            "sub",
        ],
    );
    for tree in [linked, apart, seed.join("sub")] {
        let directory = tree.to_str().unwrap();
        let facts = || {
            let status = git(&tree, &["status", "--porcelain=v2", "--branch"]);
            (git(&tree, &["rev-parse", "HEAD"]), status)
        };
        let before = facts();
        let made = env.json(&["-C", directory, "checkpoint"]);
        let id = made["checkpoint_id"].as_str().unwrap();
        assert!(
            !made["warnings"].to_string().contains("not captured"),
            "{made}"
        );
        git(&tree, &["commit", "-q", "--allow-empty", "-m", "agent"]);
        git(&tree, &["switch", "-q", "-c", "agents"]);
        let reply = env.json(&["-C", directory, "rollback", id]);
        assert_eq!(reply["verification"]["match"], true, "{reply}");
        assert_eq!(reply["not_restored"], serde_json::json!([]), "{reply}");
        assert_eq!(facts(), before, "{directory}");
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
