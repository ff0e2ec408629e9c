//! Where each client keeps its settings.

use std::path::{Path, PathBuf};

use crate::Client;

/// Whom the settings are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everybody who works in one project.
    Project,
    /// One person, in all projects.
    User,
}

/// The directories that settings lie in.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'path> {
    /// The person's home.
    pub home: &'path Path,
    /// The project.
    pub project: &'path Path,
    /// What the variable of [`home_variable`] says, if it is set.
    pub own: Option<&'path Path>,
}

/// The environment variable by which a person moves the client's own directory.
pub const fn home_variable(client: Client) -> Option<&'static str> {
    match client {
        Client::ClaudeCode => Some("CLAUDE_CONFIG_DIR"),
        Client::Codex => Some("CODEX_HOME"),
        Client::Copilot => Some("COPILOT_HOME"),
        Client::Opencode => Some("XDG_CONFIG_HOME"),
        Client::Gemini | Client::Cursor => None,
    }
}

/// The files that our hooks stand in.
pub fn places(client: Client, scope: Scope, roots: Roots<'_>) -> Vec<PathBuf> {
    let own = |name: &str| match roots.own {
        Some(own) => own.to_owned(),
        None => roots.home.join(name),
    };
    let place = match (client, scope) {
        (Client::ClaudeCode, Scope::Project) => roots.project.join(".claude/settings.json"),
        (Client::ClaudeCode, Scope::User) => own(".claude").join("settings.json"),
        (Client::Codex, Scope::Project) => roots.project.join(".codex/hooks.json"),
        (Client::Codex, Scope::User) => own(".codex").join("hooks.json"),
        (Client::Gemini, Scope::Project) => roots.project.join(".gemini/settings.json"),
        (Client::Gemini, Scope::User) => roots.home.join(".gemini/settings.json"),
        (Client::Copilot, Scope::Project) => roots.project.join(".github/hooks/safepoint.json"),
        (Client::Copilot, Scope::User) => own(".copilot").join("hooks/safepoint.json"),
        (Client::Cursor, Scope::Project) => roots.project.join(".cursor/hooks.json"),
        (Client::Cursor, Scope::User) => roots.home.join(".cursor/hooks.json"),
        (Client::Opencode, Scope::Project) => roots.project.join(".opencode/plugin/safepoint.js"),
        (Client::Opencode, Scope::User) => own(".config").join("opencode/plugin/safepoint.js"),
    };
    vec![place]
}
