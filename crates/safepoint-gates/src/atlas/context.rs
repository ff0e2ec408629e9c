//! What an agent is told: contexts, which are facts, and guidance, which is advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RiskTier;

/// A text that is given to the agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ContextBlock {
    /// Its name in this atlas.
    pub context_id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text.
    pub content: String,
    /// When it is given.
    #[serde(default)]
    pub inject_mode: InjectMode,
    /// Higher comes first.
    #[serde(default)]
    pub priority: i64,
    /// For `on_match`: words in the input that call for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// For `on_match`: actions that call for it, as names and patterns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// For `risk_based`: the lowest risk that calls for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_tier: Option<RiskTier>,
}

/// When a context is given to the agent.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InjectMode {
    /// When a gate names it, once in a session.
    #[default]
    OnDemand,
    /// When a session begins.
    Always,
    /// When its words or actions occur, once in a session.
    OnMatch,
    /// When an action of its risk is asked for, once in a session.
    RiskBased,
    /// Each time a gate names it.
    EveryTime,
}

/// Advice to the agent.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GuidanceBlock {
    /// How to read it.
    #[serde(default)]
    pub format: GuidanceFormat,
    /// The text.
    pub content: String,
    /// Higher comes first.
    #[serde(default)]
    pub priority: i64,
    /// Whether it stands beside what was said before, or replaces it.
    #[serde(default = "yes")]
    pub append: bool,
    /// Until when it holds: the gate whose passing ends it, or `session-end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<String>,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

fn yes() -> bool {
    true
}

/// How to read guidance.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuidanceFormat {
    /// As it stands.
    #[default]
    Text,
    /// As Markdown.
    Markdown,
    /// As JSON data.
    Json,
    /// As an instruction of the system, before everything else.
    SystemInstruction,
}

/// Building guidance in code, with the words of the specification.
impl GuidanceBlock {
    fn new(format: GuidanceFormat, content: impl Into<String>) -> Self {
        Self {
            format,
            content: content.into(),
            priority: 0,
            append: true,
            expires_after: None,
            labels: Vec::new(),
        }
    }

    /// Plain text.
    pub fn text(content: impl Into<String>) -> Self {
        Self::new(GuidanceFormat::Text, content)
    }

    /// Markdown.
    pub fn markdown(content: impl Into<String>) -> Self {
        Self::new(GuidanceFormat::Markdown, content)
    }

    /// An instruction of the system.
    pub fn system_instruction(content: impl Into<String>) -> Self {
        Self::new(GuidanceFormat::SystemInstruction, content)
    }

    /// Higher comes first.
    pub fn with_priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }
}
