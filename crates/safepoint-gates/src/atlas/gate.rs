//! One gate: when it is raised, what it asks, and what passing it brings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CheckpointQuestion, GuidanceBlock};

/// A steward's intervention point.
///
/// ```
/// use safepoint_gates::{
///     CheckpointMode, CheckpointQuestion, CheckpointTrigger, GuidanceBlock, StewardCheckpointDef,
/// };
///
/// // Create a checkpoint
/// let checkpoint = StewardCheckpointDef::new(
///     "my-gate",
///     "My Gate",
///     CheckpointTrigger::ActionPre {
///         patterns: vec!["*.delete".to_string()],
///     },
/// )
/// .blocking()
/// .with_question(CheckpointQuestion::acknowledgment(
///     "confirm",
///     "I understand this action cannot be undone.",
/// ))
/// .with_guidance(GuidanceBlock::text("Proceed with caution."))
/// .unlock_capabilities(vec!["delete-access".to_string()])
/// .with_priority(900);
///
/// assert_eq!(checkpoint.mode, CheckpointMode::Blocking);
/// assert_eq!(checkpoint.effective_priority(), 900);
/// ```
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StewardCheckpointDef {
    /// Its name in this atlas.
    pub checkpoint_id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it is raised.
    pub trigger: CheckpointTrigger,
    /// What being raised means.
    #[serde(default)]
    pub mode: CheckpointMode,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<CheckpointQuestion>,
    /// What the agent is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guidance: Option<GuidanceBlock>,
    /// Contexts that are given to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject_contexts: Vec<String>,
    /// Capabilities that are open from then on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlock_capabilities: Vec<String>,
    /// Capabilities that are locked from then on, even when it unlocks them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lock_capabilities: Vec<String>,
    /// Actions that are allowed from then on: names and patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_actions: Vec<String>,
    /// Actions that are denied from then on, whatever allows them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny_actions: Vec<String>,
    /// Higher comes first. Without it, its kind decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i64>,
    /// Whether its events are on disk before anybody hears of them.
    #[serde(default)]
    pub force_sync_trace: bool,
    /// Whether it counts at all.
    #[serde(default = "yes")]
    pub enabled: bool,
}

fn yes() -> bool {
    true
}

/// When a gate is raised.
///
/// Two kinds have two spellings; each is kept as it was written. Read in `trigger.rs`.
#[derive(Clone, Debug, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum CheckpointTrigger {
    /// A session begins.
    SessionStart {},
    /// Somebody raises it by name.
    Interactive {},
    /// An action of one of these capabilities is asked for, or the capability itself.
    CapabilityAccess {
        /// Which capabilities.
        capability_ids: Vec<String>,
    },
    /// The same as `capability_access`.
    CapabilityGate {
        /// Which capabilities.
        capability_ids: Vec<String>,
    },
    /// An action of at least this risk is asked for.
    RiskThreshold {
        /// The lowest tier that counts.
        min_tier: RiskTier,
    },
    /// An action is asked for.
    ActionPre {
        /// Which actions: names and patterns.
        patterns: Vec<String>,
    },
    /// Words occur in the input.
    Keyword {
        /// The words; their meaning depends on the mode.
        patterns: Vec<String>,
        /// Whether `Refund` and `refund` differ.
        #[serde(default)]
        case_sensitive: bool,
        /// How the words are looked for.
        #[serde(default)]
        match_mode: MatchMode,
    },
    /// The same as `keyword`.
    KeywordMatch {
        /// The words; their meaning depends on the mode.
        patterns: Vec<String>,
        /// Whether `Refund` and `refund` differ.
        #[serde(default)]
        case_sensitive: bool,
        /// How the words are looked for.
        #[serde(default)]
        match_mode: MatchMode,
    },
    /// So much time has passed.
    TimeInterval {
        /// How many seconds.
        #[schemars(range(min = 1))]
        seconds: u64,
    },
    /// So many actions were asked for.
    CountInterval {
        /// How many actions.
        #[schemars(range(min = 1))]
        actions: u64,
    },
    /// The agent asks for help.
    ExplicitRequest {},
    /// An action was done.
    ActionPost {
        /// Which actions: names and patterns.
        patterns: Vec<String>,
    },
    /// An action failed.
    ErrorOccurred {},
    /// A session ends.
    SessionEnd {},
    /// An extension of the atlas says so.
    Custom {
        /// The extension.
        trigger_id: String,
        /// What it is given besides the session.
        #[serde(default)]
        params: Value,
    },
}

