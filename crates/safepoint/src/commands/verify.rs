//! `safepoint verify`: whether a checkpoint can be restored.

use safepoint_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, STRONG, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `verify`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which checkpoint; the beginning of its id is enough
    id: String,
}

/// What `verify` prints. One that does not hold is an error.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifyReply {
    checkpoint_id: String,
    /// Always true.
    valid: bool,
    /// How many directories were read and hashed.
    directories: u64,
    /// How many different contents were read and hashed.
    contents: u64,
    /// The hash of its files.
    hash: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let snapshot = state.find(&arguments.id)?;
    let verified = state.verify(&snapshot)?;
    let reply = VerifyReply {
        checkpoint_id: snapshot.id.to_string(),
        valid: true,
        directories: verified.trees,
        contents: verified.contents,
        hash: format!("sha256:{}", snapshot.hash()),
    };
    context.console.value(&reply, |reply| {
        format!(
            "{GOOD}whole{GOOD:#}  {STRONG}{}{STRONG:#}: {} and {} read back\n",
            reply.checkpoint_id,
            count(reply.directories, "directory", "directories"),
            count(reply.contents, "content", "contents"),
        )
    })?;
    Ok(Exit::Done)
}
