//! Locks between processes: `flock` on files that are never deleted. The
//! kernel lets go of them when a process dies, however it dies.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
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
        what: what.to_owned(),
    })
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
