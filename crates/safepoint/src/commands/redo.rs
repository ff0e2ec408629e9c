//! `safepoint redo`: takes back the last roll back or undo.

use safepoint_model::Exit;
use safepoint_state::{Goal, StateError, taken_back};

use super::restoring::{self, Beside};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `redo`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let state = context.state()?;
    let actions = state.actions(&workspace.root, 200)?;
    let taken = taken_back(&actions);
    let action = actions
        .into_iter()
        .find(|one| {
            matches!(
                one.action.as_str(),
                "checkpoint.rollback" | "checkpoint.undo"
            ) && !taken.contains_key(&one.id)
        })
        .ok_or_else(|| StateError::NotFound {
            what: "roll back or undo to take back in",
            name: workspace.root.display().to_string(),
        })?;
    let action = state.find_action(action.id.as_str())?; // as the trail tells of it
    let goal = Goal::Without {
        action: &action,
        verb: "redo",
    };
    restoring::run(
        context,
        &state,
        &workspace,
        &goal,
        arguments.dry_run,
        None,
        Beside::default(),
    )
}
