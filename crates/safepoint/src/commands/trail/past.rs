//! The roll backs that went back to before an action: they name a checkpoint, and not what
//! happened since.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_store::Flow;
use safepoint_trail::{Entry, FieldFilter, Query, Stream, Trail};
use serde_json::Value;

use crate::error::CliError;

/// The entries of roll backs that took this action back with all that came after a checkpoint.
pub(super) fn roll_backs(trail: &Trail, action: &str) -> Result<Vec<Entry>, CliError> {
    let own = Query {
        action: Some(action.to_owned()),
        ..Query::default()
    };
    // Where it ended in each directory, and as what.
    let mut ends: BTreeMap<String, (Stream, u64)> = BTreeMap::new();
    let mut left: BTreeSet<String> = BTreeSet::new();
    for entry in all(trail, &own)? {
        if let Some(after) = field(trail, &entry, "after")? {
            left.insert(after);
            ends.insert(entry.stream.to_string(), (entry.stream, entry.seq));
        }
    }
    let mut found = Vec::new();
    for (stream, end) in ends.into_values() {
        let later = Query {
            streams: vec![stream.clone()],
            kind: Some("rolled_back".to_owned()),
            from: end + 1,
            ..Query::default()
        };
        for entry in all(trail, &later)? {
            let Some(restored) = field(trail, &entry, "restored_to")? else {
                continue;
            };
            let is_before = made_at(trail, &stream, &restored)?.is_some_and(|made| made < end);
            if is_before && !left.contains(&restored) {
                found.push(entry);
            }
        }
    }
    Ok(found)
}

/// The place of the entry of a checkpoint.
fn made_at(trail: &Trail, stream: &Stream, checkpoint: &str) -> Result<Option<u64>, CliError> {
    let made = Query {
        streams: vec![stream.clone()],
        kind: Some("checkpoint_created".to_owned()),
        fields: vec![FieldFilter {
            path: vec!["checkpoint_id".to_owned()],
            value: checkpoint.to_owned(),
        }],
        ..Query::default()
    };
    Ok(all(trail, &made)?.first().map(|entry| entry.seq))
}

fn all(trail: &Trail, query: &Query) -> Result<Vec<Entry>, CliError> {
    let mut found = Vec::new();
    trail.entries(query, |entry| -> Result<Flow, CliError> {
        found.push(entry);
        Ok(Flow::More)
    })?;
    Ok(found)
}

/// A text in the body of an entry.
fn field(trail: &Trail, entry: &Entry, name: &str) -> Result<Option<String>, CliError> {
    let body: Value = serde_json::from_str(&trail.body(entry)?)?;
    Ok(body.get(name).and_then(Value::as_str).map(str::to_owned))
}
