//! What can go wrong around a store. Each fault has its own error, which names
//! the place; and when it is gone, the store works again and holds exactly
//! what it acknowledged.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests bring the faults about themselves and fail loudly"
)]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::error::Error;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::{Client, NoTls};
use safepoint_store::durable::{self, Access};
use safepoint_store::{Blobs, Durability, Location, Store, StoreError, Value, query_all};
use support::{Member, NOTES, add, ids, insert, open_impatient, pile};
use testkit::{Database, Room, on_every_store};

const PAGE: u64 = 4096;

/// The advisory lock of writers on PostgreSQL: "SafP".
const WRITE_LOCK: i64 = 0x5361_6650;

/// Checks that the error is of this kind, names the place, says why, and does
/// not repeat its cause.
macro_rules! assert_error {
    ($error:expr, $kind:ident, $place:expr) => {{
        let error: StoreError = $error;
        let place: String = $place.to_string();
        assert!(matches!(error, StoreError::$kind { .. }), "{error:?}");
        let message = error.to_string();
        assert!(
            message.contains(&format!("`{place}`")),
            "{message} / {place}"
        );
        let cause = error.source().unwrap().to_string();
        assert!(
            !cause.is_empty() && !message.contains(&cause),
            "{message}: {cause}"
        );
    }};
}

/// What a store at this place is called in messages.
fn place(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => path.display().to_string(),
        postgres => postgres.to_string(),
    }
}

fn raw_postgres(room: &Room) -> Client {
    Client::connect(&room.address(), NoTls).unwrap()
}

/// The database of the room, to be altered from outside of it.
fn database_name(room: &Room) -> String {
    let row = raw_postgres(room).query_one("SELECT current_database()::text", &[]);
    row.unwrap().get(0)
}

/// A connection to another database of the same server.
fn server(room: &Room) -> Client {
    let address = room.address().replace(&database_name(room), "postgres");
    Client::connect(&address, NoTls).unwrap()
}

/// Ends all connections of stores to this database, and waits until they are gone.
fn end_connections(client: &mut Client, database: &str) -> usize {
    let ended = client
        .query(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'safepoint' AND datname = $1::text",
            &[&database],
        )
        .unwrap();
    assert!(ended.iter().all(|row| row.get::<_, bool>(0)));
    ended.len()
}

/// A store with the table of notes and note 1 in it.
fn with_one_note(location: &Location) -> Store {
    let store = open_impatient(location).unwrap();
    store.migrate(&NOTES).unwrap();
    add(&store, 1).unwrap();
    store
}

/// Checks that the store works and holds these notes; adds note 1000.
fn assert_works_and_holds(location: &Location, expected: &[i64]) {
    let store = open_impatient(location).unwrap();
    store.migrate(&NOTES).unwrap();
    assert_eq!(ids(&store).unwrap(), expected);
    add(&store, 1000).unwrap();
    assert_eq!(ids(&store).unwrap().last(), Some(&1000));
}

/// Somebody else who holds the write lock.
enum Holder {
    Sqlite(rusqlite::Connection),
    Postgres(Client),
}

impl Holder {
    fn take(room: &Room) -> Self {
        match room.location() {
            Location::Sqlite(path) => {
                let connection = rusqlite::Connection::open(path).unwrap();
                connection.execute_batch("BEGIN IMMEDIATE").unwrap();
                Self::Sqlite(connection)
            }
            Location::Postgres(_) => {
                let mut client = raw_postgres(room);
                client
                    .batch_execute(&format!("SELECT pg_advisory_lock({WRITE_LOCK})"))
                    .unwrap();
                Self::Postgres(client)
            }
        }
    }

    fn let_go(self) {
        match self {
            Self::Sqlite(connection) => connection.execute_batch("ROLLBACK").unwrap(),
            Self::Postgres(mut client) => client
                .batch_execute(&format!("SELECT pg_advisory_unlock({WRITE_LOCK})"))
                .unwrap(),
        }
    }
}

