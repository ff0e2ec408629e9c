//! Signals, which of them were delivered, and which wait.

use safepoint_model::{SignalId, Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{optional, parsed, position};
use crate::signal::{Signal, SignalType};

/// A signal as its row has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredSignal {
    pub(crate) number: i64,
    pub(crate) entry: i64,
    pub(crate) id: String,
    pub(crate) kind: SignalType,
    pub(crate) reason: Option<String>,
    pub(crate) about: Option<String>,
    pub(crate) time: i64,
    pub(crate) parent: Option<String>,
}

/// A delivery as its row has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) number: i64,
    pub(crate) entry: i64,
    pub(crate) signal: String,
    pub(crate) time: i64,
    /// Where the signal came from, if there is such a signal.
    pub(crate) from: Option<String>,
}

pub(crate) fn insert_signal(
    sql: &mut dyn Sql,
    signal: &Signal,
    entry: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_signals (id, workspace, number, type, reason, about, time, entry, parent) \
         VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM progress_signals WHERE workspace = ?2), ?3, ?4, ?5, ?6, ?7, ?8)",
        &[
            Value::Text(signal.id.as_str()),
            Value::Text(signal.from.as_str()),
            Value::Text(signal.kind.as_str()),
            signal.reason.as_deref().into(),
            signal.about.as_deref().into(),
            Value::Integer(signal.timestamp.as_micros()),
            position(entry),
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

/// The signals of a workspace behind a number, a page of them.
pub(crate) fn signals_after(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    number: i64,
    most: u32,
) -> Result<Vec<StoredSignal>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT number, entry, id, type, reason, about, time, parent FROM progress_signals \
             WHERE workspace = ?1 AND number > ?2 ORDER BY number LIMIT {most}"
        ),
        &[Value::Text(id.as_str()), Value::Integer(number)],
        |row| {
            Ok(StoredSignal {
                number: row.integer(0)?,
                entry: row.integer(1)?,
                id: row.text(2)?.to_owned(),
                kind: parsed(row.text(3)?, 3)?,
                reason: row.optional_text(4)?.map(str::to_owned),
                about: row.optional_text(5)?.map(str::to_owned),
                time: row.integer(6)?,
                parent: row.optional_text(7)?.map(str::to_owned),
            })
        },
    )
}

/// What a workspace was told behind a number, a page of it.
pub(crate) fn deliveries_after(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    number: i64,
    most: u32,
) -> Result<Vec<StoredDelivery>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT d.number, d.entry, d.signal, d.time, s.workspace FROM progress_deliveries d \
             LEFT JOIN progress_signals s ON s.id = d.signal \
             WHERE d.workspace = ?1 AND d.number > ?2 ORDER BY d.number LIMIT {most}"
        ),
        &[Value::Text(id.as_str()), Value::Integer(number)],
        |row| {
            Ok(StoredDelivery {
                number: row.integer(0)?,
                entry: row.integer(1)?,
                signal: row.text(2)?.to_owned(),
                time: row.integer(3)?,
                from: row.optional_text(4)?.map(str::to_owned),
            })
        },
    )
}

/// What a workspace emitted, what it was told by its children, and what it is still to be told.
pub(crate) fn signals_of(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<Signal>, StoreError> {
    let statement = format!(
        "{SIGNAL} WHERE s.workspace = ?1 \
            OR s.id IN (SELECT signal FROM progress_deliveries WHERE workspace = ?1) \
            OR s.id IN (SELECT signal FROM progress_waiting WHERE parent = ?1) \
         ORDER BY s.time, s.id"
    );
    query_all(sql, &statement, &[Value::Text(id.as_str())], read_signal)
}

/// Puts a signal into the line before its parent.
pub(crate) fn put_in_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    signal: &SignalId,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_waiting (parent, signal) VALUES (?1, ?2)",
        &[Value::Text(parent.as_str()), Value::Text(signal.as_str())],
    )
    .map(drop)
}

/// The next parent, in the order of their ids, that something waits for.
pub(crate) fn waited_for(
    sql: &mut dyn Sql,
    after: &str,
) -> Result<Option<WorkspaceId>, StoreError> {
    query_one(
        sql,
        "SELECT parent FROM progress_waiting WHERE parent > ?1 ORDER BY parent LIMIT 1",
        &[Value::Text(after)],
        |row| parsed(row.text(0)?, 0),
    )
}

