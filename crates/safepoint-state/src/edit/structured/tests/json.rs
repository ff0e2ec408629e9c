//! JSON: what stays, and how new parts are written.

use serde_json::{Value, json};

use super::super::*;

fn patched(text: &str, operations: Value) -> Result<String, EditError> {
    let changed = change(Format::Json, text.as_bytes(), &Change::Patch(operations))?;
    Ok(String::from_utf8(changed.bytes).unwrap())
}

fn edited(text: &str, operations: Value) -> String {
    patched(text, operations).unwrap()
}

#[test]
fn st_23_json_keeps_what_was_not_changed() {
    let text = "{ \"a\" : 1.0,\n\t\"big\": 123456789012345678901234567890, \"e\":1e5 ,\n\n  \"s\": \"\\u00e9\\/\" }\n";
    assert_eq!(
        edited(text, json!([{"op": "replace", "path": "/e", "value": 2}])),
        text.replace("1e5", "2")
    );
    assert_eq!(
        edited(text, json!([{"op": "remove", "path": "/big"}])),
        "{ \"a\" : 1.0, \"e\":1e5 ,\n\n  \"s\": \"\\u00e9\\/\" }\n"
    );
    assert_eq!(
        edited(
            text,
            json!([{"op": "move", "from": "/big", "path": "/new"}])
        ),
        "{ \"a\" : 1.0, \"e\":1e5 ,\n\n  \"s\": \"\\u00e9\\/\", \"new\" : 123456789012345678901234567890 }\n"
    );
}

#[test]
fn st_23_json_new_parts_take_the_style_of_the_file() {
    let text = "{\n    \"a\": {\n        \"b\": 1\n    },\n    \"l\": [1, 2]\n}\n";
    assert_eq!(
        edited(
            text,
            json!([
                {"op": "add", "path": "/a/c", "value": {"x": [1, {}], "y": []}},
                {"op": "add", "path": "/l/1", "value": {"z": 1}},
            ])
        ),
        "{\n    \"a\": {\n        \"b\": 1,\n        \"c\": {\n            \"x\": [\n                1,\n                {}\n            ],\n            \"y\": []\n        }\n    },\n    \"l\": [1, {\"z\": 1}, 2]\n}\n"
    );
    assert_eq!(
        edited(
            r#"{"a":[1,2],"b":{}}"#,
            json!([
                {"op": "add", "path": "/b/c", "value": {"d": [1, 2]}},
                {"op": "add", "path": "/a/-", "value": 3},
                {"op": "remove", "path": "/a/0"},
            ])
        ),
        r#"{"a":[2,3],"b":{"c":{"d":[1,2]}}}"#
    );
    assert_eq!(
        edited(
            "{\r\n\t\"a\": 1\r\n}",
            json!([{"op": "add", "path": "/b", "value": [1]}])
        ),
        "{\r\n\t\"a\": 1,\r\n\t\"b\": [\r\n\t\t1\r\n\t]\r\n}"
    );
    assert_eq!(
        edited(
            "{\n  \"a\": {}\n}",
            json!([{"op": "add", "path": "/a/b", "value": 1}])
        ),
        "{\n  \"a\": {\n    \"b\": 1\n  }\n}"
    );
    assert_eq!(
        edited("[ ]", json!([{"op": "add", "path": "/-", "value": 1}])),
        "[1]"
    );
    assert_eq!(
        edited(
            "{\n  \"a\": 1\n}\n",
            json!([{"op": "remove", "path": "/a"}])
        ),
        "{}\n"
    );
}

#[test]
fn st_23_json_comments_stay_and_go_with_their_entries() {
    let text = "// head\n{ // open\n  // about a\n  \"a\": 1, // behind a\n\n  // a section\n\n  // about b\n  \"b\": 2, /* x\n y */\n  \"c\": 3, // behind c\n  // end\n}\n// foot\n";
    assert_eq!(
        edited(text, json!([{"op": "remove", "path": "/a"}])),
        text.replace("\n  // about a\n  \"a\": 1, // behind a", "")
    );
    assert_eq!(
        edited(text, json!([{"op": "remove", "path": "/b"}])),
        text.replace("\n\n  // about b\n  \"b\": 2, /* x\n y */", "")
    );
    assert_eq!(
        edited(text, json!([{"op": "add", "path": "/d", "value": 4}])),
        text.replace("// behind c", "// behind c\n  \"d\": 4,")
    );
    assert_eq!(
        edited(text, json!([{"op": "move", "from": "/a", "path": "/z"}])),
        text.replace("\n  // about a\n  \"a\": 1, // behind a", "")
            .replace(
                "// behind c",
                "// behind c\n  // about a\n  \"z\": 1, // behind a"
            )
    );
    assert_eq!(
        edited(
            "{\"a\": 1 // x\n}",
            json!([{"op": "add", "path": "/b", "value": 2}])
        ),
        "{\"a\": 1, // x\n\"b\": 2\n}"
    );
    assert_eq!(
        edited(
            "{ // only\n}",
            json!([{"op": "add", "path": "/b", "value": 2}])
        ),
        "{ // only\n  \"b\": 2\n}"
    );
}

