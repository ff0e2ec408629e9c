//! PostgreSQL. All tables live in the schema `safepoint` of the database.

mod address;
mod listen;
mod target;
mod tls;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::private::BytesMut;
use postgres::types::{IsNull, ToSql, Type};
use postgres::{Client, Statement};

use crate::group::{Durability, Flush, Meanwhile, WriteConnection};
use crate::{Flow, Row, Sql, StoreError, Value};

pub(crate) use address::Address;
pub(crate) use listen::Listener;
use target::Target;

/// The key of the advisory lock that writers take: "SafP".
const WRITE_LOCK: i64 = 0x5361_6650;

/// Where a transaction that changed something says so when it is committed.
const CHANNEL: &str = "safepoint_written";

/// One connection to a database. It is made anew when the server has gone away between two transactions.
pub(crate) struct Postgres {
    target: Target,
    client: Client,
    statements: HashMap<String, Statement>,
    open: bool,
    /// Whether the open transaction has changed a row.
    changed: bool,
    last_error: std::cell::RefCell<Option<StoreError>>,
}

impl Postgres {
    pub(crate) fn open(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let target = Target::read(url, lock_timeout)?;
        let client = target.connect()?;
        Ok(Self {
            target,
            client,
            statements: HashMap::new(),
            open: false,
            changed: false,
            last_error: std::cell::RefCell::default(),
        })
    }

    fn fail(&self, error: postgres::Error) -> StoreError {
        let error = classify(&self.target.place, error);
        *self.last_error.borrow_mut() = Some(error.clone());
        error
    }

    fn batch(&mut self, statements: &str) -> Result<(), StoreError> {
        let done = self.client.batch_execute(statements);
        done.map_err(|error| self.fail(error))
    }

    /// Begins a transaction, on a new connection where the server has gone away since the last one.
    fn begin_with(&mut self, statements: &str) -> Result<(), StoreError> {
        self.open = true;
        self.changed = false;
        *self.last_error.borrow_mut() = None;
        match self.batch(statements) {
            Err(StoreError::Unreachable { .. }) if self.client.is_closed() => {
                self.client = self.target.connect()?;
                self.statements.clear();
                self.batch(statements)
            }
            other => other,
        }
        .inspect_err(|_| self.roll_back())
    }

    /// Begins a transaction for reading: all its queries see one moment.
    pub(crate) fn begin_reading(&mut self) -> Result<(), StoreError> {
        self.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self
            .client
            .prepare(&with_dollars(sql))
            .map_err(|error| self.fail(error))?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// `?1` as PostgreSQL writes it: `$1`.
fn with_dollars(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len());
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        let place = c == '?' && rest.peek().is_some_and(char::is_ascii_digit);
        text.push(if place { '$' } else { c });
    }
    text
}

impl WriteConnection for Postgres {
    fn begin(&mut self) -> Result<Meanwhile, StoreError> {
        self.begin_with(&format!(
            // Not a stricter level: its view would be from before the lock was granted.
            "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({WRITE_LOCK})"
        ))?;
        Ok(Meanwhile::Unknown)
    }

    fn commit(&mut self, durability: Durability) -> Result<Flush, StoreError> {
        // In a transaction that a failed statement has aborted, COMMIT rolls back
        // and calls that a success; the statement before it does not.
        let finish = match durability {
            // A stricter setting than `on` is the administrator's, and stays. A
            // transaction without a number would wait for nothing: what others
            // wrote asynchronously before it would not be on disk.
            Durability::Sync => {
                "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'; \
                 SELECT txid_current(); COMMIT"
            }
            Durability::Async => "SET LOCAL synchronous_commit = off; COMMIT",
        };
        let committed = match self.changed {
            // Heard when, and only when, the commit succeeds.
            true => self.batch(&format!("NOTIFY {CHANNEL}; {finish}")),
            false => self.batch(finish),
        };
        committed.map_err(|error| match error {
            // It may have been lost on its way there, or the answer on its way back.
            StoreError::Unreachable { place, cause } => StoreError::Unconfirmed { place, cause },
            other => other,
        })?;
        self.open = false;
        Ok(Flush::Done)
    }

