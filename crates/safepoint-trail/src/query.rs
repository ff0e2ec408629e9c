//! Looking things up: by stream, action, kind, actor, time and fields of the
//! body, one entry at a time, however long the trail is.

mod select;

use std::borrow::Cow;

use safepoint_model::{EntryId, Timestamp};
use safepoint_store::{Flow, StoreError, Value, query_one};

use crate::blocks::Noting;
use crate::entry::blob_of;
use crate::rows::{entry_at, read_entry};
use crate::{Entry, Stream, Trail, TrailError};
use select::{AT_ONCE, Order, Range, borrow, select};

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

impl Query {
    /// Whether the body of an entry has all the fields that are wanted.
    pub fn fits_fields(&self, entry: &Entry) -> bool {
        self.fields.is_empty() || fields_match(self, entry)
    }
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
                    if query.fits_fields(&entry) {
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
            "SELECT name FROM trail_blocks WHERE name >= ?1 AND name < ?2 ORDER BY name LIMIT 1",
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
            "SELECT stream FROM trail_entries WHERE stream >= ?1 AND stream < ?2 ORDER BY stream LIMIT 1",
            prefix,
        )?;
        let name = the_only(prefix, "session or workspace", names)?;
        name.parse()
            .map_err(|_| TrailError::NotFound(format!("session or workspace `{prefix}`")))
    }

    /// The first few names that begin with `prefix`. `first` finds the first from `?1` on and
    /// before `?2`: one after the other, since each may stand there a million times.
    fn beginning_with(&self, first: &str, prefix: &str) -> Result<Vec<String>, TrailError> {
        // Names are printable ASCII: nothing that begins with one comes behind the one mark, and
        // nothing stands between it and itself with the other.
        let (mut from, end) = (prefix.to_owned(), format!("{prefix}\u{7f}"));
        self.store().read(|sql| {
            let mut found: Vec<String> = Vec::new();
            while found.len() < 3 {
                let bounds = [Value::Text(&from), Value::Text(&end)];
                let name = query_one(sql, first, &bounds, |row| Ok(row.text(0)?.to_owned()))?;
                let Some(name) = name else { break };
                from = format!("{name}\u{1}");
                found.push(name);
            }
            Ok(found)
        })
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

fn fields_match(query: &Query, entry: &Entry) -> bool {
    serde_json::from_str(&entry.body)
        .is_ok_and(|body| query.fields.iter().all(|field| field.matches(&body)))
}