on_every_store! {
    fn tr_10_a_locked_store_is_an_error_and_can_still_be_read(room: Room) {
        let store = with_one_note(room.location());
        let holder = Holder::take(&room);
        assert_error!(add(&store, 2).unwrap_err(), Locked, place(room.location()));
        assert_eq!(ids(&store).unwrap(), [1]);

        let other = open_impatient(room.location()).unwrap();
        assert_eq!(ids(&other).unwrap(), [1]);
        other.migrate(&NOTES).unwrap();
        assert_error!(add(&other, 3).unwrap_err(), Locked, place(room.location()));
        holder.let_go();

        add(&store, 4).unwrap();
        add(&other, 5).unwrap();
        assert_works_and_holds(room.location(), &[1, 4, 5]);
    }

    fn tr_10_everyone_in_line_hears_that_the_store_is_locked(room: Room) {
        let store = with_one_note(room.location());
        let holder = Holder::take(&room);
        std::thread::scope(|scope| {
            for id in 2..8 {
                let (store, room) = (&store, &room);
                scope.spawn(move || {
                    let added = match id % 2 {
                        0 => add(store, id),
                        _ => store.write_shared(Durability::Sync, move |sql| insert(sql, id, "shared")),
                    };
                    assert_error!(added.unwrap_err(), Locked, place(room.location()));
                });
            }
        });
        holder.let_go();
        assert_works_and_holds(room.location(), &[1]);
    }
}

#[test]
fn store_a_new_postgres_store_that_is_locked_is_an_error() {
    let room = Room::new(Database::Postgres);
    let holder = Holder::take(&room);
    let error = open_impatient(room.location()).unwrap_err();
    assert_error!(error, Locked, place(room.location()));
    holder.let_go();
    assert_works_and_holds(room.location(), &[]);
}

#[test]
fn store_a_new_sqlite_store_that_is_locked_is_an_error() {
    let room = Room::new(Database::Sqlite);
    let holder = Holder::take(&room); // makes the file, empty
    let error = open_impatient(room.location()).unwrap_err();
    assert_error!(error, Locked, place(room.location()));
    holder.let_go();
    assert_works_and_holds(room.location(), &[]);
}

/// A file system of its own, in memory. Gone when it is dropped.
struct Mount(tempfile::TempDir);

