//! One workspace, entry by entry, beside its rows.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_model::{Digest, RecordId, TaskId, Timestamp, WorkspaceId};
use safepoint_state::{SnapshotId, StateError};
use safepoint_store::Sql;
use safepoint_trail::{Brief, Trail};
use serde_json::json;

use super::marked::{Marked, RowsTold};
use super::rows::{Numbered, Rows};
use super::told::{
    BindingTold, DeliveryTold, MoveTold, OnlyRows, RecordTold, SignalTold, TaskGiven,
    WorkspaceTold, read, read_from,
};
use super::{Compared, Fault, Subject, Verified};
use crate::ProgressError;
use crate::agent::agent_mark;
use crate::begin::{digest_of, directive_digest};
use crate::create::request_mark;
use crate::deliver::is_right_behind;
use crate::record::{self, Record};
use crate::signal::move_asked;
use crate::state::{Standing, State};
use crate::table::{
    self, Made, NotEmitted, OF_WORKSPACES, StoredBinding, StoredMove, StoredRecord,
};

pub(super) const MISSING: &str = "it is in the trail, and not in the store";
pub(super) const EXTRA: &str = "it is in the store, and not in the trail";
pub(super) const OTHER: &str = "it is not the one that the trail tells of";

/// A move that the signal of an agent asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) to: State,
    pub(crate) reason: Option<String>,
    /// Where the signal stands in the trail.
    pub(crate) seq: u64,
}

/// What is known of a workspace so far.
pub(super) struct Compare<'a> {
    trail: &'a Trail,
    id: &'a WorkspaceId,
    made: Option<(Made, Digest)>,
    began: bool,
    standing: Standing,
    /// What the agent asked for since the last move.
    asked: Option<Asked>,
    before: Option<(RecordId, Timestamp)>,
    entries: u64,
    /// The bytes of all records so far.
    bytes: u64,
    /// How many signals of each source were delivered here.
    told_by: BTreeMap<WorkspaceId, u64>,
    counts: [u64; Subject::ALL.len()],
    moves: Rows<StoredMove>,
    bindings: Rows<StoredBinding>,
    records: Rows<StoredRecord>,
    /// What the entry at hand says of rows that are compared by their marks.
    told: RowsTold,
    marked: Marked,
    most: u32,
    tasks: BTreeSet<TaskId>,
}

/// Whether what was compared holds.
pub(super) type Held = Result<(), Fault>;

impl<'a> Compare<'a> {
    pub(super) fn new(trail: &'a Trail, id: &'a WorkspaceId, most: u32) -> Self {
        Self {
            trail,
            id,
            made: None,
            began: false,
            standing: Standing::NEW,
            asked: None,
            before: None,
            entries: 0,
            bytes: 0,
            told_by: BTreeMap::new(),
            counts: [0; Subject::ALL.len()],
            moves: Rows::new(most),
            bindings: Rows::new(most),
            records: Rows::new(most),
            told: RowsTold::new(),
            marked: Marked::new(id.as_str(), &OF_WORKSPACES),
            most,
            tasks: BTreeSet::new(),
        }
    }

    /// What was found, with the fault that ended it.
    pub(super) fn into_compared(self, first_bad: Option<Fault>) -> Compared {
        Compared {
            verified: Verified {
                valid: first_bad.is_none(),
                checked: self.count(Subject::Checkpoint),
                entries: self.entries,
                first_bad,
            },
            emitted: self.count(Subject::Signal),
            asked: self.asked,
            told_by: self.told_by,
        }
    }

    /// Reads what the workspace was made as.
    pub(super) fn begin(&mut self, sql: &mut dyn Sql) -> Result<(), ProgressError> {
        let made = table::made(sql, self.id)?;
        let taxonomy = table::taxonomy(sql, &made.run)?;
        let digest = digest_of(&taxonomy)?;
        self.made = Some((made, digest));
        Ok(())
    }

