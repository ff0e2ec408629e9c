//! `safepoint mcp-proxy -- SERVER…`: stands in front of an MCP server, and has each use of a
//! tool pass.
//!
//! Everything else goes through as it is, in both directions. Nothing is decided here.

mod between;
mod gate;
mod message;
#[cfg(test)]
mod tests;

use std::io::{self, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command as Process, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use safepoint_model::Exit;

use self::between::Between;
use self::gate::Gate;
use crate::cli::Global;
use crate::error::CliError;

/// How often to look whether we are to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Arguments of `mcp-proxy`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What rules call the server: its tools are the actions `mcp.NAME.TOOL`
    ///
    /// Without it: the name that the server gives itself, and before it has, that of its program.
    /// Where rules allow tools of some servers by name, give it: a server can call itself anything.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The server and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    server: Vec<String>,
}

/// Ends as the server ends.
pub(crate) fn run(global: &Global, arguments: &Arguments) -> ExitCode {
    match stand_between(global, arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => ExitCode::from(global.console().fail(&error) as u8),
    }
}

fn stand_between(global: &Global, arguments: &Arguments) -> Result<u8, CliError> {
    let gate = Gate::new(global)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let program = arguments.server.first().cloned().unwrap_or_default();
    let mut child = start(&program, arguments).map_err(|error| CliError::File {
        action: "start",
        path: program.clone().into(),
        error,
    })?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(Exit::Failed as u8);
    };
    let base = Path::new(&program).file_name();
    let base = base.map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    let name = arguments.name.clone();
    let between = Between::new(gate, name, base, io::stdout(), input);
    let between = Arc::new(between);
    let listening = Arc::clone(&between);
    std::thread::spawn(move || listening.listen_to_client(io::stdin().lock()));
    let (over, ended) = mpsc::channel::<()>();
    let listening = Arc::clone(&between);
    std::thread::spawn(move || {
        // Dropped however the thread ends.
        let _over = over;
        listening.listen_to_server(BufReader::new(output));
    });
    let told = |child: &Child| {
        if stop.swap(false, Ordering::SeqCst) {
            let process = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
    };
    while ended.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
        told(&child);
    }
    // It says nothing more, so it is told nothing more.
    between.close();
    loop {
        if let Some(status) = child.try_wait()? {
            let signal = status.signal().map(|signal| 128 + signal);
            let code = status.code().or(signal).unwrap_or(1);
            return Ok(u8::try_from(code).unwrap_or(1));
        }
        told(&child);
        std::thread::sleep(LOOK);
    }
}

fn start(program: &str, arguments: &Arguments) -> io::Result<Child> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server that somebody has put us in front of: it acts when it is called"
    )]
    let mut command = Process::new(program);
    command
        .args(arguments.server.iter().skip(1))
        // It works for an agent: what it asks Safepoint for, an agent asks for.
        .env("SAFEPOINT_AGENT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}
