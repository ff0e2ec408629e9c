//! Temporary folders: what is left there nobody expects to be brought back, and the fence
//! lets everything write there. So naming a file there is no reason to ask a person.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use safepoint_authority::{NamedPath, Preimage};

use super::Passage;

/// The role of what comes and goes in a temporary folder.
pub(super) const SCRATCH: &str = "scratch";

/// Folders whose content anybody may find gone at any time.
const FOLDERS: [&str; 2] = ["/tmp", "/var/tmp"];

impl Passage<'_> {
    /// Says of what comes and goes in a temporary folder that it does.
    pub(super) fn mark_scratch(&self, named: &mut [NamedPath]) {
        for path in named {
            let changes = matches!(path.role.as_str(), "write" | "delete");
            if changes && !path.inside && self.is_scratch(path) {
                SCRATCH.clone_into(&mut path.role);
            }
        }
    }

    fn is_scratch(&self, path: &NamedPath) -> bool {
        let place = Path::new(&path.path);
        let below = |folder: &&Path| place.starts_with(folder) && place != *folder;
        let Some(folder) = FOLDERS.into_iter().map(Path::new).find(below) else {
            return false;
        };
        // Somebody who works there does not think of it as scratch.
        let works_there = self.workspace.root.starts_with(folder);
        let holds_ours =
            |own: &std::path::PathBuf| own.starts_with(place) || place.starts_with(own);
        if works_there || self.own.iter().any(holds_ours) {
            return false;
        }
        // The same file may have another name elsewhere, and be somebody else's here.
        let found = place.symlink_metadata();
        let mine = |uid: u32| uid == rustix::process::geteuid().as_raw();
        match &path.preimage {
            Preimage::Absent {} => true,
            Preimage::File { .. } => found.is_ok_and(|it| it.nlink() == 1 && mine(it.uid())),
            Preimage::Directory { .. } => found.is_ok_and(|it| mine(it.uid())),
            _ => false,
        }
    }
}
