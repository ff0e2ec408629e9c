//! Looking things up: by stream, action, kind, actor, time and fields of the
//! body, one entry at a time, however long the trail is.

use std::borrow::Cow;

use safepoint_model::{Digest, EntryId, Timestamp};
use safepoint_store::{Flow, Row, Sql, StoreError, Value, query_all, query_one};

use crate::blocks::{BLOCK, Noting};
use crate::entry::blob_of;
use crate::{Entry, Stream, Trail, TrailError};

pub(crate) const COLUMNS: &str =
    "e.seq, e.id, e.time, e.stream, e.actor, e.kind, e.action_id, e.body, e.prev_hash, e.hash";

/// Which entries are wanted. Empty means all of them.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Only of one of these streams.
    pub streams: Vec<Stream>,
    /// Only of this action.
    pub action: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
    /// Only by this actor.
    pub actor: Option<String>,
    /// Not before this moment.
    pub since: Option<Timestamp>,
    /// Before this moment.
    pub until: Option<Timestamp>,
    /// Only with all these fields in the body.
    pub fields: Vec<FieldFilter>,
    /// Only from this place in the trail on: where the last page ended.
    pub from: u64,
}

/// In which direction to read.
#[derive(Clone, Copy)]
enum Order {
    OldestFirst,
    NewestFirst,
}

/// A field that the body must have.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter {
    /// The names on the way to it.
    pub path: Vec<String>,
    /// What it must be. A text also matches a number or boolean printed so.
    pub value: String,
}

impl FieldFilter {
    /// Reads `name.of.field=value`.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, value) = text.split_once('=')?;
        if path.is_empty() || path.split('.').any(str::is_empty) {
            return None;
        }
        Some(Self {
            path: path.split('.').map(str::to_owned).collect(),
            value: value.to_owned(),
        })
    }

    fn matches(&self, body: &serde_json::Value) -> bool {
        let found = self.path.iter().try_fold(body, |value, name| match value {
            serde_json::Value::Array(items) => items.get(name.parse::<usize>().ok()?),
            other => other.get(name),
        });
        match found {
            Some(serde_json::Value::String(text)) => *text == self.value,
            Some(other) => {
                let printed = other.to_string();
                printed == self.value
            }
            None => false,
        }
    }
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

impl Trail {
    /// Hands every entry that `query` fits to `each`, oldest first, until it has had enough.
    pub fn entries<E: From<TrailError>>(
        &self,
        query: &Query,
        each: impl FnMut(Entry) -> Result<Flow, E>,
    ) -> Result<(), E> {
        self.scan(query, Order::OldestFirst, each)
    }

    fn scan<E: From<TrailError>>(
        &self,
        query: &Query,
        order: Order,
        mut each: impl FnMut(Entry) -> Result<Flow, E>,
    ) -> Result<(), E> {
        let mut stopped = None;
        let read = self.store().read(|sql| {
            let mut range = Range::of(sql, query)?;
            loop {
                let (statement, values) = select(query, order, range);
                let (mut rows, mut last, mut flow) = (0, 0, Flow::More);
                sql.query(&statement, &borrow(&values), &mut |row| {
                    let entry = read_entry(row)?;
                    (rows, last) = (rows + 1, row.integer(0)?);
                    if query.fields.is_empty() || fields_match(query, &entry) {
                        flow = each(entry).unwrap_or_else(|error| {
                            stopped = Some(error);
                            Flow::Enough
                        });
                    }
                    Ok(flow)
                })?;
                if flow == Flow::Enough || rows < AT_ONCE {
                    return Ok(());
                }
                match order {
                    Order::OldestFirst => range.from = last + 1,
                    Order::NewestFirst => range.until = last,
                }
            }
        });
        read.map_err(|error: StoreError| TrailError::from(error))?;
        stopped.map_or(Ok(()), Err)
    }

    /// The place from which `query` fits exactly the newest `count` entries.
    pub fn newest(&self, query: &Query, count: usize) -> Result<u64, TrailError> {
        let mut place = self.stored_head()?.size;
        let mut left = count;
        self.scan(
            query,
            Order::NewestFirst,
            |entry| -> Result<Flow, TrailError> {
                if left == 0 {
                    return Ok(Flow::Enough);
                }
                left -= 1;
                place = entry.seq;
                Ok(Flow::More)
            },
        )?;
        Ok(place)
    }

