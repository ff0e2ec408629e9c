//! Workspaces and chains in a store: one story, on both databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::sync::Arc;

use safepoint_model::WorkspaceId;
use safepoint_progress::record::Record;
use safepoint_progress::rejection::{Reason, Rejection};
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Created, Given, Progress, ProgressError};
use safepoint_store::{Durability, StoreError};
use safepoint_trail::Actor;
use serde_json::{Value, json};
use testkit::{Database, Room, Seeded, on_every_store};

fn open(room: &Room, seed: u64) -> Progress {
    Progress::open(
        room.trail(),
        room.clock.clone(),
        Arc::new(Seeded::new(seed)),
    )
    .unwrap()
}

fn given(directive: Option<&str>) -> Given<'_> {
    Given {
        directive,
        ..Given::default()
    }
}

fn ada() -> Actor {
    "user:ada".parse().unwrap()
}

fn root(progress: &Progress) -> Created {
    progress
        .create(
            &Beginning::Root(&Taxonomy::empty()),
            &given(Some("lead")),
            &ada(),
        )
        .unwrap()
}

fn below(progress: &Progress, parent: &Created, role: &str) -> Created {
    let beginning = Beginning::Below(&parent.workspace_id, role.parse().unwrap());
    progress
        .create(&beginning, &given(Some("work")), &ada())
        .unwrap()
}

fn body(parent: Option<&Record>) -> Value {
    json!({
        "type": "artifact",
        "payload": {"files_changed": ["a.rs"], "content": "SECRET-PAYLOAD \u{0}é\r\n", "artifacts": ["urn:x"]},
        "intent": "because",
        "parent": parent.map(|parent| &parent.id),
        "status": "provisional",
        "confidence": "medium",
    })
}

fn send(progress: &Progress, to: &Created, body: &Value) -> Result<Record, Rejection> {
    progress
        .checkpoint(
            &to.workspace_id,
            &to.token,
            body.to_string().as_bytes(),
            None,
            None,
        )
        .unwrap()
}

fn reason(result: Result<Record, Rejection>) -> Reason {
    result.unwrap_err().reason
}

/// Stream and kind of every entry after the first `skip`.
fn kinds(
    room: &Room,
    progress_trail: &safepoint_trail::Trail,
    skip: usize,
) -> Vec<(String, String)> {
    let entries = room.entries(progress_trail);
    entries
        .iter()
        .skip(skip)
        .map(|entry| (entry.stream.to_string(), entry.kind.to_string()))
        .collect()
}

fn refused(room: &Room, statement: &str) {
    let trail = room.trail();
    let done: Result<u64, StoreError> = trail
        .store()
        .write(Durability::Sync, |sql| sql.execute(statement, &[]));
    // By our own trigger, and not because the statement makes no sense.
    let error = format!("{:?}", done.unwrap_err());
    assert!(error.contains("append-only"), "{statement}: {error}");
}

/// Adds rows behind our back: no trigger stands against that.
fn add(room: &Room, statement: &str) {
    let added = room
        .trail()
        .store()
        .write(Durability::Sync, |sql| sql.execute(statement, &[]));
    assert_eq!(added.unwrap(), 1);
}

