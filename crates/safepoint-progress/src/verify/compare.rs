//! One workspace, entry by entry, beside its rows.

use safepoint_model::{Digest, WorkspaceId};
use safepoint_store::Sql;
use safepoint_trail::{Entry, Trail};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::rows::{Numbered, Rows};
use super::told::{BindingTold, DeliveryTold, MoveTold, RecordTold, SignalTold, WorkspaceTold};
use super::{Fault, Subject, TrailIs};
use crate::ProgressError;
use crate::agent::agent_mark;
use crate::begin::{digest_of, directive_digest};
use crate::chain::opened;
use crate::create::request_mark;
use crate::record::Record;
use crate::signal::move_asked;
use crate::state::{Standing, State};
use crate::table::{
    self, Made, StoredBinding, StoredDelivery, StoredMove, StoredRecord, StoredSignal,
};
use crate::tell::protocol;

const MISSING: &str = "it is in the trail, and not in the store";
const EXTRA: &str = "it is in the store, and not in the trail";
const OTHER: &str = "it is not the one that the trail tells of";

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
    trail_is: TrailIs,
    made: Option<(Made, Digest)>,
    began: bool,
    standing: Standing,
    /// What the agent asked for since the last move.
    asked: Option<Asked>,
    last_hash: Option<Digest>,
    before: Option<Record>,
    entries: u64,
    counts: [u64; Subject::ALL.len()],
    moves: Rows<StoredMove>,
    bindings: Rows<StoredBinding>,
    records: Rows<StoredRecord>,
    signals: Rows<StoredSignal>,
    deliveries: Rows<StoredDelivery>,
}

/// Whether what was compared holds.
type Held = Result<(), Fault>;

impl<'a> Compare<'a> {
    pub(super) fn new(trail: &'a Trail, id: &'a WorkspaceId, trail_is: TrailIs) -> Self {
        Self {
            trail,
            id,
            trail_is,
            made: None,
            began: false,
            standing: Standing::NEW,
            asked: None,
            last_hash: None,
            before: None,
            entries: 0,
            counts: [0; Subject::ALL.len()],
            moves: Rows::new(),
            bindings: Rows::new(),
            records: Rows::new(),
            signals: Rows::new(),
            deliveries: Rows::new(),
        }
    }

    pub(super) fn records(&self) -> u64 {
        self.count(Subject::Checkpoint)
    }

    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    pub(super) fn into_asked(self) -> Option<Asked> {
        self.asked
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
        entry: &Entry,
    ) -> Result<Held, ProgressError> {
        let follows = entry.prev_hash == self.last_hash;
        if self.trail_is == TrailIs::Unknown && !(follows && self.trail.is_genuine(entry)?) {
            let reason = match follows {
                true => "it is not the entry that was signed",
                false => "it does not follow the entry before it in its stream",
            };
            return Ok(Err(Fault {
                subject: Subject::TrailEntry,
                number: self.entries + 1,
                id: Some(entry.id.to_string()),
                reason,
            }));
        }
        let held = match entry.kind.as_str() {
            "workspace_created" => self.workspace(sql, entry),
            "agent_bound" => {
                let told: BindingTold = self.read(entry)?;
                self.binding(sql, entry, &told)
            }
            "workspace_state_changed" => self.state(sql, entry),
            "checkpoint_created" => self.record(sql, entry),
            "signal_emitted" => self.signal(sql, entry),
            "signal_delivered" => self.delivery(sql, entry),
            _ => Ok(Ok(())),
        }?;
        self.last_hash = Some(entry.hash);
        self.entries += 1;
        Ok(held)
    }

    /// Whether anything is kept that no entry told of.
    pub(super) fn end(&mut self, sql: &mut dyn Sql) -> Result<Option<Fault>, ProgressError> {
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
        none_left!(moves: Move, bindings: Binding, records: Checkpoint, signals: Signal, deliveries: Delivery);
        Ok(None)
    }

    /// Something of the workspace cannot be read at all.
    pub(super) fn unreadable(&self, reason: &'static str) -> Fault {
        self.fault(Subject::Workspace, None, reason)
    }

