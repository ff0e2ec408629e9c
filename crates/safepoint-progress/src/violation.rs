//! What was found to be other than it was written: recorded, and never used.
//!
//! A record is proved before its content goes anywhere: its row against the
//! proof beside it, and both against the entry that told of it when it was
//! made. Whoever can change the row can change the proof beside it; the entry
//! is under the signed head of the trail.

use safepoint_model::{RecordId, WorkspaceId};
use safepoint_trail::{Draft, Entry, Kind, Stream, Writing, entry_at};
use serde::Serialize;
use serde_json::json;

use crate::ProgressError;
use crate::chain::opened;
use crate::progress::Progress;
use crate::record::{self, Record};
use crate::table::{self, StoredRecord};
use crate::tell::protocol;
use crate::verify::{RecordTold, Subject};
use crate::words::words;

words! {
    /// What is wrong with it.
    Wrong, "violation":
    /// It is not what its proof was made over.
    HashMismatch = "hash_mismatch",
    /// What would prove it is gone.
    ProofMissing = "proof_missing",
    /// It is not where it belongs.
    ChainBroken = "chain_broken",
}

words! {
    /// What was done about it.
    ActionTaken, "action against a violation":
    /// It was not used.
    Rejected = "rejected",
    /// It was only told of.
    Flagged = "flagged",
    /// What it belongs to was set aside.
    Quarantined = "quarantined",
}

/// Something that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("the {subject_type} `{subject_id}` is not what was written: {violation}")]
pub struct Violation {
    /// What it is.
    pub subject_type: Subject,
    /// Which one.
    pub subject_id: String,
    /// What is wrong with it.
    pub violation: Wrong,
    /// What it was to be.
    pub expected: Option<String>,
    /// What it is.
    pub actual: Option<String>,
    /// What was done about it.
    pub action_taken: ActionTaken,
}

impl Progress {
    /// Records a violation, in the stream of the store: a workspace that has ended has no more
    /// entries, and one that was tampered with is no good witness of that.
    pub fn record_violation(
        &self,
        writing: &mut Writing<'_>,
        violation: &Violation,
    ) -> Result<Entry, ProgressError> {
        let timestamp = self.moment(writing)?;
        Ok(writing.append(Draft {
            stream: Stream::store(),
            actor: protocol(),
            kind: Kind::fixed("integrity_violation").into(),
            action_id: None,
            body: json!({
                "workspace": null,
                "subject_type": violation.subject_type, "subject_id": violation.subject_id,
                "violation": violation.violation,
                "expected": violation.expected, "actual": violation.actual,
                "action_taken": violation.action_taken, "timestamp": timestamp,
            }),
        })?)
    }

    /// The record of this id, if it is what was written; if it is not, that is recorded.
    pub fn proved(
        &self,
        writing: &mut Writing<'_>,
        workspace: &WorkspaceId,
        id: &RecordId,
    ) -> Result<Result<Record, Violation>, ProgressError> {
        let stored = table::record(writing.sql(), workspace, id)?;
        let stored = stored.ok_or_else(|| ProgressError::NotFound {
            what: "checkpoint",
            name: id.to_string(),
        })?;
        let told = entry_at(
            writing.sql(),
            u64::try_from(stored.entry).unwrap_or(u64::MAX),
        )?;
        let told = self.told_of(workspace, told)?;
        match holds(workspace, &stored, told.as_ref()) {
            Ok(record) => Ok(Ok(record)),
            Err(wrong) => {
                let actual = record::proof(id, &stored.body);
                let violation = Violation {
                    subject_type: Subject::Checkpoint,
                    subject_id: id.to_string(),
                    violation: wrong,
                    expected: told.map(|told| told.integrity.proof.to_string()),
                    actual: Some(actual.to_string()),
                    action_taken: ActionTaken::Rejected,
                };
                self.record_violation(writing, &violation)?;
                Ok(Err(violation))
            }
        }
    }

    /// What an entry tells of a record, if it is one that does and that was signed.
    fn told_of(
        &self,
        workspace: &WorkspaceId,
        entry: Option<Entry>,
    ) -> Result<Option<RecordTold>, ProgressError> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        let right = entry.kind.as_str() == "checkpoint_created"
            && entry.stream == Stream::from(workspace)
            && self.trail.is_genuine(&entry)?;
        if !right {
            return Ok(None);
        }
        Ok(serde_json::from_str(&self.trail.body(&entry)?).ok())
    }
}

fn holds(
    workspace: &WorkspaceId,
    stored: &StoredRecord,
    told: Option<&RecordTold>,
) -> Result<Record, Wrong> {
    let told = told.filter(|told| told.checkpoint_id.as_str() == stored.id);
    let told = told.ok_or(Wrong::ProofMissing)?;
    let record = opened(workspace, stored).map_err(|_| Wrong::HashMismatch)?;
    if told.integrity.proof.as_bytes().as_slice() != stored.proof {
        return Err(Wrong::HashMismatch);
    }
    match told.speaks_of(&record) {
        true => Ok(record),
        false => Err(Wrong::ChainBroken),
    }
}
