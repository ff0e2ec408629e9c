//! The store itself: one writing connection, as many reading ones as are in use at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::group::{Group, WriteConnection};
use crate::migrate;
use crate::postgres::Postgres;
use crate::sqlite::{Purpose, Sqlite};
use crate::{Component, Durability, Location, Seal, Sql, StoreError, Watch, query_one};

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long to wait for another process to let go of the write lock.
    pub lock_timeout: Duration,
}

/// Databases count milliseconds in 32 bits; nobody waits longer than a day anyway.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Options {
    fn default() -> Self {
        Self {
            lock_timeout: Duration::from_secs(30),
        }
    }
}

/// An open store. Shared between threads; many processes may have the same one open.
pub struct Store {
    location: Location,
    options: Options,
    /// Closed before the writer: whoever closes last brings SQLite's log into the database, and
    /// the writer has synced the directory of the log before.
    readers: Mutex<Vec<Reader>>,
    group: Group,
}

impl Store {
    /// Opens the store at `location`, and makes it where there is none.
    pub fn open(location: &Location, options: Options) -> Result<Self, StoreError> {
        let options = Options {
            lock_timeout: options.lock_timeout.min(LONGEST_WAIT),
        };
        let timeout = options.lock_timeout;
        let writer: Box<dyn WriteConnection> = match location {
            Location::Sqlite(path) => Box::new(Sqlite::open(path, Purpose::Write, timeout)?),
            Location::Postgres(url) => Box::new(Postgres::open(url, timeout)?),
        };
        let store = Self {
            location: location.clone(),
            options,
            group: Group::new(writer),
            readers: Mutex::default(),
        };
        store.prepare()?;
        Ok(store)
    }

    /// Where this store is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Makes the table of versions in a new store.
    fn prepare(&self) -> Result<(), StoreError> {
        let catalogue = match &self.location {
            Location::Sqlite(_) => "SELECT 1 FROM sqlite_master WHERE name = 'schema_versions'",
            Location::Postgres(_) => {
                "SELECT 1::bigint FROM pg_tables WHERE schemaname = 'safepoint' AND tablename = 'schema_versions'"
            }
        };
        let ready = self.read(|sql| query_one(sql, catalogue, &[], |row| row.integer(0)))?;
        if ready.is_some() {
            return Ok(());
        }
        self.write(Durability::Sync, |sql| {
            if let Location::Postgres(_) = &self.location {
                sql.execute("CREATE SCHEMA IF NOT EXISTS safepoint", &[])?;
            }
            migrate::prepare(sql)
        })
    }

    /// Brings the tables of `component` to the version this program knows, or refuses newer ones.
    pub fn migrate(&self, component: &Component) -> Result<(), StoreError> {
        let found = self.read(|sql| migrate::version(sql, component))?;
        migrate::refuse_newer(&self.location, component, found)?;
        if found < migrate::newest(component) {
            self.write(Durability::Sync, |sql| {
                migrate::apply(sql, &self.location, component)
            })?;
        }
        Ok(())
    }

    /// Makes `seal` take part in every transaction of this store from now on.
    pub fn seal_with(&self, seal: Arc<dyn Seal>) {
        self.group.seal_with(seal);
    }

    /// Runs `change` in one transaction, alone in the whole store, and returns
    /// when it is committed: on disk for [`Durability::Sync`].
    ///
    /// An error from `change` undoes all it did. Do not call `write` within `change`.
    pub fn write<T, E: From<StoreError>>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut dyn Sql) -> Result<T, E>,
    ) -> Result<T, E> {
        self.group.write(durability, change)
    }

    /// The same for a change that borrows nothing, which another thread may make for this one:
    /// faster where many write at once. `change` must take no lock that anybody holds while they
    /// write.
    pub fn write_shared<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut dyn Sql) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.group.write_shared(durability, change)
    }

    /// How many changes are left with whoever has the connection, for tests that wait for them.
    #[cfg(feature = "fault-points")]
    pub fn left(&self) -> usize {
        self.group.left()
    }

    /// Runs `look` on one unchanging view of the store.
    pub fn read<T, E: From<StoreError>>(
        &self,
        look: impl FnOnce(&mut dyn Sql) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.readers().pop();
        let mut reader = match idle {
            Some(reader) => reader,
            None => Reader::open(&self.location, self.options)?,
        };
        reader.begin()?;
        let result = look(reader.sql());
        reader.end();
        self.readers().push(reader);
        result
    }

    /// Somebody who waits for writes to this store, from now on, on a connection of his own.
    pub fn watch(&self) -> Result<Watch, StoreError> {
        Watch::open(&self.location, self.options)
    }

    fn readers(&self) -> std::sync::MutexGuard<'_, Vec<Reader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.location)
    }
}

/// A connection that only reads.
pub(crate) enum Reader {
    Sqlite(Box<Sqlite>),
    Postgres(Box<Postgres>),
}

impl Reader {
    pub(crate) fn open(location: &Location, options: Options) -> Result<Self, StoreError> {
        let timeout = options.lock_timeout;
        Ok(match location {
            Location::Sqlite(path) => {
                Self::Sqlite(Box::new(Sqlite::open(path, Purpose::Read, timeout)?))
            }
            Location::Postgres(url) => Self::Postgres(Box::new(Postgres::open(url, timeout)?)),
        })
    }

    pub(crate) fn begin(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(connection) => connection.begin_reading(),
            Self::Postgres(connection) => connection.begin_reading(),
        }
    }

    pub(crate) fn sql(&mut self) -> &mut dyn Sql {
        match self {
            Self::Sqlite(connection) => &mut **connection,
            Self::Postgres(connection) => &mut **connection,
        }
    }

    pub(crate) fn end(&mut self) {
        match self {
            Self::Sqlite(connection) => connection.roll_back(),
            Self::Postgres(connection) => connection.roll_back(),
        }
    }
}