impl Mount {
    /// `None` where the test may not mount: it needs root.
    fn new(size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let mount = Self(tempfile::tempdir().unwrap());
        let options = format!("size={size},mode=700");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
        run(command.arg(mount.path()));
        Some(mount)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn location(&self) -> Location {
        Location::Sqlite(self.path().join("store.db"))
    }

    fn remount(&self, option: &str) {
        let options = format!("remount,{option}");
        run(Command::new("mount")
            .args(["-o", &options])
            .arg(self.path()));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a failing test may still have files open here.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// Makes a directory read-only, whoever we are.
enum ReadOnly {
    Mount(Mount),
    Mode(tempfile::TempDir),
}

impl ReadOnly {
    fn new() -> Self {
        match Mount::new("8m") {
            Some(mount) => Self::Mount(mount),
            None => Self::Mode(tempfile::tempdir().unwrap()),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Mount(mount) => mount.path(),
            Self::Mode(directory) => directory.path(),
        }
    }

    fn set(&self, read_only: bool) {
        match self {
            Self::Mount(mount) => mount.remount(if read_only { "ro" } else { "rw" }),
            Self::Mode(directory) => {
                let mode = |mode| fs::Permissions::from_mode(mode);
                let (file, own) = if read_only {
                    (0o400, 0o500)
                } else {
                    (0o600, 0o700)
                };
                fs::set_permissions(directory.path(), mode(0o700)).unwrap();
                for entry in fs::read_dir(directory.path()).unwrap() {
                    fs::set_permissions(entry.unwrap().path(), mode(file)).unwrap();
                }
                fs::set_permissions(directory.path(), mode(own)).unwrap();
            }
        }
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        if let Self::Mode(directory) = self {
            let _ = fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o700));
        }
    }
}

#[test]
fn tr_10_a_sqlite_store_on_a_read_only_file_system_says_so() {
    let room = ReadOnly::new();
    let path = room.path().join("store.db");
    let location = Location::Sqlite(path.clone());
    drop(with_one_note(&location));
    room.set(true);
    // A store may be opened for reading here, but then writing must fail.
    let error = match open_impatient(&location) {
        Ok(store) => {
            assert_eq!(ids(&store).unwrap(), [1]);
            add(&store, 2).unwrap_err()
        }
        Err(error) => error,
    };
    assert_error!(error, ReadOnly, path.display());

    let absent = room.path().join("absent.db");
    let error = open_impatient(&Location::Sqlite(absent.clone())).unwrap_err();
    match (&room, error) {
        // Without root it is only a directory that we may not write to.
        (ReadOnly::Mode(_), error @ StoreError::File { .. }) => {
            assert_error!(error, File, absent.display());
        }
        (_, error) => assert_error!(error, ReadOnly, absent.display()),
    }
    room.set(false);
    assert_works_and_holds(&location, &[1]);
}

#[test]
fn tr_10_a_sqlite_store_that_was_not_closed_says_that_it_is_read_only() {
    let room = ReadOnly::new();
    let path = room.path().join("store.db");
    let elsewhere = tempfile::tempdir().unwrap();
    let source = Location::Sqlite(elsewhere.path().join("store.db"));
    let store = with_one_note(&source);
    add(&store, 2).unwrap();
    // As a killed process leaves it: the log holds everything.
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        fs::copy(elsewhere.path().join(name), room.path().join(name)).unwrap();
    }
    room.set(true);
    let location = Location::Sqlite(path.clone());
    let error = match open_impatient(&location) {
        Ok(store) => {
            assert_eq!(ids(&store).unwrap(), [1, 2]);
            add(&store, 3).unwrap_err()
        }
        Err(error) => error,
    };
    assert_error!(error, ReadOnly, path.display());
    room.set(false);
    assert_works_and_holds(&location, &[1, 2]);
}

#[test]
fn tr_10_files_and_blobs_on_a_read_only_file_system_say_so() {
    let Some(mount) = Mount::new("1m") else {
        eprintln!("not run: only root can mount a file system of its own");
        return;
    };
    let (path, blobs) = (mount.path().join("file"), mount.path().join("blobs"));
    durable::write(&path, b"old", Access::Private).unwrap();
    mount.remount("ro");
    let error = durable::write(&path, b"new", Access::Private).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
    let error = Blobs::new(&blobs).put(b"bytes").unwrap_err();
    assert_error!(error, ReadOnly, blobs.display());
    assert_eq!(fs::read(&path).unwrap(), b"old");
    mount.remount("rw");
    durable::write(&path, b"new", Access::Private).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn tr_10_a_read_only_postgres_database_says_so() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    drop(with_one_note(room.location()));
    let mut server = server(&room);
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    server.batch_execute(&format!("{set} = on")).unwrap();

    let store = open_impatient(room.location()).unwrap();
    assert_eq!(ids(&store).unwrap(), [1]);
    store.migrate(&NOTES).unwrap();
    assert_error!(
        add(&store, 2).unwrap_err(),
        ReadOnly,
        place(room.location())
    );
    drop(store);

    server.batch_execute(&format!("{set} = off")).unwrap();
    assert_works_and_holds(room.location(), &[1]);
}

#[test]
fn tr_10_a_new_store_in_a_read_only_postgres_database_says_so() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let mut server = server(&room);
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only");
    server.batch_execute(&format!("{set} = on")).unwrap();
    let error = open_impatient(room.location()).unwrap_err();
    assert_error!(error, ReadOnly, place(room.location()));
    server.batch_execute(&format!("{set} = off")).unwrap();
    assert_works_and_holds(room.location(), &[]);
}

/// Adds notes 2n and 2n + 1 in one write, a few kilobytes each.
fn add_pair(store: &Store, number: i64) -> Result<(), StoreError> {
    store.write(Durability::Sync, |sql| {
        for id in [2 * number, 2 * number + 1] {
            insert(sql, id, &"full ".repeat(1_000))?;
        }
        Ok(())
    })
}

