//! Running the programs of a change: a command that is itself a step, and the user's check.
//!
//! Whoever gave leave says how they are started, which is behind a fence, and with which
//! variables. A command runs in its target if that is a directory, and a check in the
//! workspace; the directory is held by a handle that was reached by no link.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use super::act::{Acted, Reached, directory};
use super::authority;
use super::operation::Operation;
use super::place::Target;
use super::{Found, Mutation, Secured};
use crate::known_git::Caller;
use crate::path;
use crate::run::{self, Ran, Run, What, Whole};
use crate::state::{State, Workspace};
use crate::{Ending, StateError};

/// Shorter values are no secrets, and words that messages are made of.
const MIN_SECRET_BYTES: usize = 4;

/// A command that takes longer was not meant to.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);
/// How long a program of an agent's change may take at most. Nobody else goes back in the
/// workspace meanwhile.
const AGENT_LIMIT: Duration = Duration::from_secs(900);

impl State {
    fn bounded(&self, limit: Duration) -> Duration {
        match self.caller {
            Caller::Agent => limit.min(AGENT_LIMIT),
            Caller::Person => limit,
        }
    }

    /// Runs a step that is a command.
    pub(super) fn run_step(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        found: &Found,
        acted: &mut Acted,
        reached: &mut Reached,
    ) -> Result<(), StateError> {
        let (
            Operation::Command {
                argv,
                env,
                stdin,
                timeout,
            },
            Target::Place(place),
        ) = (&found.step.operation, &found.target)
        else {
            return Ok(());
        };
        // A step before this one may have made a link where there was none.
        if let Some(leave) = mutation.leave {
            let changed = leave.changed_paths()?;
            let (checkpoint, capture) = (&secured.checkpoint, &secured.capture);
            authority::covers_paths(workspace, checkpoint, capture, &changed)?;
        }
        let failed = |why: String, ending| StateError::CommandFailed {
            command: self.without_values(&argv.join(" "), env),
            why,
            ending,
        };
        let (handle, shown) = match directory(workspace, &place.path) {
            Some(handle) if place.path.is_empty() => (handle, workspace.root.clone()),
            Some(handle) => {
                let shown = workspace.root.join(path::as_path(&place.path));
                (handle, shown)
            }
            None => {
                let handle = directory(workspace, b"");
                let gone = || failed("the workspace is gone".to_owned(), Ending::ByItself);
                (handle.ok_or_else(gone)?, workspace.root.clone())
            }
        };
        let mut variables = self.variables_of(secured, &shown);
        variables.retain(|(name, _)| !env.iter().any(|(given, _)| name == given.as_str()));
        variables.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        let words: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let limit = timeout.map_or(COMMAND_LIMIT, |span| {
            self.bounded(Duration::from_micros(span.as_micros()))
        });
        acted.meant.insert(place.path.clone());
        reached.everything = true;
        let ran = run::run(&Run {
            what: What::Program(&words),
            directory: &PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())),
            variables: &variables,
            input: stdin.as_ref().map(|text| text.as_bytes()),
            limit,
            action: Some(&secured.action),
            whole: Whole::No,
            start: &|command| start(mutation, command),
        })
        .map_err(|error| failed(error.to_string(), Ending::ByItself))?;
        if !ran.succeeded() {
            let ran = ran.map_output(|said| self.without_values(said, env));
            return Err(failed(ran.failure(), ran.ending()));
        }
        let said = String::from_utf8_lossy(&ran.output).into_owned();
        acted.output = Some(match acted.output.take() {
            Some(before) => before + &said,
            None => said,
        });
        Ok(())
    }

    /// Runs the user's check.
    pub(super) fn run_check(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        line: &str,
    ) -> std::io::Result<Ran> {
        run::run(&Run {
            what: What::Shell(line),
            directory: &workspace.root,
            variables: &self.variables_of(secured, &workspace.root),
            input: None,
            limit: self.bounded(mutation.check_limit),
            action: Some(&secured.action),
            whole: Whole::No,
            start: &|command| start(mutation, command),
        })
    }

    /// A text without the values of these variables: each may be a secret, and what a message
    /// says goes into the trail and the log of operations, too.
    fn without_values(&self, text: &str, variables: &BTreeMap<String, String>) -> String {
        let mut pieces: Vec<(&str, String)> = Vec::new();
        for (name, value) in variables {
            let mark = self.trail.mark_variable(name, value);
            let lines = value.lines().map(str::trim);
            let secrets = [value.as_str()].into_iter().chain(lines);
            let secrets = secrets.filter(|it| it.len() >= MIN_SECRET_BYTES);
            pieces.extend(secrets.map(|it| (it, mark.clone())));
        }
        // A value may be a part of another one.
        pieces.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        let mut text = text.to_owned();
        for (secret, mark) in pieces {
            text = text.replace(secret, &mark);
        }
        text
    }

    /// The variables of a program that runs in this directory.
    fn variables_of(
        &self,
        secured: &Secured,
        directory: &std::path::Path,
    ) -> Vec<(OsString, OsString)> {
        let given = secured.given.variables.as_ref();
        let mut variables = given.unwrap_or(&self.around.variables).clone();
        for (name, value) in &mut variables {
            if name == "PWD" {
                *value = directory.into();
            }
        }
        variables
    }
}

fn start(mutation: &Mutation<'_>, command: Command) -> std::io::Result<Child> {
    match mutation.leave {
        Some(leave) => leave.start(command),
        None => run::start_unfenced(command),
    }
}
