//! A project in which some things wait for a person, and the operator who decides.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::TestEnv;

/// A gate with a question before one action.
pub(crate) const ASKS: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.asks"
version: "1.0.0"
name: "Asks"
description: "One action is asked about"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["ticket.*", "file.*"]
checkpoints:
  - checkpoint_id: "sure"
    name: "Sure"
    trigger: {type: action_pre, patterns: ["*.delete"]}
    mode: blocking
    questions:
      - {question_id: "agree", question: "Are you sure?", response_type: boolean, required: true}
"#;

/// Writing, and programs of the project's own, wait for a person; deleting is not allowed.
/// All of it could be undone, so one confirmation is enough.
pub(crate) const HELD: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.held"
version: "1.0.0"
name: "Held"
description: "Some things wait for a person"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "process.*", "shell.*", "git.*", "net.*", "agent.*", "safepoint.*"]
policies:
  - policy_id: "writes"
    type: requires_approval
    actions: ["file.write", "process.exec", "shell.opaque"]
    reason: "Somebody looks at what is written"
  - policy_id: "deletions"
    type: deny
    actions: ["file.delete"]
    reason: "Nothing is deleted here"
"#;

/// Refunds wait for a person, deleting is asked about, and the rest is free.
pub(crate) const REFUNDS: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.refunds"
version: "1.0.0"
name: "Refunds"
description: "Actions that somebody else carries out"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["refund.*", "ticket.*", "file.*", "process.*"]
checkpoints:
  - checkpoint_id: "sure"
    name: "Sure"
    trigger: {type: action_pre, patterns: ["*.delete"]}
    mode: blocking
    questions:
      - {question_id: "agree", question: "Are you sure?", response_type: boolean, required: true}
policies:
  - policy_id: "refunds"
    type: requires_approval
    actions: ["refund.*"]
    reason: "A person looks at refunds"
  - policy_id: "closed"
    type: deny
    actions: ["ticket.purge"]
    reason: "Nothing is purged"
"#;

/// Every rule is silent: what is asked is asked by the boundaries themselves.
pub(crate) const OPEN: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.open"
version: "1.0.0"
name: "Open"
description: "No rule says anything"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "process.*", "shell.*", "git.*", "net.*", "agent.*", "secret.*", "safepoint.*"]
"#;

pub(crate) fn bare() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

/// A project under this atlas, with a file `a` and an operator.
pub(crate) fn project(atlas: &str) -> TestEnv {
    let env = bare();
    env.write("project/atlas.yaml", atlas);
    env.write("project/safepoint.yaml", "atlases: [atlas.yaml]\n");
    env.write("project/a", "content of a\n");
    add(&env, "ann");
    env
}

/// The same under [`HELD`].
pub(crate) fn held() -> TestEnv {
    project(HELD)
}

/// Makes an operator whose key lies here.
#[track_caller]
pub(crate) fn add(env: &TestEnv, name: &str) -> Value {
    env.json(&["operator", "add", name])
}

/// What a command printed as JSON, and its exit code.
#[track_caller]
pub(crate) fn run(env: &TestEnv, arguments: &[&str]) -> (i32, Value) {
    reply_of(&mut env.command(&[&["--json"], arguments].concat()))
}

/// The same of a command that is made ready.
#[track_caller]
pub(crate) fn reply_of(command: &mut Command) -> (i32, Value) {
    let output = command.output().unwrap();
    let code = output.status.code().unwrap_or(-1);
    let reply = serde_json::from_slice(&output.stdout);
    (
        code,
        reply.unwrap_or_else(|error| panic!("{error}: {output:?}")),
    )
}

/// `safepoint exec` without a terminal, not yet started.
pub(crate) fn exec_command(env: &TestEnv, flags: &[&str], words: &[&str]) -> Command {
    env.command(&[&["exec", "--no-tui", "--json"], flags, &["--"], words].concat())
}

#[track_caller]
pub(crate) fn exec(env: &TestEnv, words: &[&str]) -> (i32, Value) {
    exec_with(env, &[], words)
}

#[track_caller]
pub(crate) fn exec_with(env: &TestEnv, flags: &[&str], words: &[&str]) -> (i32, Value) {
    reply_of(&mut exec_command(env, flags, words))
}

/// It ran, and went well.
#[track_caller]
pub(crate) fn runs(env: &TestEnv, words: &[&str]) -> Value {
    runs_with(env, &[], words)
}

#[track_caller]
pub(crate) fn runs_with(env: &TestEnv, flags: &[&str], words: &[&str]) -> Value {
    let (code, reply) = exec_with(env, flags, words);
    assert_eq!(code, 0, "{words:?}: {reply:#}");
    assert_eq!(reply["outcome"], "ok", "{words:?}: {reply:#}");
    reply
}

/// It was denied, for this reason.
#[track_caller]
pub(crate) fn denied(env: &TestEnv, words: &[&str], code: &str) -> Value {
    denied_with(env, &[], words, code)
}

