//! The commands of this program, run for somebody who asks over a connection: in this
//! process, with the store open already, one thread each.
//!
//! A command runs as on the command line, with the same checks and the same records. What
//! differs is who it is for, where it may work, and that nobody's key is at hand.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};
use safepoint_control::{Control, Token, TokenRole};
use safepoint_model::Exit;
use safepoint_progress::{Presence, Progress};
use safepoint_server::commands::{Answer, Caller, Command, Commands, Record, Role, Unavailable};
use safepoint_state::{State, StateError};
use safepoint_trail::{Actor, Trail};
use serde_json::{Value, json};

use super::endpoint::Endpoint;
use super::place::Places;
use super::table::endpoints;
use crate::cli::{Cli, Global};
use crate::console::{Console, Mode, Printed};
use crate::context::{Context, Served};
use crate::error::CliError;
use crate::world::Environment;

/// The program, as a server has it.
pub(super) struct Program {
    pub(super) global: Global,
    pub(super) environment: Environment,
    pub(super) trail: Trail,
    /// For what is no command: tokens, answers that were given, what happened.
    pub(super) control: Control,
    pub(super) places: Places,
    /// The checkpoints, to find where each is from.
    pub(super) state: State,
    /// The workspaces of agents.
    pub(super) progress: Progress,
    /// Our mark beside the store: one for as long as we serve.
    pub(super) _presence: Option<Presence>,
}

/// A command, and where it is run.
pub(super) struct Work<'a> {
    pub(super) words: &'a [String],
    pub(super) input: Vec<u8>,
    pub(super) directory: &'a Path,
    /// Through which it records what it does.
    pub(super) trail: Trail,
}

impl Commands for Program {
    fn caller(&self, token: &str) -> Result<Option<Caller>, Unavailable> {
        match self.control.token_of(token) {
            Ok(found) => Ok(found.map(|token| caller_of(&token))),
            Err(error) => Err(Unavailable(error.to_string())),
        }
    }

    fn home(
        &self,
        caller: &Caller,
        record: Record,
        id: &str,
    ) -> Result<Option<PathBuf>, Unavailable> {
        let found = match record {
            Record::Checkpoint => self.state.find(id).map(|it| it.workspace),
            Record::Action => self.state.find_action(id).map(|it| it.workspace),
        };
        match found {
            Ok(workspace) => Ok(self.places.holds(caller, &workspace)),
            Err(StateError::NotFound { .. } | StateError::Ambiguous { .. }) => Ok(None),
            Err(error) => Err(Unavailable(error.to_string())),
        }
    }

    /// Runs a command by its words. Who may is what the endpoint of the same command says;
    /// what has none is for nobody. An agent has the API.
    fn run(&self, caller: &Caller, command: &Command) -> Answer {
        if !may_run(caller, &command.words) {
            return failed(&not_for_you());
        }
        let directory = match (&command.directory, works_somewhere(&command.words)) {
            (None, false) => self.places.none().to_owned(),
            (named, _) => {
                let named = named.as_deref().unwrap_or(self.places.none());
                match self.places.holds(caller, named) {
                    Some(found) => found,
                    None => {
                        return failed(&CliError::NotFound {
                            what: "workspace",
                            name: named.display().to_string(),
                        });
                    }
                }
            }
        };
        let work = Work {
            words: &command.words,
            input: command.input.clone(),
            directory: &directory,
            trail: self.trail.clone(),
        };
        self.execute(caller, work)
    }
}

impl Program {
    /// Runs a command that the caller may use, in a directory that they may use.
    pub(super) fn execute(&self, caller: &Caller, work: Work<'_>) -> Answer {
        match self.print(caller, work, Mode::Json) {
            Ok((exit, printed)) => answer(exit, &printed),
            Err(error) => failed(&error),
        }
    }

    /// The same, as it shows itself to people.
    pub(super) fn show(&self, caller: &Caller, work: Work<'_>) -> (Answer, Option<String>) {
        match self.print(caller, work, Mode::Text) {
            Ok((exit, printed)) => {
                let shown = String::from_utf8_lossy(&printed);
                let answer = Answer {
                    exit: exit as u8,
                    document: Value::Null,
                };
                let plain = anstream::adapter::strip_str(&shown).to_string();
                (answer, Some(plain))
            }
            Err(error) => (failed(&error), None),
        }
    }