#[test]
fn st_23_json_values_that_are_the_same_are_left_alone() {
    let text = "{\"a\":  [1 ,2], \"b\": 1.0}";
    assert_eq!(
        edited(
            text,
            json!([{"op": "replace", "path": "/a", "value": [1, 2]}])
        ),
        text
    );
    // A fraction is not an integer, even if it has its value.
    assert_eq!(
        edited(text, json!([{"op": "replace", "path": "/b", "value": 1}])),
        "{\"a\":  [1 ,2], \"b\": 1}"
    );
}

#[test]
fn st_23_json_lists_on_one_line_stay_there() {
    assert_eq!(
        edited(
            "{\n  \"a\": [1, 2],\n  \"b\": 1\n}",
            json!([
                {"op": "replace", "path": "/a", "value": [3, {"c": []}]},
                {"op": "replace", "path": "/b", "value": [4]},
            ])
        ),
        "{\n  \"a\": [3, {\"c\": []}],\n  \"b\": [\n    4\n  ]\n}"
    );
}

#[test]
fn st_23_json_moved_values_keep_their_spelling() {
    let text =
        "{\n  \"a\": {\n    \"x\": [1.00, -0],\n    \"y\": \"\\u0041\"\n  },\n  \"b\": {}\n}\n";
    assert_eq!(
        edited(text, json!([{"op": "move", "from": "/a", "path": "/b/a"}])),
        "{\n  \"b\": {\n    \"a\": {\n      \"x\": [1.00, -0],\n      \"y\": \"\\u0041\"\n    }\n  }\n}\n"
    );
    assert_eq!(
        edited(
            text,
            json!([
                {"op": "copy", "from": "/a/x", "path": "/b/n"},
                {"op": "add", "path": "/a/x/0", "value": 9},
                {"op": "copy", "from": "/a/x", "path": "/b/m"},
            ])
        ),
        "{\n  \"a\": {\n    \"x\": [9, 1.00, -0],\n    \"y\": \"\\u0041\"\n  },\n  \"b\": {\n    \"n\": [1.00, -0],\n    \"m\": [9, 1.00, -0]\n  }\n}\n"
    );
    // Half of a surrogate pair cannot be read, only kept.
    let half = "{\"a\": \"\\ud800\", \"b\": 1}";
    assert_eq!(
        edited(half, json!([{"op": "move", "from": "/a", "path": "/c"}])),
        "{\"b\": 1, \"c\": \"\\ud800\"}"
    );
}

#[test]
fn st_23_json_mark_and_end_are_kept() {
    let add = json!([{"op": "add", "path": "/b", "value": "\u{1}\"\\é"}]);
    assert_eq!(
        edited("\u{FEFF}{\"a\":1}", add),
        "\u{FEFF}{\"a\":1,\"b\":\"\\u0001\\\"\\\\é\"}"
    );
}

#[test]
fn st_23_json_that_is_ambiguous_or_broken_is_refused() {
    let add = || json!([{"op": "add", "path": "/z", "value": 1}]);
    assert_eq!(
        patched("{\"a\": 1,\n \"x\": {\"a\": 1,\n \"\\u0061\": 2}}", add()),
        Err(EditError::DuplicateKey {
            format: Format::Json,
            key: "a".to_owned(),
            first: 2,
            line: 3,
        })
    );
    for (text, line, column) in [
        ("", 1, 1),
        ("\n // only\n", 2, 10),
        ("{", 1, 2),
        ("{\"a\" 1}", 1, 6),
        ("{\"a\": 1 \"b\": 2}", 1, 9),
        ("{a: 1}", 1, 2),
        ("{\"a\": 'x'}", 1, 7),
        ("[1,,2]", 1, 4),
        ("[,1]", 1, 2),
        ("[1}", 1, 3),
        ("{\"a\": 01}", 1, 8),
        ("[1.]", 1, 2),
        ("[1e]", 1, 2),
        ("[-]", 1, 2),
        ("[+1]", 1, 2),
        ("[nul]", 1, 2),
        ("[NaN]", 1, 2),
        ("[\"é\n\"]", 1, 4),
        ("[\"a]", 1, 2),
        ("[\"\\x\"]", 1, 3),
        ("[\"\\u12g4\"]", 1, 3),
        ("[\"\\u+123\"]", 1, 3),
        ("{\"\\ud800\": 1}", 1, 2),
        ("[1] 2", 1, 5),
        ("[1] /* ", 1, 5),
        ("[1]\n]", 2, 1),
    ] {
        match patched(text, add()) {
            Err(EditError::Syntax {
                line: at_line,
                column: at_column,
                ..
            }) => assert_eq!((at_line, at_column), (line, column), "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
