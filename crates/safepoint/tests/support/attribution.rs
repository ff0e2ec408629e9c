//! A project in which an agent and a person work at the same time.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::TestEnv;

use crate::client::{Claude, passes};
use crate::support::{self, bare};

/// Waits for `go`, writes `made`, and ends.
pub(crate) const SLOW: &str = r#"
import os
open("begun", "w").close()
while not os.path.exists("go"): pass
open("made", "w").write("by the test")
"#;

/// Goes on until `stop` is there. What it prints is its log.
pub(crate) const SERVER: &str = r#"
import os, sys
print("up", flush=True)
open("up", "w").close()
while not os.path.exists("stop"):
    if os.path.exists("request") and not os.path.exists("reply"):
        open("reply", "w").write("late")
        print("served", flush=True)
"#;

pub(crate) fn project() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\ntwo\n");
    env.write("project/slow.py", SLOW);
    env.write("project/server.py", SERVER);
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["config", "user.email", "ann@example.org"]);
    git(&env, &["config", "user.name", "Ann"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-q", "-m", "first"]);
    env
}

/// What a person does with git, outside every fence.
pub(crate) fn git(env: &TestEnv, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(words)
        .current_dir(env.project())
        .env("HOME", env.root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a line as its client would after the hook.
pub(crate) fn start(claude: &Claude<'_>, id: &str, line: &str, background: bool) -> Child {
    let input = json!({"command": line, "run_in_background": background});
    let line = passes(&claude.before(id, "Bash", input)).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-c", &line])
        .current_dir(claude.env.project());
    for (name, value) in claude.env.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

pub(crate) fn end(claude: &Claude<'_>, id: &str, line: &str, mut child: Child) {
    assert!(child.wait().unwrap().success(), "{line}");
    passes(&claude.after(id, "Bash", json!({"command": line})));
}

#[track_caller]
pub(crate) fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::yield_now();
    }
}

pub(crate) fn wait_for_file(path: &Path) {
    wait_for(&path.display().to_string(), || path.exists());
}

pub(crate) fn log(env: &TestEnv) -> Vec<Value> {
    env.json(&["log"])["actions"].as_array().unwrap().clone()
}

/// The one action whose summary has this in it, with the paths that it changed.
#[track_caller]
pub(crate) fn action(env: &TestEnv, has: &str) -> (String, Vec<String>) {
    let all = log(env);
    let found: Vec<&Value> = all
        .iter()
        .filter(|it| it["summary"].as_str().unwrap().contains(has))
        .collect();
    let [found] = found.as_slice() else {
        panic!("not one `{has}`: {all:#?}");
    };
    (support::text(&found["action_id"]), paths(found))
}

pub(crate) fn paths(action: &Value) -> Vec<String> {
    let changes = action["changes"].as_array().unwrap().iter();
    let mut paths: Vec<String> = changes.map(|it| support::text(&it["path"])).collect();
    paths.sort();
    paths
}

/// What nobody told of.
pub(crate) fn observed(env: &TestEnv) -> Vec<String> {
    let all = log(env);
    let observed = all.iter().filter(|it| it["outcome"] == "observed");
    let mut paths: Vec<String> = observed.flat_map(paths).collect();
    paths.sort();
    paths
}
