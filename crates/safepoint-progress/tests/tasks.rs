//! Tasks and what moves them: one story, on both databases.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod support;

use safepoint_model::TaskId;
use safepoint_progress::integrate::{Declined, Mode, Strategy, Wish};
use safepoint_progress::meter::Budget;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::task::{Task, TaskState};
use safepoint_progress::{Beginning, Created, Given, Progress, ProgressError};
use safepoint_store::{Durability, StoreError};
use serde_json::json;
use support::*;
use testkit::on_every_store;

fn pending(progress: &Progress, title: &str, after: &[TaskId]) -> TaskId {
    let task = progress.create_task(title, after, false, &ada()).unwrap();
    assert_eq!(task.status, TaskState::Pending);
    task.task_id
}

/// A workspace that is made for a task, active at once.
fn at(progress: &Progress, root: &Created, task: &TaskId) -> Created {
    let given = Given {
        directive: Some("work"),
        task: Some(task),
        ..Given::default()
    };
    below(progress, root, &given)
}

fn status(progress: &Progress, task: &TaskId) -> TaskState {
    progress.task(task).unwrap().status
}

fn complete(progress: &Progress, worker: &Created) {
    let emitted = progress.emit(
        &worker.workspace_id,
        &worker.token,
        SignalType::Complete,
        None,
        None,
    );
    emitted.unwrap();
}

/// Its work is taken over.
fn take_over(progress: &Progress, worker: &Created) {
    let wish = Wish {
        source: &worker.workspace_id,
        mode: Mode::Normal,
        strategy: Strategy::Direct,
        record: None,
        findings: &[],
    };
    progress.prepare(&wish, None, &ada()).unwrap();
}

fn is_refused(result: Result<Task, ProgressError>) -> bool {
    matches!(
        result,
        Err(ProgressError::Unfit(_) | ProgressError::Invalid(_))
    )
}

