//! `hook` from outside: what a client is answered, what is recorded, and that nothing goes
//! through because something went wrong.

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
use std::process::Stdio;

use client::{Claude, denied, passes};
use serde_json::{Value, json};
use support::{OPEN, approve, bare, entries, project, show};
use testkit::TestEnv;
use testkit::tree::{assert_same, look};

/// A deletion is asked about; nothing else is.
const ASKED: &str = r#"
atlas_version: "1.0"
atlas_id: "tests.asked"
version: "1.0.0"
name: "Asked"
description: "A deletion is explained first"
capabilities:
  - capability_id: "all"
    name: "All"
    actions: ["file.*", "process.*", "shell.*", "git.*", "net.*", "agent.*", "mcp.*", "safepoint.*"]
checkpoints:
  - checkpoint_id: "why-delete"
    name: "Why delete"
    trigger:
      type: action_pre
      patterns: ["file.delete"]
    mode: blocking
    questions:
      - question_id: "why"
        question: "Why is it deleted?"
        response_type: text
        required: true
"#;

fn plain() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\ntwo\nthree\n");
    env.write("project/src/util.py", "x = 1\n");
    env
}

#[track_caller]
fn log(env: &TestEnv) -> Vec<Value> {
    let mut actions = env.json(&["log"])["actions"].as_array().unwrap().clone();
    actions.reverse();
    actions
}

/// The action of this summary, and the paths it changed.
#[track_caller]
fn changed(env: &TestEnv, summary: &str) -> (Value, Vec<String>) {
    let all = log(env);
    let found = all
        .iter()
        .find(|it| it["summary"].as_str().unwrap().contains(summary));
    let found = found.unwrap_or_else(|| panic!("{summary}: {all:#?}"));
    let changes = found["changes"].as_array().unwrap().iter();
    let paths = changes.map(|it| it["path"].as_str().unwrap().to_owned());
    (found.clone(), paths.collect())
}

#[test]
fn su_05_what_a_shell_changes_is_told_of_its_action_and_undone_alone() {
    let env = plain();
    let claude = Claude::new(&env);
    claude.does("t-1", "sed -i s/one/ONE/ src/app.py");
    claude.writes("t-2", "src/new.py", "print('hi')\n");
    claude.does("t-3", "sed -i s/three/THREE/ src/app.py");
    let (first, paths) = changed(&env, "s/one/ONE/");
    assert_eq!(paths, ["src/app.py"]);
    assert_eq!(first["outcome"], "ok");
    assert_eq!(changed(&env, "new.py").1, ["src/new.py"]);
    env.json(&["undo", first["action_id"].as_str().unwrap()]);
    let app = fs::read_to_string(env.project().join("src/app.py")).unwrap();
    assert_eq!(app, "one\ntwo\nTHREE\n", "only the first is gone");
    assert!(env.project().join("src/new.py").exists());
    // One id, from the proposal to the outcome.
    let mine = entries(&env, "action_intended");
    let intended = mine.iter().any(|it| it["action_id"] == first["action_id"]);
    assert!(intended, "{mine:#?}");
}

#[test]
fn su_05_a_session_begins_with_a_checkpoint_and_rolls_back_to_it_exactly() {
    let env = plain();
    let before = look(&env.project());
    let claude = Claude::new(&env);
    let said = claude.says("SessionStart", json!({"source": "startup"}));
    let said: Value = serde_json::from_str(&said.stdout).unwrap();
    let told = &said["hookSpecificOutput"]["additionalContext"];
    let told = told.as_str().unwrap();
    let checkpoint = told
        .split_whitespace()
        .find(|word| word.starts_with("chk_"))
        .unwrap();
    claude.does("t-1", "rm src/util.py");
    claude.writes("t-2", "deep/er/new.py", "new\n");
    claude.does("t-3", "chmod 600 src/app.py");
    env.json(&["rollback", checkpoint]);
    assert_same(&before, &look(&env.project()));
}

#[test]
fn su_05_a_gate_stops_a_deletion_and_the_model_is_told_how_to_answer() {
    let env = project(ASKED);
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "ls"));
    let told = denied(&claude.asks("t-2", "rm a"));
    assert!(told.contains("Why is it deleted?"), "{told}");
    let command = answer_in(&told);
    // It is for the agent: the same client may run it.
    let command = command.replace('…', "it is generated");
    let instead = passes(&claude.asks("t-3", &command));
    assert_reaches_store(instead, &command);
    let words = shlex(&command);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    env.json(&words);
    claude.does("t-4", "rm a");
    assert!(!env.project().join("a").exists());
}

/// The line runs as an agent's, behind a fence at which `safepoint` is served.
#[track_caller]
fn assert_reaches_store(instead: Option<String>, line: &str) {
    let words = words_of_replacement(&instead.unwrap(), line);
    let (agent, rest) = words.split_at(2);
    assert_eq!(agent, ["env", "SAFEPOINT_AGENT=claude-code"]);
    assert!(rest[2].starts_with("ses_"), "{rest:?}");
}

/// The words that run `line`, from the program on. The client sees the line as it was written.
#[track_caller]
fn words_of_replacement(replacement: &str, line: &str) -> Vec<String> {
    let quoted = line.replace('\'', r#"'"'"'"#);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    let quoted = match !line.is_empty() && line.chars().all(plain) {
        true => quoted,
        false => format!("'{quoted}'"),
    };
    let end = format!(" -- bash -c {quoted} || exit 126\n{line}");
    let front = replacement.strip_suffix(&end);
    let front = front.unwrap_or_else(|| panic!("{replacement}"));
    let words = front.strip_prefix("exec ").unwrap().split_whitespace();
    let words = words.chain(["--", "bash", "-c", line]);
    words.map(str::to_owned).collect()
}

