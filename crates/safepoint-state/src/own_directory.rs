//! One of Safepoint's own directories in a workspace, held open.
//!
//! Whoever works in a workspace can put a link in the place of anything there, at any moment. So
//! each of these directories is opened without following a link, and what is written is written
//! relative to that handle: an exchanged path leads nowhere else.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, chmod, fstat, fsync, mkdirat, openat, openat2,
};
use rustix::io::Errno;
use safepoint_store::StoreError;
use safepoint_store::durable::{self, Access};

use crate::StateError;
use crate::set_aside::set_aside;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory of ours, held open.
#[derive(Debug)]
pub(crate) struct OwnDirectory {
    handle: OwnedFd,
    /// What it is called, for messages.
    path: PathBuf,
}

impl OwnDirectory {
    /// Opens a directory of ours in a workspace, which is made where it is not there. Git does
    /// not see what is in it.
    pub(crate) fn make(workspace: &Path, name: &str) -> Result<Self, StateError> {
        if workspace.symlink_metadata().is_err() {
            durable::create_directory(workspace).map_err(|error| unwritable(workspace, error))?;
        }
        let made = Self::root(workspace)?.inside(name)?;
        if !made.has(".gitignore") {
            durable::write(&made.at(".gitignore"), b"*\n", Access::Shared)
                .map_err(|error| unwritable(&made.path, error))?;
        }
        Ok(made)
    }

    /// The same, where a way back needs it: a link or a file in its place makes way, and a
    /// directory that was closed is opened for its owner.
    pub(crate) fn reclaim(workspace: &Path, name: &str) -> Result<Self, StateError> {
        Self::clear_way(workspace, name)?;
        if workspace.symlink_metadata().is_ok() {
            let root = Self::root(workspace)?;
            let path = root.path.join(name);
            let failed = |error: Errno| not_ours(&path, error);
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match openat(&root.handle, name, flags, Mode::empty()) {
                Ok(found) => {
                    let mode = fstat(&found).map_err(failed)?.st_mode & 0o7777;
                    if mode & 0o700 != 0o700 {
                        let found = format!("/proc/self/fd/{}", found.as_raw_fd());
                        chmod(found, Mode::from_raw_mode(mode | 0o700)).map_err(failed)?;
                    }
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Self::make(workspace, name)
    }

    /// Opens a directory of ours, if it is there.
    pub(crate) fn find(workspace: &Path, name: &str) -> Result<Option<Self>, StateError> {
        match workspace.symlink_metadata() {
            Ok(_) => Self::root(workspace)?.find_inside(name),
            Err(_) => Ok(None),
        }
    }

    /// Moves away what has the name of a directory of ours in a workspace and is none. Names move
    /// by it: only for whoever may move them.
    pub(crate) fn clear_way(workspace: &Path, name: &str) -> Result<(), StateError> {
        if workspace.symlink_metadata().is_err() {
            return Ok(());
        }
        let root = Self::root(workspace)?;
        set_aside(&root.handle, name, FileType::Directory)
            .map_err(|error| StateError::file("move", workspace.join(name), error))
    }

    fn root(workspace: &Path) -> Result<Self, StateError> {
        let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, workspace, DIRECTORY, Mode::empty(), links) {
            Ok(handle) => Ok(Self {
                handle,
                path: workspace.to_owned(),
            }),
            Err(error) => Err(not_ours(workspace, error)),
        }
    }

    /// Opens a directory in this one, which is made where it is not there.
    pub(crate) fn inside(&self, name: &str) -> Result<Self, StateError> {
        if let Some(found) = self.find_inside(name)? {
            return Ok(found);
        }
        let path = self.path.join(name);
        let failed = |error: Errno| {
            let error = StoreError::file("create the directory", &path, error.into());
            unwritable(&path, error)
        };
        match mkdirat(&self.handle, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => fsync(&self.handle).map_err(failed)?,
            // Somebody else was faster.
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let found = self.find_inside(name)?;
        found.ok_or_else(|| not_ours(&path, Errno::NOENT))
    }

    /// Opens a directory in this one, if it is there.
    pub(crate) fn find_inside(&self, name: &str) -> Result<Option<Self>, StateError> {
        let path = self.path.join(name);
        match openat(&self.handle, name, DIRECTORY, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { handle, path })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(not_ours(&path, error)),
        }
    }

    /// A path that leads to a name in this directory, wherever the directory is by now.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd())).join(name)
    }

    /// What it is called.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The handle itself.
    pub(crate) fn into_handle(self) -> OwnedFd {
        self.handle
    }

    fn has(&self, name: &str) -> bool {
        self.at(name).symlink_metadata().is_ok()
    }

    /// Opens a file in it to which lines are added. A link, a pipe or a file with other names is
    /// not ours.
    pub(crate) fn append(&self, name: &str) -> Result<File, StateError> {
        let path = self.path.join(name);
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let opened = openat(&self.handle, name, flags, mode);
        let handle = opened.map_err(|error| not_ours(&path, error))?;
        let file = File::from(handle);
        let status = fstat(&file).map_err(|error| StateError::file("read", &path, error))?;
        let is_file = FileType::from_raw_mode(status.st_mode).is_file();
        match is_file && status.st_nlink == 1 {
            true => Ok(file),
            false => Err(not_ours(&path, Errno::LOOP)),
        }
    }
}

fn not_ours(path: &Path, error: Errno) -> StateError {
    match error {
        Errno::LOOP | Errno::NOTDIR => {
            let path = path.to_owned();
            StateError::NotOurs { path }
        }
        error => StateError::file("use", path, error),
    }
}

/// What may not be made at `path` lies in a directory of the user's, and not in the store.
pub(crate) fn unwritable(path: &Path, error: StoreError) -> StateError {
    let mut above = path.ancestors().skip(1);
    match (error, above.find(|above| above.is_dir())) {
        (StoreError::ReadOnly { cause, .. }, Some(directory)) => StateError::Unwritable {
            directory: directory.to_owned(),
            cause,
        },
        (error, _) => error.into(),
    }
}
