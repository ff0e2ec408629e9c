//! What a machine and the control plane say to each other about an action: documents, and
//! nothing else.
//!
//! The machine says what it saw. What follows from that, it does not say: whoever judges
//! works out the fingerprint, what is forbidden and whom to trust.

use std::collections::BTreeSet;

use safepoint_authority::{AtlasPin, Canonical, Coverage, Denial, Envelope, Permit, SideEffect};
use safepoint_gates::{Condition, Outcome, Request, Resolution, RiskTier};
use safepoint_model::{ActionId, Digest, PermitId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::see::Form;
use super::{Mode, Proposal, Visitor};
use crate::WorkflowIdentity;
use crate::session::ByPolicy;

/// The version of these documents.
pub(super) const FORMAT: u32 = 1;

/// The most changed paths that are named; how many there were is told always.
pub(super) const MOST_CHANGES: usize = 1_000;

/// Who comes with an action, and where it would happen.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Entering {
    /// The version of this form.
    pub format: u32,
    /// The directory, on the machine that asks.
    pub workspace: String,
    /// The session; without one, that of the directory.
    pub session: Option<SessionId>,
    /// What for.
    pub objective: Option<String>,
    /// The client, if it is one.
    pub visitor: Option<Visitor>,
    /// What is wished for, if an action is to be found for it.
    pub wish: Option<String>,
    /// Whether a session begins in any case: for an agent that is started now.
    pub anew: bool,
}

impl Entering {
    pub(super) fn new(workspace: String) -> Self {
        Self {
            format: FORMAT,
            workspace,
            session: None,
            objective: None,
            visitor: None,
            wish: None,
            anew: false,
        }
    }
}

/// The session it is judged in, and under what.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Entered {
    /// The session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// What it is judged under.
    pub atlases: Vec<AtlasPin>,
    /// The same, with the rules that come with the program.
    #[schemars(with = "String")]
    pub policy_version: Digest,
    /// The action under which it goes, if one was asked for.
    #[schemars(with = "Option<String>")]
    pub action_id: Option<ActionId>,
    /// What the gates said, if the session has begun now.
    pub resolution: Option<Resolution>,
}

/// What is wanted, besides the form.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Wants {
    /// Whose model or service proposes it.
    pub provider: Option<String>,
    /// What for.
    pub objective: Option<String>,
    /// The workflow it is a step of.
    pub workflow: Option<WorkflowIdentity>,
    /// When a person is asked.
    pub mode: Mode,
    /// The effects that were declared.
    pub declared: Option<BTreeSet<SideEffect>>,
    /// The one action it says it is.
    pub said: Option<String>,
    /// What it keeps to.
    pub bounds: Option<Envelope>,
    /// The permit to be used.
    pub permit: Option<PermitId>,
    /// The client that carries it out.
    pub visitor: Option<Visitor>,
    /// Who asks. Another machine never says so: what its fence is asked for stays there.
    #[serde(skip)]
    pub(super) origin: Origin,
}

/// Who asks for something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Whoever wants to do it.
    #[default]
    Proposer,
    /// The fence, for a program that runs behind it. With whether a policy allows it.
    Fence(ByPolicy),
}

impl Proposal {
    /// What is wanted, besides the form.
    pub(super) fn wants(&self) -> Wants {
        Wants {
            provider: self.provider.clone(),
            objective: self.objective.clone(),
            workflow: self.workflow.clone(),
            mode: self.mode,
            declared: self.declared.clone(),
            said: self.said.clone(),
            bounds: self.bounds.clone(),
            permit: self.permit.clone(),
            visitor: self.visitor.clone(),
            origin: Origin::Proposer,
        }
    }
}

/// One of the actions that something comes to.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The action.
    pub action: String,
    /// Its parameters.
    pub parameters: Value,
    /// The risk that the machine sees in it.
    pub risk: Option<RiskTier>,
    /// What the machine knows of it.
    pub conditions: BTreeSet<Condition>,
}

