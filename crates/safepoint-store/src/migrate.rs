//! Forward-only migrations, one list per crate that owns tables.
//!
//! Each list is applied in one transaction, so that a store is at one version
//! or at another, never between. A migration that has been released is never
//! edited: a new one follows it.

use crate::{Location, Sql, StoreError, Value, query_one};

/// The tables of one crate.
#[derive(Clone, Copy, Debug)]
pub struct Component {
    /// The crate's word for itself, such as `trail`.
    pub name: &'static str,
    /// Its migrations; the first makes version 1.
    pub migrations: &'static [Migration],
}

/// One step, for each database.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Statements for SQLite, separated by `;` at the end of a line.
    pub sqlite: &'static str,
    /// The same for PostgreSQL.
    pub postgres: &'static str,
}

/// The versions of all components. The first table of every store.
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS schema_versions (component TEXT PRIMARY KEY, version BIGINT NOT NULL)";

/// The version at which a component stands here; 0 before its first migration.
pub(crate) fn version(sql: &mut dyn Sql, component: &Component) -> Result<i64, StoreError> {
    let found = query_one(
        sql,
        "SELECT version FROM schema_versions WHERE component = ?1",
        &[Value::Text(component.name)],
        |row| row.integer(0),
    )?;
    Ok(found.unwrap_or(0))
}

/// The version this program would bring the component to.
pub(crate) fn newest(component: &Component) -> i64 {
    i64::try_from(component.migrations.len()).unwrap_or(i64::MAX)
}

/// Refuses a store that a newer program has written.
pub(crate) fn refuse_newer(
    location: &Location,
    component: &Component,
    found: i64,
) -> Result<(), StoreError> {
    if found > newest(component) {
        return Err(StoreError::Newer {
            place: location.to_string(),
            component: component.name,
            found,
            known: newest(component),
        });
    }
    Ok(())
}

/// Makes the table of versions, where it is missing.
pub(crate) fn prepare(sql: &mut dyn Sql) -> Result<(), StoreError> {
    sql.execute(VERSIONS, &[]).map(drop)
}

/// Applies the migrations behind version `found`. Runs inside the caller's transaction.
pub(crate) fn apply(
    sql: &mut dyn Sql,
    location: &Location,
    component: &Component,
) -> Result<(), StoreError> {
    let found = version(sql, component)?; // anew: another process may have been faster
    refuse_newer(location, component, found)?;
    let done = usize::try_from(found).unwrap_or(0);
    for migration in component.migrations.iter().skip(done) {
        let script = match location {
            Location::Sqlite(_) => migration.sqlite,
            Location::Postgres(_) => migration.postgres,
        };
        for statement in statements(script) {
            sql.execute(&statement, &[])?;
        }
    }
    sql.execute(
        "INSERT INTO schema_versions (component, version) VALUES (?1, ?2) ON CONFLICT (component) DO UPDATE SET version = excluded.version",
        &[Value::Text(component.name), Value::Integer(newest(component))],
    )?;
    Ok(())
}

/// Splits a script into statements. A statement ends with `;` at the end of an
/// unindented line, so that the bodies of triggers, which are indented, stay whole.
fn statements(script: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut current = String::new();
    for line in script.lines().filter(|line| !line.starts_with("--")) {
        current.push_str(line);
        current.push('\n');
        if line.ends_with(';') && !line.starts_with(char::is_whitespace) {
            found.push(std::mem::take(&mut current));
        }
    }
    if !current.trim().is_empty() {
        found.push(current);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_stays_one_statement() {
        let script = "-- why\nCREATE TABLE t (a);\n\nCREATE TRIGGER x BEFORE UPDATE ON t BEGIN\n  SELECT 1;\nEND;\n";
        let found = statements(script);
        assert_eq!(found.len(), 2);
        assert!(found[1].contains("SELECT 1;\nEND;"), "{found:?}");
    }
}
