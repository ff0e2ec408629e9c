//! Killed between the store and a directory: whoever comes next brings it to an end.
//!
//! The test runs itself in a second process, with a fault point to die at.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "tests"
)]

mod scene;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use safepoint_model::WorkspaceId;
use safepoint_progress::integrate::{Choice, Outcome, Resolve, Settling, Strategy};
use safepoint_progress::state::State;
use safepoint_progress::{Unheld, checkpoint_in, remove_apart};
use safepoint_store::{Location, Options, Store};
use safepoint_trail::Trail;
use scene::{Scene, ada, body, directory, wish, write};
use testkit::{Database, RealClock, Room};

/// The room of another process, opened by its directory.
fn enter(top: &Path, room: &Room, seed: u64) -> Scene {
    let location = Location::Sqlite(top.join("store.db"));
    let options = Options {
        lock_timeout: Duration::from_secs(20),
    };
    let store = Store::open(&location, options).unwrap();
    let around = safepoint_trail::Surroundings {
        keys: top.join("keys"),
        witnesses: top.join("witness"),
        blobs: safepoint_store::Blobs::new(top.join("blobs")),
        clock: Arc::new(RealClock),
        ..room.surroundings()
    };
    let trail = Trail::open(Arc::new(store), &around).unwrap();
    Scene::of(top, trail, Arc::new(RealClock), seed)
}

/// What the second process does.
#[test]
#[ignore = "runs only in the second process"]
fn second_process() {
    let (Ok(top), Ok(task)) = (
        std::env::var("SAFEPOINT_ROOM"),
        std::env::var("SAFEPOINT_TASK"),
    ) else {
        return;
    };
    let own = Room::new(Database::Sqlite);
    let scene = enter(Path::new(&top), &own, 77);
    match task.split_once(' ') {
        Some(("integrate", id)) => {
            let id: WorkspaceId = id.parse().unwrap();
            scene.integrate(&wish(&id, Strategy::Layered)).unwrap();
        }
        Some(("recover", _)) => {
            scene
                .progress
                .recover_integrations(&scene.state, &ada())
                .unwrap();
        }
        Some(("create", root)) => {
            let parent = safepoint_progress::Created {
                workspace_id: root.parse().unwrap(),
                token: String::new(),
            };
            scene.apart(&parent);
        }
        Some(("record", whose)) => {
            let (id, token) = whose.split_once(' ').unwrap();
            let (id, here, text) = at_work(&scene, id);
            let made = checkpoint_in(
                &scene.progress,
                &scene.state,
                &here,
                &id,
                token,
                text.as_bytes(),
                None,
            );
            made.unwrap().unwrap();
        }
        Some(("remove", id)) => {
            let (id, here, _) = at_work(&scene, id);
            let by = ada();
            let removed =
                remove_apart(&scene.progress, &scene.state, &here, &id, Unheld::Keep, &by);
            removed.unwrap();
        }
        Some(("resolve", id)) => {
            let id = id.parse().unwrap();
            scene.progress.resolve(&id, &THEIRS, &ada()).unwrap();
        }
        Some(("resume", id)) => {
            scene.resume(&id.parse().unwrap()).unwrap();
        }
        _ => panic!("{task}"),
    }
}

/// A workspace, its directory, and what its agent asks for first.
fn at_work(scene: &Scene, id: &str) -> (WorkspaceId, safepoint_state::Workspace, String) {
    let id: WorkspaceId = id.parse().unwrap();
    let place = scene.progress.place(&id).unwrap().unwrap();
    (id, directory(&place.path), body(None, "final").to_string())
}

/// The decision that the work counts.
const THEIRS: Resolve<'_> = Resolve {
    conflict: "c1",
    strategy: Settling::Coordinator,
    choice: Some(Choice::Theirs),
    content: None,
};

/// Runs a task in a second process. False when it never came to the point where it was to die.
fn killed(room: &Room, point: &str, task: &str) -> bool {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "second_process", "--ignored", "--test-threads=1"])
        .env("SAFEPOINT_ROOM", room.path())
        .env("SAFEPOINT_TASK", task)
        .env("SAFEPOINT_FAULT", point)
        .output()
        .unwrap();
    match output.status.signal() {
        Some(9) => true,
        None if output.status.success() => false,
        _ => panic!("{point}: {output:?}"),
    }
}

/// A run with work that is done, and its origin changed since.
fn scene(room: &Room) -> (Scene, WorkspaceId) {
    let scene = Scene::open(room, 5);
    scene.write("shared", "1\n2\n3\n4\n5\n");
    scene.write("gone", "x\n");
    let work = scene.apart(&scene.root());
    write(&work.place.path, "shared", "1\n2\n3\n4\nfive\n");
    write(&work.place.path, "new/file", "new\n");
    std::fs::remove_file(work.place.path.join("gone")).unwrap();
    scene.record_in(&work, &body(None, "final")).unwrap();
    scene.complete(&work.created);
    scene.write("shared", "one\n2\n3\n4\n5\n");
    (scene, work.created.workspace_id)
}