/// The command that answers, as the model is told it.
#[track_caller]
fn answer_in(told: &str) -> String {
    let marker = "with this command: ";
    let start = told.find(marker).unwrap() + marker.len();
    let command = told[start..].lines().next().unwrap();
    assert!(command.starts_with('/'), "by its path: {command}");
    assert!(
        command.contains("safepoint session answer ses_"),
        "{command}"
    );
    command.to_owned()
}

#[test]
fn su_05_a_gate_at_the_beginning_locks_everything_but_its_answer() {
    let atlas = ASKED.replace(
        "checkpoints:\n",
        r#"context_blocks:
  - context_id: "house"
    name: "House rules"
    content: "Be careful with the printer."
    inject_mode: always
checkpoints:
  - checkpoint_id: "terms"
    name: "Terms"
    trigger:
      type: session_start
    mode: blocking
    questions:
      - question_id: "agree"
        question: "Do you agree?"
        response_type: boolean
        required: true
"#,
    );
    let env = project(&atlas);
    let claude = Claude::new(&env);
    let said = claude.says("SessionStart", json!({"source": "startup"}));
    passes(&said);
    assert!(said.stdout.contains("Do you agree?"), "{said:?}");
    assert!(said.stdout.contains("careful with the printer"), "{said:?}");
    let told = denied(&claude.asks("t-1", "touch b"));
    let command = answer_in(&told);
    assert!(command.ends_with(r#"{"agree":true}'"#), "{command}");
    assert_reaches_store(passes(&claude.asks("t-2", &command)), &command);
    // What is more than the answer is judged.
    denied(&claude.asks("t-3", &format!("{command}; touch b")));
    denied(&claude.asks("t-4", &format!("{command} > b")));
    let words = shlex(&command);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    env.json(&words);
    claude.does("t-5", "touch b");
}

#[test]
fn su_05_what_goes_on_in_the_background_is_told_when_it_ends() {
    let env = plain();
    let claude = Claude::new(&env);
    let input = json!({"command": "sed -i s/one/ONE/ src/app.py", "run_in_background": true});
    let line = passes(&claude.before("t-1", "Bash", input.clone())).unwrap();
    // The client goes on before it has begun.
    passes(&claude.after("t-1", "Bash", input));
    assert_eq!(log(&env).len(), 0);
    let words = words_of_replacement(&line, "sed -i s/one/ONE/ src/app.py");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    assert_eq!(env.run(&words).code, 0);
    let (action, paths) = changed(&env, "s/one/ONE/");
    assert_eq!(
        (&action["outcome"], paths),
        (&json!("ok"), vec!["src/app.py".to_owned()])
    );
}

/// The words of a command in which only the last one is quoted.
fn shlex(command: &str) -> Vec<String> {
    let (front, quoted) = command.split_once('\'').unwrap();
    let mut words: Vec<String> = front.split_whitespace().map(str::to_owned).collect();
    words.push(quoted.trim_end_matches('\'').to_owned());
    words
}

#[test]
fn su_05_what_waits_for_an_operator_passes_once_after_the_yes() {
    let env = project(support::HELD);
    let claude = Claude::new(&env);
    let told = denied(&claude.asks("t-1", "cp a b"));
    let hold = told
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| word.starts_with("hld_"))
        .unwrap()
        .to_owned();
    let form = show(&env, &hold);
    assert_eq!(form["canonical_form"]["tool"]["name"], "claude-code/Bash");
    approve(&env, &hold);
    claude.does("t-2", "cp a b");
    assert!(env.project().join("b").exists());
    denied(&claude.asks("t-3", "cp a b"));
}

#[test]
fn su_05_calls_at_once_are_told_apart() {
    let env = plain();
    let claude = Claude::new(&env);
    let one = json!({"file_path": env.project().join("one"), "content": "1"});
    let two = json!({"file_path": env.project().join("two"), "content": "2"});
    passes(&claude.before("t-1", "Write", one.clone()));
    env.write("project/one", "1");
    passes(&claude.before("t-2", "Write", two.clone()));
    let three = json!({"file_path": env.project().join("src/app.py"),
        "old_string": "two", "new_string": "TWO"});
    passes(&claude.before("t-3", "Edit", three.clone()));
    env.write("project/two", "2");
    env.write("project/src/app.py", "one\nTWO\nthree\n");
    passes(&claude.after("t-2", "Write", two));
    passes(&claude.after("t-1", "Write", one));
    passes(&claude.after("t-3", "Edit", three));
    assert_eq!(changed(&env, "Write one").1, ["one"]);
    assert_eq!(changed(&env, "Write two").1, ["two"]);
    assert_eq!(changed(&env, "Edit src/app.py").1, ["src/app.py"]);
    let observed = log(&env)
        .into_iter()
        .filter(|it| it["outcome"] == "observed");
    assert_eq!(observed.count(), 0, "all of it is somebody's");
    let (two, _) = changed(&env, "Write two");
    env.json(&["undo", two["action_id"].as_str().unwrap()]);
    assert!(!env.project().join("two").exists());
    assert!(env.project().join("one").exists());
}

#[test]
fn su_05_an_outcome_that_nobody_tells_is_unknown() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "sed -i s/one/ONE/ src/app.py"));
    env.write("project/src/app.py", "ONE\ntwo\nthree\n");
    passes(&claude.says("Stop", json!({"stop_hook_active": false})));
    let (action, paths) = changed(&env, "s/one/ONE/");
    assert_eq!(action["outcome"], "unknown");
    // Nobody saw the line write it: it may be a person's.
    assert!(paths.is_empty(), "{paths:?}");
    let observed = log(&env);
    let observed = observed.iter().find(|it| it["outcome"] == "observed");
    assert!(observed.unwrap().to_string().contains("src/app.py"));
    // And the one that comes too late changes nothing.
    passes(&claude.after(
        "t-1",
        "Bash",
        json!({"command": "sed -i s/one/ONE/ src/app.py"}),
    ));
    assert_eq!(log(&env).len(), 2);
}

