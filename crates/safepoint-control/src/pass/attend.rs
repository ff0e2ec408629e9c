//! Waiting for a command: until it ends, takes too long, or we are asked to stop; and keeping
//! what it writes meanwhile.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::{Capture, Ended};

/// Output beyond this is thrown away.
const KEPT: usize = 1 << 20;
/// How long a command that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(5);

/// Signals that ask us to stop. We stay, to record how it ended.
pub(super) struct Stop {
    interrupted: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    hooks: Vec<signal_hook::SigId>,
}

impl Stop {
    pub(super) fn listen() -> std::io::Result<Self> {
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

    /// Whether the command is to be asked to end. Ctrl-C on a terminal reaches the command as
    /// well, and what it makes of that is its own affair.
    fn is_asked(&self, capture: Capture) -> bool {
        let is_interrupted = self.interrupted.swap(false, Ordering::Relaxed);
        let is_told = capture == Capture::Inherit && is_in_foreground();
        (is_interrupted && !is_told) || self.terminated.load(Ordering::Relaxed)
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
pub(super) fn wait(
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
        if ended == Ended::ByItself && (over || stop.is_asked(capture)) {
            ended = if over {
                Ended::TimedOut
            } else {
                Ended::Interrupted
            };
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

/// Whether what is typed at our terminal, if there is one, goes to us and to what we started.
fn is_in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    let foreground = terminal
        .ok()
        .and_then(|it| rustix::termios::tcgetpgrp(it).ok());
    foreground.is_some_and(|it| it == rustix::process::getpgrp())
}

fn signal(process: Pid, capture: Capture, signal: Signal) {
    let _ = match capture {
        Capture::Keep => kill_process_group(process, signal),
        Capture::Inherit => kill_process(process, signal),
    };
}

/// Reads a pipe to its end on a thread of its own, so that it never fills up.
pub(super) fn capture_of(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
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

/// The code of a process that has ended, as shells tell it.
pub(super) fn ended_code(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    let code = status.code().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
