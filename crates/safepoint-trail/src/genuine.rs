//! Whether an entry that is about to be built upon, or to vouch for something, is the one that
//! was signed.
//!
//! It is compared with the hash outside the database. That copy is not synced, so a power cut may
//! have taken some of it: before an entry is called another, the copy is made anew, which works
//! only where everything in the database gives the root that was signed.

use std::sync::Arc;

use safepoint_model::Digest;
use safepoint_store::{Sql, Store, StoreError};

use crate::append::{Appender, each_leaf_hash};
use crate::rows::last_of;
use crate::verify::Bad;
use crate::{Entry, Stream, tree};

impl Appender {
    /// The hash that the next entry of a stream is chained to.
    pub(crate) fn last_of_stream(
        &self,
        sql: &mut dyn Sql,
        stream: &Stream,
    ) -> Result<Option<Digest>, StoreError> {
        let Some(entry) = last_of(sql, stream)? else {
            return Ok(None);
        };
        // What is chained to is signed for: it must be what was signed before.
        match self.is_genuine(&entry)? {
            true => Ok(Some(entry.hash)),
            false => Err(StoreError::seal(Bad::at(
                entry.seq,
                "it is not the entry that was signed",
            ))),
        }
    }

    /// Whether an entry is what was signed, as far as one entry alone can tell: by its own
    /// hash, and by the one outside the database where that is there.
    pub(crate) fn is_genuine(&self, entry: &Entry) -> Result<bool, StoreError> {
        let hash = tree::leaf_hash(&entry.to_leaf());
        let is_known = || -> Result<bool, StoreError> {
            let known = self
                .witness
                .leaves(entry.seq, entry.seq.saturating_add(1))?;
            Ok(known.first().is_none_or(|known| *known == hash))
        };
        if entry.hash != hash {
            return Ok(false);
        }
        if is_known()? {
            return Ok(true);
        }
        // A power cut may have taken the hash outside.
        match self.rebuild_witness() {
            Ok(()) => is_known(),
            Err(StoreError::Seal(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the hashes outside the database anew, where what is inside gives the signed root.
    pub(crate) fn rebuild_witness(&self) -> Result<(), StoreError> {
        let head = self.witness.head()?.map_err(StoreError::seal)?;
        self.witness.rebuild(|from, take| {
            self.opened_store()?
                .read(|sql| each_leaf_hash(sql, from, head.size(), take))
        })
    }

    fn opened_store(&self) -> Result<Arc<Store>, StoreError> {
        let closed = || StoreError::corrupted("the trail", "its store was closed");
        self.store.upgrade().ok_or_else(closed)
    }
}
