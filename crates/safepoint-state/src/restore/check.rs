//! Whether each path that was touched is now what it should be.
//!
//! What was not touched has just been looked at, and was right already.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, readlinkat, statat};

use super::owner::{self, Owned};
use super::plan::Plan;
use super::stage::Staged;
use crate::path::{self, TreePath};
use crate::scan::stat::Found;
use crate::scan::{is_forbidden, open_beneath, read_back};
use crate::tree::{Attributes, Change, Entry, Node};
use crate::{ContentId, StateError};

/// Reads every touched path again, and says what is as it should be but for its owner or group,
/// which only a superuser could give. `None` as soon as one is not as it should be.
pub(super) fn as_planned(
    workspace: &Path,
    plan: &Plan,
    staged: &Staged,
) -> Result<Option<Vec<TreePath>>, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, workspace, flags, Mode::empty())
        .map_err(|error| StateError::file("open", workspace, error))?;
    // By directory, so that each is opened once.
    let mut directories: HashMap<&[u8], Vec<&Change>> = HashMap::new();
    for change in &plan.changes {
        directories
            .entry(path::split(&change.path).0)
            .or_default()
            .push(change);
    }
    let directories: Vec<_> = directories.into_iter().collect();
    let looked: Result<Vec<Option<Looked>>, StateError> = directories
        .par_iter()
        .map(|(directory, changes)| {
            let opened = match open_beneath(root.as_fd(), directory) {
                // It has got the mode back with which nobody may look into it. What is in it
                // was read back before it was put there.
                Err(error) if is_forbidden(&error) && is_closed_by(plan, directory) => {
                    return Ok(Some(Looked::default()));
                }
                other => other?,
            };
            let Some(handle) = opened else {
                let nothing = changes.iter().all(|change| change.to.is_none());
                return Ok(nothing.then(Looked::default));
            };
            let mut looked = Looked::default();
            let mut buffer = Vec::new();
            for change in changes {
                let found = match proven(handle.as_fd(), change, staged) {
                    Some(found) => Some(found),
                    None => present(handle.as_fd(), &change.path, &mut buffer)?,
                };
                let right = match (&change.to, found) {
                    (None, None) => true,
                    (Some(entry), Some((found, node, attributes))) => {
                        if let Node::File {
                            link: Some(link), ..
                        } = entry.node
                        {
                            looked.inodes.push((link, found.inode));
                        }
                        let owned = owner::of(entry, found.owner, found.group);
                        if owned == Owned::Ours {
                            looked.not_given.push(change.path.clone());
                        }
                        owned != Owned::Wrong && is_entry(entry, &found, &node, &attributes)
                    }
                    _ => false,
                };
                if !right {
                    return Ok(None);
                }
            }
            Ok(Some(looked))
        })
        .collect();
    let mut groups: HashMap<u64, u64> = HashMap::new();
    let mut not_given = Vec::new();
    for directory in looked? {
        let Some(looked) = directory else {
            return Ok(None);
        };
        for (link, inode) in looked.inodes {
            if *groups.entry(link).or_insert(inode) != inode {
                return Ok(None);
            }
        }
        not_given.extend(looked.not_given);
    }
    not_given.sort();
    Ok(Some(not_given))
}

/// Whether a plan gives a directory, or one above it, a mode with which it cannot be read.
fn is_closed_by(plan: &Plan, directory: &[u8]) -> bool {
    plan.changes.iter().any(|change| {
        path::is_within(directory, &change.path)
            && change
                .to
                .as_ref()
                .is_some_and(|to| to.subtree().is_some() && to.mode & 0o500 != 0o500)
    })
}

/// What was found in one directory that is as it should be.
#[derive(Default)]
struct Looked {
    /// The number of each linked file in the plan, and the one it has now.
    inodes: Vec<(u64, u64)>,
    /// What could not be given to whom it belonged.
    not_given: Vec<TreePath>,
}

/// What stands at a path now. Of a directory, nothing but that it is one.
enum Present {
    File(ContentId),
    Directory,
    Symlink(Vec<u8>),
    Special,
}

/// A file that was read back when it was written, and is now in its place: a look at
/// its metadata is enough.
fn proven(
    directory: BorrowedFd<'_>,
    change: &Change,
    staged: &Staged,
) -> Option<(Found, Present, Attributes)> {
    let proven = staged.proven.get(&change.path)?;
    let entry = change.to.as_ref()?;
    let Node::File { content, size, .. } = entry.node else {
        return None;
    };
    let (_, name) = path::split(&change.path);
    let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let found = Found::of(&stat);
    let same = (stat.st_dev, stat.st_ino) == *proven && found.size == size;
    let plain = entry.attributes.is_empty();
    (same && plain).then(|| (found, Present::File(content), Attributes::new()))
}

fn present(
    directory: BorrowedFd<'_>,
    path: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<Option<(Found, Present, Attributes)>, StateError> {
    let (_, name) = path::split(path);
    if let Some((content, attributes, found)) = read_back(directory, name, path, buffer)? {
        return Ok(Some((found, Present::File(content), attributes)));
    }
    let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(None);
    };
    let found = Found::of(&stat);
    let node = match found.kind {
        FileType::Directory => Present::Directory,
        FileType::Symlink => match readlinkat(directory, name, Vec::new()) {
            Ok(target) => Present::Symlink(target.into_bytes()),
            Err(_) => return Ok(None),
        },
        _ => Present::Special,
    };
    Ok(Some((found, node, Attributes::new())))
}

fn is_entry(entry: &Entry, found: &Found, present: &Present, attributes: &Attributes) -> bool {
    let content = match (&entry.node, present) {
        (Node::File { content, .. }, Present::File(now)) => {
            content == now && entry.attributes == *attributes
        }
        (Node::Directory(_), Present::Directory) => true,
        (Node::Symlink { target }, Present::Symlink(now)) => target == now,
        (Node::Special { kind, .. }, Present::Special) => found.special() == Some(*kind),
        _ => false,
    };
    content && found.mode == entry.mode && found.modified == entry.modified
}
