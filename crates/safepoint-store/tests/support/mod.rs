//! What the tests of this crate share: a small table, ways to fill and read
//! it, and a way to make writers queue up without waiting for time to pass.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use safepoint_store::{
    Component, Durability, Location, Migration, Options, Sql, Store, StoreError, Value, query_all,
};

/// Makes the table `notes`.
pub(crate) const FIRST: Migration = Migration {
    sqlite: "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, data BLOB);",
    postgres: "CREATE TABLE notes (id BIGINT PRIMARY KEY, text TEXT, data BYTEA);",
};

/// The component of most tests.
pub(crate) const NOTES: Component = Component {
    name: "notes",
    migrations: &[FIRST],
};

/// Opens a store that soon gives up waiting for a lock.
pub(crate) fn open_impatient(location: &Location) -> Result<Store, StoreError> {
    let lock_timeout = Duration::from_millis(200);
    Store::open(location, Options { lock_timeout })
}

/// Adds a note, as part of a write.
pub(crate) fn insert(sql: &mut dyn Sql, id: i64, text: &str) -> Result<(), StoreError> {
    let changed = sql.execute(
        "INSERT INTO notes (id, text) VALUES (?1, ?2)",
        &[Value::Integer(id), Value::Text(text)],
    )?;
    assert_eq!(changed, 1);
    Ok(())
}

/// Adds a note in a write of its own.
pub(crate) fn add(store: &Store, id: i64) -> Result<(), StoreError> {
    store.write(Durability::Sync, |sql| {
        insert(sql, id, &format!("note {id}"))
    })
}

/// The ids of all notes, in order.
pub(crate) fn ids(store: &Store) -> Result<Vec<i64>, StoreError> {
    store.read(ids_in)
}

/// The ids of all notes in one transaction.
pub(crate) fn ids_in(sql: &mut dyn Sql) -> Result<Vec<i64>, StoreError> {
    query_all(sql, "SELECT id FROM notes ORDER BY id", &[], |row| {
        row.integer(0)
    })
}

/// What one member of a pile does in its write.
pub(crate) type Member<'a, E> = Box<dyn FnOnce(&mut dyn Sql) -> Result<(), E> + Send + 'a>;

/// Runs all members as writers that share one transaction: the first stays in
/// its closure until every other one sleeps in front of the connection.
///
/// That they sleep is seen, not assumed: between publishing its number and
/// taking the connection there is nothing else a thread could sleep at.
pub(crate) fn pile<E: From<StoreError> + Send>(
    store: &Store,
    first: Member<'_, E>,
    others: Vec<Member<'_, E>>,
) -> Vec<thread::Result<Result<(), E>>> {
    let threads: Vec<AtomicU64> = others.iter().map(|_| AtomicU64::new(0)).collect();
    let threads = &threads;
    thread::scope(|scope| {
        let (inside, entered) = mpsc::channel();
        let leader = scope.spawn(move || {
            store.write(Durability::Sync, |sql| {
                inside.send(()).unwrap();
                while !threads.iter().all(sleeps) {
                    thread::yield_now();
                }
                first(sql)
            })
        });
        entered.recv().unwrap();
        let mut running = vec![leader];
        for (other, thread) in others.into_iter().zip(threads) {
            running.push(scope.spawn(move || {
                thread.store(own_number(), Ordering::SeqCst);
                store.write(Durability::Sync, other)
            }));
        }
        running.into_iter().map(|thread| thread.join()).collect()
    })
}

fn own_number() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

fn sleeps(thread: &AtomicU64) -> bool {
    let number = thread.load(Ordering::SeqCst);
    let Ok(stat) = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")) else {
        return false;
    };
    let (_, behind_name) = stat.rsplit_once(") ").unwrap();
    behind_name.starts_with('S')
}
