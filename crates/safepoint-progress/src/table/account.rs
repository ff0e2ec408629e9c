//! The accounts: a row with all totals for everything that changes one, but for records whose own
//! row says all that they change.

use safepoint_model::{Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{METER, Made, NewRow, StoredRecord, parsed};
use crate::account::{Account, Marks};
use crate::meter::Meter;
use crate::state::State;

const ACCOUNT: &str = "SELECT number, coalesce(tokens, -1), coalesce(cost, -1), wall, bytes, counted, \
     coalesce(record_tokens, -1), coalesce(record_cost, -1), record_wall, warned, exceeded, time, coalesce(due, -1), entry \
     FROM progress_meters WHERE workspace = ?1 ORDER BY number DESC LIMIT 1";

/// The account of a workspace, up to the last thing that changed it.
pub(crate) fn account(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Account, StoreError> {
    let statement = "SELECT entry, time, bytes FROM progress_records \
         WHERE workspace = ?1 ORDER BY parent DESC LIMIT 1";
    let head = query_one(sql, statement, &[Value::Text(id.as_str())], |row| {
        Ok(LastRecord {
            entry: row.integer(0)?,
            time: row.integer(1)?,
            bytes: row.integer(2)?,
        })
    })?;
    account_with(sql, id, head)
}

/// What the newest record changed in the account of its workspace.
#[derive(Clone, Copy)]
pub(crate) struct LastRecord {
    entry: i64,
    time: i64,
    bytes: i64,
}

impl From<&StoredRecord> for LastRecord {
    fn from(row: &StoredRecord) -> Self {
        Self {
            entry: row.entry,
            time: row.time,
            bytes: row.bytes,
        }
    }
}

/// The same for one who knows the newest record.
pub(crate) fn account_with(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    head: Option<LastRecord>,
) -> Result<Account, StoreError> {
    let (mut account, entry) = last_row(sql, id)?;
    // Records are made while a workspace is active, and a move would have a row.
    if let Some(head) = head.filter(|head| head.entry > entry) {
        account = account.at(State::Active, Timestamp::from_micros(head.time));
        account.with_record(u64::try_from(head.bytes).unwrap_or(0));
    }
    Ok(account)
}

/// The account by its last row, and the entry that tells of that.
fn last_row(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<(Account, i64), StoreError> {
    let found = query_one(sql, ACCOUNT, &[Value::Text(id.as_str())], |row| {
        let account = Account {
            number: row.integer(0)?,
            taken: Meter {
                tokens: known(row, 1)?,
                cost_micros: known(row, 2)?,
                wall_micros: count(row, 3)?,
                record_bytes: count(row, 4)?,
            },
            counted: count(row, 5)?,
            at_record: Meter {
                tokens: known(row, 6)?,
                cost_micros: known(row, 7)?,
                wall_micros: count(row, 8)?,
                record_bytes: 0,
            },
            warned: Marks::from_bits(row.integer(9)?),
            exceeded: Marks::from_bits(row.integer(10)?),
            time: Timestamp::from_micros(row.integer(11)?),
            due: Some(row.integer(12)?)
                .filter(|due| *due >= 0)
                .map(Timestamp::from_micros),
        };
        Ok((account, row.integer(13)?))
    })?;
    Ok(found.unwrap_or((Account::NEW, -1)))
}

/// The next row, with the moment at which something is due if the workspace stays in `state`.
pub(crate) fn account_row<'a>(made: &'a Made, account: &Account, state: State) -> NewRow<'a> {
    let due = account.next_due(state, &made.budget, made.timeout);
    NewRow::new(
        &METER,
        vec![
            Value::Text(made.id.as_str()),
            Value::Integer(account.number + 1),
            account.taken.tokens.map(stored).into(),
            account.taken.cost_micros.map(stored).into(),
            Value::Integer(stored(account.taken.wall_micros)),
            Value::Integer(stored(account.taken.record_bytes)),
            Value::Integer(stored(account.counted)),
            account.at_record.tokens.map(stored).into(),
            account.at_record.cost_micros.map(stored).into(),
            Value::Integer(stored(account.at_record.wall_micros)),
            Value::Integer(account.warned.bits()),
            Value::Integer(account.exceeded.bits()),
            due.map(Timestamp::as_micros).into(),
            Value::Integer(account.time.as_micros()),
        ],
    )
}

/// A moment at which something was to be done.
pub(crate) struct Due {
    pub(crate) workspace: WorkspaceId,
    /// Whether nothing happened since: else it is of no interest any more.
    pub(crate) holds: bool,
}

/// What was due up to `now`, and was not dealt with before the last sweep.
pub(crate) fn due(sql: &mut dyn Sql, now: Timestamp) -> Result<Vec<Due>, StoreError> {
    query_all(
        sql,
        "SELECT m.workspace, m.number, (SELECT max(n.number) FROM progress_meters n WHERE n.workspace = m.workspace) \
         FROM progress_meters m \
         WHERE m.due <= ?1 AND m.due > coalesce((SELECT max(time) FROM progress_sweeps), -1) ORDER BY m.due, m.workspace",
        &[Value::Integer(now.as_micros())],
        |row| {
            Ok(Due {
                workspace: parsed(row.text(0)?, 0)?,
                holds: row.integer(1)? == row.integer(2)?,
            })
        },
    )
}

/// Whether a sweep says that what is still due in a workspace was dealt with.
pub(crate) fn is_swept_aside(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<bool, StoreError> {
    let found = query_one(
        sql,
        "SELECT coalesce(due, -1), coalesce((SELECT max(time) FROM progress_sweeps), -1) \
         FROM progress_meters WHERE workspace = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    Ok(found.is_some_and(|(due, swept)| due >= 0 && due <= swept))
}

/// Notes that everything due up to `time` is dealt with.
pub(crate) fn insert_sweep(sql: &mut dyn Sql, time: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_sweeps (time) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM progress_sweeps WHERE time >= ?1)",
        &[Value::Integer(time.as_micros())],
    )
    .map(drop)
}

/// Totals are bounded far below what fits.
fn stored(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

fn known(row: &dyn Row, column: usize) -> Result<Option<u64>, StoreError> {
    Ok(u64::try_from(row.integer(column)?).ok())
}

fn count(row: &dyn Row, column: usize) -> Result<u64, StoreError> {
    u64::try_from(row.integer(column)?).map_err(|_| StoreError::Column {
        column,
        expected: "a number from 0 on",
    })
}
