//! Putting everything that will be needed beside the tree, before the tree is touched.
//!
//! Contents are read from the store and hashed on the way, and get their
//! modes, times and attributes here. What remains to be done afterwards is
//! renaming. A damaged store, a full disk or a missing permission shows here,
//! when nothing has happened yet.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chownat,
    fchmod, fchown, fremovexattr, fsetxattr, fsync, futimens, linkat, mknodat, openat, symlinkat,
    syncfs, unlinkat, utimensat,
};
use rustix::io::Errno;
use safepoint_store::{durable, fault};

use crate::objects::{Content, Reader};
use crate::path::{self, TreePath};
use crate::tree::{Attributes, Change, Entry, Moment, Node, Special};
use crate::{ContentId, StateError, own, scan};

/// Up to so many files are synced one by one; more by syncing the file system.
const FEW: usize = 32;

/// The directory beside the tree.
pub(super) fn directory(workspace: &Path) -> PathBuf {
    own::checkpoints(workspace).join(".staging")
}

/// What lies ready, by the path it is for.
pub(super) struct Staged {
    pub(super) handle: OwnedFd,
    pub(super) names: HashMap<TreePath, String>,
    /// What cannot be made again.
    pub(super) impossible: Vec<(TreePath, Special)>,
}

/// Removes the directory with whatever an earlier attempt left in it.
pub(super) fn clear(workspace: &Path) -> Result<(), StateError> {
    let directory = directory(workspace);
    let listing = match std::fs::read_dir(&directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StateError::file("read", &directory, error)),
    };
    let handle = open(&directory)?;
    for entry in listing {
        let entry = entry.map_err(|error| StateError::file("read", &directory, error))?;
        match unlinkat(&handle, entry.file_name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(StateError::file("delete", entry.path(), error)),
        }
    }
    unlinkat(CWD, &directory, AtFlags::REMOVEDIR)
        .map_err(|error| StateError::file("delete", &directory, error))
}

fn open(directory: &Path) -> Result<OwnedFd, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, directory, flags, Mode::empty())
        .map_err(|error| StateError::file("open", directory, error))
}

/// Puts everything ready that `changes` need.
pub(super) fn prepare(
    workspace: &Path,
    changes: &[Change],
    reader: &Reader<'_>,
) -> Result<Staged, StateError> {
    clear(workspace)?;
    own::prepare(&own::checkpoints(workspace))?;
    let directory = directory(workspace);
    durable::create_directory(&directory)?;
    let handle = open(&directory)?;
    let mut staged = Staged {
        handle,
        names: HashMap::new(),
        impossible: Vec::new(),
    };
    let mut contents: Vec<(ContentId, (String, &Entry))> = Vec::new();
    let mut links: HashMap<u64, String> = HashMap::new();
    let mut linked = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let Some(entry) = change.to.as_ref().filter(|_| needs_content(change)) else {
            continue;
        };
        let name = format!("{number:x}");
        match &entry.node {
            Node::File { content, link, .. } => {
                let first = link.and_then(|link| links.get(&link).cloned());
                match (first, link) {
                    (Some(first), _) => linked.push((first, name.clone())),
                    (None, link) => {
                        if let Some(link) = link {
                            links.insert(*link, name.clone());
                        }
                        contents.push((*content, (name.clone(), entry)));
                    }
                }
            }
            Node::Symlink { target } => {
                symlink(staged.handle.as_fd(), &name, target, entry).map_err(|error| {
                    StateError::file("create the link", path::as_path(&change.path), error)
                })?;
            }
            Node::Special { kind, .. } => {
                if *kind != Special::Fifo {
                    staged.impossible.push((change.path.clone(), *kind));
                    continue;
                }
                fifo(staged.handle.as_fd(), &name, entry).map_err(|error| {
                    StateError::file("create the pipe", path::as_path(&change.path), error)
                })?;
            }
            Node::Directory(_) => continue,
        }
        staged.names.insert(change.path.clone(), name);
    }
    let few = contents.len() <= FEW;
    let beside = staged.handle.as_fd();
    let failed = Mutex::new(());
    reader.each(contents, |(name, entry), content| {
        let _ = &failed;
        write_file(beside, &name, entry, content, few)
            .map_err(|error| or_file(error, &directory.join(&name)))
    })?;
    for (first, name) in linked {
        linkat(beside, &first, beside, &name, AtFlags::empty())
            .map_err(|error| StateError::file("link", directory.join(&name), error))?;
    }
    if !few {
        syncfs(beside).map_err(|error| StateError::file("sync", &directory, error))?;
    }
    fault::point("restore.staged");
    Ok(staged)
}

