//! Starting programs that somebody else chose: a provider of states, a check of
//! a change, a command that is itself the change.
//!
//! Each gets a process group of its own, and a mark in its environment. When it
//! ends, fails to end in time, or we are interrupted, whatever is left of the
//! group or carries the mark is killed: nothing of it goes on changing files
//! behind our back.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use safepoint_model::ActionId;

use crate::Ending;

/// Output beyond this is counted and thrown away.
const KEPT: usize = 1 << 20;
/// How long to wait for pipes that a child of the child holds open.
const PATIENCE: Duration = Duration::from_secs(2);
/// The variable by which everything that a run started is known again.
const MARK: &str = "SAFEPOINT_RUN";

/// What is to be run.
pub(crate) struct Run<'a> {
    pub(crate) what: What<'a>,
    pub(crate) directory: &'a Path,
    /// Everything that is in its environment.
    pub(crate) variables: &'a [(OsString, OsString)],
    pub(crate) input: Option<&'a [u8]>,
    pub(crate) limit: Duration,
    /// The change that it is part of: whoever finds that cut off finds by it what it left running.
    pub(crate) action: Option<&'a ActionId>,
    /// Output of which every byte counts: more than [`KEPT`] is kept.
    pub(crate) whole: Whole,
    /// How the process is started: behind a fence, for example.
    pub(crate) start: Start<'a>,
}

/// Starts a process that is ready to be started.
pub(crate) type Start<'a> = &'a dyn Fn(Command) -> std::io::Result<Child>;

/// Starts a process as it is, behind no fence.
pub(crate) fn start_unfenced(mut command: Command) -> std::io::Result<Child> {
    command.spawn()
}

/// Whether all of the output is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whole {
    Yes,
    No,
}

/// A program with its arguments, or a line for the shell.
#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    Program(&'a [OsString]),
    Shell(&'a str),
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) end: End,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It took too long, and was killed.
    TimedOut,
    /// Somebody pressed Ctrl-C, and it was killed.
    Interrupted,
}

impl Ran {
    pub(crate) fn succeeded(&self) -> bool {
        matches!(self.end, End::Exited(status) if status.success())
    }

    /// Whether it ended by itself.
    pub(crate) fn ending(&self) -> Ending {
        match self.end {
            End::Exited(_) => Ending::ByItself,
            End::TimedOut => Ending::TimedOut,
            End::Interrupted => Ending::Interrupted,
        }
    }

    /// The same, with what it said put into other words.
    pub(crate) fn map_output(mut self, words: impl Fn(&str) -> String) -> Self {
        for said in [&mut self.output, &mut self.errors] {
            *said = words(&String::from_utf8_lossy(said)).into_bytes();
        }
        self
    }

    /// How it ended, in words, with the end of what it said.
    pub(crate) fn failure(&self) -> String {
        let how = match self.end {
            End::Exited(status) => status.to_string(),
            End::TimedOut => "it took too long".to_owned(),
            End::Interrupted => "it was interrupted".to_owned(),
        };
        let said = match self.errors.iter().all(u8::is_ascii_whitespace) {
            true => &self.output,
            false => &self.errors,
        };
        let said = String::from_utf8_lossy(said);
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = lines
            .get(lines.len().saturating_sub(5)..)
            .unwrap_or_default();
        match last.is_empty() {
            true => how,
            false => format!("{how}: {}", last.join("\n")),
        }
    }
}

/// Runs it to its end.
pub(crate) fn run(wanted: &Run<'_>) -> std::io::Result<Ran> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let mut hooks = Vec::new();
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
    ] {
        hooks.push(signal_hook::flag::register(
            signal,
            Arc::clone(&interrupted),
        )?);
    }
    let ran = run_watched(wanted, &interrupted);
    for hook in hooks {
        signal_hook::low_level::unregister(hook);
    }
    ran
}

fn run_watched(wanted: &Run<'_>, interrupted: &AtomicBool) -> std::io::Result<Ran> {
    let mark = mark(wanted.variables, wanted.action);
    let mut child = (wanted.start)(command(wanted, &mark))?;
    let group = Pid::from_child(&child);
    let output = reader(child.stdout.take(), wanted.whole);
    let errors = reader(child.stderr.take(), Whole::No);
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), wanted.input) {
        let input = input.to_vec();
        // One that does not read its input tells so by how it ends.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let end = wait(&mut child, wanted.limit, interrupted);
    let _ = kill_process_group(group, Signal::KILL);
    kill_marked(&mark);
    let end = match end {
        Ok(end) => end,
        Err(error) => {
            let _ = child.wait();
            return Err(error);
        }
    };
    let read = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(PATIENCE).unwrap_or_default();
    Ok(Ran {
        end,
        output: read(output),
        errors: read(errors),
    })
}

/// A mark that no other run has. One inside another has the mark of both.
fn mark(variables: &[(OsString, OsString)], action: Option<&ActionId>) -> OsString {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let outer = variables.iter().find(|(name, _)| name == MARK);
    let mut mark = outer.map(|(_, mark)| mark.clone()).unwrap_or_default();
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    match action {
        Some(action) => mark.push(format!("{action}.{run}/")),
        None => mark.push(format!("{}.{run}/", getpid().as_raw_pid())),
    }
    mark
}

