//! What policies say about a request.

use std::collections::BTreeSet;

use serde_json::json;

use super::Step;
use super::request::{Asked, Counting};
use crate::atlas::{Condition, NotificationTrigger, PolicyType};
use crate::cedar::{CedarRequest, CedarVerdict};
use crate::engine::{Policy, Profile};
use crate::event::Rate;
use crate::resolution::{Decision, PolicyNote};

impl<'a> Step<'a> {
    /// Why a request is denied, whatever allows it: by a gate, a policy, or a limit.
    pub(super) fn is_denied(&mut self, asked: &Asked<'_>, counting: Counting) -> Option<String> {
        if let Some(why) = self.denied_by_gate(asked) {
            return Some(why.to_string());
        }
        for policy in self.policies_of(&asked.profile) {
            if let Some(reason) = self.denies(policy, asked) {
                self.note_policy(policy, Decision::Deny, &reason);
                return Some(reason);
            }
        }
        match counting {
            Counting::First => self.is_too_much(asked),
            Counting::Again => None,
        }
    }

    fn denies(&self, policy: &Policy, asked: &Asked<'_>) -> Option<String> {
        if !policy.counts(asked.conditions) {
            return None;
        }
        if policy.always() == Some(Decision::Deny)
            || policy.on_risk(asked.risk) == Some(Decision::Deny)
        {
            return Some(policy.reason.to_string());
        }
        if policy.definition.policy_type != PolicyType::Cedar {
            return None;
        }
        let unlocked: Vec<&str> = self.session.unlocked.iter().map(String::as_str).collect();
        let request = CedarRequest {
            principal: &self.session.principal,
            action: asked.action,
            session: self.session.session_id.as_str(),
            risk: asked.risk,
            parameters: asked.parameters,
            unlocked: &unlocked,
        };
        match policy.on_cedar(&request) {
            CedarVerdict::Permit => None,
            CedarVerdict::Deny(reason) => Some(match &policy.definition.reason {
                Some(words) => format!("{words} ({reason})"),
                None => format!("policy `{}`: {reason}", policy.definition.policy_id),
            }),
        }
    }

    /// Whether a limit is reached. What is let through is counted.
    fn is_too_much(&mut self, asked: &Asked<'_>) -> Option<String> {
        let engine = self.engine;
        let known = asked
            .profile
            .known
            .iter()
            .filter_map(|atlas| engine.atlases.get(*atlas as usize));
        let mut rates: Vec<(&Rate, String)> = known
            .flat_map(|atlas| &atlas.rates)
            .map(|rate| {
                let reason = format!(
                    "no more than {} requests in {} seconds",
                    rate.most, rate.window_seconds
                );
                (rate, reason)
            })
            .collect();
        let counting = |policy: &&Policy| policy.counts(asked.conditions);
        for policy in self.policies_of(&asked.profile).filter(counting) {
            if let Some(rate) = &policy.rate {
                rates.push((rate, policy.reason.to_string()));
            }
        }
        for (rate, reason) in &rates {
            // A limit that nobody has looked up is one that is reached.
            let used = self.facts.uses.get(&rate.name).copied();
            if used.is_none_or(|used| used >= rate.most) {
                let limit = rate.name.clone();
                self.record(
                    "RateLimitExceeded",
                    json!({"limit": limit, "action_id": asked.action, "used": used}),
                );
                self.notify(
                    NotificationTrigger::RateLimitExceeded,
                    None,
                    || json!({"limit": limit, "action_id": asked.action}),
                );
                return Some(format!("too often: {reason}"));
            }
        }
        self.uses
            .extend(rates.iter().map(|(rate, _)| rate.name.clone()));
        None
    }

    /// Why a person must decide. All rules that say so are noted, the first one is told.
    pub(super) fn needs_approval(&mut self, asked: &Asked<'_>) -> Option<String> {
        let mut told = None;
        for policy in self.policies_of(&asked.profile) {
            let said = policy.always().or_else(|| policy.on_risk(asked.risk));
            if said == Some(Decision::RequiresApproval) && policy.counts(asked.conditions) {
                let reason = policy.reason.to_string();
                self.note_policy(policy, Decision::RequiresApproval, &reason);
                told.get_or_insert(reason);
            }
        }
        told
    }

    /// A policy of an atlas that allows an action by name.
    pub(super) fn allowing(
        &self,
        profile: &Profile,
        conditions: &BTreeSet<Condition>,
        atlas: usize,
    ) -> Option<&'a Policy> {
        self.policies_of(profile)
            .filter(|policy| policy.counts(conditions))
            .find(|policy| policy.atlas == atlas && policy.always() == Some(Decision::Allow))
    }

    pub(super) fn policies_of<'p>(
        &self,
        profile: &'p Profile,
    ) -> impl Iterator<Item = &'a Policy> + use<'a, 'p> {
        let engine = self.engine;
        profile
            .policies
            .iter()
            .filter_map(move |number| engine.policies.get(*number as usize))
    }

    fn note_policy(&mut self, policy: &Policy, decision: Decision, reason: &str) {
        let numbers = policy.definition.parameters.unwrap_or_default();
        let note = PolicyNote {
            policy_id: policy.definition.policy_id.clone(),
            atlas_id: self.engine.atlas_id(policy.atlas).to_owned(),
            decision,
            reason: reason.to_owned(),
            approvers: numbers.approvers,
            trust_after: numbers.trust_after,
        };
        self.record("PolicyApplied", json!(note));
        self.policies.push(note);
    }
}
