//! Each change between two looks is told once, by whoever made it, whatever overlaps: a person, lines,
//! servers that are left running, file tools, an agent. And `undo` takes nobody else's work.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/attribution.rs"]
mod attribution_scene;
#[path = "support/client.rs"]
mod client;
#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use attribution_scene::{
    action, end, log, observed, paths, project, start, wait_for, wait_for_file,
};
use client::{Claude, passes};
use serde_json::{Value, json};
use testkit::TestEnv;

/// Does what the files `1`, `2` and `3` say, as soon as they are there, and says so.
const STEPS: &str = r#"
import os, subprocess, sys
open("up", "w").close()
for number in sys.argv[1:]:
    while not os.path.exists(f"../scratch/{number}"): pass
    subprocess.run(["sh", "-c", open(f"../scratch/{number}").read()], check=True)
    open(f"done{number}", "w").close()
"#;

const LINE: &str = "python3 steps.py 1 2";

fn scene() -> TestEnv {
    let env = project();
    env.write("project/steps.py", STEPS);
    env.write("project/shared.txt", "one\ntwo\nthree\nfour\nfive\n");
    fs::create_dir_all(env.root().join("scratch")).unwrap();
    env.json(&["checkpoint"]);
    env
}

/// Has the program that is under way do something, and waits until it is done.
fn step(env: &TestEnv, number: &str, line: &str) {
    env.write("scratch/.next", line);
    let scratch = env.root().join("scratch");
    fs::rename(scratch.join(".next"), scratch.join(number)).unwrap();
    wait_for_file(&env.project().join(format!("done{number}")));
}

fn text(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.project().join(name)).unwrap()
}

/// How many actions tell of a path.
fn times_told(env: &TestEnv, path: &str) -> usize {
    let tells = |action: &&Value| paths(action).iter().any(|it| it == path);
    log(env).iter().filter(tells).count()
}

#[test]
fn fe_33_what_a_person_saves_right_after_any_look_is_told_once() {
    let mut env = scene();
    let saved = env.project().join("saved");
    fs::create_dir(&saved).unwrap();
    env.set(
        "SAFEPOINT_SAVE",
        &format!("action.looked:{}", saved.display()),
    );
    let claude = Claude::new(&env);
    // One that ends, and a server that writes when its line has ended.
    claude.does("t-1", "echo a > a.txt");
    let line = "python3 server.py > server.log 2>&1 & while [ ! -e up ]; do :; done";
    let server = start(&claude, "t-2", line, false);
    wait_for_file(&env.project().join("up"));
    end(&claude, "t-2", line, server);
    env.write("project/request", "");
    wait_for_file(&env.project().join("reply"));
    claude.does("t-3", "echo b > b.txt");
    env.write("project/stop", "");
    wait_for("the record of the server", || {
        let is_late = |it: &Value| support::text(&it["summary"]).contains("left running by");
        log(&env).iter().any(is_late)
    });
    claude.writes("t-4", "c.txt", "c");
    env.json(&["checkpoint"]);
    let files: Vec<PathBuf> = fs::read_dir(&saved)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let name = format!("saved/{}", file.file_name().unwrap().display());
        assert_eq!(times_told(&env, &name), 1, "{name}: {:#?}", log(&env));
        assert!(observed(&env).contains(&name), "{name}");
    }
}

#[test]
fn fe_33_a_checkpoint_that_a_person_makes_tells_nothing_of_a_line_that_runs() {
    let env = scene();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", LINE, false);
    wait_for_file(&env.project().join("up"));
    env.write("project/essay.md", "mine");
    env.json(&["checkpoint"]);
    // The person's is told at once, and the line's with its end.
    assert_eq!(observed(&env), ["essay.md"]);
    step(&env, "1", "echo a > a.txt");
    env.json(&["checkpoint"]);
    step(&env, "2", "true");
    end(&claude, "t-1", LINE, child);
    assert_eq!(
        action(&env, "steps.py").1,
        ["a.txt", "done1", "done2", "up"]
    );
    assert_eq!(observed(&env), ["essay.md"]);
}

#[test]
fn fe_33_a_file_that_a_person_edits_after_an_action_is_told_of_both() {
    let env = scene();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", LINE, true);
    wait_for_file(&env.project().join("up"));
    claude.does("t-2", "echo agent >> shared.txt");
    env.write(
        "project/shared.txt",
        &format!("person\n{}", text(&env, "shared.txt")),
    );
    step(&env, "1", "true");
    step(&env, "2", "true");
    end(&claude, "t-1", LINE, child);
    assert_eq!(times_told(&env, "shared.txt"), 2);
    assert_eq!(observed(&env), ["shared.txt"]);
    let (edit, _) = action(&env, "echo agent");
    env.json(&["undo", &edit]);
    assert_eq!(
        text(&env, "shared.txt"),
        "person\none\ntwo\nthree\nfour\nfive\n"
    );
}

