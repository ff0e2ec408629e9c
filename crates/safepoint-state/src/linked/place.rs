//! A git directory that lies elsewhere, as a handle: what is written there is written below it.
//!
//! Whoever works in a linked work tree can write its git directory, and put links there. So each
//! name on the way is opened below the one before, and none that is a link. Files are written
//! through the handle of their directory, by the one module that writes files.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use safepoint_store::durable::{self, Access};

use crate::StateError;
use crate::path;

/// A directory, without links on the way to it.
pub(super) struct GitPlace {
    handle: OwnedFd,
    path: PathBuf,
}

impl GitPlace {
    /// Opens a directory by its path. A link on the way is an error.
    pub(super) fn open(directory: &Path) -> Result<Self, StateError> {
        let failed = |error: Errno| StateError::file("open", directory, error);
        let mut handle = open(CWD, b"/").map_err(failed)?;
        for part in directory.components() {
            match part {
                Component::RootDir => {}
                Component::Normal(name) => {
                    handle = open(&handle, name.as_bytes()).map_err(failed)?;
                }
                _ => return Err(failed(Errno::INVAL)),
            }
        }
        Ok(Self {
            handle,
            path: directory.to_owned(),
        })
    }

    /// The same; none where it is not there, or a link is.
    pub(super) fn find(directory: &Path) -> Result<Option<Self>, StateError> {
        match Self::open(directory) {
            Err(StateError::File { error, .. }) if is_absence(&error) => Ok(None),
            other => other.map(Some),
        }
    }

    /// A directory in this one; none where it is not there, or a link is.
    pub(super) fn child(&self, name: &[u8]) -> Result<Option<Self>, StateError> {
        let path = self.path.join(path::as_path(name));
        match open(&self.handle, name) {
            Ok(handle) => Ok(Some(Self { handle, path })),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(self.failed(name, error)),
        }
    }

    /// What is in it, by name.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>, StateError> {
        let failed = |error: Errno| StateError::file("list", &self.path, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(&self.handle, ".", flags, Mode::empty()).map_err(failed)?;
        let mut names = Vec::new();
        for found in Dir::new(readable).map_err(failed)? {
            let name = found.map_err(failed)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether a directory has this name.
    pub(super) fn is_directory(&self, name: &[u8]) -> bool {
        statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    }

    /// The mode and the content of a file; none where it is not there, or something else is.
    pub(super) fn read(
        &self,
        name: &[u8],
        most: u64,
    ) -> Result<Option<(u32, Vec<u8>)>, StateError> {
        let failed = |error: std::io::Error| {
            let path = self.path.join(path::as_path(name));
            Err(StateError::file("read", path, error))
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(file) => std::fs::File::from(file),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(error) => return failed(error.into()),
        };
        let found = match file.metadata() {
            Ok(found) if found.is_file() => found,
            Ok(_) => return Ok(None),
            Err(error) => return failed(error),
        };
        let mut bytes = Vec::new();
        match file.take(most.saturating_add(1)).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 <= most => {
                Ok(Some((found.permissions().mode() & 0o777, bytes)))
            }
            Ok(_) => failed(std::io::ErrorKind::FileTooLarge.into()),
            Err(error) => failed(error),
        }
    }

    fn failed(&self, inner: &[u8], error: Errno) -> StateError {
        StateError::file("open", self.path.join(path::as_path(inner)), error)
    }

    /// The directory that a path below this one lies in; none where it is not there.
    fn parent(&self, inner: &[u8], missing: Missing) -> Result<Option<OwnedFd>, StateError> {
        let (above, _) = path::split(inner);
        let mut handle = open(&self.handle, b".").map_err(|error| self.failed(inner, error))?;
        for name in path::names(above) {
            handle = match open(&handle, name) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if missing == Missing::Make => {
                    make(&handle, name).map_err(|error| self.failed(inner, error))?
                }
                Err(Errno::NOENT) => return Ok(None),
                other => other.map_err(|error| self.failed(inner, error))?,
            };
        }
        Ok(Some(handle))
    }

