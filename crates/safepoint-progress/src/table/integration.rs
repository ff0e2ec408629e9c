//! Integrations, their conflicts and what was decided about them.

use std::collections::BTreeMap;

use safepoint_model::{ActionId, Timestamp, WorkspaceId};
use safepoint_state::path;
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{
    CONFLICT, INTEGRATION, INTEGRATION_ACTION, INTEGRATION_END, NewRow, RESOLUTION, optional,
    parsed,
};
use crate::integrate::{Choice, Conflict, Integration, Outcome, Resolved, Settling};

const SELECT: &str = "SELECT i.target, i.turn, i.source, i.record, i.mode, i.strategy, i.time, e.result \
     FROM progress_integrations i LEFT JOIN progress_integration_ends e ON e.target = i.target AND e.turn = i.turn";

fn read_integration(row: &dyn Row) -> Result<Integration, StoreError> {
    Ok(Integration {
        target: parsed(row.text(0)?, 0)?,
        turn: row.integer(1)?,
        source: parsed(row.text(2)?, 2)?,
        checkpoint_ref: parsed(row.text(3)?, 3)?,
        mode: parsed(row.text(4)?, 4)?,
        strategy: parsed(row.text(5)?, 5)?,
        started: Timestamp::from_micros(row.integer(6)?),
        result: optional(row, 7)?,
        actions: Vec::new(),
        conflicts: Vec::new(),
    })
}

/// Fills in what other tables have.
fn filled(sql: &mut dyn Sql, mut one: Integration) -> Result<Integration, StoreError> {
    let target = one.target.clone();
    let at = [Value::Text(target.as_str()), Value::Integer(one.turn)];
    one.actions = query_all(
        sql,
        "SELECT action FROM progress_integration_actions WHERE target = ?1 AND turn = ?2 ORDER BY action",
        &at,
        |row| parsed(row.text(0)?, 0),
    )?;
    one.conflicts = query_all(
        sql,
        "SELECT c.number, c.type, c.path, c.mergeable, c.description, r.strategy, r.choice, r.content FROM progress_conflicts c \
         LEFT JOIN progress_resolutions r ON r.target = c.target AND r.turn = c.turn AND r.number = c.number \
         WHERE c.target = ?1 AND c.turn = ?2 ORDER BY c.number",
        &at,
        read_conflict,
    )?;
    Ok(one)
}

fn read_conflict(row: &dyn Row) -> Result<Conflict, StoreError> {
    let raw = row.bytes(2)?.map(<[u8]>::to_vec);
    let settling: Option<Settling> = optional(row, 5)?;
    Ok(Conflict {
        id: format!("c{}", row.integer(0)?),
        kind: parsed(row.text(1)?, 1)?,
        path: raw.as_deref().map(path::display),
        raw,
        mergeable: row.integer(3)? != 0,
        description: row.text(4)?.to_owned(),
        ours: None,
        resolution: match settling {
            None => None,
            Some(strategy) => Some(Resolved {
                strategy,
                choice: optional(row, 6)?,
                content: row.bytes(7)?.map(<[u8]>::to_vec),
            }),
        },
    })
}

pub(crate) fn integration(
    sql: &mut dyn Sql,
    target: &WorkspaceId,
    turn: i64,
) -> Result<Option<Integration>, StoreError> {
    let statement = format!("{SELECT} WHERE i.target = ?1 AND i.turn = ?2");
    let at = [Value::Text(target.as_str()), Value::Integer(turn)];
    match query_one(sql, &statement, &at, read_integration)? {
        Some(found) => filled(sql, found).map(Some),
        None => Ok(None),
    }
}

/// All integrations of a workspace, the first one first.
pub(crate) fn integrations_of(
    sql: &mut dyn Sql,
    source: &WorkspaceId,
) -> Result<Vec<Integration>, StoreError> {
    let statement = format!("{SELECT} WHERE i.source = ?1 ORDER BY i.target, i.turn");
    let found = query_all(
        sql,
        &statement,
        &[Value::Text(source.as_str())],
        read_integration,
    )?;
    found.into_iter().map(|one| filled(sql, one)).collect()
}

/// Those that have not ended.
pub(crate) fn open_integrations(sql: &mut dyn Sql) -> Result<Vec<Integration>, StoreError> {
    let statement = format!("{SELECT} WHERE e.turn IS NULL ORDER BY i.target");
    let found = query_all(sql, &statement, &[], read_integration)?;
    found.into_iter().map(|one| filled(sql, one)).collect()
}

