//! The rows of one table, copied from the captured database and compared with it.

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::error::Place;
use super::rows::quote;
use super::tables::KEPT;
use crate::DatabaseError;

/// Makes the rows of a table those of the captured one, with their numbers.
pub(super) fn fill(
    connection: &Connection,
    table: &str,
    place: Place<'_>,
) -> Result<(), DatabaseError> {
    let fail = |error| place.fail(error);
    let name = quote(table);
    let columns = Columns::of(connection, table).map_err(fail)?;
    // Between tables of the same structure, SQLite copies records without looking into
    // them. Where it would not keep row numbers, that is found below.
    let all = format!("INSERT INTO main.{name} SELECT * FROM {KEPT}.{name}");
    let listed = columns.stored();
    let each = format!("INSERT INTO main.{name}({listed}) SELECT {listed} FROM {KEPT}.{name}");
    for insert in [all, each] {
        connection
            .execute(&format!("DELETE FROM main.{name}"), [])
            .map_err(fail)?;
        let same = match connection.execute(&insert, []) {
            Ok(_) => same_rows(connection, &name, &columns).map_err(fail)?,
            // Generated columns cannot be inserted.
            Err(rusqlite::Error::SqlInputError { .. }) => false,
            Err(error) => return Err(fail(error)),
        };
        if same {
            return Ok(());
        }
    }
    Err(place.not_identical(format!("the rows of `{table}` differ")))
}

/// Compares a table with the captured one, row by row, in the order in which they are
/// stored, which is that of their keys.
fn same_rows(connection: &Connection, name: &str, columns: &Columns) -> rusqlite::Result<bool> {
    let select = |database: &str| {
        let listed = columns.all();
        format!("SELECT {listed} FROM {database}.{name} NOT INDEXED")
    };
    let mut ours = connection.prepare(&select("main"))?;
    let mut kept = connection.prepare(&select(KEPT))?;
    let count = ours.column_count();
    let (mut ours, mut kept) = (ours.raw_query(), kept.raw_query());
    loop {
        match (ours.next()?, kept.next()?) {
            (None, None) => return Ok(true),
            (Some(ours), Some(kept)) => {
                for column in 0..count {
                    if !same_value(ours.get_ref(column)?, kept.get_ref(column)?) {
                        return Ok(false);
                    }
                }
            }
            _ => return Ok(false),
        }
    }
}

/// Equal, and of the same kind.
fn same_value(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    match (one, other) {
        (ValueRef::Real(one), ValueRef::Real(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

/// The columns of a table.
pub(super) struct Columns {
    /// What the row number is called, where there is one and no column is called so.
    pub(super) number: Option<&'static str>,
    /// Names, and whether values are stored in them.
    pub(super) names: Vec<(String, bool)>,
}

impl Columns {
    pub(super) fn of(connection: &Connection, table: &str) -> rusqlite::Result<Self> {
        let mut statement =
            connection.prepare("SELECT name, hidden FROM pragma_table_xinfo(?1, 'main')")?;
        let names = statement
            .query_map([table], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)? == 0))
            })?
            .collect::<Result<Vec<_>, _>>()?;
        let numbered: bool = connection.query_row(
            "SELECT NOT wr FROM pragma_table_list(?1) WHERE schema = 'main'",
            [table],
            |row| row.get(0),
        )?;
        let is_free = |number: &&str| {
            !names
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(number))
        };
        let number = ["rowid", "_rowid_", "oid"].into_iter().find(is_free);
        Ok(Self {
            number: number.filter(|_| numbered),
            names,
        })
    }

    fn list(&self, wanted: impl Fn(bool) -> bool) -> String {
        let names = self.names.iter();
        let names = names
            .filter(|(_, stored)| wanted(*stored))
            .map(|(name, _)| quote(name));
        let number = self.number.map(str::to_owned);
        number
            .into_iter()
            .chain(names)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// All, and the row number.
    fn all(&self) -> String {
        self.list(|_| true)
    }

    /// Those that can be inserted.
    pub(super) fn stored(&self) -> String {
        self.list(|stored| stored)
    }
}
