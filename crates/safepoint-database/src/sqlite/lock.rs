//! Locks on the bytes that SQLite locks, seen and respected by every SQLite, but
//! owned by an open file and not by the process.
//!
//! SQLite itself uses the older kind, which belongs to the process: closing any
//! file drops all of them. Ours conflict with those as they should, even within
//! one process, and end with the open file that they were taken through. Only
//! shared locks are ever taken, so that a file opened for reading is enough.

use std::fs::File;
use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// A run of bytes with a meaning in SQLite's protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    start: i64,
    length: i64,
}

const fn range(start: i64, length: i64) -> Range {
    Range { start, length }
}

/// In the database: a writer waits for the readers to go.
pub(super) const PENDING: Range = range(0x4000_0000, 1);
/// In the database: somebody prepares to write.
pub(super) const RESERVED: Range = range(0x4000_0001, 1);
/// In the database: shared by readers, taken whole by a writer.
pub(super) const SHARED: Range = range(0x4000_0002, 510);
/// In the shared memory: taken by who copies the log into the database.
pub(super) const CHECKPOINT: Range = range(121, 1);
/// In the shared memory: the second reader's place. Whoever restarts the log takes
/// all places but the first.
pub(super) const READER: Range = range(124, 1);
/// In the shared memory: shared by all that are connected.
pub(super) const CONNECTED: Range = range(128, 1);

/// Who has a range locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    Sharing,
    Alone,
}

fn describe(range: Range, kind: libc::c_int) -> libc::flock {
    // The constants are small; the fields are as narrow as C has them.
    libc::flock {
        l_type: i16::try_from(kind).unwrap_or(0),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or(0),
        l_start: range.start,
        l_len: range.length,
        l_pid: 0,
    }
}

/// Shares a range, unless somebody has it alone.
pub(super) fn try_share(file: &File, range: Range) -> io::Result<bool> {
    let lock = describe(range, libc::F_RDLCK);
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock)) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Gives a range back.
pub(super) fn release(file: &File, range: Range) -> io::Result<()> {
    let lock = describe(range, libc::F_UNLCK);
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock))?;
    Ok(())
}

/// Who else has a range locked.
pub(super) fn owner(file: &File, range: Range) -> io::Result<Owner> {
    let mut lock = describe(range, libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok(match i32::from(lock.l_type) {
        libc::F_UNLCK => Owner::Nobody,
        libc::F_RDLCK => Owner::Sharing,
        _ => Owner::Alone,
    })
}

/// Takes what a reader of the database takes, in the order in which it does: while a
/// writer waits for readers to go, no new one comes in.
pub(super) fn try_read(database: &File) -> io::Result<bool> {
    if !try_share(database, PENDING)? {
        return Ok(false);
    }
    let shared = try_share(database, SHARED);
    release(database, PENDING)?;
    shared
}

/// How much longer to wait, in pauses that grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    left: Duration,
    pause: Duration,
}

impl Patience {
    const LONGEST: Duration = Duration::from_millis(25);

    pub(super) fn new(limit: Duration) -> Self {
        Self {
            left: limit,
            pause: Duration::from_micros(100),
        }
    }

    /// Waits a little; false when there is no time left.
    pub(super) fn wait(&mut self) -> bool {
        let pause = self.pause.min(self.left);
        if pause.is_zero() {
            return false;
        }
        std::thread::sleep(pause);
        self.left -= pause;
        self.pause = (self.pause * 2).min(Self::LONGEST);
        true
    }
}
