//! What can be done to a target, as it is written in JSON.

use std::collections::BTreeMap;

use base64::Engine;
use safepoint_model::Span;
use safepoint_model::json::{self, Limits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::edit::Format;

/// One operation on one target.
#[derive(Clone, Debug)]
pub struct Step {
    /// On what: a path, `state:NAME` or the address of a database. `None` where the
    /// command line says it.
    pub target: Option<String>,
    /// Why, in a sentence.
    pub description: Option<String>,
    /// What is done.
    pub operation: Operation,
}

impl Step {
    /// Whether it is a command, which may change anything.
    pub const fn is_command(&self) -> bool {
        matches!(self.operation, Operation::Command { .. })
    }

    /// What it does, in a sentence.
    pub fn sentence(&self, target: &str) -> String {
        match (&self.description, &self.operation) {
            (Some(text), _) => text.clone(),
            (None, Operation::Command { argv, .. }) => {
                let words: Vec<String> = argv.iter().map(|word| quoted(word)).collect();
                format!("command {}", words.join(" "))
            }
            (None, operation) => format!("{} {target}", operation.name()),
        }
    }
}

/// A word as it would be written in a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What is done to a target.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Replaces text in a file.
    Edit {
        /// What is replaced by what. Where it is not said, nothing can be edited; that is told
        /// with the state of the target.
        changes: Option<Vec<Replace>>,
    },
    /// Makes a file with this content, or gives an existing one this content.
    Write {
        /// The content as text.
        content: Option<String>,
        /// The content as base64, where it is no text.
        base64: Option<String>,
        /// Its permissions, such as `0644`.
        mode: Option<Mode>,
    },
    /// Adds to the end of a file.
    Append {
        /// What is added, as text.
        content: Option<String>,
        /// The same as base64.
        base64: Option<String>,
    },
    /// Removes a file, a link or a directory.
    Delete {
        /// Whether a directory may have something in it.
        #[serde(default)]
        recursive: bool,
    },
    /// Gives a file or directory another path.
    Move {
        /// Which.
        to: String,
        /// Whether a file that is there may be replaced.
        #[serde(default)]
        overwrite: bool,
    },
    /// Makes a directory, and those above it.
    Mkdir {
        /// Its permissions.
        mode: Option<Mode>,
    },
    /// Changes permissions.
    Chmod {
        /// To what.
        mode: Mode,
    },
    /// Makes a symbolic link.
    Symlink {
        /// Where it points.
        to: String,
        /// Whether a file or link that is there may be replaced.
        #[serde(default)]
        overwrite: bool,
    },
    /// Applies a unified diff.
    Patch {
        /// The diff. Of several files when the target is a directory.
        patch: String,
    },
    /// Changes values in a JSON, YAML or TOML file.
    Json {
        /// A list of operations (RFC 6902).
        patch: Option<Value>,
        /// What is merged into it (RFC 7386).
        merge: Option<Value>,
        /// What the file is, where its name does not tell.
        format: Option<Written>,
    },
    /// Runs SQL in a transaction, under a savepoint.
    Sql {
        /// One or several statements.
        sql: String,
        /// A query whose answer decides: one row, whose first column is true or not 0.
        verify: Option<String>,
    },
    /// Gives a state another value.
    State {
        /// The value.
        #[serde(default, deserialize_with = "given")]
        value: Option<Value>,
        /// Or a list of operations on the present one (RFC 6902).
        patch: Option<Value>,
        /// Or what is merged into the present one (RFC 7386).
        merge: Option<Value>,
    },
    /// Runs a program. Whatever it changes in the scope is found by looking.
    Command {
        /// The program and its arguments; there is no shell.
        argv: Vec<String>,
        /// Variables beside the user's own.
        #[serde(default)]
        env: BTreeMap<String, String>,
        /// What it reads on standard input.
        stdin: Option<String>,
        /// How long it may take.
        timeout: Option<Span>,
    },
}

/// A value that is given, and may be null.
fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

/// Text that is replaced.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// In which line it begins, counted from 1; anywhere when it occurs once.
    pub line: Option<usize>,
    /// What is there.
    pub old: String,
    /// What is to be there.
    pub new: String,
    /// Whether every occurrence is meant.
    #[serde(default)]
    pub all: bool,
}

/// How a structured file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
    /// As TOML.
    Toml,
}

impl From<Written> for Format {
    fn from(written: Written) -> Self {
        match written {
            Written::Json => Self::Json,
            Written::Yaml => Self::Yaml,
            Written::Toml => Self::Toml,
        }
    }
}