fn is_brought(scene: &Scene, when: &str) -> bool {
    let root = scene.origin().root;
    let found = (
        scene.read("shared"),
        root.join("new/file").exists(),
        root.join("gone").exists(),
    );
    match (found.0.as_str(), found.1, found.2) {
        ("one\n2\n3\n4\nfive\n", true, false) => true,
        ("one\n2\n3\n4\n5\n", false, true) => false,
        _ => panic!("{when}: half-way: {found:?}"),
    }
}

const POINTS: [&str; 12] = [
    "integrate.proved",
    "integrate.started",
    "restore.secured",
    "restore.journalled",
    "restore.staged",
    "restore.applying",
    "restore.applied",
    "restore.verified",
    "restore.recorded",
    "restore.cleaned",
    "integrate.brought",
    "integrate.concluded",
];

#[test]
fn pr_32_an_integration_that_is_killed_anywhere_is_ended_by_whoever_comes_next() {
    for point in POINTS {
        let room = Room::new(Database::Sqlite);
        let (first, id) = scene(&room);
        drop(first);
        assert!(killed(&room, point, &format!("integrate {id}")), "{point}");
        let again = Scene::open(&room, 6);
        // Killed once more while it recovers, where it comes that far.
        drop(again);
        killed(&room, "recover.planned", "recover all");
        let again = Scene::open(&room, 7);
        let recover = || {
            let done = again.progress.recover_integrations(&again.state, &ada());
            let done = done.unwrap();
            assert!(done.failed.is_empty(), "{point}: {:?}", done.failed);
            done.ended
        };
        let ended = recover();
        assert_eq!(recover(), [], "{point}");
        assert_eq!(
            again.progress.integrations_cut_off().unwrap(),
            [],
            "{point}"
        );
        let brought = is_brought(&again, point);
        let state = again.progress.workspace(&id).unwrap().state;
        let wanted = if brought {
            State::Closed
        } else {
            State::Integrating
        };
        assert_eq!(state, wanted, "{point}: {ended:?}");
        if !brought {
            let one = again.integrate(&wish(&id, Strategy::Layered)).unwrap();
            assert_eq!(one.result, Some(Outcome::Success), "{point}");
            assert!(is_brought(&again, point));
        }
        let told = again.told(&room, 0);
        let count = |wanted: &str| told.iter().filter(|(kind, _)| kind == wanted).count();
        assert_eq!(
            (count("integration_completed"), count("work_brought")),
            (1, 1),
            "{point}"
        );
        let integrate = |(kind, body): &&(String, serde_json::Value)| {
            kind == "signal_emitted" && body["type"] == "integrate"
        };
        assert_eq!(told.iter().filter(integrate).count(), 1, "{point}");
    }
}

#[test]
fn pr_07_a_directory_whose_workspace_never_came_to_be_is_cleared() {
    for point in [
        "isolate.begun",
        "isolate.made",
        "isolate.filled",
        "isolate.recorded",
        "apart.made",
    ] {
        let room = Room::new(Database::Sqlite);
        let first = Scene::open(&room, 5);
        first.git(&["init", "--quiet"]);
        first.write("a", "a\n");
        first.git(&["add", "--all"]);
        first.git(&["commit", "--quiet", "--message=first"]);
        let root = first.root();
        assert!(
            killed(&room, point, &format!("create {}", root.workspace_id)),
            "{point}"
        );
        assert_eq!(first.progress.places().unwrap(), [], "{point}");
        assert_eq!(
            first.progress.clear_apart(&first.state).unwrap(),
            1,
            "{point}"
        );
        assert_eq!(
            first.git(&["worktree", "list"]).lines().count(),
            1,
            "{point}"
        );
        assert_eq!(
            first.progress.clear_apart(&first.state).unwrap(),
            0,
            "{point}"
        );
        let work = first.apart(&root);
        assert_eq!(
            std::fs::read_to_string(work.place.path.join("a")).unwrap(),
            "a\n"
        );
    }
}

#[test]
fn pr_40_a_record_that_is_cut_off_after_the_look_at_its_directory_is_not_there() {
    let room = Room::new(Database::Sqlite);
    let first = Scene::open(&room, 5);
    first.write("a", "a\n");
    let work = first.apart(&first.root());
    write(&work.place.path, "a", "changed\n");
    let (id, token) = (&work.created.workspace_id, &work.created.token);
    let entries = first.told(&room, 0).len();
    let task = format!("record {id} {token}");
    assert!(killed(&room, "record.seen", &task));
    assert_eq!(first.progress.log(id).unwrap(), []);
    let told = first.told(&room, entries);
    // The directory was captured; no record was told of, and nobody else was.
    let of_a_record = |(_, body): &(String, serde_json::Value)| body.get("integrity").is_some();
    assert!(!told.iter().any(of_a_record), "{told:?}");
    assert!(
        told.iter().all(|(kind, _)| kind != "signal_emitted"),
        "{told:?}"
    );
    // It is asked for anew, and is the first; what was seen before takes nothing from it.
    let made = first.record_in(&work, &body(None, "final")).unwrap();
    assert_eq!(made.payload.files_changed, ["a"]);
    assert_eq!(first.progress.log(id).unwrap(), [made]);
    let recovered = first.progress.recover().unwrap();
    assert_eq!(recovered.workspaces_failed, 0, "{recovered:?}");
}

