//! The tables of snapshots and actions.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use safepoint_model::{ActionId, Expiry, Timestamp};
use safepoint_store::{Component, Migration, Row, Sql, StoreError, Value, query_all, query_one};

use super::told::{self, Told};
use super::{Record, Snapshot, SnapshotId};
use crate::StateError;
use crate::error::MOST_ALIKE;

/// The tables of this crate.
pub const COMPONENT: Component = Component {
    name: "state",
    migrations: &[
        Migration {
            sqlite: include_str!("../../migrations/1.sqlite.sql"),
            postgres: include_str!("../../migrations/1.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../../migrations/2.sqlite.sql"),
            postgres: include_str!("../../migrations/2.postgres.sql"),
        },
    ],
};

/// An expiry that never comes.
const NEVER: i64 = i64::MAX;

const COLUMNS: &str = "id, workspace, created, expiry, pinned, record, spent_by";

/// Which snapshots to list.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only of this workspace.
    pub workspace: Option<PathBuf>,
    /// At most so many.
    pub limit: Option<u32>,
}

/// Something that happened, between the state before it and the state after it.
#[derive(Clone, Debug)]
pub struct Action {
    /// Its name.
    pub id: ActionId,
    /// Where it happened.
    pub workspace: PathBuf,
    /// When.
    pub time: Timestamp,
    /// In which session.
    pub session: Option<String>,
    /// What, in the words of policies.
    pub action: String,
    /// What, in a sentence.
    pub summary: String,
    /// What was decided about it.
    pub decision: Option<String>,
    /// How it ended.
    pub outcome: String,
    /// The state before it.
    pub before: SnapshotId,
    /// The state after it.
    pub after: SnapshotId,
    /// The action that it took back.
    pub undoes: Option<ActionId>,
}

impl Action {
    /// Whether it was done by nobody that we know: it was found between two checkpoints.
    pub fn is_observed(&self) -> bool {
        self.action == crate::record::OBSERVED
    }

    /// Whether it only put back what a going back that failed had begun.
    pub fn is_back_out(&self) -> bool {
        self.action == format!("checkpoint.{}", crate::restore::BACK_OUT)
    }
}

/// Those of a list of actions, the newest first, that are taken back: by one that is not itself
/// taken back.
pub fn taken_back(actions: &[Action]) -> HashMap<ActionId, ActionId> {
    let mut taken = HashMap::new();
    for action in actions {
        if let (Some(undone), false) = (&action.undoes, taken.contains_key(&action.id)) {
            taken.entry(undone.clone()).or_insert(action.id.clone());
        }
    }
    taken
}

/// Adds a row that the entry at this place in the trail tells of.
pub(crate) fn insert(
    sql: &mut dyn Sql,
    snapshot: &Snapshot,
    record: &str,
    entry: u64,
) -> Result<(), StateError> {
    let number = next(sql, "state_snapshots")?;
    sql.execute(
        "INSERT INTO state_snapshots (id, number, workspace, created, expiry, pinned, record, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        &[
            Value::Text(snapshot.id.as_str()),
            Value::Integer(number),
            Value::Blob(snapshot.workspace.as_os_str().as_bytes()),
            Value::Integer(snapshot.created.as_micros()),
            Value::Integer(match snapshot.expiry {
                Expiry::Never => NEVER,
                Expiry::At(time) => time.as_micros(),
            }),
            Value::Integer(i64::from(snapshot.pinned)),
            Value::Text(record),
            place(entry),
        ],
    )?;
    Ok(())
}

/// Adds a row that the entry at this place in the trail tells of.
pub(crate) fn insert_action(
    sql: &mut dyn Sql,
    action: &Action,
    entry: u64,
) -> Result<(), StateError> {
    let number = next(sql, "state_actions")?;
    sql.execute(
        "INSERT INTO state_actions (action_id, number, workspace, time, session_id, action, summary, decision, outcome, before_id, after_id, undoes, entry) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &[
            Value::Text(action.id.as_str()),
            Value::Integer(number),
            Value::Blob(action.workspace.as_os_str().as_bytes()),
            Value::Integer(action.time.as_micros()),
            action.session.as_deref().into(),
            Value::Text(&action.action),
            Value::Text(&action.summary),
            action.decision.as_deref().into(),
            Value::Text(&action.outcome),
            Value::Text(action.before.as_str()),
            Value::Text(action.after.as_str()),
            action.undoes.as_ref().map(ActionId::as_str).into(),
            place(entry),
        ],
    )?;
    Ok(())
}

