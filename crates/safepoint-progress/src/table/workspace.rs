//! What workspaces were made as, where they stand and whose they are.

use safepoint_model::{Digest, Span, Timestamp, WorkspaceId, json as strict};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{optional, parsed, position};
use crate::ProgressError;
use crate::meter::Budget;
use crate::role::Name;
use crate::state::{Standing, State};
use crate::taxonomy::Taxonomy;

/// What a workspace was made as.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) id: WorkspaceId,
    pub(crate) run: WorkspaceId,
    pub(crate) parent: Option<WorkspaceId>,
    pub(crate) role: Name,
    pub(crate) directive: Option<String>,
    pub(crate) originator: String,
    pub(crate) created: Timestamp,
    pub(crate) budget: Budget,
    pub(crate) timeout: Option<Span>,
    pub(crate) entry: i64,
}

/// A move as its row has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredMove {
    pub(crate) number: i64,
    pub(crate) entry: i64,
    pub(crate) state: String,
    pub(crate) former: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) time: i64,
}

/// A binding as its row has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredBinding {
    pub(crate) number: i64,
    pub(crate) entry: i64,
    pub(crate) digest: Option<Vec<u8>>,
    pub(crate) time: i64,
}

const MADE: &str = "SELECT id, run, parent, role, directive, created, originator, entry, budget, coalesce(timeout, -1) FROM progress_workspaces";

fn read_made(row: &dyn Row) -> Result<Made, StoreError> {
    Ok(Made {
        id: parsed(row.text(0)?, 0)?,
        run: parsed(row.text(1)?, 1)?,
        parent: optional(row, 2)?,
        role: parsed(row.text(3)?, 3)?,
        directive: row.optional_text(4)?.map(str::to_owned),
        created: Timestamp::from_micros(row.integer(5)?),
        originator: row.text(6)?.to_owned(),
        entry: row.integer(7)?,
        budget: read_budget(row, 8)?,
        timeout: u64::try_from(row.integer(9)?).ok().map(Span::from_micros),
    })
}

fn read_budget(row: &dyn Row, column: usize) -> Result<Budget, StoreError> {
    let Some(text) = row.optional_text(column)? else {
        return Ok(Budget::default());
    };
    strict::read_as(text.as_bytes(), strict::Limits::default()).map_err(|_| StoreError::Column {
        column,
        expected: "a budget",
    })
}

