//! The sockets that a session has bound: what one of its actions has started, the next may reach.
//!
//! Each supervisor keeps a file in the registry of its session, with the cookies of the sockets
//! that its tree has bound, and holds a lock on it for as long as it lives. A file that nobody
//! holds is left over, and is deleted by whoever finds it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Tells the files of one process apart.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// The sockets of a session, seen from one of its supervisors.
#[derive(Debug)]
pub(super) struct Registry {
    directory: PathBuf,
    own: Mutex<OwnSockets>,
}

#[derive(Debug, Default)]
struct OwnSockets {
    cookies: BTreeSet<u64>,
    /// Made with the first socket.
    file: Option<(PathBuf, File)>,
}

impl Registry {
    pub(super) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            own: Mutex::default(),
        }
    }

    /// Remembers a socket that the tree binds.
    pub(super) fn add(&self, cookie: u64) -> Result<(), Errno> {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if !own.cookies.insert(cookie) {
            return Ok(());
        }
        if own.file.is_none() {
            own.file = Some(self.create().map_err(|error| errno(&error))?);
        }
        let Some((_, file)) = &mut own.file else {
            return Ok(());
        };
        writeln!(file, "{cookie}").map_err(|error| errno(&error))
    }

    /// Whether these are all sockets of the session. There must be one.
    pub(super) fn has_all(&self, cookies: &[u64]) -> bool {
        let mut unknown: BTreeSet<u64> = cookies.iter().copied().collect();
        if unknown.is_empty() {
            return false;
        }
        {
            let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            unknown.retain(|cookie| !own.cookies.contains(cookie));
        }
        if !unknown.is_empty() {
            let others = self.of_others();
            unknown.retain(|cookie| !others.contains(cookie));
        }
        unknown.is_empty()
    }

    fn create(&self) -> std::io::Result<(PathBuf, File)> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        loop {
            let number = COUNTER.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", std::process::id());
            let path = self.directory.join(name);
            #[expect(
                clippy::disallowed_methods,
                reason = "kept for as long as this process lives, and found by its lock"
            )]
            let file = File::options()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            // Whoever had this name before is gone, and so are its sockets.
            file.set_len(0)?;
            // Before it was locked, another supervisor may have taken it for one that was left.
            if file.metadata()?.nlink() > 0 {
                return Ok((path, file));
            }
        }
    }

    fn of_others(&self) -> BTreeSet<u64> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(&self.directory).into_iter().flatten() {
            let Ok(entry) = entry else { continue };
            let Ok(mut file) = File::open(entry.path()) else {
                continue;
            };
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => {}
                Ok(()) => {
                    remove(&entry.path());
                    continue;
                }
                Err(_) => continue,
            }
            let mut text = String::new();
            if file.read_to_string(&mut text).is_ok() {
                found.extend(text.lines().filter_map(|line| line.parse::<u64>().ok()));
            }
        }
        found
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, _)) = &own.file {
            remove(path);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a file of ours that nobody holds any more"
)]
fn remove(path: &std::path::Path) {
    let _ = std::fs::remove_file(path);
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_10_what_one_supervisor_has_seen_bound_the_others_of_its_session_know() {
        let place = tempfile::tempdir().unwrap();
        let session = place.path().join("session");
        let (one, other) = (Registry::new(session.clone()), Registry::new(session));
        assert!(!one.has_all(&[]) && !one.has_all(&[7]));
        one.add(7).unwrap();
        other.add(8).unwrap();
        assert!(one.has_all(&[7]) && other.has_all(&[7, 8]) && !other.has_all(&[7, 9]));
        let stranger = Registry::new(place.path().join("another"));
        assert!(!stranger.has_all(&[7]));
        drop(one);
        assert!(!other.has_all(&[7]) && other.has_all(&[8]));
    }

    #[test]
    fn fe_10_what_a_dead_supervisor_left_counts_for_nothing() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join("1-0");
        #[expect(clippy::disallowed_methods, reason = "what a killed process left")]
        std::fs::write(&left, "7\n").unwrap();
        let registry = Registry::new(place.path().to_owned());
        assert!(!registry.has_all(&[7]));
        assert!(!left.exists());
    }
}
