//! What follows from a judgement: leave, a hold, or a denial. All of it is part of the
//! transaction in which it was judged.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_authority::{Denial, DenialCode, Permit, changed, changed_how};
use safepoint_gates::Judgement;
use safepoint_model::{ActionId, HoldId, Timestamp};
use safepoint_store::Sql;
use safepoint_trail::{Draft, Kind, Stream, Writing};
use serde_json::{Value, json};

use super::asked::{Granted, Refused, Settlement, Wants};
use super::bench::Under;
use super::change::MUTATE;
use super::confine::{Approved, OutsideGrant};
use super::cover::Net;
use super::disagreement::ForetoldEffect;
use super::documents::{Remote, Running, Standing};
use super::effect::MeasuredEffect;
use super::file_tool::targets_of;
use super::needs::{Needed, needs, refused_mode};
use super::places::leads_elsewhere;
use super::see::{Form, errand, is_used};
use super::supervise::ReachRecord;
use super::{Answer, Bench, Denied, Leave, Mode, Passage, Proposal, Visitor};
use crate::session::ByPolicy;
use crate::{ControlError, kept};

/// What follows from a judgement.
pub(super) enum Settled {
    /// It may be done, under this permit if it needed one.
    Leave {
        permit: Option<Box<Permit>>,
        trust_after: Option<u32>,
        decision: &'static str,
        within: Option<BTreeSet<String>>,
        envelope: Option<UsedEnvelope>,
    },
    /// It may not.
    Denied(Box<Denial>),
}

/// Why something may be done.
pub(super) struct Yes {
    pub(super) permit: Option<Permit>,
    /// After how many approved successes the program is trusted.
    pub(super) trust_after: Option<u32>,
    pub(super) decision: &'static str,
    /// Where a program may write, if an envelope says so.
    pub(super) within: Option<BTreeSet<String>>,
    /// The envelope of the session, where that answered for a person.
    pub(super) envelope: Option<UsedEnvelope>,
    /// Whether a steward has allowed all of it by policies.
    pub(super) is_allowed_by_policy: bool,
}

/// An envelope that answered for a person.
#[derive(Clone, Debug)]
pub(super) struct UsedEnvelope {
    /// The hold with whose approval an operator gave it, where that is known.
    pub(super) hold_id: Option<HoldId>,
}

/// Whether an envelope's paths can hold it: what a client runs itself, and what may write
/// anywhere, they hold only where it runs behind our fence instead.
fn is_held_to_paths(wants: &Wants, form: &Form) -> bool {
    wants.visitor.is_none() || form.line.is_some() || !form.canonical.runs_anything()
}

/// Whether the envelope of a session answers all for which a person would be asked.
pub(super) fn is_answered(
    wants: &Wants,
    form: &Form,
    needed: &Needed,
    standing: &Standing,
    now: Timestamp,
) -> bool {
    standing.envelope.as_ref().is_some_and(|envelope| {
        envelope.delta(&form.canonical, now).is_empty()
            && is_held_to_paths(wants, form)
            && needed.fits_in_envelope_of(standing)
    })
}

impl Yes {
    /// Because nobody has to be asked.
    fn without_asking() -> Self {
        Self {
            permit: None,
            trust_after: None,
            decision: "allow",
            within: None,
            envelope: None,
            is_allowed_by_policy: false,
        }
    }
}

