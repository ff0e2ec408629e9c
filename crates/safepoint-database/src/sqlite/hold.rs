//! A database file held still while its bytes are read, without SQLite and without
//! a trace in its directory.
//!
//! Opening a database through SQLite is no mere reading: it makes `-wal` and `-shm`,
//! and closing it copies the log into the database and removes it. Here nothing is
//! opened but for reading, and nothing is done but to share locks that SQLite knows.
//!
//! # Why what is read fits together
//!
//! **Rollback journal.** Writers change the database only while they have all of
//! `SHARED` to themselves. As long as we share it, the file stays as the last commit
//! left it; so does a journal that a dead writer left behind (a hot one), because
//! rolling it back needs the same lock. A journal of a living writer holds pages as they
//! are in the file anyway.
//!
//! **Write-ahead log.** Two things change the database file: a checkpoint, which has
//! `CHECKPOINT` in the shared memory to itself, and the last connection on closing or a
//! change of the journal mode, which need all of `SHARED`. We share both, so the file
//! stays, whatever part of the log has been copied into it already.
//!
//! The log only grows, unless a writer finds that all of it has been copied, and begins
//! again at its start. For that it takes all places of readers but the first; we share
//! `READER`, which is one of them. It may have done so just before us and write the
//! first frames just now. Then the index says that no frame is committed, and that is
//! the state we give: the database file alone, complete, because only a log that was
//! copied whole is begun again. Frames that the index counts stay as they are while we
//! hold: appending does not touch them.
//!
//! So the pages of the counted frames, laid over the file, are the database as of the
//! last commit before we looked: what is older than a frame and was copied is hidden by
//! the frame, and what was copied from it is equal to it.
//!
//! The index is believed only while somebody is connected (shares `CONNECTED`). What a
//! crash left behind may be older than the log. Then the log is followed by its
//! checksums, as SQLite does when it recovers. Recovering needs `CHECKPOINT`, and
//! nobody can write before it is done; so the log stays as it is.
//!
//! **No shared memory.** Then nobody is connected, and there is nothing to lock in. Who
//! connects meanwhile makes that file, and cannot remove it while we share `SHARED`. So
//! whoever has read asks [`Held::is_intact`] afterwards, and reads again if it is not.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::lock::{self, Owner, Patience};
use super::parked::{self, Identity, beside};
use super::view::View;
use super::wal::{self, Frames, Index, Log, array, read_some};
use crate::DatabaseError;

/// How a database begins.
pub(super) const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// A database that is held still. It is let go when this is dropped.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    main: Option<File>,
    shared_memory: Option<File>,
    log: Option<(File, Frames)>,
    is_wal: bool,
    has_hot_journal: bool,
}

/// What came of trying to hold a database.
enum Attempt {
    Done(Held),
    /// It is no database.
    No,
    /// Somebody is in the way.
    Busy,
    /// The log is not what its index says. When that lasts, one of them is damaged.
    Unsettled,
}

/// Holds the database at `path` still; `None` when there is a file, but it does not begin
/// as a SQLite database does. Waits up to `timeout` for others.
pub fn hold(path: &Path, timeout: Duration) -> Result<Option<Held>, DatabaseError> {
    let mut patience = Patience::new(timeout);
    loop {
        let attempt = try_hold(path).map_err(|error| DatabaseError::file("read", path, error))?;
        match attempt {
            Attempt::Done(held) => return Ok(Some(held)),
            Attempt::No => return Ok(None),
            Attempt::Busy | Attempt::Unsettled if patience.wait() => {}
            Attempt::Busy => {
                return Err(DatabaseError::Locked {
                    address: format!("sqlite:{}", path.display()),
                });
            }
            Attempt::Unsettled => {
                return Err(DatabaseError::Unsupported {
                    address: format!("sqlite:{}", path.display()),
                    why: "its write-ahead log and its shared memory do not fit together".into(),
                });
            }
        }
    }
}

fn try_hold(path: &Path) -> io::Result<Attempt> {
    // From here on, what was opened is closed by `Held`, with care.
    let mut held = Held {
        path: path.to_owned(),
        main: None,
        shared_memory: None,
        log: None,
        is_wal: false,
        has_hot_journal: false,
    };
    let main = held.main.insert(open(path)?);
    let found = main.metadata()?;
    if !found.is_file() || read_header(main)?.is_none() {
        return Ok(Attempt::No);
    }
    if !lock::try_read(main)? {
        return Ok(Attempt::Busy);
    }
    // The mode may have changed before we had the lock; now it cannot.
    let Some(header) = read_header(main)? else {
        return Ok(Attempt::No);
    };
    let log = open_if_there(&beside(path, "-wal"))?;
    held.is_wal = header.get(18..20) == Some(&[2, 2]) || log.is_some();
    if held.is_wal
        && let Some(obstacle) = held.hold_log(log)?
    {
        return Ok(obstacle);
    }
    held.has_hot_journal = held.find_hot_journal()?;
    // Another file of this name would have another log.
    let now = std::fs::metadata(path)?;
    Ok(match Identity::of(&now) == Identity::of(&found) {
        true => Attempt::Done(held),
        false => Attempt::Busy,
    })
}

