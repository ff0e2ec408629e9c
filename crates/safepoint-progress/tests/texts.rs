//! Texts from outside that not every database can keep: refused alike on both.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod scene;

use safepoint_progress::integrate::{ConflictType, Finding, Strategy, Wish};
use safepoint_progress::rejection::Reason;
use safepoint_progress::signal::SignalType;
use safepoint_progress::state::State;
use safepoint_progress::{Beginning, ProgressError, checkpoint_in};
use scene::{Scene, ada, body, claimed, directory, given, wish};
use serde_json::json;
use testkit::on_every_store;

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, ProgressError>) {
    let error = result.unwrap_err();
    assert!(
        matches!(&error, ProgressError::Invalid(why) if why.contains("NUL")),
        "{error:?}"
    );
}

on_every_store! {
    fn pr_11_what_holds_a_nul_is_refused_or_kept_byte_for_byte(room: Room) {
        let scene = Scene::open(&room, 1);
        let progress = &scene.progress;
        let root = scene.root();
        let worker = scene.below(&root, "worker");
        let (id, token) = (&worker.workspace_id, worker.token.as_str());
        let before = room.entries(&scene.trail).len();
        refused(progress.emit(id, token, SignalType::Escalation, Some("a\0b"), None));
        refused(progress.emit(id, token, SignalType::Ready, None, Some("a\0b")));
        refused(progress.move_to(id, State::Suspended, Some("\0"), &ada()));
        let beginning = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
        refused(progress.create(&beginning, &given("a\0b"), &ada()));
        refused(progress.create_task("a\0b", &[], false, &ada()));
        let findings = [Finding { kind: ConflictType::ConstraintBreach, description: "a\0b".to_owned() }];
        refused(scene.integrate(&Wish { findings: &findings, ..wish(id, Strategy::Evaluated) }));
        assert_eq!(room.entries(&scene.trail).len(), before);
        assert!("work\0er".parse::<safepoint_progress::role::Name>().is_err());
        assert!("user:a\0".parse::<safepoint_trail::Actor>().is_err());
        assert!(matches!(progress.find("wsp_\0"), Err(ProgressError::NotFound { .. })));
        // What a record says is bytes.
        let mut asked = claimed(None, "final", &["a"]);
        asked["payload"]["content"] = json!("a\0b");
        asked["intent"] = json!("why\0not");
        let made = scene.record(&worker, &asked);
        assert_eq!((made.payload.content.as_str(), made.intent.as_str()), ("a\0b", "why\0not"));
        assert_eq!(progress.head(id).unwrap(), Some(made.clone()));
        let rejected = |body: &serde_json::Value, key| progress.checkpoint(id, token, body.to_string().as_bytes(), key, None).unwrap().unwrap_err().reason;
        let mut strange = claimed(Some(&made), "final", &["a"]);
        assert_eq!(rejected(&strange, Some("k\0")), Reason::InvalidStructure);
        strange["type"] = json!("arti\0fact");
        assert!(matches!(rejected(&strange, None), Reason::InvalidType | Reason::InvalidStructure));
        let path = claimed(Some(&made), "final", &["a\0b"]);
        assert_eq!(rejected(&path, None), Reason::InvalidStructure);
        assert_eq!(progress.verify(id).unwrap().first_bad, None);
    }

    fn pr_17_a_key_with_a_nul_is_rejected_with_a_directory_too(room: Room) {
        let scene = Scene::open(&room, 2);
        scene.write("a", "1\n");
        let work = scene.apart(&scene.root());
        let text = body(None, "final").to_string();
        let (id, token) = (&work.created.workspace_id, work.created.token.as_str());
        let made = checkpoint_in(&scene.progress, &scene.state, &directory(&work.place.path), id, token, text.as_bytes(), Some("k\0"));
        assert_eq!(made.unwrap().unwrap_err().reason, Reason::InvalidStructure);
    }
}
