//! Our entries among those of others, in settings that are JSON.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::lossless::{Document, Step, Syntax};
use super::shape::{self, Shape};
use super::{Installed, SettingsError};
use crate::Client;
use crate::shell_prefix::{shell_prefix, shell_prefix_program};

/// The object with the variables of the client.
const ENVIRONMENT: &str = "env";

/// One handler of ours.
struct Ours {
    event: String,
    /// The way to it.
    path: Vec<Step>,
    program: String,
    /// Whether it is as we would write it now.
    current: bool,
}

pub(crate) fn install(
    client: Client,
    shape: &Shape,
    existing: Option<&str>,
    program: &str,
) -> Result<String, SettingsError> {
    let fresh = || Document::fresh(&shape.whole(client, program));
    let Some(existing) = existing else {
        return Ok(fresh());
    };
    let document = Document::read(existing, Syntax::of(client))?;
    let found = ours(client, shape, &document)?;
    let is_exact = |name: &str| {
        let mut entries = found.iter().filter(|ours| ours.event == name);
        let first = entries.next();
        first.is_some_and(|ours| ours.current && ours.program == program)
            && entries.next().is_none()
    };
    // Another program that shells are started through is somebody's choice.
    let value = document.value();
    let is_foreign = |name: &str| {
        Some(name) == shape.shell_variable
            && value.pointer(&format!("/{ENVIRONMENT}/{name}")).is_some()
    };
    let is_known = |ours: &Ours| shape.entries().any(|name| name == ours.event);
    if found.iter().all(is_known)
        && shape
            .entries()
            .all(|name| is_exact(name) || is_foreign(name))
    {
        return Ok(existing.to_owned());
    }
    let Some(rest) = uninstall(client, shape, existing)? else {
        return Ok(fresh());
    };
    let document = Document::read(&rest, Syntax::of(client))?;
    if document
        .value()
        .as_object()
        .is_some_and(|root| root.is_empty())
        && !document.has_comments()
    {
        return Ok(fresh());
    }
    Ok(merged(client, shape, document, program)?.into_text())
}

/// Puts all entries in. There are none of ours.
fn merged(
    client: Client,
    shape: &Shape,
    mut document: Document,
    program: &str,
) -> Result<Document, SettingsError> {
    if shape.version && document.value().get("version").is_none() {
        document = document.append(&[], Some("version"), &json!(1))?;
    }
    if document.value().get("hooks").is_none() {
        let hooks = shape.hooks(client, program);
        document = document.append(&[], Some("hooks"), &hooks)?;
    } else {
        for event in shape.events {
            let entry = shape.entry(client, event, program);
            let there = document.value().pointer(&format!("/hooks/{event}"));
            document = match there {
                Some(_) => document.append(&[key("hooks"), key(event)], None, &entry)?,
                None => document.append(&[key("hooks")], Some(event), &json!([entry]))?,
            };
        }
    }
    match shape.shell_variable {
        Some(variable) => with_shell_variable(document, variable, program),
        None => Ok(document),
    }
}

/// Names us as the program that shells are started through. Where a person has named another
/// one, that one stays.
fn with_shell_variable(
    document: Document,
    variable: &str,
    program: &str,
) -> Result<Document, SettingsError> {
    let prefix = json!(shell_prefix(program));
    match document.value().get(ENVIRONMENT) {
        Some(variables) if variables.get(variable).is_some() => Ok(document),
        Some(_) => document.append(&[key(ENVIRONMENT)], Some(variable), &prefix),
        None => document.append(&[], Some(ENVIRONMENT), &json!({variable: prefix})),
    }
}

pub(crate) fn uninstall(
    client: Client,
    shape: &Shape,
    existing: &str,
) -> Result<Option<String>, SettingsError> {
    let mut document = Document::read(existing, Syntax::of(client))?;
    let mut touched = false;
    // One at a time: each changes the way to the others.
    while let Some(found) = ours(client, shape, &document)?.into_iter().next() {
        document = document.without(&emptied(&document, found.path))?;
        touched = true;
    }
    let left = document.value().as_object();
    let empty = left.is_some_and(|root| {
        root.is_empty() || (shape.version && root.len() == 1 && root.contains_key("version"))
    });
    let empty = empty && !document.has_comments();
    Ok((!(touched && empty)).then(|| document.into_text()))
}

/// The way to the outermost thing that would be left empty, or to the handler itself.
fn emptied(document: &Document, mut path: Vec<Step>) -> Vec<Step> {
    // The settings themselves are never taken out.
    while path.len() > 1 {
        let parent = path
            .split_last()
            .map(|(_, parent)| parent)
            .unwrap_or_default();
        let alone = match at(document.value(), parent) {
            Some(Value::Array(list)) => list.len() == 1,
            // A group goes when its list of handlers does; an object of events when it is empty.
            Some(Value::Object(fields)) => parent.len() != 1 || fields.len() == 1,
            _ => false,
        };
        if !alone || document.has_comments_at(parent) {
            break;
        }
        path.pop();
    }
    path
}

