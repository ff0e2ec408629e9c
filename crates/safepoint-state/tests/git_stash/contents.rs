//! Bytes, names and modes come into the entry as they are.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use safepoint_state::git::stash::Stash;

use crate::support::{Bench, contains};

fn blob(bench: &Bench, name: &str) -> Vec<u8> {
    bench.git(&["cat-file", "blob", name])
}

#[test]
fn st_13_line_endings_stay() {
    let bench = Bench::new();
    bench.write(
        ".gitattributes",
        "* text=auto\nid ident\nwide working-tree-encoding=UTF-16LE\n",
    );
    bench.write("id", "$Id$\n");
    bench.write("wide", b"a\0\n\0");
    bench.commit("attributes");
    bench.git(&["config", "core.autocrlf", "true"]);
    bench.write("changed", "one\r\ntwo\r\n");
    bench.write("untracked", "three\r\nfour\n");
    bench.write("id", "$Id: mine $\r\nmore\r\n");
    bench.write("wide", b"b\0\r\0\n\0");
    let commit = bench.stashed();
    assert_eq!(
        blob(&bench, &format!("{commit}:changed")),
        b"one\r\ntwo\r\n"
    );
    assert_eq!(
        blob(&bench, &format!("{commit}^3:untracked")),
        b"three\r\nfour\n"
    );
    assert_eq!(
        blob(&bench, &format!("{commit}:id")),
        b"$Id: mine $\r\nmore\r\n"
    );
    assert_eq!(blob(&bench, &format!("{commit}:wide")), b"b\0\r\0\n\0");
}

#[test]
fn st_13_no_name_is_special() {
    let names: [&[u8]; 8] = [
        b"a\nb",
        b"\xff\xfe",
        b"-dash",
        b"\"quoted\"",
        b" space ",
        b"back\\slash",
        b"tab\t",
        b":(top)x",
    ];
    for tracked in [false, true] {
        let bench = Bench::new();
        if tracked {
            names
                .iter()
                .for_each(|name| bench.write(OsStr::from_bytes(name), "old"));
            bench.commit("names");
        }
        for name in names {
            bench.write(OsStr::from_bytes(name), name);
        }
        let files = bench.files();
        let commit = bench.stashed();
        let tree = if tracked {
            commit
        } else {
            format!("{commit}^3")
        };
        let found = bench.names(&tree);
        assert!(
            names
                .iter()
                .all(|name| found.iter().any(|found| found == name)),
            "{found:?}"
        );
        bench.git(&["reset", "--quiet", "--hard"]);
        bench.git(&["clean", "-qfd"]);
        bench.git(&["stash", "apply", "--quiet", "--index"]);
        assert_eq!(files, bench.files());
    }
}

#[test]
fn st_13_modes_and_links_are_kept() {
    let bench = Bench::new();
    bench.set_mode("kept", 0o755);
    std::fs::remove_file(bench.top.join("changed")).unwrap();
    symlink("kept", bench.top.join("changed")).unwrap();
    bench.write("run", "x");
    bench.set_mode("run", 0o755);
    symlink("/etc/passwd", bench.top.join("link")).unwrap();
    let commit = bench.stashed();
    let tree = bench.git_line(&["ls-tree", "-r", &commit]);
    assert!(
        tree.contains("100755 blob") && tree.contains("120000 blob"),
        "{tree}"
    );
    let untracked = bench.git_line(&["ls-tree", "-r", &format!("{commit}^3")]);
    assert!(
        untracked.contains("100755 blob") && untracked.contains("120000 blob"),
        "{untracked}"
    );
    assert_eq!(blob(&bench, &format!("{commit}^3:link")), b"/etc/passwd");
    assert_eq!(blob(&bench, &format!("{commit}:changed")), b"kept");
}

