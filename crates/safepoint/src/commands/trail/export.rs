//! `safepoint trail export`.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::Flow;
use safepoint_store::durable::{Access, Replacement};

use super::filter::Filter;
use crate::console::count;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail export`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// The form to write
    #[arg(long, value_enum)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A form that other tools read.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// One JSON object a line, as `trail list` prints them
    Jsonl,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let query = arguments.filter.query(&trail)?;
    let Format::Jsonl = arguments.format;
    let path = context.output(arguments.out.as_deref())?;
    let mut file = path
        .as_deref()
        .map(|path| Replacement::begin(path, Access::Shared))
        .transpose()
        .map_err(CliError::Out)?;
    let mut exported = 0;
    trail.entries(&query, |entry| -> Result<Flow, CliError> {
        let mut line = serde_json::to_string(&entry)?;
        line.push('\n');
        match &mut file {
            Some(file) => file.write(line.as_bytes()).map_err(CliError::Out)?,
            None => context.console.print(&line)?,
        }
        exported += 1;
        Ok(Flow::More)
    })?;
    if let (Some(file), Some(path)) = (file, path) {
        file.finish().map_err(CliError::Out)?;
        let entries = count(exported, "entry", "entries");
        context
            .console
            .say(&format!("{entries} written to {}", path.display()));
    }
    Ok(Exit::Done)
}
