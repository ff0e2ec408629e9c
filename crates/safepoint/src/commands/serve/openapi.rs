//! The OpenAPI 3.1 document: made of the table of endpoints and of the schemas that
//! `safepoint schema` publishes, so that it cannot say anything else than the program does.

use safepoint_server::api::{Method, PATHS, STATUSES};
use safepoint_server::commands::Role;
use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, List};
use super::table::endpoints;
use crate::commands::form::schema::{object, shape, simplify};
use crate::commands::form::{Field, Naming};
use crate::commands::schema::schemas;

/// The document.
pub(crate) fn document() -> Value {
    let mut components = Components::default();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        let method = match endpoint.method {
            Method::Get => "get",
            Method::Post => "post",
        };
        if let Value::Object(methods) = path {
            methods.insert(method.to_owned(), operation(endpoint, &mut components));
        }
    }
    for (path, roles) in PATHS {
        paths.insert((*path).to_owned(), own(path, *roles));
    }
    components.schemas.insert("Problem".to_owned(), problem());
    components.schemas.sort_keys();
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "Safepoint",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What the command line does, over HTTP. Each endpoint is a command and answers with the document that it prints under `--json`.",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http", "scheme": "bearer",
                    "description": "A token, as `safepoint token create` shows it once.",
                },
            },
            "schemas": components.schemas,
            "responses": responses(),
            "headers": {
                "RequestId": {
                    "description": "The name of this request in the server's log.",
                    "required": true,
                    "schema": {"type": "string"},
                },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, components: &mut Components) -> Value {
    let form = &endpoint.form;
    let needed = |name: &str| form.needs.iter().any(|group| group.contains(&name));
    let mut parameters: Vec<Value> = Vec::new();
    let mut body: Vec<&Field> = Vec::new();
    for field in form.fields {
        let name = field.name();
        let place = match (endpoint.is_in_path(name), endpoint.method) {
            (true, _) => "path",
            (false, Method::Get) => "query",
            (false, Method::Post) => {
                body.push(field);
                continue;
            }
        };
        parameters.push(json!({
            "name": name,
            "in": place,
            "required": place == "path" || needed(name),
            "description": field.about,
            "schema": shape(field.shape, Naming::Strict),
        }));
    }
    if endpoint.method == Method::Post {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "The same request with the same key is done once, and answered again for a day.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
        }));
    }
    let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
    if endpoint.list != List::No {
        set(
            &mut headers,
            "Link",
            json!({
                "description": "Where the next page is (`rel=\"next\"`), if there is one.",
                "schema": {"type": "string"},
            }),
        );
    }
    if endpoint.method == Method::Post {
        set(
            &mut headers,
            "Idempotency-Replayed",
            json!({
                "description": "Whether it was answered before.",
                "schema": {"type": "string", "const": "true"},
            }),
        );
    }
    let mut answers = json!({"200": {
        "description": "It was done",
        "headers": headers,
        "content": {"application/json": {"schema": components.replies(form.replies)}},
    }});
    for (status, _) in answered() {
        let needless = endpoint.method == Method::Get && [408, 413, 415].contains(status);
        if !needless {
            set(
                &mut answers,
                &status.to_string(),
                json!({"$ref": format!("#/components/responses/Problem{status}")}),
            );
        }
    }
    let mut operation = json!({
        "operationId": form.name,
        "summary": endpoint.summary,
        "description": format!("Runs `safepoint {}`. For {}.", form.command.join(" "), names(endpoint.roles)),
        "tags": [endpoint.path.split('/').nth(2).unwrap_or_default()],
        "x-roles": endpoint.roles.iter().map(|role| word(*role)).collect::<Vec<_>>(),
        "parameters": parameters,
        "responses": answers,
    });
    if endpoint.method == Method::Post {
        let required: Vec<&str> = body
            .iter()
            .map(|field| field.name())
            .filter(|name| needed(name))
            .collect();
        let properties: Map<String, Value> = body.iter().map(|field| property(field)).collect();
        let mut schema = json!({
            "type": "object", "properties": properties, "additionalProperties": false,
        });
        if !required.is_empty() {
            set(&mut schema, "required", json!(required));
        }
        set(
            &mut operation,
            "requestBody",
            json!({
                "required": !required.is_empty(),
                "content": {"application/json": {"schema": schema}},
            }),
        );
    }
    operation
}

