//! Shell lines of agent clients, run behind the fence.
//!
//! Most clients are given `safepoint perform ACTION -- bash -c LINE` in the place of a line;
//! nobody types it. Claude Code starts its shells through `safepoint client-shell` instead.

mod client_shell;
mod configured;
mod refusals;
pub(crate) mod relay;

pub(crate) use configured::note_settings;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use safepoint_control::ControlError;
use safepoint_control::pass::{ClaimedLine, LinePlace, Passage, PerformedLine, ShellLine};
use safepoint_fence::Listener;
use safepoint_model::{ActionId, SessionId};

use super::passing::{Flags, Room};
use super::run::{Broker, BrokerClient, Keeper};
use crate::context::Context;
use crate::detach;
use crate::error::CliError;
use crate::paths::Paths;
use crate::world::Environment;

pub(crate) use client_shell::{Text, is_inside_fence, with_command_word};
pub(crate) use refusals::refusals_in_words;

/// Arguments of `perform`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The action that was let through, or the session of a line that only calls `safepoint`
    name: String,
    /// The workspace of that session
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
    /// The shell and its line
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Whether a line was judged.
enum Judged {
    /// It was.
    Yes(Box<ClaimedLine>),
    /// It was not, and may change nothing.
    No,
}

/// Runs the line in a sandbox of the client, if this is one.
pub(crate) fn run_in_sandbox(arguments: &Arguments) -> Option<ExitCode> {
    let paths = Environment::read()
        .ok()
        .and_then(|it| Paths::find(&it).ok())?;
    if !relay::is_store_out_of_reach(&paths) {
        return None;
    }
    let [_, _, line] = arguments.command.as_slice() else {
        return None;
    };
    let candidate = relay::Candidate {
        name: &arguments.name,
        line,
    };
    let shell = shell_named("bash");
    let code = relay::run_candidates(&paths, &[candidate], &shell, OsStr::new(line));
    Some(ExitCode::from(code))
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<u8, CliError> {
    let [_, flag, line] = arguments.command.as_slice() else {
        return Err(not_ours());
    };
    if flag != "-c" {
        return Err(not_ours());
    }
    let session = arguments.name.parse::<SessionId>();
    let action = match &session {
        Ok(_) => None,
        Err(_) => Some(arguments.name.parse::<ActionId>().map_err(|_| not_ours())?),
    };
    // Whatever this directory is by now, and whatever is above it.
    let root = match &action {
        Some(action) => Some(context.control()?.workspace_of_line(action)?),
        None => arguments.root.clone(),
    };
    if let Some(root) = &root {
        context.pin_root(root)?;
    }
    let wait = context.settings.hook_wait.value;
    let room = Room::open(context, &Flags::of_hook(false))?;
    let room = room.for_agent().with_hold_wait(wait);
    let shell = shell_named("bash");
    let shell_line = ShellLine {
        shell: &shell,
        text: OsStr::new(line),
        without: detach::VARIABLE,
        place: LinePlace::AsJudged,
    };
    if let Ok(session) = session {
        relay::dismiss(&context.paths.runtime, &arguments.name, line);
        let agent = context.environment.text("SAFEPOINT_AGENT");
        let client = BrokerClient {
            session,
            agent: agent.unwrap_or_else(|| "1".to_owned()),
            root: room.workspace.root.clone(),
            since: None,
            mode: None,
            keeper: Keeper::Perform,
        };
        return perform(context, &room, client, &shell_line, Judged::No);
    }
    let action = action.ok_or_else(not_ours)?;
    let claimed = room.control.claim_line(&action, line)?;
    relay::dismiss(&context.paths.runtime, &arguments.name, line);
    let client = broker_client(&claimed);
    perform(
        context,
        &room,
        client,
        &shell_line,
        Judged::Yes(Box::new(claimed)),
    )
}

fn not_ours() -> CliError {
    CliError::Invalid {
        message: "that is not a line that was let through".into(),
        suggestion: "only a hook starts this",
    }
}

fn broker_client(claimed: &ClaimedLine) -> BrokerClient {
    BrokerClient {
        session: claimed.session_id().clone(),
        agent: claimed.client().unwrap_or("1").to_owned(),
        root: claimed.workspace().to_owned(),
        // A person edits beside it: what nobody has told of yet may be theirs.
        since: None,
        mode: None,
        keeper: Keeper::Perform,
    }
}

/// Runs a line behind the fence, and says what it was refused.
fn perform(
    context: &mut Context,
    room: &Room,
    client: BrokerClient,
    line: &ShellLine<'_>,
    judged: Judged,
) -> Result<u8, CliError> {
    let passage = room.passage();
    let session = client.session.clone();
    let broker = Broker::new(context, client);
    let work = |passage: &Passage<'_>, socket: Option<&Path>| match judged {
        Judged::Yes(claimed) => passage.perform(*claimed, line, socket),
        Judged::No => passage.perform_unjudged(&session, line, socket),
    };
    // Through this socket the line calls `safepoint`. Without it the line runs all the same.
    let performed: Result<PerformedLine, ControlError> =
        match Listener::bind(&context.paths.runtime) {
            Ok(listener) => broker.serve_during(&listener, |socket| work(&passage, Some(socket))),
            Err(error) => {
                let message = format!("`safepoint` does not work inside this line: {error}");
                context.console.warn(&message);
                work(&passage, None)
            }
        };
    let mut performed = performed?;
    for refusal in refusals_in_words(&performed.record) {
        context.console.warn(&refusal);
    }
    if let Some(left) = performed.left_running.take() {
        detach::keep(left);
    }
    context.console.flush()?;
    Ok(performed.code)
}

/// A shell of the system, or `sh`.
fn shell_named(name: &str) -> PathBuf {
    let places = ["/bin", "/usr/bin", "/usr/local/bin"];
    let found = places.iter().map(|place| Path::new(place).join(name));
    found
        .into_iter()
        .find(|shell| shell.exists())
        .unwrap_or_else(|| "/bin/sh".into())
}
