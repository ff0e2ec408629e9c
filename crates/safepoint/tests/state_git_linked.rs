//! Work trees whose repository lies elsewhere: linked ones, submodules, repositories apart.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

#[expect(dead_code, reason = "other test files use the rest")]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{commit, repository};
use testkit::tree::git;

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
    let main = place.path().join("main/.git");
    let is_told = |list: &serde_json::Value| {
        let told = list.to_string();
        told.contains("objects of the repository") && told.contains(main.to_str().unwrap())
    };
    // What it may destroy is told before, and what it wrote afterwards.
    let reply = act(&env, &linked, "echo x > new.txt");
    assert_eq!(reply["decision"], "allow", "{reply}");
    assert!(is_told(&reply["not_covered"]), "{reply}");
    assert_eq!(reply["reversibility"], "reversible", "{reply}");
    let reply = act(
        &env,
        &linked,
        "echo x > $(git rev-parse --git-common-dir)/objects/stray",
    );
    assert_eq!(reply["reversibility"], "partly", "{reply}");
    assert!(is_told(&reply["remainder"]), "{reply}");
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
fn st_13_a_roll_back_of_the_main_work_tree_leaves_branches_to_linked_ones() {
    for packed in [false, true] {
        let (env, place, linked) = linked_outside();
        let main = place.path().join("main");
        let directory = main.to_str().unwrap();
        if packed {
            git(&main, &["pack-refs", "--all"]);
        }
        let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
        fs::write(linked.join("kept.txt"), "theirs\n").unwrap();
        git(&linked, &["commit", "-qam", "theirs"]);
        git(&main, &["commit", "-q", "--allow-empty", "-m", "mine"]);
        if packed {
            git(&main, &["pack-refs", "--all"]);
        }
        let theirs = git(&linked, &["rev-parse", "other"]);
        let log = git(&linked, &["reflog", "other"]);
        let reply = env.json(&["-C", directory, "rollback", id.as_str().unwrap()]);
        assert_eq!(
            git(&linked, &["rev-parse", "other"]),
            theirs,
            "{packed}: {reply}"
        );
        assert_eq!(git(&linked, &["reflog", "other"]), log, "{packed}: {reply}");
        assert_eq!(git(&linked, &["status", "--porcelain"]), "", "{packed}");
        assert_eq!(git(&main, &["log", "--format=%s", "main"]), "first\n");
        let told = reply["not_restored"].to_string();
        assert!(packed || told.contains("refs/heads/other"), "{reply:#}");
        git(&main, &["fsck", "--strict"]);
    }
}

