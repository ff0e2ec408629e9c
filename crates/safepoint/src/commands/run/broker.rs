//! `safepoint` inside the fence hands its command to us, outside: we run it for the agent, if
//! it is a command for agents.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;
use safepoint_control::pass::is_between;
use safepoint_fence::{Call, Listener};
use safepoint_model::{Exit, SessionId, Timestamp};

use crate::cli::{Cli, Command};
use crate::commands::agents::{
    AgentRefusal, HOOK_ROOT, KEPT_BY_RUN, PINNED_ROOT, WORKS_SINCE, check_agent_call, runs_inside,
};
use crate::commands::perform::is_inside_fence;
use crate::context::Context;
use crate::world::Environment;

/// How often to look whether whoever asked is still there.
const LOOK: Duration = Duration::from_millis(50);

/// Hands this command over, if we are inside a fence.
pub(crate) fn hand_over(arguments: &[OsString]) -> Option<ExitCode> {
    let environment = Environment::read().ok()?;
    // Settings of the client name variables for its hooks, and may be an agent's: who is not
    // inside asks nobody else.
    if crate::commands::hook::is_meant(arguments) && !is_inside_fence(&environment) {
        return None;
    }
    let Some(socket) = environment.path("SAFEPOINT_BROKER") else {
        return out_of_reach(&environment, arguments);
    };
    // What a server is asked for is handed over, one by one; it has nothing to hide in itself.
    let is_server = |cli: Cli| matches!(cli.command, Command::Mcp(_));
    if Cli::try_parse_from(arguments).is_ok_and(is_server) || runs_inside(arguments) {
        return None;
    }
    let words = arguments.get(1..).unwrap_or_default();
    let variables = Vec::new(); // ours count, not the agent's
    let code = match safepoint_fence::hand_over(&socket, words, &environment.directory, &variables)
    {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: the process that keeps this agent cannot be reached: {error}");
            Exit::Unavailable as u8
        }
    };
    // A client goes on where its hook fails in a way it does not know.
    let code = match code {
        0 => 0,
        _ if crate::commands::hook::is_meant(arguments) => 2,
        code => code,
    };
    Some(ExitCode::from(code))
}

/// Says so where a command of `exec` calls us: nobody outside waits for it there, and without
/// the store there is nothing to be done.
fn out_of_reach(environment: &Environment, arguments: &[OsString]) -> Option<ExitCode> {
    environment.path("SAFEPOINT_FENCED")?;
    let needs_no_store = |word: &OsString| {
        let words = [
            "--help",
            "-h",
            "--version",
            "-V",
            "help",
            "schema",
            "completions",
            "man",
        ];
        words.iter().any(|known| word == known)
    };
    if arguments.iter().skip(1).any(needs_no_store) || runs_inside(arguments) {
        return None;
    }
    eprintln!(
        "error: Safepoint's store is hidden from what `safepoint exec` runs\n\
         hint: call `safepoint` in a line of its own, without `exec`; where a person starts the agent \
         with `safepoint run -- AGENT`, it works inside"
    );
    Some(match crate::commands::hook::is_meant(arguments) {
        true => ExitCode::from(2),
        false => ExitCode::from(Exit::Unavailable as u8),
    })
}

/// For whom a broker works, and where.
pub(crate) struct BrokerClient {
    /// Its session.
    pub(crate) session: SessionId,
    /// What the trail calls it; `1` where that is not known.
    pub(crate) agent: String,
    /// The workspace: nothing is done for the agent elsewhere.
    pub(crate) root: PathBuf,
    /// Since when what changes in the workspace, and nobody else is known to have changed, is
    /// its own work; `None` where only what is known to be its own is.
    pub(crate) since: Option<Timestamp>,
    /// When a person is asked before what the agent does, where `run` was told.
    pub(crate) mode: Option<&'static str>,
    /// Whether a client lives behind the fence, whose hooks are served.
    pub(crate) keeper: Keeper,
}

/// What keeps the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// `run`: an agent program with all that belongs to it.
    Run,
    /// `perform`: one line of an agent whose client lives outside.
    Perform,
}

/// Runs what the agent behind the fence asks for, if it is on the list for agents.
pub(crate) struct Broker {
    client: BrokerClient,
    store: Option<String>,
    /// The programs that have called a hook so far.
    hook_callers: Mutex<Vec<HookCaller>>,
}

/// The variable that says when a person is asked.
pub(super) const CHECKPOINT: &str = "SAFEPOINT_CHECKPOINT";

impl Broker {
    pub(crate) fn new(context: &Context, client: BrokerClient) -> Self {
        Self {
            client,
            store: context.store_given.clone(),
            hook_callers: Mutex::new(Vec::new()),
        }
    }

