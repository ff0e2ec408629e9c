//! Keeping git away from a repository while its files are exchanged, by the
//! lock that git itself respects: `index.lock`. One that nobody holds keeps git away as well: it
//! is left where it is, and does not stop the way back.

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

/// The locks that are held. Dropping lets go of them.
#[derive(Default)]
pub(super) struct Held {
    /// Each with the directory that it is in.
    locks: Vec<(OwnedFd, PathBuf)>,
    /// Those of others that nobody holds any more.
    abandoned: Vec<PathBuf>,
}

impl Held {
    /// What is to be known of the locks of others.
    pub(super) fn warnings(&self) -> Vec<String> {
        let one = |lock: &PathBuf| {
            format!(
                "`{}` stays: nobody holds it, and git refuses to work there until it is deleted",
                lock.display()
            )
        };
        self.abandoned.iter().map(one).collect()
    }
}

/// What came of an attempt to take a lock.
enum Taken {
    Ours,
    /// Whoever made it is gone.
    Abandoned,
    /// Nobody can make one there, git neither.
    Impossible,
}

impl Drop for Held {
    fn drop(&mut self) {
        for (_, lock) in &self.locks {
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
    // One that goes as a whole, or becomes a file, is not locked: the lock would keep it from
    // going.
    let goes = |directory: &[u8]| {
        changes.iter().any(|change| {
            let stays = change.to.as_ref().is_some_and(|to| to.subtree().is_some());
            change.path == directory && !stays
        })
    };
    let mut directories: Vec<&[u8]> = changes
        .iter()
        .filter_map(|change| git_state::directory(&change.path))
        .collect();
    directories.sort_unstable();
    directories.dedup();
    directories.retain(|directory| !goes(directory));
    let mut held = Held::default();
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
        let shown = shown.join(LOCK);
        // Git makes no such lock, and would wait for its end forever.
        set_aside(&handle, LOCK, FileType::RegularFile)
            .map_err(|error| StateError::file("move", &shown, error))?;
        match take(&lock, workspace, &shown, timeout.min(LONGEST))? {
            Taken::Ours => held.locks.push((handle, lock)),
            Taken::Abandoned => held.abandoned.push(shown),
            Taken::Impossible => {}
        }
    }
    Ok(held)
}

fn take(
    lock: &Path,
    workspace: &Path,
    shown: &Path,
    timeout: Duration,
) -> Result<Taken, StateError> {
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
                return match file.write_all(OURS) {
                    Ok(()) => Ok(Taken::Ours),
                    Err(error) => Err(StateError::file("write", shown, error)),
                };
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // Nobody else of ours is at work here: one of ours is left from a killed process.
                if is_ours(lock) {
                    return Ok(Taken::Ours);
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Ok(Taken::Impossible);
            }
            Err(error) => return Err(StateError::file("write", shown, error)),
        }
    }
    match is_held(workspace, shown) {
        true => Err(StateError::Busy {
            what: format!("the repository of `{}`", shown.display()),
        }),
        false => Ok(Taken::Abandoned),
    }
}

/// Whether any process has a lock open, or is git and works in the workspace: git closes its lock
/// while it waits for an editor. One of which that cannot be seen counts as one that does.
fn is_held(workspace: &Path, lock: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return true;
    };
    let own = std::process::id().to_string();
    processes.flatten().any(|process| {
        let name = process.file_name();
        let is_process = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if !is_process || name == own.as_str() {
            return false;
        }
        let place = process.path();
        let is_git = std::fs::read(place.join("comm")).is_ok_and(|name| name.starts_with(b"git"));
        let works_here = || match std::fs::read_link(place.join("cwd")) {
            Ok(directory) => directory.starts_with(workspace),
            Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        };
        let has_open = || {
            let open = std::fs::read_dir(place.join("fd"));
            let mut open = open.into_iter().flatten().flatten();
            open.any(|one| std::fs::read_link(one.path()).is_ok_and(|path| path == lock))
        };
        is_git && works_here() || has_open()
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
