//! The tools as clients see them: with the schema of what each takes, made of the table, and
//! of what it gives, as `safepoint schema` publishes it.

use safepoint_server::mcp::ToolNote;
use serde_json::{Map, Value, json};

use super::table::TOOLS;
use super::tool::{Field, Shape, Tool};
use crate::commands::schema::schemas;

/// All tools.
pub(super) fn notes() -> Vec<ToolNote> {
    TOOLS.iter().map(note).collect()
}

fn note(tool: &Tool) -> ToolNote {
    ToolNote {
        name: tool.name.to_owned(),
        title: tool.title.to_owned(),
        description: tool.description.to_owned(),
        input: input(tool),
        output: output(tool),
        hints: tool.hints,
    }
}

fn input(tool: &Tool) -> Map<String, Value> {
    let properties = tool.fields.iter().map(|field| {
        let mut schema = shape(field.shape);
        schema.insert("description".to_owned(), field.about.into());
        (Field::name(field).to_owned(), Value::Object(schema))
    });
    let mut schema = object(json!({
        "type": "object",
        "properties": properties.collect::<Map<_, _>>(),
        "additionalProperties": false,
    }));
    if let [required] = tool.needs {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

fn shape(shape: Shape) -> Map<String, Value> {
    object(match shape {
        Shape::Text | Shape::Id => json!({"type": "string"}),
        Shape::Texts => json!({
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        }),
        Shape::Choice(known) => json!({"type": "string", "enum": known}),
        Shape::Count => json!({"type": "integer", "minimum": 0}),
        Shape::Flag => json!({"type": "boolean"}),
        Shape::Object | Shape::Named => json!({"type": "object"}),
        Shape::Objects => json!({
            "anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]
        }),
        Shape::Anything => json!({}),
    })
}

/// What a command prints; one of several, where it depends on what it was given. Definitions
/// are put together at the top, where references look for them.
fn output(tool: &Tool) -> Map<String, Value> {
    let mut definitions = Map::new();
    let mut replies = Vec::new();
    for (_, make) in schemas()
        .into_iter()
        .filter(|(name, _)| tool.replies.contains(name))
    {
        let mut schema = object(serde_json::to_value(make()).unwrap_or_default());
        if let Some(Value::Object(more)) = schema.remove("$defs") {
            definitions.extend(more);
        }
        replies.push(Value::Object(schema));
    }
    let mut schema = match replies.as_slice() {
        [one] => object(one.clone()),
        _ => object(json!({"type": "object", "anyOf": replies})),
    };
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), Value::Object(definitions));
    }
    let mut schema = Value::Object(schema);
    simplify(&mut schema);
    object(schema)
}

/// Without what some clients stumble over: the name of the dialect, which is the protocol's
/// own, and formats of numbers that JSON Schema does not know.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let strange = |format: &Value| {
                let format = format.as_str().unwrap_or_default();
                ["int", "uint", "float", "double"]
                    .iter()
                    .any(|kind| format.starts_with(kind))
            };
            fields.retain(|name, value| match name.as_str() {
                "$schema" => false,
                "format" => !strange(value),
                _ => true,
            });
            fields.values_mut().for_each(simplify);
        }
        Value::Array(values) => values.iter_mut().for_each(simplify),
        _ => {}
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
