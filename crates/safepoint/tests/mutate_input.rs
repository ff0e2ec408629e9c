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
