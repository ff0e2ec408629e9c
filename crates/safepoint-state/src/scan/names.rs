//! Names in directories: listing them, opening what they name, and those that are ours or git's.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

use super::problem;
use crate::StateError;
use crate::path;

/// Files that git has only for a moment, and that no state needs.
pub(super) fn is_passing(name: &[u8]) -> bool {
    name.ends_with(b".lock")
        || name.starts_with(b"fsmonitor--daemon")
        || name.starts_with(b"tmp_obj_")
}

/// The names that Safepoint makes in its own directories.
pub(super) fn is_own(name: &[u8]) -> bool {
    matches!(
        name,
        b".gitignore" | b".staging" | b"checkpoint-operations.log"
    ) || name.starts_with(b"chk_")
        || name.starts_with(b".") && name.ends_with(b".tmp")
}

/// The names in a directory, sorted.
pub(crate) fn list(handle: BorrowedFd<'_>, path: &[u8]) -> Result<Vec<Vec<u8>>, StateError> {
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
    let mut names = Vec::new();
    let mut listing = RawDir::new(handle, &mut buffer);
    while let Some(entry) = listing.next() {
        let entry = entry.map_err(|error| problem("list", path, error))?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}

pub(super) fn open_directory(
    parent: BorrowedFd<'_>,
    name: &[u8],
    path: &[u8],
) -> Result<Option<OwnedFd>, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(parent, name, flags, Mode::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(problem("open", path, error)),
    }
}

/// The directory at `path`, reached without following a link.
pub(crate) fn open_beneath(
    root: BorrowedFd<'_>,
    path: &[u8],
) -> Result<Option<OwnedFd>, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at =
        openat(root, ".", flags, Mode::empty()).map_err(|error| problem("open", path, error))?;
    for name in path::names(path) {
        match open_directory(at.as_fd(), name, path)? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}
