//! The canonical form as indented rows: all of it, one value in a row, nothing shortened.

use safepoint_authority::Canonical;
use serde_json::Value;

use crate::rows::Page;
use crate::told::Told;

/// Adds every value of the form, and marks the end. If that cannot be done the end is not
/// marked, and nobody can have read it.
pub(super) fn form(page: &mut Page, canonical: &Canonical) {
    match serde_json::to_value(canonical) {
        Ok(value) => {
            members(page, 0, &value);
            page.form_end = page.rows.len().checked_sub(1);
        }
        Err(error) => {
            page.fault = Some(format!("the canonical form cannot be shown: {error}"));
        }
    }
}

/// The members of an object or a list, each in its row.
fn members(page: &mut Page, indent: usize, value: &Value) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                member(page, indent, named("", key), value);
            }
        }
        Value::Array(list) => {
            for value in list {
                item(page, indent, value);
            }
        }
        _ => page.exact(indent, scalar(Told::default(), value)),
    }
}

/// One of a list. An object begins in the row of its dash.
fn item(page: &mut Page, indent: usize, value: &Value) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            for (place, (key, value)) in object.iter().enumerate() {
                match place {
                    0 => member(page, indent, named("- ", key), value),
                    _ => member(page, indent + 2, named("", key), value),
                }
            }
        }
        _ => member(page, indent, Told::ours("-"), value),
    }
}

fn named(before: &str, key: &str) -> Told {
    Told::ours(before).and_theirs(key).and(":")
}

/// One member: its value behind its name, or in the rows below.
fn member(page: &mut Page, indent: usize, name: Told, value: &Value) {
    let nothing = match value {
        Value::Object(object) => object.is_empty().then_some(" {}"),
        Value::Array(list) => list.is_empty().then_some(" []"),
        _ => return page.exact(indent, scalar(name.and(" "), value)),
    };
    match nothing {
        Some(empty) => page.exact(indent, name.and(empty)),
        None => {
            // What is in the first member of a listed object lies deeper than its dash.
            let deeper = if name.text().starts_with("- ") { 4 } else { 2 };
            page.exact(indent, name);
            members(page, indent + deeper, value);
        }
    }
}

/// A value behind what stands there already. Texts have quotes around them, so that blanks
/// at the ends are seen, and `"1"` is not `1`.
fn scalar(before: Told, value: &Value) -> Told {
    match value {
        Value::String(text) => before.and("\"").and_theirs(text).and("\""),
        other => before.and_theirs(&other.to_string()),
    }
}