#[test]
fn su_05_a_failure_is_recorded_as_one() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "touch made; false"));
    env.write("project/made", "");
    let failed = json!({"tool_name": "Bash", "tool_input": {"command": "touch made; false"},
        "tool_use_id": "t-1", "error": "Exit code 1", "is_interrupt": false});
    passes(&claude.says("PostToolUseFailure", failed));
    assert_eq!(changed(&env, "touch made").0["outcome"], "error");
}

/// What a tool gave back can have anything in it, and is told by its size and a mark alone.
#[test]
fn su_05_what_a_tool_gave_back_is_not_kept() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "echo PIN=$DEPLOY_PIN"));
    let done = json!({"tool_name": "Bash", "tool_input": {"command": "echo PIN=$DEPLOY_PIN"},
        "tool_use_id": "t-1", "tool_response": {"stdout": "PIN=55443322", "stderr": "",
        "interrupted": false, "isImage": false}});
    passes(&claude.says("PostToolUse", done));
    let trail = env.json(&["trail", "list"]);
    assert!(!trail.to_string().contains("55443322"), "{trail:#}");
    let reported = env.json(&["trail", "list", "--kind", "ActionReported"]);
    let result = &reported["entries"][0]["body"]["result"];
    assert!(result["bytes"].as_u64() > Some(12), "{reported:#}");
    assert!(result["digest"].as_str().unwrap().starts_with("[redacted:"));
}

#[test]
fn su_05_a_line_that_could_write_anywhere_runs_behind_the_fence() {
    let env = plain();
    // Not in `/tmp`, which is free for all.
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let outside = place.path();
    let script = format!(
        "echo in > made; echo out > {}/made; exit 3\n",
        outside.display()
    );
    env.write("project/build.sh", &script);
    let claude = Claude::new(&env);
    let line = passes(&claude.asks("t-1", "sh build.sh")).unwrap();
    assert!(line.contains(" perform act_"), "{line}");
    let words = words_of_replacement(&line, "sh build.sh");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let run = env.run(&words);
    assert_eq!(run.code, 3, "it ends as the line ends: {run:?}");
    assert!(env.project().join("made").exists());
    assert!(!outside.join("made").exists(), "the fence holds");
    passes(&claude.after("t-1", "Bash", json!({"command": line})));
    let (action, paths) = changed(&env, "sh build.sh");
    assert_eq!(action["outcome"], "error");
    assert_eq!(paths, ["made"]);
    // Leave is for once, and for exactly this.
    assert_ne!(env.run(&words).code, 3);
    let other = passes(&claude.asks("t-2", "sh build.sh")).unwrap();
    let action = other.split_whitespace().find(|it| it.starts_with("act_"));
    let refused = env.run(&["perform", action.unwrap(), "--", "bash", "-c", "echo other"]);
    assert_eq!(refused.code, 7, "{refused:?}");
}

#[test]
fn su_05_sub_agents_and_servers_are_judged_too() {
    let env = plain();
    let claude = Claude::new(&env);
    let start = json!({"description": "d", "prompt": "p", "subagent_type": "general-purpose"});
    passes(&claude.before("t-1", "Task", start));
    let within = json!({"agent_id": "a1", "agent_type": "general-purpose", "tool_name": "Bash",
        "tool_use_id": "t-2", "tool_input": {"command": "git push origin main"}});
    denied(&claude.says("PreToolUse", within));
    denied(&claude.before("t-3", "mcp__mini__echo", json!({"text": "x"})));
    denied(&claude.before("t-4", "Frobnicate", json!({})));
    passes(&claude.before("t-5", "TodoWrite", json!({"todos": []})));
}

#[test]
fn su_05_own_files_are_out_of_reach_of_every_tool() {
    let env = project(OPEN);
    let claude = Claude::new(&env);
    let harmless = json!({"file_path": env.project().join("b"), "content": "{}"});
    passes(&claude.before("t", "Write", harmless));
    for path in [".claude/settings.json", "safepoint.yaml", "atlas.yaml"] {
        let input = json!({"file_path": env.project().join(path), "content": "{}"});
        let told = denied(&claude.before(path, "Write", input));
        assert!(told.contains("CONTROL_FORBIDDEN"), "{path}: {told}");
    }
}

