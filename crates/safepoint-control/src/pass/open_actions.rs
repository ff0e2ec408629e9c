//! What goes on in a workspace, for whoever looks at what has changed there.

use std::path::Path;
use std::sync::Arc;

use safepoint_state::{OpenAction, OpenActions, OpenWrites, StateError};
use safepoint_trail::Trail;

use super::CallKind;
use super::documents::Running;
use super::visit::in_tree;
use crate::{COMPONENT, ControlError, kept};

/// The actions that have begun and not ended on this machine, as the store knows them.
pub fn open_actions(trail: &Trail) -> OpenActions {
    let trail = trail.clone();
    Arc::new(move |root| open_actions_in(&trail, root).map_err(as_state_error))
}

fn open_actions_in(trail: &Trail, root: &Path) -> Result<Vec<OpenAction>, ControlError> {
    let store = trail.store();
    store.migrate(&COMPONENT)?;
    let here = crate::world::text(root)?;
    let is_open = |it: &Running| it.is_here() && it.workspace == here;
    let open: Vec<Running> = store.read(|sql| kept::open_if(sql, is_open))?;
    let with_writes = |running: &Running| {
        let mut agents = open.iter();
        let agent = agents.find(|it| it.is_agent_of(running));
        Some(OpenAction {
            id: running.action_id.clone(),
            writes: running.open_writes(root, agent.unwrap_or(running))?,
        })
    };
    Ok(open.iter().filter_map(with_writes).collect())
}

impl Running {
    /// Whether it is the agent that another action is a call of.
    pub(super) fn is_agent_of(&self, call: &Self) -> bool {
        self.is_agent() && self.agent_session.as_ref() == Some(&call.session_id)
    }

    /// How it is known what it writes, where this action is supervised for it. `None` where it has
    /// not written anything.
    fn open_writes(&self, root: &Path, supervised: &Self) -> Option<OpenWrites> {
        // Whatever writes has a checkpoint before it.
        self.before.as_ref()?;
        if self.is_agent() {
            return Some(OpenWrites::JournalOrNothing);
        }
        let visitor = self.visitor.as_ref();
        let is_file_tool = visitor.is_some_and(|it| it.kind == CallKind::Files);
        match &self.claims {
            Some(claims) if is_file_tool => Some(OpenWrites::Named(in_tree(root, claims))),
            // Nobody has begun to run the line.
            _ if self.line.is_some() && self.performer.is_none() && !self.is_unfenced => None,
            // A line that is performed has a supervisor of its own.
            _ if self.performer.is_some() => Some(OpenWrites::JournalOf(self.action_id.clone())),
            _ => Some(OpenWrites::JournalOf(supervised.action_id.clone())),
        }
    }
}

fn as_state_error(error: ControlError) -> StateError {
    match error {
        ControlError::Store(error) => error.into(),
        ControlError::Trail(error) => error.into(),
        ControlError::Tampered { what, id } => StateError::Tampered { what, name: id },
        other => StateError::Unsupported(other.to_string()),
    }
}
