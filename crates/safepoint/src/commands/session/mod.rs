//! `safepoint session …`: what an agent does, judged step by step.

pub(crate) mod answer;
pub(super) mod deliver;
pub(crate) mod end;
pub(crate) mod input;
pub(crate) mod list;
pub(super) mod own;
pub(crate) mod report;
pub(crate) mod request;
mod show;
pub(crate) mod start;
pub(crate) mod step;

use std::io::Read;
use std::path::Path;

use clap::Subcommand;
use safepoint_model::{Exit, json};
use serde_json::Value;

use super::outside;
use crate::context::Context;
use crate::error::CliError;

/// What can happen to a session
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Begin a session under one or more atlases
    Start(start::Arguments),
    /// Tell what the agent reads: keywords and intervals
    Input(input::Arguments),
    /// Ask whether an action may be done
    Request(request::Arguments),
    /// Ask for a capability
    Access(step::Access),
    /// Ask for help, or raise a checkpoint by name
    Ask(step::Ask),
    /// Answer the questions of a checkpoint
    Answer(answer::Arguments),
    /// Tell how an action ended
    Report(report::Arguments),
    /// Show how a session stands
    Show(step::Show),
    /// List sessions, the newest first
    List(list::Arguments),
    /// End a session; what still waits is denied
    End(end::Arguments),
    /// Deliver what stewards are to be told; started by the others, beside them
    #[command(hide = true)]
    Deliver,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::Start(arguments) => start::run(context, &arguments),
        Command::Input(arguments) => input::run(context, &arguments),
        Command::Request(arguments) => request::run(context, &arguments),
        Command::Access(arguments) => step::access(context, &arguments),
        Command::Ask(arguments) => step::ask(context, &arguments),
        Command::Answer(arguments) => answer::run(context, &arguments),
        Command::Report(arguments) => report::run(context, &arguments),
        Command::Show(arguments) => step::show(context, &arguments),
        Command::List(arguments) => list::run(context, &arguments),
        Command::End(arguments) => end::run(context, &arguments),
        Command::Deliver => deliver::run(context),
    }
}

/// The most that is read from a file or from standard input: 16 MiB.
const LARGEST_INPUT: u64 = 16 << 20;

/// A text from the command line, from a file (`@FILE`) or from standard input (`-`).
pub(in crate::commands) fn text_from(context: &Context, given: &str) -> Result<String, CliError> {
    let mut text = String::new();
    if given == "-" {
        let read = context.input(LARGEST_INPUT).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| std::io::ErrorKind::InvalidData.into())
        });
        text = read.map_err(|error| unreadable(Path::new("-"), error))?;
    } else if let Some(name) = given.strip_prefix('@') {
        let path = context.directory.join(name);
        let file = std::fs::File::open(&path).map_err(|error| unreadable(&path, error))?;
        file.take(LARGEST_INPUT + 1)
            .read_to_string(&mut text)
            .map_err(|error| unreadable(&path, error))?;
    } else {
        given.clone_into(&mut text);
    }
    if text.len() as u64 > LARGEST_INPUT {
        return Err(CliError::Invalid {
            message: format!("`{given}` is larger than {} MiB", LARGEST_INPUT >> 20),
            suggestion: "give less of it",
        });
    }
    Ok(text)
}

fn unreadable(path: &Path, error: std::io::Error) -> CliError {
    CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    }
}

/// JSON from the command line, from a file or from standard input.
fn json_from(context: &Context, given: &str, what: &str) -> Result<Value, CliError> {
    let text = text_from(context, given)?;
    let text = outside::to_json(text.into_bytes(), given)?;
    json::read(&text, json::Limits::default()).map_err(|error| CliError::Invalid {
        message: format!("{what} cannot be read: {error}"),
        suggestion: "give JSON or YAML, or `@FILE`, or `-` for standard input",
    })
}
