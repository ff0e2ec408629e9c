//! The directories of workspaces.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use safepoint_model::{Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{NewRow, PLACE, REMOVED_PLACE, parsed};
use crate::place::Place;

const SELECT: &str = "SELECT workspace, path, kind, origin, base FROM progress_places";

fn path(row: &dyn Row, column: usize) -> Result<PathBuf, StoreError> {
    Ok(PathBuf::from(OsStr::from_bytes(row.blob(column)?)))
}

fn read_place(row: &dyn Row) -> Result<Place, StoreError> {
    Ok(Place {
        workspace: parsed(row.text(0)?, 0)?,
        path: path(row, 1)?,
        kind: parsed(row.text(2)?, 2)?,
        origin: path(row, 3)?,
        base: row.text(4)?.parse().map_err(|()| StoreError::Column {
            column: 4,
            expected: "the id of a checkpoint",
        })?,
    })
}

/// The directory that was made for a workspace, whether it is still there or not.
pub(crate) fn place(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Option<Place>, StoreError> {
    let statement = format!("{SELECT} WHERE workspace = ?1");
    query_one(sql, &statement, &[Value::Text(id.as_str())], read_place)
}

/// The workspace whose directory is one of `paths`, the innermost if there are several.
pub(crate) fn place_at(sql: &mut dyn Sql, paths: &[&Path]) -> Result<Option<Place>, StoreError> {
    let wanted: Vec<String> = (1..=paths.len())
        .map(|number| format!("?{number}"))
        .collect();
    let statement = format!(
        "{SELECT} WHERE path IN ({}) ORDER BY length(path) DESC LIMIT 1",
        wanted.join(", ")
    );
    let values: Vec<Value<'_>> = paths
        .iter()
        .map(|path| Value::Blob(path.as_os_str().as_bytes()))
        .collect();
    query_one(sql, &statement, &values, read_place)
}

/// All directories that were not removed.
pub(crate) fn places(sql: &mut dyn Sql) -> Result<Vec<Place>, StoreError> {
    let statement = format!(
        "{SELECT} p WHERE NOT EXISTS (SELECT 1 FROM progress_removed_places r WHERE r.workspace = p.workspace) ORDER BY workspace"
    );
    query_all(sql, &statement, &[], read_place)
}

pub(crate) fn place_row(place: &Place) -> NewRow<'_> {
    NewRow::new(
        &PLACE,
        vec![
            Value::Text(place.workspace.as_str()),
            Value::Blob(place.path.as_os_str().as_bytes()),
            Value::Text(place.kind.as_str()),
            Value::Blob(place.origin.as_os_str().as_bytes()),
            Value::Text(place.base.as_str()),
        ],
    )
}

pub(crate) fn is_removed(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<bool, StoreError> {
    let found = query_one(
        sql,
        "SELECT time FROM progress_removed_places WHERE workspace = ?1",
        &[Value::Text(id.as_str())],
        |row| row.integer(0),
    )?;
    Ok(found.is_some())
}

pub(crate) fn removed_row(id: &WorkspaceId, time: Timestamp) -> NewRow<'_> {
    NewRow::new(
        &REMOVED_PLACE,
        vec![Value::Text(id.as_str()), Value::Integer(time.as_micros())],
    )
}
