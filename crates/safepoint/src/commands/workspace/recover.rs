//! `safepoint workspace recover`: every workspace compared with the trail, what was cut off ended.

use safepoint_model::{Exit, text};
use safepoint_progress::Fault;
use schemars::JsonSchema;
use serde::Serialize;

use super::verify::FaultDocument;
use crate::console::{BAD, FAINT, GOOD, STRONG, count};
use crate::context::Context;
use crate::error::CliError;

/// What `workspace recover` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RecoverReply {
    /// How long nothing had been recorded before it.
    downtime: String,
    /// How many workspaces are as the trail tells.
    workspaces_recovered: u64,
    /// How many are not.
    workspaces_failed: u64,
    /// How many signals were delivered that had been left lying.
    signals_requeued: u64,
    /// How many moves were made that a signal had asked for.
    transitions_made: u64,
    /// How many integrations were ended that had been cut off.
    integrations_ended: usize,
    /// How many directories were cleared away that no workspace has.
    directories_cleared: usize,
    /// How many entries of the trail were read.
    trail_entries_examined: u64,
    /// What is not as the trail tells.
    faults: Vec<FoundFault>,
    /// Integrations that were cut off and could not be ended.
    integrations_failed: Vec<FailedIntegration>,
}

/// An integration that could not be ended.
#[derive(Serialize, JsonSchema)]
struct FailedIntegration {
    /// The workspace whose work was taken over.
    workspace_id: String,
    /// Why it has not ended.
    reason: String,
}

/// A workspace or a task that is not as the trail tells.
#[derive(Serialize, JsonSchema)]
struct FoundFault {
    /// The workspace, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<String>,
    /// The task, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<String>,
    #[schemars(with = "FaultDocument")]
    fault: Fault,
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let progress = context.progress()?;
    let recovered = progress.recover()?;
    let state = context.state()?;
    let integrations = progress.recover_integrations(&state, &context.actor()?)?;
    let directories = progress.clear_apart(&state)?;
    let of_workspaces = recovered.faults.into_iter().map(|(id, fault)| FoundFault {
        workspace_id: Some(id.to_string()),
        task_id: None,
        fault,
    });
    let mut faults: Vec<FoundFault> = of_workspaces.collect();
    let of_tasks = recovered.task_faults.into_iter();
    faults.extend(of_tasks.map(|(id, fault)| FoundFault {
        workspace_id: None,
        task_id: Some(id.to_string()),
        fault,
    }));
    let reply = RecoverReply {
        downtime: recovered.downtime.to_string(),
        workspaces_recovered: recovered.workspaces_recovered,
        workspaces_failed: recovered.workspaces_failed,
        signals_requeued: recovered.signals_requeued,
        transitions_made: recovered.transitions_made,
        integrations_ended: integrations.ended.len(),
        directories_cleared: directories,
        trail_entries_examined: recovered.trail_entries_examined,
        faults,
        integrations_failed: integrations
            .failed
            .into_iter()
            .map(|(one, error)| FailedIntegration {
                workspace_id: one.source.to_string(),
                reason: error.to_string(),
            })
            .collect(),
    };
    context.console.value(&reply, show)?;
    Ok(
        match reply.faults.is_empty() && reply.integrations_failed.is_empty() {
            true => Exit::Done,
            false => Exit::Failed,
        },
    )
}

fn show(reply: &RecoverReply) -> String {
    let mut shown = String::new();
    for found in &reply.faults {
        let fault = &found.fault;
        let whose = found.workspace_id.as_ref().or(found.task_id.as_ref());
        shown.push_str(&format!(
            "{BAD}bad{BAD:#}   {STRONG}{}{STRONG:#}: {} {}: {}\n",
            whose.map_or("", String::as_str),
            fault.subject,
            fault.number,
            text::line(fault.reason).text
        ));
    }
    for failed in &reply.integrations_failed {
        shown.push_str(&format!(
            "{BAD}bad{BAD:#}   {STRONG}{}{STRONG:#}: its integration: {}\n",
            failed.workspace_id,
            text::line(&failed.reason).text
        ));
    }
    let good = count(reply.workspaces_recovered, "workspace", "workspaces");
    let entries = count(reply.trail_entries_examined, "entry", "entries");
    shown.push_str(&format!(
        "{GOOD}good{GOOD:#}  {good}, as {entries} of the trail tell\n"
    ));
    let signals = count(reply.signals_requeued, "signal", "signals");
    let moves = count(reply.transitions_made, "move", "moves");
    shown.push_str(&format!(
        "{FAINT}      {signals} delivered and {moves} made that had been left undone{FAINT:#}\n"
    ));
    if reply.integrations_ended > 0 {
        let ended = reply.integrations_ended as u64;
        let ended = count(ended, "integration", "integrations");
        shown.push_str(&format!(
            "{FAINT}      {ended} ended that had been cut off{FAINT:#}\n"
        ));
    }
    shown
}
