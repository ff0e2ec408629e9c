//! Atlases from outside: checked, tried out, replayed.

#![expect(clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "support/sessions.rs"]
mod support;

use std::path::Path;

use serde_json::{Value, json};
use support::{acme, answer, env, open, request, run, text};

#[test]
fn ga_02_everything_that_is_wrong_is_listed_with_its_place() {
    let env = env();
    let bad = acme()
        .replacen("mode: blocking", "mode: sometimes", 1)
        .replacen(
            "response_type: acknowledgment",
            "respons_type: acknowledgment",
            1,
        )
        .replacen("\"policy-summary\"", "\"policy-sumary\"", 1)
        .replacen("\"*.delete\"", "\"*..delete\"", 1);
    env.write("project/bad.yaml", &bad);
    let (code, reply) = run(&env, &["atlas", "check", "bad.yaml"]);
    assert_eq!((code, &reply["valid"]), (7, &json!(false)));
    let errors: Vec<&Value> = reply["files"][0]["problems"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|problem| problem["severity"] == "error")
        .collect();
    assert!(errors.len() >= 2, "{errors:#?}");
    assert!(
        errors.iter().all(|error| error["line"].is_u64()),
        "{errors:#?}"
    );
    let shown = env.run(&["atlas", "check", "bad.yaml"]).stdout;
    assert!(shown.contains("did you mean `response_type`?"), "{shown}");
    assert!(shown.contains("^^^^"), "{shown}");
    // A session does not begin under it.
    let (code, reply) = run(&env, &["session", "start", "--atlas", "bad.yaml"]);
    assert_eq!((code, &reply["error"]["code"]), (7, &json!("U708")));
    assert!(
        text(&reply["error"]["location"]).contains("bad.yaml:"),
        "{reply}"
    );
}

#[test]
fn su_08_the_rules_that_apply_are_shown() {
    let env = env();
    let built_in = env.json(&["atlas", "show"]);
    assert_eq!(built_in["atlases"][0]["path"], Value::Null);
    assert_eq!(
        built_in["atlases"][0]["manifest"]["atlas_id"],
        "safepoint.built-in"
    );
    env.write("project/acme.yaml", &acme());
    env.write("project/safepoint.yaml", "atlases: [acme.yaml]\n");
    let own = env.json(&["atlas", "show"]);
    let shown = own["atlases"].as_array().unwrap();
    assert_eq!(shown.len(), 1, "{own}");
    assert!(shown[0]["path"].as_str().unwrap().ends_with("acme.yaml"));
    let gates = shown[0]["manifest"]["checkpoints"].as_array().unwrap();
    assert!(!gates.is_empty(), "{own}");
    let people = env.run(&["atlas", "show"]).stdout;
    assert!(people.contains("gate    "), "{people}");
}

#[test]
fn ga_03_the_schema_is_printed_and_the_examples_fit_it() {
    let env = env();
    let (code, schema) = run(&env, &["atlas", "schema"]);
    assert_eq!(code, 0);
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let validator = jsonschema::validator_for(&schema).unwrap();
    for file in examples() {
        let source = std::fs::read_to_string(&file).unwrap();
        let value: Value = safepoint_model::yaml::read_as(&source).unwrap();
        assert!(validator.is_valid(&value), "{}", file.display());
    }
}

fn examples() -> Vec<std::path::PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["acme-support", "production", "undo"]
        .iter()
        .map(|name| root.join(format!("../../examples/{name}.yaml")))
        .chain([root.join("atlases/starter.yaml")])
        .collect()
}

#[test]
fn ga_44_the_examples_in_every_atlas_we_ship_hold() {
    let env = env();
    for file in examples() {
        let path = file.to_str().unwrap();
        let (code, reply) = run(&env, &["atlas", "check", path]);
        assert_eq!(code, 0, "{reply:#}");
        let (code, reply) = run(&env, &["atlas", "test", path]);
        assert_eq!((code, &reply["failed"]), (0, &json!(0)), "{path} {reply:#}");
        assert!(reply["passed"].as_u64().unwrap() >= 3, "{path}");
    }
}

