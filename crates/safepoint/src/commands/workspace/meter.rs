//! `safepoint workspace meter`: what a workspace took by our own account.

use safepoint_model::{Exit, text};
use safepoint_progress::Metered;
use safepoint_progress::meter::Strain;
use safepoint_progress::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::create::amount;
use super::document::{rows_of, state_word};
use super::open;
use crate::console::{BAD, WARNING, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace meter`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// Add so many tokens, which whoever runs the agent has counted
    #[arg(long, value_name = "NUMBER")]
    tokens: Option<u64>,
    /// Add so much money
    #[arg(long, value_name = "NUMBER", value_parser = amount)]
    cost: Option<f64>,
}

/// What `workspace meter` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MeterReply {
    #[schemars(with = "MeterDocument")]
    meter: Metered,
    /// Where the workspace stands now: what passes a limit fails it.
    #[schemars(with = "String")]
    state: State,
    /// Why, if somebody said so.
    reason: Option<String>,
}

/// What a workspace took, by the runtime's own account.
#[derive(Serialize, JsonSchema)]
struct MeterDocument {
    workspace_id: String,
    /// Null where nobody ever reported any.
    tokens_consumed: Option<u64>,
    /// Seconds at work: active or blocked.
    wall_time: f64,
    /// Null where nobody ever reported any.
    cost: Option<f64>,
    /// Bytes of checkpoints.
    checkpoint_bytes: u64,
    /// Seconds that count toward the timeout.
    toward_timeout: f64,
    /// The limits that are near or passed.
    strained: Vec<StrainDocument>,
}

/// A limit that is near, from four fifths of it on, or passed.
#[derive(Serialize, JsonSchema)]
struct StrainDocument {
    /// `tokens_consumed`, `wall_time`, `cost` or `checkpoint_bytes`.
    dimension: String,
    is_exceeded: bool,
    used: f64,
    limit: f64,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let meter = progress.account(&id, arguments.tokens, arguments.cost, &context.actor()?)?;
    let workspace = progress.workspace(&id)?;
    let reply = MeterReply {
        meter,
        state: workspace.state,
        reason: workspace.reason,
    };
    context
        .console
        .value(&reply, |reply| rows_of(&rows(reply)))?;
    Ok(Exit::Done)
}

fn rows(reply: &MeterReply) -> Vec<(&'static str, String)> {
    let meter = &reply.meter;
    let unknown = || "nobody reported any".to_owned();
    let time = |time: safepoint_progress::record::WallTime| format!("{:.1} s", time.as_seconds());
    let mut state = state_word(reply.state);
    if let Some(reason) = &reply.reason {
        state.push_str(&format!(": {}", text::line(reason).text));
    }
    let mut rows = vec![
        ("workspace", meter.workspace_id.to_string()),
        ("state", state),
        (
            "tokens",
            meter
                .tokens_consumed
                .map_or_else(unknown, |tokens| count(tokens, "token", "tokens")),
        ),
        (
            "cost",
            meter.cost.map_or_else(unknown, |cost| format!("{cost:.4}")),
        ),
        ("at work", time(meter.wall_time)),
        ("bytes", count(meter.checkpoint_bytes, "byte", "bytes")),
    ];
    for strain in &meter.strained {
        let (style, how) = match strain.is_exceeded {
            true => (BAD, "passed"),
            false => (WARNING, "near"),
        };
        let Strain { used, limit, .. } = strain;
        rows.push((
            "budget",
            format!(
                "{}: {used} of {limit}, {style}{how}{style:#}",
                strain.dimension
            ),
        ));
    }
    rows
}
