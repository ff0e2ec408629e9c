//! What our entries look like in each client's settings.
//!
//! The command line is always the same for the same program: Codex wants every other one
//! to be reviewed anew.

use serde_json::{Map, Value, json};

use super::TIMEOUT_SECONDS;
use crate::Client;
use crate::hear::quote;
use crate::shell_prefix::{SHELL_PREFIX, shell_prefix};

/// The longest that Codex waits at the end of a session.
const CODEX_SESSION_END: u32 = 3;

/// How the entries of a client are laid out.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The events, in the order in which they are written.
    pub(crate) events: &'static [&'static str],
    /// Those that the client must stop at when the hook itself fails, where it can.
    guarded: &'static [&'static str],
    /// Whether entries stand in groups with a `hooks` list of their own.
    pub(crate) grouped: bool,
    /// Whether the text names the version of its form.
    pub(crate) version: bool,
    /// The field with the command line.
    pub(crate) command: &'static str,
    /// The variable, set in `env`, that names the program through which the client starts shells.
    pub(crate) shell_variable: Option<&'static str>,
}

const CLAUDE_CODE: Shape = Shape {
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    ],
    guarded: &["UserPromptSubmit", "PreToolUse"],
    grouped: true,
    version: false,
    command: "command",
    shell_variable: Some(SHELL_PREFIX),
};

const CODEX: Shape = Shape {
    events: &[
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ],
    guarded: &[],
    grouped: true,
    version: false,
    command: "command",
    shell_variable: None,
};

const GEMINI: Shape = Shape {
    events: &[
        "SessionStart",
        "BeforeAgent",
        "BeforeTool",
        "AfterTool",
        "AfterAgent",
        "SessionEnd",
    ],
    guarded: &[],
    grouped: true,
    version: false,
    command: "command",
    shell_variable: None,
};

const COPILOT: Shape = Shape {
    events: &[
        "sessionStart",
        "userPromptSubmitted",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "subagentStop",
        "agentStop",
        "sessionEnd",
    ],
    guarded: &[],
    grouped: false,
    version: true,
    command: "bash",
    shell_variable: None,
};

const CURSOR: Shape = Shape {
    events: &[
        "sessionStart",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "subagentStop",
        "stop",
        "sessionEnd",
    ],
    guarded: &["beforeSubmitPrompt", "preToolUse"],
    grouped: false,
    version: true,
    command: "command",
    shell_variable: None,
};

impl Shape {
    /// That of `client`; none where it has no such settings.
    pub(crate) const fn of(client: Client) -> Option<&'static Self> {
        Some(match client {
            Client::ClaudeCode => &CLAUDE_CODE,
            Client::Codex => &CODEX,
            Client::Gemini => &GEMINI,
            Client::Copilot => &COPILOT,
            Client::Cursor => &CURSOR,
            Client::Opencode => return None,
        })
    }

    /// Our entry for one event, as it stands in the list of that event.
    pub(crate) fn entry(&self, client: Client, event: &str, program: &str) -> Value {
        let handler = self.handler(client, event, program);
        if self.grouped {
            json!({"hooks": [handler]})
        } else {
            handler
        }
    }

    /// Our handler for one event.
    pub(crate) fn handler(&self, client: Client, event: &str, program: &str) -> Value {
        let command = command(client, program);
        let guarded = self.guarded.contains(&event);
        let mut handler = match client {
            Client::ClaudeCode => json!({"type": "command", "command": command,
                "timeout": TIMEOUT_SECONDS}),
            Client::Codex => {
                let timeout = if event == "SessionEnd" {
                    CODEX_SESSION_END
                } else {
                    TIMEOUT_SECONDS
                };
                json!({"type": "command", "command": command, "timeout": timeout})
            }
            // In milliseconds.
            Client::Gemini => json!({"name": "safepoint", "type": "command",
                "command": command, "timeout": TIMEOUT_SECONDS * 1000}),
            Client::Copilot => json!({"type": "command", "bash": command,
                "timeoutSec": TIMEOUT_SECONDS}),
            Client::Cursor | Client::Opencode => {
                json!({"command": command, "timeout": TIMEOUT_SECONDS})
            }
        };
        if let (true, Some(fields)) = (guarded, handler.as_object_mut()) {
            let (key, value) = match client {
                Client::ClaudeCode => ("onFailure", json!("block")),
                _ => ("failClosed", json!(true)),
            };
            fields.insert(key.to_owned(), value);
        }
        handler
    }

    /// All of it, as it stands in a text that has nothing else.
    pub(crate) fn whole(&self, client: Client, program: &str) -> Value {
        let mut whole = Map::new();
        if self.version {
            whole.insert("version".to_owned(), json!(1));
        }
        whole.insert("hooks".to_owned(), self.hooks(client, program));
        if let Some(variable) = self.shell_variable {
            whole.insert("env".to_owned(), json!({variable: shell_prefix(program)}));
        }
        Value::Object(whole)
    }

    /// The names of all our entries: the events, and the variable.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static str> {
        self.events.iter().copied().chain(self.shell_variable)
    }

    /// All entries.
    pub(crate) fn hooks(&self, client: Client, program: &str) -> Value {
        let entries = self.events.iter().map(|event| {
            let entry = self.entry(client, event, program);
            ((*event).to_owned(), json!([entry]))
        });
        Value::Object(entries.collect())
    }
}

/// The command line of the hook.
pub(crate) fn command(client: Client, program: &str) -> String {
    format!("{} hook {client}", quote(program))
}

/// The program, if `line` is the command line of our hook.
pub(crate) fn program(client: Client, line: &str) -> Option<String> {
    let word = line.trim().strip_suffix(&format!(" hook {client}"))?.trim();
    let program = match word
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
    {
        Some(quoted) => quoted.replace(r"'\''", "'"),
        None => word.to_owned(),
    };
    let name = program.rsplit('/').next()?;
    name.starts_with("safepoint").then_some(program)
}
