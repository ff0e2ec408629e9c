//! What happens to a session, and what is known when it happens.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use safepoint_model::{ActionId, Digest, HoldId, Timestamp};
use serde_json::{Map, Value};

use crate::atlas::{Condition, RiskTier};
use crate::sandbox::Said;

/// One thing that happens to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It begins.
    Start,
    /// The agent reads something.
    Input {
        /// What.
        text: String,
    },
    /// The agent asks for an action.
    Request(Request),
    /// The agent asks for a capability.
    Access {
        /// Which one.
        capability: String,
    },
    /// The agent asks for help, or raises a gate by name.
    Ask {
        /// What about.
        topic: Option<String>,
        /// The gate.
        gate: Option<String>,
    },
    /// The agent answers the questions of a gate.
    Answer {
        /// The gate.
        gate: String,
        /// The hold, where the gate is in several.
        hold: Option<HoldId>,
        /// The answers, by question.
        answers: Map<String, Value>,
    },
    /// An action has ended.
    Report {
        /// Which one.
        request_id: ActionId,
        /// The action.
        action: String,
        /// How.
        outcome: Outcome,
        /// With what.
        result: Option<Value>,
    },
    /// The session ends.
    End {
        /// Whether what is asked at its end may stay unanswered.
        abandon: bool,
    },
}

/// An action that an agent asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The action.
    pub action: String,
    /// Its parameters.
    pub parameters: Value,
    /// The risk that the caller sees in it. It can raise the atlas's own, never lower it.
    pub risk: Option<RiskTier>,
    /// What is known of it.
    pub conditions: BTreeSet<Condition>,
}

/// How an action ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Well.
    Ok,
    /// Badly.
    Error,
}

/// What is known when something happens, and cannot be known by a pure function.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time.
    pub now: Timestamp,
    /// A name for a hold, should there be one.
    pub hold_id: HoldId,
    /// A name for the request, should it be one.
    pub request_id: ActionId,
    /// How often each limit was used in its window.
    pub uses: HashMap<String, u64>,
    /// What stewards' services answered.
    pub callbacks: Answers,
    /// How long they took, in milliseconds.
    pub callback_time: u64,
}

/// What stewards' services answered, by the key of what they were asked.
pub type Answers = BTreeMap<Digest, Result<Said, String>>;

/// Something a steward's service must be asked before it can be judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Callback {
    /// The name of its answer among the facts.
    pub key: Digest,
    /// The address.
    pub url: String,
    /// How long it may take.
    pub timeout_ms: u64,
    /// Whether the address may be one of a private network.
    pub allow_private_addresses: bool,
    /// What is sent.
    pub input: Value,
}

/// A limit on how often something may be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Its name among the facts.
    pub name: String,
    /// How long a window is, in seconds.
    pub window_seconds: u64,
    /// How many in a window.
    pub most: u64,
}
