//! Any patch of any document does what another implementation does.

use proptest::prelude::*;
use serde_json::Value;

use super::super::*;
use super::generate;

/// What `json-patch` makes of it.
fn expected(document: &Value, patch: &Value) -> Option<Value> {
    let patch: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
    let mut document = document.clone();
    // Not `patch`: it panics when it cannot undo what it did.
    json_patch::patch_unsafe(&mut document, &patch).ok()?;
    Some(document)
}

fn read_yaml(text: &str) -> Value {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        alias_limits: serde_saphyr::alias_limits! {},
    };
    let value: Option<Value> = serde_saphyr::from_str_with_options(text, options)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    value.unwrap_or(Value::Null)
}

/// Compares a change with what is expected of it. What is refused for the sake
/// of exactness is told, to be counted.
fn agrees(
    format: Format,
    text: &str,
    request: &Change,
    expected: Option<&Value>,
    read: fn(&str) -> Value,
) -> Result<bool, TestCaseError> {
    let before = read(text);
    match (change(format, text.as_bytes(), request), expected) {
        (Ok(changed), Some(expected)) => {
            let changed_text = String::from_utf8(changed.bytes).unwrap();
            prop_assert_eq!(
                &read(&changed_text),
                expected,
                "{}\n---\n{}",
                text,
                changed_text
            );
            // The end of the file is as it was.
            if format != Format::Json
                && !text.is_empty()
                && !changed_text.is_empty()
                && before != *expected
            {
                prop_assert_eq!(
                    text.ends_with('\n'),
                    changed_text.ends_with('\n'),
                    "{}\n---\n{}",
                    text,
                    changed_text
                );
            }
            Ok(true)
        }
        (Err(error @ (EditError::NotExact { .. } | EditError::Unwritable { .. })), Some(_)) => {
            // Only comments, or what a format does not have, are a reason.
            let comments = text.contains('#') && error.to_string().contains("comments");
            let reason = comments
                || error.to_string().contains("list of tables")
                || matches!(error, EditError::Unwritable { .. });
            prop_assert!(reason, "{}\n---\n{}", error, text);
            Ok(false)
        }
        (Err(_), None) => Ok(true),
        (Ok(_), None) => {
            prop_assert!(false, "should fail");
            Ok(false)
        }
        (Err(error), Some(_)) => {
            prop_assert!(false, "{}\n---\n{}", error, text);
            Ok(false)
        }
    }
}

/// A document in each format, with its text.
fn written(document: &Value, choices: &[u8]) -> Vec<(Format, String)> {
    vec![
        (Format::Json, generate::json(document, choices)),
        (Format::Yaml, generate::yaml(document, choices)),
        (Format::Toml, generate::toml(document, choices)),
    ]
}

/// Whether `part` is left when some characters of `whole` are taken away.
fn is_left(part: &str, whole: &str) -> bool {
    let mut whole = whole.chars();
    part.chars()
        .all(|wanted| whole.any(|character| character == wanted))
}

