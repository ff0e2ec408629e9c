//! Tasks as the coordinator has them: made, approved, given to workspaces, tried again.
//!
//! A task never runs anything. What a workspace does moves its task, in `follow`. A step that
//! there is not is refused, and recorded too.

use safepoint_model::{TaskId, WorkspaceId};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::ProgressError;
use crate::progress::Progress;
use crate::state::State;
use crate::table::{self, Made, Step};
use crate::task::{Task, TaskState, leads_to};

/// The longest title, in bytes.
const LONGEST_TITLE: usize = 500;

impl Progress {
    /// Makes a task that can be assigned when all of `after` are completed. A draft has to be
    /// approved first.
    pub fn create_task(
        &self,
        title: &str,
        after: &[TaskId],
        draft: bool,
        by: &Actor,
    ) -> Result<Task, ProgressError> {
        if title.trim().is_empty() || title.len() > LONGEST_TITLE || title.contains('\0') {
            return Err(ProgressError::Invalid(format!(
                "a title has 1 to {LONGEST_TITLE} bytes, is not blank and holds no NUL character"
            )));
        }
        let id = TaskId::generate(&*self.entropy)?;
        let state = match draft {
            true => TaskState::Draft,
            false => TaskState::Pending,
        };
        self.trail.write(Durability::Sync, |writing| {
            let created = self.moment(writing)?;
            let mut dependencies: Vec<&TaskId> = Vec::new();
            for on in after {
                // One that there is not is an error, and nothing is made.
                table::task_standing(writing.sql(), on)?;
                if !dependencies.contains(&on) {
                    dependencies.push(on);
                }
            }
            let mut rows = vec![
                table::task_row(&id, title, by.as_str(), created),
                table::task_move_row(&id, 1, state, Step::default(), created),
            ];
            for (on, number) in dependencies.iter().zip(1..) {
                rows.push(table::dependency_row(&id, number, on));
            }
            let entry = self.task_entry(writing, &id, "task_created", by, |time| {
                json!({
                    "task_id": id, "title": title, "status": state,
                    "dependencies": dependencies, "timestamp": time, "rows": table::marks(&rows),
                })
            })?;
            table::insert_rows(writing.sql(), &rows, entry)?;
            found(table::tasks(writing.sql(), Some(&id))?, &id)
        })
    }

