//! Whether the files that records stand for are stored as they were captured.

use std::collections::BTreeSet;

use safepoint_model::WorkspaceId;
use safepoint_state::{SnapshotId, State, StateError};
use serde::Serialize;

use super::{Fault, Subject};
use crate::{Progress, ProgressError};

/// What was found of the files that the records of a workspace stand for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VerifiedFiles {
    /// How many snapshots were read and hashed again.
    pub read: u64,
    /// How many are not here: collected after they expired, or kept on another machine.
    pub absent: u64,
    /// The first record whose files are not what was captured.
    pub first_bad: Option<Fault>,
}

impl Progress {
    /// Reads everything that is stored of the files that each record stands for, and hashes it
    /// again. The records themselves are compared by [`Progress::verify`].
    pub fn verify_files(
        &self,
        state: &State,
        id: &WorkspaceId,
    ) -> Result<VerifiedFiles, ProgressError> {
        let mut found = VerifiedFiles::default();
        let mut seen: BTreeSet<SnapshotId> = BTreeSet::new();
        for (number, record) in (1..).zip(self.log(id)?) {
            let Some(snapshot) = record.snapshot else {
                continue;
            };
            if !seen.insert(snapshot.clone()) {
                continue;
            }
            let reason = match state
                .find(snapshot.as_str())
                .and_then(|it| state.verify(&it))
            {
                Ok(_) => {
                    found.read += 1;
                    continue;
                }
                Err(StateError::NotFound { .. }) => {
                    found.absent += 1;
                    continue;
                }
                Err(StateError::Damaged { .. }) => "what is stored of its files is damaged",
                Err(StateError::Missing { .. }) => "a part of what is stored of its files is gone",
                Err(StateError::Tampered { .. }) => "the checkpoint of its files was changed",
                Err(error) => return Err(error.into()),
            };
            found.first_bad = Some(Fault {
                subject: Subject::Checkpoint,
                number,
                id: Some(record.id.to_string()),
                reason,
            });
            break;
        }
        Ok(found)
    }
}
