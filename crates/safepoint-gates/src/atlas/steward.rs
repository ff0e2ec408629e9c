//! Who answers for an atlas, who may use it, and who is told.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who answers for an atlas.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Steward {
    /// Their name in the world.
    pub id: String,
    /// What people call them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How to reach them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// The key that signs this atlas, as `safepoint atlas sign` prints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// Who may use it.
    #[serde(default)]
    pub access: Access,
    /// How it reaches its users.
    #[serde(default)]
    pub delivery: Delivery,
    /// Who is told of what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notifications: Option<Notifications>,
}

/// Who may use an atlas.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// In general.
    #[serde(default, rename = "type")]
    pub access_type: AccessType,
    /// The keys that let somebody in; `*` stands for any characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub api_keys: Vec<String>,
    /// How much each of them may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

/// Who may use an atlas, in general.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessType {
    /// Everybody.
    #[default]
    Public,
    /// Whoever shows a key, or, where the atlas is a file of theirs, the user of this machine.
    Authenticated,
    /// Whoever shows a key, and nobody else.
    Private,
}

/// How much one key may ask for.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Requests in any minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_per_minute: Option<u64>,
    /// Requests in any hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_per_hour: Option<u64>,
    /// Sessions in any day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub sessions_per_day: Option<u64>,
    /// Contexts in one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub contexts_per_session: Option<u64>,
}

/// How an atlas reaches its users.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Delivery {
    /// In general.
    #[serde(default)]
    pub mode: DeliveryMode,
}

/// How an atlas reaches its users, in general.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryMode {
    /// All of it is in the file.
    #[default]
    Embedded,
    /// It comes from the steward's service.
    Api,
    /// Some of it does.
    Hybrid,
}

/// Who is told of what.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Notifications {
    /// Whether anybody is.
    #[serde(default = "yes")]
    pub enabled: bool,
    /// Where it goes.
    #[serde(default)]
    pub channels: Channels,
    /// What is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<NotificationTrigger>,
}

fn yes() -> bool {
    true
}

/// Where notifications go.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// An address that takes CloudEvents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

/// What a steward wants to be told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTrigger {
    /// A person allowed what a policy held.
    PolicyOverride,
    /// An action of high or critical risk was asked for.
    HighRiskAction,
    /// A gate was raised.
    CheckpointTriggered,
    /// A gate stayed shut.
    CheckpointBlocked,
    /// An action was denied.
    ActionDenied,
    /// An action needs a person's approval.
    ApprovalRequired,
    /// Somebody asked for more than they may.
    RateLimitExceeded,
    /// An action failed.
    ErrorOccurred,
    /// A session began.
    SessionStarted,
    /// A session ended.
    SessionEnded,
}

impl NotificationTrigger {
    /// The trigger as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PolicyOverride => "policy_override",
            Self::HighRiskAction => "high_risk_action",
            Self::CheckpointTriggered => "checkpoint_triggered",
            Self::CheckpointBlocked => "checkpoint_blocked",
            Self::ActionDenied => "action_denied",
            Self::ApprovalRequired => "approval_required",
            Self::RateLimitExceeded => "rate_limit_exceeded",
            Self::ErrorOccurred => "error_occurred",
            Self::SessionStarted => "session_started",
            Self::SessionEnded => "session_ended",
        }
    }
}