    /// The action whose id begins with `prefix`.
    pub fn find_action(&self, prefix: &str) -> Result<String, TrailError> {
        let names = self.beginning_with(
            "SELECT DISTINCT name FROM trail_blocks WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT 3",
            &Noting::Action.name(prefix),
        )?;
        let ids = names
            .into_iter()
            .map(|name| name.replacen(&Noting::Action.name(""), "", 1))
            .collect();
        the_only(prefix, "action", ids)
    }

    /// The stream whose name begins with `prefix`.
    pub fn find_stream(&self, prefix: &str) -> Result<Stream, TrailError> {
        let names = self.beginning_with(
            "SELECT DISTINCT stream FROM trail_entries WHERE stream >= ?1 AND stream < ?2 ORDER BY stream LIMIT 3",
            prefix,
        )?;
        let name = the_only(prefix, "session or workspace", names)?;
        name.parse()
            .map_err(|_| TrailError::NotFound(format!("session or workspace `{prefix}`")))
    }

    fn beginning_with(&self, statement: &str, prefix: &str) -> Result<Vec<String>, TrailError> {
        // Ids are ASCII, so nothing that begins with it comes behind this.
        let end = format!("{prefix}\u{7f}");
        let bounds = [Value::Text(prefix), Value::Text(&end)];
        let read = |row: &dyn Row| Ok(row.text(0)?.to_owned());
        let found = self
            .store()
            .read(|sql| query_all(sql, statement, &bounds, read))?;
        Ok(found)
    }

    /// The entry that `reference` means: an id, the beginning of one, or a place in the trail.
    pub fn find(&self, reference: &str) -> Result<Entry, TrailError> {
        if let Ok(seq) = reference.parse::<u64>() {
            return self
                .store()
                .read(|sql| entry_at(sql, seq))?
                .ok_or_else(|| TrailError::NotFound(format!("entry at place {seq}")));
        }
        let unknown = || TrailError::NotFound(format!("entry `{reference}`"));
        let (low, high) = EntryId::time_range(reference).ok_or_else(unknown)?;
        let mut found = Vec::new();
        let query = Query {
            since: Some(low),
            until: Some(high.next()),
            ..Query::default()
        };
        self.entries(&query, |entry| -> Result<Flow, TrailError> {
            if entry.id.as_str().starts_with(reference) {
                found.push(entry);
            }
            Ok(if found.len() < 3 {
                Flow::More
            } else {
                Flow::Enough
            })
        })?;
        if found.len() > 1 {
            return Err(TrailError::Ambiguous {
                what: "entry".to_owned(),
                prefix: reference.to_owned(),
                candidates: found
                    .into_iter()
                    .map(|entry| entry.id.to_string())
                    .collect(),
            });
        }
        found.pop().ok_or_else(unknown)
    }

    /// The whole body of an entry, wherever it is kept.
    pub fn body(&self, entry: &Entry) -> Result<String, TrailError> {
        Ok(self.whole_body(&entry.body)?.into_owned())
    }

    /// The same, of what stands in the row of an entry.
    pub fn whole_body<'a>(&self, body: &'a str) -> Result<Cow<'a, str>, TrailError> {
        let Some(digest) = blob_of(body.as_bytes()) else {
            return Ok(Cow::Borrowed(body));
        };
        let bytes = self
            .blobs()
            .get(&digest)?
            .ok_or_else(|| StoreError::corrupted(digest.to_string(), "its blob is missing"))?;
        Ok(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// The one of these that a prefix means: itself, or the only one that begins so.
fn the_only(prefix: &str, what: &str, mut found: Vec<String>) -> Result<String, TrailError> {
    if let Some(exact) = found.iter().position(|id| id == prefix) {
        return Ok(found.swap_remove(exact));
    }
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(TrailError::NotFound(format!("{what} `{prefix}`"))),
        (Some(last), false) => {
            found.push(last);
            Err(TrailError::Ambiguous {
                what: what.to_owned(),
                prefix: prefix.to_owned(),
                candidates: found,
            })
        }
    }
}

/// A value that owns its text.
enum Owned {
    Integer(i64),
    Text(String),
}

fn borrow(values: &[Owned]) -> Vec<Value<'_>> {
    values
        .iter()
        .map(|value| match value {
            Owned::Integer(number) => Value::Integer(*number),
            Owned::Text(text) => Value::Text(text),
        })
        .collect()
}

/// How many rows are asked for at once: PostgreSQL sends all that a statement
/// finds, also when nobody wants the rest.
const AT_ONCE: i64 = 500;

/// A part of the trail, as places.
#[derive(Clone, Copy)]
struct Range {
    from: i64,
    until: i64,
}

