//! What was done, told from the trail (`audit`), and whether it still holds
//! (`verify`).

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;

use serde_json::{Value, json};
use support::{batch, checkpoint, damage, env, mutate, text};
use testkit::TestEnv;

fn some() -> TestEnv {
    let env = env();
    env.write("project/src/a.txt", "one\ntwo\n");
    env.write("project/b.txt", "b\n");
    env
}

fn edit(description: &str) -> Value {
    let changes = json!([{ "old": "two", "new": "2" }]);
    json!({ "type": "edit", "description": description, "changes": changes })
}

#[test]
fn tr_11_the_audit_has_every_field_of_its_contract() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &edit("Spell it as a number"), &[]).done();
    let id_2 = checkpoint(&env, &[]);
    let operations = json!([
        { "target": "b.txt", "type": "delete", "description": "Nobody needs it" },
        { "target": "new.txt", "type": "write", "content": "new\n" },
    ]);
    let batch_done = batch(&env, &id_2, &operations, &[]).done();
    let audit = env.json(&["audit"]);
    let (first, second) = (text(&done["action_id"]), text(&batch_done["action_id"]));

    let record = &audit["audit_record"];
    assert!(text(&record["id"]).starts_with("audit_"), "{record}");
    assert!(text(&record["timestamp"]).ends_with('Z'), "{record}");
    assert!(text(&record["actor"]).starts_with("user:"), "{record}");
    assert_eq!(record["action_type"], "batch, file.write");
    assert_eq!(record["targets"], json!(["b.txt", "new.txt", "src/a.txt"]));
    assert_eq!(record["outcome"], "success");
    assert_eq!(record["actions"], 2);

    let changes = audit["changes"].as_array().unwrap();
    let told: Vec<(&str, &str, &str)> = changes
        .iter()
        .map(|it| {
            let text = |name: &str| it[name].as_str().unwrap();
            (text("type"), text("location"), text("action_id"))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("modify", "src/a.txt", first.as_str()),
            ("delete", "b.txt", second.as_str()),
            ("create", "new.txt", second.as_str()),
        ]
    );
    let digest = |content: &str| {
        let hash = blake3::hash(content.as_bytes());
        format!("blake3:{hash}, {} bytes, mode 0644", content.len())
    };
    assert_eq!(changes[0]["before"], digest("one\ntwo\n"));
    assert_eq!(changes[0]["after"], digest("one\n2\n"));
    assert_eq!(changes[1]["after"], Value::Null);
    assert_eq!(changes[2]["before"], Value::Null);
    assert_eq!(changes[2]["outcome"], "ok");

    assert_eq!(
        audit["tool_usage"],
        json!([
            { "tool": "delete", "invocation_count": 1, "success_rate": 1.0 },
            { "tool": "edit", "invocation_count": 1, "success_rate": 1.0 },
            { "tool": "write", "invocation_count": 1, "success_rate": 1.0 },
        ])
    );
    assert_eq!(
        audit["decision_rationale"],
        "Spell it as a number; Nobody needs it"
    );
    let inputs = audit["provenance"]["inputs"].to_string();
    assert!(inputs.contains(&id) && inputs.contains(&id_2), "{inputs}");
    assert_eq!(audit["provenance"]["outputs"].as_array().unwrap().len(), 2);
    assert_eq!(audit["provenance"]["dependencies"], json!([]));
    assert_eq!(audit["confidence"], 1.0);
    assert!(!audit["assumptions"].as_array().unwrap().is_empty());
    // The evidence can be looked at.
    let anchors: Vec<String> = audit["evidence_anchors"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect();
    let entries = anchors.iter().filter_map(|it| it.strip_prefix("trail:"));
    assert_eq!(entries.clone().count(), 4, "{anchors:?}");
    for entry in entries {
        let run = env.run(&["trail", "prove", entry]);
        assert_eq!(run.code, 0, "{run:?}");
    }
    let last = anchors.last().unwrap();
    let command = last.strip_prefix("tool:bash:safepoint ").unwrap();
    let run = env.run(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn tr_08_what_undid_an_action_is_listed_with_it() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &edit("Spell it as a number"), &[]).done();
    let action = text(&done["action_id"]).to_owned();
    let kinds = |more: &[&str]| -> Vec<String> {
        let list = [&["trail", "list", "--action", &action], more].concat();
        let list = env.json(&list);
        let entries = list["entries"].as_array().unwrap().iter();
        let seqs: Vec<u64> = entries
            .clone()
            .map(|it| it["seq"].as_u64().unwrap())
            .collect();
        assert!(seqs.is_sorted(), "{list:#}");
        entries.map(|it| text(&it["kind"]).to_owned()).collect()
    };
    let before = kinds(&[]);
    assert!(!before.contains(&"undone".to_owned()), "{before:?}");
    env.json(&["undo", &action]);
    let undone = [before.clone(), vec!["undone".to_owned()]].concat();
    assert_eq!(kinds(&[]), undone);
    env.json(&["redo"]);
    let redone = [undone, vec!["redone".to_owned()]].concat();
    assert_eq!(kinds(&[]), redone);
    assert_eq!(kinds(&["--kind", "undone"]), ["undone"]);
    assert_eq!(kinds(&["--last", "2"]), ["undone", "redone"]);
    assert_eq!(kinds(&["--limit", "1"]), before[..1]);
}

