//! `safepoint trust …`: what is trusted, and how much.

use clap::Subcommand;
use safepoint_authority::{Boundary, Level, Trust};
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::operator;
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What can be done with trust
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what is known of boundaries
    List,
    /// Trust a boundary (a program with the content it has now): `tool:/usr/bin/git`, `path:/srv/site`, `provider:acme`, `workflow:release`
    Grant {
        /// Which one
        boundary: Boundary,
        /// How much
        #[arg(long, value_name = "LEVEL", default_value = "trusted", value_parser = level)]
        level: Level,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        who: operator::Who,
    },
    /// Trust a boundary no more
    Revoke {
        /// Which one
        boundary: Boundary,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        who: operator::Who,
    },
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "trusted" => Ok(Level::Trusted),
        "elevated" => Ok(Level::Elevated),
        _ => Err("it is `trusted` or `elevated`".to_owned()),
    }
}

/// What `trust list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TrustList {
    trust: Vec<Trust>,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    let control = context.control()?;
    let desk = context.desk(&control);
    let changed = match command {
        Command::List => {
            let reply = TrustList {
                trust: desk.trust()?,
            };
            context
                .console
                .value(&reply, |reply| match reply.trust.is_empty() {
                    true => "Nothing is trusted yet.\n".to_owned(),
                    false => reply.trust.iter().map(line).collect(),
                })?;
            return Ok(Exit::Done);
        }
        Command::Grant {
            boundary,
            level,
            reason,
            who,
        } => {
            operator::refuse_agents(context, &control)?;
            let reason = reason.unwrap_or_else(|| "an operator said so".to_owned());
            let says = format!("trust {boundary} {}", level.as_str());
            let word = operator::word(context, &desk, &who, &says)?;
            let variables = context.environment.variables();
            desk.grant(boundary, level, &reason, &word, &variables)?
        }
        Command::Revoke {
            boundary,
            reason,
            who,
        } => {
            operator::refuse_agents(context, &control)?;
            let reason = reason.unwrap_or_else(|| "an operator said so".to_owned());
            let says = format!("trust {boundary} untrusted");
            let word = operator::word(context, &desk, &who, &says)?;
            desk.distrust(boundary, &reason, &word)?
        }
    };
    context.console.value(&changed, line)?;
    Ok(Exit::Done)
}

fn line(trust: &Trust) -> String {
    let mut shown = format!(
        "{STRONG}{}{STRONG:#}  {}  {FAINT}version {}, since {}: {}{FAINT:#}\n",
        text::line(&trust.boundary.to_string()).text,
        trust.level.as_str(),
        trust.version,
        trust.since,
        text::line(&trust.reason).text
    );
    for program in &trust.content {
        let path = text::line(&program.path).text;
        shown.push_str(&format!(
            "  {FAINT}{path}  sha256 {}{FAINT:#}\n",
            program.digest
        ));
    }
    if trust.boundary.program().is_some() && trust.content.is_empty() {
        shown.push_str("  for no content: grant it again\n");
    }
    shown
}