#[track_caller]
pub(crate) fn denied_with(env: &TestEnv, flags: &[&str], words: &[&str], code: &str) -> Value {
    let (exit, reply) = exec_with(env, flags, words);
    is_denied(exit, &reply, code)
}

/// The denial, which must be this one.
#[track_caller]
pub(crate) fn is_denied(exit: i32, reply: &Value, code: &str) -> Value {
    let denial = reply["denial"].clone();
    assert_eq!(denial["code"], code, "exit {exit}: {reply:#}");
    assert_eq!(exit, 2, "{reply:#}");
    assert!(!text(&denial["reason"]).is_empty(), "{denial:#}");
    denial
}

/// The hold that a command makes.
#[track_caller]
pub(crate) fn hold_of(env: &TestEnv, words: &[&str]) -> String {
    hold_with(env, &[], words)
}

#[track_caller]
pub(crate) fn hold_with(env: &TestEnv, flags: &[&str], words: &[&str]) -> String {
    text(&denied_with(env, flags, words, "APPROVAL_REQUIRED")["hold_id"])
}

#[track_caller]
pub(crate) fn show(env: &TestEnv, hold: &str) -> Value {
    env.json(&["hold", "show", hold])
}

/// The arguments of a yes to what `hold show` displays now.
#[track_caller]
pub(crate) fn yes_to(env: &TestEnv, hold: &str, more: &[&str]) -> Vec<String> {
    let shown = show(env, hold);
    let mut words: Vec<String> = ["--json", "hold", "approve", hold, "--fingerprint"]
        .map(str::to_owned)
        .into();
    words.push(text(&shown["fingerprint"]));
    if let Some(word) = shown["confirm"].as_str() {
        words.extend(["--confirm".to_owned(), word.to_owned()]);
    }
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

/// Says yes, as a person would who has looked at it.
#[track_caller]
pub(crate) fn approve(env: &TestEnv, hold: &str) -> Value {
    approve_with(env, hold, &[])
}

#[track_caller]
pub(crate) fn approve_with(env: &TestEnv, hold: &str, more: &[&str]) -> Value {
    let (code, reply) = try_approve(env, hold, more);
    assert_eq!(code, 0, "{reply:#}");
    reply
}

#[track_caller]
pub(crate) fn try_approve(env: &TestEnv, hold: &str, more: &[&str]) -> (i32, Value) {
    let words = yes_to(env, hold, more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    reply_of(&mut env.command(&words))
}

/// Asks and says yes; the permit that follows.
#[track_caller]
pub(crate) fn permitted(env: &TestEnv, words: &[&str]) -> String {
    permitted_with(env, &[], words)
}

#[track_caller]
pub(crate) fn permitted_with(env: &TestEnv, flags: &[&str], words: &[&str]) -> String {
    let hold = hold_with(env, flags, words);
    text(&approve(env, &hold)["permit"]["permit_id"])
}

/// Where a permit stands, and how what it was for ended.
#[track_caller]
pub(crate) fn permit_state(env: &TestEnv, permit: &str) -> (String, Option<String>) {
    let permit = env.json(&["permit", "show", permit]);
    let outcome = permit["state"]["outcome"].as_str().map(str::to_owned);
    (text(&permit["state"]["is"]), outcome)
}

/// What waits, the oldest first.
#[track_caller]
pub(crate) fn waiting(env: &TestEnv) -> Vec<Value> {
    let list = env.json(&["hold", "list"]);
    list["holds"].as_array().unwrap().clone()
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no text: {value}"),
    }
}

/// The entries of the whole trail of this kind.
#[track_caller]
pub(crate) fn entries(env: &TestEnv, kind: &str) -> Vec<Value> {
    let list = env.json(&["trail", "list", "--kind", kind]);
    list["entries"].as_array().unwrap().clone()
}

/// The trail is whole.
#[track_caller]
pub(crate) fn assert_sound(env: &TestEnv) {
    let run = env.run(&["trail", "verify"]);
    assert_eq!(run.code, 0, "{run:?}");
}

/// How many lines a file of the project has; none if there is no file.
pub(crate) fn lines(env: &TestEnv, path: &str) -> usize {
    let text = fs::read_to_string(env.project().join(path)).unwrap_or_default();
    text.lines().count()
}

/// Writes a program into the project.
pub(crate) fn program(env: &TestEnv, path: &str, content: &[u8]) {
    let path = env.project().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    // Another file each time: one that runs cannot be written to.
    let _ = fs::remove_file(&path);
    fs::write(&path, content).unwrap();
    executable(&path);
}

pub(crate) fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A count that a campaign makes larger.
pub(crate) fn rounds(usual: usize) -> usize {
    let wanted = std::env::var("SAFEPOINT_PASSAGE_ROUNDS").ok();
    wanted.map_or(usual, |count| count.parse().unwrap())
}
