//! `safepoint workspace …`: places where agents work, and the chains of what they produce.
//!
//! Every rule is in `safepoint-progress`; here it is asked for, and shown.

mod both;
pub(crate) mod chain;
pub(crate) mod checkpoint;
pub(crate) mod create;
pub(crate) mod decline;
pub(crate) mod document;
pub(crate) mod export;
mod graph;
pub(crate) mod integrate;
pub(crate) mod integration;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod meter;
pub(crate) mod recover;
pub(crate) mod resolve;
pub(crate) mod show;
mod sides;
pub(crate) mod signal;
pub(crate) mod state;
pub(crate) mod verify;
pub(crate) mod watch;

use clap::Subcommand;
use safepoint_model::{Exit, WorkspaceId};
use safepoint_progress::Progress;

use super::{operator, outside};
use crate::context::Context;
use crate::error::CliError;

/// What can be done with workspaces
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workspace, and the token of its agent, which is shown once
    Create(create::Arguments),
    /// List workspaces as the trees that they are, with how far each is
    List(list::Arguments),
    /// Show one workspace
    Show(One),
    /// Move a workspace to another state
    State(state::Arguments),
    /// Give a workspace to another agent: the old token stops counting
    Migrate(One),
    /// Print what parents are told, as it arrives
    Watch(watch::Arguments),
    /// Add a checkpoint to the chain of a workspace, as its agent
    Checkpoint(checkpoint::Arguments),
    /// Show the end of a chain
    Head(One),
    /// Show the newest final checkpoint of a chain: what would be integrated
    Final(One),
    /// Show a whole chain, the first checkpoint first
    Log(log::Arguments),
    /// Check a chain against its own proofs and against the trail
    Verify(One),
    /// List what a workspace said and was told
    Signals(One),
    /// Tell the parent something, as the agent of a workspace
    Signal(signal::Arguments),
    /// Show what a workspace took by our own account, or add to it
    Meter(meter::Arguments),
    /// Write a chain out for other tools
    Export(export::Arguments),
    /// Take over the work of a workspace whose agent is done, or salvage a failed one
    Integrate(integrate::Arguments),
    /// Decide a conflict of an integration; after the last one it goes on
    Resolve(resolve::Arguments),
    /// Refuse the work of a workspace whose agent is done: it fails
    Decline(decline::Arguments),
    /// Remove the directory of a workspace that has ended; a checkpoint keeps what is in it
    Remove(decline::RemoveArguments),
    /// Compare everything with the trail, and end what was cut off
    Recover,
}

impl Command {
    /// Whether it is for the agent of a workspace, or only looks. Everything else is the
    /// coordinator's.
    pub(crate) fn is_for_agents(&self) -> bool {
        matches!(
            self,
            Self::Checkpoint(_)
                | Self::Signal(_)
                | Self::Head(_)
                | Self::Final(_)
                | Self::Log(_)
                | Self::Show(_)
                | Self::List(_)
                | Self::Signals(_)
                | Self::Watch(_)
                | Self::Verify(_)
        )
    }
}

/// Arguments of what is about one workspace
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The workspace; the beginning of its id is enough
    workspace: String,
}

/// How the agent of a workspace shows that it is that
#[derive(Debug, clap::Args)]
pub(crate) struct Credential {
    /// The token of the workspace's agent, or @FILE; without it `SAFEPOINT_TOKEN`
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl Credential {
    fn read(&self, context: &Context) -> Result<String, CliError> {
        let given = match &self.token {
            Some(given) => String::from_utf8_lossy(&outside::text_or_file(context, given)?).into(),
            None => context
                .environment
                .text("SAFEPOINT_TOKEN")
                .ok_or(CliError::Invalid {
                    message: "the token of the workspace's agent is missing".to_owned(),
                    suggestion: "give it with `--token TOKEN`, `--token @FILE` or in `SAFEPOINT_TOKEN`; `workspace create` printed it",
                })?,
        };
        Ok(given.trim().to_owned())
    }
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    if !command.is_for_agents() {
        operator::refuse_agents(context, &context.control()?)?;
    }
    match command {
        Command::Create(arguments) => create::run(context, &arguments),
        Command::List(arguments) => list::run(context, &arguments),
        Command::Show(arguments) => show::run(context, &arguments),
        Command::State(arguments) => state::run(context, &arguments),
        Command::Migrate(arguments) => state::migrate(context, &arguments),
        Command::Watch(arguments) => watch::run(context, &arguments),
        Command::Checkpoint(arguments) => checkpoint::run(context, &arguments),
        Command::Head(arguments) => chain::head(context, &arguments),
        Command::Final(arguments) => chain::newest_final(context, &arguments),
        Command::Log(arguments) => log::run(context, &arguments),
        Command::Verify(arguments) => verify::run(context, &arguments),
        Command::Signals(arguments) => signal::list(context, &arguments),
        Command::Signal(arguments) => signal::run(context, &arguments),
        Command::Export(arguments) => export::run(context, &arguments),
        Command::Meter(arguments) => meter::run(context, &arguments),
        Command::Integrate(arguments) => integrate::run(context, &arguments),
        Command::Resolve(arguments) => resolve::run(context, &arguments),
        Command::Decline(arguments) => decline::run(context, &arguments),
        Command::Remove(arguments) => decline::remove(context, &arguments),
        Command::Recover => recover::run(context),
    }
}

/// The workspaces, and the one that is meant.
fn open(context: &mut Context, prefix: &str) -> Result<(Progress, WorkspaceId), CliError> {
    let progress = context.progress()?;
    let id = progress.find(prefix)?;
    Ok((progress, id))
}
