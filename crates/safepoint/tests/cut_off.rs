//! After a kill: what the processes of an action were seen to write is its own, what a person did
//! since is theirs, and whoever writes next records the action first.

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
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use client::{Claude, passes};
use serde_json::{Value, json};
use support::bare;
use testkit::TestEnv;

/// Writes, says so, and waits to be killed.
const LINE: &str = "echo e > e.txt; rm old.txt; touch begun; while :; do sleep 0.05; done";

fn project() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/f.txt", "one\n");
    env.write("project/old.txt", "old\n");
    env
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < until, "{what} never came");
        std::thread::yield_now();
    }
}

/// What is said of a process: its name, its state, and its parent.
fn stat(process: u32) -> Option<(String, String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.to_owned();
    Some((name.to_owned(), state, words.next()?.parse().ok()?))
}

/// All that descend from a process, itself included.
fn tree(top: u32) -> Vec<u32> {
    let all: Vec<u32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|it| it.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let mut tree = vec![top];
    let mut place = 0;
    while let Some(above) = tree.get(place).copied() {
        let children = all
            .iter()
            .filter(|it| stat(**it).is_some_and(|it| it.2 == above));
        tree.extend(children);
        place += 1;
    }
    tree
}

/// Kills every `safepoint` of a tree, once the line has begun, and then the rest of it.
fn kill(env: &TestEnv, mut child: Child) {
    wait_for("the line", || env.project().join("begun").exists());
    let all = tree(child.id());
    let (ours, rest): (Vec<u32>, Vec<u32>) = all
        .into_iter()
        .partition(|it| stat(*it).is_some_and(|it| it.0 == "safepoint"));
    assert!(!ours.is_empty());
    for process in ours.iter().chain(&rest) {
        Command::new("kill")
            .args(["-9", &process.to_string()])
            .output()
            .unwrap();
    }
    child.wait().unwrap();
    let is_gone = |it: &u32| stat(*it).is_none_or(|it| it.1 == "Z");
    wait_for("the end", || ours.iter().chain(&rest).all(is_gone));
}

