//! What an operator has opened outside the fence for longer than once: for a session, or for all
//! sessions of a workspace. It is trust like any other, listed and revoked with it.

use safepoint_authority::{
    Boundary, Decision, DecisionScope, Hold, Level, OutsideKind, OutsideTarget, Trigger, Trust,
};
use safepoint_model::SessionId;
use safepoint_store::Sql;
use safepoint_trail::Writing;

use super::needs::Needed;
use super::see::Form;
use super::{Bench, Desk, Passage};
use crate::{ControlError, kept};

impl Bench<'_> {
    /// Whether what the fence asks for has been opened for this session or this workspace, and
    /// nothing else is to be decided about it.
    pub(super) fn is_opened(
        &self,
        sql: &mut dyn Sql,
        form: &Form,
        needed: &Needed,
    ) -> Result<bool, ControlError> {
        let Some(target) = form.canonical.outside_target() else {
            return Ok(false);
        };
        let is_answered = |trigger: &Trigger| match trigger {
            Trigger::OutsideFence | Trigger::HigherRisk => true,
            // One operator has said yes, and no rule wants more of them.
            Trigger::PolicyDefined => needed.quorum <= 1,
            _ => false,
        };
        if !needed.triggers.iter().all(is_answered) {
            return Ok(false);
        }
        for place in self.places_of(&form.canonical.session_id) {
            let Ok(boundary) = Boundary::outside(&target, &place) else {
                continue;
            };
            let trust: Option<Trust> = kept::get(sql, &boundary.to_string())?;
            if trust.is_some_and(|trust| trust.level >= Level::Trusted) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What it can be opened for: the session, and the workspace.
    fn places_of(&self, session: &SessionId) -> [String; 2] {
        [session.to_string(), self.place_name(&self.root)]
    }
}

impl Passage<'_> {
    /// What settings let every command reach.
    pub(super) fn named_outside(&self) -> Vec<OutsideTarget> {
        let fence = self.fence.as_ref();
        let Some(rules) = fence.and_then(|fence| fence.supervision.as_ref()) else {
            return Vec::new();
        };
        let hosts = rules.hosts.iter().chain(&rules.services);
        let hosts = hosts.map(|rule| OutsideTarget {
            kind: OutsideKind::Host,
            name: rule.to_string(),
        });
        let sockets = rules.sockets.iter().map(|path| OutsideTarget {
            kind: OutsideKind::Socket,
            name: path.display().to_string(),
        });
        hosts.chain(sockets).collect()
    }

    /// All that operators have opened for a session or for this workspace.
    pub(super) fn opened_outside(
        &self,
        session: &SessionId,
    ) -> Result<Vec<OutsideTarget>, ControlError> {
        if self.far.is_some() {
            return Ok(Vec::new());
        }
        let places = self.bench()?.places_of(session);
        let in_place = |trust: &Trust| -> Option<OutsideTarget> {
            let (target, place) = trust.boundary.outside_target()?;
            places.iter().any(|it| it == place).then_some(target)
        };
        let store = self.control.trail.store();
        let is_opened = |trust: &Trust| trust.level >= Level::Trusted && in_place(trust).is_some();
        let opened: Vec<Trust> = store.read(|sql| kept::open_if(sql, is_opened))?;
        Ok(opened.iter().filter_map(in_place).collect())
    }
}

impl Desk<'_> {
    /// Opens what a hold is about for as long as its approval says.
    pub(super) fn open_outside(
        &self,
        writing: &mut Writing<'_>,
        hold: &Hold,
        decision: &Decision,
    ) -> Result<(), ControlError> {
        let (Some(scope), Some(target)) = (decision.scope, hold.canonical.outside_target()) else {
            return Ok(());
        };
        let place = match scope {
            DecisionScope::Session => hold.canonical.session_id.to_string(),
            DecisionScope::Project => hold.canonical.workspace.path.clone(),
        };
        let boundary =
            Boundary::outside(&target, &place).map_err(|error| ControlError::Proposal {
                reason: format!("this cannot be opened for longer than once: {error}"),
            })?;
        let reason = format!("{} approved {}", decision.operator, hold.hold_id);
        self.control
            .change_trust(writing, boundary, "opened", |trust, now| {
                trust.granted(Level::Trusted, reason, now)
            })
    }
}
