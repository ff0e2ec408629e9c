//! A database made what an image says, in place.
//!
//! All of it goes through SQLite's own backup, as one transaction of the database
//! that is restored: whoever is connected sees the old state or the new one, and so
//! does whoever opens it after a crash.

use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, ErrorCode};

use super::beneath::write_beneath;
use super::capture::{TABLES, described, look, read_failed};
use super::error::Place;
use super::open::{open, path};
use super::schema::{Description, Scope};
use super::stored::Stored;
use super::{replace, tables};
use crate::{Contents, Database, DatabaseError, Image, Restored};

pub(crate) fn restore(
    database: &Database,
    image: &Image,
    contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    let path = path(database)?;
    write_beneath(&path, &database.access, || {
        restore_at(database, &path, image, contents)
    })
}

fn restore_at(
    database: &Database,
    path: &Path,
    image: &Image,
    contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let only = tables::wanted(database, image, place)?;
    let stored = Stored::new(image, contents, &database.access.scratch)?;
    if let Some(names) = only {
        return tables::restore(database, path, &stored, &names);
    }
    // Before anything is touched: what is to be restored is what the image describes.
    let view = stored.view().map_err(|error| read_failed(place, error))?;
    let kept = described(&view, &Scope::All, place)?;
    if let Some(why) = difference(image, &kept) {
        return Err(place.not_identical(format!("what was kept differs, {why}")));
    }
    match put(database, path, &stored, image)? {
        Outcome::Restored(warnings) => Ok(Restored { warnings }),
        // It came into being, or went away, while we looked.
        Outcome::Again => match put(database, path, &stored, image)? {
            Outcome::Restored(warnings) => Ok(Restored { warnings }),
            Outcome::Again => Err(place.locked()),
        },
    }
}

enum Outcome {
    Restored(Vec<String>),
    Again,
}

fn put(
    database: &Database,
    path: &Path,
    stored: &Stored,
    image: &Image,
) -> Result<Outcome, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    if std::fs::symlink_metadata(path).is_err() {
        return match replace::create(path, stored)? {
            replace::Made::Yes => check(database, path, image).map(Outcome::Restored),
            replace::Made::Occupied => Ok(Outcome::Again),
        };
    }
    let mut open = open(database, path)?;
    let connection = &mut open.connection;
    let before = match back_up(connection, stored, place) {
        Ok(before) => before,
        Err(Failure::NoDatabase) => {
            drop(open);
            replace::replace(path, stored, database.access.lock_timeout, place)?;
            return check(database, path, image).map(Outcome::Restored);
        }
        Err(Failure::Other(error)) => return Err(error),
    };
    let checked = check(database, path, image);
    let after = commits_of_others(connection).map_err(|error| place.fail(error))?;
    let meanwhile = after != before;
    // Our commit is no reason for SQLite to shorten the log; where others read, it stays.
    let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    match checked {
        Err(DatabaseError::NotIdentical { .. } | DatabaseError::Locked { .. }) if meanwhile => {
            Ok(Outcome::Restored(vec![
                "another connection has written since it was restored".into(),
            ]))
        }
        other => other.map(Outcome::Restored),
    }
}

enum Failure {
    /// There is a file, but SQLite does not take it for a database.
    NoDatabase,
    Other(DatabaseError),
}

/// A number that changes when others commit, and not when we do.
fn commits_of_others(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA data_version", [], |row| row.get(0))
}

/// Copies all pages, in one transaction. Gives the number of [`commits_of_others`] from
/// before that.
fn back_up(connection: &mut Connection, stored: &Stored, place: Place<'_>) -> Result<i64, Failure> {
    let fail = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Failure::NoDatabase,
        _ => Failure::Other(place.fail(error)),
    };
    let source = stored
        .open()
        .map_err(|error| Failure::Other(place.fail(error)))?;
    let page_size = |connection: &Connection| {
        connection.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))
    };
    let mode: String = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .map_err(fail)?;
    let theirs = page_size(connection).map_err(fail)?;
    let ours = page_size(&source).map_err(|error| Failure::Other(place.fail(error)))?;
    // With a log, pages cannot change their size. So it is taken away first, which SQLite
    // does only when nobody else is connected, and brought back afterwards.
    let without_log = mode == "wal" && theirs != ours;
    if without_log {
        set_mode(connection, "delete", place)?;
    }
    let before = commits_of_others(connection).map_err(fail)?;
    let copied = copy(&source, connection, place, fail);
    if without_log {
        set_mode(connection, "wal", place)?;
    }
    copied?;
    // Pages of another size, and SQLite takes us for somebody else.
    match theirs == ours {
        true => Ok(before),
        false => commits_of_others(connection).map_err(fail),
    }
}

fn copy(
    source: &Connection,
    connection: &mut Connection,
    place: Place<'_>,
    fail: impl Fn(rusqlite::Error) -> Failure,
) -> Result<(), Failure> {
    let backup = Backup::new(source, connection).map_err(&fail)?;
    match backup.step(-1).map_err(&fail)? {
        StepResult::Done => Ok(()),
        _ => Err(Failure::Other(place.locked())),
    }
}

fn set_mode(connection: &Connection, mode: &str, place: Place<'_>) -> Result<(), Failure> {
    let set = connection
        .query_row(&format!("PRAGMA journal_mode = {mode}"), [], |row| {
            row.get::<_, String>(0)
        })
        .map_err(|error| Failure::Other(place.fail(error)))?;
    match set == mode {
        true => Ok(()),
        false => Err(Failure::Other(place.locked())),
    }
}

/// Looks at what was restored.
fn check(database: &Database, path: &Path, image: &Image) -> Result<Vec<String>, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let found = look(database, path, &mut |view| {
        described(view, &Scope::All, place)
    })?;
    match difference(image, &found) {
        None => Ok(Vec::new()),
        Some(why) => Err(place.not_identical(why)),
    }
}

/// What of an image is not as it was found.
fn difference(image: &Image, found: &Description) -> Option<String> {
    for wanted in &image.tables {
        let same = |table: &&crate::TableImage| table.name == wanted.name;
        match found.tables.iter().find(same) {
            Some(table) if (table.rows, table.checksum) == (wanted.rows, wanted.checksum) => {}
            Some(_) => return Some(format!("first in the rows of `{}`", wanted.name)),
            None => return Some(format!("`{}` is missing", wanted.name)),
        }
    }
    let extra = found.tables.len() != image.tables.len();
    (extra || found.schema != image.schema).then(|| "in its structure".to_owned())
}

/// Whether an image is only about some tables.
pub(super) fn is_partial(image: &Image) -> bool {
    image.piece(TABLES).is_some()
}
