//! `safepoint session input`.

use safepoint_gates::Event;
use safepoint_model::Exit;

use super::{step, text_from};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session input`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// What the agent reads; @FILE for a file, - for standard input
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let text = text_from(context, &arguments.text)?;
    step::take(context, &arguments.session, &Event::Input { text })?;
    Ok(Exit::Done)
}
