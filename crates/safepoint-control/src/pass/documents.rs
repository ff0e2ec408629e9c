//! What the passage keeps: holds, permits, trust, operators, how a session stands, what runs.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_authority::{
    Directory, Envelope, Executable, Hold, HoldState, NamedPath, Operator, Permit, PermitState,
    Trust,
};
use safepoint_model::{ActionId, Digest, HoldId, PermitId, SessionId, Timestamp};
use serde::{Deserialize, Serialize};

use super::Visitor;
use super::asked::Told;
use super::confine::OutsideGrant;
use super::disagreement::ForetoldEffect;
use super::effect::MeasuredEffect;
use super::places::EnvelopePlace;
use super::recover::started;
use super::see::AGENT_RUN;
use super::supervise::ReachRecord;
use crate::kept::Kept;

impl Kept for Hold {
    const KIND: &'static str = "hold";
    const WHAT: &'static str = "hold";

    fn id(&self) -> String {
        self.hold_id.to_string()
    }
    fn time(&self) -> Timestamp {
        self.since
    }
    fn is_open(&self) -> bool {
        matches!(self.state, HoldState::Pending | HoldState::Halted)
    }
    fn topic(&self) -> Option<String> {
        Some(self.canonical.wish().to_string())
    }
    fn action(&self) -> Option<&ActionId> {
        Some(&self.action_id)
    }
}

impl Kept for Permit {
    const KIND: &'static str = "permit";
    const WHAT: &'static str = "permit";

    fn id(&self) -> String {
        self.permit_id.to_string()
    }
    fn time(&self) -> Timestamp {
        self.issued
    }
    fn is_open(&self) -> bool {
        matches!(
            self.state,
            PermitState::Issued {} | PermitState::Reserved { .. }
        )
    }
    fn topic(&self) -> Option<String> {
        Some(self.wish.to_string())
    }
    fn action(&self) -> Option<&ActionId> {
        Some(&self.action_id)
    }
}

impl Kept for Trust {
    const KIND: &'static str = "trust";
    const WHAT: &'static str = "trust in the boundary";

    fn id(&self) -> String {
        self.boundary.to_string()
    }
    fn time(&self) -> Timestamp {
        self.since
    }
    fn is_open(&self) -> bool {
        true
    }
}

impl Kept for Operator {
    const KIND: &'static str = "operator";
    const WHAT: &'static str = "operator";

    fn id(&self) -> String {
        self.name.clone()
    }
    fn time(&self) -> Timestamp {
        self.since
    }
    fn is_open(&self) -> bool {
        self.removed.is_none()
    }
}

/// How a session stands, as far as decisions of operators go.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Standing {
    pub(crate) format: u32,
    pub(crate) session_id: SessionId,
    /// Whether every step asks.
    pub(crate) every_step: bool,
    /// What stopped it, until an operator acts.
    pub(crate) halted_by: Option<HoldId>,
    /// What it may do without asking.
    pub(crate) envelope: Option<Envelope>,
    /// Where its paths led when it was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) places: BTreeMap<String, EnvelopePlace>,
    /// The hold with whose approval it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) envelope_hold: Option<HoldId>,
    /// How many operators agreed to that: it is no answer to a rule that wants more of them.
    pub(crate) approvers: u32,
    /// Who has proposed so far.
    pub(crate) provider: Option<String>,
    /// A boundary that was violated in it, until an operator has decided once.
    pub(crate) violated: Option<String>,
    /// Whether the rules have changed since an operator last widened its scope.
    pub(crate) rules_changed: bool,
    /// Files outside the workspace that its commands may write, since a policy allows it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) outside: BTreeSet<String>,
    pub(crate) time: Timestamp,
}

impl Standing {
    pub(crate) fn new(session_id: SessionId, now: Timestamp) -> Self {
        Self {
            format: 1,
            session_id,
            every_step: false,
            halted_by: None,
            envelope: None,
            places: BTreeMap::new(),
            envelope_hold: None,
            approvers: 0,
            provider: None,
            violated: None,
            rules_changed: false,
            outside: BTreeSet::new(),
            time: now,
        }
    }
}

impl Kept for Standing {
    const KIND: &'static str = "standing";
    const WHAT: &'static str = "standing of the session";

    fn id(&self) -> String {
        self.session_id.to_string()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
}

/// The session of whoever works in a directory without naming one.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    pub(crate) format: u32,
    /// The directory, with the client and its session where one has come to it.
    pub(crate) workspace: String,
    pub(crate) session_id: SessionId,
    /// The sessions before it, the newest first: the rules were others then.
    pub(crate) earlier: Vec<SessionId>,
    /// The client's process, and when that was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<(u32, u64)>,
    pub(crate) time: Timestamp,
}

impl Kept for Place {
    const KIND: &'static str = "place";
    const WHAT: &'static str = "session of the directory";

    fn id(&self) -> String {
        self.workspace.clone()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
    fn topic(&self) -> Option<String> {
        Some(self.session_id.to_string())
    }
}

/// Where a client's session began. It stays judged there, wherever it goes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Home {
    pub(crate) format: u32,
    /// The client, and its own name for its session.
    pub(crate) visitor: String,
    pub(crate) workspace: String,
    pub(crate) time: Timestamp,
}

