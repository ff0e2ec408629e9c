//! `safepoint workspace signals` and `safepoint workspace signal`.

use safepoint_model::Exit;
use safepoint_progress::signal::{Signal, SignalType};
use safepoint_progress::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{SignalDocument, signal_line, state_word};
use super::{Credential, One, open};
use crate::console::{FAINT, Mode};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace signal`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// What to say: ready, started, blocked, complete, failed, escalation …
    #[arg(value_name = "TYPE")]
    kind: SignalType,
    #[command(flatten)]
    credential: Credential,
    /// Why; blocked, failed and escalation need it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What it is about, such as the id of a checkpoint
    #[arg(long = "ref", value_name = "ID")]
    about: Option<String>,
}

/// What `workspace signals` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignalList {
    workspace_id: String,
    /// What it said and what it was told, in the order in which it was said.
    #[schemars(with = "Vec<SignalDocument>")]
    signals: Vec<Signal>,
}

/// What `workspace signal` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignalReply {
    #[schemars(with = "SignalDocument")]
    signal: Signal,
    /// Where the workspace stands now.
    #[schemars(with = "String")]
    state: State,
}

pub(crate) fn list(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let reply = SignalList {
        workspace_id: id.to_string(),
        signals: progress.signals(&id)?,
    };
    if context.console.mode == Mode::Ndjson {
        for signal in &reply.signals {
            context.console.json(signal)?;
        }
        return Ok(Exit::Done);
    }
    context.console.value(&reply, |reply| {
        reply.signals.iter().map(signal_line).collect()
    })?;
    if reply.signals.is_empty() {
        context
            .console
            .say("it has said nothing, and was told nothing");
    }
    Ok(Exit::Done)
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let token = arguments.credential.read(context)?;
    let (progress, id) = open(context, &arguments.workspace)?;
    let has_nothing_final =
        arguments.kind == SignalType::Complete && matches!(progress.newest_final(&id), Ok(None));
    let signal = progress.emit(
        &id,
        &token,
        arguments.kind,
        arguments.reason.as_deref(),
        arguments.about.as_deref(),
    )?;
    // It may have been delivered at once.
    let told = progress.signals(&id)?;
    let told = told.into_iter().find(|told| told.id == signal.id);
    let reply = SignalReply {
        signal: told.unwrap_or(signal),
        state: progress.workspace(&id)?.state,
    };
    if has_nothing_final && reply.state == State::Integrating {
        context.console.say(
            "it is complete without a final checkpoint: nothing of it can be integrated, and its \
             coordinator can only fail it and salvage",
        );
    }
    context.console.value(&reply, |reply| {
        format!(
            "{}{FAINT}the workspace is{FAINT:#} {}\n",
            signal_line(&reply.signal),
            state_word(reply.state)
        )
    })?;
    Ok(Exit::Done)
}
