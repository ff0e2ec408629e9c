//! What a new entry leaves as it is.

use std::os::unix::fs::symlink;

use safepoint_state::git::stash::Stash;

use crate::support::{Bench, LABEL};

/// Something of every kind.
pub(crate) fn work(bench: &Bench) {
    bench.write("changed", "work\n");
    bench.write("staged", "in the index\n");
    bench.git(&["add", "staged"]);
    bench.write("staged", "in the work tree\n");
    std::fs::remove_file(bench.top.join("removed")).unwrap();
    bench.write("added", "added\n");
    bench.git(&["add", "added"]);
    bench.write("new/untracked", "new\n");
    bench.write("script", "#!/bin/sh\n");
    bench.set_mode("script", 0o755);
    symlink("no such target", bench.top.join("link")).unwrap();
    bench.set_mode("kept", 0o755);
}

#[test]
fn st_13_nothing_but_the_stash_changes() {
    let bench = Bench::new();
    work(&bench);
    let (before, head) = (bench.listing(), bench.git(&["show-ref", "--head"]));
    let commit = bench.stashed();
    assert_eq!(before, bench.listing());
    bench.git(&["update-ref", "-d", "refs/stash", &commit]);
    assert_eq!(head, bench.git(&["show-ref", "--head"]));
}

#[test]
fn st_13_a_file_changed_in_the_second_of_the_index_is_seen() {
    // Same size and same second: only its content tells it from the index.
    for _ in 0..5 {
        let bench = Bench::new();
        bench.write("changed", "BEFORE\n");
        let commit = bench.stashed();
        assert_eq!(
            bench.git(&["cat-file", "blob", &format!("{commit}:changed")]),
            b"BEFORE\n"
        );
    }
}

#[test]
fn st_13_stashes_of_the_user_are_kept() {
    let bench = Bench::new();
    bench.write("changed", "one\n");
    bench.user_stash("mine one");
    bench.write("changed", "two\n");
    bench.user_stash("mine two");
    let before = bench.git(&["stash", "list", "--format=%H %gs"]);
    work(&bench);
    bench.stashed();
    let mine = ["stash@{1} On main: mine two", "stash@{2} On main: mine one"];
    assert_eq!(bench.entries()[1..], mine);
    let after = String::from_utf8(bench.git(&["stash", "list", "--format=%H %gs"])).unwrap();
    assert!(after.ends_with(&String::from_utf8(before).unwrap()));
    assert_eq!(bench.entries()[0], format!("stash@{{0}} {LABEL}"));
}

#[test]
fn st_13_a_clean_tree_gets_an_entry() {
    let bench = Bench::new();
    bench.write(".git/info/exclude", "ignored\n");
    bench.write("ignored", "x");
    let before = bench.listing();
    let Stash::Clean { commit } = bench.stash() else {
        panic!("not clean")
    };
    assert_eq!(before, bench.listing());
    assert_eq!(bench.entries(), [format!("stash@{{0}} {LABEL}")]);
    assert_eq!(
        bench.git_line(&["rev-parse", &format!("{commit}^{{tree}}")]),
        bench.git_line(&["rev-parse", "HEAD^{tree}"])
    );
    bench.git(&["stash", "apply", "--index"]);
    assert_eq!(bench.git_line(&["status", "--porcelain"]), "");
}

#[test]
fn st_13_a_merely_touched_file_is_not_changed() {
    let bench = Bench::new();
    bench.write("changed", "before\n");
    assert!(matches!(bench.stash(), Stash::Clean { .. }));
}

#[test]
fn st_13_without_a_commit_it_is_impossible() {
    let bench = Bench::empty(&[]);
    bench.write("file", "x");
    bench.git(&["add", "file"]);
    let before = bench.listing();
    let Stash::Impossible { why } = bench.stash() else {
        panic!("possible")
    };
    assert!(why.contains("no commit"), "{why}");
    assert_eq!(before, bench.listing());
}

