//! `safepoint session end`.

use safepoint_gates::Event;
use safepoint_model::Exit;

use super::step;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session end`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// End it even if what is asked at its end is not answered
    #[arg(long)]
    abandon: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let event = Event::End {
        abandon: arguments.abandon,
    };
    let judgement = step::take(context, &arguments.session, &event)?;
    Ok(step::exit(&judgement))
}
