//! What becomes of a request for an action.
//!
//! In this order: is it known, are its parameters right, does something hold
//! everything, does anything deny it, which gates does it raise, may it be
//! done at all, must a person decide. The strictest answer wins.

use std::collections::BTreeSet;

use safepoint_model::{ActionId, Digest, Frame, json as canonical, text};
use serde_json::{Value, json};

use super::rights::Grants;
use super::{Decided, Step};
use crate::atlas::{Condition, NotificationTrigger, RiskTier};
use crate::engine::{Capability, Profile};
use crate::event::Request;
use crate::resolution::{Decision, Why};
use crate::session::{Cause, Hold, Reach};

/// A request as it is judged: with everything the atlases say about it.
pub(super) struct Asked<'r> {
    pub(super) action: &'r str,
    pub(super) parameters: &'r Value,
    pub(super) risk: RiskTier,
    pub(super) conditions: &'r BTreeSet<Condition>,
    pub(super) profile: Profile,
}

/// The longest name of an action, in bytes.
const LONGEST_NAME: usize = 1_000;

/// Whether limits are counted: only the first time that something is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    First,
    Again,
}

impl Step<'_> {
    pub(super) fn request(&mut self, request: &Request) -> Decided {
        let profile = self.engine.profile(&request.action);
        let asked = Asked {
            action: &request.action,
            parameters: &request.parameters,
            risk: request.risk.unwrap_or_default().max(profile.risk),
            conditions: &request.conditions,
            profile,
        };
        let fingerprint = fingerprint(&asked);
        let held = self
            .session
            .holds
            .iter()
            .find(|hold| hold.is_about(fingerprint))
            .cloned();
        let request_id = match held.as_ref().map(|hold| &hold.cause) {
            Some(Cause::Request { request_id, .. }) => request_id.clone(),
            _ => self.facts.request_id.clone(),
        };
        self.record(
            "ActionRequested",
            json!({
                "request_id": request_id,
                "action_id": asked.action,
                "parameters": asked.parameters,
                "risk": asked.risk,
                "conditions": asked.conditions,
                "again": held.is_some(),
            }),
        );
        let mut decided = self.consider(&asked, fingerprint, &request_id, held.as_ref());
        decided.request_id = Some(request_id);
        self.record_decision(&asked, &decided);
        decided
    }

    fn consider(
        &mut self,
        asked: &Asked<'_>,
        fingerprint: Digest,
        request_id: &ActionId,
        held: Option<&Hold>,
    ) -> Decided {
        if let Some(reason) = self.is_malformed(asked) {
            return Decided::new(Decision::Deny, reason);
        }
        let standing = self.standing("");
        if standing.decision != Decision::Allow {
            return standing;
        }
        if let Some(hold) = held {
            return self.resume(asked, hold);
        }
        self.session.actions += 1;
        if let Some(reason) = self.is_denied(asked, Counting::First) {
            return Decided::new(Decision::Deny, reason);
        }
        if asked.risk >= RiskTier::High {
            self.notify(
                NotificationTrigger::HighRiskAction,
                None,
                || json!({"request_id": request_id, "action_id": asked.action, "risk": asked.risk}),
            );
        }
        self.give_for(asked);
        let cause = Cause::Request {
            request_id: request_id.clone(),
            action: asked.action.to_owned(),
            parameters: asked.parameters.clone(),
            risk: asked.risk,
            conditions: asked.conditions.clone(),
            fingerprint,
        };
        let gates = self.gates_before(asked);
        let data = json!({"action_id": asked.action, "request_id": request_id});
        let raised = self.raise(gates, cause, Reach::Cause, data);
        if let Some(gate) = self.blocked_now() {
            return Decided::new(Decision::Deny, Why::Shut(gate.into()).to_string());
        }
        let decided = self.after(raised, "");
        if decided.decision != Decision::Allow {
            return decided;
        }
        self.settle(asked)
    }

    /// Takes up a request that was held before.
    fn resume(&mut self, asked: &Asked<'_>, hold: &Hold) -> Decided {
        if let Some(reason) = self.is_denied(asked, Counting::Again) {
            return Decided::new(Decision::Deny, reason);
        }
        for waiting in &hold.gates {
            self.note_waiting(waiting, hold.action());
        }
        if let Some(gate) = self.is_shut_for(asked) {
            return Decided::new(Decision::Deny, Why::Shut(gate.into()).to_string());
        }
        if !hold.is_cleared() {
            return self.held_by(hold);
        }
        let decided = self.settle(asked);
        if decided.decision == Decision::Allow {
            // Used up: the next such request is asked again.
            self.session
                .holds
                .retain(|other| other.hold_id != hold.hold_id);
        }
        decided
    }

    /// What becomes of a held request now that an answer has changed something.
    pub(super) fn reconsider(&mut self, hold: &Hold) -> Decided {
        let Cause::Request {
            request_id,
            action,
            parameters,
            risk,
            conditions,
            ..
        } = &hold.cause
        else {
            if hold.is_cleared() {
                return self.standing("nothing is held");
            }
            return self.held_by(hold);
        };
        let asked = Asked {
            action,
            parameters,
            risk: *risk,
            conditions,
            profile: self.engine.profile(action),
        };
        let shut = self.is_shut_for(&asked);
        let shut = shut.map(|gate| Why::Shut(gate.into()).to_string());
        let mut decided = match self.is_denied(&asked, Counting::Again).or(shut) {
            Some(reason) => Decided::new(Decision::Deny, reason),
            None if !hold.is_cleared() => self.held_by(hold),
            None => match self.standing("") {
                standing if standing.decision != Decision::Allow => standing,
                _ => self.settle(&asked),
            },
        };
        decided.request_id = Some(request_id.clone());
        self.record_decision(&asked, &decided);
        decided
    }

    /// A gate before a request that stays shut, as people see it. The hold of the
    /// request does not have it if it was shut before the hold began.
    fn is_shut_for(&self, asked: &Asked<'_>) -> Option<String> {
        let moments = &self.engine.moments;
        let mut gates = self.capability_gates(&asked.profile.capabilities);
        gates.extend(self.risk_gates(asked));
        moments.before.matching(asked.action, &mut gates);
        gates.extend(&moments.custom);
        gates
            .into_iter()
            .filter_map(|number| self.engine.gates.get(number as usize))
            .find(|gate| self.session.is_shut(&gate.name, Some(asked.action)))
            .map(|gate| gate.label.to_string())
    }

    fn risk_gates(&self, asked: &Asked<'_>) -> impl Iterator<Item = u32> {
        // The lowest come first: those above it are not looked at, however many.
        let risks = self.engine.moments.risks.iter();
        risks
            .take_while(move |(least, _)| asked.risk >= *least)
            .map(|(_, number)| *number)
    }

    /// The last word on a request that no gate holds.
    fn settle(&mut self, asked: &Asked<'_>) -> Decided {
        // Passing gates may have denied it.
        if let Some(why) = self.denied_by_gate(asked) {
            return Decided::new(Decision::Deny, why.to_string());
        }
        let allowed = Grants::new(self.engine, &self.session.allowed);
        let is_open = |capability: &Capability| self.is_open(capability);
        let why = match self.may(
            asked.action,
            &asked.profile,
            asked.conditions,
            &allowed,
            is_open,
        ) {
            Ok(why) => why,
            Err(why) => return Decided::new(Decision::Deny, why.to_string()),
        };
        if let Some(reason) = self.needs_approval(asked) {
            return Decided::new(Decision::RequiresApproval, reason);
        }
        Decided::new(Decision::Allow, why.to_string())
    }

    /// Whether the session may ask for an action at all, and why.
    pub(super) fn may(
        &self,
        action: &str,
        profile: &Profile,
        conditions: &BTreeSet<Condition>,
        allowed: &Grants<'_>,
        is_open: impl Fn(&Capability) -> bool,
    ) -> Result<Why, Why> {
        let mut may = Why::Ungoverned;
        let mut locked: Vec<&Capability> = Vec::new();
        let capabilities = profile
            .capabilities
            .iter()
            .filter_map(|number| self.engine.capabilities.get(*number as usize));
        let mut open = Vec::new();
        for capability in capabilities {
            match is_open(capability) {
                true => {
                    open.push(capability.atlas);
                    may = Why::Open(capability.label.clone());
                }
                false => locked.push(capability),
            }
        }
        // What one atlas locks, no other one opens.
        for capability in locked {
            let atlas = capability.atlas;
            if open.contains(&atlas) {
                continue;
            }
            let grant = allowed.about(action, profile).find(|grant| {
                let gate = self.engine.gate(&grant.gate);
                gate.is_some_and(|gate| gate.atlas == atlas)
            });
            may = match (grant, self.allowing(profile, conditions, atlas)) {
                (Some(grant), _) => Why::Granted(self.label(&grant.gate)),
                (None, Some(policy)) => Why::Granted(policy.definition.policy_id.as_str().into()),
                (None, None) => return Err(self.why_locked(capability)),
            };
        }
        Ok(may)
    }

    /// The gate that denies a request, if one does.
    pub(super) fn denied_by_gate(&self, asked: &Asked<'_>) -> Option<Why> {
        let denied = Grants::new(self.engine, &self.session.denied);
        let grant = denied.about(asked.action, &asked.profile).next()?;
        Some(Why::DeniedByGate(self.label(&grant.gate)))
    }

    /// Why a request cannot even be considered.
    fn is_malformed(&self, asked: &Asked<'_>) -> Option<String> {
        if !is_name(asked.action) {
            return Some(format!(
                "`{}` is not the name of an action",
                text::shorten(&text::line(asked.action).text, 100)
            ));
        }
        if asked.profile.known.is_empty() {
            return Some(format!(
                "no atlas of this session knows the action `{}`",
                text::line(asked.action).text
            ));
        }
        let mut problems = Vec::new();
        for atlas in &asked.profile.known {
            let atlas = self.engine.atlases.get(*atlas as usize);
            let schema = atlas
                .and_then(|atlas| atlas.actions.get(asked.action))
                .and_then(|action| action.schema());
            match schema {
                None => {}
                Some(Err(error)) => problems.push(format!("their schema is broken: {error}")),
                Some(Ok(schema)) => problems.extend(schema.problems(asked.parameters)),
            }
        }
        if problems.is_empty() {
            return None;
        }
        Some(format!(
            "the parameters do not fit: {}",
            problems.join("; ")
        ))
    }

    fn gates_before(&mut self, asked: &Asked<'_>) -> Vec<u32> {
        let mut gates = self.capability_gates(&asked.profile.capabilities);
        gates.extend(self.risk_gates(asked));
        let mut before = Vec::new();
        self.engine
            .moments
            .before
            .matching(asked.action, &mut before);
        gates.extend(before);
        gates.extend(self.due_times());
        gates.extend(self.due_counts());
        gates.extend(self.custom("request", None, Some(asked)));
        gates
    }

    /// Gives the contexts that the action or its risk calls for by themselves.
    fn give_for(&mut self, asked: &Asked<'_>) {
        let moments = &self.engine.moments;
        let mut contexts = Vec::new();
        moments
            .context_actions
            .matching(asked.action, &mut contexts);
        let risky = moments
            .context_risks
            .iter()
            .filter(|(least, _)| asked.risk >= *least);
        contexts.extend(risky.map(|(_, number)| *number));
        self.give_by_themselves(contexts);
    }

    fn record_decision(&mut self, asked: &Asked<'_>, decided: &Decided) {
        let kind = match decided.decision {
            Decision::Allow => "ActionAllowed",
            Decision::Deny => "ActionDenied",
            Decision::Hold => "ActionHeld",
            Decision::RequiresApproval => "ApprovalRequired",
        };
        let body = json!({
            "request_id": decided.request_id,
            "action_id": asked.action,
            "decision": decided.decision,
            "reason": decided.reason,
            "hold_id": decided.hold,
        });
        match decided.decision {
            Decision::Deny => {
                self.notify(NotificationTrigger::ActionDenied, None, || body.clone());
            }
            Decision::RequiresApproval => {
                self.notify(NotificationTrigger::ApprovalRequired, None, || body.clone());
            }
            Decision::Allow | Decision::Hold => {}
        }
        self.record(kind, body);
    }
}

