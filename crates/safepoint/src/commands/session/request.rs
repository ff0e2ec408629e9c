//! `safepoint session request`.

use clap::ValueEnum;
use safepoint_gates::{Event, Request, RiskTier};
use safepoint_model::Exit;
use serde_json::json;

use super::{json_from, step};
use crate::context::Context;
use crate::error::CliError;

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
    let judgement = step::take(context, &arguments.session, &event)?;
    Ok(step::exit(&judgement))
}