/// Those of a workspace that have not ended, on either side.
pub(crate) fn open_integrations_with(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Vec<Integration>, StoreError> {
    let statement = format!("{SELECT} WHERE e.turn IS NULL AND (i.source = ?1 OR i.target = ?1)");
    let found = query_all(
        sql,
        &statement,
        &[Value::Text(id.as_str())],
        read_integration,
    )?;
    found.into_iter().map(|one| filled(sql, one)).collect()
}

/// What was taken over by a workspace since a moment: the ids of workspaces and their records.
pub(crate) fn taken_over_since(
    sql: &mut dyn Sql,
    target: &WorkspaceId,
    since: Timestamp,
) -> Result<Vec<(WorkspaceId, String)>, StoreError> {
    query_all(
        sql,
        "SELECT i.source, i.record FROM progress_integrations i JOIN progress_integration_ends e ON e.target = i.target AND e.turn = i.turn \
         WHERE i.target = ?1 AND e.result <> 'aborted' AND e.time > ?2 ORDER BY i.turn",
        &[
            Value::Text(target.as_str()),
            Value::Integer(since.as_micros()),
        ],
        |row| Ok((parsed(row.text(0)?, 0)?, row.text(1)?.to_owned())),
    )
}

/// The actions by which work was taken over, and whose it was, in the order in which it was.
pub(crate) fn takeovers(sql: &mut dyn Sql) -> Result<Vec<(WorkspaceId, ActionId)>, StoreError> {
    query_all(
        sql,
        "SELECT i.source, a.action FROM progress_integration_actions a \
         JOIN progress_integrations i ON i.target = a.target AND i.turn = a.turn \
         JOIN progress_integration_ends e ON e.target = a.target AND e.turn = a.turn \
         WHERE e.result <> 'aborted' ORDER BY e.time, a.action",
        &[],
        |row| Ok((parsed(row.text(0)?, 0)?, parsed(row.text(1)?, 1)?)),
    )
}

/// The turn that is next.
pub(crate) fn next_turn(sql: &mut dyn Sql, target: &WorkspaceId) -> Result<i64, StoreError> {
    let ended = query_one(
        sql,
        "SELECT count(*) FROM progress_integration_ends WHERE target = ?1",
        &[Value::Text(target.as_str())],
        |row| row.integer(0),
    )?;
    Ok(ended.unwrap_or(0) + 1)
}

/// What says which integration it is, in every table of theirs.
fn which(one: &Integration) -> Vec<Value<'_>> {
    vec![
        Value::Text(one.source.as_str()),
        Value::Text(one.target.as_str()),
        Value::Integer(one.turn),
    ]
}

pub(crate) fn integration_row(one: &Integration) -> NewRow<'_> {
    let mut values = which(one);
    values.extend([
        Value::Text(one.checkpoint_ref.as_str()),
        Value::Text(one.mode.as_str()),
        Value::Text(one.strategy.as_str()),
        Value::Integer(one.started.as_micros()),
    ]);
    NewRow::new(&INTEGRATION, values)
}

pub(crate) fn end_row<'a>(
    one: &'a Integration,
    result: Outcome,
    reason: Option<&'a str>,
    time: Timestamp,
) -> NewRow<'a> {
    let mut values = which(one);
    values.extend([
        Value::Text(result.as_str()),
        reason.into(),
        Value::Integer(time.as_micros()),
    ]);
    NewRow::new(&INTEGRATION_END, values)
}

pub(crate) fn action_row<'a>(one: &'a Integration, action: &'a ActionId) -> NewRow<'a> {
    let mut values = which(one);
    values.push(Value::Text(action.as_str()));
    NewRow::new(&INTEGRATION_ACTION, values)
}

pub(crate) fn conflict_row<'a>(
    one: &'a Integration,
    number: i64,
    conflict: &'a Conflict,
) -> NewRow<'a> {
    let mut values = which(one);
    values.extend([
        Value::Integer(number),
        Value::Text(conflict.kind.as_str()),
        conflict.raw.as_deref().into(),
        Value::Integer(i64::from(conflict.mergeable)),
        Value::Text(&conflict.description),
    ]);
    NewRow::new(&CONFLICT, values)
}

pub(crate) fn resolution_row<'a>(
    one: &'a Integration,
    number: i64,
    resolved: &'a Resolved,
    time: Timestamp,
) -> NewRow<'a> {
    let mut values = which(one);
    values.extend([
        Value::Integer(number),
        Value::Text(resolved.strategy.as_str()),
        resolved.choice.map(Choice::as_str).into(),
        resolved.content.as_deref().into(),
        Value::Integer(time.as_micros()),
    ]);
    NewRow::new(&RESOLUTION, values)
}

/// When each conflict that was decided was, by its name.
pub(crate) fn decided(
    sql: &mut dyn Sql,
    one: &Integration,
) -> Result<BTreeMap<String, i64>, StoreError> {
    let found = query_all(
        sql,
        "SELECT number, time FROM progress_resolutions WHERE target = ?1 AND turn = ?2",
        &[Value::Text(one.target.as_str()), Value::Integer(one.turn)],
        |row| Ok((format!("c{}", row.integer(0)?), row.integer(1)?)),
    )?;
    Ok(found.into_iter().collect())
}