impl CheckpointTrigger {
    /// The kind of the trigger, as it was written.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStart {} => "session_start",
            Self::Interactive {} => "interactive",
            Self::CapabilityAccess { .. } => "capability_access",
            Self::CapabilityGate { .. } => "capability_gate",
            Self::RiskThreshold { .. } => "risk_threshold",
            Self::ActionPre { .. } => "action_pre",
            Self::Keyword { .. } => "keyword",
            Self::KeywordMatch { .. } => "keyword_match",
            Self::TimeInterval { .. } => "time_interval",
            Self::CountInterval { .. } => "count_interval",
            Self::ExplicitRequest {} => "explicit_request",
            Self::ActionPost { .. } => "action_post",
            Self::ErrorOccurred {} => "error_occurred",
            Self::SessionEnd {} => "session_end",
            Self::Custom { .. } => "custom",
        }
    }

    /// How important gates of this kind are unless they say so themselves.
    pub fn default_priority(&self) -> i64 {
        match self {
            Self::SessionStart {} => 1000,
            Self::Interactive {} => 950,
            Self::CapabilityAccess { .. } | Self::CapabilityGate { .. } => 920,
            Self::RiskThreshold { .. } => 900,
            Self::ActionPre { .. } => 800,
            Self::Custom { .. } => 700,
            Self::Keyword { .. } | Self::KeywordMatch { .. } => 600,
            Self::TimeInterval { .. } => 500,
            Self::CountInterval { .. } => 400,
            Self::ExplicitRequest {} => 300,
            Self::ActionPost { .. } => 100,
            Self::ErrorOccurred {} => 50,
            Self::SessionEnd {} => 0,
        }
    }

    /// The capabilities whose use raises it.
    pub fn capabilities(&self) -> Option<&[String]> {
        match self {
            Self::CapabilityAccess { capability_ids } | Self::CapabilityGate { capability_ids } => {
                Some(capability_ids)
            }
            _ => None,
        }
    }
}

/// What being raised means.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointMode {
    /// Nothing goes on until every required question is answered.
    Blocking,
    /// The agent is told, and goes on.
    #[default]
    Advisory,
    /// It is recorded, and nothing else.
    Observational,
}

/// How much harm an action can do.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    Deserialize,
    Eq,
    Hash,
    JsonSchema,
    Ord,
    PartialEq,
    PartialOrd,
    Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum RiskTier {
    /// None worth naming.
    #[default]
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// The most.
    Critical,
}

impl RiskTier {
    /// The tier as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// How words are looked for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MatchMode {
    /// One of them occurs.
    #[default]
    Any,
    /// All of them occur.
    All,
    /// They occur in this order, with nothing but spaces and marks between them.
    Phrase,
    /// They are regular expressions, and one of them matches.
    Regex,
}

/// Building a gate in code, with the words of the specification.
impl StewardCheckpointDef {
    /// A gate that asks and brings nothing yet.
    pub fn new(
        checkpoint_id: impl Into<String>,
        name: impl Into<String>,
        trigger: CheckpointTrigger,
    ) -> Self {
        Self {
            checkpoint_id: checkpoint_id.into(),
            name: Some(name.into()),
            description: None,
            trigger,
            mode: CheckpointMode::default(),
            questions: Vec::new(),
            guidance: None,
            inject_contexts: Vec::new(),
            unlock_capabilities: Vec::new(),
            lock_capabilities: Vec::new(),
            allow_actions: Vec::new(),
            deny_actions: Vec::new(),
            priority: None,
            force_sync_trace: false,
            enabled: true,
        }
    }

    /// Nothing goes on until it is passed.
    pub fn blocking(mut self) -> Self {
        self.mode = CheckpointMode::Blocking;
        self
    }

    /// The agent is told, and goes on.
    pub fn advisory(mut self) -> Self {
        self.mode = CheckpointMode::Advisory;
        self
    }

    /// It is recorded, and nothing else.
    pub fn observational(mut self) -> Self {
        self.mode = CheckpointMode::Observational;
        self
    }

    /// Asks this too.
    pub fn with_question(mut self, question: CheckpointQuestion) -> Self {
        self.questions.push(question);
        self
    }

    /// Tells the agent this.
    pub fn with_guidance(mut self, guidance: GuidanceBlock) -> Self {
        self.guidance = Some(guidance);
        self
    }

    /// Gives the agent these contexts.
    pub fn inject_contexts(mut self, context_ids: Vec<String>) -> Self {
        self.inject_contexts = context_ids;
        self
    }

    /// Opens these capabilities.
    pub fn unlock_capabilities(mut self, capability_ids: Vec<String>) -> Self {
        self.unlock_capabilities = capability_ids;
        self
    }

    /// Locks these capabilities.
    pub fn lock_capabilities(mut self, capability_ids: Vec<String>) -> Self {
        self.lock_capabilities = capability_ids;
        self
    }

    /// Allows these actions.
    pub fn allow_actions(mut self, patterns: Vec<String>) -> Self {
        self.allow_actions = patterns;
        self
    }

    /// Denies these actions.
    pub fn deny_actions(mut self, patterns: Vec<String>) -> Self {
        self.deny_actions = patterns;
        self
    }

    /// Comes before gates with a lower number.
    pub fn with_priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Its events are on disk before anybody hears of them.
    pub fn force_sync_trace(mut self) -> Self {
        self.force_sync_trace = true;
        self
    }

    /// Its own priority, or that of its kind.
    pub fn effective_priority(&self) -> i64 {
        self.priority
            .unwrap_or_else(|| self.trigger.default_priority())
    }
}
