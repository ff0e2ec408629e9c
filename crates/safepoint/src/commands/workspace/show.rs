//! `safepoint workspace show`.

use safepoint_model::{Exit, text};
use safepoint_progress::ProgressError;
use safepoint_progress::integrate::Integration;
use safepoint_progress::record::Record;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{
    RecordDocument, WorkspaceDocument, budget_line, documents, moment, rows_of, state_word,
    taken_back,
};
use super::integration::IntegrationDocument;
use super::{One, list, open};
use crate::console::{STRONG, count};
use crate::context::Context;
use crate::error::CliError;

/// What `workspace show` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceReply {
    workspace: WorkspaceDocument,
    /// Its newest final checkpoint: what would be integrated.
    #[serde(rename = "final")]
    #[schemars(with = "Option<RecordDocument>")]
    newest_final: Option<Record>,
    /// How its work was taken over, or is being: the last time.
    #[schemars(with = "Option<IntegrationDocument>")]
    integration: Option<Integration>,
    /// Those below it, the oldest first.
    children: Vec<WorkspaceDocument>,
}

pub(crate) fn run(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let taken_back = taken_back(context, &progress)?;
    let own = documents(&progress, vec![progress.workspace(&id)?], &taken_back)?;
    let mut workspace = own.into_iter().next().ok_or(CliError::NotFound {
        what: "workspace",
        name: id.to_string(),
    })?;
    let newest_final = match progress.newest_final(&id) {
        // It is shown as what it is; `workspace verify` says what is wrong with it.
        Err(ProgressError::Tampered { .. }) => {
            workspace.tampered = true;
            None
        }
        other => other?,
    };
    let reply = WorkspaceReply {
        workspace,
        newest_final,
        integration: progress.integrations(&id)?.pop(),
        children: documents(&progress, progress.children(&id)?, &taken_back)?,
    };
    let width = context.console.width();
    context.console.value(&reply, |reply| page(reply, width))?;
    Ok(Exit::Done)
}

fn page(reply: &WorkspaceReply, width: usize) -> String {
    let workspace = &reply.workspace;
    let mut state = state_word(workspace.state);
    if let Some(former) = workspace.former {
        state.push_str(&format!(", {former} before"));
    }
    if let Some(reason) = &workspace.reason {
        state.push_str(&format!(": {}", text::line(reason).text));
    }
    let mut rows = vec![
        (
            "workspace",
            format!("{STRONG}{}{STRONG:#}", workspace.workspace_id),
        ),
        ("role", text::line(&workspace.role).text),
        ("state", state),
        ("made", moment(&workspace.created)),
    ];
    if let Some(parent) = &workspace.parent {
        rows.push(("below", parent.clone()));
        rows.push(("chain", workspace.progress()));
    }
    if let Some(path) = &workspace.path {
        rows.push(("in", text::line(path).text));
    }
    if let Some(task) = &workspace.task {
        rows.push(("task", task.clone()));
    }
    if let Some(timeout) = &workspace.timeout {
        rows.push(("timeout", timeout.clone()));
    }
    if !workspace.budget.is_empty() {
        rows.push(("budget", budget_line(&workspace.budget)));
    }
    if let Some(head) = &workspace.head {
        rows.push(("head", head.clone()));
    }
    if let Some(record) = &reply.newest_final {
        rows.push(("final", record.id.to_string()));
    }
    if let Some(one) = &reply.integration {
        let open = one.conflicts.iter().filter(|it| it.resolution.is_none());
        let how = match (one.result, open.count()) {
            (Some(result), _) => result.to_string(),
            (None, open) => format!("{} open", count(open as u64, "conflict", "conflicts")),
        };
        rows.push((
            "integration",
            format!("{how}, {} {}", one.mode, one.strategy),
        ));
    }
    if let Some(action) = &workspace.taken_back_by {
        rows.push(("taken back", format!("by {action}")));
    }
    let mut page = rows_of(&rows);
    if let Some(directive) = &workspace.directive {
        page.push('\n');
        for line in text::block(directive).text.lines() {
            page.push_str(&format!("  {line}\n"));
        }
    }
    if !reply.children.is_empty() {
        page.push('\n');
    }
    for child in &reply.children {
        page.push_str(&list::line(child, "", width));
    }
    page
}
