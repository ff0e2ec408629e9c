//! `safepoint hold …`: what waits for a person, and what they decide.

mod afar;
pub(crate) mod decide;
pub(crate) mod list;
mod show;
pub(crate) mod sign;

use clap::Subcommand;
use safepoint_model::Exit;

use crate::context::Context;
use crate::error::CliError;

/// What can be done with holds
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what waits, the oldest first
    List(list::Arguments),
    /// Show exactly what would be done, and what a yes would mean
    Show(list::One),
    /// Let it run, once
    Approve(decide::Approve),
    /// Do not let it run
    Deny(decide::Deny),
    /// Stop the whole session until an operator acts
    Halt(decide::Deny),
    /// Sign a decision here, without a store, to be handed in elsewhere with `--signature`
    Sign(sign::Arguments),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::List(arguments) => list::run(context, &arguments),
        Command::Show(arguments) => list::show(context, &arguments),
        Command::Approve(arguments) => decide::approve(context, &arguments),
        Command::Deny(arguments) => decide::deny(context, &arguments),
        Command::Halt(arguments) => decide::halt(context, &arguments),
        Command::Sign(arguments) => sign::run(context, &arguments),
    }
}
