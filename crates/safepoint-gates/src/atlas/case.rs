//! Examples kept in the atlas: what must come out when an agent does this.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Condition, RiskTier};

/// One example: a session, step by step.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows.
    pub name: String,
    /// What happens, in order. The session begins by itself.
    pub steps: Vec<Step>,
}

/// One step: one thing that happens, and what is expected of it. Where nothing
/// happens, what is expected is compared with how things stand.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The agent reads this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The agent asks for this action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// With these parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// At this risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskTier>,
    /// When this is known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<Condition>,
    /// The agent asks for this capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// The agent asks for help about this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// The agent raises this gate by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raise: Option<String>,
    /// The agent answers this gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// With these answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Map<String, Value>>,
    /// The last request went `ok`, or ended in an `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// So much time passes, such as `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The session ends.
    #[serde(default)]
    pub end: bool,
    /// What must come out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expectation>,
}

/// What must come out of a step. What is not said is not checked.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// `allow`, `deny`, `hold` or `requires_approval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// What the reason contains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the answer will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<bool>,
    /// The gates that are raised, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Vec<String>>,
    /// The questions that are asked, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<Vec<String>>,
    /// The contexts that are given, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contexts: Option<Vec<String>>,
    /// Capabilities that are open then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<String>,
    /// Capabilities that are locked then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<String>,
}
