//! Whether a chain is what was written: against its own proofs, and against the trail.
//!
//! The trail itself is verified by its own crate; here it is believed.

use safepoint_model::{Digest, RecordId, WorkspaceId};
use safepoint_store::Flow;
use safepoint_trail::{Query, Stream};
use serde::{Deserialize, Serialize};

use crate::chain::opened;
use crate::record::Record;
use crate::table;
use crate::{Progress, ProgressError};

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// How many records hold.
    pub checked: u64,
    /// The first that does not.
    pub first_bad: Option<Fault>,
}

/// A record that is not what was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fault {
    /// Its place in the chain, from 1.
    pub number: u64,
    /// Its id, as far as it is known.
    pub checkpoint_id: Option<String>,
    /// What is wrong.
    pub reason: &'static str,
}

/// What an entry says of a record that was made.
#[derive(Deserialize)]
struct Told {
    checkpoint_id: RecordId,
    parent: Option<RecordId>,
    integrity: Integrity,
}

#[derive(Deserialize)]
struct Integrity {
    proof: Digest,
}

impl Progress {
    /// Checks the whole chain of a workspace.
    pub fn verify(&self, id: &WorkspaceId) -> Result<Verified, ProgressError> {
        let told = self.told(id)?;
        let chain = self.trail.store().read(|sql| {
            table::made(sql, id)?;
            Ok::<_, ProgressError>(table::chain(sql, id)?)
        })?;
        let mut checked = 0;
        let mut before: Option<Record> = None;
        for (place, told) in told.iter().enumerate() {
            let bad = |reason| Verified {
                checked,
                first_bad: Some(Fault {
                    number: checked + 1,
                    checkpoint_id: Some(told.checkpoint_id.to_string()),
                    reason,
                }),
            };
            let Some(stored) = chain.get(place) else {
                return Ok(bad("it is in the trail, and not in the chain"));
            };
            let Ok(record) = opened(id, stored) else {
                return Ok(bad("it is not what its proof was made over"));
            };
            if record.id != told.checkpoint_id
                || told.integrity.proof.as_bytes().as_slice() != stored.proof
            {
                return Ok(bad("it is not the one that the trail tells of"));
            }
            let earlier = before.as_ref().map(|before| &before.id);
            if record.parent.as_ref() != earlier || told.parent.as_ref() != earlier {
                return Ok(bad("its parent is not the record before it"));
            }
            let later =
                |before: &Record| before.timestamp < record.timestamp && before.id < record.id;
            if !before.as_ref().is_none_or(later) {
                return Ok(bad("it is not later than the record before it"));
            }
            checked += 1;
            before = Some(record);
        }
        let first_bad = chain.get(told.len()).map(|extra| Fault {
            number: checked + 1,
            checkpoint_id: Some(extra.id.clone()),
            reason: "it is in the chain, and not in the trail",
        });
        Ok(Verified { checked, first_bad })
    }

    /// What the trail tells of the records of a workspace, in order.
    fn told(&self, id: &WorkspaceId) -> Result<Vec<Told>, ProgressError> {
        let query = Query {
            streams: vec![Stream::from(id)],
            kind: Some("checkpoint_created".to_owned()),
            ..Query::default()
        };
        let mut told = Vec::new();
        self.trail.entries(&query, |entry| {
            let body = serde_json::from_str(&entry.body).map_err(|_| ProgressError::Tampered {
                what: "trail entry",
                id: entry.id.to_string(),
            })?;
            told.push(body);
            Ok::<_, ProgressError>(Flow::More)
        })?;
        Ok(told)
    }
}
