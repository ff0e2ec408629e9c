//! The command line: what can be said, and how it is explained.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use safepoint_state::Access;

use crate::commands::{
    atlas, audit, checkpoint, diff, du, exec, gc, hold, hook, init, install, judge, list, log, mcp,
    mcp_proxy, mutate, notify, operator, perform, permit, pin, redo, rollback, run, schema, serve,
    session, show, state, task, token, trail, trust, tui, undo, verify, watch, workspace,
};
use crate::console::{Colour, Console, Mode, Notation};

/// Every agent action judged, undoable and provable
#[derive(Debug, Parser)]
#[command(
    name = "safepoint",
    version,
    max_term_width = 100,
    subcommand_required = true,
    disable_help_subcommand = false
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options that every command takes
#[derive(Clone, Debug, Args)]
pub(crate) struct Global {
    /// The form of what is printed
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORM",
        default_value = "text"
    )]
    output: OutputForm,
    /// Short for --output json
    #[arg(long, global = true, conflicts_with = "output")]
    json: bool,
    /// Work in this directory instead of the current one
    #[arg(short = 'C', global = true, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Use this store: sqlite:PATH, postgres://… or https://SERVER
    ///
    /// Without it: `SAFEPOINT_STORE`, then your settings, then a SQLite file in your data directory.
    #[arg(long, global = true, value_name = "STORE")]
    pub(crate) store: Option<String>,
    /// Print data and errors, nothing else
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Answer yes to what would be asked
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// When to use colour
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto"
    )]
    color: Colour,
}

impl Global {
    /// Standard output and standard error, as these options want them.
    pub(crate) fn console(&self) -> Console {
        let (mode, notation) = match self.output {
            _ if self.json => (Mode::Json, Notation::Json),
            OutputForm::Text => (Mode::Text, Notation::Json),
            OutputForm::Json => (Mode::Json, Notation::Json),
            OutputForm::Ndjson => (Mode::Ndjson, Notation::Json),
            OutputForm::Yaml => (Mode::Json, Notation::Yaml),
        };
        Console::new(mode, self.quiet, self.color).with_notation(notation)
    }
}

/// The form of data on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OutputForm {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// One JSON value a line.
    Ndjson,
    /// The same value as with `json`, as YAML.
    Yaml,
}

