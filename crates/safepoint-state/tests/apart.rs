//! Work that is done apart: a directory of its own, and the way back into the one it
//! was made from.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use safepoint_model::{ActionId, Entropy};
use safepoint_state::path::TreePath;
use safepoint_state::{
    Apart, Errand, FileConflict, Incoming, Isolated, Progress, Resolution, Restored, Side, Sides,
    Snapshot, StateError,
};
use support::{Bench, Place, Recording, Repositories, assert_same, differences, leftovers};
use testkit::Seeded;

/// A directory, and the one that was made from it.
struct Pair<'a> {
    ours: Place<'a>,
    work: Place<'a>,
    isolated: Isolated,
    resolutions: BTreeMap<TreePath, Resolution>,
}

fn errand(seed: u64) -> Errand {
    Errand {
        id: ActionId::generate(&Seeded::new(seed)).unwrap(),
        session: Some("ses_1".to_owned()),
        action: "workspace.integrate".to_owned(),
        summary: "integration of wsp_1".to_owned(),
        decision: "allow".to_owned(),
        left_by: None,
    }
}

fn apart<'a>(bench: &'a Bench, ours: Place<'a>, name: &str) -> Pair<'a> {
    let isolated = bench
        .state
        .isolate(&ours.workspace, name, &Progress::default())
        .unwrap();
    let work = bench.open(isolated.workspace.root.clone());
    Pair {
        ours,
        work,
        isolated,
        resolutions: BTreeMap::new(),
    }
}

impl Pair<'_> {
    fn bring(&self, seed: u64) -> Result<Restored, StateError> {
        let work = self.work.checkpoint().unwrap().snapshot;
        self.bring_from(&work, seed)
    }

    fn bring_from(&self, work: &Snapshot, seed: u64) -> Result<Restored, StateError> {
        let errand = errand(seed);
        let incoming = Incoming {
            base: &self.isolated.base,
            work,
            errand: &errand,
            resolutions: &self.resolutions,
            shown: &BTreeMap::new(),
        };
        let state = &self.ours.bench.state;
        state.bring(&self.ours.workspace, &incoming, &Progress::default())
    }

    /// The conflicts, after making sure that nothing was done.
    #[track_caller]
    fn conflicts(&self) -> Vec<FileConflict> {
        let before = self.ours.record(Repositories::Included);
        let found = match self.bring(900) {
            Err(StateError::Conflict { conflicts }) => conflicts,
            other => panic!("{other:?}"),
        };
        let after = self.ours.record(Repositories::Included);
        assert_same(&before, &after, "nothing is done where there is a conflict");
        assert!(leftovers(&self.ours.top).is_empty());
        found
    }

    fn resolve(&mut self, path: &str, resolution: Resolution) {
        self.resolutions
            .insert(path.as_bytes().to_vec(), resolution);
    }
}

fn contents(recording: &Recording) -> BTreeSet<String> {
    recording.keys().map(|path| support::shown(path)).collect()
}

