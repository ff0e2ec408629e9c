//! Whether what is kept of a workspace is what was written: against the proofs in it, and
//! against the trail.
//!
//! Everything that is kept has an entry, and every entry that tells of
//! something kept has its row: the two are read side by side, a page at a
//! time, however long the chain is. That no entry of the stream was changed or
//! taken out of its middle is seen here too; the trail as a whole, with its
//! end, is verified by its own crate. Nothing is mended here.

mod all;
mod compare;
mod rows;
mod told;

use std::collections::BTreeMap;

use safepoint_model::WorkspaceId;
use safepoint_store::StoreError;
use safepoint_trail::{Brief, Entry, Stream, page_of};
use serde::Serialize;

use crate::words::words;
use crate::{Progress, ProgressError, table};

use compare::Compare;

pub(crate) use compare::Asked;
pub(crate) use told::RecordTold;

words! {
    /// What is not as it was written.
    Subject, "subject of a verification":
    /// An entry of the trail.
    TrailEntry = "trail_entry",
    /// What a workspace was made as.
    Workspace = "workspace",
    /// A move from one state to another.
    Move = "move",
    /// Which agent a workspace is bound to.
    Binding = "binding",
    /// A record.
    Checkpoint = "checkpoint",
    /// Something that was emitted.
    Signal = "signal",
    /// Something that was delivered.
    Delivery = "delivery",
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// Whether all of it holds.
    pub valid: bool,
    /// How many records hold.
    pub checked: u64,
    /// How many entries of the trail were compared.
    pub entries: u64,
    /// The first thing that does not hold.
    pub first_bad: Option<Fault>,
}

/// Something that is not what was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// What it is.
    pub subject: Subject,
    /// Which of its kind in this workspace, from 1.
    pub number: u64,
    /// Its id, as far as it is known.
    pub id: Option<String>,
    /// What is wrong.
    pub reason: &'static str,
}

/// What was found, and the move that a signal asked for and did not get.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) verified: Verified,
    pub(crate) asked: Option<Asked>,
    /// How many signals it emitted.
    pub(crate) emitted: u64,
    /// How many signals of each source it was told.
    pub(crate) told_by: BTreeMap<WorkspaceId, u64>,
}

/// How many entries are read at a time.
const PAGE: u32 = 256;

impl Progress {
    /// Compares everything that is kept of a workspace with the trail.
    pub fn verify(&self, id: &WorkspaceId) -> Result<Verified, ProgressError> {
        let mut compare = Compare::new(&self.trail, id, PAGE);
        // One view of the store, so that nothing is added between an entry and its row.
        let found = self.trail.store().read(|sql| {
            table::made(sql, id)?;
            compare.begin(sql)?;
            let stream = Stream::from(id);
            let mut from = 0;
            loop {
                let page = page_of(sql, &stream, from, PAGE)?;
                for entry in &page {
                    if let Err(fault) = compare.signed(entry)? {
                        return Ok(Some(fault));
                    }
                    if let Err(fault) = compare.entry(sql, brief(entry))? {
                        return Ok(Some(fault));
                    }
                    from = entry.seq + 1;
                }
                if page.len() < PAGE as usize {
                    return compare.end(sql);
                }
            }
        });
        let first_bad = fault_in(&compare, found)?;
        Ok(compare.into_compared(first_bad).verified)
    }
}

/// What was found, or the fault that an unreadable row is.
fn fault_in(
    compare: &Compare<'_>,
    found: Result<Option<Fault>, ProgressError>,
) -> Result<Option<Fault>, ProgressError> {
    match found {
        // A row that cannot be read was not written by us.
        Err(ProgressError::Store(StoreError::Column { .. })) => {
            Ok(Some(compare.unreadable("a row of it cannot be read")))
        }
        Err(ProgressError::Tampered { .. }) => {
            let reason = "its taxonomy or an entry of it cannot be read";
            Ok(Some(compare.unreadable(reason)))
        }
        other => other,
    }
}

fn brief(entry: &Entry) -> Brief<'_> {
    Brief {
        seq: entry.seq,
        id: entry.id.as_str(),
        stream: entry.stream.as_str(),
        actor: entry.actor.as_str(),
        kind: entry.kind.as_str(),
        body: &entry.body,
    }
}
