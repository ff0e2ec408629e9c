//! YAML: what stays, how new parts are written, and what is refused.

use serde_json::{Value, json};

use super::super::*;

fn patched(text: &str, operations: Value) -> Result<String, EditError> {
    let changed = change(Format::Yaml, text.as_bytes(), &Change::Patch(operations))?;
    Ok(String::from_utf8(changed.bytes).unwrap())
}

#[track_caller]
fn edited(text: &str, operations: Value) -> String {
    match patched(text, operations) {
        Ok(text) => text,
        Err(error) => panic!("{error}"),
    }
}

fn add(path: &str, value: Value) -> Value {
    json!([{"op": "add", "path": path, "value": value}])
}

fn remove(path: &str) -> Value {
    json!([{"op": "remove", "path": path}])
}

const COMPOSE: &str = "\
# A comment at the top.

version: '3'   # quoted
services:
  # about web
  web:
    image: nginx:1.25 # pinned
    ports:
      - \"80:80\"
      - 443

    environment: {A: 1, B: two}
  db:
    image: postgres
    command: |
      one
      two
# at the end
";

#[test]
fn st_23_yaml_keeps_what_was_not_changed() {
    assert_eq!(
        edited(COMPOSE, add("/services/web/image", json!("nginx:1.26"))),
        COMPOSE.replace("1.25", "1.26")
    );
    assert_eq!(
        edited(COMPOSE, add("/version", json!("4"))),
        COMPOSE.replace("'3'", "'4'")
    );
    assert_eq!(
        edited(COMPOSE, add("/services/web/ports/0", json!(1))),
        COMPOSE.replace("      - \"80", "      - 1\n      - \"80")
    );
    assert_eq!(
        edited(COMPOSE, add("/services/web/ports/-", json!("x"))),
        COMPOSE.replace("443\n", "443\n      - x\n")
    );
    assert_eq!(
        edited(
            COMPOSE,
            add("/services/web/environment/C", json!([1, "a b"]))
        ),
        COMPOSE.replace("two}", "two, C: [1, a b]}")
    );
    assert_eq!(
        edited(COMPOSE, remove("/services/web/environment/A")),
        COMPOSE.replace("A: 1, ", "")
    );
    assert_eq!(
        edited(COMPOSE, remove("/services/web/ports/1")),
        COMPOSE.replace("      - 443\n", "")
    );
    assert_eq!(
        edited(COMPOSE, remove("/services/web")),
        COMPOSE.replace(
            &COMPOSE[COMPOSE.find("  # about").unwrap()..COMPOSE.find("  db").unwrap()],
            ""
        )
    );
    assert_eq!(
        edited(COMPOSE, remove("/services/db/command")),
        COMPOSE.replace("    command: |\n      one\n      two\n", "")
    );
    assert_eq!(
        edited(COMPOSE, add("/services/db/command", json!("x"))),
        COMPOSE.replace("|\n      one\n      two", "x")
    );
    assert_eq!(
        edited(
            COMPOSE,
            add("/services/db/command", json!(["x", {"a": 1, "b": {}}]))
        ),
        COMPOSE.replace(
            " |\n      one\n      two",
            "\n      - x\n      - a: 1\n        b: {}"
        )
    );
    assert_eq!(
        edited(
            COMPOSE,
            add(
                "/services/web/image",
                json!({"name": "nginx", "tag": "1.25"})
            )
        ),
        COMPOSE.replace(
            " nginx:1.25 # pinned",
            " # pinned\n      name: nginx\n      tag: \"1.25\""
        )
    );
    assert_eq!(
        edited(
            COMPOSE,
            add(
                "/networks",
                json!({"a": {"b": "line 1\nline 2\n"}, "yes": null})
            )
        ),
        COMPOSE.replace(
            "# at the end",
            "networks:\n  a:\n    b: |\n      line 1\n      line 2\n  \"yes\": null\n# at the end"
        )
    );
    assert_eq!(
        edited(COMPOSE, json!([{"op": "move", "from": "/services/web", "path": "/web"}])),
        COMPOSE.replace(&COMPOSE[COMPOSE.find("  # about").unwrap()..COMPOSE.find("  db").unwrap()], "")
            .replace("# at the end", "# about web\nweb:\n  image: nginx:1.25 # pinned\n  ports:\n    - \"80:80\"\n    - 443\n\n  environment: {A: 1, B: two}\n# at the end")
    );
}

