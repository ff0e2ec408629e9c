//! What the control plane believes of a machine elsewhere, and what it does not.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail loudly")]
#![allow(clippy::indexing_slicing, reason = "documents of tests")]

use std::sync::Arc;

use safepoint_authority::DenialCode;
use safepoint_control::pass::{Asked, Bench, Entered, Entering, Reported, Settlement, Told};
use safepoint_control::{AtlasFile, Control, ControlError, NoCaller, Surroundings};
use safepoint_model::Span;
use serde_json::{Value, json};
use testkit::{Room, Seeded, on_every_store};

const HOUR: i64 = 3_600 * 1_000_000;

/// The control plane as one token sees it.
fn control(room: &Room, actor: &str, seed: u64) -> Control {
    let around = Surroundings {
        clock: room.clock.clone(),
        entropy: Arc::new(Seeded::new(seed)),
        actor: actor.parse().unwrap(),
        caller: Box::new(NoCaller),
    };
    Control::open(room.trail(), around).unwrap()
}

fn bench<'a>(control: &'a Control, atlases: &'a [AtlasFile], site: &str) -> Bench<'a> {
    Bench {
        control,
        atlases,
        hold_timeout: Span::from_secs(900),
        root: "/work/project".to_owned(),
        site: Some(site.to_owned()),
        place: None,
    }
}

fn entering(session: Option<&Entered>) -> Entering {
    Entering {
        format: 1,
        workspace: "/work/project".to_owned(),
        session: session.map(|it| it.session_id.clone()),
        objective: None,
        visitor: None,
        wish: Some("0".repeat(64)),
        anew: false,
    }
}

/// Reading a file, or what a test makes of it.
fn asked(entered: &Entered, change: impl FnOnce(&mut Value)) -> Asked {
    let mut asked = json!({
        "format": 1,
        "action_id": entered.action_id,
        "canonical": {
            "schema": 1,
            "tool": {"name": "exec", "executable": {"path": "/usr/bin/cat", "digest": "1".repeat(64)}},
            "actions": ["file.read"], "argv": ["cat", "a"],
            "directory": {"path": "/work/project", "identity": {"device": 1, "inode": 2}},
            "environment": {}, "paths": [], "hosts": [], "input": {"none": {}},
            "side_effects": ["read"], "reversibility": "reversible", "remainder": [], "risk": "low",
            "session_id": entered.session_id, "provider": null,
            "workspace": {"path": "/work/project"},
            "policy_version": entered.policy_version, "atlases": entered.atlases,
        },
        "coverage": {"checkpoint_id": null, "covered": [], "not_covered": []},
        "checkpoint_hash": null,
        "requests": [{"action": "file.read", "parameters": {}, "risk": "low", "conditions": ["fully_reversible"]}],
        "claims": [],
        "wants": {
            "provider": null, "objective": null, "workflow": null, "mode": "policy", "declared": null,
            "said": null, "bounds": null, "permit": null, "visitor": null,
        },
    });
    change(&mut asked);
    serde_json::from_value(asked).unwrap()
}

fn told(entered: &Entered, outcome: &str) -> Told {
    Told {
        format: 1,
        action_id: entered.action_id.clone().unwrap(),
        session_id: entered.session_id.clone(),
        outcome: outcome.to_owned(),
        body: json!({}),
        report: Some(Reported {
            well: outcome == "ok",
            result: None,
        }),
        changed: 0,
        changes: Vec::new(),
        chooses_code: false,
    }
}

fn ended(room: &Room) -> Vec<String> {
    let entries = room.entries(&room.trail());
    let of_kind = entries
        .into_iter()
        .filter(|it| it.kind.as_str() == "action_ended");
    of_kind
        .map(|it| {
            let body: Value = serde_json::from_str(&it.body).unwrap();
            body["outcome"].as_str().unwrap().to_owned()
        })
        .collect()
}

#[track_caller]
fn leave(settlement: Settlement) {
    if let Settlement::Denied(refused) = settlement {
        panic!("{:?}", refused.denial);
    }
}

#[track_caller]
fn denied(settlement: Settlement) -> DenialCode {
    match settlement {
        Settlement::Denied(refused) => refused.denial.code,
        Settlement::Leave(_) => panic!("it was let through"),
    }
}