/// Whether a change is made by putting something new in place.
pub(super) fn needs_content(change: &Change) -> bool {
    let Some(to) = &change.to else { return false };
    match &change.from {
        _ if change.relinked => true,
        None => true,
        Some(from) => !crate::tree::same_content(&from.node, &to.node),
    }
}

enum Failure {
    State(StateError),
    System(std::io::Error),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

fn or_file(failure: Failure, path: &Path) -> StateError {
    match failure {
        Failure::State(error) => error,
        Failure::System(error) => StateError::file("write", path, error),
    }
}

fn write_file(
    directory: BorrowedFd<'_>,
    name: &str,
    entry: &Entry,
    content: &Content<'_>,
    sync: bool,
) -> Result<(), Failure> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
    let sparse = matches!(entry.node, Node::File { sparse: true, .. });
    let mut at = 0_u64;
    let mut write_error = None;
    let copied = content.copy(&mut |piece| {
        let written = if sparse {
            write_around_holes(&file, piece, at)
        } else {
            file.write_all_at(piece, at)
        };
        at += piece.len() as u64;
        written.map_err(|error| {
            let told = StateError::file("write", name, std::io::Error::from(error.kind()));
            write_error = Some(error);
            told
        })
    });
    match (copied, write_error) {
        (_, Some(error)) => return Err(Failure::System(error)),
        (Err(error), None) => return Err(Failure::State(error)),
        (Ok(()), None) => {}
    }
    if sparse {
        file.set_len(at).map_err(Failure::System)?;
    }
    for (name, value) in &entry.attributes {
        fsetxattr(&file, name.as_slice(), value, XattrFlags::empty())?;
    }
    own_as(&file, entry)?;
    fchmod(&file, Mode::from_raw_mode(entry.mode))?;
    futimens(&file, &times(entry.modified))?;
    if sync {
        fsync(&file)?;
    }
    Ok(())
}

/// Writes what is not zero.
fn write_around_holes(file: &File, piece: &[u8], at: u64) -> std::io::Result<()> {
    const BLOCK: usize = 4096;
    let mut offset = at;
    for block in piece.chunks(BLOCK) {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, offset)?;
        }
        offset += block.len() as u64;
    }
    Ok(())
}

/// Gives a file to whom it belonged, where that is somebody else and may be done.
fn own_as(file: &File, entry: &Entry) -> Result<(), Errno> {
    let (owner, group) = (Uid::from_raw(entry.owner), Gid::from_raw(entry.group));
    let me = (rustix::process::geteuid(), rustix::process::getegid());
    if me == (owner, group) {
        return Ok(());
    }
    permitted(fchown(file, Some(owner), Some(group)))
}

/// Only a superuser gives files away: for others they stay their own.
pub(super) fn permitted(result: Result<(), Errno>) -> Result<(), Errno> {
    match result {
        Err(Errno::PERM) => Ok(()),
        other => other,
    }
}

fn symlink(
    directory: BorrowedFd<'_>,
    name: &str,
    target: &[u8],
    entry: &Entry,
) -> Result<(), Errno> {
    symlinkat(target, directory, name)?;
    metadata_of_link(directory, name, entry)
}

fn fifo(directory: BorrowedFd<'_>, name: &str, entry: &Entry) -> Result<(), Errno> {
    mknodat(
        directory,
        name,
        FileType::Fifo,
        Mode::from_raw_mode(entry.mode),
        0,
    )?;
    rustix::fs::chmodat(
        directory,
        name,
        Mode::from_raw_mode(entry.mode),
        AtFlags::empty(),
    )?;
    metadata_of_link(directory, name, entry)
}

fn metadata_of_link(directory: BorrowedFd<'_>, name: &str, entry: &Entry) -> Result<(), Errno> {
    let (owner, group) = (Uid::from_raw(entry.owner), Gid::from_raw(entry.group));
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    permitted(chownat(directory, name, Some(owner), Some(group), flags))?;
    utimensat(directory, name, &times(entry.modified), flags)
}

/// Sets the time of the last change, and leaves the time of the last access.
pub(super) fn times(modified: Moment) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanos.into(),
        },
    }
}

/// Makes the extended attributes of an open file what they should be.
pub(super) fn set_attributes(handle: BorrowedFd<'_>, wanted: &Attributes) -> Result<(), Errno> {
    let present = scan::attributes(handle)?;
    for (name, _) in present.iter().filter(|(name, _)| scan::is_kept(name)) {
        if !wanted.iter().any(|(known, _)| known == name) {
            fremovexattr(handle, name.as_slice())?;
        }
    }
    for (name, value) in wanted {
        if !present.contains(&(name.clone(), value.clone())) {
            fsetxattr(handle, name.as_slice(), value, XattrFlags::empty())?;
        }
    }
    Ok(())
}
