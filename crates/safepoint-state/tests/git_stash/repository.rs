//! Where the repository lies and what is checked out, read without git.

use std::fs;

use safepoint_state::git::{GitError, Head, Repository};

use crate::support::Bench;

fn branch(name: &str, commit: Option<String>) -> Head {
    Head::Branch {
        name: name.into(),
        commit,
    }
}

#[test]
fn st_13_head_is_read_from_loose_and_packed_references() {
    let bench = Bench::new();
    let commit = bench.git_line(&["rev-parse", "HEAD"]);
    assert_eq!(*bench.open().head(), branch("main", Some(commit.clone())));
    bench.git(&["pack-refs", "--all"]);
    assert!(!bench.top.join(".git/refs/heads/main").exists());
    assert_eq!(*bench.open().head(), branch("main", Some(commit.clone())));
    bench.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
    bench.git(&["symbolic-ref", "HEAD", "refs/heads/alias"]);
    assert_eq!(*bench.open().head(), branch("main", Some(commit.clone())));
    bench.git(&["symbolic-ref", "HEAD", "refs/heads/not/yet"]);
    assert_eq!(*bench.open().head(), branch("not/yet", None));
    bench.git(&["update-ref", "--no-deref", "HEAD", &commit]);
    assert_eq!(*bench.open().head(), Head::Detached { commit });
}

#[test]
fn st_13_reftable_is_asked_of_git() {
    let bench = Bench::empty(&["--ref-format=reftable"]);
    assert_eq!(*bench.open().head(), branch("main", None));
    bench.write("file", "x");
    bench.commit("first");
    let commit = bench.git_line(&["rev-parse", "HEAD"]);
    assert_eq!(*bench.open().head(), branch("main", Some(commit.clone())));
    bench.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(*bench.open().head(), Head::Detached { commit });
}

#[test]
fn st_13_a_linked_work_tree_has_a_head_of_its_own() {
    let bench = Bench::new();
    let linked = bench.beside("linked");
    bench.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    bench.git(&["config", "core.bare", "true"]);
    let repository = Repository::open(&bench.runner(), &linked).unwrap().unwrap();
    assert_eq!(
        repository.git_dir(),
        bench.top.join(".git/worktrees/linked")
    );
    assert_eq!(repository.common_dir(), bench.top.join(".git"));
    assert!(matches!(repository.head(), Head::Branch { name, commit: Some(_) } if name == "side"));
}

#[test]
fn st_13_only_the_top_of_a_work_tree_is_opened() {
    let bench = Bench::new();
    let open = |name: &str| Repository::open(&bench.runner(), &bench.top.join(name)).unwrap();
    assert!(open("").is_some());
    assert!(open("dir").is_none());
    bench.git(&["init", "--quiet", "--bare", "bare"]);
    assert!(open("bare").is_none());
    bench.git(&["config", "core.worktree", "../dir"]);
    assert!(open("").is_none());
    bench.git(&["config", "core.worktree", ".."]);
    assert!(open("").is_some());
    bench.git(&["config", "--unset", "core.worktree"]);
    bench.git(&["config", "core.bare", "true"]);
    assert!(open("").is_none());
}

#[test]
fn st_13_a_broken_repository_is_an_error() {
    let outer = Bench::new();
    let inner = outer.top.join("inner");
    fs::create_dir_all(inner.join(".git")).unwrap();
    let open = || Repository::open(&outer.runner(), &inner);
    assert!(matches!(open(), Err(GitError::Broken { .. })));
    fs::write(inner.join(".git/HEAD"), "nonsense").unwrap();
    fs::create_dir(inner.join(".git/objects")).unwrap();
    assert!(matches!(open(), Err(GitError::Broken { .. })));
    fs::write(inner.join(".git/HEAD"), "ref: refs/heads/../../../x").unwrap();
    assert!(matches!(open(), Err(GitError::Broken { .. })));
    // Well formed for us and not for git, which must not take the one outside.
    fs::write(inner.join(".git/HEAD"), "ref: refs/heads/main").unwrap();
    let repository = open().unwrap().unwrap();
    let error = repository
        .run(&outer.runner(), &["status"], b"")
        .unwrap_err();
    assert!(matches!(error, GitError::Broken { .. }), "{error}");
    fs::remove_dir_all(inner.join(".git")).unwrap();
    fs::write(inner.join(".git"), "gitdir: nowhere\n").unwrap();
    let error = open().unwrap_err();
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn st_13_what_is_in_progress_is_seen() {
    let bench = Bench::new();
    assert!(bench.open().in_progress().is_empty());
    let git_dir = bench.top.join(".git");
    for (name, what) in [
        ("MERGE_HEAD", "merge"),
        ("CHERRY_PICK_HEAD", "cherry-pick"),
        ("REVERT_HEAD", "revert"),
        ("BISECT_LOG", "bisect"),
    ] {
        fs::write(git_dir.join(name), "").unwrap();
        assert_eq!(bench.open().in_progress(), [what]);
        fs::remove_file(git_dir.join(name)).unwrap();
    }
    fs::create_dir(git_dir.join("rebase-apply")).unwrap();
    assert_eq!(bench.open().in_progress(), ["rebase"]);
    fs::write(git_dir.join("rebase-apply/applying"), "").unwrap();
    assert_eq!(bench.open().in_progress(), ["am"]);
}