impl Kept for Home {
    const KIND: &'static str = "home";
    const WHAT: &'static str = "workspace of the client's session";

    fn id(&self) -> String {
        self.visitor.clone()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
}

/// An action that is being carried out. It is written before it begins, so that one that was
/// cut off is found.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Running {
    pub(crate) format: u32,
    pub(crate) action_id: ActionId,
    pub(crate) session_id: SessionId,
    pub(crate) workspace: String,
    /// The checkpoint before it.
    pub(crate) before: Option<String>,
    pub(crate) action: String,
    pub(crate) summary: String,
    pub(crate) decision: String,
    pub(crate) permit_id: Option<PermitId>,
    /// The process that carries it out, and when that was started.
    pub(crate) process: (u32, u64),
    pub(crate) time: Timestamp,
    pub(crate) ended: bool,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<Timestamp>,
    /// The client that carries it out itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) visitor: Option<Visitor>,
    /// All that it changes, where that is known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) claims: Option<Vec<String>>,
    /// The shell line, as it was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<String>,
    /// The directory for which that line was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<Directory>,
    /// Whether that line is run by its client as it is, and not behind the fence: there is none,
    /// or it was approved and no fence lets it happen.
    #[serde(default)]
    pub(crate) is_unfenced: bool,
    /// What it may reach outside the fence.
    #[serde(default)]
    pub(crate) grant: OutsideGrant,
    /// The process that runs that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) performer: Option<(u32, u64)>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<String>,
    /// The machine on which it happens, where that is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<Remote>,
    /// The session of the agent that it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent_session: Option<SessionId>,
    /// Where it may write, if it was let through by an envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<BTreeSet<String>>,
    /// What it reached outside the fence, and what it was refused.
    #[serde(default)]
    pub(crate) reach: ReachRecord,
    /// What its words said of it before it began. Actions from before that was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) foretold: Option<ForetoldEffect>,
    /// Whether it can be taken back, as it turned out; where nobody saw that, as its words say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effect: Option<MeasuredEffect>,
    /// What a client's own file tool names, as it was when it was let through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) targets: Vec<NamedPath>,
}

/// What is known of an action that happens on another machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remote {
    /// The machine, as its token names it.
    pub(crate) site: String,
    /// After how many approved successes the program is trusted.
    pub(crate) trust_after: Option<u32>,
    /// The program.
    pub(crate) tool: Option<String>,
    /// Its content, and its interpreters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<Executable>,
    pub(crate) policy_version: Digest,
}

impl Running {
    /// Whether it is an agent that a person started. What the agent does passes by itself, so
    /// it is no company to that.
    pub(crate) fn is_agent(&self) -> bool {
        self.action == AGENT_RUN
    }

    /// Whether it happens on this machine.
    pub(crate) fn is_here(&self) -> bool {
        self.remote.is_none()
    }

    /// Whether the process that was to say how it ends is gone.
    pub(crate) fn is_cut_off(&self) -> bool {
        let (process, begun) = match self.performer {
            // A line that runs as it is becomes that process, and its client says how it ended.
            Some(performer) if !self.is_unfenced => performer,
            _ => self.process,
        };
        started(process) != Some(begun)
    }

    /// The process from which it starts others. What a client does all by itself, such as
    /// writing a file that it names, starts none.
    pub(crate) fn starts_from(&self) -> Option<(u32, u64)> {
        match (&self.visitor, &self.performer, &self.claims) {
            (None, _, _) => Some(self.process),
            (Some(_), Some(performer), _) => Some(*performer),
            (Some(_), None, None) => Some(self.process),
            // A line that the client runs itself starts what it likes, whatever it names.
            (Some(_), None, Some(_)) if self.line.is_some() && self.is_unfenced => {
                Some(self.process)
            }
            (Some(_), None, Some(_)) => None,
        }
    }
}

impl Kept for Running {
    const KIND: &'static str = "running";
    const WHAT: &'static str = "action";

    fn id(&self) -> String {
        self.action_id.to_string()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        !self.ended
    }
    fn action(&self) -> Option<&ActionId> {
        Some(&self.action_id)
    }
}

/// How an action ended that was judged elsewhere, kept here until the server there knows.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unsent {
    pub(crate) format: u32,
    pub(crate) told: Told,
    pub(crate) time: Timestamp,
    /// Whether the server knows it, or does not want to.
    pub(crate) settled: bool,
    /// Why the server did not take it.
    pub(crate) refused: Option<String>,
    /// The process that is still asking whether it may be done. Where that is gone, it was
    /// not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asking: Option<(u32, u64)>,
}

impl Kept for Unsent {
    const KIND: &'static str = "outcome";
    const WHAT: &'static str = "outcome of the action";

    fn id(&self) -> String {
        self.told.action_id.to_string()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        !self.settled
    }
    fn action(&self) -> Option<&ActionId> {
        Some(&self.told.action_id)
    }
}
