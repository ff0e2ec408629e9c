//! `safepoint`: the one binary. It reads the world, translates between people
//! and the crates below, and decides nothing.

mod cli;
mod commands;
mod console;
mod context;
mod detach;
mod error;
mod far;
#[cfg(test)]
mod generated;
mod paths;
mod settings;
mod ssh_agent;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use safepoint_model::Exit;

use crate::cli::{Cli, Command, mode_of_unparsed};
use crate::console::{Colour, Console, Mode};
use crate::context::{Context, MissingDirectory};
use crate::error::CliError;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    // A client starts its shells through us, and behind the fence too.
    if let Some(arguments) = commands::perform::with_command_word(&arguments) {
        return parse_and_run(&arguments);
    }
    // Inside a fence the store is out of reach: the process outside does it.
    if let Some(code) = commands::run::hand_over(&arguments) {
        return code;
    }
    // A hook has rules of its own about how it ends.
    if let Some(code) = commands::hook::take_over(&arguments) {
        return code;
    }
    parse_and_run(&arguments)
}

fn parse_and_run(arguments: &[OsString]) -> ExitCode {
    match Cli::try_parse_from(arguments) {
        Ok(cli) => run(cli, arguments),
        Err(error) => code(explain_usage(&error, mode_of_unparsed(arguments))),
    }
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}

/// Runs a command and shows how it failed.
fn run(cli: Cli, arguments: &[OsString]) -> ExitCode {
    // A server makes a context for each thing that it is asked for.
    match &cli.command {
        Command::Mcp(arguments) => return commands::mcp::run(&cli.global, arguments),
        Command::McpProxy(arguments) => return commands::mcp_proxy::run(&cli.global, arguments),
        Command::Serve(arguments) => return commands::serve::run(&cli.global, arguments),
        Command::ClientShell(text) => return text.run(&cli.global, arguments),
        Command::Relay(arguments) => {
            return commands::perform::relay::run(&cli.global, arguments);
        }
        _ => {}
    }
    if let Command::Perform(arguments) = &cli.command
        && let Some(code) = commands::perform::run_in_sandbox(arguments)
    {
        return code;
    }
    match &cli.command {
        // What supervises a command stays for what that leaves behind.
        Command::Exec(_) | Command::Run(_) | Command::Perform(_) | Command::Mutate(_) => {
            if let Some(code) = detach::run_in_child(arguments) {
                return code;
            }
        }
        _ => {}
    }
    let missing = match &cli.command {
        Command::Rollback(_)
        | Command::Undo(_)
        | Command::Gc(_)
        | Command::Redo(_)
        | Command::List(_)
        | Command::Log(_) => MissingDirectory::Allow,
        Command::Show(_)
        | Command::Diff(_)
        | Command::Verify(_)
        | Command::Status
        | Command::Audit(_)
        | Command::Du(_) => MissingDirectory::Recorded,
        _ => MissingDirectory::Refuse,
    };
    let mut context = match Context::new(&cli.global, missing) {
        Ok(context) => context,
        Err(error) => {
            let error = with_command(&cli.command, error);
            return code(cli.global.console().fail(&error));
        }
    };
    let result = recover_first(&mut context, &cli.command)
        .map_err(|error| with_command(&cli.command, error))
        .and_then(|()| far::forward::forward(&mut context, arguments))
        .and_then(|forwarded| match forwarded {
            Some(exit) => Ok(exit as u8),
            None => dispatch(&mut context, cli.command),
        })
        .and_then(|ended| context.console.flush().map(|()| ended));
    match result {
        Ok(code) => detach::finish(&cli.global, code),
        Err(error) => detach::finish(&cli.global, context.console.fail(&error) as u8),
    }
}

/// The error, as the command that failed replies to it.
fn with_command(command: &Command, error: CliError) -> CliError {
    match command {
        Command::Checkpoint(_) => CliError::Checkpoint(Box::new(error)),
        _ => error,
    }
}

/// Every command that has to do with a store first ends what a crash cut off. One that only
/// reads leaves the tree as it is, and says what was cut off.
fn recover_first(context: &mut Context, command: &Command) -> Result<(), CliError> {
    match command {
        Command::Try | Command::Completions { .. } | Command::Man { .. } | Command::Schema(_) => {
            Ok(())
        }
        command => {
            context.access = command.access();
            context.recover()
        }
    }
}

