//! Runs an agent program under control: in a session of its own, behind the fence, with a
//! checkpoint before it and everything it changed recorded after it.
//!
//! The agent owns the terminal. What waits for a person is announced by the bell, and decided
//! in `safepoint tui` elsewhere.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_control::pass::Passage;
use safepoint_fence::{Fence, Listener, Strength, Terminals};
use safepoint_model::{ActionId, Exit, SessionId};
use safepoint_state::{Company, Errand};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Arguments, broker};
use crate::commands::notify;
use crate::commands::passing::Room;
use crate::console::{Mode, count};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// How often to look for what waits.
const LOOK: Duration = Duration::from_millis(500);

/// What `run -- AGENT` prints under `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentReply {
    action_id: String,
    session_id: String,
    /// `ok` or `error`.
    outcome: &'static str,
    exit_code: Option<i32>,
    /// Whether the kernel kept it in the workspace.
    fence: String,
    /// The state before it.
    checkpoint_id: String,
    /// How many paths changed.
    changed: usize,
}

pub(super) fn run(
    context: &mut Context,
    arguments: &Arguments,
    agent: &[String],
) -> Result<Exit, CliError> {
    let room = Room::open(context, &arguments.flags)?;
    let mut passage = room.passage();
    // Agents give the commands they run terminals of their own.
    if let Some(fence) = &mut passage.fence {
        fence.terminals = Terminals::All;
    }
    passage.recover()?;
    let fence = passage.fence.clone();
    if arguments.flags.dry_run {
        context.console.say(&format!(
            "would run `{}`, {}",
            agent.join(" "),
            strength_in_words(fence.as_ref())
        ));
        return Ok(Exit::Done);
    }
    let session = passage.begin(arguments.flags.objective.clone())?;
    let action =
        ActionId::generate(&SystemEntropy).map_err(|error| CliError::Control(error.into()))?;
    let before = room
        .state
        .before(&room.workspace, &action, Company::Alone, &room.progress)?;
    if fence.is_none() || safepoint_fence::strength() != Strength::Full {
        context.console.warn(&strength_in_words(fence.as_ref()));
    }
    let ran = attend(context, &room, &passage, agent, &session)?;
    let errand = Errand {
        id: action.clone(),
        session: Some(session.to_string()),
        action: "agent.run".to_owned(),
        summary: agent.join(" "),
        decision: "allow".to_owned(),
    };
    let outcome = if ran.status.success() { "ok" } else { "error" };
    let changes = passage.end_agent(&before, &errand, outcome, ran.status.code())?;
    let reply = AgentReply {
        action_id: action.to_string(),
        session_id: session.to_string(),
        outcome,
        exit_code: ran.status.code(),
        fence: strength_in_words(fence.as_ref()),
        checkpoint_id: before.id.to_string(),
        changed: changes,
    };
    match context.console.mode {
        Mode::Text => context.console.say(&format!(
            "safepoint: {}; `safepoint log` tells what, `safepoint undo {}` takes it back",
            count(changes as u64, "path changed", "paths changed"),
            reply.action_id
        )),
        Mode::Json | Mode::Ndjson => context.console.json(&reply)?,
    }
    Ok(match (ran.stopped, ran.status.success()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Done,
        (false, false) => Exit::Failed,
    })
}

/// How an agent ended.
struct Attended {
    status: ExitStatus,
    /// Whether it was asked to.
    stopped: bool,
}