on_every_store! {
    fn su_09_a_silent_machine_is_given_up_after_a_day(room: Room) {
        let atlases = [AtlasFile::built_in().unwrap()];
        let control = control(&room, "token:laptop", 1);
        let bench = bench(&control, &atlases, "@laptop");
        let entered = bench.receive(&entering(None)).unwrap();
        leave(bench.propose(&asked(&entered, |_| {})).unwrap());
        room.clock.move_by(23 * HOUR);
        bench.receive(&entering(None)).unwrap();
        assert_eq!(ended(&room), Vec::<String>::new());
        room.clock.move_by(2 * HOUR);
        bench.receive(&entering(None)).unwrap();
        assert_eq!(ended(&room), ["unknown"]);
        // What it says after all is kept, and changes nothing.
        assert!(!bench.ended(&told(&entered, "ok")).unwrap().recorded);
        assert!(!bench.ended(&told(&entered, "ok")).unwrap().recorded);
        let entries = room.entries(&room.trail());
        let late = entries.iter().filter(|it| it.kind.as_str() == "action_told_late");
        assert_eq!(late.count(), 1);
        assert_eq!(ended(&room), ["unknown"]);
    }

    fn su_09_an_outcome_is_written_once(room: Room) {
        let atlases = [AtlasFile::built_in().unwrap()];
        let control = control(&room, "token:laptop", 1);
        let bench = bench(&control, &atlases, "@laptop");
        let entered = bench.receive(&entering(None)).unwrap();
        leave(bench.propose(&asked(&entered, |_| {})).unwrap());
        assert!(bench.ended(&told(&entered, "ok")).unwrap().recorded);
        assert!(!bench.ended(&told(&entered, "error")).unwrap().recorded);
        assert_eq!(ended(&room), ["ok"]);
        // Nor is the action done again.
        let again = bench.propose(&asked(&entered, |_| {}));
        assert!(matches!(again, Err(ControlError::Meanwhile(_))), "{again:?}");
        let nonsense = bench.ended(&told(&entered, "perhaps"));
        assert!(matches!(nonsense, Err(ControlError::Proposal { .. })));
    }

    fn su_09_what_follows_is_not_believed(room: Room) {
        let atlases = [AtlasFile::built_in().unwrap()];
        let control = control(&room, "token:laptop", 1);
        let bench = bench(&control, &atlases, "@laptop");
        let entered = bench.receive(&entering(None)).unwrap();
        let refused = |change: &dyn Fn(&mut Value)| {
            let said = bench.propose(&asked(&entered, change));
            assert!(matches!(said, Err(ControlError::Proposal { .. })), "{said:?}");
        };
        refused(&|it| it["canonical"]["policy_version"] = json!("0".repeat(64)));
        refused(&|it| it["canonical"]["atlases"] = json!([]));
        refused(&|it| it["canonical"]["workspace"]["path"] = json!("/elsewhere"));
        refused(&|it| it["canonical"]["schema"] = json!(2));
        refused(&|it| it["format"] = json!(2));
        // What is judged is what is shown.
        refused(&|it| it["canonical"]["actions"] = json!(["file.read", "net.send"]));
        refused(&|it| it["requests"] = json!([]));
        // Trust that a machine claims for itself is none.
        let push = |it: &mut Value| {
            it["canonical"]["actions"] = json!(["net.send"]);
            it["canonical"]["reversibility"] = json!("irreversible");
            it["canonical"]["side_effects"] = json!(["network"]);
            it["requests"][0]["action"] = json!("net.send");
            it["requests"][0]["conditions"] = json!(["trusted"]);
        };
        let code = denied(bench.propose(&asked(&entered, push)).unwrap());
        assert_eq!(code, DenialCode::ApprovalRequired);
        // Safepoint itself is nobody's, whatever the machine says of it.
        let own = |it: &mut Value| {
            it["canonical"]["actions"] = json!(["safepoint.control"]);
            it["requests"][0]["action"] = json!("safepoint.control");
        };
        let code = denied(bench.propose(&asked(&entered, own)).unwrap());
        assert_eq!(code, DenialCode::ControlForbidden);
    }

    fn su_09_sessions_and_actions_of_others_are_not_there(room: Room) {
        let atlases = [AtlasFile::built_in().unwrap()];
        let (mine, theirs) = (control(&room, "token:laptop", 1), control(&room, "token:other", 2));
        let here = bench(&mine, &atlases, "@laptop");
        let there = bench(&theirs, &atlases, "@other");
        let entered = here.receive(&entering(None)).unwrap();
        leave(here.propose(&asked(&entered, |_| {})).unwrap());
        let unknown = |said: Result<(), ControlError>| {
            assert!(matches!(said, Err(ControlError::NotFound { .. })), "{said:?}");
        };
        unknown(there.receive(&entering(Some(&entered))).map(drop));
        unknown(there.propose(&asked(&entered, |_| {})).map(drop));
        unknown(there.ended(&told(&entered, "ok")).map(drop));
        // In a session of their own, neither.
        let own = there.receive(&entering(None)).unwrap();
        assert_ne!(own.session_id, entered.session_id);
        let stolen = Told {
            session_id: own.session_id.clone(),
            ..told(&entered, "error")
        };
        unknown(there.ended(&stolen).map(drop));
        let stolen = asked(&own, |it| it["action_id"] = json!(entered.action_id));
        let said = there.propose(&stolen);
        assert!(matches!(said, Err(ControlError::Proposal { .. })), "{said:?}");
        assert_eq!(ended(&room), Vec::<String>::new());
    }
}
