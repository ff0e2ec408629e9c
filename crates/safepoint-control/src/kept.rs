//! Things that are decided about, kept as documents: holds, permits, trust, operators.
//!
//! Each change of one writes its digest to the trail, in the same transaction. A
//! row that is not what the trail says was changed behind our back, and is not
//! used.

use safepoint_model::{ActionId, Digest, Frame, Timestamp};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing, newest_of};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::ControlError;

/// Something that is kept as a document.
pub(crate) trait Kept: Serialize + DeserializeOwned {
    /// What it is, in the table.
    const KIND: &'static str;
    /// What it is, for people.
    const WHAT: &'static str;

    /// Its name among its kind.
    fn id(&self) -> String;
    /// What orders it among its kind.
    fn time(&self) -> Timestamp;
    /// Whether somebody still has to do with it.
    fn is_open(&self) -> bool;
    /// What it is found by, besides its name.
    fn topic(&self) -> Option<String> {
        None
    }
    /// The action it belongs to.
    fn action(&self) -> Option<&ActionId> {
        None
    }
}

/// The kind of the entry that says what a document is from now on.
const STATE: &str = "DocumentState";

#[derive(Deserialize, Serialize)]
struct StateEntry {
    kind: String,
    id: String,
    digest: Digest,
}

/// Keeps it as it is now.
pub(crate) fn put<T: Kept>(writing: &mut Writing<'_>, thing: &T) -> Result<(), ControlError> {
    let id = thing.id();
    let state = serde_json::to_string(thing).map_err(|error| unreadable::<T>(&id, error))?;
    // What opens a workspace is kept nowhere, whatever it stands in.
    let state = writing.without_tokens(state);
    let topic = thing.topic();
    writing.sql().execute(
        "INSERT INTO control_documents (kind, id, time, is_open, topic, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (kind, id) DO UPDATE SET time = excluded.time, is_open = excluded.is_open, topic = excluded.topic, state = excluded.state",
        &[
            Value::Text(T::KIND),
            Value::Text(&id),
            Value::Integer(thing.time().as_micros()),
            Value::Integer(i64::from(thing.is_open())),
            topic.as_deref().into(),
            Value::Text(&state),
        ],
    )?;
    let entry = StateEntry {
        kind: T::KIND.to_owned(),
        digest: digest::<T>(&id, &state),
        id: id.clone(),
    };
    writing.append(Draft {
        stream: stream::<T>(&id),
        actor: Actor::safepoint(),
        kind: Kind::fixed(STATE).into(),
        action_id: thing.action().cloned(),
        body: json!(entry),
    })?;
    Ok(())
}

/// The one of this name.
pub(crate) fn get<T: Kept>(sql: &mut dyn Sql, id: &str) -> Result<Option<T>, ControlError> {
    let found = query_one(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 AND id = ?2",
        &[Value::Text(T::KIND), Value::Text(id)],
        read,
    )?;
    match found {
        Some(row) => check(sql, row).map(Some),
        // One that is told of and is not there was taken away.
        None => match newest_of(sql, &stream::<T>(id), STATE)? {
            Some(_) => Err(ControlError::Tampered {
                what: T::WHAT,
                id: id.to_owned(),
            }),
            None => Ok(None),
        },
    }
}

/// All that somebody still has to do with, the oldest first.
pub(crate) fn open<T: Kept>(sql: &mut dyn Sql) -> Result<Vec<T>, ControlError> {
    open_if(sql, |_| true)
}

/// Those of them that are wanted. Each that is given is checked, the others are not asked
/// about: with many open, that is nearly all there would be to do. Which are open at all is
/// a column that nothing vouches for, so nothing is found less surely by it.
pub(crate) fn open_if<T: Kept>(
    sql: &mut dyn Sql,
    wanted: impl Fn(&T) -> bool,
) -> Result<Vec<T>, ControlError> {
    let mut rows = query_all(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 AND is_open = 1 ORDER BY time, id",
        &[Value::Text(T::KIND)],
        read,
    )?;
    // What cannot be read is looked at: it is not what was written.
    rows.retain(|(_, state)| serde_json::from_str(state).map_or(true, |it| wanted(&it)));
    rows.into_iter().map(|row| check(sql, row)).collect()
}

