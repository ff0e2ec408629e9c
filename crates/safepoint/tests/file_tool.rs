//! The clients' own file tools: they act outside the fence, so where a path leads is looked at,
//! held there, and looked at again.

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
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use client::{Claude, denied, passes};
use serde_json::{Value, json};
use support::bare;
use testkit::{Run, TestEnv};

fn plain() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\ntwo\n");
    env
}

/// Exchanges `d` and a link to a directory outside, for ever.
const EXCHANGE: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
while os.path.exists("exchange.py") and not os.path.exists("over"):
    libc.renameat2(-100, b"d", -100, b"l", 2)
"#;

/// Starts a line in the background as Claude Code does: what the hook gives back, in a shell.
fn start(claude: &Claude<'_>, id: &str, line: &str) -> Child {
    let input = json!({"command": line, "run_in_background": true});
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
    let null = || Stdio::null();
    command.stdin(null()).stdout(null()).stderr(null());
    command.spawn().unwrap()
}

fn write_input(path: &Path, content: &str) -> Value {
    json!({"file_path": path, "content": content})
}

/// What Claude Code's tool does, if it is let through: follows the path, and writes.
fn is_let_through(run: &Run) -> bool {
    match run.code {
        0 => {
            passes(run);
            true
        }
        _ => {
            denied(run);
            false
        }
    }
}

fn open_names(directory: &Path) -> usize {
    fs::read_dir(directory).unwrap().count()
}

#[test]
fn fe_05_a_path_that_leads_out_over_a_link_is_not_written_unasked() {
    let env = plain();
    let claude = Claude::new(&env);
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    fs::write(outside.path().join("file"), "theirs").unwrap();
    let project = env.project();
    symlink(outside.path(), project.join("over")).unwrap();
    symlink(outside.path().join("file"), project.join("last")).unwrap();
    symlink(outside.path().join("new"), project.join("dangling")).unwrap();
    symlink("over", project.join("twice")).unwrap();
    symlink("src", project.join("within")).unwrap();
    // On the same file system as the project.
    env.write("elsewhere/file", "theirs");
    let file = env.root().join("elsewhere/file");
    fs::hard_link(&file, project.join("hard")).unwrap();
    for (number, path) in [
        "over/n",
        "last",
        "dangling",
        "twice/file",
        "src/../over/n",
        "hard",
    ]
    .into_iter()
    .enumerate()
    {
        let path = project.join(path);
        let id = format!("t-{number}");
        for (tool, input) in [
            ("Write", write_input(&path, "x")),
            (
                "Edit",
                json!({"file_path": path, "old_string": "theirs", "new_string": "x"}),
            ),
            (
                "MultiEdit",
                json!({"file_path": path, "edits": [{"old_string": "theirs", "new_string": "x"}]}),
            ),
            (
                "NotebookEdit",
                json!({"notebook_path": path, "new_source": "x"}),
            ),
        ] {
            denied(&claude.before(&format!("{id}-{tool}"), tool, input));
        }
    }
    // A control: links that stay inside.
    let path = project.join("within/app.py");
    passes(&claude.before("t-9", "Write", write_input(&path, "x")));
    fs::write(&path, "x").unwrap();
    passes(&claude.after("t-9", "Write", write_input(&path, "x")));
    assert_eq!(open_names(outside.path()), 1);
}

