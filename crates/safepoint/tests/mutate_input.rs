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
fn st_23_a_change_is_given_as_one_document() {
    let env = some();
    env.write(
        "project/src/user.rb",
        "def get_email(user)\n  user.email\nend\n",
    );
    let id = checkpoint(&env, &[]);
    // As the contract of the skill writes its first example.
    let document = format!(
        "target: \"src/user.rb\"\noperation:\n  type: \"edit\"\n  description: \"Add null check for user parameter\"\n  changes:\n    - line: 2\n      old: \"user.email\"\n      new: \"user&.email\"\ncheckpoint_id: \"{id}\"\n"
    );
    env.write("project/change.yaml", &document);
    let done = env.json(&["mutate", "--input", "@change.yaml"]);
    assert_eq!(done["success"], true, "{done}");
    assert_eq!(done["target"], "src/user.rb");
    assert_eq!(done["operation"], "Add null check for user parameter");
    assert_eq!(done["checkpoint_id"], json!(id));
    let id = checkpoint(&env, &[]);
    let without = r#"{"target": "src/a.txt", "operation": {"type": "edit", "changes": [{"old": "two", "new": "2"}]}}"#;
    let refused = run(&env, &["--input", without]);
    assert_eq!(refused.reply["error"]["code"], "F501", "{refused:?}");
    env.json(&["mutate", "--auto-checkpoint", "--input", without]);
    let named = format!(
        r#"{{"target": "other.txt", "operation": {{"type": "delete"}}, "checkpoint_id": "{id}"}}"#
    );
    for more in [
        &["--auto-checkpoint"][..],
        &["--checkpoint", &id],
        &["--operation", "{}"],
        &["other.txt"],
    ] {
        let wrong = env.run(&[&["mutate", "--input", &named], more].concat());
        assert_eq!(wrong.code, 7, "{more:?}: {wrong:?}");
    }
    let unknown = r#"{"target": "other.txt", "operation": {"type": "delete"}, "checkpoint": "x"}"#;
    assert_eq!(run(&env, &["--input", unknown]).code, 7);
    assert_eq!(env.run(&["mutate"]).code, 7);
}

#[test]
fn st_23_a_batch_in_yaml_may_begin_with_a_hyphen() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let batch = "- target: src/a.txt\n  type: edit\n  changes: [{old: two, new: '2'}]\n";
    env.json(&["mutate", "--checkpoint", &id, "--operation", batch]);
}

#[test]
fn st_23_a_number_in_yaml_is_exact_or_refused() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let still = Still::of(&env.project());
    for value in ["12345678901234567890", "9007199254740993"] {
        for more in ["", "\n"] {
            let operation = format!("{{type: json, merge: {{a: {value}}}}}");
            let block = format!("type: json\nmerge: {{a: {value}}}{more}");
            let line = format!("- {operation}{more}");
            for given in [block, line] {
                let run = env.run(&[
                    "mutate",
                    "a.json",
                    "--checkpoint",
                    &id,
                    "--operation",
                    &given,
                ]);
                assert_eq!(run.code, 7, "{given}: {run:?}");
                assert!(run.stderr.contains("not exact"), "{given}: {run:?}");
            }
        }
    }
    still.assert_untouched();
}

#[test]
fn st_09_the_log_and_the_manifest_tell_what_became_of_a_checkpoint() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let edit =
        |old: &str| json!({"type": "edit", "changes": [{"old": old, "new": "2"}]}).to_string();
    let mutate = |id: &str, operation: &str| {
        run(
            &env,
            &["src/a.txt", "--checkpoint", id, "--operation", operation],
        )
    };
    assert_ne!(mutate(&id, &edit("absent")).code, 0);
    let done = mutate(&id, &edit("two")).reply;
    let manifest = env
        .project()
        .join(format!(".checkpoints/{id}/manifest.json"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["used_up_by"], done["action_id"]);
    assert_ne!(env.run(&["checkpoint", "absent"]).code, 0);
    // A file that is not readable as it was stored.
    env.json(&["rollback", &id]);
    let log = env.project().join(".audit/checkpoint-operations.log");
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let found: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            let outcome = line["outcome"].as_str().unwrap();
            let outcome = outcome.split(':').next().unwrap();
            (line["operation"].as_str().unwrap(), outcome)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("checkpoint", "ok"),
            ("mutate", "refused"),
            ("mutate", "ok"),
            ("checkpoint", "failed"),
            ("rollback", "ok"),
        ]
    );
    for line in [&lines[1], &lines[2]] {
        assert_eq!(line["targets"], json!(["src/a.txt"]), "{line}");
    }
    assert_eq!(lines[2]["action_id"], done["action_id"]);
    assert!(lines[4]["action_id"].is_string(), "{}", lines[4]);
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
