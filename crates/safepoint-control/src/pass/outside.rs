//! Files outside the workspace that a session may write: asked for at run time, and approved or
//! allowed since. A running command gets no more room, so what was granted counts for the next.

use std::path::{Path, PathBuf};

use safepoint_authority::{Hold, OutsideKind, OutsideTarget, Permit, PermitState};
use safepoint_fence::Refusal;
use safepoint_model::SessionId;
use safepoint_store::Durability;

use super::Passage;
use super::documents::Standing;
use super::supervise::Admission;
use crate::{ControlError, kept};

impl Passage<'_> {
    /// Remembers that a session may write a file outside, since a policy allows it.
    pub(super) fn remember_outside(
        &self,
        session: &SessionId,
        path: &Path,
    ) -> Result<(), ControlError> {
        let path = crate::world::text(path)?;
        self.control.trail.write(Durability::Sync, |writing| {
            let standing: Option<Standing> = kept::get(writing.sql(), session.as_str())?;
            let mut standing =
                standing.unwrap_or_else(|| Standing::new(session.clone(), self.now()));
            if standing.outside.insert(path) {
                kept::put(writing, &standing)?;
            }
            Ok(())
        })
    }

    /// The files outside that the next command of a session may write. A permit for one is used
    /// up by that.
    pub(super) fn outside_of_session(
        &self,
        session: &SessionId,
    ) -> Result<Vec<PathBuf>, ControlError> {
        if self.far.is_some() {
            return Ok(Vec::new());
        }
        let store = self.control.trail.store();
        let standing: Option<Standing> = store.read(|sql| kept::get(sql, session.as_str()))?;
        let mut places: Vec<PathBuf> = standing
            .map(|standing| standing.outside.into_iter().map(PathBuf::from).collect())
            .unwrap_or_default();
        let permits: Vec<Permit> = store.read(|sql| kept::open(sql))?;
        let issued = permits.iter().filter(|permit| {
            permit.session_id == *session && permit.state == PermitState::Issued {}
        });
        for permit in issued {
            let hold = store.read(|sql| kept::get(sql, permit.hold_id.as_str()))?;
            let target = hold.and_then(|hold: Hold| hold.canonical.outside_target());
            let Some(path) = target.and_then(file) else {
                continue;
            };
            let wanted = Refusal::Outside(path.clone());
            if matches!(self.admit(session, &wanted), Admission::Granted) {
                places.push(path);
            }
        }
        places.extend(self.opened_outside(session)?.into_iter().filter_map(file));
        Ok(places)
    }
}

fn file(target: OutsideTarget) -> Option<PathBuf> {
    (target.kind == OutsideKind::File).then(|| target.name.into())
}
