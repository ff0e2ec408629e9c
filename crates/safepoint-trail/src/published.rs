//! Heads in the depot, outside every machine and the database.
//!
//! A machine that begins with an empty directory knows nothing of the past:
//! whoever puts an older database in place would not be found. So heads are
//! published: each under its own size, created once and never changed. A
//! machine that comes new takes the last one, and the database must continue
//! it. Nothing here is believed but what the key of the trail has signed.

use safepoint_store::depot::{Created, Depot};
use safepoint_store::{Sql, StoreError};

use crate::append::each_leaf_hash;
use crate::head::SignedHead;
use crate::note::PublicKey;
use crate::tree::{self, Frontier};
use crate::verify::Bad;
use crate::{Trail, TrailError};

/// Where heads are published.
const HEADS: &str = "heads";

/// What publishing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// How many entries the published head covers.
    pub size: u64,
    /// How many the last one before it covered.
    pub before: u64,
}

impl Trail {
    /// Publishes the present head in the depot; `None` without a depot. What was published
    /// before must lead to it.
    pub fn publish(&self) -> Result<Option<Published>, TrailError> {
        let Some(depot) = self.depot() else {
            return Ok(None);
        };
        let head = self.witnessed_head()?;
        let before = match newest(depot, self.key())? {
            Some(published) => {
                self.refuse_other_past(&published, &head)?;
                published.size()
            }
            None => 0,
        };
        let size = head.size();
        if size > before {
            let name = name_of(size);
            let created = depot.create(&name, head.note().as_bytes().to_vec())?;
            if created == Created::Before {
                let other = read(depot, &name, self.key())?;
                self.refuse_other_past(&other, &head)?;
            }
        }
        Ok(Some(Published { size, before }))
    }

    /// Refuses when the head does not continue one that was published.
    fn refuse_other_past(
        &self,
        published: &SignedHead,
        head: &SignedHead,
    ) -> Result<(), TrailError> {
        if published.size() > head.size() {
            return Err(lost(published, head.size()));
        }
        let root = tree::frontier(self.witness(), published.size())?.root();
        match root == published.root() {
            true => Ok(()),
            false => Err(other_past(published)),
        }
    }
}

/// The head with the most entries that was published.
pub(crate) fn newest(depot: &Depot, key: &PublicKey) -> Result<Option<SignedHead>, TrailError> {
    let names = depot.list(HEADS)?;
    match names.last() {
        Some(name) => read(depot, &format!("{HEADS}/{name}"), key).map(Some),
        None => Ok(None),
    }
}

/// Refuses a database, with `size` entries, that does not continue what was published.
pub(crate) fn check(
    sql: &mut dyn Sql,
    published: &SignedHead,
    size: u64,
) -> Result<(), TrailError> {
    if published.size() > size {
        return Err(lost(published, size));
    }
    let mut frontier = Frontier::empty();
    each_leaf_hash(sql, 0, published.size(), &mut |leaf| {
        frontier.push(leaf, |_, _| {});
    })?;
    match frontier.size() == published.size() && frontier.root() == published.root() {
        true => Ok(()),
        false => Err(other_past(published)),
    }
}

fn read(depot: &Depot, name: &str, key: &PublicKey) -> Result<SignedHead, TrailError> {
    let place = format!("{}/{name}", depot.place());
    let note = depot
        .read(name)?
        .ok_or_else(|| StoreError::corrupted(&place, "it is gone"))?;
    let forged = || StoreError::corrupted(&place, "the key of this trail did not sign it");
    let note = String::from_utf8(note).map_err(|_| forged())?;
    let head = SignedHead::open(&note, key).map_err(|_| forged())?;
    match name_of(head.size()) == name {
        true => Ok(head),
        false => Err(StoreError::corrupted(&place, "it is the head of another size").into()),
    }
}

/// A name that sorts as its size does.
fn name_of(size: u64) -> String {
    format!("{HEADS}/{size:020}")
}

fn lost(published: &SignedHead, size: u64) -> TrailError {
    let reason = format!(
        "{} entries were published, and the database has {size}",
        published.size()
    );
    TrailError::Tampered(Bad::at(size, reason))
}

fn other_past(published: &SignedHead) -> TrailError {
    let last = published.size().saturating_sub(1);
    TrailError::Tampered(Bad::at(
        last,
        "the database does not continue what was published",
    ))
}