/// Permissions, written in octal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mode(pub u32);

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        format!("{:04o}", mode.0)
    }
}

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0o").unwrap_or(&text);
        match u32::from_str_radix(digits, 8) {
            Ok(mode) if mode <= 0o7777 => Ok(Self(mode)),
            _ => Err(format!(
                "`{text}` are no permissions: they are written like `0644`"
            )),
        }
    }
}

/// What is wrong with an operation that was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{why}")]
pub struct OperationError {
    place: String,
    why: String,
}

/// Reads one operation, or a list of them.
pub fn read(text: &[u8]) -> Result<Vec<Step>, OperationError> {
    let plain = |why: String| OperationError {
        place: String::new(),
        why,
    };
    let value = json::read(text, Limits::default()).map_err(|error| plain(error.to_string()))?;
    match value {
        Value::Array(list) if list.is_empty() => {
            Err(plain("there is no operation in the list".to_owned()))
        }
        Value::Array(list) => list
            .into_iter()
            .enumerate()
            .map(|(place, one)| {
                let step = read_one(one).and_then(|step| match step.target {
                    Some(_) => Ok(step),
                    None => Err("it needs a `target` of its own".to_owned()),
                });
                step.map_err(|why| OperationError {
                    place: format!("operation {}: ", place + 1),
                    why,
                })
            })
            .collect(),
        one => Ok(vec![read_one(one).map_err(plain)?]),
    }
}

fn read_one(value: Value) -> Result<Step, String> {
    let Value::Object(mut fields) = value else {
        return Err("an operation is an object with a `type`".to_owned());
    };
    let mut text = |name: &str| match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is a text")),
    };
    let (target, description) = (text("target")?, text("description")?);
    let operation: Operation =
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())?;
    check(&operation)?;
    Ok(Step {
        target,
        description,
        operation,
    })
}

/// What the types alone do not say.
fn check(operation: &Operation) -> Result<(), String> {
    let one_of = |given: &[bool], names: &str| match given.iter().filter(|given| **given).count() {
        1 => Ok(()),
        _ => Err(format!("it takes one of {names}, and no more")),
    };
    match operation {
        Operation::Edit {
            changes: Some(changes),
        } if changes.is_empty() => {
            Err("`changes` is empty, so there is nothing to edit".to_owned())
        }
        Operation::Write {
            content, base64, ..
        }
        | Operation::Append { content, base64 } => {
            one_of(
                &[content.is_some(), base64.is_some()],
                "`content` and `base64`",
            )?;
            bytes(content.as_ref(), base64.as_ref()).map(drop)
        }
        Operation::Json { patch, merge, .. } => {
            one_of(&[patch.is_some(), merge.is_some()], "`patch` and `merge`")
        }
        Operation::State {
            value,
            patch,
            merge,
        } => one_of(
            &[value.is_some(), patch.is_some(), merge.is_some()],
            "`value`, `patch` and `merge`",
        ),
        Operation::Command { argv, .. } if argv.first().is_none_or(String::is_empty) => {
            Err("`argv` names no program".to_owned())
        }
        _ => Ok(()),
    }
}

/// The bytes that `content` or `base64` stand for.
pub(super) fn bytes(content: Option<&String>, base64: Option<&String>) -> Result<Vec<u8>, String> {
    match (content, base64) {
        (Some(text), _) => Ok(text.clone().into_bytes()),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|error| format!("`base64`: {error}")),
        (None, None) => Ok(Vec::new()),
    }
}

impl Operation {
    /// Whether it is done to files alone, and all that it does is known before.
    pub(super) fn is_on_files(&self) -> bool {
        !matches!(
            self,
            Self::Sql { .. } | Self::State { .. } | Self::Command { .. }
        )
    }

    /// Its name, as in `type`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Edit { .. } => "edit",
            Self::Write { .. } => "write",
            Self::Append { .. } => "append",
            Self::Delete { .. } => "delete",
            Self::Move { .. } => "move",
            Self::Mkdir { .. } => "mkdir",
            Self::Chmod { .. } => "chmod",
            Self::Symlink { .. } => "symlink",
            Self::Patch { .. } => "patch",
            Self::Json { .. } => "json",
            Self::Sql { .. } => "sql",
            Self::State { .. } => "state",
            Self::Command { .. } => "command",
        }
    }

    /// The action it is, in the words of policies.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Delete { .. } => "file.delete",
            Self::Move { .. } => "file.move",
            Self::Chmod { .. } => "file.chmod",
            Self::Sql { .. } => "db.write",
            Self::Command { .. } => "process.exec",
            Self::State { .. } => "state.write",
            _ => "file.write",
        }
    }
}
