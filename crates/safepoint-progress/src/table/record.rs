//! The chains of records.

use safepoint_model::{Digest, RecordId, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use crate::record::Record;

/// A record as its row has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredRecord {
    pub(crate) id: String,
    pub(crate) number: i64,
    pub(crate) parent: Option<String>,
    pub(crate) status: String,
    pub(crate) confidence: String,
    pub(crate) time: i64,
    pub(crate) entry: i64,
    pub(crate) body: Vec<u8>,
    pub(crate) proof: Vec<u8>,
    pub(crate) bytes: i64,
    pub(crate) request_key: Option<String>,
    pub(crate) request_digest: Option<Vec<u8>>,
}

const COLUMNS: &str = "id, number, parent, status, confidence, time, entry, body, proof, bytes, request_key, request_digest";

fn read_record(row: &dyn Row) -> Result<StoredRecord, StoreError> {
    Ok(StoredRecord {
        id: row.text(0)?.to_owned(),
        number: row.integer(1)?,
        parent: Some(row.text(2)?)
            .filter(|parent| !parent.is_empty())
            .map(str::to_owned),
        status: row.text(3)?.to_owned(),
        confidence: row.text(4)?.to_owned(),
        time: row.integer(5)?,
        entry: row.integer(6)?,
        body: row.blob(7)?.to_vec(),
        proof: row.blob(8)?.to_vec(),
        bytes: row.integer(9)?,
        request_key: row.optional_text(10)?.map(str::to_owned),
        request_digest: row.bytes(11)?.map(<[u8]>::to_vec),
    })
}

pub(crate) fn head(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement = format!(
        "SELECT {COLUMNS} FROM progress_records WHERE workspace = ?1 ORDER BY parent DESC LIMIT 1"
    );
    query_one(sql, &statement, &[Value::Text(id.as_str())], read_record)
}

pub(crate) fn newest_final(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement = format!(
        "SELECT {COLUMNS} FROM progress_records WHERE workspace = ?1 AND status = 'final' ORDER BY number DESC LIMIT 1"
    );
    query_one(sql, &statement, &[Value::Text(id.as_str())], read_record)
}

pub(crate) fn chain(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<Vec<StoredRecord>, StoreError> {
    query_all(
        sql,
        &format!("SELECT {COLUMNS} FROM progress_records WHERE workspace = ?1 ORDER BY parent"),
        &[Value::Text(id.as_str())],
        read_record,
    )
}

/// The records of a workspace behind the one with this parent, a page of them, in the order of
/// the chain.
pub(crate) fn records_after(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    parent: Option<&str>,
    most: u32,
) -> Result<Vec<StoredRecord>, StoreError> {
    let behind = match parent {
        Some(_) => "parent > ?2",
        None => "parent >= ?2",
    };
    let statement = format!(
        "SELECT {COLUMNS} FROM progress_records WHERE workspace = ?1 AND {behind} ORDER BY parent LIMIT {most}"
    );
    let values = [
        Value::Text(id.as_str()),
        Value::Text(parent.unwrap_or_default()),
    ];
    query_all(sql, &statement, &values, read_record)
}

/// The record of this id in a workspace.
pub(crate) fn record(
    sql: &mut dyn Sql,
    workspace: &WorkspaceId,
    id: &RecordId,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement =
        format!("SELECT {COLUMNS} FROM progress_records WHERE id = ?2 AND workspace = ?1");
    let values = [Value::Text(workspace.as_str()), Value::Text(id.as_str())];
    query_one(sql, &statement, &values, read_record)
}

/// The record that was made under a request key.
pub(crate) fn keyed(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
    key: &str,
) -> Result<Option<StoredRecord>, StoreError> {
    let statement =
        format!("SELECT {COLUMNS} FROM progress_records WHERE workspace = ?1 AND request_key = ?2");
    let values = [Value::Text(id.as_str()), Value::Text(key)];
    query_one(sql, &statement, &values, read_record)
}

/// What to find a record by, for one who asks again.
pub(crate) struct RequestKey {
    pub(crate) key: String,
    pub(crate) digest: Digest,
}

impl StoredRecord {
    /// The row of a new record.
    pub(crate) fn of(
        record: &Record,
        number: i64,
        body: Vec<u8>,
        proof: &Digest,
        bytes: u64,
        entry: u64,
        key: Option<&RequestKey>,
    ) -> Self {
        Self {
            id: record.id.to_string(),
            number,
            parent: record.parent.as_ref().map(RecordId::to_string),
            status: record.status.as_str().to_owned(),
            confidence: record.confidence.as_str().to_owned(),
            time: record.timestamp.as_micros(),
            entry: i64::try_from(entry).unwrap_or(i64::MAX),
            body,
            proof: proof.as_bytes().to_vec(),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            request_key: key.map(|key| key.key.clone()),
            request_digest: key.map(|key| key.digest.as_bytes().to_vec()),
        }
    }
}

pub(crate) fn insert_record(
    sql: &mut dyn Sql,
    workspace: &WorkspaceId,
    row: &StoredRecord,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO progress_records (id, workspace, number, parent, status, confidence, time, entry, body, proof, bytes, request_key, request_digest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &[
            Value::Text(&row.id),
            Value::Text(workspace.as_str()),
            Value::Integer(row.number),
            Value::Text(row.parent.as_deref().unwrap_or_default()),
            Value::Text(&row.status),
            Value::Text(&row.confidence),
            Value::Integer(row.time),
            Value::Integer(row.entry),
            Value::Blob(&row.body),
            Value::Blob(&row.proof),
            Value::Integer(row.bytes),
            row.request_key.as_deref().into(),
            row.request_digest.as_deref().into(),
        ],
    )
    .map(drop)
}
