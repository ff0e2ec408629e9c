//! Where a target really is: after `..`, links and case, and inside the workspace.
//!
//! The answer is a path without links. Whatever is done to it later is done by
//! handles that follow none, so exchanging a directory for a link meanwhile
//! leads nowhere.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, openat, openat2, statat};
use rustix::io::Errno;

use super::operation::Operation;
use crate::StateError;
use crate::part::Subject;
use crate::path::{self, TreePath};

/// What a step is done to.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// Something in the workspace.
    Place(Place),
    /// A database or a state.
    Part(Subject),
}

/// Something in the workspace, that is there or is to be there.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// As it was given.
    pub(super) given: String,
    /// Its path, without links.
    pub(super) path: TreePath,
}

impl Place {
    /// For people: its path, and `.` for the workspace.
    pub(super) fn shown(&self) -> String {
        match self.path.is_empty() {
            true => ".".to_owned(),
            false => path::display(&self.path),
        }
    }
}

/// Whether a link as the last name is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    /// What it points to is meant.
    Follow,
    /// The link itself is meant.
    Keep,
}

impl LastLink {
    /// What an operation means.
    pub(super) fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Delete { .. } | Operation::Move { .. } | Operation::Symlink { .. } => {
                Self::Keep
            }
            _ => Self::Follow,
        }
    }
}

/// Finds the place that `given` means, seen from the directory `here`.
pub(super) fn find(
    root: &Path,
    here: &Path,
    given: &str,
    last: LastLink,
) -> Result<Place, StateError> {
    let refuse = |why: &str| StateError::BadTarget {
        target: given.to_owned(),
        why: why.to_owned(),
    };
    let outside = || StateError::OutOfReach {
        target: given.to_owned(),
    };
    if given.is_empty() || given.contains('\0') {
        return Err(refuse("it is no path"));
    }
    let whole = here.join(given);
    let place = match resolve(&whole, last)? {
        Some(found) => found,
        None => missing(&whole)?.ok_or_else(|| refuse("it leads nowhere"))?,
    };
    let inside = place.strip_prefix(root).map_err(|_| outside())?;
    let path = as_written(root, inside.as_os_str().as_bytes())
        .map_err(|error| StateError::file("open", &place, error))?;
    refuse_escape(root, &path).map_err(|error| match error {
        Some(error) => StateError::file("open", &place, error),
        None => outside(),
    })?;
    Ok(Place {
        given: given.to_owned(),
        path,
    })
}

/// The path of something that is there, without links; `None` when it is not there.
fn resolve(whole: &Path, last: LastLink) -> Result<Option<PathBuf>, StateError> {
    let (parent, name) = match (last, whole.parent(), whole.file_name()) {
        (LastLink::Keep, Some(parent), Some(name)) => (parent, Some(name)),
        _ => (whole, None),
    };
    match real(parent) {
        Ok(found) => {
            let found = match name {
                Some(name) => found.join(name),
                None => found,
            };
            Ok(Some(found))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(error) => Err(StateError::file("open", whole, error)),
    }
}

/// The path of something that is to be there: the nearest directory above it that is
/// there, and the names that are missing. Those must be plain names.
fn missing(whole: &Path) -> Result<Option<PathBuf>, StateError> {
    let mut names: Vec<&OsStr> = Vec::new();
    let mut above = whole;
    loop {
        let Some(Component::Normal(name)) = above.components().next_back() else {
            return Ok(None);
        };
        names.push(name);
        let Some(parent) = above.parent() else {
            return Ok(None);
        };
        above = parent;
        // A link that leads nowhere is there, and is not what is meant.
        let dangling = above.join(name).symlink_metadata().is_ok();
        match real(above) {
            Ok(found) if !dangling => {
                return Ok(Some(
                    names.iter().rev().fold(found, |at, name| at.join(name)),
                ));
            }
            Ok(_) => return Ok(None),
            // A file where a directory should be is told by the operation that needs one.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => return Err(StateError::file("open", above, error)),
        }
    }
}

/// What the kernel calls a thing, after all links.
fn real(path: &Path) -> Result<PathBuf, Errno> {
    let handle = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )?;
    name_of(&handle)
}

fn name_of(handle: &OwnedFd) -> Result<PathBuf, Errno> {
    use std::os::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    let name = rustix::fs::readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsStr::from_bytes(name.as_bytes())))
}

/// Opens what is there of the path once more, beneath the workspace and without links.
fn refuse_escape(root: &Path, path: &[u8]) -> Result<(), Option<Errno>> {
    let handle = openat(
        CWD,
        root,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(Some)?;
    let mut at = path;
    loop {
        let (parent, _) = path::split(at);
        let relative: &[u8] = if parent.is_empty() { b"." } else { parent };
        let found = openat2(
            handle.as_fd(),
            relative,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        );
        match found {
            Ok(_) => return Ok(()),
            Err(Errno::NOENT | Errno::NOTDIR) if !parent.is_empty() => at = parent,
            Err(Errno::LOOP | Errno::XDEV) => return Err(None),
            Err(error) => return Err(Some(error)),
        }
    }
}

/// The path as its directories write it: where case does not matter, a name may have
/// been given in another. What is not there yet stays as it was given.
fn as_written(root: &Path, given: &[u8]) -> Result<TreePath, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut directory = openat(CWD, root, flags, Mode::empty())?;
    let mut written = TreePath::new();
    let mut rest = given;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'/');
        let (name, below) = rest.split_at(end.unwrap_or(rest.len()));
        let name = name_in(&directory, name)?;
        written.extend_from_slice(&name);
        let opened = openat(&directory, name.as_slice(), flags, Mode::empty());
        match opened {
            Ok(opened) if !below.is_empty() => directory = opened,
            // Nothing is below it, and what is wrong with that is told by whoever needs it.
            _ => {
                written.extend_from_slice(below);
                break;
            }
        }
        written.push(b'/');
        rest = below.get(1..).unwrap_or_default();
    }
    Ok(written)
}

/// How a name is written in its directory.
fn name_in(directory: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let identity = |name: &[u8]| {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_dev, stat.st_ino))
    };
    let given = || name.to_vec();
    let Some(ours) = identity(name) else {
        return Ok(given()); // it is not there
    };
    let swap = |byte: &u8| match byte.is_ascii_lowercase() {
        true => byte.to_ascii_uppercase(),
        false => byte.to_ascii_lowercase(),
    };
    let swapped: Vec<u8> = name.iter().map(swap).collect();
    if name.is_ascii() && (swapped == name || identity(&swapped) != Some(ours)) {
        return Ok(given()); // case matters here
    }
    let mut alike = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let found = entry.file_name().to_bytes();
        if found == name {
            return Ok(given());
        }
        if identity(found) == Some(ours) {
            alike.push(found.to_vec());
        }
    }
    // Of several names of one file, the one that differs in case alone.
    let folded = |name: &[u8]| String::from_utf8_lossy(name).to_lowercase();
    if alike.len() > 1 {
        alike.retain(|found| folded(found) == folded(name));
    }
    match alike.as_slice() {
        [only] => Ok(only.clone()),
        _ => Err(Errno::NOENT), // it was exchanged meanwhile
    }
}