#[test]
fn st_23_yaml_lists_beside_dashes_and_keys() {
    let text = "- a: 1\n  b: 2\n- - x\n  - y\n-\n  c: 3\n-   wide: 1\n";
    assert_eq!(edited(text, remove("/0/a")), text.replace("a: 1\n  ", ""));
    assert_eq!(edited(text, remove("/0/b")), text.replace("  b: 2\n", ""));
    assert_eq!(
        edited(text, add("/0/c", json!({"d": [1]}))),
        text.replace("  b: 2\n", "  b: 2\n  c:\n    d:\n      - 1\n")
    );
    assert_eq!(edited(text, remove("/1/0")), text.replace("x\n  - ", ""));
    assert_eq!(
        edited(text, add("/1/0", json!("w"))),
        text.replace("- - x", "- - w\n  - x")
    );
    assert_eq!(
        edited(text, add("/0", json!("first"))),
        format!("- first\n{text}")
    );
    assert_eq!(
        edited(text, add("/2/c", json!({"d": 1}))),
        text.replace("c: 3", "c:\n    d: 1")
    );
    assert_eq!(
        edited(text, add("/3/more", json!(2))),
        text.replace("wide: 1\n", "wide: 1\n    more: 2\n")
    );
    assert_eq!(
        edited(
            text,
            json!([{"op": "replace", "path": "/3", "value": {"p": 1, "o": 2}}])
        ),
        text.replace("wide: 1\n", "p: 1\n    o: 2\n")
    );
    // The dashes of this file stand below its keys.
    assert_eq!(
        edited("a:\n- 1\nb:\n  c: 2\n", add("/d", json!([1, [2]]))),
        "a:\n- 1\nb:\n  c: 2\nd:\n- 1\n- - 2\n"
    );
    assert_eq!(
        edited(
            "a:\n- 1\n- 2\n",
            json!([{"op": "move", "from": "/a/0", "path": "/a/1"}])
        ),
        "a:\n- 2\n- 1\n"
    );
}

#[test]
fn st_23_yaml_emptied_containers_and_empty_values() {
    assert_eq!(
        edited("a:\n  b: 1\nc: 2\n", remove("/a/b")),
        "a: {}\nc: 2\n"
    );
    assert_eq!(edited("a: # x\n  - 1\n", remove("/a/0")), "a: [] # x\n");
    assert_eq!(edited("a: 1\n", remove("/a")), "{}\n");
    assert_eq!(edited("- 1\n", remove("/0")), "[]\n");
    assert_eq!(edited("a: {}\n", add("/a/b", json!(1))), "a: {b: 1}\n");
    assert_eq!(edited("a:\nb: 1\n", add("/a", json!("x"))), "a: x\nb: 1\n");
    assert_eq!(
        edited("a: # note\nb: 1\n", add("/a", json!({"c": 1}))),
        "a: # note\n  c: 1\nb: 1\n"
    );
    assert_eq!(
        edited(
            "-\n- 2\n",
            json!([{"op": "replace", "path": "/0", "value": 1}])
        ),
        "- 1\n- 2\n"
    );
    assert_eq!(obstacle("{a: , b}", remove("/a")).1, 1);
    assert_eq!(
        edited("{a: , \"b\":c}", add("/a", json!(1))),
        "{a: 1 , \"b\":c}"
    );
    // A document that says nothing yet.
    let merge = |text: &str| {
        let request = Change::Merge(json!({"a": {"b": 1}}));
        let changed = change(Format::Yaml, text.as_bytes(), &request).unwrap();
        String::from_utf8(changed.bytes).unwrap()
    };
    assert_eq!(merge(""), "a:\n  b: 1\n");
    assert_eq!(
        merge("# only a comment\n"),
        "# only a comment\na:\n  b: 1\n"
    );
    assert_eq!(merge("---\n"), "---\na:\n  b: 1\n");
}

#[test]
fn st_23_yaml_line_ends_mark_and_missing_end_are_kept() {
    let text = "\u{FEFF}a: 1\r\nb:\r\n  - x\r\n  - y";
    assert_eq!(
        edited(text, add("/b/-", json!({"c": 1, "d": 2}))),
        "\u{FEFF}a: 1\r\nb:\r\n  - x\r\n  - y\r\n  - c: 1\r\n    d: 2"
    );
    assert_eq!(edited(text, remove("/b/1")), "\u{FEFF}a: 1\r\nb:\r\n  - x");
    assert_eq!(edited(text, remove("/b")), "\u{FEFF}a: 1");
    assert_eq!(
        edited(text, add("/a", json!({"p": 1}))),
        "\u{FEFF}a:\r\n  p: 1\r\nb:\r\n  - x\r\n  - y"
    );
}

#[test]
fn st_23_yaml_empty_lines_do_not_pile_up() {
    let text = "a: 1\n\nb: 2\n\nc: 3\n";
    assert_eq!(edited(text, remove("/b")), "a: 1\n\nc: 3\n");
    assert_eq!(edited(text, remove("/c")), "a: 1\n\nb: 2\n");
    assert_eq!(
        edited("a: 1\n\nb: 2\nc: 3\n", remove("/b")),
        "a: 1\n\nc: 3\n"
    );
    // Behind a block that keeps its end, an empty line would become part of it.
    assert!(matches!(
        patched("a: |+\n  x\nb: 2\n\nc: 3\n", remove("/b")),
        Err(EditError::NotExact { .. })
    ));
}