#[test]
fn ga_44_an_example_that_does_not_hold_fails() {
    let env = env();
    let wrong = acme().replace(
        "expect: { decision: deny, reason: \"parameters\" }",
        "expect: { decision: allow }",
    );
    assert_ne!(wrong, acme());
    env.write("project/wrong.yaml", &wrong);
    let run = env.run(&["atlas", "test", "wrong.yaml"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout
            .contains("decision: expected `allow`, found `deny"),
        "{run:?}"
    );
}

#[test]
fn ga_44_an_atlas_to_start_from_is_written_once() {
    let env = env();
    let (code, _) = run(&env, &["atlas", "init", "mine.yaml"]);
    assert_eq!(code, 0);
    assert_eq!(run(&env, &["atlas", "check", "mine.yaml"]).0, 0);
    assert_eq!(run(&env, &["atlas", "test", "mine.yaml"]).0, 0);
    let (code, reply) = run(&env, &["atlas", "init", "mine.yaml"]);
    assert_eq!((code, &reply["error"]["code"]), (7, &json!("U702")));
}

#[test]
fn ga_44_history_is_judged_again_under_another_atlas() {
    let env = env();
    let session = open(&env);
    request(&env, &session, &["ticket.list"]);
    request(
        &env,
        &session,
        &["ticket.get", "--params", r#"{"ticket_id": "1"}"#],
    );
    request(&env, &session, &["ticket.delete"]);
    answer(
        &env,
        &session,
        "delete-confirm",
        r#"{"confirm-delete": "understood"}"#,
    );
    answer(
        &env,
        &session,
        "admin-gate",
        r#"{"admin-ack": "understood"}"#,
    );
    request(&env, &session, &["ticket.delete"]);

    let (code, same) = run(&env, &["atlas", "replay", "atlas.yaml", "--since", "7d"]);
    assert_eq!(code, 0);
    assert_eq!(same["sessions"], 1);
    assert_eq!(same["requests"], 4);
    assert_eq!(same["changes"], json!([]));

    let stricter = acme()
        .replace("actions: [\"user.ban\", \"ticket.delete\"]", "actions: [\"user.ban\"]")
        .replace(
            "policies:\n",
            "policies:\n  - { policy_id: no-lists, type: deny, actions: [\"ticket.list\"], reason: \"no lists\" }\n",
        );
    env.write("project/new.yaml", &stricter);
    let (_, changed) = run(&env, &["atlas", "replay", "new.yaml", "--since", "7d"]);
    let changes: Vec<_> = changed["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| {
            (
                text(&change["action_id"]),
                text(&change["before"]),
                text(&change["after"]),
            )
        })
        .collect();
    let change = |action: &str, before: &str, after: &str| {
        (action.to_owned(), before.to_owned(), after.to_owned())
    };
    assert_eq!(
        changes,
        [
            change("ticket.list", "allow", "deny"),
            change("ticket.delete", "requires_approval", "allow"),
        ]
    );
    // Looking changes nothing.
    let (_, again) = run(&env, &["atlas", "replay", "atlas.yaml"]);
    assert_eq!(again["requests"], 4);
}

#[test]
fn ga_44_an_answer_is_played_to_the_hold_it_was_for() {
    let env = env();
    let session = open(&env);
    let one = [
        "ticket.get",
        "--params",
        r#"{"ticket_id": "1"}"#,
        "--risk",
        "high",
    ];
    let two = [
        "ticket.get",
        "--params",
        r#"{"ticket_id": "2"}"#,
        "--risk",
        "high",
    ];
    let (_, first) = request(&env, &session, &one);
    request(&env, &session, &two);
    let hold = text(&first["resolution"]["hold_id"]);
    let why = r#"{"justify-risk": "It was asked for in writing."}"#;
    let arguments = [
        "session",
        "answer",
        &session,
        "high-risk-gate",
        "--answers",
        why,
    ];
    assert_eq!(run(&env, &arguments).0, 9, "it waits in two holds");
    let (code, _) = run(&env, &[&arguments[..], &["--hold", &hold]].concat());
    assert_eq!(code, 0);
    assert_eq!(request(&env, &session, &one).0, 0);
    let (_, same) = run(&env, &["atlas", "replay", "atlas.yaml"]);
    assert_eq!(
        (&same["requests"], &same["changes"]),
        (&json!(3), &json!([]))
    );
    // Sessions under other atlases are not this steward's business.
    run(&env, &["atlas", "init", "other.yaml"]);
    let (_, other) = run(&env, &["atlas", "replay", "other.yaml"]);
    assert_eq!(
        (&other["sessions"], &other["skipped"]),
        (&json!(0), &json!(1))
    );
    let told = env.run(&["atlas", "replay", "other.yaml"]).stdout;
    assert!(told.contains("1 session was under other atlases"), "{told}");
    let (_, all) = run(&env, &["atlas", "replay", "other.yaml", "--all"]);
    assert_eq!(all["sessions"], 1);
}

#[test]
fn ga_15_what_lies_beside_an_atlas_is_checked_too() {
    let env = env();
    let with_module = |name: &str| {
        format!(
            "{}\nextensions:\n  - {{ extension_id: own, wasm: \"{name}\" }}\n",
            acme()
        )
        .replacen(
            "validation:\n          min_length: 20",
            "validation:\n          custom_validator: own",
            1,
        )
    };
    env.write("project/m.wasm", "no module");
    for name in ["missing.wasm", "m.wasm", "../../etc/passwd", "/etc/passwd"] {
        env.write("project/code.yaml", &with_module(name));
        let (code, reply) = run(&env, &["atlas", "check", "code.yaml"]);
        assert_eq!(
            (code, &reply["valid"]),
            (7, &json!(false)),
            "{name} {reply:#}"
        );
    }
    env.write("project/atlas.yaml.sig", "nonsense");
    let (code, reply) = run(&env, &["atlas", "check", "atlas.yaml"]);
    assert_eq!(code, 7, "{reply:#}");
    // One file that is not there does not hide what is wrong with another.
    let (code, reply) = run(&env, &["atlas", "check", "missing.yaml", "code.yaml"]);
    assert_eq!((code, reply["files"].as_array().unwrap().len()), (7, 2));
    assert_eq!(run(&env, &["atlas", "check", "missing.yaml"]).0, 8);
}

#[test]
fn ga_02_a_gate_that_is_never_raised_is_a_mistake() {
    let env = env();
    for (from, to) in [
        ("patterns: [\"*.delete\"]", "patterns: []"),
        ("patterns: [\"*.delete\"]", "patterns: [\"nowhere.*\"]"),
    ] {
        env.write("project/idle.yaml", &acme().replacen(from, to, 1));
        assert_eq!(run(&env, &["atlas", "check", "idle.yaml"]).0, 7, "{to}");
    }
}
