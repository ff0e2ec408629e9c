//! What programs write that an action left running: it is theirs, and is recorded when they end.
//! Until then a look at the workspace must not take it for somebody else's.
//!
//! Whoever supervises such programs keeps a journal for each action, with what they have written
//! since the action ended, and holds a lock on it. It is deleted when that is recorded. One that
//! nobody holds is of a supervisor that was killed.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use safepoint_fence::Writes;
use safepoint_model::ActionId;
use safepoint_store::durable;

use crate::state::State;

fn late_directory(runtime: &Path) -> PathBuf {
    runtime.join("late")
}

impl State {
    /// Where these journals lie.
    pub fn late_directory(&self) -> PathBuf {
        late_directory(&self.around.runtime)
    }

    /// The journal of what an action left running.
    pub fn late_journal(&self, action: &ActionId) -> PathBuf {
        self.late_directory().join(action.as_str())
    }

    /// The actions that left programs running of which something is still to be recorded.
    pub(crate) fn late_actions(&self) -> Vec<ActionId> {
        let listing = std::fs::read_dir(self.late_directory());
        let names = listing.into_iter().flatten().flatten();
        let parse = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        names.filter_map(parse).collect()
    }

    /// Those of them whose supervisor was killed.
    pub fn cut_off_late_actions(&self) -> Vec<ActionId> {
        let mut actions = self.late_actions();
        actions.retain(|action| {
            let Ok(file) = File::open(self.late_journal(action)) else {
                return false;
            };
            flock(&file, FlockOperation::NonBlockingLockShared) != Err(Errno::WOULDBLOCK)
        });
        actions
    }

    /// What the programs have written that an action left running.
    pub fn late_writes(&self, action: &ActionId) -> Writes {
        Writes::read_journal(&self.late_journal(action))
    }

    /// Removes the journal: what was written late is recorded.
    pub fn end_late_journal(&self, action: &ActionId) {
        // Whoever looks for what was cut off finds one that stays.
        let _ = durable::remove(&self.late_journal(action));
    }
}
