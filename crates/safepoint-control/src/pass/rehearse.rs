//! What would come of a proposal: the first three stages, and nothing is written.

use safepoint_authority::{Denial, DenialCode, Hold, Permit, changed};
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, Timestamp};

use super::asked::Wants;
use super::documents::Standing;
use super::needs::{Needed, needs, refused_mode, versions};
use super::places::leads_elsewhere;
use super::see::Form;
use super::settle::{denial, halted, is_answered};
use super::standing::Rehearsal;
use super::{Bench, Mode};
use crate::session::ByPolicy;
use crate::{ControlError, kept};

impl Bench<'_> {
    /// What would be said where a person must decide.
    fn would_be_denied(
        &self,
        wants: &Wants,
        form: &Form,
        action: &ActionId,
        needed: &Needed,
        now: Timestamp,
    ) -> Result<Option<Denial>, ControlError> {
        let store = self.control.trail.store();
        if wants.mode == Mode::Never {
            let elevated = store.read(|sql| self.is_elevated(sql, wants))?;
            return Ok(refused_mode(form, action, needed, elevated));
        }
        let waits = store.read(|sql| -> Result<bool, ControlError> {
            let lineage = self.lineage_in(sql, &form.canonical.session_id)?;
            let permit = self.permit_for(sql, wants, form, &lineage)?;
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

    /// A path that leads elsewhere by now, and what names it.
    fn elsewhere(
        &self,
        wants: &Wants,
        form: &Form,
        standing: &Standing,
        by_envelope: bool,
    ) -> Option<(String, &'static str)> {
        if let Err(path) = self.bounds_of(wants, form) {
            return Some((path, "the workflow"));
        }
        let envelope = standing.envelope.as_ref().filter(|_| by_envelope)?;
        let approved = self.approved_places(form, standing, envelope);
        approved.err().map(|path| (path, "the envelope"))
    }

    /// What would be said, without anything being written.
    pub(super) fn rehearse_form(
        &self,
        wants: &Wants,
        form: &Form,
        rehearsal: &Rehearsal,
    ) -> Result<(Option<Denial>, Resolution), ControlError> {
        let now = self.now();
        let action = ActionId::generate(&*self.control.around.entropy)?;
        let judgement = self.control.judge_unwritten(
            &rehearsal.engine,
            &rehearsal.session,
            &action,
            &form.requests,
        )?;
        let refusal = self.refused(wants, form, &action, &judgement);
        let by_policy = match form.is_request() {
            // Boundaries of this machine mean nothing for what happens elsewhere: the rules ask.
            true => ByPolicy::Allowed,
            false => ByPolicy::of(&rehearsal.engine, &form.requests),
        };
        let needed = needs(wants, form, &judgement, &rehearsal.standing, by_policy, now);
        let standing = &rehearsal.standing;
        let fits = is_answered(wants, form, &needed, standing, now);
        let elsewhere = self.elsewhere(wants, form, standing, fits && !needed.triggers.is_empty());
        let store = self.control.trail.store();
        let stop = store.read(|sql| self.halt(sql, form, &rehearsal.standing, now))?;
        let refusal = refusal.or_else(|| stop.map(|hold| halted(form, &action, &hold)));
        let refused =
            wants.mode == Mode::Never && !store.read(|sql| self.is_elevated(sql, wants))?;
        let asks = refused || !needed.triggers.is_empty() && !fits;
        let refusal = refusal.or_else(|| {
            elsewhere.map(|(path, whose)| leads_elsewhere(form, &action, &path, whose))
        });
        let denied = match refusal {
            None if asks => self.would_be_denied(wants, form, &action, &needed, now)?,
            other => other,
        };
        Ok((denied, judgement.resolution))
    }
}