#[test]
fn su_05_prompts_bring_what_the_steward_wants_known() {
    let atlas = format!(
        "{ASKED}{}",
        r#"
  - checkpoint_id: "house"
    name: "House rules"
    trigger:
      type: keyword
      patterns: ["deploy"]
    mode: advisory
    guidance:
      format: markdown
      content: "Deploys are on Tuesdays."
"#
    );
    let env = project(&atlas);
    let claude = Claude::new(&env);
    let said = claude.says("UserPromptSubmit", json!({"prompt": "good morning"}));
    assert!(!said.stdout.contains("Tuesdays"), "{said:?}");
    let said = claude.says("UserPromptSubmit", json!({"prompt": "please deploy it"}));
    passes(&said);
    assert!(said.stdout.contains("Deploys are on Tuesdays."), "{said:?}");
    // It has been told; a call that has nothing to do with it does not tell it again.
    let said = claude.asks("t-1", "ls");
    passes(&said);
    assert!(!said.stdout.contains("Tuesdays"), "{said:?}");
    passes(&claude.says("SessionEnd", json!({"reason": "other"})));
}

#[test]
fn su_05_whatever_goes_wrong_denies() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-0", "ls"));
    denied(&claude.raw(b"not json"));
    denied(&claude.raw(b""));
    denied(
        &claude.raw(b"{\"hook_event_name\": \"Nonsense\", \"session_id\": \"s\", \"cwd\": \"/\"}"),
    );
    denied(&claude.says(
        "PreToolUse",
        json!({"tool_name": "Bash", "tool_input": "ls"}),
    ));
    denied(&claude.says(
        "PreToolUse",
        json!({"cwd": "/nowhere/at/all", "tool_name": "Bash",
        "tool_input": {"command": "ls"}, "tool_use_id": "t"}),
    ));
    for words in [
        &["hook", "someone"][..],
        &["hook"],
        &["hook", "claude-code", "--nonsense"],
    ] {
        let run = env.run_with(words, b"{}");
        assert_eq!(run.code, 2, "{words:?}: {run:?}");
        assert!(!run.stderr.is_empty(), "{words:?}");
    }
    // An atlas that cannot be read.
    env.write("project/safepoint.yaml", "atlases: [missing.yaml]\n");
    denied(&claude.asks("t-1", "ls"));
    env.write("project/safepoint.yaml", "");
    passes(&claude.asks("t-2", "ls"));
    // A store that is none.
    let store = env.home().join("data/store.db");
    assert!(store.exists(), "{}", store.display());
    fs::write(
        &store,
        "no database at all, and long enough to be looked at as one",
    )
    .unwrap();
    denied(&claude.asks("t-3", "ls"));
}

#[test]
fn su_05_a_client_that_never_ends_its_sentence_is_denied_in_time() {
    let env = plain();
    let mut command = env.command(&["hook", "claude-code", "--deadline", "300ms"]);
    let command = command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let open = child.stdin.take(); // and it stays open
    let code = child.wait().unwrap().code();
    let mut told = String::new();
    child.stderr.unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("too long"), "{told}");
    drop(open);
}

#[test]
fn su_05_an_agent_that_runs_behind_our_fence_needs_no_other() {
    let env = plain();
    env.write("project/build.sh", "echo made > made\n");
    let event = json!({
        "session_id": "s-1", "transcript_path": "/dev/null", "cwd": env.project(),
        "permission_mode": "default", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "sh build.sh"}, "tool_use_id": "t-1",
    });
    env.write("project/event.json", &event.to_string());
    let line = format!(
        "\"{0}\" hook claude-code < event.json > answer; echo $? > code; \
         SAFEPOINT_BROKER=/nowhere \"{0}\" hook claude-code < event.json; echo $? > lost",
        env!("CARGO_BIN_EXE_safepoint")
    );
    env.write("project/client.sh", &line);
    let run = env.run(&["run", "--", "sh", "client.sh"]);
    assert_eq!(run.code, 0, "{run:?}");
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap();
    assert_eq!((read("code").trim(), read("answer").trim()), ("0", ""));
    assert_eq!(
        read("lost").trim(),
        "2",
        "a hook that reaches nobody denies"
    );
    // Outside of it, saying that one is inside opens nothing.
    let mut env = env;
    env.set("SAFEPOINT_AGENT", "1");
    let line = passes(&Claude::new(&env).asks("t-2", "sh build.sh"));
    assert!(line.is_some_and(|line| line.contains(" perform ")));
}

#[test]
fn su_05_a_hook_waits_for_an_operator_if_it_is_told_to() {
    let mut env = project(support::HELD);
    env.set("SAFEPOINT_HOOK_WAIT", "200ms");
    let told = denied(&Claude::new(&env).asks("t-1", "cp a b"));
    assert!(told.contains("hld_"), "nobody came: {told}");
    env.set("SAFEPOINT_HOOK_WAIT", "2m");
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| Claude::new(&env).asks("t-2", "cp a b"));
        let hold = support::waiting(&env).first().cloned().unwrap();
        approve(&env, hold["hold_id"].as_str().unwrap());
        passes(&asked.join().unwrap());
    });
}

