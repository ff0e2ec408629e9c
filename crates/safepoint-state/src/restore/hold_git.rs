//! Keeping git away from a repository while its files are exchanged, by the
//! lock that git itself respects: `index.lock`.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use safepoint_store::{durable, regular};

use crate::scan::open_beneath;
use crate::set_aside::set_aside;
use crate::tree::Change;
use crate::{StateError, git_state, path};

/// The lock that git respects.
const LOCK: &str = "index.lock";
/// What our lock says, so that it can be told from git's own.
const OURS: &[u8] = b"safepoint: a roll back is at work here\n";
/// A git command that is at work is soon done.
const LONGEST: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

/// The locks that are held, each with the directory that it is in. Dropping lets go of them.
pub(super) struct Held(Vec<(OwnedFd, PathBuf)>);

impl Drop for Held {
    fn drop(&mut self) {
        for (_, lock) in &self.0 {
            // If it stays, git tells the user where it is.
            let _ = durable::remove(lock);
        }
    }
}

/// Locks every repository that the changes touch and that is there.
pub(super) fn hold(
    workspace: &Path,
    changes: &[Change],
    timeout: Duration,
) -> Result<Held, StateError> {
    // One that goes as a whole is not locked: the lock would keep it from going.
    let goes = |directory: &[u8]| {
        changes
            .iter()
            .any(|change| change.path == directory && change.to.is_none())
    };
    let mut directories: Vec<&[u8]> = changes
        .iter()
        .filter_map(|change| git_state::directory(&change.path))
        .collect();
    directories.sort_unstable();
    directories.dedup();
    directories.retain(|directory| !goes(directory));
    let mut held = Held(Vec::new());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = match openat(CWD, workspace, flags, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(held), // the directory itself is gone
        Err(error) => return Err(StateError::file("open", workspace, error)),
    };
    for directory in directories {
        // Nothing is written where a link leads: what lies there is no part of the tree.
        let Some(handle) = open_beneath(root.as_fd(), directory)? else {
            continue;
        };
        let shown = workspace.join(path::as_path(directory));
        let lock = PathBuf::from(format!("/proc/self/fd/{}/{LOCK}", handle.as_raw_fd()));
        // Git makes no such lock, and would wait for its end forever.
        set_aside(&handle, LOCK, FileType::RegularFile)
            .map_err(|error| StateError::file("move", shown.join(LOCK), error))?;
        take(&lock, &shown.join(LOCK), timeout.min(LONGEST))?;
        held.0.push((handle, lock));
    }
    Ok(held)
}

fn take(lock: &Path, shown: &Path, timeout: Duration) -> Result<(), StateError> {
    for _ in 0..=timeout.as_millis() / PAUSE.as_millis() {
        #[expect(
            clippy::disallowed_methods,
            reason = "a lock that git respects must be made the way git makes it"
        )]
        let made = File::options()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(lock);
        match made {
            Ok(mut file) => {
                return file
                    .write_all(OURS)
                    .map_err(|error| StateError::file("write", shown, error));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // Nobody else of ours is at work here: one of ours is left from a killed process.
                if is_ours(lock) {
                    return Ok(());
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(StateError::file("write", shown, error)),
        }
    }
    Err(StateError::Busy {
        what: format!("the repository of `{}`", shown.display()),
    })
}

/// Whether a lock is ours. A pipe that somebody has put there is not waited for.
fn is_ours(lock: &Path) -> bool {
    regular::read(lock, OURS.len() as u64).is_ok_and(|text| text == OURS)
}

/// Removes the locks that a killed process of ours left behind.
pub(super) fn release(workspace: &Path) {
    let mut waiting = vec![workspace.to_owned()];
    // Repositories stand near the top; a deep search would cost more than it finds.
    for _ in 0..3 {
        let mut next = Vec::new();
        for directory in std::mem::take(&mut waiting) {
            let lock = directory.join(".git/index.lock");
            if is_ours(&lock) {
                let _ = durable::remove(&lock);
            }
            let below = std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten();
            next.extend(below.map(|entry| entry.path()).filter(|path| path.is_dir()));
        }
        waiting = next;
    }
}
