//! `safepoint session report`.

use clap::ValueEnum;
use safepoint_control::pass::Requested;
use safepoint_gates::Outcome;
use safepoint_model::{ActionId, Exit};

use super::{deliver, json_from, own, step};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session report`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// The request, as `session request` named it
    request_id: ActionId,
    /// How it ended
    #[arg(long, value_enum, value_name = "OUTCOME")]
    outcome: Ended,
    /// What came of it, as JSON or YAML; @FILE for a file, - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    result: Option<String>,
}

/// How an action ended
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ended {
    /// Well
    Ok,
    /// Badly
    Error,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let result = match &arguments.result {
        Some(given) => Some(json_from(context, given, "`--result`")?),
        None => None,
    };
    let outcome = match arguments.outcome {
        Ended::Ok => Outcome::Ok,
        Ended::Error => Outcome::Error,
    };
    let control = context.control()?;
    let session = own::find(context, &control, &arguments.session)?;
    let judgement = control.report(&session, &arguments.request_id, outcome, result)?;
    deliver::start(context, &control);
    let stepped = Requested {
        judgement,
        denial: None,
    };
    step::print(context, &session, &stepped)?;
    Ok(Exit::Done)
}
