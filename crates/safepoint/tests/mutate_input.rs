//! What is no operation, or no target, is refused before anything is looked at.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use serde_json::json;
use support::{Still, actions, checkpoint, env, run, spent_by};
use testkit::TestEnv;

fn some() -> TestEnv {
    let env = env();
    env.write("project/src/a.txt", "one\ntwo\nthree\n");
    env.write("project/other.txt", "other\n");
    env
}

#[test]
fn st_23_what_is_no_operation_is_refused_and_nothing_is_written() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    let entries = env.json(&["trail", "list"])["entries"]
        .as_array()
        .unwrap()
        .len();
    let edit = r#"{"type":"edit","changes":[{"old":"two","new":"2"}]}"#;
    let cases: &[(Option<&str>, &str)] = &[
        (Some("src/a.txt"), "not json"),
        (Some("src/a.txt"), ""),
        (Some("src/a.txt"), "{}"),
        (Some("src/a.txt"), "7"),
        (Some("src/a.txt"), "[]"),
        (Some("src/a.txt"), r#"{"type":"explode"}"#),
        (
            Some("src/a.txt"),
            r#"{"type":"write","content":"x","colour":"red"}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"write","content":"x","content":"y"}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"write","type":"delete","content":"x"}"#,
        ),
        (Some("src/a.txt"), r#"{"type":"write"}"#),
        (
            Some("src/a.txt"),
            r#"{"type":"write","content":"x","base64":"eA=="}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"write","base64":"no base64"}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"write","content":"x","mode":"99"}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"write","content":"x","mode":"17777"}"#,
        ),
        (Some("src/a.txt"), r#"{"type":"chmod","mode":420}"#),
        (Some("src/a.txt"), r#"{"type":"chmod"}"#),
        (Some("src/a.txt"), r#"{"type":"edit","changes":[]}"#),
        (
            Some("src/a.txt"),
            r#"{"type":"edit","changes":[{"old":"two"}]}"#,
        ),
        (
            Some("src/a.txt"),
            r#"{"type":"edit","changes":[{"old":"two","new":"2","line":-1}]}"#,
        ),
        (Some("src/a.txt"), r#"{"type":"command","argv":[]}"#),
        (Some("src/a.txt"), r#"{"type":"command","argv":[""]}"#),
        (Some("src/a.txt"), r#"{"type":"command","argv":"ls"}"#),
        (Some("src/a.txt"), r#"{"type":"sql","sql":"SELECT 1"}"#),
        (Some("src/a.txt"), r#"{"type":"state","value":1}"#),
        (Some("src/a.txt"), r#"{"type":"move"}"#),
        (Some("src/a.txt"), r#"[{"type":"delete"}]"#),
        (
            Some("src/a.txt"),
            r#"{"target":"other.txt","type":"delete"}"#,
        ),
        (Some("state:x"), edit),
        (Some("state:"), edit),
        (Some("state:a b"), r#"{"type":"state","value":1}"#),
        (Some(""), edit),
        (None, edit),
        (None, r#"[{"type":"delete"}]"#),
        (
            None,
            r#"[{"target":"other.txt","type":"delete"},{"type":"delete"}]"#,
        ),
        (None, r#"[{"target":7,"type":"delete"}]"#),
        (None, r#"{"target":"","type":"delete"}"#),
        (Some("src/a.txt"), "@missing.json"),
    ];
    for (target, operation) in cases {
        let mut arguments = vec!["--checkpoint", id.as_str(), "--operation", operation];
        arguments.extend(target);
        let answer = run(&env, &arguments);
        let wanted = if *operation == "@missing.json" { 8 } else { 7 };
        assert_eq!(answer.code, wanted, "{target:?} {operation}: {answer:?}");
        assert_eq!(answer.reply["success"], false, "{answer:?}");
        assert_eq!(answer.reply["diff"]["type"], "none", "{answer:?}");
        assert!(
            answer.reply["error"]["suggestion"].is_string(),
            "{answer:?}"
        );
    }
    let after = env.json(&["trail", "list"])["entries"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(entries, after, "something was written to the trail");
    still.assert_untouched();
    assert_eq!(spent_by(&env, &id), None);
    assert!(actions(&env).is_empty());
}

#[test]
fn st_23_operations_come_from_a_file_or_from_standard_input() {
    let env = some();
    let id = checkpoint(&env, &[]);
    env.write(
        "operation.json",
        &json!({ "type": "edit", "changes": [{ "line": 2, "old": "two", "new": "2" }] })
            .to_string(),
    );
    let arguments = ["src/a.txt", "--checkpoint", &id, "--operation"];
    run(&env, &[&arguments[..], &["@../operation.json"]].concat()).done();
    let id = checkpoint(&env, &[]);
    let delete = json!([{ "target": "other.txt", "type": "delete" }]).to_string();
    let arguments = ["mutate", "--checkpoint", &id, "--operation", "-", "--json"];
    let run = env.run_with(&arguments, delete.as_bytes());
    assert_eq!(run.code, 0, "{run:?}");
    assert!(!env.project().join("other.txt").exists());
}

#[test]
fn st_23_an_operation_may_be_yaml_and_json_stays_json() {
    let env = some();
    env.write(
        "project/edit.yaml",
        "type: edit\ndescription: \"Make two a digit\"\nchanges:\n  - old: two\n    new: \"no\"\n",
    );
    let id = checkpoint(&env, &[]);
    let done = env.json(&[
        "mutate",
        "src/a.txt",
        "--checkpoint",
        &id,
        "--operation",
        "@edit.yaml",
    ]);
    assert_eq!(done["success"], true, "{done}");
    assert_eq!(done["new_state"]["snapshot"], "one\nno\nthree\n");
    // What begins as JSON is JSON, and is refused as such.
    let id = checkpoint(&env, &[]);
    let run = env.run(&[
        "mutate",
        "src/a.txt",
        "--checkpoint",
        &id,
        "--operation",
        "{type: delete}",
    ]);
    assert_eq!(run.code, 7, "{run:?}");
    env.write("project/twice.yaml", "type: edit\ntype: delete\n");
    let run = env.run(&[
        "mutate",
        "src/a.txt",
        "--checkpoint",
        &id,
        "--operation",
        "@twice.yaml",
    ]);
    assert_eq!(run.code, 7, "{run:?}");
    assert!(run.stderr.contains("occurs twice"), "{run:?}");
}

#[test]
fn st_24_a_target_that_changed_after_the_checkpoint_is_told() {
    let env = some();
    let id = checkpoint(&env, &[]);
    env.write("project/src/a.txt", "one\ntwo\nthree\nfour\n");
    let edit = r#"{"type":"edit","changes":[{"old":"two","new":"2"}]}"#;
    let late = env.json(&[
        "mutate",
        "src/a.txt",
        "--checkpoint",
        &id,
        "--operation",
        edit,
    ]);
    let told = late["warnings"].to_string();
    assert!(told.contains("was changed after checkpoint"), "{late}");
    let id = checkpoint(&env, &[]);
    // A change elsewhere is not the target's.
    env.write("project/other.txt", "else\n");
    let edit = r#"{"type":"edit","changes":[{"old":"three","new":"3"}]}"#;
    let done = env.json(&[
        "mutate",
        "src/a.txt",
        "--checkpoint",
        &id,
        "--operation",
        edit,
    ]);
    assert_eq!(done["warnings"], json!([]), "{done}");
}

#[test]
fn st_22_a_table_that_is_named_as_people_say_it_is_refused_with_the_address_to_write() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let operation = r#"{"type":"sql","sql":"ALTER TABLE users ADD COLUMN a TEXT"}"#;
    let run = env.run(&[
        "mutate",
        "users table",
        "--checkpoint",
        &id,
        "--operation",
        operation,
    ]);
    assert_eq!(run.code, 7, "{run:?}");
    assert!(run.stderr.contains("sqlite:app.db#users"), "{run:?}");
}
