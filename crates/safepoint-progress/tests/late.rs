//! Who comes first: a record, `complete`, an abort and the timeout, all at once, on both databases.
//!
//! `SAFEPOINT_ROUNDS` says how often; a campaign asks for 500.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;
use std::sync::Barrier;

use safepoint_model::{Span, WorkspaceId};
use safepoint_progress::rejection::Reason;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::task::TaskState;
use safepoint_progress::{Given, ProgressError};
use safepoint_trail::{Query, Stream, Trail};
use serde_json::Value;
use support::*;
use testkit::{Seeded, on_every_store};

fn rounds() -> usize {
    std::env::var("SAFEPOINT_ROUNDS").map_or(12, |text| text.parse().unwrap())
}

/// What happened in one workspace after it became active, in a word each.
fn happened(trail: &Trail, id: &WorkspaceId) -> Vec<String> {
    let query = Query {
        streams: vec![Stream::from(id)],
        ..Query::default()
    };
    let mut found = Vec::new();
    trail
        .entries(&query, |entry| {
            let body: Value = serde_json::from_str(&entry.body).unwrap();
            found.push(match entry.kind.as_str() {
                "workspace_state_changed" => format!(
                    "{}:{}",
                    body["to"].as_str().unwrap(),
                    body["reason"].as_str().unwrap_or("")
                ),
                "signal_emitted" => format!("signal:{}", body["type"].as_str().unwrap()),
                other => other.to_owned(),
            });
            Ok::<_, ProgressError>(safepoint_store::Flow::More)
        })
        .unwrap();
    found.split_off(2)
}

fn place(happened: &[String], what: &str) -> Option<usize> {
    happened.iter().position(|one| one == what)
}

on_every_store! {
    fn pr_20_a_record_complete_an_abort_and_the_timeout_at_once(room: Room) {
        let progress = open(&room, 1);
        let trail = room.trail();
        let root = root(&progress);
        let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
        let chance = Seeded::new(7);
        for _ in 0..rounds() {
            let task = progress.create_task("race", &[], false, &ada()).unwrap().task_id;
            let given = Given { directive: Some("work"), timeout: Some(Span::from_secs(60)), task: Some(&task), ..Given::default() };
            let worker = below(&progress, &root, &given);
            let id = &worker.workspace_id;
            let start = Barrier::new(4);
            // Each waits for another while, so that each goes first in some round.
            let pauses: Vec<u64> = (0..4).map(|_| chance.next() % 150_000).collect();
            let aborts = chance.next().is_multiple_of(2);
            let turn = |place: usize| {
                start.wait();
                for _ in 0..pauses[place] {
                    std::hint::spin_loop();
                }
            };
            let (record, aborted) = std::thread::scope(|scope| {
                let record = scope.spawn(|| { turn(0); send(&progress, &worker, &body(None, "final")) });
                let complete = scope.spawn(|| { turn(1); progress.emit(id, &worker.token, SignalType::Complete, None, None).unwrap() });
                let abort = scope.spawn(|| { turn(2); aborts.then(|| progress.move_to(id, State::Failed, Some("aborted_by_coordinator"), &ada())) });
                let timeout = scope.spawn(|| { turn(3); room.clock.move_by(61 * SECOND); progress.tick().unwrap() });
                complete.join().unwrap();
                timeout.join().unwrap();
                (record.join().unwrap(), abort.join().unwrap())
            });
            let found = happened(&trail, id);
            let moves: Vec<&str> = found.iter().filter(|one| one.starts_with("failed:") || one.starts_with("integrating:")).map(String::as_str).collect();
            // The first that is processed wins; an abort still ends what was completed.
            let legal: [&[&str]; 4] = [&["integrating:"], &["failed:timeout"], &["failed:aborted_by_coordinator"], &["integrating:", "failed:aborted_by_coordinator"]];
            assert!(legal.contains(&moves.as_slice()), "{found:?}");
            assert_eq!(matches!(aborted, Some(Ok(_))), moves.contains(&"failed:aborted_by_coordinator"), "{found:?}");
            // The late ones are recorded, and change nothing.
            assert_eq!(found.iter().filter(|one| *one == "signal:complete").count(), 1);
            let moved = place(&found, moves[0]).unwrap();
            let (created, rejected) = (place(&found, "checkpoint_created"), place(&found, "checkpoint_rejected"));
            match &record {
                Ok(_) => assert!(rejected.is_none() && created.unwrap() < moved, "{found:?}"),
                Err(rejection) => {
                    assert_eq!(rejection.reason, Reason::WorkspaceNotActive);
                    assert!(created.is_none() && rejected.unwrap() > moved, "{found:?}");
                }
            }
            assert_eq!(matches!(aborted, Some(Err(_))), place(&found, "workspace_state_refused").is_some());
            assert_eq!(progress.log(id).unwrap().len(), usize::from(record.is_ok()));
            let state = progress.task(&task).unwrap();
            let expected = match (moves.as_slice(), &record) {
                (["integrating:"], Ok(_)) => TaskState::Completed,
                (["integrating:"], Err(_)) => TaskState::InProgress,
                _ => TaskState::Failed,
            };
            assert_eq!(state.status, expected, "{found:?}");
            let done = record.as_ref().ok().filter(|_| expected == TaskState::Completed);
            assert_eq!(state.checkpoint_ref.as_ref(), done.map(|record| &record.id));
            assert_eq!(progress.verify(id).unwrap().first_bad, None);
            assert_eq!(progress.tick().unwrap(), []);
            let word = format!("{} after {}", moves.join("+"), if record.is_ok() { "a record" } else { "nothing" });
            *outcomes.entry(word).or_default() += 1;
        }
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
        println!("{outcomes:?}");
    }
}
