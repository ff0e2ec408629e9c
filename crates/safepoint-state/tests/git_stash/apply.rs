//! Plain git brings back what the entry holds.

use std::os::unix::fs::symlink;

use crate::support::Bench;
use crate::untouched::work;

/// Stashes, throws everything away, applies, and compares.
fn round_trip(bench: &Bench) {
    let status = ["status", "--porcelain=v2", "--untracked-files=all"];
    let (files, before) = (bench.files(), bench.git_line(&status));
    bench.stashed();
    assert_eq!(bench.git_line(&status), before);
    bench.git(&["reset", "--quiet", "--hard"]);
    bench.git(&["clean", "-qfd"]);
    bench.git(&["stash", "apply", "--quiet", "--index", "stash@{0}"]);
    assert_eq!(files, bench.files());
    assert_eq!(bench.git_line(&status), before);
}

#[test]
fn st_13_plain_git_restores_everything() {
    let bench = Bench::new();
    work(&bench);
    round_trip(&bench);
}

#[test]
fn st_13_a_sha256_repository_is_restored() {
    let bench = Bench::empty(&["--object-format=sha256"]);
    for name in ["kept", "changed", "staged", "removed"] {
        bench.write(name, "before\n");
    }
    bench.commit("first");
    work(&bench);
    round_trip(&bench);
    assert_eq!(bench.open().head().commit().unwrap().len(), 64);
}

#[test]
fn st_13_a_file_that_is_no_longer_tracked_is_restored() {
    let bench = Bench::new();
    bench.git(&["rm", "--quiet", "--cached", "changed"]);
    bench.write("changed", "still here\n");
    round_trip(&bench);
}

#[test]
fn st_13_files_and_directories_change_places() {
    let bench = Bench::new();
    std::fs::remove_file(bench.top.join("changed")).unwrap();
    bench.write("changed/inner", "x\n");
    std::fs::remove_dir_all(bench.top.join("dir")).unwrap();
    bench.write("dir", "a file now\n");
    round_trip(&bench);
}

#[test]
fn st_13_what_lies_behind_a_link_is_not_taken() {
    let bench = Bench::new();
    bench.write("elsewhere/deep", "before\n");
    bench.commit("elsewhere");
    std::fs::remove_dir_all(bench.top.join("dir")).unwrap();
    symlink("elsewhere", bench.top.join("dir")).unwrap();
    bench.git(&["add", "--all"]);
    round_trip(&bench);
}

#[test]
fn st_13_an_intended_addition_is_in_the_work_tree() {
    let bench = Bench::new();
    bench.write("intended", "x\n");
    bench.git(&["add", "--intent-to-add", "intended"]);
    let commit = bench.stashed();
    assert!(bench.names(&commit).contains(&b"intended".to_vec()));
    assert!(
        !bench
            .names(&format!("{commit}^2"))
            .contains(&b"intended".to_vec())
    );
}

#[test]
fn st_13_a_submodule_is_a_link_to_its_commit() {
    let inner = Bench::new();
    let bench = Bench::new();
    bench.git(&[
        "submodule",
        "--quiet",
        "add",
        inner.top.to_str().unwrap(),
        "sub",
    ]);
    bench.commit("submodule");
    bench.git(&[
        "-C",
        "sub",
        "-c",
        "user.name=U",
        "-c",
        "user.email=u@l",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    ]);
    bench.write("sub/untracked", "NOT-TAKEN\n");
    bench.write("changed", "x\n");
    let before = bench.listing();
    let commit = bench.stashed();
    assert_eq!(before, bench.listing());
    let inside = bench.git_line(&["-C", "sub", "rev-parse", "HEAD"]);
    assert_eq!(
        bench.git_line(&["rev-parse", &format!("{commit}:sub")]),
        inside
    );
    assert!(!crate::support::contains(&bench.objects(), "NOT-TAKEN"));
}

#[test]
fn st_13_inside_a_submodule_it_works_too() {
    let inner = Bench::new();
    let mut bench = Bench::new();
    bench.git(&[
        "submodule",
        "--quiet",
        "add",
        inner.top.to_str().unwrap(),
        "sub",
    ]);
    bench.commit("submodule");
    bench.top = bench.top.join("sub");
    work(&bench);
    round_trip(&bench);
    assert!(bench.open().git_dir().ends_with(".git/modules/sub"));
}

#[test]
fn st_13_a_nested_repository_is_not_descended() {
    let bench = Bench::new();
    bench.git(&["init", "--quiet", "nested"]);
    bench.write("nested/file", "NOT-TAKEN\n");
    bench.write("changed", "x\n");
    bench.stashed();
    assert!(!crate::support::contains(&bench.objects(), "NOT-TAKEN"));
}