    /// Compares the next entry of the stream.
    pub(super) fn entry(
        &mut self,
        sql: &mut dyn Sql,
        entry: Brief<'_>,
    ) -> Result<Held, ProgressError> {
        let held = match entry.kind {
            "workspace_created" => self.workspace(sql, entry),
            "agent_bound" => {
                let told: BindingTold = read(self.trail, entry)?;
                self.binding(sql, entry, &told)
            }
            "workspace_state_changed" => self.state(sql, entry),
            "checkpoint_created" => self.record(sql, entry),
            "signal_emitted" => self.signal(sql, entry),
            "signal_delivered" => self.delivery(sql, entry),
            "workspace_task_given" => {
                let told: TaskGiven = read(self.trail, entry)?;
                self.tasks.insert(told.task);
                Ok(Ok(()))
            }
            "resources_metered"
            | "budget_warning"
            | "budget_exceeded"
            | "workspace_directory_removed"
            | "integration_started"
            | "integration_resumed"
            | "integration_completed"
            | "integration_aborted"
            | "conflict_detected"
            | "conflict_resolved" => {
                let told: OnlyRows = read(self.trail, entry)?;
                self.told = told.rows;
                Ok(Ok(()))
            }
            _ => Ok(Ok(())),
        }?;
        let told = std::mem::take(&mut self.told);
        let held = match held {
            Ok(()) => self.marked.entry(sql, self.most, entry.seq, &told)?,
            fault => fault,
        };
        self.entries += 1;
        Ok(held)
    }

    /// Whether anything is kept that no entry told of. `not_emitted` is what is said to be delivered
    /// and was never emitted: where no workspace has it, those that a run began with answer for it.
    pub(super) fn end(
        &mut self,
        sql: &mut dyn Sql,
        not_emitted: &NotEmitted,
    ) -> Result<Option<Fault>, ProgressError> {
        if !self.began {
            return Ok(Some(self.fault(Subject::Workspace, None, EXTRA)));
        }
        macro_rules! none_left {
            ($($rows:ident: $subject:ident),*) => {$(
                if let Some(extra) = self.$rows.next(sql, self.id)? {
                    return Ok(Some(self.fault(Subject::$subject, extra.id(), EXTRA)));
                }
            )*};
        }
        none_left!(moves: Move, bindings: Binding, records: Checkpoint);
        let made = self.made.as_ref();
        let is_root = made.is_some_and(|(made, _)| made.parent.is_none());
        if not_emitted.workspaces.contains(self.id) || (is_root && not_emitted.is_stray) {
            return Ok(Some(self.fault(Subject::Delivery, None, EXTRA)));
        }
        if let Err(extra) = self.marked.end(sql, self.most)? {
            return Ok(Some(extra));
        }
        if table::is_swept_aside(sql, self.id)? {
            let reason = "what is due was swept aside";
            return Ok(Some(self.fault(Subject::Meter, None, reason)));
        }
        Ok(None)
    }

    /// The tasks that it was given, as the trail tells.
    pub(super) fn tasks(&self) -> &BTreeSet<TaskId> {
        &self.tasks
    }

    /// Something of the workspace cannot be read at all.
    pub(super) fn unreadable(&self, reason: &'static str) -> Fault {
        self.fault(Subject::Workspace, None, reason)
    }

    fn workspace(&mut self, sql: &mut dyn Sql, entry: Brief<'_>) -> Result<Held, ProgressError> {
        let mut told: WorkspaceTold = read(self.trail, entry)?;
        self.told = std::mem::take(&mut told.rows);
        self.tasks.extend(told.task.take());
        let same = self.made.as_ref().is_some_and(|(made, taxonomy)| {
            !self.began
                && told.workspace == *self.id
                && made.run == told.run
                && made.parent == told.parent
                && made.role == told.role
                && made.originator == told.originator
                && made.created == told.timestamp
                && made.directive.as_deref().map(directive_digest) == told.directive
                && made.budget == told.budget
                && made.timeout == told.timeout
                && *taxonomy == told.taxonomy.digest
                && u64::try_from(made.entry) == Ok(entry.seq)
        });
        self.began = true;
        if !same {
            return Ok(Err(self.fault(Subject::Workspace, None, OTHER)));
        }
        let bound = BindingTold {
            agent: told.agent,
            timestamp: told.timestamp,
        };
        self.binding(sql, entry, &bound)
    }

    fn binding(
        &mut self,
        sql: &mut dyn Sql,
        entry: Brief<'_>,
        told: &BindingTold,
    ) -> Result<Held, ProgressError> {
        let row = self.bindings.next(sql, self.id)?;
        Ok(self.settle(Subject::Binding, entry, row, |row| {
            let digest = row.digest.as_deref().map(Digest::from_slice);
            let mark = digest
                .and_then(Result::ok)
                .map(|digest| agent_mark(&digest));
            mark == Some(told.agent) && row.time == told.timestamp.as_micros()
        }))
    }

