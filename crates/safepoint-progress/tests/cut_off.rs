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
use safepoint_progress::integrate::{Outcome, Strategy};
use safepoint_progress::state::State;
use safepoint_store::{Location, Options, Store};
use safepoint_trail::Trail;
use scene::{Scene, ada, body, wish, write};
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
        _ => panic!("{task}"),
    }
}

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
