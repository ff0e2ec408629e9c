//! `safepoint` inside the fence hands its command to us, outside: we run it for the agent, if
//! it is a command for agents.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use safepoint_fence::{Call, Listener};
use safepoint_model::{Exit, SessionId, Timestamp};

use crate::cli::{Cli, Command};
use crate::commands::agents::{WORKS_SINCE, check_agent_call};
use crate::context::Context;
use crate::world::Environment;

/// How often to look whether whoever asked is still there.
const LOOK: Duration = Duration::from_millis(50);

/// Hands this command over, if we are inside a fence.
pub(crate) fn hand_over(arguments: &[OsString]) -> Option<ExitCode> {
    let environment = Environment::read().ok()?;
    let Some(socket) = environment.path("SAFEPOINT_BROKER") else {
        return out_of_reach(&environment, arguments);
    };
    // What a server is asked for is handed over, one by one; it has nothing to hide in itself.
    if Cli::try_parse_from(arguments).is_ok_and(|cli| matches!(cli.command, Command::Mcp(_))) {
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
    if arguments.iter().skip(1).any(needs_no_store) {
        return None;
    }
    eprintln!(
        "error: Safepoint's store is hidden from what `safepoint exec` runs\n\
         hint: start the agent with `safepoint run -- AGENT`: inside, `safepoint` works"
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
    /// its own work.
    pub(crate) since: Timestamp,
    /// When a person is asked before what the agent does, where `run` was told.
    pub(crate) mode: Option<&'static str>,
}

/// Runs what the agent behind the fence asks for, if it is on the list for agents.
pub(crate) struct Broker {
    client: BrokerClient,
    store: Option<String>,
}

/// The variable that says when a person is asked.
pub(super) const CHECKPOINT: &str = "SAFEPOINT_CHECKPOINT";

impl Broker {
    pub(crate) fn new(context: &Context, client: BrokerClient) -> Self {
        Self {
            client,
            store: context.store_given.clone(),
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
        let checked = check_agent_call(&call.arguments, &self.client.root, &call.directory);
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

    fn run(&self, call: &Call) -> std::io::Result<u8> {
        // The file that runs now, whatever lies under its name.
        #[expect(
            clippy::disallowed_methods,
            reason = "this program again, outside the fence"
        )]
        let mut command = Process::new("/proc/self/exe");
        command
            .args(&call.arguments)
            .current_dir(&call.directory)
            .env_remove("SAFEPOINT_BROKER")
            .env("SAFEPOINT_SESSION", self.client.session.as_str())
            .env("SAFEPOINT_AGENT", &self.client.agent)
            .env(WORKS_SINCE, self.client.since.to_string())
            .stdin(Stdio::from(call.stdin.try_clone()?))
            .stdout(Stdio::from(call.stdout.try_clone()?))
            .stderr(Stdio::from(call.stderr.try_clone()?));
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

fn tell(call: &Call, text: &str) {
    use std::io::Write;
    if let Ok(descriptor) = call.stderr.try_clone() {
        let _ = std::fs::File::from(descriptor).write_all(text.as_bytes());
    }
}