/// Sets a field of an object.
fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value);
    }
}

fn property(field: &Field) -> (String, Value) {
    let mut schema = shape(field.shape, Naming::Strict);
    schema.insert("description".to_owned(), field.about.into());
    (field.name().to_owned(), Value::Object(schema))
}

/// What the server answers itself.
fn own(path: &str, roles: Option<&[Role]>) -> Value {
    let (name, summary, kind, schema) = match path {
        "/healthz" => (
            "healthz",
            "Whether the process lives",
            "text/plain",
            json!({"type": "string"}),
        ),
        "/readyz" => (
            "readyz",
            "Whether it can answer",
            "text/plain",
            json!({"type": "string"}),
        ),
        "/metrics" => (
            "metrics",
            "What was counted, in Prometheus' text form",
            "text/plain",
            json!({"type": "string"}),
        ),
        "/v1/openapi.json" => (
            "openapi",
            "This document",
            "application/json",
            json!({"type": "object"}),
        ),
        _ => (
            "events",
            "Follow what happens: server-sent events, whose ids are places in the trail",
            "text/event-stream",
            json!({"type": "string"}),
        ),
    };
    let mut answers = json!({"200": {
        "description": "It is so",
        "headers": {"X-Request-Id": {"$ref": "#/components/headers/RequestId"}},
        "content": {kind: {"schema": schema}},
    }});
    let possible: &[u16] = match (path, roles) {
        (_, None) => &[400, 403, 421, 429, 500, 503],
        ("/v1/events", _) => &[400, 401, 403, 404, 421, 422, 429, 500, 503],
        _ => &[400, 401, 403, 421, 429, 500, 503],
    };
    for status in possible {
        set(
            &mut answers,
            &status.to_string(),
            json!({"$ref": format!("#/components/responses/Problem{status}")}),
        );
    }
    let mut operation = json!({
        "operationId": name, "summary": summary, "tags": ["server"], "responses": answers,
    });
    match roles {
        None => set(&mut operation, "security", json!([])),
        Some(roles) => {
            set(
                &mut operation,
                "x-roles",
                json!(roles.iter().map(|role| word(*role)).collect::<Vec<_>>()),
            );
        }
    }
    if name == "events" {
        let place = json!({"type": "string", "pattern": "^[0-9]{1,15}$"});
        set(
            &mut operation,
            "parameters",
            json!([
                {
                    "name": "Last-Event-ID", "in": "header", "required": false, "schema": place,
                    "description": "The last event that was heard: what came after it is sent first.",
                },
                {
                    "name": "after", "in": "query", "required": false, "schema": place,
                    "description": "The same, for those who cannot set a header.",
                },
                {
                    "name": "workspace", "in": "query", "required": false,
                    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_]{1,100}$"},
                    "description": "Only of this workspace of an agent, with what those directly below it signal. An agent hears signals so, besides its own sessions.",
                },
            ]),
        );
    }
    json!({ "get": operation })
}

/// The problems that an operation can answer with: that a path takes another method is
/// answered where there is no operation.
fn answered() -> impl Iterator<Item = &'static (u16, &'static str)> {
    STATUSES.iter().filter(|(status, _)| *status != 405)
}

fn responses() -> Value {
    let each = answered().map(|(status, meaning)| {
        let mut headers = json!({"X-Request-Id": {"$ref": "#/components/headers/RequestId"}});
        if [429, 503].contains(status) {
            set(&mut headers, "Retry-After", json!({
                "description": "How many seconds to wait.",
                "schema": {"type": "string", "pattern": "^[0-9]+$"},
            }));
        }
        let response = json!({
            "description": meaning,
            "headers": headers,
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        });
        (format!("Problem{status}"), response)
    });
    Value::Object(each.collect())
}

fn problem() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong, as RFC 9457 has it, with the program's own code.",
        "required": ["type", "title", "status", "detail", "code", "name"],
        "properties": {
            "type": {"type": "string", "description": "`urn:safepoint:problem:` and the code."},
            "title": {"type": "string", "description": "What the code means."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What happened, and why."},
            "code": {"type": "string", "description": "The short code, such as `S502`; docs/errors.md lists them."},
            "name": {"type": "string", "description": "Its name, such as `STORE_LOCKED`."},
            "exit": {"type": "integer", "minimum": 1, "maximum": 9, "description": "The exit code of the command."},
            "location": {"type": "string", "description": "Where, if there is a place."},
            "suggestion": {"type": "string", "description": "What to do next."},
            "document": {"type": "object", "description": "What the command printed besides: a resolution with its questions, what was checked, what stands in the way."},
        },
    })
}