#[test]
fn tr_08_a_roll_back_is_listed_with_the_actions_that_it_takes_back() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &edit("Spell it as a number"), &[]).done();
    let action = text(&done["action_id"]).to_owned();
    let later = checkpoint(&env, &[]);
    let kinds = || -> Vec<String> {
        let list = env.json(&["trail", "list", "--action", &action]);
        let entries = list["entries"].as_array().unwrap().iter();
        entries.map(|it| text(&it["kind"]).to_owned()).collect()
    };
    let before = kinds();
    // This one leaves it in place.
    env.write("project/src/b.txt", "later\n");
    env.json(&["rollback", &later]);
    assert_eq!(kinds(), before);
    env.json(&["rollback", &id]);
    let back = [before, vec!["rolled_back".to_owned()]].concat();
    assert_eq!(kinds(), back);
    env.json(&["redo"]);
    assert_eq!(kinds(), [back, vec!["redone".to_owned()]].concat());
}

#[test]
fn tr_11_failed_changes_are_told_like_all_others() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let why = edit("Spell it as a number");
    mutate(&env, &id, "src/a.txt", &why, &["--verify", "false"]).failed(1, "F513");
    let unfitting = json!({ "type": "edit", "changes": [{ "old": "zwei", "new": "2" }] });
    mutate(&env, &id, "src/a.txt", &unfitting, &[]).failed(1, "F511");
    let command = json!({ "type": "command", "argv": ["false"] });
    mutate(&env, &id, "src", &command, &[]).failed(1, "F514");
    let audit = env.json(&["audit"]);
    assert_eq!(audit["audit_record"]["outcome"], "failure", "{audit}");
    assert_eq!(audit["audit_record"]["actions"], 3);
    assert_eq!(
        audit["audit_record"]["targets"],
        json!(["src", "src/a.txt"])
    );
    assert_eq!(audit["changes"], json!([]));
    let failures = audit["failures"].as_array().unwrap();
    let whys: Vec<String> = failures.iter().map(|it| text(&it["why"])).collect();
    assert_eq!(
        whys,
        [
            "the check `false` failed: exit status: 1",
            "`src/a.txt`: change 1: `old` does not occur",
            "`false` failed: exit status: 1",
        ]
    );
    assert_eq!(failures[2]["targets"], json!(["src"]));
    mutate(&env, &id, "src/a.txt", &why, &[]).done();
    let audit = env.json(&["audit"]);
    assert_eq!(audit["audit_record"]["outcome"], "partial");
    assert_eq!(
        audit["tool_usage"],
        json!([
            { "tool": "command", "invocation_count": 1, "success_rate": 0.0 },
            { "tool": "edit", "invocation_count": 3, "success_rate": 0.333 },
        ])
    );
    assert_eq!(audit["changes"].as_array().unwrap().len(), 1);
    // That one was taken back is evidence, too.
    let anchors = audit["evidence_anchors"].as_array().unwrap().len();
    assert_eq!(anchors, 10, "{audit}");
}