    /// Serves calls at a socket while `work` goes on, which gets its path.
    pub(crate) fn serve_during<T>(&self, listener: &Listener, work: impl FnOnce(&Path) -> T) -> T {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| listener.serve(|call| self.answer(call), &stop));
            let done = work(listener.path());
            stop.store(true, Ordering::Release);
            // It looks whether it is to stop only now and then, unless somebody calls.
            let _ = std::os::unix::net::UnixStream::connect(listener.path());
            let _ = serving.join();
            done
        })
    }

    /// Runs it outside the fence, with its own streams, and says how it ended.
    fn answer(&self, call: Call) -> u8 {
        let checked = match is_hook(&call.arguments) {
            true => self.check_hook(&call),
            false => check_agent_call(&call.arguments, &self.client.root, &place_of(&call)),
        };
        if let Err(refusal) = checked {
            tell(&call, refusal.message());
            return Exit::Identity as u8;
        }
        match self.run(&call) {
            Ok(code) => code,
            Err(error) => {
                tell(&call, &format!("error: it could not be run: {error}\n"));
                Exit::Unavailable as u8
            }
        }
    }

    /// Whether a hook is called by a client that `run` keeps. What a client has started calls
    /// hooks only to speak for it. That is told by who has called one before: a client speaks
    /// when its session begins, before any tool of it.
    fn check_hook(&self, call: &Call) -> Result<(), AgentRefusal> {
        if self.client.keeper != Keeper::Run {
            return Err(AgentRefusal::Command);
        }
        let chain = safepoint_fence::ancestors(call.peer.pid);
        let above: Vec<HookCaller> = chain.iter().skip(1).map(HookCaller::of).collect();
        let caller = above.iter().position(|it| !it.is_shell);
        let Some((place, caller)) = caller.and_then(|at| Some((at, above.get(at)?))) else {
            return Err(AgentRefusal::Command);
        };
        let mut known = self
            .hook_callers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        known.retain(HookCaller::is_alive);
        if known.contains(caller) {
            return Ok(());
        }
        // A process that a client gives its hooks to is the same program, without a shell between.
        let mut between_is_shell = false;
        for one in above.iter().skip(place + 1) {
            let is_itself = one.program.is_some() && one.program == caller.program;
            if known.contains(one) && (between_is_shell || !is_itself) {
                return Err(AgentRefusal::Command);
            }
            between_is_shell |= one.is_shell;
        }
        known.push(caller.clone());
        Ok(())
    }

    fn run(&self, call: &Call) -> std::io::Result<u8> {
        // The file that runs now, whatever lies under its name.
        #[expect(
            clippy::disallowed_methods,
            reason = "this program again, outside the fence"
        )]
        let mut command = Process::new("/proc/self/exe");
        command
            .arg0("safepoint")
            .args(&call.arguments)
            // By its descriptor: the path may lead elsewhere by now.
            .current_dir(place_of(call))
            .env_remove("SAFEPOINT_BROKER")
            .env(PINNED_ROOT, &self.client.root)
            .env("SAFEPOINT_SESSION", self.client.session.as_str())
            .env("SAFEPOINT_AGENT", &self.client.agent)
            .stdin(Stdio::from(call.stdin.try_clone()?))
            .stdout(Stdio::from(call.stdout.try_clone()?))
            .stderr(Stdio::from(call.stderr.try_clone()?));
        match self.client.since {
            Some(since) => command.env(WORKS_SINCE, since.to_string()),
            None => command.env_remove(WORKS_SINCE),
        };
        match self.client.keeper {
            Keeper::Run => {
                command.env(KEPT_BY_RUN, "1");
            }
            Keeper::Perform => {
                command.env_remove(KEPT_BY_RUN);
            }
        }
        if is_hook(&call.arguments) {
            command.env(HOOK_ROOT, &self.client.root);
        }
        if let Some(store) = &self.store {
            command.env("SAFEPOINT_STORE", store);
        }
        if let Some(mode) = self.client.mode {
            command.env(CHECKPOINT, mode);
        }
        let mut child = command.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                let signal = status.signal().map(|_| i32::from(Exit::Interrupted as u8));
                let code = status.code().or(signal).unwrap_or(1);
                return Ok(u8::try_from(code).unwrap_or(1));
            }
            if call.wait_gone(LOOK) {
                let process = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
                child.wait()?;
                return Ok(Exit::Interrupted as u8);
            }
        }
    }
}

/// A program that calls a hook, or one above it.
#[derive(Clone, Debug)]
struct HookCaller {
    process: safepoint_fence::Process,
    /// The file that it runs.
    program: Option<PathBuf>,
    is_shell: bool,
}

impl PartialEq for HookCaller {
    fn eq(&self, other: &Self) -> bool {
        self.process.is_same(&other.process)
    }
}

impl HookCaller {
    fn of(process: &safepoint_fence::Process) -> Self {
        let name = process.name.to_string_lossy();
        Self {
            program: std::fs::read_link(format!("/proc/{}/exe", process.pid)).ok(),
            is_shell: is_between(&name),
            process: process.clone(),
        }
    }

    fn is_alive(&self) -> bool {
        let now = safepoint_fence::Process::look(self.process.pid);
        now.is_some_and(|now| now.is_same(&self.process) && !now.has_ended())
    }
}

/// The working directory of a call, whatever happens to its path.
fn place_of(call: &Call) -> PathBuf {
    format!("/proc/self/fd/{}", call.place.as_raw_fd()).into()
}

fn is_hook(words: &[OsString]) -> bool {
    let all = std::iter::once(OsString::from("safepoint")).chain(words.iter().cloned());
    Cli::try_parse_from(all).is_ok_and(|cli| matches!(cli.command, Command::Hook(_)))
}

fn tell(call: &Call, text: &str) {
    use std::io::Write;
    if let Ok(descriptor) = call.stderr.try_clone() {
        let _ = std::fs::File::from(descriptor).write_all(text.as_bytes());
    }
}
