//! Every table, changed by force in every way: all of it is found, on both databases.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

mod scene;

use safepoint_model::{Span, TaskId, WorkspaceId};
use safepoint_progress::integrate::{Choice, Outcome, Resolve, Settling, Strategy};
use safepoint_progress::meter::Budget;
use safepoint_progress::state::State;
use safepoint_progress::{
    Apart, Beginning, Created, Given, ProgressError, Subject, Unheld, create_apart, remove_apart,
};
use scene::{Scene, ada, body, claimed, directory, wish, write};
use testkit::{Database, Room, on_every_store};

/// The tables, and what makes a row that nobody wrote: columns, and what is in them.
const TABLES: [(&str, Subject, &str, &str); 11] = [
    (
        "progress_meters",
        Subject::Meter,
        "workspace, number, tokens, cost, wall, bytes, counted, record_tokens, record_cost, record_wall, warned, exceeded, due, time, entry",
        "workspace, number + 1, tokens, cost, wall, bytes, counted, record_tokens, record_cost, record_wall, warned, exceeded, due, time, entry + 1000",
    ),
    (
        "progress_places",
        Subject::Place,
        "workspace, path, kind, origin, base, entry",
        "'ROOT', origin, kind, origin, base, entry",
    ),
    (
        "progress_removed_places",
        Subject::RemovedPlace,
        "workspace, time, entry",
        "'ROOT', time, entry",
    ),
    (
        "progress_integrations",
        Subject::Integration,
        "target, turn, source, record, mode, strategy, time, entry",
        "target, turn + 1, source, record, mode, strategy, time, entry + 1000",
    ),
    (
        "progress_integration_ends",
        Subject::IntegrationEnd,
        "source, target, turn, result, reason, time, entry",
        "source, target, turn + 1, result, reason, time, entry + 1000",
    ),
    (
        "progress_integration_actions",
        Subject::IntegrationAction,
        "action, source, target, turn, entry",
        "'act_0', source, target, turn, entry + 1000",
    ),
    (
        "progress_conflicts",
        Subject::Conflict,
        "source, target, turn, number, type, path, mergeable, description, entry",
        "source, target, turn, number + 1, type, path, mergeable, description, entry + 1000",
    ),
    (
        "progress_resolutions",
        Subject::Resolution,
        "source, target, turn, number, strategy, choice, content, time, entry",
        "source, target, turn, number + 1, strategy, choice, content, time, entry + 1000",
    ),
    (
        "progress_tasks",
        Subject::Task,
        "id, title, originator, created, entry",
        "'tsk_0000000000000000', title, originator, created, entry",
    ),
    (
        "progress_task_moves",
        Subject::TaskMove,
        "task, number, state, reason, workspace, record, time, entry",
        "task, number + 1, state, reason, workspace, record, time, entry",
    ),
    (
        "progress_task_dependencies",
        Subject::Dependency,
        "task, number, dependency, entry",
        "task, number + 1, 'tsk_0', entry",
    ),
];