#[test]
fn tr_11_an_audit_is_limited_to_a_scope_a_time_and_an_actor() {
    let env = some();
    let id = checkpoint(&env, &[".", "--state", "deploy=1"]);
    mutate(&env, &id, "src/a.txt", &edit("In the sources"), &[]).done();
    let id = checkpoint(&env, &[".", "state:deploy"]);
    let state = json!({ "type": "state", "value": 2, "description": "Outside" });
    mutate(&env, &id, "state:deploy", &state, &[]).done();
    let id = checkpoint(&env, &[]);
    let append = json!({ "type": "append", "content": "c\n", "description": "Elsewhere" });
    let reply = mutate(&env, &id, "b.txt", &append, &[]).done();
    // One that fails is in the scope of its target.
    let id = checkpoint(&env, &[]);
    let unfitting = json!({ "type": "edit", "changes": [{ "old": "zwei", "new": "2" }] });
    let path = env.project().join("src/../src/a.txt");
    let answer = mutate(&env, &id, path.to_str().unwrap(), &unfitting, &[]);
    answer.failed(1, "F511");

    let locations = |arguments: &[&str]| {
        let audit = env.json(&[&["audit"], arguments].concat());
        let changes = audit["changes"].as_array().unwrap().iter();
        let locations: Vec<String> = changes.map(|it| text(&it["location"])).collect();
        (
            locations.join(" "),
            audit["audit_record"]["actions"].clone(),
        )
    };
    let is = |found: (String, Value), places: &str, actions: u64| {
        assert_eq!(found, (places.to_owned(), json!(actions)));
    };
    is(locations(&[]), "src/a.txt state:deploy b.txt", 4);
    is(locations(&["--scope", "src"]), "src/a.txt", 2);
    is(locations(&["--scope", "*.txt"]), "b.txt", 1);
    is(locations(&["--scope", "state:deploy"]), "state:deploy", 1);
    is(
        locations(&["--scope", "state:deploy", "b.txt"]),
        "state:deploy b.txt",
        2,
    );
    is(locations(&["--scope", "src/none"]), "", 0);
    let audit = env.json(&["audit", "--scope", "state:deploy"]);
    assert_eq!(audit["provenance"]["dependencies"], json!(["state:deploy"]));
    assert_eq!(audit["provenance"]["inputs"].as_array().unwrap().len(), 1);
    assert_eq!(audit["decision_rationale"], "Outside");

    let time = text(&reply["previous_state"]["captured_at"]);
    is(locations(&["--since", &time]), "b.txt", 2);
    is(locations(&["--until", &time]), "src/a.txt state:deploy", 2);
    is(
        locations(&["--since", "1h"]),
        "src/a.txt state:deploy b.txt",
        4,
    );
    is(locations(&["--since", "2099-01-01T00:00:00Z"]), "", 0);
    is(locations(&["--actor", "agent:nobody"]), "", 0);
    assert_eq!(env.run(&["audit", "--since", "whenever"]).code, 7);
    assert_eq!(env.run(&["audit", "--scope", "../.."]).code, 7);
    let shown = env.snapshot(&["audit", "--actor", "agent:nobody"]);
    insta::assert_snapshot!(shown, @"
    exit 0
    ----- stdout
    no actions
    ");
}

#[test]
fn tr_11_what_happened_without_us_is_told_as_well() {
    let env = some();
    let id = checkpoint(&env, &[]);
    env.write("project/b.txt", "by hand\n");
    checkpoint(&env, &[]);
    env.json(&["rollback", &id]);
    env.json(&["redo"]);
    let command = json!({ "type": "command", "argv": ["touch", "made"] });
    let id = checkpoint(&env, &[]);
    mutate(&env, &id, ".", &command, &[]).done();
    let audit = env.json(&["audit"]);
    let tools: Vec<&str> = audit["tool_usage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["tool"].as_str().unwrap())
        .collect();
    assert_eq!(tools, ["command", "redo", "rollback", "workspace"]);
    assert_eq!(audit["audit_record"]["outcome"], "success");
    let kinds: Vec<&str> = audit["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["modify", "modify", "modify", "execute"]);
}

#[test]
fn tr_11_an_audit_for_people() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let why = edit("Spell it as a number");
    mutate(&env, &id, "src/a.txt", &why, &["--verify", "false"]).failed(1, "F513");
    mutate(&env, &id, "src/a.txt", &why, &[]).done();
    insta::assert_snapshot!(env.snapshot(&["audit"]), @"
    exit 0
    ----- stdout
    2 actions by user:[me]: partial
      why  Spell it as a number; Spell it as a number
      used edit 2 times, 50 % worked
    [time]  modify   src/a.txt  act_[id]
    [time]  failed   src/a.txt  act_[id]  the check `false` failed: exit status: 1
    ");
}

#[test]
fn st_27_whether_a_change_still_holds() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &edit("2"), &[]).done();
    let action = text(&done["action_id"]);
    let reply = env.json(&["verify", &action]);
    assert_eq!(reply["action_id"], action.as_str());
    assert_eq!(reply["checkpoint_id"], id.as_str());
    assert_eq!(reply["valid"], true);
    assert_eq!(reply["verdict"], "PASS");
    assert_eq!(reply["confidence"], 1.0);
    let names: Vec<&str> = reply["checks_run"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "checkpoint_whole",
            "checkpoint_whole",
            "recorded",
            "still_there"
        ]
    );
    // Changes elsewhere do not concern it.
    env.write("project/b.txt", "by hand\n");
    assert_eq!(env.json(&["verify", &action[..10]])["verdict"], "PASS");
    let later = fs::read_to_string(env.project().join("src/a.txt")).unwrap();
    env.write("project/src/a.txt", "by hand\n");
    let run = env.run(&["verify", &action, "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["verdict"], "FAIL");
    assert_eq!(reply["valid"], false);
    assert_eq!(reply["failures"][0]["check"], "still_there");
    assert_eq!(reply["failures"][0]["actual"], "changed since: src/a.txt");
    assert_eq!(reply["confidence"], 0.75);
    insta::assert_snapshot!(env.snapshot(&["verify", &action]), @"
    exit 1
    ----- stdout
    does not hold  act_[id]
      ✓ checkpoint whole  read back
      ✓ checkpoint whole  read back
      ✓ recorded  mutation_started, mutation_done
      ✗ still there  changed since: src/a.txt
    ");
    env.write("project/src/a.txt", &later);
    env.json(&["undo", &action]);
    assert_eq!(env.run(&["verify", &action]).code, 1);
    assert_eq!(env.run(&["verify", "act_zzzz"]).code, 8);
}

#[test]
fn st_33_whether_a_checkpoint_is_whole() {
    let env = some();
    let id = checkpoint(&env, &[]);
    let done = mutate(&env, &id, "src/a.txt", &edit("2"), &[]).done();
    let reply = env.json(&["verify", &id]);
    assert_eq!(reply["verdict"], "PASS");
    assert_eq!(reply["failures"], json!([]));
    assert_eq!(reply["checks_run"][0]["name"], "checkpoint_whole");
    assert_eq!(
        reply["coverage"],
        json!({ "checked": 1, "total": 1, "percentage": 100.0 })
    );
    damage(&env);
    let run = env.run(&["verify", &id, "--json"]);
    assert_eq!(run.code, 5, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "S505", "{reply}");
    assert_eq!(reply["verdict"], "FAIL");
    assert_eq!(reply["valid"], false);
    assert_eq!(reply["checkpoint_id"], id.as_str());
    assert_eq!(reply["failures"][0]["check"], "checkpoint_whole");
    assert_eq!(reply["checks_run"][0]["result"], "FAIL");
    // A change that cannot be taken back any more does not hold.
    let action = text(&done["action_id"]);
    let run = env.run(&["verify", &action, "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("FAIL") || run.stdout.contains("S505"),
        "{run:?}"
    );
}

#[test]
fn su_02_what_mutate_audit_and_verify_print_fits_their_schemas() {
    let env = some();
    let schemas = env.json(&["schema"]);
    let fits = |name: &str, printed: &Value| {
        let validator = jsonschema::validator_for(&schemas[name]).unwrap();
        if let Err(error) = validator.validate(printed) {
            panic!("{name}: {error}: {printed}");
        }
    };
    let id = checkpoint(&env, &[".", "--state", "deploy=1"]);
    let failed = mutate(&env, &id, "src/a.txt", &edit("2"), &["--verify", "false"]);
    fits("mutate", &failed.failed(1, "F513"));
    let done = mutate(&env, &id, "src/a.txt", &edit("2"), &["--verify", "true"]).done();
    fits("mutate", &done);
    let id = checkpoint(&env, &["state:deploy"]);
    let state = json!({ "type": "state", "value": 2 });
    fits(
        "mutate",
        &mutate(&env, &id, "state:deploy", &state, &[]).done(),
    );
    fits("audit", &env.json(&["audit"]));
    fits("verify", &env.json(&["verify", &id]));
    fits("verify", &env.json(&["verify", &text(&done["action_id"])]));
    fits("log", &env.json(&["log"]));
    fits("list", &env.json(&["list", "--automatic"]));
    fits("show", &env.json(&["show", &id]));
    fits("diff", &env.json(&["diff", &id]));
}
