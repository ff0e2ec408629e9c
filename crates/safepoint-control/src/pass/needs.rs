//! Why a person must decide: the rules, and the boundaries that an action crosses.

use std::collections::BTreeMap;

use safepoint_authority::{Basis, Boundaries, Denial, DenialCode, ScopeDelta, Trigger};
use safepoint_gates::{Decision, Judgement};
use safepoint_model::{ActionId, Timestamp};

use super::Mode;
use super::asked::Wants;
use super::documents::Standing;
use super::see::Form;
use super::settle::denial;
use crate::session::ByPolicy;

/// Why a person must decide, and what about.
pub(super) struct Needed {
    pub(super) triggers: Vec<Trigger>,
    pub(super) basis: Vec<Basis>,
    pub(super) delta: ScopeDelta,
    pub(super) quorum: u32,
    pub(super) trust_after: Option<u32>,
}

impl Needed {
    /// Whether an envelope answers all of it: what concerns the session itself it does not,
    /// nor a rule that wants more operators than agreed to it.
    pub(super) fn fits_in_envelope_of(&self, standing: &Standing) -> bool {
        let triggers = self.triggers.iter();
        let by_rule = self.triggers.contains(&Trigger::PolicyDefined);
        let enough = !by_rule || self.quorum <= standing.approvers;
        enough
            && triggers
                .copied()
                .all(|it| answered_by_envelope(it) || is_of_the_action(it))
    }
}

/// Why a person must decide.
pub(super) fn needs(
    wants: &Wants,
    form: &Form,
    judgement: &Judgement,
    standing: &Standing,
    by_policy: ByPolicy,
    now: Timestamp,
) -> Needed {
    let boundaries = Boundaries::of(
        &form.canonical,
        &safepoint_authority::Standing {
            provider: standing.provider.clone(),
            rules_changed: standing.rules_changed,
            every_step: standing.every_step || wants.mode == Mode::Always,
            violated: standing.violated.is_some(),
        },
    );
    let said = &judgement.resolution;
    let asks = |note: &&safepoint_gates::PolicyNote| note.decision == Decision::RequiresApproval;
    let wanting: Vec<_> = said.policies.iter().filter(asks).collect();
    let mut triggers = boundaries.triggers;
    // A steward who has allowed exactly this by a policy has answered these.
    if by_policy == ByPolicy::Allowed {
        let answered = [Trigger::HigherRisk, Trigger::PathScope, Trigger::Delegation];
        triggers.retain(|trigger| !answered.contains(trigger));
    }
    let mut delta = boundaries.delta;
    if form.is_wanted_outside() {
        // That it is outside is all that there is to be asked.
        triggers.retain(|trigger| *trigger != Trigger::PathScope);
        if by_policy == ByPolicy::Open {
            triggers.insert(0, Trigger::OutsideFence);
        }
    }
    if let Some(bounds) = &wants.bounds {
        let beyond = bounds.delta(&form.canonical, now);
        if !beyond.is_empty() {
            triggers.insert(0, Trigger::OutsideEnvelope);
            delta = beyond;
        }
    }
    let mut basis = Vec::new();
    if said.decision == Decision::RequiresApproval {
        triggers.insert(0, Trigger::PolicyDefined);
        basis = self::basis(judgement);
    }
    basis.extend(
        triggers
            .iter()
            .filter(|it| **it != Trigger::PolicyDefined)
            .map(|trigger| Basis {
                policy_id: trigger.as_str().to_owned(),
                atlas_id: None,
                reason: trigger.description().to_owned(),
            }),
    );
    Needed {
        triggers,
        basis,
        delta,
        quorum: wanting
            .iter()
            .filter_map(|note| note.approvers)
            .max()
            .unwrap_or(1)
            .max(1),
        trust_after: wanting.iter().filter_map(|note| note.trust_after).max(),
    }
}

/// The rules that said no, or want a person to decide.
pub(super) fn basis(judgement: &Judgement) -> Vec<Basis> {
    let notes = judgement.resolution.policies.iter();
    notes
        .filter(|note| note.decision != Decision::Allow)
        .map(|note| Basis {
            policy_id: note.policy_id.clone(),
            atlas_id: Some(note.atlas_id.clone()),
            reason: note.reason.clone(),
        })
        .collect()
}

/// Why something cannot go without checkpoints, if it cannot.
pub(super) fn refused_mode(
    form: &Form,
    action: &ActionId,
    needed: &Needed,
    elevated: bool,
) -> Option<Denial> {
    let by_rule = !needed.triggers.iter().copied().all(is_of_the_action);
    let (reason, next) = match (by_rule, elevated) {
        (false, true) => return None,
        // No trust answers a rule.
        (true, _) => (
            "a rule, or how the session stands, wants a person to decide about it: it cannot go without checkpoints",
            "ask with `--checkpoint policy`, and an operator decides",
        ),
        (false, false) => (
            "going without checkpoints needs elevated trust in this workspace or workflow",
            "ask with `--checkpoint policy`; only a person can give the workspace elevated trust",
        ),
    };
    Some(Denial {
        policy_basis: needed.basis.clone(),
        reason: reason.to_owned(),
        next: next.to_owned(),
        ..denial(DenialCode::ModeRefused, form, action)
    })
}

/// The versions of the trust that an action rests on.
pub(super) fn versions(form: &Form) -> BTreeMap<String, u64> {
    let versions = form.trust.iter();
    versions
        .map(|(boundary, (_, version))| (boundary.clone(), *version))
        .collect()
}

/// Whether an operator's envelope answers it: what a rule asks, and what a workflow does beyond
/// what it says it keeps to.
fn answered_by_envelope(trigger: Trigger) -> bool {
    matches!(
        trigger,
        Trigger::PolicyDefined | Trigger::OutsideEnvelope | Trigger::OutsideFence
    )
}

/// Whether it is about the action alone: not a rule, nor how the session stands.
fn is_of_the_action(trigger: Trigger) -> bool {
    matches!(
        trigger,
        Trigger::HigherRisk | Trigger::PathScope | Trigger::Delegation
    )
}
