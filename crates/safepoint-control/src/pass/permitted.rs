//! With the permit there is, or before an operator: one of the two, in the transaction in which
//! the action was judged.

use safepoint_authority::{
    Canonical, Denial, DenialCode, EarlierRun, Hold, HoldState, Permit, PermitState, Proposer,
    changed, changed_how,
};
use safepoint_model::{ActionId, HoldId, Timestamp};
use safepoint_trail::{Actor, Writing};
use serde_json::json;

use super::Bench;
use super::asked::Wants;
use super::needs::{Needed, versions};
use super::see::Form;
use super::settle::{Settled, Yes, denial};
use super::silence;
use crate::{ControlError, kept};

impl Bench<'_> {
    /// Uses the permit there is, or makes a hold.
    pub(super) fn with_a_permit(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: Needed,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        let lineage = self.lineage_in(writing.sql(), &form.canonical.session_id)?;
        if let Some(permit) = self.permit_for(writing.sql(), wants, form, &lineage)? {
            let hold: Option<Hold> = kept::get(writing.sql(), permit.hold_id.as_str())?;
            let approved = hold.as_ref().map(|hold| &hold.canonical);
            let versions = versions(form);
            let refused = match approved {
                // Whose it is comes first: nobody else may as much as spoil it.
                _ if !lineage.contains(&permit.session_id) => Some(DenialCode::LineageMismatch),
                // What it was used for may well have changed what it was approved for.
                _ if permit.state != (PermitState::Issued {}) => None,
                None => Some(DenialCode::FingerprintMismatch),
                Some(approved) => changed(approved, &form.canonical).or_else(|| {
                    let same = permit.fingerprint == form.fingerprint;
                    (!same).then_some(DenialCode::FingerprintMismatch)
                }),
            };
            if let (Some(DenialCode::EnvironmentChanged), Some(approved), None) =
                (refused, approved, &wants.permit)
            {
                return self
                    .with_other_variables(writing, wants, form, action, &needed, approved, now);
            }
            let reserved = match (refused, permit.reserve(&versions, now)) {
                (Some(code), _) => Err(code),
                (None, Err(error)) => Err(error.0),
                (None, Ok(reserved)) => self
                    .approvals_hold(writing.sql(), hold.as_ref())?
                    .map_or(Ok(reserved), Err),
            };
            return match reserved {
                Ok(reserved) => {
                    kept::put(writing, &reserved)?;
                    let yes = Yes {
                        permit: Some(reserved),
                        trust_after: needed.trust_after,
                        decision: "approved",
                        within: None,
                        envelope: None,
                        is_allowed_by_policy: false,
                    };
                    self.leave(writing, wants, form, action, yes, now)
                }
                Err(code) => {
                    if code != DenialCode::LineageMismatch
                        && let Ok(void) = permit.cancel(code, now)
                    {
                        kept::put(writing, &void)?;
                    }
                    let reason = match approved {
                        Some(approved) => changed_how(code, approved, &form.canonical),
                        None => code.meaning().to_owned(),
                    };
                    let denial = Denial {
                        reason,
                        policy_basis: needed.basis,
                        hold_id: Some(permit.hold_id.clone()),
                        next:
                            "nothing was run; ask again, and it will be put before an operator anew"
                                .to_owned(),
                        ..denial(code, form, action)
                    };
                    self.deny(writing, form, action, denial)
                }
            };
        }
        self.hold(writing, wants, form, action, needed, now)
    }

    /// The permit that a proposal would use: the one it names, or the one issued for its wish.
    pub(super) fn permit_for(
        &self,
        sql: &mut dyn safepoint_store::Sql,
        wants: &Wants,
        form: &Form,
        lineage: &[safepoint_model::SessionId],
    ) -> Result<Option<Permit>, ControlError> {
        if let Some(id) = &wants.permit {
            return kept::find(sql, id.as_str()).map(Some);
        }
        let permits: Vec<Permit> = kept::about(sql, &form.canonical.wish().to_string())?;
        let mine = permits.into_iter().filter(|permit| {
            lineage.contains(&permit.session_id) && permit.state == PermitState::Issued {}
        });
        let mut mine: Vec<Permit> = mine.collect();
        // The same words may have been approved with other variables as well.
        mine.sort_by_key(|permit| permit.fingerprint != form.fingerprint);
        Ok(mine.into_iter().next())
    }

    /// Puts it before an operator, unless it is there already.
    fn hold(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: Needed,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        let denial = self.put_on_hold(writing, wants, form, action, &needed, now)?;
        self.deny(writing, form, action, denial)
    }

    /// The same: what whoever asks is told.
    fn put_on_hold(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: &Needed,
        now: Timestamp,
    ) -> Result<Denial, ControlError> {
        let session = &form.canonical.session_id;
        let wish = form.canonical.wish().to_string();
        let known: Vec<Hold> = kept::about(writing.sql(), &wish)?;
        for hold in known
            .iter()
            .filter(|it| it.canonical.session_id == *session)
        {
            let same = hold.fingerprint == form.fingerprint;
            match hold.state {
                HoldState::Pending if same && hold.expires_at > now => {
                    return Ok(self.waiting(form, action, hold, needed));
                }
                HoldState::Denied if same => {
                    let said = hold.decisions.last().and_then(|it| it.claimed().ok());
                    let reason = said.and_then(|it| it.reason);
                    return Ok(Denial {
                        hold_id: Some(hold.hold_id.clone()),
                        policy_basis: needed.basis.clone(),
                        reason: reason.unwrap_or_else(|| "an operator said no".to_owned()),
                        next: "do it another way".to_owned(),
                        ..denial(DenialCode::OperatorDenied, form, action)
                    });
                }
                HoldState::Pending if silence::is_over(hold, now) => {
                    let denial = silence::silence(hold);
                    silence::end(writing, hold, &denial, Actor::safepoint())?;
                }
                HoldState::Pending => {
                    // What it was about is no longer so.
                    let ended = Hold {
                        state: HoldState::Expired,
                        ..hold.clone()
                    };
                    kept::put(writing, &ended)?;
                }
                _ => {}
            }
        }
        let hold = Hold {
            format: Hold::FORMAT,
            hold_id: HoldId::generate(&*self.control.around.entropy)?,
            action_id: action.clone(),
            since: now,
            expires_at: self.hold_timeout.after(now).unwrap_or(now),
            triggers: needed.triggers.clone(),
            basis: needed.basis.clone(),
            scope_delta: needed.delta.clone(),
            coverage: form.coverage.clone(),
            trust: form.trust.clone(),
            canonical: form.canonical.clone(),
            fingerprint: form.fingerprint,
            quorum: needed.quorum,
            proposer: Proposer {
                actor: self.control.around.actor.to_string(),
                objective: wants.objective.clone(),
            },
            decisions: Vec::new(),
            state: HoldState::Pending,
            earlier_run: self.earlier_run(writing.sql(), session, &wish)?,
        };
        kept::put(writing, &hold)?;
        self.tell(
            writing,
            form,
            action,
            "checkpoint_pending",
            json!(hold.pending()),
        )?;
        Ok(self.waiting(form, action, &hold, needed))
    }

    /// The last run of the same in this session or those before it of which nobody saw the end,
    /// unless one was seen since.
    fn earlier_run(
        &self,
        sql: &mut dyn safepoint_store::Sql,
        session: &safepoint_model::SessionId,
        wish: &str,
    ) -> Result<Option<EarlierRun>, ControlError> {
        let lineage = self.lineage_in(sql, session)?;
        let permits: Vec<Permit> = kept::about(sql, wish)?;
        let used = permits
            .into_iter()
            .filter_map(|permit| match &permit.state {
                PermitState::Consumed { at, outcome } if lineage.contains(&permit.session_id) => {
                    Some((*at, outcome.clone(), permit))
                }
                _ => None,
            });
        let last = used.max_by_key(|(at, _, _)| *at);
        let cut = last.filter(|(_, outcome, _)| outcome == "unknown");
        Ok(cut.map(|(time, _, permit)| EarlierRun {
            action_id: permit.action_id,
            hold_id: permit.hold_id,
            time,
        }))
    }

    /// Other variables than those that were approved: that is another wish, which is put before
    /// an operator by itself. The permit stays good for what was approved.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing it follows from"
    )]
    fn with_other_variables(
        &self,
        writing: &mut Writing<'_>,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: &Needed,
        approved: &Canonical,
        now: Timestamp,
    ) -> Result<Settled, ControlError> {
        let known: Vec<Hold> = kept::about(writing.sql(), &form.canonical.wish().to_string())?;
        let is_told = known.iter().any(|it| it.fingerprint == form.fingerprint);
        let waiting = self.put_on_hold(writing, wants, form, action, needed, now)?;
        let told = match is_told {
            true => waiting,
            false => Denial {
                reason: changed_how(DenialCode::EnvironmentChanged, approved, &form.canonical),
                next: format!(
                    "nothing was run; with the variables that were approved it runs, and with these {}",
                    waiting.next
                ),
                code: DenialCode::EnvironmentChanged,
                ..waiting
            },
        };
        self.deny(writing, form, action, told)
    }

    fn waiting(&self, form: &Form, action: &ActionId, hold: &Hold, needed: &Needed) -> Denial {
        let id = &hold.hold_id;
        let reason = needed.basis.first().map(|basis| basis.reason.clone());
        let reason = match (reason, &hold.earlier_run) {
            (Some(reason), Some(run)) => format!("{reason}; {}", run.sentence()),
            (Some(reason), None) => reason,
            (None, _) => hold.pending().trigger_description,
        };
        Denial {
            hold_id: Some(id.clone()),
            policy_basis: needed.basis.clone(),
            reason,
            next: format!(
                "a person has to approve {id}, which `safepoint hold show {id}` displays; then ask for exactly the same again"
            ),
            ..denial(DenialCode::ApprovalRequired, form, action)
        }
    }
}
