//! `safepoint gc`: deletes expired checkpoints, and what nothing needs any more.

use safepoint_model::Exit;
use safepoint_state::Choice;
use safepoint_state::objects::Mode;
use safepoint_store::Sql;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, STRONG, count};
use crate::context::{Context, real_path};
use crate::error::CliError;
use crate::settings::Size;

/// Arguments of `gc`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Delete this checkpoint of the workspace and no other, expired or not; the beginning of its
    /// id is enough
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
    /// Delete it even if the undo of a recent action needs it
    #[arg(long, requires = "checkpoint")]
    force: bool,
}

/// What `gc` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct GcReply {
    /// Whether nothing was done.
    dry_run: bool,
    /// Checkpoints that had expired and were not pinned, or the one that was named.
    deleted: Vec<String>,
    /// How many checkpoints stay.
    kept: u64,
    /// Checkpoints that have expired and stay because an action is undone with them: one that is
    /// running, one of the last 24 hours, or the newest of its workspace.
    kept_for_undo: Vec<KeptDocument>,
    /// How many objects nothing referred to.
    objects: u64,
    /// How many bytes became free; in a dry run an estimate.
    bytes: u64,
    /// What could not be removed besides.
    warnings: Vec<String>,
}

/// An expired checkpoint that `gc` keeps.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeptDocument {
    checkpoint_id: String,
    /// The action that is undone with it.
    action_id: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mode = match arguments.dry_run {
        true => Mode::DryRun,
        false => Mode::Apply,
    };
    let state = context.state()?;
    let choice = match arguments.force {
        true => Choice::Forced,
        false => Choice::Careful,
    };
    // A directory that was deleted has checkpoints all the same.
    let here = context
        .workspace()
        .map_or_else(|_| real_path(&context.directory), |it| it.root);
    super::list::refuse_missing(&state, &here)?;
    let control = context.control()?;
    let running =
        |sql: &mut dyn Sql| -> Result<_, CliError> { Ok(control.states_before_running(sql)?) };
    let collection = match &arguments.checkpoint {
        Some(id) => state.delete_checkpoint(id, &here, choice, &running, mode)?,
        None => state.collect(&running, mode)?,
    };
    let reply = GcReply {
        dry_run: arguments.dry_run,
        deleted: collection.deleted.iter().map(ToString::to_string).collect(),
        kept: collection.kept as u64,
        kept_for_undo: collection
            .kept_for_undo
            .iter()
            .map(|kept| KeptDocument {
                checkpoint_id: kept.checkpoint.to_string(),
                action_id: kept.action.to_string(),
            })
            .collect(),
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
        for kept in &reply.kept_for_undo {
            shown.push_str(&format!(
                "kept  {STRONG}{}{STRONG:#}, expired: the undo of {} needs it\n",
                kept.checkpoint_id, kept.action_id
            ));
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