#[test]
fn tr_10_a_full_disk_is_an_error_and_loses_nothing() {
    let Some(mount) = Mount::new("1m") else {
        eprintln!("not run: only root can mount a file system that is full soon");
        return;
    };
    let location = mount.location();
    let store = open_impatient(&location).unwrap();
    store.migrate(&NOTES).unwrap();
    let mut acknowledged = Vec::new();
    let error = (0..1_000)
        .find_map(|number| match add_pair(&store, number) {
            Ok(()) => {
                acknowledged.extend([2 * number, 2 * number + 1]);
                None
            }
            Err(error) => Some(error),
        })
        .unwrap();
    assert_error!(error, Full, place(&location));
    assert!(acknowledged.len() > 20);
    assert_eq!(ids(&store).unwrap(), acknowledged);
    assert_error!(add_pair(&store, 5_000).unwrap_err(), Full, place(&location));
    assert_eq!(ids(&store).unwrap(), acknowledged);

    mount.remount("size=8m");
    add_pair(&store, 6_000).unwrap();
    acknowledged.extend([12_000, 12_001]);
    assert_eq!(ids(&store).unwrap(), acknowledged);
    drop(store);
    let store = open_impatient(&location).unwrap();
    assert_eq!(ids(&store).unwrap(), acknowledged);
    add_pair(&store, 7_000).unwrap();
}

/// Fills what is left of a file system.
fn fill(directory: &Path) -> PathBuf {
    let path = directory.join("filler");
    let file = fs::File::create(&path).unwrap();
    let mut offset = 0;
    while file.write_all_at(&[1; 4096], offset).is_ok() {
        offset += 4096;
    }
    path
}

#[test]
fn tr_10_a_store_that_is_opened_on_a_full_disk_says_so() {
    let Some(mount) = Mount::new("1m") else {
        eprintln!("not run: only root can mount a file system that is full soon");
        return;
    };
    let location = mount.location();
    drop(with_one_note(&location));
    let filler = fill(mount.path());
    let error = open_impatient(&location)
        .and_then(|store| {
            assert_eq!(ids(&store)?, [1]);
            add(&store, 2)
        })
        .unwrap_err();
    assert_error!(error, Full, place(&location));

    let absent = mount.path().join("absent.db");
    let error = open_impatient(&Location::Sqlite(absent.clone())).unwrap_err();
    assert_error!(error, Full, absent.display());

    let (path, blobs) = (mount.path().join("file"), mount.path().join("blobs"));
    let error = durable::write(&path, &[1; 9_000], Access::Private).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert!(
        error.to_string().contains(&*mount.path().to_string_lossy()),
        "{error}"
    );
    assert!(!path.exists());
    let error = Blobs::new(&blobs).put(&[1; 9_000]).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");

    fs::remove_file(filler).unwrap();
    assert_works_and_holds(&location, &[1]);
}

/// One member of a shared transaction fills the disk, and SQLite gives up the
/// transaction of all: they hear why.
#[test]
fn tr_10_a_disk_filled_by_one_is_heard_by_all_in_its_transaction() {
    let Some(mount) = Mount::new("8m") else {
        eprintln!("not run: only root can mount a file system that is full soon");
        return;
    };
    let location = mount.location();
    let store = with_one_note(&location);
    // More than SQLite keeps in memory until the commit.
    let huge = vec![1; 40_000_000];
    let fills: Member<'_, StoreError> = Box::new(|sql| {
        let values = [Value::Integer(3), Value::Blob(&huge)];
        sql.execute("INSERT INTO notes (id, data) VALUES (?1, ?2)", &values)?;
        Ok(())
    });
    let first: Member<'_, StoreError> = Box::new(|sql| insert(sql, 2, "small"));
    for result in pile(&store, first, vec![fills]) {
        assert_error!(result.unwrap().unwrap_err(), Full, place(&location));
    }
    assert_eq!(ids(&store).unwrap(), [1]);
    add(&store, 4).unwrap();
    drop(store);
    assert_works_and_holds(&location, &[1, 4]);
}

