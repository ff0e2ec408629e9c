//! `safepoint` inside the fence hands its command to us, outside: we run it for the agent, if
//! it is a command for agents.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitCode, Stdio};
use std::time::Duration;

use clap::Parser;
use safepoint_fence::Call;
use safepoint_model::{Exit, SessionId};

use crate::cli::{Cli, Command};
use crate::commands::{hold, operator, permit, trust};
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

/// Answers what the agent asks.
pub(super) struct Handler {
    program: PathBuf,
    session: String,
    /// The workspace: nothing is done for the agent elsewhere.
    root: PathBuf,
    store: Option<String>,
    /// When a person is asked before what the agent does, where `run` was told.
    mode: Option<&'static str>,
}

/// The variable that says when a person is asked.
pub(super) const CHECKPOINT: &str = "SAFEPOINT_CHECKPOINT";

impl Handler {
    pub(super) fn new(
        context: &Context,
        root: &Path,
        session: &SessionId,
        mode: Option<&'static str>,
    ) -> Self {
        Self {
            // The file that runs now, whatever lies under its name.
            program: "/proc/self/exe".into(),
            session: session.to_string(),
            root: root.to_owned(),
            store: context.store_given.clone(),
            mode,
        }
    }

    /// Runs it outside the fence, with its own streams, and says how it ended.
    pub(super) fn answer(&self, call: Call) -> u8 {
        let words =
            std::iter::once(OsString::from("safepoint")).chain(call.arguments.iter().cloned());
        let allowed = Cli::try_parse_from(words).map(|cli| is_for_agents(&cli, &call.arguments));
        let inside = call.directory.starts_with(&self.root);
        // What cannot be parsed explains itself, and does nothing.
        if allowed.is_ok_and(|allowed| !allowed || !inside) {
            tell(
                &call,
                "error: this is not for agents, or not in this place\n",
            );
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
        #[expect(
            clippy::disallowed_methods,
            reason = "this program again, outside the fence"
        )]
        let mut command = Process::new(&self.program);
        command
            .args(&call.arguments)
            .current_dir(&call.directory)
            .env_remove("SAFEPOINT_BROKER")
            .env("SAFEPOINT_SESSION", &self.session)
            .env("SAFEPOINT_AGENT", "1")
            .stdin(Stdio::from(call.stdin.try_clone()?))
            .stdout(Stdio::from(call.stdout.try_clone()?))
            .stderr(Stdio::from(call.stderr.try_clone()?));
        if let Some(store) = &self.store {
            command.env("SAFEPOINT_STORE", store);
        }
        if let Some(mode) = self.mode {
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

/// Whether an agent may have this done outside the fence. Whatever is not named is not: a
/// change with a command or a check in it would run outside, an operator's command decides, and
/// a file that is named is one that the agent may not be able to read.
pub(crate) fn is_for_agents(cli: &Cli, words: &[OsString]) -> bool {
    let elsewhere = cli.global.store.is_some() || cli.global.directory.is_some();
    let ours = words.iter().take_while(|word| *word != "--");
    let reaches = ours
        .map(|word| word.to_string_lossy())
        .any(|word| word.starts_with('@') || word.contains("=@") || word.starts_with("--session"));
    if elsewhere || reaches {
        return false;
    }
    match &cli.command {
        Command::Exec(_)
        | Command::Hook(_)
        | Command::Checkpoint(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Diff(_)
        | Command::Log(_)
        | Command::Status
        | Command::Undo(_)
        | Command::Redo(_)
        | Command::Du(_)
        | Command::Schema(_)
        | Command::Completions { .. } => true,
        Command::Session(command) => command.is_for_agents(),
        Command::Trail(command) => command.is_reading(),
        Command::Workspace(command) => command.is_for_agents(),
        Command::Task(command) => command.is_reading(),
        Command::Hold(command) => {
            matches!(command, hold::Command::List(_) | hold::Command::Show(_))
        }
        Command::Permit(command) => {
            matches!(
                command,
                permit::Command::List { .. } | permit::Command::Show { .. }
            )
        }
        Command::Trust(command) => matches!(command, trust::Command::List),
        Command::Operator(command) => matches!(command, operator::Command::List),
        _ => false,
    }
}

fn tell(call: &Call, text: &str) {
    use std::io::Write;
    if let Ok(descriptor) = call.stderr.try_clone() {
        let _ = std::fs::File::from(descriptor).write_all(text.as_bytes());
    }
}
