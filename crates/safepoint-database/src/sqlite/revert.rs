//! Rows taken out of a captured database, and rows brought back into it: in a copy of ours, by
//! their numbers or keys, without triggers.

use std::collections::BTreeSet;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::capture::{TABLES, WHOLE, described, read_failed};
use super::error::Place;
use super::fill::Columns;
use super::restore::is_partial;
use super::rows::{quote, read, show_row, write};
use super::schema::Scope;
use super::stored::Stored;
use crate::revert::Delta;
use crate::{Contents, Database, DatabaseError, Image, Keep, Reverted, RowConflict};

/// Takes a row: what tells it from all others, where something does, and its bytes.
pub(crate) type RowVisitor<'v> = dyn FnMut(Option<&[u8]>, &[u8]) -> Result<(), DatabaseError> + 'v;

/// Hands out the rows of a table, each with what tells it from all others: its number, or the
/// values of its key.
pub(crate) fn visit_keyed(
    stored: &Stored,
    table: &str,
    key: &[String],
    visit: &mut RowVisitor<'_>,
) -> Result<(), DatabaseError> {
    let failed = |error: rusqlite::Error| DatabaseError::Sql {
        message: format!("cannot read the captured table `{table}`: {error}"),
    };
    let connection = stored.open().map_err(failed)?;
    let columns = Columns::of(&connection, table).map_err(failed)?;
    let places = places(&columns, key);
    let select = format!(
        "SELECT {} FROM main.{} NOT INDEXED",
        columns.stored(),
        quote(table)
    );
    let mut statement = connection.prepare(&select).map_err(failed)?;
    let count = statement.column_count();
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut bytes, mut keyed) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next().map_err(failed)? {
        bytes.clear();
        keyed.clear();
        bytes.push(match columns.number {
            Some(_) => b'#',
            None => b'=',
        });
        for column in 0..count {
            write(&mut bytes, row.get_ref(column).map_err(failed)?);
        }
        for place in &places {
            write(&mut keyed, row.get_ref(*place).map_err(failed)?);
        }
        visit((!places.is_empty()).then_some(keyed.as_slice()), &bytes)?;
    }
    Ok(())
}

/// A row of [`visit_keyed`] for people.
pub(crate) fn show_keyed_row(columns: &[&str], row: &[u8]) -> String {
    let mut values = row.get(1..).unwrap_or_default();
    if row.first() == Some(&b'#') {
        let _number = read(&mut values);
    }
    show_row(columns, values)
}

/// Where the key stands among what is read of a row.
fn places(columns: &Columns, key: &[String]) -> Vec<usize> {
    if columns.number.is_some() {
        return vec![0];
    }
    let stored = || columns.names.iter().filter(|(_, stored)| *stored);
    let place = |name: &String| stored().position(|(known, _)| known.eq_ignore_ascii_case(name));
    key.iter().filter_map(place).collect()
}

/// The capture `now` without what the deltas say.
pub(crate) fn revert_rows(
    database: &Database,
    now: &Image,
    deltas: &[Delta],
    contents: &dyn Contents,
    keep: &dyn Keep,
) -> Result<Reverted, DatabaseError> {
    let stored = Stored::new(now, contents, &database.access.scratch)?;
    let place = Place {
        address: &database.address,
        path: stored.path(),
    };
    if let Some(conflict) = edit(&stored, now, deltas, place)? {
        return Ok(Reverted::Conflict(vec![conflict]));
    }
    let failed = |error| read_failed(place, error);
    stored.put_mode_back().map_err(failed)?;
    let view = stored.view().map_err(failed)?;
    let name = match is_partial(now) {
        true => TABLES,
        false => WHOLE,
    };
    let about: Vec<String> = match is_partial(now) {
        true => now.tables.iter().map(|table| table.name.clone()).collect(),
        false => Vec::new(),
    };
    let description = described(&view, &Scope::new(&about), place)?;
    let mut image = now.clone();
    image.tables = description.tables;
    image.schema = description.schema;
    image.pieces = vec![(name.to_owned(), view.keep(keep, &failed)?)];
    Ok(Reverted::Image(Box::new(image)))
}

