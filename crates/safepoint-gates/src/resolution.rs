//! What comes out of a step: the resolution that the agent sees, and the
//! records that the trail gets.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use safepoint_model::HoldId;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::answer::Failure;
use crate::atlas::{AtlasManifest, CheckpointMode, GuidanceFormat, NotificationTrigger};
use crate::session::Session;

/// What was decided, the strictest last.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may go on.
    Allow,
    /// A person decides.
    RequiresApproval,
    /// Questions wait for answers.
    Hold,
    /// It may not.
    Deny,
}

impl Decision {
    /// The decision as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::RequiresApproval => "requires_approval",
            Self::Hold => "hold",
            Self::Deny => "deny",
        }
    }
}

/// What an agent may do now, and what it is told.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Resolution {
    /// What was decided.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// Actions that the session may ask for.
    pub allowed_actions: Vec<ActionNote>,
    /// Actions that it may not.
    pub denied_actions: Vec<ActionNote>,
    /// The gates that have to do with this step, in the order in which they count.
    pub checkpoints: Vec<GateNote>,
    /// The questions that wait for answers.
    pub questions: Vec<QuestionNote>,
    /// Contexts that are given now.
    pub contexts: Vec<ContextNote>,
    /// Guidance that is in force.
    pub guidance: Vec<GuidanceNote>,
    /// Which capabilities are open, and which are not.
    pub capabilities: Capabilities,
    /// Policies that had a say.
    pub policies: Vec<PolicyNote>,
    /// What the budget left out.
    pub dropped: Vec<Dropped>,
    /// What went on although something was wrong.
    pub warnings: Vec<String>,
    /// What waits for answers, if anything does.
    #[schemars(with = "Option<String>")]
    pub hold_id: Option<HoldId>,
}

/// An action, and why it may or may not be asked for.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct ActionNote {
    /// The action.
    #[schemars(with = "String")]
    #[serde(serialize_with = "text", deserialize_with = "shared")]
    pub action_id: Arc<str>,
    /// Why.
    #[schemars(with = "String")]
    pub reason: Why,
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(String::deserialize(deserializer)?.into())
}

/// Why an action may or may not be asked for. Put into words only when it is shown:
/// there are many, and few are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is in no capability.
    Ungoverned,
    /// A capability that has it is open.
    Open(Arc<str>),
    /// A gate or a policy allows it by name.
    Granted(Arc<str>),
    /// The same, and a gate will ask first.
    Asks(Arc<str>),
    /// Its capability is locked, and this gate unlocks it.
    Locked(Arc<str>, Option<Arc<str>>),
    /// A gate denies it.
    DeniedByGate(Arc<str>),
    /// A policy denies it.
    DeniedByPolicy(Arc<str>),
    /// A policy wants a person's approval.
    NeedsApproval(Arc<str>),
    /// Everything waits for this gate.
    Waits(Arc<str>),
    /// Everything is shut by this gate.
    Shut(Arc<str>),
    /// The session is over.
    Ended,
    /// Whoever judged it elsewhere said so, in these words.
    Said(Arc<str>),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ungoverned => f.write_str("in no capability, so open"),
            Self::Open(capability) => write!(f, "capability `{capability}` is unlocked"),
            Self::Granted(who) => write!(f, "allowed by `{who}`"),
            Self::Asks(gate) => write!(f, "allowed once checkpoint `{gate}` is passed"),
            Self::Locked(capability, None) => write!(f, "capability `{capability}` is locked"),
            Self::Locked(capability, Some(gate)) => write!(
                f,
                "capability `{capability}` is locked until checkpoint `{gate}` is passed"
            ),
            Self::DeniedByGate(gate) => write!(f, "denied by checkpoint `{gate}`"),
            Self::DeniedByPolicy(reason) => f.write_str(reason),
            Self::NeedsApproval(reason) => f.write_str(reason),
            Self::Waits(gate) => write!(f, "waits for checkpoint `{gate}`"),
            Self::Shut(gate) => write!(f, "checkpoint `{gate}` is shut"),
            Self::Ended => f.write_str("the session has ended"),
            Self::Said(words) => f.write_str(words),
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Why {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        shared(deserializer).map(Self::Said)
    }
}

/// A gate that has to do with a step.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct GateNote {
    /// The gate.
    pub checkpoint_id: String,
    /// The atlas it is in.
    pub atlas_id: String,
    /// What raises it.
    #[serde(rename = "type")]
    pub gate_type: Cow<'static, str>,
    /// What being raised means.
    pub mode: CheckpointMode,
    /// Higher comes first.
    pub priority: i64,
    /// How it stands.
    pub status: GateStatus,
}

