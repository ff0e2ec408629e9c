//! Whether a record is what was written: looked at before anything of it is taken over.

use safepoint_model::{RecordId, WorkspaceId};
use safepoint_state::{State, StateError};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream};
use serde_json::json;

use super::begin::Chosen;
use super::{Mode, Wish};
use crate::record::Record;
use crate::state::State as WorkspaceState;
use crate::tell::protocol;
use crate::verify::Subject;
use crate::violation::{ActionTaken, Violation, Wrong};
use crate::{Progress, ProgressError, table};

impl Progress {
    /// The record that was chosen, if it is proved: by its own proof, by the trail, and by
    /// the stored content of the state that it stands for. What does not hold is recorded.
    pub(super) fn proved_whole(
        &self,
        chosen: &Chosen,
        state: Option<&State>,
    ) -> Result<Result<Record, Violation>, ProgressError> {
        let id: RecordId = table::parsed(&chosen.stored.id, 0)?;
        let proved = self.trail.write(Durability::Sync, |writing| {
            self.proved(writing, &chosen.made.id, &id)
        })?;
        let (Ok(record), Some(state)) = (&proved, state) else {
            return Ok(proved);
        };
        let Some(snapshot) = &record.snapshot else {
            return Ok(proved);
        };
        let whole = state
            .find(snapshot.as_str())
            .and_then(|snapshot| state.verify(&snapshot));
        let (wrong, detail) = match whole {
            Ok(_) => return Ok(proved),
            Err(error @ (StateError::Damaged { .. } | StateError::NotIdentical { .. })) => {
                (Wrong::HashMismatch, error.to_string())
            }
            Err(error @ (StateError::Missing { .. } | StateError::NotFound { .. })) => {
                (Wrong::ProofMissing, error.to_string())
            }
            Err(error) => return Err(error.into()),
        };
        let violation = Violation {
            subject_type: Subject::Checkpoint,
            subject_id: id.to_string(),
            violation: wrong,
            expected: Some(snapshot.to_string()),
            actual: Some(detail),
            action_taken: ActionTaken::Rejected,
        };
        self.trail.write(Durability::Sync, |writing| {
            self.record_violation(writing, &violation).map(drop)
        })?;
        Ok(Err(violation))
    }

    /// Gives up on a record that does not hold. The workspace fails; its parent is not touched.
    pub(super) fn violated(
        &self,
        wish: &Wish<'_>,
        target: &WorkspaceId,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), wish.source)?;
            let timestamp = self.moment(writing)?;
            writing.append(Draft {
                stream: Stream::from(wish.source),
                actor: by.clone(),
                kind: Kind::fixed("integration_aborted").into(),
                action_id: None,
                body: json!({
                    "source": wish.source, "target": target, "mode": wish.mode,
                    "reason": "integrity_violation", "timestamp": timestamp,
                }),
            })?;
            if wish.mode == Mode::Normal {
                let reason = Some("integrity_violation");
                self.transition(writing, &made, WorkspaceState::Failed, reason, protocol())?
                    .map_err(ProgressError::from)?;
            }
            Ok(())
        })
    }
}