impl Hold {
    fn is_about(&self, request: Digest) -> bool {
        matches!(&self.cause, Cause::Request { fingerprint, .. } if *fingerprint == request)
    }
}

/// Whether a text can name an action. Spaces, invisible characters and `*` cannot be in
/// one: a rule about `ticket.delete` must not be passed by something that looks like it.
fn is_name(action: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || ".-_:/@+#".contains(c);
    action.len() <= LONGEST_NAME && !action.is_empty() && action.chars().all(plain)
}

/// What makes a request exactly this one.
fn fingerprint(asked: &Asked<'_>) -> Digest {
    let parameters = canonical::canonical(asked.parameters)
        .unwrap_or_else(|_| asked.parameters.to_string().into_bytes());
    Frame::new("safepoint/request/v1")
        .field(asked.action.as_bytes())
        .field(&parameters)
        .field(asked.risk.as_str().as_bytes())
        .digest()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ga_26_the_fingerprint_of_a_request_is_the_published_one() {
        let parameters = json!({"id": 7});
        let asked = Asked {
            action: "ticket.delete",
            parameters: &parameters,
            risk: RiskTier::High,
            conditions: &BTreeSet::new(),
            profile: Profile::default(),
        };
        assert_eq!(
            fingerprint(&asked).to_string(),
            "9f9ab10a34e67b844971be0271b361682c8bd0a36e4b9f473abb4584ad7ba1ff"
        );
    }
}
