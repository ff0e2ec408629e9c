//! Shells that Claude Code starts through us: what was judged runs as it was written, behind the
//! fence that it was given, and what was not can change nothing.

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
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use client::{Claude, denied, passes};
use serde_json::{Value, json};
use support::{approve, bare};
use testkit::TestEnv;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

/// This program, as Claude Code is told to start it.
fn prefix() -> String {
    safepoint_clients::shell_prefix(SAFEPOINT)
}

/// A project whose Claude Code starts its shells through us.
fn plain() -> TestEnv {
    let mut env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\ntwo\nthree\n");
    env.set("CLAUDE_CODE_SHELL_PREFIX", &prefix());
    env.set("CLAUDE_CODE_SESSION_ID", "s-1");
    env
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

/// What Claude Code gives a shell for a line, and where that leaves its directory.
fn text_with(env: &TestEnv, line: &str, directory: &Path) -> String {
    format!(
        "source {} 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval {} < /dev/null && pwd -P >| {}",
        env.root().join("snapshot-bash-1.sh").display(),
        quoted(line),
        directory.display(),
    )
}

fn text_for(env: &TestEnv, line: &str) -> String {
    text_with(env, line, Path::new("/dev/null"))
}

/// Starts a text as Claude Code does: from a shell, with the prefix before it.
fn shell(env: &TestEnv, text: &str) -> Command {
    let mut command = Command::new("bash");
    let line = format!("{} {}", quoted(&prefix()), quoted(text));
    command.args(["-c", &line]).current_dir(env.project());
    for (name, value) in env.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null());
    command
}

fn run(env: &TestEnv, line: &str) -> Output {
    shell(env, &text_for(env, line)).output().unwrap()
}

/// The whole call: before it, itself, and after it.
#[track_caller]
fn call(claude: &Claude<'_>, id: &str, line: &str) -> Output {
    let instead = passes(&claude.asks(id, line));
    assert_eq!(instead, None, "the line stays as it was written");
    let output = run(claude.env, line);
    passes(&claude.after(id, "Bash", json!({"command": line})));
    output
}

#[track_caller]
fn last_action(env: &TestEnv) -> Value {
    env.json(&["log"])["actions"][0].clone()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn fe_02_a_line_runs_as_it_was_written_and_behind_the_fence() {
    let env = plain();
    let claude = Claude::new(&env);
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let escape = format!("echo out > {}/made", elsewhere.path().display());
    env.write("project/build.sh", &format!("echo in > made\n{escape}\n"));
    let output = call(
        &claude,
        "t-1",
        "sh build.sh; echo to-stdout; echo to-stderr >&2; exit 7",
    );
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(text(&output.stdout), "to-stdout\n");
    let (own, told) = text(&output.stderr)
        .split_once("to-stderr\n")
        .map(|(one, other)| (one.to_owned(), other.to_owned()))
        .unwrap();
    assert!(own.contains("Permission denied"), "{output:?}");
    // The agent reads after its own output what it needs.
    let file = elsewhere.path().join("made").display().to_string();
    assert!(
        told.contains(&format!("refused file.write {file}")) && told.contains("hld_"),
        "{output:?}"
    );
    assert_eq!(
        fs::read_to_string(env.project().join("made")).unwrap(),
        "in\n"
    );
    assert!(!elsewhere.path().join("made").exists(), "the fence holds");
    let action = last_action(&env);
    assert_eq!(action["outcome"], "error", "{action:#}");
    assert_eq!(action["changes"][0]["path"], "made", "{action:#}");
    env.json(&["undo", action["action_id"].as_str().unwrap()]);
    assert!(!env.project().join("made").exists());
}

#[test]
fn fe_02_directory_functions_and_variables_are_those_of_the_shell() {
    let env = plain();
    env.write(
        "snapshot-bash-1.sh",
        "greet() { echo \"hello $1\"; }\nexport KEPT=yes\n",
    );
    let claude = Claude::new(&env);
    let line = "cd src && greet \"$KEPT\" | cat";
    passes(&claude.asks("t-1", line));
    // Not in `/tmp`: the store lies beneath it, so it takes no new names.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let directory = place.path().join("cwd");
    let output = shell(&env, &text_with(&env, line, &directory))
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "hello yes\n", "{output:?}");
    let directory = fs::read_to_string(directory).unwrap();
    let real = fs::canonicalize(env.project().join("src")).unwrap();
    assert_eq!(Path::new(directory.trim_end()), real);
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    // What waits for the exit code is no business of the line's.
    env.write(
        "project/variables.sh",
        "env | grep -c SAFEPOINT_EXIT; env | grep -c SAFEPOINT_SESSION\n",
    );
    let output = call(&claude, "t-2", "sh variables.sh");
    assert_eq!(text(&output.stdout), "0\n1\n");
}

