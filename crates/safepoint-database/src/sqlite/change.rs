//! SQL in a transaction, judged before it is committed.
//!
//! The transaction is ours: statements that would end it, reach another database or
//! change how this one is written are refused while they are compiled.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use rusqlite::fallible_iterator::FallibleIterator as _;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Batch, Connection};

use super::beneath::write_beneath;
use super::error::Place;
use super::open::{open, path};
use super::rows::text;
use crate::{Changed, Database, DatabaseError, Row, SqlChange, Trial, Verdict};

/// The savepoint under which statements run.
const SAVEPOINT: &str = "safepoint_change";

/// More rows than that are no verdict.
const CHECKED_ROWS: usize = 100;

/// Pragmas that tell something, or that are undone with the transaction.
const HARMLESS: [&str; 17] = [
    "application_id",
    "collation_list",
    "compile_options",
    "data_version",
    "defer_foreign_keys",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

pub(crate) fn change(
    database: &Database,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    let path = path(database)?;
    // The judge works where it did before: only what SQLite does is held.
    let (ask, asked) = sync_channel::<Trial>(0);
    let (say, said) = sync_channel::<Verdict>(0);
    std::thread::scope(|scope| {
        let access = &database.access;
        let path = &path;
        let work = move || {
            let mut judge = |trial: &Trial| match ask.send(trial.clone()) {
                Ok(()) => said.recv().unwrap_or(Verdict::Drop),
                Err(_) => Verdict::Drop,
            };
            change_at(database, path, change, &mut judge)
        };
        let held = scope.spawn(move || write_beneath(path, access, work));
        while let Ok(trial) = asked.recv() {
            if say.send(judge(&trial)).is_err() {
                break;
            }
        }
        let broken = || DatabaseError::Lost {
            address: database.address.to_string(),
            why: "the work on it broke off".into(),
        };
        held.join().unwrap_or_else(|_| Err(broken()))
    })
}

fn change_at(
    database: &Database,
    path: &Path,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let mut open = open(database, path)?;
    let connection = &mut open.connection;
    connection
        .execute_batch(&format!("BEGIN IMMEDIATE; SAVEPOINT {SAVEPOINT}"))
        .map_err(|error| place.fail(error))?;
    let tried = attempt(connection, change, place);
    // Whatever is not committed below is rolled back: by `ROLLBACK`, or when the
    // connection is closed.
    let trial = match tried {
        Ok(trial) => trial,
        Err(error) => {
            roll_back(connection, place)?;
            return Err(error);
        }
    };
    let kept = judge(&trial) == Verdict::Keep;
    if kept {
        let committed = connection.execute_batch(&format!("RELEASE {SAVEPOINT}; COMMIT"));
        if let Err(error) = committed {
            roll_back(connection, place)?;
            return Err(place.fail(error));
        }
    } else {
        roll_back(connection, place)?;
    }
    Ok(Changed { trial, kept })
}

fn roll_back(connection: &Connection, place: Place<'_>) -> Result<(), DatabaseError> {
    if connection.is_autocommit() {
        return Ok(()); // SQLite has done so itself
    }
    connection
        .execute_batch("ROLLBACK")
        .map_err(|error| place.fail(error))
}

/// Runs the statements and the check.
fn attempt(
    connection: &mut Connection,
    change: &SqlChange,
    place: Place<'_>,
) -> Result<Trial, DatabaseError> {
    let fail = |error| place.fail(error);
    let before = connection.total_changes();
    connection.authorizer(Some(authorize)).map_err(fail)?;
    let done = run(connection, &change.statements, place);
    let check = match (&done, &change.check) {
        (Ok(()), Some(check)) => Some(answer(connection, check, place)),
        _ => None,
    };
    connection
        .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
        .map_err(fail)?;
    done?;
    Ok(Trial {
        rows: Some(connection.total_changes() - before),
        check: check.transpose()?,
        committed: false,
    })
}

fn run(connection: &Connection, statements: &str, place: Place<'_>) -> Result<(), DatabaseError> {
    if statements.contains('\0') {
        // SQLite would stop there, and say nothing of the rest.
        return Err(DatabaseError::Sql {
            message: "a statement has a zero byte in it".into(),
        });
    }
    let mut batch = Batch::new(connection, statements);
    while let Some(mut statement) = batch.next().map_err(|error| refused(place, error))? {
        if statement.parameter_count() > 0 {
            return Err(DatabaseError::Sql {
                message: "a statement has a placeholder, and there is nothing to put in it".into(),
            });
        }
        let mut rows = statement.raw_query();
        while rows.next().map_err(|error| place.fail(error))?.is_some() {}
        if connection.is_autocommit() {
            return Err(DatabaseError::Sql {
                message: "a statement ended the transaction".into(),
            });
        }
    }
    Ok(())
}

/// What the checking query answers.
fn answer(
    connection: &Connection,
    check: &str,
    place: Place<'_>,
) -> Result<Vec<Row>, DatabaseError> {
    let mut statement = connection
        .prepare(check)
        .map_err(|error| refused(place, error))?;
    if !statement.readonly() || statement.column_count() == 0 || statement.parameter_count() > 0 {
        return Err(DatabaseError::Sql {
            message: "a check is one query that changes nothing".into(),
        });
    }
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut answer = Vec::new();
    while let Some(row) = rows.next().map_err(|error| place.fail(error))? {
        let values = (0..columns).map(|column| row.get_ref(column).map(text));
        answer.push(
            values
                .collect::<Result<Row, _>>()
                .map_err(|error| place.fail(error))?,
        );
        if answer.len() >= CHECKED_ROWS {
            break;
        }
    }
    Ok(answer)
}

/// What may be compiled.
fn authorize(context: AuthContext<'_>) -> Authorization {
    let harmless = |name: &str| {
        HARMLESS
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    };
    match context.action {
        AuthAction::Transaction { .. } | AuthAction::Attach { .. } | AuthAction::Detach { .. } => {
            Authorization::Deny
        }
        AuthAction::Savepoint { savepoint_name, .. }
            if savepoint_name.eq_ignore_ascii_case(SAVEPOINT) =>
        {
            Authorization::Deny
        }
        AuthAction::Pragma { pragma_name, .. } if !harmless(pragma_name) => Authorization::Deny,
        AuthAction::Unknown { .. } => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

fn refused(place: Place<'_>, error: rusqlite::Error) -> DatabaseError {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::AuthorizationForStatementDenied) => DatabaseError::Sql {
            message: "a change runs in a transaction of ours: `BEGIN`, `COMMIT`, `ROLLBACK`, `ATTACH`, `DETACH` and most of `PRAGMA` have no place in it".into(),
        },
        _ => place.fail(error),
    }
}
