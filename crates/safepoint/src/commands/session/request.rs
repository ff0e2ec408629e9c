//! `safepoint session request`.

use clap::ValueEnum;
use safepoint_authority::DenialCode;
use safepoint_control::pass::Requested;
use safepoint_gates::{Event, Request, RiskTier};
use safepoint_model::{Exit, SessionId, Span};
use serde_json::json;

use super::{json_from, step};
use crate::commands::waiting::{self, Asked, Next, StopSignals};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session request`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// The action, such as `ticket.delete`
    action: String,
    /// Its parameters as JSON or YAML; @FILE for a file, - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    params: Option<String>,
    /// The risk that you see in it; the atlas's own can be raised, never lowered
    #[arg(long, value_enum, value_name = "TIER")]
    risk: Option<Tier>,
    /// Wait so long for a person to decide, such as `5m`
    #[arg(long, value_name = "TIME")]
    wait: Option<Span>,
}

/// How much harm an action can do
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Tier {
    Low,
    Medium,
    High,
    Critical,
}

impl From<Tier> for RiskTier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Low => Self::Low,
            Tier::Medium => Self::Medium,
            Tier::High => Self::High,
            Tier::Critical => Self::Critical,
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let parameters = match &arguments.params {
        Some(given) => json_from(context, given, "`--params`")?,
        None => json!({}),
    };
    let event = Event::Request(Request {
        action: arguments.action.clone(),
        parameters,
        risk: arguments.risk.map(RiskTier::from),
        conditions: std::collections::BTreeSet::new(),
    });
    // From before the hold is there: whoever sees it can already interrupt the wait.
    let stop = arguments.wait.map(|_| StopSignals::listen()).transpose()?;
    let (session, mut stepped) = step::ask_for(context, &arguments.session, &event)?;
    if let (Some(limit), Some(stop)) = (arguments.wait, &stop) {
        stop.check()?;
        stepped = wait_for_person(context, &session, &event, stepped, limit, stop)?;
    }
    step::print(context, &session, &stepped)?;
    Ok(step::exit(&stepped.judgement))
}

/// Waits until somebody has decided about a request, and asks again then.
fn wait_for_person(
    context: &mut Context,
    session: &SessionId,
    event: &Event,
    stepped: Requested,
    limit: Span,
    stop: &StopSignals,
) -> Result<Requested, CliError> {
    let denial = stepped.denial.as_ref();
    let waits = denial.filter(|it| it.code == DenialCode::ApprovalRequired);
    let Some(denial) = waits.filter(|it| it.hold_id.is_some()).cloned() else {
        return Ok(stepped);
    };
    let control = context.control()?;
    let asked = Asked::Session(&control);
    let denied = match waiting::wait_for_decision(context, asked, &denial, limit, stop)? {
        Next::Denied(denied) => denied,
        Next::Ask => {
            let again = step::ask_for(context, session.as_str(), event);
            match waiting::void_if_changed(context, asked, &denial, again)? {
                Ok((_, stepped)) => return Ok(stepped),
                Err(denied) => denied,
            }
        }
    };
    Ok(Requested {
        denial: Some(*denied),
        ..stepped
    })
}
