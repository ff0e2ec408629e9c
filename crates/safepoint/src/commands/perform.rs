//! `safepoint perform ACTION -- bash -c LINE`: runs a line behind the fence that a client was
//! given leave for. Hooks put it in the place of the line; nobody types it.

use std::process::ExitCode;

use safepoint_fence::Listener;
use safepoint_model::ActionId;

use super::passing::{Flags, Room};
use super::run::{Broker, BrokerClient, Keeper};
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
    let passage = room.passage();
    let leave = passage.performing(&action)?;
    let client = BrokerClient {
        session: leave.session_id,
        agent: leave.client.unwrap_or_else(|| "1".to_owned()),
        root: leave.workspace,
        // A person edits beside it: what nobody has told of yet may be theirs.
        since: None,
        mode: None,
        keeper: Keeper::Perform,
    };
    let broker = Broker::new(context, client);
    // Through this socket the line calls `safepoint`. Without it the line runs all the same.
    let code = match Listener::bind(&context.paths.runtime) {
        Ok(listener) => broker.serve_during(&listener, |socket| {
            passage.perform(&action, &arguments.command, Some(socket))
        }),
        Err(error) => {
            let message = format!("`safepoint` does not work inside this line: {error}");
            context.console.warn(&message);
            passage.perform(&action, &arguments.command, None)
        }
    };
    Ok(ExitCode::from(code?))
}
