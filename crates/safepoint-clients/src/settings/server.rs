//! Our MCP server in the settings of Claude Code, for those who ask for it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::lossless::{Document, Step, Syntax};
use super::{HookCommand, SettingsError};

const LIST: &str = "mcpServers";
const NAME: &str = "safepoint";

/// The file, in a project.
pub fn server_place(project: &Path) -> PathBuf {
    project.join(".mcp.json")
}

/// The entry.
pub(crate) fn entry(program: &str) -> Value {
    json!({"command": program, "args": ["mcp"]})
}

/// The program that these settings start as the server of our name, if they have one. What cannot
/// be read as settings names an empty one: nobody knows what the client makes of it.
pub fn named_server(existing: &str) -> Option<String> {
    let Ok(document) = Document::read(existing, Syntax::Strict) else {
        return Some(String::new());
    };
    let entry = document.value().get(LIST)?.get(NAME)?;
    let command = entry.get("command").and_then(Value::as_str);
    Some(command.unwrap_or_default().to_owned())
}

/// The text with our server in it. The same text again if it is there.
pub fn install_server(
    existing: Option<&str>,
    command: &HookCommand,
) -> Result<String, SettingsError> {
    let entry = entry(command.text()?);
    let fresh = || Document::fresh(&json!({LIST: {NAME: entry}}));
    let Some(existing) = existing.filter(|text| !text.trim().is_empty()) else {
        return Ok(fresh());
    };
    if Document::read(existing, Syntax::Strict)?
        .value()
        .pointer("/mcpServers/safepoint")
        == Some(&entry)
    {
        return Ok(existing.to_owned());
    }
    let Some(rest) = uninstall_server(existing)? else {
        return Ok(fresh());
    };
    let document = Document::read(&rest, Syntax::Strict)?;
    let list = vec![Step::Key(LIST.to_owned())];
    let document = match document.value() {
        Value::Object(root) if root.is_empty() => return Ok(fresh()),
        Value::Object(root) => match root.get(LIST) {
            None => document.append(&[], Some(LIST), &json!({NAME: entry}))?,
            Some(Value::Object(_)) => document.append(&list, Some(NAME), &entry)?,
            Some(_) => {
                return Err(SettingsError::Odd {
                    place: format!("`{LIST}`"),
                    expected: "an object",
                });
            }
        },
        _ => {
            return Err(SettingsError::Odd {
                place: "the whole of the settings".to_owned(),
                expected: "an object",
            });
        }
    };
    Ok(document.into_text())
}

/// The text without our server. `None`: nothing else is left.
pub fn uninstall_server(existing: &str) -> Result<Option<String>, SettingsError> {
    let document = Document::read(existing, Syntax::Strict)?;
    let servers = document.value().get(LIST).and_then(Value::as_object);
    let Some(servers) = servers.filter(|servers| servers.contains_key(NAME)) else {
        return Ok(Some(existing.to_owned()));
    };
    let mut path = vec![Step::Key(LIST.to_owned())];
    if servers.len() > 1 {
        path.push(Step::Key(NAME.to_owned()));
    }
    let document = document.without(&path)?;
    let empty = document
        .value()
        .as_object()
        .is_some_and(|root| root.is_empty());
    Ok((!empty).then(|| document.into_text()))
}
