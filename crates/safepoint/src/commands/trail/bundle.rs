//! `safepoint trail bundle`.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::durable::{Access, Replacement};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{Mode, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail bundle`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session: its id, or the beginning of it
    session: String,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What `trail bundle --out` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BundleReply {
    /// The session.
    session: String,
    /// How many entries are in it.
    entries: u64,
    /// How many actions they are of.
    actions: u64,
    /// The size of the trail that they are proved to be in.
    size: u64,
    /// The file.
    out: String,
    /// The public key that checks it.
    key: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let session = trail.find_stream(&arguments.session)?;
    let path = context.output(arguments.out.as_deref())?;
    let Some(path) = path else {
        trail.write_bundle(&session, |piece| context.console.print(piece))?;
        return Ok(Exit::Done);
    };
    let mut file = Replacement::begin(&path, Access::Shared).map_err(CliError::Out)?;
    let written = trail.write_bundle(&session, |piece| {
        file.write(piece.as_bytes()).map_err(CliError::Out)
    })?;
    file.finish().map_err(CliError::Out)?;
    let reply = BundleReply {
        session: session.to_string(),
        entries: written.entries,
        actions: written.actions as u64,
        size: written.head.size(),
        out: path.display().to_string(),
        key: trail.key().to_string(),
    };
    match context.console.mode {
        Mode::Text => context.console.say(&format!(
            "{} of {} written to {}; check it with: safepoint trail check-bundle {} --key '{}'",
            count(reply.entries, "entry", "entries"),
            count(reply.actions, "action", "actions"),
            reply.out,
            reply.out,
            reply.key,
        )),
        Mode::Json | Mode::Ndjson => context.console.json(&reply)?,
    }
    Ok(Exit::Done)
}
