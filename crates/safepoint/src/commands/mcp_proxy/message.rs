//! Messages of JSON-RPC, a line each: read as far as it takes to know what they are, and the
//! few that we write ourselves.

use std::io::{self, BufRead};

use safepoint_model::json::{self, Limits};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Codes of JSON-RPC.
pub(super) const PARSE: i64 = -32700;
pub(super) const INVALID: i64 = -32600;
pub(super) const PARAMETERS: i64 = -32602;
pub(super) const INTERNAL: i64 = -32603;

/// Where a request of 2026-07-28 says which protocol it speaks.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where an answer of it says who answers.
const SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// With its end, if it has one.
    Whole(Vec<u8>),
    /// It is longer than anybody means.
    TooLong,
    End,
}

/// Reads a line of at most `longest` bytes; the rest of a longer one is passed over.
pub(super) fn next_line(input: &mut impl BufRead, longest: usize) -> io::Result<Line> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let there = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if there.is_empty() {
            return Ok(match (too_long, line.is_empty()) {
                (true, _) => Line::TooLong,
                (false, true) => Line::End,
                (false, false) => Line::Whole(line),
            });
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let count = end.map_or(there.len(), |end| end + 1);
        too_long |= line.len() + count > longest;
        match too_long {
            true => line = Vec::new(),
            false => line.extend(there.iter().take(count)),
        }
        input.consume(count);
        if end.is_some() {
            return Ok(match too_long {
                true => Line::TooLong,
                false => Line::Whole(line),
            });
        }
    }
}

/// Whether there is nothing on a line.
pub(super) fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// What a client says.
#[derive(Debug)]
pub(super) enum Said {
    One(Value),
    /// Several at once, as the protocol of 2025-03-26 allows.
    Batch(Vec<Value>),
}

/// Reads what a client says, strictly: what two readers could read differently is nothing.
/// Otherwise a call could look like something else here than where it is carried out.
pub(super) fn from_client(line: &[u8]) -> Result<Said, String> {
    let limits = Limits {
        bytes: line.len(),
        ..Limits::default()
    };
    match json::read(line, limits) {
        Ok(Value::Array(messages)) => Ok(Said::Batch(messages)),
        Ok(message) => Ok(Said::One(message)),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether it is an object whose names say what they seem to say. Some readers take `Method`
/// for `method`: to them a message could be a call that is none to us, or another one.
pub(super) fn is_plain(said: &Value) -> bool {
    let Some(fields) = said.as_object() else {
        return false;
    };
    let known = ["jsonrpc", "id", "method", "params"];
    let parameters = fields.get("params").and_then(Value::as_object);
    let given = parameters.into_iter().flat_map(|it| it.keys());
    fields.get("method").is_none_or(is_plain_method)
        && fields.keys().all(|name| !seems(name, &known))
        && given
            .into_iter()
            .all(|name| !seems(name, &["name", "arguments"]))
}

/// Whether a method is a text that every server reads as the same method. A lenient one takes
/// `TOOLS/CALL`, `tools/call ` or `["tools/call"]` for a call.
fn is_plain_method(method: &Value) -> bool {
    let Some(method) = method.as_str() else {
        return false;
    };
    let plain = |next: char| next.is_ascii_alphanumeric() || "/_.$-".contains(next);
    let letters = method.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|next| next.to_ascii_lowercase()).collect();
    method.chars().all(plain) && (method == "tools/call" || letters != "toolscall")
}

/// Whether a name is not one of these, but would be without regard to case.
fn seems(name: &str, known: &[&str]) -> bool {
    let fold = |text: &str| -> String {
        let lower = text.chars().flat_map(char::to_lowercase);
        lower.flat_map(char::to_uppercase).collect()
    };
    known.iter().any(|it| *it != name && fold(it) == fold(name))
}

/// The messages of a batch as they were written.
pub(super) fn parts(line: &[u8]) -> Vec<Box<RawValue>> {
    serde_json::from_slice(line).unwrap_or_default()
}

/// Answers of a server. What cannot be read is none.
pub(super) fn from_server(line: &[u8]) -> Vec<Value> {
    let mut said = match serde_json::from_slice(line) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        Err(_) => Vec::new(),
    };
    let is_answer = |message: &Value| message.get("method").is_none() && id(message).is_some();
    said.retain(is_answer);
    said
}

/// The method of a request or notification.
pub(super) fn method(message: &Value) -> Option<&str> {
    message.get("method").and_then(Value::as_str)
}

/// The id of a message, in one form however it was written.
pub(super) fn id(message: &Value) -> Option<String> {
    key(message.get("id")?)
}

/// The id of what a client cancels.
pub(super) fn cancelled(message: &Value) -> Option<String> {
    match method(message) {
        Some("notifications/cancelled") => key(message.pointer("/params/requestId")?),
        _ => None,
    }
}

fn key(id: &Value) -> Option<String> {
    match id {
        Value::String(_) | Value::Number(_) => String::from_utf8(json::canonical(id).ok()?).ok(),
        _ => None,
    }
}

/// The name that a server gives itself when it is asked who it is.
pub(super) fn name_of_server(answer: &Value) -> Option<&str> {
    let result = answer.get("result")?;
    let info = result
        .get("serverInfo")
        .or_else(|| result.get("_meta")?.get(SERVER))?;
    let name = info.get("name").and_then(Value::as_str);
    name.filter(|name| !name.is_empty())
}

/// An error for a request; without one, for whatever it was.
pub(super) fn error(request: Option<&Value>, code: i64, message: &str) -> Value {
    let id = request.and_then(|request| request.get("id"));
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// What a tool gives that was not let through.
pub(super) fn refusal(request: &Value, told: &str, document: Option<Value>) -> Value {
    let mut result = Map::new();
    let meta = request.pointer("/params/_meta");
    if meta.is_some_and(|meta| meta.get(VERSION).is_some()) {
        result.insert("resultType".to_owned(), json!("complete"));
    }
    let content = json!([{"type": "text", "text": told}]);
    result.insert("content".to_owned(), content);
    if let Some(document) = document {
        result.insert("structuredContent".to_owned(), document);
    }
    result.insert("isError".to_owned(), json!(true));
    json!({"jsonrpc": "2.0", "id": request.get("id"), "result": result})
}
