//! Some tables of a database made what an image says, and nothing else touched.
//!
//! One transaction: the tables are dropped and made again from the captured database,
//! which is attached, with indexes, triggers, rows and row numbers. Before it is
//! committed, all of that is compared with the captured database.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use super::capture::read_failed;
use super::error::Place;
use super::fill::fill;
use super::open::open;
use super::restore::is_partial;
use super::rows::quote;
use super::schema::{self, Entry};
use super::stored::Stored;
use crate::{Database, DatabaseError, Image, Restored};

/// What the captured database is called while it is attached.
pub(super) const KEPT: &str = "safepoint_image";

/// The tables that are to be restored; `None` for the whole database.
pub(super) fn wanted(
    database: &Database,
    image: &Image,
    place: Place<'_>,
) -> Result<Option<Vec<String>>, DatabaseError> {
    let named = database.address.only();
    if !is_partial(image) {
        return Ok((!named.is_empty()).then(|| named.to_vec()));
    }
    // The image is about these alone, whatever else its file holds.
    let virtual_tables = image.schema.objects.iter();
    let about: Vec<String> = virtual_tables
        .filter(|object| object.kind == "virtual table")
        .map(|object| object.name.clone())
        .chain(image.tables.iter().map(|table| table.name.clone()))
        .collect();
    if named.is_empty() {
        return Ok(Some(about));
    }
    for name in named {
        if !about.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(place.no_table(name));
        }
    }
    Ok(Some(named.to_vec()))
}

pub(super) fn restore(
    database: &Database,
    path: &Path,
    stored: &Stored,
    names: &[String],
) -> Result<Restored, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let fail = |error| place.fail(error);
    let view = stored.view().map_err(|error| read_failed(place, error))?;
    let entries = schema::entries(&view).map_err(|error| read_failed(place, error))?;
    let open = open(database, path)?;
    let work = Work {
        connection: &open.connection,
        entries: &entries,
        place,
    };
    // Rows are brought back as they were, also where a constraint did not hold.
    work.run("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")?;
    open.connection
        .execute(&format!("ATTACH ?1 AS {KEPT}"), [stored.address()])
        .map_err(fail)?;
    work.run("BEGIN IMMEDIATE")?;
    let done = work
        .all(names)
        .and_then(|warnings| work.run("COMMIT").map(|()| warnings));
    if done.is_err() && !open.connection.is_autocommit() {
        work.run("ROLLBACK")?;
    }
    done.map(|warnings| Restored { warnings })
}

struct Work<'a> {
    connection: &'a Connection,
    /// Of the captured database.
    entries: &'a [Entry],
    place: Place<'a>,
}

