//! A directory with a database in it, and a place in memory for what is kept.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::Connection;
use safepoint_database::{
    Access, Address, Contents, Database, DatabaseError, Image, Keep, Piece, Sink,
};
use safepoint_model::Digest;

/// Keeps pieces in memory.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<Digest, Vec<u8>>>);

struct Run<'a>(&'a Memory, Vec<u8>);

impl Keep for Memory {
    fn begin(&self) -> Box<dyn Sink + '_> {
        Box::new(Run(self, Vec::new()))
    }
}

impl Sink for Run<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.1.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        let content = Digest::from_bytes(*blake3::hash(&self.1).as_bytes());
        let size = self.1.len() as u64;
        self.0.0.lock().unwrap().insert(content, self.1);
        Ok(Piece { content, size })
    }
}

impl Contents for Memory {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let bytes = self.0.lock().unwrap()[&piece.content].clone();
        bytes.chunks(100_000).try_for_each(take)
    }
}

/// A directory, and what is kept of the databases in it.
pub(crate) struct Room {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) memory: Memory,
    pub(crate) patience: Duration,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    pub(crate) fn below(parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).unwrap();
        std::fs::create_dir(directory.path().join("scratch")).unwrap();
        std::fs::create_dir(directory.path().join("work")).unwrap();
        Self {
            directory,
            memory: Memory::default(),
            patience: Duration::from_secs(60),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("work").join(name)
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.directory.path().join("scratch")
    }

    /// The database `app.db`, or some tables of it: `app.db#users`.
    pub(crate) fn database(&self, name: &str) -> Database {
        let base = self.directory.path().join("work");
        let address = Address::parse(&format!("sqlite:{name}"), &base).unwrap();
        let access = Access {
            variables: BTreeMap::new(),
            scratch: self.scratch(),
            lock_timeout: self.patience,
        };
        Database::new(address, access)
    }

    pub(crate) fn capture(&self, name: &str) -> Image {
        self.database(name).capture(&self.memory).unwrap()
    }

    pub(crate) fn restore(&self, name: &str, image: &Image) -> Vec<String> {
        let restored = self.database(name).restore(image, &self.memory).unwrap();
        self.nothing_left_behind();
        restored.warnings
    }

    pub(crate) fn nothing_left_behind(&self) {
        let left: Vec<_> = std::fs::read_dir(self.scratch()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        for entry in std::fs::read_dir(self.path("")).unwrap() {
            let name = entry.unwrap().file_name();
            assert!(!name.to_string_lossy().contains("safepoint"), "{name:?}");
        }
    }

    pub(crate) fn run(&self, name: &str, sql: &str) {
        let connection = Connection::open(self.path(name)).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection.execute_batch(sql).unwrap();
    }

    /// The first column of the first row, as text.
    pub(crate) fn ask(&self, name: &str, sql: &str) -> String {
        let connection = Connection::open(self.path(name)).unwrap();
        connection.busy_timeout(Duration::from_secs(60)).unwrap();
        connection
            .query_row(&format!("SELECT CAST(({sql}) AS TEXT)"), [], |row| {
                row.get::<_, Option<String>>(0)
            })
            .unwrap()
            .unwrap_or_else(|| "NULL".into())
    }

    pub(crate) fn pragma(&self, name: &str, pragma: &str) -> String {
        let connection = Connection::open(self.path(name)).unwrap();
        connection
            .query_row(&format!("PRAGMA {pragma}"), [], |row| {
                row.get::<_, rusqlite::types::Value>(0)
            })
            .map(|value| match value {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            })
            .unwrap()
    }

    /// Everything that can be seen through SQL, as SQLite's own shell would dump it.
    pub(crate) fn dump(&self, name: &str) -> Vec<String> {
        let connection = Connection::open(self.path(name)).unwrap();
        let mut lines = Vec::new();
        let list =
            "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name";
        let mut statement = connection.prepare(list).unwrap();
        let schema: Vec<[String; 4]> = statement
            .query_map([], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        for [kind, name, table, sql] in schema {
            lines.push(format!("{kind} {name} {table} {sql}"));
            if kind != "table" {
                continue;
            }
            let name = name.replace('"', "\"\"");
            let numbered = format!("SELECT rowid, * FROM \"{name}\"");
            let plain = format!("SELECT * FROM \"{name}\"");
            let mut rows = connection
                .prepare(&numbered)
                .or_else(|_| connection.prepare(&plain))
                .unwrap();
            let count = rows.column_count();
            let mut rows = rows.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let values: Vec<String> = (0..count)
                    .map(|column| format!("{:?}", row.get_ref(column).unwrap()))
                    .collect();
                lines.push(values.join(" | "));
            }
        }
        for pragma in ["user_version", "application_id", "encoding", "auto_vacuum"] {
            lines.push(format!("{pragma} {}", self.pragma(name, pragma)));
        }
        lines
    }

    pub(crate) fn assert_sound(&self, name: &str) {
        assert_eq!(self.pragma(name, "integrity_check"), "ok");
    }
}

/// What lies in a directory: names, sizes, times and contents.
pub(crate) fn listing(directory: &Path) -> BTreeMap<String, (u64, i64, i64, Vec<u8>)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let meta = entry.metadata().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        found.insert(
            entry.file_name().to_string_lossy().into_owned(),
            (meta.ino(), meta.mtime(), meta.mtime_nsec(), bytes),
        );
    }
    found
}
