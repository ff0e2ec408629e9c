//! What stewards are told when an operator allows what their policy held.
//!
//! Nothing is decided here, and nothing is sent: the notice is written in the
//! transaction of the decision, and delivered like all others.

#[cfg(test)]
mod tests;

use safepoint_authority::{Basis, Choice, Decision, Hold};
use safepoint_gates::{AtlasManifest, Notice, NotificationTrigger};
use safepoint_trail::Writing;
use serde_json::{Value, json};

use super::Desk;
use crate::{ControlError, notice};

impl Desk<'_> {
    /// The atlases whose policies a choice goes against, if it lets `hold` go on.
    pub(super) fn overridden(
        &self,
        hold: &Hold,
        choice: Choice,
    ) -> Result<Vec<AtlasManifest>, ControlError> {
        let by_policy = hold.basis.iter().any(|basis| basis.atlas_id.is_some());
        if !choice.is_yes() || !by_policy {
            return Ok(Vec::new());
        }
        let atlases = self.control.atlases_of(&hold.canonical.session_id)?;
        Ok(atlases.into_iter().map(|atlas| atlas.manifest).collect())
    }

    /// Writes what the stewards of `manifests` are told, now that `decision` lets `hold` go
    /// on. Each hears of their own policies; boundaries are nobody's.
    pub(super) fn tell_stewards(
        &self,
        writing: &mut Writing<'_>,
        hold: &Hold,
        decision: &Decision,
        manifests: &[AtlasManifest],
    ) -> Result<(), ControlError> {
        let mut operators = Vec::new();
        for signed in &hold.decisions {
            let said = signed.claimed()?;
            if said.choice.is_yes() {
                operators.push(said.operator);
            }
        }
        let notices: Vec<Notice> = manifests
            .iter()
            .filter_map(|manifest| {
                let policies = policies_of(&manifest.atlas_id, hold);
                if policies.is_empty() {
                    return None;
                }
                Notice::of(manifest, NotificationTrigger::PolicyOverride, || {
                    json!({
                        "request_id": hold.action_id,
                        "hold_id": hold.hold_id,
                        "fingerprint": hold.fingerprint,
                        "actions": hold.canonical.actions,
                        "policies": policies,
                        "choice": decision.choice,
                        "operators": operators,
                        "reason": decision.reason,
                    })
                })
            })
            .collect();
        let (session, control) = (&hold.canonical.session_id, self.control);
        let sql = writing.sql();
        notice::enqueue(sql, session, &notices, &control.trail, &control.around)
    }
}

/// The policies of one atlas that held it, and why.
fn policies_of(atlas_id: &str, hold: &Hold) -> Vec<Value> {
    let own = |basis: &&Basis| basis.atlas_id.as_deref() == Some(atlas_id);
    let policies = hold.basis.iter().filter(own);
    policies
        .map(|basis| json!({"policy_id": basis.policy_id, "reason": basis.reason}))
        .collect()
}