/// How a gate stands.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    /// It is behind us.
    Passed,
    /// It waits for answers.
    Pending,
    /// It stays shut.
    Blocked,
    /// It was only recorded.
    Recorded,
}

/// A question that waits for an answer.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct QuestionNote {
    /// The gate.
    pub checkpoint_id: String,
    /// The question's name.
    pub question_id: String,
    /// The question.
    pub question: String,
    /// What kind of answer is wanted.
    pub response_type: Cow<'static, str>,
    /// Whether the gate waits for it.
    pub required: bool,
    /// What helps to answer it.
    pub hint: Option<String>,
    /// What can be chosen.
    pub options: Vec<String>,
    /// The smallest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What a JSON answer must look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// How often it may still be answered wrongly.
    pub attempts_left: u32,
    /// The hold that is to be named with the answer, where the gate waits in several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub hold_id: Option<HoldId>,
}

/// A context that is given now.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct ContextNote {
    /// The context.
    pub context_id: String,
    /// The text.
    pub content: String,
}

/// Guidance that is in force.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct GuidanceNote {
    /// The gate it comes from.
    pub checkpoint_id: String,
    /// How to read it.
    pub format: GuidanceFormat,
    /// The text.
    pub content: String,
    /// Higher comes first.
    pub priority: i64,
    /// What it is about.
    pub labels: Vec<String>,
}

/// Which capabilities are open, and which are not.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct Capabilities {
    /// Open.
    pub unlocked: Vec<String>,
    /// Not.
    pub locked: Vec<String>,
}

/// A policy that had a say.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct PolicyNote {
    /// The policy.
    pub policy_id: String,
    /// The atlas it is in.
    pub atlas_id: String,
    /// What it said.
    pub decision: Decision,
    /// Why.
    pub reason: String,
    /// How many operators must say yes, where it wants more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvers: Option<u32>,
    /// After how many approved successes a program is trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_after: Option<u32>,
}

/// Something the budget left out.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Dropped {
    /// The gate.
    pub checkpoint_id: String,
    /// The context, if only that was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// Which limit was reached.
    pub reason: Cow<'static, str>,
}

/// What was thought of answers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Validation {
    /// Whether they will do.
    pub is_valid: bool,
    /// All that is wrong with them.
    pub failures: Vec<Failure>,
    /// What follows from them.
    pub actions: Vec<CheckpointAction>,
}

/// What follows from passing a gate.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CheckpointAction {
    /// It goes on.
    Proceed,
    /// It does not.
    Block {
        /// Why.
        reason: String,
    },
    /// A context is given.
    InjectContext {
        /// Which one.
        context_id: String,
    },
    /// Guidance is in force.
    InjectGuidance {
        /// What it says.
        guidance: crate::atlas::GuidanceBlock,
    },
    /// A capability is open.
    UnlockCapability {
        /// Which one.
        capability_id: String,
    },
    /// A capability is locked.
    LockCapability {
        /// Which one.
        capability_id: String,
    },
    /// Actions are allowed.
    AllowActions {
        /// Which ones.
        pattern: String,
    },
    /// Actions are denied.
    DenyActions {
        /// Which ones.
        pattern: String,
    },
}

/// Something for the trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What happened, in the words of the specification where it has one.
    pub kind: &'static str,
    /// The rest.
    pub body: Value,
}

/// Something a steward wants to be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The atlas whose steward it is.
    pub atlas_id: String,
    /// Where to.
    pub webhook: String,
    /// What.
    pub trigger: NotificationTrigger,
    /// The rest.
    pub data: Value,
}

impl Notice {
    /// What the steward of an atlas is told, if they want to be told of this.
    pub fn of(
        manifest: &AtlasManifest,
        trigger: NotificationTrigger,
        data: impl FnOnce() -> Value,
    ) -> Option<Self> {
        let steward = manifest.steward.as_ref()?;
        let wanted = steward
            .notifications
            .as_ref()
            .filter(|it| it.enabled && it.triggers.contains(&trigger))?;
        Some(Self {
            atlas_id: manifest.atlas_id.clone(),
            webhook: wanted.channels.webhook.clone()?,
            trigger,
            data: data(),
        })
    }
}

/// All that comes out of a step.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The session from now on.
    pub session: Session,
    /// What the agent sees.
    pub resolution: Resolution,
    /// What was thought of its answers, if it gave any.
    pub validation: Option<Validation>,
    /// The request it is about.
    pub request_id: Option<safepoint_model::ActionId>,
    /// What the trail gets, in order.
    pub records: Vec<Record>,
    /// Whether the trail must be on disk before anybody hears of it.
    pub sync: bool,
    /// The limits that were used.
    pub uses: Vec<String>,
    /// What stewards are told.
    pub notices: Vec<Notice>,
}