#[test]
fn st_23_yaml_entries_move_and_are_copied_with_what_changed_in_them() {
    let text = "a:\n  # one\n  - 1\n  - x: 1 # x\n    y: 2\n  # last\n  - 3\nz: 0\n";
    assert_eq!(
        edited(
            text,
            json!([
                {"op": "move", "from": "/a/2", "path": "/a/0"},
                {"op": "remove", "path": "/a/2/x"},
                {"op": "copy", "from": "/a", "path": "/b"},
                {"op": "move", "from": "/a", "path": "/c"},
            ])
        ),
        "z: 0\nb:\n  # last\n  - 3\n  # one\n  - 1\n  - y: 2\nc:\n  # last\n  - 3\n  # one\n  - 1\n  - y: 2\n"
    );
}

#[test]
fn st_23_yaml_brackets_on_one_line_stay_there() {
    let text = "a: [x, y] # c\nb: {}\n";
    assert_eq!(
        edited(text, add("/a", json!(["z", {"k": "v w"}]))),
        text.replace("[x, y]", "[z, {k: v w}]")
    );
    assert_eq!(
        edited(text, add("/b", json!({"k": 1}))),
        text.replace("b: {}", "b:\n  k: 1")
    );
}

#[test]
fn st_23_yaml_quotes_are_kept() {
    let text = "a: 'x'\nb: \"y\"\nc: z\nd: |\n  t\n";
    let patch = |value: &str| {
        json!([
            {"op": "replace", "path": "/a", "value": value},
            {"op": "replace", "path": "/b", "value": value},
            {"op": "replace", "path": "/c", "value": value},
        ])
    };
    assert_eq!(
        edited(text, patch("it's")),
        "a: 'it''s'\nb: \"it's\"\nc: it's\nd: |\n  t\n"
    );
    assert_eq!(
        edited(text, patch("no")),
        "a: 'no'\nb: \"no\"\nc: \"no\"\nd: |\n  t\n"
    );
    assert_eq!(
        edited(text, patch("1\n2")),
        "a: \"1\\n2\"\nb: \"1\\n2\"\nc: |-\n  1\n  2\nd: |\n  t\n"
    );
    assert_eq!(
        edited(text, add("/d", json!("u\nv\n"))),
        text.replace("  t\n", "  u\n  v\n")
    );
}

#[test]
fn st_23_yaml_numbers_keep_their_spelling() {
    let text = "a: 1.0\nb: 1e5\nc: 0x1F\nd: 123456789012345678901234567890\n";
    let tests = json!([
        {"op": "test", "path": "/a", "value": 1},
        {"op": "test", "path": "/b", "value": 100_000},
        {"op": "test", "path": "/c", "value": 31},
        {"op": "move", "from": "/d", "path": "/e"},
        {"op": "copy", "from": "/c", "path": "/f"},
    ]);
    assert_eq!(
        edited(text, tests),
        "a: 1.0\nb: 1e5\nc: 0x1F\ne: 123456789012345678901234567890\nf: 0x1F\n"
    );
}

#[track_caller]
fn obstacle(text: &str, operations: Value) -> (String, usize) {
    match patched(text, operations) {
        Err(EditError::Obstacle {
            place,
            line,
            why: _,
        }) => (place.pointer, line),
        other => panic!("{other:?}"),
    }
}

#[test]
fn st_23_yaml_anchors_and_aliases_stand_in_the_way_only_where_they_are() {
    let text = "base: &b\n  x: 1\nuse: *b\nother:\n  y: 2\n";
    assert_eq!(
        obstacle(text, add("/base/x", json!(2))),
        ("/base/x".to_owned(), 2)
    );
    assert_eq!(obstacle(text, remove("/base")), ("/base".to_owned(), 2));
    assert_eq!(
        obstacle(text, add("/use/x", json!(2))),
        ("/use/x".to_owned(), 3)
    );
    let test = json!([{"op": "test", "path": "/use", "value": 1}]);
    assert_eq!(obstacle(text, test), ("/use".to_owned(), 3));
    for operation in ["copy", "move"] {
        let patch = json!([{"op": operation, "from": "/base", "path": "/new"}]);
        assert_eq!(obstacle(text, patch).1, 2);
    }
    // Elsewhere nothing is in the way, and an alias itself can go.
    assert_eq!(
        edited(text, add("/other/y", json!(3))),
        text.replace("y: 2", "y: 3")
    );
    assert_eq!(edited(text, add("/use", json!(3))), text.replace("*b", "3"));
    assert_eq!(edited(text, remove("/use")), text.replace("use: *b\n", ""));
    let test = json!([{"op": "test", "path": "/base", "value": {"x": 1}}]);
    assert_eq!(edited(text, test), text);
}

