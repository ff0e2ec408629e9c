//! What goes wrong around a database, and that it is as it was afterwards.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Duration;

use safepoint_database::{DatabaseError, Image};

use crate::child::Other;
use crate::support::{Room, listing};
use crate::writers::bank;

fn restore_fails(room: &Room, name: &str, image: &Image) -> DatabaseError {
    let error = room
        .database(name)
        .restore(image, &room.memory)
        .unwrap_err();
    room.nothing_left_behind();
    error
}

#[test]
fn st_16_a_hot_journal_is_rolled_back_before_a_capture() {
    let room = Room::new();
    bank(&room, "app.db", "delete", 1024);
    let image = room.capture("app.db");
    Other::start("half-done", &room.path("app.db")).kill();
    assert!(room.path("app.db-journal").exists());
    assert_eq!(room.capture("app.db").digest(), image.digest());
    assert!(!room.path("app.db-journal").exists());
    room.assert_sound("app.db");
}

#[test]
fn st_16_a_living_writer_is_no_hot_journal() {
    let room = Room::new();
    bank(&room, "app.db", "delete", 65536);
    let image = room.capture("app.db");
    let other = Other::start("half-done", &room.path("app.db"));
    // With pages this large nothing was written yet: it is prepared, and the file is as it was.
    assert!(room.path("app.db-journal").exists());
    assert_eq!(room.capture("app.db").digest(), image.digest());
    assert!(room.path("app.db-journal").exists());
    other.end();
}

#[test]
fn st_16_a_log_that_a_killed_process_left_is_part_of_the_capture() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 4096);
    let before = room.capture("app.db");
    Other::start("keep-log", &room.path("app.db")).kill();
    let image = room.capture("app.db");
    assert_ne!(image.digest(), before.digest());
    // Also when the shared memory is gone, or is not to be believed.
    std::fs::write(room.path("app.db-shm"), [7; 32768]).unwrap();
    assert_eq!(room.capture("app.db").digest(), image.digest());
    std::fs::remove_file(room.path("app.db-shm")).unwrap();
    assert_eq!(room.capture("app.db").digest(), image.digest());
    room.restore("copy.db", &image);
    let notes = room.ask(
        "copy.db",
        "SELECT group_concat(DISTINCT trim(note)) FROM accounts",
    );
    assert_eq!(notes, "in the log");
    // A torn end counts as never written.
    let log = std::fs::read(room.path("app.db-wal")).unwrap();
    std::fs::write(room.path("app.db-wal"), &log[..log.len() - 7]).unwrap();
    assert_eq!(room.capture("app.db").digest(), before.digest());
}

/// A writer that died while it wrote the index; another process is connected still.
#[test]
fn st_16_an_index_that_was_half_written_is_put_right() {
    let mut room = Room::new();
    bank(&room, "app.db", "wal", 4096);
    let keeper = Other::start("keep-log", &room.path("app.db"));
    let image = room.capture("app.db");
    room.patience = Duration::from_millis(30);
    let memory = std::fs::File::options()
        .write(true)
        .open(room.path("app.db-shm"))
        .unwrap();
    std::os::unix::fs::FileExt::write_all_at(&memory, &[0xff; 8], 12).unwrap();
    assert_eq!(room.capture("app.db").digest(), image.digest());
    keeper.end();
    room.assert_sound("app.db");
}

#[test]
fn st_16_a_locked_database_stays_as_it_was() {
    for mode in ["wal", "delete"] {
        let mut room = Room::new();
        bank(&room, "app.db", mode, 4096);
        let image = room.capture("app.db");
        room.run("app.db", "DELETE FROM accounts WHERE id > 10");
        let changed = room.capture("app.db");
        room.patience = Duration::from_millis(30);
        let other = Other::start("lock", &room.path("app.db"));
        for name in ["app.db", "app.db#accounts"] {
            let error = restore_fails(&room, name, &image);
            assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
        }
        other.end();
        assert_eq!(room.capture("app.db").digest(), changed.digest());
        // A reader keeps nobody from writing where there is a log.
        let other = Other::start("read", &room.path("app.db"));
        let restored = room.database("app.db").restore(&image, &room.memory);
        match mode {
            "wal" => assert_eq!(restored.unwrap().warnings, Vec::<String>::new()),
            _ => assert!(matches!(restored, Err(DatabaseError::Locked { .. }))),
        }
        other.end();
        let expected = if mode == "wal" { &image } else { &changed };
        assert_eq!(room.capture("app.db").digest(), expected.digest());
        room.assert_sound("app.db");
    }
}