/// What says something: no white space, and no marks that come and go with it.
fn words(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !",[]{}".contains(*c))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn st_23_json_patches_agree(
        document in generate::value(true),
        draws in generate::draws(true),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::json(&document, &choices);
        let read = |text: &str| serde_json::from_str(&generate::plain_json(text)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(&read(&text), &document);
        let patch = generate::patch(&document, &draws);
        let expected = expected(&document, &patch);
        agrees(Format::Json, &text, &Change::Patch(patch), expected.as_ref(), read)?;
    }

    #[test]
    fn st_23_json_merges_agree(
        document in generate::value(true),
        patch in generate::value(true),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::json(&document, &choices);
        let read = |text: &str| serde_json::from_str(&generate::plain_json(text)).unwrap();
        let mut expected = document.clone();
        json_patch::merge(&mut expected, &patch);
        agrees(Format::Json, &text, &Change::Merge(patch), Some(&expected), read)?;
    }

    #[test]
    fn st_23_yaml_patches_agree(
        document in generate::value(true),
        draws in generate::draws(true),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::yaml(&document, &choices);
        prop_assert_eq!(&read_yaml(&text), &document, "{}", text);
        let patch = generate::patch(&document, &draws);
        let expected = expected(&document, &patch);
        agrees(Format::Yaml, &text, &Change::Patch(patch), expected.as_ref(), read_yaml)?;
    }

    #[test]
    fn st_23_yaml_patches_in_brackets_agree(
        document in generate::value(true),
        draws in generate::draws(true),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::flow_yaml(&document, &choices);
        prop_assert_eq!(&read_yaml(&text), &document, "{}", text);
        let patch = generate::patch(&document, &draws);
        let expected = expected(&document, &patch);
        agrees(Format::Yaml, &text, &Change::Patch(patch), expected.as_ref(), read_yaml)?;
    }

    #[test]
    fn st_23_yaml_merges_agree(
        document in generate::value(true),
        patch in generate::value(true),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::yaml(&document, &choices);
        let mut expected = document.clone();
        json_patch::merge(&mut expected, &patch);
        agrees(Format::Yaml, &text, &Change::Merge(patch), Some(&expected), read_yaml)?;
    }

    #[test]
    fn st_23_toml_patches_agree(
        document in generate::table(),
        draws in generate::draws(false),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::toml(&document, &choices);
        prop_assert_eq!(&generate::read_toml(&text), &document, "{}", text);
        let patch = generate::patch(&document, &draws);
        let expected = expected(&document, &patch);
        agrees(Format::Toml, &text, &Change::Patch(patch), expected.as_ref(), generate::read_toml)?;
    }

    #[test]
    fn st_23_toml_merges_agree(
        document in generate::table(),
        patch in generate::table(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let text = generate::toml(&document, &choices);
        let mut expected = document.clone();
        json_patch::merge(&mut expected, &patch);
        agrees(Format::Toml, &text, &Change::Merge(patch), Some(&expected), generate::read_toml)?;
    }

    #[test]
    fn st_23_replacing_a_value_touches_nothing_else(
        document in generate::table(),
        pick in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut known = Vec::new();
        generate::pointers(&document, "", &mut known);
        let simple = |path: &String| match document.pointer(path).unwrap() {
            Value::String(text) => !text.contains('\n'),
            other => !other.is_array() && !other.is_object(),
        };
        known.retain(simple);
        if known.is_empty() {
            return Ok(());
        }
        let path = pick.get(&known);
        for (format, text) in written(&document, &choices) {
            let patch = Change::Patch(serde_json::json!([{"op": "replace", "path": path, "value": 7777}]));
            let changed = String::from_utf8(change(format, text.as_bytes(), &patch).unwrap().bytes).unwrap();
            let place = changed.find("7777").unwrap();
            let (before, after) = (&changed[..place], &changed[place + 4..]);
            prop_assert!(text.starts_with(before) && text.ends_with(after), "{}\n---\n{}", text, changed);
            let old = &text[before.len()..text.len() - after.len()];
            let said = match document.pointer(path).unwrap() {
                Value::String(said) => said.clone(),
                other => other.to_string(),
            };
            let quoted = old.starts_with(['"', '\'']);
            prop_assert!(quoted || old == said, "{} {}", old, said);
        }
    }

    #[test]
    fn st_23_adding_a_value_only_adds(
        document in generate::table(),
        value in generate::value(false),
        pick in any::<prop::sample::Index>(),
        first in any::<bool>(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut known = Vec::new();
        generate::pointers(&document, "", &mut known);
        known.retain(|path| matches!(document.pointer(path), Some(Value::Array(_) | Value::Object(_))));
        let path = pick.get(&known);
        let last = match (document.pointer(path), first) {
            (Some(Value::Object(_)), _) => "brandnew",
            (_, true) => "0",
            _ => "-",
        };
        for (format, text) in written(&document, &choices) {
            let patch = Change::Patch(serde_json::json!([{"op": "add", "path": format!("{path}/{last}"), "value": value}]));
            match change(format, text.as_bytes(), &patch) {
                Ok(changed) => {
                    let changed = String::from_utf8(changed.bytes).unwrap();
                    prop_assert!(is_left(&words(&text), &words(&changed)), "{}\n---\n{}", text, changed);
                }
                Err(error) => prop_assert!(error.to_string().contains("list of tables"), "{}\n{}", error, text),
            }
        }
    }

    #[test]
    fn st_23_removing_a_value_only_removes(
        document in generate::table(),
        pick in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let mut known = Vec::new();
        generate::pointers(&document, "", &mut known);
        known.retain(|path| !path.is_empty());
        if known.is_empty() {
            return Ok(());
        }
        let path = pick.get(&known);
        for (format, text) in written(&document, &choices) {
            let patch = Change::Patch(serde_json::json!([{"op": "remove", "path": path}]));
            match change(format, text.as_bytes(), &patch) {
                Ok(changed) => {
                    let changed = String::from_utf8(changed.bytes).unwrap();
                    // A table that loses all that was in it is written out.
                    let emptied = format == Format::Toml && changed.contains("= {}") | changed.contains("= []");
                    prop_assert!(emptied || is_left(&words(&changed), &words(&text)), "{}\n---\n{}", text, changed);
                }
                Err(error) => prop_assert!(error.to_string().contains("comments"), "{}\n{}", error, text),
            }
        }
    }

    #[test]
    fn st_23_any_text_is_changed_or_refused(text in any::<String>(), draws in generate::draws(true)) {
        let patch = Change::Patch(generate::patch(&serde_json::json!({"a": [1]}), &draws));
        for format in [Format::Json, Format::Yaml, Format::Toml] {
            let _ = change(format, text.as_bytes(), &patch);
        }
    }

    #[test]
    fn st_23_any_marks_are_changed_or_refused(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "a", "b", ": ", "\n", "  ", "- ", "[", "]", "{", "}", ", ", "\"", "'", "# c", "|", ">", "&x ", "*x",
            "!t ", "? ", "<<: ", "---", "...", "=", " = ", "[[", "]]", ".", "1", "\r\n", "\\", "%", "/*", "*/", "//", "\t", "|+\n", "\"\"\"",
        ]), 0..24),
    ) {
        let text = pieces.concat();
        let patch = Change::Patch(serde_json::json!([
            {"op": "add", "path": "/a", "value": {"n": [1, "two\n"]}},
        ]));
        for format in [Format::Json, Format::Yaml, Format::Toml] {
            let _ = change(format, text.as_bytes(), &patch);
            let _ = change(format, text.as_bytes(), &Change::Merge(serde_json::json!({"b": null, "a": {"c": 1}})));
        }
    }
}
