//! A database file held still, and nothing else done to it.

use std::io::Read;
use std::time::Duration;

use safepoint_database::DatabaseError;
use safepoint_database::sqlite::hold;

use crate::child::Other;
use crate::support::{Room, listing};
use crate::writers::bank;

const SOON: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

/// What was read under a hold, opened as a database of its own.
fn copy_held(room: &Room) {
    let from = room.path("app.db");
    for round in 0..200 {
        let (main, log) = loop {
            let held = hold(&from, LONG).unwrap().unwrap();
            let mut main = Vec::new();
            held.file().unwrap().read_to_end(&mut main).unwrap();
            let log = held.log().map(|(mut log, length)| {
                let mut bytes = vec![0; usize::try_from(length).unwrap()];
                log.read_exact(&mut bytes).unwrap();
                bytes
            });
            if held.is_intact() {
                break (main, log);
            }
        };
        let copy = format!("copy-{round}.db");
        std::fs::write(room.path(&copy), main).unwrap();
        if let Some(log) = log {
            std::fs::write(room.path(&format!("{copy}-wal")), log).unwrap();
        }
        room.assert_sound(&copy);
        let sum = room.ask(&copy, "SELECT sum(balance) FROM accounts");
        assert_eq!(sum, "300000");
        std::fs::remove_file(room.path(&copy)).unwrap();
    }
}

#[test]
fn st_16_files_read_under_a_hold_are_a_database() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        bank(&room, "app.db", mode, 1024);
        let writers = [0, 1].map(|_| Other::start("write", &room.path("app.db")));
        copy_held(&room);
        writers.into_iter().for_each(|writer| {
            writer.end();
        });
    }
}

#[test]
fn st_16_holding_leaves_no_trace() {
    for mode in ["wal", "delete", "truncate", "persist"] {
        let room = Room::new();
        bank(&room, "app.db", mode, 4096);
        // Nobody is connected; somebody is; somebody was, and died.
        let check = || {
            let before = listing(&room.path(""));
            let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
            assert_eq!(held.is_wal(), mode == "wal");
            assert!(held.is_intact() && !held.has_hot_journal());
            drop(held);
            room.capture("app.db");
            assert_eq!(listing(&room.path("")), before);
        };
        check();
        let other = Other::start("connect", &room.path("app.db"));
        check();
        other.end();
        let other = Other::start("keep-log", &room.path("app.db"));
        check();
        other.kill();
        check();
    }
}

#[test]
fn what_is_no_database_is_not_held() {
    let room = Room::new();
    for bytes in [&b""[..], b"SQLite format 3", b"text", &[0; 5000]] {
        std::fs::write(room.path("file"), bytes).unwrap();
        assert!(hold(&room.path("file"), SOON).unwrap().is_none());
    }
    let error = hold(&room.path("missing"), SOON).unwrap_err();
    assert!(matches!(error, DatabaseError::File { .. }), "{error:?}");
}

#[test]
fn st_16_a_hold_waits_for_a_writer_and_gives_up_in_time() {
    let room = Room::new();
    bank(&room, "app.db", "delete", 4096);
    let other = Other::start("lock", &room.path("app.db"));
    let error = hold(&room.path("app.db"), SOON).unwrap_err();
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
    other.end();
    assert!(hold(&room.path("app.db"), LONG).unwrap().is_some());
}

/// Nothing is copied from the log into the database, and the log is not begun again, however
/// much others write and ask for it.
#[test]
fn st_16_neither_the_file_nor_what_counts_of_the_log_changes_while_it_is_held() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 1024);
    let keeper = Other::start("keep-log", &room.path("app.db"));
    // Who reads now notes that all of the log may be copied.
    Other::start("connect", &room.path("app.db")).end();
    let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
    let length = held.log().map(|(_, length)| length).unwrap();
    let length = usize::try_from(length).unwrap();
    let file = std::fs::read(room.path("app.db")).unwrap();
    let log = std::fs::read(room.path("app.db-wal")).unwrap();
    assert!(Other::start("write-only", &room.path("app.db")).end() >= 3);
    assert_eq!(std::fs::read(room.path("app.db")).unwrap(), file);
    let grown = std::fs::read(room.path("app.db-wal")).unwrap();
    assert!(grown.len() > log.len());
    assert_eq!(grown[..length], log[..length]);
    drop(held);
    assert!(Other::start("write-only", &room.path("app.db")).end() >= 3);
    assert_ne!(std::fs::read(room.path("app.db")).unwrap(), file);
    keeper.end();
}

/// A writer has found that all of the log was copied and begins again: the index says so, and
/// in the file are the old frames still, about to be overwritten.
#[test]
fn st_16_a_log_that_is_about_to_be_begun_again_does_not_count() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 4096);
    let keeper = Other::start("keep-log", &room.path("app.db"));
    let image = room.capture("app.db");
    let log = std::fs::read(room.path("app.db-wal")).unwrap();
    let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
    assert_eq!(held.log().unwrap().1, log.len() as u64);
    drop(held);
    room.run("app.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    std::fs::write(room.path("app.db-wal"), log).unwrap();
    let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
    assert!(held.is_wal() && held.log().is_none());
    drop(held);
    assert_eq!(room.capture("app.db").digest(), image.digest());
    keeper.kill();
}

/// While a database is held, others go on writing where there is a log; and afterwards all
/// is as usual.
#[test]
fn st_16_writers_go_on_while_a_log_is_held() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 4096);
    let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
    let other = Other::start("write", &room.path("app.db"));
    assert!(other.end() >= 3);
    // Nobody was connected before.
    assert!(!held.is_intact());
    drop(held);
    let keeper = Other::start("connect", &room.path("app.db"));
    let held = hold(&room.path("app.db"), LONG).unwrap().unwrap();
    let other = Other::start("write", &room.path("app.db"));
    assert!(other.end() >= 3);
    assert!(held.is_intact());
    drop(held);
    keeper.end();
    room.assert_sound("app.db");
    assert!(!room.path("app.db-wal").exists());
}
