//! Which tools belong to an MCP server, by how each client names them.
//!
//! Where a name can be split in more than one way it is not split: the tool stays unknown.

use serde_json::Value;

use crate::{Client, Tool};

/// Servers that come with Copilot and have a hyphen in their name.
const COPILOT_SERVERS: &[&str] = &["github-mcp-server"];

/// The tool of a server that `name` stands for in the event `event`.
pub(crate) fn called(
    client: Client,
    event: &str,
    name: &str,
    document: &Value,
) -> Result<Option<Tool>, String> {
    let pair = match client {
        Client::ClaudeCode | Client::Codex => double_underscore(name),
        Client::Gemini => return gemini(document),
        Client::Copilot => double_underscore(name).or_else(|| copilot(name)),
        Client::Cursor => return Ok(cursor(event, name, document)),
        // `server_tool`: both may have an underscore.
        Client::Opencode => None,
    };
    Ok(pair.map(|(server, tool)| Tool::Mcp {
        server: server.to_owned(),
        tool: tool.to_owned(),
    }))
}

fn double_underscore(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

fn copilot(name: &str) -> Option<(&str, &str)> {
    for server in COPILOT_SERVERS {
        let tool = name
            .strip_prefix(server)
            .and_then(|rest| rest.strip_prefix('-'));
        if let Some(tool) = tool.filter(|tool| !tool.is_empty()) {
            return Some((server, tool));
        }
    }
    let (server, tool) = name.split_once('-')?;
    let clear = !server.is_empty() && !tool.is_empty() && !tool.contains('-');
    clear.then_some((server, tool))
}

/// The client tells both names beside the call.
fn gemini(document: &Value) -> Result<Option<Tool>, String> {
    let Some(context) = document.get("mcp_context").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let text = |key: &str| {
        let value = context.get(key).and_then(Value::as_str);
        value.filter(|value| !value.is_empty()).map(str::to_owned)
    };
    match (text("server_name"), text("tool_name")) {
        (Some(server), Some(tool)) => Ok(Some(Tool::Mcp { server, tool })),
        _ => Err("`mcp_context` does not name a server and its tool".to_owned()),
    }
}

/// The client names the tool. Of the server it tells at most how it is reached.
fn cursor(event: &str, name: &str, document: &Value) -> Option<Tool> {
    let own = matches!(event, "beforeMCPExecution" | "afterMCPExecution");
    let tool = match name.strip_prefix("MCP:") {
        Some(tool) => tool,
        None if own => name,
        None => return None,
    };
    let mut reached = ["server_name", "url", "command"].into_iter();
    let server = reached.find_map(|key| document.get(key).and_then(Value::as_str));
    Some(Tool::Mcp {
        server: server.unwrap_or_default().to_owned(),
        tool: tool.to_owned(),
    })
}
