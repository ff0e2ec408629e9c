//! `safepoint mcp`: the commands as tools of an MCP server, for agents.
//!
//! Each tool is a command, run as it is; what only operators do is not offered. Nothing is
//! decided here.

mod advice;
mod child;
mod notes;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use safepoint_clients::settings::HookCommand;
use safepoint_clients::skills::Skill;
use safepoint_control::ControlError;
use safepoint_control::pass::{Act, Stdin, Visitor, this_process};
use safepoint_model::{Exit, SessionId, Span};
use safepoint_server::mcp::{
    About, Caller, PromptNote, Refused, ServeError, ToolAnswer, ToolNote, Tools, serve_http,
    serve_stdio,
};
use serde_json::{Map, Value, json};

pub(crate) use self::child::AGENT;
use self::child::{Ran, Runner};
pub(crate) use self::notes::names as tool_names;
use crate::cli::Global;
use crate::commands::form::{Given, Naming};
use crate::commands::passing::{Flags, Room};
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;
use crate::world::Environment;

/// What a model should know.
const INSTRUCTIONS: &str = "Safepoint makes what you change undoable, judges it, and records it. \
Before changing anything make a `checkpoint`; change through `mutate`, or yourself; look with `diff`; \
take back with `undo` (one action) or `rollback` (everything since a checkpoint). \
Where rules ask questions, use `answer`, then try again. What waits for a person, a person decides: \
tell them, and do not work around it.";

/// How long a call may wait for a person.
const MAX_WAIT: Span = Span::from_micros(10 * 60 * 1_000_000);

/// Arguments of `mcp`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Serve over HTTP at this address of this machine, such as 127.0.0.1:8900, under /mcp
    ///
    /// Without it: over standard input and output. Whoever can connect can use the tools, so other
    /// users of this machine can, too: standard input and output is the safer way.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
}

/// Serves until the client goes, or for ever.
pub(crate) fn run(global: &Global, arguments: &Arguments) -> ExitCode {
    let mut console = global.console();
    let commands = Commands {
        runner: Runner::new(global),
        environment: Environment::read().ok(),
        global: global.clone(),
        opening: Mutex::new(()),
        opened: Arc::default(),
    };
    let (environment, opened) = (commands.environment.clone(), Arc::clone(&commands.opened));
    let served = match &arguments.http {
        // The client has gone: nobody is there to do what still waits in its session.
        None => {
            let served = serve_stdio(commands).map_err(CliError::from);
            served.and(end_sessions(global, environment.as_ref(), &opened))
        }
        Some(address) => resolve(address).and_then(|address| {
            let told = serve_http(commands, address, |url| {
                let shown = match console.mode {
                    Mode::Text => format!("{url}\n"),
                    Mode::Json | Mode::Ndjson => format!("{}\n", json!({ "url": url })),
                };
                // Nobody to tell it to is no reason to fail.
                let _ = console.print(&shown).and_then(|()| console.flush());
            });
            told.map_err(CliError::from)
        }),
    };
    let exit = match served {
        Ok(()) => Exit::Done,
        Err(error) => console.fail(&error),
    };
    ExitCode::from(exit as u8)
}

/// An address by name or number.
fn resolve(address: &str) -> Result<SocketAddr, CliError> {
    let found = address.to_socket_addrs().ok().and_then(|mut it| it.next());
    found.ok_or_else(|| CliError::Invalid {
        message: format!("`{address}` is not an address with a port"),
        suggestion: "name one of this machine, such as `127.0.0.1:8900`",
    })
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::NotLoopback(_) => Self::Invalid {
                message: error.to_string(),
                suggestion: "name one, such as `127.0.0.1:8900`",
            },
            ServeError::Listen { address, error } => Self::File {
                action: "listen on",
                path: address.to_string().into(),
                error,
            },
            ServeError::Broken(error) => Self::File {
                action: "go on serving",
                path: "mcp".into(),
                error,
            },
        }
    }
}

