//! What would come of a proposal: the first three stages, and nothing is written.

use safepoint_authority::{Denial, DenialCode, Hold, Permit, changed};
use safepoint_model::{ActionId, Timestamp};

use super::needs::{Needed, needs, refused_mode, versions};
use super::see::{Form, Seen};
use super::settle::{denial, halted};
use super::{Mode, Passage, Proposal, Rehearsed};
use crate::session::ByPolicy;
use crate::{ControlError, kept};

impl Passage<'_> {
    /// What would be said where a person must decide.
    fn would_be_denied(
        &self,
        proposal: &Proposal,
        form: &Form,
        action: &ActionId,
        needed: &Needed,
        now: Timestamp,
    ) -> Result<Option<Denial>, ControlError> {
        let store = self.control.trail.store();
        if proposal.mode == Mode::Never {
            let elevated = store.read(|sql| self.is_elevated(sql, proposal))?;
            return Ok(refused_mode(form, action, needed, elevated));
        }
        let waits = store.read(|sql| -> Result<bool, ControlError> {
            let lineage = self.lineage_in(sql, &form.canonical.session_id)?;
            let permit = self.permit_for(sql, proposal, form, &lineage)?;
            let good = |permit: &Permit| {
                let trust = versions(form);
                lineage.contains(&permit.session_id) && permit.reserve(&trust, now).is_ok()
            };
            let Some(permit) = permit.filter(good) else {
                return Ok(false);
            };
            let hold: Option<Hold> = kept::get(sql, permit.hold_id.as_str())?;
            // What the checkpoint will leave out is not known yet: that cannot be compared.
            let same = |hold: &Hold| {
                let code = changed(&hold.canonical, &form.canonical);
                code.is_none_or(|code| code == DenialCode::FingerprintMismatch)
            };
            let same = hold.as_ref().is_some_and(same);
            Ok(same && self.approvals_hold(sql, hold.as_ref())?.is_none())
        })?;
        let reason = needed.basis.first().map(|basis| basis.reason.clone());
        Ok((!waits).then(|| Denial {
            action_id: None,
            policy_basis: needed.basis.clone(),
            reason: reason.unwrap_or_default(),
            next: "run it without `--dry-run` to put it before an operator".to_owned(),
            ..denial(DenialCode::ApprovalRequired, form, action)
        }))
    }

    /// What would be said, without anything being written.
    pub(super) fn rehearse_seen(
        &self,
        proposal: &Proposal,
        seen: &Seen,
    ) -> Result<Rehearsed, ControlError> {
        let now = self.control.around.clock.now();
        let action = ActionId::generate(&*self.control.around.entropy)?;
        let rehearsal = self.session_for_rehearsal(proposal)?;
        let form = self.form_in(seen, None, &rehearsal.session)?;
        let judgement = self.control.judge_unwritten(
            &rehearsal.engine,
            &rehearsal.session,
            &action,
            &form.requests,
        )?;
        let refusal = self.refused(proposal, &form, &action, &judgement);
        let by_policy = ByPolicy::of(&rehearsal.engine, &form.requests);
        let needed = needs(
            proposal,
            &form,
            &judgement,
            &rehearsal.standing,
            by_policy,
            now,
        );
        let fits = rehearsal
            .standing
            .envelope
            .as_ref()
            .is_some_and(|envelope| {
                envelope.delta(&form.canonical, now).is_empty()
                    && needed.fits_in_envelope_of(&rehearsal.standing)
            });
        let store = self.control.trail.store();
        let stop = store.read(|sql| self.halt(sql, &form, &rehearsal.standing, now))?;
        let refusal = refusal.or_else(|| stop.map(|hold| halted(&form, &action, &hold)));
        let asks = !needed.triggers.is_empty() && !fits;
        let denied = match refusal {
            None if asks => self.would_be_denied(proposal, &form, &action, &needed, now)?,
            other => other,
        };
        Ok(Rehearsed {
            denial: denied,
            canonical: form.canonical,
            coverage: form.coverage,
            resolution: Some(judgement.resolution),
        })
    }
}
