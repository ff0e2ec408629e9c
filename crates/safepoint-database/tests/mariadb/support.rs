//! A database of its own for each test, and somewhere to keep what is captured.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use safepoint_database::{
    Access, Address, Contents, Database, DatabaseError, Image, Keep, Piece, Sink, SqlChange,
    compare,
};
use safepoint_model::Digest;

/// A database on the server that `SAFEPOINT_TEST_MARIADB` names. It is gone when the room is.
pub(crate) struct Room {
    pub(crate) name: String,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) store: Store,
    host: String,
}

impl Room {
    /// An empty room with a random name.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let unique = directory.path().file_name().unwrap().to_string_lossy();
        let digest = Digest::of_parts(&[unique.as_bytes()]).to_string();
        Self::named(&format!("room_{}", &digest[..16]), directory)
    }

    /// A room of this name.
    pub(crate) fn named(name: &str, directory: tempfile::TempDir) -> Self {
        let server = std::env::var("SAFEPOINT_TEST_MARIADB").expect(
            "tests on MariaDB need a server: run ./test, or `eval \"$(scripts/mariadb start)\"` first",
        );
        let address = Address::parse(&server, Path::new("/")).unwrap();
        let room = Self {
            name: name.to_owned(),
            directory,
            store: Store::default(),
            host: address.server().unwrap().host.clone(),
        };
        room.on_server(&format!(
            "CREATE DATABASE `{}` CHARACTER SET utf8mb4",
            room.name.replace('`', "``")
        ));
        room
    }

    /// A room with these statements run in it.
    pub(crate) fn with(statements: &str) -> Self {
        let room = Self::new();
        room.sql(statements);
        room
    }

    fn client(&self) -> Command {
        let mut command = Command::new("mariadb");
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.host))
            .args(["--user=root", "--default-character-set=utf8mb4"])
            .args(["--batch", "--skip-column-names", "--unbuffered"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn feed(mut command: Command, statements: &str) -> String {
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = statements.to_owned();
        let writer = std::thread::spawn(move || {
            let _ = input.write_all(text.as_bytes());
        });
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}\n{statements}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs statements outside the database.
    pub(crate) fn on_server(&self, statements: &str) -> String {
        Self::feed(self.client(), statements)
    }

    /// Runs statements in the database, and returns the rows.
    pub(crate) fn sql(&self, statements: &str) -> String {
        let mut command = self.client();
        command.arg(format!("--database={}", self.name));
        Self::feed(command, statements)
    }

    /// A client with these statements in it, which stays.
    pub(crate) fn client_at_work(&self, statements: &str) -> Child {
        let mut command = self.client();
        command.arg(format!("--database={}", self.name));
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let text = statements.to_owned();
        std::thread::spawn(move || {
            let _ = input.write_all(text.as_bytes());
        });
        child
    }

    /// Waits until a client has printed this line.
    pub(crate) fn wait_for_line(&self, child: &mut Child, wanted: &str) {
        let output = child.stdout.as_mut().unwrap();
        let mut lines = std::io::BufReader::new(output).lines();
        assert!(lines.any(|line| line.unwrap() == wanted), "{wanted}");
    }

    /// Ends a client, and waits until the server knows.
    pub(crate) fn end(&self, mut child: Child) {
        self.kill_connections();
        let _ = child.kill();
        child.wait().unwrap();
    }

    /// Cuts all connections that are in this database, or in one that is built beside it, and
    /// waits until they are gone.
    pub(crate) fn kill_connections(&self) {
        let list = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE DB LIKE '{}%' AND ID <> CONNECTION_ID()",
            self.name
        );
        let mut told = HashSet::new();
        loop {
            let ids = self.on_server(&list);
            if ids.is_empty() {
                return;
            }
            // Each once: what is at its end needs no second one.
            for id in ids.lines().filter(|id| told.insert((*id).to_owned())) {
                let mut command = self.client();
                // It may be gone by itself by now.
                let _ = command.args(["--execute", &format!("KILL {id}")]).output();
            }
        }
    }

    /// What the user's process has in its environment.
    pub(crate) fn access(&self) -> Access {
        Access {
            variables: BTreeMap::from([
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                ("HOME".into(), self.directory.path().as_os_str().to_owned()),
            ]),
            scratch: self.directory.path().to_owned(),
            lock_timeout: Duration::from_secs(20),
        }
    }

    /// The address, for this user and with this behind it.
    pub(crate) fn address(&self, user: &str, behind: &str) -> Address {
        let encode =
            |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
        let text = format!(
            "mariadb://{user}@{}/{}{behind}",
            encode(&self.host),
            encode(&self.name)
        );
        Address::parse(&text, Path::new("/")).unwrap()
    }

    /// The whole database.
    pub(crate) fn database(&self) -> Database {
        self.part("")
    }

    /// A part of it: `#users,orders`.
    pub(crate) fn part(&self, behind: &str) -> Database {
        Database::new(self.address("root", behind), self.access())
    }

    /// The same, with little patience.
    pub(crate) fn hasty(&self) -> Database {
        let mut access = self.access();
        access.lock_timeout = Duration::from_millis(100);
        Database::new(self.address("root", ""), access)
    }

    /// Captures the whole database.
    pub(crate) fn capture(&self) -> Image {
        self.database().capture(&self.store).unwrap()
    }

    /// Restores the whole database, and sees to it that it is what it was.
    pub(crate) fn restore(&self, image: &Image) {
        let restored = self.database().restore(image, &self.store).unwrap();
        assert_eq!(restored.warnings, Vec::<String>::new());
        self.assert_is(image);
    }

    /// Fails unless the database is what the image says.
    pub(crate) fn assert_is(&self, image: &Image) {
        self.assert_part_is("", image);
    }

    /// The same for a part of it.
    pub(crate) fn assert_part_is(&self, behind: &str, image: &Image) {
        let found = self.part(behind).capture(&self.store).unwrap();
        assert_eq!(self.difference(image, &found), "");
        assert_eq!(found.digest(), image.digest());
        self.assert_nothing_left();
    }

    /// Fails when a restore has left anything behind.
    pub(crate) fn assert_nothing_left(&self) {
        let left = self.on_server("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA");
        let digest = Digest::of_parts(&[self.name.as_bytes()]).to_string();
        let mark = format!("__safepoint_{}_", &digest[..8]);
        let left: Vec<&str> = left.lines().filter(|name| name.contains(&mark)).collect();
        assert_eq!(left, Vec::<&str>::new());
    }

    /// What differs, for people.
    pub(crate) fn difference(&self, before: &Image, after: &Image) -> String {
        let scratch = self.directory.path();
        compare(before, after, &self.store, scratch, 20)
            .unwrap()
            .to_text()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let name = self.name.replace('`', "``");
        // A test that failed may have left clients with locks behind: they go with the server.
        let mut command = self.client();
        let drop = format!(
            "SET lock_wait_timeout = 1, foreign_key_checks = 0; DROP DATABASE IF EXISTS `{name}`"
        );
        let _ = command.args(["--execute", &drop]).output();
    }
}