/// A closed store in one file, with 400 notes on many pages.
fn many_pages(room: &Room) -> (PathBuf, Vec<u8>, Vec<i64>) {
    let Location::Sqlite(path) = room.location() else {
        panic!("pages are SQLite's");
    };
    let store = with_one_note(room.location());
    let expected: Vec<i64> = (1..=400).collect();
    store
        .write(Durability::Sync, |sql| {
            (2..=400).try_for_each(|id| insert(sql, id, &"page ".repeat(60)))
        })
        .unwrap();
    drop(store);
    let bytes = fs::read(path).unwrap();
    assert!(bytes.len() as u64 > 20 * PAGE);
    (path.clone(), bytes, expected)
}

/// Opens, reads everything and writes; what a user of a store would do.
fn use_all(location: &Location) -> Result<Vec<(i64, String)>, StoreError> {
    let store = open_impatient(location)?;
    store.migrate(&NOTES)?;
    let read = store.read(|sql| {
        query_all(sql, "SELECT id, text FROM notes ORDER BY id", &[], |row| {
            Ok((row.integer(0)?, row.text(1)?.to_owned()))
        })
    })?;
    add(&store, 2000)?;
    Ok(read)
}

fn overwrite(path: &Path, offset: u64, garbage: &[u8]) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(garbage, offset).unwrap();
}

#[test]
fn tr_10_a_damaged_header_is_damage() {
    let room = Room::new(Database::Sqlite);
    let (path, whole, expected) = many_pages(&room);
    overwrite(&path, 0, &[0xa5; 64]);
    let damaged = fs::read(&path).unwrap();
    let error = open_impatient(room.location()).unwrap_err();
    assert_error!(error, Corrupted, path.display());
    assert!(fs::read(&path).unwrap() == damaged, "it is left as it is");
    fs::write(&path, whole).unwrap();
    assert_works_and_holds(room.location(), &expected);
}

#[test]
fn tr_10_a_damaged_page_is_damage_and_never_a_wrong_answer() {
    let room = Room::new(Database::Sqlite);
    let (path, whole, expected) = many_pages(&room);
    let pages = whole.len() as u64 / PAGE;
    let right = use_all(room.location()).unwrap();
    assert_eq!(right.len(), expected.len());
    for page in 1..pages {
        fs::write(&path, &whole).unwrap();
        overwrite(&path, page * PAGE, &[0xa5; PAGE as usize]);
        match use_all(room.location()) {
            Ok(found) => assert!(found == right, "page {page} of {pages}"),
            Err(error) => assert_error!(error, Corrupted, path.display()),
        }
    }
    // All of them at once cannot go unseen.
    let garbage = vec![0xa5; whole.len() - PAGE as usize];
    overwrite(&path, PAGE, &garbage);
    let error = use_all(room.location()).unwrap_err();
    assert_error!(error, Corrupted, path.display());

    fs::write(&path, whole).unwrap();
    assert_works_and_holds(room.location(), &expected);
}

#[test]
fn tr_10_a_truncated_store_is_damage() {
    let room = Room::new(Database::Sqlite);
    let (path, whole, expected) = many_pages(&room);
    for length in [
        50,
        300,
        PAGE,
        PAGE + 100,
        10 * PAGE,
        whole.len() as u64 - PAGE,
    ] {
        fs::write(&path, &whole).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        match use_all(room.location()) {
            // The mark that makes it ours is cut off, too.
            Err(StoreError::Foreign { .. }) if length < 72 => {}
            Err(error @ StoreError::Corrupted { .. }) => {
                assert_error!(error, Corrupted, path.display());
            }
            other => panic!("{length} of {} bytes: {other:?}", whole.len()),
        }
    }
    fs::write(&path, whole).unwrap();
    assert_works_and_holds(room.location(), &expected);
}

