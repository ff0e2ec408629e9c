//! `safepoint workspace head` and `safepoint workspace final`.

use safepoint_model::Exit;
use safepoint_progress::record::Record;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{RecordDocument, page};
use super::{One, open};
use crate::context::Context;
use crate::error::CliError;

/// What `workspace head` and `workspace final` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ChainReply {
    workspace_id: String,
    /// Null where there is none yet.
    #[schemars(with = "Option<RecordDocument>")]
    checkpoint: Option<Record>,
}

pub(crate) fn head(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let checkpoint = progress.head(&id)?;
    print(
        context,
        id.to_string(),
        checkpoint,
        "it has no checkpoints yet",
    )
}

pub(crate) fn newest_final(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let checkpoint = progress.newest_final(&id)?;
    print(
        context,
        id.to_string(),
        checkpoint,
        "it has no final checkpoint yet, so nothing of it can be integrated",
    )
}

fn print(
    context: &mut Context,
    workspace_id: String,
    checkpoint: Option<Record>,
    none: &str,
) -> Result<Exit, CliError> {
    let reply = ChainReply {
        workspace_id,
        checkpoint,
    };
    context.console.value(&reply, |reply| {
        reply.checkpoint.as_ref().map(page).unwrap_or_default()
    })?;
    if reply.checkpoint.is_none() {
        context.console.say(none);
    }
    Ok(Exit::Done)
}
