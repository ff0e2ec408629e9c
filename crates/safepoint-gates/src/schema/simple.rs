//! The few words that most schemas are made of, understood without a compiler.
//!
//! Compiling a schema takes milliseconds the first time: the schema of schemas
//! has to be read. Most schemas only name types and fields. Such a one is known
//! to be right, and what fits it can be told, at once. This never says that a
//! value does not fit: whoever wants to know that compiles the schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// How deep a simple schema is at most.
const DEEPEST: usize = 16;
/// How long it is at most, about, in bytes.
const LONGEST: usize = 32 << 10;

const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Whether a schema is made of a few simple words, and right.
pub(crate) fn is_simple(schema: &Value) -> bool {
    simple(schema, DEEPEST, &mut LONGEST.clone())
}

fn simple(schema: &Value, depth: usize, room: &mut usize) -> bool {
    let (Some(depth), Value::Object(words)) = (depth.checked_sub(1), schema) else {
        return false;
    };
    words.iter().all(|(word, value)| {
        let length = 16 + word.len() + value.as_str().map_or(0, str::len);
        let Some(left) = room.checked_sub(length) else {
            return false;
        };
        *room = left;
        match (word.as_str(), value) {
            ("type", Value::String(name)) => TYPES.contains(&name.as_str()),
            ("title" | "description", Value::String(_)) => true,
            ("additionalProperties", Value::Bool(_)) => true,
            ("items", items) => simple(items, depth, room),
            ("required", Value::Array(names)) => {
                let mut seen = HashSet::new();
                *room > names.len()
                    && names
                        .iter()
                        .all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
            }
            ("properties", Value::Object(fields)) => {
                fields.values().all(|field| simple(field, depth, room))
            }
            _ => false,
        }
    })
}

/// Whether `value` certainly fits a simple schema.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    let Some(words) = schema.as_object() else {
        return false;
    };
    words.iter().all(|(word, wanted)| match word.as_str() {
        "type" => has_type(wanted, value),
        "items" => match value {
            Value::Array(items) => items.iter().all(|item| fits(wanted, item)),
            _ => true,
        },
        "required" => match (value, wanted) {
            (Value::Object(fields), Value::Array(names)) => names
                .iter()
                .all(|name| name.as_str().is_some_and(|name| fields.contains_key(name))),
            _ => true,
        },
        "properties" => match (value, wanted) {
            (Value::Object(fields), Value::Object(known)) => known.iter().all(|(name, schema)| {
                let field = fields.get(name);
                field.is_none_or(|field| fits(schema, field))
            }),
            _ => true,
        },
        "additionalProperties" => match value {
            Value::Object(fields) if *wanted == Value::Bool(false) => {
                let known = words.get("properties").and_then(Value::as_object);
                only(fields, known)
            }
            _ => true,
        },
        "title" | "description" => true,
        _ => false,
    })
}

fn only(fields: &Map<String, Value>, known: Option<&Map<String, Value>>) -> bool {
    let is_known = |name: &String| known.is_some_and(|known| known.contains_key(name));
    fields.keys().all(is_known)
}

fn has_type(name: &Value, value: &Value) -> bool {
    match (name.as_str(), value) {
        (Some("array"), Value::Array(_))
        | (Some("boolean"), Value::Bool(_))
        | (Some("null"), Value::Null)
        | (Some("number"), Value::Number(_))
        | (Some("object"), Value::Object(_))
        | (Some("string"), Value::String(_)) => true,
        // `1.0` is one, too; that is left to whoever knows all of it.
        (Some("integer"), Value::Number(number)) => number.is_i64() || number.is_u64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    #[test]
    fn ga_33_simple_schemas_are_known_by_sight() {
        let simple = json!({
            "type": "object", "description": "x", "required": ["id"], "additionalProperties": false,
            "properties": {"id": {"type": "string"}, "tags": {"type": "array", "items": {}}},
        });
        assert!(is_simple(&simple));
        assert!(fits(&simple, &json!({"id": "a", "tags": [1, null]})));
        for other in [
            json!({"id": 1}),
            json!({"tags": []}),
            json!({"id": "a", "more": 1}),
            json!([]),
        ] {
            assert!(!fits(&simple, &other), "{other}");
        }
        for odd in [
            json!(true),
            json!({"type": "text"}),
            json!({"type": ["string", "null"]}),
            json!({"required": ["a", "a"]}),
            json!({"required": [1]}),
            json!({"properties": {"a": {"minimum": 1}}}),
            json!({"properties": {"a": 1}}),
            json!({"$ref": "#"}),
            json!({"description": "x".repeat(LONGEST)}),
        ] {
            assert!(!is_simple(&odd), "{odd}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i8>().prop_map(Value::from),
            Just(json!(1.0)),
            Just(json!(1.5)),
            "[ab]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::hash_map("[abc]", inner, 0..3).prop_map(Value::from_iter),
            ]
        })
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let types = prop::sample::select(TYPES.to_vec());
        let leaf = types.prop_map(|name| json!({"type": name}));
        leaf.prop_recursive(3, 12, 3, |inner| {
            let fields = prop::collection::hash_map("[abc]", inner.clone(), 0..3);
            let names = prop::collection::hash_set("[abc]", 0..3);
            prop_oneof![
                inner.prop_map(|items| json!({"items": items})),
                (fields, names, any::<bool>()).prop_map(|(fields, names, more)| json!({
                    "properties": Value::from_iter(fields),
                    "required": names.into_iter().collect::<Vec<_>>(),
                    "additionalProperties": more,
                })),
            ]
        })
    }

    proptest! {
        #[test]
        fn ga_33_what_is_said_to_fit_does(schema in schemas(), value in values()) {
            prop_assert!(is_simple(&schema));
            let compiled = Schema::compiled(&schema);
            prop_assert!(compiled.is_ok());
            if fits(&schema, &value) {
                prop_assert!(compiled.unwrap().is_valid(&value));
            }
        }
    }
}
