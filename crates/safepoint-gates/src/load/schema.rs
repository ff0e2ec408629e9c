//! The JSON Schema of an atlas, for editors and for the list of mistakes.

use std::sync::LazyLock;

use jsonschema::PatternOptions;
use serde_json::{Value, json};

use crate::atlas::AtlasManifest;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let mut schema = schemars::schema_for!(AtlasManifest).to_value();
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("title".to_owned(), json!("Safepoint atlas"));
    }
    complete(&mut schema);
    schema
});

/// Whether `value` has the shape of an atlas. The types must agree.
#[cfg(test)]
pub(super) fn accepts(value: &Value) -> bool {
    static VALIDATOR: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| validator(&SCHEMA).unwrap());
    VALIDATOR.is_valid(value)
}

/// The JSON Schema (2020-12) of an atlas.
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// The same, without a copy.
pub(super) fn shared() -> &'static Value {
    &SCHEMA
}

/// A validator for a schema that a steward wrote: nothing is fetched, and its
/// regular expressions take linear time. The error says what is wrong with it.
pub fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex().size_limit(1 << 20))
        .build(schema)
        .map_err(|error| {
            let path = error.instance_path().to_string();
            match path.as_str() {
                "" => error.to_string(),
                path => format!("{error} at `{path}`"),
            }
        })
}

/// Integers have the bounds of their types in words of JSON Schema: formats
/// such as `uint32` are not checked by editors, and the types do refuse.
fn complete(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let bound = match fields.get("format").and_then(Value::as_str) {
                Some("uint32") => Some(json!(u32::MAX)),
                Some("uint64" | "uint") => Some(json!(u64::MAX)),
                Some("int64") => Some(json!(i64::MAX)),
                _ => None,
            };
            if let Some(most) = bound
                && fields.get("type").is_some_and(is_integer)
            {
                fields.entry("maximum").or_insert(most);
            }
            fields.values_mut().for_each(complete);
        }
        Value::Array(items) => items.iter_mut().for_each(complete),
        _ => {}
    }
}

fn is_integer(kind: &Value) -> bool {
    match kind {
        Value::String(kind) => kind == "integer",
        Value::Array(kinds) => kinds.iter().any(is_integer),
        _ => false,
    }
}