    fn print(
        &self,
        caller: &Caller,
        work: Work<'_>,
        mode: Mode,
    ) -> Result<(Exit, Vec<u8>), CliError> {
        let form = match mode {
            Mode::Text => "--output=text",
            Mode::Json | Mode::Ndjson => "--json",
        };
        let line = ["safepoint", form].map(OsString::from).into_iter();
        let line = line.chain(work.words.iter().map(OsString::from));
        let cli = parse(line).map_err(|error| {
            let text = error.render().to_string();
            let told = text.trim_start_matches("error: ").split("\n\n").next();
            CliError::Usage(told.unwrap_or(&text).trim().to_owned())
        })?;
        let printed = Printed::default();
        // What it printed before it failed is no document.
        let exit = self.carry_out(caller, cli, work, mode, &printed)?;
        Ok((exit, printed.take()))
    }

    fn carry_out(
        &self,
        caller: &Caller,
        cli: Cli,
        work: Work<'_>,
        mode: Mode,
        printed: &Printed,
    ) -> Result<Exit, CliError> {
        let actor: Actor = caller
            .name
            .parse()
            .map_err(|error: safepoint_trail::NameError| CliError::Usage(error.to_string()))?;
        let served = Served {
            trail: work.trail,
            actor,
            operator: operator_of(caller),
            input: work.input,
            mode,
        };
        let agent = caller.roles.contains(&Role::Agent);
        let environment = self.environment.for_server(agent.then_some("api"));
        let mut context = Context::of_server(
            &self.global,
            environment,
            work.directory,
            served,
            printed.clone(),
        )?;
        crate::recover_first(&mut context, &cli.command)?;
        let exit = crate::carry_out(&mut context, cli.command)?;
        context.console.flush()?;
        Ok(exit)
    }
}

thread_local! {
    /// What all commands take. To make it costs more than most of what they do.
    static GRAMMAR: RefCell<clap::Command> = RefCell::new(Cli::command());
}

fn parse(line: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    GRAMMAR.with_borrow_mut(|grammar| {
        let mut matches = grammar.try_get_matches_from_mut(line)?;
        Cli::from_arg_matches_mut(&mut matches)
    })
}

/// Whether somebody may have a command run by its words: as the endpoint of that command
/// says. An agent has the API, where its sessions are told apart.
pub(super) fn may_run(caller: &Caller, words: &[String]) -> bool {
    let allows = |endpoint: &Endpoint| {
        let mut roles = caller.roles.iter();
        roles.any(|role| endpoint.roles.contains(role))
    };
    let is_agent = caller.roles.contains(&Role::Agent);
    !is_agent && of_command(words).any(allows)
}

/// Whether a command works in a directory.
fn works_somewhere(words: &[String]) -> bool {
    of_command(words).any(|endpoint| endpoint.takes("workspace"))
}

/// The endpoints of a command.
fn of_command(words: &[String]) -> impl Iterator<Item = &'static Endpoint> {
    endpoints().filter(|endpoint| {
        let command = endpoint.form.command;
        let words = words.iter().map(String::as_str).take(command.len());
        words.eq(command.iter().copied())
    })
}

/// Somebody whose token is known. An operator is known by their own name, everybody else by
/// that of the token: an agent cannot have the name of a session that was begun elsewhere.
pub(super) fn caller_of(token: &Token) -> Caller {
    let role = match token.role {
        TokenRole::Agent => Role::Agent,
        TokenRole::Operator => Role::Operator,
        TokenRole::Steward => Role::Steward,
        TokenRole::Auditor => Role::Auditor,
    };
    Caller {
        name: match &token.operator {
            Some(operator) => format!("operator:{operator}"),
            None => format!("token:{}", token.name),
        },
        roles: vec![role],
        scopes: token.scopes.clone(),
    }
}

fn operator_of(caller: &Caller) -> Option<String> {
    let is_operator = caller.roles.contains(&Role::Operator);
    let name = caller.name.strip_prefix("operator:");
    name.filter(|_| is_operator).map(str::to_owned)
}

fn not_for_you() -> CliError {
    CliError::Control(safepoint_control::ControlError::Operator {
        reason: "the token's role does not allow this".to_owned(),
    })
}

/// What went wrong, as a command would have printed it.
pub(super) fn failed(error: &CliError) -> Answer {
    let printed = Printed::default();
    let exit = Console::printing_to(printed.clone(), Mode::Json).fail(error);
    answer(exit, &printed.take())
}

fn answer(exit: Exit, printed: &[u8]) -> Answer {
    let document: Value = match serde_json::from_slice(printed) {
        Ok(document) => document,
        Err(_) => json!({"error": {
            "code": "X101", "name": "INTERNAL", "message": "the command printed no document",
        }}),
    };
    let exit = match document.pointer("/error/code") {
        Some(code) if code == "X101" => Exit::Failed,
        _ => exit,
    };
    Answer {
        exit: exit as u8,
        document,
    }
}
