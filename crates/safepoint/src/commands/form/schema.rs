//! The JSON Schema of what a command takes, made of its fields, and of what it prints, as
//! `safepoint schema` publishes it.

use serde_json::{Map, Value, json};

use super::given::{LARGEST_PAGE, LONGEST_ID, LONGEST_TEXT, MOST};
use super::{Field, Form, Naming, Shape};
use crate::commands::schema::schemas;

/// What it takes, as one object.
pub(crate) fn input(tool: &Form, naming: Naming) -> Map<String, Value> {
    let properties = tool.fields.iter().map(|field| {
        let mut schema = shape(field.shape, naming);
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

/// What one field looks like. Models are told the kind alone.
pub(crate) fn shape(shape: Shape, naming: Naming) -> Map<String, Value> {
    if naming == Naming::Lenient {
        return loose(shape);
    }
    let text = json!({"type": "string", "pattern": NO_NUL});
    object(match shape {
        Shape::Id => json!({
            "type": "string", "pattern": "^[A-Za-z0-9_]+$", "minLength": 1, "maxLength": LONGEST_ID,
        }),
        Shape::Text => json!({
            "type": "string", "pattern": NO_NUL, "maxLength": LONGEST_TEXT,
        }),
        Shape::Long => text,
        Shape::Texts => json!({"type": "array", "items": text}),
        Shape::Paths => json!({
            "type": "array",
            "items": {"type": "string", "minLength": 1, "pattern": "^[^:/\\u0000]*(/[^\\u0000]*)?$"},
        }),
        Shape::Limit => json!({"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE}),
        Shape::Cursor => json!({
            "type": "string", "pattern": "^[0-9]{1,15}([.][A-Za-z0-9_]{1,100})?$",
        }),
        Shape::Count => json!({"type": "integer", "minimum": 0, "maximum": MOST}),
        Shape::Named => json!({"type": "object", "propertyNames": {"pattern": "^[^=]*$"}}),
        other => return loose(other),
    })
}

/// No NUL anywhere.
const NO_NUL: &str = "^[^\\u0000]*$";

fn loose(shape: Shape) -> Map<String, Value> {
    object(match shape {
        Shape::Text | Shape::Long | Shape::Id | Shape::Cursor => json!({"type": "string"}),
        Shape::Texts | Shape::Paths => json!({
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        }),
        Shape::Choice(known) => json!({"type": "string", "enum": known}),
        Shape::Count | Shape::Limit => json!({"type": "integer", "minimum": 0}),
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
pub(crate) fn output(names: &[&str]) -> Map<String, Value> {
    let mut definitions = Map::new();
    let mut replies = Vec::new();
    for (_, make) in schemas()
        .into_iter()
        .filter(|(name, _)| names.contains(name))
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
pub(crate) fn simplify(schema: &mut Value) {
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

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