on_every_store! {
    fn pr_01_a_tree_begins_with_its_coordinator_and_the_taxonomy(room: Room) {
        let progress = open(&room, 1);
        let trail = room.trail();
        let root = root(&progress);
        let child = below(&progress, &root, "worker");
        let entries = room.entries(&trail);
        let first = entries.iter().find(|entry| entry.stream.as_str() == root.workspace_id.as_str()).unwrap();
        assert_eq!(first.kind.as_str(), "workspace_created");
        let told: Value = serde_json::from_str(&first.body).unwrap();
        assert_eq!((&told["role"], &told["taxonomy"]["id"]), (&json!("coordinator"), &json!("")));
        assert_eq!(progress.children(&root.workspace_id).unwrap()[0].workspace_id, child.workspace_id);
        let second = Beginning::Below(&root.workspace_id, "coordinator".parse().unwrap());
        assert!(matches!(progress.create(&second, &given(None), &ada()), Err(ProgressError::Invalid(_))));
        let strange = Beginning::Below(&root.workspace_id, "pilot".parse().unwrap());
        assert!(matches!(progress.create(&strange, &given(None), &ada()), Err(ProgressError::NotFound { .. })));
    }

    fn pr_01_other_moves_are_refused_and_recorded(room: Room) {
        let progress = open(&room, 2);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress), "worker");
        let before = room.entries(&trail).len();
        let refused = progress.move_to(&worker.workspace_id, State::Closed, None, &ada());
        assert!(matches!(refused, Err(ProgressError::Move(_))));
        let stream = worker.workspace_id.to_string();
        assert_eq!(kinds(&room, &trail, before), [(stream, "workspace_state_refused".to_owned())]);
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Active);
        for to in [State::Suspended, State::Active, State::Blocked, State::Suspended, State::Blocked] {
            progress.move_to(&worker.workspace_id, to, Some("why"), &ada()).unwrap();
            assert_eq!(open(&room, 3).workspace(&worker.workspace_id).unwrap().state, to);
        }
    }

    fn pr_01_a_parent_that_fails_takes_its_children_along(room: Room) {
        let progress = open(&room, 4);
        let root = root(&progress);
        let worker = below(&progress, &root, "worker");
        let grandchild = below(&progress, &worker, "observer");
        progress.move_to(&worker.workspace_id, State::Failed, Some("x"), &ada()).unwrap();
        assert_eq!(progress.workspace(&grandchild.workspace_id).unwrap().state, State::Failed);
        assert_eq!(progress.workspace(&root.workspace_id).unwrap().state, State::Active);
        let late = Beginning::Below(&worker.workspace_id, "worker".parse().unwrap());
        assert!(progress.create(&late, &given(None), &ada()).is_err());
    }

    fn pr_05_a_binding_that_nobody_told_of_lets_nobody_in(room: Room) {
        let progress = open(&room, 61);
        let worker = below(&progress, &root(&progress), "worker");
        let id = &worker.workspace_id;
        let new = progress.migrate(id, &ada()).unwrap();
        let text = body(None).to_string();
        // The old token again: with the entry of then, and with the entry of now.
        add(&room, &format!(
            "INSERT INTO progress_bindings (workspace, number, digest, time, entry) \
             SELECT workspace, 3, digest, time, entry FROM progress_bindings WHERE workspace = '{id}' AND number = 1"
        ));
        for token in [&worker.token, &new.token] {
            let asked = progress.checkpoint(id, token, text.as_bytes(), None, None);
            assert!(matches!(asked, Err(ProgressError::Tampered { .. })), "{asked:?}");
        }
        add(&room, &format!(
            "INSERT INTO progress_bindings (workspace, number, digest, time, entry) \
             SELECT o.workspace, 4, o.digest, n.time, n.entry + 1 FROM progress_bindings o, progress_bindings n \
             WHERE o.workspace = '{id}' AND o.number = 1 AND n.workspace = '{id}' AND n.number = 2"
        ));
        let asked = progress.checkpoint(id, &worker.token, text.as_bytes(), None, None);
        assert!(matches!(asked, Err(ProgressError::Tampered { .. })), "{asked:?}");
    }

    fn pr_01_a_move_that_nobody_told_of_moves_nothing(room: Room) {
        let progress = open(&room, 62);
        let root = root(&progress);
        let (worker, other) = (below(&progress, &root, "worker"), below(&progress, &root, "worker"));
        let id = &worker.workspace_id;
        progress.move_to(id, State::Failed, Some("x"), &ada()).unwrap();
        add(&room, &format!(
            "INSERT INTO progress_moves (workspace, number, state, former, reason, time, entry) \
             SELECT workspace, number + 1, 'active', NULL, NULL, time, entry FROM progress_moves \
             WHERE workspace = '{id}' AND state = 'failed'"
        ));
        let text = body(None).to_string();
        let asked = progress.checkpoint(id, &worker.token, text.as_bytes(), None, None);
        assert!(matches!(asked, Err(ProgressError::Tampered { .. })), "{asked:?}");
        let moved = progress.move_to(id, State::Blocked, None, &ada());
        assert!(matches!(moved, Err(ProgressError::Tampered { .. })), "{moved:?}");
        let tampered = |id: &safepoint_model::WorkspaceId| progress.overview().unwrap().iter().any(|it| it.workspace_id == *id && it.tampered);
        assert!(tampered(id) && !tampered(&other.workspace_id));
        progress.checkpoint(&other.workspace_id, &other.token, text.as_bytes(), None, None).unwrap().unwrap();
    }

    fn pr_05_only_the_bound_agent_gets_in_and_migration_fences_it(room: Room) {
        let progress = open(&room, 5);
        let trail = room.trail();
        let root = root(&progress);
        let (worker, other) = (below(&progress, &root, "worker"), below(&progress, &root, "worker"));
        let text = body(None).to_string();
        let before = room.entries(&trail).len();
        for wrong in ["", "wst_", other.token.as_str()] {
            let outcome = progress.checkpoint(&worker.workspace_id, wrong, text.as_bytes(), None, None);
            assert!(matches!(outcome, Err(ProgressError::NotTheAgent(_))), "{wrong}");
        }
        let stream = worker.workspace_id.to_string();
        assert_eq!(kinds(&room, &trail, before), vec![(stream, "authentication_failed".to_owned()); 3]);
        let moved = progress.migrate(&worker.workspace_id, &ada()).unwrap();
        let old = progress.checkpoint(&worker.workspace_id, &worker.token, text.as_bytes(), None, None);
        assert!(matches!(old, Err(ProgressError::NotTheAgent(_))));
        assert!(send(&progress, &moved, &body(None)).is_ok());
        for entry in room.entries(&trail) {
            assert!(!entry.body.contains(&worker.token) && !entry.body.contains(&moved.token));
        }
    }

    fn pr_06_a_directive_activates_any_role(room: Room) {
        let progress = open(&room, 6);
        let root = root(&progress);
        for role in ["worker", "observer"] {
            let made = below(&progress, &root, role);
            assert_eq!(progress.workspace(&made.workspace_id).unwrap().state, State::Active);
        }
        let idle = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        let idle = progress.create(&idle, &given(None), &ada()).unwrap();
        assert_eq!(progress.workspace(&idle.workspace_id).unwrap().state, State::Idle);
        assert_eq!(reason(send(&progress, &idle, &body(None))), Reason::WorkspaceNotActive);
    }

    fn pr_10_ids_and_times_rise_whatever_the_clock_does(room: Room) {
        let worker = { let progress = open(&room, 7); below(&progress, &root(&progress), "worker") };
        let mut last = None;
        for (seed, step) in [0, 5, -3_600_000_000, 0, 1].into_iter().enumerate() {
            room.clock.move_by(step);
            // A new process each time.
            let record = send(&open(&room, 100 + seed as u64), &worker, &body(last.as_ref())).unwrap();
            if let Some(before) = &last {
                let before: &Record = before;
                assert!(before.id < record.id && before.timestamp < record.timestamp);
            }
            last = Some(record);
        }
    }

    fn pr_11_content_comes_back_byte_for_byte(room: Room) {
        let progress = open(&room, 8);
        let worker = below(&progress, &root(&progress), "worker");
        let record = send(&progress, &worker, &body(None)).unwrap();
        assert_eq!(record.payload.content, "SECRET-PAYLOAD \u{0}é\r\n");
        assert_eq!(progress.log(&worker.workspace_id).unwrap(), [record]);
    }

    fn pr_12_each_rejection_is_one_entry_and_nothing_else(room: Room) {
        let progress = open(&room, 9);
        let trail = room.trail();
        let root = root(&progress);
        let (worker, other) = (below(&progress, &root, "worker"), below(&progress, &root, "worker"));
        let first = send(&progress, &worker, &body(None)).unwrap();
        let foreign = send(&progress, &other, &body(None)).unwrap();
        let second = send(&progress, &worker, &body(Some(&first))).unwrap();
        let with = |field: &str, value: Value| { let mut body = body(Some(&second)); body[field] = value; body };
        let cases = [
            (with("intent", json!(" ")), Reason::InvalidStructure),
            (with("id", json!("rec_1")), Reason::InvalidStructure),
            (with("type", json!("essay")), Reason::InvalidType),
            (with("type", json!("observation")), Reason::PermissionDenied),
            (body(None), Reason::InvalidParent),
            (body(Some(&first)), Reason::InvalidParent),
            (body(Some(&foreign)), Reason::InvalidParent),
            (with("parent", json!("rec_unknown")), Reason::InvalidParent),
        ];
        for (body, expected) in cases {
            let before = room.entries(&trail).len();
            assert_eq!(reason(send(&progress, &worker, &body)), expected, "{body}");
            let stream = worker.workspace_id.to_string();
            assert_eq!(kinds(&room, &trail, before), [(stream, "checkpoint_rejected".to_owned())]);
        }
        assert_eq!(progress.head(&worker.workspace_id).unwrap(), Some(second.clone()));
        for state in [State::Blocked, State::Suspended, State::Failed] {
            progress.move_to(&worker.workspace_id, state, None, &ada()).unwrap();
            assert_eq!(reason(send(&progress, &worker, &body(Some(&second)))), Reason::WorkspaceNotActive);
        }
        assert_eq!(reason(send(&progress, &root, &body(None))), Reason::PermissionDenied);
    }

    fn pr_13_rows_cannot_be_changed_and_what_is_changed_by_force_is_found(room: Room) {
        let progress = open(&room, 10);
        let worker = below(&progress, &root(&progress), "worker");
        let first = send(&progress, &worker, &body(None)).unwrap();
        send(&progress, &worker, &body(Some(&first))).unwrap();
        progress.emit(&worker.workspace_id, &worker.token, SignalType::Blocked, Some("no key"), None).unwrap();
        for table in ["workspaces", "moves", "bindings", "records", "deliveries"] {
            refused(&room, &format!("DELETE FROM progress_{table}"));
        }
        refused(&room, "UPDATE progress_records SET status = 'final'");
        refused(&room, "UPDATE progress_moves SET state = 'closed'");
        if room.database() == Database::Sqlite {
            refused(&room, "INSERT OR REPLACE INTO progress_records SELECT id, workspace, 3, (SELECT max(id) FROM progress_records), status, confidence, time + 99999999, entry, body, proof, bytes, NULL, NULL FROM progress_records WHERE number = 1");
            refused(&room, "INSERT OR REPLACE INTO progress_deliveries SELECT emission, delivery FROM progress_deliveries");
        }
        // What is not there yet cannot be delivered, nor by something that is no delivery.
        refused(&room, "INSERT INTO progress_deliveries SELECT max(seq) + 5, 0 FROM trail_entries");
        refused(&room, "INSERT INTO progress_deliveries SELECT max(seq), 0 FROM trail_entries WHERE kind = 'signal_emitted'");
        assert_eq!(progress.verify(&worker.workspace_id).unwrap().checked, 2);
        room.tamper("UPDATE progress_records SET status = 'final' WHERE number = 1");
        let found = progress.verify(&worker.workspace_id).unwrap();
        assert_eq!((found.checked, found.first_bad.unwrap().number), (0, 1));
        assert!(matches!(progress.log(&worker.workspace_id), Err(ProgressError::Tampered { .. })));
    }

    fn pr_13_a_record_that_vanished_or_came_from_nowhere_is_found(room: Room) {
        let progress = open(&room, 11);
        let worker = below(&progress, &root(&progress), "worker");
        let first = send(&progress, &worker, &body(None)).unwrap();
        send(&progress, &worker, &body(Some(&first))).unwrap();
        room.tamper("DELETE FROM progress_records WHERE number = 2");
        let found = progress.verify(&worker.workspace_id).unwrap();
        assert_eq!(found.first_bad.unwrap().reason, "it is in the trail, and not in the store");
        // Nor is anything built in its place, by us or by somebody who knows nothing of it.
        for progress in [&progress, &open(&room, 12)] {
            let again = body(Some(&first)).to_string();
            let made = progress.checkpoint(&worker.workspace_id, &worker.token, again.as_bytes(), None, None);
            assert!(matches!(made, Err(ProgressError::Tampered { .. })), "{made:?}");
        }
    }

    fn pr_14_the_database_holds_the_chain_linear(room: Room) {
        let progress = open(&room, 12);
        let root = root(&progress);
        let (worker, other) = (below(&progress, &root, "worker"), below(&progress, &root, "worker"));
        let first = send(&progress, &worker, &body(None)).unwrap();
        let second = send(&progress, &worker, &body(Some(&first))).unwrap();
        let copy = |workspace: &WorkspaceId, number: i64, parent: &str| format!(
            "INSERT INTO progress_records SELECT 'rec_new', '{workspace}', {number}, {parent}, status, confidence, time + 99999999, entry, body, proof, bytes, NULL, NULL FROM progress_records WHERE id = '{}'", first.id);
        let (mine, theirs) = (&worker.workspace_id, &other.workspace_id);
        refused(&room, &copy(mine, 3, "''"));
        refused(&room, &copy(mine, 1, "''"));
        refused(&room, &copy(mine, 3, &format!("'{}'", first.id)));
        refused(&room, &copy(theirs, 2, &format!("'{}'", first.id)));
        refused(&room, &copy(theirs, 1, &format!("'{}'", first.id)));
        // At the end of the chain the same statement is taken: the ones above fail for their place.
        let statement = copy(mine, 3, &format!("'{}'", second.id));
        let taken: Result<u64, StoreError> = room.trail().store().write(Durability::Sync, |sql| sql.execute(&statement, &[]));
        assert_eq!(taken.unwrap(), 1);
        let found = progress.verify(mine).unwrap().first_bad;
        assert_eq!(found.unwrap().reason, "it is in the store, and not in the trail");
    }

    fn pr_14_of_64_writers_on_one_head_one_succeeds(room: Room) {
        let progress = open(&room, 13);
        let worker = below(&progress, &root(&progress), "worker");
        let first = send(&progress, &worker, &body(None)).unwrap();
        let next = body(Some(&first));
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..64).map(|_| scope.spawn(|| send(&progress, &worker, &next))).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        let lost = |outcome: &&Result<Record, Rejection>| matches!(outcome, Err(rejection) if rejection.reason == Reason::InvalidParent);
        assert_eq!(outcomes.iter().filter(lost).count(), 63);
        let verified = progress.verify(&worker.workspace_id).unwrap();
        assert_eq!((verified.checked, verified.first_bad), (2, None));
    }

    fn pr_15_success_is_created_emitted_and_delivered(room: Room) {
        let progress = open(&room, 14);
        let trail = room.trail();
        let root = root(&progress);
        for role in ["worker", "observer"] {
            let child = below(&progress, &root, role);
            let mut asked = body(None);
            asked["type"] = json!(if role == "worker" { "artifact" } else { "observation" });
            let before = room.entries(&trail).len();
            let record = send(&progress, &child, &asked).unwrap();
            let (own, above) = (child.workspace_id.to_string(), root.workspace_id.to_string());
            assert_eq!(kinds(&room, &trail, before), [
                (own.clone(), "checkpoint_created".to_owned()),
                (own, "signal_emitted".to_owned()),
                (above, "signal_delivered".to_owned()),
            ]);
            let emitted = &room.entries(&trail)[before + 1];
            assert_eq!(emitted.actor.as_str(), "protocol");
            let told: Value = serde_json::from_str(&emitted.body).unwrap();
            assert_eq!((&told["type"], &told["ref"]), (&json!("checkpoint"), &json!(record.id)));
        }
    }

    fn pr_17_a_request_key_gives_the_first_result_again(room: Room) {
        let progress = open(&room, 15);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress), "worker");
        let text = body(None).to_string();
        let ask = |text: &str| progress.checkpoint(&worker.workspace_id, &worker.token, text.as_bytes(), Some("k"), None).unwrap();
        let first = ask(&text).unwrap();
        let before = room.entries(&trail).len();
        assert_eq!(ask(&text).unwrap(), first);
        assert_eq!(room.entries(&trail).len(), before);
        assert_eq!(reason(ask(&text.replace("because", "why"))), Reason::InvalidStructure);
        progress.move_to(&worker.workspace_id, State::Failed, None, &ada()).unwrap();
        assert_eq!(ask(&text).unwrap(), first);
    }

    fn pr_18_no_payload_is_in_the_trail(room: Room) {
        let progress = open(&room, 16);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress), "worker");
        send(&progress, &worker, &body(None)).unwrap();
        let mut seen = 0;
        for entry in room.entries(&trail) {
            for payload in ["SECRET-PAYLOAD", "a.rs", "urn:x", "files_changed", "content"] {
                assert!(!entry.body.contains(payload), "{}", entry.body);
            }
            seen += usize::from(entry.kind.as_str() == "checkpoint_created" && entry.body.contains("proof"));
        }
        assert_eq!(seen, 1);
    }

    fn pr_19_confidence_changes_nothing_and_is_listed(room: Room) {
        let progress = open(&room, 17);
        let trail = room.trail();
        let root = root(&progress);
        for confidence in ["high", "medium", "low"] {
            let worker = below(&progress, &root, "worker");
            let mut asked = body(None);
            asked["confidence"] = json!(confidence);
            let before = room.entries(&trail).len();
            send(&progress, &worker, &asked).unwrap();
            let kinds: Vec<String> = kinds(&room, &trail, before).into_iter().map(|(_, kind)| kind).collect();
            assert_eq!(kinds, ["checkpoint_created", "signal_emitted", "signal_delivered"]);
            let overview = progress.overview().unwrap();
            let link = overview.iter().find(|link| link.workspace_id == worker.workspace_id).unwrap();
            assert_eq!(link.confidence.unwrap().as_str(), confidence);
        }
    }

    fn pr_04_signals_wait_in_order_for_a_parent_that_cannot_take_them(room: Room) {
        let progress = open(&room, 18);
        let root = root(&progress);
        let worker = below(&progress, &root, "worker");
        progress.move_to(&root.workspace_id, State::Suspended, None, &ada()).unwrap();
        let record = send(&progress, &worker, &body(None)).unwrap();
        let id = &worker.workspace_id;
        progress.emit(id, &worker.token, SignalType::Blocked, Some("no key"), None).unwrap();
        assert_eq!(progress.workspace(id).unwrap().state, State::Blocked);
        assert!(progress.signals(id).unwrap().iter().all(|signal| signal.delivered_at.is_none()));
        progress.move_to(&root.workspace_id, State::Active, None, &ada()).unwrap();
        let told = progress.signals(&root.workspace_id).unwrap();
        let words: Vec<&str> = told.iter().map(|signal| signal.kind.as_str()).collect();
        assert_eq!(words, ["checkpoint", "blocked"]);
        assert_eq!(told[0].about.as_deref(), Some(record.id.as_str()));
        assert!(told[0].delivered_at < told[1].delivered_at && told[0].delivered_at.is_some());
        assert_eq!(open(&room, 19).deliver().unwrap(), 0);
    }

    fn pr_04_a_role_emits_only_its_own_signals(room: Room) {
        let progress = open(&room, 20);
        let trail = room.trail();
        let observer = below(&progress, &root(&progress), "observer");
        let id = &observer.workspace_id;
        let before = room.entries(&trail).len();
        assert!(progress.emit(id, &observer.token, SignalType::Checkpoint, None, None).is_err());
        assert_eq!(kinds(&room, &trail, before), [(id.to_string(), "permission_denied".to_owned())]);
        assert!(progress.emit(id, &observer.token, SignalType::Failed, None, None).is_err());
        progress.emit(id, &observer.token, SignalType::Complete, None, None).unwrap();
        assert_eq!(progress.workspace(id).unwrap().state, State::Integrating);
    }

    fn pr_42_head_final_and_chain_are_read_after_the_end(room: Room) {
        let progress = open(&room, 21);
        let worker = below(&progress, &root(&progress), "worker");
        let id = &worker.workspace_id;
        assert_eq!((progress.head(id).unwrap(), progress.newest_final(id).unwrap()), (None, None));
        let mut chain: Vec<Record> = Vec::new();
        for status in ["provisional", "final", "provisional"] {
            let mut asked = body(chain.last());
            asked["status"] = json!(status);
            chain.push(send(&progress, &worker, &asked).unwrap());
        }
        progress.move_to(id, State::Failed, None, &ada()).unwrap();
        assert_eq!(progress.newest_final(id).unwrap().unwrap(), chain[1]);
        assert_eq!(progress.head(id).unwrap().unwrap(), chain[2]);
        assert_eq!(progress.log(id).unwrap(), chain);
    }
}
