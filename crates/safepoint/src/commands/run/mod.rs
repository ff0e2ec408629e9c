//! `safepoint run`: a workflow, step by step, or any agent program, under control.

pub(crate) mod agent;
mod broker;
pub(crate) mod workflow;

pub(crate) use broker::{Broker, BrokerClient, Keeper, hand_over};

use safepoint_model::Exit;

use super::operator;
use super::passing::Flags;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `run`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) flags: Flags,
    #[command(flatten)]
    pub(super) who: operator::Who,
    /// A workflow: a path, or the name of a file in `.safepoint/workflows`
    #[arg(
        value_name = "WORKFLOW",
        required_unless_present = "agent",
        conflicts_with = "agent"
    )]
    workflow: Option<String>,
    /// An agent and its arguments
    #[arg(last = true, value_name = "AGENT")]
    agent: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    match &arguments.workflow {
        Some(name) => workflow::run(context, arguments, name),
        None => agent::run(context, arguments, &arguments.agent),
    }
}
