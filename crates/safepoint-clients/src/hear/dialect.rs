//! Where each client puts what it says: JSON Pointers into its document.
//!
//! Of several places the first one that holds something counts.

use serde_json::Value;

use crate::Client;

/// The places of one form of document.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The name of the event; empty where the document does not have it.
    pub(crate) event: &'static str,
    /// The client's own name for its session.
    pub(crate) session: &'static [&'static str],
    /// Where the client works.
    pub(crate) directory: &'static [&'static str],
    /// The sub-agent.
    pub(crate) agent: &'static str,
    /// The prompt.
    pub(crate) prompt: &'static str,
    /// The name of the tool.
    pub(crate) tool: &'static str,
    /// What the tool is given.
    pub(crate) input: &'static [&'static str],
    /// What came of it.
    pub(crate) result: &'static [&'static str],
    /// The name of the call.
    pub(crate) call: &'static str,
}

/// Claude Code, and those that took over its form.
const SNAKE: Dialect = Dialect {
    event: "/hook_event_name",
    session: &["/session_id"],
    directory: &["/cwd"],
    agent: "/agent_id",
    prompt: "/prompt",
    tool: "/tool_name",
    input: &["/tool_input"],
    result: &["/tool_response", "/tool_result", "/error"],
    call: "/tool_use_id",
};

/// Copilot with its own names of events. Only one event says which it is.
const CAMEL: Dialect = Dialect {
    event: "/hookName",
    session: &["/sessionId"],
    directory: &["/cwd"],
    agent: "/agentId",
    prompt: "/prompt",
    tool: "/toolName",
    input: &["/toolArgs", "/toolInput"],
    result: &["/toolResult", "/error"],
    call: "/toolCallId",
};

const CURSOR: Dialect = Dialect {
    event: "/hook_event_name",
    session: &["/conversation_id", "/session_id"],
    directory: &["/cwd", "/workspace_roots/0"],
    agent: "/subagent_id",
    prompt: "/prompt",
    tool: "/tool_name",
    input: &["/tool_input"],
    result: &[
        "/tool_output",
        "/result_json",
        "/output",
        "/error_message",
        "/edits",
    ],
    call: "/tool_use_id",
};

/// What our plugin forwards.
const OPENCODE: Dialect = Dialect {
    event: "/hook_event_name",
    session: &["/input/sessionID", "/sessionID"],
    directory: &["/cwd"],
    agent: "/agent",
    prompt: "/prompt",
    tool: "/tool_name",
    input: &["/tool_input", "/input/args"],
    result: &["/output"],
    call: "/input/callID",
};

impl Dialect {
    /// The form that `document` has.
    pub(crate) fn of(client: Client, document: &Value) -> &'static Self {
        match client {
            Client::ClaudeCode | Client::Codex | Client::Gemini => &SNAKE,
            Client::Copilot if document.get("hook_event_name").is_some() => &SNAKE,
            Client::Copilot => &CAMEL,
            Client::Cursor => &CURSOR,
            Client::Opencode => &OPENCODE,
        }
    }

    /// Whether the place at `path` lies in what came of a tool, in any form of `client`.
    pub(crate) fn in_result(client: Client, path: &str) -> bool {
        let forms: &[&Self] = match client {
            Client::ClaudeCode | Client::Codex | Client::Gemini => &[&SNAKE],
            Client::Copilot => &[&SNAKE, &CAMEL],
            Client::Cursor => &[&CURSOR],
            Client::Opencode => &[&OPENCODE],
        };
        let mut places = forms.iter().flat_map(|form| form.result);
        places.any(|place| {
            path.strip_prefix(place)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// What stands at the first of `places` that has anything.
pub(crate) fn first<'value>(document: &'value Value, places: &[&str]) -> Option<&'value Value> {
    let mut found = places.iter().filter_map(|place| document.pointer(place));
    found.find(|value| !value.is_null() && value.as_str() != Some(""))
}

/// Which of Copilot's own events a document is, by what it holds.
///
/// What has a tool and no result is a question: in doubt it is answered as one.
pub(crate) fn copilot_event(document: &Value) -> Option<&'static str> {
    let has = |key: &str| document.get(key).is_some_and(|value| !value.is_null());
    if document.get("toolName").is_some() {
        return Some(match () {
            () if has("toolResult") => "postToolUse",
            () if has("error") => "postToolUseFailure",
            () => "preToolUse",
        });
    }
    Some(match () {
        () if has("prompt") => "userPromptSubmitted",
        () if has("stopReason") && has("agentName") => "subagentStop",
        () if has("stopReason") => "agentStop",
        () if has("agentName") => "subagentStart",
        () if has("errorContext") => "errorOccurred",
        () if has("source") => "sessionStart",
        () if has("notification_type") || has("notificationType") => "notification",
        () if has("trigger") => "preCompact",
        () if has("reason") => "sessionEnd",
        () => return None,
    })
}
