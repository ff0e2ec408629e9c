//! A line that a person has approved, in the moment in which it is run.
//!
//! A yes binds what the line names: which files, with which content. They were looked at when the
//! client's hook asked; other programs of the agent go on meanwhile. So they are looked at once
//! more by whoever runs the line, while no name moves behind a fence; and nothing is run if one
//! of them is another by now. Contents that are written in place after that are not held.

use std::path::{Path, PathBuf};

use safepoint_authority::{DenialCode, Hold, NamedPath, Permit, Preimage, Role, Touch, Where};
use safepoint_fence::{Freeze, FreezeScope, Frozen};

use super::documents::Running;
use super::perform::ClaimedLine;
use super::recover::this_process;
use super::see::AGENT_RUN;
use super::{Passage, Visitor};
use crate::{ControlError, kept, world};

/// What runs an agent, whose own lines move names.
const DELEGATE: &str = "agent.delegate";

impl Passage<'_> {
    /// Refuses a line whose files are not those that were approved. No name of them moves until
    /// the client tells the end of the call, or this process has ended.
    pub fn hold_to_approval(&self, claimed: &ClaimedLine) -> Result<(), ControlError> {
        self.hold_running(claimed.running()).map(drop)
    }

    /// The same; what is returned is ended where names may move again.
    pub(super) fn hold_running(&self, running: &Running) -> Result<Option<Freeze>, ControlError> {
        let approved = self.approved_paths(running)?;
        if approved.is_empty() {
            return Ok(None);
        }
        let is_frozen = ![DELEGATE, AGENT_RUN].contains(&running.action.as_str());
        let visitor = running.visitor.as_ref().filter(|_| is_frozen);
        let freeze = visitor.and_then(|visitor| self.freeze_named(visitor));
        if let Some(freeze) = &freeze {
            let places = approved.iter().map(|path| PathBuf::from(&path.path));
            let root = self.workspace.root.clone();
            let scope = FreezeScope {
                places: std::iter::once(root).chain(places).collect(),
                keeper: Some(this_process()),
            };
            let begun = freeze.begin(&scope).map_err(|error| ControlError::File {
                path: self.workspace.root.clone(),
                error,
            })?;
            if begun == Frozen::NoAnswer {
                freeze.end();
                return Err(changed("a program goes on moving files beside it"));
            }
        }
        match self.refuse_changed(&approved) {
            Ok(()) => Ok(freeze),
            Err(error) => {
                freeze.iter().for_each(Freeze::end);
                Err(error)
            }
        }
    }

    fn refuse_changed(&self, approved: &[NamedPath]) -> Result<(), ControlError> {
        for path in approved {
            let Some(touch) = touch_of(path) else {
                continue;
            };
            let now = world::named(&touch, &self.workspace.root)?;
            let now = now.map(|now| self.without_tokens(now)).transpose()?;
            if now.is_none_or(|now| now.preimage != path.preimage) {
                return Err(changed(&format!("`{}` is another by now", path.path)));
            }
        }
        Ok(())
    }

    /// What a person has approved that a line touches; nothing where nobody was asked.
    fn approved_paths(&self, running: &Running) -> Result<Vec<NamedPath>, ControlError> {
        let Some(permit) = running.permit_id.as_ref().filter(|_| self.far.is_none()) else {
            return Ok(Vec::new());
        };
        let store = self.control.trail.store();
        let permit: Option<Permit> = store.read(|sql| kept::get(sql, permit.as_str()))?;
        let permit = permit.ok_or_else(|| changed("its permit is gone"))?;
        let hold: Option<Hold> = store.read(|sql| kept::get(sql, permit.hold_id.as_str()))?;
        let hold = hold.ok_or_else(|| changed("what was approved is gone"))?;
        Ok(hold.canonical.paths)
    }

    /// The freeze of a call.
    pub(super) fn freeze_named(&self, visitor: &Visitor) -> Option<Freeze> {
        let supervision = self.fence.as_ref()?.supervision.as_ref()?;
        let directory: &Path = supervision.freezer.as_deref()?;
        let parts = [&visitor.client, &visitor.session, &visitor.call];
        let name = safepoint_model::Digest::of_parts(&parts.map(|part| part.as_bytes()));
        Some(Freeze::new(directory, &name.to_string()))
    }
}

/// How a path was touched, for another look at it; none where nothing was known of it.
fn touch_of(path: &NamedPath) -> Option<Touch> {
    let role = match path.role.as_str() {
        "read" => Role::Read,
        "write" => Role::Write,
        "delete" => Role::Delete,
        "metadata" => Role::Metadata,
        "execute" => Role::Execute,
        _ => return None,
    };
    let place = PathBuf::from(&path.path);
    let place = match &path.preimage {
        Preimage::Unknown {} => return None,
        Preimage::Directory {
            listing: Some(_), ..
        } => Where::Below(place),
        _ => Where::Exact(place),
    };
    Some(Touch { place, role })
}

fn changed(what: &str) -> ControlError {
    ControlError::Proposal {
        reason: format!(
            "{}: {what}; ask again, and it will be put before an operator anew",
            DenialCode::PathIdentityChanged.meaning()
        ),
    }
}