#[test]
fn fe_02_a_line_ends_as_its_shell_does() {
    let env = plain();
    env.write("project/die.sh", "kill -9 $$\n");
    let claude = Claude::new(&env);
    for (number, (line, code)) in [
        ("true", 0),
        ("false", 1),
        ("exec sh die.sh", 137),
        ("nope", 127),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("t-{number}");
        passes(&claude.asks(&id, line));
        let output = run(&env, line);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        passes(&claude.after(&id, "Bash", json!({"command": line})));
    }
}

#[test]
fn fe_02_a_line_that_nobody_judged_changes_nothing() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "cat src/app.py"));
    let line = "cat src/app.py; echo x > made";
    let output = run(&env, line);
    assert_eq!(text(&output.stdout), "one\ntwo\nthree\n", "{output:?}");
    assert!(
        text(&output.stderr).contains("was not asked about this line"),
        "{output:?}"
    );
    assert!(!env.project().join("made").exists());
    // A control: the same line, judged.
    let output = call(&claude, "t-2", line);
    assert!(env.project().join("made").exists(), "{output:?}");
}

#[test]
fn fe_02_a_line_that_only_calls_us_works_and_reaches_nothing_outside() {
    let env = plain();
    let claude = Claude::new(&env);
    call(&claude, "t-1", "echo x > made");
    let made = env.json(&["list", "--automatic"]);
    for (id, line) in [
        ("t-2", format!("{SAFEPOINT} log")),
        ("t-3", format!("{SAFEPOINT} log | head -n 2")),
        ("t-4", format!("{SAFEPOINT} log; true")),
        (
            "t-6",
            format!("{SAFEPOINT} log 2>&1 | grep -c . && {SAFEPOINT} log | cat"),
        ),
    ] {
        let output = call(&claude, id, &line);
        assert!(output.status.success(), "{line}: {output:?}");
        assert!(
            text(&output.stdout).contains("echo x > made"),
            "{line}: {output:?}"
        );
        assert_eq!(text(&output.stderr), "", "{line}");
        // It only looks: nothing of it could be taken back, and no checkpoint is made for it.
        let log = env.json(&["log"]);
        let actions = log["actions"].as_array().unwrap();
        assert_eq!(actions.len(), 1, "{line}: {log:#}");
        let list = env.json(&["list", "--automatic"]);
        assert_eq!(list["checkpoints"], made["checkpoints"], "{line}: {list:#}");
    }
    let output = call(&claude, "t-5", &format!("{SAFEPOINT} undo"));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(
        !text(&output.stderr).contains("was not asked"),
        "{output:?}"
    );
    assert!(!env.project().join("made").exists());
}

#[test]
fn fe_02_leave_for_a_line_is_good_once() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo x >> made";
    passes(&claude.asks("t-1", line));
    passes(&claude.asks("t-2", line));
    for _ in 0..3 {
        run(&env, line);
    }
    let made = fs::read_to_string(env.project().join("made")).unwrap();
    assert_eq!(made, "x\nx\n");
    for id in ["t-1", "t-2"] {
        passes(&claude.after(id, "Bash", json!({"command": line})));
    }
    run(&env, line);
    assert_eq!(
        fs::read_to_string(env.project().join("made")).unwrap(),
        made
    );
    // Another session's leave is none.
    let other = Claude {
        session: "s-2",
        ..Claude::new(&env)
    };
    passes(&other.asks("t-3", line));
    run(&env, line);
    assert_eq!(
        fs::read_to_string(env.project().join("made")).unwrap(),
        made
    );
}