/// Kills what carries the mark: what left the group to outlive its end.
fn kill_marked(mark: &OsStr) {
    kill_where(&|value| value.starts_with(mark.as_bytes()));
}

/// Kills what the programs of a change left running when its Safepoint was killed.
pub(crate) fn kill_leftovers(action: &ActionId) {
    let own = format!("{action}.");
    kill_where(&|value| {
        let mut runs = value.split(|byte| *byte == b'/');
        runs.any(|run| run.starts_with(own.as_bytes()))
    });
}

/// Kills every process whose mark is such a one.
fn kill_where(is_ours: &dyn Fn(&[u8]) -> bool) {
    /// One that starts new ones faster than they are found is not caught up with.
    const ROUNDS: usize = 20;
    /// One that is just becoming another program has no environment for a moment.
    const QUIET_ROUNDS: usize = 3;
    const PAUSE: Duration = Duration::from_millis(3);
    let name_of_mark = [MARK.as_bytes(), b"="].concat();
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        let mut found = false;
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            let Some(process) = number.and_then(Pid::from_raw) else {
                continue;
            };
            // By a handle: the number may be given to another process meanwhile.
            let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else {
                continue;
            };
            let variables = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let carries = |variable: &[u8]| {
                let mark = variable.strip_prefix(name_of_mark.as_slice());
                mark.is_some_and(is_ours)
            };
            if process == getpid() || !variables.split(|byte| *byte == 0).any(carries) {
                continue;
            }
            found |= pidfd_send_signal(&handle, Signal::KILL).is_ok();
            let moment = Timespec {
                tv_sec: 1,
                tv_nsec: 0,
            };
            let _ = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&moment));
        }
        quiet = if found { 0 } else { quiet + 1 };
        if quiet == QUIET_ROUNDS {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

fn command(wanted: &Run<'_>, mark: &OsStr) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that starts programs which others chose"
    )]
    let mut command = match wanted.what {
        What::Shell(line) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg("-c").arg(line);
            shell
        }
        What::Program(words) => {
            let mut words = words.iter();
            let mut command = Command::new(words.next().map_or(OsStr::new(""), OsStr::new));
            command.args(words);
            command
        }
    };
    command
        .current_dir(wanted.directory)
        .env_clear()
        .envs(wanted.variables.iter().map(|(name, value)| (name, value)))
        .env(MARK, mark)
        .stdin(match wanted.input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Waits without spinning: the kernel tells when the process ends.
fn wait(child: &mut Child, limit: Duration, interrupted: &AtomicBool) -> std::io::Result<End> {
    const STEP: Duration = Duration::from_millis(200);
    let handle = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let mut left = limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(End::Exited(status));
        }
        let end = if interrupted.load(Ordering::Relaxed) {
            End::Interrupted
        } else if left.is_zero() {
            End::TimedOut
        } else {
            let step = left.min(STEP);
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(step.subsec_nanos()),
            };
            let mut handles = [PollFd::new(&handle, PollFlags::IN)];
            match poll(&mut handles, Some(&timeout)) {
                Ok(0) => left = left.saturating_sub(step),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            continue;
        };
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
        child.wait()?;
        return Ok(end);
    }
}

/// Reads a pipe to its end on a thread of its own, so that it never fills up.
fn reader(pipe: Option<impl Read + Send + 'static>, whole: Whole) -> Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut piece = vec![0; 64 << 10];
        if let Some(mut pipe) = pipe {
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                let room = match whole {
                    Whole::Yes => length,
                    Whole::No => KEPT.saturating_sub(kept.len()).min(length),
                };
                kept.extend_from_slice(piece.get(..room).unwrap_or_default());
            }
        }
        let _ = send.send(kept);
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, limit: Duration) -> Ran {
        run(&Run {
            what: What::Shell(line),
            directory: Path::new("/"),
            variables: &[],
            input: Some(b"in"),
            limit,
            action: None,
            whole: Whole::Yes,
            start: &start_unfenced,
        })
        .unwrap()
    }

    #[test]
    fn st_27_a_check_is_run_to_its_end() {
        let ran = shell(
            "cat; echo out; echo bad >&2; exit 3",
            Duration::from_secs(60),
        );
        assert_eq!(ran.output, b"inout\n");
        assert!(!ran.succeeded());
        assert_eq!(ran.failure(), "exit status: 3: bad");
    }

    #[test]
    fn st_27_one_that_does_not_end_is_killed_with_all_it_started() {
        let ran = shell("sleep 1000 & echo $!; wait", Duration::from_millis(200));
        assert_eq!(ran.end, End::TimedOut);
        let pid = String::from_utf8(ran.output).unwrap();
        let alive = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        assert!(alive.is_err() || alive.unwrap().contains(") Z "), "{pid}");
    }

    #[test]
    fn st_27_what_leaves_the_group_is_killed_all_the_same() {
        // It goes on when the session of the other is its own.
        let line = "setsid sleep 1000 & it=$!
            until [ \"$(cut -d' ' -f6 /proc/$it/stat)\" = $it ]; do :; done; echo $it";
        let ran = shell(line, Duration::from_secs(60));
        assert!(ran.succeeded(), "{ran:?}");
        let pid = String::from_utf8(ran.output).unwrap();
        let alive = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        assert!(alive.is_err() || alive.unwrap().contains(") Z "), "{pid}");
    }
}