#[test]
fn fe_05_no_write_of_a_tool_lands_outside_while_a_program_exchanges_its_directory() {
    let rounds = support::rounds(60);
    let env = plain();
    let claude = Claude::new(&env);
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let project = env.project();
    fs::create_dir(project.join("d")).unwrap();
    symlink(outside.path(), project.join("l")).unwrap();
    env.write("project/exchange.py", EXCHANGE);
    let mut background = start(&claude, "t-bg", "python3 exchange.py");
    let place = project.join("d");
    let is_link = || place.symlink_metadata().is_ok_and(|it| it.is_symlink());
    // A control: it does exchange them.
    while !is_link() {
        assert!(background.try_wait().unwrap().is_none(), "it runs");
    }
    while is_link() {}
    let (mut written, mut refused) = (0, 0);
    for round in 0..rounds {
        let path = place.join(format!("n{round}"));
        let input = write_input(&path, "content");
        let id = format!("t-{round}");
        if !is_let_through(&claude.before(&id, "Write", input.clone())) {
            refused += 1;
            continue;
        }
        // The tool takes its time.
        for _ in 0..1000 {
            assert!(!is_link(), "it stays what it was let through as");
        }
        fs::write(&path, "content").unwrap();
        written += 1;
        let after = claude.after(&id, "Write", input);
        passes(&after);
        assert!(!after.stdout.contains("does not find"), "{after:?}");
        assert_eq!(open_names(outside.path()), 0, "in round {round}");
    }
    // It goes on.
    while !is_link() {}
    while is_link() {}
    fs::write(project.join("over"), "").unwrap();
    background.wait().unwrap();
    assert_eq!(open_names(outside.path()), 0);
    assert!(written > 0, "{written} were written, {refused} refused");
    println!("{written} written, {refused} refused, 0 outside");
}