#[test]
fn fe_02_equal_lines_at_once_each_run() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo x >> made";
    let ids: Vec<String> = (0..4).map(|number| format!("t-{number}")).collect();
    for id in &ids {
        passes(&claude.asks(id, line));
    }
    let text = text_for(&env, line);
    let started: Vec<Child> = ids
        .iter()
        .map(|_| shell(&env, &text).spawn().unwrap())
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    for id in &ids {
        passes(&claude.after(id, "Bash", json!({"command": line})));
    }
    assert_eq!(
        fs::read_to_string(env.project().join("made")).unwrap(),
        "x\n".repeat(4)
    );
    let open = env.json(&["log"])["actions"].as_array().unwrap().len();
    assert_eq!(open, 4);
}

#[test]
fn fe_02_no_variable_opens_the_fence() {
    let env = plain();
    let own = std::process::id();
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let outside = elsewhere.path().join("made");
    let line = format!("echo x > made; echo x > {}", outside.display());
    for (name, value) in [
        ("SAFEPOINT_FENCED", "1".to_owned()),
        ("SAFEPOINT_BROKER", "/nowhere".to_owned()),
        ("SAFEPOINT_ACTION", "act_0123456789abcdef".to_owned()),
        ("SAFEPOINT_AGENT", "1".to_owned()),
        ("SAFEPOINT_EXIT_SOCKET", format!("safepoint-exit-{own}-0")),
        ("CLAUDE_PLUGIN_ROOT", "/".to_owned()),
        ("CLAUDE_CODE_SESSION_ID", "s-9".to_owned()),
    ] {
        let mut command = shell(&env, &text_for(&env, &line));
        let output = command.env(name, value).output().unwrap();
        assert!(!env.project().join("made").exists(), "{name}: {output:?}");
        assert!(!outside.exists(), "{name}: {output:?}");
    }
}

#[test]
fn fe_01_what_a_person_approved_gets_exactly_that_room() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let approved = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let other = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let script = format!("echo x > {}/made\n", other.path().display());
    env.write("project/more.sh", &script);
    fs::write(approved.path().join("old"), "old").unwrap();
    let place = approved.path().display();
    let line = format!("cp src/app.py {place}/new; rm {place}/old; sh more.sh");
    let told = denied(&claude.asks("t-1", &line));
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap();
    run(&env, &line);
    assert!(!approved.path().join("new").exists(), "not before the yes");
    approve(&env, hold);
    let output = call(&claude, "t-2", &line);
    assert!(approved.path().join("new").exists(), "{output:?}");
    assert!(!approved.path().join("old").exists(), "{output:?}");
    assert!(!other.path().join("made").exists(), "{output:?}");
    // The yes was for once.
    denied(&claude.asks("t-3", &line));
}

#[test]
fn fe_01_no_variable_makes_a_command_forget_its_fence() {
    let env = plain();
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let outside = elsewhere.path().join("made");
    let script = format!("echo x > made; echo x > {}\n", outside.display());
    env.write("project/build.sh", &script);
    for (name, value) in [("SAFEPOINT_AGENT", "1"), ("SAFEPOINT_KEPT", "1")] {
        let mut command = env.command(&["exec", "--", "sh", "build.sh"]);
        let output = command.env(name, value).output().unwrap();
        assert!(env.project().join("made").exists(), "{name}: {output:?}");
        assert!(!outside.exists(), "{name}: {output:?}");
        fs::remove_file(env.project().join("made")).unwrap();
    }
}

#[test]
fn fe_02_what_a_person_has_configured_runs_without_us() {
    let env = plain();
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let file = elsewhere.path().join("made");
    let command = format!("touch {}", file.display());
    let output = shell(&env, &command).output().unwrap();
    assert!(!file.exists(), "{output:?}");
    let settings =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
    env.write("user/.claude/settings.json", &settings.to_string());
    let output = shell(&env, &command).output().unwrap();
    assert!(file.exists(), "{output:?}");
    // What an agent runs is no command of a person's, whatever it reads like.
    fs::remove_file(&file).unwrap();
    run(&env, &command);
    assert!(!file.exists());
}