    fn workspace(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<Held, ProgressError> {
        let told: WorkspaceTold = self.read(entry)?;
        let same = self.made.as_ref().is_some_and(|(made, taxonomy)| {
            !self.began
                && told.workspace == *self.id
                && made.run == told.run
                && made.parent == told.parent
                && made.role == told.role
                && made.originator == told.originator
                && made.created == told.timestamp
                && made.directive.as_deref().map(directive_digest) == told.directive
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
        entry: &Entry,
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

    fn state(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<Held, ProgressError> {
        let told: MoveTold = self.read(entry)?;
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

    fn record(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<Held, ProgressError> {
        let told: RecordTold = self.read(entry)?;
        let id = Some(told.checkpoint_id.to_string());
        let Some(row) = self.records.next(sql, self.id)? else {
            return Ok(Err(self.fault(Subject::Checkpoint, id, MISSING)));
        };
        let Ok(record) = opened(self.id, &row) else {
            let reason = "it is not what its proof was made over";
            return Ok(Err(self.fault(Subject::Checkpoint, id, reason)));
        };
        let request = row
            .request_key
            .as_deref()
            .zip(row.request_digest.as_deref());
        let same = told.speaks_of(&record)
            && told.integrity.proof.as_bytes().as_slice() == row.proof
            && request.map(|(key, digest)| request_mark(key, digest)) == told.request;
        let earlier = self.before.as_ref();
        let wrong = if !same {
            Some(OTHER)
        } else if record.parent.as_ref() != earlier.map(|before| &before.id) {
            Some("its parent is not the record before it")
        } else if earlier
            .is_some_and(|before| before.timestamp >= record.timestamp || before.id >= record.id)
        {
            Some("it is not later than the record before it")
        } else if self.standing.state != State::Active {
            Some("its workspace was not active")
        } else {
            None
        };
        if let Some(reason) = wrong {
            return Ok(Err(self.fault(Subject::Checkpoint, id, reason)));
        }
        let held = self.settle(Subject::Checkpoint, entry, Some(row), |_| true);
        self.before = Some(record);
        Ok(held)
    }

    fn signal(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<Held, ProgressError> {
        let told: SignalTold = self.read(entry)?;
        let row = self.signals.next(sql, self.id)?;
        let parent = self.made.as_ref().and_then(|(made, _)| made.parent.clone());
        if entry.actor != protocol()
            && let Some(to) = move_asked(self.standing, told.kind)
        {
            let reason = told.reason.clone();
            let seq = entry.seq;
            self.asked = Some(Asked { to, reason, seq });
        }
        let trail = self.trail;
        Ok(self.settle(Subject::Signal, entry, row, |row| {
            let signal = &row.signal;
            signal.id == told.signal_id
                && signal.from == told.from
                && signal.kind == told.kind
                && signal.timestamp == told.timestamp
                && signal.delivered_to == parent
                && same_text(
                    trail,
                    "reason",
                    signal.reason.as_deref(),
                    told.reason.as_deref(),
                )
                && same_text(trail, "ref", signal.about.as_deref(), told.about.as_deref())
        }))
    }

    fn delivery(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<Held, ProgressError> {
        let told: DeliveryTold = self.read(entry)?;
        let row = self.deliveries.next(sql, self.id)?;
        Ok(self.settle(Subject::Delivery, entry, row, |row| {
            row.signal == told.signal_id.as_str()
                && row.from.as_deref() == Some(told.from.as_str())
                && told.delivered_to == *self.id
                && row.time == told.delivered_at.as_micros()
        }))
    }

    /// Whether a row is there, at its place, and what its entry tells of.
    fn settle<T: Numbered>(
        &mut self,
        subject: Subject,
        entry: &Entry,
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
        if let Some(count) = self.counts.get_mut(subject as usize) {
            *count += 1;
        }
        Ok(())
    }

    fn read<T: DeserializeOwned>(&self, entry: &Entry) -> Result<T, ProgressError> {
        serde_json::from_str(&self.trail.body(entry)?).map_err(|_| ProgressError::Tampered {
            what: "trail entry",
            id: entry.id.to_string(),
        })
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
    }
}