    fn roll_back(&mut self) {
        if std::mem::take(&mut self.open) {
            // Without a connection there is no transaction left to roll back.
            let _ = self.batch("ROLLBACK");
        }
    }

    fn last_error(&self) -> Option<StoreError> {
        self.last_error.borrow().clone()
    }

    fn is_open(&self) -> bool {
        self.open && !self.client.is_closed()
    }
}

impl Sql for Postgres {
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        if values.is_empty() {
            // A migration or a savepoint: not worth a prepared statement.
            let done = self.client.simple_query(sql);
            let changed = done
                .map_err(|error| self.fail(error))?
                .into_iter()
                .map(|message| match message {
                    postgres::SimpleQueryMessage::CommandComplete(changed) => changed,
                    _ => 0,
                })
                .sum();
            self.changed |= changed > 0;
            return Ok(changed);
        }
        let statement = self.statement(sql)?;
        let done = self.client.execute(&statement, &parameters(values));
        let changed = done.map_err(|error| self.fail(error))?;
        self.changed |= changed > 0;
        Ok(changed)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<Flow, StoreError>,
    ) -> Result<(), StoreError> {
        let statement = self.statement(sql)?;
        let place = self.target.place.clone();
        let last_error = &self.last_error;
        let mut rows = self
            .client
            .query_raw(&statement, parameters(values))
            .map_err(|error| classify(&place, error))
            .inspect_err(|error| *last_error.borrow_mut() = Some(error.clone()))?;
        let failed = |error| {
            let error = classify(&place, error);
            *last_error.borrow_mut() = Some(error.clone());
            error
        };
        while let Some(row) = rows.next().map_err(failed)? {
            if each(&row)? == Flow::Enough {
                break;
            }
        }
        Ok(())
    }
}

fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values
        .iter()
        .map(|value| value as &(dyn ToSql + Sync))
        .collect()
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT8) => number.to_sql(kind, out),
            (Self::Text(text), &Type::TEXT) => text.to_sql(kind, out),
            (Self::Blob(bytes), &Type::BYTEA) => bytes.to_sql(kind, out),
            (_, kind) => {
                Err(format!("a value of another type was given for a column of type {kind}").into())
            }
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    postgres::types::to_sql_checked!();
}

impl Row for postgres::Row {
    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        self.try_get(column).map_err(|_| StoreError::Column {
            column,
            expected: "an integer",
        })
    }

    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        let text = self
            .columns()
            .get(column)
            .is_some_and(|column| *column.type_() == Type::TEXT);
        let bytes = if text {
            self.try_get::<_, Option<&str>>(column)
                .map(|text| text.map(str::as_bytes))
        } else {
            self.try_get(column)
        };
        bytes.map_err(|_| StoreError::Column {
            column,
            expected: "text or bytes",
        })
    }
}

/// Tells the errors of PostgreSQL apart by what the user can do about them.
fn classify(place: &str, error: postgres::Error) -> StoreError {
    let place = place.to_owned();
    let code = error.code().cloned();
    let closed = error.is_closed();
    let broken =
        std::error::Error::source(&error).is_some_and(|cause| cause.is::<std::io::Error>());
    let cause = Arc::new(error);
    let Some(code) = code else {
        return if closed || broken {
            StoreError::Unreachable { place, cause }
        } else {
            StoreError::Statement { place, cause } // a value of the wrong type
        };
    };
    if code == SqlState::LOCK_NOT_AVAILABLE || code == SqlState::QUERY_CANCELED {
        StoreError::Locked { place, cause }
    } else if code == SqlState::READ_ONLY_SQL_TRANSACTION
        || code == SqlState::INSUFFICIENT_PRIVILEGE
    {
        StoreError::ReadOnly { place, cause }
    } else if code == SqlState::DISK_FULL {
        StoreError::Full {
            place,
            disk: "the disk of its server".to_owned(),
            cause,
        }
    } else if code == SqlState::DATA_CORRUPTED || code == SqlState::INDEX_CORRUPTED {
        StoreError::Corrupted { place, cause }
    } else if closed
        || ["08", "28", "3D", "57"]
            .iter()
            .any(|class| code.code().starts_with(class))
    {
        StoreError::Unreachable { place, cause }
    } else {
        StoreError::Statement { place, cause }
    }
}
