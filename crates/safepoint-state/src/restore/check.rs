//! Whether each path that was touched is now what it should be.
//!
//! What was not touched has just been looked at, and was right already.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, readlinkat, statat};

use super::plan::Plan;
use super::stage::Staged;
use crate::path;
use crate::scan::stat::Found;
use crate::scan::{open_beneath, read_back};
use crate::tree::{Attributes, Change, Entry, Node};
use crate::{ContentId, StateError};

/// Reads every touched path again. `false` as soon as one is not as it should be.
pub(super) fn is_as_planned(
    workspace: &Path,
    plan: &Plan,
    staged: &Staged,
) -> Result<bool, StateError> {
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
    let inodes: Result<Vec<Option<Inodes>>, StateError> = directories
        .par_iter()
        .map(|(directory, changes)| {
            let Some(handle) = open_beneath(root.as_fd(), directory)? else {
                let nothing = changes.iter().all(|change| change.to.is_none());
                return Ok(nothing.then(Vec::new));
            };
            let mut inodes = Inodes::new();
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
                            inodes.push((link, found.inode));
                        }
                        is_entry(entry, &found, &node, &attributes)
                    }
                    _ => false,
                };
                if !right {
                    return Ok(None);
                }
            }
            Ok(Some(inodes))
        })
        .collect();
    let mut groups: HashMap<u64, u64> = HashMap::new();
    for directory in inodes? {
        let Some(inodes) = directory else {
            return Ok(false);
        };
        for (link, inode) in inodes {
            if *groups.entry(link).or_insert(inode) != inode {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The number of each linked file in the plan, and the one it has now.
type Inodes = Vec<(u64, u64)>;

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
    content
        && found.mode == entry.mode
        && found.modified == entry.modified
        && (found.owner, found.group) == (entry.owner, entry.group)
}