impl Bench<'_> {
    /// Judges a form in its session, and writes what follows in the same transaction.
    pub(super) fn judge(
        &self,
        form: &Form,
        wants: &Wants,
        action: &ActionId,
    ) -> Result<Settlement, ControlError> {
        let session = &form.canonical.session_id;
        let (judgement, (settled, by_policy)) = self.control.propose(
            session,
            action,
            &form.requests,
            |writing, judgement, by_policy, now| {
                let settled =
                    self.settle(writing, wants, form, action, judgement, by_policy, now)?;
                Ok((settled, by_policy == ByPolicy::Allowed))
            },
        )?;
        let resolution = judgement.resolution;
        Ok(match settled {
            Settled::Denied(denial) => Settlement::Denied(Box::new(Refused {
                denial: *denial,
                session_id: session.clone(),
                resolution: Some(resolution),
            })),
            Settled::Leave {
                permit,
                trust_after,
                decision,
                within,
                envelope: _,
            } => Settlement::Leave(Box::new(Granted {
                action_id: action.clone(),
                session_id: session.clone(),
                fingerprint: form.fingerprint,
                decision: decision.to_owned(),
                permit: permit.map(|permit| *permit),
                trust_after,
                by_policy,
                within,
                resolution,
            })),
        })
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing it follows from"
    )]
    pub(super) fn settle(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        judgement: &Judgement,
        by_policy: ByPolicy,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        if is_used(writing.sql(), action)? {
            return Err(ControlError::Meanwhile("it was begun under the same name"));
        }
        let session = &form.canonical.session_id;
        let standing = kept::get(writing.sql(), session.as_str())?
            .unwrap_or_else(|| Standing::new(session.clone(), now));
        let refusal = self.refused(wants, form, action, judgement);
        let stopped = self.halt(writing.sql(), form, &standing, now)?;
        let stopped = stopped.map(|hold| halted(form, action, &hold));
        if let Some(denial) = refusal.or(stopped) {
            return self.deny(writing, form, action, denial);
        }
        let mut needed = needs(wants, form, judgement, &standing, by_policy, now);
        if wants.mode == Mode::Never
            && !self.is_elevated(writing.sql(), wants)?
            && let Some(denial) = refused_mode(form, action, &needed, false)
        {
            return self.deny(writing, form, action, denial);
        }
        let bounds = match self.bounds_of(wants, form) {
            Ok(bounds) => bounds,
            Err(path) => {
                let denial = leads_elsewhere(form, action, &path, "the workflow");
                return self.deny(writing, form, action, denial);
            }
        };
        if self.is_opened(writing.sql(), form, &needed)? {
            let yes = Yes {
                decision: "approved",
                envelope: Some(UsedEnvelope { hold_id: None }),
                ..Yes::without_asking()
            };
            return self.leave(writing, wants, form, action, yes, now);
        }
        if let Some(envelope) = &standing.envelope {
            let delta = envelope.delta(&form.canonical, now);
            if is_answered(wants, form, &needed, &standing, now) {
                if needed.triggers.is_empty() {
                    let yes = Yes {
                        within: bounds,
                        ..Yes::without_asking()
                    };
                    return self.leave(writing, wants, form, action, yes, now);
                }
                let approved = match self.approved_places(form, &standing, envelope) {
                    Ok(approved) => approved,
                    Err(path) => {
                        let void = Standing {
                            envelope: None,
                            places: BTreeMap::new(),
                            ..standing.clone()
                        };
                        kept::put(writing, &void)?;
                        let denial = leads_elsewhere(form, action, &path, "the envelope");
                        return self.deny(writing, form, action, denial);
                    }
                };
                let used = Standing {
                    envelope: Some(envelope.clone().used()),
                    ..standing.clone()
                };
                kept::put(writing, &used)?;
                let yes = Yes {
                    within: Some(approved),
                    envelope: Some(UsedEnvelope {
                        hold_id: standing.envelope_hold.clone(),
                    }),
                    ..Yes::without_asking()
                };
                return self.leave(writing, wants, form, action, yes, now);
            }
            // Where it fits, and is asked about for another reason, that reason's scope is told.
            if !delta.is_empty() {
                needed.delta = delta;
            }
            if !is_held_to_paths(wants, form) {
                let anywhere = form.canonical.workspace.path.clone();
                needed.delta.paths.insert(anywhere);
            }
        }
        if needed.triggers.is_empty() {
            let yes = Yes {
                within: bounds,
                is_allowed_by_policy: by_policy == ByPolicy::Allowed,
                ..Yes::without_asking()
            };
            return self.leave(writing, wants, form, action, yes, now);
        }
        match wants.mode {
            Mode::Never => self.without_asking(writing, wants, form, action, &needed, now),
            Mode::Policy | Mode::Always => {
                self.with_a_permit(writing, wants, form, action, needed, now)
            }
        }
    }

    /// In the mode that asks nobody: only with elevated trust, and never past a rule.
    fn without_asking(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: &Needed,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        let elevated = self.is_elevated(writing.sql(), wants)?;
        match refused_mode(form, action, needed, elevated) {
            None => self.leave(writing, wants, form, action, Yes::without_asking(), now),
            Some(denial) => self.deny(writing, form, action, denial),
        }
    }

    /// Says in the trail what is about to be done, before it is.
    pub(super) fn leave(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        yes: Yes,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        if form.is_request() {
            return self.leave_request(writing, form, action, yes, now);
        }
        let Yes {
            permit,
            trust_after,
            decision,
            within,
            envelope,
            is_allowed_by_policy,
        } = yes;
        let session = &form.canonical.session_id;
        let mut standing: Standing = kept::get(writing.sql(), session.as_str())?
            .unwrap_or_else(|| Standing::new(session.clone(), now));
        if wants.provider.is_some() && standing.provider != wants.provider {
            standing.provider.clone_from(&wants.provider);
            kept::put(writing, &standing)?;
        }
        crate::session::allow_request(writing.sql(), action)?;
        let line = form.shell_line.clone();
        let begun = Running {
            permit_id: permit.as_ref().map(|permit| permit.permit_id.clone()),
            line: line.map(|line| self.control.trail.without_tokens(line)),
            is_unfenced: form.lacks_fence(),
            within: within.clone(),
            ..Running::begun(form, action, wants.visitor.as_ref(), decision, now)
        };
        // An envelope, too, was given by a person.
        let is_approved = permit.is_some() || envelope.is_some();
        let approved = match is_approved || is_allowed_by_policy {
            true => Approved::Yes,
            false => Approved::No,
        };
        let mut running = begun.with_grant(&form.canonical, approved);
        if let Some(site) = &self.site {
            let tool = form.canonical.tool.executable.as_ref();
            // No process of another machine is one of ours.
            running.process = (0, 0);
            running.remote = Some(Remote {
                site: site.clone(),
                trust_after,
                tool: tool.map(|it| it.path.clone()),
                content: form.canonical.tool.content(),
                policy_version: form.canonical.policy_version,
            });
        }
        if running.is_here() {
            running.refuse_collected(writing.sql())?;
        }
        kept::put(writing, &running)?;
        let mut body = json!({
            "fingerprint": form.fingerprint,
            "actions": form.canonical.actions,
            "summary": running.summary,
            "reversibility": form.canonical.reversibility,
            "remainder": form.canonical.remainder,
            "checkpoint_id": form.coverage.checkpoint_id,
            "permit_id": running.permit_id,
            "policy_version": form.canonical.policy_version,
        });
        if let (Some(site), Some(fields)) = (&self.site, body.as_object_mut()) {
            fields.insert("machine".to_owned(), json!(site));
            fields.insert("checkpoint_hash".to_owned(), json!(form.checkpoint_hash));
        }
        self.tell(writing, form, action, "action_intended", body)?;
        Ok(Settled::Leave {
            permit: permit.map(Box::new),
            trust_after,
            decision,
            within,
            envelope,
        })
    }

    pub(super) fn deny(
        &self,
        writing: &mut Writing<'_>,
        form: &Form,
        action: &ActionId,
        denial: Denial,
    ) -> Result<Settled, ControlError> {
        self.tell(writing, form, action, "action_denied", json!(denial))?;
        // An attempt that is forbidden did no harm, and the next one is forbidden too.
        if denial.code == DenialCode::ClassUndeclared {
            self.violate(writing, &form.canonical, &denial.reason)?;
        }
        Ok(Settled::Denied(Box::new(denial)))
    }

    pub(super) fn tell(
        &self,
        writing: &mut Writing<'_>,
        form: &Form,
        action: &ActionId,
        kind: &'static str,
        mut body: Value,
    ) -> Result<(), ControlError> {
        self.join(writing, &form.canonical.session_id, &mut body)?;
        writing.append(Draft {
            stream: Stream::from(&form.canonical.session_id),
            actor: self.control.around.actor.clone(),
            kind: Kind::fixed(kind).into(),
            action_id: Some(action.clone()),
            body,
        })?;
        Ok(())
    }
}

