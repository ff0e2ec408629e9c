//! Runs an agent program under control: its start is judged like a command, then it works in a
//! session of its own, behind the fence, with a checkpoint and its intent recorded before it and
//! everything it changed after it.
//!
//! The agent owns the terminal. What waits for a person is announced by the bell, and decided
//! in `safepoint tui` elsewhere.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_control::pass::{Act, Answer, Ended, LeftRunning, Mode as PassMode, Passage, Stdin};
use safepoint_fence::{Fence, GuardedNames, Listener, NetworkAccess, Strength, Terminals};
use safepoint_model::{Exit, SessionId};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Arguments, Broker, BrokerClient, Keeper, broker};
use crate::commands::agents::KEPT_AGENT;
use crate::commands::passing::{self, DenialReply, Flags, Room};
use crate::commands::{exec, notify};
use crate::console::{Mode, count};
use crate::context::Context;
use crate::error::CliError;

/// How often to look for what waits.
const LOOK: Duration = Duration::from_millis(500);
/// The shortest pause between two looks.
const SHORTEST: Duration = Duration::from_millis(20);
/// How long an agent that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);

/// What `run -- AGENT` prints under `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentReply {
    action_id: String,
    session_id: String,
    /// `ok` or `error`.
    outcome: &'static str,
    exit_code: Option<i32>,
    /// `by_itself`, `timed_out` when it took longer than `--timeout` says, or `interrupted`.
    ended: &'static str,
    /// Whether the kernel kept it in the workspace.
    fence: String,
    /// The state before it.
    checkpoint_id: Option<String>,
    /// How many paths changed.
    changed: usize,
}

pub(super) fn run(
    context: &mut Context,
    arguments: &Arguments,
    agent: &[String],
) -> Result<Exit, CliError> {
    let room = Room::of_command(context, &arguments.flags)?;
    let mut passage = room.passage();
    // Agents give the commands they run terminals of their own.
    if let Some(fence) = &mut passage.fence {
        fence.terminals = Terminals::All;
        // The client itself talks to its model, to keyrings and to its own tools.
        if let Some(supervision) = &mut fence.supervision {
            supervision.network = NetworkAccess::Open;
            // The client writes its own settings itself.
            supervision.guarded = GuardedNames::default();
        }
        if !arguments.flags.dry_run {
            fence.make_caches();
        }
    }
    let fence = passage.fence.clone();
    let act = Act::Agent(agent.to_vec());
    let mut proposal = room.proposal(context, &arguments.flags, act, Stdin::Inherited)?;
    // The person who starts it has decided to; before its calls they are asked.
    if proposal.mode == PassMode::Always {
        proposal.mode = PassMode::Policy;
    }
    if arguments.flags.dry_run {
        let rehearsed = passage.rehearse(&proposal)?;
        if rehearsed.denial.is_none() {
            context.console.say(&format!(
                "would run `{}`, {}",
                agent.join(" "),
                strength_in_words(fence.as_ref())
            ));
        }
        return exec::tell_rehearsal(context, rehearsed);
    }
    let answer = passing::ask(context, &room, &arguments.flags, &arguments.who, &proposal)?;
    let mut leave = match answer {
        Answer::Leave(leave) => leave,
        Answer::Denied(denied) => {
            let reply = DenialReply {
                denial: denied.denial,
                session_id: Some(denied.session_id.to_string()),
                resolution: denied.resolution,
            };
            return exec::deny(context, &reply);
        }
    };
    let session = passage.begin_agent(&mut leave, arguments.flags.objective.clone())?;
    let supervision = passage.fence.as_mut();
    if let Some(supervision) = supervision.and_then(|fence| fence.supervision.as_mut()) {
        // What the agent writes is its own, and what a person does beside it is not.
        let journal = room.state.write_journal(&leave.action_id);
        safepoint_fence::Writes::begin_journal(&journal)?;
        supervision.journal = Some(journal);
    }
    if fence.is_none() || safepoint_fence::strength() != Strength::Full {
        context.console.warn(&strength_in_words(fence.as_ref()));
    }
    context.console.flush()?;
    let ran = match attend(context, &room, &passage, &arguments.flags, agent, &session) {
        Ok(ran) => ran,
        Err(error) => {
            passage.end_agent(&leave, "error", Ended::ByItself, None)?;
            return Err(error);
        }
    };
    let well = ran.status.success() && ran.ended == Ended::ByItself;
    let outcome = if well { "ok" } else { "error" };
    let changes = passage.end_agent(&leave, outcome, ran.ended, ran.status.code())?;
    let reply = AgentReply {
        action_id: leave.action_id.to_string(),
        session_id: session.to_string(),
        outcome,
        exit_code: ran.status.code(),
        ended: ran.ended.as_str(),
        fence: strength_in_words(fence.as_ref()),
        checkpoint_id: leave.before.as_ref().map(|before| before.id.to_string()),
        changed: changes,
    };
    match context.console.mode {
        Mode::Text => {
            if let (Ended::TimedOut, Some(limit)) = (ran.ended, arguments.flags.timeout) {
                context.console.say(&format!(
                    "safepoint: the agent took longer than {limit}, and was stopped"
                ));
            }
            context.console.say(&format!(
                "safepoint: {}; `safepoint log` tells what, `safepoint undo {}` takes it back",
                count(changes as u64, "path changed", "paths changed"),
                reply.action_id
            ));
        }
        Mode::Json | Mode::Ndjson => context.console.json(&reply)?,
    }
    Ok(match (ran.ended, well) {
        (Ended::TimedOut | Ended::Interrupted, _) => Exit::Interrupted,
        (Ended::ByItself, true) => Exit::Done,
        (Ended::ByItself, false) => Exit::Failed,
    })
}

