//! States that are not files: given as JSON, or owned by a provider's commands.

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
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{
    Still, actions, assert_sound, batch, checkpoint, damage, env, mutate, paste, spent_by, text,
};
use testkit::TestEnv;

fn set(value: Value) -> Value {
    json!({ "type": "state", "value": value })
}

/// The value that a state has now, as a new checkpoint finds it; `None` when there is none.
#[track_caller]
fn value(env: &TestEnv, key: &str) -> Option<Value> {
    let name = format!("state:{key}");
    let run = env.run(&["checkpoint", &name, "--json"]);
    if run.code == 7 {
        return None;
    }
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let id = text(&reply["checkpoint_id"]);
    // A change that does not hold tells the value before, and changes nothing.
    let answer = mutate(env, &id, &name, &set(json!(0)), &["--verify", "false"]);
    Some(answer.failed(1, "F513")["previous_state"]["snapshot"].clone())
}

/// A provider that keeps its state in a file outside the workspace.
fn with_provider() -> (TestEnv, PathBuf) {
    let env = env();
    env.write("project/a.txt", "a\n");
    let file = env.write("elsewhere/app.json", "{\"replicas\": 1}\n");
    let path = file.display();
    env.write(
        "project/safepoint.yaml",
        &format!(
            "state_providers:
  app:
    capture: cat {path}
    restore: cat > {path}
  broken:
    capture: echo no such cluster >&2; exit 3
    restore: cat > /dev/null
  deaf:
    capture: cat {path}
    restore: cat > /dev/null
  careless:
    capture: cat {path}
    restore: 'grep -v forbidden > {path} || true'
"
        ),
    );
    (env, file)
}

#[test]
fn st_15_states_are_given_as_json_from_a_file_or_from_standard_input() {
    let env = env();
    env.write("project/a.txt", "a\n");
    env.write("state.json", "{\"from\": \"a file\"}");
    let reply = env.json(&[
        "checkpoint",
        "--type",
        "state_snapshot",
        "--state",
        "deploy={\"version\": 7}",
        "--state",
        "file=@../state.json",
    ]);
    assert_eq!(reply["checkpoint"]["type"], "state_snapshot");
    let scope = &reply["checkpoint"]["scope"];
    assert_eq!(scope["state_keys"], json!(["deploy", "file"]));
    assert_eq!(scope["files"], json!([]));
    let arguments = ["checkpoint", "--state", "piped=-", "state:deploy", "--json"];
    let run = env.run_with(&arguments, b"[1, 2]");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(value(&env, "deploy"), Some(json!({ "version": 7 })));
    assert_eq!(value(&env, "file"), Some(json!({ "from": "a file" })));
    assert_eq!(value(&env, "piped"), Some(json!([1, 2])));
}

#[test]
fn st_15_what_is_no_state_is_refused_and_nothing_is_written() {
    let (env, file) = with_provider();
    let cases = [
        (7, "x"),
        (7, "x="),
        (7, "x={"),
        (7, "x=text without marks"),
        (7, "x={\"a\":1,\"a\":2}"),
        (7, "x=1 2"),
        (7, "=1"),
        (7, "two words=1"),
        (8, "x=@missing.json"),
        // One that somebody owns is asked for, not told.
        (7, "app=1"),
    ];
    for (exit, given) in cases {
        let run = env.run(&["checkpoint", "--state", given, "--json"]);
        assert_eq!(run.code, exit, "{given}: {run:?}");
        let reply: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(reply["checkpoint_created"], false, "{run:?}");
    }
    let unknown: [&[&str]; 3] = [
        &["state:UNKNOWN"],
        &["a.txt", "state:UNKNOWN"],
        &["--state", "given=1", "state:UNKNOWN"],
    ];
    for scope in unknown {
        let run = env.run(&[&["checkpoint", "--json"], scope].concat());
        assert_eq!(run.code, 7, "{scope:?}: {run:?}");
        assert!(run.stdout.contains("SCOPE_EMPTY"), "{run:?}");
        assert!(run.stdout.contains("--state NAME=JSON"), "{run:?}");
    }
    let run = env.run(&["checkpoint", "--state", "x=1", "--state", "x=2"]);
    assert_eq!(run.code, 7, "{run:?}");
    // Not even those values that were fine.
    assert_eq!(value(&env, "given"), None);
    assert_eq!(value(&env, "x"), None);
    let listed = env.json(&["list", "--automatic"]);
    assert_eq!(listed["checkpoints"], json!([]));
    assert_eq!(fs::read_to_string(file).unwrap(), "{\"replicas\": 1}\n");
}