#[test]
fn fe_33_what_a_person_wrote_before_the_action_in_the_same_file_stays() {
    let env = scene();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", LINE, true);
    wait_for_file(&env.project().join("up"));
    env.write(
        "project/shared.txt",
        &format!("person\n{}", text(&env, "shared.txt")),
    );
    env.write("project/notes/essay.md", "mine");
    claude.writes("t-2", "other.txt", "a look");
    step(&env, "1", "echo server >> shared.txt; rm -r notes");
    step(&env, "2", "true");
    end(&claude, "t-1", LINE, child);
    let (server, changed) = action(&env, "steps.py");
    assert_eq!(
        changed,
        [
            "done1",
            "done2",
            "notes",
            "notes/essay.md",
            "shared.txt",
            "up"
        ]
    );
    env.json(&["undo", &server]);
    assert_eq!(
        text(&env, "shared.txt"),
        "person\none\ntwo\nthree\nfour\nfive\n"
    );
    assert_eq!(text(&env, "notes/essay.md"), "mine");
    env.json(&["redo"]);
    assert!(text(&env, "shared.txt").ends_with("server\n"));
    assert!(!env.project().join("notes").exists());
}

#[test]
fn fe_33_a_file_that_two_actions_wrote_at_once_is_a_conflict() {
    let env = scene();
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", LINE, true);
    wait_for_file(&env.project().join("up"));
    step(&env, "1", "echo server >> shared.txt");
    claude.does("t-2", "echo line >> shared.txt");
    step(&env, "2", "echo server >> shared.txt");
    end(&claude, "t-1", LINE, child);
    let (server, _) = action(&env, "steps.py");
    let (line, _) = action(&env, "echo line");
    let before = text(&env, "shared.txt");
    for id in [&server, &line] {
        let run = env.run(&["undo", id]);
        assert_eq!(run.code, 9, "{run:?}");
        assert!(
            format!("{run:?}").contains("nobody knows what is whose"),
            "{run:?}"
        );
    }
    assert_eq!(text(&env, "shared.txt"), before);
    // A control: what came after both is taken back.
    claude.does("t-3", "echo later >> shared.txt");
    let (later, _) = action(&env, "echo later");
    env.json(&["undo", &later]);
    assert_eq!(text(&env, "shared.txt"), before);
}

#[test]
fn fe_33_a_persons_file_in_a_directory_that_an_action_moves_is_theirs() {
    let env = scene();
    env.write("project/old/kept.txt", "kept");
    let claude = Claude::new(&env);
    let child = start(&claude, "t-1", LINE, true);
    wait_for_file(&env.project().join("up"));
    env.write("project/old/essay.md", "mine");
    step(&env, "1", "echo made > old/made.txt; mv old new");
    claude.writes("t-2", "other.txt", "a look");
    env.write("project/new/later.md", "mine too");
    step(&env, "2", "true");
    end(&claude, "t-1", LINE, child);
    let (server, changed) = action(&env, "steps.py");
    for own in ["new/kept.txt", "new/made.txt", "old/kept.txt"] {
        assert!(changed.iter().any(|it| it == own), "{changed:?}");
    }
    for theirs in ["new/essay.md", "new/later.md"] {
        assert!(
            observed(&env).iter().any(|it| it == theirs),
            "{:#?}",
            log(&env)
        );
        assert!(!changed.iter().any(|it| it == theirs), "{changed:?}");
    }
    env.json(&["undo", &server]);
    assert_eq!(text(&env, "old/kept.txt"), "kept");
    assert_eq!(text(&env, "new/essay.md"), "mine");
    assert_eq!(text(&env, "new/later.md"), "mine too");
    assert!(!env.project().join("new/made.txt").exists());
}

/// A server that goes on when its line has ended.
fn left_running(env: &TestEnv) {
    let claude = Claude::new(env);
    let line = format!("{LINE} > server.log 2>&1 & while [ ! -e up ]; do :; done");
    let child = start(&claude, "t-1", &line, false);
    wait_for_file(&env.project().join("up"));
    end(&claude, "t-1", &line, child);
}

