//! Signals, and which of them were delivered.

use safepoint_model::{SignalId, Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all};

use super::{optional, parsed};
use crate::signal::Signal;

pub(crate) fn insert_signal(sql: &mut dyn Sql, signal: &Signal) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_signals (id, workspace, number, type, reason, about, time, parent) \
         VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM progress_signals WHERE workspace = ?2), ?3, ?4, ?5, ?6, ?7)",
        &[
            Value::Text(signal.id.as_str()),
            Value::Text(signal.from.as_str()),
            Value::Text(signal.kind.as_str()),
            signal.reason.as_deref().into(),
            signal.about.as_deref().into(),
            Value::Integer(signal.timestamp.as_micros()),
            signal.delivered_to.as_ref().map(WorkspaceId::as_str).into(),
        ],
    )
    .map(drop)
}

const SIGNAL: &str = "SELECT s.id, s.workspace, s.type, s.reason, s.about, s.time, s.parent, coalesce(d.time, -1) \
     FROM progress_signals s LEFT JOIN progress_deliveries d ON d.signal = s.id";

fn read_signal(row: &dyn Row) -> Result<Signal, StoreError> {
    let delivered = row.integer(7)?;
    Ok(Signal {
        id: parsed(row.text(0)?, 0)?,
        from: parsed(row.text(1)?, 1)?,
        kind: parsed(row.text(2)?, 2)?,
        reason: row.optional_text(3)?.map(str::to_owned),
        about: row.optional_text(4)?.map(str::to_owned),
        timestamp: Timestamp::from_micros(row.integer(5)?),
        delivered_to: optional(row, 6)?,
        delivered_at: (delivered >= 0).then(|| Timestamp::from_micros(delivered)),
    })
}

/// What waits to be delivered, in the order in which it was emitted.
pub(crate) fn waiting(sql: &mut dyn Sql) -> Result<Vec<Signal>, StoreError> {
    let statement =
        format!("{SIGNAL} WHERE d.signal IS NULL AND s.parent IS NOT NULL ORDER BY s.time, s.id");
    query_all(sql, &statement, &[], read_signal)
}

/// What a workspace emitted, and what it was told by its children.
pub(crate) fn signals_of(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<Signal>, StoreError> {
    let statement =
        format!("{SIGNAL} WHERE s.workspace = ?1 OR s.parent = ?1 ORDER BY s.time, s.id");
    query_all(sql, &statement, &[Value::Text(id.as_str())], read_signal)
}

pub(crate) fn insert_delivery(
    sql: &mut dyn Sql,
    id: &SignalId,
    time: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_deliveries (signal, time) VALUES (?1, ?2)",
        &[Value::Text(id.as_str()), Value::Integer(time.as_micros())],
    )
    .map(drop)
}
