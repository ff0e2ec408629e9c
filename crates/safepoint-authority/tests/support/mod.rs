//! An action as it could be, and people who decide.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::collections::{BTreeMap, BTreeSet};

use safepoint_authority::{
    AtlasPin, Canonical, Choice, Coverage, Decision, Directory, Executable, Hold, HoldState,
    Identity, Input, NamedPath, Permit, PermitState, Preimage, Proposer, Reversibility, Risk,
    ScopeDelta, SideEffect, SignedDecision, Tool, Trigger, Workspace,
};
use safepoint_model::{Digest, Entropy, EntropyError, HoldId, Timestamp};
use safepoint_trail::note::Signer;

/// Bytes that begin with this one.
pub(crate) struct Counted(pub(crate) u8);

impl Entropy for Counted {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = self.0.wrapping_add(place as u8).wrapping_mul(31);
        }
        Ok(())
    }
}

pub(crate) fn digest(of: &str) -> Digest {
    Digest::of_parts(&[of.as_bytes()])
}

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(1_700_000_000_000_000 + micros)
}

pub(crate) fn words(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// `rm -r build` in a workspace.
pub(crate) fn form() -> Canonical {
    Canonical {
        schema: Canonical::SCHEMA,
        tool: Tool {
            name: "exec".to_owned(),
            executable: Some(Executable {
                path: "/usr/bin/rm".to_owned(),
                digest: digest("rm"),
            }),
            interpreters: Vec::new(),
        },
        actions: words(&["file.delete"]),
        argv: vec!["rm".to_owned(), "-r".to_owned(), "build".to_owned()],
        directory: Directory {
            path: "/srv/site".to_owned(),
            identity: Identity {
                device: 2049,
                inode: 77,
            },
        },
        environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin".to_owned())]),
        paths: vec![NamedPath {
            path: "/srv/site/build".to_owned(),
            role: "delete".to_owned(),
            inside: true,
            preimage: Preimage::File {
                device: 2049,
                inode: 78,
                mode: 0o644,
                digest: digest("build"),
            },
        }],
        hosts: words(&["example.org"]),
        input: Input::None {},
        side_effects: BTreeSet::from([SideEffect::Write]),
        reversibility: Reversibility::Reversible,
        remainder: words(&["nothing much"]),
        risk: Risk::Medium,
        session_id: "ses_0000000000000001".parse().unwrap(),
        provider: Some("acme".to_owned()),
        workspace: Workspace {
            path: "/srv/site".to_owned(),
        },
        policy_version: digest("policy"),
        atlases: vec![AtlasPin {
            atlas_id: "tests".to_owned(),
            version: "1.0.0".to_owned(),
            digest: digest("atlas"),
        }],
    }
}

pub(crate) fn hold_id() -> HoldId {
    "hld_0000000000000001".parse().unwrap()
}

/// A hold on it, which ends at 1,000 µs.
pub(crate) fn hold(reversibility: Reversibility, quorum: u32) -> Hold {
    let canonical = Canonical {
        reversibility,
        ..form()
    };
    Hold {
        format: Hold::FORMAT,
        hold_id: hold_id(),
        action_id: "act_0000000000000001".parse().unwrap(),
        since: at(0),
        expires_at: at(1_000),
        triggers: vec![Trigger::PolicyDefined],
        basis: Vec::new(),
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
    }
}

pub(crate) fn signer(name: &str) -> Signer {
    Signer::generate(name, &Counted(name.len() as u8)).unwrap()
}

pub(crate) fn decision(hold: &Hold, operator: &str, choice: Choice) -> Decision {
    Decision {
        statement: Decision::purpose(),
        hold_id: hold.hold_id.clone(),
        action_id: hold.action_id.clone(),
        fingerprint: hold.fingerprint,
        choice,
        envelope: None,
        scope: None,
        confirm: hold.confirm(),
        reason: None,
        operator: operator.to_owned(),
        time: at(1),
    }
}

pub(crate) fn signed(decision: &Decision) -> SignedDecision {
    let text = decision.to_text().unwrap();
    SignedDecision::new(signer(&decision.operator).sign(&text))
}

/// A permit, which ends at 1,000 µs and rests on one boundary in its third version.
pub(crate) fn permit() -> Permit {
    Permit {
        format: 1,
        permit_id: "prm_0000000000000001".parse().unwrap(),
        hold_id: hold_id(),
        action_id: "act_0000000000000001".parse().unwrap(),
        session_id: form().session_id,
        wish: form().wish(),
        fingerprint: form().fingerprint().unwrap(),
        policy_version: digest("policy"),
        trust: trust(3),
        issued: at(0),
        expires_at: at(1_000),
        state: PermitState::Issued {},
    }
}

pub(crate) fn trust(version: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("tool:/usr/bin/rm".to_owned(), version)])
}
