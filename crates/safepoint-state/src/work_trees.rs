//! The other work trees of a repository that lies in a workspace (`git worktree add`).
//!
//! A branch that one of them has checked out is that one's: moved from here, its files would be
//! taken for changes. What the repository keeps for one that lies elsewhere is that one's, too,
//! and is only put back where it is gone. One that lies in the workspace is part of it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::path::{self, TreePath};
use crate::restore::ContentOf;
use crate::scan::{Omitted, Sink};
use crate::tree::{self, Change, Entry, Node, Subtree, Trees};
use crate::{ContentId, StateError, git_state};

/// Without these git knows nothing of a work tree.
const ESSENTIAL: [&[u8]; 4] = [b"HEAD", b"commondir", b"gitdir", b"index"];
/// Where a work tree says which branch it has checked out, also in the middle of a rebase.
const HEADS: [&str; 3] = ["HEAD", "rebase-merge/head-name", "rebase-apply/head-name"];

/// What belongs to other work trees of the repositories that some changes are in.
#[derive(Debug, Default)]
pub(crate) struct WorkTrees {
    /// References that are checked out elsewhere: the git directory, and the name in it.
    branches: BTreeSet<(TreePath, Vec<u8>)>,
    /// What the repository keeps for one that lies in the workspace, and is captured with it.
    inside: BTreeSet<TreePath>,
    /// What it keeps for any that is known now.
    known: BTreeSet<TreePath>,
}

impl WorkTrees {
    /// Looks at those of every repository that one of the changes is in.
    pub(crate) fn of(
        changes: &[Change],
        trees: &dyn Trees,
        git: &Subtree,
        (workspace, left_out): (&Path, &[Omitted]),
        content: &ContentOf<'_>,
    ) -> Result<Self, StateError> {
        let directories: BTreeSet<&[u8]> = changes
            .iter()
            .filter_map(|change| git_state::directory(&change.path))
            .collect();
        let mut found = Self::default();
        for directory in directories {
            let kept = path::join(directory, b"worktrees");
            let listed = tree::find(trees, Some(git), &kept)?;
            let Some(listed) = listed.as_ref().and_then(Entry::subtree) else {
                continue;
            };
            for one in trees.tree(listed.tree)? {
                let kept = path::join(&kept, &one.name);
                let read = |name: &str| -> Result<Option<Vec<u8>>, StateError> {
                    let file = path::join(&kept, name.as_bytes());
                    match tree::find(trees, Some(git), &file)? {
                        Some(entry) => Ok(Some(content(&file, &entry)?)),
                        None => Ok(None),
                    }
                };
                found.known.insert(kept.clone());
                let place = read("gitdir")?.and_then(|bytes| place_of(&bytes));
                let inner = place
                    .as_deref()
                    .and_then(|it| it.strip_prefix(workspace).ok());
                let is_captured = inner.is_some_and(|inner| {
                    let inner = inner.as_os_str().as_bytes();
                    !left_out.iter().any(|one| path::is_within(inner, &one.path))
                });
                if is_captured {
                    found.inside.insert(kept);
                    continue;
                }
                for name in HEADS {
                    let branch = read(name)?.and_then(|bytes| branch_of(&bytes));
                    found
                        .branches
                        .extend(branch.map(|branch| (directory.to_vec(), branch)));
                }
            }
        }
        Ok(found)
    }

    /// Whether a path is a branch that another work tree has checked out, or the log of one.
    pub(crate) fn has_branch(&self, path: &[u8]) -> bool {
        let inside = git_state::inside(path).unwrap_or_default();
        let name = inside.strip_prefix(b"logs/").unwrap_or(inside);
        git_state::directory(path)
            .is_some_and(|directory| self.branches.contains(&(directory.to_vec(), name.to_vec())))
    }

    /// Whether a change is to what the repository keeps for another work tree, and is left alone.
    pub(crate) fn is_left_alone(&self, change: &Change, all: &PutBack) -> bool {
        let Some((kept, rest)) = split(&change.path) else {
            return git_state::is_of_other_work_trees(&change.path) && change.to.is_none();
        };
        let is_essential = rest.is_empty() || ESSENTIAL.contains(&rest);
        if self.inside.contains(kept) {
            return change.to.is_none() && is_essential;
        }
        let is_new = change.from.is_none() && change.to.is_some();
        let is_missing = !self.known.contains(kept) || is_essential;
        !(is_new && is_missing && (self.known.contains(kept) || all.0.contains(kept)))
    }

    /// Leaves branches to those who have them checked out, where they are packed, too.
    pub(crate) fn leave_branches(
        &self,
        changes: Vec<Change>,
        trees: &dyn Trees,
        git: &Subtree,
        content: &ContentOf<'_>,
        sink: &Sink<'_>,
    ) -> Result<Vec<Change>, StateError> {
        let mut left = Vec::with_capacity(changes.len());
        for mut change in changes {
            if self.has_branch(&change.path) {
                continue;
            }
            if git_state::inside(&change.path) == Some(b"packed-refs")
                && let Some(directory) = git_state::directory(&change.path)
            {
                let names: Vec<&[u8]> = self
                    .branches
                    .iter()
                    .filter(|(of, _)| of == directory)
                    .map(|(_, name)| name.as_slice())
                    .collect();
                let present = tree::find(trees, Some(git), &change.path)?;
                let read = |entry: &Option<Entry>| match entry {
                    Some(entry) => content(&change.path, entry),
                    None => Ok(Vec::new()),
                };
                let (now, then) = (read(&present)?, read(&change.to)?);
                let packed = with_lines_of(&then, &now, &names);
                if packed != then
                    && let Some(like) = change.to.clone().or_else(|| present.clone())
                {
                    let id = ContentId::of(&packed);
                    change.to = Some(Entry {
                        node: Node::File {
                            size: packed.len() as u64,
                            content: id,
                            sparse: false,
                            link: None,
                        },
                        ..like
                    });
                    sink.content(id, packed)?;
                }
            }
            left.push(change);
        }
        Ok(left)
    }
}

