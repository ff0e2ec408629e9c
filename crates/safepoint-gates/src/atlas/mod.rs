//! The atlas: everything a steward writes down, as types.
//!
//! These are the words of the file, and nothing else: what they mean is in
//! [`Engine`](crate::Engine). The names are those of the specification.

mod case;
mod config;
mod context;
mod extension;
mod gate;
mod mappings;
mod policy;
mod question;
mod steward;
mod trigger;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use case::{Case, Expectation, Step};
pub use config::{
    ActionMapping, ActionSection, Budget, CheckpointConfig, CountSection, KeywordSection,
    PlainSection, RiskSection, TimeSection,
};
pub use context::{ContextBlock, GuidanceBlock, GuidanceFormat, InjectMode};
pub use extension::{DEFAULT_TIMEOUT_MS, Extension, Runner};
pub use gate::{CheckpointMode, CheckpointTrigger, MatchMode, RiskTier, StewardCheckpointDef};
pub use mappings::Mappings;
pub use policy::{AtlasPolicy, Condition, PolicyParameters, PolicyType};
pub use question::{
    AnswerValidation, CheckpointQuestion, ChoiceForm, Expect, InvalidAnswerAction, JsonForm,
    NumberForm, ResponseType,
};
pub use steward::{
    Access, AccessType, Channels, Delivery, DeliveryMode, NotificationTrigger, Notifications,
    RateLimit, Steward,
};

use crate::pattern::Pattern;

/// The version of the format that is read.
pub const ATLAS_VERSION: &str = "1.0";

/// What a steward publishes: who may do what, and what is asked before.
///
/// ```
/// # let manifest = safepoint_gates::load::read(include_str!("../../tests/atlases/acme.yaml")).unwrap();
/// // Get checkpoint by ID
/// let checkpoint = manifest.get_checkpoint("delete-confirm");
/// assert!(checkpoint.is_some());
///
/// // Get session start checkpoints
/// let start_checkpoints = manifest.get_session_start_checkpoints();
/// assert_eq!(start_checkpoints.len(), 1);
///
/// // Get checkpoints for an action (supports wildcards: *.delete, ticket.*)
/// let action_checkpoints = manifest.get_action_checkpoints("ticket.delete");
/// assert_eq!(action_checkpoints[0].checkpoint_id, "delete-confirm");
///
/// // Get checkpoints for a capability
/// let cap_checkpoints = manifest.get_capability_checkpoints("admin-support");
/// assert_eq!(cap_checkpoints[0].checkpoint_id, "admin-gate");
/// ```
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasManifest {
    /// The version of the format: `1.0`.
    pub atlas_version: String,
    /// The name of the atlas in the whole world, such as `com.acme.support`.
    pub atlas_id: String,
    /// The version of this atlas.
    pub version: String,
    /// What people call it.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Under which license it may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// What it is about, for those who look for one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Who answers for it, who may use it, and who is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steward: Option<Steward>,
    /// Groups of actions that are locked and unlocked together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<AtlasCapability>,
    /// The gates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<StewardCheckpointDef>,
    /// Texts that are given to the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_blocks: Vec<ContextBlock>,
    /// Rules without questions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<AtlasPolicy>,
    /// What an agent can ask to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<AtlasAction>,
    /// Gates by kind, in short, and the budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_config: Option<CheckpointConfig>,
    /// Own checks of answers and own triggers, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<Extension>,
    /// Examples of what must come out, for `safepoint atlas test`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<Case>,
}

/// Actions that are locked and unlocked together.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasCapability {
    /// Its name in this atlas.
    pub capability_id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The actions in it: names and patterns.
    pub actions: Vec<String>,
}

/// Something an agent can ask to do.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasAction {
    /// Its name, in segments with dots between them, such as `ticket.delete`.
    pub action_id: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How much harm it can do.
    #[serde(default)]
    pub risk_tier: RiskTier,
    /// What its parameters must look like: a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters_schema: Option<Value>,
    /// What its result looks like: a JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_schema: Option<Value>,
    /// Whether doing it twice is the same as doing it once.
    #[serde(default)]
    pub idempotent: bool,
    /// Who carries it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
}

impl AtlasManifest {
    /// The gate with this id.
    pub fn get_checkpoint(&self, checkpoint_id: &str) -> Option<&StewardCheckpointDef> {
        self.checkpoints
            .iter()
            .find(|gate| gate.checkpoint_id == checkpoint_id)
    }

    /// The gates of the beginning of a session, the most important first.
    pub fn get_session_start_checkpoints(&self) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|gate| matches!(gate.trigger, CheckpointTrigger::SessionStart {}))
    }

    /// The gates before an action, the most important first.
    pub fn get_action_checkpoints(&self, action_id: &str) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|gate| match &gate.trigger {
            CheckpointTrigger::ActionPre { patterns } => patterns
                .iter()
                .filter_map(|pattern| Pattern::parse(pattern).ok())
                .any(|pattern| pattern.matches(action_id)),
            _ => false,
        })
    }

    /// The gates before a capability, the most important first.
    pub fn get_capability_checkpoints(&self, capability_id: &str) -> Vec<&StewardCheckpointDef> {
        self.checkpoints_where(|gate| {
            gate.trigger
                .capabilities()
                .is_some_and(|ids| ids.iter().any(|id| id == capability_id))
        })
    }

    /// The action with this id.
    pub fn get_action(&self, action_id: &str) -> Option<&AtlasAction> {
        self.actions
            .iter()
            .find(|action| action.action_id == action_id)
    }

    /// The capability with this id.
    pub fn get_capability(&self, capability_id: &str) -> Option<&AtlasCapability> {
        self.capabilities
            .iter()
            .find(|capability| capability.capability_id == capability_id)
    }

    /// The policy with this id.
    pub fn get_policy(&self, policy_id: &str) -> Option<&AtlasPolicy> {
        self.policies
            .iter()
            .find(|policy| policy.policy_id == policy_id)
    }

    /// The context with this id.
    pub fn get_context(&self, context_id: &str) -> Option<&ContextBlock> {
        self.context_blocks
            .iter()
            .find(|context| context.context_id == context_id)
    }

    fn checkpoints_where(
        &self,
        wanted: impl Fn(&StewardCheckpointDef) -> bool,
    ) -> Vec<&StewardCheckpointDef> {
        let mut found: Vec<_> = self
            .checkpoints
            .iter()
            .filter(|gate| wanted(gate))
            .collect();
        found.sort_by_key(|gate| std::cmp::Reverse(gate.effective_priority()));
        found
    }
}
