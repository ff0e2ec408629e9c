//! A task follows its workspace: what happens to the one moves the other, in one transaction.
//!
//! A workspace that is active is at its task, whether its agent says `started` or not: else one
//! that gets on with its work without a word could never complete it. One that is idle is not.

use safepoint_model::{TaskId, Timestamp, WorkspaceId};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::{Value, json};

use crate::ProgressError;
use crate::chain::opened;
use crate::progress::Progress;
use crate::state::State;
use crate::table::{self, Step};
use crate::task::TaskState;
use crate::tell::protocol;

impl Progress {
    /// Moves the task of a workspace that has just gone to `to`, if that moves it.
    pub(crate) fn follow(
        &self,
        writing: &mut Writing<'_>,
        workspace: &WorkspaceId,
        to: State,
        reason: Option<&str>,
    ) -> Result<(), ProgressError> {
        if !matches!(
            to,
            State::Active | State::Integrating | State::Closed | State::Failed
        ) {
            return Ok(());
        }
        let Some((id, state)) = task_at(writing, workspace)? else {
            return Ok(());
        };
        let (next, record, reason) = match (to, state) {
            (State::Active, TaskState::Assigned) => (TaskState::InProgress, None, None),
            (State::Integrating, TaskState::InProgress) => {
                // Without a final record it is not completed, and fails with its workspace.
                let Some(last) = table::newest_final(writing.sql(), workspace)? else {
                    return Ok(());
                };
                let last = opened(workspace, &last)?;
                (TaskState::Completed, Some(last.id), None)
            }
            (State::Closed, _) => return self.task_integrated(writing, workspace),
            (State::Failed, TaskState::Assigned | TaskState::InProgress | TaskState::Completed) => {
                (TaskState::Failed, None, reason.or(Some("workspace_failed")))
            }
            _ => return Ok(()),
        };
        let step = Step {
            reason,
            record: record.as_ref().map(safepoint_model::RecordId::as_str),
            ..Step::default()
        };
        self.move_task(writing, &id, next, step, &protocol())
    }

    /// The result of a workspace was taken over: its task is integrated.
    ///
    /// Called when a workspace closes. One that closes without a result has not done its task.
    pub(crate) fn task_integrated(
        &self,
        writing: &mut Writing<'_>,
        workspace: &WorkspaceId,
    ) -> Result<(), ProgressError> {
        let Some((id, state)) = task_at(writing, workspace)? else {
            return Ok(());
        };
        let (next, reason) = match state {
            TaskState::Completed => (TaskState::Integrated, None),
            TaskState::Assigned | TaskState::InProgress => {
                (TaskState::Failed, Some("no_final_checkpoint"))
            }
            _ => return Ok(()),
        };
        let step = Step {
            reason,
            ..Step::default()
        };
        self.move_task(writing, &id, next, step, &protocol())
    }

    /// Makes a move that is legal, and tells of it: what changed, and what that means.
    pub(crate) fn move_task(
        &self,
        writing: &mut Writing<'_>,
        id: &TaskId,
        to: TaskState,
        step: Step<'_>,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let (from, number) = table::task_standing(writing.sql(), id)?;
        if !from.may_become(to) {
            return Err(ProgressError::Unfit(format!(
                "a task that is {from} cannot become {to}"
            )));
        }
        let time = self.moment(writing)?;
        let row = [table::task_move_row(id, number + 1, to, step, time)];
        let mut history = table::workspaces_of(writing.sql(), id)?;
        history.extend(step.workspace.cloned());
        let workspace = history.last();
        let entry = self.task_entry(writing, id, "task_status_changed", by, |time| {
            json!({
                "task_id": id, "from": from, "to": to, "reason": step.reason,
                "workspace_id": workspace, "timestamp": time, "rows": table::marks(&row),
            })
        })?;
        table::insert_rows(writing.sql(), &row, entry)?;
        let meaning = match (from, to) {
            (TaskState::Draft, TaskState::Pending) => "task_approved",
            (_, TaskState::Assigned) => "task_assigned",
            (_, TaskState::Completed) => "task_completed",
            (_, TaskState::Failed) => "task_failed",
            _ => return Ok(()),
        };
        let told = self.task_entry(writing, id, meaning, by, |time| match to {
            TaskState::Pending => {
                json!({"task_id": id, "approval_source": by, "timestamp": time})
            }
            TaskState::Assigned => json!({
                "task_id": id, "workspace_id": workspace,
                "attempt_number": history.len(), "timestamp": time,
            }),
            TaskState::Completed => json!({
                "task_id": id, "workspace_id": workspace,
                "checkpoint_id": step.record, "timestamp": time,
            }),
            _ => json!({
                "task_id": id, "workspace_id": workspace,
                "reason": step.reason, "timestamp": time,
            }),
        });
        told.map(drop)
    }

    /// Adds an entry to the stream of a task, and says where it is in the trail.
    pub(crate) fn task_entry(
        &self,
        writing: &mut Writing<'_>,
        id: &TaskId,
        kind: &'static str,
        by: &Actor,
        body: impl FnOnce(Timestamp) -> Value,
    ) -> Result<u64, ProgressError> {
        let time = self.moment(writing)?;
        let entry = writing.append(Draft {
            stream: Stream::from(id),
            actor: by.clone(),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body: body(time),
        })?;
        Ok(entry.seq)
    }
}

/// The task that a workspace is at, and how far that is; none where another workspace has it now.
fn task_at(
    writing: &mut Writing<'_>,
    workspace: &WorkspaceId,
) -> Result<Option<(TaskId, TaskState)>, ProgressError> {
    let Some(id) = table::task_of(writing.sql(), workspace)? else {
        return Ok(None);
    };
    if table::workspaces_of(writing.sql(), &id)?.last() != Some(workspace) {
        return Ok(None);
    }
    let (state, _) = table::task_standing(writing.sql(), &id)?;
    Ok(Some((id, state)))
}
