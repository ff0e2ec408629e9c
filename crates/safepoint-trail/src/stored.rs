//! The row of the database that holds the head. What is in it is believed by nobody
//! before its signature was checked.

use safepoint_model::Digest;
use safepoint_store::{Sql, StoreError, Value, query_one};

use crate::head::SignedHead;
use crate::tree::Frontier;

/// The row that holds the head.
pub(crate) struct StoredHead {
    pub(crate) size: u64,
    pub(crate) peaks: Vec<Digest>,
    pub(crate) note: String,
}

impl StoredHead {
    pub(crate) fn read(sql: &mut dyn Sql) -> Result<Option<Self>, StoreError> {
        query_one(
            sql,
            "SELECT size, peaks, note FROM trail_head WHERE only_row = 1",
            &[],
            |row| {
                let (hashes, _) = row.blob(1)?.as_chunks::<32>();
                Ok(Self {
                    size: u64::try_from(row.integer(0)?).unwrap_or(0),
                    peaks: hashes
                        .iter()
                        .map(|hash| Digest::from_bytes(*hash))
                        .collect(),
                    note: row.text(2)?.to_owned(),
                })
            },
        )
    }
}

pub(crate) fn write_head(
    sql: &mut dyn Sql,
    head: &SignedHead,
    frontier: &Frontier,
) -> Result<(), StoreError> {
    let peaks: Vec<u8> = frontier
        .peaks()
        .iter()
        .flat_map(|peak| *peak.as_bytes())
        .collect();
    sql.execute(
        "INSERT INTO trail_head (only_row, size, peaks, note) VALUES (1, ?1, ?2, ?3) \
         ON CONFLICT (only_row) DO UPDATE SET size = excluded.size, peaks = excluded.peaks, note = excluded.note",
        &[
            Value::Integer(i64::try_from(head.size()).unwrap_or(i64::MAX)),
            Value::Blob(&peaks),
            Value::Text(head.note()),
        ],
    )
    .map(drop)
}