/// Something that a machine wants to do, ready to be judged.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The version of this form.
    pub format: u32,
    /// The action under which it goes.
    pub action_id: ActionId,
    /// Exactly what it is.
    pub canonical: Canonical,
    /// What could be taken back.
    pub coverage: Coverage,
    /// The hash of the checkpoint before it.
    pub checkpoint_hash: Option<Digest>,
    /// What it comes to.
    pub requests: Vec<Part>,
    /// All that it changes, where that is known.
    pub claims: Option<Vec<String>>,
    /// The rest of what is wanted.
    pub wants: Wants,
}

impl Asked {
    pub(super) fn new(action: &ActionId, form: &Form, wants: Wants) -> Self {
        let requests = form.requests.iter().map(|request| Part {
            action: request.action.clone(),
            parameters: request.parameters.clone(),
            risk: request.risk,
            conditions: request.conditions.clone(),
        });
        Self {
            format: FORMAT,
            action_id: action.clone(),
            canonical: form.canonical.clone(),
            coverage: form.coverage.clone(),
            checkpoint_hash: form.checkpoint_hash,
            requests: requests.collect(),
            claims: form.claims.clone(),
            wants,
        }
    }
}

impl From<Part> for Request {
    fn from(one: Part) -> Self {
        Self {
            action: one.action,
            parameters: one.parameters,
            risk: one.risk,
            conditions: one.conditions,
        }
    }
}

/// What comes of it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It may be done, now and once.
    Leave(Box<Granted>),
    /// It may not.
    Denied(Box<Refused>),
}

/// Leave to do one exact thing, once.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Granted {
    /// The action.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// Its session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// Exactly what it is for.
    #[schemars(with = "String")]
    pub fingerprint: Digest,
    /// `allow`, or `approved` when a person said yes.
    pub decision: String,
    /// The permit that is used up by it.
    pub permit: Option<Permit>,
    /// After how many approved successes the program is trusted.
    pub trust_after: Option<u32>,
    /// Whether a steward has allowed all of it by policies.
    pub by_policy: bool,
    /// Where a program may write, if it was let through by an envelope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<BTreeSet<String>>,
    /// What the gates said.
    pub resolution: Resolution,
}

/// A denial.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Refused {
    /// Why, and how to go on.
    pub denial: Denial,
    /// The session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// What the gates said.
    pub resolution: Option<Resolution>,
}

/// Something that is only to be foretold.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Foretelling {
    /// Who comes, and where to.
    pub entering: Entering,
    /// What the machine saw.
    pub asked: Asked,
}

/// What would come of it.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Foretold {
    /// Why it would be denied, if it would.
    pub denial: Option<Denial>,
    /// Exactly what would be done.
    pub canonical: Canonical,
    /// What the gates say.
    pub resolution: Resolution,
}

/// How an action ended.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    /// The version of this form.
    pub format: u32,
    /// The action.
    pub action_id: ActionId,
    /// Its session.
    pub session_id: SessionId,
    /// `ok`, `error`, `unknown` or `not_run`.
    pub outcome: String,
    /// What else the trail has of it.
    pub body: Value,
    /// What the gates are told, if they are.
    pub report: Option<Reported>,
    /// How many paths changed.
    pub changed: u64,
    /// Those paths, or the first of them.
    pub changes: Vec<ChangedPath>,
    /// Whether settings changed by which programs run that nobody has approved.
    pub chooses_code: bool,
}

/// What gates are told of an end.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Reported {
    /// Whether it went well.
    pub well: bool,
    /// With what.
    pub result: Option<Value>,
}

impl Reported {
    pub(super) fn outcome(&self) -> Outcome {
        match self.well {
            true => Outcome::Ok,
            false => Outcome::Error,
        }
    }
}

/// A path that changed.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedPath {
    /// Below the workspace.
    pub path: String,
    /// `created`, `modified`, `deleted` or `metadata`.
    pub change: String,
}

/// What is answered to an end.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Heard {
    /// Whether it was written now; it was known before otherwise.
    pub recorded: bool,
    /// What the gates say to it.
    pub resolution: Option<Resolution>,
}
