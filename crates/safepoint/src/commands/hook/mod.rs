//! `safepoint hook CLIENT`: an agent client asks before and tells after each use of a tool.
//!
//! Clients let a tool run when their hook fails, so nothing here fails in a way they do not
//! know: it ends with 0 or 2, whatever happens, and before the client loses patience.

mod guard;
pub(crate) mod reason;
mod replacement;
mod visit;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use safepoint_clients::{Client, Heard, Reply, answer, hear, settings};
use safepoint_model::{ActionId, SessionId, Span};

pub(crate) use visit::session_of;

use crate::cli::{Cli, Command, Global};
use crate::commands::agents::HOOK_ROOT;
use crate::context::{Context, real_path};
use crate::error::CliError;
use crate::world::Environment;
use replacement::quoted;

/// How long we take at most, besides waiting for an operator.
const DEADLINE: Duration = Duration::from_secs(50);
/// How much sooner than the client loses patience we answer.
const MARGIN: Duration = Duration::from_secs(10);

/// More than this is no event of a client.
const LARGEST: u64 = 64 << 20;

/// Arguments of `hook`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The client: claude-code, codex, gemini, copilot, cursor or opencode
    client: String,
    /// Answer within so long, such as `20s`; what is not judged by then is denied
    #[arg(long, value_name = "TIME")]
    deadline: Option<Span>,
    /// Leave shell lines as they are: what needs a fence is put before a person
    #[arg(long)]
    no_fence: bool,
}

/// Whether a command line may be one of a hook.
pub(crate) fn is_meant(arguments: &[OsString]) -> bool {
    let mut words = arguments.iter().skip(1).take_while(|word| *word != "--");
    words.any(|word| word == "hook")
}

/// Takes the command line over, if it is one of a hook.
pub(crate) fn take_over(arguments: &[OsString]) -> Option<ExitCode> {
    if !is_meant(arguments) {
        return None;
    }
    match Cli::try_parse_from(arguments) {
        Ok(Cli {
            global,
            command: Command::Hook(arguments),
        }) => Some(run(&global, &arguments)),
        Ok(_) => None,
        Err(error) if !error.use_stderr() => None,
        // A client that calls us wrongly must not go on as if it had been let through.
        Err(error) => {
            eprintln!("safepoint: this hook is not installed as it should be: {error}");
            Some(ExitCode::from(2))
        }
    }
}

fn run(global: &Global, arguments: &Arguments) -> ExitCode {
    let client: Client = match arguments.client.parse() {
        Ok(client) => client,
        Err(error) => {
            eprintln!("safepoint: {error}");
            return ExitCode::from(2);
        }
    };
    let answering = guard::watch(client, arguments.patience(Duration::ZERO));
    let wire = match listen(client) {
        Err(reason) => safepoint_clients::refuse(client, reason.1.as_deref(), &reason.0),
        Ok(heard) => {
            answering.heard(&heard);
            match attend(global, arguments, &heard, &answering) {
                Ok(reply) => answer(&heard, &reply),
                Err(error) => {
                    safepoint_clients::refuse(client, Some(&heard.name), &reason::of_error(&error))
                }
            }
        }
    };
    answering.say(&wire)
}

/// Reads what the client says.
fn listen(client: Client) -> Result<Heard, (String, Option<String>)> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            (
                format!("safepoint: standard input cannot be read: {error}"),
                None,
            )
        })?;
    let here = Environment::read().map(|it| it.directory);
    let here = here.unwrap_or_else(|_| PathBuf::from("/"));
    hear(client, &bytes, &here)
        .map_err(|unheard| (format!("safepoint: {}", unheard.reason), unheard.event))
}

/// Does what an event asks for.
fn attend(
    global: &Global,
    arguments: &Arguments,
    heard: &Heard,
    answering: &guard::Answering,
) -> Result<Reply, CliError> {
    let start = project(heard);
    let mut context = Context::of_agent(global, &start, heard.client.name())?;
    refuse_elsewhere(&context, [&start, &heard.directory])?;
    let wait = Duration::from_micros(context.settings.hook_wait.value.as_micros());
    answering.may_take(arguments.patience(wait));
    context.recover()?;
    let reply = visit::Visit::new(&mut context, arguments, heard).reply()?;
    context.console.flush()?;
    Ok(reply)
}

/// What `run` keeps in a workspace speaks of no other.
fn refuse_elsewhere(context: &Context, places: [&PathBuf; 2]) -> Result<(), CliError> {
    let Some(root) = context.environment.path(HOOK_ROOT) else {
        return Ok(());
    };
    match places
        .iter()
        .all(|place| real_path(place).starts_with(&root))
    {
        true => Ok(()),
        false => Err(CliError::Invalid {
            message: format!("this client works in `{}`", root.display()),
            suggestion: "`safepoint run` keeps it there",
        }),
    }
}

/// The directory of the project: some clients say where they are, which changes, and tell
/// the project beside it.
fn project(heard: &Heard) -> PathBuf {
    let variable = match heard.client {
        Client::ClaudeCode => "CLAUDE_PROJECT_DIR",
        Client::Gemini => "GEMINI_PROJECT_DIR",
        _ => return heard.directory.clone(),
    };
    let named = Environment::read().ok().and_then(|it| it.path(variable));
    match named {
        Some(project) if heard.directory.starts_with(&project) => project,
        _ => heard.directory.clone(),
    }
}

/// In whose name a line is run.
enum PerformedName<'a> {
    /// It was judged as this action.
    Action(&'a ActionId),
    /// It only calls us, in this session and workspace.
    Session {
        session: &'a SessionId,
        root: &'a Path,
        agent: Client,
    },
}

impl Arguments {
    /// How long we may take, if an operator may take `wait`.
    fn patience(&self, wait: Duration) -> Duration {
        let span = |span: Span| Duration::from_micros(span.as_micros());
        let own = self.deadline.map_or(DEADLINE, span).min(DEADLINE);
        let client = Duration::from_secs(u64::from(settings::TIMEOUT_SECONDS));
        (own + wait).min(client.saturating_sub(MARGIN))
    }

    /// The line that runs another one behind the fence, under the name of its action, or of its
    /// session, with the workspace, where it only calls us.
    fn performing(
        &self,
        context: &Context,
        line: &str,
        name: &PerformedName<'_>,
    ) -> Result<String, CliError> {
        let program = crate::world::this_program().map_err(|error| CliError::File {
            action: "find",
            path: Path::new("safepoint").to_owned(),
            error,
        })?;
        let mut words = Vec::new();
        if let PerformedName::Session { agent, .. } = name {
            words.extend(["env".to_owned(), format!("SAFEPOINT_AGENT={agent}")]);
        }
        words.push(quoted(&program.to_string_lossy()));
        if let Some(store) = &context.store_given {
            words.extend(["--store".to_owned(), quoted(store)]);
        }
        words.push("perform".to_owned());
        match name {
            PerformedName::Action(action) => words.push(action.to_string()),
            PerformedName::Session { session, root, .. } => {
                let root = quoted(&root.to_string_lossy());
                words.extend([session.to_string(), "--root".to_owned(), root]);
            }
        }
        replacement::of_line(&words.join(" "), line)
    }
}
