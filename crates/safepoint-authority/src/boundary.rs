//! The boundaries at which a person is asked, whatever the rules say (the seed's mandatory triggers).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Canonical, Risk, ScopeDelta};

/// Why a hold was made.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// It needs more than the session has had so far: a risk of its own class.
    HigherRisk,
    /// It reaches paths outside the scope.
    PathScope,
    /// Another agent would act.
    Delegation,
    /// Another kind of provider proposes.
    ProviderChange,
    /// The rules are no longer those the session began with.
    PolicyBoundary,
    /// The rules want a person to decide.
    PolicyDefined,
    /// A boundary has lost its trust.
    TrustViolation,
    /// Every step is to be approved.
    EveryStep,
    /// It goes beyond what it says it keeps to.
    OutsideEnvelope,
    /// Something that runs behind the fence wants to reach what nothing names.
    OutsideFence,
}

impl Trigger {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::HigherRisk => "higher_risk",
            Self::PathScope => "path_scope",
            Self::Delegation => "delegation",
            Self::ProviderChange => "provider_change",
            Self::PolicyBoundary => "policy_boundary",
            Self::PolicyDefined => "policy_defined",
            Self::TrustViolation => "trust_violation",
            Self::EveryStep => "every_step",
            Self::OutsideEnvelope => "outside_envelope",
            Self::OutsideFence => "outside_fence",
        }
    }

    /// What it means, in a sentence.
    pub const fn description(self) -> &'static str {
        match self {
            Self::HigherRisk => "it is a riskier thing than this session may do without asking",
            Self::PathScope => "it changes something outside the workspace",
            Self::Delegation => "it lets another agent act",
            Self::ProviderChange => "another provider proposes it than before",
            Self::PolicyBoundary => "the rules are no longer those the session began with",
            Self::PolicyDefined => "a policy wants a person to decide",
            Self::TrustViolation => "something it relies on has lost its trust",
            Self::EveryStep => "every step is to be approved",
            Self::OutsideEnvelope => "it goes beyond the scope that the workflow says it keeps to",
            Self::OutsideFence => "the fence closes it, and no setting or approval names it",
        }
    }
}

/// How a session stands, as far as boundaries go.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The provider that has proposed so far.
    pub provider: Option<String>,
    /// Whether the rules have changed since the session began.
    pub rules_changed: bool,
    /// Whether every step asks.
    pub every_step: bool,
    /// Whether a boundary that the action relies on was violated.
    pub violated: bool,
}

/// Which boundaries an action crosses, and what is new about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boundaries {
    /// Which ones.
    pub triggers: Vec<Trigger>,
    /// What is new.
    pub delta: ScopeDelta,
}

impl Boundaries {
    /// Looks for boundaries that an action crosses.
    pub fn of(action: &Canonical, standing: &Standing) -> Self {
        let mut triggers = Vec::new();
        let changes = |role: &str| !matches!(role, "read" | "execute" | "scratch");
        let outside = action
            .paths
            .iter()
            .filter(|named| !named.inside && changes(&named.role));
        let delta = ScopeDelta {
            paths: outside.map(|named| named.path.clone()).collect(),
            ..ScopeDelta::default()
        };
        if action.risk >= Risk::High {
            triggers.push(Trigger::HigherRisk);
        }
        if !delta.paths.is_empty() {
            triggers.push(Trigger::PathScope);
        }
        if action.side_effects.contains(&crate::SideEffect::Delegate) {
            triggers.push(Trigger::Delegation);
        }
        let other = |before: &String| action.provider.as_ref().is_some_and(|now| now != before);
        if standing.provider.as_ref().is_some_and(other) {
            triggers.push(Trigger::ProviderChange);
        }
        if standing.rules_changed {
            triggers.push(Trigger::PolicyBoundary);
        }
        if standing.violated {
            triggers.push(Trigger::TrustViolation);
        }
        if standing.every_step {
            triggers.push(Trigger::EveryStep);
        }
        Self { triggers, delta }
    }
}
