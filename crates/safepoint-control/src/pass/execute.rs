//! Carrying out what was allowed: the program that was seen, by its descriptor, in the
//! directory that was seen, with the variables that were seen and no others.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use safepoint_gates::Outcome;
use safepoint_state::{Changed, Errand, Snapshot};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream};
use serde_json::json;

use super::{Leave, Passage, Stdin};
use crate::ControlError;

/// Output beyond this is thrown away.
const KEPT: usize = 1 << 20;
/// How long a command that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);
/// How long to wait for pipes that a child of the child holds open.
const PATIENCE: Duration = Duration::from_millis(500);

/// What becomes of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It goes where ours goes.
    Inherit,
    /// It is kept, up to a megabyte each.
    Keep,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    ByItself,
    /// It took too long.
    TimedOut,
    /// We were asked to stop.
    Interrupted,
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Its exit code, if it had one.
    pub exit_code: Option<i32>,
    /// `ok` or `error`.
    pub outcome: &'static str,
    /// What it wrote, where that was kept.
    pub stdout: Vec<u8>,
    /// What it complained of, where that was kept.
    pub stderr: Vec<u8>,
    /// What it changed.
    pub changes: Vec<Changed>,
}

impl Passage<'_> {
    /// Carries out a command, and records what came of it.
    pub fn run(
        &self,
        leave: &Leave,
        stdin: &Stdin,
        capture: Capture,
        limit: Option<Duration>,
    ) -> Result<Ran, ControlError> {
        fault::point("pass.intended");
        let stop = Stop::listen().map_err(|error| start_error(leave, error))?;
        // One that lets go of its parents becomes our child: while the action runs, whoever
        // descends from it is known to.
        safepoint_fence::become_subreaper()
            .map_err(|error| start_error(leave, std::io::Error::other(error)))?;
        let mut child = match self.start(leave, stdin, capture) {
            Ok(child) => child,
            Err(error) => {
                self.conclude(leave, "error", json!({"why": error.to_string()}))?;
                return Err(error);
            }
        };
        fault::point("pass.started");
        let output = capture_of(child.stdout.take());
        let errors = capture_of(child.stderr.take());
        if let (Some(mut pipe), Stdin::Bytes(bytes)) = (child.stdin.take(), stdin) {
            let bytes = bytes.clone();
            // One that does not read its input tells so by how it ends.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        let waited = wait(&mut child, capture, limit, &stop);
        let (ended, status) = waited.map_err(|error| start_error(leave, error))?;
        fault::point("pass.ran");
        let outcome = match (ended, status.success()) {
            (Ended::ByItself, true) => "ok",
            _ => "error",
        };
        let body = json!({
            "exit_code": status.code(), "signal": status.signal(),
            "ended": match ended {
                Ended::ByItself => "by_itself",
                Ended::TimedOut => "timed_out",
                Ended::Interrupted => "interrupted",
            },
        });
        let changes = self.conclude(leave, outcome, body)?;
        fault::point("pass.recorded");
        let read = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(PATIENCE).unwrap_or_default();
        Ok(Ran {
            ended,
            exit_code: status.code(),
            outcome,
            stdout: read(output),
            stderr: read(errors),
            changes,
        })
    }

    /// Records how an action ended, what it changed, and that its permit is used up, in one
    /// transaction; then lets the gates know.
    pub fn conclude(
        &self,
        leave: &Leave,
        outcome: &str,
        body: serde_json::Value,
    ) -> Result<Vec<Changed>, ControlError> {
        let changes = match &leave.before {
            Some(before) => self.state.after(
                self.workspace,
                before,
                &leave.errand,
                outcome,
                self.progress,
                |writing, _| self.end_leave(writing, leave, outcome, body),
            )?,
            None => {
                self.control.trail.write(Durability::Sync, |writing| {
                    self.end_leave(writing, leave, outcome, body)
                })?;
                Vec::new()
            }
        };
        fault::point("pass.concluded");
        self.report(leave, outcome)?;
        Ok(changes)
    }

    /// Records the end of an agent that was started by a person, and how much it changed.
    pub fn end_agent(
        &self,
        before: &Snapshot,
        errand: &Errand,
        outcome: &str,
        exit_code: Option<i32>,
    ) -> Result<usize, ControlError> {
        let body = json!({"outcome": outcome, "exit_code": exit_code, "agent": errand.summary});
        let changes = self.state.after(
            self.workspace,
            before,
            errand,
            outcome,
            self.progress,
            |writing, _| -> Result<(), ControlError> {
                writing.append(Draft {
                    stream: self.state_stream(),
                    actor: Actor::safepoint(),
                    kind: Kind::fixed("agent_ended").into(),
                    action_id: Some(errand.id.clone()),
                    body,
                })?;
                Ok(())
            },
        )?;
        Ok(changes.len())
    }

    fn state_stream(&self) -> Stream {
        safepoint_state::stream(&self.workspace.root)
    }

    /// Records how an action ended whose change the state has recorded itself.
    pub fn conclude_change(&self, leave: &Leave, outcome: &str) -> Result<(), ControlError> {
        self.control.trail.write(Durability::Sync, |writing| {
            self.end_leave(writing, leave, outcome, json!({}))
        })?;
        self.report(leave, outcome)
    }

    fn end_leave(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        leave: &Leave,
        outcome: &str,
        body: serde_json::Value,
    ) -> Result<(), ControlError> {
        let running = self.running(writing, leave)?;
        self.end(writing, &running, outcome, body)?;
        if outcome == "ok" && leave.permit.is_some() {
            self.prove(writing, leave)?;
        }
        Ok(())
    }

    /// Gates that look at what came of an action are raised now. The action has ended, so a
    /// session that cannot be told does not undo that.
    fn report(&self, leave: &Leave, outcome: &str) -> Result<(), ControlError> {
        let outcome = match outcome {
            "ok" => Outcome::Ok,
            _ => Outcome::Error,
        };
        match self
            .control
            .report(&leave.session_id, &leave.action_id, outcome, None)
        {
            Err(error @ (ControlError::Store(_) | ControlError::Trail(_))) => Err(error),
            // An atlas that was changed meanwhile, too, is found by whoever asks next.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn start(&self, leave: &Leave, stdin: &Stdin, capture: Capture) -> Result<Child, ControlError> {
        let failed = |error| start_error(leave, error);
        let program = leave
            .program
            .as_ref()
            .ok_or_else(|| ControlError::Proposal {
                reason: "there is no program to be started".to_owned(),
            })?;
        let directory = File::open(&leave.canonical.directory.path).map_err(failed)?;
        let held = rustix::fs::fstat(&directory).map_err(|error| failed(error.into()))?;
        let seen = leave.canonical.directory.identity;
        if (held.st_dev, held.st_ino) != (seen.device, seen.inode) {
            return Err(failed(std::io::Error::other(
                "the working directory is not the one that was seen",
            )));
        }
        // By descriptor: a file that is put in its place meanwhile is another one. A script
        // is opened again by its interpreter, by name, and cannot be held so.
        let path = match program.is_script {
            true => program.path.clone(),
            false => format!("/proc/self/fd/{}", program.file.as_raw_fd()).into(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts an agent's command"
        )]
        let mut command = Command::new(path);
        let mut words = leave.canonical.argv.iter();
        if let Some(name) = words.next() {
            command.arg0(name);
        }
        command
            .args(words)
            .current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))
            .env_clear()
            .envs(leave.variables.iter().map(|(name, value)| (name, value)))
            .env("SAFEPOINT_SESSION", leave.session_id.as_str())
            .env("SAFEPOINT_ACTION", leave.action_id.as_str())
            .stdin(match stdin {
                Stdin::Empty => Stdio::null(),
                // A person approved the form, and nobody has seen what comes through a pipe.
                Stdin::Inherited if leave.permit.is_some() && !std::io::stdin().is_terminal() => {
                    Stdio::null()
                }
                Stdin::Inherited => Stdio::inherit(),
                Stdin::Bytes(_) => Stdio::piped(),
            });
        if capture == Capture::Keep {
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
        }
        self.spawn(command, leave).map_err(failed)
    }

    /// What a person approved, or a steward allowed by a policy, runs as it would for them;
    /// everything else inside the fence.
    fn spawn(&self, mut command: Command, leave: &Leave) -> std::io::Result<Child> {
        match &self.fence {
            Some(fence) if leave.permit.is_none() && !leave.by_policy => {
                let mut fence = fence.clone();
                // What an envelope lets it write outside.
                fence.writable.extend(leave.outside());
                let (child, _) = fence.spawn(command).map_err(std::io::Error::other)?;
                Ok(child)
            }
            _ => command.spawn(),
        }
    }
}