    /// Makes a task wait for another one too. What would make it wait for itself is refused.
    pub fn add_dependency(
        &self,
        id: &TaskId,
        on: &TaskId,
        by: &Actor,
    ) -> Result<Task, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let (state, _) = table::task_standing(writing.sql(), id)?;
            table::task_standing(writing.sql(), on)?;
            let circle = leads_to(on, id, |task| table::dependencies_of(writing.sql(), task))?;
            let refused = match state {
                _ if circle => Some(format!("`{id}` would wait for itself: `{on}` waits for it")),
                TaskState::Draft | TaskState::Pending => None,
                _ => Some(format!("a task that is {state} waits for nothing any more")),
            };
            if let Some(detail) = refused {
                let reason = if circle { "circle" } else { "too_late" };
                self.task_entry(writing, id, "task_dependency_refused", by, |time| {
                    json!({"task_id": id, "dependency": on, "reason": reason, "timestamp": time})
                })?;
                return Ok(Err(ProgressError::Unfit(detail)));
            }
            let known = table::dependencies_of(writing.sql(), id)?;
            if !known.contains(on) {
                let row = [table::dependency_row(id, known.len() + 1, on)];
                let entry = self.task_entry(writing, id, "task_dependency_added", by, |time| {
                    json!({
                        "task_id": id, "dependency": on, "timestamp": time,
                        "rows": table::marks(&row),
                    })
                })?;
                table::insert_rows(writing.sql(), &row, entry)?;
            }
            found(table::tasks(writing.sql(), Some(id))?, id).map(Ok)
        })?
    }

    /// Approves a draft.
    pub fn approve(&self, id: &TaskId, by: &Actor) -> Result<Task, ProgressError> {
        self.task_step(
            id,
            TaskState::Pending,
            Some(TaskState::Draft),
            "approved",
            by,
        )
    }

    /// Wants a task that failed to be tried again, in another workspace.
    pub fn retry(&self, id: &TaskId, by: &Actor) -> Result<Task, ProgressError> {
        self.task_step(id, TaskState::Pending, Some(TaskState::Failed), "retry", by)
    }

    /// Wants a task no longer. A workspace that is at it goes on until somebody stops it.
    pub fn cancel(&self, id: &TaskId, by: &Actor) -> Result<Task, ProgressError> {
        self.task_step(id, TaskState::Cancelled, None, "cancelled", by)
    }

    /// Gives a task to a workspace. Where that is active already, the task is in progress.
    pub fn assign(
        &self,
        id: &TaskId,
        workspace: &WorkspaceId,
        by: &Actor,
    ) -> Result<Task, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), workspace)?;
            if let Err(refused) = self.assignable(writing, id, Some(&made), by)? {
                return Ok(Err(refused));
            }
            // The stream of the workspace says what it is for, too, as it does when it is made.
            let timestamp = self.moment(writing)?;
            writing.append(Draft {
                stream: Stream::from(workspace),
                actor: by.clone(),
                kind: Kind::fixed("workspace_task_given").into(),
                action_id: None,
                body: json!({"workspace": workspace, "task": id, "timestamp": timestamp}),
            })?;
            self.give(writing, id, &made, by)?;
            found(table::tasks(writing.sql(), Some(id))?, id).map(Ok)
        })?
    }

    /// The task of this id.
    pub fn task(&self, id: &TaskId) -> Result<Task, ProgressError> {
        let one = self.trail.store().read(|sql| table::tasks(sql, Some(id)))?;
        found(one, id)
    }

    /// All tasks, the oldest first.
    pub fn tasks(&self) -> Result<Vec<Task>, ProgressError> {
        self.trail.store().read(|sql| table::tasks(sql, None))
    }

    /// Whether a task can be given to a workspace: `None` for one that is about to be made.
    pub(crate) fn assignable(
        &self,
        writing: &mut Writing<'_>,
        id: &TaskId,
        made: Option<&Made>,
        by: &Actor,
    ) -> Result<Result<(), ProgressError>, ProgressError> {
        let (state, _) = table::task_standing(writing.sql(), id)?;
        let refused = match made {
            _ if !state.may_become(TaskState::Assigned) => Some((
                "illegal_move",
                format!("a task that is {state} cannot become assigned"),
            )),
            Some(made) => unfit(writing, made)?,
            None => None,
        };
        let refused = match refused {
            Some(refused) => Some(refused),
            None => waits_for(writing, id)?,
        };
        let Some((reason, detail)) = refused else {
            return Ok(Ok(()));
        };
        let workspace = made.map(|made| &made.id);
        self.task_entry(writing, id, "task_state_refused", by, |time| {
            json!({
                "task_id": id, "from": state, "to": TaskState::Assigned, "reason": reason,
                "workspace_id": workspace, "timestamp": time,
            })
        })?;
        Ok(Err(ProgressError::Unfit(detail)))
    }

    /// Gives a task that is [`assignable`](Self::assignable) to a workspace.
    pub(crate) fn give(
        &self,
        writing: &mut Writing<'_>,
        id: &TaskId,
        made: &Made,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let step = Step {
            workspace: Some(&made.id),
            ..Step::default()
        };
        self.move_task(writing, id, TaskState::Assigned, step, by)?;
        let (standing, _) = table::standing(writing.sql(), &made.id)?;
        if standing.state == State::Active {
            self.follow(writing, &made.id, State::Active, None)?;
        }
        Ok(())
    }

    /// One step that the coordinator asks for, out of `from` where only that will do.
    fn task_step(
        &self,
        id: &TaskId,
        to: TaskState,
        from: Option<TaskState>,
        reason: &'static str,
        by: &Actor,
    ) -> Result<Task, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let (state, _) = table::task_standing(writing.sql(), id)?;
            if !state.may_become(to) || from.is_some_and(|from| from != state) {
                self.task_entry(writing, id, "task_state_refused", by, |time| {
                    json!({
                        "task_id": id, "from": state, "to": to, "reason": "illegal_move",
                        "timestamp": time,
                    })
                })?;
                return Ok(Err(ProgressError::Unfit(format!(
                    "a task that is {state} cannot be {}",
                    match reason {
                        "retry" => "tried again: it has not failed",
                        other => other,
                    }
                ))));
            }
            let step = Step {
                reason: Some(reason),
                ..Step::default()
            };
            self.move_task(writing, id, to, step, by)?;
            found(table::tasks(writing.sql(), Some(id))?, id).map(Ok)
        })?
    }
}

/// Why a workspace takes no task.
fn unfit(
    writing: &mut Writing<'_>,
    made: &Made,
) -> Result<Option<(&'static str, String)>, ProgressError> {
    let (standing, _) = table::standing(writing.sql(), &made.id)?;
    let (id, state) = (&made.id, standing.state);
    if made.parent.is_none() {
        let detail = format!("`{id}` is the coordinator, who has no task");
        return Ok(Some(("workspace_is_coordinator", detail)));
    }
    if state.is_terminal() || matches!(state, State::Integrating | State::Conflicted) {
        let detail = format!("`{id}` is {state}: its work is done");
        return Ok(Some(("workspace_is_done", detail)));
    }
    if let Some(other) = table::task_of(writing.sql(), id)? {
        let detail = format!("`{id}` is for the task `{other}`; make a workspace for this one");
        return Ok(Some(("workspace_has_a_task", detail)));
    }
    Ok(None)
}

/// What a task has to wait for before it is assigned.
fn waits_for(
    writing: &mut Writing<'_>,
    id: &TaskId,
) -> Result<Option<(&'static str, String)>, ProgressError> {
    for on in table::dependencies_of(writing.sql(), id)? {
        let (state, _) = table::task_standing(writing.sql(), &on)?;
        if !state.is_done() {
            let detail = format!("the task waits for `{on}`, which is {state}");
            return Ok(Some(("dependencies_not_completed", detail)));
        }
    }
    Ok(None)
}

fn found(tasks: Vec<Task>, id: &TaskId) -> Result<Task, ProgressError> {
    tasks
        .into_iter()
        .next()
        .ok_or_else(|| ProgressError::NotFound {
            what: "task",
            name: id.to_string(),
        })
}
