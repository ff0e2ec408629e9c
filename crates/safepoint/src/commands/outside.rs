//! What a command line names besides files: `state:NAME`, databases, and
//! `env:VARIABLE` for a database whose address is in the environment.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use safepoint_database::{Address, DatabaseError, ServerPlace};
use safepoint_fence::Refusal;
use safepoint_model::{SessionId, yaml};
use safepoint_state::{StateError, Subject, WantedPart};
use safepoint_store::Location;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::passing::{Flags, Room};
use crate::context::{Context, real_path};
use crate::error::CliError;

/// Where a server listens that names no other port.
const POSTGRES_PORT: u16 = 5432;

/// A scope, sorted into what is in the workspace and what is not.
pub(super) struct Chosen {
    pub(super) paths: Vec<OsString>,
    pub(super) subjects: Vec<Subject>,
}

/// Sorts a scope. A file whose name looks like an address is named as `./state:x`.
pub(super) fn split(context: &mut Context, scope: &[OsString]) -> Result<Chosen, CliError> {
    let mut chosen = Chosen {
        paths: Vec::new(),
        subjects: Vec::new(),
    };
    for one in scope {
        match one
            .to_str()
            .map(|text| subject(context, text))
            .transpose()?
        {
            Some(Some(subject)) => chosen.subjects.push(subject),
            _ => chosen.paths.push(one.clone()),
        }
    }
    Ok(chosen)
}

/// The state or database that a text names; `None` when it is a path.
pub(super) fn subject(context: &mut Context, text: &str) -> Result<Option<Subject>, CliError> {
    if let Some(key) = text.strip_prefix("state:") {
        check_key(key)?;
        return Ok(Some(Subject::State {
            key: key.to_owned(),
        }));
    }
    if let Some(rest) = text.strip_prefix("env:") {
        return from_variable(context, rest).map(Some);
    }
    if Address::is_meant(text) {
        let address = Address::parse(text, &here(context)).map_err(refused)?;
        check_place(context, &address)?;
        return Ok(Some(Subject::Database {
            address,
            variable: None,
        }));
    }
    Ok(None)
}

/// Refuses databases that are ours, to everybody, and those that an agent may not name.
fn check_place(context: &mut Context, address: &Address) -> Result<(), CliError> {
    if is_our_own(context, address)? {
        return Err(CliError::Invalid {
            message: "that is where Safepoint keeps its own record".to_owned(),
            suggestion: "it is changed by Safepoint's commands alone; name a database of your work",
        });
    }
    keep_agent_inside(context, address)
}

/// Whether a database lies where Safepoint keeps what is its own, by whatever name or link.
fn is_our_own(context: &Context, address: &Address) -> Result<bool, CliError> {
    let store = &context.settings.store.value;
    if let Some(file) = address.file() {
        let real = real_path(file);
        let places = context.guarded_places(&context.workspace()?.root);
        let same_file = |one: &Path, other: &Path| {
            let id = |path: &Path| std::fs::metadata(path).map(|it| (it.dev(), it.ino())).ok();
            id(one).is_some_and(|one| id(other) == Some(one))
        };
        let is_inside = |place: &PathBuf| real.starts_with(place) || file.starts_with(place);
        let files = context.store_files();
        return Ok(places.iter().any(is_inside) || files.iter().any(|it| same_file(it, &real)));
    }
    let Location::Postgres(text) = store else {
        return Ok(false);
    };
    let Ok((ours, _)) = Address::parse_with_password(text, &here(context)) else {
        return Ok(false);
    };
    let place = |address: &Address| {
        let server = address.server()?;
        let is_here = matches!(server.host.as_str(), "" | "localhost" | "127.0.0.1" | "::1")
            || server.host.starts_with('/');
        let host = match is_here {
            true => String::new(),
            false => server.host.clone(),
        };
        Some((
            host,
            server.port.unwrap_or(POSTGRES_PORT),
            server.name.clone(),
        ))
    };
    let is_same = place(address).is_some() && place(address) == place(&ours);
    Ok(is_same && address.engine() == ours.engine())
}

/// Refuses a database that a checkpoint holds where whoever asks may not name it.
pub(super) fn check_part(context: &mut Context, part: &Subject) -> Result<(), CliError> {
    match part {
        Subject::Database { address, .. } => keep_agent_inside(context, address),
        Subject::State { .. } => Ok(()),
    }
}

/// An agent names no database file outside its workspace, and no server that nobody has named: its
/// fence keeps it from both, and we run outside of that. What is wanted is asked for like anything
/// else outside the fence.
fn keep_agent_inside(context: &mut Context, address: &Address) -> Result<(), CliError> {
    let Err(message) = context.database_check()(address) else {
        return Ok(());
    };
    let suggestion = match address.file() {
        Some(_) if context.speaks_for_agent() => {
            "an agent changes databases in its workspace; ask a person about others"
        }
        Some(_) => "`realpath` shows where it is",
        None => "a person names it under `services:` in their own settings, or opens it for you",
    };
    let refused = |message| CliError::Invalid {
        message,
        suggestion,
    };
    let variables = context.environment.variables().into_iter().collect();
    let session = context.environment.text("SAFEPOINT_SESSION");
    let session = session.and_then(|session| session.parse::<SessionId>().ok());
    let (Some(place), Some(session)) = (address.server_place(&variables), session) else {
        return Err(refused(message));
    };
    let wanted = match &place {
        ServerPlace::Host(host, port) => Refusal::Host(match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }),
        ServerPlace::Socket(path) => Refusal::Socket(path.clone()),
    };
    let room = Room::open(context, &Flags::of_hook(true))?;
    match room.passage().ask_outside(&session, &wanted) {
        Ok(()) => {
            context.open_database(&place);
            Ok(())
        }
        Err(None) => Err(refused(message)),
        Err(Some(hold)) => Err(refused(format!("{message}; {hold} waits for a person"))),
    }
}

