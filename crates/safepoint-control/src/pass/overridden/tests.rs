//! A hold by two atlases, and what their stewards hear of it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use safepoint_authority::{
    Canonical, Coverage, Directory, HoldState, Identity, Input, Operator, OperatorKey, Proposer,
    Reversibility, Risk, ScopeDelta, SideEffect, Tool, Trigger, Workspace,
};
use safepoint_model::{Digest, SessionId, Span, Timestamp};
use safepoint_store::Durability;
use safepoint_trail::note::Signer;
use testkit::{Room, Seeded, on_every_store};

use super::super::Verdict;
use super::*;
use crate::{
    AtlasFile, Control, Message, NoCaller, NotDelivered, Poster, Signature, Start, Surroundings,
    kept,
};

/// Takes every notice.
#[derive(Default)]
struct Taken(RefCell<Vec<(String, Value)>>);

impl Poster for Taken {
    fn post(&self, webhook: &str, message: &Message) -> Result<(), NotDelivered> {
        let event = serde_json::from_str(&message.body).unwrap();
        self.0.borrow_mut().push((webhook.to_owned(), event));
        Ok(())
    }
}

fn control(room: &Room) -> Control {
    let around = Surroundings {
        clock: room.clock.clone(),
        entropy: Arc::new(Seeded::new(7)),
        actor: "agent:test".parse().unwrap(),
        caller: Box::new(NoCaller),
    };
    Control::open(room.trail(), around).unwrap()
}

/// An atlas whose steward wants to be told of these.
fn atlas(id: &str, triggers: &[&str]) -> AtlasFile {
    let manifest = json!({
        "atlas_version": "1.0", "atlas_id": id, "version": "1.0.0", "name": "Test",
        "steward": {"id": id, "notifications": {
            "channels": {"webhook": format!("https://{id}.example.com/")}, "triggers": triggers,
        }},
    });
    let text = manifest.to_string();
    AtlasFile {
        path: "/nowhere/atlas.yaml".into(),
        digest: crate::atlas::digest(&text, &BTreeMap::new()),
        text,
        manifest: serde_json::from_value(manifest).unwrap(),
        modules: BTreeMap::new(),
        signature: Signature::None,
    }
}

fn session(control: &Control) -> SessionId {
    let told = ["policy_override"];
    let start = Start {
        atlases: vec![
            atlas("held", &told),
            atlas("silent", &told),
            atlas("deaf", &["action_denied"]),
        ],
        goal: None,
        key: None,
    };
    control.start(&start).unwrap().session_id
}

fn basis(atlas_id: Option<&str>, policy_id: &str) -> Basis {
    Basis {
        policy_id: policy_id.to_owned(),
        atlas_id: atlas_id.map(str::to_owned),
        reason: "somebody looks".to_owned(),
    }
}

/// `cp a b`, held for these reasons.
fn hold(control: &Control, session: &SessionId, basis: Vec<Basis>, quorum: u32) -> Hold {
    let now = control.around.clock.now();
    let canonical = Canonical {
        schema: Canonical::SCHEMA,
        tool: Tool {
            name: "exec".to_owned(),
            executable: None,
            interpreters: Vec::new(),
        },
        actions: BTreeSet::from(["file.write".to_owned()]),
        argv: vec!["cp".to_owned(), "a".to_owned(), "b".to_owned()],
        directory: Directory {
            path: "/srv/site".to_owned(),
            identity: Identity {
                device: 1,
                inode: 2,
            },
        },
        environment: BTreeMap::new(),
        paths: Vec::new(),
        hosts: BTreeSet::new(),
        input: Input::None {},
        side_effects: BTreeSet::from([SideEffect::Write]),
        reversibility: Reversibility::Reversible,
        remainder: BTreeSet::new(),
        risk: Risk::Medium,
        session_id: session.clone(),
        provider: None,
        workspace: Workspace {
            path: "/srv/site".to_owned(),
        },
        policy_version: Digest::of_parts(&[]),
        atlases: Vec::new(),
    };
    let hold = Hold {
        format: Hold::FORMAT,
        hold_id: "hld_0000000000000001".parse().unwrap(),
        action_id: "act_0000000000000001".parse().unwrap(),
        since: now,
        expires_at: Timestamp::from_micros(now.as_micros() + 60_000_000),
        triggers: vec![Trigger::PolicyDefined],
        basis,
        scope_delta: ScopeDelta::default(),
        coverage: Coverage::default(),
        trust: BTreeMap::new(),
        fingerprint: canonical.fingerprint().unwrap(),
        canonical,
        quorum,
        proposer: Proposer {
            actor: "agent:test".to_owned(),
            objective: None,
        },
        decisions: Vec::new(),
        state: HoldState::Pending,
        earlier_run: None,
    };
    let written: Result<(), ControlError> = control
        .trail
        .write(Durability::Sync, |writing| kept::put(writing, &hold));
    written.unwrap();
    hold
}

