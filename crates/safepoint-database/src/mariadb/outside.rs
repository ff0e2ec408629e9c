//! Foreign keys that cross the border of what is restored. They follow a table that
//! is renamed, so they must be told to point to the one that takes its place.

use crate::DatabaseError;

use super::definition::{self, Definition};
use super::lex;
use super::server::Server;
use super::session::Session;
use super::structure::Structure;

/// A foreign key, as `information_schema` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    schema: String,
    table: String,
    name: String,
    parent: String,
    /// Its columns, and those that they point to.
    columns: Vec<(String, String)>,
}

/// A foreign key of a table that stays, to a table that is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outside {
    /// The table that has it, in full.
    pub(super) table: String,
    /// Its name.
    pub(super) name: String,
    /// The table it points to.
    pub(super) parent: String,
    /// `CONSTRAINT … FOREIGN KEY …`, as it is.
    pub(super) text: String,
}

impl Outside {
    /// The same, pointing to another table.
    pub(super) fn pointing_to(&self, parent: &str) -> String {
        definition::with_references(&self.text, &|_, _| Some(parent.to_owned()))
    }
}

/// All foreign keys to tables of the database.
fn listed(server: &Server, session: &mut Session) -> Result<Vec<Listed>, DatabaseError> {
    let mut query = b"SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_SCHEMA, \
        REFERENCED_TABLE_NAME, COLUMN_NAME, REFERENCED_COLUMN_NAME \
        FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_SCHEMA = "
        .to_vec();
    lex::push_text(&mut query, server.database.as_bytes());
    query.extend_from_slice(
        b" ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION",
    );
    let rows = session.texts(&String::from_utf8_lossy(&query))?;
    let mut listed: Vec<Listed> = Vec::new();
    for row in rows {
        let [schema, table, name, of, parent, column, points_to] = row.as_slice() else {
            continue;
        };
        if *of != server.database {
            continue;
        }
        let columns = (column.clone(), points_to.clone());
        match listed.last_mut() {
            Some(last) if (&last.schema, &last.table, &last.name) == (schema, table, name) => {
                last.columns.push(columns);
            }
            _ => listed.push(Listed {
                schema: schema.clone(),
                table: table.clone(),
                name: name.clone(),
                parent: parent.clone(),
                columns: vec![columns],
            }),
        }
    }
    Ok(listed)
}

/// Those of tables that stay, to tables in `live` that are about to be replaced by `wanted`.
pub(super) fn outside(
    server: &Server,
    session: &mut Session,
    live: &Structure,
    wanted: &Structure,
) -> Result<Vec<Outside>, DatabaseError> {
    let mut found = Vec::new();
    for one in listed(server, session)? {
        let moves_too = one.schema == server.database && live.has_table(&one.table);
        if moves_too || !live.has_table(&one.parent) {
            continue;
        }
        let table = lex::full_name(&one.schema, &one.table);
        if !wanted.has_table(&one.parent) {
            return Err(server.unsupported(format!(
                "{table} points to `{}`, which was not there when it was captured: \
                 drop the foreign key `{}` first",
                one.parent, one.name
            )));
        }
        let shown = session.texts(&format!("SHOW CREATE TABLE {table}"))?;
        let create = shown.first().and_then(|row| row.get(1));
        let text = create
            .and_then(|create| Definition::read(create)?.constraint(&one.name))
            .ok_or_else(|| server.unsupported(format!("{table} has an unreadable foreign key")))?;
        found.push(Outside {
            table,
            name: one.name,
            parent: one.parent,
            text: text.to_owned(),
        });
    }
    Ok(found)
}

/// Which foreign keys that cross the border have rows without what they point to.
pub(super) fn orphans(
    server: &Server,
    session: &mut Session,
    wanted: &Structure,
) -> Result<Vec<String>, DatabaseError> {
    let is_inside = |name: &str| wanted.has_table(name);
    let mut warnings = Vec::new();
    for one in listed(server, session)? {
        let child_inside = one.schema == server.database && is_inside(&one.table);
        if child_inside == is_inside(&one.parent) {
            continue;
        }
        let child = lex::full_name(&one.schema, &one.table);
        let parent = lex::full_name(&server.database, &one.parent);
        let pair = |(column, points_to): &(String, String)| {
            let (column, points_to) = (lex::name(column), lex::name(points_to));
            format!("p.{points_to} = c.{column}")
        };
        let filled =
            |(column, _): &(String, String)| format!("c.{} IS NOT NULL", lex::name(column));
        let joined: Vec<String> = one.columns.iter().map(pair).collect();
        let filled: Vec<String> = one.columns.iter().map(filled).collect();
        let count = session.value(&format!(
            "SELECT COUNT(*) FROM {child} c WHERE {} AND NOT EXISTS \
             (SELECT 1 FROM {parent} p WHERE {})",
            filled.join(" AND "),
            joined.join(" AND ")
        ))?;
        if count != "0" {
            warnings.push(format!(
                "{count} rows of {child} point to rows of {parent} that are not there \
                 (foreign key `{}`)",
                one.name
            ));
        }
    }
    Ok(warnings)
}
