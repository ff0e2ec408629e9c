//! `safepoint client-shell TEXT`: Claude Code starts each of its shells through us.
//!
//! A line of the agent that was judged runs behind the fence that it was given. What a person
//! has configured, such as another hook, runs as it would without us. Everything else runs behind
//! a fence in which the workspace can only be read.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::process::Signal;
use safepoint_clients::{Client, agent_lines, shell_prefix_program};
use safepoint_control::pass::{LinePlace, ShellLine};

use super::configured::is_configured;
use super::relay::{self, Candidate};
use super::{Judged, broker_client, perform, shell_named};
use crate::cli::Global;
use crate::commands::hook;
use crate::commands::passing::{Flags, Room, fence};
use crate::commands::run::{BrokerClient, Keeper};
use crate::context::{Context, real_path};
use crate::detach;
use crate::error::{CliError, with_causes};
use crate::paths::Paths;
use crate::world::Environment;

/// Names the session, in the environment of every shell that Claude Code starts.
pub(super) const SESSION: &str = "CLAUDE_CODE_SESSION_ID";
/// Where the hooks of a plugin lie, in their environment.
const PLUGIN: &str = "CLAUDE_PLUGIN_ROOT";
/// What is said of a line of the shell tool that no hook of ours was asked about.
const NOT_JUDGED: &str = "Safepoint was not asked about this line, so it can change nothing: are its hooks switched off?";

/// Arguments of `client-shell`
#[derive(Debug, clap::Args)]
pub(crate) struct Text {
    /// What the shell is to run
    text: OsString,
}

/// The name of the command.
const COMMAND: &str = "client-shell";

/// The arguments with the name of the command, where Claude Code starts a shell: it knows only
/// a path, and how that is written tells us.
pub(crate) fn with_command_word(arguments: &[OsString]) -> Option<Vec<OsString>> {
    match arguments {
        [_, command, ..] if command == COMMAND => Some(arguments.to_vec()),
        [program, text] => {
            shell_prefix_program(program.to_str()?)?;
            let words = [program, OsStr::new(COMMAND), OsStr::new("--"), text];
            Some(words.map(OsStr::to_owned).to_vec())
        }
        _ => None,
    }
}

/// How a text has ended.
enum Ended {
    /// In this process.
    Here(u8),
    /// In its child.
    Elsewhere(ExitCode),
}

impl Text {
    /// Runs the text, and ends as it does.
    pub(crate) fn run(&self, global: &Global, arguments: &[OsString]) -> ExitCode {
        match self.started(global, arguments) {
            Ok(Ended::Elsewhere(code)) => code,
            Ok(Ended::Here(code)) => detach::finish(global, code),
            Err(error) => {
                eprintln!("safepoint: this line was not run: {}", with_causes(&error));
                ExitCode::from(126)
            }
        }
    }

    fn started(&self, global: &Global, arguments: &[OsString]) -> Result<Ended, CliError> {
        let environment = Environment::read()?;
        if is_inside_fence(&environment) {
            return replaced_by(&self.shell(), &["-c".as_ref(), &self.text]);
        }
        let lines = self.text.to_str().map(agent_lines).unwrap_or_default();
        if lines.is_empty() {
            if let Some(words) = own_hook(&self.text) {
                let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
                return replaced_by(&crate::world::this_program()?, &words);
            }
            // One that has it is the agent's, in a form that we do not know.
            let may_be_of_agent = self.text.to_string_lossy().contains("eval ");
            let is_of_plugin = !may_be_of_agent && has_own_plugin(global, &environment)?;
            if is_of_plugin || is_configured(global, &environment, &self.text)? {
                return replaced_by(Path::new("/bin/sh"), &["-c".as_ref(), &self.text]);
            }
        }
        let shell = self.shell();
        let session = environment.text(SESSION).unwrap_or_default();
        let paths = Paths::find(&environment)?;
        if relay::is_store_out_of_reach(&paths) {
            let candidates = lines.iter().map(|line| Candidate {
                name: &session,
                line,
            });
            let candidates: Vec<Candidate<'_>> = candidates.collect();
            let code = relay::run_candidates(&paths, &candidates, &shell, &self.text);
            return Ok(Ended::Elsewhere(ExitCode::from(code)));
        }
        if !detach::is_child() {
            // Whoever ends the shell that has started us means the line.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
        }
        if let Some(code) = detach::run_in_child(arguments) {
            return Ok(Ended::Elsewhere(code));
        }
        let client = Client::ClaudeCode.name();
        let here = environment.directory.clone();
        let mut context = Context::of_agent(global, &here, client)?;
        context.recover()?;
        let flags = Flags::of_hook(false);
        let room = Room::of_client(&mut context, &flags, client, &session)?;
        let room = room.with_hold_wait(context.settings.hook_wait.value);
        let mut claimed = None;
        for line in &lines {
            if claimed.is_none() {
                claimed = room.control.claim_line_of(client, &session, line)?;
                relay::dismiss(&paths.runtime, &session, line);
            }
        }
        let line = ShellLine {
            shell: &shell,
            text: &self.text,
            without: detach::VARIABLE,
            place: LinePlace::AnyBehindFence,
        };
        match claimed {
            Some(claimed) if claimed.is_unfenced() => {
                claimed.refuse_elsewhere()?;
                room.passage().hold_to_approval(&claimed)?;
                replaced_by(&shell, &["-c".as_ref(), &self.text])
            }
            Some(claimed) => {
                let client = broker_client(&claimed);
                let judged = Judged::Yes(Box::new(claimed));
                perform(&mut context, &room, client, &line, judged).map(Ended::Here)
            }
            None => {
                if !lines.is_empty() && !only_calls_us(&context, &room, &lines, &here) {
                    context.console.warn(NOT_JUDGED);
                }
                let session =
                    hook::session_of(&context, &room, Client::ClaudeCode, &session, &here)?;
                let client = BrokerClient {
                    session,
                    agent: client.to_owned(),
                    root: room.workspace.root.clone(),
                    since: None,
                    mode: None,
                    keeper: Keeper::Perform,
                };
                perform(&mut context, &room, client, &line, Judged::No).map(Ended::Here)
            }
        }
    }

