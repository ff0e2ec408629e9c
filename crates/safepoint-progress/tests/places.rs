//! Workspaces with a directory of their own, on both databases.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod scene;

use std::fs;
use std::path::Path;

use safepoint_progress::integrate::Strategy;
use safepoint_progress::rejection::Reason;
use safepoint_progress::state::State;
use safepoint_progress::{
    Beginning, PlaceKind, ProgressError, Unheld, checkpoint_in, create_apart, remove_apart,
};
use safepoint_state::objects::Mode;
use safepoint_state::{Selection, StateError};
use scene::{Scene, ada, body, claimed, directory, given, wish, write};
use serde_json::json;
use testkit::on_every_store;

on_every_store! {
    fn pr_07_a_workspace_is_known_by_its_directory(room: Room) {
        let scene = Scene::open(&room, 1);
        scene.write("a", "a\n");
        scene.git(&["init", "--quiet"]);
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "--quiet", "--message=first"]);
        let root = scene.root();
        let work = scene.apart(&root);
        assert_eq!(work.place.kind, PlaceKind::Worktree);
        let id = &work.created.workspace_id;
        assert_eq!(scene.progress.place(id).unwrap(), Some(work.place.clone()));
        let at = |path: &std::path::Path| scene.progress.at(path).unwrap().map(|place| place.workspace);
        assert_eq!(at(&work.place.path), Some(id.clone()));
        assert_eq!(at(&work.place.path.join("deep/er")), Some(id.clone()));
        assert_eq!(at(&scene.origin().root), None);
        assert_eq!(at(work.place.path.parent().unwrap()), None);
        assert_eq!(scene.progress.place(&root.workspace_id).unwrap(), None);
        assert_eq!(scene.progress.workspace(id).unwrap().state, State::Active);
    }

    fn pr_07_a_record_takes_files_and_state_from_the_directory(room: Room) {
        let scene = Scene::open(&room, 2);
        for name in ["a", "b", "c"] {
            scene.write(name, "1\n");
        }
        let work = scene.apart(&scene.root());
        let at = &work.place.path;
        write(at, "a", "2\n");
        write(at, "new/deep", "x\n");
        fs::remove_file(at.join("b")).unwrap();
        fs::create_dir(at.join("empty")).unwrap();
        let first = scene.record_in(&work, &body(None, "provisional")).unwrap();
        assert_eq!(first.payload.files_changed, ["a", "b", "new/deep"]);
        assert_eq!(first.actions.len(), 1); // what was seen to have happened
        let snapshot = scene.state.find(first.snapshot.as_ref().unwrap().as_str()).unwrap();
        scene.state.verify(&snapshot).unwrap();
        assert_eq!(snapshot.expiry, safepoint_model::Expiry::Never);
        // From the record before it, and not from the beginning.
        write(at, "c", "2\n");
        let second = scene.record_in(&work, &claimed(Some(&first), "final", &["c"])).unwrap();
        assert_eq!(second.payload.files_changed, ["c"]);
        assert!(second.actions.iter().all(|action| !first.actions.contains(action)));
        let third = scene.record_in(&work, &body(Some(&second), "final")).unwrap();
        assert!(third.payload.files_changed.is_empty());
        assert_eq!(scene.progress.verify(&work.created.workspace_id).unwrap().first_bad, None);
        assert_eq!(scene.read("a"), "1\n");
    }

    fn pr_07_what_git_ignores_is_nobodys_work(room: Room) {
        let scene = Scene::open(&room, 7);
        scene.write(".gitignore", "out/\n");
        scene.git(&["init", "--quiet"]);
        scene.git(&["add", "--all"]);
        scene.git(&["commit", "--quiet", "--message=first"]);
        let work = scene.apart(&scene.root());
        write(&work.place.path, "out/x", "1\n");
        write(&work.place.path, "source", "1\n");
        let first = scene.record_in(&work, &body(None, "provisional")).unwrap();
        assert_eq!(first.payload.files_changed, ["source"]);
        write(&work.place.path, "out/x", "2\n");
        let second = scene.record_in(&work, &body(Some(&first), "final")).unwrap();
        assert!(second.payload.files_changed.is_empty());
    }

    fn pr_07_a_claim_that_differs_from_the_directory_is_refused(room: Room) {
        let scene = Scene::open(&room, 3);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        write(&work.place.path, "b", "x\n");
        let before = room.entries(&scene.trail).len();
        let refused = scene.record_in(&work, &claimed(None, "final", &["a"])).unwrap_err();
        assert_eq!(refused.reason, Reason::InvalidStructure);
        assert!(refused.detail.contains("unchanged: `a`") && refused.detail.contains("not named: `b`"), "{refused}");
        let told = scene.told(&room, before);
        assert_eq!(told.iter().filter(|(kind, _)| kind == "checkpoint_rejected").count(), 1);
        assert_eq!(scene.progress.head(&work.created.workspace_id).unwrap(), None);
        // Without a directory nobody else can say it.
        let other = scene.below(&scene.root(), "worker");
        let text = body(None, "final").to_string();
        let refused = scene.progress.checkpoint(&other.workspace_id, &other.token, text.as_bytes(), None, None).unwrap();
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason, Reason::InvalidStructure);
        assert!(refused.detail.contains("files_changed"));
    }

    fn pr_07_what_is_refused_anyway_makes_no_snapshot(room: Room) {
        let scene = Scene::open(&room, 4);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        write(&work.place.path, "a", "2\n");
        let count = || scene.state.list(&Selection { workspace: Some(work.place.path.clone()), limit: None }).unwrap().len();
        let before = count();
        let wrong = scene.try_record_in(&work, "wst_wrong", &body(None, "final"));
        assert!(matches!(wrong, Err(ProgressError::NotTheAgent(_))));
        let told = room.entries(&scene.trail);
        assert_eq!(told.last().unwrap().kind.as_str(), "authentication_failed");
        let mut foreign = body(None, "final");
        foreign["parent"] = json!("rec_unknown");
        assert_eq!(scene.record_in(&work, &foreign).unwrap_err().reason, Reason::InvalidParent);
        scene.progress.move_to(&work.created.workspace_id, State::Blocked, None, &ada()).unwrap();
        assert_eq!(scene.record_in(&work, &body(None, "final")).unwrap_err().reason, Reason::WorkspaceNotActive);
        assert_eq!(count(), before);
        // Nor may the directory be left out, or be another one.
        scene.progress.move_to(&work.created.workspace_id, State::Active, None, &ada()).unwrap();
        let (id, token) = (&work.created.workspace_id, &work.created.token);
        let text = claimed(None, "final", &["a"]).to_string();
        assert!(matches!(scene.progress.checkpoint(id, token, text.as_bytes(), None, None), Err(ProgressError::Refused(_))));
        let elsewhere = checkpoint_in(&scene.progress, &scene.state, &scene.origin(), id, token, text.as_bytes(), None);
        assert!(matches!(elsewhere, Err(ProgressError::Invalid(_))));
    }

    fn pr_07_snapshots_of_records_are_never_collected(room: Room) {
        let scene = Scene::open(&room, 5);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        write(&work.place.path, "a", "2\n");
        let record = scene.record_in(&work, &body(None, "final")).unwrap();
        // One that is rejected in the end is like any other.
        write(&work.place.path, "a", "3\n");
        scene.record_in(&work, &claimed(Some(&record), "final", &["b"])).unwrap_err();
        let nothing_runs = |_: &mut dyn safepoint_store::Sql| Ok::<_, StateError>(Vec::new());
        let collected = scene.much_later().collect(&nothing_runs, Mode::Apply).unwrap();
        assert!(!collected.deleted.is_empty());
        for kept in [record.snapshot.as_ref().unwrap(), &work.place.base] {
            let snapshot = scene.state.find(kept.as_str()).unwrap();
            scene.state.verify(&snapshot).unwrap();
        }
    }

    fn pr_16_files_that_were_exchanged_behind_our_back_are_found_and_not_taken_over(room: Room) {
        let scene = Scene::open(&room, 5);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        let id = &work.created.workspace_id;
        write(&work.place.path, "a", "evil\n");
        let evil = scene.record_in(&work, &body(None, "provisional")).unwrap();
        write(&work.place.path, "a", "good\n");
        let good = scene.record_in(&work, &body(Some(&evil), "final")).unwrap();
        scene.complete(&work.created);
        assert!(scene.progress.verify(id).unwrap().valid);
        let [good, evil] = [good, evil].map(|record| record.snapshot.unwrap());
        room.tamper(&format!(
            "UPDATE state_snapshots SET record = (SELECT record FROM state_snapshots WHERE id = '{evil}') WHERE id = '{good}'"
        ));
        let verified = scene.progress.verify(id).unwrap();
        assert!(!verified.valid, "{verified:?}");
        assert_eq!(scene.progress.recover().unwrap().workspaces_failed, 1);
        let taken = scene.integrate(&wish(id, Strategy::Direct));
        assert!(matches!(taken, Err(ProgressError::Tampered { .. })), "{taken:?}");
        let told = room.entries(&scene.trail);
        let rejected = |body: &str| body.contains(r#""action_taken":"rejected""#);
        assert!(told.iter().any(|entry| entry.kind.as_str() == "integrity_violation" && rejected(&entry.body)));
        assert_eq!(scene.read("a"), "1\n");
    }

    fn pr_07_a_directory_is_removed_when_asked_and_never_before_the_end(room: Room) {
        let scene = Scene::open(&room, 6);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        let id = &work.created.workspace_id;
        let here = directory(&work.place.path);
        let remove = || remove_apart(&scene.progress, &scene.state, &here, id, Unheld::Keep, &ada());
        assert!(matches!(remove(), Err(ProgressError::Unfit(_))));
        assert_eq!(scene.progress.clear_apart(&scene.state).unwrap(), 0);
        write(&work.place.path, "unrecorded", "x\n");
        scene.progress.move_to(id, State::Failed, Some("aborted_by_coordinator"), &ada()).unwrap();
        remove().unwrap();
        assert!(!work.place.path.exists());
        assert_eq!(scene.progress.places().unwrap(), []);
        // What was in it can still be had.
        let last = scene.state.list(&Selection { workspace: Some(work.place.path.clone()), limit: Some(1) }).unwrap();
        assert_eq!(last[0].record.files.files, 2);
        remove().unwrap();
    }

    fn pr_13_a_state_that_nobody_told_of_takes_no_directory_away(room: Room) {
        let scene = Scene::open(&room, 9);
        scene.write("a", "1\n");
        let root = scene.root();
        let work = scene.apart(&root);
        let (id, path) = (&work.created.workspace_id, &work.place.path);
        room.tamper(&format!(
            "INSERT INTO progress_moves (workspace, number, state, former, reason, time, entry) \
             SELECT workspace, number + 1, 'closed', NULL, NULL, time + 1, entry FROM progress_moves \
             WHERE workspace = '{id}' AND number = (SELECT max(number) FROM progress_moves WHERE workspace = '{id}')"
        ));
        let removed = remove_apart(&scene.progress, &scene.state, &directory(path), id, Unheld::Discard, &ada());
        assert!(matches!(removed, Err(ProgressError::Tampered { .. })), "{:?}", removed.err());
        assert!(path.join("a").exists());
    }

    fn pr_32_no_other_directory_is_removed_or_looked_at_in_the_place_of_one(room: Room) {
        let scene = Scene::open(&room, 8);
        scene.write("a", "1\n");
        let precious = scene.top.join("precious");
        write(&precious, "kept", "1\n");
        write(&precious, ".env", "TOKEN=1\n");
        let names = |at: &Path| {
            let mut names: Vec<_> = fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let root = scene.root();
        let work = scene.apart(&root);
        let (id, path) = (&work.created.workspace_id, &work.place.path);
        let away = scene.top.join("away");
        fs::rename(path, &away).unwrap();
        let beginning = Beginning::Below(id, "worker".parse().unwrap());
        let below = || create_apart(&scene.progress, &scene.state, &directory(path), &beginning, &given("work"), &ada());
        let gone = below().unwrap_err().to_string();
        assert!(gone.contains("is gone") && !gone.contains("another one"), "{gone}");
        let gone = scene.try_record_in(&work, &work.created.token, &body(None, "final")).unwrap_err().to_string();
        assert!(gone.contains("is gone") && !gone.contains("another one"), "{gone}");
        std::os::unix::fs::symlink(&precious, path).unwrap();
        assert!(matches!(below(), Err(ProgressError::Refused(_))));
        scene.progress.move_to(id, State::Failed, Some("aborted_by_coordinator"), &ada()).unwrap();
        let told = room.entries(&scene.trail).len();
        let remove = |unheld| remove_apart(&scene.progress, &scene.state, &directory(path), id, unheld, &ada());
        let refused = |other: &str| {
            for unheld in [Unheld::Keep, Unheld::Discard] {
                let why = remove(unheld).unwrap_err();
                assert!(matches!(why, ProgressError::Refused(_)), "{other}: {why}");
                assert!(why.to_string().contains("another one is in its place"), "{other}: {why}");
            }
            assert_eq!(room.entries(&scene.trail).len(), told, "{other}");
            assert_eq!(names(&precious), [".env", "kept"], "{other}");
        };
        refused("a link to another directory");
        fs::remove_file(path).unwrap();
        std::os::unix::fs::symlink(&away, path).unwrap();
        refused("a link to the very same");
        fs::remove_file(path).unwrap();
        write(path, ".env", "TOKEN=2\n");
        refused("another directory");
        assert_eq!(names(path), [".env"]);
        fs::remove_dir_all(path).unwrap();
        fs::write(path, "a file").unwrap();
        refused("a file");
        fs::remove_file(path).unwrap();
        fs::rename(&away, path).unwrap();
        assert!(remove(Unheld::Keep).unwrap().checkpoint.is_some());
        assert!(!path.exists());
        // What is gone can still be forgotten, also behind a link in place of all of it.
        let work = scene.apart(&root);
        let (id, path) = (&work.created.workspace_id, &work.place.path);
        fs::remove_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&precious, path.parent().unwrap()).unwrap();
        scene.progress.move_to(id, State::Failed, Some("aborted_by_coordinator"), &ada()).unwrap();
        let gone = remove_apart(&scene.progress, &scene.state, &directory(path), id, Unheld::Keep, &ada()).unwrap();
        assert!(gone.checkpoint.is_none());
        assert_eq!(names(&precious), [".env", "kept"]);
        assert!(path.parent().unwrap().symlink_metadata().is_err());
    }
}