#[test]
fn st_15_a_state_is_changed_rolled_back_and_redone() {
    let env = env();
    let id = checkpoint(
        &env,
        &["--type", "state_snapshot", "--state", "deploy={\"v\":1}"],
    );
    let reply = mutate(&env, &id, "state:deploy", &set(json!({ "v": 2 })), &[]).done();
    assert_eq!(reply["target"], "state:deploy");
    assert_eq!(reply["previous_state"]["snapshot"], json!({ "v": 1 }));
    assert_eq!(reply["new_state"]["snapshot"], json!({ "v": 2 }));
    assert_eq!(reply["diff"]["type"], "structural");
    let diff = text(&reply["diff"]["content"]);
    assert!(diff.contains("-  \"v\": 1\n+  \"v\": 2\n"), "{diff}");
    assert_eq!(
        reply["changes"],
        json!([{ "path": "state:deploy", "change": "modified" }])
    );
    assert_eq!(spent_by(&env, &id).as_deref(), reply["action_id"].as_str());
    let log = actions(&env);
    assert_eq!(log[0]["action"], "state.write");
    assert_eq!(log[0]["changes"][0]["path"], "state:deploy");

    // Everything that tells of a checkpoint tells of it.
    let action = text(&reply["action_id"]);
    assert_eq!(env.json(&["verify", &action])["verdict"], "PASS");
    let shown = env.run(&["show", &id]).stdout;
    assert!(shown.contains("state:deploy (7 bytes)"), "{shown}");
    let shown = env.run(&["list"]).stdout;
    assert!(shown.contains("state:deploy (7 bytes)"), "{shown}");
    let diff = env.json(&["diff", &id]);
    assert_eq!(diff["changes"][0]["path"], "state:deploy");
    let told = text(&diff["diff"]);
    assert!(told.starts_with("state:deploy\n@@ "), "{told:?}");
    let plan = env.json(&["rollback", &id, "--dry-run"]);
    assert_eq!(plan["changes"][0]["path"], "state:deploy");
    assert!(!text(&plan["diff"]).contains('\u{1b}'), "{plan}");

    let back = env.json(&["rollback", &id]);
    assert_eq!(back["verification"]["match"], true);
    assert_eq!(back["changes_reverted"][0]["path"], "state:deploy");
    assert_eq!(env.json(&["diff", &id])["changes"], json!([]));
    let run = env.run(&["verify", &action, "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("changed since: state:deploy"),
        "{run:?}"
    );
    env.json(&["redo"]);
    assert_eq!(value(&env, "deploy"), Some(json!({ "v": 2 })));
    env.json(&["undo", &action]);
    assert_eq!(value(&env, "deploy"), Some(json!({ "v": 1 })));
    assert_sound(&env);
}

#[test]
fn st_15_null_is_a_value_and_a_state_that_is_not_covered_is_not_changed() {
    let env = env();
    let given = [
        "--type",
        "state_snapshot",
        "--state",
        "a=1",
        "--state",
        "b=2",
    ];
    let id = checkpoint(&env, &given);
    let reply = mutate(&env, &id, "state:a", &set(Value::Null), &[]).done();
    assert_eq!(reply["previous_state"]["snapshot"], 1);
    assert_eq!(value(&env, "a"), Some(Value::Null));
    let id = checkpoint(&env, &["state:a"]);
    let answer = mutate(&env, &id, "state:b", &set(json!(3)), &[]);
    answer.failed(2, "F501");
    let answer = mutate(&env, &id, "state:unknown", &set(json!(3)), &[]);
    answer.failed(2, "F501");
    assert_eq!(value(&env, "b"), Some(json!(2)));
    damage(&env);
    let answer = mutate(&env, &id, "state:a", &set(json!(3)), &[]);
    answer.failed(2, "F501");
}

#[test]
fn st_15_a_provider_captures_and_restores() {
    let (env, file) = with_provider();
    let id = checkpoint(&env, &["state:app"]);
    fs::write(&file, "{\"replicas\": 5}\n").unwrap();
    let diff = text(&env.json(&["diff", &id])["diff"]);
    assert!(diff.contains("+  \"replicas\": 5"), "{diff}");
    let back = env.json(&["rollback", &id]);
    assert_eq!(back["verification"]["match"], true);
    let read = || fs::read_to_string(&file).unwrap();
    assert_eq!(read(), "{\"replicas\": 1}\n");
    env.json(&["redo"]);
    assert_eq!(read(), "{\"replicas\": 5}\n");

    let id = checkpoint(&env, &["state:app"]);
    let reply = mutate(&env, &id, "state:app", &set(json!({ "replicas": 9 })), &[]).done();
    assert_eq!(read(), "{\"replicas\":9}");
    assert_eq!(reply["previous_state"]["snapshot"]["replicas"], 5);
    let command = text(&reply["rollback_command"]);
    paste(&env, &command);
    assert_eq!(read(), "{\"replicas\": 5}\n");
    // A check that fails brings it back, byte for byte.
    let id = checkpoint(&env, &["state:app"]);
    let line = format!("grep 7 {0} && exit 1", file.display());
    let answer = mutate(&env, &id, "state:app", &set(json!(7)), &["--verify", &line]);
    answer.failed(1, "F513");
    assert_eq!(read(), "{\"replicas\": 5}\n");
    assert_eq!(spent_by(&env, &id), None);
    assert_sound(&env);
}

#[test]
fn st_15_a_provider_that_fails_is_named_and_nothing_else_is_touched() {
    let (env, file) = with_provider();
    let run = env.run(&["checkpoint", "state:broken", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "F517");
    assert_eq!(reply["error"]["location"], "state:broken");
    let message = text(&reply["error"]["message"]);
    assert!(
        message.contains("exit status: 3: no such cluster"),
        "{message}"
    );
    assert_eq!(env.json(&["list"])["checkpoints"], json!([]));

    // One that does not take back what it is given is found out by asking again.
    for key in ["deaf", "careless"] {
        fs::write(&file, "{\"forbidden\": 1}\n").unwrap();
        let id = checkpoint(&env, &[".", &format!("state:{key}")]);
        fs::write(&file, "{\"replicas\": 2}\n").unwrap();
        env.write("project/a.txt", "changed\n");
        let files = Still::of(&env.project());
        let run = env.run(&["rollback", &id, "--json"]);
        assert_eq!(run.code, 1, "{key}: {run:?}");
        assert!(run.stdout.contains("F517"), "{key}: {run:?}");
        assert!(run.stdout.contains("not the one that is there"), "{run:?}");
        files.assert_untouched();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "{\"replicas\": 2}\n",
            "{key}"
        );
        assert_sound(&env);
        // Nor is a change kept that did not arrive.
        let id = checkpoint(&env, &[".", &format!("state:{key}")]);
        let target = format!("state:{key}");
        let change = set(json!({ "forbidden": 2 }));
        mutate(&env, &id, &target, &change, &[]).failed(1, "F517");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "{\"replicas\": 2}\n",
            "{key}"
        );
        assert_eq!(spent_by(&env, &id), None);
        assert_sound(&env);
    }
}

