//! Reading what a client says.
//!
//! Whatever is missing, of another type, or not known is an error with the event's name as
//! far as it was understood; the caller refuses. Nothing is guessed. Fields that we do not
//! know are skipped: clients add some with every version.

mod dialect;
mod ended;
pub(crate) mod event;
mod meaning;
mod patch;
mod server;
mod strict;
mod table;

use std::path::{Path, PathBuf};

use safepoint_model::text;
use serde_json::{Map, Value};

use crate::{Call, Client, Event, Heard};
use dialect::{Dialect, first};
use event::Kind;
pub(crate) use meaning::{is_shell, quote};

/// The longest name of a session, of a tool or of a call, in bytes.
const LONGEST_NAME: usize = 512;

/// Why a client was not understood.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct Unheard {
    /// In a sentence.
    pub reason: String,
    /// The event, as far as it was understood: it decides how the refusal is told.
    pub event: Option<String>,
}

/// Reads one event. `here` is the directory we were started in: it stands in where an
/// event that asks nothing comes without a directory.
pub fn hear(client: Client, bytes: &[u8], here: &Path) -> Result<Heard, Unheard> {
    let title = client.title();
    let document = strict::read(client, bytes).map_err(|why| Unheard {
        reason: format!("what {title} says is not understood: {why}"),
        event: None,
    })?;
    let (name, kind) = which(client, &document).map_err(|why| Unheard {
        reason: format!("what {title} says is not understood: {why}"),
        event: None,
    })?;
    let listener = Listener {
        client,
        name,
        kind,
        dialect: Dialect::of(client, &document),
        document: &document,
    };
    listener.heard(here).map_err(|why| Unheard {
        reason: format!("`{name}` of {title} is not understood: {why}"),
        event: Some(name.to_owned()),
    })
}

/// Which event it is.
fn which(client: Client, document: &Value) -> Result<(&'static str, Kind), String> {
    if !document.is_object() {
        return Err("it is not an object".to_owned());
    }
    let named = match document.pointer(Dialect::of(client, document).event) {
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => return Err("the name of the event is not a text".to_owned()),
        None if client == Client::Copilot => dialect::copilot_event(document),
        None => None,
    };
    let name = named.ok_or("it does not say which event it is")?;
    event::find(client, name).ok_or_else(|| {
        let name = text::shorten(&text::line(name).text, 80);
        format!("there is no event `{name}` that we know")
    })
}

/// One document, being read.
struct Listener<'document> {
    client: Client,
    name: &'static str,
    kind: Kind,
    dialect: &'static Dialect,
    document: &'document Value,
}

