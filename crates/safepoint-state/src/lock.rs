//! Locks between processes: `flock` on files that are never deleted. The
//! kernel lets go of them when a process dies, however it dies.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StateError;

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Together with others who hold it so.
    Shared,
    /// By nobody else at all.
    Alone,
}

/// Between two tries. Waiting costs nothing but this much of being late.
const PAUSE: Duration = Duration::from_millis(5);

/// Takes the lock of the file `path`, and waits for at most `timeout`. Dropping the file lets go.
pub(crate) fn take(
    path: &Path,
    hold: Hold,
    timeout: Duration,
    what: &str,
) -> Result<File, StateError> {
    let file = open(path)?;
    let tries = timeout.as_millis() / PAUSE.as_millis() + 1;
    for attempt in 0..tries {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        if try_lock(&file, path, hold)? {
            return Ok(file);
        }
    }
    Err(StateError::Busy {
        what: match holder(&file) {
            Some(holder) => format!("{what} ({holder})"),
            None => what.to_owned(),
        },
    })
}

/// Who has the lock, as far as the kernel tells.
fn holder(file: &File) -> Option<String> {
    let inode = file.metadata().ok()?.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let process = locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, "FLOCK", _, _, process, place, ..] => {
                let (_, number) = place.rsplit_once(':')?;
                (number == inode).then_some(*process)
            }
            _ => None,
        }
    })?;
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(format!("by `{}`, process {process}", name.trim_end()))
}

/// Takes the lock if nobody has it.
pub(crate) fn try_take(path: &Path, hold: Hold) -> Result<Option<File>, StateError> {
    let file = open(path)?;
    Ok(try_lock(&file, path, hold)?.then_some(file))
}

fn try_lock(file: &File, path: &Path, hold: Hold) -> Result<bool, StateError> {
    let operation = match hold {
        Hold::Shared => FlockOperation::NonBlockingLockShared,
        Hold::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(error) => Err(StateError::file("lock", path, error)),
    }
}

fn open(path: &Path) -> Result<File, StateError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a lock file has no content that could be half-written"
    )]
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| StateError::file("open", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_32_who_waits_for_a_lock_hears_who_has_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lock");
        let held = take(&path, Hold::Alone, Duration::ZERO, "`w`").unwrap();
        let told = take(&path, Hold::Alone, Duration::ZERO, "`w`").unwrap_err();
        let process = format!("process {})", std::process::id());
        assert!(told.to_string().contains(&process), "{told}");
        drop(held);
        take(&path, Hold::Alone, Duration::ZERO, "`w`").unwrap();
    }
}
