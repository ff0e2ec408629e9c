//! `checkpoint_config`: gates by kind, in short, and the budget.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Mappings, MatchMode, RiskTier};

/// Gates by kind, in short.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointConfig {
    /// When a session begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_start: Option<PlainSection>,
    /// When words occur in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyword_match: Option<KeywordSection>,
    /// Before an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_pre: Option<ActionSection>,
    /// Before an action of some risk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_threshold: Option<RiskSection>,
    /// Every so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_interval: Option<TimeSection>,
    /// Every so many actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count_interval: Option<CountSection>,
    /// When the agent asks for help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explicit_request: Option<PlainSection>,
    /// After an action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_post: Option<ActionSection>,
    /// After an action that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_occurred: Option<PlainSection>,
    /// When a session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_end: Option<PlainSection>,
    /// How much may happen at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// Contexts for one kind of moment.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PlainSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Contexts that are given to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
}

/// Contexts by words in the input.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KeywordSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Words, with `|` between alternatives, and the contexts they call for.
    #[serde(default)]
    pub mappings: Mappings<Vec<String>>,
    /// Whether `Refund` and `refund` differ.
    #[serde(default)]
    pub case_sensitive: bool,
    /// How the words are looked for.
    #[serde(default)]
    pub match_mode: MatchMode,
}

/// What comes with actions, by pattern.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ActionSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Patterns of actions, and what comes with them.
    #[serde(default)]
    pub mappings: Mappings<ActionMapping>,
}

/// What comes with an action.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ActionMapping {
    /// Contexts that are given to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
    /// Whether policies are checked. They always are.
    #[serde(default)]
    pub require_policy_check: bool,
    /// Whether the agent must acknowledge what it is about to do.
    #[serde(default)]
    pub require_confirmation: bool,
}

/// What comes with risk.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RiskSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// The lowest tier that counts.
    pub min_tier: RiskTier,
    /// Contexts that are given to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
    /// Whether its events are on disk before anybody hears of them.
    #[serde(default)]
    pub require_sync_trace: bool,
}

/// What comes every so many seconds.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// How many seconds.
    #[schemars(range(min = 1))]
    pub seconds: u64,
    /// Contexts that are given to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
}

/// What comes every so many actions.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CountSection {
    /// Whether it counts.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// How many actions.
    #[schemars(range(min = 1))]
    pub actions: u64,
    /// Contexts that are given to the agent.
    #[serde(default)]
    pub inject_contexts: Vec<String>,
}

/// How much may happen at once. Running out of it never skips a blocking gate.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Gates for one input or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_checkpoints_per_input: Option<u64>,
    /// Bytes of context for one input or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_context_injection_size: Option<u64>,
    /// How long extensions and callbacks may take for one input or request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_checkpoint_time_ms: Option<u64>,
}

fn yes() -> bool {
    true
}