impl Leave {
    /// Places outside the workspace that it may change.
    fn outside(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.canonical.paths.iter();
        paths
            .filter(|path| {
                !path.inside && matches!(path.role.as_str(), "write" | "delete" | "metadata")
            })
            .map(|path| PathBuf::from(&path.path))
            // What is not there yet is made in its directory.
            .map(
                |path| match (path.symlink_metadata().is_ok(), path.parent()) {
                    (false, Some(parent)) => parent.to_owned(),
                    _ => path,
                },
            )
    }
}

fn start_error(leave: &Leave, error: std::io::Error) -> ControlError {
    ControlError::Start {
        program: leave.canonical.argv.first().cloned().unwrap_or_default(),
        error,
    }
}

/// Signals that ask us to stop. We stay, to record how it ended.
struct Stop {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    hooks: Vec<signal_hook::SigId>,
}

impl Stop {
    fn listen() -> std::io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let interrupted = Arc::new(AtomicBool::new(false));
        let terminated = Arc::new(AtomicBool::new(false));
        let mut hooks = Vec::new();
        for (signal, flag) in [
            (SIGINT, &interrupted),
            (SIGTERM, &terminated),
            (SIGHUP, &terminated),
        ] {
            hooks.push(signal_hook::flag::register(signal, Arc::clone(flag))?);
        }
        Ok(Self {
            interrupted,
            terminated,
            hooks,
        })
    }

    fn is_asked(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) || self.terminated.load(Ordering::Relaxed)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            signal_hook::low_level::unregister(hook);
        }
    }
}

