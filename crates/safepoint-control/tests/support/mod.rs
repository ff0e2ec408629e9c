//! What the tests of HTTPS share: a server with a certificate of its own, and
//! sessions under an atlas that the test writes.

#![allow(dead_code, reason = "each test binary uses its part")]

mod server;

use std::collections::BTreeMap;
use std::sync::Arc;

use safepoint_control::{
    AtlasFile, Caller, Control, Https, Signature, Start, Started, Surroundings,
};
use safepoint_model::Digest;
use safepoint_trail::Entry;
use serde_json::{Value, json};
use testkit::{Room, Seeded};

pub(crate) use server::{Answer, Server};

/// Who trusts this server and nobody else.
pub(crate) fn trusting(server: &Server) -> Https {
    Https::new().with_roots(server.pem()).unwrap()
}

/// The sessions of a room.
pub(crate) fn control(room: &Room, caller: impl Caller + Send + Sync + 'static) -> Control {
    let around = Surroundings {
        clock: room.clock.clone(),
        entropy: Arc::new(Seeded::new(7)),
        actor: "agent:test".parse().unwrap(),
        caller: Box::new(caller),
    };
    Control::open(room.trail(), around).unwrap()
}

/// Begins a session under an atlas with these members besides its name.
pub(crate) fn start(control: &Control, atlas_id: &str, members: Value) -> Started {
    let mut manifest = json!({
        "atlas_version": "1.0",
        "atlas_id": atlas_id,
        "version": "1.0.0",
        "name": "Test",
    });
    let given = manifest.as_object_mut().unwrap();
    given.extend(members.as_object().unwrap().clone());
    let text = manifest.to_string();
    let start = Start {
        atlases: vec![AtlasFile {
            path: "/nowhere/atlas.yaml".into(),
            digest: Digest::of_parts(&[text.as_bytes()]),
            text,
            manifest: serde_json::from_value(manifest).unwrap(),
            modules: BTreeMap::new(),
            signature: Signature::None,
        }],
        goal: None,
        key: None,
    };
    control.start(&start).unwrap()
}

/// The bodies of all entries of one kind.
pub(crate) fn recorded(room: &Room, kind: &str) -> Vec<(Entry, Value)> {
    let entries = room.entries(&room.trail());
    let of_kind = entries
        .into_iter()
        .filter(|entry| entry.kind.as_str() == kind);
    of_kind
        .map(|entry| {
            let body = serde_json::from_str(&entry.body).unwrap();
            (entry, body)
        })
        .collect()
}