/// The commands, as tools.
struct Commands {
    runner: Runner,
    global: Global,
    environment: Option<Environment>,
    /// One at a time looks for its session.
    opening: Mutex<()>,
    /// The sessions that were found for connections.
    opened: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl Tools for Commands {
    fn about(&self) -> About {
        About {
            name: "safepoint".to_owned(),
            title: "Safepoint".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: INSTRUCTIONS.to_owned(),
        }
    }

    fn list(&self) -> Vec<ToolNote> {
        notes::notes()
    }

    /// The skills that `safepoint install` puts into clients, by the same names.
    fn prompts(&self) -> Vec<PromptNote> {
        let Ok(program) = crate::world::this_program() else {
            return Vec::new();
        };
        let command = HookCommand { program };
        let prompt = |skill: Skill| {
            Some(PromptNote {
                name: skill.name.to_owned(),
                description: skill.description.to_owned(),
                text: skill.text(&command).ok()?,
            })
        };
        Skill::all().filter_map(prompt).collect()
    }

    fn waits(&self, _name: &str, arguments: &Map<String, Value>) -> bool {
        arguments.contains_key("wait")
    }

    fn call(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, Refused> {
        let tool = table::TOOLS.iter().find(|tool| tool.form.name == name);
        let tool = tool.ok_or_else(|| Refused::Unknown(name.to_owned()))?;
        let given =
            Given::check(&tool.form, arguments, Naming::Lenient).map_err(Refused::Arguments)?;
        refuse_long_wait(arguments).map_err(Refused::Arguments)?;
        let session = match given.needs_session() {
            false => given.session().map(str::to_owned),
            true => match self.session(caller) {
                Ok(session) => Some(session),
                Err(error) => return Ok(answer(of_error(&error))),
            },
        };
        let session = session.as_deref();
        Ok(answer(self.runner.run(given.words(session), session)))
    }
}

impl Commands {
    /// The session of a connection: the one that we were started in, or one of its own, under
    /// the atlases of the workspace. It is looked for each time, since it begins anew when
    /// the rules have changed.
    fn session(&self, caller: &Caller) -> Result<String, CliError> {
        let environment = self.environment.as_ref();
        if let Some(session) = environment.and_then(|it| it.text("SAFEPOINT_SESSION")) {
            return Ok(session);
        }
        let _turn = self.opening.lock();
        let here = environment.map(|it| it.directory.clone());
        let mut context = Context::of_agent(&self.global, &here.unwrap_or_default(), AGENT)?;
        let flags = Flags::of_hook(true);
        if let Some(root) = self.runner.root() {
            context.pin_root(root)?;
        }
        let room = Room::open(&mut context, &flags)?;
        self.runner.keep_to(&room.workspace.root);
        let act = Act::Command(Vec::new());
        let mut proposal = room.proposal(&context, &flags, act, Stdin::Empty)?;
        let process = this_process();
        let (number, started) = process;
        let connection = caller.connection.as_deref().unwrap_or("one");
        let session = format!("{number}-{started}-{connection}");
        proposal.objective = Some(format!("{AGENT} {session}"));
        proposal.visitor = Some(Visitor {
            kind: safepoint_control::pass::CallKind::Other,
            in_background: false,
            client: AGENT.to_owned(),
            session,
            agent: None,
            call: String::new(),
            process,
        });
        let session = room.passage().session(&proposal)?;
        if let Ok(mut opened) = self.opened.lock() {
            opened.insert(session.clone());
        }
        Ok(session.to_string())
    }
}

/// Ends the sessions of connections that are over.
fn end_sessions(
    global: &Global,
    environment: Option<&Environment>,
    opened: &Mutex<BTreeSet<SessionId>>,
) -> Result<(), CliError> {
    let opened = opened.lock().map(|opened| opened.clone());
    let opened = opened.unwrap_or_default();
    if opened.is_empty() {
        return Ok(());
    }
    let here = environment.map(|it| it.directory.clone());
    let mut context = Context::of_agent(global, &here.unwrap_or_default(), AGENT)?;
    let room = Room::open(&mut context, &Flags::of_hook(true))?;
    for session in &opened {
        match room.passage().close(session) {
            // It was ended before.
            Ok(()) | Err(ControlError::Refused(_) | ControlError::Refuses { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Refuses to wait for longer than a client would: each that waits is a process of its own.
fn refuse_long_wait(arguments: &Map<String, Value>) -> Result<(), String> {
    let wait = arguments.get("wait").and_then(Value::as_str);
    let wait = wait.and_then(|text| text.parse::<Span>().ok());
    match wait.is_some_and(|wait| wait.as_micros() > MAX_WAIT.as_micros()) {
        true => Err(format!(
            "`wait` is at most {MAX_WAIT}: ask again when somebody has decided"
        )),
        false => Ok(()),
    }
}

fn answer(ran: Ran) -> ToolAnswer {
    ToolAnswer {
        advice: match ran.done {
            true => None,
            false => Some(advice::of(&ran.document)),
        },
        document: ran.document,
        done: ran.done,
    }
}

fn of_error(error: &CliError) -> Ran {
    Ran {
        document: json!({"error": error.problem()}),
        done: false,
    }
}
