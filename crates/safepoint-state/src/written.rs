//! What the processes of an action have written so far, as their supervisor keeps it while they
//! run. It tells the work of the action from what a person does beside it, and does so still when
//! the supervisor was killed.

use std::path::{Path, PathBuf};

use safepoint_fence::Writes;
use safepoint_model::ActionId;
use safepoint_store::durable;

use crate::share::Share;
use crate::state::State;

fn directory(state: &Path) -> PathBuf {
    state.join("writes")
}

/// Whether there is anything that a supervisor keeps, or has kept.
pub(crate) fn is_any_kept(state: &Path) -> bool {
    let listing = std::fs::read_dir(directory(state));
    listing.into_iter().flatten().next().is_some()
}

impl State {
    fn write_journals_directory(&self) -> PathBuf {
        directory(&self.around.state)
    }

    /// Where the supervisor of an action keeps what that writes.
    pub fn write_journal(&self, action: &ActionId) -> PathBuf {
        self.write_journals_directory().join(action.as_str())
    }

    /// The actions of which there is such a file.
    pub fn write_journals(&self) -> Vec<ActionId> {
        let listing = std::fs::read_dir(self.write_journals_directory());
        let names = listing.into_iter().flatten().flatten();
        let parse = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        names.filter_map(parse).collect()
    }

    /// Removes the file: the end of the action is recorded.
    pub fn end_write_journal(&self, action: &ActionId) {
        // One that stays is removed by whoever looks for what was cut off.
        let _ = durable::remove(&self.write_journal(action));
    }

    /// All that the processes of an action have written so far. `None` where nobody saw that, or
    /// not all of it.
    pub fn seen_writes(&self, action: &ActionId) -> Option<Writes> {
        let written = Writes::read_journal(&self.write_journal(action));
        written.is_complete.then_some(written)
    }

    /// What is an action's own whose supervisor was killed: what was written before, and nothing
    /// where nobody saw that.
    pub fn share_of_cut_off(&self, root: &Path, action: &ActionId) -> Share {
        Share::of_writes(root, &Writes::read_journal(&self.write_journal(action)))
    }
}