/// Checks that `path` is refused as something else's, and left alone.
fn assert_foreign(path: &Path) {
    let before = fs::read(path).unwrap();
    let error = open_impatient(&Location::Sqlite(path.to_owned())).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    let message = error.to_string();
    assert!(
        message.contains(&format!("`{}`", path.display())),
        "{message}"
    );
    assert!(fs::read(path).unwrap() == before);
}

#[test]
fn store_another_database_is_foreign_and_left_alone() {
    let room = Room::new(Database::Sqlite);
    let path = room.path().join("store.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch(
            "CREATE TABLE recipes (id INTEGER PRIMARY KEY); INSERT INTO recipes VALUES (7)",
        )
        .unwrap();
    drop(other);
    assert_foreign(&path);
}

#[test]
fn store_a_database_marked_as_somebody_elses_is_foreign() {
    let room = Room::new(Database::Sqlite);
    let path = room.path().join("store.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("PRAGMA application_id = 252006673")
        .unwrap();
    drop(other);
    assert_foreign(&path);
}

#[test]
fn store_a_text_file_is_foreign_and_left_alone() {
    let room = Room::new(Database::Sqlite);
    for (name, text) in [
        ("short.txt", "milk, eggs\n".to_owned()),
        ("long.txt", "a line of a long letter\n".repeat(1_000)),
    ] {
        let path = room.path().join(name);
        fs::write(&path, text).unwrap();
        assert_foreign(&path);
    }
}

#[test]
fn store_postgres_tables_of_others_are_left_alone() {
    let room = Room::new(Database::Postgres);
    raw_postgres(&room)
        .batch_execute("CREATE TABLE notes (recipe TEXT); INSERT INTO notes VALUES ('soup')")
        .unwrap();
    assert_works_and_holds(room.location(), &[]);
    let row = raw_postgres(&room).query_one("SELECT recipe FROM public.notes", &[]);
    assert_eq!(row.unwrap().get::<_, String>(0), "soup");
}

#[test]
fn su_03_a_server_that_is_not_there_is_unreachable() {
    let room = tempfile::tempdir().unwrap();
    let socket = room.path().display().to_string().replace('/', "%2F");
    let address = format!("postgres://me:hunter2@{socket}/x");
    let location: Location = address.parse().unwrap();
    let error = open_impatient(&location).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hunter2"));
    assert_error!(error, Unreachable, location);
}

#[test]
fn su_03_a_server_that_accepts_and_says_nothing_is_unreachable_in_time() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for mode in ["disable", "require"] {
        let address = format!("postgres://me@127.0.0.1:{port}/x?connect_timeout=1&sslmode={mode}");
        let location: Location = address.parse().unwrap();
        let start = std::time::Instant::now();
        let error = open_impatient(&location).unwrap_err();
        assert!(
            start.elapsed() < std::time::Duration::from_secs(4),
            "{mode}"
        );
        let cause = error.source().unwrap().to_string();
        assert!(cause.contains("connect_timeout"), "{cause}");
        assert_error!(error, Unreachable, location);
    }
}

#[test]
fn su_03_a_database_that_is_not_there_is_unreachable() {
    let room = Room::new(Database::Postgres);
    let address = room.address().replace(&database_name(&room), "not_there");
    let location: Location = address.parse().unwrap();
    let error = open_impatient(&location).unwrap_err();
    assert_error!(error, Unreachable, location);
}

#[test]
fn su_03_a_directory_is_no_store() {
    let room = tempfile::tempdir().unwrap();
    let error = open_impatient(&Location::Sqlite(room.path().to_owned())).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("directory"), "{cause}");
    assert_error!(error, Unreachable, room.path().display());
}

#[test]
fn su_03_a_file_in_the_way_of_the_directory_is_named() {
    let room = tempfile::tempdir().unwrap();
    let in_the_way = room.path().join("file");
    fs::write(&in_the_way, "x").unwrap();
    let location = Location::Sqlite(in_the_way.join("deep/store.db"));
    let error = open_impatient(&location).unwrap_err();
    assert!(matches!(error, StoreError::File { .. }), "{error:?}");
    assert!(
        error.to_string().contains(&*in_the_way.to_string_lossy()),
        "{error}"
    );
    fs::remove_file(&in_the_way).unwrap();
    assert_works_and_holds(&location, &[]);
}