#[test]
fn st_13_the_index_is_what_git_would_write() {
    let bench = Bench::new();
    crate::untouched::work(&bench);
    bench.git(&["rm", "--quiet", "-r", "dir"]);
    bench.write("dir", "a file now\n");
    bench.git(&["add", "dir"]);
    let index = bench.git_line(&["write-tree"]);
    let commit = bench.stashed();
    assert_eq!(
        bench.git_line(&["rev-parse", &format!("{commit}^2^{{tree}}")]),
        index
    );
    bench.git(&["fsck", "--strict"]);
}

#[test]
fn st_13_ignored_files_stay_out() {
    let bench = Bench::new();
    bench.write(".gitignore", "*.log\nbuild/\n");
    bench.write("x.log", "x");
    bench.write("build/y", "y");
    let commit = bench.stashed();
    assert_eq!(bench.names(&format!("{commit}^3")), [b".gitignore"]);
}

#[test]
fn st_13_skipped_paths_are_in_no_object() {
    let bench = Bench::new();
    bench.write("tracked.env", "OLD\n");
    bench.write("gone.env", "OLD\n");
    bench.commit("tracked secret");
    bench.write(".env", "SECRET-ONE\n");
    bench.write("tracked.env", "SECRET-TWO\n");
    bench.write("deep/er/.env", "SECRET-THREE\n");
    bench.git(&["rm", "--quiet", "--cached", "gone.env"]);
    bench.write("gone.env", "SECRET-FOUR\n");
    bench.write("plain", "PLAIN\n");
    let skip = |path: &[u8]| path.ends_with(b".env");
    let made = bench
        .stash_choosing("checkpoint:1:x", &skip, &|_| true)
        .unwrap();
    let Stash::Made { commit } = made else {
        panic!("{made:?}")
    };
    let objects = bench.objects();
    assert!(contains(&objects, "PLAIN") && !contains(&objects, "SECRET"));
    assert_eq!(blob(&bench, &format!("{commit}:tracked.env")), b"OLD\n");
    assert_eq!(bench.names(&format!("{commit}^3")), [b"plain"]);
    // That it is no longer tracked has no content, and is kept.
    assert!(
        !bench
            .names(&format!("{commit}^2"))
            .contains(&b"gone.env".to_vec())
    );
}

#[test]
fn st_13_a_skipped_path_in_the_index_is_not_taken_further() {
    let bench = Bench::new();
    bench.write(".env", "SECRET\n");
    bench.git(&["add", ".env"]);
    let made = bench
        .stash_choosing("checkpoint:1:x", &|path| path == b".env", &|_| true)
        .unwrap();
    let Stash::Clean { commit } = made else {
        panic!("{made:?}")
    };
    for tree in [commit.clone(), format!("{commit}^2")] {
        assert!(!bench.names(&tree).contains(&b".env".to_vec()));
    }
}

#[test]
fn st_13_outside_the_scope_the_index_counts() {
    let bench = Bench::new();
    crate::untouched::work(&bench);
    let scope = |path: &[u8]| path == b"changed";
    let made = bench
        .stash_choosing("checkpoint:1:x", &|_| false, &scope)
        .unwrap();
    let Stash::Made { commit } = made else {
        panic!("{made:?}")
    };
    assert_eq!(blob(&bench, &format!("{commit}:changed")), b"work\n");
    assert_eq!(blob(&bench, &format!("{commit}:staged")), b"in the index\n");
    assert_eq!(blob(&bench, &format!("{commit}:removed")), b"before\n");
    assert!(
        !bench
            .try_git(&["rev-parse", "-q", "--verify", &format!("{commit}^3")])
            .status
            .success()
    );
}

#[test]
fn st_13_large_and_many_files_are_taken() {
    let bench = Bench::new();
    let large: Vec<u8> = (0..9_u32 << 20).map(|number| (number / 7) as u8).collect();
    bench.write("large", &large);
    for number in 0..300 {
        bench.write(format!("many/{number}"), format!("{number}\n"));
    }
    let commit = bench.stashed();
    assert!(blob(&bench, &format!("{commit}^3:large")) == large);
    assert_eq!(bench.names(&format!("{commit}^3")).len(), 301);
}
