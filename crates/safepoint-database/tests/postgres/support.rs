//! A database of its own for each test, on the server that `SAFEPOINT_TEST_POSTGRES`
//! names; a place in memory for what is captured; and a second opinion: `pg_dump`.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postgres::{Client, NoTls};
use safepoint_database::{
    Access, Address, Contents, Database, DatabaseError, Image, Keep, Piece, Sink,
};
use safepoint_model::Digest;

/// A database that is gone when the room is.
pub(crate) struct Room {
    pub(crate) directory: tempfile::TempDir,
    server: String,
    pub(crate) name: String,
    pub(crate) memory: Memory,
}

impl Room {
    /// A room with an empty database.
    pub(crate) fn new() -> Self {
        let server = std::env::var("SAFEPOINT_TEST_POSTGRES").expect(
            "tests on PostgreSQL need a server: run ./test, or `eval \"$(scripts/postgres start)\"` first",
        );
        let directory = tempfile::tempdir().unwrap();
        let unique = directory.path().file_name().unwrap().to_string_lossy();
        let hex: String = unique.bytes().map(|byte| format!("{byte:02x}")).collect();
        let room = Self {
            name: format!("room_{hex}"),
            memory: Memory::default(),
            server,
            directory,
        };
        let mut client = Client::connect(&room.server, NoTls).unwrap();
        let create = format!("CREATE DATABASE {} TEMPLATE template0", room.name);
        client.batch_execute(&create).unwrap();
        room
    }

    /// A room whose database these statements were run in.
    pub(crate) fn with(statements: &str) -> Self {
        let room = Self::new();
        room.run(statements);
        room
    }

    /// Its address, with `#…` behind it.
    pub(crate) fn address(&self, scope: &str) -> Address {
        let base = self.server.rsplit_once('/').unwrap().0;
        let text = format!("{base}/{}{scope}", self.name);
        Address::parse(&text, Path::new("/")).unwrap()
    }

    /// Its address for another role.
    pub(crate) fn address_as(&self, role: &str) -> Address {
        let base = self.server.rsplit_once('/').unwrap().0;
        let host = base.rsplit_once('@').unwrap().1;
        let text = format!("postgres://{role}@{host}/{}", self.name);
        Address::parse(&text, Path::new("/")).unwrap()
    }

    /// A connection to the server's own database.
    pub(crate) fn server(&self) -> Client {
        Client::connect(&self.server, NoTls).unwrap()
    }

    pub(crate) fn access(&self) -> Access {
        Self::access_in(self.directory.path())
    }

    /// What a process needs that has no room of its own.
    pub(crate) fn access_in(directory: &Path) -> Access {
        let variables = ["PATH", "HOME"]
            .iter()
            .filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        Access {
            variables: variables.collect::<BTreeMap<_, _>>(),
            scratch: directory.to_owned(),
            lock_timeout: Duration::from_millis(300),
        }
    }

    /// The database, or the part of it behind `#`.
    pub(crate) fn database(&self, scope: &str) -> Database {
        Database::new(self.address(scope), self.access())
    }

    pub(crate) fn capture(&self, scope: &str) -> Image {
        self.database(scope).capture(&self.memory).unwrap()
    }

    /// The digest of what is there, when it is there.
    pub(crate) fn capture_any(&self, scope: &str) -> Option<Digest> {
        let image = self.database(scope).capture(&self.memory);
        image.ok().map(|image| image.digest())
    }

    pub(crate) fn restore(&self, scope: &str, image: &Image) {
        let restored = self.database(scope).restore(image, &self.memory).unwrap();
        assert_eq!(restored.warnings, Vec::<String>::new());
    }

    /// Somebody else's connection.
    pub(crate) fn client(&self) -> Client {
        let base = self.server.rsplit_once('/').unwrap().0;
        Client::connect(&format!("{base}/{}", self.name), NoTls).unwrap()
    }

    pub(crate) fn run(&self, statements: &str) {
        self.client()
            .batch_execute(statements)
            .unwrap_or_else(|error| panic!("{error:?}"));
    }

    /// The first cell of an answer.
    pub(crate) fn cell(&self, query: &str) -> String {
        let query = format!("SELECT ({query})::text");
        self.client().query_one(&query, &[]).unwrap().get(0)
    }