#[test]
fn tr_10_a_lost_connection_is_made_anew_between_two_writes() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let store = with_one_note(room.location());
    let mut server = server(&room);
    for id in 2..5 {
        assert!(end_connections(&mut server, &name) >= 1);
        add(&store, id).unwrap();
        assert!(end_connections(&mut server, &name) >= 1);
        assert_eq!(ids(&store).unwrap().last(), Some(&id));
    }
    drop(store);
    assert_works_and_holds(room.location(), &[1, 2, 3, 4]);
}

#[test]
fn tr_10_a_connection_lost_within_a_write_fails_that_write() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let store = with_one_note(room.location());
    let mut server = server(&room);
    let error = store
        .write(Durability::Sync, |sql| {
            insert(sql, 2, "two")?;
            end_connections(&mut server, &name);
            insert(sql, 3, "three")
        })
        .unwrap_err();
    assert_error!(error, Unreachable, place(room.location()));
    // This one does not notice: the commit does, and cannot know how far it came.
    let error = store
        .write(Durability::Sync, |sql| {
            insert(sql, 4, "four")?;
            end_connections(&mut server, &name);
            Ok::<_, StoreError>(())
        })
        .unwrap_err();
    assert_error!(error, Unconfirmed, place(room.location()));
    assert_eq!(ids(&store).unwrap(), [1]);
    add(&store, 5).unwrap();
    drop(store);
    assert_works_and_holds(room.location(), &[1, 5]);
}

/// The closure overlooks that its connection is gone: it hears it all the same.
#[test]
fn tr_10_a_lost_connection_that_is_overlooked_is_still_unreachable() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let store = with_one_note(room.location());
    let mut server = server(&room);
    let error = store
        .write(Durability::Sync, |sql| {
            insert(sql, 2, "two")?;
            end_connections(&mut server, &name);
            let _ = insert(sql, 3, "three");
            Ok::<_, StoreError>(())
        })
        .unwrap_err();
    assert_eq!(ids(&store).unwrap(), [1]);
    assert_error!(error, Unreachable, place(room.location()));
}

#[test]
fn tr_10_a_connection_lost_in_a_shared_transaction_is_heard_by_all() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let store = with_one_note(room.location());
    let mut server = server(&room);
    let first: Member<'_, StoreError> = Box::new(|sql| insert(sql, 2, "two"));
    let loses: Member<'_, StoreError> = Box::new(|sql| {
        insert(sql, 3, "three")?;
        end_connections(&mut server, &name);
        insert(sql, 4, "four")
    });
    for result in pile(&store, first, vec![loses]) {
        assert_error!(
            result.unwrap().unwrap_err(),
            Unreachable,
            place(room.location())
        );
    }
    drop(store);
    assert_works_and_holds(room.location(), &[1]);
}

#[test]
fn tr_10_a_server_that_stays_away_is_unreachable_until_it_is_back() {
    let room = Room::new(Database::Postgres);
    let name = database_name(&room);
    let store = with_one_note(room.location());
    let mut server = server(&room);
    let allow = format!("ALTER DATABASE {name} ALLOW_CONNECTIONS");
    server.batch_execute(&format!("{allow} false")).unwrap();
    end_connections(&mut server, &name);
    for _ in 0..2 {
        assert_error!(
            add(&store, 2).unwrap_err(),
            Unreachable,
            place(room.location())
        );
        assert_error!(
            ids(&store).unwrap_err(),
            Unreachable,
            place(room.location())
        );
        let error = open_impatient(room.location()).unwrap_err();
        assert_error!(error, Unreachable, place(room.location()));
    }
    server.batch_execute(&format!("{allow} true")).unwrap();
    add(&store, 3).unwrap();
    assert_eq!(ids(&store).unwrap(), [1, 3]);
    drop(store);
    assert_works_and_holds(room.location(), &[1, 3]);
}
