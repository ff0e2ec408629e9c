//! SQLite, in write-ahead-log mode.
//!
//! Commits are made with `synchronous = NORMAL`, which does not wait for the
//! disk, and a commit that must be durable then syncs the log file itself.
//! That is the same one sync that `FULL` would make, but it happens after the
//! write lock is released, so other writers go on meanwhile.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};

use crate::error::Said;
use crate::group::{Durability, Flush, Meanwhile, WriteConnection};
use crate::{Flow, Row, Sql, StoreError, Value, durable, query_one};

/// Marks a database file as ours (`PRAGMA application_id`): "SafP".
const APPLICATION: i64 = 0x5361_6650;

/// One connection to a database file.
pub(crate) struct Sqlite {
    connection: Connection,
    path: PathBuf,
    log: Option<Arc<File>>,
    lock_timeout: Duration,
    last_error: std::cell::RefCell<Option<StoreError>>,
    /// Changes whenever another connection has committed something (`PRAGMA data_version`).
    version: Option<i64>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
}

impl Sqlite {
    /// Opens the database, and makes it where there is none.
    pub(crate) fn open(
        path: &Path,
        purpose: Purpose,
        lock_timeout: Duration,
    ) -> Result<Self, StoreError> {
        if let Some(directory) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            durable::create_directory(directory)?;
        }
        durable::create_empty(path)?; // for its owner alone, which SQLite would not do
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        #[expect(clippy::disallowed_methods, reason = "this is the one place")]
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| classify(path, error))?;
        let mut sqlite = Self {
            connection,
            path: path.to_owned(),
            log: None,
            lock_timeout,
            last_error: std::cell::RefCell::default(),
            version: None,
        };
        sqlite.prepare(purpose)?;
        Ok(sqlite)
    }

    fn prepare(&mut self, purpose: Purpose) -> Result<(), StoreError> {
        self.connection.set_prepared_statement_cache_capacity(64);
        self.patiently(|| self.mark())?;
        let path = self.path.clone();
        let fail = |error| classify(&path, error);
        // The log is brought into the database when it has 2,000 pages: while it grows a sync takes
        // longer than when it is written over.
        self.connection
            .execute_batch(
                "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;
                 PRAGMA cache_size = -16000; PRAGMA wal_autocheckpoint = 2000;",
            )
            .map_err(fail)?;
        // Plans do not depend on values. Else SQLite, which could find a better plan for other
        // values, would compile each cached statement anew whenever its values are cleared.
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .map_err(fail)?;
        if purpose == Purpose::Read {
            self.connection
                .pragma_update(None, "query_only", true)
                .map_err(fail)?;
        }
        Ok(())
    }

    /// Makes a new file ours, and refuses what belongs to somebody else.
    fn mark(&self) -> Result<(), StoreError> {
        let pragma = |name| -> Result<i64, StoreError> {
            self.connection
                .pragma_query_value(None, name, |row| row.get(0))
                .map_err(|error| self.fail(error))
        };
        // In this order: whoever makes the tables has set the mark before.
        let (tables, application) = (pragma("schema_version")?, pragma("application_id")?);
        if application != APPLICATION && (application != 0 || tables != 0) {
            return Err(StoreError::Foreign {
                place: self.path.display().to_string(),
            });
        }
        // A copy that somebody restored may have lost the mode. Setting what is set costs nothing.
        self.connection
            .pragma_update(None, "journal_mode", "WAL")
            .map_err(|error| self.fail(error))?;
        if application == APPLICATION {
            return Ok(());
        }
        // A new file. Two processes may both come here: they write the same.
        self.connection
            .pragma_update(None, "application_id", APPLICATION)
            .map_err(|error| self.fail(error))
    }

    /// Tries until it is no longer locked, in short naps. SQLite's own waiting
    /// sleeps up to a tenth of a second at a time, which starves one of sixteen
    /// writers, and it does not wait at all for a change of `journal_mode`.
    fn patiently(&self, attempt: impl Fn() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let patience = |timeout| {
            self.connection
                .busy_timeout(timeout)
                .map_err(|error| self.fail(error))
        };
        patience(Duration::ZERO)?;
        let mut waited = Duration::ZERO;
        let result = loop {
            match attempt() {
                Err(StoreError::Locked { .. }) if waited < self.lock_timeout => {
                    let nap = Duration::from_micros(100 + waited.as_micros() as u64 % 900);
                    std::thread::sleep(nap);
                    waited += nap;
                }
                other => break other,
            }
        };
        patience(self.lock_timeout)?;
        result
    }

    fn fail(&self, error: rusqlite::Error) -> StoreError {
        let error = classify(&self.path, error);
        *self.last_error.borrow_mut() = Some(error.clone());
        error
    }

    fn batch(&self, statement: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(statement)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(|error| self.fail(error))
    }

    /// Begins a transaction for reading: all its queries see one moment.
    pub(crate) fn begin_reading(&mut self) -> Result<(), StoreError> {
        self.batch("BEGIN DEFERRED")
    }

    /// The write-ahead log, opened once: SQLite keeps the same file while a connection is open.
    fn log(&mut self) -> Result<(Arc<File>, PathBuf), StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push("-wal");
        let path = PathBuf::from(name);
        let file = match &self.log {
            Some(file) => Arc::clone(file),
            None => {
                let file = File::open(&path)
                    .map_err(|error| StoreError::file("open", path.clone(), error))?;
                Arc::clone(self.log.insert(Arc::new(file)))
            }
        };
        Ok((file, path))
    }
}

