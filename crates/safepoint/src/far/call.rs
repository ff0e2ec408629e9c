//! From an endpoint and its fields to a request.

use safepoint_server::api::Method as Wire;
use serde_json::{Map, Value};

use crate::commands::serve::endpoint::Endpoint;

/// How a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
}

/// Where a request goes, and with what.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) method: Method,
    /// With its query.
    pub(super) path: String,
    pub(super) body: Option<String>,
}

impl Target {
    /// Fields of the path go into the path, the others into the query or the body.
    pub(super) fn of(endpoint: &Endpoint, given: &Map<String, Value>) -> Self {
        let mut path = String::new();
        for piece in endpoint.path.split('/').skip(1) {
            let name = piece.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
            path.push('/');
            match name {
                None => path.push_str(piece),
                Some(name) => path.push_str(&given.get(name).map(plain).unwrap_or_default()),
            }
        }
        let rest = given
            .iter()
            .filter(|(name, _)| !endpoint.is_in_path(name.as_str()));
        match endpoint.method {
            Wire::Get => {
                let pairs: Vec<String> = rest
                    .flat_map(|(name, value)| match value {
                        Value::Array(values) => values.iter().map(|it| (name, it)).collect(),
                        one => vec![(name, one)],
                    })
                    .map(|(name, value)| format!("{}={}", encode(name), plain(value)))
                    .collect();
                if !pairs.is_empty() {
                    path.push('?');
                    path.push_str(&pairs.join("&"));
                }
                Self {
                    method: Method::Get,
                    path,
                    body: None,
                }
            }
            Wire::Post => {
                let fields: Map<String, Value> = rest
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                Self {
                    method: Method::Post,
                    path,
                    body: Some(Value::Object(fields).to_string()),
                }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => encode(text),
        other => encode(&other.to_string()),
    }
}

/// Text as it stands in a path or a query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}
