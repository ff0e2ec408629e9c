//! The tables: rows in and out. No rule is decided here.

use safepoint_model::{Digest, RecordId, SignalId, Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use crate::ProgressError;
use crate::role::Name;
use crate::signal::Signal;
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
    pub(crate) created: Timestamp,
}

/// A record as its row has it.
#[derive(Clone, Debug)]
pub(crate) struct StoredRecord {
    pub(crate) id: String,
    pub(crate) number: i64,
    pub(crate) parent: Option<String>,
    pub(crate) status: String,
    pub(crate) time: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) proof: Vec<u8>,
}

/// Reads a column that holds one of our own words or ids.
pub(crate) fn parsed<T: std::str::FromStr>(text: &str, column: usize) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Column {
        column,
        expected: "a word or an id of ours",
    })
}

fn optional<T: std::str::FromStr>(row: &dyn Row, column: usize) -> Result<Option<T>, StoreError> {
    row.optional_text(column)?
        .map(|text| parsed(text, column))
        .transpose()
}

const MADE: &str = "SELECT id, run, parent, role, directive, created FROM progress_workspaces";

fn read_made(row: &dyn Row) -> Result<Made, StoreError> {
    Ok(Made {
        id: parsed(row.text(0)?, 0)?,
        run: parsed(row.text(1)?, 1)?,
        parent: optional(row, 2)?,
        role: parsed(row.text(3)?, 3)?,
        directive: row.optional_text(4)?.map(str::to_owned),
        created: Timestamp::from_micros(row.integer(5)?),
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

pub(crate) fn all_made(sql: &mut dyn Sql) -> Result<Vec<Made>, StoreError> {
    query_all(sql, &format!("{MADE} ORDER BY created, id"), &[], read_made)
}

pub(crate) fn children(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<Made>, StoreError> {
    let statement = format!("{MADE} WHERE parent = ?1 ORDER BY created, id");
    query_all(sql, &statement, &[Value::Text(id.as_str())], read_made)
}

pub(crate) fn insert_made(
    sql: &mut dyn Sql,
    made: &Made,
    originator: &str,
    taxonomy: Option<&str>,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_workspaces (id, run, parent, role, originator, directive, taxonomy, created) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        &[
            Value::Text(made.id.as_str()),
            Value::Text(made.run.as_str()),
            made.parent.as_ref().map(WorkspaceId::as_str).into(),
            Value::Text(made.role.as_str()),
            Value::Text(originator),
            made.directive.as_deref().into(),
            taxonomy.into(),
            Value::Integer(made.created.as_micros()),
        ],
    )
    .map(drop)
}

/// The taxonomy of a run, which its root holds.
pub(crate) fn taxonomy(sql: &mut dyn Sql, run: &WorkspaceId) -> Result<Taxonomy, ProgressError> {
    let text = query_one(
        sql,
        "SELECT taxonomy FROM progress_workspaces WHERE id = ?1",
        &[Value::Text(run.as_str())],
        |row| Ok(row.optional_text(0)?.map(str::to_owned)),
    )?;
    let tampered = || ProgressError::Tampered {
        what: "taxonomy of",
        id: run.to_string(),
    };
    match text.flatten() {
        None => Err(tampered()),
        Some(text) if text.is_empty() => Ok(Taxonomy::empty()),
        Some(text) => Taxonomy::read(&text).map_err(|_| tampered()),
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
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_moves (workspace, number, state, former, reason, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        &[
            Value::Text(id.as_str()),
            Value::Integer(number),
            Value::Text(standing.state.as_str()),
            standing.former.map(State::as_str).into(),
            reason.into(),
            Value::Integer(time.as_micros()),
        ],
    )
    .map(drop)
}

/// The digest of the token that counts; `None` while nobody gets in.
pub(crate) fn binding(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Option<Digest>, StoreError> {
    let found = query_one(
        sql,
        "SELECT digest FROM progress_bindings WHERE workspace = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| {
            Ok(row
                .bytes(0)?
                .and_then(|bytes| Digest::from_slice(bytes).ok()))
        },
    )?;
    Ok(found.flatten())
}

pub(crate) fn bind(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    digest: Option<&Digest>,
    time: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_bindings (workspace, number, digest, time) \
         VALUES (?1, (SELECT count(*) + 1 FROM progress_bindings WHERE workspace = ?1), ?2, ?3)",
        &[
            Value::Text(id.as_str()),
            digest.map(|digest| digest.as_bytes().as_slice()).into(),
            Value::Integer(time.as_micros()),
        ],
    )
    .map(drop)
}

const RECORD: &str = "SELECT id, number, parent, status, time, body, proof FROM progress_records WHERE workspace = ?1";

fn read_record(row: &dyn Row) -> Result<StoredRecord, StoreError> {
    Ok(StoredRecord {
        id: row.text(0)?.to_owned(),
        number: row.integer(1)?,
        parent: row.optional_text(2)?.map(str::to_owned),
        status: row.text(3)?.to_owned(),
        time: row.integer(4)?,
        body: row.blob(5)?.to_vec(),
        proof: row.blob(6)?.to_vec(),
    })
}

pub(crate) fn head(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement = format!("{RECORD} ORDER BY number DESC LIMIT 1");
    query_one(sql, &statement, &[Value::Text(id.as_str())], read_record)
}

pub(crate) fn newest_final(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement = format!("{RECORD} AND status = 'final' ORDER BY number DESC LIMIT 1");
    query_one(sql, &statement, &[Value::Text(id.as_str())], read_record)
}

pub(crate) fn chain(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<StoredRecord>, StoreError> {
    query_all(
        sql,
        &format!("{RECORD} ORDER BY number"),
        &[Value::Text(id.as_str())],
        read_record,
    )
}

/// The record that was made under a request key, and the digest of what was asked for.
pub(crate) fn keyed(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    key: &str,
) -> Result<Option<(StoredRecord, Vec<u8>)>, StoreError> {
    query_one(
        sql,
        "SELECT id, number, parent, status, time, body, proof, request_digest FROM progress_records WHERE workspace = ?1 AND request_key = ?2",
        &[Value::Text(id.as_str()), Value::Text(key)],
        |row| Ok((read_record(row)?, row.blob(7)?.to_vec())),
    )
}

/// What to find a record by, for one who asks again.
pub(crate) struct RequestKey<'a> {
    pub(crate) key: &'a str,
    pub(crate) digest: Digest,
}

pub(crate) fn insert_record(
    sql: &mut dyn Sql,
    record: &crate::record::Record,
    number: i64,
    body: &[u8],
    proof: &Digest,
    key: Option<&RequestKey<'_>>,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_records (id, workspace, number, parent, status, confidence, time, body, proof, request_key, request_digest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &[
            Value::Text(record.id.as_str()),
            Value::Text(record.workspace.as_str()),
            Value::Integer(number),
            record.parent.as_ref().map(RecordId::as_str).into(),
            Value::Text(record.status.as_str()),
            Value::Text(record.confidence.as_str()),
            Value::Integer(record.timestamp.as_micros()),
            Value::Blob(body),
            Value::Blob(proof.as_bytes()),
            key.map(|key| key.key).into(),
            key.map(|key| key.digest.as_bytes().as_slice()).into(),
        ],
    )
    .map(drop)
}

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