/// What can be asked for
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a sample agent under control, in a project that is thrown away
    Try,
    /// Make the store and its trail now, rather than with the first command that needs them
    Init(init::Arguments),
    /// Show where everything is and how it stands
    Status,
    /// Capture files, git state, databases and states exactly, so that they can be restored
    Checkpoint(checkpoint::Arguments),
    /// List checkpoints, the newest first
    List(list::Arguments),
    /// Show one checkpoint
    Show(show::Arguments),
    /// Show what changed since a checkpoint, or between two
    Diff(diff::Arguments),
    /// Change something under a checkpoint; check it, and keep it or roll it back
    Mutate(mutate::Arguments),
    /// Tell whether a checkpoint can be restored, or a change still holds
    Verify(verify::Arguments),
    /// Make the workspace, or a part of it, identical to a checkpoint
    Rollback(rollback::Arguments),
    /// Take back what one action did, and keep what came later
    Undo(undo::Arguments),
    /// Take back the last roll back or undo
    Redo(redo::Arguments),
    /// List what happened, the newest first, with what each action changed
    Log(log::Arguments),
    /// Keep a checkpoint even when it has expired
    Pin(pin::Arguments),
    /// Show how much the store holds
    Du(du::Arguments),
    /// Delete expired checkpoints and what nothing needs any more
    Gc(gc::Arguments),
    /// Show the states of this workspace, as they are now
    State(state::Arguments),
    /// Listen to what changes, so that a checkpoint reads only that
    Watch(watch::Arguments),
    /// Read, verify and prove the record of everything
    #[command(subcommand)]
    Trail(trail::Command),
    /// Print what was done here, by whom, why and with what outcome, as an audit
    Audit(audit::Arguments),
    /// Check, try out and sign what a steward wrote about agents' actions
    #[command(subcommand)]
    Atlas(atlas::Command),
    /// Judge what an agent does under an atlas, step by step
    #[command(subcommand)]
    Session(session::Command),
    /// Give agents places to work in, and keep what they produce as chains
    #[command(subcommand)]
    Workspace(workspace::Command),
    /// Write down what is to be done, and give it to workspaces
    #[command(subcommand)]
    Task(task::Command),
    /// Run one command: judged, made undoable, approved where it must be, recorded
    Exec(exec::Arguments),
    /// Run a workflow, or any agent program, under control
    Run(run::Arguments),
    /// Look at what waits for a person, and decide
    #[command(subcommand)]
    Hold(hold::Command),
    /// Open the operator's terminal: look at what waits, and decide
    Tui(tui::Arguments),
    /// Look at leave that was given, and take it back
    #[command(subcommand)]
    Permit(permit::Command),
    /// Look at what is trusted, and change it
    #[command(subcommand)]
    Trust(trust::Command),
    /// Say who decides
    #[command(subcommand)]
    Operator(operator::Command),
    /// Say who may ask over a connection, and for what; see `safepoint serve`
    #[command(subcommand)]
    Token(token::Command),
    /// Say who is told what waits, and tell them
    #[command(subcommand)]
    Notify(notify::Command),
    /// Answer an agent client before and after it uses a tool; see `safepoint install`
    Hook(hook::Arguments),
    /// Put Safepoint's hooks and skills into an agent client
    Install(install::Arguments),
    /// Take Safepoint's hooks and skills out of an agent client
    Uninstall(install::Removal),
    /// Prove that each installed hook denies, and say what is not covered
    Doctor,
    /// Offer checkpoint, undo and the rest to an agent as tools of an MCP server
    Mcp(mcp::Arguments),
    /// Stand in front of an MCP server, and have each use of a tool pass
    McpProxy(mcp_proxy::Arguments),
    /// Serve the API over HTTP, for people and agents elsewhere
    Serve(serve::Arguments),
    /// Run a line behind the fence that a client was given leave for
    #[command(hide = true)]
    Perform(perform::Arguments),
    /// Run what Claude Code gives a shell, behind the fence
    #[command(hide = true)]
    ClientShell(perform::Text),
    /// Answer for a line that a client runs in a sandbox of its own
    #[command(hide = true)]
    Relay(perform::relay::Arguments),
    /// Judge for a machine elsewhere
    #[command(hide = true, subcommand)]
    Judge(judge::Command),
    /// Print the script that completes commands in a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Write safepoint.1, safepoint-trail.1 … into this directory
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Print the JSON Schema of what a command prints
    Schema(schema::Arguments),
}

/// Guesses the output mode from arguments that could not be parsed.
pub(crate) fn mode_of_unparsed(arguments: &[OsString]) -> Mode {
    let mut ours = arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .map(|argument| argument.to_string_lossy());
    while let Some(argument) = ours.next() {
        match &*argument {
            "--json" | "--output=json" | "--output=ndjson" | "--output=yaml" => return Mode::Json,
            "--output" if ours.next().is_some_and(|form| form != "text") => return Mode::Json,
            _ => {}
        }
    }
    Mode::Text
}

impl Command {
    /// Whether it may write into a workspace.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Status
            | Self::List(_)
            | Self::Show(_)
            | Self::Diff(_)
            | Self::Verify(_)
            | Self::Log(_)
            | Self::Du(_)
            | Self::State(_)
            | Self::Trail(_)
            | Self::Audit(_)
            | Self::Atlas(_)
            | Self::Hold(_)
            | Self::Tui(_)
            | Self::Permit(_)
            | Self::Trust(_)
            | Self::Operator(_)
            | Self::Token(_)
            | Self::Notify(_)
            | Self::Session(_)
            | Self::Doctor => Access::Reading,
            _ => Access::Writing,
        }
    }
}

#[cfg(test)]
mod tests {
    use safepoint_authority::shell::AGENT_COMMANDS;

    /// What agents may ask for is written apart from the commands: a name that no command has
    /// means that another one is not known there.
    #[test]
    fn au_04_what_agents_may_ask_for_are_commands() {
        let mut all = crate::command_line();
        all.build();
        for known in AGENT_COMMANDS.iter().map(|command| command.name) {
            let mut words = known.split(' ');
            let found = words.try_fold(&all, |command, word| command.find_subcommand(word));
            let found = found.unwrap_or_else(|| panic!("there is no `{known}`"));
            let is_whole = !found.has_subcommands() || found.get_name() == "help";
            assert!(is_whole, "{known}");
        }
    }
}