/// Settings in which a text is to be run.
fn settings_for(text: &str) -> String {
    json!({"statusLine": {"type": "command", "command": text}}).to_string()
}

#[test]
fn fe_01_what_an_agent_configures_itself_runs_behind_the_fence() {
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let made = elsewhere.path().join("made");
    let status = format!("touch {}", made.display());
    for file in ["settings.local.json", "settings.json"] {
        let env = plain();
        let claude = Claude::new(&env);
        passes(&claude.says("SessionStart", json!({"source": "startup"})));
        // As a program can that is not seen.
        env.write(&format!("project/.claude/{file}"), &settings_for(&status));
        let output = shell(&env, &status).output().unwrap();
        assert!(!made.exists(), "{file}: {output:?}");
    }
    // A control: what was there when the client was started was a person's, until it changes.
    let env = plain();
    let claude = Claude::new(&env);
    env.write(
        "project/.claude/settings.local.json",
        &settings_for(&status),
    );
    passes(&claude.says("SessionStart", json!({"source": "startup"})));
    let output = shell(&env, &status).output().unwrap();
    assert!(made.exists(), "{output:?}");
    fs::remove_file(&made).unwrap();
    let changed = settings_for(&status).replace("statusLine", "another");
    env.write("project/.claude/settings.local.json", &changed);
    let output = shell(&env, &status).output().unwrap();
    assert!(!made.exists(), "{output:?}");
}

#[test]
fn fe_02_our_own_hooks_answer_through_the_shell() {
    let env = plain();
    let said = json!({"session_id": "s-1", "transcript_path": "/dev/null", "cwd": env.project(),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "t-1", "tool_input": {"command": "git push origin main"}});
    let mut hook = shell(&env, &format!("{SAFEPOINT} hook claude-code"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut hook.stdin.take().unwrap(), said.to_string().as_bytes())
        .unwrap();
    let output = hook.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// Waits until a file has something in it.
fn wait_for(path: &Path) -> String {
    loop {
        match fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => std::thread::yield_now(),
        }
    }
}

fn is_running(process: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", process.trim()));
    state.is_ok_and(|it| !it.contains(") Z "))
}

#[test]
fn fe_02_a_line_that_is_told_to_end_ends() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo $$ > started; while true; do sleep 0.1; done";
    passes(&claude.asks("t-1", line));
    let mut child = Command::new(prefix());
    let given = shell(&env, "");
    for (name, value) in given.get_envs() {
        child.env(name, value.unwrap_or_default());
    }
    child
        .arg(text_for(&env, line))
        .current_dir(env.project())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let shell = wait_for(&env.project().join("started"));
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert_eq!(status.code(), Some(143), "{errors}");
    assert!(!is_running(&shell));
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    assert_eq!(last_action(&env)["outcome"], "error");
}

#[test]
fn fe_02_a_background_job_lives_on_and_the_line_returns() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "(echo $BASHPID > job; while [ ! -e stop ]; do sleep 0.05; done; echo done > job) > /dev/null 2>&1 &";
    let output = call(&claude, "t-1", line);
    assert!(output.status.success(), "{output:?}");
    let job = wait_for(&env.project().join("job"));
    assert!(is_running(&job), "{output:?}");
    env.write("project/stop", "");
    while wait_for(&env.project().join("job")) != "done\n" {
        std::thread::yield_now();
    }
}

/// Starts a line on a terminal of its own.
fn on_terminal(env: &TestEnv, line: &str) -> Child {
    let text = text_for(env, line).replace("< /dev/null", "");
    let given = shell(env, &text);
    let inner = given.get_args().nth(1).unwrap().to_str().unwrap();
    let mut terminal = Command::new("script");
    terminal
        .args([
            "-q",
            "-e",
            "-c",
            &format!("exec bash -c {}", quoted(inner)),
            "/dev/null",
        ])
        .current_dir(env.project())
        .env_clear();
    for (name, value) in given.get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    let terminal = terminal.stdin(Stdio::piped()).stdout(Stdio::piped());
    terminal.spawn().unwrap()
}

