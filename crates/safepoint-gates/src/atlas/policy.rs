//! Rules without questions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RiskTier;

/// One rule.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasPolicy {
    /// Its name in this atlas.
    pub policy_id: String,
    /// What it does.
    #[serde(rename = "type")]
    pub policy_type: PolicyType,
    /// Which actions it is about: names and patterns. A Cedar policy without them is about all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Why, for whoever is stopped by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// For `rate_limit` and `risk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<PolicyParameters>,
    /// What must be so for the rule to count; without any it always does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<Condition>,
    /// What keeps the rule from counting, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<Condition>,
    /// For `cedar`: the policy set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cedar: Option<String>,
}

/// Something that is known of an action when it is asked for. What nobody has found out is not so.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A verified checkpoint covers everything it would change.
    FullyReversible,
    /// A verified checkpoint covers what it would change, but for a named remainder.
    PartlyReversible,
    /// The machines it talks to are this one.
    LocalHosts,
    /// The program that would do it is trusted.
    Trusted,
}

/// What a rule does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyType {
    /// Allows, also in a locked capability.
    Allow,
    /// Denies, whatever allows.
    Deny,
    /// Lets a person decide.
    RequiresApproval,
    /// Denies what comes too often.
    RateLimit,
    /// Denies, or lets a person decide, above a risk.
    Risk,
    /// Is written in Cedar.
    Cedar,
}

/// The numbers of a rule.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyParameters {
    /// For `rate_limit`: how many in a window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// For `rate_limit`: how long a window is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub window_seconds: Option<u64>,
    /// For `requires_approval` and `risk`: how many different operators must say yes; one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub approvers: Option<u32>,
    /// For `requires_approval` and `risk`: after so many approved successes the program is trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub trust_after: Option<u32>,
    /// For `risk`: what is above it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tier: Option<RiskTier>,
    /// For `risk`: from here on a person decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_tier: Option<RiskTier>,
}
