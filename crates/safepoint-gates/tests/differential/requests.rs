//! The naive evaluator: what becomes of a request.

use safepoint_gates::{
    AtlasPolicy, CheckpointTrigger, Decision, GateStatus, PolicyType, Request, RiskTier,
};

use crate::matching::{any_fits, fits, parameters_fit};
use crate::naive::{Cause, Happened, Hold, Naive};
use crate::raise::Moment;

impl Naive {
    pub(crate) fn request(&mut self, request: &Request) -> Decision {
        self.next_request += 1;
        self.request_number = Some(self.next_request);
        let risk = self.risk(&request.action, request.risk);
        let same = self.holds.iter().find(|hold| {
            matches!(&hold.cause, Cause::Request { action, parameters, risk: other, .. }
                if *action == request.action && *parameters == request.parameters && *other == risk)
        });
        let same = same.cloned();
        if let Some(Cause::Request { number, .. }) = same.as_ref().map(|hold| &hold.cause) {
            self.request_number = Some(*number);
        }
        let decision = self.judge(request, risk, same);
        self.record_action(decision);
        decision
    }

    pub(crate) fn record_action(&mut self, decision: Decision) {
        self.out.records.push(match decision {
            Decision::Allow => "ActionAllowed",
            Decision::RequiresApproval => "ApprovalRequired",
            Decision::Hold => "ActionHeld",
            Decision::Deny => "ActionDenied",
        });
    }

    fn judge(&mut self, request: &Request, risk: RiskTier, same: Option<Hold>) -> Decision {
        let action = request.action.as_str();
        let knowing: Vec<usize> = (0..self.atlases.len())
            .filter(|&atlas| self.knows(atlas, action))
            .collect();
        if knowing.is_empty() {
            return Decision::Deny;
        }
        for &atlas in &knowing {
            for it in self.atlases[atlas]
                .actions
                .iter()
                .filter(|it| it.action_id == action)
            {
                if !parameters_fit(it.parameters_schema.as_ref(), &request.parameters) {
                    return Decision::Deny;
                }
            }
        }
        let in_the_way = self.in_the_way();
        if !in_the_way.is_empty() {
            return self.decide_by_others();
        }
        if let Some(hold) = same {
            if self.denied_by_gates(action) || self.denied_by_policies(action, risk) {
                return Decision::Deny;
            }
            for wait in &hold.waits {
                if wait.passed {
                    self.note(wait.gate, GateStatus::Passed);
                }
            }
            return self.go_on(&hold, action, risk);
        }
        self.history.push(Happened::Counted);
        let limits = self.limits(action, &knowing);
        let used_up = limits
            .iter()
            .any(|(name, window, most)| self.uses(name, *window) >= *most);
        if self.denied_by_gates(action) || self.denied_by_policies(action, risk) || used_up {
            return Decision::Deny;
        }
        let gates = self.raised_by(action, risk);
        self.give_by_themselves(&Moment::Request(action, risk));
        let cause = Cause::Request {
            number: self.next_request,
            action: action.to_owned(),
            parameters: request.parameters.clone(),
            risk,
        };
        let raised = self.raise(cause, gates);
        self.own = raised.hold.filter(|_| !raised.shut);
        let decision = if raised.shut {
            Decision::Deny
        } else if raised.waits {
            Decision::Hold
        } else {
            self.last_word(action, risk)
        };
        if decision != Decision::Deny {
            for (name, _, _) in limits {
                self.history.push(Happened::Used(name, self.now));
            }
        }
        decision
    }

    /// A request that was held, and that nothing but gates can stop.
    fn go_on(&mut self, hold: &Hold, action: &str, risk: RiskTier) -> Decision {
        if hold.waits.iter().any(|wait| !wait.passed) {
            self.own = Some(hold.number);
        }
        if self.is_shut_before(action, risk) {
            return Decision::Deny;
        }
        if hold.waits.iter().any(|wait| !wait.passed) {
            return Decision::Hold;
        }
        let decision = self.last_word(action, risk);
        if decision == Decision::Allow {
            self.holds.retain(|it| it.number != hold.number);
        }
        decision
    }

    /// Whether a gate that the request raises is shut.
    pub(crate) fn is_shut_before(&self, action: &str, risk: RiskTier) -> bool {
        let gates = self.raised_by(action, risk);
        gates
            .into_iter()
            .any(|gate| self.is_shut(gate, Some(action)))
    }

