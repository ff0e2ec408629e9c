//! One step of a session: taken, and printed.

use safepoint_authority::Denial;
use safepoint_control::pass::{Requested, Wants};
use safepoint_gates::{Decision, Event, Judgement, Resolution, Validation};
use safepoint_model::{Exit, SessionId};
use schemars::JsonSchema;
use serde::Serialize;

use super::{deliver, own, show};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session access`
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    /// The session; the beginning of its id is enough
    session: String,
    /// The capability
    capability: String,
}

/// Arguments of `session ask`
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// The session; the beginning of its id is enough
    session: String,
    /// What about
    topic: Option<String>,
    /// Raise this checkpoint
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
}

/// Arguments of `session show`
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// The session; the beginning of its id is enough
    session: String,
}

/// What a step of a session prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionStep {
    /// The request it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// What was thought of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    validation: Option<Validation>,
    /// What the agent may do now.
    resolution: Resolution,
    /// Why a request was not allowed, and how to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<Denial>,
}

/// What `session show` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionDocument {
    session_id: String,
    /// All that is remembered of it.
    session: serde_json::Value,
    /// What the agent may do now.
    resolution: Resolution,
}

pub(super) fn access(context: &mut Context, arguments: &Access) -> Result<Exit, CliError> {
    let event = Event::Access {
        capability: arguments.capability.clone(),
    };
    let judgement = take(context, &arguments.session, &event)?;
    Ok(exit(&judgement))
}

pub(super) fn ask(context: &mut Context, arguments: &Ask) -> Result<Exit, CliError> {
    let event = Event::Ask {
        topic: arguments.topic.clone(),
        gate: arguments.checkpoint.clone(),
    };
    take(context, &arguments.session, &event)?;
    Ok(Exit::Done)
}

pub(super) fn show(context: &mut Context, arguments: &Show) -> Result<Exit, CliError> {
    let control = context.control()?;
    let session = own::find(context, &control, &arguments.session)?;
    let overview = control.show(&session)?;
    let reply = SessionDocument {
        session_id: session.to_string(),
        session: serde_json::to_value(&overview.session)?,
        resolution: overview.resolution,
    };
    context.console.value(&reply, |reply| {
        show::started(&reply.session_id, &reply.resolution)
    })?;
    Ok(Exit::Done)
}

/// Takes a step, and prints what comes of it.
pub(super) fn take(
    context: &mut Context,
    prefix: &str,
    event: &Event,
) -> Result<Judgement, CliError> {
    let (session, stepped) = ask_for(context, prefix, event)?;
    print(context, &session, &stepped)?;
    Ok(stepped.judgement)
}

/// Takes a step; one that needs a person makes a hold.
pub(super) fn ask_for(
    context: &mut Context,
    prefix: &str,
    event: &Event,
) -> Result<(SessionId, Requested), CliError> {
    let control = context.control()?;
    let session = own::find(context, &control, prefix)?;
    let hold_timeout = context.settings.hold_timeout.value;
    let stepped = control.step_asking(&session, event, &Wants::default(), hold_timeout)?;
    deliver::start(context, &control);
    Ok((session, stepped))
}

pub(super) fn print(
    context: &mut Context,
    session: &SessionId,
    stepped: &Requested,
) -> Result<(), CliError> {
    let Requested { judgement, denial } = stepped;
    let reply = SessionStep {
        request_id: judgement.request_id.as_ref().map(ToString::to_string),
        validation: judgement.validation.clone(),
        resolution: judgement.resolution.clone(),
        denial: denial.clone(),
    };
    context.console.value(&reply, |reply| {
        let mut shown = show::step(
            session.as_str(),
            reply.request_id.as_deref(),
            reply.validation.as_ref(),
            &reply.resolution,
        );
        shown.push_str(&show::hold(reply.denial.as_ref()));
        shown
    })
}

/// Allowed is done; everything else is denied, for now or for good.
pub(super) fn exit(judgement: &Judgement) -> Exit {
    match judgement.resolution.decision {
        Decision::Allow => Exit::Done,
        _ => Exit::Denied,
    }
}
