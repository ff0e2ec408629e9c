//! `safepoint pin`: keeps a checkpoint even when it has expired.

use safepoint_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `pin`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which checkpoint; the beginning of its id is enough
    id: String,
    /// No longer keep it when it has expired
    #[arg(long)]
    remove: bool,
}

/// What `pin` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PinReply {
    checkpoint_id: String,
    /// Whether it is pinned now.
    pinned: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let snapshot = state.find(&arguments.id)?;
    let pinned = !arguments.remove;
    state.pin(&snapshot, pinned)?;
    let reply = PinReply {
        checkpoint_id: snapshot.id.to_string(),
        pinned,
    };
    context.console.value(&reply, |reply| {
        let word = if reply.pinned {
            "pinned"
        } else {
            "no longer pinned"
        };
        format!(
            "{GOOD}{word}{GOOD:#}  {STRONG}{}{STRONG:#}\n",
            reply.checkpoint_id
        )
    })?;
    Ok(Exit::Done)
}
