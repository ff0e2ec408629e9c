//! A going back that fails is logged as well.

use super::{Goal, Restored};
use crate::scan::Progress;
use crate::seal::Identity;
use crate::state::{State, Workspace};
use crate::{StateError, own};

impl State {
    /// Does it.
    pub fn restore(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        identities: &[Identity],
        progress: &Progress,
    ) -> Result<Restored, StateError> {
        let restored = self.restore_unlogged(workspace, goal, identities, progress);
        // In the directory of somebody else nothing is written, not even that.
        if let Err(error) = &restored
            && !matches!(error, StateError::OtherDirectory { .. })
        {
            self.log_failed_restore(workspace, goal, error);
        }
        restored
    }

    fn log_failed_restore(&self, workspace: &Workspace, goal: &Goal<'_>, error: &StateError) {
        let (name, checkpoint, action) = match goal {
            Goal::Snapshot { snapshot, .. } => ("rollback", Some(snapshot.id.as_str()), None),
            Goal::Without { action, verb } => (*verb, None, Some(action.id.as_str())),
            // Work that is taken over is no roll back, and its end is in its workspace's records.
            Goal::Brought(_) => return,
        };
        own::log(
            &workspace.root,
            self.now(),
            &own::Operation {
                name,
                checkpoint,
                action,
                reason: Some(&super::describe(goal)),
                outcome: &format!("failed: {error}"),
                ..own::Operation::default()
            },
        );
    }
}
