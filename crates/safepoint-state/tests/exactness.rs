//! Every row of the comparison with other tools, each able to fail.
//!
//! In each row a workspace is checkpointed, something is done to it, and it is
//! rolled back; then it must be what it was in every respect, whatever the row
//! is about. `docs/exactness.md` is made from the rows.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use safepoint_state::seal::Identity;
use safepoint_state::{Origin, Restored, Selection, Snapshot, StateError};
use support::{
    Bench, Kind, Place, Recording, Repositories, assert_same, leftovers, make_pipe, set_attribute,
    set_time, time_of,
};

/// Makes a test of each row, and the table of all of them.
macro_rules! rows {
    ($($(#[doc = $what:literal])+ fn $name:ident($place:ident) $body:block)*) => {
        type Row = (&'static str, &'static str, fn(&Place<'_>));
        const ROWS: &[Row] = &[$((stringify!($name), concat!($($what),+), rows::$name)),*];

        mod rows {
            use super::*;
            $(pub(super) fn $name($place: &Place<'_>) $body)*
        }

        $(#[test]
        fn $name() {
            let bench = Bench::new(30);
            rows::$name(&bench.place("workspace"));
        })*
    };
}

/// A repository with a bit of everything in it, staged, changed and ignored.
fn fill(place: &Place<'_>) {
    place.git(&["init", "--quiet", "--initial-branch=main"]);
    place.write(".gitignore", "build/\n*.o\n");
    place.write("a.txt", "one\ntwo\nthree\n");
    place.write("src/b.c", "int main() { return 0; }\n");
    place.write("src/deep/er/c.c", "c\n");
    place.write("run.sh", "#!/bin/sh\n");
    place.chmod("run.sh", 0o755);
    symlink("a.txt", place.at("link")).unwrap();
    place.git(&["add", "--all"]);
    place.git(&["commit", "--quiet", "--message=first"]);
    place.write("src/b.c", "int main() { return 1; }\n");
    place.git(&["add", "src/b.c"]);
    place.write("a.txt", "one\n2\nthree\n");
    place.write("untracked.txt", "untracked\n");
    place.write("build/out.o", "\0object\0");
    fs::create_dir(place.at("empty")).unwrap();
}

/// What a workspace was at a checkpoint.
struct Point {
    snapshot: Snapshot,
    files: Recording,
    git: Vec<(String, String)>,
}

fn point(place: &Place<'_>) -> Point {
    let files = place.record(Repositories::Apart);
    let git = place.git_recording();
    let made = place.checkpoint_as(Origin::Asked, &[]).unwrap();
    Point {
        snapshot: made.snapshot,
        files,
        git,
    }
}

/// Rolls back, and everything is as it was.
#[track_caller]
fn back(place: &Place<'_>, point: &Point) -> Restored {
    let done = place.roll_back(&point.snapshot).unwrap();
    let found = place.record(Repositories::Apart);
    assert_same(&point.files, &found, "after the roll back");
    assert_eq!(point.git, place.git_recording(), "git after the roll back");
    assert!(done.matches, "{:?}", done.warnings);
    let left = leftovers(&place.top);
    assert!(left.is_empty(), "{left:?}");
    place.bench.state.verify(&point.snapshot).unwrap();
    done
}

/// Checkpoint, damage, roll back, compare.
#[track_caller]
fn round(place: &Place<'_>, damage: impl FnOnce()) {
    let point = point(place);
    damage();
    let damaged = (place.record(Repositories::Apart), place.git_recording());
    assert!(
        damaged.0 != point.files || damaged.1 != point.git,
        "the row damages nothing"
    );
    back(place, &point);
}

fn remove(place: &Place<'_>, name: &str) {
    fs::remove_file(place.at(name)).unwrap();
}

/// A name with any bytes.
fn name(bytes: &[u8]) -> std::ffi::OsString {
    std::ffi::OsString::from_vec(bytes.to_vec())
}

/// A file of this name is damaged, deleted and made later, each in turn.
fn with_name(place: &Place<'_>, odd: &[u8]) {
    fill(place);
    let odd = name(odd);
    let mut inside = name(b"dir ");
    inside.push(&odd);
    inside.push("/");
    inside.push(&odd);
    place.write(&odd, "named\n");
    place.write(&inside, "deeper\n");
    place.git(&["add", "--all"]);
    round(place, || place.write(&odd, "other\n"));
    round(place, || fs::remove_file(place.at(&odd)).unwrap());
    round(place, || {
        fs::remove_dir_all(place.at(&inside).parent().unwrap()).unwrap();
    });
    let mut later = name(b"later ");
    later.push(&odd);
    round(place, || place.write(&later, "later\n"));
    assert!(place.at(&later).symlink_metadata().is_err());
}

/// A repository in the repository, with a commit of its own.
fn nest(place: &Place<'_>) {
    fill(place);
    place.git(&["init", "--quiet", "--initial-branch=inner", "sub"]);
    place.write("sub/tracked", "inner\n");
    place.git(&["-C", "sub", "add", "--all"]);
    place.git(&["-C", "sub", "commit", "--quiet", "--message=inner"]);
}

fn nested(place: &Place<'_>) -> Vec<String> {
    [
        &["status", "--porcelain=v2", "--branch"][..],
        &["log", "--format=%H %s", "--all"],
        &["diff"],
        &["diff", "--cached"],
        &["symbolic-ref", "HEAD"],
        &["fsck", "--no-dangling", "--no-progress"],
    ]
    .into_iter()
    .map(|command| place.git(&[&["--no-optional-locks", "-C", "sub"], command].concat()))
    .collect()
}

/// The same edit, without a trace in size and time.
fn edit_quietly(path: &Path, content: &str) {
    let time = time_of(path);
    let size = fs::metadata(path).unwrap().len();
    assert_eq!(size, content.len() as u64);
    fs::write(path, content).unwrap();
    set_time(path, time);
    assert_eq!(time_of(path), time);
}

rows! {
    /// Changed files, staged, unstaged and untracked, have their bytes back.
    fn st_30_row_modified(place) {
        fill(place);
        round(place, || {
            for name in ["a.txt", "src/b.c", "src/deep/er/c.c", "untracked.txt", "run.sh"] {
                place.write(name, format!("{name} is changed\n"));
            }
        });
    }

    /// Deleted files and whole directories are there again.
    fn st_30_row_deleted(place) {
        fill(place);
        round(place, || {
            remove(place, "a.txt");
            remove(place, "untracked.txt");
            fs::remove_dir_all(place.at("src")).unwrap();
        });
    }

    /// Files and directories made since are gone, and are listed in the reply.
    fn st_30_row_created_later_removed(place) {
        fill(place);
        let point = point(place);
        place.write("new.txt", "new\n");
        place.write("newdir/x/y.txt", "new\n");
        fs::create_dir_all(place.at("newdir/empty/also")).unwrap();
        symlink("nowhere", place.at("newdir/link")).unwrap();
        let done = back(place, &point);
        let listed: Vec<_> = done.changes.iter().map(|change| change.path.clone()).collect();
        for name in ["new.txt", "newdir", "newdir/x/y.txt", "newdir/empty/also", "newdir/link"] {
            assert!(listed.contains(&name.as_bytes().to_vec()), "{name}");
        }
    }

    /// Files that git does not track come back, changed or deleted.
    fn st_30_row_untracked_restored(place) {
        fill(place);
        place.write("notes/deep/other.txt", "untracked too\n");
        round(place, || {
            place.write("untracked.txt", "changed\n");
            fs::remove_dir_all(place.at("notes")).unwrap();
        });
    }

    /// Ignored files come back; a secret (`.env`) comes back when it was sealed,
    /// and is otherwise named in a warning and never touched.
    fn st_30_row_ignored_restored(place) {
        fill(place);
        place.write(".gitignore", "build/\n.env\n");
        round(place, || fs::remove_dir_all(place.at("build")).unwrap());
        place.write(".env", "TOKEN=secret\n");
        place.chmod(".env", 0o640);
        set_time(&place.at(".env"), (1_600_000_000, 7));
        // Not sealed: it is named, and what has become of it stays.
        let made = place.checkpoint_as(Origin::Asked, &[]).unwrap();
        assert!(made.warnings.iter().any(|warning| warning.contains(".env")), "{made:?}");
        place.write(".env", "TOKEN=other\n");
        place.roll_back(&made.snapshot).unwrap();
        assert_eq!(place.read(".env"), b"TOKEN=other\n");
        // Sealed: it comes back, with mode and time.
        place.write(".env", "TOKEN=secret\n");
        set_time(&place.at(".env"), (1_600_000_000, 7));
        let wanted = place.record(Repositories::Apart);
        let operator = Identity::generate();
        let made = place.checkpoint_as(Origin::Asked, &[operator.recipient()]).unwrap();
        for damage in [true, false] {
            match damage {
                true => place.write(".env", "TOKEN=changed\n"),
                false => remove(place, ".env"),
            }
            place.roll_back_with(&made.snapshot, std::slice::from_ref(&operator)).unwrap();
            assert_same(&wanted, &place.record(Repositories::Apart), "sealed");
        }
    }

    /// Ignored files made since are gone.
    fn st_30_row_ignored_created_later_removed(place) {
        fill(place);
        round(place, || {
            place.write("build/later.o", "later\n");
            place.write("src/later.o", "later\n");
        });
    }

    /// What is ignored and has not changed is not even replaced; a cache that is
    /// left out is named, and nothing in it is ever touched.
    fn st_30_row_ignored_left_alone(place) {
        fill(place);
        place.write("node_modules/lib/index.js", "before\n");
        let made = place.checkpoint_as(Origin::Asked, &[]).unwrap();
        assert!(made.snapshot.record.left_out.iter().any(|note| note.path == "node_modules"));
        let before = fs::metadata(place.at("build/out.o")).unwrap();
        place.write("a.txt", "changed\n");
        place.write("node_modules/lib/index.js", "after\n");
        place.write("node_modules/other.js", "other\n");
        let wanted = place.record(Repositories::Apart);
        place.roll_back(&made.snapshot).unwrap();
        let after = fs::metadata(place.at("build/out.o")).unwrap();
        assert_eq!((before.ino(), before.ctime_nsec()), (after.ino(), after.ctime_nsec()));
        let caches = |recording: Recording| -> Recording {
            let inside = |name: &Vec<u8>| name.starts_with(b"node_modules");
            recording.into_iter().filter(|(name, _)| inside(name)).collect()
        };
        let found = caches(place.record(Repositories::Apart));
        assert_eq!(found.len(), 4);
        assert_same(&caches(wanted), &found, "the cache");
    }

    /// Empty directories are there again, and one that was filled is empty again.
    fn st_30_row_empty_dir(place) {
        fill(place);
        fs::create_dir_all(place.at("deep/empty/one")).unwrap();
        place.chmod("deep/empty", 0o750);
        round(place, || fs::remove_dir_all(place.at("deep")).unwrap());
        round(place, || place.write("empty/file", "filled\n"));
        round(place, || fs::remove_dir(place.at("empty")).unwrap());
    }

    /// Links are links: dangling ones, ones to directories, retargeted and deleted ones.
    fn st_30_row_symlinks(place) {
        fill(place);
        symlink("src", place.at("ldir")).unwrap();
        symlink("no/where", place.at("dangling")).unwrap();
        symlink("/etc/hostname", place.at("outside")).unwrap();
        symlink("loop", place.at("loop")).unwrap();
        symlink(name(b"\xff\n"), place.at("odd")).unwrap();
        set_time(&place.at("ldir"), (1_500_000_000, 5));
        let outside = fs::read("/etc/hostname").ok();
        let all = ["link", "ldir", "dangling", "outside", "loop", "odd"];
        round(place, || all.iter().for_each(|link| remove(place, link)));
        round(place, || {
            for link in all {
                remove(place, link);
                symlink("elsewhere", place.at(link)).unwrap();
            }
        });
        round(place, || {
            // Through the link: what it points to is a file like any other.
            place.write("link", "written through\n");
            place.write("ldir/through.c", "through\n");
        });
        assert_eq!(outside, fs::read("/etc/hostname").ok());
    }

    /// What has become something else is what it was: files, directories, links, pipes.
    fn st_30_row_type_change(place) {
        fill(place);
        make_pipe(&place.at("pipe"), 0o600).unwrap();
        round(place, || {
            remove(place, "a.txt");
            place.write("a.txt/inside", "a directory\n");
            remove(place, "src/b.c");
            symlink("nowhere", place.at("src/b.c")).unwrap();
            remove(place, "link");
            fs::create_dir(place.at("link")).unwrap();
            remove(place, "pipe");
            place.write("pipe", "a file\n");
        });
        round(place, || {
            fs::remove_dir_all(place.at("src")).unwrap();
            place.write("src", "a file\n");
            fs::remove_dir(place.at("empty")).unwrap();
            symlink("build", place.at("empty")).unwrap();
            remove(place, "link");
            make_pipe(&place.at("link"), 0o644).unwrap();
        });
        let elsewhere = place.bench.root.join("elsewhere");
        fs::create_dir_all(elsewhere.join("deep/er")).unwrap();
        fs::write(elsewhere.join("b.c"), "not ours\n").unwrap();
        round(place, || {
            // A directory for a link that leads out: nothing there is touched.
            fs::remove_dir_all(place.at("src")).unwrap();
            symlink(&elsewhere, place.at("src")).unwrap();
        });
        assert_eq!(fs::read(elsewhere.join("b.c")).unwrap(), b"not ours\n");
        assert!(elsewhere.join("deep/er").is_dir());
    }

    /// The exec bit alone, taken away and given.
    fn st_30_row_exec_bit(place) {
        fill(place);
        round(place, || {
            place.chmod("run.sh", 0o644);
            place.chmod("a.txt", 0o755);
        });
    }

    /// Every permission bit of files and directories, with the content changed or not.
    fn st_30_row_mode_bits(place) {
        fill(place);
        let modes = [
            ("a.txt", 0o600), ("src/b.c", 0o640), ("run.sh", 0o711), ("untracked.txt", 0o444),
            ("src", 0o750), ("src/deep", 0o700), ("empty", 0o1777), ("src/deep/er/c.c", 0o4755),
        ];
        modes.iter().for_each(|(name, mode)| place.chmod(name, *mode));
        round(place, || {
            for (name, mode) in modes {
                let other = if place.at(name).is_dir() { 0o755 } else { 0o644 };
                assert_ne!(mode, other);
                place.chmod(name, other);
            }
        });
        round(place, || {
            remove(place, "a.txt");
            fs::remove_dir_all(place.at("src")).unwrap();
            fs::remove_dir(place.at("empty")).unwrap();
        });
    }

    /// Times to the nanosecond, of files, links and directories; what was not
    /// touched keeps its own.
    fn st_30_row_mtime(place) {
        fill(place);
        for (number, name) in ["a.txt", "src/b.c", "link", "empty", "src/deep"].iter().enumerate() {
            set_time(&place.at(name), (1_400_000_000 + number as i64, 123_456_789));
        }
        round(place, || {
            place.write("a.txt", "changed\n");
            set_time(&place.at("src/b.c"), (1_700_000_000, 1));
            set_time(&place.at("link"), (1_700_000_000, 2));
            set_time(&place.at("run.sh"), (-5, 999_999_999));
            place.write("empty/later", "the time of the directory moves\n");
            fs::remove_dir_all(place.at("src/deep")).unwrap();
        });
    }

    /// Extended attributes of files and directories: changed, removed, added,
    /// and with the content changed too.
    fn st_30_row_xattrs(place) {
        fill(place);
        if !place.bench.attributes {
            return; // the file system has none
        }
        set_attribute(&place.at("a.txt"), "user.one", b"1").unwrap();
        set_attribute(&place.at("a.txt"), "user.empty", b"").unwrap();
        set_attribute(&place.at("src"), "user.of.directory", &[0, 255, 10]).unwrap();
        set_attribute(&place.at("run.sh"), "user.large", &[7; 2_000]).unwrap();
        let wanted = place.record(Repositories::Apart);
        assert!(wanted.values().any(|thing| thing.attributes.len() == 2));
        round(place, || {
            set_attribute(&place.at("a.txt"), "user.one", b"2").unwrap();
            set_attribute(&place.at("a.txt"), "user.more", b"3").unwrap();
            rustix::fs::lremovexattr(place.at("a.txt"), "user.empty").unwrap();
            rustix::fs::lremovexattr(place.at("src"), "user.of.directory").unwrap();
            set_attribute(&place.at("empty"), "user.later", b"x").unwrap();
        });
        round(place, || {
            remove(place, "a.txt");
            place.write("run.sh", "changed\n");
            fs::remove_dir_all(place.at("src")).unwrap();
        });
    }

    /// Files with several names stay so: broken links are one file again, and
    /// names joined since are apart again.
    fn st_30_row_hardlinks(place) {
        fill(place);
        fs::hard_link(place.at("a.txt"), place.at("src/same.txt")).unwrap();
        fs::hard_link(place.at("a.txt"), place.at("empty/same too")).unwrap();
        place.write("alone", "one\n2\nthree\n"); // the same content in another file
        round(place, || place.write("a.txt", "through one name\n"));
        round(place, || {
            remove(place, "a.txt");
            place.write("a.txt", "one\n2\nthree\n");
        });
        round(place, || remove(place, "src/same.txt"));
        round(place, || {
            remove(place, "alone");
            fs::hard_link(place.at("a.txt"), place.at("alone")).unwrap();
            fs::hard_link(place.at("run.sh"), place.at("later")).unwrap();
        });
        round(place, || fs::remove_dir_all(place.at("src")).unwrap());
    }

    /// Names with line ends and control characters.
    fn st_30_row_name_newline(place) {
        with_name(place, b"new\nline\r\t\x1b[31m");
    }

    /// Names with spaces, quotes, backslashes, dashes and any script.
    fn st_30_row_name_unicode_space(place) {
        with_name(place, "-é 日本語 🦀 \"q\" \\n \\x41 *.c ".as_bytes());
    }

    /// Names that are not UTF-8.
    fn st_30_row_name_non_utf8(place) {
        with_name(place, b"caf\xe9 \xff\xfe");
    }

    /// A file with holes has them again, and its bytes.
    fn st_30_row_sparse(place) {
        fill(place);
        let file = fs::File::create(place.at("sparse")).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"in the middle", 33 << 20).unwrap();
        drop(file);
        let used = || fs::metadata(place.at("sparse")).unwrap().blocks() * 512;
        let before = used();
        assert!(before < 1 << 20, "the file system has no holes");
        round(place, || remove(place, "sparse"));
        assert!(used() <= before + 8192, "{} bytes are used", used());
    }

    /// A changed file in a clean repository within the repository.
    fn st_30_row_nested_repo_clean(place) {
        nest(place);
        let before = nested(place);
        round(place, || place.write("sub/tracked", "changed\n"));
        assert_eq!(before, nested(place));
    }

    /// Changes, staged files, untracked files and commits in a nested repository.
    fn st_30_row_nested_repo_dirty_untracked(place) {
        nest(place);
        place.write("sub/tracked", "dirty\n");
        place.write("sub/untracked", "untracked\n");
        place.write("sub/staged", "staged\n");
        place.git(&["-C", "sub", "add", "staged"]);
        let before = nested(place);
        round(place, || {
            place.git(&["-C", "sub", "add", "--all"]);
            place.git(&["-C", "sub", "commit", "--quiet", "--message=later"]);
            place.git(&["-C", "sub", "checkout", "--quiet", "-b", "other"]);
            remove(place, "sub/untracked");
            place.write("sub/tracked", "again\n");
        });
        // Objects that were made since stay: nothing but they may differ.
        let after = nested(place);
        assert_eq!(before, after);
    }

    /// A nested repository that was deleted is there again, history and all.
    fn st_30_row_nested_repo_rm_rf(place) {
        nest(place);
        place.write("sub/untracked", "untracked\n");
        let before = nested(place);
        round(place, || fs::remove_dir_all(place.at("sub")).unwrap());
        assert_eq!(before, nested(place));
    }

    /// A checkpoint changes no file, no byte of the index, not HEAD, no branch,
    /// and none of the stashes that are there.
    fn st_30_row_index_head_untouched_by_ckpt(place) {
        fill(place);
        place.git(&["stash", "push", "--quiet", "--message=mine", "a.txt"]);
        let files = |place: &Place<'_>| -> Recording {
            let passing = |name: &[u8]| {
                name.starts_with(b".git/objects")
                    || name.ends_with(b"refs/stash")
                    || name.starts_with(b".git/refs/safepoint")
            };
            let mut all = place.record(Repositories::Included);
            // Directories of the repository get the objects of the stash entry.
            all.retain(|name, thing| {
                let inner = name.starts_with(b".git") && thing.kind == Kind::Directory;
                !passing(name) && !inner
            });
            all
        };
        let refs = ["for-each-ref", "--format=%(refname) %(objectname)"];
        let list = ["stash", "list", "--format=%H %gs"];
        let other_refs = |place: &Place<'_>| -> Vec<String> {
            let all = place.git(&refs);
            all.lines().filter(|line| !line.contains("refs/safepoint/")).map(str::to_owned).collect()
        };
        let before = (files(place), place.git_recording(), other_refs(place), place.git(&list));
        let made = place.checkpoint_as(Origin::Asked, &[]).unwrap();
        assert_same(&before.0, &files(place), "after the checkpoint");
        assert_eq!(before.1, place.git_recording());
        assert_eq!(before.2, other_refs(place));
        assert_eq!(place.git(&list), before.3, "the user's own entries");
        assert!(made.stash.is_none() && made.reference.is_some());
        // One that nobody asked for leaves no trace in the repository at all.
        let everything = place.record(Repositories::Included);
        place.checkpoint().unwrap();
        assert_same(&everything, &place.record(Repositories::Included), "by itself");
    }

    /// HEAD, the branch, the index and a merge in progress come back, after
    /// commits, amends, switches, resets and garbage collection.
    fn st_30_row_index_head_restored(place) {
        fill(place);
        place.git(&["branch", "other"]);
        let point = point(place);
        type Damage<'a> = &'a dyn Fn();
        let damages: [Damage<'_>; 6] = [
            &|| {
                place.git(&["add", "--all"]);
                place.git(&["commit", "--quiet", "--message=second"]);
            },
            &|| {
                place.git(&["commit", "--quiet", "--all", "--amend", "--message=amended"]);
            },
            &|| {
                place.git(&["checkout", "--quiet", "--force", "-b", "new"]);
                place.git(&["branch", "--quiet", "-D", "main", "other"]);
            },
            &|| {
                place.git(&["reset", "--quiet", "--hard"]);
                place.git(&["clean", "-fdxq", "--exclude=.checkpoints", "--exclude=.audit"]);
            },
            &|| {
                place.git(&["reset", "--quiet"]);
                place.git(&["checkout", "--quiet", "--detach"]);
                place.git(&["gc", "--quiet", "--prune=now"]);
            },
            &|| fs::remove_dir_all(place.at(".git")).unwrap(),
        ];
        for damage in damages {
            damage();
            assert_ne!(place.git_recording(), point.git);
            back(place, &point);
            place.git(&["fsck", "--no-dangling", "--no-progress"]);
        }
        // A merge that stopped in the middle.
        place.git(&["add", "--all"]);
        place.git(&["commit", "--quiet", "--message=ours"]);
        place.git(&["checkout", "--quiet", "other"]);
        place.write("a.txt", "theirs\n");
        place.git(&["commit", "--quiet", "--all", "--message=theirs"]);
        assert!(!place.try_git(&["merge", "--quiet", "main"]).status.success());
        round(place, || {
            place.git(&["merge", "--abort"]);
        });
        place.git(&["rev-parse", "MERGE_HEAD"]);
    }

    /// An edit that keeps size and time is taken back.
    fn st_30_row_same_size_same_mtime_edit(place) {
        fill(place);
        round(place, || edit_quietly(&place.at("a.txt"), "one\n9\nthree\n"));
        // The second time all files are in the cache.
        round(place, || edit_quietly(&place.at("a.txt"), "one\n8\nthree\n"));
    }

    /// A checkpoint sees an edit that keeps size and time.
    fn st_30_row_same_size_same_mtime_edit_seen_by_ckpt(place) {
        fill(place);
        place.checkpoint().unwrap();
        for content in ["one\n9\nthree\n", "one\n8\nthree\n", "one\n7\nthree\n"] {
            edit_quietly(&place.at("a.txt"), content);
            round(place, || edit_quietly(&place.at("a.txt"), "one\n0\nthree\n"));
            assert_eq!(place.read("a.txt"), content.as_bytes());
        }
    }

    /// Line ends, `$Id$` and encodings that git would change are as they were.
    fn st_30_row_crlf_gitattributes(place) {
        fill(place);
        place.write(".gitattributes", "* text=auto\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n");
        place.write("crlf.txt", "one\r\ntwo\r\n");
        place.write("k.id", "$Id$\n");
        place.write("mixed.txt", "one\r\ntwo\nthree\r");
        place.write("x.u16", b"\xff\xfeo\0n\0e\0\n\0");
        place.git(&["add", "--all"]);
        round(place, || {
            for name in ["crlf.txt", "k.id", "mixed.txt", "x.u16"] {
                remove(place, name);
            }
        });
        round(place, || {
            place.git(&["commit", "--quiet", "--message=attributes"]);
            place.git(&["rm", "--quiet", "--cached", "-r", "."]);
            place.git(&["reset", "--quiet", "--hard"]);
        });
        assert_eq!(place.read("crlf.txt"), b"one\r\ntwo\r\n");
    }

    /// The user's `core.autocrlf` changes no byte.
    fn st_30_row_gitconfig_autocrlf(place) {
        let settings = "[core]\n\tautocrlf = true\n\tsafecrlf = false\n";
        fs::write(place.bench.root.join("home/.gitconfig"), settings).unwrap();
        fill(place);
        place.write("crlf.txt", "one\r\ntwo\r\n mixed\n");
        place.write("lf.txt", "one\ntwo\n");
        place.git(&["add", "--all"]);
        round(place, || {
            remove(place, "crlf.txt");
            place.write("lf.txt", "one\r\ntwo\r\n");
        });
        assert_eq!(place.read("crlf.txt"), b"one\r\ntwo\r\n mixed\n");
    }

    /// A pipe is recorded, warned about, never opened, and made again.
    fn st_30_row_fifo_in_tree(place) {
        fill(place);
        make_pipe(&place.at("src/pipe"), 0o600).unwrap();
        place.chmod("src/pipe", 0o622);
        set_time(&place.at("src/pipe"), (1_500_000_000, 9));
        let point = point(place);
        let warned = point.snapshot.record.warnings.join("\n");
        assert!(warned.contains("src/pipe"), "{warned}");
        remove(place, "src/pipe");
        place.write("a.txt", "changed\n");
        back(place, &point);
        let found = fs::symlink_metadata(place.at("src/pipe")).unwrap();
        assert!(found.file_type().is_fifo());
        place.chmod("src/pipe", 0o600);
        back(place, &point);
    }

    /// A large file that git does not track, deleted, and changed in its middle.
    fn st_30_row_ten_mib_untracked(place) {
        fill(place);
        let random = testkit::Seeded::new(10);
        let bytes: Vec<u8> = (0..10 << 17).flat_map(|_| random.next().to_le_bytes()).collect();
        place.write("large.bin", bytes);
        round(place, || remove(place, "large.bin"));
        round(place, || {
            let file = fs::File::options().write(true).open(place.at("large.bin")).unwrap();
            file.write_all_at(b"a few other bytes", 5 << 20).unwrap();
        });
    }

    /// A roll back is itself taken back, exactly, and that again.
    fn st_30_row_redo_undo_of_restore(place) {
        fill(place);
        let point = point(place);
        place.write("a.txt", "changed\n");
        remove(place, "untracked.txt");
        place.write("later/file", "later\n");
        place.chmod("run.sh", 0o600);
        place.git(&["add", "--all"]);
        place.git(&["commit", "--quiet", "--message=second"]);
        let (files, git) = (place.record(Repositories::Apart), place.git_recording());
        let done = back(place, &point);
        let redone = place.without(done.action.as_str(), "redo").unwrap();
        assert_same(&files, &place.record(Repositories::Apart), "after the redo");
        assert_eq!(git, place.git_recording());
        assert!(redone.matches, "{:?}", redone.warnings);
        place.without(redone.action.as_str(), "undo").unwrap();
        assert_same(&point.files, &place.record(Repositories::Apart), "after its undo");
        assert_eq!(point.git, place.git_recording());
        back(place, &point);
    }

    /// A file that is written all the time is either captured as it was at one
    /// moment, or the checkpoint fails, names it, and leaves nothing.
    fn st_30_row_file_written_during_ckpt(place) {
        const LENGTH: usize = 1 << 20;
        fill(place);
        place.write("busy", vec![0; LENGTH]);
        let mut others = place.record(Repositories::Apart);
        others.remove(&b"busy"[..]);
        let stop = AtomicBool::new(false);
        let count = || {
            let all = Selection::default();
            place.bench.state.list(&all).unwrap().len()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let file = fs::File::options().write(true).open(place.at("busy")).unwrap();
                for generation in (0..=u8::MAX).cycle() {
                    for part in 0..16 {
                        let piece = [generation; LENGTH / 16];
                        file.write_all_at(&piece, part * (LENGTH as u64 / 16)).unwrap();
                    }
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
            let before = count();
            let outcome = place.checkpoint();
            stop.store(true, Ordering::Relaxed);
            match outcome {
                Err(StateError::Torn { path }) => {
                    assert!(path.ends_with("busy"), "{}", path.display());
                    assert_eq!(count(), before);
                }
                Err(error) => panic!("{error}"),
                Ok(made) => {
                    let secrets = &made.snapshot.record.sensitive;
                    assert!(secrets.is_empty(), "{secrets:?}");
                    remove(place, "busy");
                    place.roll_back(&made.snapshot).unwrap();
                    let mut found = place.record(Repositories::Apart);
                    assert!(found.remove(&b"busy"[..]).is_some(), "it is not captured");
                    assert_same(&others, &found, "the other files");
                    let bytes = place.read("busy");
                    assert_eq!(bytes.len(), LENGTH);
                    // At any moment: the beginning of one generation before the rest of the last.
                    let runs: Vec<u8> = bytes.chunk_by(u8::eq).map(|run| run[0]).collect();
                    assert!(
                        matches!(runs[..], [_])
                            || matches!(runs[..], [new, old] if new == old.wrapping_add(1)),
                        "torn: {runs:?}"
                    );
                }
            }
        });
        assert!(leftovers(&place.top).is_empty());
        round(place, || remove(place, "busy"));
    }

    /// With everything ignored, everything is captured all the same.
    fn st_30_row_gitignore_everything(place) {
        fill(place);
        place.write(".gitignore", "/*\n!/debian/\n*\n");
        round(place, || {
            remove(place, "a.txt");
            remove(place, "untracked.txt");
            remove(place, ".gitignore");
            fs::remove_dir_all(place.at("src")).unwrap();
        });
    }

    /// A tracked file under an ignored path survives, and comes back.
    fn st_30_row_tracked_but_ignored_survives(place) {
        fill(place);
        place.write("build/kept.o", "kept\n");
        place.git(&["add", "--force", "build/kept.o"]);
        place.git(&["commit", "--quiet", "--message=forced"]);
        round(place, || place.write("a.txt", "changed\n"));
        round(place, || remove(place, "build/kept.o"));
        round(place, || {
            place.git(&["rm", "--quiet", "--cached", "build/kept.o"]);
        });
    }

    /// The whole workspace was deleted, manifests and repository included.
    fn st_30_row_workspace_rm_rf(place) {
        nest(place);
        let before = nested(place);
        round_without_workspace(place);
        assert_eq!(before, nested(place));
    }
}

fn round_without_workspace(place: &Place<'_>) {
    let point = point(place);
    fs::remove_dir_all(&place.top).unwrap();
    back(place, &point);
}

/// The rows, run once more, as a document.
#[test]
fn st_30_the_table_of_exactness_is_current() {
    let mut text = "# Exactness\n\nMade by running the rows (`crates/safepoint-state/tests/exactness.rs`); do not edit.\n\nIn each row a workspace in a git repository is checkpointed, damaged and rolled\nback. Afterwards content, kind, mode, owner, time to the nanosecond, link\ntargets, names of the same file, extended attributes and what git says of\nitself must all be as before, and nothing may be left over.\n\n| row | what is checked | |\n|---|---|---|\n".to_owned();
    for (name, what, row) in ROWS {
        let held = std::panic::catch_unwind(|| {
            let bench = Bench::new(31);
            row(&bench.place("workspace"));
        });
        let verdict = if held.is_ok() { "ok" } else { "fails" };
        let name = name.trim_start_matches("st_30_row_");
        writeln!(text, "| `{name}` | {} | {verdict} |", what.trim()).unwrap();
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exactness.md");
    if std::env::var_os("SAFEPOINT_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/exactness.md is stale: run the tests with SAFEPOINT_UPDATE=1"
    );
}
