//! A run with its coordinator, and agents below it.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use serde_json::{Value, json};
use testkit::{Run, TestEnv};

/// A workspace and the token of its agent.
pub(crate) struct Agent {
    pub(crate) id: String,
    pub(crate) token: String,
}

pub(crate) fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no text: {value}"),
    }
}

#[track_caller]
pub(crate) fn create(env: &TestEnv, arguments: &[&str]) -> Agent {
    let made = env.json(&[&["workspace", "create"], arguments].concat());
    Agent {
        id: text(&made["workspace_id"]),
        token: text(&made["token"]),
    }
}

#[track_caller]
pub(crate) fn root(env: &TestEnv) -> Agent {
    create(env, &["--role", "coordinator", "--directive", "lead"])
}

#[track_caller]
pub(crate) fn below(env: &TestEnv, parent: &Agent, role: &str) -> Agent {
    let place = ["--parent", &parent.id, "--role", role];
    create(env, &[&place[..], &["--directive", "work"]].concat())
}

/// A checkpoint that builds upon `parent`.
pub(crate) fn body(intent: &str, parent: &Value, status: &str) -> Value {
    json!({
        "type": "artifact",
        "payload": {"files_changed": ["src/a.rs"], "content": "SECRET-PAYLOAD", "artifacts": []},
        "intent": intent,
        "parent": parent,
        "status": status,
        "confidence": "medium",
    })
}

/// Asks for a checkpoint, and says what came of it.
#[track_caller]
pub(crate) fn ask(env: &TestEnv, agent: &Agent, body: &Value) -> (i32, Value) {
    let body = body.to_string();
    run(
        env,
        &[
            "workspace",
            "checkpoint",
            &agent.id,
            "--token",
            &agent.token,
            "--body",
            &body,
        ],
    )
}

/// Makes a checkpoint, and gives its id.
#[track_caller]
pub(crate) fn record(
    env: &TestEnv,
    agent: &Agent,
    intent: &str,
    parent: &Value,
    status: &str,
) -> Value {
    let (code, reply) = ask(env, agent, &body(intent, parent, status));
    assert_eq!(code, 0, "{reply}");
    reply["checkpoint"]["id"].clone()
}

/// What a command printed as JSON, and its exit code.
#[track_caller]
pub(crate) fn run(env: &TestEnv, arguments: &[&str]) -> (i32, Value) {
    let run = env.run(&[&["--json"], arguments].concat());
    (run.code, parsed(&run))
}

#[track_caller]
pub(crate) fn parsed(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

/// The entries of one workspace: their kinds, in order.
#[track_caller]
pub(crate) fn kinds(env: &TestEnv, id: &str) -> Vec<String> {
    let page = env.json(&["trail", "list", "--workspace", id]);
    let entries = page["entries"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| text(&entry["kind"])).collect()
}