impl WriteConnection for Sqlite {
    fn begin(&mut self) -> Result<Meanwhile, StoreError> {
        self.patiently(|| self.batch("BEGIN IMMEDIATE"))?;
        // Without an answer nothing is assumed.
        let version = query_one(self, "PRAGMA data_version", &[], |row| row.integer(0));
        let version = version.ok().flatten();
        if let Some(error) = self.last_error.borrow_mut().take()
            && !self.is_open()
        {
            return Err(error); // some failures end the transaction
        }
        let known = std::mem::replace(&mut self.version, version);
        Ok(match version.is_some() && version == known {
            true => Meanwhile::Untouched,
            false => Meanwhile::Unknown,
        })
    }

    fn commit(&mut self, durability: Durability) -> Result<Flush, StoreError> {
        if durability == Durability::Async {
            self.batch("COMMIT")?;
            return Ok(Flush::Done);
        }
        let (file, path) = self.log()?; // before the commit, which must not fail once it is made
        self.batch("COMMIT")?;
        Ok(Flush::File(file, path))
    }

    fn roll_back(&mut self) {
        if self.is_open() {
            // A failed ROLLBACK leaves nothing that the next BEGIN would not report.
            let _ = self.batch("ROLLBACK");
        }
    }

    fn last_error(&self) -> Option<StoreError> {
        self.last_error.borrow().clone()
    }

    fn is_open(&self) -> bool {
        !self.connection.is_autocommit()
    }
}

impl Sql for Sqlite {
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(rusqlite::params_from_iter(values)))
            .map(|changed| changed as u64)
            .map_err(|error| self.fail(error))
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<Flow, StoreError>,
    ) -> Result<(), StoreError> {
        let mut statement = self
            .connection
            .prepare_cached(sql)
            .map_err(|error| self.fail(error))?;
        let mut rows = statement
            .query(rusqlite::params_from_iter(values))
            .map_err(|error| self.fail(error))?;
        while let Some(row) = rows.next().map_err(|error| self.fail(error))? {
            if each(row)? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Row for rusqlite::Row<'_> {
    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        match self.get_ref(column) {
            Ok(ValueRef::Integer(number)) => Ok(number),
            _ => Err(StoreError::Column {
                column,
                expected: "an integer",
            }),
        }
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        match self.get_ref(column) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => Ok(Some(bytes)),
            Ok(ValueRef::Null) => Ok(None),
            _ => Err(StoreError::Column {
                column,
                expected: "text or bytes",
            }),
        }
    }
}

/// Tells the errors of SQLite apart by what the user can do about them.
fn classify(path: &Path, error: rusqlite::Error) -> StoreError {
    let place = path.display().to_string();
    let code = error.sqlite_error_code();
    let extended = error.sqlite_error().map(|error| error.extended_code);
    let cause = Arc::new(error);
    let full = |place: String, cause| StoreError::Full {
        place,
        disk: crate::disk::name_of(path),
        cause,
    };
    match code {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Locked { place, cause }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            StoreError::ReadOnly { place, cause }
        }
        Some(ErrorCode::DiskFull) => full(place, cause),
        Some(ErrorCode::NotADatabase) if !has_mark(path) => StoreError::Foreign { place },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StoreError::Corrupted { place, cause }
        }
        // The shared memory beside the log could not be made larger.
        Some(ErrorCode::SystemIoFailure)
            if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) =>
        {
            full(place, cause)
        }
        Some(ErrorCode::CannotOpen) => cannot_open(path, cause),
        Some(ErrorCode::SystemIoFailure) => StoreError::Unreachable { place, cause },
        _ => StoreError::Statement { place, cause },
    }
}

/// Whether a file that is no database any more still has our mark in its header.
fn has_mark(path: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let mut mark = [0; 4];
    File::open(path)
        .and_then(|file| file.read_exact_at(&mut mark, 68))
        .is_ok_and(|()| i64::from(u32::from_be_bytes(mark)) == APPLICATION)
}

/// SQLite says only "unable to open": ask the system why.
fn cannot_open(path: &Path, cause: Arc<rusqlite::Error>) -> StoreError {
    let place = path.display().to_string();
    let directory = durable::parent(path);
    match rustix::fs::access(directory, rustix::fs::Access::WRITE_OK) {
        Err(rustix::io::Errno::ROFS | rustix::io::Errno::ACCESS) => {
            StoreError::ReadOnly { place, cause }
        }
        _ if path.is_dir() => StoreError::Unreachable {
            place,
            cause: Arc::new(Said("it is a directory".into())),
        },
        _ => StoreError::Unreachable { place, cause },
    }
}