pub(crate) fn installed(
    client: Client,
    shape: &Shape,
    existing: &str,
) -> Result<Installed, SettingsError> {
    let document = Document::read(existing, Syntax::of(client))?;
    let found = ours(client, shape, &document)?;
    let program = found.first().map(|ours| ours.program.clone());
    let mut installed = Installed {
        program: program.as_ref().map(PathBuf::from),
        switched_off: switched_off(client, document.value()),
        ..Installed::default()
    };
    for ours in &found {
        if !installed.events.contains(&ours.event) {
            installed.events.push(ours.event.clone());
        }
        let known = shape.entries().any(|name| name == ours.event);
        let same = program.as_ref() == Some(&ours.program);
        let fine = known && same && ours.current;
        if !fine && !installed.stale.contains(&ours.event) {
            installed.stale.push(ours.event.clone());
        }
    }
    let missing = shape.entries().map(str::to_owned);
    installed.missing = missing
        .filter(|event| !installed.events.contains(event))
        .collect();
    Ok(installed)
}

/// Our handlers, in the order of the text. Along the way it is made sure that everything
/// has the form that it must have before something is put in.
fn ours(client: Client, shape: &Shape, document: &Document) -> Result<Vec<Ours>, SettingsError> {
    let root = document.value();
    let root = root
        .as_object()
        .ok_or_else(|| odd("the whole of the settings", "an object"))?;
    let mut found = Vec::new();
    found.extend(shell_variable(shape, document.value())?);
    let Some(hooks) = root.get("hooks") else {
        return Ok(found);
    };
    let hooks = hooks
        .as_object()
        .ok_or_else(|| odd("`hooks`", "an object"))?;
    for (event, list) in hooks {
        let Some(list) = list.as_array() else {
            // Switches may stand beside the events.
            if shape.events.contains(&event.as_str()) {
                return Err(odd(&format!("`hooks.{event}`"), "a list"));
            }
            continue;
        };
        for (index, entry) in list.iter().enumerate() {
            let path = vec![key("hooks"), key(event), Step::Index(index)];
            let handlers = if shape.grouped {
                entry.get("hooks").and_then(Value::as_array)
            } else {
                None
            };
            let inner = handlers.into_iter().flatten().enumerate();
            let inner = inner.map(|(index, handler)| {
                let further = [key("hooks"), Step::Index(index)];
                ([path.clone(), further.to_vec()].concat(), handler)
            });
            let own = (!shape.grouped).then(|| (path.clone(), entry));
            for (path, handler) in inner.chain(own) {
                let line = handler.get(shape.command).and_then(Value::as_str);
                let Some(program) = line.and_then(|line| shape::program(client, line)) else {
                    continue;
                };
                let expected = shape.handler(client, event, &program);
                // With a matcher it would not see every tool.
                let matcher = entry.get("matcher").filter(|_| shape.grouped);
                let narrowed = matcher.is_some_and(|matcher| *matcher != "*" && *matcher != "");
                found.push(Ours {
                    event: event.clone(),
                    path,
                    current: *handler == expected && !narrowed,
                    program,
                });
            }
        }
    }
    Ok(found)
}

/// The variable that names us as the program that shells are started through, if it does.
fn shell_variable(shape: &Shape, root: &Value) -> Result<Option<Ours>, SettingsError> {
    let (Some(name), Some(variables)) = (shape.shell_variable, root.get(ENVIRONMENT)) else {
        return Ok(None);
    };
    let variables = variables
        .as_object()
        .ok_or_else(|| odd("`env`", "an object"))?;
    let prefix = variables.get(name).and_then(Value::as_str);
    let program = prefix.and_then(shell_prefix_program).filter(|program| {
        let file = program.rsplit('/').next();
        file.is_some_and(|file| file.starts_with("safepoint"))
    });
    Ok(program.map(|program| Ours {
        event: name.to_owned(),
        path: vec![key(ENVIRONMENT), key(name)],
        program,
        current: true,
    }))
}

/// What switches hooks off in the same settings.
fn switched_off(client: Client, root: &Value) -> Option<String> {
    let is = |place: &str, value: Value| root.pointer(place) == Some(&value);
    let names = |place: &str| {
        let list = root.pointer(place).and_then(Value::as_array);
        list.is_some_and(|list| list.contains(&json!("safepoint")))
    };
    let what = match client {
        Client::ClaudeCode if is("/disableAllHooks", json!(true)) => "`disableAllHooks` is true",
        Client::Gemini if is("/hooksConfig/enabled", json!(false)) => {
            "`hooksConfig.enabled` is false"
        }
        Client::Gemini if is("/tools/enableHooks", json!(false)) => "`tools.enableHooks` is false",
        Client::Gemini if names("/hooksConfig/disabled") => {
            "`hooksConfig.disabled` names `safepoint`"
        }
        Client::Gemini if names("/hooks/disabled") => "`hooks.disabled` names `safepoint`",
        Client::Copilot if is("/disableAllHooks", json!(true)) => "`disableAllHooks` is true",
        _ => return None,
    };
    Some(what.to_owned())
}

fn at<'value>(value: &'value Value, path: &[Step]) -> Option<&'value Value> {
    path.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

fn odd(place: &str, expected: &'static str) -> SettingsError {
    SettingsError::Odd {
        place: place.to_owned(),
        expected,
    }
}
