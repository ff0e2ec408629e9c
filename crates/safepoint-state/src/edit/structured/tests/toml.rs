//! TOML: what stays, how new parts are written, and what is refused.

use serde_json::{Value, json};

use super::super::*;

fn patched(text: &str, operations: Value) -> Result<String, EditError> {
    let changed = change(Format::Toml, text.as_bytes(), &Change::Patch(operations))?;
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

const CARGO: &str = "\
# The top.

[package]
name = \"x\" # the name
version = '1.0.0'
# about the edition
edition = \"2024\"

[dependencies]
serde = { version = \"1.0\", features = [\"derive\"] }
# pinned
regex = \"=1.2\" # why
number = 1_000

[lints.clippy]
panic = \"deny\"

# first
[[bin]]
name = \"a\"

[[bin]]
name = \"b\"
args = [
    \"1\", # one
    \"2\",
]
";

#[test]
fn st_23_toml_keeps_what_was_not_changed() {
    assert_eq!(
        edited(CARGO, add("/package/name", json!("y"))),
        CARGO.replace("\"x\"", "\"y\"")
    );
    assert_eq!(
        edited(CARGO, add("/package/version", json!("2"))),
        CARGO.replace("'1.0.0'", "'2'")
    );
    assert_eq!(
        edited(CARGO, add("/package/authors", json!(["me"]))),
        CARGO.replace("\"2024\"\n", "\"2024\"\nauthors = [\"me\"]\n")
    );
    assert_eq!(
        edited(CARGO, remove("/package/edition")),
        CARGO.replace("# about the edition\nedition = \"2024\"\n", "")
    );
    assert_eq!(
        edited(CARGO, add("/dependencies/serde/features/-", json!("rc"))),
        CARGO.replace("\"derive\"", "\"derive\", \"rc\"")
    );
    assert_eq!(
        edited(
            CARGO,
            add(
                "/dependencies/toml",
                json!({"version": "1", "optional": true})
            )
        ),
        CARGO.replace(
            "1_000\n",
            "1_000\ntoml = { version = \"1\", optional = true }\n"
        )
    );
    assert_eq!(
        edited(
            CARGO,
            json!([{"op": "move", "from": "/dependencies/regex", "path": "/dependencies/regex-lite"}])
        ),
        CARGO.replace(
            "# pinned\nregex = \"=1.2\" # why\nnumber = 1_000\n",
            "number = 1_000\n# pinned\nregex-lite = \"=1.2\" # why\n"
        )
    );
    assert_eq!(
        edited(CARGO, add("/profile", json!({"release": {"lto": true}}))),
        format!("{CARGO}\n[profile.release]\nlto = true\n")
    );
    assert_eq!(
        edited(CARGO, add("/lints/rust", json!({"unsafe_code": "forbid"}))),
        CARGO.replace(
            "panic = \"deny\"\n",
            "panic = \"deny\"\n\n[lints.rust]\nunsafe_code = \"forbid\"\n"
        )
    );
    assert_eq!(
        edited(CARGO, add("/lints/workspace", json!(true))),
        CARGO.replace(
            "[lints.clippy]",
            "[lints]\nworkspace = true\n\n[lints.clippy]"
        )
    );
    assert_eq!(
        edited(CARGO, remove("/dependencies")),
        CARGO.replace(
            &CARGO[CARGO.find("\n[dependencies]").unwrap()..CARGO.find("\n[lints").unwrap()],
            ""
        )
    );
    assert_eq!(
        edited(CARGO, remove("/bin/0")),
        CARGO.replace("\n# first\n[[bin]]\nname = \"a\"\n", "")
    );
    assert_eq!(
        edited(CARGO, add("/bin/0", json!({"name": "c"}))),
        CARGO.replace("# first", "[[bin]]\nname = \"c\"\n\n# first")
    );
    assert_eq!(
        edited(CARGO, add("/bin/-", json!({"name": "c"}))),
        format!("{CARGO}\n[[bin]]\nname = \"c\"\n")
    );
    assert_eq!(
        edited(CARGO, remove("/bin/1/args/0")),
        CARGO.replace("    \"1\", # one\n", "")
    );
    assert_eq!(
        edited(CARGO, add("/bin/1/args/1", json!("x"))),
        CARGO.replace("# one\n", "# one\n    \"x\",\n")
    );
}

#[test]
fn st_23_toml_keys_with_dots() {
    let text = "[t]\na.b.c = 1\na.d = 2 # d\nz = 3\n";
    assert_eq!(
        edited(text, add("/t/a/e", json!({"f": [1, {"g": 2}]}))),
        text.replace("# d\n", "# d\na.e = { f = [1, { g = 2 }] }\n")
    );
    assert_eq!(
        edited(text, add("/t/a/b/x y", json!(1))),
        text.replace("c = 1\n", "c = 1\na.b.\"x y\" = 1\n")
    );
    assert_eq!(
        edited(text, remove("/t/a/d")),
        text.replace("a.d = 2 # d\n", "")
    );
    assert_eq!(
        edited(text, remove("/t/a/b/c")),
        "[t]\na.d = 2 # d\na.b = {}\nz = 3\n"
    );
    assert_eq!(edited(text, remove("/t/a")), "[t]\nz = 3\n");
    assert_eq!(edited(text, add("/t/a", json!(1))), "[t]\nz = 3\na = 1\n");
    let inline = "a = { b.c = 1, b.d = 2 }\n";
    assert!(matches!(
        patched(inline, add("/a/b/c", json!(2))),
        Err(EditError::Obstacle { line: 1, .. })
    ));
}

#[test]
fn st_23_toml_tables_come_and_go() {
    assert_eq!(edited("", add("/a", json!(1))), "a = 1\n");
    assert_eq!(edited("", add("/a", json!({"b": 1}))), "[a]\nb = 1\n");
    assert_eq!(edited("# top\n", add("/a", json!(1))), "# top\n\na = 1\n");
    assert_eq!(
        edited("# top\n\n[t]\nx = 1\n", add("/a", json!(1))),
        "# top\n\na = 1\n\n[t]\nx = 1\n"
    );
    assert_eq!(
        edited("[t]\nx = 1\n", add("/a", json!(1))),
        "a = 1\n\n[t]\nx = 1\n"
    );
    assert_eq!(
        edited("[t]\nx = 1\n\n[u]\ny = 1\n", remove("/t")),
        "[u]\ny = 1\n"
    );
    assert_eq!(
        edited("[t]\nx = 1\n\n[u]\ny = 1\n", remove("/u")),
        "[t]\nx = 1\n"
    );
    assert_eq!(edited("[t]\nx = 1\n", remove("/t/x")), "[t]\n");
    assert_eq!(edited("[t.u]\nx = 1\n", remove("/t/u")), "t = {}\n");
    assert_eq!(edited("[t.u]\nx = 1\n", add("/t", json!(5))), "t = 5\n");
    assert_eq!(
        edited("t = 5\n", add("/t", json!({"u": 1}))),
        "t = { u = 1 }\n"
    );
    assert_eq!(edited("[[l]]\nx = 1\n", remove("/l/0")), "l = []\n");
    assert_eq!(
        edited(
            "[[l]]\nx = 1\n\n[l.s]\ny = 1\n",
            add("/l/-", json!({"s": {"y": 2}}))
        ),
        "[[l]]\nx = 1\n\n[l.s]\ny = 1\n\n[[l]]\n\n[l.s]\ny = 2\n"
    );
    assert_eq!(
        edited(
            "a = 1\n",
            json!([{"op": "replace", "path": "", "value": {"t": {"x": 1}, "b": 2}}])
        ),
        "b = 2\n\n[t]\nx = 1\n"
    );
}

#[test]
fn st_23_toml_line_ends_and_missing_end_are_kept() {
    let text = "a = [\r\n  1, # one\r\n  2 # two\r\n]\r\n[t]\r\nm = '''\r\nx'''";
    assert_eq!(
        edited(text, add("/a/-", json!(3))),
        text.replace("2 # two\r\n", "2, # two\r\n  3\r\n")
    );
    assert_eq!(
        edited(text, add("/t/n", json!("é\n"))),
        format!("{text}\r\nn = \"é\\n\"")
    );
    assert_eq!(
        edited(text, remove("/t/m")),
        "a = [\r\n  1, # one\r\n  2 # two\r\n]\r\n[t]"
    );
}

#[test]
fn st_23_toml_special_values_keep_their_spelling() {
    let text = "d = 1979-05-27T07:32:00Z\nh = 0xFF\nf = 1e5\ni = inf\nu = 1_000.5\n";
    let patch = json!([
        {"op": "test", "path": "/d", "value": "1979-05-27T07:32:00Z"},
        {"op": "test", "path": "/h", "value": 255},
        {"op": "test", "path": "/f", "value": 100_000},
        {"op": "test", "path": "/u", "value": 1000.5},
        {"op": "move", "from": "/d", "path": "/date"},
        {"op": "copy", "from": "/h", "path": "/hex"},
    ]);
    assert_eq!(
        edited(text, patch),
        "h = 0xFF\nf = 1e5\ni = inf\nu = 1_000.5\ndate = 1979-05-27T07:32:00Z\nhex = 0xFF\n"
    );
}

#[test]
fn st_23_toml_what_it_does_not_have_is_refused_with_its_place() {
    let unwritable = |value: Value| match patched("a = 1\n", add("/b", value)) {
        Err(EditError::Unwritable { pointer, .. }) => pointer,
        other => panic!("{other:?}"),
    };
    assert_eq!(unwritable(json!({"c": [1, null]})), "/b/c/1");
    assert_eq!(unwritable(json!(u64::MAX)), "/b");
    let whole = Change::Merge(json!([1]));
    assert!(matches!(
        change(Format::Toml, b"a = 1\n", &whole),
        Err(EditError::Unwritable { .. })
    ));
    // A null in a merge patch takes away, and is not written.
    let merge = Change::Merge(json!({"a": null, "n": {"m": null}}));
    let changed = change(Format::Toml, b"a = 1\nb = 2\n", &merge).unwrap();
    assert_eq!(changed.bytes, b"b = 2\nn = {}\n");
}

#[test]
fn st_23_toml_that_is_broken_is_refused() {
    assert!(matches!(
        patched("a = 1\nb = \n", add("/c", json!(1))),
        Err(EditError::Syntax {
            format: Format::Toml,
            line: 2,
            ..
        })
    ));
    assert!(matches!(
        patched("a = 1\na = 2\n", add("/c", json!(1))),
        Err(EditError::Syntax { .. })
    ));
}

#[test]
fn st_23_toml_comments_are_never_lost_by_a_move() {
    let text = "[t]\n# inside\nx = 1\n\n[u]\n";
    assert!(matches!(
        patched(text, json!([{"op": "move", "from": "/t", "path": "/v"}])),
        Err(EditError::NotExact { .. })
    ));
    assert_eq!(
        edited(
            text,
            json!([{"op": "move", "from": "/t/x", "path": "/u/y"}])
        ),
        "[t]\n\n[u]\n# inside\ny = 1\n"
    );
}
