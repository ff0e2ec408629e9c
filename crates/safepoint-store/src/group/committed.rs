//! What is left of a commit when the connection is free again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::outcome::{Members, OnTheWay};
use super::{AfterDurable, panicked};
use crate::{StoreError, fault};

/// The rest of a commit, which needs no lock.
pub(crate) enum Flush {
    /// Nothing is left to do.
    Done,
    /// Sync this file: the write-ahead log of SQLite.
    File(Arc<std::fs::File>, std::path::PathBuf),
}

impl Flush {
    fn run(self) -> Result<(), StoreError> {
        match self {
            Self::Done => Ok(()),
            Self::File(file, path) => file
                .sync_data()
                .map_err(|error| StoreError::file("sync", path, error)),
        }
    }
}

/// A transaction that was committed, or could not be.
pub(super) struct Committed<'a> {
    /// What still has to happen for it to be on disk, if anyone waits for that.
    pub(super) result: Result<Option<(Flush, Option<AfterDurable>)>, StoreError>,
    pub(super) on_the_way: OnTheWay<'a>,
    pub(super) members: Members,
}

impl Committed<'_> {
    /// Waits for the disk, and tells the members.
    pub(super) fn bring_to_disk(self) {
        let result = self.result.and_then(|sync| {
            fault::point("write.committed");
            let Some((flush, after)) = sync else {
                return Ok(());
            };
            let follow = || {
                flush.run()?;
                fault::point("write.durable");
                after.map_or(Ok(()), |after| after())
            };
            let followed = catch_unwind(AssertUnwindSafe(follow));
            let followed = followed.unwrap_or_else(|_| Err(panicked()));
            followed.map_err(|error| StoreError::AfterCommit(Arc::new(error)))
        });
        drop(self.on_the_way); // the next sets out before these members come back
        self.members.tell(&result);
    }
}