#[test]
fn pr_07_a_worktree_has_what_the_user_sees_and_leaves_git_alone() {
    let bench = Bench::new(1);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet", "--initial-branch=main"]);
    ours.write(".gitignore", "ignored\n");
    ours.write("kept", "kept\n");
    ours.write("changed", "before\n");
    ours.write("deleted", "x\n");
    ours.write("deep/er/file", "x\n");
    ours.write("tool", "#!/bin/sh\n");
    ours.chmod("tool", 0o755);
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    // A hook that would show itself.
    ours.write(
        ".git/hooks/post-checkout",
        "#!/bin/sh\ntouch \"$HOME/hooked\"\n",
    );
    ours.chmod(".git/hooks/post-checkout", 0o755);
    ours.write("changed", "after\n");
    ours.write("new/file", "untracked\n");
    ours.write("staged", "staged\n");
    ours.git(&["add", "staged"]);
    ours.write("ignored", "ignored\n");
    ours.write(".env", "TOKEN=ghp_012345678901234567890123456789012345\n");
    fs::remove_file(ours.at("deleted")).unwrap();
    symlink("kept", ours.at("link")).unwrap();
    fs::create_dir(ours.at("empty")).unwrap();
    let before = (ours.record(Repositories::Apart), ours.git_recording());
    let pair = apart(&bench, ours, "wsp_a");
    assert_eq!(pair.isolated.how, Apart::Worktree);
    assert!(!pair.work.top.starts_with(&pair.ours.top));
    assert_same(
        &before.0,
        &pair.ours.record(Repositories::Apart),
        "the origin",
    );
    assert_eq!(before.1, pair.ours.git_recording(), "its git state");
    assert!(!bench.root.join("home/hooked").exists());
    let mut wanted = before.0;
    wanted.remove(b"ignored".as_slice());
    wanted.remove(b".env".as_slice());
    let mut found = pair.work.record(Repositories::Apart);
    found.remove(b".git".as_slice());
    // The time of directories moved when they were filled, and that of the root is not looked at.
    assert_eq!(contents(&wanted), contents(&found));
    let told: Vec<String> = differences(&wanted, &found);
    assert!(told.is_empty(), "{told:?}");
    // It is a work tree like any other, on no branch.
    let status = pair.work.git(&["status", "--porcelain"]);
    let mut lines: Vec<&str> = status.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            " D deleted",
            " M changed",
            "?? link",
            "?? new/",
            "?? staged"
        ]
    );
    assert!(
        !pair
            .work
            .try_git(&["symbolic-ref", "HEAD"])
            .status
            .success()
    );
    bench.state.remove_isolated("wsp_a").unwrap_err(); // somebody has it
    let Pair {
        isolated,
        work,
        ours,
        ..
    } = pair;
    drop(isolated);
    bench.state.remove_isolated("wsp_a").unwrap();
    assert!(!work.top.exists());
    assert_eq!(ours.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn pr_07_without_a_repository_it_is_a_copy() {
    let bench = Bench::new(2);
    let ours = bench.place("project");
    ours.write("a\nb", "odd name\n");
    ours.write("deep/read-only", "x\n");
    ours.chmod("deep/read-only", 0o400);
    ours.chmod("deep", 0o750);
    symlink("nowhere", ours.at("link")).unwrap();
    fs::hard_link(ours.at("a\nb"), ours.at("twin")).unwrap();
    fs::create_dir(ours.at("empty")).unwrap();
    support::set_time(&ours.at("a\nb"), (1_000_000_000, 5));
    let before = ours.record(Repositories::Included);
    let pair = apart(&bench, ours, "wsp_b");
    assert_eq!(pair.isolated.how, Apart::Copy);
    assert_same(
        &before,
        &pair.work.record(Repositories::Included),
        "the copy",
    );
    assert_same(
        &before,
        &pair.ours.record(Repositories::Included),
        "the origin",
    );
}

#[test]
fn pr_07_a_repository_without_a_commit_is_copied() {
    let bench = Bench::new(3);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write("a", "a\n");
    let pair = apart(&bench, ours, "wsp_c");
    assert_eq!(pair.isolated.how, Apart::Copy);
    assert_eq!(pair.work.read("a"), b"a\n");
    assert!(!pair.work.at(".git").exists());
}

#[test]
fn pr_07_repositories_inside_come_as_files_and_are_named() {
    let named = |pair: &Pair<'_>| -> Vec<String> {
        let notes = pair.isolated.left_out.iter();
        notes.map(|note| note.path.clone()).collect()
    };
    let bench = Bench::new(44);
    let part = bench.place("part");
    let ours = bench.place("project");
    for place in [&part, &ours] {
        place.git(&["init", "--quiet"]);
        place.write("a", "a\n");
        place.write(".gitignore", "ignored/\n");
        place.git(&["add", "--all"]);
        place.git(&["commit", "--quiet", "--message=first"]);
    }
    let from = part.top.to_str().unwrap();
    ours.git(&["submodule", "--quiet", "add", from, "sub"]);
    for within in ["vendor", "deep/er", "ignored/one"] {
        ours.git(&["clone", "--quiet", from, within]);
    }
    ours.write(".env", "TOKEN=ghp_012345678901234567890123456789012345\n");
    let worktree = apart(&bench, ours, "wsp_r");
    assert_eq!(worktree.isolated.how, Apart::Worktree);
    assert_eq!(named(&worktree), [".env", "deep/er", "sub", "vendor"]);
    let why = &worktree.isolated.left_out[3].why;
    assert!(why.contains("its git state is not"), "{why}");
    for within in ["deep/er", "sub", "vendor"] {
        assert_eq!(worktree.work.read(format!("{within}/a")), b"a\n");
        assert!(!worktree.work.at(format!("{within}/.git")).exists());
    }
    // A folder of repositories, which is none itself.
    let folder = bench.place("folder");
    folder.git(&["clone", "--quiet", from, "one"]);
    folder.git(&["clone", "--quiet", from, "two"]);
    let copy = apart(&bench, folder, "wsp_s");
    assert_eq!(copy.isolated.how, Apart::Copy);
    assert_eq!(named(&copy), ["one", "two"]);
    // One without a commit is a copy without git.
    let empty = bench.place("empty");
    empty.git(&["init", "--quiet"]);
    assert_eq!(named(&apart(&bench, empty, "wsp_t")), ["."]);
}