/// How an agent ended.
struct Attended {
    status: ExitStatus,
    ended: Ended,
}

/// Starts the agent, serves what it asks of us, and waits for its end.
fn attend(
    context: &Context,
    room: &Room,
    passage: &Passage<'_>,
    flags: &Flags,
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
    if let Some(mode) = flags.mode_word() {
        command.env(broker::CHECKPOINT, mode);
    }
    let work = |mut command: Command, socket: Option<&Path>| {
        if let Some(socket) = socket {
            command.env("SAFEPOINT_BROKER", socket);
        }
        start(command, passage.fence.as_ref())
            .and_then(|child| wait(child, room, context, session, flags.limit()))
    };
    let Some(listener) = &listener else {
        return work(command, None);
    };
    let client = BrokerClient {
        session: session.clone(),
        agent: agent_name(agent),
        root: room.workspace.root.clone(),
        since: Some(room.state.now()),
        mode: flags.mode_word(),
        keeper: Keeper::Run,
    };
    Broker::new(context, client).serve_during(listener, |socket| work(command, Some(socket)))
}

/// What the trail calls an agent: the name of its program.
fn agent_name(agent: &[String]) -> String {
    let program = agent.first().map(Path::new).and_then(Path::file_name);
    let name = program.map(|name| name.to_string_lossy().into_owned());
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = name
        .unwrap_or_default()
        .chars()
        .take(60)
        .map(plain)
        .collect();
    match name.is_empty() {
        true => KEPT_AGENT.to_owned(),
        false => name,
    }
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
            Ok(started) => {
                if let Some(supervisor) = started.supervisor {
                    crate::detach::keep(LeftRunning::Unrecorded(supervisor));
                }
                Ok(started.child)
            }
            Err(safepoint_fence::FenceError::Start { source, .. }) => Err(failed(source)),
            Err(error) => Err(failed(std::io::Error::other(error))),
        },
        None => command.spawn().map_err(failed),
    }
}

/// Waits for the agent, at most so long, and announces what waits for a person.
fn wait(
    mut child: Child,
    room: &Room,
    context: &Context,
    session: &SessionId,
    limit: Option<Duration>,
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
    let mut ended = Ended::ByItself;
    let mut left = limit;
    loop {
        if let Some(status) = child.try_wait()? {
            if ended == Ended::TimedOut {
                signal_tree(rustix::process::Signal::KILL);
            }
            safepoint_fence::reap_orphans(|_| false);
            let interrupted = status.signal() == Some(signal_hook::consts::SIGINT);
            return Ok(Attended {
                ended: match interrupted && ended == Ended::ByItself {
                    true => Ended::Interrupted,
                    false => ended,
                },
                status,
            });
        }
        let over = left.is_some_and(|left| left.is_zero());
        match ended {
            Ended::ByItself if over => {
                ended = Ended::TimedOut;
                left = Some(GRACE);
                signal_tree(rustix::process::Signal::TERM);
            }
            Ended::ByItself if asked.load(Ordering::Relaxed) => {
                ended = Ended::Interrupted;
                left = None;
                let process = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
            }
            // It was asked to end, and has not.
            Ended::TimedOut if over => signal_tree(rustix::process::Signal::KILL),
            _ => {}
        }
        // A store that cannot be read now is no reason to stop watching.
        for hold in context.desk(&room.control).waiting().unwrap_or_default() {
            let mine = hold.canonical.session_id == *session;
            if mine && announced.insert(hold.hold_id.clone()) {
                announce(&hold.hold_id.to_string());
            }
        }
        let step = left.unwrap_or(LOOK).clamp(SHORTEST, LOOK);
        std::thread::sleep(step);
        left = left.map(|left| left.saturating_sub(step));
    }
}

/// Sends a signal to the agent and all that it has started.
fn signal_tree(signal: rustix::process::Signal) {
    for process in safepoint_fence::descendants() {
        let pid = i32::try_from(process.pid).ok();
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, signal);
        }
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