/// `env:DATABASE_URL`, with `#TABLE,…` behind it to mean only some tables.
fn from_variable(context: &mut Context, text: &str) -> Result<Subject, CliError> {
    let (name, only) = match text.split_once('#') {
        Some((name, only)) => (name, format!("#{only}")),
        None => (text, String::new()),
    };
    let value = context.environment.text(name).ok_or(CliError::Invalid {
        message: format!("the variable `{name}` is not set"),
        suggestion: "it should hold the address of a database",
    })?;
    let whole = format!("{}{only}", value.split('#').next().unwrap_or_default());
    let (address, _) = Address::parse_with_password(&whole, &here(context)).map_err(refused)?;
    check_place(context, &address)?;
    Ok(Subject::Database {
        address,
        variable: Some(name.to_owned()),
    })
}

fn refused(error: safepoint_database::AddressError) -> CliError {
    CliError::State(StateError::from(DatabaseError::from(error)))
}

fn check_key(key: &str) -> Result<(), CliError> {
    let fine = |c: char| c.is_alphanumeric() || "._-/".contains(c);
    if key.is_empty() || key.len() > 200 || !key.chars().all(fine) {
        return Err(CliError::Invalid {
            message: format!("`{key}` is no name for a state"),
            suggestion: "names have letters, digits, `.`, `_`, `-` and `/`",
        });
    }
    Ok(())
}

/// `KEY=JSON`, `KEY=@FILE` or `KEY=-`.
pub(super) fn given_state(context: &Context, given: &str) -> Result<WantedPart, CliError> {
    let (key, value) = given.split_once('=').ok_or(CliError::Invalid {
        message: format!("`--state {given}` has no value"),
        suggestion: "write `--state KEY=JSON`, `--state KEY=@FILE` or `--state KEY=-`",
    })?;
    check_key(key)?;
    let bytes = json_or_yaml(context, value)?;
    safepoint_model::json::read(&bytes, safepoint_model::json::Limits::default()).map_err(
        |error| CliError::Invalid {
            message: format!("`--state {key}`: {error}"),
            suggestion: "the value of a state is JSON; a text has quotation marks around it",
        },
    )?;
    Ok(WantedPart {
        subject: Subject::State {
            key: key.to_owned(),
        },
        value: Some(bytes),
    })
}

/// A text, the content of `@FILE`, or standard input for `-`.
pub(crate) fn text_or_file(context: &Context, given: &str) -> Result<Vec<u8>, CliError> {
    if given == "-" || given == "@-" {
        return context.input(u64::MAX).map_err(|error| CliError::File {
            action: "read",
            path: "-".into(),
            error,
        });
    }
    match given.strip_prefix('@') {
        None => Ok(given.as_bytes().to_vec()),
        Some(file) => {
            let path = context.directory.join(file);
            std::fs::read(&path).map_err(|error| CliError::File {
                action: "read",
                path,
                error,
            })
        }
    }
}

/// The same, of a document that may be YAML: it is given back as JSON.
///
/// What is JSON, or begins as JSON does, is left to whoever reads JSON. What is neither a mapping
/// nor a list in YAML is left alone too: any words are a text in YAML, and nobody means that.
pub(crate) fn json_or_yaml(context: &Context, given: &str) -> Result<Vec<u8>, CliError> {
    to_json(text_or_file(context, given)?, given)
}

/// A document that may be YAML, as JSON.
pub(super) fn to_json(bytes: Vec<u8>, given: &str) -> Result<Vec<u8>, CliError> {
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Ok(bytes);
    };
    let begins_as_json = text.trim_start().starts_with(['{', '[', '"']);
    if begins_as_json || serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Ok(bytes);
    }
    match yaml::read_value(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Ok(serde_json::to_vec(&value)?),
        Ok(_) => Ok(bytes),
        // One line is JSON that was mistyped, unless it is a document but for a number in it; more
        // is a file that somebody wrote.
        Err(_) if !text.trim_end().contains('\n') && !is_document(text) => Ok(bytes),
        Err(error) => Err(CliError::Invalid {
            message: format!("`{given}` is neither JSON nor YAML: {error}"),
            suggestion: "YAML is read strictly: each key once, no tags, no merge keys",
        }),
    }
}

/// Whether it is a mapping or a list, whatever is wrong with its numbers.
fn is_document(text: &str) -> bool {
    let read = yaml::read_as::<Value>(text);
    matches!(read, Ok(Value::Object(_) | Value::Array(_)))
}

/// The directory that relative names are relative to.
pub(super) fn here(context: &Context) -> PathBuf {
    std::fs::canonicalize(&context.directory).unwrap_or_else(|_| context.directory.clone())
}
