//! Parents take over what their children made: rules and directories, on both databases.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

mod scene;

use std::fs;

use safepoint_model::WorkspaceId;
use safepoint_progress::integrate::{
    Choice, ConflictType, Declined, Finding, Ground, Integration, Mode, Outcome, Resolve, Settling,
    Step, Strategy, Wish,
};
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::{Apart, Beginning, Created, ProgressError, create_apart};
use safepoint_state::scope::Scope;
use safepoint_state::{Goal, Origin, Progress as Looking, Snapshot, Wanted};
use safepoint_store::{Durability, StoreError};
use safepoint_trail::{Draft, Kind, Stream, TrailError};
use scene::{Scene, ada, body, claimed, directory, wish, write};
use serde_json::{Value, json};
use testkit::{Database, on_every_store};

fn state(scene: &Scene, id: &WorkspaceId) -> State {
    scene.progress.workspace(id).unwrap().state
}

/// A workspace without a directory whose agent is done.
fn done(scene: &Scene, root: &Created, files: &[&str]) -> Created {
    let worker = scene.below(root, "worker");
    scene.record(&worker, &claimed(None, "final", files));
    scene.complete(&worker);
    worker
}

/// A workspace with one whose agent did this and is done.
fn done_apart(scene: &Scene, root: &Created, work: impl FnOnce(&std::path::Path)) -> Apart {
    let apart = scene.apart(root);
    work(&apart.place.path);
    scene.record_in(&apart, &body(None, "final")).unwrap();
    scene.complete(&apart.created);
    apart
}

fn refusal(result: Result<Integration, ProgressError>) -> String {
    match result.unwrap_err() {
        ProgressError::Refused(why) | ProgressError::Unfit(why) | ProgressError::Invalid(why) => {
            why
        }
        other => panic!("{other:?}"),
    }
}

fn kinds(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).collect()
}

fn decide<'a>(conflict: &'a str, choice: Choice) -> Resolve<'a> {
    Resolve {
        conflict,
        strategy: Settling::Coordinator,
        choice: Some(choice),
        content: None,
    }
}

/// Changes what is in every pack of an object store.
fn damage(directory: &std::path::Path, changed: &mut usize) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damage(&path, changed);
        } else if path.extension().is_some_and(|it| it == "pack") {
            let mut bytes = fs::read(&path).unwrap();
            bytes.iter_mut().skip(64).for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes).unwrap();
            *changed += 1;
        }
    }
}

/// The origin is moved away, and another is in its place until it comes back.
fn replaced(scene: &Scene, prepare: impl Fn(&Scene)) {
    let root = scene.root();
    let work = done_apart(scene, &root, |at| write(at, "a", "2\n"));
    let id = &work.created.workspace_id;
    let origin = scene.origin().root;
    let aside = origin.with_extension("moved");
    fs::rename(&origin, &aside).unwrap();
    fs::create_dir(&origin).unwrap();
    for prepared in [false, true] {
        if prepared {
            prepare(scene);
        }
        let told = refusal(scene.integrate(&wish(id, Strategy::Direct)));
        let why = "is not the directory that the work was made from";
        assert!(told.contains(why), "{told}");
        assert!(!origin.join("a").exists());
    }
    fs::remove_dir_all(&origin).unwrap();
    fs::rename(&aside, &origin).unwrap();
    let done = scene.integrate(&wish(id, Strategy::Direct)).unwrap();
    assert_eq!(done.result, Some(Outcome::Success));
    assert_eq!(scene.read("a"), "2\n");
}

/// A checkpoint of what the origin is now.
fn kept(scene: &Scene) -> Snapshot {
    let wanted = Wanted {
        scope: &Scope::everything(),
        parts: Vec::new(),
        reason: None,
        kind: None,
        expiry: safepoint_model::Expiry::Never,
        origin: Origin::Asked,
        seal_to: &[],
    };
    let made = scene
        .state
        .checkpoint(&scene.origin(), &wanted, &Looking::default());
    made.unwrap().snapshot
}

/// Rolls all of the origin back, also where it is not there any more.
fn roll_back(scene: &Scene, snapshot: &Snapshot) {
    let goal = Goal::Snapshot {
        snapshot,
        scope: Scope::everything(),
        parts: Vec::new(),
    };
    let origin = directory(&scene.top.join("project"));
    let restored = scene
        .state
        .restore(&origin, &goal, &[], &Looking::default());
    assert!(restored.unwrap().matches);
}

/// Work that is done when the origin is deleted and rolled back, twice, is integrated.
fn restored_twice(scene: &Scene) -> Apart {
    let root = scene.root();
    let work = done_apart(scene, &root, |at| write(at, "a", "2\n"));
    let origin = scene.origin().root;
    let first = kept(scene);
    fs::remove_dir_all(&origin).unwrap();
    roll_back(scene, &first);
    let second = kept(scene);
    fs::remove_dir_all(&origin).unwrap();
    roll_back(scene, &second);
    work
}

