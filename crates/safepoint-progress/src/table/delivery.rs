//! Which signals were delivered, and which wait. A signal is named by the entry that tells of
//! its emission: what it says is in the trail, and nowhere else.

use std::collections::BTreeSet;

use safepoint_model::WorkspaceId;
use safepoint_store::{Flow, Row, Sql, StoreError, Value, query_all, query_one};

use super::{optional, position};
use crate::state::State;

/// The row of a delivery, and the entry that it says tells of it.
#[derive(Clone, Debug)]
pub(crate) struct StoredDelivery {
    pub(crate) delivery: u64,
    /// The stream, the kind and the body of that entry, if there is one.
    pub(crate) told: Option<(String, String, String)>,
    /// The body of what is delivered right behind the emission, where nothing needs a row.
    pub(crate) right_behind: Option<String>,
}

/// Notes that a parent was told, where that does not stand right behind the emission. The database
/// refuses a second row.
pub(crate) fn insert_delivery(
    sql: &mut dyn Sql,
    emission: u64,
    delivery: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_deliveries (emission, delivery) VALUES (?1, ?2)",
        &[position(emission), position(delivery)],
    )
    .map(drop)
}

/// The entry that tells of the delivery of a signal, if a row names one.
pub(crate) fn delivery_of(sql: &mut dyn Sql, emission: u64) -> Result<Option<i64>, StoreError> {
    query_one(
        sql,
        "SELECT delivery FROM progress_deliveries WHERE emission = ?1",
        &[position(emission)],
        |row| row.integer(0),
    )
}

/// The row of a delivery, if there is one.
pub(crate) fn delivery_row(
    sql: &mut dyn Sql,
    emission: u64,
) -> Result<Option<StoredDelivery>, StoreError> {
    query_one(
        sql,
        "SELECT d.delivery, t.stream, t.kind, t.body, n.body FROM progress_deliveries d \
         LEFT JOIN trail_entries t ON t.seq = d.delivery \
         LEFT JOIN trail_entries n ON n.seq = d.emission + 1 AND n.kind = 'signal_delivered' \
         WHERE d.emission = ?1",
        &[position(emission)],
        |row| {
            let text = |column| Ok::<_, StoreError>(row.optional_text(column)?.map(str::to_owned));
            Ok(StoredDelivery {
                delivery: place(row, 0)?,
                told: match (text(1)?, text(2)?, text(3)?) {
                    (Some(stream), Some(kind), Some(body)) => Some((stream, kind, body)),
                    _ => None,
                },
                right_behind: text(4)?,
            })
        },
    )
}

/// What rows name as emissions and is none.
#[derive(Default)]
pub(crate) struct NotEmitted {
    /// The workspaces whose streams have the entries.
    pub(crate) workspaces: BTreeSet<WorkspaceId>,
    /// Whether there are any that no workspace has, or that are no entries at all.
    pub(crate) is_stray: bool,
}

impl NotEmitted {
    pub(crate) fn read(sql: &mut dyn Sql) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let statement = "SELECT DISTINCT e.stream FROM progress_deliveries d \
             LEFT JOIN trail_entries e ON e.seq = d.emission \
             WHERE e.seq IS NULL OR e.kind <> 'signal_emitted'";
        sql.query(statement, &[], &mut |row| {
            match row.optional_text(0)?.and_then(|text| text.parse().ok()) {
                Some(workspace) => drop(found.workspaces.insert(workspace)),
                None => found.is_stray = true,
            }
            Ok(Flow::More)
        })?;
        Ok(found)
    }
}

/// Puts a signal into the line before its parent, unless it stands there.
pub(crate) fn put_in_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    emission: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_waiting (parent, emission) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        &[Value::Text(parent.as_str()), position(emission)],
    )
    .map(drop)
}

/// The next parent, in the order of their ids, that something waits for.
pub(crate) fn waited_for(sql: &mut dyn Sql, after: &str) -> Result<Option<String>, StoreError> {
    query_one(
        sql,
        "SELECT parent FROM progress_waiting WHERE parent > ?1 ORDER BY parent LIMIT 1",
        &[Value::Text(after)],
        |row| Ok(row.text(0)?.to_owned()),
    )
}

