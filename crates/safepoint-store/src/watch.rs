//! Waiting until something was written, by whichever process.
//!
//! PostgreSQL says so: each transaction that changed a row notifies, and the
//! watcher listens on a connection of its own, which it makes anew when it is
//! lost. SQLite cannot, and is asked a few times a second. A watcher is told
//! that something was written, never what: whoever wakes looks for himself,
//! and may find nothing.

use std::time::Duration;

use crate::postgres::Listener;
use crate::store::Reader;
use crate::{Location, Options, StoreError, query_one};

/// How long a file is left alone between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something was written, or may have been while nobody could listen.
    Written,
    /// The time is over.
    Quiet,
}

/// Somebody who waits for writes to a store.
pub struct Watch {
    source: Source,
}

enum Source {
    Listening(Box<Listener>),
    Looking { reader: Reader, seen: i64 },
}

impl Watch {
    pub(crate) fn open(location: &Location, options: Options) -> Result<Self, StoreError> {
        let source = match location {
            Location::Postgres(url) => {
                Source::Listening(Box::new(Listener::open(url, options.lock_timeout)?))
            }
            Location::Sqlite(_) => {
                let mut reader = Reader::open(location, options)?;
                let seen = version(&mut reader)?;
                Source::Looking { reader, seen }
            }
        };
        Ok(Self { source })
    }

    /// Waits until something was written since the last call, or `most` is over. After an
    /// error it may be called again: it then tries to reach the store anew. It blocks: an
    /// asynchronous program calls it on a thread of its own.
    pub fn wait(&mut self, most: Duration) -> Result<Woken, StoreError> {
        match &mut self.source {
            Source::Listening(listener) => listener.wait(most),
            Source::Looking { reader, seen } => {
                let mut left = most;
                loop {
                    let found = version(reader)?;
                    if std::mem::replace(seen, found) != found {
                        return Ok(Woken::Written);
                    }
                    if left.is_zero() {
                        return Ok(Woken::Quiet);
                    }
                    let pause = left.min(BETWEEN_LOOKS);
                    std::thread::sleep(pause);
                    left -= pause;
                }
            }
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}

/// A number that changes with each commit of another connection.
fn version(reader: &mut Reader) -> Result<i64, StoreError> {
    reader.begin()?;
    let found = query_one(reader.sql(), "PRAGMA data_version", &[], |row| {
        row.integer(0)
    });
    reader.end();
    Ok(found?.unwrap_or_default())
}
