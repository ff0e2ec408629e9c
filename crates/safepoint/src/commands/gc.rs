//! `safepoint gc`: deletes expired checkpoints, and what nothing needs any more.

use safepoint_model::Exit;
use safepoint_state::objects::Mode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, STRONG, count};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::Size;

/// Arguments of `gc`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

/// What `gc` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GcReply {
    /// Whether nothing was done.
    dry_run: bool,
    /// Checkpoints that had expired and were not pinned.
    deleted: Vec<String>,
    /// How many checkpoints stay.
    kept: u64,
    /// How many objects nothing referred to.
    objects: u64,
    /// How many bytes became free; in a dry run an estimate.
    bytes: u64,
    /// What could not be removed besides.
    warnings: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mode = match arguments.dry_run {
        true => Mode::DryRun,
        false => Mode::Apply,
    };
    let state = context.state()?;
    let collection = state.collect(mode)?;
    let reply = GcReply {
        dry_run: arguments.dry_run,
        deleted: collection.deleted.iter().map(ToString::to_string).collect(),
        kept: collection.kept as u64,
        objects: collection.objects.objects,
        bytes: collection.objects.bytes,
        warnings: collection.warnings.clone(),
    };
    context.console.value(&reply, |reply| {
        let mut shown = String::new();
        let would = if reply.dry_run { "would free" } else { "freed" };
        for id in &reply.deleted {
            let verb = if reply.dry_run {
                "would delete"
            } else {
                "deleted"
            };
            shown.push_str(&format!("{verb}  {STRONG}{id}{STRONG:#}\n"));
        }
        shown.push_str(&format!(
            "{GOOD}{would}{GOOD:#}  {} in {}; {} kept\n",
            Size(reply.bytes),
            count(reply.objects, "object", "objects"),
            count(reply.kept, "checkpoint", "checkpoints"),
        ));
        shown
    })?;
    for warning in &collection.warnings {
        context.console.warn(warning);
    }
    Ok(Exit::Done)
}