#[test]
fn su_05_temporary_files_are_no_reason_to_ask() {
    let env = bare();
    // A project that does not lie in a temporary folder itself.
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir(place.path().join(".git")).unwrap();
    let scratch = tempfile::tempdir_in("/tmp").unwrap();
    let at = |name: &str| scratch.path().join(name).display().to_string();
    fs::write(at("mine"), "mine").unwrap();
    fs::write(place.path().join("kept"), "kept").unwrap();
    fs::hard_link(at("mine"), at("twice")).unwrap();
    std::os::unix::fs::symlink("/etc", at("link")).unwrap();
    let claude = Claude::new(&env);
    let asks = |id: &str, line: String| {
        let call = json!({"cwd": place.path(), "tool_name": "Bash",
            "tool_input": {"command": line}, "tool_use_id": id});
        claude.says("PreToolUse", call)
    };
    passes(&asks("t-1", format!("echo x > {}", at("new"))));
    passes(&asks("t-2", format!("rm -rf {}", scratch.path().display())));
    fs::remove_file(at("twice")).unwrap();
    passes(&asks("t-3", format!("echo x >> {}", at("mine"))));
    // Another name of a file that lies elsewhere, a link that leads out, and the folder itself.
    fs::hard_link(at("mine"), at("twice")).unwrap();
    denied(&asks("t-4", format!("echo x > {}", at("twice"))));
    denied(&asks("t-5", format!("echo x > {}", at("link/passwd"))));
    denied(&asks("t-6", "rm -rf /tmp/*".to_owned()));
    denied(&asks("t-7", format!("rm -rf {}", env.home().display())));
}

#[test]
fn su_05_a_program_is_not_ours_by_its_name() {
    let env = plain();
    env.write("project/safepoint", "#!/bin/sh\ntouch made\n");
    let claude = Claude::new(&env);
    for (number, line) in [
        "./safepoint log",
        "cd . && ./safepoint status",
        "ls | ./safepoint log",
    ]
    .into_iter()
    .enumerate()
    {
        let instead = passes(&claude.asks(&format!("t-{number}"), line));
        assert!(instead.is_some_and(|it| it.contains(" perform ")), "{line}");
    }
    let ours = env!("CARGO_BIN_EXE_safepoint");
    let line = format!("{ours} log");
    assert_reaches_store(passes(&claude.asks("u-1", &line)), &line);
    // What is put into it when it runs may be anything.
    let instead = passes(&claude.asks("u-2", &format!("{ours} log $(cat words)")));
    assert!(instead.is_some());
}

#[test]
fn fe_01_every_line_runs_behind_the_fence() {
    let env = plain();
    let claude = Claude::new(&env);
    for (number, line) in [
        "git status",
        "git commit -am x",
        "npm install",
        "pip install .",
        "ls",
        "cd src",
        "true",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let instead = passes(&claude.asks(&format!("t-{number}"), line));
        assert!(instead.is_some_and(|it| it.contains(" perform ")), "{line}");
    }
}

#[test]
fn fe_06_the_line_as_it_was_written_is_shown_to_the_client_and_never_run() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = "echo '1' >> count; cat <<'END'\nit's\nEND";
    let replacement = passes(&claude.asks("t-1", line)).unwrap();
    let words = words_of_replacement(&replacement, line);
    assert_eq!(words[1], "perform", "{replacement}");
    let code = |line: &str| claude.shell(line).status.code();
    let first = claude.shell(&replacement);
    assert_eq!(first.stdout, b"it's\n", "{first:?}");
    let count = || fs::read_to_string(env.project().join("count")).unwrap();
    assert_eq!(count(), "1\n", "it ran once");
    // Leave was for once: then nothing of it runs, also where a shell goes on after `exec`.
    let going_on = format!("shopt -s execfail; {replacement}");
    for shell in [&replacement, &going_on] {
        assert_ne!(code(shell), Some(0));
        assert_eq!(count(), "1\n");
    }
    let gone = replacement.replace(&words[0], "/nowhere/safepoint");
    assert_eq!(code(&gone), Some(127));
    assert_eq!(code(&format!("shopt -s execfail; {gone}")), Some(126));
    assert_eq!(count(), "1\n");
}

#[test]
fn su_05_links_lead_where_the_kernel_goes() {
    let env = plain();
    env.write("project/sub/x", "");
    std::os::unix::fs::symlink("..", env.project().join("sub/up")).unwrap();
    fs::create_dir(env.project().join(".git")).unwrap();
    env.write("project/.git/config", "");
    std::os::unix::fs::symlink(".git/config", env.project().join("cfg")).unwrap();
    let claude = Claude::new(&env);
    let write = |id: &str, path: &str| {
        let path = env.project().join(path);
        claude.before(id, "Write", json!({"file_path": path, "content": "x"}))
    };
    passes(&write("t-0", "sub/y"));
    denied(&write("t-1", "sub/up/../../escaped"));
    denied(&claude.asks("t-2", "echo x > sub/up/../../escaped"));
    denied(&write("t-3", "cfg"));
}

#[test]
fn su_05_a_session_stays_where_it_began() {
    let env = project(support::HELD);
    let elsewhere = env.write("elsewhere/f", "x").parent().unwrap().to_owned();
    let claude = Claude::new(&env);
    passes(&claude.asks("t-1", "ls"));
    let moved = |id: &str, line: &str| {
        let call = json!({"cwd": elsewhere, "tool_name": "Bash", "tool_use_id": id,
            "tool_input": {"command": line}});
        claude.says("PreToolUse", call)
    };
    passes(&moved("t-2", "ls"));
    let told = denied(&moved("t-3", "rm f"));
    assert!(told.contains("Nothing is deleted here"), "{told}");
    // Another session begins there, under what applies there.
    let other = Claude {
        session: "s-2",
        ..Claude::new(&env)
    };
    let call = json!({"cwd": elsewhere, "tool_name": "Bash", "tool_use_id": "t-4",
        "tool_input": {"command": "rm f"}});
    passes(&other.says("PreToolUse", call));
}

