//! The examples of RFC 6902 and RFC 7386.

use serde_json::{Value, json};

use super::super::*;

/// What a change makes of a document, written in every way that can hold it.
fn everywhere(document: &Value, request: &Change) -> Vec<Result<Value, EditError>> {
    let compact = document.to_string();
    let pretty = serde_json::to_string_pretty(document).unwrap();
    let mut results = Vec::new();
    for text in [&compact, &pretty] {
        let changed = change(Format::Json, text.as_bytes(), request);
        results.push(changed.map(|changed| serde_json::from_slice(&changed.bytes).unwrap()));
        let changed = change(Format::Yaml, text.as_bytes(), request);
        results.push(changed.map(|changed| {
            let text = String::from_utf8(changed.bytes).unwrap();
            serde_saphyr::from_str(&text).unwrap()
        }));
    }
    let block = super::generate::yaml(document, &[0]);
    let changed = change(Format::Yaml, block.as_bytes(), request);
    results.push(changed.map(|changed| {
        let text = String::from_utf8(changed.bytes).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    }));
    results
}

#[track_caller]
fn gives(document: Value, request: &Change, expected: &Value) {
    for result in everywhere(&document, request) {
        assert_eq!(&result.unwrap(), expected);
    }
}

#[track_caller]
fn patch_gives(document: Value, patch: Value, expected: Value) {
    gives(document, &Change::Patch(patch), &expected);
}

#[track_caller]
fn patch_fails(document: Value, patch: Value) {
    for result in everywhere(&document, &Change::Patch(patch)) {
        assert!(result.is_err(), "{result:?}");
    }
}

