//! Meters, budgets and timeouts: one story, on both databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use safepoint_model::Span;
use safepoint_progress::integrate::{ConflictType, Finding, Mode, Strategy, Wish};
use safepoint_progress::meter::{Budget, Tolerance};
use safepoint_progress::record::WallTime;
use safepoint_progress::rejection::Reason;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Given, ProgressError};
use safepoint_store::{Durability, StoreError};
use serde_json::json;
use support::*;
use testkit::on_every_store;

fn tokens(limit: u64) -> Budget {
    Budget {
        tokens: Some(limit),
        ..Budget::default()
    }
}

fn seconds(limit: u64) -> Budget {
    Budget {
        wall_time: Some(WallTime::from_micros(limit * 1_000_000)),
        ..Budget::default()
    }
}

on_every_store! {
    fn pr_20_what_a_workspace_is_given_is_kept_and_told(room: Room) {
        let progress = open(&room, 1);
        let trail = room.trail();
        let root = root(&progress);
        let budget = Budget { tokens: Some(7), wall_time: seconds(60).wall_time, cost: Some(0.25), checkpoint_bytes: Some(9) };
        let before = room.entries(&trail).len();
        let worker = worker(&progress, &root, budget, Some("1h30m"));
        let found = open(&room, 2).workspace(&worker.workspace_id).unwrap();
        assert_eq!((found.budget, found.timeout), (budget, Some(Span::from_secs(5_400))));
        let told = told(&room, &trail, before);
        assert_eq!(told[0].1["budget"], json!({"tokens": 7, "wall_time": 60, "cost": 0.25, "checkpoint_bytes": 9}));
        assert_eq!((&told[0].1["timeout"], &told[0].1["task"]), (&json!(found.timeout), &json!(null)));
        let refused = |beginning: &Beginning<'_>, given: Given<'_>| {
            assert!(matches!(progress.create(beginning, &given, &ada()), Err(ProgressError::Invalid(_))));
        };
        let empty = Taxonomy::empty();
        refused(&Beginning::Root(&empty), Given { budget, ..Given::default() });
        let below = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        refused(&below, Given { timeout: Some(Span::ZERO), ..Given::default() });
        refused(&below, Given { budget: Budget { cost: Some(-1.0), ..Budget::default() }, ..Given::default() });
    }

    fn pr_20_the_meter_counts_reports_and_time_at_work(room: Room) {
        let progress = open(&room, 3);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), Budget::default(), None);
        let id = &worker.workspace_id;
        assert_eq!((progress.meter(id).unwrap().tokens_consumed, progress.meter(id).unwrap().cost), (None, None));
        let before = room.entries(&trail).len();
        progress.account(id, Some(100), Some(0.5), &gateway()).unwrap();
        progress.account(id, Some(20), None, &gateway()).unwrap();
        let told = told(&room, &trail, before);
        assert_eq!(kinds(&told), ["resources_metered", "resources_metered"]);
        assert_eq!(told[1].1["total"], json!({"tokens_consumed": 120, "cost": 0.5}));
        room.clock.move_by(10 * SECOND);
        progress.move_to(id, State::Suspended, None, &ada()).unwrap();
        room.clock.move_by(1_000 * SECOND);
        progress.move_to(id, State::Active, None, &ada()).unwrap();
        progress.move_to(id, State::Blocked, None, &ada()).unwrap();
        room.clock.move_by(5 * SECOND);
        let record = { progress.move_to(id, State::Active, None, &ada()).unwrap(); send(&progress, &worker, &body(None, "final")).unwrap() };
        let found = open(&room, 4).meter(id).unwrap();
        assert_eq!((found.tokens_consumed, found.cost), (Some(120), Some(0.5)));
        assert_eq!(found.checkpoint_bytes, record.to_canonical().unwrap().len() as u64);
        let wall = found.wall_time.as_micros();
        assert!((15 * SECOND).abs_diff(wall as i64) < 100, "{wall}");
        assert!(progress.account(id, None, Some(f64::NAN), &gateway()).is_err());
        // After the end nothing runs, and what was spent is still counted.
        progress.move_to(id, State::Failed, None, &ada()).unwrap();
        room.clock.move_by(50 * SECOND);
        let late = progress.account(id, Some(1), None, &gateway()).unwrap();
        assert_eq!(late.tokens_consumed, Some(121));
        assert!(late.wall_time.as_micros() < 16 * SECOND as u64);
    }

    fn pr_15_each_field_outside_tolerance_is_one_entry_after_the_signal(room: Room) {
        let progress = open(&room, 5);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), Budget::default(), None);
        let id = &worker.workspace_id;
        progress.account(id, Some(1_000), Some(2.0), &gateway()).unwrap();
        room.clock.move_by(60 * SECOND);
        let before = room.entries(&trail).len();
        let first = send_usage(&progress, &worker, None, json!({"tokens_consumed": 1_051, "wall_time": 80, "cost": 1.0}));
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["checkpoint_created", "signal_emitted", "resource_discrepancy", "resource_discrepancy", "resource_discrepancy", "signal_delivered"]);
        let fields: Vec<_> = found[2..5].iter().map(|(_, body)| body["field"].as_str().unwrap()).collect();
        assert_eq!(fields, ["tokens_consumed", "wall_time", "cost"]);
        let one = &found[2].1;
        assert_eq!((&one["agent_value"], &one["runtime_value"]), (&json!(1_051), &json!(1_000)));
        assert_eq!((&one["checkpoint_id"], &one["workspace"]), (&json!(first.id), &json!(id)));
        assert!(one["timestamp"].is_string());
        // Differences since the record before, not totals: those would be 1 500 and 3.
        progress.account(id, Some(500), Some(1.0), &gateway()).unwrap();
        room.clock.move_by(30 * SECOND);
        let before = room.entries(&trail).len();
        let second = send_usage(&progress, &worker, Some(&first), json!({"tokens_consumed": 500, "wall_time": 30, "cost": 1.0}));
        assert_eq!(kinds(&told(&room, &trail, before)), ["checkpoint_created", "signal_emitted", "signal_delivered"]);
        // Nothing was reported since: by our account it was nothing.
        let before = room.entries(&trail).len();
        send_usage(&progress, &worker, Some(&second), json!({"tokens_consumed": 1}));
        assert_eq!(told(&room, &trail, before)[2].1["runtime_value"], json!(0));
    }

    fn pr_20_absent_or_unmeasured_usage_is_no_discrepancy(room: Room) {
        let progress = open(&room, 6);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), Budget::default(), None);
        // Nobody ever reported tokens or cost: there is nothing to disagree with.
        let first = send_usage(&progress, &worker, None, json!({"tokens_consumed": 1_000_000, "cost": 99.0}));
        progress.account(&worker.workspace_id, Some(10), Some(1.0), &gateway()).unwrap();
        let second = send(&progress, &worker, &body(Some(&first), "provisional")).unwrap();
        send_usage(&progress, &worker, Some(&second), json!({}));
        assert_eq!(count(&room, &trail, "resource_discrepancy"), 0);
    }

    fn pr_20_tolerance_is_set_for_each_dimension(room: Room) {
        let tolerance = Tolerance { tokens: 0, wall_time: 100, cost: 50 };
        let progress = open(&room, 7).with_tolerance(tolerance);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), Budget::default(), None);
        progress.account(&worker.workspace_id, Some(1_000), Some(2.0), &gateway()).unwrap();
        room.clock.move_by(60 * SECOND);
        let before = room.entries(&trail).len();
        send_usage(&progress, &worker, None, json!({"tokens_consumed": 1_001, "wall_time": 100, "cost": 2.9}));
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["checkpoint_created", "signal_emitted", "resource_discrepancy", "signal_delivered"]);
        assert_eq!(found[2].1["field"], json!("tokens_consumed"));
    }

    fn pr_20_budgets_are_held_to_from_the_meter_alone(room: Room) {
        let progress = open(&room, 8);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), tokens(100), None);
        let id = &worker.workspace_id;
        // Whatever the agent says of itself.
        let first = send_usage(&progress, &worker, None, json!({"tokens_consumed": 1_000_000}));
        assert_eq!(count(&room, &trail, "budget_warning"), 0);
        progress.account(id, Some(79), None, &gateway()).unwrap();
        assert_eq!(count(&room, &trail, "budget_warning"), 0);
        progress.account(id, Some(1), None, &gateway()).unwrap();
        progress.account(id, Some(20), None, &gateway()).unwrap();
        assert_eq!((count(&room, &trail, "budget_warning"), count(&room, &trail, "budget_exceeded")), (1, 0));
        assert_eq!(progress.workspace(id).unwrap().state, State::Active);
        let before = room.entries(&trail).len();
        progress.account(id, Some(1), None, &gateway()).unwrap();
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["resources_metered", "budget_exceeded", "workspace_state_changed"]);
        assert_eq!((&found[1].1["used"], &found[1].1["limit"]), (&json!(101), &json!(100)));
        let moved = &found[2].1;
        assert_eq!((&moved["to"], &moved["reason"], &moved["budget_dimension"]), (&json!("failed"), &json!("budget_exceeded"), &json!("tokens_consumed")));
        assert_eq!(send(&progress, &worker, &body(Some(&first), "final")).unwrap_err().reason, Reason::WorkspaceNotActive);
        progress.account(id, Some(1), None, &gateway()).unwrap();
        assert_eq!(count(&room, &trail, "budget_exceeded"), 1);
    }

    fn pr_20_a_warning_comes_before_the_limit_even_in_one_step(room: Room) {
        let progress = open(&room, 9);
        let trail = room.trail();
        let budget = Budget { tokens: Some(100), cost: Some(1.0), ..Budget::default() };
        let worker = worker(&progress, &root(&progress), budget, None);
        let before = room.entries(&trail).len();
        progress.account(&worker.workspace_id, Some(500), Some(0.9), &gateway()).unwrap();
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["resources_metered", "budget_warning", "budget_warning", "budget_exceeded", "workspace_state_changed"]);
        assert_eq!(found[2].1["budget_dimension"], json!("cost"));
        assert_eq!(found[3].1["budget_dimension"], json!("tokens_consumed"));
    }

    fn pr_20_the_record_that_passes_a_limit_is_kept_and_then_the_workspace_fails(room: Room) {
        let progress = open(&room, 10);
        let trail = room.trail();
        let root = root(&progress);
        let budget = Budget { checkpoint_bytes: Some(100), ..Budget::default() };
        let worker = worker(&progress, &root, budget, None);
        let before = room.entries(&trail).len();
        let record = send(&progress, &worker, &body(None, "final")).unwrap();
        assert_eq!(progress.head(&worker.workspace_id).unwrap(), Some(record));
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Failed);
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["checkpoint_created", "signal_emitted", "budget_warning", "budget_exceeded", "workspace_state_changed", "signal_delivered"]);
        assert_eq!(found[4].1["budget_dimension"], json!("checkpoint_bytes"));
        // The same with time, when nobody looked before.
        let worker = support::worker(&progress, &root, seconds(60), None);
        room.clock.move_by(61 * SECOND);
        assert!(send(&progress, &worker, &body(None, "final")).is_ok());
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Failed);
    }

    fn pr_20_what_is_reported_after_complete_fails_nothing(room: Room) {
        let progress = open(&room, 11);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), tokens(100), None);
        let id = &worker.workspace_id;
        progress.emit(id, &worker.token, SignalType::Complete, None, None).unwrap();
        progress.account(id, Some(200), None, &gateway()).unwrap();
        progress.account(id, Some(200), None, &gateway()).unwrap();
        assert_eq!((count(&room, &trail, "budget_warning"), count(&room, &trail, "budget_exceeded")), (1, 1));
        assert_eq!(progress.workspace(id).unwrap().state, State::Integrating);
    }

    fn pr_20_time_is_warned_of_and_then_up_without_anybody_reporting(room: Room) {
        let progress = open(&room, 12);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), seconds(100), None);
        let id = &worker.workspace_id;
        room.clock.move_by(79 * SECOND);
        let before = room.entries(&trail).len();
        assert_eq!(progress.tick().unwrap(), []);
        assert_eq!(room.entries(&trail).len(), before);
        room.clock.move_by(2 * SECOND);
        assert_eq!((progress.tick().unwrap(), progress.tick().unwrap()), (vec![], vec![]));
        assert_eq!(kinds(&told(&room, &trail, before)), ["budget_warning"]);
        room.clock.move_by(20 * SECOND);
        assert_eq!(progress.tick().unwrap(), std::slice::from_ref(id));
        assert_eq!(progress.tick().unwrap(), []);
        assert_eq!(kinds(&told(&room, &trail, before)), ["budget_warning", "budget_exceeded", "workspace_state_changed"]);
    }

    fn pr_20_a_timeout_counts_active_blocked_and_conflicted(room: Room) {
        let progress = open(&room, 13);
        let trail = room.trail();
        let root = root(&progress);
        let idle = below(&progress, &root, &Given { timeout: Some(Span::from_secs(60)), ..Given::default() });
        let one = worker(&progress, &root, Budget::default(), Some("60s"));
        let two = worker(&progress, &root, Budget::default(), Some("60s"));
        room.clock.move_by(30 * SECOND);
        progress.move_to(&one.workspace_id, State::Suspended, None, &ada()).unwrap();
        room.clock.move_by(29 * SECOND);
        // Being integrated is not the agent's time; a conflict is somebody's again.
        send(&progress, &two, &body(None, "final")).unwrap();
        progress.emit(&two.workspace_id, &two.token, SignalType::Complete, None, None).unwrap();
        room.clock.move_by(1_000 * SECOND);
        assert_eq!(progress.tick().unwrap(), []);
        let findings = [Finding { kind: ConflictType::ConstraintBreach, description: "too large".to_owned() }];
        let wish = Wish { source: &two.workspace_id, mode: Mode::Normal, strategy: Strategy::Evaluated, record: None, findings: &findings };
        progress.prepare(&wish, None, &ada()).unwrap();
        assert_eq!(progress.workspace(&two.workspace_id).unwrap().state, State::Conflicted);
        progress.move_to(&one.workspace_id, State::Active, None, &ada()).unwrap();
        room.clock.move_by(2 * SECOND);
        let before = room.entries(&trail).len();
        assert_eq!(progress.tick().unwrap(), std::slice::from_ref(&two.workspace_id));
        assert_eq!(told(&room, &trail, before)[0].1["reason"], json!("conflict_timeout"));
        room.clock.move_by(29 * SECOND);
        let before = room.entries(&trail).len();
        assert_eq!(progress.tick().unwrap(), std::slice::from_ref(&one.workspace_id));
        assert_eq!(told(&room, &trail, before)[0].1["reason"], json!("timeout"));
        // What never left idle has not begun.
        assert_eq!(progress.workspace(&idle.workspace_id).unwrap().state, State::Idle);
    }

    fn pr_20_what_comes_after_the_time_is_up_is_late_whether_anybody_looked_or_not(room: Room) {
        let progress = open(&room, 14);
        let trail = room.trail();
        let root = root(&progress);
        let worker = worker(&progress, &root, Budget::default(), Some("60s"));
        room.clock.move_by(61 * SECOND);
        let before = room.entries(&trail).len();
        assert_eq!(send(&progress, &worker, &body(None, "final")).unwrap_err().reason, Reason::WorkspaceNotActive);
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["workspace_state_changed", "checkpoint_rejected"]);
        assert_eq!(found[0].1["reason"], json!("timeout"));
        let worker = support::worker(&progress, &root, Budget::default(), Some("60s"));
        room.clock.move_by(61 * SECOND);
        let before = room.entries(&trail).len();
        progress.emit(&worker.workspace_id, &worker.token, SignalType::Complete, None, None).unwrap();
        assert_eq!(kinds(&told(&room, &trail, before)), ["workspace_state_changed", "signal_emitted", "signal_delivered"]);
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().state, State::Failed);
        assert_eq!(progress.tick().unwrap(), []);
    }

    fn pr_20_a_late_report_finds_the_timeout_first(room: Room) {
        let progress = open(&room, 17);
        let trail = room.trail();
        let worker = worker(&progress, &root(&progress), tokens(100), Some("60s"));
        room.clock.move_by(61 * SECOND);
        let before = room.entries(&trail).len();
        let metered = progress.account(&worker.workspace_id, Some(500), None, &gateway()).unwrap();
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["workspace_state_changed", "resources_metered"]);
        assert_eq!((&found[0].1["reason"], metered.tokens_consumed), (&json!("timeout"), Some(500)));
    }

    fn pr_20_what_is_below_a_workspace_that_times_out_fails_once(room: Room) {
        let progress = open(&room, 18);
        let trail = room.trail();
        let parent = worker(&progress, &root(&progress), Budget::default(), Some("30s"));
        let child = worker(&progress, &parent, Budget::default(), Some("60s"));
        room.clock.move_by(61 * SECOND);
        let before = room.entries(&trail).len();
        // Both are over when somebody looks: the one above takes the other with it.
        assert_eq!(progress.tick().unwrap(), std::slice::from_ref(&parent.workspace_id));
        assert_eq!(progress.tick().unwrap(), []);
        let found = told(&room, &trail, before);
        let moves: Vec<_> = found.iter().map(|(_, body)| (&body["workspace"], &body["reason"])).collect();
        assert_eq!(moves, [(&json!(parent.workspace_id), &json!("timeout")), (&json!(child.workspace_id), &json!("parent_failed"))]);
    }

    fn pr_20_what_a_record_changes_follows_from_its_own_row(room: Room) {
        let progress = open(&room, 19);
        let trail = room.trail();
        let root = root(&progress);
        let rows = || {
            let rows: Result<Vec<()>, StoreError> = trail.store().read(|sql| safepoint_store::query_all(sql, "SELECT number FROM progress_meters", &[], |_| Ok(())));
            rows.unwrap().len()
        };
        let free = worker(&progress, &root, Budget::default(), None);
        progress.account(&free.workspace_id, Some(100), None, &gateway()).unwrap();
        let before = rows();
        let first = send_usage(&progress, &free, None, json!({"tokens_consumed": 100}));
        room.clock.move_by(5 * SECOND);
        let second = send_usage(&progress, &free, Some(&first), json!({"tokens_consumed": 0, "wall_time": 5}));
        assert_eq!((rows(), count(&room, &trail, "resource_discrepancy")), (before, 0));
        // Counted from the record before, as somebody else finds it.
        send_usage(&open(&room, 20), &free, Some(&second), json!({"tokens_consumed": 100}));
        assert_eq!((rows(), count(&room, &trail, "resource_discrepancy")), (before, 1));
        let bytes: usize = progress.log(&free.workspace_id).unwrap().iter().map(|record| record.to_canonical().unwrap().len()).sum();
        let metered = open(&room, 21).meter(&free.workspace_id).unwrap();
        assert_eq!((metered.checkpoint_bytes, metered.tokens_consumed), (bytes as u64, Some(100)));
        assert_eq!((metered.wall_time.as_micros() + 500_000) / 1_000_000, 5);

        // One that is the first to come near a limit has a row, since something else is due then.
        let timed = worker(&progress, &root, seconds(100), None);
        let before = rows();
        let first = send(&progress, &timed, &body(None, "provisional")).unwrap();
        assert_eq!(rows(), before);
        room.clock.move_by(81 * SECOND);
        send(&progress, &timed, &body(Some(&first), "provisional")).unwrap();
        assert_eq!((rows(), count(&room, &trail, "budget_warning")), (before + 1, 1));
        assert_eq!(progress.tick().unwrap(), []);
        room.clock.move_by(20 * SECOND);
        assert_eq!(progress.tick().unwrap(), std::slice::from_ref(&timed.workspace_id));
        for workspace in [&free, &timed] {
            assert!(progress.verify(&workspace.workspace_id).unwrap().valid);
        }
    }

    fn pr_20_ticks_do_not_look_at_what_is_over_for_ever(room: Room) {
        let progress = open(&room, 15);
        let root = root(&progress);
        let worker = worker(&progress, &root, Budget::default(), Some("60s"));
        for _ in 0..70 {
            progress.account(&worker.workspace_id, Some(1), None, &gateway()).unwrap();
        }
        progress.move_to(&worker.workspace_id, State::Failed, None, &ada()).unwrap();
        room.clock.move_by(61 * SECOND);
        let later = support::worker(&progress, &root, Budget::default(), Some("60s"));
        assert_eq!(progress.tick().unwrap(), []);
        let due = |statement: &str| {
            let rows: Result<Vec<i64>, StoreError> = room.trail().store().read(|sql| safepoint_store::query_all(sql, statement, &[], |row| row.integer(0)));
            rows.unwrap().len()
        };
        assert!(due("SELECT due FROM progress_meters WHERE due IS NOT NULL") > 70);
        assert_eq!(due("SELECT due FROM progress_meters WHERE due > (SELECT max(time) FROM progress_sweeps)"), 1);
        room.clock.move_by(61 * SECOND);
        assert_eq!(progress.tick().unwrap(), [later.workspace_id]);
    }

    fn pr_20_accounts_cannot_be_rewritten(room: Room) {
        let progress = open(&room, 16);
        let worker = worker(&progress, &root(&progress), tokens(100), None);
        progress.account(&worker.workspace_id, Some(50), None, &gateway()).unwrap();
        let trail = room.trail();
        for statement in [
            "UPDATE progress_meters SET tokens = 0",
            "DELETE FROM progress_meters",
            "INSERT INTO progress_meters SELECT workspace, number, 0, cost, wall, bytes, counted, record_tokens, record_cost, record_wall, warned, exceeded, due, time, entry FROM progress_meters",
        ] {
            let done: Result<u64, StoreError> = trail.store().write(Durability::Sync, |sql| sql.execute(statement, &[]));
            let error = format!("{:?}", done.unwrap_err());
            assert!(error.contains("append-only"), "{statement}: {error}");
        }
    }
}
