//! The real directory of a workspace, where it has one, and what is seen in it.

use std::path::PathBuf;

use safepoint_model::{ActionId, RecordId, WorkspaceId};
use safepoint_state::SnapshotId;
use serde::Serialize;

use crate::words::words;

words! {
    /// How a directory was made.
    PlaceKind, "kind of directory":
    /// A worktree of the repository that it was made from.
    Worktree = "worktree",
    /// A copy.
    Copy = "copy",
}

/// The directory of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Where it is: absolute, without links.
    pub path: PathBuf,
    /// How it was made.
    pub kind: PlaceKind,
    /// The directory that it was made from, and that its work is brought back to.
    pub origin: PathBuf,
    /// What was in it when it was made.
    pub base: SnapshotId,
}

/// What was seen in a workspace's directory when a record was asked for.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The head of the chain then: what changed is counted from it.
    pub since: Option<RecordId>,
    /// The paths that changed, as they are shown.
    pub files_changed: Vec<String>,
    /// The state that the record stands for.
    pub snapshot: SnapshotId,
    /// The actions that were done there since then.
    pub actions: Vec<ActionId>,
}