struct People {
    ann: (Operator, Signer),
    bernd: (Operator, Signer),
}

/// Two who may decide.
fn people(desk: &Desk<'_>) -> People {
    let signer = |name: &str, seed| Signer::generate(name, &Seeded::new(seed)).unwrap();
    let (ann, bernd) = (signer("ann", 1), signer("bernd", 2));
    let held = OperatorKey::File;
    let first = desk.add_operator("ann", ann.public(), held, None).unwrap();
    let says = format!("operator add bernd {}", bernd.public());
    let word = desk.word(&first, &ann, &says).unwrap();
    let second = desk
        .add_operator("bernd", bernd.public(), held, Some(&word))
        .unwrap();
    People {
        ann: (first, ann),
        bernd: (second, bernd),
    }
}

fn decide(desk: &Desk<'_>, hold: &Hold, who: &(Operator, Signer), choice: Choice) -> HoldState {
    let verdict = Verdict {
        hold_id: hold.hold_id.clone(),
        fingerprint: hold.fingerprint,
        choice,
        envelope: None,
        scope: None,
        confirm: hold.confirm(),
        reason: Some("it is only a copy".to_owned()),
    };
    desk.decide(&verdict, &who.0, &who.1).unwrap().0.state
}

fn desk(control: &Control) -> Desk<'_> {
    Desk {
        control,
        permit_life: Span::from_micros(60_000_000),
    }
}

/// What is delivered now.
fn told(control: &Control) -> Vec<(String, Value)> {
    let taken = Taken::default();
    control.deliver(&taken).unwrap();
    taken.0.into_inner()
}

on_every_store! {
    fn ga_43_a_steward_is_told_when_an_operator_overrides_their_policy(room: Room) {
        let control = control(&room);
        let desk = desk(&control);
        let people = people(&desk);
        let session = session(&control);
        let reasons = vec![
            basis(Some("held"), "writes"),
            basis(Some("deaf"), "writes too"),
            basis(None, "path_scope"),
        ];
        let hold = hold(&control, &session, reasons, 2);
        assert_eq!(decide(&desk, &hold, &people.ann, Choice::Continue), HoldState::Pending);
        // One of two decides nothing yet.
        assert_eq!(told(&control), []);
        assert_eq!(decide(&desk, &hold, &people.bernd, Choice::Continue), HoldState::Approved);
        let told = told(&control);
        let [(webhook, event)] = told.as_slice() else {
            panic!("one steward is told, once: {told:#?}");
        };
        assert_eq!(webhook, "https://held.example.com/");
        assert_eq!(event["type"], "dev.safepoint.policy_override");
        assert_eq!(event["subject"], session.as_str());
        assert_eq!(event["data"], json!({
            "request_id": hold.action_id,
            "hold_id": hold.hold_id,
            "fingerprint": hold.fingerprint,
            "actions": ["file.write"],
            "policies": [{"policy_id": "writes", "reason": "somebody looks"}],
            "choice": "continue",
            "operators": ["ann", "bernd"],
            "reason": "it is only a copy",
        }));
    }

    fn ga_43_a_no_overrides_nothing_nor_does_a_yes_to_a_boundary(room: Room) {
        let control = control(&room);
        let desk = desk(&control);
        let people = people(&desk);
        let session = session(&control);
        let by_policy = hold(&control, &session, vec![basis(Some("held"), "writes")], 1);
        assert_eq!(decide(&desk, &by_policy, &people.ann, Choice::Deny), HoldState::Denied);
        let by_boundary = hold(&control, &session, vec![basis(None, "path_scope")], 1);
        assert_eq!(decide(&desk, &by_boundary, &people.ann, Choice::Continue), HoldState::Approved);
        assert_eq!(told(&control), []);
    }
}