fn place(entry: u64) -> Value<'static> {
    Value::Integer(i64::try_from(entry).unwrap_or(i64::MAX))
}

/// Writers are alone in the store, so the next number is nobody else's.
fn next(sql: &mut dyn Sql, table: &str) -> Result<i64, StoreError> {
    let last = query_one(
        sql,
        &format!("SELECT number FROM {table} ORDER BY number DESC LIMIT 1"),
        &[],
        |row| row.integer(0),
    )?;
    Ok(last.unwrap_or(0) + 1)
}

/// The one snapshot whose id begins with `prefix`.
pub(crate) fn find(sql: &mut dyn Sql, prefix: &str) -> Result<Told<Snapshot>, StateError> {
    let columns = format!("{COLUMNS}, entry");
    let found = by_prefix(
        sql,
        "state_snapshots",
        "id",
        &columns,
        prefix,
        read_told_snapshot,
    )?;
    one(found, "checkpoint", prefix)
}

/// The one action whose id begins with `prefix`.
pub(crate) fn find_action(sql: &mut dyn Sql, prefix: &str) -> Result<Told<Action>, StateError> {
    let columns = format!("{ACTION_COLUMNS}, entry");
    let found = by_prefix(
        sql,
        "state_actions",
        "action_id",
        &columns,
        prefix,
        read_told_action,
    )?;
    one(found, "action", prefix)
}

fn by_prefix<T>(
    sql: &mut dyn Sql,
    table: &str,
    column: &str,
    columns: &str,
    prefix: &str,
    mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    if prefix.is_empty()
        || !prefix
            .bytes()
            .all(|c| c.is_ascii_alphanumeric() || c == b'_')
    {
        return Ok(Vec::new());
    }
    let exactly = query_all(
        sql,
        &format!("SELECT {columns} FROM {table} WHERE {column} = ?1"),
        &[Value::Text(prefix)],
        &mut read,
    )?;
    if !exactly.is_empty() {
        return Ok(exactly); // whatever else begins so
    }
    let end = format!("{prefix}\u{7f}");
    query_all(
        sql,
        &format!(
            "SELECT {columns} FROM {table} WHERE {column} >= ?1 AND {column} < ?2 ORDER BY {column} LIMIT {}",
            MOST_ALIKE + 1
        ),
        &[Value::Text(prefix), Value::Text(&end)],
        read,
    )
}

fn one<T>(mut found: Vec<T>, what: &'static str, name: &str) -> Result<T, StateError> {
    match found.len() {
        0 => Err(StateError::NotFound {
            what,
            name: name.to_owned(),
        }),
        1 => found.pop().ok_or_else(|| StateError::NotFound {
            what,
            name: name.to_owned(),
        }),
        count => Err(StateError::Ambiguous {
            what,
            prefix: name.to_owned(),
            count,
        }),
    }
}

/// Rows of one path, told of between two places of the trail.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) since: u64,
    /// The first place that is not among them.
    pub(crate) until: u64,
}

/// The condition that rows are from one of these sources, behind a first parameter.
fn are_from(sources: &[Source]) -> (String, Vec<Value<'_>>) {
    let mut conditions = Vec::new();
    let mut values = Vec::new();
    for source in sources {
        let mut condition = format!("workspace = ?{}", values.len() + 2);
        values.push(Value::Blob(source.path.as_os_str().as_bytes()));
        for (limit, sign) in [(source.since, ">="), (source.until, "<")] {
            if limit != 0 && limit != u64::MAX {
                condition.push_str(&format!(" AND entry {sign} ?{}", values.len() + 2));
                values.push(place(limit));
            }
        }
        // Nothing is told of so late.
        match source.since == u64::MAX {
            true => conditions.push(format!("({condition} AND 1 = 0)")),
            false => conditions.push(format!("({condition})")),
        }
    }
    (conditions.join(" OR "), values)
}

/// The snapshots of these sources, or all, newest first, with the place of the entry that tells
/// of each.
pub(crate) fn list_placed(
    sql: &mut dyn Sql,
    sources: Option<&[Source]>,
    limit: Option<u32>,
) -> Result<Vec<(Snapshot, u64)>, StateError> {
    let (which, mut values) = match sources {
        Some(sources) => {
            let (condition, values) = are_from(sources);
            (format!("WHERE {condition} "), values)
        }
        None => (String::new(), Vec::new()),
    };
    values.insert(0, Value::Integer(limit.map_or(i64::MAX, i64::from)));
    Ok(query_all(
        sql,
        &format!(
            "SELECT {COLUMNS}, entry FROM state_snapshots {which}ORDER BY number DESC LIMIT ?1"
        ),
        &values,
        |row| Ok((read_snapshot(row)?, entry_of(row, 7)?)),
    )?)
}

