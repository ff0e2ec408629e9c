//! `safepoint du`: how much the store holds.

use std::collections::BTreeMap;

use safepoint_model::Exit;
use safepoint_state::Selection;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{STRONG, count};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::Size;

/// Arguments of `du`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {}

/// What `du` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Usage {
    /// Bytes of all packs.
    bytes: u64,
    /// What they may have at most.
    cap: u64,
    /// How many contents and trees are stored.
    objects: u64,
    /// In how many files.
    packs: u64,
    /// How many checkpoints there are.
    checkpoints: u64,
    /// The bytes of their files, if each had its own copy.
    logical_bytes: u64,
    /// By workspace.
    workspaces: Vec<WorkspaceUsage>,
}

/// What one workspace brought in.
#[derive(Serialize, JsonSchema)]
struct WorkspaceUsage {
    workspace: String,
    checkpoints: u64,
    /// How many bytes the store grew by with its checkpoints.
    bytes: u64,
}

pub(crate) fn run(context: &mut Context, _: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let found = state.usage()?;
    let snapshots = state.list(&Selection::default())?;
    let mut workspaces: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for snapshot in &snapshots {
        let place = snapshot.workspace.display().to_string();
        let (number, bytes) = workspaces.entry(place).or_default();
        *number += 1;
        *bytes += snapshot.record.size;
    }
    let usage = Usage {
        bytes: found.bytes,
        cap: context.settings.object_cap.value.0,
        objects: found.objects,
        packs: found.packs,
        checkpoints: snapshots.len() as u64,
        logical_bytes: snapshots.iter().map(|one| one.record.files.bytes).sum(),
        workspaces: workspaces
            .into_iter()
            .map(|(workspace, (checkpoints, bytes))| WorkspaceUsage {
                workspace,
                checkpoints,
                bytes,
            })
            .collect(),
    };
    context.console.value(&usage, show)?;
    Ok(Exit::Done)
}

fn show(usage: &Usage) -> String {
    let mut shown = format!(
        "{STRONG}{}{STRONG:#} of {}, for {} that would take {} as copies\n{} in {}\n",
        Size(usage.bytes),
        Size(usage.cap),
        count(usage.checkpoints, "checkpoint", "checkpoints"),
        Size(usage.logical_bytes),
        count(usage.objects, "object", "objects"),
        count(usage.packs, "pack", "packs"),
    );
    for one in &usage.workspaces {
        shown.push_str(&format!(
            "  {:>10}  {:>16}  {}\n",
            Size(one.bytes).to_string(),
            count(one.checkpoints, "checkpoint", "checkpoints"),
            safepoint_model::text::line(&one.workspace).text,
        ));
    }
    shown
}
