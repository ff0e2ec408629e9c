//! What is remembered of a session between two steps: all of it, and nothing else.
//!
//! A session is data. Whoever has it and the atlases it was begun with can go
//! on with it, in another process or on another machine.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_model::{ActionId, Digest, HoldId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atlas::{Condition, RiskTier};

/// The version of this form.
pub const SESSION_FORMAT: u32 = 1;

/// One run of an agent under some atlases.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Session {
    /// The version of this form.
    pub format: u32,
    /// Its name.
    pub session_id: SessionId,
    /// Who acts in it.
    pub principal: String,
    /// What for.
    pub goal: Option<String>,
    /// When it began.
    pub started: Timestamp,
    /// The latest time that was seen in it: a clock that goes back does not take it back.
    pub latest: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// The atlases it is judged under, for as long as it lasts.
    pub atlases: Vec<Pinned>,
    /// Gates that are passed for the rest of the session.
    pub passed: BTreeSet<String>,
    /// Gates that stay shut, and for which action: `None` for all of them.
    pub shut: BTreeSet<Shut>,
    /// Capabilities that gates have unlocked.
    pub unlocked: BTreeSet<String>,
    /// Capabilities that gates have locked.
    pub locked: BTreeSet<String>,
    /// Actions that gates have allowed.
    pub allowed: Vec<Grant>,
    /// Actions that gates have denied.
    pub denied: Vec<Grant>,
    /// Contexts that the agent has.
    pub contexts: BTreeSet<String>,
    /// Gates whose guidance is in force, the oldest first.
    pub guidance: Vec<String>,
    /// How many actions were asked for.
    pub actions: u64,
    /// The last interval in which each of these gates was raised.
    pub intervals: BTreeMap<String, u64>,
    /// What waits for answers, the oldest first.
    pub holds: Vec<Hold>,
}

/// An atlas as it was when the session began.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Its name.
    pub atlas_id: String,
    /// Its version.
    pub version: String,
    /// The digest of everything in it.
    pub digest: Digest,
}

/// A gate that stays shut.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Shut {
    /// The gate.
    pub gate: String,
    /// The action it is shut for; all of them without one.
    pub action: Option<String>,
}

/// A pattern of actions that a gate has allowed or denied.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Which actions.
    pub pattern: String,
    /// Which gate said so.
    pub gate: String,
}

/// Gates that wait for answers, all raised by the same thing.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Its name.
    pub hold_id: HoldId,
    /// When it began.
    pub since: Timestamp,
    /// What raised it.
    pub cause: Cause,
    /// The gates, the most important first.
    pub gates: Vec<Waiting>,
}

/// What raised a hold.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub enum Cause {
    /// The beginning of the session.
    Start {},
    /// Something the agent read.
    Input {},
    /// An action that the agent asked for.
    Request {
        /// Its name.
        request_id: ActionId,
        /// The action.
        action: String,
        /// Its parameters.
        parameters: Value,
        /// Its risk.
        risk: RiskTier,
        /// What is known of it.
        #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
        conditions: BTreeSet<Condition>,
        /// What makes it exactly this request.
        fingerprint: Digest,
    },
    /// A capability that the agent asked for.
    Access {
        /// Which one.
        capability: String,
    },
    /// A question of the agent.
    Ask {},
    /// What came of an action.
    Report {
        /// Which one.
        request_id: ActionId,
        /// The action.
        action: String,
    },
    /// The end of the session.
    End {},
}

/// One gate that waits for answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Waiting {
    /// The gate.
    pub gate: String,
    /// What waits for it.
    pub reach: Reach,
    /// Whether it has been passed since.
    pub passed: bool,
    /// Questions that were answered well.
    pub answered: BTreeSet<String>,
    /// How often each question was answered wrongly.
    pub failed: BTreeMap<String, u32>,
}

/// What waits for a gate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Only what raised it.
    Cause,
    /// Everything the agent asks for from now on.
    Session,
}

impl Hold {
    /// Whether every gate of it has been passed.
    pub fn is_cleared(&self) -> bool {
        self.gates.iter().all(|waiting| waiting.passed)
    }

    /// The action it is about.
    pub fn action(&self) -> Option<&str> {
        match &self.cause {
            Cause::Request { action, .. } | Cause::Report { action, .. } => Some(action),
            _ => None,
        }
    }
}

impl Session {
    /// A session that begins now.
    pub fn new(
        session_id: SessionId,
        principal: String,
        goal: Option<String>,
        atlases: Vec<Pinned>,
        now: Timestamp,
    ) -> Self {
        Self {
            format: SESSION_FORMAT,
            session_id,
            principal,
            goal,
            started: now,
            latest: now,
            ended: None,
            atlases,
            passed: BTreeSet::new(),
            shut: BTreeSet::new(),
            unlocked: BTreeSet::new(),
            locked: BTreeSet::new(),
            allowed: Vec::new(),
            denied: Vec::new(),
            contexts: BTreeSet::new(),
            guidance: Vec::new(),
            actions: 0,
            intervals: BTreeMap::new(),
            holds: Vec::new(),
        }
    }

    /// Whether `gate` stays shut for `action`.
    pub(crate) fn is_shut(&self, gate: &str, action: Option<&str>) -> bool {
        self.shut.iter().any(|shut| {
            shut.gate == gate && (shut.action.is_none() || shut.action.as_deref() == action)
        })
    }
}