/// Where a parent stands, and whether anything waits for it.
pub(crate) fn standing_in_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
) -> Result<(State, bool), StoreError> {
    let found = query_one(
        sql,
        "SELECT (SELECT state FROM progress_moves WHERE workspace = ?1 ORDER BY number DESC LIMIT 1), \
                (SELECT count(*) FROM (SELECT 1 FROM progress_waiting WHERE parent = ?1 LIMIT 1) one)",
        &[Value::Text(parent.as_str())],
        |row| Ok((optional(row, 0)?, row.integer(1)? > 0)),
    )?;
    let (state, is_waited_for) = found.unwrap_or((None, false));
    Ok((state.unwrap_or(State::Idle), is_waited_for))
}

/// What waits for a parent, in the order in which it was emitted.
pub(crate) fn in_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    most: u32,
) -> Result<Vec<u64>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT emission FROM progress_waiting WHERE parent = ?1 ORDER BY emission LIMIT {most}"
        ),
        &[Value::Text(parent.as_str())],
        |row| place(row, 0),
    )
}

/// Takes a signal out of the line.
pub(crate) fn leave_line(
    sql: &mut dyn Sql,
    parent: &WorkspaceId,
    emission: u64,
) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM progress_waiting WHERE parent = ?1 AND emission = ?2",
        &[Value::Text(parent.as_str()), position(emission)],
    )
    .map(drop)
}

/// Takes the whole line before a parent away.
pub(crate) fn no_line(sql: &mut dyn Sql, parent: &str) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM progress_waiting WHERE parent = ?1",
        &[Value::Text(parent)],
    )
    .map(drop)
}

/// What a workspace emitted, what no row says its parent was told, and what stands in no line;
/// and the body of the entry right behind it, if that tells the parent of something.
pub(crate) fn without_row(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    parent: &WorkspaceId,
) -> Result<Vec<(u64, Option<String>)>, StoreError> {
    query_all(
        sql,
        "SELECT e.seq, n.body FROM trail_entries e \
         LEFT JOIN trail_entries n ON n.seq = e.seq + 1 AND n.kind = 'signal_delivered' AND n.stream = ?2 \
         WHERE e.stream = ?1 AND e.kind = 'signal_emitted' \
         AND NOT EXISTS (SELECT 1 FROM progress_deliveries d WHERE d.emission = e.seq) \
         AND NOT EXISTS (SELECT 1 FROM progress_waiting w WHERE w.parent = ?2 AND w.emission = e.seq) \
         ORDER BY e.seq",
        &[Value::Text(id.as_str()), Value::Text(parent.as_str())],
        |row| Ok((place(row, 0)?, row.optional_text(1)?.map(str::to_owned))),
    )
}

/// The stream of the emission at a place in the trail, if there is one.
pub(crate) fn emitted_in(sql: &mut dyn Sql, emission: u64) -> Result<Option<String>, StoreError> {
    query_one(
        sql,
        "SELECT stream FROM trail_entries WHERE seq = ?1 AND kind = 'signal_emitted'",
        &[position(emission)],
        |row| Ok(row.text(0)?.to_owned()),
    )
}

/// How much there is to compare of a workspace, about: each of its records has two entries, and
/// each of its children's one.
pub(crate) fn weight(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<i64, StoreError> {
    let weight = query_one(
        sql,
        "SELECT (SELECT count(*) FROM progress_records WHERE workspace = ?1), \
                (SELECT count(*) FROM progress_workspaces w JOIN progress_records r ON r.workspace = w.id WHERE w.parent = ?1)",
        &[Value::Text(id.as_str())],
        |row| {
            Ok(row
                .integer(0)?
                .saturating_mul(2)
                .saturating_add(row.integer(1)?))
        },
    )?;
    Ok(weight.unwrap_or(0))
}

/// A place in the trail. Nothing is at a negative one.
fn place(row: &dyn Row, column: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.integer(column)?).unwrap_or(u64::MAX))
}
