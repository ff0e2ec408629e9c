//! Lets a command return while what it started is still supervised.
//!
//! A server that a line leaves running in the background needs its supervisor for as long as it
//! lives, and the supervisor has to be its ancestor. So commands that supervise run in a child of
//! the process that was called. When the work is done the child hands over the exit code; the
//! parent returns it, and the child stays, without a terminal and without the caller's streams,
//! until the last supervised process has ended. A child that has nothing left to supervise just
//! ends, and the parent ends as it did.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use safepoint_control::pass::LeftRunning;
use safepoint_model::Entropy;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::cli::Global;
use crate::commands::passing::record_late;
use crate::world::SystemEntropy;

/// Names the abstract socket at which the parent waits for the exit code: with the parent's
/// number, so that one that somebody else has set means nothing.
const SOCKET: &str = "SAFEPOINT_EXIT_SOCKET";

/// What this program is called.
pub(crate) const PROGRAM: &str = "safepoint";

/// What names of these sockets begin with.
const NAME: &str = "safepoint-exit-";

/// Supervisors whose processes may outlive the command.
static LEFT_RUNNING: Mutex<Vec<LeftRunning>> = Mutex::new(Vec::new());

/// Keeps a supervisor until what it supervises has ended.
pub(crate) fn keep(left: LeftRunning) {
    let mut all = LEFT_RUNNING.lock().unwrap_or_else(|lock| lock.into_inner());
    all.push(left);
}

/// The variable with the name of the parent's socket. It is taken out of the environment of
/// everything that is started from here by whoever starts it.
pub(crate) const VARIABLE: &str = SOCKET;

/// Whether this process is the child that does the work.
pub(crate) fn is_child() -> bool {
    let name = crate::world::variable(SOCKET);
    let parent = name.as_deref().and_then(|name| {
        let (parent, _) = name.strip_prefix(NAME)?.split_once('-')?;
        parent.parse().ok()
    });
    parent.is_some_and(|it: u32| it == std::os::unix::process::parent_id())
}

/// Runs this program again with the same arguments, and returns as soon as the child says how
/// its command has ended. `None` where this process is that child, or none can be started: then
/// the caller does the work itself.
pub(crate) fn run_in_child(arguments: &[OsString]) -> Option<ExitCode> {
    if is_child() {
        // It is started as `/proc/self/exe`, which would be its name.
        let _ = rustix::thread::set_name(c"safepoint");
        // The child must not outlive a parent that was killed: its command would run on unseen.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        return None;
    }
    let (listener, name) = bind().ok()?;
    let received = Received::listen().ok()?;
    let mut child = spawn(arguments, &name).ok()?;
    Some(wait(&mut child, &listener, received))
}

/// Signals that are passed on to the child.
struct Received {
    /// Wakes whoever waits for them.
    wake: UnixStream,
    flags: Vec<(Signal, Arc<AtomicBool>)>,
}

impl Received {
    fn listen() -> std::io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut flags = Vec::new();
        for (number, signal) in [
            (SIGHUP, Signal::HUP),
            (SIGINT, Signal::INT),
            (SIGQUIT, Signal::QUIT),
            (SIGTERM, Signal::TERM),
        ] {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(number, Arc::clone(&flag))?;
            signal_hook::low_level::pipe::register(number, sender.try_clone()?)?;
            flags.push((signal, flag));
        }
        Ok(Self { wake, flags })
    }

    fn pass_on(&mut self, child: Pid) {
        let mut bytes = [0; 8];
        while let Ok(1..) = self.wake.read(&mut bytes) {}
        for (signal, flag) in &self.flags {
            if flag.swap(false, Ordering::Relaxed) {
                let _ = kill_process(child, *signal);
            }
        }
    }
}

fn bind() -> std::io::Result<(UnixListener, String)> {
    let mut random = [0; 16];
    SystemEntropy
        .fill(&mut random)
        .map_err(std::io::Error::other)?;
    let own = std::process::id();
    let name = format!("{NAME}{own}-{:032x}", u128::from_ne_bytes(random));
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    listener.set_nonblocking(true)?;
    Ok((listener, name))
}