impl Passage<'_> {
    /// What the world has changed since leave was given.
    pub(super) fn changed_since(
        &self,
        proposal: &Proposal,
        leave: &Leave,
    ) -> Result<Option<(DenialCode, String)>, ControlError> {
        if leave.permit.is_none() {
            return Ok(None);
        }
        let again = self.see(proposal)?;
        let under = Under::of_form(&leave.canonical);
        let form = self.form(
            &again,
            &Net::of(leave.before.as_ref(), proposal.act.covering()),
            &under,
        )?;
        let code = changed(&leave.canonical, &form.canonical);
        Ok(code.map(|code| (code, changed_how(code, &leave.canonical, &form.canonical))))
    }

    /// Takes leave back: nothing was run, and the permit is gone.
    pub(super) fn withdraw(
        &self,
        leave: Leave,
        (code, reason): (DenialCode, String),
    ) -> Result<Answer, ControlError> {
        let denial = Denial {
            code,
            hold_id: leave.permit.as_ref().map(|permit| permit.hold_id.clone()),
            fingerprint: None,
            action_id: Some(leave.action_id.clone()),
            policy_basis: Vec::new(),
            reason,
            next: "nothing was run; ask again, and it will be put before an operator anew"
                .to_owned(),
        };
        self.never_ran(&leave, &denial)?;
        Ok(Answer::Denied(Box::new(Denied {
            denial,
            session_id: leave.session_id,
            resolution: Some(leave.resolution),
        })))
    }
}