/// The paths of which there are snapshots.
pub(crate) fn workspaces(sql: &mut dyn Sql) -> Result<Vec<PathBuf>, StateError> {
    let mut found: Vec<PathBuf> = Vec::new();
    loop {
        let next = match found.last() {
            None => query_one(
                sql,
                "SELECT workspace FROM state_snapshots ORDER BY workspace LIMIT 1",
                &[],
                |row| path(row, 0),
            )?,
            // From one to the next: there may be many rows of each.
            Some(last) => query_one(
                sql,
                "SELECT workspace FROM state_snapshots WHERE workspace > ?1 ORDER BY workspace LIMIT 1",
                &[Value::Blob(last.as_os_str().as_bytes())],
                |row| path(row, 0),
            )?,
        };
        match next {
            Some(next) => found.push(next),
            None => return Ok(found),
        }
    }
}

fn entry_of(row: &dyn Row, column: usize) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.integer(column)?).unwrap_or(u64::MAX))
}

pub(crate) fn set_pinned(
    sql: &mut dyn Sql,
    id: &SnapshotId,
    pinned: bool,
) -> Result<(), StateError> {
    sql.execute(
        "UPDATE state_snapshots SET pinned = ?2 WHERE id = ?1",
        &[Value::Text(id.as_str()), Value::Integer(i64::from(pinned))],
    )?;
    Ok(())
}

/// Says that the action has used up the snapshot. `false` when another one has.
pub(crate) fn spend(
    sql: &mut dyn Sql,
    id: &SnapshotId,
    action: &ActionId,
) -> Result<bool, StateError> {
    let changed = sql.execute(
        "UPDATE state_snapshots SET spent_by = ?2 WHERE id = ?1 AND spent_by IS NULL",
        &[Value::Text(id.as_str()), Value::Text(action.as_str())],
    )?;
    Ok(changed == 1)
}

/// Keeps a snapshot for as long as there is a store, inside the transaction of whoever needs it.
pub fn keep(sql: &mut dyn Sql, id: &SnapshotId) -> Result<(), StateError> {
    let changed = sql.execute(
        "UPDATE state_snapshots SET expiry = ?2 WHERE id = ?1",
        &[Value::Text(id.as_str()), Value::Integer(NEVER)],
    )?;
    match changed {
        1 => Ok(()),
        _ => Err(StateError::NotFound {
            what: "checkpoint",
            name: id.to_string(),
        }),
    }
}

pub(crate) fn delete(sql: &mut dyn Sql, id: &SnapshotId) -> Result<(), StateError> {
    sql.execute(
        "DELETE FROM state_snapshots WHERE id = ?1",
        &[Value::Text(id.as_str())],
    )?;
    Ok(())
}

/// Whether there is a row of a snapshot with exactly this id, whatever the trail tells of it.
pub fn is_listed(sql: &mut dyn Sql, id: &str) -> Result<bool, StateError> {
    let found = query_one(
        sql,
        "SELECT number FROM state_snapshots WHERE id = ?1",
        &[Value::Text(id)],
        |row| row.integer(0),
    )?;
    Ok(found.is_some())
}

const ACTION_COLUMNS: &str = "action_id, workspace, time, session_id, action, summary, decision, outcome, before_id, after_id, undoes";

/// The actions of these sources, or all, newest first, with the place of the entry that tells of
/// each.
pub(crate) fn actions_placed(
    sql: &mut dyn Sql,
    sources: Option<&[Source]>,
    limit: u32,
) -> Result<Vec<(Action, u64)>, StateError> {
    let (which, mut values) = match sources {
        Some(sources) => {
            let (condition, values) = are_from(sources);
            (format!("WHERE {condition} "), values)
        }
        None => (String::new(), Vec::new()),
    };
    values.insert(0, Value::Integer(i64::from(limit)));
    Ok(query_all(
        sql,
        &format!(
            "SELECT {ACTION_COLUMNS}, entry FROM state_actions {which}ORDER BY number DESC LIMIT ?1"
        ),
        &values,
        |row| Ok((read_action(row)?, entry_of(row, 11)?)),
    )?)
}

