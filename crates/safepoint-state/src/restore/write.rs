//! Writing one file beside the tree, and proving that it holds what it should.
//!
//! What counts is what is read back from the file: its digest must be the name of
//! its content. Nothing here touches the tree itself.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, fchmod, fchown, fstat, fsync, futimens, openat};
use rustix::io::Errno;

use super::owner;
use super::stage::{Inode, set_attributes, times};
use crate::objects::Content;
use crate::tree::{Entry, Node};
use crate::{ContentId, StateError, path};

/// Why a file could not be written.
pub(super) enum Failure {
    State(StateError),
    System(std::io::Error),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

/// What a failure is to whoever restores.
pub(super) fn or_file(failure: Failure, path: &Path) -> StateError {
    match failure {
        Failure::State(error) => error,
        Failure::System(error) => StateError::file("write", path, error),
    }
}

/// Writes a file with its content, mode, times and attributes, and reads it back. Where it
/// fails, what is there must be thrown away.
pub(super) fn write_file(
    directory: BorrowedFd<'_>,
    name: &[u8],
    entry: &Entry,
    content: &Content<'_>,
    (sync, model): (bool, Option<&Path>),
) -> Result<Inode, Failure> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Most often that is the mode it keeps. Attributes need more than some modes allow.
    let plain = entry.mode & !0o777 == 0 && entry.attributes.is_empty();
    let mode = if plain { entry.mode } else { 0o600 };
    let file = File::from(openat(directory, name, flags, Mode::from_raw_mode(mode))?);
    let size = match model.and_then(|model| clone_of(&file, model, entry, content)) {
        Some(size) => size,
        None => write_content(&file, name, entry, content)?,
    };
    if !entry.attributes.is_empty() {
        set_attributes(file.as_fd(), &entry.attributes)?;
    }
    let mut stat = fstat(&file)?;
    // A new file may have the group of its directory.
    if (stat.st_uid, stat.st_gid) != (entry.owner, entry.group) {
        owner::give((entry.owner, entry.group), |owner, group| {
            fchown(&file, owner, group)
        })?;
        stat = fstat(&file)?;
    }
    if stat.st_mode & 0o7777 != entry.mode {
        fchmod(&file, Mode::from_raw_mode(entry.mode))?;
    }
    futimens(&file, &times(entry.modified))?;
    if sync {
        fsync(&file)?;
    }
    let written = read_whole(&file, size).map_err(Failure::System)?;
    if written == content.id() {
        return Ok((stat.st_dev, stat.st_ino));
    }
    // Either it was no good to begin with, or it became so.
    content.copy(&mut |_| Ok(())).map_err(Failure::State)?;
    Err(Failure::System(std::io::Error::other(
        "what was written is not what is read back",
    )))
}

/// Lets a new file share the blocks of one that should hold the same, and returns its size.
/// `None` when it cannot, or when what it shares is something else: then it is empty again.
fn clone_of(file: &File, model: &Path, entry: &Entry, content: &Content<'_>) -> Option<u64> {
    let Node::File { size, .. } = entry.node else {
        return None;
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let model = openat(rustix::fs::CWD, model, flags, Mode::empty()).ok()?;
    rustix::fs::ioctl_ficlone(file, &model).ok()?;
    let same = file.metadata().is_ok_and(|found| found.len() == size)
        && read_whole(file, size).is_ok_and(|read| read == content.id());
    match same {
        true => Some(size),
        // The file was changed since it was looked at.
        false => file.set_len(0).ok().and(None),
    }
}

/// Writes a content into a new file, and returns its size. A content in one piece is not checked
/// before: what is read back is, and then nothing is in its place yet.
fn write_content(
    file: &File,
    name: &[u8],
    entry: &Entry,
    content: &Content<'_>,
) -> Result<u64, Failure> {
    let sparse = matches!(entry.node, Node::File { sparse: true, .. });
    let mut at = 0_u64;
    let mut write = |piece: &[u8]| {
        let from = at;
        at += piece.len() as u64;
        match sparse {
            true => write_around_holes(file, piece, from),
            false => file.write_all_at(piece, from),
        }
    };
    if let Some(bytes) = content.unchecked() {
        write(bytes).map_err(Failure::System)?;
    } else {
        let mut write_error = None;
        let copied = content.copy(&mut |piece| {
            write(piece).map_err(|error| {
                let told = std::io::Error::from(error.kind());
                write_error = Some(error);
                StateError::file("write", path::as_path(name), told)
            })
        });
        match (copied, write_error) {
            (_, Some(error)) => return Err(Failure::System(error)),
            (Err(error), None) => return Err(Failure::State(error)),
            (Ok(()), None) => {}
        }
    }
    if sparse {
        file.set_len(at).map_err(Failure::System)?;
    }
    Ok(at)
}

/// What a file holds, read back through the handle it was written by.
fn read_whole(file: &File, size: u64) -> std::io::Result<ContentId> {
    thread_local! {
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    const PIECE: u64 = 256 << 10;
    BUFFER.with_borrow_mut(|buffer| {
        let mut hasher = blake3::Hasher::new();
        let mut at = 0;
        while at < size {
            let wanted = usize::try_from((size - at).min(PIECE)).unwrap_or(0);
            if buffer.len() < wanted {
                buffer.resize(wanted, 0);
            }
            let piece = buffer.get_mut(..wanted).unwrap_or_default();
            file.read_exact_at(piece, at)?;
            hasher.update(piece);
            at += wanted as u64;
        }
        Ok(hasher.finalize().into())
    })
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
