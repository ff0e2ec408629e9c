//! `safepoint workspace meter`: what a workspace took by our own account.

use safepoint_model::Exit;
use safepoint_progress::Metered;
use schemars::JsonSchema;
use serde::Serialize;

use super::create::amount;
use super::document::rows_of;
use super::open;
use crate::console::count;
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
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let reply = MeterReply {
        meter: progress.account(&id, arguments.tokens, arguments.cost, &context.actor()?)?,
    };
    context
        .console
        .value(&reply, |reply| rows_of(&rows(&reply.meter)))?;
    Ok(Exit::Done)
}

fn rows(meter: &Metered) -> Vec<(&'static str, String)> {
    let unknown = || "nobody reported any".to_owned();
    let time = |time: safepoint_progress::record::WallTime| format!("{:.1} s", time.as_seconds());
    vec![
        ("workspace", meter.workspace_id.to_string()),
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
    ]
}