#[test]
fn pr_07_a_roll_back_of_the_origin_does_not_cut_a_worktree_off() {
    let bench = Bench::new(40);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write("a", "a\n");
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let before = ours.checkpoint().unwrap().snapshot;
    ours.write("a", "b\n");
    let pair = apart(&bench, ours, "wsp_g");
    let restored = pair.ours.roll_back(&before).unwrap();
    assert!(restored.matches, "{:?}", restored.warnings);
    assert_eq!(pair.ours.read("a"), b"a\n");
    assert_eq!(pair.work.git(&["status", "--porcelain"]), " M a\n");
    assert_eq!(pair.ours.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn pr_07_what_nobody_knows_of_is_cleared_and_what_somebody_makes_is_not() {
    let bench = Bench::new(4);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write("a", "a\n");
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let (known, making, orphan) = (
        apart(&bench, bench.open(ours.top.clone()), "wsp_known"),
        apart(&bench, bench.open(ours.top.clone()), "wsp_making"),
        apart(&bench, bench.open(ours.top.clone()), "wsp_orphan"),
    );
    fs::create_dir(orphan.work.at("closed")).unwrap();
    orphan.work.write("closed/file", "x");
    orphan.work.chmod("closed", 0o500);
    let (known_top, orphan_top) = (known.work.top.clone(), orphan.work.top.clone());
    drop((known.isolated, orphan.isolated));
    let mut is_known = |name: &str| Ok::<_, StateError>(name == "wsp_known");
    let removed = bench.state.clear_isolated(&mut is_known).unwrap();
    assert_eq!(removed.len(), 1);
    assert!(known_top.exists() && making.work.top.exists() && !orphan_top.exists());
    let list = ours.git(&["worktree", "list"]);
    assert_eq!(list.lines().count(), 3, "{list}");
}

#[test]
fn pr_32_changes_that_fit_are_put_together_and_undone_together() {
    let bench = Bench::new(5);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    for name in [
        "lines",
        "mode",
        "untouched",
        "deleted by them",
        "both the same",
        "deep/x",
    ] {
        ours.write(name, "1\n2\n3\n4\n5\n");
    }
    symlink("a", ours.at("link")).unwrap();
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let pair = apart(&bench, ours, "wsp_d");
    let (ours, work) = (&pair.ours, &pair.work);
    ours.write("lines", "one\n2\n3\n4\n5\n");
    work.write("lines", "1\n2\n3\n4\nfive\n");
    ours.write("mode", "changed here\n");
    work.chmod("mode", 0o755);
    fs::remove_file(work.at("deleted by them")).unwrap();
    for side in [ours, work] {
        side.write("both the same", "same\n");
        side.write("both made", "same\n");
    }
    ours.write("made here", "x");
    work.write("made\nthere", "y");
    work.write("deep/new/file", "z");
    fs::create_dir(work.at("empty")).unwrap();
    fs::remove_file(work.at("link")).unwrap();
    symlink("b", work.at("link")).unwrap();
    work.git(&["checkout", "--quiet", "-b", "elsewhere"]);
    work.git(&["add", "--all"]);
    work.git(&["commit", "--quiet", "--message=work"]);
    let (before, git) = (
        ours.record(Repositories::Apart),
        ours.git(&["rev-parse", "HEAD"]),
    );
    let restored = pair.bring(1).unwrap();
    assert!(restored.matches, "{:?}", restored.warnings);
    assert_eq!(ours.read("lines"), b"one\n2\n3\n4\nfive\n");
    assert_eq!(ours.read("mode"), b"changed here\n");
    let mode = std::os::unix::fs::MetadataExt::mode(&ours.at("mode").metadata().unwrap());
    assert_eq!(mode & 0o777, 0o755);
    assert!(!ours.at("deleted by them").exists());
    assert_eq!(
        (ours.read("made here"), ours.read("made\nthere")),
        (b"x".to_vec(), b"y".to_vec())
    );
    assert_eq!(ours.read("deep/new/file"), b"z");
    assert!(ours.at("empty").is_dir());
    assert_eq!(fs::read_link(ours.at("link")).unwrap().as_os_str(), "b");
    assert_eq!(ours.git(&["rev-parse", "HEAD"]), git);
    let action = bench.state.find_action(errand(1).id.as_str()).unwrap();
    assert_eq!(
        (action.session.as_deref(), action.action.as_str()),
        (Some("ses_1"), "workspace.integrate")
    );
    ours.without(errand(1).id.as_str(), "undo").unwrap();
    let after = ours.record(Repositories::Apart);
    let left: Vec<String> = differences(&before, &after);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn pr_32_what_cannot_be_merged_is_a_conflict_and_nothing_is_done() {
    type Side = fn(&Place<'_>);
    let cases: [(&str, Side, Side, &[&str]); 14] = [
        (
            "same lines",
            |p| p.write("file", "ours\n"),
            |p| p.write("file", "theirs\n"),
            &["file"],
        ),
        (
            "binary",
            |p| p.write("file", "1\0"),
            |p| p.write("file", "2\0"),
            &["file"],
        ),
        (
            "deleted here",
            |p| fs::remove_file(p.at("file")).unwrap(),
            |p| p.write("file", "theirs\n"),
            &["file"],
        ),
        (
            "deleted there",
            |p| p.write("file", "ours\n"),
            |p| fs::remove_file(p.at("file")).unwrap(),
            &["file"],
        ),
        (
            "both made",
            |p| p.write("new", "a\n"),
            |p| p.write("new", "b\n"),
            &["new"],
        ),
        (
            "modes",
            |p| p.chmod("file", 0o600),
            |p| p.chmod("file", 0o700),
            &["file"],
        ),
        (
            "links",
            |p| {
                fs::remove_file(p.at("link")).unwrap();
                symlink("x", p.at("link")).unwrap();
            },
            |p| {
                fs::remove_file(p.at("link")).unwrap();
                symlink("y", p.at("link")).unwrap();
            },
            &["link"],
        ),
        (
            "a link in the place of a file",
            |p| p.write("file", "ours\n"),
            |p| {
                fs::remove_file(p.at("file")).unwrap();
                symlink("y", p.at("file")).unwrap();
            },
            &["file"],
        ),
        (
            "a file here, a directory there",
            |p| {
                fs::remove_dir_all(p.at("dir")).unwrap();
                p.write("dir", "file now\n");
            },
            |p| p.write("dir/new", "x\n"),
            &["dir"],
        ),
        (
            "a directory here, a file there",
            |p| p.write("dir/new", "x\n"),
            |p| {
                fs::remove_dir_all(p.at("dir")).unwrap();
                p.write("dir", "file now\n");
            },
            &["dir"],
        ),
        (
            "moved there, changed here",
            |p| p.write("file", "ours\n"),
            |p| fs::rename(p.at("file"), p.at("moved")).unwrap(),
            &["file"],
        ),
        (
            "a secret here",
            |p| {
                p.write("new.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQAAACBvbmUgc2VjcmV0IGtleSBmb3IgdGVzdHMgb25seSEhISEhISEAAACI\n-----END OPENSSH PRIVATE KEY-----\n")
            },
            |p| p.write("new.txt", "harmless\n"),
            &["new.txt"],
        ),
        (
            "a cache here",
            |p| p.write("node_modules/x", "cache\n"),
            |p| p.write("node_modules", "a file\n"),
            &["node_modules"],
        ),
        (
            "our own settings",
            |_| {},
            |p| p.write("safepoint.yaml", "exclude: []\n"),
            &["safepoint.yaml"],
        ),
    ];
    let bench = Bench::new(6);
    for (number, (name, here, there, wanted)) in cases.into_iter().enumerate() {
        let ours = bench.place(&format!("project-{number}"));
        ours.write("file", "1\n2\n3\n");
        ours.write("dir/kept", "x\n");
        symlink("a", ours.at("link")).unwrap();
        let mut pair = apart(&bench, ours, &format!("wsp_{number}"));
        here(&pair.ours);
        there(&pair.work);
        let found: Vec<String> = pair
            .conflicts()
            .iter()
            .map(|one| support::shown(&one.path))
            .collect();
        assert_eq!(found, wanted, "{name}");
        // Ours: it stays, and all else is brought.
        let before = pair.ours.record(Repositories::Included);
        pair.resolve(wanted[0], Resolution::Ours);
        pair.bring(1000 + number as u64).unwrap();
        let after = pair.ours.record(Repositories::Included);
        let left: Vec<String> = differences(&before, &after)
            .into_iter()
            .filter(|it| !it.contains("moved"))
            .collect();
        assert!(left.is_empty(), "{name}: {left:?}");
    }
}

#[test]
fn pr_32_a_resolution_says_what_becomes_of_a_path() {
    let bench = Bench::new(7);
    let ours = bench.place("project");
    ours.write("lines", "1\n2\n3\n");
    ours.write("gone", "x\n");
    ours.write("dir/kept", "x\n");
    let mut pair = apart(&bench, ours, "wsp_e");
    pair.ours.write("lines", "1\nours\n3\n");
    pair.work.write("lines", "1\ntheirs\n3\n");
    pair.ours.write("gone", "changed\n");
    fs::remove_file(pair.work.at("gone")).unwrap();
    pair.ours.write("dir/new", "x\n");
    fs::remove_dir_all(pair.work.at("dir")).unwrap();
    pair.work.write("dir", "a file\n");
    let conflicts = pair.conflicts();
    let lines = conflicts.iter().find(|one| one.path == b"lines").unwrap();
    assert_eq!(lines.hunks.len(), 1);
    assert_eq!(
        (
            lines.hunks[0].base.as_slice(),
            lines.hunks[0].ours.as_slice()
        ),
        (&b"2\n"[..], &b"ours\n"[..])
    );
    let work = pair.work.checkpoint().unwrap().snapshot;
    let told = errand(1);
    let incoming = Incoming {
        base: &pair.isolated.base,
        work: &work,
        errand: &told,
        resolutions: &pair.resolutions,
        shown: &BTreeMap::new(),
    };
    let paths = [b"lines".to_vec(), b"gone".to_vec(), b"dir".to_vec()];
    let shown = bench.state.sides(
        &pair.ours.workspace,
        &incoming,
        &paths.each_ref(),
        &Progress::default(),
    );
    let shown = shown.unwrap();
    let content = |side: &Option<Side>| side.as_ref().and_then(|it| it.content.clone());
    let contents = |sides: &Sides| [&sides.base, &sides.ours, &sides.theirs].map(content);
    let texts = |texts: [Option<&str>; 3]| texts.map(|text| text.map(|it| it.as_bytes().to_vec()));
    assert_eq!(
        contents(&shown[0]),
        texts(["1\n2\n3\n", "1\nours\n3\n", "1\ntheirs\n3\n"].map(Some))
    );
    assert_eq!(
        contents(&shown[1]),
        texts([Some("x\n"), Some("changed\n"), None])
    );
    assert_eq!(shown[1].theirs, None);
    let (here, there) = (shown[2].ours.as_ref(), shown[2].theirs.as_ref());
    let (here, there) = (here.unwrap(), there.unwrap());
    assert_eq!((here.kind, there.kind), ("directory", "file"));
    let changed = |side: &Side| {
        let changes = side.changes.iter();
        let named = changes.map(|it| String::from_utf8(it.path.clone()).unwrap());
        named.collect::<Vec<_>>()
    };
    assert_eq!(changed(here), ["dir/new"]);
    assert_eq!(changed(there), ["dir", "dir/kept"]);
    pair.resolve("lines", Resolution::Content(b"1\nboth\n3\n".to_vec()));
    pair.resolve("gone", Resolution::Theirs);
    pair.resolve("dir", Resolution::Theirs);
    let before = pair.ours.record(Repositories::Included);
    let restored = pair.bring(2).unwrap();
    assert!(restored.matches, "{:?}", restored.warnings);
    assert_eq!(pair.ours.read("lines"), b"1\nboth\n3\n");
    assert!(!pair.ours.at("gone").exists());
    assert_eq!(pair.ours.read("dir"), b"a file\n");
    pair.ours.without(errand(2).id.as_str(), "undo").unwrap();
    let left: Vec<String> = differences(&before, &pair.ours.record(Repositories::Included));
    assert!(left.is_empty(), "{left:?}");
}

/// What is below a path, as it is on one side of a directory against a file.
fn against(name: &str, seed: u64, then: impl FnOnce(Pair<'_>)) {
    let bench = Bench::new(seed);
    let ours = bench.place("project");
    for file in ["dir/kept", "dir/deep/kept", "other/kept"] {
        ours.write(file, "old\n");
    }
    let pair = apart(&bench, ours, name);
    then(pair);
}

#[test]
fn pr_32_paths_that_contain_each_other_are_one_conflict_and_decided_together() {
    let decisions = [
        (Resolution::Ours, None),
        (Resolution::Theirs, Some("a file\n")),
        (Resolution::Content(b"both\n".to_vec()), Some("both\n")),
    ];
    for (seed, (resolution, becomes)) in (60..).zip(decisions) {
        against("wsp_n", seed, |mut pair| {
            pair.ours.write("dir/kept", "changed\n");
            pair.ours.write("dir/deep/new", "new\n");
            fs::remove_dir_all(pair.work.at("dir")).unwrap();
            pair.work.write("dir", "a file\n");
            let found = pair.conflicts();
            let named: Vec<&[u8]> = found.iter().map(|one| one.path.as_slice()).collect();
            assert_eq!(named, [b"dir"]);
            assert_eq!(found[0].below, Some(vec![b"dir/kept".to_vec()]));
            pair.resolve("dir", resolution);
            // What was said of something below it does not count any more.
            pair.resolve("dir/kept", Resolution::Theirs);
            pair.bring(2).unwrap();
            match becomes {
                Some(text) => assert_eq!(pair.ours.read("dir"), text.as_bytes()),
                None => assert_eq!(pair.ours.read("dir/kept"), b"changed\n"),
            }
        });
    }
}

#[test]
fn pr_32_a_directory_of_the_work_against_a_file_here_is_decided_as_a_whole() {
    let decisions = [
        (Resolution::Ours, Some("a file\n")),
        (Resolution::Theirs, None),
        (Resolution::Content(b"both\n".to_vec()), Some("both\n")),
    ];
    for (seed, (resolution, becomes)) in (70..).zip(decisions) {
        against("wsp_o", seed, |mut pair| {
            fs::remove_dir_all(pair.ours.at("dir")).unwrap();
            pair.ours.write("dir", "a file\n");
            pair.work.write("dir/kept", "changed\n");
            pair.work.write("dir/deep/new", "new\n");
            let found = pair.conflicts();
            let named: Vec<&[u8]> = found.iter().map(|one| one.path.as_slice()).collect();
            assert_eq!(named, [b"dir"]);
            pair.resolve("dir", resolution);
            pair.bring(2).unwrap();
            match becomes {
                Some(text) => assert_eq!(pair.ours.read("dir"), text.as_bytes()),
                None => {
                    assert_eq!(pair.ours.read("dir/kept"), b"changed\n");
                    assert_eq!(pair.ours.read("dir/deep/new"), b"new\n");
                    assert_eq!(pair.ours.read("dir/deep/kept"), b"old\n");
                }
            }
        });
    }
}

#[test]
fn pr_32_the_mode_of_a_directory_is_decided_without_what_is_in_it() {
    use std::os::unix::fs::PermissionsExt;
    for (seed, (resolution, mode)) in
        (80..).zip([(Resolution::Ours, 0o700), (Resolution::Theirs, 0o750)])
    {
        against("wsp_p", seed, |mut pair| {
            let set = |side: &Place<'_>, mode| {
                fs::set_permissions(side.at("dir"), fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&pair.ours, 0o700);
            set(&pair.work, 0o750);
            pair.ours.write("dir/kept", "changed\n");
            pair.work.write("dir/deep/kept", "changed too\n");
            assert_eq!(pair.conflicts()[0].below, None);
            pair.resolve("dir", resolution);
            pair.bring(2).unwrap();
            let found = fs::metadata(pair.ours.at("dir")).unwrap().permissions();
            assert_eq!(found.mode() & 0o777, mode);
            assert_eq!(pair.ours.read("dir/kept"), b"changed\n");
            assert_eq!(pair.ours.read("dir/deep/kept"), b"changed too\n");
        });
    }
}

#[test]
fn pr_32_what_git_ignores_is_left_to_each_side() {
    let bench = Bench::new(41);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write(".gitignore", "*.o\n/out/\n");
    ours.write("forced.o", "tracked\n");
    ours.git(&["add", "--all", "--force"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    ours.write("mine.o", "ours\n");
    ours.write("out/a", "ours\n");
    let pair = apart(&bench, ours, "wsp_h");
    assert!(!pair.work.at("out").exists() && !pair.work.at("mine.o").exists());
    for (name, text) in [
        ("mine.o", "theirs\n"),
        ("out/a", "theirs\n"),
        ("out/b", "x\n"),
        ("new\nname.o", "x\n"),
        ("source", "x\n"),
        ("forced.o", "changed\n"),
    ] {
        pair.work.write(name, text);
    }
    let restored = pair.bring(1).unwrap();
    assert!(
        restored.matches && restored.warnings.iter().any(|told| told.contains("mine.o")),
        "{:?}",
        restored.warnings
    );
    assert_eq!(
        (pair.ours.read("mine.o"), pair.ours.read("out/a")),
        (b"ours\n".to_vec(), b"ours\n".to_vec())
    );
    assert!(!pair.ours.at("out/b").exists() && !pair.ours.at("new\nname.o").exists());
    assert_eq!(
        (pair.ours.read("source"), pair.ours.read("forced.o")),
        (b"x\n".to_vec(), b"changed\n".to_vec())
    );
}

#[test]
fn pr_32_what_is_in_a_submodule_is_named_and_left_out() {
    let bench = Bench::new(42);
    let part = bench.place("part");
    part.git(&["init", "--quiet"]);
    part.write("inside", "1\n");
    part.git(&["add", "--all"]);
    part.git(&["commit", "--quiet", "--message=part"]);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    let from = part.top.to_str().unwrap();
    ours.git(&["submodule", "--quiet", "add", from, "sub"]);
    ours.write("plain", "1\n");
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let pair = apart(&bench, ours, "wsp_i");
    pair.work.write("sub/inside", "2\n");
    pair.work.write("sub/new", "2\n");
    pair.work.write("plain", "2\n");
    let restored = pair.bring(1).unwrap();
    for path in ["sub/inside", "sub/new"] {
        let told = |told: &String| told.contains(path) && told.contains("submodule");
        assert!(restored.warnings.iter().any(told), "{restored:?}");
    }
    assert_eq!(pair.ours.read("sub/inside"), b"1\n");
    assert!(!pair.ours.at("sub/new").exists());
    assert_eq!(pair.ours.read("plain"), b"2\n");
}

#[test]
fn pr_32_what_lies_beyond_a_link_is_a_conflict_and_not_an_error_of_git() {
    let bench = Bench::new(43);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write("d/old", "1\n");
    ours.write("e/old", "1\n");
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let pair = apart(&bench, ours, "wsp_j");
    pair.work.write("d/new", "theirs\n");
    fs::remove_dir_all(pair.ours.at("d")).unwrap();
    symlink("e", pair.ours.at("d")).unwrap();
    let found = pair.conflicts();
    assert!(found.iter().any(|one| one.path == b"d"), "{found:?}");
    // And the other way about: the work made a link of a directory.
    fs::remove_dir_all(pair.work.at("e")).unwrap();
    symlink("d", pair.work.at("e")).unwrap();
    fs::remove_file(pair.ours.at("d")).unwrap();
    pair.ours.write("d/old", "1\n");
    assert!(pair.bring(1).unwrap().matches);
    assert!(pair.ours.at("e").is_symlink());
    assert_eq!(pair.ours.read("d/new"), b"theirs\n");
}

#[test]
fn pr_32_names_that_are_no_text_are_brought() {
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new(44);
    let ours = bench.place("project");
    ours.git(&["init", "--quiet"]);
    ours.write("a", "1\n");
    ours.git(&["add", "--all"]);
    ours.git(&["commit", "--quiet", "--message=first"]);
    let pair = apart(&bench, ours, "wsp_k");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    pair.work.write(name, "x\n");
    assert!(pair.bring(1).unwrap().matches);
    assert_eq!(pair.ours.read(name), b"x\n");
}

#[test]
fn pr_32_links_that_lead_out_are_brought_and_named() {
    let bench = Bench::new(45);
    let ours = bench.place("project");
    ours.write("deep/a", "1\n");
    let pair = apart(&bench, ours, "wsp_l");
    symlink("/etc/hostname", pair.work.at("absolute")).unwrap();
    symlink("../../elsewhere", pair.work.at("deep/relative")).unwrap();
    symlink("../deep/a", pair.work.at("deep/inside")).unwrap();
    let restored = pair.bring(1).unwrap();
    let out: Vec<&String> = restored
        .warnings
        .iter()
        .filter(|told| told.contains("leads out"))
        .collect();
    let [absolute, relative] = out.as_slice() else {
        panic!("{restored:?}")
    };
    assert!(absolute.contains("`absolute`") && absolute.contains("/etc/hostname"));
    assert!(relative.contains("`deep/relative`"));
    assert!(restored.matches && pair.ours.at("absolute").is_symlink());
}

#[test]
fn pr_32_a_secret_that_the_work_made_is_told_and_not_brought() {
    let bench = Bench::new(8);
    let ours = bench.place("project");
    ours.write("config", "plain\n");
    let pair = apart(&bench, ours, "wsp_f");
    pair.work.write(".env", "TOKEN=x\n");
    pair.work.write("ok", "ok\n");
    let restored = pair.bring(1).unwrap();
    assert!(
        restored.warnings.iter().any(|told| told.contains(".env")),
        "{:?}",
        restored.warnings
    );
    assert!(!pair.ours.at(".env").exists() && pair.ours.at("ok").exists());
}

/// A number below `end`.
fn below(random: &Seeded, end: usize) -> usize {
    let mut bytes = [0; 8];
    random.fill(&mut bytes).unwrap();
    usize::try_from(u64::from_le_bytes(bytes) % end as u64).unwrap()
}

/// Twelve lines.
fn lines() -> String {
    (0..12).map(|line| format!("{line}\n")).collect()
}

/// The same with a line or two changed, added or taken away.
fn edited(random: &Seeded, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(|line| format!("{line}\n")).collect();
    for _ in 0..=below(random, 2) {
        let at = below(random, lines.len().max(1)).min(lines.len());
        match below(random, 3) {
            0 => lines.insert(at, format!("new {}\n", below(random, 2))),
            1 if at < lines.len() => drop(lines.remove(at)),
            _ if at < lines.len() => lines[at] = format!("changed {}\n", below(random, 2)),
            _ => {}
        }
    }
    lines.concat()
}

const NAMES: [&str; 6] = ["a", "b", "c/d", "c/e", "c/f/g", "h"];

/// Changes some files of a side.
fn disturb(random: &Seeded, side: &Place<'_>) {
    for name in NAMES {
        let path = side.at(name);
        match below(random, 24) {
            0 => drop(fs::remove_file(&path)),
            // Something else may stand above it by now.
            1..=12 if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                fs::write(&path, edited(random, &text)).unwrap();
            }
            13 if name.contains('/') => {
                let parent = path.parent().unwrap().to_owned();
                drop(fs::remove_dir_all(&parent));
                drop(fs::write(&parent, "a file\n"));
            }
            _ => {}
        }
    }
}

/// What is in a side, files and directories.
fn files(side: &Place<'_>) -> BTreeMap<String, Option<Vec<u8>>> {
    let recording = side.record(Repositories::Included);
    let kept = |path: &&Vec<u8>| !path.starts_with(b".checkpoints") && !path.starts_with(b".audit");
    recording
        .keys()
        .filter(kept)
        .map(|path| {
            let name = String::from_utf8(path.clone()).unwrap();
            let at = side.at(&name);
            (name, at.is_file().then(|| fs::read(&at).unwrap()))
        })
        .collect()
}

/// What git makes of three contents; `None` for a conflict.
fn git_merges(bench: &Bench, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    for (name, content) in [("base", base), ("ours", ours), ("theirs", theirs)] {
        fs::write(bench.root.join(name), content).unwrap();
    }
    let output = Command::new("git")
        .args(["merge-file", "-p", "--diff3", "ours", "base", "theirs"])
        .current_dir(&bench.root)
        .output()
        .unwrap();
    output.status.success().then_some(output.stdout)
}

#[test]
fn pr_32_random_sides_merge_as_git_merges_and_come_back_exactly() {
    let bench = Bench::new(9);
    let cases: u64 = std::env::var("SAFEPOINT_CASES").map_or(60, |text| text.parse().unwrap());
    let (mut clean, mut conflicted, mut merged) = (0, 0, 0);
    for seed in 0..cases {
        let random = Seeded::new(seed);
        let ours = bench.place(&format!("project-{seed}"));
        for name in NAMES {
            ours.write(name, lines());
        }
        let pair = apart(&bench, ours, &format!("wsp_{seed}"));
        disturb(&random, &pair.ours);
        disturb(&random, &pair.work);
        let (mine, theirs) = (files(&pair.ours), files(&pair.work));
        let then = {
            // The base is what the snapshot has: read it from a place of its own.
            let place = bench.place(&format!("base-{seed}"));
            place.roll_back(&pair.isolated.base).unwrap();
            files(&place)
        };
        let before = pair.ours.record(Repositories::Included);
        match pair.bring(seed) {
            Err(StateError::Conflict { conflicts }) => {
                conflicted += 1;
                assert!(!conflicts.is_empty());
                let after = pair.ours.record(Repositories::Included);
                assert_same(&before, &after, &format!("seed {seed}: a conflict"));
                for conflict in conflicts.iter().filter(|one| !one.hunks.is_empty()) {
                    let at = String::from_utf8(conflict.path.clone()).unwrap();
                    let of =
                        |side: &BTreeMap<String, Option<Vec<u8>>>| side.get(&at).cloned().flatten();
                    let base = of(&then).unwrap_or_default();
                    let git = git_merges(&bench, &base, &of(&mine).unwrap(), &of(&theirs).unwrap());
                    assert_eq!(git, None, "seed {seed}: {at}");
                }
            }
            Ok(restored) => {
                clean += 1;
                assert!(restored.matches, "seed {seed}: {:?}", restored.warnings);
                let now = files(&pair.ours);
                let names: BTreeSet<&String> = then
                    .keys()
                    .chain(mine.keys())
                    .chain(theirs.keys())
                    .collect();
                for name in names {
                    let (b, o, t) = (then.get(name), mine.get(name), theirs.get(name));
                    // Directories come and go with what is in them.
                    if [b, o, t].contains(&Some(&None)) {
                        continue;
                    }
                    let wanted = match (b, o, t) {
                        _ if o == t || b == t => o.cloned(),
                        _ if b == o => t.cloned(),
                        (Some(Some(b)), Some(Some(o)), Some(Some(t))) => {
                            merged += 1;
                            Some(Some(git_merges(&bench, b, o, t).unwrap()))
                        }
                        _ => panic!("seed {seed}: {name} should have been a conflict"),
                    };
                    assert_eq!(now.get(name), wanted.as_ref(), "seed {seed}: {name}");
                }
                pair.ours.without(errand(seed).id.as_str(), "undo").unwrap();
                let left: Vec<String> =
                    differences(&before, &pair.ours.record(Repositories::Included));
                assert!(left.is_empty(), "seed {seed}: {left:?}");
            }
            Err(error) => panic!("seed {seed}: {error:?}"),
        }
        assert!(leftovers(&pair.ours.top).is_empty());
    }
    // A test in which nothing of interest happens proves nothing.
    assert!(
        clean > 5 && conflicted > 5 && merged > 5,
        "{clean} {conflicted} {merged}"
    );
}
