//! How a call ended, as far as each client tells.
//!
//! What a command prints is never taken for the client's word: where a client tells the
//! exit code only inside the text, it is looked for where the client writes it, at the end.

use serde_json::Value;

use super::event::Kind;
use crate::{Client, Ended, Tool};

pub(crate) fn ended(client: Client, kind: Kind, tool: &Tool, result: &Value) -> Ended {
    if kind == Kind::Failure {
        return Ended::Error;
    }
    let shell = match tool {
        // It has only begun.
        Tool::Shell {
            background: true, ..
        } => return Ended::Unsaid,
        Tool::Shell { .. } => true,
        _ => false,
    };
    match client {
        Client::ClaudeCode => claude_code(tool, result),
        Client::Codex => codex(tool, result),
        Client::Gemini => gemini(shell, result),
        Client::Copilot => copilot(shell, result),
        Client::Cursor => cursor(tool, result),
        Client::Opencode => opencode(shell, result),
    }
}

fn by_code(code: i64) -> Ended {
    if code == 0 { Ended::Ok } else { Ended::Error }
}

fn claude_code(tool: &Tool, result: &Value) -> Ended {
    let launched = || result.get("status").and_then(Value::as_str) == Some("async_launched");
    if *tool == Tool::Delegate && launched() {
        return Ended::Unsaid;
    }
    match result.get("interrupted").and_then(Value::as_bool) {
        Some(true) => Ended::Error,
        _ => Ended::Ok,
    }
}

fn codex(tool: &Tool, result: &Value) -> Ended {
    if let Some(error) = result.get("isError").and_then(Value::as_bool) {
        return if error { Ended::Error } else { Ended::Ok };
    }
    // Of a shell we see the output only, which may say anything.
    let code = match (tool, result.as_str()) {
        (Tool::Files(_), Some(text)) => number_after(text, "Exit code: "),
        _ => None,
    };
    code.map_or(Ended::Unsaid, by_code)
}

/// The text ends with a few lines of the client's own; the exit code is among them only
/// when it is not zero.
fn gemini(shell: bool, result: &Value) -> Ended {
    if result.get("error").is_some_and(|error| !error.is_null()) {
        return Ended::Error;
    }
    if !shell {
        return Ended::Ok;
    }
    let Some(text) = result.get("llmContent").and_then(Value::as_str) else {
        return Ended::Unsaid;
    };
    for line in text.lines().rev() {
        if line.starts_with("Signal: ") && line != "Signal: (none)" {
            return Ended::Error;
        }
        if let Some(code) = number_after(line, "Exit Code: ") {
            return by_code(code);
        }
        let own = [
            "</",
            "Process Group PGID: ",
            "Background PIDs: ",
            "Signal: ",
        ];
        if !line.is_empty() && !own.iter().any(|start| line.starts_with(start)) {
            break;
        }
    }
    Ended::Ok
}

fn copilot(shell: bool, result: &Value) -> Ended {
    let word = result
        .get("resultType")
        .or_else(|| result.get("result_type"));
    let said = match word.and_then(Value::as_str) {
        Some("success") => Ended::Ok,
        Some(_) => return Ended::Error,
        None => Ended::Unsaid,
    };
    let text = result
        .get("textResultForLlm")
        .or_else(|| result.get("text_result_for_llm"));
    let last = text
        .and_then(Value::as_str)
        .and_then(|text| text.lines().last());
    let own = last.filter(|line| shell && line.starts_with('<') && line.ends_with('>'));
    let code = own.and_then(|line| line.rsplit_once("exit code "));
    match code {
        Some((_, code)) => number_after(code, "").map_or(said, by_code),
        None => said,
    }
}

fn cursor(tool: &Tool, result: &Value) -> Ended {
    let parsed = result
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let result = parsed.as_ref().unwrap_or(result);
    match tool {
        Tool::Shell { .. } => {
            let code = result.get("exitCode").or_else(|| result.get("exit_code"));
            let code = code.and_then(Value::as_i64);
            code.map_or(Ended::Unsaid, by_code)
        }
        Tool::Mcp { .. } => match result.get("isError").and_then(Value::as_bool) {
            Some(true) => Ended::Error,
            Some(false) => Ended::Ok,
            None => Ended::Unsaid,
        },
        _ => Ended::Ok,
    }
}

fn opencode(shell: bool, result: &Value) -> Ended {
    if !shell {
        return Ended::Ok;
    }
    match result.pointer("/metadata/exit") {
        Some(Value::Number(code)) => code.as_i64().map_or(Ended::Error, by_code),
        // It was stopped.
        Some(Value::Null) => Ended::Error,
        _ => Ended::Unsaid,
    }
}

/// The number that follows `start` at the beginning of `text`.
fn number_after(text: &str, start: &str) -> Option<i64> {
    let rest = text.strip_prefix(start)?;
    let end = rest.find(|character: char| !character.is_ascii_digit() && character != '-');
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}
