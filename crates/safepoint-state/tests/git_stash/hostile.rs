//! Programs that a configuration names are never run, and refusals are clear.

use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;

use safepoint_state::git::stash::{self, Stash};
use safepoint_state::git::{Git, GitError};

use crate::support::{Bench, LABEL, path};
use crate::untouched::work;

/// A program that leaves a mark when it is run.
fn trap(bench: &Bench) -> (String, PathBuf) {
    let (program, mark) = (bench.beside("trap"), bench.beside("sprung"));
    fs::write(
        &program,
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display()),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    (program.to_str().unwrap().to_owned(), mark)
}

#[test]
fn st_13_no_configured_program_is_run() {
    let bench = Bench::new();
    bench.write(
        ".gitattributes",
        "changed filter=evil diff=evil merge=evil\nstaged filter=a=b\nuntracked filter=long\n",
    );
    bench.commit("attributes");
    work(&bench);
    bench.write("untracked", "x\n");
    let (trap, mark) = trap(&bench);
    let hooks = bench.beside("hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in [
        "post-index-change",
        "reference-transaction",
        "pre-commit",
        "post-checkout",
        "fsmonitor-watchman",
    ] {
        fs::copy(&trap, hooks.join(hook)).unwrap();
        fs::copy(&trap, bench.top.join(".git/hooks").join(hook)).unwrap();
    }
    for key in [
        "core.fsmonitor",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.a=b.clean",
        "filter.long.process",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "merge.evil.driver",
        "gpg.program",
        "gpg.ssh.program",
        "core.pager",
        "pager.stash",
        "pager.status",
        "core.editor",
        "core.sshCommand",
        "credential.helper",
        "core.askPass",
        "sequence.editor",
        "core.alternateRefsCommand",
    ] {
        bench.git(&["config", key, &trap]);
    }
    for key in [
        "commit.gpgSign",
        "tag.gpgSign",
        "log.showSignature",
        "filter.evil.required",
        "filter.long.required",
        "filter.a=b.required",
    ] {
        bench.git(&["config", key, "true"]);
    }
    bench.git(&["config", "core.hooksPath", hooks.to_str().unwrap()]);
    let _ = fs::remove_file(&mark);
    let before = bench.listing();
    let commit = bench.stashed();
    let (git, repository) = (bench.runner(), bench.open());
    assert_eq!(stash::find(&git, &repository, &commit).unwrap(), Some(0));
    repository.run(&git, &["diff"], b"").unwrap();
    assert!(stash::drop_labelled(&git, &repository, LABEL).unwrap());
    assert_eq!(before, bench.listing());
    let sprung = fs::read_to_string(&mark).unwrap_or_default();
    assert_eq!(sprung, "");
    // The trap works: plain git runs it.
    bench.try_git(&["status"]);
    assert!(mark.exists());
}

#[test]
fn fe_01_a_filter_that_is_configured_since_the_filters_were_listed_is_not_run() {
    let bench = Bench::new();
    let (git, repository) = (bench.runner(), bench.open());
    // Now it is known which filters there are.
    repository.run(&git, &["diff"], b"").unwrap();
    let (trap, mark) = trap(&bench);
    bench.write(".gitattributes", "changed filter=late diff=late\n");
    bench.write("changed", "after!\n");
    for key in ["filter.late.clean", "diff.late.textconv", "core.fsmonitor"] {
        bench.git(&["config", key, &trap]);
    }
    let _ = fs::remove_file(&mark);
    let differ = ["diff", "--textconv", "--name-only", "HEAD"];
    let _ = repository.run(&git, &differ, b"");
    let _ = stash::create(&git, &repository, LABEL, &|_| false, &|_| true);
    assert!(!mark.exists());
    // The trap works: plain git runs it.
    bench.try_git(&["diff", "--name-only", "HEAD"]);
    assert!(mark.exists());
}

#[test]
fn st_13_a_filter_of_a_submodule_is_not_run() {
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
    let (trap, mark) = trap(&bench);
    bench.write("sub/.gitattributes", "* filter=evil\n");
    bench.git(&["-C", "sub", "config", "filter.evil.clean", &trap]);
    bench.git(&["-C", "sub", "config", "core.fsmonitor", &trap]);
    bench.write("sub/changed", "BEFORE\n");
    let _ = fs::remove_file(&mark);
    assert!(matches!(bench.stash(), Stash::Clean { .. }));
    assert!(!mark.exists());
}

#[test]
fn st_13_a_program_in_the_work_tree_is_not_found() {
    assert!(Git::find(None, Vec::new()).is_none());
    assert!(Git::find(Some("relative:.:".as_ref()), Vec::new()).is_none());
    let git = Git::find(Some(&path()), vec![("TOKEN".into(), "SECRET".into())]).unwrap();
    assert!(git.program().is_absolute());
    assert!(!format!("{git:?}").contains("SECRET"));
}

#[test]
fn st_13_a_repository_of_somebody_else_is_refused_clearly() {
    let bench = Bench::new();
    // Only root can give files away.
    if chown(&bench.top, Some(12345), None).is_err() {
        return;
    }
    chown(bench.top.join(".git"), Some(12345), None).unwrap();
    let error = bench
        .stash_choosing(LABEL, &|_| false, &|_| true)
        .unwrap_err();
    assert!(matches!(error, GitError::Untrusted { .. }), "{error}");
    assert!(error.to_string().contains("safe.directory"), "{error}");
}

#[test]
fn st_13_a_broken_index_is_refused_clearly() {
    let bench = Bench::new();
    bench.write(".git/index", "no index");
    let error = bench
        .stash_choosing(LABEL, &|_| false, &|_| true)
        .unwrap_err();
    assert!(matches!(error, GitError::Failed { .. }), "{error}");
    assert!(error.to_string().starts_with("git status "), "{error}");
    assert!(bench.entries().is_empty());
}

#[test]
fn st_13_a_file_that_cannot_be_read_is_named() {
    let bench = Bench::new();
    bench.write("closed", "x");
    bench.set_mode("closed", 0o000);
    // Root reads it all the same.
    match bench.stash_choosing(LABEL, &|_| false, &|_| true) {
        Ok(made) => assert!(matches!(made, Stash::Made { .. })),
        Err(error) => assert!(error.to_string().contains("closed"), "{error}"),
    }
    assert!(!bench.top.join(".git/refs/safepoint").exists());
}