    fn raised_by(&self, action: &str, risk: RiskTier) -> Vec<usize> {
        (0..self.gates.len())
            .filter(|&gate| {
                let it = &self.gates[gate];
                match &it.def.trigger {
                    CheckpointTrigger::CapabilityAccess { capability_ids }
                    | CheckpointTrigger::CapabilityGate { capability_ids } => {
                        let capabilities = &self.atlases[it.atlas].capabilities;
                        !self.is_passed(gate)
                            && capabilities.iter().any(|capability| {
                                capability_ids.contains(&capability.capability_id)
                                    && any_fits(&capability.actions, action)
                            })
                    }
                    CheckpointTrigger::RiskThreshold { min_tier } => risk >= *min_tier,
                    CheckpointTrigger::ActionPre { patterns } => any_fits(patterns, action),
                    CheckpointTrigger::TimeInterval { .. }
                    | CheckpointTrigger::CountInterval { .. } => self.due(gate).is_some(),
                    _ => self.fires(it),
                }
            })
            .collect()
    }

    fn policies<'a>(
        &'a self,
        kind: PolicyType,
        action: &'a str,
    ) -> impl Iterator<Item = (usize, &'a AtlasPolicy)> {
        self.atlases
            .iter()
            .enumerate()
            .flat_map(move |(atlas, manifest)| {
                let fitting = move |it: &&AtlasPolicy| {
                    it.policy_type == kind && any_fits(&it.actions, action)
                };
                manifest
                    .policies
                    .iter()
                    .filter(fitting)
                    .map(move |it| (atlas, it))
            })
    }

    pub(crate) fn denied_by_policies(&self, action: &str, risk: RiskTier) -> bool {
        self.policies(PolicyType::Deny, action).next().is_some()
            || self.policies(PolicyType::Risk, action).any(|(_, it)| {
                it.parameters
                    .and_then(|it| it.max_tier)
                    .is_some_and(|most| risk > most)
            })
    }

    /// The limits on an action: name, window, and how often.
    fn limits(&self, action: &str, knowing: &[usize]) -> Vec<(String, u64, u64)> {
        let mut limits = Vec::new();
        for &atlas in knowing {
            let access = self.atlases[atlas].steward.as_ref().map(|it| &it.access);
            if let Some(rate) = access.and_then(|it| it.rate_limit) {
                for (window, most) in [
                    (60, rate.requests_per_minute),
                    (3600, rate.requests_per_hour),
                ] {
                    limits.extend(most.map(|most| (format!("{atlas} {window}"), window, most)));
                }
            }
        }
        for (atlas, policy) in self.policies(PolicyType::RateLimit, action) {
            let parameters = policy.parameters.unwrap_or_default();
            if let (Some(most), Some(window)) = (parameters.max_calls, parameters.window_seconds) {
                limits.push((format!("{atlas} {}", policy.policy_id), window, most));
            }
        }
        limits
    }

    fn uses(&self, limit: &str, window: u64) -> u64 {
        let used = self.history.iter().filter(|happened| {
            matches!(happened, Happened::Used(name, at) if name == limit && at + window > self.now)
        });
        used.count() as u64
    }

    /// What is left when all gates are passed.
    pub(crate) fn last_word(&self, action: &str, risk: RiskTier) -> Decision {
        if self.denied_by_gates(action) {
            return Decision::Deny;
        }
        for atlas in 0..self.atlases.len() {
            if self.is_locked_in(atlas, action) {
                return Decision::Deny;
            }
        }
        let approval = self
            .policies(PolicyType::RequiresApproval, action)
            .next()
            .is_some()
            || self.policies(PolicyType::Risk, action).any(|(_, it)| {
                it.parameters
                    .and_then(|it| it.approval_tier)
                    .is_some_and(|from| risk >= from)
            });
        if approval {
            Decision::RequiresApproval
        } else {
            Decision::Allow
        }
    }

    /// Whether it is only in capabilities of this atlas that are locked, and the atlas does not allow it.
    fn is_locked_in(&self, atlas: usize, action: &str) -> bool {
        let mut holding = self.atlases[atlas]
            .capabilities
            .iter()
            .filter(|it| any_fits(&it.actions, action))
            .peekable();
        let granted = self.history.iter().any(|happened| {
            matches!(happened, Happened::Allowed(of, pattern) if *of == atlas && fits(pattern, action))
        }) || self.policies(PolicyType::Allow, action).any(|(of, _)| of == atlas);
        holding.peek().is_some()
            && !granted
            && !holding.any(|it| self.is_open(atlas, &it.capability_id))
    }
}