#[test]
fn st_23_yaml_merge_keys_hide_nothing() {
    let text = "b: &b {x: 1, y: 2}\nm:\n  <<: *b\n  x: 3\n";
    assert_eq!(
        edited(text, add("/m/x", json!(4))),
        text.replace("x: 3", "x: 4")
    );
    assert_eq!(
        edited(text, add("/m/z", json!(4))),
        format!("{text}  z: 4\n")
    );
    for patch in [
        remove("/m/x"),
        remove("/m/y"),
        json!([{"op": "replace", "path": "/m/y", "value": 1}]),
        json!([{"op": "test", "path": "/m/y", "value": 2}]),
        json!([{"op": "test", "path": "/m", "value": {}}]),
    ] {
        assert_eq!(obstacle(text, patch).1, 3);
    }
    for merge in [json!({"m": {"y": null}}), json!({"m": {"y": {"k": 1}}})] {
        let result = change(Format::Yaml, text.as_bytes(), &Change::Merge(merge));
        assert!(
            matches!(result, Err(EditError::Obstacle { line: 3, .. })),
            "{result:?}"
        );
    }
}

#[test]
fn st_23_yaml_marks_do_not_hide_one_another() {
    let text = "b: &b {x: 1}\nm: &m\n  <<: *b\n  x: 3\nt: &t !tag v\nu: [*m, *t]\n";
    for patch in [
        add("/m/x", json!(4)),
        add("/m/z", json!(4)),
        add("/t", json!(1)),
        remove("/m"),
    ] {
        assert!(matches!(
            patched(text, patch),
            Err(EditError::Obstacle { .. })
        ));
    }
}

#[test]
fn st_23_yaml_tags_are_not_lost() {
    let text = "a: !secret x\nb: !map\n  c: 1\n";
    assert_eq!(obstacle(text, add("/a", json!("y"))), ("/a".to_owned(), 1));
    assert_eq!(
        obstacle(text, json!([{"op": "test", "path": "/a", "value": "x"}])).1,
        1
    );
    assert_eq!(
        obstacle(text, json!([{"op": "move", "from": "/a", "path": "/z"}])).1,
        1
    );
    // What is inside may change, and all of it may go.
    assert_eq!(
        edited(text, add("/b/c", json!(2))),
        text.replace("c: 1", "c: 2")
    );
    assert_eq!(edited(text, remove("/a")), "b: !map\n  c: 1\n");
}

#[test]
fn st_23_yaml_that_cannot_be_placed_is_refused() {
    assert_eq!(
        obstacle("a: 1\n---\nb: 2\n", add("/a", json!(2))),
        (String::new(), 2)
    );
    assert_eq!(
        obstacle("a: 1\n? [x]\n: 2\n", add("/a", json!(2))),
        (String::new(), 2)
    );
    assert_eq!(
        obstacle("? a\n: 1\nb: 2\n", add("/b", json!(3))),
        ("/b".to_owned(), 1)
    );
    assert_eq!(
        obstacle("l: [a: 1]\n", add("/l/0/a", json!(2))),
        ("/l/0/a".to_owned(), 1)
    );
    assert_eq!(
        obstacle("a: 1\rb: 2\n", add("/a", json!(2))),
        (String::new(), 1)
    );
    assert_eq!(
        obstacle("a: |\n  x", add("/b", json!(2))),
        (String::new(), 1)
    );
    assert!(matches!(
        patched("a: 1\nb: 2\n\"a\": 3\n", add("/b", json!(3))),
        Err(EditError::DuplicateKey {
            first: 1,
            line: 3,
            ..
        })
    ));
    assert!(matches!(
        patched("a: [1\nb: 2\n", add("/b", json!(3))),
        Err(EditError::Syntax {
            format: Format::Yaml,
            ..
        })
    ));
}

#[test]
fn st_23_yaml_comments_are_never_lost_by_a_move() {
    let text = "a:\n  # inside\n  b: 1\nl: []\n";
    assert!(matches!(
        patched(text, json!([{"op": "move", "from": "/a", "path": "/l/0"}])),
        Err(EditError::NotExact { .. })
    ));
    assert_eq!(
        edited(text, json!([{"op": "move", "from": "/a", "path": "/z"}])),
        "l: []\nz:\n  # inside\n  b: 1\n"
    );
    // Above the first key of a file, a comment is about the file.
    assert_eq!(
        edited("# file\na: 1\n# b\nb: 2\n", remove("/a")),
        "# file\n# b\nb: 2\n"
    );
    assert_eq!(
        edited("# file\na: 1\n# b\nb: 2\n", remove("/b")),
        "# file\na: 1\n"
    );
}