#[test]
fn pr_07_a_directory_that_was_to_be_removed_is_cleared_by_whoever_comes_next() {
    let room = Room::new(Database::Sqlite);
    let first = Scene::open(&room, 5);
    first.git(&["init", "--quiet"]);
    first.write("a", "a\n");
    first.git(&["add", "--all"]);
    first.git(&["commit", "--quiet", "--message=first"]);
    let root = first.root();
    let work = first.apart(&root);
    let id = &work.created.workspace_id;
    write(&work.place.path, "a", "half done\n");
    let failed = (State::Failed, Some("aborted_by_coordinator"));
    let moved = first.progress.move_to(id, failed.0, failed.1, &ada());
    moved.unwrap();
    assert!(killed(&room, "apart.forgotten", &format!("remove {id}")));
    // It is told of once, and its work is in a checkpoint.
    let removed = |(kind, _): &&(String, serde_json::Value)| kind == "workspace_directory_removed";
    assert_eq!(first.told(&room, 0).iter().filter(removed).count(), 1);
    assert!(work.place.path.exists());
    assert_eq!(first.progress.clear_apart(&first.state).unwrap(), 1);
    assert!(!work.place.path.exists());
    assert_eq!(first.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(first.progress.clear_apart(&first.state).unwrap(), 0);
    assert_eq!(first.told(&room, 0).iter().filter(removed).count(), 1);
    assert!(first.progress.verify(id).unwrap().valid);
}

/// Work that does not fit with what was done since, and the integration that found it.
fn conflicted(room: &Room) -> (Scene, WorkspaceId) {
    let scene = Scene::open(room, 5);
    scene.write("a", "1\n");
    let work = scene.apart(&scene.root());
    write(&work.place.path, "a", "theirs\n");
    scene.record_in(&work, &body(None, "final")).unwrap();
    scene.complete(&work.created);
    scene.write("a", "ours\n");
    let id = work.created.workspace_id;
    let found = scene.integrate(&wish(&id, Strategy::Evaluated)).unwrap();
    assert_eq!(found.conflicts.len(), 1, "{found:?}");
    (scene, id)
}

fn count(scene: &Scene, room: &Room, wanted: &str) -> usize {
    let told = scene.told(room, 0);
    told.iter().filter(|(kind, _)| kind == wanted).count()
}

#[test]
fn pr_32_a_decision_that_is_cut_off_holds_and_is_told_of_once() {
    let room = Room::new(Database::Sqlite);
    let (first, id) = conflicted(&room);
    assert!(killed(
        &room,
        "integrate.resolved",
        &format!("resolve {id}")
    ));
    assert_eq!(count(&first, &room, "conflict_resolved"), 1);
    assert_eq!(first.read("a"), "ours\n");
    let ended = first.resume(&id).unwrap();
    assert_eq!(ended.result, Some(Outcome::ConflictResolved));
    assert_eq!(first.read("a"), "theirs\n");
    assert_eq!(count(&first, &room, "conflict_resolved"), 1);
    assert_eq!(first.progress.workspace(&id).unwrap().state, State::Closed);
    assert!(first.progress.verify(&id).unwrap().valid);
}

#[test]
fn pr_32_an_integration_that_is_cut_off_when_it_went_on_goes_on_where_it_was() {
    let room = Room::new(Database::Sqlite);
    let (first, id) = conflicted(&room);
    first.progress.resolve(&id, &THEIRS, &ada()).unwrap();
    assert!(killed(&room, "integrate.resumed", &format!("resume {id}")));
    // Nothing was brought yet, and what was decided is kept for whoever goes on.
    let done = first.progress.recover_integrations(&first.state, &ada());
    let done = done.unwrap();
    assert!(done.failed.is_empty() && done.ended.is_empty(), "{done:?}");
    assert_eq!(first.read("a"), "ours\n");
    let ended = first.resume(&id).unwrap();
    assert_eq!(ended.result, Some(Outcome::ConflictResolved));
    assert_eq!(first.read("a"), "theirs\n");
    let counts = ["integration_completed", "work_brought"].map(|it| count(&first, &room, it));
    assert_eq!(counts, [1, 1]);
    assert_eq!(first.progress.integrations_cut_off().unwrap(), []);
    assert!(first.progress.verify(&id).unwrap().valid);
}
