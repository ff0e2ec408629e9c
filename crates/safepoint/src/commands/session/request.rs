//! `safepoint session request`.

use std::time::Duration;

use clap::ValueEnum;
use safepoint_authority::{DenialCode, HoldState};
use safepoint_control::ControlError;
use safepoint_control::pass::Requested;
use safepoint_gates::{Event, Request, RiskTier};
use safepoint_model::{Exit, SessionId, Span};
use serde_json::json;

use super::{json_from, step};
use crate::context::Context;
use crate::error::CliError;

/// How often to look whether somebody has decided.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `session request`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The session; the beginning of its id is enough
    session: String,
    /// The action, such as `ticket.delete`
    action: String,
    /// Its parameters as JSON; @FILE for a file, - for standard input
    #[arg(long, value_name = "JSON")]
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
    let (session, mut stepped) = step::ask_for(context, &arguments.session, &event)?;
    if let Some(limit) = arguments.wait {
        let left = Duration::from_micros(limit.as_micros());
        stepped = wait_for_person(context, &session, &event, stepped, left)?;
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
    mut left: Duration,
) -> Result<Requested, CliError> {
    let denial = stepped.denial.as_ref();
    let waits = denial.filter(|it| it.code == DenialCode::ApprovalRequired);
    let Some((denial, hold)) = waits.and_then(|it| Some((it.clone(), it.hold_id.clone()?))) else {
        return Ok(stepped);
    };
    let control = context.control()?;
    loop {
        let found = context.desk(&control).hold(hold.as_str())?;
        if !matches!(found.state, HoldState::Pending | HoldState::Expired) {
            break;
        }
        if left.is_zero() || found.state == HoldState::Expired {
            match context.desk(&control).give_up(&denial) {
                Ok(given_up) => {
                    let denial = Some(given_up);
                    return Ok(Requested { denial, ..stepped });
                }
                Err(ControlError::Meanwhile(_)) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let step = left.min(POLL_INTERVAL);
        std::thread::sleep(step);
        left -= step;
    }
    Ok(step::ask_for(context, session.as_str(), event)?.1)
}
