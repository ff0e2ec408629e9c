//! `safepoint workspace list`: trees, with how far each workspace is.

use safepoint_model::{Exit, text};
use safepoint_progress::record::Confidence;
use safepoint_progress::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{WorkspaceDocument, documents, state_word, taken_back};
use super::graph::Tree;
use crate::console::{FAINT, Mode, STRONG, WARNING};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only those whose agent is so sure of its newest checkpoint: `high`, `medium` or `low`
    #[arg(long, value_name = "CONFIDENCE")]
    confidence: Option<Confidence>,
    /// Only those that stand so
    #[arg(long, value_name = "STATE")]
    state: Option<State>,
    /// Only those of one run: its root, or any workspace in it
    #[arg(long, value_name = "WORKSPACE")]
    run: Option<String>,
}

/// What `workspace list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceList {
    /// The oldest first, so each comes after its parent.
    workspaces: Vec<WorkspaceDocument>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let progress = context.progress()?;
    let mut workspaces = progress.workspaces()?;
    let is_empty = workspaces.is_empty();
    if let Some(prefix) = &arguments.run {
        let run = progress.workspace(&progress.find(prefix)?)?.run;
        workspaces.retain(|workspace| workspace.run == run);
    }
    let wanted = |workspace: &WorkspaceDocument| {
        let sure = arguments.confidence.is_none() || workspace.confidence == arguments.confidence;
        sure && arguments.state.is_none_or(|state| workspace.state == state)
    };
    let taken_back = taken_back(context, &progress)?;
    let mut workspaces = documents(&progress, workspaces, &taken_back)?;
    workspaces.retain(wanted);
    if context.console.mode == Mode::Ndjson {
        for workspace in &workspaces {
            context.console.json(workspace)?;
        }
        return Ok(Exit::Done);
    }
    let width = context.console.width();
    let reply = WorkspaceList { workspaces };
    context.console.value(&reply, |reply| show(reply, width))?;
    if reply.workspaces.is_empty() {
        context.console.say(match is_empty {
            true => "no workspaces; `safepoint workspace create --role coordinator` begins a run",
            false => "no workspace is like that; `safepoint workspace list` shows all",
        });
    }
    Ok(Exit::Done)
}

fn show(reply: &WorkspaceList, width: usize) -> String {
    let workspaces: Vec<&WorkspaceDocument> = reply.workspaces.iter().collect();
    let tree = Tree::of(&workspaces);
    let mut shown = String::new();
    for (workspace, rails) in tree.lines() {
        shown.push_str(&line(workspace, &rails.at, width));
    }
    shown
}

/// One workspace on one line.
pub(super) fn line(workspace: &WorkspaceDocument, rail: &str, width: usize) -> String {
    let mut line = format!(
        "{FAINT}{rail}{FAINT:#}{STRONG}{}{STRONG:#}  {}  {}",
        workspace.workspace_id,
        text::line(&workspace.role).text,
        state_word(workspace.state),
    );
    if let (State::Failed | State::Blocked, Some(reason)) = (workspace.state, &workspace.reason) {
        let reason = text::shorten(&text::line(reason).text, 40);
        line.push_str(&format!(" {FAINT}({reason}){FAINT:#}"));
    }
    if workspace.taken_back_by.is_some() {
        line.push_str(&format!("  {WARNING}taken back{WARNING:#}"));
    }
    if workspace.parent.is_some() {
        line.push_str(&format!("  {}", workspace.progress()));
    }
    if let Some(directive) = &workspace.directive {
        let first = directive.lines().next().unwrap_or_default();
        let room = width
            .saturating_sub(rail.chars().count() + 70)
            .clamp(20, 60);
        let first = text::shorten(&text::line(first).text, room);
        line.push_str(&format!("  {FAINT}{first}{FAINT:#}"));
    }
    line.push('\n');
    line
}
