//! Documents and changes that were made to hurt.

use serde_json::{Value, json};

use super::super::*;

const ALL: [Format; 3] = [Format::Json, Format::Yaml, Format::Toml];

fn add() -> Change {
    Change::Patch(json!([{"op": "add", "path": "/x", "value": 1}]))
}

#[test]
fn st_23_deep_documents_are_refused() {
    let deep = 100_000;
    for text in [
        "[".repeat(deep),
        format!("{}{}", "[".repeat(deep), "]".repeat(deep)),
        "{\"a\":".repeat(deep),
        format!("{}1{}", "{a: ".repeat(deep), "}".repeat(deep)),
        "- ".repeat(deep),
        format!("a = {}", "[".repeat(deep)),
        format!("{}b = 1", "a.".repeat(deep)),
        format!("[{}b]", "a.".repeat(deep)),
        format!("a = {}", "{a = ".repeat(deep)),
        (0..2000)
            .map(|depth| format!("{:depth$}a:\n", ""))
            .collect(),
    ] {
        for format in ALL {
            assert!(change(format, text.as_bytes(), &add()).is_err());
        }
    }
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(300), close.repeat(300));
    for (format, text) in [
        (Format::Json, nested("[", "]")),
        (Format::Yaml, nested("[", "]")),
        (Format::Yaml, "- ".repeat(300)),
        (Format::Toml, format!("a = {}", nested("[", "]"))),
        (Format::Toml, format!("{}b = 1", "a.".repeat(300))),
    ] {
        let result = change(format, text.as_bytes(), &add());
        assert!(
            matches!(result, Err(EditError::TooDeep { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn st_23_deep_changes_are_refused() {
    let mut value = json!(1);
    for _ in 0..1_000 {
        value = json!([value]);
    }
    for change_of in [
        Change::Patch(json!([{"op": "add", "path": "/x", "value": value.clone()}])),
        Change::Patch(json!([{"op": "test", "path": "/x", "value": value.clone()}])),
        Change::Merge(json!({"x": value.clone()})),
    ] {
        let result = change(Format::Json, b"{\"x\": 1}", &change_of);
        assert!(
            matches!(result, Err(EditError::TooDeep { .. })),
            "{result:?}"
        );
    }
    // Copies into copies grow deep, too.
    let nest: Vec<Value> = (0..300)
        .flat_map(|_| {
            [
                json!({"op": "move", "from": "/a", "path": "/b"}),
                json!({"op": "add", "path": "/a", "value": {}}),
                json!({"op": "move", "from": "/b", "path": "/a/b"}),
            ]
        })
        .collect();
    for format in [Format::Json, Format::Yaml] {
        let result = change(
            format,
            b"{\"a\": {}}",
            &Change::Patch(Value::Array(nest.clone())),
        );
        assert!(
            matches!(result, Err(EditError::TooDeep { .. })),
            "{result:?}"
        );
    }
}

#[test]
fn st_23_copies_do_not_pile_up() {
    let double: Vec<Value> = (0..64)
        .map(|number| json!({"op": "copy", "from": "/a", "path": format!("/a/{number}")}))
        .collect();
    for format in [Format::Json, Format::Yaml] {
        let result = change(
            format,
            b"{\"a\": []}",
            &Change::Patch(Value::Array(double.clone())),
        );
        assert!(
            matches!(
                result,
                Err(EditError::TooLarge { .. } | EditError::TooDeep { .. })
            ),
            "{result:?}"
        );
    }
}

#[test]
fn st_23_huge_lists_end_soon() {
    let list = format!("[{}1]", "1,".repeat(100_000));
    let operations: Vec<Value> = (0..50)
        .map(|number| json!({"op": "add", "path": format!("/{number}"), "value": 0}))
        .collect();
    let patch = Change::Patch(Value::Array(operations));
    for format in [Format::Json, Format::Yaml] {
        assert!(change(format, list.as_bytes(), &patch).is_ok());
    }
    let too_many = format!("[{}1]", "1,".repeat(1_100_000));
    let result = change(Format::Json, too_many.as_bytes(), &patch);
    assert!(
        matches!(result, Err(EditError::TooLarge { .. })),
        "{result:?}"
    );
    let lines: String = (0..20_000)
        .map(|number| format!("k{number} = {number}\n"))
        .collect();
    let removed: serde_json::Map<String, Value> = (0..10_000)
        .map(|number| (format!("k{number}"), Value::Null))
        .collect();
    let removed = Change::Merge(Value::Object(removed));
    let changed = change(Format::Toml, lines.as_bytes(), &removed).unwrap();
    assert_eq!(changed.paths.len(), 10_000);
    let lines = lines.replace(" = ", ": ");
    let changed = change(Format::Yaml, lines.as_bytes(), &removed).unwrap();
    assert_eq!(
        changed.bytes.iter().filter(|byte| **byte == b'\n').count(),
        10_000
    );
}

#[test]
fn st_23_what_is_no_text_is_refused() {
    for format in ALL {
        for content in [b"a\0b".as_slice(), b"\xff", b"{\"a\": \"\xc3\"}"] {
            assert!(matches!(
                change(format, content, &add()),
                Err(EditError::Binary { .. })
            ));
        }
        assert!(matches!(
            change(format, &vec![b' '; 33 << 20], &add()),
            Err(EditError::TooLarge { .. })
        ));
    }
}

#[test]
fn st_23_aliases_are_not_multiplied() {
    let mut text = "a0: &a0 [x, x]\n".to_owned();
    for number in 1..60 {
        let before = number - 1;
        text.push_str(&format!("a{number}: &a{number} [*a{before}, *a{before}]\n"));
    }
    let changed = change(Format::Yaml, text.as_bytes(), &add()).unwrap();
    assert_eq!(changed.bytes, format!("{text}x: 1\n").into_bytes());
}