/// What each column is changed to, and in which rows.
const CHANGES: [(&str, &str); 71] = [
    ("progress_meters", "number = number + 100"),
    ("progress_meters", "tokens = coalesce(tokens, 0) + 1"),
    ("progress_meters", "tokens = NULL WHERE tokens IS NOT NULL"),
    ("progress_meters", "tokens = -1 WHERE tokens IS NULL"),
    ("progress_meters", "cost = coalesce(cost, 0) + 1"),
    ("progress_meters", "wall = wall + 1"),
    ("progress_meters", "bytes = bytes + 1"),
    ("progress_meters", "counted = counted + 1"),
    (
        "progress_meters",
        "record_tokens = coalesce(record_tokens, 0) + 1",
    ),
    (
        "progress_meters",
        "record_cost = coalesce(record_cost, 0) + 1",
    ),
    ("progress_meters", "record_wall = record_wall + 1"),
    ("progress_meters", "warned = warned + 1"),
    ("progress_meters", "exceeded = exceeded + 1"),
    ("progress_meters", "due = NULL WHERE due IS NOT NULL"),
    ("progress_meters", "due = due + 1 WHERE due IS NOT NULL"),
    ("progress_meters", "time = time + 1"),
    ("progress_meters", "entry = entry + 1"),
    (
        "progress_meters",
        "workspace = 'ROOT', number = number + 100 WHERE number = 2",
    ),
    ("progress_places", "workspace = 'ROOT'"),
    ("progress_places", "path = origin"),
    ("progress_places", "origin = path"),
    ("progress_places", "kind = 'worktree'"),
    ("progress_places", "base = 'else'"),
    ("progress_places", "entry = entry + 1"),
    ("progress_removed_places", "workspace = 'ROOT'"),
    ("progress_removed_places", "time = time + 1"),
    ("progress_removed_places", "entry = entry + 1"),
    ("progress_integrations", "target = source"),
    ("progress_integrations", "turn = turn + 1"),
    ("progress_integrations", "source = target"),
    ("progress_integrations", "record = 'else'"),
    (
        "progress_integrations",
        "mode = 'salvage', strategy = 'evaluated'",
    ),
    ("progress_integrations", "strategy = 'direct'"),
    ("progress_integrations", "time = time + 1"),
    ("progress_integrations", "entry = entry + 1"),
    ("progress_integration_ends", "target = source"),
    ("progress_integration_ends", "turn = turn + 1"),
    ("progress_integration_ends", "source = target"),
    ("progress_integration_ends", "result = 'success'"),
    ("progress_integration_ends", "reason = 'else'"),
    ("progress_integration_ends", "time = time + 1"),
    ("progress_integration_ends", "entry = entry + 1"),
    ("progress_integration_actions", "action = 'act_0'"),
    ("progress_integration_actions", "target = source"),
    ("progress_integration_actions", "turn = turn + 1"),
    ("progress_integration_actions", "source = target"),
    ("progress_integration_actions", "entry = entry + 1"),
    ("progress_conflicts", "source = target"),
    ("progress_conflicts", "number = number + 5"),
    ("progress_conflicts", "type = 'constraint_breach'"),
    ("progress_conflicts", "path = NULL"),
    ("progress_conflicts", "mergeable = 1 - mergeable"),
    ("progress_conflicts", "description = 'else'"),
    ("progress_conflicts", "entry = entry + 1000"),
    ("progress_resolutions", "source = target"),
    ("progress_resolutions", "number = number + 5"),
    ("progress_resolutions", "strategy = 'human_escalate'"),
    ("progress_resolutions", "choice = 'ours'"),
    (
        "progress_resolutions",
        "content = NULL WHERE content IS NOT NULL",
    ),
    ("progress_resolutions", "time = time + 1"),
    ("progress_tasks", "title = 'else'"),
    ("progress_tasks", "originator = 'user:eve'"),
    ("progress_tasks", "created = created + 1"),
    (
        "progress_task_moves",
        "state = 'draft' WHERE state = 'in_progress'",
    ),
    ("progress_task_moves", "reason = 'else'"),
    (
        "progress_task_moves",
        "workspace = 'ROOT' WHERE state = 'assigned'",
    ),
    (
        "progress_task_moves",
        "record = 'else' WHERE state = 'completed'",
    ),
    ("progress_task_moves", "time = time + 1"),
    ("progress_task_moves", "entry = entry + 1"),
    ("progress_task_dependencies", "dependency = 'tsk_0'"),
    ("progress_task_dependencies", "number = number + 1"),
];

/// Runs statements by force, past what ties tables together.
fn force(room: &Room, statement: &str) {
    match room.database() {
        Database::Sqlite => room.tamper(&format!("PRAGMA foreign_keys = OFF; {statement}")),
        Database::Postgres => room.tamper(statement),
    }
}

/// A workspace of which there is a row in every table.
struct Full {
    root: Created,
    work: Apart,
    task: TaskId,
}

fn limits() -> Budget {
    Budget {
        tokens: Some(1_000),
        cost: Some(2.5),
        ..Budget::default()
    }
}

/// Up to the conflicts; then they are resolved, and all comes to its end.
fn conflicted(scene: &Scene) -> Full {
    scene.write("a", "1\n");
    scene.write("b", "1\n");
    let root = scene.root();
    let first = scene.below(&root, "worker");
    let before = scene
        .progress
        .create_task("before", &[], false, &ada())
        .unwrap()
        .task_id;
    scene
        .progress
        .assign(&before, &first.workspace_id, &ada())
        .unwrap();
    scene.record(&first, &claimed(None, "final", &[]));
    scene.complete(&first);
    scene
        .integrate(&wish(&first.workspace_id, Strategy::Direct))
        .unwrap();
    let task = scene
        .progress
        .create_task("all", &[before], false, &ada())
        .unwrap()
        .task_id;
    let given = Given {
        directive: Some("work"),
        budget: limits(),
        timeout: Some(Span::from_secs(900)),
        task: Some(&task),
        place: None,
    };
    let beginning = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
    let work = create_apart(
        &scene.progress,
        &scene.state,
        &scene.origin(),
        &beginning,
        &given,
        &ada(),
    )
    .unwrap();
    for name in ["a", "b"] {
        write(&work.place.path, name, "theirs\n");
        scene.write(name, "ours\n");
    }
    scene.record_in(&work, &body(None, "final")).unwrap();
    let id = &work.created.workspace_id;
    scene
        .progress
        .account(id, Some(100), Some(0.5), &ada())
        .unwrap();
    scene.complete(&work.created);
    let one = scene.integrate(&wish(id, Strategy::Layered)).unwrap();
    assert_eq!(one.conflicts.len(), 2);
    Full { root, work, task }
}

