//! Whether a record is what was written: looked at before anything of it is taken over.

use safepoint_model::{RecordId, WorkspaceId};
use safepoint_state::{State, StateError};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::begin::Chosen;
use super::{Mode, Wish};
use crate::record::Record;
use crate::state::State as WorkspaceState;
use crate::table::{self, Made};
use crate::tell::protocol;
use crate::verify::Subject;
use crate::violation::{ActionTaken, Violation, Wrong};
use crate::{Progress, ProgressError};

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
            Err(
                error @ (StateError::Damaged { .. }
                | StateError::NotIdentical { .. }
                | StateError::Tampered { .. }),
            ) => (Wrong::HashMismatch, error.to_string()),
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

    /// Whether a workspace is not as the trail tells, whatever in it was changed: that is
    /// recorded, and nothing of it is taken over.
    pub(super) fn faulty(&self, source: &WorkspaceId) -> Result<Option<Violation>, ProgressError> {
        let Some(fault) = self.verify(source)?.first_bad else {
            return Ok(None);
        };
        let violation = fault.violation(source.as_str(), ActionTaken::Rejected);
        self.trail.write(Durability::Sync, |writing| {
            self.record_violation(writing, &violation).map(drop)
        })?;
        Ok(Some(violation))
    }

    /// Refuses to go on with an integration of a workspace that is not as the trail tells.
    pub(super) fn still_holds(
        &self,
        source: &WorkspaceId,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let Some(violation) = self.faulty(source)? else {
            return Ok(());
        };
        self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), source)?;
            self.fail_faulty(writing, &made)?;
            // What is left when it had failed before.
            self.abort_open(writing, source, Some("integrity_violation"), by)
        })?;
        Err(violation.into())
    }

    /// Fails a workspace, where it can still fail.
    fn fail_faulty(&self, writing: &mut Writing<'_>, made: &Made) -> Result<(), ProgressError> {
        let (standing, _) = table::standing(writing.sql(), &made.id)?;
        if standing.moved_to(WorkspaceState::Failed).is_ok() {
            let reason = Some("integrity_violation");
            self.transition(writing, made, WorkspaceState::Failed, reason, protocol())?
                .map_err(ProgressError::from)?;
        }
        Ok(())
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
                self.fail_faulty(writing, &made)?;
            }
            Ok(())
        })
    }
}

impl From<Violation> for ProgressError {
    fn from(found: Violation) -> Self {
        Self::Tampered {
            what: found.subject_type.as_str(),
            id: found.subject_id,
        }
    }
}
