//! `safepoint permit …`: leave that was given.

use clap::Subcommand;
use safepoint_authority::{Permit, PermitState};
use safepoint_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use super::operator;
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What can be done with permits
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List permits, the newest first
    List {
        /// At most so many
        #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
    },
    /// Show one permit
    Show {
        /// The permit; the beginning of its id is enough
        permit: String,
    },
    /// Take a permit back that was not used yet
    Revoke {
        /// The permit; the beginning of its id is enough
        permit: String,
        #[command(flatten)]
        who: operator::Who,
    },
}

/// What `permit list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PermitList {
    /// The newest first.
    permits: Vec<Permit>,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    let control = context.control()?;
    let desk = context.desk(&control);
    match command {
        Command::List { limit } => {
            let reply = PermitList {
                permits: desk.permits(limit)?,
            };
            context
                .console
                .value(&reply, |reply| match reply.permits.is_empty() {
                    true => "There are no permits.\n".to_owned(),
                    false => reply.permits.iter().map(line).collect(),
                })?;
        }
        Command::Show { permit } => {
            let permit = desk.permit(&permit)?;
            context.console.value(&permit, line)?;
        }
        Command::Revoke { permit, who } => {
            operator::refuse_agents(context, &control)?;
            let id = desk.permit(&permit)?.permit_id;
            let word = operator::word(context, &desk, &who, &format!("permit revoke {id}"))?;
            let permit = desk.revoke(id.as_str(), &word)?;
            context.console.value(&permit, line)?;
        }
    }
    Ok(Exit::Done)
}

fn line(permit: &Permit) -> String {
    let state = match &permit.state {
        PermitState::Issued {} => format!("good until {}", permit.expires_at),
        PermitState::Reserved { at } => format!("in use since {at}"),
        PermitState::Consumed { at, outcome } => format!("used at {at}: {outcome}"),
        PermitState::Void { at, code } => format!("void since {at}: {}", code.meaning()),
    };
    format!(
        "{STRONG}{}{STRONG:#}  {state}\n  {FAINT}for{FAINT:#} {}  {FAINT}from{FAINT:#} {}  {FAINT}bound to{FAINT:#} {}\n",
        permit.permit_id, permit.action_id, permit.hold_id, permit.fingerprint
    )
}
