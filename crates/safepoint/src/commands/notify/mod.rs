//! `safepoint notify …`: who is told what waits and what was decided, besides whoever looks.
//!
//! Targets are changed by operators alone. Their addresses and secrets are taken in, and
//! never shown again.

mod add;
pub(crate) mod deliver;
pub(crate) mod watch;

use clap::Subcommand;
use safepoint_control::notify::{Channel, Target, TargetStanding, Telling, Topic, Vault};
use safepoint_control::{Control, Https};
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use super::operator;
use crate::console::{BAD, FAINT, GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What can be done with targets of notifications
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Tell a webhook, a chat room or this desktop what happens from now on
    Add(add::Arguments),
    /// List those who are told
    List,
    /// Tell somebody no more
    Remove {
        /// Whom
        name: String,
        #[command(flatten)]
        who: operator::Who,
    },
    /// Send a message that only says that it arrived
    Test {
        /// To whom
        name: String,
    },
    /// Deliver what is due now, and deny what nobody decided in time
    Deliver,
    /// Print what happens, and ring the bell of this terminal
    Watch(watch::Arguments),
}

/// A target, as it is shown.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TargetDocument {
    /// Its name.
    name: String,
    /// How it is told.
    channel: Channel,
    /// What about.
    on: Vec<Topic>,
    /// Scheme, host and port of its address. The rest may be secret.
    origin: Option<String>,
    /// Whether it may lie in a private network or on this machine.
    allow_private: bool,
    /// Since when.
    since: String,
    /// How often what comes next was tried in vain; 0 when nothing is wrong.
    attempts: i64,
    /// When it is tried again; null when nothing is wrong.
    next_attempt: Option<String>,
}

/// What `notify list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TargetList {
    targets: Vec<TargetDocument>,
}

/// What `notify test` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TestReply {
    target: String,
    /// Whether it arrived.
    delivered: bool,
    /// Why not.
    reason: Option<String>,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    let control = context.control()?;
    match command {
        Command::Add(arguments) => {
            operator::refuse_agents(context, &control)?;
            let target = add::add(context, &control, &arguments)?;
            let reply = document(&target, None);
            context
                .console
                .value(&reply, |it| format!("{GOOD}added{GOOD:#}  {}", line(it)))?;
        }
        Command::List => list(context, &control)?,
        Command::Remove { name, who } => {
            operator::refuse_agents(context, &control)?;
            let desk = context.desk(&control);
            let target = control.target(&name)?;
            let says = format!("notify remove {name}");
            let word = operator::word(context, &desk, &who, &says)?;
            desk.remove_target(&target.name, &vault(context, &control), &word)?;
            let reply = document(&target, None);
            context
                .console
                .value(&reply, |it| format!("removed  {}", line(it)))?;
        }
        Command::Test { name } => {
            operator::refuse_agents(context, &control)?;
            return test(context, &control, &name);
        }
        Command::Deliver => return deliver::run(context, &control),
        Command::Watch(arguments) => return watch::run(context, &control, &arguments),
    }
    Ok(Exit::Done)
}

fn list(context: &mut Context, control: &Control) -> Result<(), CliError> {
    let mut targets = Vec::new();
    for target in control.targets()? {
        let standing = control.standing(&target)?;
        targets.push(document(&target, standing));
    }
    let reply = TargetList { targets };
    context
        .console
        .value(&reply, |reply| match reply.targets.is_empty() {
            true => "Nobody is told: `safepoint notify add NAME --webhook URL`\n".to_owned(),
            false => reply.targets.iter().map(line).collect(),
        })
}

fn test(context: &mut Context, control: &Control, name: &str) -> Result<Exit, CliError> {
    let target = control.target(name)?;
    let reason = match target.channel {
        Channel::Desktop => match ring("this is a test") {
            true => None,
            false => Some("standard error is not a terminal".to_owned()),
        },
        Channel::Webhook | Channel::Slack => {
            let vault = vault(context, control);
            let telling = Telling {
                vault: &vault,
                carrier: &Https::new(),
                page: None,
            };
            let sent = context.desk(control).try_target(name, &telling)?;
            sent.err().map(|failed| failed.reason)
        }
    };
    let reply = TestReply {
        target: target.name,
        delivered: reason.is_none(),
        reason,
    };
    context.console.value(&reply, |reply| match &reply.reason {
        None => format!("{GOOD}delivered{GOOD:#}  {}\n", reply.target),
        Some(reason) => format!(
            "{BAD}not delivered{BAD:#}  {}: {}\n",
            reply.target,
            text::line(reason).text
        ),
    })?;
    Ok(match reply.delivered {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

/// Where the secrets of targets lie: beside the keys, for each trail its own.
pub(crate) fn vault(context: &Context, control: &Control) -> Vault {
    let trail = control.trail().key().id();
    Vault::new(context.paths.data.join("notify").join(trail))
}

/// Rings the bell of this terminal, and has it show a note. Whether there is one: nothing is
/// ever written to what is no terminal.
pub(crate) fn ring(note: &str) -> bool {
    use std::io::{IsTerminal, Write};
    let mut error = std::io::stderr();
    if !error.is_terminal() {
        return false;
    }
    let written = error.write_all(safepoint_tui::bell(note).as_bytes());
    written.and_then(|()| error.flush()).is_ok()
}

fn document(target: &Target, standing: Option<TargetStanding>) -> TargetDocument {
    let failing = standing.filter(|standing| standing.attempts > 0);
    TargetDocument {
        name: target.name.clone(),
        channel: target.channel,
        on: target.on.iter().copied().collect(),
        origin: target.origin.clone(),
        allow_private: target.allow_private,
        since: target.since.to_string(),
        attempts: failing.as_ref().map_or(0, |it| it.attempts),
        next_attempt: failing.map(|it| it.due.to_string()),
    }
}

fn line(target: &TargetDocument) -> String {
    let on: Vec<&str> = target.on.iter().map(|topic| topic.as_str()).collect();
    let origin = target.origin.as_deref().unwrap_or("this terminal");
    let trouble = match &target.next_attempt {
        Some(next) => format!("  {BAD}tried {} times, next {next}{BAD:#}", target.attempts),
        None => String::new(),
    };
    format!(
        "{STRONG}{}{STRONG:#}  {}  {}  {FAINT}{}{FAINT:#}{trouble}\n",
        text::line(&target.name).text,
        target.channel.as_str(),
        text::line(origin).text,
        on.join(","),
    )
}
