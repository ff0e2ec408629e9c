//! Files that must not be closed yet.
//!
//! When a process closes a file, the kernel drops all locks that the process has
//! on it, through whatever file they were taken. SQLite lives with locks of that
//! kind. So as long as a connection of this process is open on a database, no
//! other file of ours on it may be closed: it is put aside here until the last
//! connection is gone.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A file, whatever it is called: device and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity(u64, u64);

impl Identity {
    pub(super) fn of(found: &Metadata) -> Self {
        Self(found.dev(), found.ino())
    }
}

struct Place {
    shared_memory: PathBuf,
    connections: usize,
    files: Vec<File>,
}

impl Place {
    /// SQLite's locks are on the database and on its shared memory.
    fn has_locks_on(&self, database: Identity, file: Identity) -> bool {
        database == file
            || std::fs::metadata(&self.shared_memory)
                .is_ok_and(|found| Identity::of(&found) == file)
    }
}

static PLACES: Mutex<BTreeMap<Identity, Place>> = Mutex::new(BTreeMap::new());

fn places() -> MutexGuard<'static, BTreeMap<Identity, Place>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, this process has a connection to the database. It is made before the
/// connection and dropped after it.
#[derive(Debug)]
pub(super) struct Connected(Identity);

impl Connected {
    pub(super) fn to(database: Identity, path: &Path) -> Self {
        let mut places = places();
        let place = places.entry(database).or_insert_with(|| Place {
            shared_memory: beside(path, "-shm"),
            connections: 0,
            files: Vec::new(),
        });
        place.connections += 1;
        Self(database)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut places = places();
        if let Some(place) = places.get_mut(&self.0) {
            place.connections = place.connections.saturating_sub(1);
            if place.connections == 0 {
                places.remove(&self.0);
            }
        }
    }
}

/// The file that SQLite keeps beside a database: `-wal`, `-shm`, `-journal`.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Closes a file that may be a database or its shared memory, as soon as that drops the
/// locks of no connection of this process.
///
/// Whoever reads users' files in a process that also changes databases must close them
/// here, not by dropping them.
pub fn close(file: File) {
    let Ok(found) = file.metadata() else {
        return;
    };
    let identity = Identity::of(&found);
    let mut places = places();
    let place = places
        .iter_mut()
        .find(|(database, place)| place.has_locks_on(**database, identity));
    match place {
        Some((_, place)) => place.files.push(file),
        // Under the mutex: no connection is made in between.
        None => drop(file),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    fn is_open(descriptor: i32) -> bool {
        std::fs::read_link(format!("/proc/self/fd/{descriptor}"))
            .is_ok_and(|target| target.to_string_lossy().contains("parked-test"))
    }

    #[test]
    fn a_file_is_closed_after_the_last_connection() {
        let mut made = tempfile::Builder::new()
            .prefix("parked-test")
            .tempfile()
            .unwrap();
        let identity = Identity::of(&made.as_file().metadata().unwrap());
        let first = Connected::to(identity, made.path());
        let second = Connected::to(identity, made.path());
        let file = made.reopen().unwrap();
        let descriptor = file.as_raw_fd();
        close(file);
        drop(first);
        assert!(is_open(descriptor));
        drop(second);
        assert!(!is_open(descriptor));
        let file = made.reopen().unwrap();
        let descriptor = file.as_raw_fd();
        close(file);
        assert!(!is_open(descriptor));
        made.read_to_end(&mut Vec::new()).unwrap();
    }
}
