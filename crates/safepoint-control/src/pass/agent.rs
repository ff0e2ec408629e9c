//! The session of an agent that a person started: begun with its start, and over with its end.

use safepoint_model::SessionId;
use safepoint_state::Share;
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind};
use serde_json::json;

use super::documents::Running;
use super::{Ended, Leave, Passage};
use crate::{ControlError, kept};

impl Passage<'_> {
    /// Begins the session of an agent that has leave to start.
    pub fn begin_agent(
        &self,
        leave: &mut Leave,
        objective: Option<String>,
    ) -> Result<SessionId, ControlError> {
        let session = self.begin(objective)?;
        leave.errand.session = Some(session.to_string());
        self.control.trail.write(Durability::Sync, |writing| {
            let running = Running {
                agent_session: Some(session.clone()),
                ..self.running(writing, leave)?
            };
            kept::put(writing, &running)
        })?;
        Ok(session)
    }

    /// Records the end of an agent that was started by a person, and how much it changed.
    pub fn end_agent(
        &self,
        leave: &Leave,
        outcome: &str,
        ended: Ended,
        exit_code: Option<i32>,
    ) -> Result<usize, ControlError> {
        let before = leave.before.as_ref();
        let before = before.ok_or_else(|| ControlError::Proposal {
            reason: "there is no checkpoint before the agent".to_owned(),
        })?;
        let body = json!({
            "outcome": outcome, "exit_code": exit_code, "ended": ended.as_str(),
            "agent": leave.errand.summary,
        });
        let changes = self.state.after(
            self.workspace,
            before,
            &leave.errand,
            outcome,
            &self.share_of_agent(leave)?,
            self.progress,
            |writing, changes| -> Result<(), ControlError> {
                writing.append(Draft {
                    stream: self.state_stream(),
                    actor: Actor::safepoint(),
                    kind: Kind::fixed("agent_ended").into(),
                    action_id: Some(leave.action_id.clone()),
                    body: body.clone(),
                })?;
                self.end_leave(writing, leave, outcome, body, changes)
            },
        )?;
        self.state.end_write_journal(&leave.action_id);
        self.report(leave, outcome)?;
        let session = leave.errand.session.as_deref();
        if let Some(Ok(session)) = session.map(str::parse::<SessionId>) {
            self.end_session_of_agent(&session)?;
        }
        Ok(changes.len())
    }

    /// What of the changes is an agent's own: what its processes wrote, and what was done for it.
    /// All of them, where nobody saw that.
    fn share_of_agent(&self, leave: &Leave) -> Result<Share, ControlError> {
        let Some(written) = self.state.seen_writes(&leave.action_id) else {
            return Ok(Share::All);
        };
        let mut share = Share::of_writes(&self.workspace.root, &written);
        if let (Share::Observed { paths, .. }, Some(before)) = (&mut share, &leave.before) {
            let session = leave.errand.session.as_deref();
            let told = self.state.paths_told_since(before, session)?;
            paths.extend(told);
        }
        Ok(share)
    }

    /// The session of an agent ends with it: nobody is there to do what still waits in it.
    pub(super) fn end_session_of_agent(&self, session: &SessionId) -> Result<(), ControlError> {
        match self.close(session) {
            // It may have ended its session itself.
            Ok(()) | Err(ControlError::Refused(_) | ControlError::Refuses { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
