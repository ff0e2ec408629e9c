//! Whose a change is, is observed: an action's changes are what its own processes wrote, or what
//! a client's own file tool names. What a person does beside it is theirs, and stays.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Claude, passes};
use serde_json::{Value, json};
use support::bare;
use testkit::TestEnv;

/// Waits for `go`, writes `made`, and ends.
const SLOW: &str = r#"
import os
open("begun", "w").close()
while not os.path.exists("go"): pass
open("made", "w").write("by the test")
"#;

/// Goes on until `stop` is there. What it prints is its log.
const SERVER: &str = r#"
import os, sys
print("up", flush=True)
open("up", "w").close()
while not os.path.exists("stop"):
    if os.path.exists("request") and not os.path.exists("reply"):
        open("reply", "w").write("late")
        print("served", flush=True)
"#;

fn project() -> TestEnv {
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
fn git(env: &TestEnv, words: &[&str]) -> String {
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
fn start(claude: &Claude<'_>, id: &str, line: &str, background: bool) -> Child {
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

fn end(claude: &Claude<'_>, id: &str, line: &str, mut child: Child) {
    assert!(child.wait().unwrap().success(), "{line}");
    passes(&claude.after(id, "Bash", json!({"command": line})));
}

#[track_caller]
fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::yield_now();
    }
}

fn wait_for_file(path: &Path) {
    wait_for(&path.display().to_string(), || path.exists());
}

fn log(env: &TestEnv) -> Vec<Value> {
    env.json(&["log"])["actions"].as_array().unwrap().clone()
}

/// The one action whose summary has this in it, with the paths that it changed.
#[track_caller]
fn action(env: &TestEnv, has: &str) -> (String, Vec<String>) {
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

fn paths(action: &Value) -> Vec<String> {
    let changes = action["changes"].as_array().unwrap().iter();
    let mut paths: Vec<String> = changes.map(|it| support::text(&it["path"])).collect();
    paths.sort();
    paths
}

/// What nobody told of.
fn observed(env: &TestEnv) -> Vec<String> {
    let all = log(env);
    let observed = all.iter().filter(|it| it["outcome"] == "observed");
    let mut paths: Vec<String> = observed.flat_map(paths).collect();
    paths.sort();
    paths
}

#[test]
fn fe_33_what_a_person_saves_while_a_test_runs_is_theirs() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 slow.py";
    let child = start(&claude, "t-1", line, false);
    wait_for_file(&env.project().join("begun"));
    env.write("project/essay.md", "mine");
    env.write("project/src/app.py", "mine too\n");
    env.write("project/go", "");
    end(&claude, "t-1", line, child);
    let (slow, changed) = action(&env, "slow.py");
    assert_eq!(changed, ["begun", "made"]);
    assert_eq!(observed(&env), ["essay.md", "go", "src/app.py"]);
    env.json(&["undo", &slow]);
    assert!(!env.project().join("made").exists());
    let read = |path: &str| fs::read_to_string(env.project().join(path)).unwrap();
    assert_eq!(read("essay.md"), "mine");
    assert_eq!(read("src/app.py"), "mine too\n");
    env.json(&["redo"]);
    assert_eq!(read("made"), "by the test");
    assert_eq!(read("essay.md"), "mine");
}

#[test]
fn fe_33_undo_without_a_name_takes_the_agents_action_and_not_the_persons_file() {
    let env = project();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", "python3 slow.py", false);
    wait_for_file(&env.project().join("begun"));
    env.write("project/essay.md", "mine");
    env.write("project/go", "");
    end(&claude, "t-1", "python3 slow.py", child);
    env.json(&["undo"]);
    assert!(!env.project().join("made").exists());
    assert!(env.project().join("essay.md").exists());
}

#[test]
fn fe_33_a_commit_by_hand_while_a_server_runs_is_the_persons() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log";
    let child = start(&claude, "t-1", line, true);
    wait_for_file(&env.project().join("up"));
    env.write("project/essay.md", "mine");
    git(&env, &["add", "essay.md"]);
    git(&env, &["commit", "-q", "-m", "by hand"]);
    git(&env, &["tag", "mine"]);
    let head = git(&env, &["rev-parse", "HEAD"]);
    env.write("project/stop", "");
    end(&claude, "t-1", line, child);
    let (server, changed) = action(&env, "server.py");
    assert_eq!(changed, ["server.log", "up"]);
    env.json(&["undo", &server]);
    assert!(!env.project().join("server.log").exists());
    assert_eq!(git(&env, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&env, &["tag"]), "mine");
    assert!(env.project().join("essay.md").exists());
    assert_eq!(
        git(&env, &["status", "--porcelain", "--", "essay.md", "src"]),
        ""
    );
}

