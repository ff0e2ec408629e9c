//! A request that only the gates are asked about: somebody else carries it out.
//!
//! Where it needs a person it makes a hold like any other action. The form that a yes is
//! bound to has the session, the action and its parameters in it, and nothing of the machine
//! that asks: it is the same request wherever it comes from.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_authority::{
    Canonical, Coverage, Denial, DenialCode, Directory, Hold, Identity, Input, NamedPath,
    OutsideKind, OutsideTarget, Permit, PermitState, Preimage, Reversibility, Risk, SideEffect,
    Tool, Workspace,
};
use safepoint_gates::{Cause, Decision, Event, Judgement, Request, RiskTier, Session};
use safepoint_model::{ActionId, SessionId, Span, Timestamp, json};
use safepoint_store::Sql;
use safepoint_trail::Writing;
use serde_json::{Value, json};

use super::asked::{Origin, Wants};
use super::bench::Under;
use super::documents::Standing;
use super::effect::{self, Moment};
use super::see::Form;
use super::settle::{Settled, Yes};
use super::supervise::TARGET;
use super::{Bench, Mode, Passage, Proposal};
use crate::session::ByPolicy;
use crate::{Control, ControlError, kept};

/// What stands for the tool in the form of a request.
const REQUEST: &str = "request";

/// How a permit ends that let a request through: whoever carries it out reports the outcome
/// to the session.
const ALLOWED: &str = "allowed";

/// What came of a step that may need a person.
#[derive(Debug)]
pub struct Requested {
    /// What the gates said, and the hold.
    pub judgement: Judgement,
    /// Why it was denied, if it was a request and was not allowed.
    pub denial: Option<Denial>,
}

impl Control {
    /// Takes a step of a session. A request that needs a person makes a hold, or uses the
    /// permit that was issued for it.
    pub fn step_asking(
        &self,
        id: &SessionId,
        event: &Event,
        wants: &Wants,
        hold_timeout: Span,
    ) -> Result<Requested, ControlError> {
        let bench = Bench {
            control: self,
            atlases: &[],
            hold_timeout,
            root: String::new(),
            site: None,
            place: None,
        };
        bench.step_asking(id, event, wants)
    }
}

impl Passage<'_> {
    /// What would come of asking for an action that somebody else carries out, without anything
    /// being written.
    pub fn rehearse_request(
        &self,
        proposal: &Proposal,
        action: &str,
        parameters: Value,
    ) -> Result<Option<Denial>, ControlError> {
        if self.far.is_some() {
            return Err(ControlError::Proposal {
                reason: format!(
                    "the server is not asked what it would say to `{action}`: only what runs on this machine can be rehearsed there"
                ),
            });
        }
        let bench = self.bench()?;
        let rehearsal = bench.session_for_rehearsal(&self.entering(proposal)?)?;
        let request = plain_request(action, parameters);
        let name = ActionId::generate(&*self.control.around.entropy)?;
        let requests = std::slice::from_ref(&request);
        let (engine, session) = (&rehearsal.engine, &rehearsal.session);
        let judgement = self
            .control
            .judge_unwritten(engine, session, &name, requests)?;
        let risk = risk_of(&request, &judgement);
        let form = bench.request_form(session, &request, risk, Origin::Proposer)?;
        let (denial, _) = bench.rehearse_form(&proposal.wants(), &form, &rehearsal)?;
        Ok(denial)
    }
}

/// A request of which nothing more is known.
pub(super) fn plain_request(action: &str, parameters: Value) -> Request {
    Request {
        action: action.to_owned(),
        parameters,
        risk: None,
        conditions: BTreeSet::new(),
    }
}

