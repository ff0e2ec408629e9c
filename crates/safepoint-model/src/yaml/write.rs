//! Values as YAML, for replies: the same document as the JSON, in block style.
//!
//! Texts are always in double quotes with JSON's escapes, so that `no`, dates and numbers in
//! texts are texts to every reader, of YAML 1.1 too.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Writes a value as one document, with the line that begins it.
pub fn write(value: &Value) -> String {
    let mut out = String::from("---");
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            write_fields(&mut out, fields, 0);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            write_items(&mut out, items, 0);
        }
        value => {
            out.push(' ');
            write_scalar(&mut out, value);
            out.push('\n');
        }
    }
    out
}

fn write_fields(out: &mut String, fields: &Map<String, Value>, depth: usize) {
    for (place, (name, value)) in fields.iter().enumerate() {
        // The first one of an item stands behind its dash.
        if place > 0 || !out.ends_with("- ") {
            indent(out, depth);
        }
        write_key(out, name);
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                write_fields(out, fields, depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                write_items(out, items, depth + 1);
            }
            value => {
                out.push(' ');
                write_scalar(out, value);
                out.push('\n');
            }
        }
    }
}

fn write_items(out: &mut String, items: &[Value], depth: usize) {
    for item in items {
        indent(out, depth);
        match item {
            Value::Object(fields) if !fields.is_empty() => {
                out.push_str("- ");
                write_fields(out, fields, depth + 1);
            }
            Value::Array(items) if !items.is_empty() => {
                out.push_str("-\n");
                write_items(out, items, depth + 1);
            }
            value => {
                out.push_str("- ");
                write_scalar(out, value);
                out.push('\n');
            }
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Names of fields are mostly plain words, which need no quotes unless they mean something.
fn write_key(out: &mut String, name: &str) {
    const MEANINGS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !MEANINGS.iter().any(|word| name.eq_ignore_ascii_case(word));
    match is_word {
        true => out.push_str(name),
        false => write_text(out, name),
    }
}

fn write_scalar(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        Value::Number(number) => {
            let text = number.to_string();
            // YAML 1.1 takes `1e-7` for a text, and `1.0e-7` for a number.
            match text.split_once('e') {
                Some((digits, power)) if !digits.contains('.') => {
                    out.push_str(&format!("{digits}.0e{power}"));
                }
                _ => out.push_str(&text),
            }
        }
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Line breaks to some readers, and what YAML does not let through as it is.
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character if character.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn su_02_yaml_is_readable_and_texts_stay_texts() {
        let value = json!({
            "checkpoint_created": true,
            "scope": {"files": ["a", "no"], "state_keys": []},
            "list": [{"id": 1, "when": "2026-11-18"}, [1, [2.5]], {}],
            "no": null,
            "a b": "line\nline\u{85}",
        });
        let text = write(&value);
        assert_eq!(
            text,
            "---\ncheckpoint_created: true\nscope:\n  files:\n    - \"a\"\n    - \"no\"\n  state_keys: []\nlist:\n  - id: 1\n    when: \"2026-11-18\"\n  -\n    - 1\n    -\n      - 2.5\n  - {}\n\"no\": null\n\"a b\": \"line\\nline\\u0085\"\n"
        );
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[ -~]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-zA-Z :#-]{0,6}", inner), 0..5)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn su_02_what_is_written_as_yaml_reads_back(value in any_value()) {
            let text = write(&value);
            prop_assert_eq!(crate::yaml::read_as::<Value>(&text).unwrap(), value, "{}", text);
        }
    }
}