#[test]
fn st_15_files_and_states_go_together() {
    let (env, file) = with_provider();
    let id = checkpoint(&env, &[".", "state:app", "--state", "note=\"before\""]);
    let shown = env.json(&["show", &id]);
    let scope = &shown["checkpoint"]["scope"];
    assert_eq!(scope["state_keys"], json!(["app", "note"]));
    assert_eq!(scope["total_files"], 2);
    let still = Still::of(&env.project());
    let steps = |content: &str| {
        json!([
            { "target": "a.txt", "type": "write", "content": content },
            { "target": "state:app", "type": "state", "value": { "replicas": 3 } },
            { "target": "state:note", "type": "state", "value": "after" },
            { "target": "a.txt", "type": "edit", "changes": [{ "old": "x", "new": "y" }] },
        ])
    };
    let read = || fs::read_to_string(&file).unwrap();
    // The last step shows only when the states have been changed: all of it goes back.
    batch(&env, &id, &steps("none"), &[]).failed(1, "F511");
    still.assert_back();
    assert_eq!(read(), "{\"replicas\": 1}\n");
    assert_eq!(value(&env, "note"), Some(json!("before")));
    let reply = batch(&env, &id, &steps("x"), &[]).done();
    assert_eq!(read(), "{\"replicas\":3}");
    let diff = text(&reply["diff"]["content"]);
    assert!(
        diff.contains("state:app\n") && diff.contains("state:note\n"),
        "{diff}"
    );
    let changed: Vec<&str> = reply["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["path"].as_str().unwrap())
        .collect();
    assert_eq!(changed, ["a.txt", "state:app", "state:note"]);
    env.json(&["rollback", &id]);
    still.assert_back();
    assert_eq!(read(), "{\"replicas\": 1}\n");
    assert_eq!(value(&env, "note"), Some(json!("before")));
    // Or only one of them.
    env.json(&["redo"]);
    env.json(&["rollback", &id, "state:app"]);
    assert_eq!(read(), "{\"replicas\": 1}\n");
    assert_eq!(value(&env, "note"), Some(json!("after")));
    let content = fs::read_to_string(env.project().join("a.txt")).unwrap();
    assert_eq!(content, "y");
    assert_sound(&env);
}

#[test]
fn st_15_what_happened_to_a_state_since_is_not_taken_back_with_a_change_of_files() {
    let (env, file) = with_provider();
    let id = checkpoint(&env, &[".", "state:app"]);
    fs::write(&file, "{\"replicas\": 8}\n").unwrap();
    let write = json!({ "type": "write", "content": "w\n" });
    let more = ["--verify", "false"];
    mutate(&env, &id, "a.txt", &write, &more).failed(1, "F513");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"replicas\": 8}\n");
    let reply = mutate(&env, &id, "a.txt", &write, &[]).done();
    assert_eq!(
        reply["changes"],
        json!([{ "path": "a.txt", "change": "modified" }])
    );
    assert_eq!(reply["diff"]["type"], "unified");
    env.json(&["undo", &text(&reply["action_id"])]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"replicas\": 8}\n");
    // What a command does to one is found.
    let id = checkpoint(&env, &[".", "state:app"]);
    let line = format!("echo 9 > {}", file.display());
    let command = json!({ "type": "command", "argv": ["sh", "-c", line] });
    let reply = mutate(&env, &id, ".", &command, &[]).done();
    assert_eq!(reply["changes"][0]["path"], "state:app");
    env.json(&["undo", &text(&reply["action_id"])]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"replicas\": 8}\n");
}

#[test]
fn st_15_a_state_is_checkpointed_alone_with_the_value_that_is_given() {
    let env = env();
    env.write("project/a.txt", "a\n");
    let given = ["checkpoint", "state:deploy", "--state", "deploy={\"n\":1}"];
    let reply = env.json(&given);
    let scope = &reply["checkpoint"]["scope"];
    assert_eq!(scope["state_keys"], json!(["deploy"]));
    assert_eq!(scope["files"], json!([]));
    // Two values are still one too many.
    let twice = ["checkpoint", "--state", "deploy=1", "--state", "deploy=2"];
    assert_eq!(env.run(&twice).code, 7);
}