    fn state(&mut self, sql: &mut dyn Sql, entry: Brief<'_>) -> Result<Held, ProgressError> {
        let mut told: MoveTold = read(self.trail, entry)?;
        self.told = std::mem::take(&mut told.rows);
        let row = self.moves.next(sql, self.id)?;
        let moved = self.standing.moved_to(told.to).ok();
        let legal = moved.filter(|_| told.from == self.standing.state);
        let Some(standing) = legal else {
            let reason = "it does not follow from the state before it";
            return Ok(Err(self.fault(Subject::Move, None, reason)));
        };
        self.standing = standing;
        self.asked = None;
        let trail = self.trail;
        Ok(self.settle(Subject::Move, entry, row, |row| {
            row.state == standing.state.as_str()
                && row.former.as_deref() == standing.former.map(State::as_str)
                && row.time == told.timestamp.as_micros()
                && same_text(
                    trail,
                    "reason",
                    row.reason.as_deref(),
                    told.reason.as_deref(),
                )
        }))
    }

    fn record(&mut self, sql: &mut dyn Sql, entry: Brief<'_>) -> Result<Held, ProgressError> {
        let mut told: RecordTold = read(self.trail, entry)?;
        self.told = std::mem::take(&mut told.rows);
        let id = Some(told.checkpoint_id.to_string());
        let Some(row) = self.records.next(sql, self.id)? else {
            return Ok(Err(self.fault(Subject::Checkpoint, id, MISSING)));
        };
        // Over the same bytes as then: what they say need not be read again.
        let proof = record::proof(&told.checkpoint_id, &row.body);
        if proof.as_bytes().as_slice() != row.proof {
            let reason = "it is not what its proof was made over";
            return Ok(Err(self.fault(Subject::Checkpoint, id, reason)));
        }
        let request = row
            .request_key
            .as_deref()
            .zip(row.request_digest.as_deref());
        self.bytes += row.body.len() as u64;
        let same = told.integrity.proof == proof
            && u64::try_from(row.bytes) == Ok(self.bytes)
            && told.workspace == *self.id
            && row.id == told.checkpoint_id.as_str()
            && row.parent.as_deref() == told.parent.as_ref().map(RecordId::as_str)
            && row.status == told.status.as_str()
            && row.confidence == told.confidence.as_str()
            && row.time == told.timestamp.as_micros()
            && request.map(|(key, digest)| request_mark(key, digest)) == told.request;
        let earlier = self.before.as_ref();
        let wrong = if !same {
            Some(OTHER)
        } else if told.parent.as_ref() != earlier.map(|before| &before.0) {
            Some("its parent is not the record before it")
        } else if earlier.is_some_and(|before| {
            *before >= (told.checkpoint_id.clone(), told.timestamp) || before.1 >= told.timestamp
        }) {
            Some("it is not later than the record before it")
        } else if self.standing.state != State::Active {
            Some("its workspace was not active")
        } else {
            unproved(self.trail, sql, told.snapshot.as_ref())?
        };
        if let Some(reason) = wrong {
            return Ok(Err(self.fault(Subject::Checkpoint, id, reason)));
        }
        let held = self.settle(Subject::Checkpoint, entry, Some(row), |_| true);
        self.before = Some((told.checkpoint_id, told.timestamp));
        Ok(held)
    }

    /// What a signal says is in its entry alone; only that it was delivered has a row.
    fn signal(&mut self, sql: &mut dyn Sql, entry: Brief<'_>) -> Result<Held, ProgressError> {
        let body = self.trail.whole_body(entry.body)?;
        let told: SignalTold<'_> = read_from(entry, &body)?;
        let signal = Some(told.signal_id.to_string());
        if told.from != self.id.as_str() {
            return Ok(Err(self.fault(Subject::Signal, signal, OTHER)));
        }
        if entry.actor != "protocol"
            && let Some(to) = move_asked(self.standing, told.kind)
        {
            let reason = told.reason.as_deref().map(str::to_owned);
            let seq = entry.seq;
            self.asked = Some(Asked { to, reason, seq });
        }
        self.add(Subject::Signal);
        let row = table::delivery_row(sql, entry.seq)?;
        let above = self
            .made
            .as_ref()
            .and_then(|(made, _)| made.parent.as_ref());
        let delivers = |body: &str| -> Result<bool, ProgressError> {
            let body = self.trail.whole_body(body)?;
            let told: Option<DeliveryTold<'_>> = serde_json::from_str(&body).ok();
            Ok(told.is_some_and(|told| told.emission == entry.seq))
        };
        let is_told = |(stream, kind, body): &(String, String, String)| {
            let in_parent = Some(stream.as_str()) == above.map(WorkspaceId::as_str);
            match in_parent && kind == "signal_delivered" {
                true => delivers(body),
                false => Ok(false),
            }
        };
        let held = match row {
            None => true, // it waits, or its delivery stands right behind it
            Some(row) if is_right_behind(entry.seq, row.delivery) => false,
            // It was delivered once.
            Some(row) => {
                let twice = row.right_behind.as_deref().map_or(Ok(false), delivers)?;
                !twice && row.told.as_ref().map_or(Ok(false), is_told)?
            }
        };
        match held {
            true => Ok(Ok(())),
            false => Ok(Err(self.fault(Subject::Delivery, signal, EXTRA))),
        }
    }

