//! Where an agent's commands run, and behind what: the workspace is the directory that was there
//! when its session began, and no agent does without a fence.

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
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use client::{Claude, passes};
use serde_json::{Value, json};
use support::{bare, exec_with};
use testkit::TestEnv;
use testkit::tree::git;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

fn plain() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/a", "one\n");
    env
}

/// A shell as the client would start it, in this directory.
fn run_in(env: &TestEnv, directory: &Path, line: &str) -> Output {
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(directory);
    for (name, value) in env.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::null()).output().unwrap()
}

/// What a hook of the client answers that works in this directory, and says these fields.
fn hook(env: &TestEnv, client: &str, directory: &Path, fields: &Value) -> Output {
    let mut said = json!({
        "session_id": "s-1", "transcript_path": "/dev/null", "cwd": directory,
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
    });
    let all = said.as_object_mut().unwrap();
    all.extend(fields.as_object().unwrap().clone());
    let mut command = env.command(&["hook", client]);
    command.current_dir(directory);
    let piped = || Stdio::piped();
    command.stdin(piped()).stdout(piped()).stderr(piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, said.to_string().as_bytes()).unwrap();
    drop(input);
    child.wait_with_output().unwrap()
}

/// The line that is to be run instead, if it was let through.
fn instead(answer: &Output) -> Option<String> {
    if !answer.status.success() {
        return None;
    }
    let said: Value = serde_json::from_slice(&answer.stdout).unwrap_or_default();
    let line = &said["hookSpecificOutput"]["updatedInput"]["command"];
    line.as_str().map(str::to_owned)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r#"'"'"'"#))
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let names = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn fe_01_no_agent_runs_a_command_without_the_fence() {
    let env = plain();
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let made = outside.path().join("made");
    let project = env.project();
    git(&project, &["init", "-q"]);
    let monitor = format!("touch {} #", made.display());
    git(&project, &["config", "core.fsmonitor", &monitor]);
    git(&project, &["config", "diff.external", &monitor]);
    // A control: git does run what its settings name.
    git(&project, &["status"]);
    fs::remove_file(&made).unwrap();
    let claude = Claude::new(&env);
    for (number, command) in ["git status", "git diff", "cat a", "touch b"]
        .into_iter()
        .enumerate()
    {
        let id = format!("t-{number}");
        let line = format!("{SAFEPOINT} exec --no-fence -- {command}");
        let asked = claude.asks(&id, &line);
        if asked.code == 0 {
            let line = passes(&asked).unwrap_or(line);
            let output = run_in(&env, &project, &line);
            assert!(!output.status.success(), "{command}: {output:?}");
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(told.contains("behind the fence"), "{command}: {told}");
            claude.after(&id, "Bash", json!({"command": line}));
        }
        assert!(!made.exists(), "{command}");
    }
    assert!(!project.join("b").exists());
    // A control: behind the fence it runs.
    let line = format!("{SAFEPOINT} exec -- git status");
    let line = passes(&claude.asks("t-9", &line)).unwrap();
    let output = run_in(&env, &project, &line);
    assert!(output.status.success(), "{output:?}");
    assert!(!made.exists());
    // Whoever says that it is an agent is one, also without hooks.
    let mut env = env;
    env.set("SAFEPOINT_AGENT", "claude-code");
    for words in [
        &["exec", "--no-fence", "--", "git", "status"][..],
        &["exec", "--no-fence", "--dry-run", "--", "git", "status"],
        &["run", "--no-fence", "--", "true"],
    ] {
        let run = env.run(words);
        assert_eq!(run.code, 7, "{run:?}");
        assert!(run.stderr.contains("behind the fence"), "{run:?}");
    }
    assert!(!made.exists());
}

#[test]
fn fe_01_without_a_fence_a_person_is_asked_whatever_the_words_say() {
    let env = plain();
    git(&env.project(), &["init", "-q"]);
    for command in [&["git", "status"][..], &["cat", "a"], &["ls"]] {
        let (code, reply) = exec_with(&env, &["--no-fence"], command);
        let denied = (code, &reply["denial"]["code"]);
        assert_eq!(denied, (2, &json!("APPROVAL_REQUIRED")), "{reply:#}");
    }
    // A control: with a fence nobody is.
    support::runs(&env, &["git", "status"]);
    support::runs(&env, &["cat", "a"]);
    support::runs(&env, &["ls"]);
}

/// A repository with a project in it that is a workspace of its own, not in a temporary folder.
fn nested(place: &Path) -> std::path::PathBuf {
    let app = place.join("mono/app");
    fs::create_dir_all(&app).unwrap();
    fs::create_dir(place.join("mono/other")).unwrap();
    git(&place.join("mono"), &["init", "-q"]);
    git(&app, &["init", "-q"]);
    fs::write(app.join("safepoint.yaml"), "").unwrap();
    app
}

#[test]
fn fe_01_the_workspace_of_a_session_stays_what_it_was_without_its_marks() {
    let mut env = bare();
    let prefix = safepoint_clients::shell_prefix(SAFEPOINT);
    env.set("CLAUDE_CODE_SESSION_ID", "s-1");
    for is_prefixed in [false, true] {
        let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
        let app = nested(outside.path());
        let other = outside.path().join("mono/other");
        let session = format!("s-{is_prefixed}");
        env.set(
            "CLAUDE_CODE_SHELL_PREFIX",
            if is_prefixed { &prefix } else { "" },
        );
        env.set("CLAUDE_CODE_SESSION_ID", &session);
        let run_in_session = |session: &str, id: &str, line: &str| {
            let fields = json!({
                "session_id": session, "tool_use_id": id, "tool_input": {"command": line},
            });
            let answer = hook(&env, "claude-code", &app, &fields);
            assert!(answer.status.success(), "{line}: {answer:?}");
            let line = match is_prefixed {
                // As Claude Code writes it.
                true => {
                    let eval = format!("eval {} < /dev/null && pwd -P >| /dev/null", quoted(line));
                    format!("{} {}", quoted(&prefix), quoted(&eval))
                }
                false => instead(&answer).unwrap_or_else(|| line.to_owned()),
            };
            let output = run_in(&env, &app, &line);
            let mut after = fields;
            after["hook_event_name"] = json!("PostToolUse");
            after["tool_response"] = json!({"stdout": ""});
            hook(&env, "claude-code", &app, &after);
            output
        };
        let run = |id: &str, line: &str| run_in_session(&session, id, line);
        let write = format!("echo x > {}/made; echo x > mine", other.display());
        fs::write(app.join("w.sh"), &write).unwrap();
        fs::write(
            app.join("m.sh"),
            "mv safepoint.yaml x; mv .git y; mv w.sh z.sh",
        )
        .unwrap();
        // A control: it cannot before either.
        run("t-1", "bash w.sh");
        assert!(names(&other).is_empty());
        assert!(app.join("mine").exists(), "it runs");
        fs::remove_file(app.join("mine")).unwrap();
        let moved = run("t-2", "bash m.sh");
        assert!(app.join("z.sh").exists(), "{moved:?}");
        for (id, line) in [
            ("t-3", "bash z.sh".to_owned()),
            ("t-4", format!("{SAFEPOINT} exec -- bash z.sh")),
        ] {
            let output = run(id, &line);
            assert!(names(&other).is_empty(), "{line}: {output:?}");
            assert!(app.join("mine").exists(), "{line}: {output:?}");
            fs::remove_file(app.join("mine")).unwrap();
        }
        // Nor in the next session of a client there.
        if !is_prefixed {
            let output = run_in_session("s-next", "t-5", "bash z.sh");
            assert!(names(&other).is_empty(), "{output:?}");
            assert!(app.join("mine").exists(), "{output:?}");
        }
    }
}

#[test]
fn fe_01_a_line_runs_in_no_other_directory_than_it_was_judged_for() {
    for (client, event, tool) in [
        ("codex", "PreToolUse", "Bash"),
        ("gemini", "BeforeTool", "run_shell_command"),
    ] {
        let env = plain();
        let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
        git(outside.path(), &["init", "-q"]);
        let project = env.project();
        fs::create_dir(project.join("sub")).unwrap();
        let judged = |id: &str| {
            let line = "echo x > made; echo ran";
            let fields = json!({
                "hook_event_name": event, "tool_name": tool, "tool_use_id": id,
                "tool_input": {"command": line},
            });
            let answer = hook(&env, client, &project, &fields);
            let line = answer_line(&answer).unwrap_or_else(|| panic!("{client}: {answer:?}"));
            assert!(line.contains(" perform "), "{line}");
            line
        };
        for (id, place) in [("t-1", outside.path()), ("t-2", &project.join("sub"))] {
            let output = run_in(&env, place, &judged(id));
            assert!(!output.status.success(), "{client}: {output:?}");
            assert!(output.stdout.is_empty(), "{client}: {output:?}");
            assert!(!place.join("made").exists(), "{client}: {output:?}");
        }
        // A control: there it runs.
        let output = run_in(&env, &project, &judged("t-3"));
        assert!(output.status.success(), "{client}: {output:?}");
        assert!(project.join("made").exists());
    }
}

/// The other line, wherever the client's answer has it.
fn answer_line(answer: &Output) -> Option<String> {
    fn find(value: &Value) -> Option<String> {
        let fields = value.as_object()?;
        let own = fields.get("command").and_then(Value::as_str);
        own.map(str::to_owned)
            .or_else(|| fields.values().find_map(find))
    }
    find(&serde_json::from_slice(&answer.stdout).ok()?)
}

/// The directory of a call is exchanged between the look at it and its use.
#[test]
fn fe_01_a_directory_that_is_exchanged_opens_no_fence_elsewhere() {
    let rounds = support::rounds(30);
    let env = plain();
    let outside = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let (project, out) = (env.project(), outside.path().to_owned());
    let (place, link) = (project.join("d"), project.join("l"));
    let between = project.join("t");
    fs::create_dir(&place).unwrap();
    symlink(&out, &link).unwrap();
    let claude = Claude::new(&env);
    let over = AtomicBool::new(false);
    let mut inside = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut pause = 0;
            while !over.load(Ordering::Acquire) {
                pause = (pause + 137) % 900;
                std::thread::sleep(std::time::Duration::from_millis(pause));
                // A link, and a directory, take each other's names.
                for (from, to) in [(&place, &between), (&link, &place), (&between, &link)] {
                    fs::rename(from, to).unwrap();
                }
            }
        });
        for round in 0..rounds {
            let id = format!("t-{round}");
            let line = format!("{SAFEPOINT} -C d exec -- touch n{round}");
            let asked = claude.asks(&id, &line);
            if asked.code == 0 {
                let line = passes(&asked).unwrap_or(line);
                run_in(&env, &project, &line);
                claude.after(&id, "Bash", json!({"command": line}));
            }
            let name = format!("n{round}");
            inside += usize::from(place.join(&name).exists() || link.join(&name).exists());
            if !names(&out).is_empty() {
                break;
            }
        }
        over.store(true, Ordering::Release);
    });
    assert!(names(&out).is_empty(), "{:?}", names(&out));
    // A control: some of them do run.
    assert!(inside > 0);
}
