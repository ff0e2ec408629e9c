//! One policy, ready to be asked.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use crate::atlas::{AtlasPolicy, Condition, PolicyType, RiskTier};
use crate::cedar::{CedarPolicies, CedarRequest, CedarVerdict};
use crate::event::Rate;
use crate::resolution::Decision;

/// One policy, ready to be asked.
#[derive(Debug)]
pub(crate) struct Policy {
    pub(crate) atlas: usize,
    pub(crate) definition: AtlasPolicy,
    /// Why, for whoever is stopped by it.
    pub(crate) reason: Arc<str>,
    pub(crate) rate: Option<Rate>,
    cedar: OnceLock<Result<CedarPolicies, String>>,
}

impl Policy {
    pub(crate) fn new(atlas: usize, atlas_id: &str, definition: AtlasPolicy) -> Self {
        let reason = definition.reason.clone().unwrap_or_else(|| {
            let id = &definition.policy_id;
            match definition.policy_type {
                PolicyType::Allow => format!("policy `{id}` allows it"),
                PolicyType::Deny => format!("policy `{id}` denies it"),
                PolicyType::RequiresApproval => format!("policy `{id}` wants a person's approval"),
                PolicyType::RateLimit => format!("policy `{id}` limits how often it may be done"),
                PolicyType::Risk => format!("policy `{id}` limits its risk"),
                PolicyType::Cedar => format!("policy `{id}` does not permit it"),
            }
        });
        let numbers = definition.parameters.unwrap_or_default();
        let rate = match (
            definition.policy_type,
            numbers.max_calls,
            numbers.window_seconds,
        ) {
            (PolicyType::RateLimit, Some(most), Some(window_seconds)) => Some(Rate {
                name: format!("{atlas_id}/policy/{}", definition.policy_id),
                window_seconds,
                most,
            }),
            _ => None,
        };
        Self {
            atlas,
            reason: reason.into(),
            definition,
            rate,
            cedar: OnceLock::new(),
        }
    }

    /// Whether it counts, when this is known of the action.
    pub(crate) fn counts(&self, known: &BTreeSet<Condition>) -> bool {
        let rule = &self.definition;
        rule.when.iter().all(|it| known.contains(it))
            && !rule.unless.iter().any(|it| known.contains(it))
    }

    /// What it says of every request for its actions, whatever its parameters and risk.
    pub(crate) fn always(&self) -> Option<Decision> {
        match self.definition.policy_type {
            PolicyType::Allow => Some(Decision::Allow),
            PolicyType::Deny => Some(Decision::Deny),
            PolicyType::RequiresApproval => Some(Decision::RequiresApproval),
            PolicyType::RateLimit | PolicyType::Risk | PolicyType::Cedar => None,
        }
    }

    /// What it says of an action of this risk.
    pub(crate) fn on_risk(&self, risk: RiskTier) -> Option<Decision> {
        if self.definition.policy_type != PolicyType::Risk {
            return None;
        }
        let numbers = self.definition.parameters.unwrap_or_default();
        if numbers.max_tier.is_some_and(|most| risk > most) {
            return Some(Decision::Deny);
        }
        numbers
            .approval_tier
            .is_some_and(|least| risk >= least)
            .then_some(Decision::RequiresApproval)
    }

    /// What its Cedar text says.
    pub(crate) fn on_cedar(&self, request: &CedarRequest<'_>) -> CedarVerdict {
        match self.cedar() {
            Ok(policies) => policies.decide(request),
            Err(error) => CedarVerdict::Deny(error.to_owned()),
        }
    }

    pub(crate) fn cedar(&self) -> Result<&CedarPolicies, &str> {
        self.cedar
            .get_or_init(|| {
                let text = self.definition.cedar.as_deref().unwrap_or_default();
                CedarPolicies::parse(text).map_err(|errors| {
                    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    messages.join("; ")
                })
            })
            .as_ref()
            .map_err(String::as_str)
    }
}
