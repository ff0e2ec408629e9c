//! Entries as their rows have them, for whoever has a transaction open.

use safepoint_model::{Digest, Timestamp};
use safepoint_store::{Flow, Row, Sql, StoreError, Value, query_all, query_one};

use crate::{Entry, Stream};

pub(crate) const COLUMNS: &str =
    "e.seq, e.id, e.time, e.stream, e.actor, e.kind, e.action_id, e.body, e.prev_hash, e.hash";

/// The entry at a place in the trail, as the present transaction sees it.
pub fn entry_at(sql: &mut dyn Sql, seq: u64) -> Result<Option<Entry>, StoreError> {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let statement = format!("SELECT {COLUMNS} FROM trail_entries e WHERE e.seq = ?1");
    query_one(sql, &statement, &[Value::Integer(seq)], read_entry)
}

/// The entries of one stream from a place in the trail on, at most `most` of them, as the
/// present transaction sees them.
pub fn page_of(
    sql: &mut dyn Sql,
    stream: &Stream,
    from: u64,
    most: u32,
) -> Result<Vec<Entry>, StoreError> {
    query_all(
        sql,
        &format!(
            "SELECT {COLUMNS} FROM trail_entries e WHERE e.stream = ?1 AND e.seq >= ?2 ORDER BY e.seq LIMIT {most}"
        ),
        &[
            Value::Text(stream.as_str()),
            Value::Integer(i64::try_from(from).unwrap_or(i64::MAX)),
        ],
        read_entry,
    )
}

/// The entries of these kinds from a place in the trail on, at most `most` of them, and the
/// place behind the last one that was looked at: all as the present transaction sees it.
pub fn page_of_kinds(
    sql: &mut dyn Sql,
    kinds: &[&str],
    from: u64,
    most: usize,
) -> Result<(Vec<Entry>, u64), StoreError> {
    let places: Vec<String> = (2..kinds.len() + 2).map(|it| format!("?{it}")).collect();
    let mut values = vec![Value::Integer(i64::try_from(from).unwrap_or(i64::MAX))];
    values.extend(kinds.iter().map(|kind| Value::Text(kind)));
    let entries: Vec<Entry> = query_all(
        sql,
        &format!(
            "SELECT {COLUMNS} FROM trail_entries e WHERE e.seq >= ?1 AND e.kind IN ({}) ORDER BY e.seq LIMIT {most}",
            places.join(", ")
        ),
        &values,
        read_entry,
    )?;
    let full = entries.last().filter(|_| entries.len() == most);
    let end = match full {
        Some(last) => last.seq + 1,
        None => end(sql)?.max(from),
    };
    Ok((entries, end))
}

/// The place behind the newest entry, as the present transaction sees it.
pub fn end(sql: &mut dyn Sql) -> Result<u64, StoreError> {
    let newest = query_one(
        sql,
        "SELECT seq FROM trail_entries ORDER BY seq DESC LIMIT 1",
        &[],
        |row| row.integer(0),
    )?;
    Ok(newest.map_or(0, |seq| u64::try_from(seq).unwrap_or(0) + 1))
}

/// An entry in short, as its row has it: for whoever reads all of them.
#[derive(Clone, Copy, Debug)]
pub struct Brief<'a> {
    /// Its place in the trail.
    pub seq: u64,
    /// Its identifier.
    pub id: &'a str,
    /// The chain it belongs to.
    pub stream: &'a str,
    /// Who did it.
    pub actor: &'a str,
    /// What happened.
    pub kind: &'a str,
    /// The rest.
    pub body: &'a str,
}

/// Hands the entries `from..until` to `each`, in order, as the present transaction sees them.
///
/// `wanted` is asked for each by its stream and kind, and says whose it is; of others no more is
/// read.
pub fn each_brief(
    sql: &mut dyn Sql,
    from: u64,
    until: u64,
    wanted: &mut dyn FnMut(&str, &str) -> Option<usize>,
    each: &mut dyn FnMut(usize, Brief<'_>),
) -> Result<(), StoreError> {
    let bound = |seq| Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX));
    sql.query(
        "SELECT seq, id, stream, actor, kind, body FROM trail_entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
        &[bound(from), bound(until)],
        &mut |row| {
            let (stream, kind) = (row.text(2)?, row.text(4)?);
            if let Some(whose) = wanted(stream, kind) {
                let entry = Brief {
                    seq: u64::try_from(row.integer(0)?).unwrap_or(u64::MAX),
                    id: row.text(1)?,
                    stream,
                    actor: row.text(3)?,
                    kind,
                    body: row.text(5)?,
                };
                each(whose, entry);
            }
            Ok(Flow::More)
        },
    )
}

/// The time of the newest entry, as the present transaction sees it.
///
/// What is given a later time than this comes after everything that is recorded.
pub fn newest_time(sql: &mut dyn Sql) -> Result<Option<Timestamp>, StoreError> {
    query_one(
        sql,
        "SELECT time FROM trail_entries ORDER BY seq DESC LIMIT 1",
        &[],
        |row| row.integer(0).map(Timestamp::from_micros),
    )
}

/// The newest entry of one kind in one stream, as the present transaction sees it.
pub fn newest_of(
    sql: &mut dyn Sql,
    stream: &Stream,
    kind: &str,
) -> Result<Option<Entry>, StoreError> {
    query_one(
        sql,
        &format!(
            "SELECT {COLUMNS} FROM trail_entries e WHERE e.stream = ?1 AND e.kind = ?2 ORDER BY e.seq DESC LIMIT 1"
        ),
        &[Value::Text(stream.as_str()), Value::Text(kind)],
        read_entry,
    )
}

/// The newest entry of one stream, as the present transaction sees it.
pub(crate) fn last_of(sql: &mut dyn Sql, stream: &Stream) -> Result<Option<Entry>, StoreError> {
    query_one(
        sql,
        &format!(
            "SELECT {COLUMNS} FROM trail_entries e WHERE e.stream = ?1 ORDER BY e.seq DESC LIMIT 1"
        ),
        &[Value::Text(stream.as_str())],
        read_entry,
    )
}

pub(crate) fn read_entry(row: &dyn Row) -> Result<Entry, StoreError> {
    fn parsed<T: std::str::FromStr>(row: &dyn Row, column: usize) -> Result<T, StoreError> {
        row.text(column)?.parse().map_err(|_| damaged(row, column))
    }
    fn damaged(row: &dyn Row, column: usize) -> StoreError {
        let seq = row.integer(0).unwrap_or(-1);
        StoreError::corrupted(
            "the trail",
            format!("column {column} of entry {seq} cannot be read"),
        )
    }
    fn hash(row: &dyn Row, column: usize) -> Result<Option<Digest>, StoreError> {
        row.bytes(column)?
            .map(Digest::from_slice)
            .transpose()
            .map_err(|_| damaged(row, column))
    }
    Ok(Entry {
        seq: u64::try_from(row.integer(0)?).map_err(|_| damaged(row, 0))?,
        id: parsed(row, 1)?,
        time: Timestamp::from_micros(row.integer(2)?),
        stream: parsed(row, 3)?,
        actor: parsed(row, 4)?,
        kind: parsed(row, 5)?,
        action_id: match row.optional_text(6)? {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| damaged(row, 6))?),
        },
        body: row.text(7)?.to_owned(),
        prev_hash: hash(row, 8)?,
        hash: hash(row, 9)?.ok_or_else(|| damaged(row, 9))?,
    })
}