pub(crate) fn made(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Made, ProgressError> {
    let found = query_one(
        sql,
        &format!("{MADE} WHERE id = ?1"),
        &[Value::Text(id.as_str())],
        read_made,
    )?;
    found.ok_or_else(|| ProgressError::NotFound {
        what: "workspace",
        name: id.to_string(),
    })
}

/// The workspace above another one.
pub(crate) fn parent_of(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<WorkspaceId>, StoreError> {
    let statement = "SELECT parent FROM progress_workspaces WHERE id = ?1";
    let found = query_one(sql, statement, &[Value::Text(id.as_str())], |row| {
        optional(row, 0)
    })?;
    Ok(found.flatten())
}

pub(crate) fn all_made(sql: &mut dyn Sql) -> Result<Vec<Made>, StoreError> {
    query_all(sql, &format!("{MADE} ORDER BY created, id"), &[], read_made)
}

/// The ids of all workspaces, whatever else is in their rows.
pub(crate) fn all_workspaces(sql: &mut dyn Sql) -> Result<Vec<WorkspaceId>, StoreError> {
    query_all(
        sql,
        "SELECT id FROM progress_workspaces ORDER BY created, id",
        &[],
        |row| parsed(row.text(0)?, 0),
    )
}

/// How many workspaces there are.
pub(crate) fn count_made(sql: &mut dyn Sql) -> Result<u64, ProgressError> {
    let statement = "SELECT count(*) FROM progress_workspaces";
    let count = query_one(sql, statement, &[], |row| row.integer(0))?;
    Ok(count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0))
}

pub(crate) fn children(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<Made>, StoreError> {
    let statement = format!("{MADE} WHERE parent = ?1 ORDER BY created, id");
    query_all(sql, &statement, &[Value::Text(id.as_str())], read_made)
}

pub(crate) fn insert_made(
    sql: &mut dyn Sql,
    made: &Made,
    taxonomy: Option<&str>,
) -> Result<(), ProgressError> {
    let budget = match made.budget.is_empty() {
        true => None,
        false => Some(strict::canonical_of(&made.budget)?),
    };
    let budget = budget.as_deref().map(String::from_utf8_lossy);
    let timeout = made
        .timeout
        .map(|timeout| i64::try_from(timeout.as_micros()));
    sql.execute(
        "INSERT INTO progress_workspaces (id, run, parent, role, originator, directive, taxonomy, created, entry, budget, timeout) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &[
            Value::Text(made.id.as_str()),
            Value::Text(made.run.as_str()),
            made.parent.as_ref().map(WorkspaceId::as_str).into(),
            Value::Text(made.role.as_str()),
            Value::Text(&made.originator),
            made.directive.as_deref().into(),
            taxonomy.into(),
            Value::Integer(made.created.as_micros()),
            Value::Integer(made.entry),
            budget.as_deref().into(),
            timeout.map(|micros| micros.unwrap_or(i64::MAX)).into(),
        ],
    )?;
    Ok(())
}

/// The taxonomy of a run, which its root holds.
pub(crate) fn taxonomy(sql: &mut dyn Sql, run: &WorkspaceId) -> Result<Taxonomy, ProgressError> {
    read_taxonomy(run, &taxonomy_text(sql, run)?)
}

/// The text of that taxonomy.
pub(crate) fn taxonomy_text(sql: &mut dyn Sql, run: &WorkspaceId) -> Result<String, ProgressError> {
    let text = query_one(
        sql,
        "SELECT taxonomy FROM progress_workspaces WHERE id = ?1",
        &[Value::Text(run.as_str())],
        |row| Ok(row.optional_text(0)?.map(str::to_owned)),
    )?;
    text.flatten().ok_or_else(|| tampered_taxonomy(run))
}

/// What that text says.
pub(crate) fn read_taxonomy(run: &WorkspaceId, text: &str) -> Result<Taxonomy, ProgressError> {
    match text {
        "" => Ok(Taxonomy::empty()),
        text => Taxonomy::read(text).map_err(|_| tampered_taxonomy(run)),
    }
}

fn tampered_taxonomy(run: &WorkspaceId) -> ProgressError {
    ProgressError::Tampered {
        what: "taxonomy of",
        id: run.to_string(),
    }
}

/// Where a workspace stands, and after how many moves.
pub(crate) fn standing(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<(Standing, i64), StoreError> {
    let last = query_one(
        sql,
        "SELECT state, former, number FROM progress_moves WHERE workspace = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| {
            let state: State = parsed(row.text(0)?, 0)?;
            let former = optional(row, 1)?;
            Ok((Standing { state, former }, row.integer(2)?))
        },
    )?;
    Ok(last.unwrap_or((Standing::NEW, 0)))
}

pub(crate) fn insert_move(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    number: i64,
    standing: Standing,
    reason: Option<&str>,
    time: Timestamp,
    entry: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_moves (workspace, number, state, former, reason, time, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &[
            Value::Text(id.as_str()),
            Value::Integer(number),
            Value::Text(standing.state.as_str()),
            standing.former.map(State::as_str).into(),
            reason.into(),
            Value::Integer(time.as_micros()),
            position(entry),
        ],
    )
    .map(drop)
}

/// The last two moves of a workspace, the last one first.
/// Why a workspace stands where it stands, if somebody said so.
pub(crate) fn last_reason(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<String>, StoreError> {
    let reason = query_one(
        sql,
        "SELECT reason FROM progress_moves WHERE workspace = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| Ok(row.optional_text(0)?.map(str::to_owned)),
    )?;
    Ok(reason.flatten())
}

pub(crate) fn newest_moves(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Vec<StoredMove>, StoreError> {
    query_all(
        sql,
        "SELECT number, entry, state, former, reason, time FROM progress_moves \
         WHERE workspace = ?1 ORDER BY number DESC LIMIT 2",
        &[Value::Text(id.as_str())],
        read_move,
    )
}

fn read_move(row: &dyn Row) -> Result<StoredMove, StoreError> {
    Ok(StoredMove {
        number: row.integer(0)?,
        entry: row.integer(1)?,
        state: row.text(2)?.to_owned(),
        former: row.optional_text(3)?.map(str::to_owned),
        reason: row.optional_text(4)?.map(str::to_owned),
        time: row.integer(5)?,
    })
}

/// The moves of a workspace behind a number, a page of them.
pub(crate) fn moves_after(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    number: i64,
    most: u32,
) -> Result<Vec<StoredMove>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT number, entry, state, former, reason, time FROM progress_moves \
             WHERE workspace = ?1 AND number > ?2 ORDER BY number LIMIT {most}"
        ),
        &[Value::Text(id.as_str()), Value::Integer(number)],
        read_move,
    )
}

/// The place in the trail of the last move of a workspace; -1 before the first.
pub(crate) fn last_move(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<i64, StoreError> {
    let last = query_one(
        sql,
        "SELECT entry FROM progress_moves WHERE workspace = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| row.integer(0),
    )?;
    Ok(last.unwrap_or(-1))
}

/// The bindings of a workspace behind a number, a page of them.
pub(crate) fn bindings_after(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    number: i64,
    most: u32,
) -> Result<Vec<StoredBinding>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT number, entry, digest, time FROM progress_bindings \
             WHERE workspace = ?1 AND number > ?2 ORDER BY number LIMIT {most}"
        ),
        &[Value::Text(id.as_str()), Value::Integer(number)],
        read_binding,
    )
}

/// The last two bindings of a workspace, the last one first.
pub(crate) fn newest_bindings(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Vec<StoredBinding>, StoreError> {
    query_all(
        sql,
        "SELECT number, entry, digest, time FROM progress_bindings \
         WHERE workspace = ?1 ORDER BY number DESC LIMIT 2",
        &[Value::Text(id.as_str())],
        read_binding,
    )
}

fn read_binding(row: &dyn Row) -> Result<StoredBinding, StoreError> {
    Ok(StoredBinding {
        number: row.integer(0)?,
        entry: row.integer(1)?,
        digest: row.bytes(2)?.map(<[u8]>::to_vec),
        time: row.integer(3)?,
    })
}

pub(crate) fn bind(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    digest: Option<&Digest>,
    time: Timestamp,
    entry: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_bindings (workspace, number, digest, time, entry) \
         VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM progress_bindings WHERE workspace = ?1), ?2, ?3, ?4)",
        &[
            Value::Text(id.as_str()),
            digest.map(|digest| digest.as_bytes().as_slice()).into(),
            Value::Integer(time.as_micros()),
            position(entry),
        ],
    )
    .map(drop)
}
