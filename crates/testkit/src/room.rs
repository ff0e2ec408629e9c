//! A place for one test: a directory and a store of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use postgres::{Client, NoTls};
use safepoint_model::Digest;
use safepoint_store::{Blobs, Durability, Flow, Location, Options, Store};
use safepoint_trail::{
    Actor, Draft, Entry, Kind, LostStore, Query, Stream, Surroundings, Trail, TrailError,
};

use crate::{FixedClock, Seeded};

/// Which database a room has its store in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file in the room.
    Sqlite,
    /// A database of its own in the server that `SAFEPOINT_TEST_POSTGRES` names.
    Postgres,
}

/// A temporary directory and a store. Both are gone when the room is.
pub struct Room {
    directory: tempfile::TempDir,
    database: Database,
    location: Location,
    /// The clock of everything opened in this room.
    pub clock: Arc<FixedClock>,
}

impl Room {
    /// An empty room.
    pub fn new(database: Database) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = match database {
            Database::Sqlite => Location::Sqlite(directory.path().join("store.db")),
            Database::Postgres => Location::Postgres(create_database(directory.path())),
        };
        Self {
            directory,
            database,
            location,
            clock: Arc::new(FixedClock::at("2026-11-15T07:00:00Z")),
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Which database it uses.
    pub fn database(&self) -> Database {
        self.database
    }

    /// The address of its store.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The address of its store, password and all, for another process.
    pub fn address(&self) -> String {
        match &self.location {
            Location::Sqlite(path) => format!("sqlite:{}", path.display()),
            Location::Postgres(url) => url.clone(),
        }
    }

    /// Where the copies of heads are.
    pub fn witnesses(&self) -> PathBuf {
        self.path().join("witness")
    }

    /// Opens the store, waiting only a short time for locks.
    pub fn store(&self) -> Arc<Store> {
        let options = Options {
            lock_timeout: Duration::from_secs(20),
        };
        Arc::new(Store::open(&self.location, options).unwrap())
    }

    /// What a trail in this room needs besides its store.
    pub fn surroundings(&self) -> Surroundings {
        // The name of the directory is random, so every room has a key of its own.
        let digest = Digest::of_parts(&[self.path().as_os_str().as_encoded_bytes()]);
        let mut seed = [0; 8];
        seed.copy_from_slice(&digest.as_bytes()[..8]);
        Surroundings {
            keys: self.path().join("keys"),
            witnesses: self.witnesses(),
            blobs: Blobs::new(self.path().join("blobs")),
            clock: self.clock.clone(),
            entropy: Arc::new(Seeded::new(u64::from_le_bytes(seed))),
            lost_store: LostStore::Refuse,
        }
    }

    /// Opens the trail.
    pub fn trail(&self) -> Trail {
        Trail::open(self.store(), &self.surroundings()).unwrap()
    }

    /// A trail with `count` entries in three streams beside the first one.
    pub fn filled_trail(&self, count: usize) -> Trail {
        let trail = self.trail();
        for number in 0..count {
            self.clock.move_by(1_000);
            append(&trail, &format!("stream-{}", number % 3), number);
        }
        trail
    }

    /// All entries, as the trail itself reads them.
    pub fn entries(&self, trail: &Trail) -> Vec<Entry> {
        let mut entries = Vec::new();
        trail
            .entries(&Query::default(), |entry| -> Result<Flow, TrailError> {
                entries.push(entry);
                Ok(Flow::More)
            })
            .unwrap();
        entries
    }

    /// Puts these entries in place of those in the database, past all triggers.
    pub fn rewrite(&self, entries: &[Entry]) {
        let blob = |digest: Option<Digest>| match (digest, self.database) {
            (None, _) => "NULL".to_owned(),
            (Some(digest), Database::Sqlite) => format!("x'{digest}'"),
            (Some(digest), Database::Postgres) => format!("'\\x{digest}'"),
        };
        let mut statements = "DELETE FROM trail_entries;".to_owned();
        for entry in entries {
            statements.push_str(&format!(
                "INSERT INTO trail_entries VALUES ({}, '{}', {}, '{}', '{}', '{}', {}, '{}', {}, {});",
                entry.seq,
                entry.id,
                entry.time.as_micros(),
                entry.stream,
                entry.actor,
                entry.kind,
                entry.action_id.as_ref().map_or("NULL".to_owned(), |id| format!("'{id}'")),
                entry.body.replace('\'', "''"),
                blob(entry.prev_hash),
                blob(Some(entry.hash)),
            ));
        }
        self.tamper(&statements);
    }

    /// Runs statements as somebody with write access to the database would,
    /// past all triggers.
    pub fn tamper(&self, statements: &str) {
        match &self.location {
            Location::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                let triggers: Vec<String> = connection
                    .prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'")
                    .unwrap()
                    .query_map([], |row| row.get(0))
                    .unwrap()
                    .map(Result::unwrap)
                    .collect();
                for trigger in triggers {
                    let drop = format!("DROP TRIGGER {trigger}");
                    connection.execute_batch(&drop).unwrap();
                }
                connection.execute_batch(statements).unwrap();
            }
            Location::Postgres(url) => {
                let mut client = Client::connect(url, NoTls).unwrap();
                client
                    .batch_execute(&format!(
                        "SET search_path TO safepoint; SET session_replication_role = replica; {statements}"
                    ))
                    .unwrap();
            }
        }
    }
}

/// Adds one entry whose body is `{"number": number, "text": "…"}`.
pub fn append(trail: &Trail, stream: &str, number: usize) -> Entry {
    trail
        .append(draft(stream, number), Durability::Sync)
        .unwrap()
}

/// A draft like those in a filled trail.
pub fn draft(stream: &str, number: usize) -> Draft {
    Draft {
        stream: stream.parse::<Stream>().unwrap(),
        actor: "agent:test".parse::<Actor>().unwrap(),
        kind: "tested".parse::<Kind>().unwrap(),
        action_id: None,
        body: serde_json::json!({"number": number, "text": "naïve 日本語 \u{1f600}\n"}),
    }
}

/// Makes a database with a name of its own, and returns its address.
fn create_database(room: &Path) -> String {
    let server = std::env::var("SAFEPOINT_TEST_POSTGRES").expect(
        "tests on PostgreSQL need a server: run ./test, or `eval \"$(scripts/postgres start)\"` first",
    );
    let unique = room.file_name().unwrap().to_string_lossy();
    let name: String = unique
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| format!("{:02x}", c as u32))
        .collect();
    let name = format!("room_{name}");
    let mut client = Client::connect(&server, NoTls).unwrap();
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .unwrap();
    let base = server.rsplit_once('/').unwrap().0;
    format!("{base}/{name}")
}

impl Drop for Room {
    fn drop(&mut self) {
        if let (Location::Postgres(url), Ok(server)) =
            (&self.location, std::env::var("SAFEPOINT_TEST_POSTGRES"))
        {
            let name = url.rsplit('/').next().unwrap();
            if let Ok(mut client) = Client::connect(&server, NoTls) {
                // Left behind, it costs a little disk until the server is stopped.
                let _ =
                    client.batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            }
        }
    }
}