/// Starts the agent, serves what it asks of us, and waits for its end.
fn attend(
    context: &Context,
    room: &Room,
    passage: &Passage<'_>,
    agent: &[String],
    session: &SessionId,
) -> Result<Attended, CliError> {
    let unavailable = |error: safepoint_fence::FenceError| CliError::Invalid {
        message: format!("the agent cannot be attended: {error}"),
        suggestion: "`--no-fence` runs it without a fence",
    };
    // Whoever is left behind by the agent stays in its tree.
    safepoint_fence::become_subreaper().map_err(unavailable)?;
    let listener = match &passage.fence {
        Some(_) => Some(Listener::bind(&context.paths.runtime).map_err(unavailable)?),
        None => None,
    };
    let mut command = command(context, agent, session)?;
    if let Some(listener) = &listener {
        command.env("SAFEPOINT_BROKER", listener.path());
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let serving = listener.as_ref().map(|listener| {
            let handler = broker::Handler::new(context, &room.workspace.root, session);
            let stop = &stop;
            scope.spawn(move || listener.serve(|call| handler.answer(call), stop))
        });
        let started = start(command, passage.fence.as_ref());
        let ended = started.and_then(|child| wait(child, room, context, session));
        stop.store(true, Ordering::Release);
        if let Some(serving) = serving {
            let _ = serving.join();
        }
        ended
    })
}

fn command(context: &Context, agent: &[String], session: &SessionId) -> Result<Command, CliError> {
    let (program, words) = agent
        .split_first()
        .ok_or_else(|| CliError::Usage("there is no agent to run".to_owned()))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the agent itself, which a person has named"
    )]
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(&context.directory)
        // What lets this machine in at a server is no agent's business.
        .env_remove(crate::far::TOKEN)
        .env("SAFEPOINT_SESSION", session.as_str())
        .env("SAFEPOINT_AGENT", "1");
    Ok(command)
}

fn start(mut command: Command, fence: Option<&Fence>) -> Result<Child, CliError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| {
        CliError::Control(safepoint_control::ControlError::Start {
            program: program.clone(),
            error,
        })
    };
    match fence {
        Some(fence) => match fence.spawn(command) {
            Ok((child, _)) => Ok(child),
            Err(safepoint_fence::FenceError::Start { source, .. }) => Err(failed(source)),
            Err(error) => Err(failed(std::io::Error::other(error))),
        },
        None => command.spawn().map_err(failed),
    }
}

/// Waits for the agent, and announces what waits for a person.
fn wait(
    mut child: Child,
    room: &Room,
    context: &Context,
    session: &SessionId,
) -> Result<Attended, CliError> {
    use signal_hook::consts::{SIGHUP, SIGTERM};
    let asked = Arc::new(AtomicBool::new(false));
    // Ctrl-C goes to the agent, which owns the terminal.
    let ignored = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, ignored);
    for signal in [SIGTERM, SIGHUP] {
        let _ = signal_hook::flag::register(signal, Arc::clone(&asked));
    }
    let mut announced = BTreeSet::new();
    let mut stopped = false;
    loop {
        if let Some(status) = child.try_wait()? {
            safepoint_fence::reap_orphans(|_| false);
            return Ok(Attended {
                stopped: stopped || status.signal() == Some(signal_hook::consts::SIGINT),
                status,
            });
        }
        if asked.load(Ordering::Relaxed) && !stopped {
            stopped = true;
            let process = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        // A store that cannot be read now is no reason to stop watching.
        for hold in context.desk(&room.control).waiting().unwrap_or_default() {
            let mine = hold.canonical.session_id == *session;
            if mine && announced.insert(hold.hold_id.clone()) {
                announce(&hold.hold_id.to_string());
            }
        }
        std::thread::sleep(LOOK);
    }
}

/// Rings, and lets terminals that know how show a note: nothing of the agent's text is in it.
fn announce(hold: &str) {
    notify::ring(&format!("{hold} waits for you"));
}

fn strength_in_words(fence: Option<&Fence>) -> String {
    match (fence, safepoint_fence::strength()) {
        (None, _) => "without a fence: it may write outside the workspace".to_owned(),
        (Some(_), Strength::Full) => "behind a fence: it writes only in the workspace".to_owned(),
        (Some(_), Strength::Partial(what)) => {
            format!("behind a fence that does not hold all: {what}")
        }
        (Some(_), Strength::None(why)) => format!("without a fence: {why}"),
    }
}