/// The actions of these sources that entries behind this place of the trail tell of, the oldest
/// first.
pub(crate) fn actions_after(
    sql: &mut dyn Sql,
    sources: &[Source],
    entry: u64,
) -> Result<Vec<Action>, StateError> {
    let (condition, mut values) = are_from(sources);
    values.insert(0, place(entry));
    Ok(query_all(
        sql,
        &format!(
            "SELECT {ACTION_COLUMNS} FROM state_actions WHERE entry > ?1 AND ({condition}) ORDER BY number"
        ),
        &values,
        read_action,
    )?)
}

/// The actions of these sources that were recorded after a moment.
pub(crate) fn actions_since(
    sql: &mut dyn Sql,
    sources: &[Source],
    since: Timestamp,
) -> Result<Vec<Action>, StateError> {
    let (condition, mut values) = are_from(sources);
    values.insert(0, Value::Integer(since.as_micros()));
    Ok(query_all(
        sql,
        &format!(
            "SELECT {ACTION_COLUMNS} FROM state_actions WHERE time > ?1 AND ({condition}) ORDER BY number"
        ),
        &values,
        read_action,
    )?)
}

/// Actions that may still be taken back: those since a moment, and of each workspace the newest
/// that somebody performed, whenever it was.
pub(crate) fn recent_actions(
    sql: &mut dyn Sql,
    since: Timestamp,
) -> Result<Vec<Action>, StateError> {
    Ok(query_all(
        sql,
        &format!(
            "SELECT {ACTION_COLUMNS} FROM state_actions WHERE time >= ?2 OR number IN (SELECT MAX(number) FROM state_actions WHERE action <> ?1 GROUP BY workspace) ORDER BY number DESC"
        ),
        &[
            Value::Text(crate::record::OBSERVED),
            Value::Integer(since.as_micros()),
        ],
        read_action,
    )?)
}

fn path(row: &dyn Row, column: usize) -> Result<PathBuf, StoreError> {
    let bytes = row.bytes(column)?.unwrap_or_default();
    Ok(PathBuf::from(OsStr::from_bytes(bytes)))
}

fn wrong(column: usize, expected: &'static str) -> StoreError {
    StoreError::Column { column, expected }
}

fn read_snapshot(row: &dyn Row) -> Result<Snapshot, StoreError> {
    let id = row.text(0)?;
    let record =
        Record::read(id, row.text(5)?).map_err(|_| wrong(5, "the record of a checkpoint"))?;
    Ok(Snapshot {
        id: id
            .parse()
            .map_err(|()| wrong(0, "the id of a checkpoint"))?,
        workspace: path(row, 1)?,
        created: Timestamp::from_micros(row.integer(2)?),
        expiry: match row.integer(3)? {
            NEVER => Expiry::Never,
            micros => Expiry::At(Timestamp::from_micros(micros)),
        },
        pinned: row.integer(4)? != 0,
        spent: row
            .optional_text(6)?
            .map(str::parse)
            .transpose()
            .map_err(|_| wrong(6, "the id of an action"))?,
        record,
    })
}

fn read_told_snapshot(row: &dyn Row) -> Result<Told<Snapshot>, StoreError> {
    let snapshot = read_snapshot(row)?;
    Ok(Told {
        digest: told::of_snapshot(&snapshot, row.text(5)?),
        row: snapshot,
        entry: row.integer(7)?,
    })
}

fn read_told_action(row: &dyn Row) -> Result<Told<Action>, StoreError> {
    let action = read_action(row)?;
    Ok(Told {
        digest: told::of_action(&action),
        row: action,
        entry: row.integer(11)?,
    })
}

fn read_action(row: &dyn Row) -> Result<Action, StoreError> {
    let text = |column: usize| row.text(column).map(str::to_owned);
    let maybe = |column: usize| -> Result<Option<String>, StoreError> {
        Ok(row.optional_text(column)?.map(str::to_owned))
    };
    let snapshot = |column: usize| -> Result<SnapshotId, StoreError> {
        row.text(column)?
            .parse()
            .map_err(|()| wrong(column, "the id of a checkpoint"))
    };
    let action = |column: usize| -> Result<Option<ActionId>, StoreError> {
        row.optional_text(column)?
            .map(str::parse)
            .transpose()
            .map_err(|_| wrong(column, "the id of an action"))
    };
    Ok(Action {
        id: action(0)?.ok_or_else(|| wrong(0, "the id of an action"))?,
        workspace: path(row, 1)?,
        time: Timestamp::from_micros(row.integer(2)?),
        session: maybe(3)?,
        action: text(4)?,
        summary: text(5)?,
        decision: maybe(6)?,
        outcome: text(7)?,
        before: snapshot(8)?,
        after: snapshot(9)?,
        undoes: action(10)?,
    })
}