on_every_store! {
    fn pr_34_a_task_goes_from_draft_to_integrated_with_its_workspace(room: Room) {
        let progress = open(&room, 1);
        let trail = room.trail();
        let root = root(&progress);
        let before = room.entries(&trail).len();
        let draft = progress.create_task("write it", &[], true, &ada()).unwrap();
        let id = &draft.task_id;
        assert_eq!(draft.status, TaskState::Draft);
        assert_eq!(progress.approve(id, &ada()).unwrap().status, TaskState::Pending);
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["task_created", "task_status_changed", "task_approved"]);
        assert_eq!(found[2].1["approval_source"], json!("user:ada"));

        let before = room.entries(&trail).len();
        let worker = at(&progress, &root, id);
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["workspace_created", "task_status_changed", "task_assigned", "workspace_state_changed", "task_status_changed"]);
        assert_eq!(found[0].1["task"], json!(id));
        assert_eq!((&found[2].1["workspace_id"], &found[2].1["attempt_number"]), (&json!(worker.workspace_id), &json!(1)));
        assert_eq!(status(&progress, id), TaskState::InProgress);
        assert_eq!(progress.workspace(&worker.workspace_id).unwrap().task.as_ref(), Some(id));

        // The most recent final record is the result, and not the head.
        let first = send(&progress, &worker, &body(None, "final")).unwrap();
        let second = send(&progress, &worker, &body(Some(&first), "final")).unwrap();
        send(&progress, &worker, &body(Some(&second), "provisional")).unwrap();
        assert_eq!(progress.task(id).unwrap().checkpoint_ref, None);
        let before = room.entries(&trail).len();
        complete(&progress, &worker);
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["signal_emitted", "workspace_state_changed", "task_status_changed", "task_completed", "signal_delivered"]);
        let told_of = &found[3].1;
        assert_eq!((&told_of["task_id"], &told_of["workspace_id"], &told_of["checkpoint_id"]), (&json!(id), &json!(worker.workspace_id), &json!(second.id)));
        take_over(&progress, &worker);
        let done = open(&room, 2).task(id).unwrap();
        assert_eq!((done.status, done.checkpoint_ref), (TaskState::Integrated, Some(second.id)));
        assert_eq!(done.workspace_history, [worker.workspace_id]);
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn pr_34_a_task_completes_only_with_a_final_record(room: Room) {
        let progress = open(&room, 3);
        let trail = room.trail();
        let root = root(&progress);
        let id = pending(&progress, "write it", &[]);
        let worker = at(&progress, &root, &id);
        send(&progress, &worker, &body(None, "provisional")).unwrap();
        complete(&progress, &worker);
        // It can only fail now, with its workspace.
        assert_eq!(status(&progress, &id), TaskState::InProgress);
        progress.move_to(&worker.workspace_id, State::Failed, Some("rejected"), &ada()).unwrap();
        assert_eq!(status(&progress, &id), TaskState::Failed);
        assert_eq!((count(&room, &trail, "task_completed"), count(&room, &trail, "task_failed")), (0, 1));
        // Nor does closing make up for it: there is no way to close it.
        let other = pending(&progress, "write more", &[]);
        let worker = at(&progress, &root, &other);
        complete(&progress, &worker);
        assert!(progress.move_to(&worker.workspace_id, State::Closed, None, &ada()).is_err());
        progress.decline(&worker.workspace_id, Declined::Rejected, &ada()).unwrap();
        assert_eq!(status(&progress, &other), TaskState::Failed);
    }

    fn pr_34_a_workspace_that_fails_fails_its_task_which_is_tried_again(room: Room) {
        let progress = open(&room, 4);
        let trail = room.trail();
        let root = root(&progress);
        let id = pending(&progress, "write it", &[]);
        let given = Given { directive: Some("work"), task: Some(&id), budget: Budget { tokens: Some(10), ..Budget::default() }, ..Given::default() };
        let first = below(&progress, &root, &given);
        let before = room.entries(&trail).len();
        progress.account(&first.workspace_id, Some(11), None, &gateway()).unwrap();
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["resources_metered", "budget_warning", "budget_exceeded", "workspace_state_changed", "task_status_changed", "task_failed"]);
        assert_eq!(found[5].1["reason"], json!("budget_exceeded"));
        assert_eq!(progress.retry(&id, &ada()).unwrap().status, TaskState::Pending);
        let second = at(&progress, &root, &id);
        let task = progress.task(&id).unwrap();
        assert_eq!(task.workspace_history, [first.workspace_id.clone(), second.workspace_id.clone()]);
        // Rejected after it was completed: failed, and without a result.
        send(&progress, &second, &body(None, "final")).unwrap();
        complete(&progress, &second);
        assert_eq!(status(&progress, &id), TaskState::Completed);
        progress.move_to(&second.workspace_id, State::Failed, Some("revision_required"), &ada()).unwrap();
        let task = progress.task(&id).unwrap();
        assert_eq!((task.status, task.checkpoint_ref), (TaskState::Failed, None));
        // A failed root takes everything with it.
        progress.retry(&id, &ada()).unwrap();
        at(&progress, &root, &id);
        progress.move_to(&root.workspace_id, State::Failed, None, &ada()).unwrap();
        assert_eq!(status(&progress, &id), TaskState::Failed);
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn pr_34_dependencies_come_first_and_never_in_a_circle(room: Room) {
        let progress = open(&room, 5);
        let trail = room.trail();
        let root = root(&progress);
        let one = pending(&progress, "one", &[]);
        let two = pending(&progress, "two", &[one.clone(), one.clone()]);
        let three = pending(&progress, "three", std::slice::from_ref(&two));
        assert_eq!(progress.task(&two).unwrap().dependencies, std::slice::from_ref(&one));
        let unknown: TaskId = "tsk_0000000000000000".parse().unwrap();
        let before = room.entries(&trail).len();
        assert!(matches!(progress.create_task("four", &[unknown], false, &ada()), Err(ProgressError::NotFound { .. })));
        assert_eq!(progress.tasks().unwrap().len(), 3);
        assert_eq!(room.entries(&trail).len(), before);
        for (task, on) in [(&one, &three), (&one, &one), (&two, &three)] {
            assert!(is_refused(progress.add_dependency(task, on, &ada())));
        }
        assert_eq!(kinds(&told(&room, &trail, before)), ["task_dependency_refused"; 3]);
        progress.add_dependency(&three, &one, &ada()).unwrap();
        assert_eq!(progress.task(&three).unwrap().dependencies, [two.clone(), one.clone()]);

        // Neither an existing workspace nor a new one is given what has to wait.
        let idle = below(&progress, &root, &Given::default());
        let before = room.entries(&trail).len();
        assert!(is_refused(progress.assign(&two, &idle.workspace_id, &ada())));
        let beginning = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        let made = progress.create(&beginning, &Given { task: Some(&two), ..Given::default() }, &ada());
        assert!(matches!(made, Err(ProgressError::Unfit(_))));
        let found = told(&room, &trail, before);
        assert_eq!(kinds(&found), ["task_state_refused", "task_state_refused"]);
        assert_eq!(found[1].1["reason"], json!("dependencies_not_completed"));
        assert_eq!(progress.workspaces().unwrap().len(), 2);

        let worker = at(&progress, &root, &one);
        assert!(is_refused(progress.assign(&two, &idle.workspace_id, &ada())));
        send(&progress, &worker, &body(None, "final")).unwrap();
        complete(&progress, &worker);
        assert_eq!(progress.assign(&two, &idle.workspace_id, &ada()).unwrap().status, TaskState::Assigned);
        assert!(is_refused(progress.add_dependency(&two, &three, &ada())));
    }

    fn pr_34_steps_that_there_are_not_are_refused_and_recorded(room: Room) {
        let progress = open(&room, 6);
        let trail = room.trail();
        let root = root(&progress);
        let draft = progress.create_task("draft", &[], true, &ada()).unwrap().task_id;
        let (one, two) = (pending(&progress, "one", &[]), pending(&progress, "two", &[]));
        let worker = worker(&progress, &root, Budget::default(), None);
        let id = &worker.workspace_id;
        // It is active already, so the task is in progress at once.
        assert_eq!(progress.assign(&one, id, &ada()).unwrap().status, TaskState::InProgress);
        let over = support::worker(&progress, &root, Budget::default(), None);
        complete(&progress, &over);
        let free = below(&progress, &root, &Given::default());
        let before = room.entries(&trail).len();
        let refused = [
            progress.assign(&draft, &free.workspace_id, &ada()),
            progress.retry(&draft, &ada()),
            progress.approve(&two, &ada()),
            progress.retry(&two, &ada()),
            // One workspace at a time, and one task for a workspace.
            progress.assign(&one, &free.workspace_id, &ada()),
            progress.assign(&two, id, &ada()),
            progress.assign(&two, &over.workspace_id, &ada()),
            progress.assign(&two, &root.workspace_id, &ada()),
        ];
        let count = refused.len();
        for (place, result) in refused.into_iter().enumerate() {
            assert!(is_refused(result), "{place}");
        }
        assert_eq!(kinds(&told(&room, &trail, before)), vec!["task_state_refused"; count]);
        // What is cancelled stays so, whatever its workspace does, which goes on.
        progress.cancel(&one, &ada()).unwrap();
        assert!(is_refused(progress.cancel(&one, &ada())));
        send(&progress, &worker, &body(None, "final")).unwrap();
        complete(&progress, &worker);
        progress.move_to(id, State::Failed, None, &ada()).unwrap();
        assert_eq!(status(&progress, &one), TaskState::Cancelled);
        for title in ["", " \n", "a\0b"] {
            assert!(is_refused(progress.create_task(title, &[], false, &ada())));
        }
        assert!(matches!(progress.task(&"tsk_0000000000000000".parse().unwrap()), Err(ProgressError::NotFound { .. })));
    }

    fn pr_06_a_workspace_without_a_directive_is_not_begun_by_its_agent(room: Room) {
        let progress = open(&room, 7);
        let root = root(&progress);
        let id = pending(&progress, "one", &[]);
        let idle = below(&progress, &root, &Given { task: Some(&id), ..Given::default() });
        assert_eq!(status(&progress, &id), TaskState::Assigned);
        let trail = room.trail();
        let before = told(&room, &trail, 0).len();
        progress.emit(&idle.workspace_id, &idle.token, SignalType::Started, None, None).unwrap();
        // Recorded, delivered, and nothing else.
        assert_eq!(kinds(&told(&room, &trail, before)), ["signal_emitted", "signal_delivered"]);
        assert_eq!(progress.workspace(&idle.workspace_id).unwrap().state, State::Idle);
        assert_eq!(status(&progress, &id), TaskState::Assigned);
        assert_eq!(progress.recover().unwrap().transitions_made, 0);
        progress.move_to(&idle.workspace_id, State::Active, None, &ada()).unwrap();
        assert_eq!(status(&progress, &id), TaskState::InProgress);
        // An idle workspace that is given up gives its task up.
        let other = pending(&progress, "two", &[]);
        let idle = below(&progress, &root, &Given { task: Some(&other), ..Given::default() });
        progress.move_to(&idle.workspace_id, State::Failed, None, &ada()).unwrap();
        assert_eq!(status(&progress, &other), TaskState::Failed);
    }

    fn pr_34_tasks_cannot_be_rewritten(room: Room) {
        let progress = open(&room, 8);
        let root = root(&progress);
        let one = pending(&progress, "one", &[]);
        let two = pending(&progress, "two", std::slice::from_ref(&one));
        let worker = at(&progress, &root, &one);
        let trail = room.trail();
        let change = |statement: &str| -> Result<u64, StoreError> {
            trail.store().write(Durability::Sync, |sql| sql.execute(statement, &[]))
        };
        for statement in [
            "UPDATE progress_tasks SET title = 'x'",
            "DELETE FROM progress_tasks",
            "UPDATE progress_task_moves SET state = 'completed'",
            "DELETE FROM progress_task_moves",
            "DELETE FROM progress_task_dependencies",
        ] {
            let error = format!("{:?}", change(statement).unwrap_err());
            assert!(error.contains("append-only"), "{statement}: {error}");
        }
        // The database itself keeps a workspace from being at two tasks.
        let second = |workspace: &str| format!("INSERT INTO progress_task_moves (task, number, state, workspace, time, entry) VALUES ('{two}', 2, 'assigned', '{workspace}', 1, 1)");
        assert!(change(&second(worker.workspace_id.as_str())).is_err());
        let free = below(&progress, &root, &Given::default());
        assert_eq!(change(&second(free.workspace_id.as_str())).unwrap(), 1);
    }
}
