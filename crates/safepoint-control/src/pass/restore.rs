//! An agent's roll back of work that is not its own, as a proposal: a person decides about it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_authority::{Risk, Role, SideEffect, Touch, Understanding, Where};
use safepoint_model::SessionId;
use safepoint_state::tree::Change;

use super::change::deed;
use super::documents::{Place, Running};
use super::recover::{parent, started};
use super::{Act, Passage, StartsPrograms};
use crate::{Control, ControlError, kept};

/// So many actions are looked at for the sessions of a client.
const LOOKED_AT: u32 = 256;

impl Passage<'_> {
    /// What a roll back would change, and whose work that is, in a sentence. It is a higher
    /// risk than a session may take without asking: somebody else's work goes.
    pub fn restoring(&self, operations: Vec<String>, changes: &[Change], because: &str) -> Act {
        let mut deeds = Vec::new();
        for (action, role) in [("file.write", Role::Write), ("file.delete", Role::Delete)] {
            let mine = changes
                .iter()
                .filter(|change| change.to.is_none() == (role == Role::Delete));
            let touches: Vec<Touch> = mine
                .map(|change| {
                    let below = Path::new(std::ffi::OsStr::from_bytes(&change.path));
                    Touch {
                        place: Where::Exact(self.workspace.root.join(below)),
                        role,
                    }
                })
                .collect();
            if !touches.is_empty() {
                deeds.push(deed(action, touches, SideEffect::Write));
            }
        }
        if deeds.is_empty() {
            deeds.push(deed("file.write", Vec::new(), SideEffect::Write));
        }
        for deed in &mut deeds {
            because.clone_into(&mut deed.because);
            deed.risk = Risk::High;
        }
        Act::Change {
            tool: "rollback",
            operations,
            understood: Understanding {
                deeds,
                ..Understanding::default()
            },
            programs: StartsPrograms::No,
            covering: None,
        }
    }
}

impl Control {
    /// The sessions of the agent client that has started this process, however indirectly.
    pub fn sessions_of_client(&self) -> Result<Vec<SessionId>, ControlError> {
        let mut above = Vec::new();
        let mut process = Some(std::process::id());
        while let Some(id) = process.filter(|id| *id > 1) {
            above.push((id, started(id).unwrap_or(0)));
            process = parent(id);
        }
        let store = self.trail.store();
        let recent: Vec<Running> = store.read(|sql| kept::newest(sql, LOOKED_AT))?;
        let is_above = |running: &Running| {
            let visitor = running.visitor.as_ref();
            running.is_here() && visitor.is_some_and(|it| above.contains(&it.process))
        };
        let places: Vec<Place> = store.read(|sql| kept::newest(sql, LOOKED_AT))?;
        let began_above = |place: &Place| place.process.is_some_and(|it| above.contains(&it));
        let begun = places.into_iter().filter(began_above);
        let running = recent.into_iter().filter(is_above);
        let mut sessions: Vec<SessionId> = running
            .map(|running| running.session_id)
            .chain(begun.map(|place| place.session_id))
            .collect();
        sessions.dedup();
        Ok(sessions)
    }
}