#[test]
fn st_23_rfc_6902_appendix_a() {
    // A.1 and A.2
    patch_gives(
        json!({"foo": "bar"}),
        json!([{"op": "add", "path": "/baz", "value": "qux"}]),
        json!({"baz": "qux", "foo": "bar"}),
    );
    patch_gives(
        json!({"foo": ["bar", "baz"]}),
        json!([{"op": "add", "path": "/foo/1", "value": "qux"}]),
        json!({"foo": ["bar", "qux", "baz"]}),
    );
    // A.3 and A.4
    patch_gives(
        json!({"baz": "qux", "foo": "bar"}),
        json!([{"op": "remove", "path": "/baz"}]),
        json!({"foo": "bar"}),
    );
    patch_gives(
        json!({"foo": ["bar", "qux", "baz"]}),
        json!([{"op": "remove", "path": "/foo/1"}]),
        json!({"foo": ["bar", "baz"]}),
    );
    // A.5
    patch_gives(
        json!({"baz": "qux", "foo": "bar"}),
        json!([{"op": "replace", "path": "/baz", "value": "boo"}]),
        json!({"baz": "boo", "foo": "bar"}),
    );
    // A.6 and A.7
    patch_gives(
        json!({"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}),
        json!([{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}]),
        json!({"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}}),
    );
    patch_gives(
        json!({"foo": ["all", "grass", "cows", "eat"]}),
        json!([{"op": "move", "from": "/foo/1", "path": "/foo/3"}]),
        json!({"foo": ["all", "cows", "eat", "grass"]}),
    );
    // A.8 and A.9
    patch_gives(
        json!({"baz": "qux", "foo": ["a", 2, "c"]}),
        json!([
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ]),
        json!({"baz": "qux", "foo": ["a", 2, "c"]}),
    );
    patch_fails(
        json!({"baz": "qux"}),
        json!([{"op": "test", "path": "/baz", "value": "bar"}]),
    );
    // A.10
    patch_gives(
        json!({"foo": "bar"}),
        json!([{"op": "add", "path": "/child", "value": {"grandchild": {}}}]),
        json!({"foo": "bar", "child": {"grandchild": {}}}),
    );
    // A.11: unknown members are ignored
    patch_gives(
        json!({"foo": "bar"}),
        json!([{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}]),
        json!({"foo": "bar", "baz": "qux"}),
    );
    // A.12: the target does not exist
    patch_fails(
        json!({"foo": "bar"}),
        json!([{"op": "add", "path": "/baz/bat", "value": "qux"}]),
    );
    // A.13 cannot be given: a JSON object holds each member once.
    // A.14 and A.15
    patch_gives(
        json!({"/": 9, "~1": 10}),
        json!([{"op": "test", "path": "/~01", "value": 10}]),
        json!({"/": 9, "~1": 10}),
    );
    patch_fails(
        json!({"/": 9, "~1": 10}),
        json!([{"op": "test", "path": "/~01", "value": "10"}]),
    );
    // A.16
    patch_gives(
        json!({"foo": ["bar"]}),
        json!([{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}]),
        json!({"foo": ["bar", ["abc", "def"]]}),
    );
}

#[test]
fn st_23_rfc_6902_rules() {
    let document = || json!({"a": [1, 2, 3], "b": {"c": null}, "": 5, "x": 1.0});
    // The whole document.
    patch_gives(
        document(),
        json!([{"op": "replace", "path": "", "value": {"n": 1}}]),
        json!({"n": 1}),
    );
    patch_gives(
        document(),
        json!([{"op": "add", "path": "", "value": [1]}]),
        json!([1]),
    );
    patch_gives(
        document(),
        json!([{"op": "copy", "from": "/a", "path": ""}]),
        json!([1, 2, 3]),
    );
    patch_fails(document(), json!([{"op": "remove", "path": ""}]));
    // Empty keys, and nulls that are values.
    patch_gives(
        document(),
        json!([{"op": "replace", "path": "/", "value": 6}, {"op": "test", "path": "/b/c", "value": null}]),
        json!({"a": [1, 2, 3], "b": {"c": null}, "": 6, "x": 1.0}),
    );
    // Numbers are tested by value, mappings in any order.
    for value in [json!(1), json!(1.0), json!(10e-1)] {
        patch_gives(
            document(),
            json!([{"op": "test", "path": "/x", "value": value}]),
            document(),
        );
    }
    patch_gives(
        json!({"m": {"a": 1, "b": [{}]}}),
        json!([{"op": "test", "path": "/m", "value": {"b": [{}], "a": 1}}]),
        json!({"m": {"a": 1, "b": [{}]}}),
    );
    // Indexes.
    for path in [
        "/a/3",
        "/a/-",
        "/a/01",
        "/a/-1",
        "/a/1e0",
        "/a/x",
        "/a/ 1",
        "/a/99999999999999999999",
        "/a/0/0",
    ] {
        patch_fails(
            document(),
            json!([{"op": "replace", "path": path, "value": 0}]),
        );
        patch_fails(document(), json!([{"op": "remove", "path": path}]));
        patch_fails(
            document(),
            json!([{"op": "test", "path": path, "value": 0}]),
        );
    }
    patch_fails(
        document(),
        json!([{"op": "add", "path": "/a/4", "value": 0}]),
    );
    patch_gives(
        document(),
        json!([{"op": "add", "path": "/a/3", "value": 0}]),
        json!({"a": [1, 2, 3, 0], "b": {"c": null}, "": 5, "x": 1.0}),
    );
    // A member with a name that would be an index elsewhere.
    patch_gives(
        json!({"a": {"0": 1, "-": 2}}),
        json!([{"op": "remove", "path": "/a/0"}, {"op": "replace", "path": "/a/-", "value": 3}]),
        json!({"a": {"-": 3}}),
    );
    // Moves.
    patch_fails(
        document(),
        json!([{"op": "move", "from": "/b", "path": "/b/c"}]),
    );
    patch_fails(
        document(),
        json!([{"op": "move", "from": "/n", "path": "/m"}]),
    );
    patch_gives(
        document(),
        json!([{"op": "move", "from": "/b", "path": "/b"}]),
        document(),
    );
    patch_gives(
        document(),
        json!([{"op": "move", "from": "/b/c", "path": "/a"}]),
        json!({"a": null, "b": {}, "": 5, "x": 1.0}),
    );
    patch_gives(
        document(),
        json!([{"op": "copy", "from": "/b", "path": "/b/d"}]),
        json!({"a": [1, 2, 3], "b": {"c": null, "d": {"c": null}}, "": 5, "x": 1.0}),
    );
    // What comes later sees what was done before.
    patch_gives(
        document(),
        json!([
            {"op": "remove", "path": "/a/0"},
            {"op": "test", "path": "/a/0", "value": 2},
            {"op": "add", "path": "/new", "value": {"k": []}},
            {"op": "move", "from": "/a/0", "path": "/new/k/0"},
            {"op": "copy", "from": "/new", "path": "/again"},
            {"op": "remove", "path": "/new/k/0"},
        ]),
        json!({"a": [3], "b": {"c": null}, "": 5, "x": 1.0, "new": {"k": []}, "again": {"k": [2]}}),
    );
    // One that fails undoes all.
    patch_fails(
        document(),
        json!([{"op": "remove", "path": "/a"}, {"op": "test", "path": "/x", "value": 2}]),
    );
}

#[test]
fn st_23_malformed_patches_are_refused() {
    for patch in [
        json!({"op": "add", "path": "/a", "value": 1}),
        json!([1]),
        json!([{"path": "/a"}]),
        json!([{"op": "spin", "path": "/a"}]),
        json!([{"op": "add", "value": 1}]),
        json!([{"op": "add", "path": "/a"}]),
        json!([{"op": "replace", "path": "/a"}]),
        json!([{"op": "test", "path": "/a"}]),
        json!([{"op": "move", "path": "/a"}]),
        json!([{"op": "copy", "path": "/a", "from": 1}]),
        json!([{"op": "add", "path": 5, "value": 1}]),
        json!([{"op": "add", "path": "a", "value": 1}]),
        json!([{"op": "add", "path": "/~2", "value": 1}]),
    ] {
        let result = change(Format::Json, b"{\"a\": 1}", &Change::Patch(patch.clone()));
        assert!(
            matches!(result, Err(EditError::BadChange { .. })),
            "{patch}: {result:?}"
        );
    }
}

#[test]
fn st_23_rfc_7386_appendix_a() {
    for (document, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": "b"}),
            json!({"b": "c"}),
            json!({"a": "b", "b": "c"}),
        ),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": "b", "b": "c"}),
            json!({"a": null}),
            json!({"b": "c"}),
        ),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [{"b": "c"}]}),
            json!({"a": [1]}),
            json!({"a": [1]}),
        ),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a": "b"}), json!(["c"]), json!(["c"])),
        (json!({"a": "foo"}), json!(null), json!(null)),
        (json!({"a": "foo"}), json!("bar"), json!("bar")),
        (
            json!({"e": null}),
            json!({"a": 1}),
            json!({"e": null, "a": 1}),
        ),
        (
            json!([1, 2]),
            json!({"a": "b", "c": null}),
            json!({"a": "b"}),
        ),
        (
            json!({}),
            json!({"a": {"bb": {"ccc": null}}}),
            json!({"a": {"bb": {}}}),
        ),
    ] {
        gives(document, &Change::Merge(patch), &expected);
    }
    // The example of section 3.
    gives(
        json!({
            "title": "Goodbye!",
            "author": {"givenName": "John", "familyName": "Doe"},
            "tags": ["example", "sample"],
            "content": "This will be unchanged",
        }),
        &Change::Merge(json!({
            "title": "Hello!",
            "phoneNumber": "+01-123-456-7890",
            "author": {"familyName": null},
            "tags": ["example"],
        })),
        &json!({
            "title": "Hello!",
            "author": {"givenName": "John"},
            "tags": ["example"],
            "content": "This will be unchanged",
            "phoneNumber": "+01-123-456-7890",
        }),
    );
}