#[test]
fn st_16_a_restore_that_is_killed_leaves_the_old_state_or_the_new() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        bank(&room, "old.db", mode, 1024);
        let old = room.capture("old.db");
        room.restore("app.db", &old);
        room.restore("new.db", &old);
        room.run(
            "new.db",
            "CREATE TABLE more(x); INSERT INTO more SELECT randomblob(3000) FROM accounts;
             UPDATE accounts SET note = randomblob(500), balance = balance + 1; DROP INDEX by_balance",
        );
        let new = room.capture("new.db");
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..40 {
            let mut other = Other::spawn("restore", &room.path("app.db"));
            other.wait_for("ready");
            // Wherever it is by then: no two rounds are alike.
            std::thread::yield_now();
            for _ in 0..round * 20_000 {
                std::hint::spin_loop();
            }
            other.kill();
            let found = room.capture("app.db").digest();
            assert!([old.digest(), new.digest()].contains(&found));
            seen.insert(found);
            room.assert_sound("app.db");
            assert_eq!(room.capture("app.db").digest(), found);
        }
        assert_eq!(seen.len(), 2, "it was always killed at the same moment");
    }
}

#[test]
fn st_16_what_is_not_there_is_named() {
    let room = Room::new();
    let error = room.database("none.db").capture(&room.memory).unwrap_err();
    assert!(
        matches!(error, DatabaseError::NotFound { what: "file", .. }),
        "{error:?}"
    );
    bank(&room, "app.db", "wal", 4096);
    let error = room
        .database("app.db#nope")
        .capture(&room.memory)
        .unwrap_err();
    assert!(
        error.to_string().contains("there is no table `nope`"),
        "{error}"
    );
    std::fs::write(room.path("text"), "hello, world").unwrap();
    let error = room.database("text").capture(&room.memory).unwrap_err();
    assert!(
        error.to_string().contains("not a SQLite database"),
        "{error}"
    );
    std::fs::create_dir(room.path("directory")).unwrap();
    let error = room
        .database("directory")
        .capture(&room.memory)
        .unwrap_err();
    assert!(
        matches!(error, DatabaseError::Unsupported { .. }),
        "{error:?}"
    );
}

#[test]
fn st_16_a_damaged_database_is_refused_and_never_loops() {
    let room = Room::new();
    bank(&room, "app.db", "delete", 512);
    let sound = std::fs::read(room.path("app.db")).unwrap();
    for at in (100..sound.len()).step_by(97) {
        for value in [0, 1, 13, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            std::fs::write(room.path("app.db"), &bytes).unwrap();
            // Whatever comes of it, it comes.
            let _ = room.database("app.db").capture(&room.memory);
        }
    }
    std::fs::write(room.path("app.db"), &sound[..sound.len() / 2]).unwrap();
    let error = room.database("app.db").capture(&room.memory).unwrap_err();
    assert!(error.to_string().contains("it is damaged"), "{error}");
}

#[test]
fn st_16_a_file_that_is_no_database_any_more_is_replaced() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        bank(&room, "app.db", mode, 4096);
        let image = room.capture("app.db");
        let dump = room.dump("app.db");
        for garbage in [&b"overwritten by mistake"[..], &[0xff; 20_000], b""] {
            std::fs::write(room.path("app.db"), garbage).unwrap();
            std::fs::set_permissions(room.path("app.db"), PermissionsExt::from_mode(0o640))
                .unwrap();
            for stale in ["app.db-wal", "app.db-journal"] {
                std::fs::write(room.path(stale), [7; 5000]).unwrap();
            }
            room.restore("app.db", &image);
            assert_eq!(room.dump("app.db"), dump);
            assert_eq!(room.capture("app.db").digest(), image.digest());
            let found = std::fs::metadata(room.path("app.db")).unwrap();
            assert_eq!(found.mode() & 0o777, 0o640);
        }
    }
}

