//! A project with an atlas, and a session under it.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use serde_json::Value;
use testkit::TestEnv;

/// The support desk of the specification, whose steward nobody can reach from a test.
pub(crate) fn acme() -> String {
    include_str!("../../../../examples/acme-support.yaml").replace("//acme.com/", "//acme.invalid/")
}

pub(crate) fn env() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/atlas.yaml", &acme());
    env
}

/// What a command printed as JSON, and its exit code.
#[track_caller]
pub(crate) fn run(env: &TestEnv, arguments: &[&str]) -> (i32, Value) {
    let run = env.run(&[&["--json"], arguments].concat());
    let reply = serde_json::from_str(&run.stdout);
    (
        run.code,
        reply.unwrap_or_else(|error| panic!("{error}: {run:?}")),
    )
}

/// A session under `atlas.yaml`.
#[track_caller]
pub(crate) fn start(env: &TestEnv) -> String {
    let (code, reply) = run(env, &["session", "start", "--atlas", "atlas.yaml"]);
    assert_eq!(code, 0, "{reply}");
    text(&reply["session_id"])
}

/// A session in which the terms are agreed to.
#[track_caller]
pub(crate) fn open(env: &TestEnv) -> String {
    let session = start(env);
    let (code, reply) = answer(env, &session, "onboarding", r#"{"agree-terms": true}"#);
    assert_eq!(code, 0, "{reply}");
    session
}

#[track_caller]
pub(crate) fn request(env: &TestEnv, session: &str, rest: &[&str]) -> (i32, Value) {
    run(env, &[&["session", "request", session], rest].concat())
}

#[track_caller]
pub(crate) fn answer(env: &TestEnv, session: &str, gate: &str, answers: &str) -> (i32, Value) {
    run(
        env,
        &["session", "answer", session, gate, "--answers", answers],
    )
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no text: {value}"),
    }
}

/// The entries of a session: their kinds, in order.
#[track_caller]
pub(crate) fn kinds(env: &TestEnv, session: &str) -> Vec<String> {
    entries(env, session)
        .iter()
        .map(|entry| text(&entry["kind"]))
        .collect()
}

#[track_caller]
pub(crate) fn entries(env: &TestEnv, session: &str) -> Vec<Value> {
    let (code, page) = run(env, &["trail", "list", "--session", session]);
    assert_eq!(code, 0, "{page}");
    let entries = page["entries"].as_array().cloned().unwrap_or_default();
    // Each step ends with what the session is from then on.
    entries
        .into_iter()
        .filter(|entry| entry["kind"] != "SessionState")
        .collect()
}