#[test]
fn st_23_paths_say_what_changed() {
    let paths = |request| {
        change(
            Format::Json,
            br#"{"a": [1], "b": {"c": 1}, "s/t": 1}"#,
            &request,
        )
        .unwrap()
        .paths
    };
    assert_eq!(
        paths(Change::Patch(json!([
            {"op": "test", "path": "/a/0", "value": 1},
            {"op": "add", "path": "/a/-", "value": 2},
            {"op": "replace", "path": "/b/c", "value": 1},
            {"op": "move", "from": "/s~1t", "path": "/u"},
        ]))),
        ["/a/1", "/s~1t", "/u"]
    );
    assert_eq!(
        paths(Change::Merge(
            json!({"b": {"c": 2, "d": {"e": 1}}, "a": null, "n": null})
        )),
        ["/b/c", "/b/d", "/a"]
    );
    assert_eq!(
        paths(Change::Merge(json!({"b": {"c": 1}}))),
        Vec::<String>::new()
    );
}

#[test]
fn st_23_errors_say_how_far_a_pointer_goes() {
    let told = |patch: Value| {
        let text = br#"{"a": [1], "b": {"c": 1}}"#;
        change(Format::Json, text, &Change::Patch(patch))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(json!([{"op": "remove", "path": "/b/d"}])),
        "operation 1: `/b/d` does not exist: `/b` has no `d`, but `c`"
    );
    assert_eq!(
        told(json!([{"op": "remove", "path": "/a/1"}])),
        "operation 1: `/a/1` does not exist: `/a` is a list of 1, counted from 0"
    );
    assert_eq!(
        told(json!([{"op": "remove", "path": "/a/x"}])),
        "operation 1: `/a/x` does not exist: `/a` is a list, and `x` is no index of it"
    );
    assert_eq!(
        told(json!([{"op": "add", "path": "/b/c/d", "value": 1}])),
        "operation 1: `/b/c/d` does not exist: `/b/c` is a number"
    );
    assert_eq!(
        told(json!([{"op": "test", "path": "", "value": "x"}])),
        "operation 1: the whole document is a mapping of 2, and the test wants the text `x`"
    );
}

#[test]
fn st_23_formats_are_known_by_name() {
    assert_eq!(Format::of_name(b"a/b.json"), Some(Format::Json));
    assert_eq!(Format::of_name(b"B.YML"), Some(Format::Yaml));
    assert_eq!(Format::of_name(b".github/x.yaml"), Some(Format::Yaml));
    assert_eq!(Format::of_name(b"Cargo.toml"), Some(Format::Toml));
    assert_eq!(Format::of_name(b"a.json/b"), None);
    assert_eq!(Format::of_name(b"json"), None);
    assert_eq!(Format::of_name(b"\xff.jsonc"), Some(Format::Json));
}
