//! A process that works in a workspace, for tests that need several, or one to kill.
//!
//! - `worker STORE ROOM begin WORKERS` makes a run, prints the id and token of its root, and of
//!   each of so many workers in it;
//! - `worker STORE ROOM work WORKSPACE TOKEN COUNT` makes COUNT records (0: until killed), each
//!   on the head that it finds, a signal after every third, and prints `record ID` or
//!   `signal ID` for each one that was acknowledged;
//! - `worker STORE ROOM move WORKSPACE STATE` moves a workspace;
//! - `worker STORE ROOM recover` recovers everything.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a tool of the tests"
)]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use safepoint_model::WorkspaceId;
use safepoint_progress::signal::SignalType;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Given, Presence, Progress};
use safepoint_store::{Blobs, Options, Store};
use safepoint_trail::{Actor, LostStore, Surroundings, Trail};
use serde_json::json;
use testkit::{RealClock, Seeded};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [store, room, rest @ ..] = words.as_slice() else {
        eprintln!("usage: worker STORE ROOM COMMAND …");
        std::process::exit(7);
    };
    let room = Path::new(room);
    let entropy = || {
        Arc::new(Seeded::new(
            // Side by side, not mixed: workers that start together differ in both by little.
            RealClock.now_micros() << 22 | u64::from(std::process::id()),
        ))
    };
    let store = Store::open(&store.parse().unwrap(), Options::default()).unwrap();
    let around = Surroundings {
        keys: room.join("keys"),
        witnesses: room.join("witness"),
        blobs: Blobs::new(room.join("blobs")),
        clock: Arc::new(RealClock),
        entropy: entropy(),
        lost_store: LostStore::Refuse,
    };
    let trail = Trail::open(Arc::new(store), &around).unwrap();
    let progress = Progress::open(trail, Arc::new(RealClock), entropy()).unwrap();
    let presence = Presence::enter(&room.join("present"), &*entropy()).unwrap();
    match rest {
        ["begin", workers] => begin(&progress, workers.parse().unwrap()),
        ["work", workspace, token, count] => {
            progress.resume(&presence).unwrap();
            work(
                &progress,
                &workspace.parse().unwrap(),
                token,
                count.parse().unwrap(),
            );
        }
        ["move", workspace, state] => {
            let (id, to) = (workspace.parse().unwrap(), state.parse().unwrap());
            progress.move_to(&id, to, None, &ada()).unwrap();
        }
        ["recover"] => {
            progress.recover().unwrap();
        }
        _ => std::process::exit(7),
    }
}

trait Micros {
    fn now_micros(&self) -> u64;
}

impl Micros for RealClock {
    fn now_micros(&self) -> u64 {
        safepoint_model::Clock::now(self).as_micros().unsigned_abs()
    }
}

fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

/// One write a line, so that a kill never leaves half of one.
fn say(line: &str) {
    let line = format!("{line}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn begin(progress: &Progress, workers: usize) {
    let given = Given {
        directive: Some("work"),
        ..Given::default()
    };
    let empty = Taxonomy::empty();
    let root = progress
        .create(&Beginning::Root(&empty), &given, &ada())
        .unwrap();
    say(&format!("{} {}", root.workspace_id, root.token));
    for _ in 0..workers {
        let below = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        let made = progress.create(&below, &given, &ada()).unwrap();
        say(&format!("{} {}", made.workspace_id, made.token));
    }
}

fn work(progress: &Progress, id: &WorkspaceId, token: &str, count: usize) {
    for number in (0..).take_while(|number| count == 0 || *number < count) {
        let head = progress.head(id).unwrap();
        let body = json!({
            "type": "artifact",
            "payload": {"files_changed": [], "content": format!("{number}"), "artifacts": []},
            "intent": "because", "parent": head.map(|head| head.id),
            "status": "provisional", "confidence": "medium",
        });
        let record = progress
            .checkpoint(id, token, body.to_string().as_bytes(), None, None)
            .unwrap()
            .unwrap();
        say(&format!("record {}", record.id));
        if number % 3 == 2 {
            let kind = SignalType::Escalation;
            let signal = progress.emit(id, token, kind, Some("look"), None).unwrap();
            say(&format!("signal {}", signal.id));
        }
    }
}
