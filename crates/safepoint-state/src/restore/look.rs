//! Looking at what is there now, for a way back.

use super::Goal;
use crate::StateError;
use crate::capture::Capture;
use crate::objects::Objects;
use crate::scan::{self, Held, Progress, Request, Sink};
use crate::scope::Scope;
use crate::state::{State, Workspace};
use crate::tree::Subtree;

impl State {
    /// The states that a goal is about.
    pub(super) fn states_of(&self, goal: &Goal<'_>) -> Result<Vec<Subtree>, StateError> {
        Ok(match goal {
            Goal::Snapshot { snapshot, .. } => vec![snapshot.record.files],
            Goal::Without { action, .. } => {
                let before = self.find(action.before.as_str())?;
                let after = self.find(action.after.as_str())?;
                vec![before.record.files, after.record.files]
            }
            Goal::Brought(_) => Vec::new(),
        })
    }

    /// Looks at what is there now.
    pub(crate) fn look(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        objects: &Objects,
        sink: &Sink<'_>,
        progress: &Progress,
    ) -> Result<Capture, StateError> {
        self.look_for(workspace, scope, objects, &[], sink, progress)
    }

    /// The same, with every directory that these states hold.
    pub(super) fn look_for(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        objects: &Objects,
        states: &[Subtree],
        sink: &Sink<'_>,
        progress: &Progress,
    ) -> Result<Capture, StateError> {
        let validity = self.validity(workspace, objects)?;
        let cache = self.cache(workspace, validity);
        let request = Request {
            held: Held::of(objects, states),
            workspace: &workspace.root,
            scope,
            rules: &workspace.rules,
            cache: &cache,
            clock: &*self.around.clock,
            progress,
        };
        Capture::of(scan::scan(&request, sink)?, sink)
    }
}
