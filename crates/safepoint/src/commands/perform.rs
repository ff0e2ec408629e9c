//! `safepoint perform ACTION -- bash -c LINE`: runs a line behind the fence that a client was
//! given leave for. Hooks put it in the place of the line; nobody types it.

use std::process::ExitCode;

use safepoint_model::ActionId;

use super::passing::{Flags, Room};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `perform`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The action that was let through
    action: String,
    /// The shell and its line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<ExitCode, CliError> {
    let action: ActionId = arguments.action.parse().map_err(|_| CliError::Invalid {
        message: "that is not an action".into(),
        suggestion: "only a hook starts this",
    })?;
    let room = Room::open(context, &Flags::of_hook(false))?;
    let code = room.passage().perform(&action, &arguments.command)?;
    Ok(ExitCode::from(code))
}