/// Schemas that are named, each once.
#[derive(Default)]
struct Components {
    schemas: Map<String, Value>,
}

impl Components {
    /// The schema of what a command prints; one of several, where that depends.
    fn replies(&mut self, names: &[&str]) -> Value {
        let known = schemas()
            .into_iter()
            .filter(|(name, _)| names.contains(name));
        let references: Vec<Value> = known
            .map(|(name, make)| {
                if !self.schemas.contains_key(name) {
                    let schema = serde_json::to_value(make()).unwrap_or_default();
                    self.add(name, schema);
                }
                json!({"$ref": format!("#/components/schemas/{name}")})
            })
            .collect();
        match references.as_slice() {
            // It has a format of its own.
            [] => json!({"type": "object"}),
            [one] => one.clone(),
            _ => json!({ "anyOf": references }),
        }
    }

    /// Adds a schema, and its own definitions beside it under its name.
    fn add(&mut self, name: &str, mut schema: Value) {
        simplify(&mut schema);
        let definitions = match &mut schema {
            Value::Object(fields) => object(fields.remove("$defs").unwrap_or_default()),
            _ => Map::new(),
        };
        refer(&mut schema, name);
        self.schemas.insert(name.to_owned(), schema);
        for (definition, mut schema) in definitions {
            refer(&mut schema, name);
            self.schemas.insert(format!("{name}.{definition}"), schema);
        }
    }
}

/// Makes references point to where definitions are now.
fn refer(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref")
                && let Some(definition) = reference.strip_prefix("#/$defs/")
            {
                *reference = format!("#/components/schemas/{name}.{definition}");
            }
            fields.values_mut().for_each(|value| refer(value, name));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| refer(value, name)),
        _ => {}
    }
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Agent => "agent",
        Role::Operator => "operator",
        Role::Steward => "steward",
        Role::Auditor => "auditor",
    }
}

fn names(roles: &[Role]) -> String {
    let words: Vec<String> = roles
        .iter()
        .map(|role| format!("{}s", word(*role)))
        .collect();
    words.join(", ")
}

/// The endpoints as a table for people.
#[cfg(test)]
pub(crate) fn reference() -> String {
    use std::fmt::Write;
    let mut text = "# Endpoints of the API\n\nMade from the program itself; do not edit. [server.md](server.md) tells how they are used, [openapi.json](openapi.json) everything else.\n\n| request | who | command | |\n|---|---|---|---|\n".to_owned();
    for endpoint in endpoints() {
        let method = match endpoint.method {
            Method::Get => "GET",
            Method::Post => "POST",
        };
        let roles: Vec<&str> = endpoint.roles.iter().map(|role| word(*role)).collect();
        let _ = writeln!(
            text,
            "| `{method} {}` | {} | `safepoint {}` | {} |",
            endpoint.path,
            roles.join(", "),
            endpoint.form.command.join(" "),
            endpoint.summary
        );
    }
    for (path, roles) in PATHS {
        let roles = match roles {
            None => "anybody".to_owned(),
            Some(roles) => {
                let words: Vec<&str> = roles.iter().map(|role| word(*role)).collect();
                words.join(", ")
            }
        };
        let about = own(path, None);
        let about = about.pointer("/get/summary").and_then(Value::as_str);
        let _ = writeln!(
            text,
            "| `GET {path}` | {roles} | | {} |",
            about.unwrap_or_default()
        );
    }
    text.push_str("\n| status | |\n|---|---|\n");
    for (status, meaning) in STATUSES {
        let _ = writeln!(text, "| {status} | {meaning} |");
    }
    text.push_str("\n| exit code of the command | status |\n|---|---|\n");
    for exit in safepoint_model::Exit::ALL {
        let status = safepoint_server::api::status_of(exit as u8, "");
        let _ = writeln!(text, "| {}: {} | {status} |", exit as u8, exit.meaning());
    }
    text.push_str("\n`F519` is 429, `X101` and `X102` are 500, whatever the exit code.\n");
    text
}