fn dispatch(context: &mut Context, command: Command) -> Result<u8, CliError> {
    // This one ends as what it runs ends.
    if let Command::Perform(arguments) = &command {
        return commands::perform::run(context, arguments);
    }
    carry_out(context, command).map(|exit| exit as u8)
}

fn carry_out(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    context.access = command.access();
    match command {
        // All have been taken care of.
        Command::Hook(_)
        | Command::Mcp(_)
        | Command::McpProxy(_)
        | Command::Perform(_)
        | Command::ClientShell(_)
        | Command::Relay(_)
        | Command::Serve(_) => Ok(Exit::Usage),
        Command::Try => commands::demo::run(context),
        Command::Init(arguments) => commands::init::run(context, &arguments),
        Command::Status => commands::status::run(context),
        Command::Checkpoint(arguments) => commands::checkpoint::run(context, &arguments),
        Command::List(arguments) => commands::list::run(context, &arguments),
        Command::Show(arguments) => commands::show::run(context, &arguments),
        Command::Diff(arguments) => commands::diff::run(context, &arguments),
        Command::Mutate(arguments) => commands::mutate::run(context, &arguments),
        Command::Verify(arguments) => commands::verify::run(context, &arguments),
        Command::Rollback(arguments) => commands::rollback::run(context, &arguments),
        Command::Undo(arguments) => commands::undo::run(context, &arguments),
        Command::Redo(arguments) => commands::redo::run(context, &arguments),
        Command::Log(arguments) => commands::log::run(context, &arguments),
        Command::Pin(arguments) => commands::pin::run(context, &arguments),
        Command::Du(arguments) => commands::du::run(context, &arguments),
        Command::Gc(arguments) => commands::gc::run(context, &arguments),
        Command::State(arguments) => commands::state::run(context, &arguments),
        Command::Watch(arguments) => commands::watch::run(context, &arguments),
        Command::Trail(command) => commands::trail::run(context, command),
        Command::Audit(arguments) => commands::audit::run(context, &arguments),
        Command::Atlas(command) => commands::atlas::run(context, command),
        Command::Exec(arguments) => commands::exec::run(context, &arguments),
        Command::Run(arguments) => commands::run::run(context, &arguments),
        Command::Hold(command) => commands::hold::run(context, command),
        Command::Tui(arguments) => commands::tui::run(context, &arguments),
        Command::Permit(command) => commands::permit::run(context, command),
        Command::Trust(command) => commands::trust::run(context, command),
        Command::Operator(command) => commands::operator::run(context, command),
        Command::Token(command) => commands::token::run(context, command),
        Command::Notify(command) => commands::notify::run(context, command),
        Command::Session(command) => commands::session::run(context, command),
        Command::Workspace(command) => commands::workspace::run(context, command),
        Command::Task(command) => commands::task::run(context, command),
        Command::Install(arguments) => commands::install::install(context, &arguments),
        Command::Uninstall(arguments) => commands::install::uninstall(context, &arguments),
        Command::Doctor => commands::doctor::run(context),
        Command::Judge(command) => commands::judge::run(context, &command),
        Command::Completions { shell } => commands::completions::run(context, shell),
        Command::Man { out } => commands::man::run(context, out),
        Command::Schema(arguments) => commands::schema::run(context, &arguments),
    }
}

/// A usage error is exit 7, never clap's own 2: here 2 means denied.
fn explain_usage(error: &clap::Error, mode: Mode) -> Exit {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        // Help that nobody reads to the end is not a failure.
        let _ = error.print();
        return Exit::Done;
    }
    if mode == Mode::Text {
        let _ = error.print();
        return Exit::Usage;
    }
    let text = error.render().to_string();
    let message = text.trim_start_matches("error: ").split("\n\n").next();
    let message = message.unwrap_or(&text).trim().to_owned();
    Console::new(mode, true, Colour::Never).fail(&CliError::Usage(message))
}

/// The command line as clap knows it, for everything that is generated from it.
pub(crate) fn command_line() -> clap::Command {
    Cli::command()
}