fn spawn(arguments: &[OsString], name: &str) -> std::io::Result<Child> {
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(
            arguments
                .first()
                .map_or("safepoint".as_ref(), OsString::as_os_str),
        )
        .args(arguments.iter().skip(1))
        .env(SOCKET, name)
        .spawn()
}

/// Waits for the exit code, or for the end of the child, and passes signals on to it.
fn wait(child: &mut Child, listener: &UnixListener, mut received: Received) -> ExitCode {
    let process = Pid::from_child(child);
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else {
        return of_status(child.wait());
    };
    loop {
        let mut events = [
            PollFd::new(&handle, PollFlags::IN),
            PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(received.wake.as_fd(), PollFlags::IN),
        ];
        match poll(&mut events, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return of_status(child.wait()),
        }
        if let Some(code) = accept(listener, process) {
            return ExitCode::from(code);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return of_status(Ok(status));
        }
        received.pass_on(process);
    }
}

/// The exit code, if it is the child that connects.
fn accept(listener: &UnixListener, child: Pid) -> Option<u8> {
    let (mut stream, _) = listener.accept().ok()?;
    let peer = socket_peercred(&stream).ok()?;
    if peer.pid != child {
        return None;
    }
    stream.set_nonblocking(false).ok()?;
    let mut code = [0];
    stream.read_exact(&mut code).ok()?;
    let [code] = code;
    Some(code)
}

/// Ends as the child did; by the same signal, where it was a signal.
fn of_status(status: std::io::Result<ExitStatus>) -> ExitCode {
    let Ok(status) = status else {
        return ExitCode::FAILURE;
    };
    if let Some(number) = status.signal() {
        // One that is passed on has a handler here, which would only note it.
        let _ = signal_hook::low_level::emulate_default_handler(number);
        if let Some(signal) = Signal::from_named_raw(number) {
            let _ = kill_process(rustix::process::getpid(), signal);
        }
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// Ends the command with this code. Where something that it started still runs, the parent is
/// told and this process stays until that has ended, and records what it wrote meanwhile.
pub(crate) fn finish(global: &Global, code: u8) -> ExitCode {
    let mut all = LEFT_RUNNING.lock().unwrap_or_else(|lock| lock.into_inner());
    let all: Vec<LeftRunning> = all.drain(..).collect();
    let is_in_use = all.iter().any(|left| match left {
        LeftRunning::Recorded(work) => work.is_in_use(),
        LeftRunning::Unrecorded(supervisor) => supervisor.is_in_use(),
    });
    let stays = is_in_use && hand_over(code).is_ok();
    for left in all {
        match left {
            LeftRunning::Recorded(work) => {
                if stays {
                    work.wait();
                }
                // Nobody hears of an error any more: then it is observed by the next look.
                let _ = record_late(global, &work);
            }
            LeftRunning::Unrecorded(supervisor) if stays => supervisor.wait_until_unused(),
            LeftRunning::Unrecorded(_) => {}
        }
    }
    ExitCode::from(code)
}

/// Gives the parent the exit code, and lets go of the caller's streams and of its terminal.
fn hand_over(code: u8) -> std::io::Result<()> {
    let name = crate::world::variable(SOCKET)
        .filter(|_| is_child())
        .ok_or_else(|| std::io::Error::other("nobody waits for the exit code"))?;
    // From here on the parent ends before us.
    rustix::process::set_parent_process_death_signal(None)?;
    let address = SocketAddr::from_abstract_name(name.as_bytes())?;
    #[expect(clippy::disallowed_methods, reason = "nothing is kept there")]
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let mut stream = UnixStream::connect_addr(&address)?;
    stream.write_all(&[code])?;
    // A shell that ends its session sends a signal to the group.
    let _ = rustix::process::setsid();
    Ok(())
}
