//! What the stories of this crate share: a run, records, and what the trail says of it all.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(dead_code, reason = "not every story needs everything")]

use std::collections::BTreeMap;
use std::sync::Arc;

use safepoint_model::{SignalId, Timestamp, WorkspaceId};
use safepoint_progress::record::Record;
use safepoint_progress::rejection::Rejection;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Created, Given, Progress, ProgressError};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Entry, Kind, Stream, Trail};
use serde_json::{Value, json};
use testkit::{Room, Seeded};

pub(crate) fn open(room: &Room, seed: u64) -> Progress {
    let entropy = Arc::new(Seeded::new(seed));
    Progress::open(room.trail(), room.clock.clone(), entropy).unwrap()
}

pub(crate) fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

fn given() -> Given<'static> {
    Given {
        directive: Some("work"),
        ..Given::default()
    }
}

pub(crate) fn root(progress: &Progress) -> Created {
    let empty = Taxonomy::empty();
    progress
        .create(&Beginning::Root(&empty), &given(), &ada())
        .unwrap()
}

pub(crate) fn below(progress: &Progress, parent: &Created) -> Created {
    let beginning = Beginning::Below(&parent.workspace_id, "worker".parse().unwrap());
    progress.create(&beginning, &given(), &ada()).unwrap()
}

pub(crate) fn body(parent: Option<&Record>) -> Value {
    json!({
        "type": "artifact",
        "payload": {"files_changed": ["a.rs"], "content": "content", "artifacts": []},
        "intent": "because",
        "parent": parent.map(|parent| &parent.id),
        "status": "provisional",
        "confidence": "medium",
    })
}

pub(crate) fn send(progress: &Progress, to: &Created, body: &Value) -> Result<Record, Rejection> {
    let text = body.to_string();
    progress
        .checkpoint(&to.workspace_id, &to.token, text.as_bytes(), None, None)
        .unwrap()
}

/// So many records, each on the one before.
pub(crate) fn chain(progress: &Progress, to: &Created, count: usize) -> Vec<Record> {
    let mut chain: Vec<Record> = Vec::new();
    for _ in 0..count {
        chain.push(send(progress, to, &body(chain.last())).unwrap());
    }
    chain
}

/// Records that an agent emitted a signal, as if it had been cut off before the move it asks for.
pub(crate) fn emit_without_move(room: &Room, id: &WorkspaceId, kind: &str) {
    let trail = room.trail();
    let signal = SignalId::new(Timestamp::from_micros(1), &Seeded::new(77)).unwrap();
    let written: Result<(), ProgressError> = trail.write(Durability::Sync, |writing| {
        let time = writing.moment();
        writing.append(Draft {
            stream: Stream::from(id),
            actor: "worker".parse().unwrap(),
            kind: Kind::fixed("signal_emitted").into(),
            action_id: None,
            body: json!({"signal_id": signal, "from": id, "type": kind, "reason": "why", "ref": null, "timestamp": time}),
        })?;
        Ok(())
    });
    written.unwrap();
}

/// The entries of one kind, with their bodies.
pub(crate) fn of_kind(room: &Room, trail: &Trail, kind: &str) -> Vec<(Entry, Value)> {
    let entries = room.entries(trail).into_iter();
    entries
        .filter(|entry| entry.kind.as_str() == kind)
        .map(|entry| {
            let body = serde_json::from_str(&entry.body).unwrap();
            (entry, body)
        })
        .collect()
}

/// Everything emitted below somebody was delivered, once, and in order for each source.
#[track_caller]
pub(crate) fn all_delivered_in_order(room: &Room, trail: &Trail, root: &WorkspaceId, when: &str) {
    let mut sources: BTreeMap<String, [Vec<String>; 2]> = BTreeMap::new();
    for (place, kind) in ["signal_emitted", "signal_delivered"].iter().enumerate() {
        for (_, body) in of_kind(room, trail, kind) {
            let from = body["from"].as_str().unwrap();
            if from != root.as_str() {
                let id = body["signal_id"].as_str().unwrap().to_owned();
                sources.entry(from.to_owned()).or_default()[place].push(id);
            }
        }
    }
    for (source, [emitted, delivered]) in sources {
        assert_eq!(emitted, delivered, "{when}: {source}");
    }
}
