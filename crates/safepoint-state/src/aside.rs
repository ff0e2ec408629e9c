//! What git has set aside in a work tree: what it ignores, and what belongs to submodules.
//!
//! Git is asked only about paths that it can answer for. It never answers for what lies
//! beyond a symbolic link or in a submodule.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::StateError;
use crate::git::GitError;
use crate::path::{self, TreePath};
use crate::state::{State, Workspace};
use crate::tree::Change;

/// What is not work to be brought.
#[derive(Clone, Debug, Default)]
pub struct Aside {
    /// Outputs that git ignores.
    pub ignored: BTreeSet<TreePath>,
    /// The directories of submodules, each a repository of its own.
    pub submodules: BTreeSet<TreePath>,
}

impl Aside {
    /// Why a path is set aside, if it is.
    pub fn why(&self, path: &[u8]) -> Option<&'static str> {
        if self.ignored.contains(path) {
            return Some("git ignores what the work made there, so it is not brought");
        }
        if self.is_in_submodule(path) {
            return Some("it belongs to a submodule, whose content is not brought");
        }
        None
    }

    /// Whether a path is a submodule, or lies in one.
    pub fn is_in_submodule(&self, path: &[u8]) -> bool {
        let within = |submodule: &TreePath| path::is_within(path, submodule);
        self.submodules.iter().any(within)
    }
}

impl State {
    /// What git has set aside in a work tree, of the paths of these changes. What is
    /// tracked is never ignored.
    pub fn aside(&self, workspace: &Workspace, changes: &[Change]) -> Result<Aside, StateError> {
        let (Some(git), Some(repository)) = (&self.around.git, self.repository(workspace)) else {
            return Ok(Aside::default());
        };
        if changes.is_empty() {
            return Ok(Aside::default());
        }
        let listed = repository.run(git, &["ls-files", "--stage", "-z"], b"")?;
        let mut aside = Aside {
            submodules: listed
                .split(|byte| *byte == 0)
                .filter_map(submodule)
                .collect(),
            ignored: BTreeSet::new(),
        };
        let mut links = Links::new(&workspace.root);
        let mut asked = Vec::new();
        for change in changes {
            // Git has no word about the directory itself.
            if change.path.is_empty()
                || aside.is_in_submodule(&change.path)
                || links.lead_to(&change.path)
            {
                continue;
            }
            asked.extend_from_slice(&change.path);
            // Directories are told from files by what stands behind the path.
            let entry = change.to.as_ref().or(change.from.as_ref());
            if entry.is_some_and(|entry| entry.subtree().is_some()) && !links.is_link(&change.path)
            {
                asked.push(b'/');
            }
            asked.push(0);
        }
        if asked.is_empty() {
            return Ok(aside);
        }
        let found = match repository.run(git, &["check-ignore", "-z", "--stdin"], &asked) {
            // It ends with 1 when none is.
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Vec::new(),
            other => other?,
        };
        let paths = found
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        aside.ignored = paths
            .map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec())
            .collect();
        Ok(aside)
    }
}

/// The path of a line of `ls-files --stage`, if it is a submodule.
fn submodule(line: &[u8]) -> Option<TreePath> {
    let line = line.strip_prefix(b"160000 ")?;
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    line.get(tab + 1..).map(<[u8]>::to_vec)
}

/// Which directories are symbolic links in truth. Each is looked at once.
struct Links<'a> {
    root: &'a Path,
    known: BTreeMap<TreePath, bool>,
}

impl<'a> Links<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            known: BTreeMap::new(),
        }
    }

    fn is_link(&mut self, path: &[u8]) -> bool {
        if let Some(known) = self.known.get(path) {
            return *known;
        }
        let found = self.root.join(path::as_path(path)).symlink_metadata();
        let link = found.is_ok_and(|found| found.is_symlink());
        self.known.insert(path.to_vec(), link);
        link
    }

    /// Whether one of the directories that a path lies in is a link.
    fn lead_to(&mut self, path: &[u8]) -> bool {
        let mut above = path::split(path).0;
        while !above.is_empty() {
            if self.is_link(above) {
                return true;
            }
            above = path::split(above).0;
        }
        false
    }
}
