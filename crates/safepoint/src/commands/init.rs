//! `safepoint init`: makes the store and its trail.

use std::io::{IsTerminal, Write};

use safepoint_model::{Exit, text};
use safepoint_trail::LostStore;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, GOOD};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `init`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Begin a new trail where the store of an old one is gone, and record the loss in it
    #[arg(long)]
    start_anew: bool,
}

/// What `init` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Initialised {
    /// The store.
    store: String,
    /// How many entries its trail has.
    entries: u64,
    /// The public key of the trail: what `trail check-proof --key` takes.
    key: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let lost_store = if arguments.start_anew {
        confirm(context)?;
        LostStore::StartAnew
    } else {
        LostStore::Refuse
    };
    let trail = context.trail_or(lost_store)?;
    if arguments.start_anew && trail.head()?.size() > 1 {
        return Err(CliError::Invalid {
            message: "the store is not empty, so there is nothing to start anew from".into(),
            suggestion: "move the database away first, or choose another with `--store`",
        });
    }
    let initialised = Initialised {
        store: context.settings.store.value.to_string(),
        entries: trail.head()?.size(),
        key: trail.key().to_string(),
    };
    context.console.value(&initialised, |it| {
        format!(
            "{GOOD}ready{GOOD:#}  {}\n{FAINT}key{FAINT:#}    {}\n",
            text::line(&it.store).text,
            text::line(&it.key).text
        )
    })?;
    Ok(Exit::Done)
}

/// Starting anew gives up what the old trail could still prove, so it is asked.
fn confirm(context: &Context) -> Result<(), CliError> {
    if context.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Invalid {
            message: "`--start-anew` gives up on an old trail and wants to be confirmed".into(),
            suggestion: "add `--yes`, or run it on a terminal",
        });
    }
    let mut talk = std::io::stderr();
    write!(
        talk,
        "Give up on the old trail and begin a new one? Type yes: "
    )?;
    talk.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(CliError::Invalid {
        message: "it was not confirmed, and nothing was changed".into(),
        suggestion: "answer with the whole word `yes`",
    })
}