/// Whether anything waits for a parent.
pub(crate) fn is_waited_for(sql: &mut dyn Sql, parent: &WorkspaceId) -> Result<bool, StoreError> {
    let found = query_one(
        sql,
        "SELECT signal FROM progress_waiting WHERE parent = ?1 LIMIT 1",
        &[Value::Text(parent.as_str())],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// What waits for a parent, in the order in which it was emitted: ids rise with time.
pub(crate) fn in_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    most: u32,
) -> Result<Vec<Signal>, StoreError> {
    let ids = query_all(
        sql,
        &format!(
            "SELECT signal FROM progress_waiting WHERE parent = ?1 ORDER BY signal LIMIT {most}"
        ),
        &[Value::Text(parent.as_str())],
        |row| Ok(row.text(0)?.to_owned()),
    )?;
    let statement = format!("{SIGNAL} WHERE s.id = ?1");
    let mut signals = Vec::with_capacity(ids.len());
    for id in ids {
        let found = query_one(sql, &statement, &[Value::Text(&id)], read_signal)?;
        signals.extend(found);
    }
    Ok(signals)
}

/// Takes a signal out of the line.
pub(crate) fn leave_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    signal: &SignalId,
) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM progress_waiting WHERE parent = ?1 AND signal = ?2",
        &[Value::Text(parent.as_str()), Value::Text(signal.as_str())],
    )
    .map(drop)
}

/// Takes the whole line before a parent away.
pub(crate) fn no_line(sql: &mut dyn Sql, parent: &WorkspaceId) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM progress_waiting WHERE parent = ?1",
        &[Value::Text(parent.as_str())],
    )
    .map(drop)
}

/// Signals of a workspace that its parent was never told, and that stand in no line, with that
/// parent.
pub(crate) fn forgotten(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Vec<(WorkspaceId, SignalId)>, StoreError> {
    query_all(
        sql,
        "SELECT s.parent, s.id FROM progress_signals s WHERE s.workspace = ?1 AND s.parent IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM progress_deliveries d WHERE d.signal = s.id) \
         AND NOT EXISTS (SELECT 1 FROM progress_waiting w WHERE w.parent = s.parent AND w.signal = s.id) \
         ORDER BY s.number",
        &[Value::Text(id.as_str())],
        |row| Ok((parsed(row.text(0)?, 0)?, parsed(row.text(1)?, 1)?)),
    )
}

/// What was delivered after a moment, to one workspace or to any, in the order of arrival.
pub(crate) fn delivered_after(
    sql: &mut dyn Sql,
    after: i64,
    to: Option<&WorkspaceId>,
    limit: i64,
) -> Result<Vec<Signal>, StoreError> {
    let statement = format!(
        "{SIGNAL} WHERE d.time > ?1 AND (?2 = '' OR s.parent = ?2) ORDER BY d.time, s.id LIMIT ?3"
    );
    let to = to.map_or("", WorkspaceId::as_str);
    let values = [
        Value::Integer(after),
        Value::Text(to),
        Value::Integer(limit),
    ];
    query_all(sql, &statement, &values, read_signal)
}

/// How much there is to compare of a workspace, about. No number is too large for it: rows may
/// be what somebody else wrote.
pub(crate) fn weight(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<i64, StoreError> {
    let weight = query_one(
        sql,
        "SELECT (SELECT coalesce(max(number), 0) FROM progress_signals WHERE workspace = ?1), \
                (SELECT coalesce(max(number), 0) FROM progress_deliveries WHERE workspace = ?1), \
                (SELECT coalesce(max(number), 0) FROM progress_records WHERE workspace = ?1), \
                (SELECT coalesce(max(number), 0) FROM progress_meters WHERE workspace = ?1)",
        &[Value::Text(id.as_str())],
        |row| {
            (0..4).try_fold(0_i64, |sum, column| {
                Ok(sum.saturating_add(row.integer(column)?))
            })
        },
    )?;
    Ok(weight.unwrap_or(0))
}

pub(crate) fn insert_delivery(
    sql: &mut dyn Sql,
    id: &SignalId,
    parent: &WorkspaceId,
    time: Timestamp,
    entry: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_deliveries (signal, workspace, number, time, entry) \
         VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM progress_deliveries WHERE workspace = ?2), ?3, ?4)",
        &[
            Value::Text(id.as_str()),
            Value::Text(parent.as_str()),
            Value::Integer(time.as_micros()),
            position(entry),
        ],
    )
    .map(drop)
}