#[test]
fn st_16_a_database_that_was_deleted_is_made_again() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 4096);
    let image = room.capture("app.db");
    Other::start("keep-log", &room.path("app.db")).kill();
    std::fs::remove_file(room.path("app.db")).unwrap();
    assert!(
        room.path("app.db-wal").exists(),
        "which belongs to nothing now"
    );
    room.restore("app.db", &image);
    assert_eq!(room.capture("app.db").digest(), image.digest());
    assert_eq!(room.pragma("app.db", "journal_mode"), "wal");
    room.restore("a/b/c/app.db", &image);
    assert_eq!(room.capture("a/b/c/app.db").digest(), image.digest());
}

#[test]
fn st_16_a_link_is_followed_and_stays_a_link() {
    let room = Room::new();
    bank(&room, "real.db", "wal", 4096);
    std::os::unix::fs::symlink("real.db", room.path("app.db")).unwrap();
    let other = Other::start("keep-log", &room.path("app.db"));
    let image = room.capture("app.db");
    other.end();
    room.run("app.db", "DROP TABLE accounts");
    room.restore("app.db", &image);
    assert_eq!(
        room.ask("real.db", "SELECT max(trim(note)) FROM accounts"),
        "in the log"
    );
    assert!(
        std::fs::symlink_metadata(room.path("app.db"))
            .unwrap()
            .is_symlink()
    );
}

#[test]
fn st_16_what_cannot_be_written_stays_as_it_was() {
    let room = Room::new();
    bank(&room, "app.db", "delete", 4096);
    let image = room.capture("app.db");
    room.run("app.db", "DELETE FROM accounts");
    let before = listing(&room.path(""));
    let _guard = Immutable::new(&room.path("app.db"));
    let Some(_guard) = _guard else {
        eprintln!("skipped: this needs `chattr`, root, and a file system that knows it");
        return;
    };
    for name in ["app.db", "app.db#accounts"] {
        let error = restore_fails(&room, name, &image);
        assert!(matches!(error, DatabaseError::File { .. }), "{error:?}");
    }
    assert_eq!(listing(&room.path("")), before);
    // Reading it is no problem.
    room.capture("app.db");
}

/// A file that nobody can write to, not even root.
struct Immutable(std::path::PathBuf);

impl Immutable {
    fn new(path: &std::path::Path) -> Option<Self> {
        let done = std::process::Command::new("chattr")
            .arg("+i")
            .arg(path)
            .output();
        done.is_ok_and(|output| output.status.success())
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = std::process::Command::new("chattr")
            .arg("-i")
            .arg(&self.0)
            .output();
    }
}

/// A file system of 8 MiB. Unmounted when dropped.
struct Tiny(tempfile::TempDir);

impl Tiny {
    fn new() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let done = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"])
            .arg(directory.path())
            .output();
        done.is_ok_and(|output| output.status.success())
            .then_some(Self(directory))
    }
}

impl Drop for Tiny {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .output();
    }
}

#[test]
fn st_16_a_full_disk_leaves_the_database_as_it_was() {
    let Some(tiny) = Tiny::new() else {
        eprintln!("skipped: this needs root, for a file system that is soon full");
        return;
    };
    for mode in ["wal", "delete"] {
        let room = Room::new();
        bank(&room, "large.db", mode, 4096);
        room.run("large.db", "CREATE TABLE large(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO large SELECT randomblob(4000) FROM n");
        let image = room.capture("large.db");
        let small = Room::below(tiny.0.path());
        bank(&small, "app.db", mode, 4096);
        let before = small.capture("app.db");
        let file = small.path("app.db");
        let database = room.database(file.to_str().unwrap());
        let error = database.restore(&image, &room.memory).unwrap_err();
        assert!(matches!(error, DatabaseError::File { .. }), "{error:?}");
        assert_eq!(small.capture("app.db").digest(), before.digest());
        small.assert_sound("app.db");
        small.nothing_left_behind();
        // The same where it is not there yet, and where we need the room ourselves.
        let missing = small.path("missing.db");
        let database = room.database(missing.to_str().unwrap());
        let error = database.restore(&image, &room.memory).unwrap_err();
        assert!(matches!(error, DatabaseError::File { .. }), "{error:?}");
        assert!(!missing.exists());
        let error = small
            .database("app.db")
            .restore(&image, &room.memory)
            .unwrap_err();
        assert!(matches!(error, DatabaseError::File { .. }), "{error:?}");
        assert_eq!(small.capture("app.db").digest(), before.digest());
        small.nothing_left_behind();
    }
}