impl Work<'_> {
    fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        self.connection
            .execute_batch(sql)
            .map_err(|error| self.place.fail(error))
    }

    fn all(&self, names: &[String]) -> Result<Vec<String>, DatabaseError> {
        let find = |name: &str| {
            let same =
                |entry: &&Entry| entry.kind == "table" && entry.name.eq_ignore_ascii_case(name);
            self.entries.iter().find(same)
        };
        let shadows: Vec<String> = names
            .iter()
            .filter_map(|name| find(name)?.shadows())
            .flatten()
            .collect();
        let mut done = Vec::new();
        for name in names {
            // What a virtual table keeps its rows in comes with it.
            if schema::is_internal(name) || shadows.contains(name) {
                continue;
            }
            let dropped = self.drop(name)?;
            match find(name) {
                Some(entry) => {
                    self.make(entry)?;
                    done.push(entry.name.clone());
                }
                None if dropped => {}
                None => return Err(self.place.no_table(name)),
            }
        }
        Ok(self.dangling(&done))
    }

    /// Drops what has this name now. False when nothing has.
    fn drop(&self, name: &str) -> Result<bool, DatabaseError> {
        let sql = "SELECT upper(type), name FROM main.sqlite_schema \
                   WHERE type IN ('table', 'view') AND name = ?1 COLLATE NOCASE";
        let found: Option<(String, String)> = self
            .connection
            .query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(|error| self.place.fail(error))?;
        let Some((kind, name)) = found else {
            return Ok(false);
        };
        self.run(&format!("DROP {kind} main.{}", quote(&name)))?;
        Ok(true)
    }

    /// Makes a table of the captured database again.
    fn make(&self, table: &Entry) -> Result<(), DatabaseError> {
        let parts = |kind: &'static str| {
            self.entries.iter().filter(move |entry| {
                entry.kind == kind && entry.table.eq_ignore_ascii_case(&table.name)
            })
        };
        if table.is_virtual() {
            let Some(shadows) = table.shadows() else {
                return Err(self.place.unsupported(format!(
                    "`{}` is a virtual table that only comes back with the whole database",
                    table.name
                )));
            };
            for name in &shadows {
                self.drop(name)?;
            }
            self.run(&table.sql)?;
            for name in shadows {
                if self.entries.iter().any(|entry| entry.name == name) {
                    fill(self.connection, &name, self.place)?;
                    self.bring_notes(&name)?;
                }
            }
            return self.same_structure(&table.name);
        }
        self.run(&table.sql)?;
        // Indexes before the rows: then SQLite copies records and row numbers as they are.
        for index in parts("index").filter(|index| !index.sql.is_empty()) {
            self.run(&index.sql)?;
        }
        fill(self.connection, &table.name, self.place)?;
        for trigger in parts("trigger") {
            self.run(&trigger.sql)?;
        }
        self.bring_notes(&table.name)?;
        self.same_structure(&table.name)
    }

    /// Brings back what SQLite itself notes about a table.
    fn bring_notes(&self, table: &str) -> Result<(), DatabaseError> {
        self.bring("sqlite_sequence", "name", table)?;
        self.bring("sqlite_stat1", "tbl", table)?;
        self.bring("sqlite_stat4", "tbl", table)
    }

    fn bring(&self, about: &str, column: &str, table: &str) -> Result<(), DatabaseError> {
        let fail = |error| self.place.fail(error);
        let is_there = |database: &str| {
            let sql = format!("SELECT count(*) FROM {database}.sqlite_schema WHERE name = ?1");
            self.connection
                .query_row(&sql, [about], |row| row.get::<_, i64>(0))
                .map(|count| count > 0)
                .map_err(fail)
        };
        if !is_there("main")? {
            return Ok(());
        }
        let delete = format!("DELETE FROM main.{about} WHERE {column} = ?1 COLLATE NOCASE");
        self.connection.execute(&delete, [table]).map_err(fail)?;
        if is_there(KEPT)? {
            let insert = format!(
                "INSERT INTO main.{about} SELECT * FROM {KEPT}.{about} \
                 WHERE {column} = ?1 COLLATE NOCASE"
            );
            self.connection.execute(&insert, [table]).map_err(fail)?;
        }
        Ok(())
    }

    /// Compares what a table consists of with the captured one.
    fn same_structure(&self, table: &str) -> Result<(), DatabaseError> {
        let select = |database: &str| {
            format!(
                "SELECT type, name, tbl_name, sql FROM {database}.sqlite_schema \
                 WHERE tbl_name = ?1 COLLATE NOCASE"
            )
        };
        let (ours, kept) = (select("main"), select(KEPT));
        for (one, other) in [(&ours, &kept), (&kept, &ours)] {
            let sql = format!("SELECT count(*) FROM ({one} EXCEPT {other})");
            let differ: i64 = self
                .connection
                .query_row(&sql, params![table], |row| row.get(0))
                .map_err(|error| self.place.fail(error))?;
            if differ > 0 {
                let why = format!("the structure of `{table}` differs");
                return Err(self.place.not_identical(why));
            }
        }
        Ok(())
    }

    /// Says which foreign keys lead nowhere, now that some tables are older than others.
    fn dangling(&self, tables: &[String]) -> Vec<String> {
        let sql = "SELECT \"table\", parent, count(*) \
                   FROM pragma_foreign_key_check(NULL, 'main') GROUP BY 1, 2";
        let found = self.connection.prepare(sql).and_then(|mut statement| {
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
                .collect::<Result<Vec<(String, String, i64)>, _>>()
        });
        let concerned = |name: &str| tables.iter().any(|table| table.eq_ignore_ascii_case(name));
        match found {
            Ok(rows) => rows
                .into_iter()
                .filter(|(child, parent, _)| concerned(child) || concerned(parent))
                .map(|(child, parent, count)| {
                    format!(
                        "{count} rows of `{child}` refer to rows of `{parent}` that are not there"
                    )
                })
                .collect(),
            // A key that refers to what is no key; it did so before.
            Err(error) => vec![format!("foreign keys could not be checked: {error}")],
        }
    }
}