/// Waits without spinning: the kernel tells when the process ends.
fn wait(
    child: &mut Child,
    capture: Capture,
    limit: Option<Duration>,
    stop: &Stop,
) -> std::io::Result<(Ended, ExitStatus)> {
    const STEP: Duration = Duration::from_millis(100);
    let process = Pid::from_child(child);
    let handle = pidfd_open(process, PidfdFlags::empty())?;
    let mut left = limit;
    let mut ended = Ended::ByItself;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((ended, status));
        }
        let over = left.is_some_and(|left| left.is_zero());
        if over && ended != Ended::ByItself {
            // It was asked to end, and has not.
            signal(process, capture, Signal::KILL);
            return Ok((ended, child.wait()?));
        }
        if ended == Ended::ByItself && (over || stop.is_asked()) {
            ended = if over {
                Ended::TimedOut
            } else {
                Ended::Interrupted
            };
            // On a terminal Ctrl-C has reached it already; asking twice does no harm.
            signal(process, capture, Signal::TERM);
            left = Some(GRACE);
        }
        let step = left.unwrap_or(STEP).min(STEP);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(step.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => left = left.map(|left| left.saturating_sub(step)),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn signal(process: Pid, capture: Capture, signal: Signal) {
    let _ = match capture {
        Capture::Keep => kill_process_group(process, signal),
        Capture::Inherit => kill_process(process, signal),
    };
}

/// Reads a pipe to its end on a thread of its own, so that it never fills up.
fn capture_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = vec![0; 64 << 10];
        if let Some(mut pipe) = pipe {
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                let room = KEPT.saturating_sub(kept.len()).min(length);
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
        }
        let _ = send.send(kept);
    });
    receive
}