#[test]
fn fe_33_commits_of_other_calls_are_not_the_servers() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log";
    let child = start(&claude, "t-1", line, true);
    wait_for_file(&env.project().join("up"));
    claude.does(
        "t-2",
        "echo x > new.txt && git add new.txt && git commit -q -m agents",
    );
    claude.does("t-3", "git tag agents");
    let head = git(&env, &["rev-parse", "HEAD"]);
    env.write("project/stop", "");
    end(&claude, "t-1", line, child);
    let (server, changed) = action(&env, "server.py");
    assert_eq!(changed, ["server.log", "up"]);
    let (tag, changed) = action(&env, "git tag");
    assert_eq!(changed, [".git/refs/tags/agents"]);
    env.json(&["undo", &server]);
    assert_eq!(git(&env, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&env, &["tag"]), "agents");
    // A control: those are taken back by their own names.
    env.json(&["undo", &tag]);
    assert_eq!(git(&env, &["tag"]), "");
}

#[test]
fn fe_33_a_file_tool_changes_what_it_names_and_nothing_of_another_client() {
    let env = project();
    let one = Claude::new(&env);
    let other = Claude {
        session: "s-2",
        ..Claude::new(&env)
    };
    let input = |name: &str| json!({"file_path": env.project().join(name), "content": name});
    passes(&one.before("t-1", "Write", input("a7.txt")));
    passes(&other.before("u-1", "Write", input("b8.txt")));
    env.write("project/b8.txt", "b8.txt");
    passes(&other.after("u-1", "Write", input("b8.txt")));
    env.write("project/essay.md", "mine");
    env.write("project/a7.txt", "a7.txt");
    passes(&one.after("t-1", "Write", input("a7.txt")));
    assert_eq!(action(&env, "a7.txt").1, ["a7.txt"]);
    assert_eq!(action(&env, "b8.txt").1, ["b8.txt"]);
    // Alone, too, it has nothing of a person's.
    passes(&one.before("t-2", "Write", input("c9.txt")));
    env.write("project/other.md", "mine");
    env.write("project/c9.txt", "c9.txt");
    passes(&one.after("t-2", "Write", input("c9.txt")));
    let (id, changed) = action(&env, "c9.txt");
    assert_eq!(changed, ["c9.txt"]);
    env.json(&["undo", &id]);
    assert!(env.project().join("other.md").exists() && env.project().join("essay.md").exists());
}

#[test]
fn fe_33_what_a_server_writes_after_its_line_has_ended_is_its_own() {
    let env = project();
    let claude = Claude::new(&env);
    let line = "python3 server.py > server.log 2>&1 & while [ ! -e up ]; do :; done";
    let child = start(&claude, "t-1", line, false);
    wait_for_file(&env.project().join("up"));
    end(&claude, "t-1", line, child);
    env.write("project/request", "a person asks");
    wait_for_file(&env.project().join("reply"));
    env.write("project/essay.md", "mine");
    // The next look takes nothing of it for the person's.
    claude.writes("t-2", "b.txt", "b");
    assert_eq!(observed(&env), ["essay.md", "request"]);
    env.write("project/stop", "");
    let is_recorded = || {
        let all = log(&env);
        all.iter()
            .any(|it| it["summary"].as_str().unwrap().contains("left running by"))
    };
    wait_for("the record of the server", is_recorded);
    let (late, changed) = action(&env, "left running by");
    assert_eq!(changed, ["reply", "server.log"]);
    env.json(&["undo", &late]);
    assert!(!env.project().join("reply").exists());
    for kept in ["essay.md", "request", "b.txt", "stop"] {
        assert!(env.project().join(kept).exists(), "{kept}");
    }
    env.json(&["redo"]);
    assert!(env.project().join("reply").exists());
}