#[test]
fn st_13_a_detached_head_is_no_obstacle() {
    let bench = Bench::new();
    bench.git(&["checkout", "--quiet", "--detach"]);
    work(&bench);
    let before = bench.listing();
    let commit = bench.stashed();
    assert_eq!(before, bench.listing());
    assert_eq!(
        bench.git_line(&["rev-parse", &format!("{commit}^1")]),
        bench.git_line(&["rev-parse", "HEAD"])
    );
}

#[test]
fn st_13_a_conflict_makes_it_impossible() {
    let bench = Bench::new();
    bench.git(&["checkout", "--quiet", "-b", "other"]);
    bench.write("changed", "theirs\n");
    bench.commit("theirs");
    bench.git(&["checkout", "--quiet", "main"]);
    bench.write("changed", "ours\n");
    bench.commit("ours");
    assert!(
        !bench
            .try_git(&[
                "-c",
                "user.name=U",
                "-c",
                "user.email=u@l",
                "merge",
                "other"
            ])
            .status
            .success()
    );
    assert_eq!(bench.open().in_progress(), ["merge"]);
    let before = bench.listing();
    let Stash::Impossible { why } = bench.stash() else {
        panic!("possible")
    };
    assert!(why.contains("unmerged") && why.contains("changed"), "{why}");
    assert_eq!(before, bench.listing());
    assert!(bench.entries().is_empty());
}

#[test]
fn st_13_a_linked_work_tree_shares_the_stash() {
    let mut bench = Bench::new();
    let main = bench.top.clone();
    let linked = bench.beside("linked");
    bench.git(&[
        "worktree",
        "add",
        "--quiet",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    let main_before = bench.listing();
    bench.top = linked;
    work(&bench);
    let (before, files) = (bench.listing(), bench.files());
    bench.stashed();
    assert_eq!(before, bench.listing());
    bench.git(&["reset", "--quiet", "--hard"]);
    bench.git(&["clean", "-qfd"]);
    bench.git(&["stash", "apply", "--quiet", "--index"]);
    assert_eq!(files, bench.files());
    let _ = std::mem::replace(&mut bench.top, main);
    assert_eq!(bench.entries(), [format!("stash@{{0}} {LABEL}")]);
    let without_linked = |listing: std::collections::BTreeMap<std::path::PathBuf, _>| {
        listing
            .into_iter()
            .filter(|(path, _)| !path.starts_with(".git/worktrees"))
            .collect::<Vec<_>>()
    };
    assert_eq!(without_linked(main_before), without_linked(bench.listing()));
}

#[test]
fn st_13_a_split_index_stays_split() {
    let bench = Bench::new();
    bench.git(&["update-index", "--split-index"]);
    bench.write("staged", "split\n");
    bench.git(&["add", "staged"]);
    work(&bench);
    let contents = |bench: &Bench| {
        let listing = bench.listing().into_iter();
        // Git renews the time of the shared part at every look, to keep it from being pruned.
        let same = listing.filter(|(path, _)| !path.starts_with(".git"));
        same.collect::<Vec<_>>()
    };
    let index = std::fs::read(bench.top.join(".git/index")).unwrap();
    let before = contents(&bench);
    bench.stashed();
    assert_eq!(before, contents(&bench));
    assert_eq!(index, std::fs::read(bench.top.join(".git/index")).unwrap());
}

#[test]
fn st_13_a_sparse_checkout_is_not_taken_for_removals() {
    let bench = Bench::new();
    bench.git(&["sparse-checkout", "set", "--sparse-index", "nothing"]);
    assert!(!bench.top.join("dir").exists());
    bench.write("changed", "x\n");
    let before = bench.listing();
    let commit = bench.stashed();
    assert_eq!(before, bench.listing());
    assert!(bench.names(&commit).contains(&b"dir/deep".to_vec()));
}
