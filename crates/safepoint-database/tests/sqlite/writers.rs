//! Captures beside writers that never stop.

use std::path::PathBuf;
use std::sync::Mutex;

use safepoint_database::{DatabaseError, Keep, Piece, Sink};

use crate::child::Other;
use crate::support::Room;

const ACCOUNTS: u32 = 300;
const ROUNDS: usize = 150;

pub(crate) fn bank(room: &Room, name: &str, mode: &str, page_size: u32) {
    room.run(
        name,
        &format!(
            "PRAGMA page_size = {page_size}; PRAGMA journal_mode = {mode};
             CREATE TABLE accounts(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, note TEXT);
             CREATE INDEX by_balance ON accounts(balance);
             CREATE TABLE moves(id INTEGER PRIMARY KEY AUTOINCREMENT, amount, filler);
             WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {ACCOUNTS} - 1)
             INSERT INTO accounts SELECT i, 1000, 'account ' || i FROM n;"
        ),
    );
}

fn every_capture_is_one_moment(mode: &str, page_size: u32, writer: &str) {
    let room = Room::new();
    bank(&room, "app.db", mode, page_size);
    let writers = [0, 1].map(|_| Other::start(writer, &room.path("app.db")));
    let mut digests = std::collections::BTreeSet::new();
    for round in 0..ROUNDS {
        let image = room.capture("app.db");
        // Into the same database again and again, and now and then into a new one.
        let copy = format!("copy-{}.db", round / 50);
        room.restore(&copy, &image);
        room.assert_sound(&copy);
        let sum = room.ask(
            &copy,
            "SELECT sum(balance) || ' ' || count(*) FROM accounts",
        );
        assert_eq!(sum, format!("{} {ACCOUNTS}", ACCOUNTS * 1000));
        assert_eq!(room.capture(&copy).digest(), image.digest());
        digests.insert(image.digest());
    }
    let written: u64 = writers.map(Other::end).into_iter().sum();
    assert!(written > 0);
    assert!(digests.len() > ROUNDS / 10, "the writers stood still");
    room.assert_sound("app.db");
}

#[test]
fn st_16_every_capture_beside_writers_with_a_log_is_one_moment() {
    every_capture_is_one_moment("wal", 4096, "write");
}

#[test]
fn st_16_every_capture_beside_writers_with_a_log_and_small_pages_is_one_moment() {
    every_capture_is_one_moment("wal", 512, "write");
}

#[test]
fn st_16_every_capture_beside_writers_with_a_journal_is_one_moment() {
    every_capture_is_one_moment("delete", 1024, "write");
}

#[test]
fn st_16_every_capture_beside_writers_with_a_persistent_journal_is_one_moment() {
    every_capture_is_one_moment("delete", 4096, "write-persist");
}

/// Restoring a database that others write to: it is one transaction among theirs.
#[test]
fn st_16_a_restore_beside_writers_is_one_transaction() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        bank(&room, "app.db", mode, 4096);
        let image = room.capture("app.db");
        let writers = [0, 1].map(|_| Other::start("write", &room.path("app.db")));
        for _ in 0..25 {
            room.restore("app.db", &image);
        }
        writers.into_iter().for_each(|writer| {
            writer.end();
        });
        room.assert_sound("app.db");
        let sum = room.ask(
            "app.db",
            "SELECT sum(balance) || ' ' || count(*) FROM accounts",
        );
        assert_eq!(sum, format!("{} {ACCOUNTS}", ACCOUNTS * 1000));
        assert_eq!(room.pragma("app.db", "journal_mode"), mode);
        assert_eq!(room.restore("app.db", &image), Vec::<String>::new());
        assert_eq!(room.capture("app.db").digest(), image.digest());
    }
}

/// Lets another process write as soon as the first bytes were read.
struct Disturbed<'a>(&'a Room, Mutex<Option<PathBuf>>);

struct Run<'a>(Box<dyn Sink + 'a>, &'a Disturbed<'a>);

impl Keep for Disturbed<'_> {
    fn begin(&self) -> Box<dyn Sink + '_> {
        Box::new(Run(self.0.memory.begin(), self))
    }
}

impl Sink for Run<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        if let Some(path) = self.1.1.lock().unwrap().take() {
            Other::start("write", &path).end();
        }
        self.0.push(bytes)
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        self.0.finish()
    }
}

/// Nobody was connected when we began, so there was nothing to lock. It is noticed.
#[test]
fn st_16_who_connects_while_we_read_makes_us_read_again() {
    let room = Room::new();
    bank(&room, "app.db", "wal", 1024);
    room.run("app.db", "UPDATE accounts SET note = printf('%2000c', 'x')");
    let before = room.capture("app.db");
    let keep = Disturbed(&room, Mutex::new(Some(room.path("app.db"))));
    let image = room.database("app.db").capture(&keep).unwrap();
    assert_ne!(image.digest(), before.digest());
    room.restore("copy.db", &image);
    assert_eq!(room.capture("app.db").digest(), image.digest());
}
