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
mod files;
mod marked;
mod page;
mod rows;
mod task;
mod told;

use std::collections::BTreeMap;

use safepoint_model::WorkspaceId;
use safepoint_store::{Sql, StoreError};
use safepoint_trail::{Brief, Entry, Stream, Trail, page_of};
use serde::Serialize;

use crate::words::words;
use crate::{Progress, ProgressError, table};

use compare::{Compare, MISSING};
use task::{Signed, verify_task};

pub(crate) use compare::Asked;
pub use files::VerifiedFiles;
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
    /// What a workspace took.
    Meter = "meter",
    /// The directory of a workspace.
    Place = "place",
    /// That a directory was removed.
    RemovedPlace = "removed_place",
    /// That an integration began.
    Integration = "integration",
    /// The action by which a directory was changed.
    IntegrationAction = "integration_action",
    /// Something that does not fit.
    Conflict = "conflict",
    /// What was decided about it.
    Resolution = "resolution",
    /// How an integration ended.
    IntegrationEnd = "integration_end",
    /// What a task was made as.
    Task = "task",
    /// How far a task went.
    TaskMove = "task_move",
    /// What a task waits for.
    Dependency = "dependency",
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
    /// Compares everything that is kept of a workspace with the trail, and of the tasks that it
    /// was given.
    pub fn verify(&self, id: &WorkspaceId) -> Result<Verified, ProgressError> {
        let mut compare = Compare::new(&self.trail, id, PAGE);
        // One view of the store, so that nothing is added between an entry and its row.
        let found = self.trail.store().read(|sql| {
            let made = table::made(sql, id);
            if matches!(made, Err(ProgressError::NotFound { .. })) && is_told_of(sql, id)? {
                return Ok(Some(compare.unreadable(MISSING)));
            }
            made?;
            compare.begin(sql)?;
            let own = compare_stream(sql, &self.trail, &mut compare, &Stream::from(id))?;
            if own.is_some() {
                return Ok(own);
            }
            let mut tasks = compare.tasks().clone();
            tasks.extend(table::task_of(sql, id)?);
            for task in &tasks {
                if let Err(fault) = verify_task(sql, &self.trail, task)? {
                    return Ok(Some(fault));
                }
            }
            Ok(None)
        });
        let first_bad = fault_in(|reason| compare.unreadable(reason), found)?;
        Ok(compare.into_compared(first_bad).verified)
    }
}

/// Whether the trail knows of a workspace that there is no row of.
fn is_told_of(sql: &mut dyn Sql, id: &WorkspaceId) -> Result<bool, ProgressError> {
    let first = page_of(sql, &Stream::from(id), 0, 1)?;
    Ok(first
        .iter()
        .any(|entry| entry.kind.as_str() == "workspace_created"))
}

fn compare_stream(
    sql: &mut dyn Sql,
    trail: &Trail,
    compare: &mut Compare<'_>,
    stream: &Stream,
) -> Result<Option<Fault>, ProgressError> {
    let mut signed = Signed::new(trail);
    let mut from = 0;
    loop {
        let page = page_of(sql, stream, from, PAGE)?;
        for entry in &page {
            if let Err(fault) = signed.next(entry)? {
                return Ok(Some(fault));
            }
            if let Err(fault) = compare.entry(sql, brief(entry))? {
                return Ok(Some(fault));
            }
            from = entry.seq + 1;
        }
        if page.len() < PAGE as usize {
            let not_emitted = table::NotEmitted::read(sql)?;
            return compare.end(sql, &not_emitted);
        }
    }
}

/// What was found, or the fault that an unreadable row is.
fn fault_in(
    unreadable: impl FnOnce(&'static str) -> Fault,
    found: Result<Option<Fault>, ProgressError>,
) -> Result<Option<Fault>, ProgressError> {
    match found {
        // A row that cannot be read was not written by us.
        Err(ProgressError::Store(StoreError::Column { .. })) => {
            Ok(Some(unreadable("a row of it cannot be read")))
        }
        Err(ProgressError::Tampered { .. }) => {
            let reason = "its taxonomy or an entry of it cannot be read";
            Ok(Some(unreadable(reason)))
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
