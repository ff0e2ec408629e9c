//! Which changes are an action's own, where others worked beside it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use safepoint_fence::Writes;

use crate::git::linked_places;
use crate::path::{self, TreePath};
use crate::tree::{Change, Entry, Node};

/// Which changes are an action's own, where others ran beside it.
#[derive(Clone, Debug)]
pub enum Share {
    /// All of them.
    All,
    /// Those at these paths and below.
    Only(Vec<TreePath>),
    /// All but those at these paths and below.
    Without(Vec<TreePath>),
    /// What its own processes were seen to write, in the git state too.
    Observed {
        /// Exactly these paths.
        paths: BTreeSet<TreePath>,
        /// Directories that were moved or removed as a whole: these, and of what is below that
        /// which is gone, or was below one of them before.
        trees: Vec<TreePath>,
        /// The git state of a linked work tree, which lies elsewhere.
        linked: LinkedShare,
    },
}

/// Whose the changes of the git state of a linked work tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedShare {
    /// The action's.
    Own,
    /// Somebody else's.
    Others,
}

/// What lay beneath directories that were moved, as far as it can be recognised elsewhere.
pub(crate) type Moved = BTreeSet<Vec<u8>>;

impl Share {
    /// What was seen to be written in a workspace.
    pub fn of_writes(root: &Path, written: &Writes) -> Self {
        let in_tree = |path: &PathBuf| -> Option<TreePath> {
            let relative = path.strip_prefix(root).ok()?;
            Some(relative.as_os_str().as_bytes().to_vec())
        };
        let repositories = linked_places(root, &[]);
        let is_of_git = |path: &PathBuf| match repositories.is_empty() {
            false => repositories.iter().any(|it| path.starts_with(it)),
            // It may have taken the repository away.
            true => path
                .iter()
                .any(|name| name == ".git" || name == "worktrees"),
        };
        let mut all = written.paths.iter().chain(&written.trees);
        let linked = match all.any(|path| !path.starts_with(root) && is_of_git(path)) {
            true => LinkedShare::Own,
            false => LinkedShare::Others,
        };
        Self::Observed {
            paths: written.paths.iter().filter_map(in_tree).collect(),
            trees: written.trees.iter().filter_map(in_tree).collect(),
            linked,
        }
    }

    /// Whether what lies at a path is the action's own.
    pub(crate) fn has_path(&self, path: &[u8]) -> bool {
        let at = |paths: &[TreePath]| paths.iter().any(|it| path::is_within(path, it));
        match self {
            Self::All => true,
            Self::Only(paths) => at(paths),
            Self::Without(paths) => !at(paths),
            Self::Observed { paths, trees, .. } => at(trees) || paths.contains(path),
        }
    }

    /// Whether something at a path, or below it, is the action's own.
    pub(crate) fn has_part_of(&self, path: &[u8]) -> bool {
        let below = match self {
            Self::All | Self::Without(_) => false,
            Self::Only(paths) => paths.iter().any(|it| path::is_within(it, path)),
            Self::Observed { paths, trees, .. } => paths
                .iter()
                .chain(trees)
                .any(|it| path::is_within(it, path)),
        };
        below || self.has_path(path)
    }

    /// Whether a change is the action's own; `moved` is what lay beneath its trees before.
    pub(crate) fn has(&self, change: &Change, moved: &Moved) -> bool {
        // A directory that was made for one of its paths belongs to it.
        let is_above = |it: &TreePath| path::is_within(it, &change.path);
        let is_made =
            change.from.is_none() && change.to.as_ref().is_some_and(|to| to.subtree().is_some());
        match self {
            Self::All | Self::Without(_) => self.has_path(&change.path),
            Self::Only(paths) => {
                self.has_path(&change.path) || is_made && paths.iter().any(is_above)
            }
            Self::Observed { paths, trees, .. } => {
                let is_beneath = |it: &TreePath| path::is_within(&change.path, it);
                paths.contains(&change.path)
                    || is_made && (paths.iter().any(is_above) || trees.iter().any(is_above))
                    || trees.iter().any(is_beneath)
                        && change.to.as_ref().is_none_or(|to| {
                            trees.contains(&change.path)
                                || mark_of(to).is_none_or(|mark| moved.contains(&mark))
                        })
            }
        }
    }

    /// The directories that were moved or removed as a whole.
    pub(crate) fn trees(&self) -> &[TreePath] {
        match self {
            Self::Observed { trees, .. } => trees,
            _ => &[],
        }
    }
}

/// By what something that was moved is recognised. A directory is not: what lies in it is.
pub(crate) fn mark_of(entry: &Entry) -> Option<Vec<u8>> {
    match &entry.node {
        Node::File { content, .. } => Some(content.to_string().into_bytes()),
        Node::Symlink { target } => Some([b"-> ", target.as_slice()].concat()),
        Node::Directory(_) | Node::Special { .. } => None,
    }
}