fn spawn(mut command: Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A command that was killed, and what a person did since.
fn killed() -> TestEnv {
    let env = project();
    let words = ["exec", "--no-tui", "--", "bash", "-c", LINE];
    kill(&env, spawn(env.command(&words)));
    work_of_a_person(&env);
    env
}

fn work_of_a_person(env: &TestEnv) {
    env.write("project/essay.md", "essay\n");
    env.write("project/f.txt", "one\nmine\n");
}

fn log(env: &TestEnv) -> Vec<Value> {
    env.json(&["log"])["actions"].as_array().unwrap().clone()
}

/// The paths of all actions that ended so.
fn paths(env: &TestEnv, outcome: &str) -> Vec<String> {
    let all = log(env);
    let found = all.iter().filter(|it| it["outcome"] == outcome);
    let changes = found.flat_map(|it| it["changes"].as_array().unwrap());
    let mut paths: Vec<String> = changes.map(|it| support::text(&it["path"])).collect();
    paths.sort();
    paths
}

/// The work of the person is there, and that of the action is not.
#[track_caller]
fn assert_taken_back(env: &TestEnv) {
    let read = |name: &str| fs::read_to_string(env.project().join(name));
    assert_eq!(read("essay.md").unwrap(), "essay\n");
    assert_eq!(read("f.txt").unwrap(), "one\nmine\n");
    assert_eq!(read("old.txt").unwrap(), "old\n");
    assert!(read("e.txt").is_err());
}

const ITS: [&str; 3] = ["begun", "e.txt", "old.txt"];
const MINE: [&str; 2] = ["essay.md", "f.txt"];

#[test]
fn fe_33_what_a_person_does_after_a_killed_command_is_theirs() {
    let env = killed();
    let undone = env.json(&["undo"]);
    assert_taken_back(&env);
    assert_eq!(undone["verification"]["match"], true, "{undone}");
    assert_eq!(paths(&env, "unknown"), ITS);
    assert_eq!(paths(&env, "observed"), MINE);
    let kept = fs::read_dir(env.home().join("state/writes"));
    assert_eq!(kept.unwrap().count(), 0);
}

#[test]
fn fe_33_what_a_person_does_after_a_killed_line_of_a_client_is_theirs() {
    for is_told in [true, false] {
        let env = project();
        let claude = Claude::new(&env);
        let line = passes(&claude.asks("t-1", LINE)).unwrap();
        let mut shell = Command::new("bash");
        shell.args(["-c", &line]).current_dir(env.project());
        for (name, value) in env.command(&[]).get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        kill(&env, spawn(shell));
        work_of_a_person(&env);
        if is_told {
            passes(&claude.after("t-1", "Bash", json!({"command": LINE})));
        }
        claude.does("t-2", "echo next > next.txt");
        assert_eq!(paths(&env, "unknown"), ITS, "{is_told}");
        assert_eq!(paths(&env, "observed"), MINE, "{is_told}");
        env.json(&["undo"]);
        env.json(&["undo"]);
        assert_taken_back(&env);
    }
}

#[test]
fn fe_33_what_a_person_does_after_a_killed_change_is_theirs() {
    let env = project();
    let id = support::text(&env.json(&["checkpoint"])["checkpoint"]["id"]);
    let operation = json!({"type": "command", "argv": ["bash", "-c", LINE]}).to_string();
    let words = [
        "mutate",
        ".",
        "--checkpoint",
        &id,
        "--operation",
        &operation,
    ];
    kill(&env, spawn(env.command(&words)));
    work_of_a_person(&env);
    env.json(&["undo"]);
    assert_taken_back(&env);
    assert_eq!(paths(&env, "unknown"), ITS);
    assert_eq!(paths(&env, "observed"), MINE);
}

#[test]
fn fe_33_a_killed_command_of_which_nothing_is_kept_changed_nothing() {
    let env = killed();
    fs::remove_dir_all(env.home().join("state/writes")).unwrap();
    let run = env.run(&["undo"]);
    assert_ne!(run.code, 0, "{run:?}");
    assert!(env.project().join("e.txt").exists());
    assert!(paths(&env, "unknown").is_empty());
    let mut all = [ITS.as_slice(), &MINE].concat();
    all.sort_unstable();
    assert_eq!(paths(&env, "observed"), all);
}

#[test]
fn au_24_whatever_may_write_first_records_what_was_cut_off() {
    let append = r#"{"type": "append", "content": "more"}"#;
    let writing: [&[&str]; 6] = [
        &["redo"],
        &["checkpoint"],
        &[
            "mutate",
            "f.txt",
            "--auto-checkpoint",
            "--operation",
            append,
        ],
        &["exec", "--no-tui", "--", "true"],
        &["rollback", "CHECKPOINT"],
        &["gc"],
    ];
    for words in writing {
        let env = killed();
        let listed = env.json(&["list", "--automatic"]);
        let first = support::text(&listed["checkpoints"][0]["id"]);
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "CHECKPOINT" { &first } else { *word })
            .collect();
        let run = env.run(&words);
        assert!(run.stderr.contains("was cut off"), "{words:?}: {run:?}");
        assert_eq!(paths(&env, "unknown"), ITS, "{words:?}: {run:?}");
    }
}

#[test]
fn au_24_whatever_only_reads_says_what_was_cut_off() {
    let env = killed();
    let reading: [&[&str]; 6] = [
        &["list"],
        &["log"],
        &["status"],
        &["audit"],
        &["du"],
        &["hold", "list"],
    ];
    for words in reading {
        for mode in [&[][..], &["--json"]] {
            let words = [words, mode].concat();
            let run = env.run(&words);
            assert!(run.stderr.contains("was cut off"), "{words:?}: {run:?}");
            let quiet = env.run(&[words.as_slice(), &["--quiet"]].concat());
            assert_eq!(quiet.stderr, "", "{words:?}");
        }
    }
    assert!(paths(&env, "unknown").is_empty());
    env.json(&["checkpoint"]);
    let run = env.run(&["list", "--json"]);
    assert_eq!(run.stderr, "");
}
