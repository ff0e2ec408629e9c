//! What can be done to workspaces, as values that proptest makes and shrinks.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// One life of a store.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) steps: Vec<Step>,
}

/// One step, and where the process that does it is killed.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) what: What,
    pub(crate) crash: Option<String>,
}

/// What is done. Workspaces are meant by their number, taken modulo how many there are.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) enum What {
    Root {
        directive: bool,
    },
    Below {
        parent: usize,
        observer: bool,
        directive: bool,
    },
    Record {
        space: usize,
        token: Token,
        ask: Ask,
    },
    Emit {
        space: usize,
        token: Token,
        kind: usize,
        reason: bool,
    },
    Move {
        space: usize,
        to: usize,
    },
    Migrate {
        space: usize,
    },
    Clock {
        micros: i64,
    },
    Reopen,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Token {
    Right,
    Old,
    Wrong,
}

/// A record that is asked for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Ask {
    pub(crate) upon: Upon,
    pub(crate) kind: Kind,
    pub(crate) is_final: bool,
    pub(crate) confidence: usize,
    pub(crate) broken: bool,
    pub(crate) key: Option<u8>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Upon {
    Head,
    Nothing,
    First,
    Foreign,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Kind {
    Fitting,
    Artifact,
    Observation,
    Unknown,
}

/// Where a process may be killed: wherever a write passes, and between its parts.
fn points() -> Vec<&'static str> {
    let writes = safepoint_store::fault::POINTS.iter().take(5);
    let steps = safepoint_progress::FAULT_POINTS.iter();
    writes.chain(steps).copied().collect()
}

pub(crate) fn life() -> impl Strategy<Value = Life> {
    prop::collection::vec(step(), 4..40).prop_map(|mut steps| {
        // Without these most lives would be nothing but refusals.
        let first = [
            What::Root { directive: true },
            What::Below {
                parent: 0,
                observer: false,
                directive: true,
            },
        ];
        steps.splice(0..0, first.map(|what| Step { what, crash: None }));
        Life { steps }
    })
}

fn step() -> impl Strategy<Value = Step> {
    let crash = prop_oneof![
        12 => Just(None),
        1 => (prop::sample::select(points()), 1..4_u32)
            .prop_map(|(point, time)| Some(format!("{point}:{time}"))),
    ];
    (what(), crash).prop_map(|(what, crash)| Step { what, crash })
}

fn what() -> impl Strategy<Value = What> {
    let space = 0..6_usize;
    let token =
        || prop_oneof![10 => Just(Token::Right), 1 => Just(Token::Old), 1 => Just(Token::Wrong)];
    prop_oneof![
        1 => any::<bool>().prop_map(|directive| What::Root { directive }),
        3 => (space.clone(), any::<bool>(), prop::bool::weighted(0.8))
            .prop_map(|(parent, observer, directive)| What::Below { parent, observer, directive }),
        12 => (space.clone(), token(), ask())
            .prop_map(|(space, token, ask)| What::Record { space, token, ask }),
        5 => (space.clone(), token(), 0..11_usize, prop::bool::weighted(0.8))
            .prop_map(|(space, token, kind, reason)| What::Emit { space, token, kind, reason }),
        4 => (space.clone(), 0..9_usize).prop_map(|(space, to)| What::Move { space, to }),
        1 => space.prop_map(|space| What::Migrate { space }),
        1 => (-5_000_000..5_000_000_i64).prop_map(|micros| What::Clock { micros }),
        1 => Just(What::Reopen),
    ]
}

fn ask() -> impl Strategy<Value = Ask> {
    let upon = prop_oneof![
        12 => Just(Upon::Head),
        1 => Just(Upon::Nothing),
        1 => Just(Upon::First),
        1 => Just(Upon::Foreign),
    ];
    let kind = prop_oneof![
        9 => Just(Kind::Fitting),
        1 => Just(Kind::Artifact),
        1 => Just(Kind::Observation),
        1 => Just(Kind::Unknown),
    ];
    let key = prop_oneof![4 => Just(None), 1 => (0..2_u8).prop_map(Some)];
    (
        upon,
        kind,
        prop::bool::weighted(0.3),
        0..3_usize,
        prop::bool::weighted(0.06),
        key,
    )
        .prop_map(|(upon, kind, is_final, confidence, broken, key)| Ask {
            upon,
            kind,
            is_final,
            confidence,
            broken,
            key,
        })
}
