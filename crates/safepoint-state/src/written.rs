//! What the processes of an action have written so far, as their supervisor keeps it while they
//! run. When that was killed, it tells the work of the action from what a person did since.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use safepoint_fence::Writes;
use safepoint_model::ActionId;
use safepoint_store::durable;

use crate::around::{LinkedShare, Share};
use crate::git::linked_places;
use crate::path::TreePath;
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

    /// What is an action's own whose supervisor was killed: what was written before, and nothing
    /// where nobody saw that.
    pub fn share_of_cut_off(&self, root: &Path, action: &ActionId) -> Share {
        let written = Writes::read_journal(&self.write_journal(action));
        let in_tree = |path: &PathBuf| -> Option<TreePath> {
            let relative = path.strip_prefix(root).ok()?;
            Some(relative.as_os_str().as_bytes().to_vec())
        };
        let paths: BTreeSet<TreePath> = written.paths.iter().filter_map(in_tree).collect();
        let trees: Vec<TreePath> = written.trees.iter().filter_map(in_tree).collect();
        let repositories = linked_places(root, &[]);
        let is_of_git = |path: &PathBuf| match repositories.is_empty() {
            false => repositories.iter().any(|it| path.starts_with(it)),
            // It may have taken the repository away.
            true => path
                .iter()
                .any(|name| name == ".git" || name == "worktrees"),
        };
        let all = || written.paths.iter().chain(&written.trees);
        let linked = match all().any(|path| !path.starts_with(root) && is_of_git(path)) {
            true => LinkedShare::Own,
            false => LinkedShare::Others,
        };
        Share::Observed {
            paths,
            trees,
            linked,
        }
    }
}