fn is_late_told(env: &TestEnv) -> bool {
    let is_late = |it: &Value| support::text(&it["summary"]).contains("left running by");
    log(env).iter().any(is_late)
}

#[test]
fn fe_33_what_a_person_saves_where_a_server_writes_late_is_theirs() {
    let env = scene();
    left_running(&env);
    let claude = Claude::new(&env);
    step(&env, "1", "mkdir out; echo late > out/late.txt");
    env.write("project/out/essay.md", "mine");
    claude.writes("t-2", "b.txt", "b");
    assert_eq!(observed(&env), ["out/essay.md"]);
    step(&env, "2", "true");
    wait_for("the record of the server", || is_late_told(&env));
    // What the person does to its files from now on is theirs at once.
    env.write("project/out/late.txt", "mine now");
    env.json(&["checkpoint"]);
    assert_eq!(observed(&env), ["out/essay.md", "out/late.txt"]);
    let (late, changed) = action(&env, "left running by");
    assert_eq!(changed, ["done1", "done2", "out", "out/late.txt"]);
    let run = env.run(&["undo", &late]);
    assert_eq!(
        (run.code, text(&env, "out/late.txt").as_str()),
        (9, "mine now")
    );
}

#[test]
fn fe_33_what_a_server_wrote_late_whose_supervisor_was_killed_is_no_persons() {
    let env = scene();
    left_running(&env);
    step(&env, "1", "echo late > late.txt");
    env.write("project/essay.md", "mine");
    // Whoever has this project's journal open supervises the server.
    for process in supervisors(&env) {
        let done = Command::new("kill")
            .args(["-9", &process])
            .stdin(Stdio::null())
            .status();
        assert!(done.unwrap().success());
    }
    wait_for("the end of the supervisor", || supervisors(&env).is_empty());
    let claude = Claude::new(&env);
    claude.writes("t-2", "b.txt", "b");
    let (late, changed) = action(&env, "left running by");
    assert_eq!(changed, ["done1", "late.txt"]);
    assert_eq!(observed(&env), ["essay.md"]);
    env.json(&["undo", &late]);
    assert!(!env.project().join("late.txt").exists());
    assert_eq!(text(&env, "essay.md"), "mine");
    env.write("scratch/2", "true");
}

/// The processes that hold the journal of what was left running.
fn supervisors(env: &TestEnv) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name().display().to_string();
        let files = fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut opened = files.filter_map(|file| fs::read_link(file.path()).ok());
        let is_journal = |path: PathBuf| {
            path.starts_with(env.root()) && path.parent().is_some_and(|it| it.ends_with("late"))
        };
        if name.bytes().all(|it| it.is_ascii_digit()) && opened.any(is_journal) {
            found.push(name);
        }
    }
    found
}

#[test]
fn fe_33_what_a_person_saves_while_an_agent_runs_is_theirs() {
    let env = scene();
    let words = [
        "run",
        "--no-tui",
        "--objective",
        "x",
        "--",
        "python3",
        "steps.py",
        "1",
        "2",
    ];
    let mut child = env.command(&words);
    child
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().unwrap();
    wait_for_file(&env.project().join("up"));
    step(&env, "1", "echo a > a.txt");
    env.write("project/essay.md", "mine");
    env.json(&["checkpoint"]);
    env.write("project/later.md", "mine");
    step(&env, "2", "true");
    assert!(child.wait().unwrap().success());
    let (agent, changed) = action(&env, "steps.py");
    assert_eq!(changed, ["a.txt", "done1", "done2", "up"]);
    assert_eq!(observed(&env), ["essay.md", "later.md"]);
    env.json(&["undo", &agent]);
    assert!(!env.project().join("a.txt").exists());
    assert!(env.project().join("essay.md").exists() && env.project().join("later.md").exists());
}

#[test]
fn fe_33_a_file_tool_that_is_under_way_has_what_it_names() {
    let env = scene();
    let claude = Claude::new(&env);
    let input = json!({"file_path": env.project().join("a7.txt"), "content": "a7"});
    passes(&claude.before("t-1", "Write", input.clone()));
    env.write("project/a7.txt", "a7");
    env.write("project/essay.md", "mine");
    env.json(&["checkpoint"]);
    assert_eq!(observed(&env), ["essay.md"]);
    passes(&claude.after("t-1", "Write", input));
    assert_eq!(action(&env, "a7.txt").1, ["a7.txt"]);
    assert_eq!(observed(&env), ["essay.md"]);
}
