//! What is remembered of a workspace holds only while nobody else has written, on both databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod story;

use safepoint_progress::rejection::Reason;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::{ProgressError, Subject};
use story::{ada, all_delivered_in_order, below, body, chain, of_kind, open, root, send};
use testkit::{Room, on_every_store};

on_every_store! {
    fn pr_12_what_others_do_between_two_records_counts(room: Room) {
        let (ours, theirs) = (open(&room, 1), open(&room, 2));
        let root = root(&ours);
        let worker = below(&ours, &root);
        let id = &worker.workspace_id;
        let second = chain(&ours, &worker, 2).pop().unwrap();
        // A record of theirs is the head, and ours no longer.
        let third = send(&theirs, &worker, &body(Some(&second))).unwrap();
        let refused = send(&ours, &worker, &body(Some(&second))).unwrap_err();
        assert_eq!(refused.reason, Reason::InvalidParent);
        let fourth = send(&ours, &worker, &body(Some(&third))).unwrap();
        // Nor is it active any more when they say so.
        theirs.move_to(id, State::Suspended, None, &ada()).unwrap();
        let refused = send(&ours, &worker, &body(Some(&fourth))).unwrap_err();
        assert_eq!(refused.reason, Reason::WorkspaceNotActive);
        theirs.move_to(id, State::Active, None, &ada()).unwrap();
        let fifth = send(&ours, &worker, &body(Some(&fourth))).unwrap();
        // Nor is it ours when they give it away.
        let theirs_now = theirs.migrate(id, &ada()).unwrap();
        let text = body(Some(&fifth)).to_string();
        let refused = ours.checkpoint(id, &worker.token, text.as_bytes(), None, None);
        assert!(matches!(refused, Err(ProgressError::NotTheAgent(_))), "{refused:?}");
        send(&ours, &theirs_now, &body(Some(&fifth))).unwrap();
        assert_eq!(ours.log(id).unwrap().len(), 6);
        assert!(ours.verify(id).unwrap().valid);
        all_delivered_in_order(&room, &room.trail(), &root.workspace_id, "all of it");
    }

    fn pr_04_a_parent_that_cannot_hear_any_more_is_not_told(room: Room) {
        let (ours, theirs) = (open(&room, 3), open(&room, 4));
        let top = root(&ours);
        let parent = below(&ours, &top);
        let worker = below(&ours, &parent);
        let second = chain(&ours, &worker, 2).pop().unwrap();
        let delivered = || of_kind(&room, &room.trail(), "signal_delivered").len();
        assert_eq!(delivered(), 2);
        for by in [&ours, &theirs] {
            let before = delivered();
            by.emit(&parent.workspace_id, &parent.token, SignalType::Blocked, Some("no key"), None).unwrap();
            let now = delivered(); // the signal of the parent itself
            assert_eq!(now, before + 1);
            let head = ours.head(&worker.workspace_id).unwrap();
            let next = send(&ours, &worker, &body(head.as_ref())).unwrap();
            assert_eq!(delivered(), now, "it waits");
            by.move_to(&parent.workspace_id, State::Active, None, &ada()).unwrap();
            assert_eq!(delivered(), now + 1);
            // And those after it are told at once again.
            send(&ours, &worker, &body(Some(&next))).unwrap();
            assert_eq!(delivered(), now + 2);
        }
        assert!(second.id < ours.head(&worker.workspace_id).unwrap().unwrap().id);
        all_delivered_in_order(&room, &room.trail(), &top.workspace_id, "in the end");
        assert_eq!(ours.recover().unwrap().signals_requeued, 0);
    }

    fn pr_13_what_is_remembered_does_not_hide_what_was_changed(room: Room) {
        let changes = [
            "UPDATE progress_moves SET state = 'suspended' WHERE workspace = '{id}' AND number = 1",
            "UPDATE progress_bindings SET digest = NULL WHERE workspace = '{id}'",
            "UPDATE progress_records SET status = 'final' WHERE workspace = '{id}' AND number = 2",
        ];
        for change in changes {
            let room = Room::new(room.database());
            let progress = open(&room, 5);
            let worker = below(&progress, &root(&progress));
            let id = &worker.workspace_id;
            let second = chain(&progress, &worker, 2).pop().unwrap();
            room.tamper(&change.replace("{id}", id.as_str()));
            let text = body(Some(&second)).to_string();
            let refused = progress.checkpoint(id, &worker.token, text.as_bytes(), None, None);
            assert!(matches!(refused, Err(ProgressError::Tampered { .. })), "{change}: {refused:?}");
            assert!(!progress.verify(id).unwrap().valid);
        }
    }

    fn pr_15_a_delivery_right_behind_its_emission_is_told_once_and_needs_no_row(room: Room) {
        let progress = open(&room, 6);
        let top = root(&progress);
        let worker = below(&progress, &top);
        chain(&progress, &worker, 3);
        let trail = room.trail();
        let rows = || {
            let count = "SELECT count(*) FROM progress_deliveries";
            let read = trail.store().read(|sql| safepoint_store::query_one(sql, count, &[], |row| row.integer(0)));
            read.unwrap().unwrap()
        };
        assert_eq!(rows(), 0);
        let signals = progress.signals(&worker.workspace_id).unwrap();
        assert!(signals.len() == 3 && signals.iter().all(|signal| signal.delivered_at.is_some()));
        assert_eq!(progress.signals(&top.workspace_id).unwrap(), signals);
        // Whoever puts it into line again has nothing delivered twice.
        let emission = of_kind(&room, &trail, "signal_emitted")[0].0.seq;
        room.tamper(&format!("INSERT INTO progress_waiting VALUES ('{}', {emission})", top.workspace_id));
        progress.deliver().unwrap();
        all_delivered_in_order(&room, &trail, &top.workspace_id, "after another try");
        // A move stands between this one and its delivery.
        progress.emit(&worker.workspace_id, &worker.token, SignalType::Blocked, Some("no key"), None).unwrap();
        assert_eq!(rows(), 1);
        // A row that says the same again is found.
        room.tamper(&format!("INSERT INTO progress_deliveries SELECT {emission}, max(seq) FROM trail_entries"));
        let fault = progress.verify(&worker.workspace_id).unwrap().first_bad.unwrap();
        assert_eq!(fault.subject, Subject::Delivery);
    }
}