impl Held {
    /// Shares what keeps the log from being copied or begun again, and reads it. Gives
    /// what is in the way, if anything is.
    fn hold_log(&mut self, log: Option<File>) -> io::Result<Option<Attempt>> {
        self.shared_memory = open_if_there(&beside(&self.path, "-shm"))?;
        let mut index = None;
        if let Some(memory) = &self.shared_memory {
            if !lock::try_share(memory, lock::CHECKPOINT)?
                || !lock::try_share(memory, lock::READER)?
            {
                return Ok(Some(Attempt::Busy));
            }
            match lock::owner(memory, lock::CONNECTED)? {
                Owner::Nobody => {}
                // Somebody is just making it.
                Owner::Alone => return Ok(Some(Attempt::Busy)),
                Owner::Sharing => {
                    index = Index::read(memory)?;
                    // Connected, but not readable: it is being written; or who wrote it died,
                    // and nobody has looked since.
                    if index.is_none() {
                        return Ok(Some(Attempt::Unsettled));
                    }
                }
            }
        }
        let Some(log) = log else {
            let settled = index.is_none_or(|index| index.frames == 0);
            return Ok((!settled).then_some(Attempt::Unsettled));
        };
        match wal::read(&log, index.as_ref())? {
            Log::Empty => {}
            Log::Committed(frames) => self.log = Some((log, frames)),
            Log::Unsettled => return Ok(Some(Attempt::Unsettled)),
        }
        Ok(None)
    }

    /// Whether a writer died and left a journal that is to be rolled back: there is one, it
    /// begins with something, and nobody is writing.
    fn find_hot_journal(&self) -> io::Result<bool> {
        let Some(main) = &self.main else {
            return Ok(false);
        };
        let path = beside(&self.path, "-journal");
        // A writer may come or go in between; twice the same is enough to let SQLite judge.
        for _ in 0..2 {
            if lock::owner(main, lock::RESERVED)? != Owner::Nobody {
                return Ok(false);
            }
            let Some(journal) = open_if_there(&path)? else {
                return Ok(false);
            };
            let mut first = [0];
            if read_some(&journal, &mut first, 0)? == 0 || first == [0] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The database file. It must be read through this, never opened beside it.
    pub fn file(&self) -> Option<&File> {
        self.main.as_ref()
    }

    /// The log, and how many of its bytes are committed and stay as they are. Behind them,
    /// writers go on. `None` when nothing in a log belongs to the database.
    pub fn log(&self) -> Option<(&File, u64)> {
        self.log.as_ref().map(|(log, frames)| (log, frames.length))
    }

    /// Whether it uses a write-ahead log.
    pub fn is_wal(&self) -> bool {
        self.is_wal
    }

    /// Whether a dead writer left a journal: then the file by itself is not the database,
    /// but file and `-journal` together, which both stay as they are.
    pub fn has_hot_journal(&self) -> bool {
        self.has_hot_journal
    }

    /// Whether what was read until now fits together. False when somebody connected to a
    /// database that nobody was connected to: then it is to be held and read again.
    pub fn is_intact(&self) -> bool {
        !self.is_wal
            || self.shared_memory.is_some()
            || std::fs::symlink_metadata(beside(&self.path, "-shm"))
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// The database as of the last commit.
    pub(super) fn view(&self) -> io::Result<View<'_>> {
        let main = self.file().ok_or(io::ErrorKind::NotFound)?;
        let log = self.log.as_ref().map(|(log, frames)| (log, frames));
        View::new(main, log)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Let go at once, even where a file is not closed yet.
        if let Some(memory) = self.shared_memory.take() {
            let _ = lock::release(&memory, lock::CHECKPOINT);
            let _ = lock::release(&memory, lock::READER);
            parked::close(memory);
        }
        if let Some(main) = self.main.take() {
            let _ = lock::release(&main, lock::SHARED);
            parked::close(main);
        }
    }
}

/// The first 100 bytes, when they are those of a database.
fn read_header(main: &File) -> io::Result<Option<[u8; 100]>> {
    let mut header = [0; 100];
    let whole = read_some(main, &mut header, 0)? == header.len();
    Ok((whole && array(&header, 0) == Some(*MAGIC)).then_some(header))
}

/// Opens a file for reading. Never waits, as for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    // Links were followed before, to the directory that holds all its files.
    let flags = flags | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
