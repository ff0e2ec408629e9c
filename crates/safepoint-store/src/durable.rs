//! Files that are there whole, or not at all.
//!
//! A temporary file in the same directory, written, synced, renamed over the
//! name, and the directory synced: after a crash at any instant either the
//! old or the new content stands under the name.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{StoreError, fault};

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Its owner alone: keys, trails, contents of other people's files.
    Private,
    /// Whoever the umask lets.
    Shared,
}

/// Writes `bytes` under `path`, replacing what is there.
pub fn write(path: &Path, bytes: &[u8], access: Access) -> Result<(), StoreError> {
    let mut replacement = Replacement::begin(path, access)?;
    replacement.write(bytes)?;
    replacement.finish()
}

/// A file that is being written beside the one it will replace. Dropped before
/// [`Replacement::finish`], it leaves nothing behind.
#[derive(Debug)]
pub struct Replacement {
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    finished: bool,
}

impl Replacement {
    /// Begins to write what will stand under `path`.
    pub fn begin(path: &Path, access: Access) -> Result<Self, StoreError> {
        let mode = match access {
            Access::Private => 0o600,
            Access::Shared => 0o666,
        };
        let (file, temporary) = loop {
            let temporary = temporary_beside(path);
            #[expect(clippy::disallowed_methods, reason = "this is the one place")]
            let made = File::options()
                .write(true)
                .create_new(true)
                .mode(mode)
                .open(&temporary);
            match made {
                Ok(file) => break (file, temporary),
                // Left behind by a dead process that had our number: take the next name.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(StoreError::file("write", path, error)),
            }
        };
        Ok(Self {
            file: BufWriter::new(file),
            temporary,
            path: path.to_owned(),
            finished: false,
        })
    }

    /// Adds to the content.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file
            .write_all(bytes)
            .map_err(|error| StoreError::file("write", &self.path, error))
    }

    /// Puts the content under its name. Durable when it returns.
    pub fn finish(mut self) -> Result<(), StoreError> {
        self.file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .map_err(|error| StoreError::file("write", &self.path, error))?;
        fault::point("file.written");
        rename(&self.temporary, &self.path)?;
        self.finished = true;
        fault::point("file.renamed");
        sync_directory(parent(&self.path))
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.finished {
            remove_quietly(&self.temporary);
        }
    }
}

/// Makes an empty file for its owner alone, unless something is there already.
pub fn create_empty(path: &Path) -> Result<(), StoreError> {
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    let created = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Ok(_) => sync_directory(parent(path)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::file("create", path, error)),
    }
}

/// Makes `path` and what is missing above it, for its owner alone, and syncs each new name.
pub fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path);
    if above != path {
        create_directory(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => sync_directory(above),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(StoreError::file("create the directory", path, error)),
    }
}

/// Deletes a file, durably. One that is not there is deleted already.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Ok(()) => sync_directory(parent(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::file("delete", path, error)),
    }
}

/// Syncs the names in a directory.
pub fn sync_directory(path: &Path) -> Result<(), StoreError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| StoreError::file("sync the directory", path, error))
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn rename(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to).map_err(|error| StoreError::file("write", to, error))
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn remove_quietly(path: &Path) {
    // The write has failed already, and that is what the caller hears of.
    let _ = fs::remove_file(path);
}

/// The directory that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => path,
    }
}

/// A name that no other thread or process uses.
fn temporary_beside(path: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{number}.tmp", std::process::id()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("deep/er/file");
        create_directory(path.parent().unwrap()).unwrap();
        write(&path, b"one", Access::Private).unwrap();
        write(&path, b"two", Access::Private).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_changes_nothing() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("target");
        fs::create_dir(&path).unwrap(); // a rename onto a directory fails
        let error = write(&path, b"x", Access::Private).unwrap_err();
        assert!(error.to_string().contains("target"), "{error}");
        assert_eq!(fs::read_dir(room.path()).unwrap().count(), 1);
    }
}
