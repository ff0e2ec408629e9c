//! `safepoint workspace decline` and `safepoint workspace remove`.

use safepoint_model::Exit;
use safepoint_progress::integrate::Declined;
use safepoint_progress::remove_apart;

use super::state::{StateReply, print_state};
use super::{One, open};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace decline`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// It is to be done again, in a new workspace
    #[arg(long)]
    revise: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let how = match arguments.revise {
        true => Declined::Revise,
        false => Declined::Rejected,
    };
    progress.decline(&id, how, &context.actor()?)?;
    print_state(context, StateReply::of(&progress.workspace(&id)?))
}

pub(crate) fn remove(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let Some(place) = progress.place(&id)? else {
        return Err(CliError::Invalid {
            message: format!("`{id}` has no directory of its own"),
            suggestion: "`safepoint workspace create --isolated` makes one with it",
        });
    };
    let state = context.state()?;
    let directory = context.directory_of(&place)?;
    remove_apart(&progress, &state, &directory, &id, &context.actor()?)?;
    print_state(context, StateReply::of(&progress.workspace(&id)?))
}