impl Listener<'_> {
    fn heard(&self, here: &Path) -> Result<Heard, String> {
        Ok(Heard {
            client: self.client,
            session: self
                .word(self.dialect.session)?
                .ok_or("it does not name its session")?,
            directory: self.directory(here)?,
            agent: self.word(&[self.dialect.agent])?,
            transcript: self.transcript(),
            name: self.name.to_owned(),
            event: self.event()?,
        })
    }

    fn transcript(&self) -> Option<PathBuf> {
        let named = self.document.pointer("/transcript_path")?.as_str()?;
        Some(PathBuf::from(named)).filter(|path| path.is_absolute())
    }

    fn event(&self) -> Result<Event, String> {
        Ok(match self.kind {
            Kind::SessionStart => Event::SessionStart,
            Kind::Prompt => Event::Prompt {
                text: match self.document.pointer(self.dialect.prompt) {
                    Some(Value::String(text)) => text.clone(),
                    _ => return Err("it has no prompt".to_owned()),
                },
            },
            Kind::Before => Event::Before(self.call()?),
            Kind::Permission => Event::Permission(self.call()?),
            Kind::After | Kind::Failure => {
                let call = self.call()?;
                let result = first(self.document, self.dialect.result);
                let result = result.cloned().unwrap_or_default();
                Event::After {
                    ended: ended::ended(self.client, self.kind, &call.tool, &result),
                    call,
                    result,
                }
            }
            Kind::Stop => Event::Stop,
            Kind::SessionEnd => Event::SessionEnd,
            Kind::Other => Event::Other,
        })
    }

    /// A name, such as that of a session. It becomes part of keys and of messages.
    fn word(&self, places: &[&str]) -> Result<Option<String>, String> {
        let Some(value) = first(self.document, places) else {
            return Ok(None);
        };
        let place = places.first().copied().unwrap_or_default();
        let word = value
            .as_str()
            .filter(|word| word.len() <= LONGEST_NAME && !word.chars().any(char::is_control));
        match word {
            Some(word) => Ok(Some(word.to_owned())),
            None => Err(format!(
                "`{}` is not a name of at most {LONGEST_NAME} plain characters",
                place.trim_start_matches('/')
            )),
        }
    }

    fn directory(&self, here: &Path) -> Result<PathBuf, String> {
        let Some(value) = first(self.document, self.dialect.directory) else {
            if self.kind.asks() || matches!(self.kind, Kind::After | Kind::Failure) {
                return Err("it does not say where the client works".to_owned());
            }
            return Ok(here.to_owned());
        };
        let path = value.as_str().filter(|path| !path.contains('\0'));
        match path.map(PathBuf::from) {
            Some(path) if path.is_absolute() => Ok(path),
            _ => Err("the directory where the client works is not an absolute path".to_owned()),
        }
    }

    fn call(&self) -> Result<Call, String> {
        let (name, input) = match self.cursor_call() {
            Some(own) => own,
            None => {
                let name = self.word(&[self.dialect.tool])?;
                let name = name.ok_or("it does not name a tool")?;
                let input = self.input(&name)?;
                (name, input)
            }
        };
        let tool = match server::called(self.client, self.name, &name, self.document)? {
            Some(tool) => tool,
            None => meaning::tool(self.client, &name, &input)?,
        };
        Ok(Call {
            id: self.word(&[self.dialect.call])?,
            name,
            input,
            tool,
        })
    }

    /// What the tool is given. Some clients send it as JSON inside a text.
    fn input(&self, name: &str) -> Result<Value, String> {
        let odd = || "what the tool is given is not an object".to_owned();
        let mut places = self.dialect.input.iter();
        let value = places.find_map(|place| self.document.pointer(place));
        match value {
            None => Err("it does not say what the tool is given".to_owned()),
            Some(Value::Null) => Ok(Value::Object(Map::new())),
            Some(Value::Object(fields)) => Ok(Value::Object(fields.clone())),
            Some(Value::String(text))
                if matches!(self.client, Client::Copilot | Client::Cursor) =>
            {
                match strict::read(self.client, text.as_bytes()) {
                    Ok(Value::Object(fields)) => Ok(Value::Object(fields)),
                    // A patch travels as it is.
                    _ if name == "apply_patch" => Ok(Value::String(text.clone())),
                    _ => Err(odd()),
                }
            }
            Some(_) => Err(odd()),
        }
    }

    /// Cursor has events of their own for some tools; they name the fields, but no tool.
    fn cursor_call(&self) -> Option<(String, Value)> {
        let (tool, fields): (&str, &[&str]) = match (self.client, self.name) {
            (Client::Cursor, "beforeShellExecution" | "afterShellExecution") => {
                ("Shell", &["command", "cwd"])
            }
            (Client::Cursor, "beforeReadFile") => ("Read", &["file_path"]),
            (Client::Cursor, "beforeTabFileRead") => ("TabRead", &["file_path"]),
            (Client::Cursor, "afterFileEdit") => ("Edit", &["file_path"]),
            (Client::Cursor, "afterTabFileEdit") => ("TabWrite", &["file_path"]),
            _ => return None,
        };
        let mut input = Map::new();
        for field in fields {
            if let Some(value) = self.document.get(*field) {
                input.insert((*field).to_owned(), value.clone());
            }
        }
        Some((tool.to_owned(), Value::Object(input)))
    }
}
