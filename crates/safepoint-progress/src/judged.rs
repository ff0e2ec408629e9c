//! Rows that were found to be what was written, so that the same is not judged twice.
//!
//! A row is read each time, whole, and compared with the one that is remembered. Only when they
//! are the same in every column is it not judged again: what was judged is the content. What need
//! not even be read, since nothing can have changed, is in `known.rs`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use safepoint_model::{RecordId, WorkspaceId};

use crate::ProgressError;
use crate::chain::opened;
use crate::table::StoredRecord;

/// How many to remember before starting over.
const MOST: usize = 64;

/// Larger ones are opened each time.
const LARGEST: usize = 16 * 1024;

/// What was judged of each workspace last.
pub(crate) struct Judged<T>(Arc<Mutex<HashMap<WorkspaceId, T>>>);

impl<T> Default for Judged<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Judged<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: PartialEq> Judged<T> {
    /// Whether this is what was found to be good last.
    pub(crate) fn is_known(&self, workspace: &WorkspaceId, found: &T) -> bool {
        self.lock().get(workspace) == Some(found)
    }

    pub(crate) fn remember(&self, workspace: &WorkspaceId, good: T) {
        let mut known = self.lock();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(workspace.clone(), good);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of each chain, as it was seen last.
#[derive(Clone, Default)]
pub(crate) struct Heads(Judged<(RecordId, StoredRecord)>);

impl Heads {
    /// The id of a record, if its row is what was written.
    pub(crate) fn open(
        &self,
        workspace: &WorkspaceId,
        row: &StoredRecord,
    ) -> Result<RecordId, ProgressError> {
        if let Some((id, same)) = self.0.lock().get(workspace)
            && same == row
        {
            return Ok(id.clone());
        }
        let id = opened(workspace, row)?.id;
        self.remember(&id, workspace, row.clone());
        Ok(id)
    }

    /// Remembers a row that was opened, or made.
    pub(crate) fn remember(&self, id: &RecordId, workspace: &WorkspaceId, row: StoredRecord) {
        if row.body.len() > LARGEST {
            self.0.lock().remove(workspace);
            return;
        }
        self.0.remember(workspace, (id.clone(), row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{self, Confidence, Payload, Record, Status};
    use safepoint_model::Timestamp;

    fn row() -> (WorkspaceId, Record, StoredRecord) {
        let workspace: WorkspaceId = "wsp_0123456789abcdef".parse().unwrap();
        let record = Record {
            id: format!("rec_{}", "0".repeat(26)).parse().unwrap(),
            workspace: workspace.clone(),
            kind: "artifact".to_owned(),
            payload: Payload::default(),
            intent: "because".to_owned(),
            parent: None,
            status: Status::Final,
            confidence: Confidence::High,
            resource_usage: None,
            snapshot: None,
            actions: Vec::new(),
            timestamp: Timestamp::from_micros(7),
        };
        let body = record.to_canonical().unwrap();
        let proof = record::proof(&record.id, &body);
        let row = StoredRecord::of(&record, 1, body, &proof, 7, 9, None);
        (workspace, record, row)
    }

    #[test]
    fn pr_13_what_is_remembered_is_no_reason_to_believe_another_row() {
        let (workspace, record, row) = row();
        let heads = Heads::default();
        assert_eq!(heads.open(&workspace, &row).unwrap(), record.id);
        assert_eq!(heads.open(&workspace, &row).unwrap(), record.id);
        let changes: [fn(&mut StoredRecord); 5] = [
            |row| row.body.push(b' '),
            |row| row.proof = vec![0; 32],
            |row| row.status = "provisional".to_owned(),
            |row| row.time += 1,
            |row| row.parent = Some(row.id.clone()),
        ];
        for change in changes {
            let mut other = row.clone();
            change(&mut other);
            assert!(heads.open(&workspace, &other).is_err(), "{other:?}");
        }
        // Nor is a row of another chain.
        let other = "wsp_fedcba9876543210".parse().unwrap();
        assert!(heads.open(&other, &row).is_err());
        assert_eq!(heads.open(&workspace, &row).unwrap(), record.id);
    }
}
