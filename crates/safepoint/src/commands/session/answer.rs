//! `safepoint session answer`.

use safepoint_gates::Event;
use safepoint_model::{Exit, HoldId};
use serde_json::Value;

use super::{json_from, step};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session answer`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// The checkpoint that asks
    checkpoint_id: String,
    /// The answers by question as JSON or YAML, such as {"agree": true}; @FILE for a file, - for
    /// standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    answers: String,
    /// The hold, where the checkpoint waits in several
    #[arg(long, value_name = "ID")]
    hold: Option<HoldId>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Value::Object(answers) = json_from(context, &arguments.answers, "`--answers`")? else {
        return Err(CliError::Invalid {
            message: "`--answers` is not a JSON object".to_owned(),
            suggestion: r#"give each answer by the name of its question, such as `{"agree": true}`"#,
        });
    };
    let event = Event::Answer {
        gate: arguments.checkpoint_id.clone(),
        hold: arguments.hold.clone(),
        answers,
    };
    let judgement = step::take(context, &arguments.session, &event)?;
    let valid = judgement.validation.is_some_and(|it| it.is_valid);
    Ok(if valid { Exit::Done } else { Exit::Denied })
}
