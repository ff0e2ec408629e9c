//! What stands at a path of the work tree.
//!
//! The work goes on while we look: something that vanishes or turns into
//! something else meanwhile is simply not there. It never follows a symbolic
//! link, and never opens what is not a plain file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::error::GitError;
use super::layout::{is_missing, unreadable};

/// What was found.
#[derive(Debug)]
pub(super) enum Content {
    /// Nothing, or nothing that git could keep.
    Nothing,
    /// A symbolic link to these bytes.
    Link(Vec<u8>),
    /// A directory.
    Directory,
    /// A plain file, open for reading.
    File {
        file: File,
        /// Whether its owner may run it.
        executable: bool,
    },
}

/// A work tree that is looked at path by path.
#[derive(Debug)]
pub(super) struct Worktree<'a> {
    top: &'a Path,
    /// Directories that were seen not to be symbolic links.
    real: HashSet<Vec<u8>>,
}

impl<'a> Worktree<'a> {
    pub(super) fn new(top: &'a Path) -> Self {
        Self {
            top,
            real: HashSet::new(),
        }
    }

    /// What stands at `path`.
    pub(super) fn look(&mut self, path: &[u8]) -> Result<Content, GitError> {
        let full = self.top.join(OsStr::from_bytes(path));
        if !self.is_reached_directly(path)? {
            return Ok(Content::Nothing);
        }
        let Some(found) = present(fs::symlink_metadata(&full), &full)? else {
            return Ok(Content::Nothing);
        };
        if found.is_symlink() {
            let target = present(fs::read_link(&full), &full)?;
            return Ok(target.map_or(Content::Nothing, |target| {
                Content::Link(target.as_os_str().as_bytes().to_vec())
            }));
        }
        if found.is_dir() {
            return Ok(Content::Directory);
        }
        // Opening a pipe or a device could block or worse.
        if !found.is_file() {
            return Ok(Content::Nothing);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&full, flags, Mode::empty()).map_err(io::Error::from);
        let executable = found.permissions().mode() & 0o100 != 0;
        Ok(
            present(opened, &full)?.map_or(Content::Nothing, |file| Content::File {
                file: File::from(file),
                executable,
            }),
        )
    }

    /// Whether no directory on the way to `path` is a symbolic link: what lies
    /// behind one is not in the work tree.
    fn is_reached_directly(&mut self, path: &[u8]) -> Result<bool, GitError> {
        for (position, _) in path.iter().enumerate().filter(|&(_, &byte)| byte == b'/') {
            let parent = path.get(..position).unwrap_or_default();
            if self.real.contains(parent) {
                continue;
            }
            let full = self.top.join(OsStr::from_bytes(parent));
            match present(fs::symlink_metadata(&full), &full)? {
                Some(found) if found.is_dir() => self.real.insert(parent.to_vec()),
                _ => return Ok(false),
            };
        }
        Ok(true)
    }
}

/// What was found; none when it is not there, or became a symbolic link.
fn present<T>(result: io::Result<T>, path: &Path) -> Result<Option<T>, GitError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Ok(None)
        }
        Err(error) => Err(unreadable(path)(error)),
    }
}
