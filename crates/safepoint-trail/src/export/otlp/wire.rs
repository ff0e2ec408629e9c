//! The messages of OTLP as JSON: names in camel case, 64-bit numbers as texts, ids in
//! hexadecimal digits. Fields without a value are left out, as proto3 has it.

use serde::Serialize;

use super::super::PROGRAM_VERSION;

/// `SPAN_KIND_INTERNAL`.
pub(super) const INTERNAL: u32 = 1;

/// `ExportTraceServiceRequest`, and a line of a file of OTLP JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    resource_spans: [ResourceSpans; 1],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    resource: Resource,
    scope_spans: [ScopeSpans; 1],
}

#[derive(Debug, Serialize)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Debug, Serialize)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
}

#[derive(Debug, Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

impl Request {
    /// The request for spans of the log `origin`.
    pub(super) fn new(origin: &str, spans: Vec<Span>) -> Self {
        let attributes = vec![
            Attribute::text("service.name", "safepoint"),
            Attribute::text("service.version", PROGRAM_VERSION),
            Attribute::text("safepoint.log", origin),
        ];
        Self {
            resource_spans: [ResourceSpans {
                resource: Resource { attributes },
                scope_spans: [ScopeSpans {
                    scope: Scope {
                        name: "safepoint-trail",
                        version: PROGRAM_VERSION,
                    },
                    spans,
                }],
            }],
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) parent_span_id: String,
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) start_time_unix_nano: String,
    pub(super) end_time_unix_nano: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) events: Vec<Event>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) dropped_events_count: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) links: Vec<Link>,
    pub(super) status: Status,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    pub(super) time_unix_nano: String,
    pub(super) name: String,
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Link {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Debug, Serialize)]
pub(super) struct Status {
    #[serde(skip_serializing_if = "is_zero")]
    code: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
}

impl Status {
    pub(super) fn unset() -> Self {
        Self {
            code: 0,
            message: String::new(),
        }
    }

    pub(super) fn good() -> Self {
        Self {
            code: 1,
            message: String::new(),
        }
    }

    pub(super) fn bad(message: String) -> Self {
        Self { code: 2, message }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Attribute {
    key: &'static str,
    value: Value,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Value {
    StringValue(String),
    /// 64 bits, as a text.
    IntValue(String),
}

impl Attribute {
    pub(super) fn text(key: &'static str, text: impl Into<String>) -> Self {
        Self {
            key,
            value: Value::StringValue(text.into()),
        }
    }

    pub(super) fn integer(key: &'static str, number: u64) -> Self {
        Self {
            key,
            value: Value::IntValue(number.to_string()),
        }
    }

    pub(super) fn signed(key: &'static str, number: i64) -> Self {
        Self {
            key,
            value: Value::IntValue(number.to_string()),
        }
    }
}