#[test]
fn st_35_a_commit_in_a_linked_work_tree_is_no_doing_of_an_action_in_the_main_one() {
    let (env, place, linked) = linked_outside();
    let main = place.path().join("main");
    let directory = main.to_str().unwrap();
    // It waits until somebody has committed elsewhere.
    let (begun, hold) = (main.join("begun"), place.path().join("hold"));
    let made = std::process::Command::new("mkfifo").arg(&hold).status();
    assert!(made.unwrap().success());
    let script = "echo x > new.txt; touch begun; read line < ../hold\n";
    fs::write(main.join("work.sh"), script).unwrap();
    let mut command = env.command(&[
        "-C", directory, "exec", "--no-tui", "--json", "--", "sh", "work.sh",
    ]);
    let mut running = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !begun.exists() {
        assert!(running.try_wait().unwrap().is_none(), "it has not begun");
        std::thread::yield_now();
    }
    git(&linked, &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    let theirs = git(&linked, &["rev-parse", "other"]);
    fs::write(&hold, "on\n").unwrap();
    let output = running.wait_with_output().unwrap();
    let reply: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let changes = reply["changes"].to_string();
    assert!(
        changes.contains("new.txt") && !changes.contains("refs/heads/other"),
        "{reply:#}"
    );
    let undone = env.run(&["-C", directory, "undo", "--json"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(!main.join("new.txt").exists());
    assert_eq!(git(&linked, &["rev-parse", "other"]), theirs, "{undone:?}");
}

#[test]
fn st_13_a_linked_work_tree_in_the_workspace_is_part_of_it() {
    let env = repository();
    let root = env.project();
    let inner = root.join(".worktrees/wt");
    git(
        &root,
        &["worktree", "add", "-q", inner.to_str().unwrap(), "other"],
    );
    fs::write(inner.join("kept.txt"), "staged\n").unwrap();
    git(&inner, &["add", "-A"]);
    fs::write(inner.join("kept.txt"), "not staged\n").unwrap();
    let before = git_facts(&inner);
    let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
    git(&inner, &["commit", "-qam", "agent"]);
    git(&inner, &["switch", "-q", "-c", "agents"]);
    env.json(&["rollback", id.as_str().unwrap()]);
    assert_eq!(git_facts(&inner), before);
}

#[test]
fn st_35_what_a_repository_knew_of_a_linked_work_tree_comes_back() {
    let (env, place, linked) = linked_outside();
    let main = place.path().join("main");
    let directory = main.to_str().unwrap();
    git(&main, &["branch", "kept"]);
    let status = git(&linked, &["status", "--porcelain=v2", "--branch"]);
    let kept = main.join(".git/worktrees/linked");
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
    for script in [
        "rm -rf .git/worktrees/linked",
        "rm .git/worktrees/linked/HEAD",
        "rm -rf .git/worktrees",
    ] {
        for back in [&["undo"][..], &["rollback", id.as_str().unwrap()]] {
            let reply = act(&env, &main, script);
            assert!(
                reply["changes"].to_string().contains(".git/worktrees"),
                "{script}: {reply:#}"
            );
            assert!(!kept.join("HEAD").exists());
            let run = env.run(&[&["-C", directory][..], back, &["--json"]].concat());
            assert_eq!(run.code, 0, "{script}: {run:?}");
            assert_eq!(
                git(&linked, &["status", "--porcelain=v2", "--branch"]),
                status,
                "{script}: {run:?}"
            );
        }
    }
    // What somebody is in the middle of there is not theirs to lose.
    fs::write(
        kept.join("MERGE_HEAD"),
        git(&linked, &["rev-parse", "HEAD"]),
    )
    .unwrap();
    env.json(&["-C", directory, "rollback", id.as_str().unwrap()]);
    assert!(kept.join("MERGE_HEAD").exists());
}

#[test]
fn st_30_an_own_git_directory_that_an_action_destroyed_is_made_anew() {
    let (env, place, linked) = linked_outside();
    let kept = place.path().join("main/.git/worktrees/linked");
    let directory = linked.to_str().unwrap();
    fs::write(linked.join("staged.txt"), "staged\n").unwrap();
    git(&linked, &["add", "staged.txt"]);
    fs::write(
        kept.join("MERGE_HEAD"),
        git(&linked, &["rev-parse", "HEAD"]),
    )
    .unwrap();
    act(&env, &linked, "true");
    let status = || git(&linked, &["status", "--porcelain=v2", "--branch"]);
    let before = status();
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
    let own = kept.to_str().unwrap();
    for script in [
        format!("rm -r '{own}'"),
        format!("rm '{own}/index'; echo garbage > '{own}/HEAD'"),
        format!("rm '{own}/HEAD' '{own}/commondir'"),
        format!("rm '{own}/index'"),
        format!("rm -r \"$(dirname '{own}')\""),
    ] {
        for back in [&["undo"][..], &["rollback", id.as_str().unwrap()]] {
            let reply = act(&env, &linked, &script);
            let changes = reply["changes"].to_string();
            assert!(changes.contains(".git/"), "{script}: {reply:#}");
            let log = env.json(&["-C", directory, "log"]);
            let told = log["actions"][0]["changes"].to_string();
            assert!(told.contains(".git/"), "{script}: {log:#}");
            let run = env.run(&[&["-C", directory][..], back, &["--json"]].concat());
            assert_eq!(run.code, 0, "{script}: {run:?}");
            assert_eq!(status(), before, "{script}: {run:?}");
            assert!(kept.join("MERGE_HEAD").exists(), "{script}");
            let listed = git(&linked, &["worktree", "list", "--porcelain"]);
            assert!(listed.contains(directory), "{script}: {listed}");
            assert!(!listed.contains("prunable"), "{script}: {listed}");
        }
    }
    git(&linked, &["fsck"]);
}

#[test]
fn st_30_a_linked_work_tree_that_git_removed_comes_back() {
    let (env, place, linked) = linked_outside();
    let directory = linked.to_str().unwrap();
    let main = place.path().join("main");
    fs::write(linked.join("staged.txt"), "staged\n").unwrap();
    git(&linked, &["add", "staged.txt"]);
    let status = || git(&linked, &["status", "--porcelain=v2", "--branch"]);
    let before = status();
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
    for back in [&["undo"][..], &["rollback", id.as_str().unwrap()]] {
        git(&main, &["worktree", "remove", "--force", directory]);
        let run = env.run(&[&["-C", directory][..], back, &["--json"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(status(), before, "{run:?}");
    }
    // Another work tree has its place, under the same name.
    git(&main, &["worktree", "remove", "--force", directory]);
    let other = place.path().join("elsewhere/linked");
    let add = ["worktree", "add", "-q", "--detach", other.to_str().unwrap()];
    git(&main, &add);
    let theirs = git(&other, &["status", "--porcelain=v2", "--branch"]);
    let run = env.run(&["-C", directory, "rollback", id.as_str().unwrap(), "--json"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let told = reply["not_restored"].to_string();
    assert!(
        told.contains("another work tree has its place"),
        "{reply:#}"
    );
    assert_eq!(reply["verification"]["match"], false, "{reply:#}");
    let now = git(&other, &["status", "--porcelain=v2", "--branch"]);
    assert_eq!(now, theirs);
}

#[test]
fn st_35_what_an_action_in_a_linked_work_tree_did_to_the_main_one_is_told() {
    for script in [
        "rm \"$main/refs/heads/main\"",
        "rm \"$main/HEAD\"",
        "rm -r \"$main\"/objects/??",
    ] {
        let (env, _place, linked) = linked_outside();
        let script = format!("main=$(git rev-parse --git-common-dir)\n{script}");
        let reply = act(&env, &linked, &script);
        assert_eq!(reply["reversibility"], "partly", "{script}: {reply:#}");
        let told = |it: &serde_json::Value| it.to_string().contains("objects of the repository");
        assert!(told(&reply["remainder"]), "{reply:#}");
        let directory = linked.to_str().unwrap();
        let log = env.json(&["-C", directory, "log"]);
        assert!(told(&log["actions"][0]["remainder"]), "{log:#}");
        if !script.contains("refs/heads/main") {
            continue;
        }
        let changes = reply["changes"].to_string();
        assert!(changes.contains(".git/refs/heads/main"), "{reply:#}");
        let run = env.run(&["-C", directory, "undo", "--json"]);
        let undone: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let left = undone["not_restored"].to_string();
        assert!(left.contains(".git/refs/heads/main"), "{undone:#}");
        assert_ne!(undone["confidence"], 1.0, "{undone:#}");
    }
}

#[test]
fn st_32_a_roll_back_killed_half_way_in_a_linked_work_tree_brings_its_git_state_back() {
    use std::os::unix::process::ExitStatusExt;
    let env = testkit::TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (main, linked) = (place.path().join("main"), place.path().join("linked"));
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    fs::write(main.join("kept.txt"), "kept\n").unwrap();
    commit(&main, "first");
    let directory = linked.to_str().unwrap();
    git(&main, &["worktree", "add", "-q", "-b", "other", directory]);
    let before = git_facts(&linked);
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"]
        .as_str()
        .unwrap()
        .to_owned();
    for point in ["restore.applying", "restore.applied"] {
        fs::write(linked.join("kept.txt"), "changed\n").unwrap();
        commit(&linked, "second");
        assert_ne!(git_facts(&linked), before);
        let mut command = env.command(&["-C", directory, "rollback", &id]);
        let output = command.env("SAFEPOINT_FAULT", point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{point}: {output:?}");
        let run = env.run(&["-C", directory, "gc", "--dry-run"]);
        assert_eq!(run.code, 0, "{point}: {run:?}");
        assert_eq!(git_facts(&linked)[..2], before[..2], "{point}");
        assert_eq!(fs::read(linked.join("kept.txt")).unwrap(), b"kept\n");
        let log = env.json(&["-C", directory, "log"]);
        assert_eq!(log["actions"][0]["outcome"], "ok", "{point}: {log:#}");
    }
}

#[test]
fn st_35_the_git_file_of_a_linked_work_tree_comes_back_alone() {
    let (env, _place, linked) = linked_outside();
    let directory = linked.to_str().unwrap();
    act(&env, &linked, "true");
    let id = env.json(&["-C", directory, "checkpoint"])["checkpoint_id"].clone();
    let status = || git(&linked, &["status", "--porcelain=v2", "--branch"]);
    let before = status();
    for script in [
        "rm -f .git",
        "rm -f .git; mkdir .git",
        "rm -f .git; mkdir .git; echo mine >.git/note",
        "rm -f .git; ln -s /nonexist .git",
        "echo nothing >.git",
    ] {
        for back in [&["undo"][..], &["rollback", id.as_str().unwrap()]] {
            act(&env, &linked, script);
            let run = env.run(&[&["-C", directory][..], back, &["--json"]].concat());
            assert_eq!(run.code, 0, "{script}: {run:?}");
            assert_eq!(status(), before, "{script}: {run:?}");
        }
    }
}