/// The newest of them all, the newest first.
pub(crate) fn newest<T: Kept>(sql: &mut dyn Sql, most: u32) -> Result<Vec<T>, ControlError> {
    let rows = query_all(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 ORDER BY time DESC, id LIMIT ?2",
        &[Value::Text(T::KIND), Value::Integer(i64::from(most))],
        read,
    )?;
    rows.into_iter().map(|row| check(sql, row)).collect()
}

/// Those that come after `last` in the same order.
pub(crate) fn newest_after<T: Kept>(
    sql: &mut dyn Sql,
    last: &T,
    most: u32,
) -> Result<Vec<T>, ControlError> {
    let rows = query_all(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 AND (time < ?2 OR (time = ?2 AND id > ?3)) ORDER BY time DESC, id LIMIT ?4",
        &[
            Value::Text(T::KIND),
            Value::Integer(last.time().as_micros()),
            Value::Text(&last.id()),
            Value::Integer(i64::from(most)),
        ],
        read,
    )?;
    rows.into_iter().map(|row| check(sql, row)).collect()
}

/// How many there are.
pub(crate) fn count<T: Kept>(sql: &mut dyn Sql) -> Result<u64, ControlError> {
    let count = query_one(
        sql,
        "SELECT COUNT(*) FROM control_documents WHERE kind = ?1",
        &[Value::Text(T::KIND)],
        |row: &dyn Row| row.integer(0),
    )?;
    Ok(u64::try_from(count.unwrap_or(0)).unwrap_or(0))
}

/// Those about a topic, the newest first.
pub(crate) fn about<T: Kept>(sql: &mut dyn Sql, topic: &str) -> Result<Vec<T>, ControlError> {
    let rows = query_all(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 AND topic = ?2 ORDER BY time DESC, id LIMIT 50",
        &[Value::Text(T::KIND), Value::Text(topic)],
        read,
    )?;
    rows.into_iter().map(|row| check(sql, row)).collect()
}

/// The one whose name begins with `prefix`.
pub(crate) fn find<T: Kept>(sql: &mut dyn Sql, prefix: &str) -> Result<T, ControlError> {
    let end = format!("{prefix}\u{10ffff}");
    let mut rows = query_all(
        sql,
        "SELECT id, state FROM control_documents WHERE kind = ?1 AND id >= ?2 AND id < ?3 ORDER BY id LIMIT 20",
        &[Value::Text(T::KIND), Value::Text(prefix), Value::Text(&end)],
        read,
    )?;
    if let Some(place) = rows.iter().position(|(id, _)| id == prefix) {
        rows.swap(0, place);
        rows.truncate(1);
    }
    let count = rows.len();
    match rows.pop() {
        Some(row) if count == 1 && !prefix.is_empty() => check(sql, row),
        None => Err(ControlError::NotFound {
            what: T::WHAT,
            name: prefix.to_owned(),
        }),
        Some(_) => Err(ControlError::Ambiguous {
            what: T::WHAT,
            prefix: prefix.to_owned(),
            count,
        }),
    }
}

fn read(row: &dyn Row) -> Result<(String, String), StoreError> {
    Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned()))
}

fn check<T: Kept>(sql: &mut dyn Sql, (id, state): (String, String)) -> Result<T, ControlError> {
    let entry = newest_of(sql, &stream::<T>(&id), STATE)?;
    let told = entry.and_then(|entry| serde_json::from_str::<StateEntry>(&entry.body).ok());
    if told.is_none_or(|told| told.digest != digest::<T>(&id, &state)) {
        return Err(ControlError::Tampered { what: T::WHAT, id });
    }
    serde_json::from_str(&state).map_err(|error| unreadable::<T>(&id, error))
}

fn digest<T: Kept>(id: &str, state: &str) -> Digest {
    Frame::new("safepoint/document/v1")
        .field(T::KIND.as_bytes())
        .field(id.as_bytes())
        .field(state.as_bytes())
        .digest()
}

/// Names are hashed: some of them are paths, with anything in them.
fn stream<T: Kept>(id: &str) -> Stream {
    let name = Frame::new("safepoint/document-stream/v1")
        .field(T::KIND.as_bytes())
        .field(id.as_bytes())
        .digest()
        .to_string();
    let short: String = name.chars().take(20).collect();
    format!("{}:{short}", T::KIND)
        .parse()
        .unwrap_or_else(|_| Stream::store())
}

fn unreadable<T: Kept>(id: &str, error: serde_json::Error) -> ControlError {
    ControlError::Unreadable {
        what: T::WHAT,
        id: id.to_owned(),
        error,
    }
}