#[test]
fn fe_05_a_write_that_went_astray_is_told_and_the_next_action_is_held() {
    let env = plain();
    let claude = Claude::new(&env);
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let project = env.project();
    let path = project.join("src/new");
    let input = write_input(&path, "content");
    passes(&claude.before("t-1", "Write", input.clone()));
    // A control is the other tests: here somebody who is not held moves the directory.
    fs::rename(project.join("src"), project.join("away")).unwrap();
    symlink(outside.path(), project.join("src")).unwrap();
    fs::write(&path, "content").unwrap();
    let told = claude.after("t-1", "Write", input);
    assert!(told.stdout.contains("does not find"), "{told:?}");
    let action = env.json(&["log"])["actions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["outcome"] == "unknown")
        .cloned();
    assert!(action.is_some(), "{:#}", env.json(&["log"]));
    let ended = support::entries(&env, "action_ended");
    let stray = &ended.last().unwrap()["body"]["stray_writes"][0];
    assert_eq!(
        stray["leads_to"],
        outside.path().join("new").to_str().unwrap()
    );
    fs::remove_file(project.join("src")).unwrap();
    fs::rename(project.join("away"), project.join("src")).unwrap();
    let next = denied(&claude.before("t-2", "Write", write_input(&project.join("b"), "b")));
    assert!(next.contains("APPROVAL_REQUIRED"), "{next}");
}

#[test]
fn fe_05_a_write_that_does_not_stand_where_it_should_is_told() {
    let env = plain();
    let claude = Claude::new(&env);
    let path = env.project().join("src/app.py");
    let input = write_input(&path, "content");
    passes(&claude.before("t-1", "Write", input.clone()));
    let told = claude.after("t-1", "Write", input);
    assert!(told.stdout.contains("does not stand there"), "{told:?}");
    // A control: the same content again, with the line ends of another system.
    let env = plain();
    let second = Claude::new(&env);
    let path = env.project().join("src/app.py");
    let input = write_input(&path, "one\ntwo\n");
    passes(&second.before("t-2", "Write", input.clone()));
    fs::write(&path, "one\r\ntwo\r\n").unwrap();
    let told = second.after("t-2", "Write", input);
    assert!(!told.stdout.contains("does not"), "{told:?}");
    passes(&second.before("t-3", "Write", write_input(&path, "three")));
}

#[test]
fn fe_05_a_program_of_a_workspace_in_this_one_moves_nothing_either() {
    // Without rules of its own: those of a workspace in another one are asked about first.
    let env = bare();
    let claude = Claude::new(&env);
    env.write("project/a", "");
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let project = env.project();
    let sub = project.join("sub");
    fs::create_dir_all(sub.join("d")).unwrap();
    symlink(outside.path(), sub.join("l")).unwrap();
    env.write("project/sub/exchange.py", EXCHANGE);
    // A person has a workspace there, and something runs in it.
    let words = [
        "-C",
        "sub",
        "exec",
        "--no-tui",
        "--",
        "python3",
        "exchange.py",
    ];
    let mut command = env.command(&words);
    let null = || Stdio::null();
    command.stdin(null()).stdout(null()).stderr(null());
    let mut background = command.spawn().unwrap();
    let place = sub.join("d");
    let is_link = || place.symlink_metadata().is_ok_and(|it| it.is_symlink());
    // A control: it does exchange them.
    while !is_link() {
        assert!(background.try_wait().unwrap().is_none(), "it runs");
    }
    while is_link() {}
    let mut written = 0;
    for round in 0..support::rounds(20) {
        let path = place.join(format!("n{round}"));
        let input = write_input(&path, "content");
        let id = format!("t-{round}");
        if !is_let_through(&claude.before(&id, "Write", input.clone())) {
            continue;
        }
        for _ in 0..1000 {
            assert!(!is_link(), "it stays what it was let through as");
        }
        fs::write(&path, "content").unwrap();
        written += 1;
        passes(&claude.after(&id, "Write", input));
        assert_eq!(open_names(outside.path()), 0, "in round {round}");
    }
    fs::write(sub.join("over"), "").unwrap();
    background.wait().unwrap();
    assert!(written > 0);
    assert_eq!(open_names(outside.path()), 0);
}

#[test]
fn fe_05_a_path_over_a_link_of_the_kernel_is_refused() {
    let env = plain();
    let claude = Claude::new(&env);
    let project = env.project();
    let mut sleeper = Command::new("sleep")
        .arg("600")
        .current_dir(project.join("src"))
        .spawn()
        .unwrap();
    let process = format!("/proc/{}", sleeper.id());
    let real = project.canonicalize().unwrap();
    let links = [
        ("cwd", format!("{process}/cwd")),
        ("own", "/proc/self/cwd".to_owned()),
        ("root", format!("{process}/root{}", real.display())),
        ("later", "/proc/999999999/cwd".to_owned()),
        ("twice", "cwd".to_owned()),
    ];
    for (name, target) in &links {
        symlink(target, project.join(name)).unwrap();
    }
    let mut paths: Vec<_> = links.iter().map(|(name, _)| project.join(name)).collect();
    paths.extend([
        format!("{process}/cwd").into(),
        format!("{process}/root{}", real.display()).into(),
        project.join("nothing/../cwd"),
        project.join("cwd/../cwd"),
    ]);
    for (number, directory) in paths.iter().enumerate() {
        let id = format!("t-{number}");
        let input = write_input(&directory.join("n"), "x");
        let told = denied(&claude.before(&id, "Write", input));
        assert!(told.contains("/proc"), "{}: {told}", directory.display());
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    // A control: a link that is a name like others.
    symlink("src", project.join("plain")).unwrap();
    let input = write_input(&project.join("plain/n"), "x");
    passes(&claude.before("t-99", "Write", input));
}

/// A project in which what came before put a link to a directory outside at `d`, where a directory
/// is now. The checkpoint that has the link.
fn with_link_before(env: &TestEnv, outside: &Path) -> String {
    let place = env.project().join("d");
    symlink(outside, &place).unwrap();
    let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
    fs::remove_file(&place).unwrap();
    fs::create_dir(&place).unwrap();
    fs::write(place.join("x"), "in").unwrap();
    id.as_str().unwrap().to_owned()
}

#[test]
fn fe_05_no_roll_back_and_no_change_moves_a_name_that_a_file_tool_relies_on() {
    let mut env = plain();
    // A person waits no longer.
    env.set("SAFEPOINT_LOCK_TIMEOUT", "200ms");
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let id = with_link_before(&env, outside.path());
    let place = env.project().join("d");
    let is_link = || place.symlink_metadata().unwrap().is_symlink();
    // Something to undo, and to do again.
    let act = env.json(&["rollback", &id, "d"])["action_id"].clone();
    let act = act.as_str().unwrap().to_owned();
    assert!(is_link(), "a control: it puts the link back");
    let claude = Claude::new(&env);
    let beside = write_input(&env.project().join("src/new"), "content");
    passes(&claude.before("t-0", "Write", beside.clone()));
    let run = env.run(&["undo"]);
    assert_eq!(run.code, 9, "{run:?}");
    assert!(run.stderr.contains("file tool") && is_link(), "{run:?}");
    env.write("project/src/new", "content");
    passes(&claude.after("t-0", "Write", beside));
    env.json(&["undo", &act]);
    assert!(!is_link());
    let path = place.join("marker");
    let input = write_input(&path, "content");
    passes(&claude.before("t-1", "Write", input.clone()));
    let change = json!({"type": "move", "to": "away"}).to_string();
    let calls: [&[&str]; 3] = [
        &["rollback", &id, "d"],
        &["redo"],
        &["mutate", "d", "--checkpoint", &id, "--operation", &change],
    ];
    for call in calls {
        let run = env.run(call);
        assert_eq!(run.code, 9, "{call:?}: {run:?}");
        assert!(run.stderr.contains("file tool"), "{call:?}: {run:?}");
        assert!(place.join("x").exists() && !is_link(), "{call:?}");
    }
    // An agent's call is answered in the same way.
    let safepoint = env!("CARGO_BIN_EXE_safepoint");
    let line = format!("{safepoint} mutate d --auto-checkpoint --operation '{change}'");
    let asked = json!({"command": line, "run_in_background": true});
    let instead = passes(&claude.before("t-2", "Bash", asked)).unwrap();
    let output = claude.shell(&instead);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("file tool"), "{output:?}");
    assert!(place.join("x").exists() && !is_link());
    fs::write(&path, "content").unwrap();
    passes(&claude.after("t-1", "Write", input));
    assert_eq!(open_names(outside.path()), 0);
    // The tool has ended.
    env.json(&["rollback", &id, "d"]);
    assert!(is_link());
}

#[test]
fn fe_05_what_was_cut_off_is_not_ended_while_a_file_tool_relies_on_its_names() {
    let env = plain();
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let id = with_link_before(&env, outside.path());
    let place = env.project().join("d");
    let mut command = env.command(&["rollback", &id, "d"]);
    let killed = command.env("SAFEPOINT_FAULT", "restore.applying");
    assert!(!killed.output().unwrap().status.success());
    let freezes = env.home().join("runtime/network/freezes");
    let freeze = safepoint_fence::Freeze::new(&freezes, "f");
    let scope = safepoint_fence::FreezeScope {
        places: vec![env.project().canonicalize().unwrap()],
        keeper: None,
    };
    let frozen = freeze.begin(&scope).unwrap();
    assert_eq!(frozen, safepoint_fence::Frozen::Yes);
    let run = env.run(&["gc", "--dry-run"]);
    assert!(run.stderr.contains("file tool"), "{run:?}");
    assert!(place.join("x").exists(), "{run:?}");
    freeze.end();
    env.run(&["gc", "--dry-run"]);
    assert!(place.symlink_metadata().unwrap().is_symlink());
}

#[test]
fn fe_05_no_name_moves_while_a_tool_of_the_client_reads() {
    let env = plain();
    let claude = Claude::new(&env);
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    fs::write(outside.path().join("note"), "theirs").unwrap();
    let project = env.project();
    let place = project.join("d");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("note"), "ours").unwrap();
    symlink(outside.path(), project.join("l")).unwrap();
    env.write("project/exchange.py", EXCHANGE);
    let mut background = start(&claude, "t-bg", "python3 exchange.py");
    let is_link = || place.symlink_metadata().is_ok_and(|it| it.is_symlink());
    // A control: it does exchange them.
    while !is_link() {
        assert!(background.try_wait().unwrap().is_none(), "it runs");
    }
    while is_link() {}
    let mut read = 0;
    for round in 0..support::rounds(20) {
        for (tool, input) in [
            ("Read", json!({"file_path": place.join("note")})),
            ("Grep", json!({"pattern": "s", "path": place})),
        ] {
            let id = format!("t-{tool}-{round}");
            if !is_let_through(&claude.before(&id, tool, input.clone())) {
                continue;
            }
            let then = is_link();
            for _ in 0..1000 {
                assert_eq!(is_link(), then, "it stays what it was let through as");
            }
            read += 1;
            passes(&claude.after(&id, tool, input));
        }
    }
    // It goes on.
    while !is_link() {}
    while is_link() {}
    fs::write(project.join("over"), "").unwrap();
    background.wait().unwrap();
    assert!(read > 0);
}