    /// The shell that the text is written for: it restores a state that such a shell has saved.
    fn shell(&self) -> PathBuf {
        let text = self.text.as_encoded_bytes();
        let is_zsh = text
            .windows(b"/snapshot-zsh-".len())
            .any(|part| part == b"/snapshot-zsh-");
        shell_named(if is_zsh { "zsh" } else { "bash" })
    }
}

/// Whether one of the forms of a line does nothing but call this program: such a line is let
/// through without being judged, and what it calls is run for it.
fn only_calls_us(context: &Context, room: &Room, lines: &[String], here: &Path) -> bool {
    let Ok(program) = crate::world::this_program() else {
        return false;
    };
    let variables = context.environment.variables();
    let passage = room.passage();
    let calls = |line: &String| passage.only_calls(&program, line, here, &variables);
    lines.iter().any(|line| calls(line).is_some())
}

/// Puts a program in the place of this one.
fn replaced_by(program: &Path, words: &[&OsStr]) -> Result<Ended, CliError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it takes the place of this process, as it would without us"
    )]
    let mut command = Command::new(program);
    let error = command.args(words).env_remove(detach::VARIABLE).exec();
    Err(CliError::from(error))
}

/// Whether it is of a plugin that no agent could have written. For the hooks of a skill, the
/// client names the directory of that, which may lie in the workspace.
fn has_own_plugin(global: &Global, environment: &Environment) -> Result<bool, CliError> {
    let Some(plugin) = environment.path(PLUGIN) else {
        return Ok(false);
    };
    let client = Client::ClaudeCode.name();
    let context = Context::of_agent(global, &environment.directory, client)?;
    let mut writable = fence(&context, &context.workspace()?).writable;
    // Where the client has gone since is no matter: its agent could write there, too.
    let session = environment.text(SESSION).unwrap_or_default();
    writable.extend(context.control()?.home_of(client, &session)?);
    let plugin = real_path(&plugin);
    Ok(!writable.iter().any(|it| plugin.starts_with(real_path(it))))
}

/// Whether this runs behind a fence of ours. A variable says so, which anybody can set; that the
/// kernel gives no new rights here, and that this program is among the ancestors, nobody can.
pub(crate) fn is_inside_fence(environment: &Environment) -> bool {
    let is_said = ["SAFEPOINT_BROKER", "SAFEPOINT_FENCED"]
        .iter()
        .any(|name| environment.path(name).is_some());
    let ancestors = safepoint_fence::ancestors(std::process::id());
    // The process that waits for us runs this program too.
    let own = 1 + usize::from(detach::is_child());
    is_said && gains_no_rights() && ancestors.iter().skip(own).any(is_this_program)
}

fn gains_no_rights() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("NoNewPrivs:"));
    line.is_some_and(|it| it.trim() == "1")
}

/// Whether a process runs this program. A fence hides that of processes outside; then it is what
/// the process is called.
fn is_this_program(process: &safepoint_fence::Process) -> bool {
    let file = |process: &str| {
        let metadata = std::fs::metadata(format!("/proc/{process}/exe")).ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    match (file("self"), file(&process.pid.to_string())) {
        (Some(ours), Some(its)) => ours == its,
        _ => process.name.to_string_lossy().starts_with(detach::PROGRAM),
    }
}

/// The arguments, if the text calls one of our hooks and nothing else.
fn own_hook(text: &OsStr) -> Option<Vec<String>> {
    let words = safepoint_clients::words(text.to_str()?)?;
    let (program, rest) = words.split_first()?;
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let ours = crate::world::this_program().ok()?;
    let is_ours = real(Path::new(program)).is_some_and(|path| Some(path) == real(&ours));
    // Other words would be options, with which it opens what somebody else names.
    let is_hook = rest == ["hook", Client::ClaudeCode.name()];
    (is_ours && is_hook).then(|| rest.to_vec())
}
