//! Nothing changes unnoticed, and what was cut off is brought to its end: one story, on both databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod story;

use safepoint_model::Timestamp;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::{Presence, ProgressError, Subject};
use safepoint_store::Durability;
use safepoint_trail::TrailError;
use serde_json::json;
use story::{
    ada, all_delivered_in_order, below, body, chain, emit_without_move, of_kind, open, root, send,
};
use testkit::{Database, Room, Seeded, on_every_store};

on_every_store! {
    fn pr_40_a_line_before_nobody_keeps_nobody_from_going_on(room: Room) {
        let progress = open(&room, 1);
        let worker = below(&progress, &root(&progress));
        room.tamper("INSERT INTO progress_waiting (parent, emission) VALUES ('x', 0)");
        let progress = open(&room, 2);
        assert_eq!(progress.deliver().unwrap(), 0);
        let left = room.store().read(|sql| {
            safepoint_store::query_one(sql, "SELECT count(*) FROM progress_waiting", &[], |row| row.integer(0))
        });
        assert_eq!(left.unwrap(), Some(0));
        chain(&progress, &worker, 1);
    }

    fn pr_13_whatever_is_changed_by_force_is_found(room: Room) {
        let first = {
            let progress = open(&room, 1);
            let root = root(&progress);
            let worker = below(&progress, &root);
            let records = chain(&progress, &worker, 3);
            let next = body(records.last()).to_string();
            progress.checkpoint(&worker.workspace_id, &worker.token, next.as_bytes(), Some("key"), None).unwrap().unwrap();
            progress.emit(&worker.workspace_id, &worker.token, SignalType::Escalation, Some("look"), None).unwrap();
            // Something stands between these and their delivery.
            for _ in 0..2 {
                progress.emit(&worker.workspace_id, &worker.token, SignalType::Blocked, Some("no key"), None).unwrap();
                progress.move_to(&worker.workspace_id, State::Active, None, &ada()).unwrap();
            }
            progress.migrate(&worker.workspace_id, &ada()).unwrap();
            (root, worker, records)
        };
        let (root, worker, records) = first;
        let (above, id) = (&root.workspace_id, &worker.workspace_id);
        let progress = open(&room, 2);
        for workspace in [above, id] {
            let verified = progress.verify(workspace).unwrap();
            assert!(verified.valid && verified.first_bad.is_none(), "{verified:?}");
        }
        assert_eq!(progress.verify(id).unwrap().checked, 4);
        let second = &records[1].id;
        let cases = [
            (id, Subject::Workspace, format!("UPDATE progress_workspaces SET role = 'observer' WHERE id = '{id}'"), format!("UPDATE progress_workspaces SET role = 'worker' WHERE id = '{id}'")),
            (id, Subject::Workspace, format!("UPDATE progress_workspaces SET directive = 'else' WHERE id = '{id}'"), format!("UPDATE progress_workspaces SET directive = 'work' WHERE id = '{id}'")),
            (id, Subject::Workspace, format!("UPDATE progress_workspaces SET originator = 'user:eve' WHERE id = '{id}'"), format!("UPDATE progress_workspaces SET originator = 'user:ada' WHERE id = '{id}'")),
            (id, Subject::Workspace, format!("UPDATE progress_workspaces SET created = created + 1 WHERE id = '{id}'"), format!("UPDATE progress_workspaces SET created = created - 1 WHERE id = '{id}'")),
            (id, Subject::Workspace, format!("UPDATE progress_workspaces SET taxonomy = 'x' WHERE id = '{above}'"), format!("UPDATE progress_workspaces SET taxonomy = '' WHERE id = '{above}'")),
            (id, Subject::Move, format!("UPDATE progress_moves SET state = 'blocked' WHERE workspace = '{id}' AND number = 1"), format!("UPDATE progress_moves SET state = 'active' WHERE workspace = '{id}' AND number = 1")),
            (id, Subject::Move, format!("UPDATE progress_moves SET reason = 'x' WHERE workspace = '{id}' AND number = 7"), format!("UPDATE progress_moves SET reason = 'migrated' WHERE workspace = '{id}' AND number = 7")),
            (id, Subject::Move, format!("UPDATE progress_moves SET time = time + 1 WHERE workspace = '{id}' AND number = 1"), format!("UPDATE progress_moves SET time = time - 1 WHERE workspace = '{id}' AND number = 1")),
            (id, Subject::Move, format!("INSERT INTO progress_moves SELECT workspace, 8, 'closed', NULL, NULL, time, entry FROM progress_moves WHERE workspace = '{id}' AND number = 1"), "DELETE FROM progress_moves WHERE number = 8".to_owned()),
            (id, Subject::Checkpoint, format!("UPDATE progress_records SET confidence = 'high' WHERE id = '{second}'"), format!("UPDATE progress_records SET confidence = 'medium' WHERE id = '{second}'")),
            (id, Subject::Checkpoint, format!("UPDATE progress_records SET time = time + 1 WHERE id = '{second}'"), format!("UPDATE progress_records SET time = time - 1 WHERE id = '{second}'")),
            (id, Subject::Checkpoint, format!("UPDATE progress_records SET bytes = bytes + 1 WHERE id = '{second}'"), format!("UPDATE progress_records SET bytes = bytes - 1 WHERE id = '{second}'")),
            (id, Subject::Checkpoint, "UPDATE progress_records SET request_key = 'other' WHERE number = 4".to_owned(), "UPDATE progress_records SET request_key = 'key' WHERE number = 4".to_owned()),
            (id, Subject::Checkpoint, "UPDATE progress_records SET entry = entry + 1 WHERE number = 2".to_owned(), "UPDATE progress_records SET entry = entry - 1 WHERE number = 2".to_owned()),
            (above, Subject::Delivery, "UPDATE progress_deliveries SET delivery = delivery + 1 WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned(), "UPDATE progress_deliveries SET delivery = delivery - 1 WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned()),
            (id, Subject::Delivery, "UPDATE progress_deliveries SET delivery = (SELECT max(delivery) FROM progress_deliveries) WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned(), "UPDATE progress_deliveries SET delivery = (SELECT min(seq) FROM trail_entries WHERE kind = 'signal_delivered' AND seq > emission) WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned()),
            (id, Subject::Delivery, "INSERT INTO progress_deliveries SELECT min(seq), min(seq) + 2 FROM trail_entries WHERE kind = 'checkpoint_created'".to_owned(), "DELETE FROM progress_deliveries WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned()),
            // One that stands right behind its emission has no row, neither its own nor another.
            (id, Subject::Delivery, "INSERT INTO progress_deliveries SELECT min(seq), (SELECT max(delivery) FROM progress_deliveries) FROM trail_entries WHERE kind = 'signal_emitted'".to_owned(), "DELETE FROM progress_deliveries WHERE emission = (SELECT min(emission) FROM progress_deliveries)".to_owned()),
            // What names no entry of any workspace is the root's to answer for.
            (above, Subject::Delivery, "INSERT INTO progress_deliveries SELECT max(seq) + 1000, max(seq) + 2000 FROM trail_entries".to_owned(), "DELETE FROM progress_deliveries WHERE emission = (SELECT max(emission) FROM progress_deliveries)".to_owned()),
        ];
        for (workspace, subject, change, back) in cases {
            room.tamper(&change);
            let found = progress.verify(workspace).unwrap();
            assert_eq!(found.first_bad.map(|fault| fault.subject), Some(subject), "{change}");
            assert!(!found.valid);
            room.tamper(&back);
            assert!(progress.verify(workspace).unwrap().valid, "{back}");
        }
        // What cannot be put back comes last.
        room.tamper(&format!("UPDATE progress_bindings SET digest = (SELECT digest FROM progress_bindings WHERE workspace = '{id}' AND number = 1) WHERE workspace = '{id}' AND number = 2"));
        assert_eq!(progress.verify(id).unwrap().first_bad.unwrap().subject, Subject::Binding);
        room.tamper("DELETE FROM progress_deliveries WHERE emission = (SELECT max(emission) FROM progress_deliveries)");
        assert_eq!(progress.verify(above).unwrap().first_bad.unwrap().subject, Subject::Delivery);
    }

    fn pr_13_an_entry_that_is_changed_with_its_row_is_found(room: Room) {
        let progress = open(&room, 3);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress));
        chain(&progress, &worker, 2);
        let entries = room.entries(&trail);
        let place = entries.iter().position(|entry| entry.kind.as_str() == "checkpoint_created").unwrap();
        let mut changed = entries.clone();
        changed[place].body = changed[place].body.replace("medium", "high");
        room.rewrite(&changed);
        let found = progress.verify(&worker.workspace_id).unwrap().first_bad.unwrap();
        assert_eq!((found.subject, found.id.as_deref()), (Subject::TrailEntry, Some(entries[place].id.as_str())));
        changed.remove(place);
        room.rewrite(&changed);
        let found = progress.verify(&worker.workspace_id).unwrap().first_bad.unwrap();
        assert_eq!((found.subject, found.reason), (Subject::TrailEntry, "it does not follow the entry before it in its stream"));
    }

    fn pr_16_a_record_is_proved_by_its_entry_or_the_violation_is_recorded(room: Room) {
        let progress = open(&room, 4);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress));
        let records = chain(&progress, &worker, 3);
        let id = &worker.workspace_id;
        let proved = |record: &safepoint_progress::record::Record| {
            let proved: Result<_, ProgressError> = trail.write(Durability::Sync, |writing| progress.proved(writing, id, &record.id));
            proved.unwrap()
        };
        assert_eq!(proved(&records[0]).unwrap(), records[0]);
        assert!(of_kind(&room, &trail, "integrity_violation").is_empty());
        // The row alone; then a row that agrees with itself, since whoever changes one changes both.
        room.tamper(&format!("UPDATE progress_records SET confidence = 'high' WHERE id = '{}'", records[0].id));
        room.tamper(&format!("UPDATE progress_records SET body = (SELECT body FROM progress_records WHERE number = 3), proof = (SELECT proof FROM progress_records WHERE number = 3) WHERE id = '{}'", records[1].id));
        room.tamper(&format!("UPDATE progress_records SET entry = 0 WHERE id = '{}'", records[2].id));
        for (record, wrong) in records.iter().zip(["hash_mismatch", "hash_mismatch", "proof_missing"]) {
            let before = room.entries(&trail).len();
            assert_eq!(proved(record).unwrap_err().violation.as_str(), wrong);
            let entries = room.entries(&trail);
            assert_eq!(entries.len(), before + 1);
            let last = entries.last().unwrap();
            assert_eq!((last.stream.as_str(), last.kind.as_str()), ("store", "integrity_violation"));
            let told: serde_json::Value = serde_json::from_str(&last.body).unwrap();
            assert_eq!((&told["subject_type"], &told["subject_id"]), (&json!("checkpoint"), &json!(record.id)));
            assert_eq!((&told["violation"], &told["action_taken"]), (&json!(wrong), &json!("rejected")));
        }
    }

    fn pr_04_parents_that_ended_are_not_told_and_not_looked_at_again(room: Room) {
        let progress = open(&room, 5);
        let trail = room.trail();
        let root = root(&progress);
        let (middle, other) = (below(&progress, &root), below(&progress, &root));
        let leaf = below(&progress, &middle);
        progress.move_to(&middle.workspace_id, State::Suspended, None, &ada()).unwrap();
        chain(&progress, &leaf, 2);
        chain(&progress, &other, 1);
        assert_eq!(progress.deliver().unwrap(), 0);
        progress.move_to(&middle.workspace_id, State::Failed, None, &ada()).unwrap();
        assert_eq!(progress.deliver().unwrap(), 0);
        assert_eq!(of_kind(&room, &trail, "signal_delivered").len(), 1);
        let waiting = trail.store().read(|sql| safepoint_store::query_one(sql, "SELECT count(*) FROM progress_waiting", &[], |row| row.integer(0)));
        assert_eq!(waiting.unwrap(), Some(0));
        assert_eq!(progress.recover().unwrap().signals_requeued, 0);
        assert!(progress.verify(&leaf.workspace_id).unwrap().valid);
    }

    fn pr_15_a_record_is_kept_when_only_its_delivery_failed(room: Room) {
        let progress = open(&room, 6);
        let trail = room.trail();
        let root = root(&progress);
        let worker = below(&progress, &root);
        let (on, off) = match room.database() {
            Database::Sqlite => ("CREATE TRIGGER nobody BEFORE INSERT ON trail_entries WHEN NEW.kind = 'signal_delivered' BEGIN SELECT RAISE(ABORT, 'no'); END", "DROP TRIGGER nobody"),
            Database::Postgres => ("ALTER TABLE trail_entries ADD CONSTRAINT nobody CHECK (kind <> 'signal_delivered') NOT VALID", "ALTER TABLE trail_entries DROP CONSTRAINT nobody"),
        };
        room.tamper(on);
        let first = send(&progress, &worker, &body(None)).unwrap();
        progress.emit(&worker.workspace_id, &worker.token, SignalType::Blocked, Some("no key"), None).unwrap();
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Blocked);
        assert!(of_kind(&room, &trail, "signal_delivered").is_empty());
        assert!(progress.deliver().is_err());
        room.tamper(if room.database() == Database::Sqlite { "SELECT 1" } else { off }); // triggers go with every tampering
        assert_eq!(progress.head(&worker.workspace_id).unwrap(), Some(first));
        assert_eq!(open(&room, 7).deliver().unwrap(), 2);
        all_delivered_in_order(&room, &trail, &root.workspace_id, "after the failure");
        assert_eq!(of_kind(&room, &trail, "signal_emitted").len(), 2);
    }

    fn pr_40_recovery_that_has_nothing_to_do_only_says_so(room: Room) {
        let progress = open(&room, 8);
        let trail = room.trail();
        let root = root(&progress);
        let worker = below(&progress, &root);
        chain(&progress, &worker, 3);
        for _ in 0..2 {
            let before = room.entries(&trail).len();
            room.clock.move_by(5_000_000);
            let recovered = progress.recover().unwrap();
            assert_eq!((recovered.workspaces_recovered, recovered.workspaces_failed, recovered.signals_requeued), (2, 0, 0));
            assert_eq!(recovered.trail_entries_examined, before as u64);
            assert!(recovered.downtime.as_micros() > 4_000_000);
            let entries = room.entries(&trail);
            assert_eq!(entries.len(), before + 1);
            assert_eq!(entries.last().unwrap().kind.as_str(), "recovery_completed");
        }
    }

    fn pr_40_what_was_asked_for_and_not_made_is_made(room: Room) {
        for (kind, to) in [("complete", State::Integrating), ("failed", State::Failed), ("blocked", State::Blocked)] {
            let room = Room::new(room.database());
            let worker = {
                let progress = open(&room, 9);
                let root = root(&progress);
                let worker = below(&progress, &root);
                chain(&progress, &worker, 1);
                emit_without_move(&room, &worker.workspace_id, kind);
                assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Active);
                worker
            };
            let progress = open(&room, 10);
            let recovered = progress.recover().unwrap();
            assert_eq!((recovered.transitions_made, recovered.signals_requeued), (1, 1), "{kind}");
            assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, to);
            assert!(progress.verify(&worker.workspace_id).unwrap().valid);
            let again = progress.recover().unwrap();
            assert_eq!((again.transitions_made, again.signals_requeued), (0, 0), "{kind}");
        }
    }

    fn pr_40_a_lost_line_is_made_anew(room: Room) {
        let progress = open(&room, 11);
        let trail = room.trail();
        let root = root(&progress);
        let (one, other) = (below(&progress, &root), below(&progress, &root));
        progress.move_to(&root.workspace_id, State::Suspended, None, &ada()).unwrap();
        chain(&progress, &one, 3);
        chain(&progress, &other, 2);
        room.tamper("DELETE FROM progress_waiting");
        assert_eq!(progress.recover().unwrap().signals_requeued, 0); // nobody can take them yet
        progress.move_to(&root.workspace_id, State::Active, None, &ada()).unwrap();
        assert_eq!(of_kind(&room, &trail, "signal_delivered").len(), 5);
        // What stands in a line and was delivered is not delivered again.
        let delivered = of_kind(&room, &trail, "signal_delivered")[0].1["emission"].as_u64().unwrap();
        room.tamper(&format!("INSERT INTO progress_waiting VALUES ('{}', {delivered})", root.workspace_id));
        progress.deliver().unwrap();
        all_delivered_in_order(&room, &trail, &root.workspace_id, "a lost line");
    }

    fn pr_40_only_a_process_that_was_cut_off_is_recovered_from(room: Room) {
        let progress = open(&room, 12);
        let trail = room.trail();
        let root = root(&progress);
        let worker = below(&progress, &root);
        let marks = room.path().join("present");
        progress.move_to(&root.workspace_id, State::Suspended, None, &ada()).unwrap();
        chain(&progress, &worker, 2);
        let random = Seeded::new(12);
        let living = Presence::enter(&marks, &random).unwrap();
        let before = room.entries(&trail).len();
        {
            let second = Presence::enter(&marks, &random).unwrap();
            assert!(progress.resume(&second).unwrap().is_none());
        }
        assert!(progress.resume(&living).unwrap().is_none());
        assert_eq!(room.entries(&trail).len(), before, "nothing was in flight");
        // A mark that nobody holds.
        safepoint_store::durable::create_empty(&marks.join("ses_0000000000000000")).unwrap();
        let third = Presence::enter(&marks, &random).unwrap();
        assert!(progress.resume(&third).unwrap().is_some());
        assert_eq!(of_kind(&room, &trail, "recovery_completed").len(), 1);
        drop(third);
        let fourth = Presence::enter(&marks, &random).unwrap();
        assert!(!fourth.found_cut_off());
        drop((fourth, living));
        assert_eq!(std::fs::read_dir(&marks).unwrap().count(), 0);
    }

    fn pr_40_a_workspace_that_was_changed_is_told_of_once(room: Room) {
        let progress = open(&room, 13);
        let trail = room.trail();
        let root = root(&progress);
        let worker = below(&progress, &root);
        let records = chain(&progress, &worker, 2);
        room.tamper(&format!("UPDATE progress_records SET status = 'final' WHERE id = '{}'", records[0].id));
        for _ in 0..2 {
            let recovered = progress.recover().unwrap();
            assert_eq!((recovered.workspaces_recovered, recovered.workspaces_failed), (1, 1));
            assert_eq!(recovered.faults[0].0, worker.workspace_id);
        }
        let told = of_kind(&room, &trail, "integrity_violation");
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1["subject_id"], json!(records[0].id));
    }

    fn pr_41_a_trail_that_does_not_verify_stops_recovery_and_names_the_entry(room: Room) {
        let progress = open(&room, 14);
        let trail = room.trail();
        let worker = below(&progress, &root(&progress));
        chain(&progress, &worker, 2);
        let mut entries = room.entries(&trail);
        let bad = entries[4].id.clone();
        entries[4].body = entries[4].body.replace("worker", "observer").replace("artifact", "observation").replace("active", "closed");
        assert_ne!(entries[4].body, room.entries(&trail)[4].body);
        room.rewrite(&entries);
        let Err(ProgressError::Trail(TrailError::Tampered(found))) = progress.recover() else { unreachable!("it recovered") };
        assert_eq!((found.seq, found.id.as_deref()), (4, Some(bad.as_str())));
        assert_eq!(room.entries(&trail).len(), entries.len());
    }

    fn pr_10_times_rise_while_the_clock_is_set_back_under_a_transaction(room: Room) {
        // A clock that goes back each time it is asked: between a record and its entry, too.
        struct Backwards(std::sync::atomic::AtomicI64);
        impl safepoint_model::Clock for Backwards {
            fn now(&self) -> Timestamp {
                Timestamp::from_micros(self.0.fetch_sub(3_600_000_000, std::sync::atomic::Ordering::SeqCst))
            }
        }
        let clock = std::sync::Arc::new(Backwards(1_800_000_000_000_000.into()));
        let mut around = room.surroundings();
        around.clock = clock.clone();
        let trail = safepoint_trail::Trail::open(room.store(), &around).unwrap();
        let progress = safepoint_progress::Progress::open(trail.clone(), clock, std::sync::Arc::new(Seeded::new(15))).unwrap();
        let worker = below(&progress, &root(&progress));
        let records = chain(&progress, &worker, 5);
        assert!(records.is_sorted_by(|one, other| one.timestamp < other.timestamp && one.id < other.id));
        assert!(progress.verify(&worker.workspace_id).unwrap().valid);
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }
}
