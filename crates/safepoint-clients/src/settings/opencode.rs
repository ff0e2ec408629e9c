//! opencode has no command hooks: a plugin of ours asks in their place.
//!
//! The plugin stops the tool on everything but a clear answer, so it fails closed.

use std::path::PathBuf;

use serde_json::Value;

use super::{Installed, SettingsError, TIMEOUT_SECONDS};

const TEMPLATE: &str = include_str!("opencode.js");
/// By its first line a file is known as ours.
const MARK: &str = "// Safepoint for opencode, written by `safepoint install opencode`.";
const PROGRAM: &str = "const program = ";

/// The plugin.
fn text(program: &str) -> String {
    let milliseconds = u64::from(TIMEOUT_SECONDS) * 1000;
    TEMPLATE
        .replace("= TIMEOUT", &format!("= {milliseconds}"))
        .replace("= PROGRAM", &format!("= {}", Value::from(program)))
}

fn is_ours(existing: &str) -> bool {
    existing.lines().next().map(str::trim_end) == Some(MARK)
}

pub(crate) fn install(existing: Option<&str>, program: &str) -> Result<String, SettingsError> {
    match existing {
        Some(existing) if !is_ours(existing) => Err(SettingsError::Foreign),
        _ => Ok(text(program)),
    }
}

pub(crate) fn uninstall(existing: &str) -> Option<String> {
    (!is_ours(existing)).then(|| existing.to_owned())
}

pub(crate) fn installed(existing: &str) -> Installed {
    let named = is_ours(existing)
        .then(|| existing.lines().find_map(named))
        .flatten();
    let events = || {
        vec![
            "tool.execute.before".to_owned(),
            "tool.execute.after".to_owned(),
        ]
    };
    let Some(program) = named else {
        return Installed {
            missing: events(),
            ..Installed::default()
        };
    };
    let current = existing == text(&program);
    Installed {
        program: Some(PathBuf::from(program)),
        events: events(),
        stale: if current { Vec::new() } else { events() },
        ..Installed::default()
    }
}

/// The program that a line of the plugin names.
fn named(line: &str) -> Option<String> {
    serde_json::from_str(line.strip_prefix(PROGRAM)?.trim_end()).ok()
}
