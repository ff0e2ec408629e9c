//! Tasks, how far each went, and what each waits for.

use safepoint_model::{RecordId, TaskId, Timestamp, WorkspaceId};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};

use super::{DEPENDENCY, NewRow, TASK, TASK_MOVE, optional, parsed};
use crate::ProgressError;
use crate::task::{Task, TaskState};

/// How far a task is, and after how many moves.
pub(crate) fn task_standing(
    sql: &mut dyn Sql,
    id: &TaskId,
) -> Result<(TaskState, i64), ProgressError> {
    let found = query_one(
        sql,
        "SELECT state, number FROM progress_task_moves WHERE task = ?1 ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| Ok((parsed(row.text(0)?, 0)?, row.integer(1)?)),
    )?;
    found.ok_or_else(|| ProgressError::NotFound {
        what: "task",
        name: id.to_string(),
    })
}

/// The task that a workspace is or was for.
pub(crate) fn task_of(
    sql: &mut dyn Sql,
    workspace: &WorkspaceId,
) -> Result<Option<TaskId>, StoreError> {
    query_one(
        sql,
        "SELECT task FROM progress_task_moves WHERE workspace = ?1",
        &[Value::Text(workspace.as_str())],
        |row| parsed(row.text(0)?, 0),
    )
}

/// Every workspace that a task was given to, in order.
pub(crate) fn workspaces_of(
    sql: &mut dyn Sql,
    id: &TaskId,
) -> Result<Vec<WorkspaceId>, StoreError> {
    query_all(
        sql,
        "SELECT workspace FROM progress_task_moves WHERE task = ?1 AND workspace IS NOT NULL ORDER BY number",
        &[Value::Text(id.as_str())],
        |row| parsed(row.text(0)?, 0),
    )
}

/// What a task waits for, in the order in which it was said.
pub(crate) fn dependencies_of(sql: &mut dyn Sql, id: &TaskId) -> Result<Vec<TaskId>, StoreError> {
    query_all(
        sql,
        "SELECT dependency FROM progress_task_dependencies WHERE task = ?1 ORDER BY number",
        &[Value::Text(id.as_str())],
        |row| parsed(row.text(0)?, 0),
    )
}

/// The tasks, the oldest first: all of them, or one.
pub(crate) fn tasks(sql: &mut dyn Sql, one: Option<&TaskId>) -> Result<Vec<Task>, ProgressError> {
    let read = |row: &dyn Row| {
        let id: TaskId = parsed(row.text(0)?, 0)?;
        let created = Timestamp::from_micros(row.integer(2)?);
        Ok((id, row.text(1)?.to_owned(), created))
    };
    let found = match one {
        Some(id) => query_all(
            sql,
            "SELECT id, title, created FROM progress_tasks WHERE id = ?1",
            &[Value::Text(id.as_str())],
            read,
        ),
        None => query_all(
            sql,
            "SELECT id, title, created FROM progress_tasks ORDER BY created, id",
            &[],
            read,
        ),
    }?;
    let mut tasks = Vec::with_capacity(found.len());
    for (task_id, title, created) in found {
        let (status, _) = task_standing(sql, &task_id)?;
        tasks.push(Task {
            title,
            status,
            dependencies: dependencies_of(sql, &task_id)?,
            workspace_history: workspaces_of(sql, &task_id)?,
            checkpoint_ref: match status.is_done() {
                true => result_of(sql, &task_id)?,
                false => None,
            },
            created,
            task_id,
        });
    }
    Ok(tasks)
}

/// How much there is to compare of a task, about.
pub(crate) fn task_weight(sql: &mut dyn Sql, id: &TaskId) -> Result<i64, StoreError> {
    let weight = query_one(
        sql,
        "SELECT (SELECT coalesce(max(number), 0) FROM progress_task_moves WHERE task = ?1), \
                (SELECT coalesce(max(number), 0) FROM progress_task_dependencies WHERE task = ?1)",
        &[Value::Text(id.as_str())],
        |row| Ok(row.integer(0)?.saturating_add(row.integer(1)?)),
    )?;
    Ok(weight.unwrap_or(0))
}

/// The record that a task was last completed with.
fn result_of(sql: &mut dyn Sql, id: &TaskId) -> Result<Option<RecordId>, StoreError> {
    let found = query_one(
        sql,
        "SELECT record FROM progress_task_moves WHERE task = ?1 AND record IS NOT NULL ORDER BY number DESC LIMIT 1",
        &[Value::Text(id.as_str())],
        |row| optional(row, 0),
    )?;
    Ok(found.flatten())
}

pub(crate) fn task_row<'a>(
    id: &'a TaskId,
    title: &'a str,
    originator: &'a str,
    created: Timestamp,
) -> NewRow<'a> {
    NewRow::new(
        &TASK,
        vec![
            Value::Text(id.as_str()),
            Value::Text(title),
            Value::Text(originator),
            Value::Integer(created.as_micros()),
        ],
    )
}

pub(crate) fn dependency_row<'a>(id: &'a TaskId, number: usize, on: &'a TaskId) -> NewRow<'a> {
    NewRow::new(
        &DEPENDENCY,
        vec![
            Value::Text(id.as_str()),
            Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
            Value::Text(on.as_str()),
        ],
    )
}

/// One step of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Step<'a> {
    /// Why.
    pub(crate) reason: Option<&'a str>,
    /// The workspace that it is given to.
    pub(crate) workspace: Option<&'a WorkspaceId>,
    /// The record that it is completed with.
    pub(crate) record: Option<&'a str>,
}

pub(crate) fn task_move_row<'a>(
    id: &'a TaskId,
    number: i64,
    state: TaskState,
    step: Step<'a>,
    time: Timestamp,
) -> NewRow<'a> {
    NewRow::new(
        &TASK_MOVE,
        vec![
            Value::Text(id.as_str()),
            Value::Integer(number),
            Value::Text(state.as_str()),
            step.reason.into(),
            step.workspace.map(WorkspaceId::as_str).into(),
            step.record.into(),
            Value::Integer(time.as_micros()),
        ],
    )
}

/// Every task that there is anything of, whether all of it is there or not.
pub(crate) fn all_tasks(sql: &mut dyn Sql) -> Result<Vec<TaskId>, StoreError> {
    query_all(
        sql,
        "SELECT id FROM progress_tasks UNION SELECT task FROM progress_task_moves \
         UNION SELECT task FROM progress_task_dependencies ORDER BY 1",
        &[],
        |row| parsed(row.text(0)?, 0),
    )
}
