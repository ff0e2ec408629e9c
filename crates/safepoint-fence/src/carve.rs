//! Everything beneath a directory except some places: Landlock can only allow,
//! so each neighbour on the way down to a hidden place is allowed by itself.
//!
//! Rules hold for what a directory entry is now, not for its name. A name that
//! appears later beside the way down has no rule, and stays closed. Links are
//! never followed: where they lead has a rule of its own, or none.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};

use crate::FenceError;

/// Where each hidden place lies, with no links on the way.
#[derive(Debug)]
pub(crate) struct Hidden {
    places: Vec<PathBuf>,
}

impl Hidden {
    /// The places need not exist yet.
    pub(crate) fn new(places: &[PathBuf]) -> Result<Self, FenceError> {
        let places = places.iter().map(|place| resolve(place));
        Ok(Self {
            places: places.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Is `path` hidden, or beneath something hidden?
    fn covers(&self, path: &Path) -> bool {
        self.places.iter().any(|place| path.starts_with(place))
    }

    /// Does something hidden lie beneath `path`?
    fn is_beneath(&self, path: &Path) -> bool {
        self.places.iter().any(|place| place.starts_with(path))
    }

    /// Calls `allow` for `top`, or for as much of it as hides nothing.
    ///
    /// `known` are paths that are needed: where a directory on the way cannot be
    /// listed, its neighbours are not found, but these are.
    pub(crate) fn carve(
        &self,
        top: &Path,
        known: &[PathBuf],
        allow: &mut Allow<'_>,
    ) -> Result<(), FenceError> {
        let place = open_top(top).map_err(|source| FenceError::Path {
            path: top.to_owned(),
            source,
        })?;
        self.descend(&place, top, known, allow)
    }

    fn descend(
        &self,
        place: &OwnedFd,
        path: &Path,
        known: &[PathBuf],
        allow: &mut Allow<'_>,
    ) -> Result<(), FenceError> {
        if self.covers(path) {
            return Ok(());
        }
        let Ok(kind) = kind(place) else {
            return Ok(()); // it cannot be looked at, so it is not allowed
        };
        if kind == FileType::Symlink {
            return Ok(());
        }
        if !self.is_beneath(path) {
            return allow(place.as_fd(), kind);
        }
        for name in self.names(place, path, known) {
            // What cannot be opened gets no rule: the fence only gets tighter.
            if let Ok(child) = open(place, &name) {
                self.descend(&child, &path.join(&name), known, allow)?;
            }
        }
        Ok(())
    }

    /// What is in a directory, and what must be on the way.
    fn names(&self, place: &OwnedFd, path: &Path, known: &[PathBuf]) -> Vec<OsString> {
        let mut names = list(place).unwrap_or_default();
        let needed = self.places.iter().chain(known);
        names.extend(needed.filter_map(|one| {
            match one.strip_prefix(path).ok()?.components().next()? {
                Component::Normal(name) => Some(name.to_owned()),
                _ => None,
            }
        }));
        names.sort();
        names.dedup();
        names
    }

    /// The directories from `top` down to hidden places: what is in them keeps
    /// its rights, but they themselves take no new names.
    pub(crate) fn ways(&self, top: &Path) -> Vec<PathBuf> {
        let mut ways: Vec<PathBuf> = self
            .places
            .iter()
            .filter(|place| place.starts_with(top))
            .flat_map(|place| place.ancestors().skip(1))
            .filter(|way| way.starts_with(top) && way.is_dir() && !self.covers(way))
            .map(Path::to_owned)
            .collect();
        ways.sort();
        ways.dedup();
        ways
    }
}

/// Takes what is to be allowed. It must not keep it: there may be more places
/// than a process may have open files.
pub(crate) type Allow<'a> = dyn FnMut(BorrowedFd<'_>, FileType) -> Result<(), FenceError> + 'a;

/// A path with no links in it. What does not exist yet is taken as it is named,
/// but not a link that leads nowhere yet: nobody knows what it will hide.
fn resolve(path: &Path) -> Result<PathBuf, FenceError> {
    let unclear = || FenceError::Unclear {
        path: path.to_owned(),
    };
    if !path.is_absolute() {
        return Err(unclear());
    }
    let mut missing = Vec::new();
    let mut present = path;
    loop {
        match present.canonicalize() {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Ok(found);
            }
            Err(error) if is_absent(&error) && present.symlink_metadata().is_err() => {
                // A path that ends in `..` has no name.
                missing.push(present.file_name().ok_or_else(unclear)?);
                present = present.parent().ok_or_else(unclear)?;
            }
            Err(source) => {
                return Err(FenceError::Path {
                    path: path.to_owned(),
                    source,
                });
            }
        }
    }
}

/// A path with no links in it, if there is something, and it can be reached.
pub(crate) fn existing(path: &Path) -> Result<Option<PathBuf>, FenceError> {
    if !path.is_absolute() {
        return Err(FenceError::Unclear {
            path: path.to_owned(),
        });
    }
    match path.canonicalize() {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) || error.kind() == io::ErrorKind::PermissionDenied => {
            Ok(None)
        }
        Err(source) => Err(FenceError::Path {
            path: path.to_owned(),
            source,
        }),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// What something that is open is.
fn kind(place: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(place)?.st_mode))
}

/// Opens a path that was resolved before. Whoever put a link in its way since
/// then gets nothing.
fn open_top(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_SYMLINKS;
    Ok(openat2(CWD, path, flags, Mode::empty(), links)?)
}

fn open(directory: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(directory, name, flags, Mode::empty())?)
}

fn list(place: &OwnedFd) -> io::Result<Vec<OsString>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let readable = openat(place, ".", flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in Dir::new(readable)? {
        let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
    }
    Ok(names)
}
