//! The other process: this same program, started again to do one thing.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;

use crate::support::Room;

const WHAT: &str = "SAFEPOINT_TEST_CHILD";
const WAIT: Duration = Duration::from_secs(60);
const FILE: &str = "SAFEPOINT_TEST_FILE";

/// A process that is killed when this is dropped.
pub(crate) struct Other {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Other {
    /// Starts a process that does `what` on a file, and waits until it says that it does.
    pub(crate) fn start(what: &str, file: &Path) -> Self {
        let mut other = Self::spawn(what, file);
        other.wait_for("ready");
        other
    }

    pub(crate) fn spawn(what: &str, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child::act",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(WHAT, what)
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn wait_for(&mut self, wanted: &str) {
        let mut line = String::new();
        while line.trim() != wanted {
            line.clear();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended");
        }
    }

    /// Ends it in an orderly way, and gives the last number that it said.
    pub(crate) fn end(mut self) -> u64 {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.lines.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        let mut numbers = said.lines().rev().filter_map(|line| line.parse().ok());
        numbers.next().unwrap_or(0)
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(what: &str) {
    println!("\n{what}");
    std::io::stdout().flush().unwrap();
}

/// Waits until the one who started us is done with us.
fn wait() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[test]
#[ignore = "the other process of the tests here"]
fn act() {
    let Some(what) = std::env::var_os(WHAT) else {
        return;
    };
    let path = PathBuf::from(std::env::var_os(FILE).unwrap());
    let what = what.into_string().unwrap();
    if what == "restore" {
        return restore(&path);
    }
    let connection = Connection::open(&path).unwrap();
    connection.busy_timeout(WAIT).unwrap();
    match what.as_str() {
        "write" => transfer(&connection, WAIT),
        // Without waiting for anybody.
        "write-only" => transfer(&connection, Duration::ZERO),
        "write-persist" => {
            connection
                .execute_batch("PRAGMA journal_mode = persist")
                .unwrap();
            transfer(&connection, WAIT);
        }
        "connect" => {
            let sql = "SELECT count(*) FROM sqlite_schema";
            connection.query_row(sql, [], |_| Ok(())).unwrap();
            say("ready");
            wait();
        }
        "lock" => {
            connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
            say("ready");
            wait();
        }
        // Says 1 when it may write, and 0 when somebody else does.
        "try" => {
            connection.busy_timeout(Duration::ZERO).unwrap();
            say("ready");
            let free = connection.execute_batch("BEGIN IMMEDIATE").is_ok();
            say(if free { "1" } else { "0" });
        }
        "read" => {
            connection
                .execute_batch("BEGIN; SELECT count(*) FROM accounts;")
                .unwrap();
            say("ready");
            wait();
        }
        // Pages do not fit in the cache, so that they are written before the commit.
        "half-done" => {
            connection
                .execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE accounts SET note = note || 'half done'")
                .unwrap();
            say("ready");
            wait();
        }
        "keep-log" => {
            connection
                .execute_batch(
                    "PRAGMA wal_autocheckpoint = 0; UPDATE accounts SET note = printf('%-500s', 'in the log')",
                )
                .unwrap();
            say("ready");
            wait();
        }
        other => panic!("`{other}` is nothing to do"),
    }
}

/// Moves amounts between accounts for as long as it may, in transactions of many sizes; the
/// sum stays as it is, and so does the number of accounts with rows in `moves`.
fn transfer(connection: &Connection, patience: Duration) {
    let (sender, stop) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        wait();
        let _ = sender.send(());
    });
    connection.busy_timeout(patience).unwrap();
    connection
        .execute_batch("PRAGMA wal_autocheckpoint = 10; PRAGMA synchronous = OFF")
        .unwrap();
    let accounts: i64 = connection
        .query_row("SELECT count(*) FROM accounts", [], |row| row.get(0))
        .unwrap();
    let mut number = i64::from(std::process::id());
    let mut next = |limit: i64| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (number >> 33).rem_euclid(limit)
    };
    let mut count: u64 = 0;
    while stop.try_recv().is_err() {
        // SQLite lets nobody in who waits, as long as others come without a pause.
        std::thread::sleep(Duration::from_millis(1));
        if connection.execute_batch("BEGIN IMMEDIATE").is_err() {
            continue;
        }
        for _ in 0..=next(8) {
            let (from, to, amount) = (next(accounts), next(accounts), next(100));
            let filler = "x".repeat(usize::try_from(next(3000)).unwrap());
            for (account, amount) in [(from, -amount), (to, amount)] {
                connection
                    .execute(
                        "UPDATE accounts SET balance = balance + ?1, note = ?2 WHERE id = ?3",
                        (amount, &filler, account),
                    )
                    .unwrap();
            }
            connection
                .execute(
                    "INSERT INTO moves(amount, filler) VALUES (?1, ?2)",
                    (amount, &filler),
                )
                .unwrap();
            // It shrinks as often as it grows.
            if next(20) == 0 {
                connection
                    .execute_batch("DELETE FROM moves WHERE id % 5 > 0 OR id < (SELECT max(id) - 100 FROM moves)")
                    .unwrap();
            }
        }
        // A log that is copied whole and begun again, in all ways there are.
        let end = match next(20) {
            0 => "ROLLBACK",
            1 => "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)",
            2 => "COMMIT; PRAGMA wal_checkpoint(RESTART)",
            _ => "COMMIT",
        };
        while connection.execute_batch(end).is_err() && !connection.is_autocommit() {}
        count += 1;
        if count == 3 {
            say("ready");
        }
    }
    say(&count.to_string());
}

/// Captures `new.db` beside the file, and restores the file to it, again and again.
fn restore(path: &Path) {
    let room = Room::below(path.parent().unwrap());
    let new = path.with_file_name("new.db");
    let old = path.with_file_name("old.db");
    let images = [new, old].map(|from| room.capture(from.to_str().unwrap()));
    say("ready");
    loop {
        for image in &images {
            room.restore(path.to_str().unwrap(), image);
        }
    }
}