    /// What `pg_dump` says must be the same before and after.
    pub(crate) fn assert_dump(&self, before: &str) {
        let after = self.dump(&[]);
        assert!(before == after, "{}", difference(before, &after));
    }

    /// All that `pg_dump` has to say about the database.
    pub(crate) fn dump(&self, arguments: &[&str]) -> String {
        let server = self.address("");
        let server = server.server().unwrap();
        let output = Command::new("pg_dump")
            .args(["-h", &server.host, "-U", &server.user, "-d", &self.name])
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict"));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&self.server, NoTls) {
            // Left behind, it costs a little disk until the server is stopped.
            let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
            let _ = client.batch_execute(&drop);
        }
    }
}

/// The lines that only one of two texts has.
fn difference(before: &str, after: &str) -> String {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(before), lines(after));
    let only = |these: &[String], those: &[String], sign: char| -> Vec<String> {
        let only = these.iter().filter(|line| !those.contains(line));
        only.map(|line| format!("{sign} {line}")).collect()
    };
    let mut lines = only(&before, &after, '-');
    lines.extend(only(&after, &before, '+'));
    lines.join("\n")
}

/// Keeps pieces in memory, and hands them out in small runs.
#[derive(Default)]
pub(crate) struct Memory {
    pieces: Mutex<HashMap<Digest, Vec<u8>>>,
}

impl Memory {
    /// All of it, with an image, for another process.
    pub(crate) fn to_json(&self, image: &Image) -> Vec<u8> {
        let pieces = self.pieces.lock().unwrap();
        let pieces: Vec<(&Digest, &Vec<u8>)> = pieces.iter().collect();
        serde_json::to_vec(&(image, pieces)).unwrap()
    }

    pub(crate) fn from_json(json: &[u8]) -> (Self, Image) {
        let (image, pieces): (Image, Vec<(Digest, Vec<u8>)>) =
            serde_json::from_slice(json).unwrap();
        let memory = Self::default();
        memory.pieces.lock().unwrap().extend(pieces);
        (memory, image)
    }

    /// Whether these bytes are anywhere in what was kept.
    pub(crate) fn holds(&self, text: &str) -> bool {
        let pieces = self.pieces.lock().unwrap();
        let held = |piece: &Vec<u8>| {
            piece
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        pieces.values().any(held)
    }
}

struct MemorySink<'a> {
    memory: &'a Memory,
    bytes: Vec<u8>,
}

impl Keep for Memory {
    fn begin(&self) -> Box<dyn Sink + '_> {
        Box::new(MemorySink {
            memory: self,
            bytes: Vec::new(),
        })
    }
}

impl Sink for MemorySink<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        let content = Digest::from_bytes(blake3::hash(&self.bytes).into());
        let size = self.bytes.len() as u64;
        let mut pieces = self.memory.pieces.lock().unwrap();
        pieces.insert(content, self.bytes);
        Ok(Piece { content, size })
    }
}

impl Contents for Memory {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let bytes = self.pieces.lock().unwrap()[&piece.content].clone();
        for run in bytes.chunks(1000) {
            take(run)?;
        }
        Ok(())
    }
}

/// Hands out what is in a memory, and does something before the `at`-th run.
pub(crate) struct Interrupted<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) at: usize,
    pub(crate) count: AtomicUsize,
    pub(crate) then: &'a (dyn Fn() -> Result<(), DatabaseError> + Sync),
}

impl<'a> Interrupted<'a> {
    pub(crate) fn new(
        memory: &'a Memory,
        at: usize,
        then: &'a (dyn Fn() -> Result<(), DatabaseError> + Sync),
    ) -> Self {
        Self {
            memory,
            at,
            count: AtomicUsize::new(0),
            then,
        }
    }

    pub(crate) fn has_happened(&self) -> bool {
        self.count.load(Ordering::SeqCst) > self.at
    }
}

impl Contents for Interrupted<'_> {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        self.memory.copy(piece, &mut |run| {
            if self.count.fetch_add(1, Ordering::SeqCst) == self.at {
                (self.then)()?;
            }
            take(run)
        })
    }
}
