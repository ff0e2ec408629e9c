//! Reading one file so that what is kept is what was there at one moment.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags, fgetxattr, flistxattr, flistxattr_query, fstat, openat};
use rustix::io::Errno;

use super::stat::Found;
use super::{Sink, problem};
use crate::objects::LARGE;
use crate::sensitive::{self, Reason};
use crate::tree::{Attributes, Node};
use crate::{ContentId, StateError};

/// How often a file that changes is read again before it counts as torn.
const TRIES: u32 = 6;
/// As much of a large file is searched for secrets.
const SNIFFED: usize = 1 << 20;
const PIECE: usize = 1 << 20;

/// What reading a file gave.
pub(super) enum Outcome {
    /// It is captured.
    Kept {
        node: Node,
        attributes: Attributes,
        found: Found,
    },
    /// It is a secret: nothing of it was kept.
    Secret(Reason, Found),
    /// It is gone, or something else stands there now.
    Gone,
}

/// Whether a file is searched for secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sniff {
    Yes,
    No,
}

/// Reads the file `name` of `directory` until it holds still. `seen` is how it was
/// when it was last looked at.
pub(super) fn file(
    directory: BorrowedFd<'_>,
    name: &[u8],
    path: &[u8],
    sink: &Sink<'_>,
    sniff: Sniff,
    seen: Option<&Found>,
) -> Result<Outcome, StateError> {
    for attempt in 0..TRIES {
        if attempt > 0 {
            // Long enough for a writer to get somewhere, and growing.
            std::thread::sleep(std::time::Duration::from_millis(2 << attempt));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = match openat(directory, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(Outcome::Gone),
            Err(error) => return Err(problem("read", path, error)),
        };
        // What was looked at just now needs no second look, unless it proves to be another.
        let before = match seen.filter(|seen| attempt == 0 && seen.is_file()) {
            Some(seen) => *seen,
            None => stat(&handle, path)?,
        };
        if !before.is_file() {
            return Ok(Outcome::Gone);
        }
        let (content, secret, handle) = read_once(handle, &before, path, sink, sniff)?;
        let attributes =
            attributes(handle.as_fd()).map_err(|error| problem("read", path, error))?;
        let after = stat(&handle, path)?;
        if before.same_state(&after) {
            if let Some(reason) = secret {
                return Ok(Outcome::Secret(reason, after));
            }
            return Ok(Outcome::Kept {
                node: Node::File {
                    size: after.size,
                    content,
                    sparse: after.blocks * 512 < after.size,
                    link: after.link(),
                },
                attributes,
                found: after,
            });
        }
    }
    Err(StateError::Torn {
        path: crate::path::as_path(path).to_owned(),
    })
}

fn read_once(
    handle: OwnedFd,
    found: &Found,
    path: &[u8],
    sink: &Sink<'_>,
    sniff: Sniff,
) -> Result<(ContentId, Option<Reason>, File), StateError> {
    let mut file = File::from(handle);
    let failed =
        |error: std::io::Error| StateError::file("read", crate::path::as_path(path), error);
    let secret = |bytes: &[u8]| match sniff {
        Sniff::Yes => sensitive::by_content(bytes),
        Sniff::No => None,
    };
    if found.size <= LARGE as u64 {
        // With room for one byte more, a file that has not grown is read by one call.
        let size = usize::try_from(found.size).unwrap_or(0);
        let mut bytes = Vec::with_capacity(size + 1);
        while bytes.len() < bytes.capacity() {
            match rustix::io::read(&file, spare_capacity(&mut bytes)) {
                Ok(0) => break,
                Ok(_) if bytes.len() == size => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(problem("read", path, error)),
            }
        }
        let id = ContentId::of(&bytes);
        let reason = secret(&bytes);
        // One that has grown meanwhile is read again anyway.
        if reason.is_none() && bytes.len() as u64 == found.size {
            sink.content(id, bytes)?;
        }
        return Ok((id, reason, file));
    }
    let mut large = sink.large();
    let mut piece = vec![0; PIECE.max(SNIFFED)];
    let mut first = true;
    loop {
        let length = read_full(&mut file, &mut piece).map_err(failed)?;
        let bytes = piece.get(..length).unwrap_or_default();
        if first {
            first = false;
            if let Some(reason) = secret(bytes) {
                return Ok((ContentId::of(b""), Some(reason), file));
            }
        }
        if bytes.is_empty() {
            return Ok((large.finish()?, None, file));
        }
        large.push(bytes)?;
    }
}

/// Reads until `into` is full or the file ends.
fn read_full(file: &mut File, into: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The digest of a file as it is now, and its state; nothing is kept.
pub(super) fn digest_and_state(
    directory: BorrowedFd<'_>,
    name: &[u8],
    path: &[u8],
) -> Result<Option<(ContentId, Found)>, StateError> {
    match file(directory, name, path, &Sink::Nowhere, Sniff::No, None)? {
        Outcome::Kept {
            node: Node::File { content, .. },
            found,
            ..
        } => Ok(Some((content, found))),
        _ => Ok(None),
    }
}

/// What a file that was just written holds, read back through `buffer`.
pub(crate) fn read_back(
    directory: BorrowedFd<'_>,
    name: &[u8],
    path: &[u8],
    buffer: &mut Vec<u8>,
) -> Result<Option<(ContentId, Attributes, Found)>, StateError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(handle) = openat(directory, name, flags, Mode::empty()) else {
        return Ok(None);
    };
    let found = stat(&handle, path)?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut file = File::from(handle);
    let mut hasher = blake3::Hasher::new();
    let mut left = found.size;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        if buffer.len() < wanted {
            buffer.resize(wanted, 0);
        }
        let piece = buffer.get_mut(..wanted).unwrap_or_default();
        let length = read_full(&mut file, piece)
            .map_err(|error| StateError::file("read", crate::path::as_path(path), error))?;
        if length == 0 {
            return Ok(None); // it has become shorter
        }
        hasher.update(buffer.get(..length).unwrap_or_default());
        left = left.saturating_sub(length as u64);
    }
    let attributes = attributes(file.as_fd()).map_err(|error| problem("read", path, error))?;
    Ok(Some((hasher.finalize().into(), attributes, found)))
}

fn stat(handle: impl AsFd, path: &[u8]) -> Result<Found, StateError> {
    fstat(handle)
        .map(|stat| Found::of(&stat))
        .map_err(|error| problem("read", path, error))
}

/// The extended attributes that a user can set and restore, sorted by name.
pub(crate) fn attributes(handle: BorrowedFd<'_>) -> Result<Attributes, Errno> {
    let mut names: Vec<u8> = vec![0; 0];
    let length = match flistxattr_query(handle) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(length) => length,
        Err(error) => return Err(error),
    };
    names.resize(length + 256, 0); // a few may have been added meanwhile
    let length = flistxattr(handle, &mut names[..])?;
    names.truncate(length);
    let mut found = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(|name| is_kept(name)) {
        let Ok(name_c) = std::ffi::CString::new(name) else {
            continue;
        };
        let mut value = vec![0; 64 << 10];
        match fgetxattr(handle, &name_c, &mut value[..]) {
            Ok(length) => value.truncate(length),
            Err(Errno::NODATA) => continue,
            Err(error) => return Err(error),
        }
        found.push((name.to_vec(), value));
    }
    found.sort();
    Ok(found)
}

/// Labels of security systems belong to the machine, not to the work.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_")
}
