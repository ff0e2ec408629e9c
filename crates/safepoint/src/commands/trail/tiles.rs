//! `safepoint trail tiles`.

use std::path::PathBuf;

use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::head::root;
use crate::console::{FAINT, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail tiles`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to write them; what is there already is continued
    #[arg(value_name = "DIR")]
    tiles: PathBuf,
}

/// What `trail tiles` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TilesReply {
    /// Where the tiles are.
    directory: String,
    /// How many entries they have now.
    size: u64,
    /// The root of the tree over them, in base64.
    root: String,
    /// How many entries they had before.
    before: u64,
    /// How many tiles and bundles of entries were written.
    written: u64,
    /// The checkpoint beside them.
    checkpoint: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let directory = context.directory.join(&arguments.tiles);
    let bar = context.console.progress(
        trail.head().map_or(0, |head| head.size()),
        "{wide_bar} {human_pos}/{human_len} entries, {per_sec}",
    );
    let written = trail.write_tiles(&directory, |entries| bar.set_position(entries));
    bar.finish_and_clear();
    let written = written?;
    let reply = TilesReply {
        directory: directory.display().to_string(),
        size: written.head.size(),
        root: root(&written.head),
        before: written.before,
        written: written.files,
        checkpoint: written.checkpoint,
    };
    context.console.value(&reply, show)?;
    Ok(Exit::Done)
}

fn show(reply: &TilesReply) -> String {
    format!(
        "{} in {}\n{FAINT}{} before, {} written{FAINT:#}\n",
        count(reply.size, "entry", "entries"),
        text::line(&reply.directory).text,
        reply.before,
        count(reply.written, "file", "files"),
    )
}
