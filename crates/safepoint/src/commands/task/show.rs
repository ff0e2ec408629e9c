//! Tasks for people.

use safepoint_model::text;
use safepoint_progress::task::{Task, TaskState};

use crate::commands::workspace::document::{moment, rows_of};
use crate::console::{BAD, FAINT, GOOD, STRONG};

/// One task on one line.
pub(super) fn line(task: &Task, width: usize) -> String {
    let status = format!("{:<11}", task.status.as_str());
    let style = style(task.status);
    let room = width.saturating_sub(40).clamp(30, 100);
    let title = text::shorten(&text::line(&task.title).text, room);
    let waits = match task.dependencies.len() {
        0 => String::new(),
        number => format!("  {FAINT}after {number}{FAINT:#}"),
    };
    format!(
        "{STRONG}{}{STRONG:#}  {style}{status}{style:#}  {title}{waits}\n",
        task.task_id
    )
}

/// One task on a page.
pub(super) fn page(task: &Task, taken_back_by: Option<&str>) -> String {
    let style = style(task.status);
    let mut rows = vec![
        ("task", format!("{STRONG}{}{STRONG:#}", task.task_id)),
        ("title", text::line(&task.title).text),
        ("status", format!("{style}{}{style:#}", task.status)),
        ("made", moment(&task.created.to_string())),
    ];
    for on in &task.dependencies {
        rows.push(("after", on.to_string()));
    }
    for workspace in &task.workspace_history {
        rows.push(("given to", workspace.to_string()));
    }
    if let Some(result) = &task.checkpoint_ref {
        rows.push(("result", result.to_string()));
    }
    if let Some(action) = taken_back_by {
        rows.push(("taken back", format!("by {action}")));
    }
    rows_of(&rows)
}

fn style(status: TaskState) -> anstyle::Style {
    match status {
        TaskState::Completed | TaskState::Integrated => GOOD,
        TaskState::Failed => BAD,
        TaskState::Draft | TaskState::Cancelled => FAINT,
        TaskState::Pending | TaskState::Assigned | TaskState::InProgress => anstyle::Style::new(),
    }
}
