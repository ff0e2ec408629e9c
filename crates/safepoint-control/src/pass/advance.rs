//! What was let through to be made outside, made in advance.
//!
//! Landlock gives the right to make a name for a whole directory, and the supervisor's look at paths
//! does not hold a program that changes them meanwhile. So where anything may run, the one file or
//! directory is made before the command starts, empty, and has a rule of its own. What the command
//! left as it was is taken away again.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, unlinkat};
use rustix::io::Errno;

/// Something that was made in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MadeInAdvance {
    path: PathBuf,
    is_directory: bool,
    /// What it was: device, number, and when its content was changed.
    identity: (u64, u64, i64, i64),
}

impl MadeInAdvance {
    /// Makes a file, or a directory where the path ends with a slash. `None` where that cannot be
    /// done: then it cannot be made by the command either.
    pub(super) fn make(path: &Path, is_directory: bool) -> Option<Self> {
        let directory = open_directory(path)?;
        let name = path.file_name()?;
        if is_directory {
            mkdirat(&directory, name, Mode::from_raw_mode(0o777)).ok()?;
        } else {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let made: Result<_, Errno> =
                openat(&directory, name, flags, Mode::from_raw_mode(0o666));
            drop(File::from(made.ok()?));
        }
        Some(Self {
            path: path.to_owned(),
            is_directory,
            identity: identity(path)?,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// Takes it away, if it is as it was made.
    pub(super) fn take_away(&self) {
        let is_empty = self.is_directory
            || self
                .path
                .symlink_metadata()
                .is_ok_and(|found| found.len() == 0);
        if !is_empty || identity(&self.path) != Some(self.identity) {
            return;
        }
        let (Some(directory), Some(name)) = (open_directory(&self.path), self.path.file_name())
        else {
            return;
        };
        let flags = match self.is_directory {
            // Only an empty one is removed.
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        let _ = unlinkat(&directory, name, flags);
    }
}

fn open_directory(path: &Path) -> Option<File> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = openat2(CWD, path.parent()?, flags, Mode::empty(), resolve);
    opened.ok().map(File::from)
}

fn identity(path: &Path) -> Option<(u64, u64, i64, i64)> {
    let found = path.symlink_metadata().ok()?;
    Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
}
