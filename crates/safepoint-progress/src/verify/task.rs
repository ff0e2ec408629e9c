//! One task, entry by entry, beside its rows.

use safepoint_model::{Digest, TaskId};
use safepoint_store::Sql;
use safepoint_trail::{Brief, Entry, Stream, Trail, page_of};

use super::compare::{EXTRA, Held, OTHER};
use super::marked::Marked;
use super::told::{OnlyRows, read};
use super::{Fault, PAGE, Subject, brief};
use crate::ProgressError;
use crate::table::OF_TASKS;

/// What is known of a task so far.
pub(super) struct CompareTask<'a> {
    trail: &'a Trail,
    id: &'a TaskId,
    began: bool,
    marked: Marked,
    most: u32,
}

impl<'a> CompareTask<'a> {
    pub(super) fn new(trail: &'a Trail, id: &'a TaskId, most: u32) -> Self {
        Self {
            trail,
            id,
            began: false,
            marked: Marked::new(id.as_str(), &OF_TASKS),
            most,
        }
    }

    /// Compares the next entry of the stream.
    pub(super) fn entry(
        &mut self,
        sql: &mut dyn Sql,
        entry: Brief<'_>,
    ) -> Result<Held, ProgressError> {
        match entry.kind {
            "task_created" if self.began => return Ok(Err(self.fault(OTHER))),
            "task_created" => self.began = true,
            "task_status_changed" | "task_dependency_added" => {}
            _ => return Ok(Ok(())),
        }
        let told: OnlyRows = read(self.trail, entry)?;
        Ok(self.marked.entry(sql, self.most, entry.seq, &told.rows)?)
    }

    /// Whether anything is kept that no entry told of.
    pub(super) fn end(&mut self, sql: &mut dyn Sql) -> Result<Held, ProgressError> {
        if !self.began {
            return Ok(Err(self.fault(EXTRA)));
        }
        Ok(self.marked.end(sql, self.most)?)
    }

    pub(super) fn fault(&self, reason: &'static str) -> Fault {
        Fault {
            subject: Subject::Task,
            number: 1,
            id: Some(self.id.to_string()),
            reason,
        }
    }
}

/// The entries of one stream, each of which must be what was signed.
pub(super) struct Signed<'a> {
    trail: &'a Trail,
    last: Option<Digest>,
    seen: u64,
}

impl<'a> Signed<'a> {
    pub(super) fn new(trail: &'a Trail) -> Self {
        Self {
            trail,
            last: None,
            seen: 0,
        }
    }

    /// Whether the next entry is what was signed, and follows the one before it.
    pub(super) fn next(&mut self, entry: &Entry) -> Result<Held, ProgressError> {
        self.seen += 1;
        let follows = entry.prev_hash == self.last;
        if follows && self.trail.is_genuine(entry)? {
            self.last = Some(entry.hash);
            return Ok(Ok(()));
        }
        let reason = match follows {
            true => "it is not the entry that was signed",
            false => "it does not follow the entry before it in its stream",
        };
        Ok(Err(Fault {
            subject: Subject::TrailEntry,
            number: self.seen,
            id: Some(entry.id.to_string()),
            reason,
        }))
    }
}

/// Compares everything that is kept of a task with the trail.
pub(super) fn verify_task(
    sql: &mut dyn Sql,
    trail: &Trail,
    id: &TaskId,
) -> Result<Held, ProgressError> {
    let mut compare = CompareTask::new(trail, id, PAGE);
    let mut signed = Signed::new(trail);
    let stream = Stream::from(id);
    let mut from = 0;
    loop {
        let page = page_of(sql, &stream, from, PAGE)?;
        for entry in &page {
            if let Err(fault) = signed.next(entry)? {
                return Ok(Err(fault));
            }
            if let Err(fault) = compare.entry(sql, brief(entry))? {
                return Ok(Err(fault));
            }
            from = entry.seq + 1;
        }
        if page.len() < PAGE as usize {
            return compare.end(sql);
        }
    }
}