impl Range {
    /// Where `query` looks. Times rise with the sequence, so a bound in time is a bound in place.
    fn of(sql: &mut dyn Sql, query: &Query) -> Result<Self, StoreError> {
        let from = i64::try_from(query.from).unwrap_or(i64::MAX);
        let since = query.since.map(|since| first_at(sql, since)).transpose()?;
        let until = query.until.map(|until| first_at(sql, until)).transpose()?;
        Ok(Self {
            from: from.max(since.unwrap_or(0)),
            until: until.unwrap_or(i64::MAX),
        })
    }
}

/// The statement for a query, and its values.
fn select(query: &Query, order: Order, range: Range) -> (String, Vec<Owned>) {
    // A stream leads to its entries; anything else to the blocks that have it.
    let block = [
        (Noting::Action, &query.action),
        (Noting::Kind, &query.kind),
        (Noting::Actor, &query.actor),
    ]
    .into_iter()
    .filter(|_| query.streams.is_empty())
    .find_map(|(noting, wanted)| Some(noting.name(wanted.as_deref()?)));
    // With blocks, their bounds are the ones to search by: `+ 0` keeps SQLite from choosing these.
    let place = if block.is_some() {
        "e.seq + 0"
    } else {
        "e.seq"
    };
    let mut values = Vec::new();
    let mut add = |column: &str, operator: &str, value: Owned| {
        values.push(value);
        format!("{column} {operator} ?{}", values.len())
    };
    let mut conditions = vec![
        add(place, ">=", Owned::Integer(range.from)),
        add(place, "<", Owned::Integer(range.until)),
    ];
    let streams: Vec<_> = query
        .streams
        .iter()
        .map(|stream| add("e.stream", "=", Owned::Text(stream.to_string())))
        .collect();
    if !streams.is_empty() {
        conditions.push(format!("({})", streams.join(" OR ")));
    }
    for (column, wanted) in [
        ("e.action_id", &query.action),
        ("e.kind", &query.kind),
        ("e.actor", &query.actor),
    ] {
        if let Some(wanted) = wanted {
            conditions.push(add(column, "=", Owned::Text(wanted.clone())));
        }
    }
    let direction = match order {
        Order::OldestFirst => "ASC",
        Order::NewestFirst => "DESC",
    };
    let (mut tables, mut sorting) = ("trail_entries e", format!("e.seq {direction}"));
    if let Some(name) = block {
        // CROSS, so that SQLite goes through the blocks and not through the entries.
        tables = "trail_blocks b CROSS JOIN trail_entries e";
        conditions.push(format!(
            "e.seq >= b.block * {BLOCK} AND e.seq < (b.block + 1) * {BLOCK}"
        ));
        let block = |seq: i64| Owned::Integer(seq / i64::try_from(BLOCK).unwrap_or(i64::MAX));
        conditions.push(add("b.name", "=", Owned::Text(name)));
        conditions.push(add("b.block", ">=", block(range.from)));
        conditions.push(add("b.block", "<=", block(range.until)));
        // The same order, in a way the database sees.
        sorting = format!("b.block {direction}, {sorting}");
    }
    let statement = format!(
        "SELECT {COLUMNS} FROM {tables} WHERE {} ORDER BY {sorting} LIMIT {AT_ONCE}",
        conditions.join(" AND "),
    );
    (statement, values)
}

/// The place of the first entry not before `moment`, found by halving.
fn first_at(sql: &mut dyn Sql, moment: Timestamp) -> Result<i64, StoreError> {
    let size = query_one(sql, "SELECT max(seq) FROM trail_entries", &[], |row| {
        Ok(row.integer(0).map_or(0, |last| last.saturating_add(1))) // NULL in an empty trail
    })?;
    let (mut low, mut high) = (0, size.unwrap_or(0));
    while low < high {
        let middle = low + (high - low) / 2;
        let time = query_one(
            sql,
            "SELECT time FROM trail_entries WHERE seq >= ?1 ORDER BY seq LIMIT 1",
            &[Value::Integer(middle)],
            |row| row.integer(0),
        )?;
        if time.is_some_and(|time| time < moment.as_micros()) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The entry at a place in the trail, as the present transaction sees it.
pub fn entry_at(sql: &mut dyn Sql, seq: u64) -> Result<Option<Entry>, StoreError> {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    let statement = format!("SELECT {COLUMNS} FROM trail_entries e WHERE e.seq = ?1");
    query_one(sql, &statement, &[Value::Integer(seq)], read_entry)
}

fn fields_match(query: &Query, entry: &Entry) -> bool {
    serde_json::from_str(&entry.body)
        .is_ok_and(|body| query.fields.iter().all(|field| field.matches(&body)))
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