impl Running {
    /// Refuses to begin from a state that somebody has deleted since it was captured. From here
    /// on, `gc` keeps it.
    pub(super) fn refuse_collected(&self, sql: &mut dyn Sql) -> Result<(), ControlError> {
        match &self.before {
            Some(before) if !safepoint_state::is_listed(sql, before)? => Err(
                ControlError::Meanwhile("the checkpoint before it was deleted"),
            ),
            _ => Ok(()),
        }
    }

    /// What begins now, by this process or by a client.
    pub(super) fn begun(
        form: &Form,
        action: &ActionId,
        visitor: Option<&Visitor>,
        decision: &str,
        now: Timestamp,
    ) -> Self {
        let session = &form.canonical.session_id;
        let errand = errand(form, action, session, decision);
        // Where a change was cut off, the state says what became of it.
        let tool = &form.canonical.tool;
        let is_change = tool.name == MUTATE && tool.executable.is_none();
        Self {
            format: 1,
            action_id: action.clone(),
            session_id: session.clone(),
            workspace: form.canonical.workspace.path.clone(),
            before: form
                .coverage
                .checkpoint_id
                .clone()
                .filter(|_| visitor.is_some() || !is_change),
            action: errand.action,
            summary: errand.summary,
            decision: decision.to_owned(),
            permit_id: None,
            process: match visitor {
                Some(visitor) => visitor.process,
                None => super::recover::this_process(),
            },
            time: now,
            ended: false,
            until: None,
            visitor: visitor.cloned(),
            claims: form.claims.clone(),
            line: None,
            directory: form
                .shell_line
                .as_ref()
                .map(|_| form.canonical.directory.clone()),
            is_unfenced: false,
            grant: OutsideGrant::default(),
            performer: None,
            outcome: None,
            remote: None,
            agent_session: None,
            within: None,
            reach: ReachRecord::default(),
            foretold: Some(ForetoldEffect::of(&form.canonical, &form.coverage)),
            effect: Some(MeasuredEffect {
                reversibility: form.canonical.reversibility,
                remainder: form.canonical.remainder.clone(),
            }),
            targets: targets_of(visitor, &form.canonical.paths),
        }
    }
}

/// What is denied because an operator has stopped the session.
pub(super) fn halted(form: &Form, action: &ActionId, hold: &HoldId) -> Denial {
    Denial {
        hold_id: Some(hold.clone()),
        next: format!(
            "a person has to decide about {hold}, which `safepoint hold show {hold}` displays"
        ),
        ..denial(DenialCode::SessionHalted, form, action)
    }
}

pub(super) fn denial(code: DenialCode, form: &Form, action: &ActionId) -> Denial {
    Denial {
        code,
        hold_id: None,
        fingerprint: Some(form.fingerprint),
        action_id: Some(action.clone()),
        policy_basis: Vec::new(),
        reason: code.meaning().to_owned(),
        next: String::new(),
    }
}
