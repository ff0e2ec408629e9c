//! What programs write that an action left running. It is the action's, under a name of its own,
//! and is recorded when the last of them has ended; until then a look at the workspace leaves it
//! out of what nobody is known to have done.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use safepoint_fence::Supervisor;
use safepoint_model::ActionId;
use safepoint_state::{Errand, Selection, Snapshot, StateError};

use super::Passage;
use super::documents::Running;
use super::supervise::SupervisedEnd;
use crate::ControlError;

/// Programs that an action left running, and the state that it left behind.
#[derive(Debug)]
pub struct LateWork {
    running: Running,
    before: Snapshot,
    _file: LateFile,
    supervisor: Supervisor,
}

/// Where what is written late is told to whoever looks: held by a lock while it lasts. Whoever
/// looks later deletes it.
#[derive(Debug)]
pub(super) struct LateFile {
    file: File,
}

impl Drop for LateFile {
    fn drop(&mut self) {
        // From now on it counts for a while, for looks that have begun: an end of a path that is
        // none tells when that was.
        let _ = self.file.write_all(&[0]);
    }
}

impl LateWork {
    /// The client that the action was of.
    pub fn client(&self) -> Option<&str> {
        let visitor = self.running.visitor.as_ref();
        visitor.map(|visitor| visitor.client.as_str())
    }

    /// The workspace.
    pub fn workspace(&self) -> &Path {
        Path::new(&self.running.workspace)
    }

    /// Blocks until the last of the programs has ended.
    pub fn wait(&self) {
        self.supervisor.wait_until_unused();
    }

    /// Whether any of them still lives.
    pub fn is_in_use(&self) -> bool {
        self.supervisor.is_in_use()
    }
}

/// A supervisor that has to stay, and what is to be recorded at its end.
#[derive(Debug)]
pub enum LeftRunning {
    /// Whatever it writes is recorded.
    Recorded(Box<LateWork>),
    /// There is no state that it could be compared with.
    Unrecorded(Supervisor),
}

impl Passage<'_> {
    /// Begins the record of what an action leaves running, before the state at its end is looked
    /// at. `None` where nothing is left.
    pub(super) fn begin_late(
        &self,
        running: &Running,
        end: &mut SupervisedEnd,
    ) -> Option<LateFile> {
        let supervisor = end.supervisor.as_ref().filter(|it| it.is_in_use())?;
        if self.far.is_some() {
            supervisor.end_journal();
            return None;
        }
        let path = self.state.late_directory().join(running.action_id.as_str());
        let lock = open_locked(&path).ok()?;
        let written = supervisor.begin_late(&path);
        if let Some(seen) = &mut end.observation {
            seen.written = written;
        }
        Some(LateFile { file: lock })
    }

    /// What has to stay of an action that has ended, and what is to be recorded of it later.
    pub(super) fn left_running(
        &self,
        running: &Running,
        supervisor: Supervisor,
        file: Option<LateFile>,
    ) -> LeftRunning {
        let selection = Selection {
            workspace: Some(self.workspace.root.clone()),
            limit: Some(1),
        };
        let latest = self.state.list(&selection).unwrap_or_default();
        match (file, latest.into_iter().next()) {
            (Some(file), Some(before)) => LeftRunning::Recorded(Box::new(LateWork {
                running: running.clone(),
                before,
                _file: file,
                supervisor,
            })),
            _ => LeftRunning::Unrecorded(supervisor),
        }
    }

    /// Records what was written since, if anything was.
    pub fn record_late(&self, work: &LateWork) -> Result<(), ControlError> {
        match self.record_late_writes(work) {
            // It was collected: what changed since is nobody's.
            Err(ControlError::State(StateError::NotFound { .. } | StateError::Tampered { .. })) => {
                Ok(())
            }
            other => other,
        }
    }

    fn record_late_writes(&self, work: &LateWork) -> Result<(), ControlError> {
        let seen = work.supervisor.observe();
        if seen.written.paths.is_empty() && seen.written.trees.is_empty() {
            return Ok(());
        }
        let running = &work.running;
        let action = ActionId::generate(&*self.control.around.entropy)?;
        // What a person did meanwhile is told apart from it first.
        self.state
            .before(self.workspace, &action, self.company()?, self.progress)?;
        let before = self.state.find(work.before.id.as_str())?;
        let share = self.late_share(running, &seen)?;
        let errand = Errand {
            id: action,
            session: Some(running.session_id.to_string()),
            action: running.action.clone(),
            summary: format!(
                "{} (left running by {})",
                running.summary, running.action_id
            ),
            decision: running.decision.clone(),
            beside: None,
        };
        self.state.after(
            self.workspace,
            &before,
            &errand,
            "ok",
            &share,
            self.progress,
            |writing, changes| self.notice(writing, running, changes),
        )?;
        Ok(())
    }
}

fn open_locked(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "kept for as long as this process lives, and found by its lock"
    )]
    let file = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}
