//! What the stories of accounts and tasks share: a root, a worker below it, a record.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests, and each of them needs its own part of this"
)]

use std::sync::Arc;

use safepoint_model::Span;
use safepoint_progress::meter::Budget;
use safepoint_progress::record::Record;
use safepoint_progress::rejection::Rejection;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Created, Given, Progress};
use safepoint_trail::{Actor, Trail};
use serde_json::{Value, json};
use testkit::{Room, Seeded};

pub(crate) const SECOND: i64 = 1_000_000;

pub(crate) fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

pub(crate) fn gateway() -> Actor {
    "surface:gateway".parse().unwrap()
}

pub(crate) fn open(room: &Room, seed: u64) -> Progress {
    let entropy = Arc::new(Seeded::new(seed));
    Progress::open(room.trail(), room.clock.clone(), entropy).unwrap()
}

pub(crate) fn root(progress: &Progress) -> Created {
    let given = Given {
        directive: Some("lead"),
        ..Given::default()
    };
    let beginning = Beginning::Root(&Taxonomy::empty());
    progress.create(&beginning, &given, &ada()).unwrap()
}

/// A worker that is active, with these limits.
pub(crate) fn worker(
    progress: &Progress,
    root: &Created,
    budget: Budget,
    timeout: Option<&str>,
) -> Created {
    let given = Given {
        directive: Some("work"),
        budget,
        timeout: timeout.map(|text| text.parse::<Span>().unwrap()),
        ..Given::default()
    };
    below(progress, root, &given)
}

pub(crate) fn below(progress: &Progress, root: &Created, given: &Given<'_>) -> Created {
    let beginning = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
    progress.create(&beginning, given, &ada()).unwrap()
}

pub(crate) fn body(parent: Option<&Record>, status: &str) -> Value {
    json!({
        "type": "artifact",
        "payload": {"files_changed": [], "content": "text", "artifacts": []},
        "intent": "because",
        "parent": parent.map(|parent| &parent.id),
        "status": status,
        "confidence": "medium",
    })
}

pub(crate) fn send(progress: &Progress, to: &Created, body: &Value) -> Result<Record, Rejection> {
    let text = body.to_string();
    progress
        .checkpoint(&to.workspace_id, &to.token, text.as_bytes(), None, None)
        .unwrap()
}

/// A record whose agent says that it took this.
pub(crate) fn send_usage(
    progress: &Progress,
    to: &Created,
    parent: Option<&Record>,
    usage: Value,
) -> Record {
    let mut body = body(parent, "provisional");
    body["resource_usage"] = usage;
    send(progress, to, &body).unwrap()
}

/// Kind and body of every entry after the first `skip`.
pub(crate) fn told(room: &Room, trail: &Trail, skip: usize) -> Vec<(String, Value)> {
    let entries = room.entries(trail);
    let read = |text: &str| serde_json::from_str(text).unwrap();
    entries
        .iter()
        .skip(skip)
        .map(|entry| (entry.kind.to_string(), read(&entry.body)))
        .collect()
}

pub(crate) fn kinds(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// How often this kind was recorded at all.
pub(crate) fn count(room: &Room, trail: &Trail, kind: &str) -> usize {
    let all = told(room, trail, 0);
    all.iter().filter(|(found, _)| found == kind).count()
}