#[test]
fn fe_02_ctrl_c_is_the_lines_own_affair() {
    let env = plain();
    let claude = Claude::new(&env);
    // It takes longer than a moment, and ends as it likes.
    let line = "trap 'sleep 0.3; echo got it > got; exit 5' INT; test -t 1 && echo $$ > started; while :; do sleep 0.05; done";
    passes(&claude.asks("t-1", line));
    let mut terminal = on_terminal(&env, line);
    wait_for(&env.project().join("started"));
    let keys = terminal.stdin.as_mut().unwrap();
    std::io::Write::write_all(keys, b"\x03").unwrap();
    let output = terminal.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(
        fs::read_to_string(env.project().join("got")).unwrap(),
        "got it\n"
    );
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    assert_eq!(last_action(&env)["outcome"], "error");
}

#[test]
fn fe_02_ctrl_c_ends_a_line_that_says_nothing_of_it() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo $$ > started; sleep 600; echo never > never";
    passes(&claude.asks("t-1", line));
    let mut terminal = on_terminal(&env, line);
    let process = wait_for(&env.project().join("started"));
    let keys = terminal.stdin.as_mut().unwrap();
    std::io::Write::write_all(keys, b"\x03").unwrap();
    let output = terminal.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(!is_running(&process) && !env.project().join("never").exists());
}

#[test]
fn fe_02_a_line_whose_safepoint_is_killed_is_told_of() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo $$ > started; until [ -e stop ]; do sleep 0.05; done";
    passes(&claude.asks("t-1", line));
    let mut child = Command::new(prefix());
    for (name, value) in shell(&env, "").get_envs() {
        child.env(name, value.unwrap_or_default());
    }
    let mut child = child
        .arg(text_for(&env, line))
        .current_dir(env.project())
        .spawn()
        .unwrap();
    wait_for(&env.project().join("started"));
    // The one that does the work ends with the one that waits for it.
    let id = child.id();
    let worker = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    while is_running(&worker) {
        std::thread::yield_now();
    }
    env.write("project/stop", "");
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    let log = env.json(&["log"]);
    let actions = log["actions"].as_array().unwrap();
    let action = actions.iter().find(|it| it["summary"] == line).unwrap();
    // The client says that it went well, and nobody has watched over it to its end.
    assert_eq!(action["outcome"], "unknown", "{action:#}");
    let created = |path: &str| json!([{"path": path, "change": "created"}]);
    assert_eq!(action["changes"], created("started"), "{action:#}");
    // What was done beside it is nobody's.
    let others: Vec<_> = actions.iter().filter(|it| it["summary"] != line).collect();
    assert_eq!(others.len(), 1, "{log:#}");
    assert_eq!(others[0]["changes"], created("stop"), "{log:#}");
}