#[test]
fn su_05_settings_of_the_client_that_change_unseen_are_looked_at_next() {
    let env = plain();
    env.write(
        "project/build.sh",
        "mkdir -p sub/.claude; echo '{}' > sub/.claude/settings.json\n",
    );
    let claude = Claude::new(&env);
    claude.does("t-1", "sh build.sh");
    let told = denied(&claude.asks("t-2", "touch b"));
    assert!(told.contains("rules"), "{told}");
}

#[test]
fn su_05_a_hook_that_is_told_to_end_denies() {
    use std::process::Command;
    let env = plain();
    for signal in ["TERM", "INT", "HUP"] {
        let mut command = env.command(&["hook", "claude-code"]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        // It listens once its handlers stand: the pipe is read only then.
        let status = format!("/proc/{}/status", child.id());
        loop {
            let text = fs::read_to_string(&status).unwrap();
            let caught = text
                .lines()
                .find(|line| line.starts_with("SigCgt:"))
                .unwrap();
            let caught =
                u64::from_str_radix(caught.split_whitespace().nth(1).unwrap(), 16).unwrap();
            if caught & (1 << 14) != 0 && text.contains("Threads:\t2") {
                break;
            }
            std::thread::yield_now();
        }
        let id = child.id().to_string();
        Command::new("kill")
            .args([&format!("-{signal}"), &id])
            .status()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{signal}");
    }
}

#[test]
fn su_05_the_keys_of_operators_are_not_searched() {
    let env = plain();
    let claude = Claude::new(&env);
    let home = env.home();
    let above = home.parent().unwrap();
    passes(&claude.before(
        "t-0",
        "Grep",
        json!({"pattern": "x", "path": env.project()}),
    ));
    for (id, path) in [("t-1", home.as_path()), ("t-2", above)] {
        let input = json!({"pattern": "PRIVATE", "path": path});
        denied(&claude.before(id, "Grep", input));
    }
    denied(&claude.asks("t-3", &format!("grep -r . {}", above.display())));
}

/// Every file below a directory.
fn files_below(place: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(place).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files_below(&entry.path(), found),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[track_caller]
fn kept_nowhere(env: &TestEnv, secret: &str) {
    let mut files = Vec::new();
    files_below(&env.home(), &mut files);
    assert!(!files.is_empty());
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let found = bytes
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[test]
fn pr_05_a_token_in_a_line_is_kept_and_shown_nowhere() {
    let env = project(support::HELD);
    let token = format!("wst_{}", "0a1b2c3d".repeat(8));
    let other = format!("wst_{}", "0a1b2c3e".repeat(8));
    let claude = Claude::new(&env);
    let line = format!("SAFEPOINT_TOKEN={token} tee b <<< {token}");
    denied(&claude.asks("t-1", &line));
    let listed = env.run(&["--json", "hold", "list"]).stdout;
    assert!(
        listed.contains("tee b") && !listed.contains("wst_"),
        "{listed}"
    );
    let holds = env.json(&["hold", "list"]);
    let hold = holds["holds"][0]["hold_id"].as_str().unwrap().to_owned();
    let page = env.run(&["hold", "show", &hold]).stdout;
    assert!(
        page.contains(":workspace-token]") && !page.contains("wst_"),
        "{page}"
    );
    // A yes is good for that token, and for no other.
    approve(&env, &hold);
    denied(&claude.asks("t-2", &line.replace(&token, &other)));
    passes(&claude.asks("t-3", &line));
    kept_nowhere(&env, &token);
    kept_nowhere(&env, &other);
}

#[test]
fn pr_05_what_was_approved_runs_with_the_token_itself() {
    let env = project(support::HELD);
    let token = format!("wst_{}", "0a1b2c3d".repeat(8));
    let words = ["cp", "--", "a", &token];
    let (_, asked) = support::exec(&env, &words);
    let hold = asked["denial"]["hold_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{asked:#}"));
    approve(&env, hold);
    support::runs(&env, &words);
    assert!(env.project().join(&token).exists());
}

#[test]
fn pr_05_the_documented_use_of_a_token_is_not_held() {
    let env = project(support::HELD);
    let program = env!("CARGO_BIN_EXE_safepoint");
    let token = format!("wst_{}", "0a1b2c3d".repeat(8));
    let claude = Claude::new(&env);
    for (number, line) in [
        format!("SAFEPOINT_TOKEN={token} {program} workspace signal wsp_1 started"),
        format!("{program} workspace signal wsp_1 complete --token {token}"),
        format!("SAFEPOINT_TOKEN={token} {program} workspace checkpoint wsp_1 --body '{{}}'"),
    ]
    .iter()
    .enumerate()
    {
        let said = passes(&claude.asks(&format!("t-{number}"), line));
        assert_reaches_store(said, line);
    }
    assert_eq!(env.json(&["hold", "list"])["holds"], json!([]));
    denied(&claude.asks(
        "t-9",
        &format!("SAFEPOINT_HOME=/x {program} workspace list"),
    ));
}

#[test]
fn pr_05_an_agent_sees_no_holds_of_others() {
    let env = project(support::HELD);
    let claude = Claude::new(&env);
    denied(&claude.asks("t-1", "tee b < a"));
    let holds = env.json(&["hold", "list"]);
    let hold = holds["holds"][0]["hold_id"].as_str().unwrap();
    let session = holds["holds"][0]["session_id"].as_str().unwrap();
    let seen = |session: &str, words: &[&str]| {
        let mut command = env.command(words);
        command
            .env("SAFEPOINT_AGENT", "1")
            .env("SAFEPOINT_SESSION", session);
        let output = command.output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    for (session, is_mine) in [(session, true), ("ses_other", false)] {
        let (_, list) = seen(session, &["--json", "hold", "list", "--all"]);
        assert_eq!(list.contains("tee b"), is_mine, "{list}");
        let (shown, page) = seen(session, &["hold", "show", hold]);
        assert_eq!(
            (shown, page.contains("tee b")),
            (is_mine, is_mine),
            "{page}"
        );
    }
}

#[test]
fn su_05_what_waits_is_closed_when_the_client_ends_its_session() {
    let env = plain();
    let claude = Claude::new(&env);
    let told = denied(&claude.asks("t-1", "git push"));
    assert!(told.contains("a person has to approve"), "{told}");
    assert!(!told.contains("hold approve"), "{told}");
    let waiting = env.json(&["hold", "list"]);
    assert_eq!(waiting["total"], 1, "{waiting:#}");
    passes(&claude.says("SessionEnd", json!({"reason": "other"})));
    assert_eq!(env.json(&["hold", "list"])["total"], 0);
    let all = env.json(&["hold", "list", "--all"]);
    assert_eq!(all["holds"][0]["state"], "closed", "{all:#}");
}

#[test]
fn au_30_a_forbidden_attempt_is_denied_and_nothing_more() {
    let env = plain();
    let claude = Claude::new(&env);
    let home = env.home();
    for (number, line) in [
        format!("ls {}/data", home.display()),
        "safepoint gc".to_owned(),
        "export SAFEPOINT_HOME=/tmp/other".to_owned(),
        "safepoint hold approve hld_x".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        let told = denied(&claude.asks(&format!("t-{number}"), line));
        assert!(told.contains("CONTROL_FORBIDDEN"), "{line}: {told}");
        passes(&claude.asks(&format!("l-{number}"), "ls"));
    }
    passes(&claude.says("SessionEnd", json!({"reason": "other"})));
    passes(&Claude::new(&env).asks("t-9", "pwd"));
    assert_eq!(env.json(&["hold", "list"])["total"], 0);
}

/// Runs a line as the client would after the hook, and tells how it ended.
fn run_line(claude: &Claude<'_>, id: &str, line: &str) -> std::process::Output {
    let line = passes(&claude.asks(id, line)).unwrap_or_else(|| line.to_owned());
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &line]).current_dir(claude.env.project());
    for (name, value) in claude.env.command(&[]).get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let output = shell.output().unwrap();
    passes(&claude.after(id, "Bash", json!({"command": line})));
    output
}

#[test]
fn su_05_safepoint_works_inside_lines_that_run_behind_the_fence() {
    let env = plain();
    let claude = Claude::new(&env);
    let safepoint = env!("CARGO_BIN_EXE_safepoint");
    let project = env.project();
    let says = |id: &str, line: &str| {
        let output = run_line(&claude, id, line);
        let told = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {told}");
        told
    };
    claude.does("t-1", "sed -i s/one/ONE/ src/app.py");
    let shown = says("t-2", &format!("{safepoint} log | head -n 3"));
    assert!(shown.contains("sed -i"), "{shown}");
    let shown = says("t-3", &format!("{safepoint} log; git status --short; true"));
    assert!(shown.contains("sed -i"), "{shown}");
    let shown = says("t-4", &format!("{safepoint} undo 2>&1 | cat"));
    assert!(shown.contains("src/app.py"), "{shown}");
    let app = || fs::read_to_string(project.join("src/app.py")).unwrap();
    assert_eq!(app(), "one\ntwo\nthree\n");
    // What it did is in the log once, as what it is.
    let undone: Vec<Value> = log(&env)
        .into_iter()
        .rev()
        .take(2)
        .filter(|it| !it["changes"].as_array().unwrap().is_empty())
        .collect();
    assert_eq!(undone.len(), 1, "{undone:#?}");
    assert_eq!(undone[0]["action"], "checkpoint.undo");
    says("t-5", &format!("{safepoint} redo --json | cat"));
    assert_eq!(app(), "ONE\ntwo\nthree\n");
    for (number, words) in [
        "verify CHK",
        "show CHK",
        "diff CHK",
        "list --json",
        "audit --since 1h",
        "status",
        "rollback CHK --dry-run",
    ]
    .into_iter()
    .enumerate()
    {
        let made = says(
            &format!("c-{number}"),
            &format!(
                "{safepoint} -C {} checkpoint --json | cat",
                project.display()
            ),
        );
        let made: Value = serde_json::from_str(&made).unwrap();
        let id = made["checkpoint"]["id"].as_str().unwrap();
        let words = words.replace("CHK", id);
        says(
            &format!("d-{number}"),
            &format!("{safepoint} {words} 2>&1 | cat"),
        );
        says(
            &format!("e-{number}"),
            &format!("{safepoint} -C {} {words}", project.display()),
        );
    }
    // The commands that replies print are ones that the agent can run.
    let made: Value =
        serde_json::from_str(&says("t-6", &format!("{safepoint} checkpoint --json"))).unwrap();
    let id = made["checkpoint"]["id"].as_str().unwrap();
    let operation = r#"{"type": "edit", "changes": [{"old": "two", "new": "TWO"}]}"#;
    let mutate = format!(
        "{safepoint} mutate src/app.py --checkpoint {id} --operation '{operation}' --verify 'grep -q TWO src/app.py' --json"
    );
    let changed: Value = serde_json::from_str(&says("t-7", &format!("{mutate} | cat"))).unwrap();
    assert_eq!(app(), "ONE\nTWO\nthree\n");
    let named = |command: &Value| {
        let command = command.as_str().unwrap();
        match command.strip_prefix("safepoint ") {
            Some(rest) => format!("{safepoint} {rest}"),
            None => command.to_owned(),
        }
    };
    says("t-8", &named(&changed["rollback_command"]));
    assert_eq!(app(), "ONE\ntwo\nthree\n");
    says("t-9", &named(&made["checkpoint"]["restore_command"]));
    says(
        "t-10",
        &format!("{} | cat", named(&made["checkpoint"]["restore_command"])),
    );
}

#[test]
fn su_05_safepoint_inside_a_line_is_an_agent_and_stays_in_its_workspace() {
    let env = plain();
    let claude = Claude::new(&env);
    let safepoint = env!("CARGO_BIN_EXE_safepoint");
    env.write("other/safepoint.yaml", "");
    env.write("other/file", "before\n");
    let other = env.root().join("other");
    let other = other.to_str().unwrap();
    let theirs = env.json(&["-C", other, "checkpoint"]);
    let theirs = theirs["checkpoint"]["id"].as_str().unwrap().to_owned();
    env.write("other/file", "after\n");
    // A script hides from the hook what it calls; the broker decides.
    let script = format!(
        "{safepoint} operator add me; echo $? >> codes\n\
         {safepoint} -C {other} rollback {theirs}; echo $? >> codes\n\
         {safepoint} rollback {theirs}; echo $? >> codes\n\
         {safepoint} --store sqlite:x.db status; echo $? >> codes\n\
         {safepoint} mutate a --auto-checkpoint --operation @{other}/file; echo $? >> codes\n\
         {safepoint} checkpoint sqlite:{other}/app.db; echo $? >> codes\n\
         {safepoint} checkpoint --reason own; echo $? >> codes\n"
    );
    env.write("project/call.sh", &script);
    claude.does("t-1", "sh call.sh");
    let codes = fs::read_to_string(env.project().join("codes")).unwrap();
    assert_eq!(codes, "6\n6\n8\n6\n6\n7\n0\n");
    assert_eq!(
        fs::read_to_string(env.root().join("other/file")).unwrap(),
        "after\n"
    );
    // A line that only calls us is the agent's as well, and says so in the trail.
    claude.does("t-2", &format!("{safepoint} checkpoint --reason direct"));
    let made = entries(&env, "checkpoint_created");
    let made = made.last().unwrap();
    assert_eq!(made["actor"], "agent:claude-code", "{made:#}");
    assert_eq!(env.json(&["operator", "list"])["operators"], json!([]));
}

#[test]
fn su_05_an_agent_rolls_its_own_work_back_and_asks_about_that_of_others() {
    let env = plain();
    env.json(&["operator", "add", "ann"]);
    let claude = Claude::new(&env);
    let safepoint = env!("CARGO_BIN_EXE_safepoint");
    let made = |id: &str| {
        let output = run_line(&claude, id, &format!("{safepoint} checkpoint --json"));
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        reply["checkpoint"]["id"].as_str().unwrap().to_owned()
    };
    let app = || fs::read_to_string(env.project().join("src/app.py")).unwrap();
    // Its own.
    let first = made("t-1");
    claude.does("t-2", "sed -i s/one/ONE/ src/app.py");
    claude.writes("t-3", "src/new.py", "x\n");
    claude.does("t-4", &format!("{safepoint} rollback {first}"));
    assert_eq!(app(), "one\ntwo\nthree\n");
    // A person's, in another file than the one that is rolled back.
    let second = made("t-5");
    claude.does("t-6", "sed -i s/one/ONE/ src/app.py");
    env.write("project/src/util.py", "x = 2\n");
    claude.does("t-7", &format!("{safepoint} rollback {second} src/app.py"));
    assert_eq!(app(), "one\ntwo\nthree\n");
    // All of it.
    for (id, line) in [
        ("t-8", format!("{safepoint} rollback {second} --json")),
        ("t-9", format!("{safepoint} rollback {second} --json | cat")),
    ] {
        let output = run_line(&claude, id, &line);
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED", "{reply:#}");
        assert!(reply["denial"]["hold_id"].is_string(), "{reply:#}");
    }
    let util = || fs::read_to_string(env.project().join("src/util.py")).unwrap();
    assert_eq!(util(), "x = 2\n");
    // With a yes it is done, once.
    let holds = env.json(&["hold", "list"]);
    let hold = holds["holds"][0]["hold_id"].as_str().unwrap().to_owned();
    approve(&env, &hold);
    let output = run_line(&claude, "t-10", &format!("{safepoint} rollback {second}"));
    assert!(output.status.success(), "{output:?}");
    assert_eq!(util(), "x = 1\n");
    // Another session's.
    let other = Claude {
        session: "s-2",
        ..Claude::new(&env)
    };
    other.does("u-1", "sed -i s/two/TWO/ src/app.py");
    let theirs = log(&env).last().unwrap()["action_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let output = run_line(
        &claude,
        "t-11",
        &format!("{safepoint} undo {theirs} --json"),
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(app(), "one\nTWO\nthree\n");
}
