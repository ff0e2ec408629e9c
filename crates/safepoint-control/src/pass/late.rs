//! What programs write that an action left running. It is the action's, under a name of its own,
//! and is recorded when the last of them has ended; until then a look at the workspace leaves it
//! out of what nobody is known to have done.

use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use safepoint_fence::{Supervisor, Writes};
use safepoint_model::ActionId;
use safepoint_state::{Errand, Share, StateError};

use super::Passage;
use super::documents::Running;
use super::supervise::SupervisedEnd;
use crate::{ControlError, kept};

/// Programs that an action left running.
#[derive(Debug)]
pub struct LateWork {
    running: Running,
    _file: LateFile,
    supervisor: Supervisor,
}

/// The journal of what is written late, for whoever looks meanwhile: held by a lock while it lasts.
#[derive(Debug)]
pub(super) struct LateFile {
    _file: File,
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
        let path = self.state.late_journal(&running.action_id);
        let lock = open_locked(&path).ok()?;
        let written = supervisor.begin_late(&path);
        if let Some(seen) = &mut end.observation {
            seen.written = written;
        }
        Some(LateFile { _file: lock })
    }

    /// What has to stay of an action that has ended, and what is to be recorded of it later.
    pub(super) fn left_running(
        &self,
        running: &Running,
        supervisor: Supervisor,
        file: Option<LateFile>,
    ) -> LeftRunning {
        match file {
            Some(file) => LeftRunning::Recorded(Box::new(LateWork {
                running: running.clone(),
                _file: file,
                supervisor,
            })),
            None => LeftRunning::Unrecorded(supervisor),
        }
    }

    /// Records what was written since, if anything was.
    pub fn record_late(&self, work: &LateWork) -> Result<(), ControlError> {
        let written = work.supervisor.observe().written;
        self.record_late_writes(&work.running, &written, "ok")
    }

    /// Records what programs wrote that an action left running, and whose supervisor was killed.
    pub(super) fn record_cut_off_late_writes(&self) -> Result<(), ControlError> {
        let here = crate::world::text(&self.workspace.root)?;
        let store = self.control.trail.store();
        for action in self.state.cut_off_late_actions() {
            let running: Option<Running> = store.read(|sql| kept::get(sql, action.as_str()))?;
            let Some(running) =
                running.filter(|it| it.ended && it.is_here() && it.workspace == here)
            else {
                continue;
            };
            let written = self.state.late_writes(&action);
            self.record_late_writes(&running, &written, "unknown")?;
        }
        Ok(())
    }

    fn record_late_writes(
        &self,
        running: &Running,
        written: &Writes,
        outcome: &str,
    ) -> Result<(), ControlError> {
        let left_by = &running.action_id;
        // From the state that the action had led to, as far as it is its own.
        let before = self.state.find_action(left_by.as_str());
        let before = before.and_then(|action| self.state.find(action.after.as_str()));
        let before = match before {
            Ok(before) if !written.paths.is_empty() || !written.trees.is_empty() => before,
            // It was collected: what changed since is nobody's.
            Ok(_) | Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => {
                self.state.end_late_journal(left_by);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let errand = Errand {
            id: ActionId::generate(&*self.control.around.entropy)?,
            session: Some(running.session_id.to_string()),
            action: running.action.clone(),
            summary: format!("{} (left running by {left_by})", running.summary),
            decision: running.decision.clone(),
            left_by: Some(left_by.clone()),
        };
        self.state.after(
            self.workspace,
            &before,
            &errand,
            outcome,
            &Share::of_writes(&self.workspace.root, written),
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