fn edit(
    stored: &Stored,
    now: &Image,
    deltas: &[Delta],
    place: Place<'_>,
) -> Result<Option<RowConflict>, DatabaseError> {
    let fail = |error: rusqlite::Error| place.fail(error);
    let connection = stored.open_for_writing().map_err(fail)?;
    let no_triggers = DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
    connection.set_db_config(no_triggers, false).map_err(fail)?;
    let settings = "PRAGMA journal_mode = OFF; PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON";
    connection.execute_batch(settings).map_err(fail)?;
    let dangling = dangling(&connection).map_err(fail)?;
    connection.execute_batch("BEGIN IMMEDIATE").map_err(fail)?;
    for delta in deltas {
        let mut tables = now.schema.tables.iter();
        let known = tables.find(|table| table.name == delta.table);
        let key = known.map(|table| table.key.as_slice()).unwrap_or_default();
        match edit_table(&connection, delta, key) {
            Ok(true) => {}
            Ok(false) => {
                return Err(place.not_identical(format!("`{}` has other rows", delta.table)));
            }
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                return Ok(Some(RowConflict {
                    table: Some(delta.table.clone()),
                    why: format!("a row that was written since stands in the way: {error}"),
                }));
            }
            Err(error) => return Err(fail(error)),
        }
    }
    connection.execute_batch("COMMIT").map_err(fail)?;
    let more = self::dangling(&connection).map_err(fail)?;
    let new = more.difference(&dangling).next();
    Ok(new.map(|(table, _, parent)| RowConflict {
        table: Some(table.clone()),
        why: format!("rows of it refer to rows of `{parent}` that would go"),
    }))
}

/// False where a row was not there exactly once.
fn edit_table(connection: &Connection, delta: &Delta, key: &[String]) -> rusqlite::Result<bool> {
    let columns = Columns::of(connection, &delta.table)?;
    let name = quote(&delta.table);
    let places = places(&columns, key);
    let names: Vec<String> = match columns.number {
        Some(number) => vec![number.to_owned()],
        None => key.iter().map(|name| quote(name)).collect(),
    };
    let tests: Vec<String> = names.iter().map(|name| format!("{name} IS ?")).collect();
    let delete = format!("DELETE FROM main.{name} WHERE {}", tests.join(" AND "));
    let mut delete = connection.prepare(&delete)?;
    for (row, _) in delta.rows_to_remove() {
        let values = values(row);
        let of_key = places
            .iter()
            .filter_map(|place| values.get(*place).copied());
        let count = delete.execute(params_from_iter(of_key.map(ToSqlOutput::Borrowed)))?;
        if count != 1 {
            return Ok(false);
        }
    }
    let rows = delta.rows_to_insert();
    let Some((first, _)) = rows.first() else {
        return Ok(true);
    };
    let marks = vec!["?"; values(first).len()].join(", ");
    let insert = format!(
        "INSERT INTO main.{name}({}) VALUES ({marks})",
        columns.stored()
    );
    let mut insert = connection.prepare(&insert)?;
    for (row, _) in rows {
        let values = values(row).into_iter().map(ToSqlOutput::Borrowed);
        insert.execute(params_from_iter(values))?;
    }
    Ok(true)
}

fn values(row: &[u8]) -> Vec<ValueRef<'_>> {
    let mut rest = row.get(1..).unwrap_or_default();
    std::iter::from_fn(|| read(&mut rest)).collect()
}

/// The rows that refer to nothing: table, row number and the table they refer to.
fn dangling(connection: &Connection) -> rusqlite::Result<BTreeSet<(String, Option<i64>, String)>> {
    let sql = "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check(NULL, 'main')";
    let found = connection.prepare(sql).and_then(|mut statement| {
        statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect()
    });
    match found {
        // A key that refers to what is no key can be checked neither before nor after.
        Err(rusqlite::Error::SqliteFailure(..)) => Ok(BTreeSet::new()),
        other => other,
    }
}
