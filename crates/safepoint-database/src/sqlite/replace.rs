//! A file put where no database is: where there is nothing, or something that SQLite
//! cannot read any more.
//!
//! A temporary file in the same directory, written, synced and renamed. What an older
//! database left beside it (`-wal`, `-shm`, `-journal`) would be taken for part of the
//! new one; so it is moved aside before, and removed afterwards.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

use super::error::Place;
use super::lock::{self, Owner, Patience};
use super::parked::{self, beside};
use super::stored::Stored;
use super::wal::read_some;
use crate::DatabaseError;

/// Whether a file was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Yes,
    /// Somebody else made one there.
    Occupied,
}

/// Makes a database where there is nothing.
pub(super) fn create(path: &Path, stored: &Stored) -> Result<Made, DatabaseError> {
    let failed = |error: io::Error| DatabaseError::file("write", path, error);
    std::fs::create_dir_all(directory(path)).map_err(failed)?;
    let file = write(path, stored, Permissions::from_mode(0o644)).map_err(failed)?;
    let aside = Aside::of(path).map_err(failed)?;
    match file.persist_noclobber(path) {
        Ok(_) => {}
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => {
            aside.put_back();
            return Ok(Made::Occupied);
        }
        Err(error) => {
            aside.put_back();
            return Err(failed(error.error));
        }
    }
    sync(path).map_err(failed)?;
    aside.remove();
    Ok(Made::Yes)
}

/// Replaces a file that is no database, when nobody has it open as one.
pub(super) fn replace(
    path: &Path,
    stored: &Stored,
    timeout: Duration,
    place: Place<'_>,
) -> Result<(), DatabaseError> {
    let failed = |error: io::Error| DatabaseError::file("write", path, error);
    let old = File::open(path).map_err(failed)?;
    let found = old.metadata().map_err(failed)?;
    let mut patience = Patience::new(timeout);
    let free = loop {
        match lock::owner(&old, lock::SHARED) {
            Ok(Owner::Nobody) => break Ok(true),
            Ok(_) if patience.wait() => {}
            Ok(_) => break Ok(false),
            Err(error) => break Err(error),
        }
    };
    parked::close(old);
    if !free.map_err(failed)? {
        return Err(place.locked());
    }
    let file = write(path, stored, Permissions::from_mode(0o600)).map_err(failed)?;
    let ours = file.as_file().metadata().map_err(failed)?;
    if (ours.uid(), ours.gid()) != (found.uid(), found.gid()) {
        std::os::unix::fs::fchown(file.as_file(), Some(found.uid()), Some(found.gid()))
            .map_err(failed)?;
    }
    file.as_file()
        .set_permissions(Permissions::from_mode(found.mode() & 0o7777))
        .map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let aside = Aside::of(path).map_err(failed)?;
    if let Err(error) = file.persist(path) {
        aside.put_back();
        return Err(failed(error.error));
    }
    sync(path).map_err(failed)?;
    aside.remove();
    Ok(())
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Writes the database beside its place, as it was captured.
fn write(path: &Path, stored: &Stored, permissions: Permissions) -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new()
        .prefix(".safepoint-")
        .permissions(permissions)
        .tempfile_in(directory(path))?;
    let mut buffer = vec![0; 256 * 1024];
    let mut at = 0;
    loop {
        let count = read_some(stored.file(), &mut buffer, at)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        file.as_file().write_all_at(bytes, at)?;
        at += count as u64;
        if count < buffer.len() {
            break;
        }
    }
    if at > 0 {
        file.as_file().write_all_at(&stored.mode(), 18)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Files of an older database that were moved aside.
struct Aside(Vec<(PathBuf, PathBuf)>);

#[expect(
    clippy::disallowed_methods,
    reason = "files beside a user's database are moved and removed here, and nowhere else"
)]
impl Aside {
    fn of(path: &Path) -> io::Result<Self> {
        let mut aside = Self(Vec::new());
        for suffix in ["-journal", "-wal", "-shm"] {
            let old = beside(path, suffix);
            let new = beside(path, &format!(".safepoint-old{suffix}"));
            match std::fs::rename(&old, &new) {
                Ok(()) => aside.0.push((old, new)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    aside.put_back();
                    return Err(error);
                }
            }
        }
        Ok(aside)
    }

    fn put_back(&self) {
        for (old, new) in &self.0 {
            let _ = std::fs::rename(new, old);
        }
    }

    fn remove(&self) {
        for (_, new) in &self.0 {
            let _ = std::fs::remove_file(new);
        }
    }
}
