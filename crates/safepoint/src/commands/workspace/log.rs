//! `safepoint workspace log`: a whole chain, and for the root the whole run.

use std::collections::BTreeSet;

use safepoint_model::{Exit, text};
use safepoint_progress::Progress;
use safepoint_progress::record::Record;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{RecordDocument, TakenBack, WorkspaceDocument, documents, taken_back};
use super::graph::{self, Tree};
use super::{list, open};
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace log`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// Draw the chain; for the root of a run, all chains of its workspaces
    #[arg(long)]
    graph: bool,
}

/// What `workspace log` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChainLog {
    workspace_id: String,
    /// Its chain, the first checkpoint first.
    #[schemars(with = "Vec<RecordDocument>")]
    checkpoints: Vec<Record>,
    /// Checkpoints that are not what was written: nothing of them is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    tampered: Vec<String>,
    /// For the root of a run: all workspaces of it, each after its parent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    workspaces: Vec<WorkspaceLog>,
}

/// One workspace of a run.
#[derive(Serialize, JsonSchema)]
struct WorkspaceLog {
    workspace: WorkspaceDocument,
    /// Its chain, the first checkpoint first.
    #[schemars(with = "Vec<RecordDocument>")]
    checkpoints: Vec<Record>,
    /// Checkpoints that are not what was written: nothing of them is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    tampered: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let workspace = progress.workspace(&id)?;
    let workspaces = match workspace.parent {
        Some(_) => Vec::new(),
        None => {
            let taken_back = taken_back(context, &progress)?;
            whole_run(&progress, &workspace, &taken_back)?
        }
    };
    let found = progress.found(&id)?;
    let log = ChainLog {
        workspace_id: id.to_string(),
        checkpoints: found.records,
        tampered: found.tampered,
        workspaces,
    };
    if context.console.mode == Mode::Ndjson {
        let own = log.checkpoints.iter();
        let others = log.workspaces.iter().flat_map(|it| &it.checkpoints);
        for record in own.chain(others) {
            context.console.json(record)?;
        }
        return Ok(Exit::Done);
    }
    let width = context.console.width();
    context.console.value(&log, |log| match arguments.graph {
        true => graph(log, width),
        false if log.workspaces.is_empty() => graph::rows(&log.checkpoints, width),
        false => list_of_run(log, width),
    })?;
    let below = log.workspaces.iter().flat_map(|it| &it.tampered);
    let tampered: BTreeSet<&String> = log.tampered.iter().chain(below).collect();
    for id in &tampered {
        let id = text::line(id).text;
        context.console.warn(&format!(
            "the checkpoint `{id}` is not what was written; `safepoint workspace verify` says more"
        ));
    }
    if log.checkpoints.is_empty() && log.workspaces.is_empty() && tampered.is_empty() {
        context.console.say("it has no checkpoints yet");
    }
    Ok(Exit::Done)
}

/// All workspaces of a run and their chains.
fn whole_run(
    progress: &Progress,
    root: &safepoint_progress::Workspace,
    taken_back: &TakenBack,
) -> Result<Vec<WorkspaceLog>, CliError> {
    let mut all = progress.workspaces()?;
    all.retain(|workspace| workspace.run == root.run);
    let chains = all
        .iter()
        .map(|workspace| progress.found(&workspace.workspace_id))
        .collect::<Result<Vec<_>, _>>()?;
    let documents = documents(progress, all, taken_back)?;
    let together = documents.into_iter().zip(chains);
    Ok(together
        .map(|(workspace, found)| WorkspaceLog {
            workspace,
            checkpoints: found.records,
            tampered: found.tampered,
        })
        .collect())
}

fn graph(log: &ChainLog, width: usize) -> String {
    if log.workspaces.is_empty() {
        return graph::stair(&log.checkpoints, "", width);
    }
    drawn(log, width, |records, rail| {
        graph::stair(records, rail, width)
    })
}

fn list_of_run(log: &ChainLog, width: usize) -> String {
    drawn(log, width, |records, rail| {
        let rows = graph::rows(records, width.saturating_sub(rail.chars().count()));
        let lines: Vec<String> = rows.lines().map(|row| format!("{rail}{row}\n")).collect();
        lines.concat()
    })
}

/// The tree of a run, with something under each workspace.
fn drawn(log: &ChainLog, width: usize, under: impl Fn(&[Record], &str) -> String) -> String {
    let workspaces: Vec<&WorkspaceDocument> =
        log.workspaces.iter().map(|it| &it.workspace).collect();
    let tree = Tree::of(&workspaces);
    let mut shown = String::new();
    for (workspace, rails) in tree.lines() {
        shown.push_str(&list::line(workspace, &rails.at, width));
        let chain = log
            .workspaces
            .iter()
            .find(|it| it.workspace.workspace_id == workspace.workspace_id);
        let chain = chain
            .map(|it| it.checkpoints.as_slice())
            .unwrap_or_default();
        shown.push_str(&under(chain, &rails.under));
    }
    shown
}
