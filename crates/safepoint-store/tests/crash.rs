//! A process that is killed while it writes a file leaves the old or the new
//! content under its name, and never anything between.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, look at files themselves and fail loudly"
)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use safepoint_model::Digest;
use safepoint_store::Blobs;
use safepoint_store::durable::{self, Access};

const KILLED: i32 = 9;

/// Larger than a page, so that a half of it could be seen.
fn old() -> String {
    "old ".repeat(20_000)
}

fn new() -> String {
    "new and longer ".repeat(8_000)
}

/// The example that writes one file, built beside the tests.
fn write_file() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.ancestors().nth(2).unwrap().join("examples/write_file");
    assert!(
        path.is_file(),
        "`{}` is missing: run `cargo test -p safepoint-store`, or `cargo build -p safepoint-store --example write_file` before a single `--test`",
        path.display()
    );
    path
}

fn run(fault: Option<&str>, directory: &Path, name: &str, content: &str) -> ExitStatus {
    let mut command = Command::new(write_file());
    command.env_clear().arg(directory).args([name, content]);
    if let Some(fault) = fault {
        command.env("SAFEPOINT_FAULT", fault);
    }
    command.status().unwrap()
}

/// The names in a directory that are no left-over temporary files.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !(name.starts_with('.') && name.ends_with(".tmp")))
        .collect();
    names.sort();
    names
}

/// Kills a write of `name` at `point`, and checks that `expected` is under the name.
fn kill_a_write(point: &str, before: Option<&str>, expected: Option<&str>) {
    let room = tempfile::tempdir().unwrap();
    let path = room.path().join("file");
    if let Some(before) = before {
        durable::write(&path, before.as_bytes(), Access::Private).unwrap();
    }
    let status = run(Some(point), room.path(), "file", &new());
    assert_eq!(status.signal(), Some(KILLED), "{point}: {status}");
    let found = fs::read_to_string(&path).ok();
    assert!(
        found.as_deref() == expected,
        "{point}: {} bytes are under the name",
        found.map_or(0, |found| found.len())
    );

    // What the dead one left behind is in nobody's way.
    let status = run(None, room.path(), "file", &new());
    assert!(status.success(), "{status}");
    assert!(fs::read_to_string(&path).unwrap() == new());
    assert_eq!(names(room.path()), ["file"]);
}

#[test]
fn tr_10_killed_before_the_rename_a_file_keeps_its_old_content() {
    kill_a_write("file.written", Some(&old()), Some(&old()));
}

#[test]
fn tr_10_killed_before_the_rename_a_new_file_is_not_there() {
    kill_a_write("file.written", None, None);
}

#[test]
fn tr_10_killed_after_the_rename_a_file_has_its_new_content() {
    kill_a_write("file.renamed", Some(&old()), Some(&new()));
}

#[test]
fn tr_10_killed_after_the_rename_a_new_file_is_there_whole() {
    kill_a_write("file.renamed", None, Some(&new()));
}

#[test]
fn tr_10_a_killed_put_leaves_a_whole_blob_or_none() {
    for (point, there) in [("file.written", false), ("file.renamed", true)] {
        let room = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(room.path().join("blobs"));
        let kept = blobs.put(old().as_bytes()).unwrap();
        let digest = Digest::of_parts(&[new().as_bytes()]);

        let status = run(Some(point), &room.path().join("blobs"), "--blob", &new());
        assert_eq!(status.signal(), Some(KILLED), "{point}: {status}");
        let found = blobs.get(&digest).unwrap();
        assert_eq!(found.is_some(), there, "{point}");
        assert!(found.is_none_or(|found| found == new().as_bytes()));
        assert!(blobs.get(&kept).unwrap().unwrap() == old().as_bytes());

        let status = run(None, &room.path().join("blobs"), "--blob", &new());
        assert!(status.success(), "{status}");
        assert!(blobs.get(&digest).unwrap().unwrap() == new().as_bytes());
    }
}

#[test]
fn tr_10_a_killed_repair_leaves_a_blob_damaged_or_whole() {
    for (point, whole) in [("file.written", false), ("file.renamed", true)] {
        let room = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(room.path());
        let digest = blobs.put(new().as_bytes()).unwrap();
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        fs::write(room.path().join(first).join(rest), old()).unwrap();

        let status = run(Some(point), room.path(), "--blob", &new());
        assert_eq!(status.signal(), Some(KILLED), "{point}: {status}");
        assert_eq!(blobs.get(&digest).is_ok(), whole, "{point}");
        blobs.put(new().as_bytes()).unwrap();
        assert!(blobs.get(&digest).unwrap().unwrap() == new().as_bytes());
    }
}

/// A process may have the number of one that was killed: in a container it
/// often does.
#[test]
fn tr_10_a_temporary_file_of_a_dead_process_with_our_number_is_no_obstacle() {
    let room = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let name = format!(".file.{}-{number}.tmp", std::process::id());
        fs::write(room.path().join(name), "left behind").unwrap();
    }
    let path = room.path().join("file");
    durable::write(&path, b"new", Access::Private).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn tr_10_a_point_can_be_passed_before_it_kills() {
    let room = tempfile::tempdir().unwrap();
    let status = run(Some("file.written:2"), room.path(), "file", "once");
    assert!(status.success(), "{status}");
    assert_eq!(names(room.path()), ["file"]);
}
