//! Commands about the shared record, where the store is a server: they are run there.
//!
//! What the server prints is printed here, and ends with the same code. What has to do with
//! the files of this machine is never forwarded.

use std::ffi::OsString;

use safepoint_control::ControlError;
use safepoint_model::{Code, Exit, text};
use serde_json::{Map, Value};

use super::matches::Line;
use super::{Problem, Reply, Server, Wanted};
use crate::commands::serve::endpoint::Endpoint;
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// Commands about what all machines share.
const SHARED: [&str; 8] = [
    "hold",
    "operator",
    "permit",
    "session",
    "task",
    "trail",
    "trust",
    "workspace",
];

/// Those among them that open no store: they are done here.
const WITHOUT_STORE: [&[&str]; 4] = [
    &["hold", "sign"],
    &["operator", "sign"],
    &["trail", "check-bundle"],
    &["trail", "check-proof"],
];

/// Decisions are signed here, where the key is, and then handed in there; only one that was
/// signed before goes there as it is.
const DECISIONS: [&[&str]; 3] = [&["hold", "approve"], &["hold", "deny"], &["hold", "halt"]];

/// Commands that belong to the machine of the server.
const OF_THE_SERVER: [&str; 4] = ["notify", "serve", "token", "tui"];

/// Runs a command where the store is, if that is a server and the command is about what all
/// machines share.
pub(crate) fn forward(
    context: &mut Context,
    arguments: &[OsString],
) -> Result<Option<Exit>, CliError> {
    if context.settings.server.is_none() {
        return Ok(None);
    }
    let command = crate::command_line();
    let Ok(matches) = command.clone().try_get_matches_from(arguments) else {
        return Ok(None); // it explains itself
    };
    let line = Line::of(command, matches);
    let first = line.path.first().map(String::as_str).unwrap_or_default();
    if OF_THE_SERVER.contains(&first) {
        return Err(CliError::Invalid {
            message: format!("`safepoint {first}` is not available where the store is a server"),
            suggestion: "run it where the server is; its page shows what waits",
        });
    }
    let words: Vec<&str> = line.path.iter().map(String::as_str).collect();
    if !SHARED.contains(&first) || WITHOUT_STORE.contains(&words.as_slice()) {
        return Ok(None);
    }
    if DECISIONS.contains(&words.as_slice()) && !line.has("signature") {
        return Ok(None);
    }
    let (endpoint, fields) = line.fields(context)?;
    if fields.get("isolated") == Some(&Value::Bool(true)) {
        return Err(CliError::Invalid {
            message: "a directory of its own would be made on the machine of the server".to_owned(),
            suggestion: "leave out `--isolated`, or run the command where the server is",
        });
    }
    if endpoint.takes("signature") && !fields.contains_key("signature") {
        return Err(CliError::Invalid {
            message:
                "a server takes a decision only with a signature that was made where the key is"
                    .to_owned(),
            suggestion: "`safepoint operator sign` makes one; give it with `--signature @FILE`",
        });
    }
    let Some(server) = Server::of(context)? else {
        return Ok(None);
    };
    call(context, &server, endpoint, &fields).map(Some)
}

/// Runs the command of an endpoint at the server, and prints what it prints.
pub(crate) fn run_there(
    context: &mut Context,
    server: &Server,
    name: &str,
    fields: &Map<String, Value>,
) -> Result<Exit, CliError> {
    let endpoint = super::endpoint(name)?;
    call(context, server, endpoint, fields)
}

fn call(
    context: &mut Context,
    server: &Server,
    endpoint: &Endpoint,
    fields: &Map<String, Value>,
) -> Result<Exit, CliError> {
    let wanted = match context.console.mode {
        Mode::Text => Wanted::Text,
        Mode::Json | Mode::Ndjson => Wanted::Document,
    };
    let reply = server.call(endpoint, fields, wanted)?;
    tell(context, wanted, reply)
}

fn tell(context: &mut Context, wanted: Wanted, reply: Reply) -> Result<Exit, CliError> {
    let problem = match (reply, wanted) {
        (Reply::Done(shown), Wanted::Text) => {
            context.console.print(&safe(&shown))?;
            return Ok(Exit::Done);
        }
        (Reply::Done(document), Wanted::Document) => {
            let document: Value = serde_json::from_str(&document).map_err(|error| {
                CliError::Control(ControlError::Elsewhere {
                    reason: format!("its answer cannot be read: {error}"),
                })
            })?;
            context.console.json(&document)?;
            return Ok(Exit::Done);
        }
        (Reply::Problem(problem), _) => problem,
    };
    let exit = problem.exit();
    match (&problem.document, &problem.text) {
        (Some(document), _) if wanted == Wanted::Document => context.console.json(document)?,
        (_, Some(shown)) if wanted == Wanted::Text => context.console.print(&safe(shown))?,
        _ => return Err(CliError::Control(problem.error())),
    }
    Ok(exit)
}

/// Each line as it may be shown: a server is not believed to have made it safe.
fn safe(shown: &str) -> String {
    let lines = shown.lines().map(|line| text::line(line).text + "\n");
    lines.collect()
}

impl Problem {
    /// How the command ended there.
    fn exit(&self) -> Exit {
        let code = Code::ALL.iter().find(|it| it.code() == self.code);
        let implied = code.map_or(Exit::Failed, |code| code.exit());
        let told = self.exit.and_then(|exit| {
            let mut all = Exit::ALL.into_iter();
            all.find(|it| *it as u8 == exit)
        });
        told.unwrap_or(implied)
    }

    /// The same as an error of ours.
    fn error(&self) -> ControlError {
        ControlError::Refuses {
            code: self.code.clone(),
            message: self.detail.clone(),
            location: self.location.clone(),
            suggestion: self.suggestion.clone(),
        }
    }
}