fn resolved(scene: &Scene, id: &WorkspaceId) {
    for (conflict, choice, content) in [
        ("c1", Choice::Content, Some(b"both\n".as_slice())),
        ("c2", Choice::Theirs, None),
    ] {
        let decision = Resolve {
            conflict,
            strategy: Settling::Coordinator,
            choice: Some(choice),
            content,
        };
        scene.progress.resolve(id, &decision, &ada()).unwrap();
    }
}

fn full(scene: &Scene) -> Full {
    let full = conflicted(scene);
    let id = &full.work.created.workspace_id;
    resolved(scene, id);
    assert_eq!(
        scene.resume(id).unwrap().result,
        Some(Outcome::ConflictResolved)
    );
    remove_apart(
        &scene.progress,
        &scene.state,
        &directory(&full.work.place.path),
        id,
        Unheld::Keep,
        &ada(),
    )
    .unwrap();
    full
}

on_every_store! {
    fn pr_13_whatever_is_changed_by_force_is_found_in_every_table(room: Room) {
        let scene = Scene::open(&room, 1);
        let Full { root, work, task } = full(&scene);
        let (above, id) = (&root.workspace_id, &work.created.workspace_id);
        let progress = &scene.progress;
        for workspace in [above, id] {
            assert_eq!(progress.verify(workspace).unwrap().first_bad, None);
        }
        let recovered = progress.recover().unwrap();
        assert!(recovered.faults.is_empty() && recovered.task_faults.is_empty(), "{recovered:?}");
        for (table, ..) in TABLES {
            force(&room, &format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}"));
        }
        // Found by the workspace, and by recovery, as the same thing.
        let found = |table: &str, subject: Subject, change: &str, workspace: &WorkspaceId| {
            let change = change.replace("ROOT", above.as_str());
            force(&room, &change);
            let fault = progress.verify(workspace).unwrap().first_bad.unwrap_or_else(|| unreachable!("not found: {change}"));
            assert_eq!(fault.subject, subject, "{change}: {fault:?}");
            let recovered = progress.recover().unwrap();
            let of_tasks = recovered.task_faults.iter().map(|(_, fault)| fault);
            let mut all = recovered.faults.iter().map(|(_, fault)| fault).chain(of_tasks);
            assert!(all.any(|one| *one == fault), "{change}: {recovered:?}");
            force(&room, &format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table}"));
            assert_eq!(progress.verify(workspace).unwrap().first_bad, None, "{change}");
            fault
        };
        let owner = |table: &str| match table {
            "progress_tasks" => format!("id = '{task}'"),
            table if table.starts_with("progress_task_") => format!("task = '{task}'"),
            table if table.starts_with("progress_int") || table.starts_with("progress_conf") || table.starts_with("progress_res") => format!("source = '{id}'"),
            _ => format!("workspace = '{id}'"),
        };
        for (table, subject, columns, values) in TABLES {
            let last = format!("{} AND entry = (SELECT max(entry) FROM {table} WHERE {0})", owner(table), table = table);
            let gone = found(table, subject, &format!("DELETE FROM {table} WHERE {last}"), id);
            assert_eq!(gone.reason, "it is in the trail, and not in the store");
            if subject == Subject::Task {
                continue; // one that is for no workspace: below
            }
            let whose = if values.starts_with("'ROOT'") { above } else { id };
            let more = found(table, subject, &format!("INSERT INTO {table} ({columns}) SELECT {values} FROM {table} WHERE {last}"), whose);
            assert_eq!(more.reason, "it is in the store, and not in the trail");
        }
        for (table, change) in CHANGES {
            let subject = TABLES.iter().find(|(name, ..)| *name == table).map(|(_, subject, ..)| *subject).unwrap();
            let (set, only) = change.split_once(" WHERE ").unwrap_or((change, "1 = 1"));
            let rows = format!("SELECT max(entry) FROM {table} WHERE {} AND {only}", owner(table));
            found(table, subject, &format!("UPDATE {table} SET {set} WHERE {} AND entry = ({rows})", owner(table)), id);
        }
        // Nobody is at a task that was never made, and recovery finds it.
        force(&room, "INSERT INTO progress_tasks (id, title, originator, created, entry) SELECT 'tsk_0000000000000000', title, originator, created, entry FROM progress_tasks WHERE title = 'all'");
        let recovered = progress.recover().unwrap();
        let (strange, fault) = recovered.task_faults.first().unwrap();
        assert_eq!((strange.as_str(), fault.subject, fault.reason), ("tsk_0000000000000000", Subject::Task, "it is in the store, and not in the trail"));
    }

    fn pr_13_limits_and_whole_workspaces_that_are_changed_by_force_are_found(room: Room) {
        let scene = Scene::open(&room, 2);
        let root = scene.root();
        let given = Given { directive: Some("work"), budget: limits(), timeout: Some(Span::from_secs(900)), ..Given::default() };
        let beginning = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        let worker = scene.progress.create(&beginning, &given, &ada()).unwrap();
        let id = &worker.workspace_id;
        let progress = &scene.progress;
        assert_eq!(progress.verify(id).unwrap().first_bad, None);
        force(&room, "CREATE TABLE kept AS SELECT * FROM progress_workspaces");
        for change in [
            format!("UPDATE progress_workspaces SET budget = NULL WHERE id = '{id}'"),
            format!("UPDATE progress_workspaces SET budget = '{{\"tokens\":5000}}' WHERE id = '{id}'"),
            format!("UPDATE progress_workspaces SET timeout = NULL WHERE id = '{id}'"),
            format!("UPDATE progress_workspaces SET timeout = timeout + 1 WHERE id = '{id}'"),
            format!("DELETE FROM progress_workspaces WHERE id = '{id}'"),
        ] {
            force(&room, &change);
            assert_eq!(progress.verify(id).unwrap().first_bad.unwrap().subject, Subject::Workspace, "{change}");
            let recovered = progress.recover().unwrap();
            assert_eq!(recovered.faults.iter().map(|(id, _)| id).collect::<Vec<_>>(), [id], "{change}");
            force(&room, "DELETE FROM progress_workspaces; INSERT INTO progress_workspaces SELECT * FROM kept");
            assert_eq!(progress.verify(id).unwrap().first_bad, None);
        }
        // A sweep that nobody made would keep its time from ever being up.
        force(&room, "INSERT INTO progress_sweeps VALUES (4000000000000000)");
        let fault = progress.verify(id).unwrap().first_bad.unwrap();
        assert_eq!((fault.subject, fault.reason), (Subject::Meter, "what is due was swept aside"));
    }

    fn pr_16_nothing_is_done_with_a_workspace_that_is_not_as_the_trail_tells(room: Room) {
        let scene = Scene::open(&room, 3);
        let root = scene.root();
        let worker = scene.below(&root, "worker");
        let id = &worker.workspace_id;
        scene.record(&worker, &claimed(None, "final", &["a"]));
        scene.complete(&worker);
        // Not the record that would be taken: something else of it.
        force(&room, &format!("UPDATE progress_moves SET reason = 'else' WHERE workspace = '{id}' AND number = 1"));
        assert_eq!(scene.progress.recover().unwrap().faults.len(), 1);
        assert_eq!(scene.progress.workspace(id).unwrap().state, State::Integrating); // only told of
        let before = room.entries(&scene.trail).len();
        let refused = scene.integrate(&wish(id, Strategy::Direct));
        assert!(matches!(refused, Err(ProgressError::Tampered { what: "move", .. })), "{refused:?}");
        let told = scene.told(&room, before);
        let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["integrity_violation", "integration_aborted", "workspace_state_changed"]);
        assert_eq!(scene.progress.workspace(id).unwrap().state, State::Failed);
        assert!(scene.progress.integrations(id).unwrap().is_empty());
    }

    fn pr_16_a_decision_that_was_changed_is_not_carried_out(room: Room) {
        let scene = Scene::open(&room, 4);
        let full = conflicted(&scene);
        let id = &full.work.created.workspace_id;
        resolved(&scene, id);
        force(&room, "UPDATE progress_resolutions SET choice = 'theirs', content = NULL WHERE number = 1");
        let refused = scene.resume(id);
        assert!(matches!(refused, Err(ProgressError::Tampered { what: "resolution", .. })), "{refused:?}");
        assert_eq!((scene.read("a").as_str(), scene.read("b").as_str()), ("ours\n", "ours\n"));
        assert_eq!(scene.progress.workspace(id).unwrap().state, State::Failed);
        assert_eq!(scene.progress.open_integration(id).unwrap(), None);
    }
}