#[test]
fn fe_05_no_program_writes_settings_of_the_client_unasked() {
    let env = plain();
    support::add(&env, "ann");
    let claude = Claude::new(&env);
    let place = env.project().join(".claude/settings.local.json");
    let script = "mkdir -p .claude conf\necho '{}' > .claude/settings.local.json\n\
        echo '{}' > conf/settings.local.json; rm -r .claude; mv conf .claude\n";
    env.write("project/configure.sh", script);
    let line = "sh configure.sh";
    let output = {
        passes(&claude.asks("t-1", line));
        let output = run(&env, line);
        passes(&claude.after("t-1", "Bash", json!({"command": line})));
        output
    };
    assert!(!place.exists(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"));
    let shown = env.json(&["hold", "show", hold.unwrap()]).to_string();
    assert!(shown.contains(".claude"), "{shown}");
    // It need not be the program's first try that a person approves.
    env.write(
        "project/once.sh",
        "echo '{}' > .claude/settings.local.json\n",
    );
    fs::create_dir_all(env.project().join(".claude")).unwrap();
    let line = "sh once.sh";
    passes(&claude.asks("t-2", line));
    let output = run(&env, line);
    passes(&claude.after("t-2", "Bash", json!({"command": line})));
    assert!(!place.exists(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"));
    approve(&env, hold.unwrap());
    passes(&claude.asks("t-3", line));
    let output = run(&env, line);
    assert_eq!(fs::read_to_string(&place).unwrap(), "{}\n", "{output:?}");
}

#[test]
fn fe_05_a_hook_asks_nobody_that_settings_of_the_client_name() {
    let env = plain();
    let said = json!({"session_id": "s-1", "transcript_path": "/dev/null", "cwd": env.project(),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "t-1", "tool_input": {"command": "ls"}});
    for (name, value) in [("SAFEPOINT_BROKER", "/nowhere"), ("SAFEPOINT_FENCED", "1")] {
        let mut hook = env.command(&["hook", "claude-code"]);
        hook.env(name, value).stdin(Stdio::piped());
        hook.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut hook = hook.spawn().unwrap();
        let mut input = hook.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, said.to_string().as_bytes()).unwrap();
        drop(input);
        let output = hook.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    }
}

#[test]
fn fe_01_the_hook_of_a_skill_in_the_workspace_runs_behind_the_fence() {
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let made = elsewhere.path().join("made");
    let text = format!("echo x > {}", made.display());
    let env = plain();
    env.write("project/.claude/skills/evil/SKILL.md", "evil\n");
    for place in ["project/.claude/skills/evil", "project"] {
        let mut command = shell(&env, &text);
        command.env("CLAUDE_PLUGIN_ROOT", env.root().join(place));
        let output = command.output().unwrap();
        assert!(!made.exists(), "{output:?}");
    }
    // A control: a plugin that no agent could write.
    let mut command = shell(&env, &text);
    let plugin = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let output = command.env("CLAUDE_PLUGIN_ROOT", plugin.path()).output();
    assert!(made.exists(), "{output:?}");
}

#[test]
fn au_25_what_was_approved_is_looked_at_again_when_the_line_runs() {
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let place = outside.path().display();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let kill = format!("./ok.sh; kill -0 {}", sleeper.id());
    for line in [kill, format!("sh ok.sh; touch {place}/approved")] {
        for is_exchanged in [true, false] {
            let env = plain();
            support::add(&env, "ann");
            let claude = Claude::new(&env);
            env.write("project/ok.sh", "#!/bin/sh\necho fine > made\n");
            env.write("project/bad.sh", "#!/bin/sh\necho bad > made\n");
            for name in ["ok.sh", "bad.sh"] {
                use std::os::unix::fs::PermissionsExt;
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(env.project().join(name), mode).unwrap();
            }
            let told = denied(&claude.asks("t-1", &line));
            let hold = told
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .find(|word| word.starts_with("hld_"))
                .unwrap();
            approve(&env, hold);
            passes(&claude.asks("t-2", &line));
            if is_exchanged {
                fs::rename(env.project().join("bad.sh"), env.project().join("ok.sh")).unwrap();
            }
            let output = run(&env, &line);
            let made = fs::read_to_string(env.project().join("made")).ok();
            match is_exchanged {
                true => {
                    assert_eq!(made, None, "{line}: {output:?}");
                    let told = String::from_utf8_lossy(&output.stderr);
                    assert!(told.contains("ok.sh` is another by now"), "{told}");
                }
                false => assert_eq!(made.as_deref(), Some("fine\n"), "{line}: {output:?}"),
            }
        }
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn fe_01_what_only_begins_like_our_hook_runs_behind_the_fence() {
    let env = plain();
    let elsewhere = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let store = elsewhere.path().join("made.db");
    for words in [
        format!("hook --store=sqlite:{} claude-code", store.display()),
        format!("hook claude-code --store=sqlite:{}", store.display()),
    ] {
        let output = shell(&env, &format!("{SAFEPOINT} {words}"))
            .output()
            .unwrap();
        assert!(!store.exists(), "{words}: {output:?}");
    }
}
