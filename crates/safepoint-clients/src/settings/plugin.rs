//! The same hooks as a plugin of Claude Code: a directory that can be handed on.

use std::path::PathBuf;

use serde_json::json;

use super::lossless::Document;
use super::shape::Shape;
use super::{HookCommand, SettingsError, server};
use crate::Client;
use crate::hear::quote;
use crate::skills::Skill;

const SKILL: &str = include_str!("skill.md");

/// The files of the plugin, by their paths in its directory.
pub fn plugin(command: &HookCommand) -> Result<Vec<(PathBuf, String)>, SettingsError> {
    let program = command.text()?;
    let shape = Shape::of(Client::ClaudeCode).ok_or(SettingsError::Unreadable)?;
    let manifest = json!({
        "name": "safepoint",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Every tool call judged, made undoable and recorded",
        "license": env!("CARGO_PKG_LICENSE"),
    });
    let hooks = json!({"hooks": shape.hooks(Client::ClaudeCode, program)});
    let servers = json!({"mcpServers": {"safepoint": server::entry(program)}});
    let skill = SKILL.replace("PROGRAM", &quote(program));
    let mut files = vec![
        (
            PathBuf::from(".claude-plugin/plugin.json"),
            Document::fresh(&manifest),
        ),
        (PathBuf::from("hooks/hooks.json"), Document::fresh(&hooks)),
        (PathBuf::from(".mcp.json"), Document::fresh(&servers)),
        (PathBuf::from("skills/safepoint/SKILL.md"), skill),
    ];
    for skill in Skill::all() {
        let (path, text) = skill.file(command)?;
        files.push((PathBuf::from("skills").join(path), text));
    }
    Ok(files)
}