on_every_store! {
    fn pr_32_a_decision_that_nobody_told_of_does_not_count(room: Room) {
        let scene = Scene::open(&room, 71);
        let root = scene.root();
        let (one, two) = (done(&scene, &root, &["a", "b"]), done(&scene, &root, &["a", "b"]));
        let begin = |source: &Created| scene.progress.prepare(&wish(&source.workspace_id, Strategy::Layered), None, &ada());
        assert!(matches!(begin(&one), Ok(Step::Done(_))));
        assert!(matches!(begin(&two), Ok(Step::Conflicted(_))));
        let forged = "INSERT INTO progress_resolutions (source, target, turn, number, strategy, choice, content, time, entry) \
                      SELECT source, target, turn, number, 'coordinator_resolve', 'theirs', NULL, 5, entry FROM progress_conflicts WHERE number = 1";
        let store = room.trail();
        let added = store.store().write(Durability::Sync, |sql| sql.execute(forged, &[]));
        assert_eq!(added.unwrap(), 1);
        let decision = Resolve { conflict: "c2", strategy: Settling::Coordinator, choice: Some(Choice::Theirs), content: None };
        let resolved = scene.progress.resolve(&two.workspace_id, &decision, &ada());
        assert!(matches!(resolved, Err(ProgressError::Tampered { .. })), "{resolved:?}");
        assert_eq!(state(&scene, &two.workspace_id), State::Failed);
    }

    fn pr_30_the_newest_final_record_is_taken_and_not_the_head(room: Room) {
        let scene = Scene::open(&room, 1);
        let root = scene.root();
        let worker = scene.below(&root, "worker");
        let first = scene.record(&worker, &claimed(None, "final", &["a"]));
        let last_final = scene.record(&worker, &claimed(Some(&first), "final", &["a"]));
        let head = scene.record(&worker, &claimed(Some(&last_final), "provisional", &["a"]));
        let id = &worker.workspace_id;
        assert!(refusal(scene.integrate(&wish(id, Strategy::Direct))).contains("active"));
        scene.complete(&worker);
        for other in [&first, &head] {
            let wanted = Wish { record: Some(&other.id), ..wish(id, Strategy::Direct) };
            assert!(refusal(scene.integrate(&wanted)).contains(last_final.id.as_str()));
        }
        let before = room.entries(&scene.trail).len();
        let one = scene.integrate(&wish(id, Strategy::Direct)).unwrap();
        assert_eq!((&one.checkpoint_ref, one.result), (&last_final.id, Some(Outcome::Success)));
        assert_eq!(state(&scene, id), State::Closed);
        let told = scene.told(&room, before);
        assert_eq!(kinds(&told), ["integration_started", "integration_completed", "workspace_state_changed", "signal_emitted"]);
        assert_eq!(told[0].1["checkpoint_ref"], json!(last_final.id));
        assert_eq!((&told[0].1["mode"], &told[0].1["confidence"]), (&json!("normal"), &json!("high")));
        assert_eq!((&told[3].1["type"], &told[3].1["from"]), (&json!("integrate"), &json!(root.workspace_id)));
        let signals = scene.progress.signals(&root.workspace_id).unwrap();
        assert_eq!(signals.iter().filter(|signal| signal.kind == SignalType::Integrate).count(), 1);
        assert!(refusal(scene.integrate(&wish(id, Strategy::Direct))).contains("closed"));
    }

    fn pr_31_without_a_final_record_nothing_is_integrated_and_a_failed_one_is_salvaged(room: Room) {
        let scene = Scene::open(&room, 2);
        let root = scene.root();
        let worker = scene.below(&root, "worker");
        let first = scene.record(&worker, &claimed(None, "provisional", &["a"]));
        let second = scene.record(&worker, &claimed(Some(&first), "provisional", &["b"]));
        let id = &worker.workspace_id;
        scene.complete(&worker);
        let before = room.entries(&scene.trail).len();
        assert!(refusal(scene.integrate(&wish(id, Strategy::Direct))).contains("salvage"));
        assert_eq!(kinds(&scene.told(&room, before)), ["integration_refused"]);
        let salvage = Wish { mode: Mode::Salvage, ..wish(id, Strategy::Evaluated) };
        assert!(refusal(scene.integrate(&salvage)).contains("only a failed workspace"));
        scene.progress.decline(id, Declined::Rejected, &ada()).unwrap();
        assert_eq!(state(&scene, id), State::Failed);
        assert!(refusal(scene.integrate(&wish(id, Strategy::Direct))).contains("salvaged"));
        assert!(refusal(scene.integrate(&Wish { strategy: Strategy::Layered, ..salvage.clone() })).contains("evaluated"));
        let before = room.entries(&scene.trail).len();
        let one = scene.integrate(&salvage).unwrap();
        assert_eq!((&one.checkpoint_ref, one.result), (&second.id, Some(Outcome::Success)));
        let told = scene.told(&room, before);
        assert_eq!(kinds(&told), ["integration_started", "integration_completed", "signal_emitted"]);
        assert_eq!(told[0].1["confidence"], json!("low"));
        assert!(told[..2].iter().all(|(_, body)| body["mode"] == json!("salvage")));
        assert_eq!(state(&scene, id), State::Failed);
        // Any record of it, and only of it.
        let one = scene.integrate(&Wish { record: Some(&first.id), ..salvage.clone() }).unwrap();
        assert_eq!(one.checkpoint_ref, first.id);
        let other = scene.record(&scene.below(&root, "worker"), &claimed(None, "final", &["a"]));
        assert!(refusal(scene.integrate(&Wish { record: Some(&other.id), ..salvage })).contains("no checkpoint of"));
        assert_eq!(scene.progress.log(id).unwrap(), [first, second]);
    }

    fn pr_32_overlaps_are_found_by_what_records_say(room: Room) {
        let scene = Scene::open(&room, 3);
        let root = scene.root();
        let (one, two) = (done(&scene, &root, &["a", "b"]), done(&scene, &root, &["b", "c"]));
        let (three, four) = (done(&scene, &root, &["b"]), done(&scene, &root, &["d"]));
        scene.integrate(&wish(&one.workspace_id, Strategy::Layered)).unwrap();
        let id = &two.workspace_id;
        let found = scene.integrate(&wish(id, Strategy::Layered)).unwrap();
        assert_eq!(found.conflicts.len(), 1);
        assert_eq!((found.conflicts[0].id.as_str(), found.conflicts[0].path.as_deref()), ("c1", Some("b")));
        assert_eq!((found.conflicts[0].kind, found.result), (ConflictType::ContentOverlap, None));
        assert_eq!(state(&scene, id), State::Conflicted);
        // One at a time.
        assert!(refusal(scene.integrate(&wish(&three.workspace_id, Strategy::Direct))).contains("one after the other"));
        let before = room.entries(&scene.trail).len();
        let ended = scene.progress.resolve(id, &decide("c1", Choice::Theirs), &ada()).unwrap();
        assert_eq!(ended.result, Some(Outcome::ConflictResolved));
        let told = scene.told(&room, before);
        assert_eq!(kinds(&told), ["conflict_resolved", "integration_completed", "workspace_state_changed", "signal_emitted"]);
        assert_eq!(told[1].1["result"], json!("conflict_resolved"));
        assert_eq!(state(&scene, id), State::Closed);
        // Nobody looks, and nothing is the same.
        for (worker, strategy) in [(&three, Strategy::Direct), (&four, Strategy::Evaluated)] {
            let ended = scene.integrate(&wish(&worker.workspace_id, strategy)).unwrap();
            assert_eq!(ended.result, Some(Outcome::Success));
        }
        // What was made after all of that knows it.
        let five = done(&scene, &root, &["b"]);
        assert!(scene.integrate(&wish(&five.workspace_id, Strategy::Layered)).unwrap().conflicts.is_empty());
    }

    fn pr_32_parents_take_turns_by_a_constraint(room: Room) {
        let scene = Scene::open(&room, 4);
        let root = scene.root();
        let (one, two) = (done(&scene, &root, &["a"]), done(&scene, &root, &["a"]));
        scene.integrate(&wish(&one.workspace_id, Strategy::Layered)).unwrap();
        scene.integrate(&wish(&two.workspace_id, Strategy::Layered)).unwrap();
        let run = |statement: &str| -> Result<u64, StoreError> {
            scene.trail.store().write(Durability::Sync, |sql| sql.execute(statement, &[]))
        };
        for turn in [1, 2, 3] {
            let again = format!("INSERT INTO progress_integrations SELECT target, {turn}, source, record, mode, strategy, time, entry + 1 FROM progress_integrations WHERE turn = 2");
            let error = format!("{:?}", run(&again).unwrap_err());
            assert!(error.contains("append-only") || error.contains("unique"), "{turn}: {error}");
        }
        for table in ["places", "removed_places", "integrations", "integration_ends", "integration_actions", "conflicts", "resolutions"] {
            for statement in [format!("DELETE FROM progress_{table}"), format!("UPDATE progress_{table} SET {}", match table {
                "places" => "kind = 'copy'", "removed_places" | "integrations" | "integration_ends" | "resolutions" => "time = 1",
                "integration_actions" => "action = 'x'", _ => "description = 'x'",
            })] {
                // A table without rows has nothing to refuse on SQLite.
                match run(&statement) {
                    Err(error) => assert!(format!("{error:?}").contains("append-only"), "{statement}: {error:?}"),
                    Ok(changed) => assert!(changed == 0 && room.database() == Database::Sqlite, "{statement}"),
                }
            }
        }
        scene.progress.resolve(&two.workspace_id, &decide("c1", Choice::Ours), &ada()).unwrap();
    }

    fn pr_32_findings_of_the_coordinator_are_conflicts_like_others(room: Room) {
        let scene = Scene::open(&room, 5);
        let root = scene.root();
        let worker = done(&scene, &root, &["a"]);
        let id = &worker.workspace_id;
        let findings = [
            Finding { kind: ConflictType::SemanticContradiction, description: "it says the opposite".to_owned() },
            Finding { kind: ConflictType::ConstraintBreach, description: "too large".to_owned() },
        ];
        let asked = Wish { findings: &findings, ..wish(id, Strategy::Evaluated) };
        assert!(refusal(scene.integrate(&Wish { strategy: Strategy::Layered, ..asked.clone() })).contains("findings"));
        assert_eq!(scene.integrate(&asked).unwrap().conflicts.len(), 2);
        let resolve = |decision: &Resolve<'_>| scene.progress.resolve(id, decision, &ada());
        let escalated = Resolve { strategy: Settling::Human, ..decide("c1", Choice::Theirs) };
        assert_eq!(resolve(&escalated).unwrap().result, None);
        // It can be decided anew, and what was decided first stays on record.
        let anew = resolve(&escalated).unwrap();
        assert_eq!((anew.conflicts.len(), anew.conflicts[2].id.as_str()), (3, "c3"));
        assert!(anew.conflicts[0].resolution.is_some() && anew.conflicts[2].resolution.is_some());
        assert!(matches!(resolve(&decide("c9", Choice::Ours)), Err(ProgressError::NotFound { .. })));
        assert!(refusal(resolve(&Resolve { choice: None, ..decide("c2", Choice::Ours) })).contains("say what becomes"));
        assert!(refusal(resolve(&Resolve { strategy: Settling::Timeout, ..decide("c2", Choice::Ours) })).contains("time itself"));
        let rework = Resolve { strategy: Settling::Rework, choice: None, ..decide("c2", Choice::Ours) };
        let ended = resolve(&rework).unwrap();
        assert_eq!(ended.result, Some(Outcome::Aborted));
        assert_eq!(state(&scene, id), State::Failed);
        let entries = scene.told(&room, 0);
        let failed = entries.iter().rfind(|(kind, _)| kind == "workspace_state_changed").unwrap();
        assert_eq!(failed.1["reason"], json!("revision_required"));
        assert!(entries.iter().any(|(kind, body)| kind == "integration_aborted" && body["reason"] == json!("revision_required")));
        // The way is free for the next.
        let next = done(&scene, &root, &["a"]);
        assert_eq!(scene.integrate(&wish(&next.workspace_id, Strategy::Evaluated)).unwrap().result, Some(Outcome::Success));
    }

    fn pr_32_a_conflict_that_nobody_resolves_in_time_fails_the_workspace(room: Room) {
        let scene = Scene::open(&room, 6);
        let root = scene.root();
        let (one, two) = (done(&scene, &root, &["a"]), done(&scene, &root, &["a"]));
        scene.integrate(&wish(&one.workspace_id, Strategy::Layered)).unwrap();
        scene.integrate(&wish(&two.workspace_id, Strategy::Layered)).unwrap();
        let before = room.entries(&scene.trail).len();
        scene.progress.move_to(&two.workspace_id, State::Failed, Some("conflict_timeout"), &ada()).unwrap();
        let told = scene.told(&room, before);
        let resolved = told.iter().find(|(kind, _)| kind == "conflict_resolved").unwrap();
        assert_eq!((&resolved.1["resolution_strategy"], &resolved.1["outcome"]), (&json!("timeout"), &json!("failed")));
        assert!(kinds(&told).contains(&"integration_aborted"));
        assert_eq!(scene.progress.open_integration(&two.workspace_id).unwrap(), None);
    }

    fn pr_33_observations_are_read_and_never_merged(room: Room) {
        let scene = Scene::open(&room, 7);
        scene.write("a", "1\n");
        let root = scene.root();
        done(&scene, &root, &["a"]);
        let observer = scene.below(&root, "observer");
        let mut seen = claimed(None, "final", &["a"]);
        seen["type"] = json!("observation");
        scene.record(&observer, &seen);
        scene.complete(&observer);
        let one = scene.integrate(&wish(&observer.workspace_id, Strategy::Evaluated)).unwrap();
        assert_eq!((one.result, one.actions.len()), (Some(Outcome::Success), 0));
        assert_eq!(scene.read("a"), "1\n");
        assert_eq!(state(&scene, &observer.workspace_id), State::Closed);
    }

    fn pr_16_a_record_that_was_changed_is_not_integrated(room: Room) {
        let scene = Scene::open(&room, 8);
        let root = scene.root();
        let worker = done(&scene, &root, &["a"]);
        room.tamper("UPDATE progress_records SET time = time + 1");
        let scene = Scene::open(&room, 9);
        let before = room.entries(&scene.trail).len();
        let refused = scene.integrate(&wish(&worker.workspace_id, Strategy::Direct));
        assert!(matches!(refused, Err(ProgressError::Tampered { .. })));
        let told = scene.told(&room, before);
        assert_eq!(kinds(&told), ["integrity_violation", "integration_aborted", "workspace_state_changed"]);
        assert_eq!(state(&scene, &worker.workspace_id), State::Failed);
        let entries = room.entries(&scene.trail);
        assert_eq!(entries[before].stream, safepoint_trail::Stream::store());
    }

    fn pr_32_directories_are_merged_and_taken_back(room: Room) {
        let scene = Scene::open(&room, 10);
        scene.write("shared", "1\n2\n3\n4\n5\n6\n7\n");
        scene.write("mine", "x\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| {
            write(at, "shared", "1\n2\n3\n4\n5\n6\nseven\n");
            write(at, "new", "new\n");
        });
        scene.write("shared", "one\n2\n3\n4\n5\n6\n7\n");
        scene.write("mine", "y\n");
        let id = &work.created.workspace_id;
        let before = room.entries(&scene.trail).len();
        let one = scene.integrate(&wish(id, Strategy::Layered)).unwrap();
        assert_eq!(one.result, Some(Outcome::Success));
        assert_eq!(scene.read("shared"), "one\n2\n3\n4\n5\n6\nseven\n");
        assert_eq!((scene.read("new"), scene.read("mine")), ("new\n".to_owned(), "y\n".to_owned()));
        assert_eq!(state(&scene, id), State::Closed);
        // One action runs through all of it.
        let action = scene.state.find_action(one.actions[0].as_str()).unwrap();
        assert_eq!(action.action, "workspace.integrate");
        let entries = room.entries(&scene.trail);
        let with: Vec<&str> = entries[before..].iter().filter(|entry| entry.action_id.as_ref() == Some(&action.id)).map(|entry| entry.kind.as_str()).collect();
        assert_eq!(with, ["integration_started", "work_brought", "integration_completed"]);
        for entry in &entries[before..] {
            assert!(!entry.body.contains("seven"), "{}", entry.body);
        }
        let goal = Goal::Without { action: &action, verb: "undo" };
        scene.state.restore(&scene.origin(), &goal, &[], &Looking::default()).unwrap();
        assert_eq!((scene.read("shared").as_str(), scene.read("mine").as_str()), ("one\n2\n3\n4\n5\n6\n7\n", "y\n"));
        assert!(!scene.origin().root.join("new").exists());
    }

    fn pr_32_conflicts_of_directories_are_resolved_one_by_one(room: Room) {
        let scene = Scene::open(&room, 11);
        for name in ["a", "b", "fits"] {
            scene.write(name, "1\n2\n3\n4\n5\n");
        }
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| {
            write(at, "a", "theirs\n");
            write(at, "b", "theirs\n");
            write(at, "fits", "1\n2\n3\n4\nfive\n");
            write(at, "new", "new\n");
        });
        scene.write("a", "ours\n");
        scene.write("b", "ours\n");
        scene.write("fits", "one\n2\n3\n4\n5\n");
        let id = &work.created.workspace_id;
        let found = scene.integrate(&wish(id, Strategy::Evaluated)).unwrap();
        let shown: Vec<(&str, bool)> = found.conflicts.iter().map(|one| (one.path.as_deref().unwrap(), one.mergeable)).collect();
        assert_eq!(shown, [("a", false), ("b", false), ("fits", true)]);
        assert_eq!((state(&scene, id), scene.read("a").as_str()), (State::Conflicted, "ours\n"));
        assert!(!scene.origin().root.join("new").exists());
        let (origin, errand) = (scene.origin(), scene.errand());
        let ground = Ground { state: &scene.state, origin: &origin, errand: &errand, rules: &[] };
        let open: Vec<_> = found.conflicts.iter().collect();
        let sides = scene.progress.sides(&ground, &found, &open).unwrap();
        let text = |side: &Option<safepoint_state::Side>| side.as_ref().unwrap().content.clone().unwrap();
        let first = sides[0].as_ref().unwrap();
        assert_eq!([&first.base, &first.ours, &first.theirs].map(text), [b"1\n2\n3\n4\n5\n".to_vec(), b"ours\n".to_vec(), b"theirs\n".to_vec()]);
        let resolve = |decision: &Resolve<'_>| scene.progress.resolve(id, decision, &ada());
        assert!(refusal(resolve(&decide("c1", Choice::Merged))).contains("do not fit"));
        resolve(&Resolve { content: Some(b"both\n"), ..decide("c1", Choice::Content) }).unwrap();
        resolve(&decide("c2", Choice::Ours)).unwrap();
        assert_eq!(scene.resume(id).unwrap().result, None); // one is left
        assert_eq!(resolve(&decide("c3", Choice::Merged)).unwrap().result, None);
        assert_eq!(scene.read("a"), "ours\n");
        let ended = scene.resume(id).unwrap();
        assert_eq!(ended.result, Some(Outcome::ConflictResolved));
        assert_eq!((scene.read("a"), scene.read("b")), ("both\n".to_owned(), "ours\n".to_owned()));
        assert_eq!((scene.read("fits"), scene.read("new")), ("one\n2\n3\n4\nfive\n".to_owned(), "new\n".to_owned()));
        assert_eq!(state(&scene, id), State::Closed);
    }

    fn pr_32_what_changes_between_the_steps_is_found(room: Room) {
        let scene = Scene::open(&room, 12);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| write(at, "a", "theirs\n"));
        let id = &work.created.workspace_id;
        let (origin, errand) = (scene.origin(), scene.errand());
        let ground = Ground { state: &scene.state, origin: &origin, errand: &errand, rules: &[] };
        let Step::Bring(bringing) = scene.progress.prepare(&wish(id, Strategy::Direct), Some(&ground), &ada()).unwrap() else {
            panic!("it has to be brought");
        };
        // Somebody is at work: nothing was cut off.
        assert_eq!(scene.progress.recover_integrations(&scene.state, &ada()).unwrap().ended, []);
        scene.write("a", "ours\n");
        let found = scene.progress.carry_out(&ground, &bringing, &ada()).unwrap();
        assert_eq!((found.result, found.conflicts.len()), (None, 1));
        assert_eq!((state(&scene, id), scene.read("a").as_str()), (State::Conflicted, "ours\n"));
        drop(bringing);
        scene.progress.resolve(id, &decide("c1", Choice::Theirs), &ada()).unwrap();
        assert_eq!(scene.resume(id).unwrap().result, Some(Outcome::ConflictResolved));
        assert_eq!(scene.read("a"), "theirs\n");
    }

    fn pr_32_a_decision_holds_only_for_what_was_shown(room: Room) {
        let scene = Scene::open(&room, 13);
        for name in ["a", "b", "c"] {
            scene.write(name, "1\n");
        }
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| {
            for name in ["a", "b", "c"] {
                write(at, name, "theirs\n");
            }
        });
        let id = &work.created.workspace_id;
        for name in ["a", "b", "c"] {
            scene.write(name, "ours\n");
        }
        let one = scene.integrate(&wish(id, Strategy::Layered)).unwrap();
        assert_eq!(one.conflicts.len(), 3);
        let decide = |name: &str, choice| scene.progress.resolve(id, &decide(name, choice), &ada()).unwrap();
        decide("c1", Choice::Theirs);
        decide("c2", Choice::Ours);
        // Somebody goes on working before the last decision.
        scene.write("a", "ours, and more\n");
        scene.write("b", "ours, and more\n");
        decide("c3", Choice::Theirs);
        let found = scene.resume(id).unwrap();
        let open: Vec<_> = found.conflicts.iter().filter(|one| one.resolution.is_none()).collect();
        let [void] = open.as_slice() else { panic!("{open:?}") };
        assert_eq!((void.id.as_str(), void.path.as_deref()), ("c4", Some("a")));
        assert!(void.description.contains("void"), "{}", void.description);
        assert_eq!(state(&scene, id), State::Conflicted);
        assert_eq!((scene.read("a").as_str(), scene.read("c").as_str()), ("ours, and more\n", "ours\n"));
        // It is asked again, about what is there now.
        decide("c4", Choice::Theirs);
        // And once more between the last look and the change.
        let (origin, errand) = (scene.origin(), scene.errand());
        let ground = Ground { state: &scene.state, origin: &origin, errand: &errand, rules: &[] };
        let Step::Bring(bringing) = scene.progress.resume_integration(id, &ground, &ada()).unwrap() else {
            panic!("it has to be brought");
        };
        scene.write("a", "ours, and still more\n");
        let found = scene.progress.carry_out(&ground, &bringing, &ada()).unwrap();
        drop(bringing);
        assert_eq!((found.result, found.conflicts.len()), (None, 5));
        assert_eq!(scene.read("a"), "ours, and still more\n");
        decide("c5", Choice::Theirs);
        assert_eq!(scene.resume(id).unwrap().result, Some(Outcome::ConflictResolved));
        assert_eq!((scene.read("a").as_str(), scene.read("b").as_str(), scene.read("c").as_str()), ("theirs\n", "ours, and more\n", "theirs\n"));
    }

    fn pr_32_nothing_is_brought_to_another_directory_in_the_place_of_the_origin(room: Room) {
        let scene = Scene::open(&room, 17);
        scene.write("a", "1\n");
        replaced(&scene, |_| {});
    }

    fn pr_32_nothing_is_brought_to_another_repository_in_the_place_of_the_origin(room: Room) {
        let scene = Scene::open(&room, 18);
        scene.write("a", "1\n");
        scene.git(&["init", "--quiet"]);
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "--quiet", "--message=first"]);
        replaced(&scene, |scene| {
            scene.git(&["init", "--quiet"]);
        });
    }

    fn pr_32_a_directory_that_a_roll_back_made_anew_is_still_the_origin(room: Room) {
        let scene = Scene::open(&room, 20);
        scene.write("a", "1\n");
        let work = restored_twice(&scene);
        let done = scene.integrate(&wish(&work.created.workspace_id, Strategy::Direct)).unwrap();
        assert_eq!(done.result, Some(Outcome::Success));
        assert_eq!(scene.read("a"), "2\n");
    }

    fn pr_32_a_repository_that_a_roll_back_made_anew_is_still_the_origin(room: Room) {
        let scene = Scene::open(&room, 21);
        scene.write("a", "1\n");
        scene.git(&["init", "--quiet"]);
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "--quiet", "--message=first"]);
        // From before the worktree: the repository knows nothing of it when it is back.
        let early = kept(&scene);
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| write(at, "a", "2\n"));
        let origin = scene.origin().root;
        fs::remove_dir_all(&origin).unwrap();
        roll_back(&scene, &early);
        // Another repository in it is not that one.
        let aside = origin.join(".git.aside");
        fs::rename(origin.join(".git"), &aside).unwrap();
        scene.git(&["init", "--quiet"]);
        let id = &work.created.workspace_id;
        let told = refusal(scene.integrate(&wish(id, Strategy::Direct)));
        assert!(told.contains("is not the directory that the work was made from"), "{told}");
        fs::remove_dir_all(origin.join(".git")).unwrap();
        fs::rename(&aside, origin.join(".git")).unwrap();
        assert_eq!(scene.integrate(&wish(id, Strategy::Direct)).unwrap().result, Some(Outcome::Success));
        assert_eq!(scene.read("a"), "2\n");
    }

    fn pr_32_a_roll_back_makes_no_other_directory_the_origin(room: Room) {
        let scene = Scene::open(&room, 22);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| write(at, "a", "2\n"));
        let own = kept(&scene);
        let origin = scene.origin().root;
        let aside = origin.with_extension("moved");
        fs::rename(&origin, &aside).unwrap();
        let refused = |how: &str| {
            let told = refusal(scene.integrate(&wish(&work.created.workspace_id, Strategy::Direct)));
            assert!(told.contains("is not the directory that the work was made from"), "{how}: {told}");
        };
        scene.write("b", "of somebody else\n");
        let other = kept(&scene);
        roll_back(&scene, &own);
        refused("one that had something in it");
        fs::remove_dir_all(&origin).unwrap();
        roll_back(&scene, &other);
        refused("a checkpoint of another one");
        fs::remove_dir_all(&origin).unwrap();
        roll_back(&scene, &own);
        room.tamper("UPDATE state_actions SET outcome = 'forged' WHERE action = 'checkpoint.rollback'");
        refused("a roll back that the trail does not tell of");
    }

    fn pr_32_a_directory_of_an_agent_that_a_roll_back_made_anew_is_still_its_own(room: Room) {
        let scene = Scene::open(&room, 23);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        let base = scene.state.find(work.place.base.as_str()).unwrap();
        fs::remove_dir_all(&work.place.path).unwrap();
        let goal = Goal::Snapshot { snapshot: &base, scope: Scope::everything(), parts: Vec::new() };
        scene.state.restore(&directory(&work.place.path), &goal, &[], &Looking::default()).unwrap();
        write(&work.place.path, "a", "2\n");
        let record = scene.record_in(&work, &body(None, "final")).unwrap();
        assert_eq!(record.payload.files_changed, ["a"]);
    }

    fn pr_32_nothing_is_recorded_of_another_directory_in_the_place_of_one(room: Room) {
        let scene = Scene::open(&room, 19);
        let root = scene.root();
        scene.write("a", "1\n");
        let apart = scene.apart(&root);
        // Both are there for a moment, so that they have two numbers.
        let path = apart.place.path.clone();
        fs::rename(&path, path.with_extension("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        let told = match scene.try_record_in(&apart, &apart.created.token, &body(None, "final")) {
            Err(ProgressError::Refused(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(told.contains("another one is in its place"), "{told}");
        fs::remove_dir(&path).unwrap();
        fs::rename(path.with_extension("moved"), &path).unwrap();
        write(&path, "a", "2\n");
        scene.record_in(&apart, &body(None, "final")).unwrap();
    }

    fn pr_16_a_state_that_is_damaged_is_not_integrated(room: Room) {
        let scene = Scene::open(&room, 14);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| write(at, "a", "theirs, and nowhere else\n"));
        let mut packs = 0;
        damage(&scene.top.join("data/objects"), &mut packs);
        assert!(packs > 0);
        let before = room.entries(&scene.trail).len();
        let refused = scene.integrate(&wish(&work.created.workspace_id, Strategy::Direct));
        assert!(matches!(refused, Err(ProgressError::Tampered { .. })), "{refused:?}");
        assert_eq!(kinds(&scene.told(&room, before)), ["integrity_violation", "integration_aborted", "workspace_state_changed"]);
        assert_eq!((scene.read("a").as_str(), state(&scene, &work.created.workspace_id)), ("1\n", State::Failed));
    }

    fn pr_32_the_second_waits_for_the_first_and_sees_its_result(room: Room) {
        let scene = Scene::open(&room, 15);
        scene.write("a", "1\n2\n3\n4\n5\n");
        let root = scene.root();
        let one = done_apart(&scene, &root, |at| write(at, "a", "one\n2\n3\n4\n5\n"));
        let two = done_apart(&scene, &root, |at| write(at, "a", "1\n2\n3\n4\nfive\n"));
        let (origin, errand) = (scene.origin(), scene.errand());
        let ground = Ground { state: &scene.state, origin: &origin, errand: &errand, rules: &[] };
        let begun = scene.progress.prepare(&wish(&one.created.workspace_id, Strategy::Layered), Some(&ground), &ada());
        let Step::Bring(bringing) = begun.unwrap() else { panic!("it has to be brought") };
        let second = wish(&two.created.workspace_id, Strategy::Layered);
        assert!(refusal(scene.integrate(&second)).contains("one after the other"));
        scene.progress.carry_out(&ground, &bringing, &ada()).unwrap();
        assert_eq!(scene.integrate(&second).unwrap().result, Some(Outcome::Success));
        assert_eq!(scene.read("a"), "one\n2\n3\n4\nfive\n");
    }

    fn pr_32_a_workspace_that_fails_meanwhile_is_not_closed(room: Room) {
        let scene = Scene::open(&room, 16);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| write(at, "a", "2\n"));
        let id = &work.created.workspace_id;
        let (origin, errand) = (scene.origin(), scene.errand());
        let ground = Ground { state: &scene.state, origin: &origin, errand: &errand, rules: &[] };
        let begun = scene.progress.prepare(&wish(id, Strategy::Layered), Some(&ground), &ada());
        let Step::Bring(bringing) = begun.unwrap() else { panic!("it has to be brought") };
        scene.progress.move_to(id, State::Failed, Some("aborted_by_coordinator"), &ada()).unwrap();
        let told = refusal(scene.progress.carry_out(&ground, &bringing, &ada()));
        assert!(told.contains("nothing was changed"), "{told}");
        assert_eq!((state(&scene, id), scene.read("a").as_str()), (State::Failed, "1\n"));
        // Whoever wrote in the same moment is told how to take it back.
        scene.state.bring(&origin, &bringing.incoming(), &Looking::default()).unwrap();
        let told = refusal(scene.progress.conclude(&bringing.integration, &ada()));
        assert!(told.contains(&format!("safepoint undo {}", errand.id)), "{told}");
        assert_eq!(scene.progress.open_integration(id).unwrap(), None);
    }

    fn pr_01_a_coordinator_neither_closes_nor_completes_by_hand(room: Room) {
        let scene = Scene::open(&room, 18);
        let root = scene.root();
        let (one, two) = (done(&scene, &root, &["a"]), done(&scene, &root, &["a"]));
        let at_work = scene.below(&root, "worker");
        let by_hand = |of: &Created, to: State| {
            let before = room.entries(&scene.trail).len();
            let refused = scene.progress.move_to(&of.workspace_id, to, None, &ada()).unwrap_err();
            assert!(matches!(refused, ProgressError::Unfit(_)), "{refused:?}");
            assert_eq!(kinds(&scene.told(&room, before)), ["workspace_state_refused"]);
        };
        by_hand(&at_work, State::Integrating);
        by_hand(&one, State::Closed);
        by_hand(&one, State::Conflicted);
        scene.integrate(&wish(&one.workspace_id, Strategy::Layered)).unwrap();
        scene.integrate(&wish(&two.workspace_id, Strategy::Layered)).unwrap();
        by_hand(&two, State::Closed);
        assert_eq!(state(&scene, &two.workspace_id), State::Conflicted);
        // What has not ended can be failed; the root is done when nothing below it is at work.
        scene.progress.move_to(&two.workspace_id, State::Failed, None, &ada()).unwrap();
        scene.progress.move_to(&root.workspace_id, State::Integrating, None, &ada()).unwrap();
        by_hand(&root, State::Closed);
        scene.progress.move_to(&at_work.workspace_id, State::Failed, None, &ada()).unwrap();
        scene.progress.move_to(&root.workspace_id, State::Closed, None, &ada()).unwrap();
    }

    fn pr_32_an_integration_whose_source_has_ended_blocks_nobody_and_writes_nothing(room: Room) {
        let scene = Scene::open(&room, 19);
        scene.write("a", "1\n");
        let root = scene.root();
        let one = done_apart(&scene, &root, |at| write(at, "a", "theirs\n"));
        let two = done_apart(&scene, &root, |at| write(at, "b", "new\n"));
        scene.write("a", "ours\n");
        let id = &one.created.workspace_id;
        assert_eq!(scene.integrate(&wish(id, Strategy::Layered)).unwrap().conflicts.len(), 1);
        // Closed behind our back, as an older version let anybody do.
        let close = format!(
            "INSERT INTO progress_moves SELECT workspace, number + 1, 'closed', NULL, NULL, time + 1, entry FROM progress_moves WHERE workspace = '{id}' AND state = 'conflicted'"
        );
        scene.trail.store().write(Durability::Sync, |sql| sql.execute(&close, &[])).map_err(|error: StoreError| error).unwrap();
        assert_eq!(state(&scene, id), State::Closed);
        assert!(refusal(scene.progress.resolve(id, &decide("c1", Choice::Theirs), &ada())).contains("not being integrated"));
        assert!(refusal(scene.resume(id)).contains("not being integrated"));
        assert_eq!(scene.read("a"), "ours\n");
        assert_eq!(scene.progress.integrations(id).unwrap()[0].result, Some(Outcome::Aborted));
        assert_eq!(scene.integrate(&wish(&two.created.workspace_id, Strategy::Layered)).unwrap().result, Some(Outcome::Success));
        assert_eq!(scene.read("b"), "new\n");
    }

    fn pr_32_one_integration_that_cannot_be_ended_keeps_no_other_from_it(room: Room) {
        let scene = Scene::open(&room, 20);
        scene.write("a", "1\n");
        let roots = [scene.root(), scene.root()];
        let works = [0, 1].map(|number| done_apart(&scene, &roots[number], |at| write(at, &format!("b{number}"), "new\n")));
        let origin = scene.origin();
        let errands = [scene.errand(), scene.errand()];
        for (work, errand) in works.iter().zip(&errands) {
            let ground = Ground { state: &scene.state, origin: &origin, errand, rules: &[] };
            let step = scene.progress.prepare(&wish(&work.created.workspace_id, Strategy::Layered), Some(&ground), &ada());
            let Step::Bring(bringing) = step.unwrap() else { panic!("it has to be brought") };
            scene.state.bring(&origin, &bringing.incoming(), &Looking::default()).unwrap();
        }
        let id = &works[0].created.workspace_id;
        // Closed as an older version let anybody do, with its entry: what no entry tells of is left alone.
        let closed: Result<(), TrailError> = scene.trail.write(Durability::Sync, |writing| {
            let time = writing.moment();
            let entry = writing.append(Draft {
                stream: Stream::from(id),
                actor: ada(),
                kind: Kind::fixed("workspace_state_changed").into(),
                action_id: None,
                body: json!({"workspace": id, "from": "integrating", "to": "closed", "reason": null, "timestamp": time, "rows": {}}),
            })?;
            let close = format!(
                "INSERT INTO progress_moves SELECT workspace, number + 1, 'closed', NULL, NULL, {}, {} FROM progress_moves WHERE workspace = '{id}' AND state = 'integrating'",
                time.as_micros(), entry.seq
            );
            writing.sql().execute(&close, &[])?;
            Ok(())
        });
        closed.unwrap();
        assert_eq!(scene.progress.verify(id).unwrap().first_bad, None);
        let done = scene.progress.recover_integrations(&scene.state, &ada()).unwrap();
        assert_eq!((done.ended.len(), done.failed.len()), (1, 1));
        assert_eq!(done.ended[0].source, works[1].created.workspace_id);
        let (failed, why) = &done.failed[0];
        assert_eq!(&failed.source, id);
        assert!(why.to_string().contains(&format!("safepoint undo {}", errands[0].id)), "{why}");
        assert_eq!(scene.progress.integrations_cut_off().unwrap(), []);
    }

    fn pr_32_what_says_what_agents_may_do_is_never_taken_over(room: Room) {
        let scene = Scene::open(&room, 21);
        scene.write("a", "1\n");
        scene.write("atlas/rules.yaml", "1\n");
        let root = scene.root();
        let work = done_apart(&scene, &root, |at| {
            write(at, "a", "theirs\n");
            write(at, "atlas/rules.yaml", "all\n");
            write(at, "safepoint.yaml", "checkpoint: never\n");
        });
        scene.write("a", "ours\n");
        let id = &work.created.workspace_id;
        let origin = scene.origin();
        let rules = [b"atlas/rules.yaml".to_vec()];
        let errands = [scene.errand(), scene.errand()];
        let ground = |number: usize| Ground { state: &scene.state, origin: &origin, errand: &errands[number], rules: &rules };
        let begun = scene.progress.prepare(&wish(id, Strategy::Layered), Some(&ground(0)), &ada()).unwrap();
        let Step::Conflicted(one) = begun else { panic!("somebody has to look") };
        let paths: Vec<_> = one.conflicts.iter().map(|it| (it.path.as_deref().unwrap(), it.is_rule(), it.choices().len())).collect();
        assert_eq!(paths, [("a", false, 2), ("atlas/rules.yaml", true, 1), ("safepoint.yaml", true, 1)]);
        let resolve = |decision: &Resolve<'_>| scene.progress.resolve(id, decision, &ada());
        for conflict in ["c2", "c3"] {
            let content = Resolve { content: Some(b"x"), ..decide(conflict, Choice::Content) };
            for other in [decide(conflict, Choice::Theirs), content] {
                assert!(refusal(resolve(&other)).contains("says what agents may do"));
            }
            resolve(&decide(conflict, Choice::Ours)).unwrap();
        }
        // The last decision counts.
        resolve(&decide("c1", Choice::Ours)).unwrap();
        resolve(&decide("c1", Choice::Theirs)).unwrap();
        let resumed = scene.progress.resume_integration(id, &ground(1), &ada()).unwrap();
        let Step::Bring(bringing) = resumed else { panic!("it has to be brought") };
        let ended = scene.progress.carry_out(&ground(1), &bringing, &ada()).unwrap();
        assert_eq!(ended.result, Some(Outcome::ConflictResolved));
        assert_eq!((scene.read("a").as_str(), scene.read("atlas/rules.yaml").as_str()), ("theirs\n", "1\n"));
        assert!(!origin.root.join("safepoint.yaml").exists());
    }

    fn pr_32_work_below_what_has_ended_goes_to_the_nearest_that_has_not(room: Room) {
        let scene = Scene::open(&room, 22);
        scene.write("a", "1\n");
        let root = scene.root();
        let middle = scene.apart(&root);
        let below = Beginning::Below(&middle.created.workspace_id, "worker".parse().unwrap());
        let from = scene::directory(&middle.place.path);
        let child = create_apart(&scene.progress, &scene.state, &from, &below, &scene::given("work"), &ada()).unwrap();
        write(&child.place.path, "b", "new\n");
        scene.record_in(&child, &body(None, "final")).unwrap();
        write(&middle.place.path, "a", "2\n");
        scene.record_in(&middle, &body(None, "final")).unwrap();
        scene.complete(&middle.created);
        let (id, above) = (&child.created.workspace_id, &middle.created.workspace_id);
        // Nothing is left behind without a word.
        assert!(refusal(scene.integrate(&wish(above, Strategy::Layered))).contains(id.as_str()));
        scene.progress.move_to(above, State::Failed, None, &ada()).unwrap();
        assert_eq!(state(&scene, id), State::Failed);
        assert_eq!(scene.progress.brought_to(&child.place).unwrap(), scene.origin().root);
        let salvage = Wish { mode: Mode::Salvage, ..wish(id, Strategy::Evaluated) };
        let one = scene.integrate(&salvage).unwrap();
        assert_eq!((one.result, &one.target), (Some(Outcome::Success), &root.workspace_id));
        assert_eq!((scene.read("a").as_str(), scene.read("b").as_str()), ("1\n", "new\n"));
        // With nobody left above, nobody takes it over.
        scene.progress.move_to(&root.workspace_id, State::Failed, None, &ada()).unwrap();
        assert!(refusal(scene.integrate(&salvage)).contains("everything above"));
    }

    fn pr_31_a_salvage_with_conflicts_says_so_in_every_entry(room: Room) {
        let scene = Scene::open(&room, 17);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = scene.apart(&root);
        write(&work.place.path, "a", "theirs\n");
        scene.record_in(&work, &body(None, "provisional")).unwrap();
        let id = &work.created.workspace_id;
        scene.progress.move_to(id, State::Failed, Some("timeout"), &ada()).unwrap();
        scene.write("a", "ours\n");
        let before = room.entries(&scene.trail).len();
        let salvage = Wish { mode: Mode::Salvage, ..wish(id, Strategy::Evaluated) };
        assert_eq!(scene.integrate(&salvage).unwrap().conflicts.len(), 1);
        assert_eq!(state(&scene, id), State::Failed);
        scene.progress.resolve(id, &decide("c1", Choice::Theirs), &ada()).unwrap();
        assert_eq!(scene.resume(id).unwrap().result, Some(Outcome::ConflictResolved));
        assert_eq!((scene.read("a").as_str(), state(&scene, id)), ("theirs\n", State::Failed));
        let told = scene.told(&room, before);
        let ours: Vec<&(String, Value)> = told.iter().filter(|(kind, _)| kind.starts_with("integration_") || kind.starts_with("conflict_")).collect();
        assert_eq!(ours.len(), 5);
        assert!(ours.iter().all(|(_, body)| body["mode"] == json!("salvage")), "{ours:?}");
    }

    fn pr_32_work_of_a_failed_workspace_is_salvaged_from_its_directory(room: Room) {
        let scene = Scene::open(&room, 13);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = scene.apart(&root);
        write(&work.place.path, "a", "half\n");
        let first = scene.record_in(&work, &body(None, "provisional")).unwrap();
        write(&work.place.path, "a", "worse\n");
        scene.record_in(&work, &body(Some(&first), "provisional")).unwrap();
        let id = &work.created.workspace_id;
        scene.progress.move_to(id, State::Failed, Some("timeout"), &ada()).unwrap();
        fs::remove_dir_all(&work.place.path).unwrap(); // what is recorded is enough
        let salvage = Wish { mode: Mode::Salvage, record: Some(&first.id), ..wish(id, Strategy::Evaluated) };
        assert_eq!(scene.integrate(&salvage).unwrap().result, Some(Outcome::Success));
        assert_eq!((scene.read("a").as_str(), state(&scene, id)), ("half\n", State::Failed));
    }
}