    fn delivery(&mut self, sql: &mut dyn Sql, entry: Brief<'_>) -> Result<Held, ProgressError> {
        let body = self.trail.whole_body(entry.body)?;
        let told: DeliveryTold<'_> = read_from(entry, &body)?;
        match self.told_by.get_mut(&told.from) {
            Some(count) => *count += 1,
            None => drop(self.told_by.insert(told.from.clone(), 1)),
        }
        let is_its = match is_right_behind(told.emission, entry.seq) {
            true => {
                let stream = table::emitted_in(sql, told.emission)?;
                stream.map(|stream| stream == told.from.as_str())
            }
            false => {
                let row = table::delivery_of(sql, told.emission)?;
                row.map(|row| u64::try_from(row) == Ok(entry.seq))
            }
        };
        let wrong = match is_its {
            None => Some(MISSING),
            Some(true) if told.delivered_to == self.id.as_str() => None,
            Some(_) => Some(OTHER),
        };
        if let Some(reason) = wrong {
            let signal = Some(told.signal_id.to_string());
            return Ok(Err(self.fault(Subject::Delivery, signal, reason)));
        }
        self.add(Subject::Delivery);
        Ok(Ok(()))
    }

    /// Whether a row is there, at its place, and what its entry tells of.
    fn settle<T: Numbered>(
        &mut self,
        subject: Subject,
        entry: Brief<'_>,
        row: Option<T>,
        same: impl FnOnce(&T) -> bool,
    ) -> Held {
        let Some(row) = row else {
            return Err(self.fault(subject, None, MISSING));
        };
        let in_place = u64::try_from(row.number()) == Ok(self.count(subject) + 1)
            && u64::try_from(row.entry()) == Ok(entry.seq);
        if !in_place || !same(&row) {
            return Err(self.fault(subject, row.id(), OTHER));
        }
        self.add(subject);
        Ok(())
    }

    fn add(&mut self, subject: Subject) {
        if let Some(count) = self.counts.get_mut(subject as usize) {
            *count += 1;
        }
    }

    fn count(&self, subject: Subject) -> u64 {
        self.counts.get(subject as usize).copied().unwrap_or(0)
    }

    fn fault(&self, subject: Subject, id: Option<String>, reason: &'static str) -> Fault {
        Fault {
            subject,
            number: self.count(subject) + 1,
            id,
            reason,
        }
    }
}

/// Whether a text is the one in an entry, from which secrets were taken out.
fn same_text(trail: &Trail, field: &str, kept: Option<&str>, told: Option<&str>) -> bool {
    if kept == told {
        return true;
    }
    let mut value = json!({ field: kept });
    trail.redact(&mut value);
    value.get(field).and_then(serde_json::Value::as_str) == told
}

impl RecordTold {
    /// Whether an entry and a record say the same.
    pub(crate) fn speaks_of(&self, record: &Record) -> bool {
        self.checkpoint_id == record.id
            && self.workspace == record.workspace
            && self.kind == record.kind
            && self.status == record.status
            && self.confidence == record.confidence
            && self.parent == record.parent
            && self.timestamp == record.timestamp
            && self.snapshot == record.snapshot
    }
}

/// What is wrong with the state of the files that a record names.
fn unproved(
    trail: &Trail,
    sql: &mut dyn Sql,
    snapshot: Option<&SnapshotId>,
) -> Result<Option<&'static str>, ProgressError> {
    let Some(id) = snapshot else { return Ok(None) };
    match safepoint_state::prove(trail, sql, id) {
        Ok(()) => Ok(None),
        Err(StateError::Tampered { .. } | StateError::NotFound { .. }) => {
            Ok(Some("its files are not those that the trail tells of"))
        }
        Err(error) => Err(error.into()),
    }
}