/// The values of many rows, as `VALUES` takes them.
pub(crate) fn values(numbers: impl Iterator<Item = u32>, row: impl Fn(u32) -> String) -> String {
    let rows: Vec<String> = numbers.map(|number| format!("({})", row(number))).collect();
    rows.join(", ")
}

/// A change with a check.
pub(crate) fn change(statements: &str, check: Option<&str>) -> SqlChange {
    SqlChange {
        statements: statements.to_owned(),
        check: check.map(str::to_owned),
    }
}

/// Keeps pieces in memory.
#[derive(Default)]
pub(crate) struct Store {
    pieces: Mutex<HashMap<Digest, Vec<u8>>>,
}

impl Keep for Store {
    fn begin(&self) -> Box<dyn Sink + '_> {
        Box::new(Writing {
            store: self,
            bytes: Vec::new(),
        })
    }
}

struct Writing<'a> {
    store: &'a Store,
    bytes: Vec<u8>,
}

impl Sink for Writing<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        let content = Digest::from_bytes(*blake3::hash(&self.bytes).as_bytes());
        let size = self.bytes.len() as u64;
        self.store
            .pieces
            .lock()
            .unwrap()
            .insert(content, self.bytes);
        Ok(Piece { content, size })
    }
}

impl Contents for Store {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let bytes = self.pieces.lock().unwrap()[&piece.content].clone();
        // Short runs, whose ends fall anywhere.
        bytes.chunks(1009).try_for_each(take)
    }
}

/// Hands out pieces, and does something before the run with this number.
pub(crate) struct Disturbed<'a> {
    pub(crate) store: &'a Store,
    pub(crate) runs: Mutex<u64>,
    pub(crate) at: u64,
    pub(crate) disturb: &'a (dyn Fn() -> Result<(), DatabaseError> + Sync),
}

impl Contents for Disturbed<'_> {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        self.store.copy(piece, &mut |run| {
            let mut runs = self.runs.lock().unwrap();
            *runs += 1;
            if *runs == self.at {
                (self.disturb)()?;
            }
            take(run)
        })
    }
}