impl Bench<'_> {
    /// Takes a step of a session.
    pub(super) fn step_asking(
        &self,
        id: &SessionId,
        event: &Event,
        wants: &Wants,
    ) -> Result<Requested, ControlError> {
        let (judgement, denial) = self.control.step_with(
            id,
            event,
            |sql, judgement| self.known_request(sql, event, wants, judgement),
            |writing, judgement, now| self.settle_request(writing, event, wants, judgement, now),
        )?;
        Ok(Requested { judgement, denial })
    }

    /// The id under which the same request waits or is permitted.
    fn known_request(
        &self,
        sql: &mut dyn Sql,
        event: &Event,
        wants: &Wants,
        judgement: &Judgement,
    ) -> Result<Option<ActionId>, ControlError> {
        let Event::Request(request) = event else {
            return Ok(None);
        };
        let by_rule = judgement.resolution.decision == Decision::RequiresApproval;
        if !by_rule && wants.origin == Origin::Proposer {
            return Ok(None);
        }
        let risk = risk_of(request, judgement);
        let form = self.request_form(&judgement.session, request, risk, wants.origin)?;
        let session = &judgement.session.session_id;
        let wish = form.canonical.wish().to_string();
        let permits: Vec<Permit> = kept::about(sql, &wish)?;
        let issued = permits
            .into_iter()
            .find(|it| it.session_id == *session && it.state == PermitState::Issued {});
        if let Some(permit) = issued {
            return Ok(Some(permit.action_id));
        }
        let holds: Vec<Hold> = kept::about(sql, &wish)?;
        let waits =
            |hold: &Hold| hold.canonical.session_id == *session && kept::Kept::is_open(hold);
        Ok(holds.into_iter().find(waits).map(|hold| hold.action_id))
    }

    /// What follows from the judgement about a request, in the same transaction.
    fn settle_request(
        &self,
        writing: &mut Writing<'_>,
        event: &Event,
        wants: &Wants,
        judgement: &mut Judgement,
        now: Timestamp,
    ) -> Result<Option<Denial>, ControlError> {
        let Some(action) = judgement.request_id.clone() else {
            return Ok(None);
        };
        let decision = judgement.resolution.decision;
        let (request, risk) = match event {
            Event::Request(request) => (request.clone(), risk_of(request, judgement)),
            // With an answer, a request that was held can come to need a person.
            Event::Answer { .. } if decision == Decision::RequiresApproval => {
                match held_request(&judgement.session, &action) {
                    Some((request, risk)) => (request, risk),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        // Nothing but the rules asks about it.
        let plain = wants.mode == Mode::Policy
            && wants.bounds.is_none()
            && wants.origin == Origin::Proposer;
        if decision == Decision::Allow && plain {
            let session = &judgement.session.session_id;
            if kept::get::<Standing>(writing.sql(), session.as_str())?.is_none() {
                return Ok(None);
            }
        }
        let form = self.request_form(&judgement.session, &request, risk, wants.origin)?;
        if matches!(decision, Decision::Deny | Decision::Hold) {
            return Ok(self.refused(wants, &form, &action, judgement));
        }
        if let Event::Answer { .. } = event {
            let session = [judgement.session.session_id.clone()];
            let permit = self.permit_for(writing.sql(), wants, &form, &session)?;
            if permit.is_some() {
                // It is used by the request itself.
                return Ok(None);
            }
        }
        let wants = Wants {
            objective: wants.objective.clone().or(judgement.session.goal.clone()),
            ..wants.clone()
        };
        let by_policy = match wants.origin {
            // Boundaries of this machine mean nothing for what happens elsewhere: the rules ask.
            Origin::Proposer => ByPolicy::Allowed,
            Origin::Fence(by_policy) => by_policy,
        };
        let settled = self.settle(writing, &wants, &form, &action, judgement, by_policy, now)?;
        match settled {
            Settled::Leave {
                permit, envelope, ..
            } => {
                // A permit, or a use of an envelope, is used up on disk before anything is done
                // with it.
                judgement.sync |= permit.is_some() || envelope.is_some();
                let resolution = &mut judgement.resolution;
                if resolution.decision == Decision::RequiresApproval {
                    resolution.decision = Decision::Allow;
                    let by_envelope = envelope.and_then(|used| used.hold_id);
                    resolution.reason = match (&permit, by_envelope) {
                        (Some(permit), _) => format!("a person approved it as {}", permit.hold_id),
                        (None, Some(hold)) => {
                            format!("a person approved everything of this kind, in {hold}")
                        }
                        (None, None) => "a person approved everything of this kind".to_owned(),
                    };
                }
                // Used up: the next such request is asked again.
                let is_this = |cause: &Cause| matches!(cause, Cause::Request { request_id, .. } if *request_id == action);
                judgement.session.holds.retain(|hold| !is_this(&hold.cause));
                Ok(None)
            }
            Settled::Denied(denial) => {
                let resolution = &mut judgement.resolution;
                resolution.decision = match denial.code {
                    DenialCode::ApprovalRequired => Decision::RequiresApproval,
                    _ => Decision::Deny,
                };
                resolution.reason.clone_from(&denial.reason);
                resolution.hold_id.clone_from(&denial.hold_id);
                judgement.sync = true;
                Ok(Some(*denial))
            }
        }
    }

    /// Lets a request through: whoever asked carries it out, and reports.
    pub(super) fn leave_request(
        &self,
        writing: &mut Writing<'_>,
        form: &Form,
        action: &ActionId,
        yes: Yes,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        let by_envelope = yes.envelope.is_some();
        let hold = match &yes.permit {
            Some(permit) => Some(permit.hold_id.clone()),
            None => yes.envelope.clone().and_then(|used| used.hold_id),
        };
        if let Some(permit) = &yes.permit {
            let used = permit
                .consume(ALLOWED, now)
                .map_err(|_| ControlError::Meanwhile("the permit was used"))?;
            kept::put(writing, &used)?;
        }
        if yes.permit.is_some() || by_envelope {
            let body = json!({
                "fingerprint": form.fingerprint,
                "actions": form.canonical.actions,
                "summary": form.canonical.summary(),
                "reversibility": form.canonical.reversibility,
                "permit_id": yes.permit.as_ref().map(|permit| &permit.permit_id),
                "hold_id": hold,
                "by_envelope": by_envelope,
                "policy_version": form.canonical.policy_version,
            });
            self.tell(writing, form, action, "action_intended", body)?;
        }
        Ok(Settled::Leave {
            envelope: yes.envelope,
            permit: yes.permit.map(Box::new),
            trust_after: None,
            within: None,
            decision: yes.decision,
        })
    }

    /// The canonical form of a request.
    fn request_form(
        &self,
        session: &Session,
        request: &Request,
        risk: RiskTier,
        origin: Origin,
    ) -> Result<Form, ControlError> {
        let parameters =
            json::canonical(&request.parameters).map_err(|error| ControlError::Proposal {
                reason: format!("the parameters cannot be written down exactly: {error}"),
            })?;
        let parameters = String::from_utf8_lossy(&parameters).into_owned();
        let under = Under::of(session);
        let canonical = Canonical {
            schema: Canonical::SCHEMA,
            tool: Tool {
                name: REQUEST.to_owned(),
                executable: None,
                interpreters: Vec::new(),
            },
            actions: BTreeSet::from([request.action.clone()]),
            argv: vec![
                request.action.clone(),
                self.control.trail.without_tokens(parameters),
            ],
            directory: Directory {
                path: String::new(),
                identity: Identity {
                    device: 0,
                    inode: 0,
                },
            },
            environment: BTreeMap::new(),
            paths: Vec::new(),
            hosts: BTreeSet::new(),
            input: Input::None {},
            side_effects: BTreeSet::new(),
            reversibility: Reversibility::Unknown,
            remainder: BTreeSet::new(),
            risk: match risk {
                RiskTier::Low => Risk::Low,
                RiskTier::Medium => Risk::Medium,
                RiskTier::High => Risk::High,
                RiskTier::Critical => Risk::Critical,
            },
            session_id: under.session_id,
            provider: None,
            workspace: Workspace {
                path: String::new(),
            },
            policy_version: under.policy_version,
            atlases: under.atlases,
        };
        let (canonical, not_covered) = match (origin, target(request)) {
            (Origin::Fence(_), Some(target)) => {
                let canonical = self.wanted_outside(canonical, &target);
                let remainder = canonical.remainder.iter().cloned().collect();
                (canonical, remainder)
            }
            (Origin::Fence(_), None) => {
                return Err(ControlError::Proposal {
                    reason: "the fence asks for nothing that it closes".to_owned(),
                });
            }
            (Origin::Proposer, _) => {
                let not_covered = "whoever asked carries it out: no checkpoint covers it";
                (canonical, vec![not_covered.to_owned()])
            }
        };
        Ok(Form {
            fingerprint: canonical.fingerprint()?,
            coverage: Coverage {
                not_covered,
                ..Coverage::default()
            },
            requests: vec![request.clone()],
            forbidden: false,
            shell_line: None,
            line: None,
            claims: None,
            trust: BTreeMap::new(),
            checkpoint_hash: None,
            canonical,
        })
    }

    /// The form of a request, for something that a program behind the fence wants outside it.
    fn wanted_outside(&self, form: Canonical, target: &OutsideTarget) -> Canonical {
        let path = |role: &str| NamedPath {
            path: target.name.clone(),
            role: role.to_owned(),
            inside: false,
            preimage: Preimage::Unknown {},
        };
        let (paths, hosts, effect) = match target.kind {
            OutsideKind::Host => (
                Vec::new(),
                BTreeSet::from([target.name.clone()]),
                SideEffect::Network,
            ),
            OutsideKind::Socket => (vec![path("connect")], BTreeSet::new(), SideEffect::Network),
            OutsideKind::File => (vec![path("write")], BTreeSet::new(), SideEffect::Write),
        };
        let effect_outside = effect::of_target(target, &[], Moment::Before);
        Canonical {
            tool: Tool {
                name: Canonical::FENCE.to_owned(),
                ..form.tool
            },
            workspace: Workspace {
                path: self.root.clone(),
            },
            paths,
            hosts,
            side_effects: BTreeSet::from([effect]),
            reversibility: effect_outside.reversibility,
            remainder: effect_outside.remainder,
            ..form
        }
    }
}

impl Form {
    /// Whether somebody else carries it out, and only the gates are asked.
    pub(super) fn is_request(&self) -> bool {
        self.canonical.tool.name == REQUEST || self.is_wanted_outside()
    }

    /// Whether the fence asks, for a program that runs behind it.
    pub(super) fn is_wanted_outside(&self) -> bool {
        self.canonical.tool.name == Canonical::FENCE
    }
}

/// What a request for something outside the fence is about.
fn target(request: &Request) -> Option<OutsideTarget> {
    let kinds = [OutsideKind::Host, OutsideKind::Socket, OutsideKind::File];
    let kind = kinds.into_iter().find(|it| it.action() == request.action)?;
    let name = request.parameters.get(TARGET)?.as_str()?.to_owned();
    Some(OutsideTarget { kind, name })
}

/// The risk under which a request was judged.
fn risk_of(request: &Request, judgement: &Judgement) -> RiskTier {
    let mut records = judgement.records.iter();
    let asked = records.find(|record| record.kind == "ActionRequested");
    let risk = asked.and_then(|record| record.body.get("risk").cloned());
    let risk = risk.and_then(|risk| serde_json::from_value(risk).ok());
    risk.or(request.risk).unwrap_or_default()
}

/// A request that waits in a session, by its id.
fn held_request(session: &Session, id: &ActionId) -> Option<(Request, RiskTier)> {
    session.holds.iter().find_map(|hold| match &hold.cause {
        Cause::Request {
            request_id,
            action,
            parameters,
            risk,
            conditions,
            ..
        } if request_id == id => Some((
            Request {
                action: action.clone(),
                parameters: parameters.clone(),
                risk: Some(*risk),
                conditions: conditions.clone(),
            },
            *risk,
        )),
        _ => None,
    })
}