/// What is kept for work trees that are still there, of which the repository lost everything.
pub(crate) struct PutBack(BTreeSet<TreePath>);

impl PutBack {
    /// Those for which these changes would bring everything back.
    pub(crate) fn of(changes: &[Change], content: &ContentOf<'_>) -> Self {
        let mut found = BTreeSet::new();
        for change in changes {
            if let (Some((kept, b"gitdir")), None, Some(to)) =
                (split(&change.path), &change.from, &change.to)
                && let Ok(bytes) = content(&change.path, to)
                && place_of(&bytes).is_some_and(|place| place.join(".git").is_file())
            {
                found.insert(kept.to_vec());
            }
        }
        Self(found)
    }
}

/// What a repository keeps for one work tree (`.git/worktrees/NAME`), and a path inside of it.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = git_state::inside(path)?;
    let rest = inside.strip_prefix(b"worktrees/")?;
    let length = rest
        .iter()
        .position(|byte| *byte == b'/')
        .unwrap_or(rest.len());
    let end = path.len() - rest.len() + length;
    let (kept, inner) = path.split_at_checked(end)?;
    Some((kept, inner.strip_prefix(b"/").unwrap_or(inner)))
}

/// Where a work tree lies, from what the repository notes of it.
fn place_of(gitdir: &[u8]) -> Option<PathBuf> {
    let pointer = path::as_path(gitdir.trim_ascii_end());
    pointer.parent().map(Path::to_owned)
}

/// The reference that a `HEAD` names, if it is a branch.
fn branch_of(head: &[u8]) -> Option<Vec<u8>> {
    let name = head.trim_ascii_end();
    let name = name.strip_prefix(b"ref: ").unwrap_or(name);
    name.starts_with(b"refs/heads/").then(|| name.to_vec())
}

/// A list of packed references, of which some are as another list has them.
fn with_lines_of(list: &[u8], other: &[u8], names: &[&[u8]]) -> Vec<u8> {
    let lines = |list| <[u8]>::split_inclusive(list, |byte| *byte == b'\n');
    let name_of = |line: &[u8]| -> Option<Vec<u8>> {
        let first = *line.first()?;
        if matches!(first, b'#' | b'^') {
            return None;
        }
        let at = line.iter().position(|byte| *byte == b' ')?;
        Some(line.get(at + 1..)?.trim_ascii_end().to_vec())
    };
    let is_named = |line: &&[u8]| name_of(line).is_some_and(|name| names.contains(&&*name));
    let mut kept: Vec<&[u8]> = lines(list).filter(|line| !is_named(line)).collect();
    for line in lines(other).filter(is_named) {
        // Git looks names up as in a dictionary.
        let name = name_of(line);
        let at = kept
            .iter()
            .position(|known| name_of(known).is_some_and(|known| Some(known) > name));
        kept.insert(at.unwrap_or(kept.len()), line);
    }
    kept.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_13_a_packed_branch_of_another_work_tree_keeps_its_line() {
        let then = b"# pack-refs with: peeled fully-peeled sorted \n1 refs/heads/a\n1 refs/heads/wt\n1 refs/tags/t\n^2\n";
        let now =
            b"# pack-refs with: peeled fully-peeled sorted \n3 refs/heads/a\n3 refs/heads/wt\n";
        let wt: &[u8] = b"refs/heads/wt";
        assert_eq!(
            with_lines_of(then, now, &[wt]),
            b"# pack-refs with: peeled fully-peeled sorted \n1 refs/heads/a\n3 refs/heads/wt\n1 refs/tags/t\n^2\n"
        );
        assert_eq!(
            with_lines_of(then, b"", &[wt]),
            b"# pack-refs with: peeled fully-peeled sorted \n1 refs/heads/a\n1 refs/tags/t\n^2\n"
        );
        assert_eq!(with_lines_of(b"", now, &[wt]), b"3 refs/heads/wt\n");
    }

    #[test]
    fn st_13_what_is_kept_for_a_work_tree_is_found_by_its_path() {
        let split = |path: &'static str| split(path.as_bytes());
        assert_eq!(
            split("a/.git/worktrees/x/logs/HEAD"),
            Some((&b"a/.git/worktrees/x"[..], &b"logs/HEAD"[..]))
        );
        assert_eq!(
            split(".git/worktrees/x"),
            Some((&b".git/worktrees/x"[..], &b""[..]))
        );
        assert_eq!(split(".git/worktrees"), None);
        assert_eq!(split(".git/refs/heads/worktrees/x"), None);
    }
}