    /// Writes a file and, if one is given, its mode. What stands under its name is replaced.
    pub(super) fn write(
        &self,
        inner: &[u8],
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<(), StateError> {
        let Some(parent) = self.parent(inner, Missing::Make)? else {
            return Err(self.failed(inner, Errno::NOENT));
        };
        let (_, name) = path::split(inner);
        durable::write(&through(&parent, name), bytes, Access::Shared)?;
        if let Some(mode) = mode {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            openat(&parent, name, flags, Mode::empty())
                .and_then(|file| fchmod(file, Mode::from_raw_mode(mode)))
                .map_err(|error| self.failed(inner, error))?;
        }
        Ok(())
    }

    /// Deletes a file, or the link in its place.
    pub(super) fn remove(&self, inner: &[u8]) -> Result<(), StateError> {
        match self.parent(inner, Missing::Leave)? {
            Some(parent) => Ok(durable::remove(&through(&parent, path::split(inner).1))?),
            None => Ok(()),
        }
    }

    /// Deletes a directory that nothing is in.
    pub(super) fn remove_directory(&self, inner: &[u8]) -> Result<(), StateError> {
        if let Some(parent) = self.parent(inner, Missing::Leave)? {
            // Something else may have come into it.
            let _ = std::fs::remove_dir(through(&parent, path::split(inner).1));
        }
        Ok(())
    }

    /// Makes a directory and those above it.
    pub(super) fn make_directory(&self, inner: &[u8]) -> Result<(), StateError> {
        self.parent(&path::join(inner, b"."), Missing::Make)
            .map(drop)
    }
}

/// Makes a directory. A link in its place goes; what it leads to is not touched.
fn make(above: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    match statat(above, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Symlink => {
            unlinkat(above, name, AtFlags::empty())?;
        }
        Ok(_) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error),
    }
    match mkdirat(above, name, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => open(above, name),
        Err(error) => Err(error),
    }
}

fn is_absence(error: &std::io::Error) -> bool {
    let kinds = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(|it| it.raw_os_error());
    error.raw_os_error().is_some_and(|it| kinds.contains(&it))
}

/// What is done about a directory that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Leave,
    Make,
}

fn open(above: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(above, name, flags, Mode::empty())
}

/// A path to a name in a directory that is held, wherever that is moved.
fn through(directory: &OwnedFd, name: &[u8]) -> PathBuf {
    let held = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    held.join(path::as_path(name))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "files of others")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn fe_05_nothing_is_written_through_a_link_in_a_git_directory() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for name in ["git", "git/real", "out"] {
            fs::create_dir(place.join(name)).unwrap();
        }
        fs::write(place.join("out/file"), "theirs").unwrap();
        symlink(place.join("out"), place.join("git/d")).unwrap();
        symlink(place.join("out/file"), place.join("git/f")).unwrap();
        symlink(place.join("git"), place.join("link")).unwrap();
        let git = GitPlace::open(&place.join("git")).unwrap();
        assert!(git.remove(b"d/file").is_err());
        assert!(GitPlace::open(&place.join("link")).is_err());
        // Nor is anything read through one.
        assert!(git.read(b"f", 9).unwrap().is_none() && git.child(b"d").unwrap().is_none());
        assert!(GitPlace::find(&place.join("link")).unwrap().is_none());
        // A link in the way is replaced, and what it led to is not touched.
        git.write(b"d/deeper/file", b"ours", None).unwrap();
        git.write(b"d/file", b"ours", None).unwrap();
        assert_eq!(fs::read(place.join("git/d/file")).unwrap(), b"ours");
        git.write(b"f", b"ours", Some(0o640)).unwrap();
        assert_eq!(fs::read(place.join("out/file")).unwrap(), b"theirs");
        git.write(b"real/new/file", b"ours", Some(0o755)).unwrap();
        let made = place.join("git/real/new/file");
        assert_eq!(fs::read(&made).unwrap(), b"ours");
        let mode = fs::metadata(&made).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        git.remove(b"real/new/file").unwrap();
        git.remove_directory(b"real/new").unwrap();
        git.remove(b"absent/file").unwrap();
        assert!(!place.join("git/real/new").exists());
        assert_eq!(fs::read_dir(place.join("out")).unwrap().count(), 1);
    }
}
