//! What an agent reaches through `safepoint` itself: its own work, its own session, its own
//! workspace, and nothing of ours.

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
use std::process::Output;

use client::{Claude, denied, passes};
use safepoint_authority::shell::{AGENT_COMMANDS, AgentReach};
use serde_json::{Value, json};
use support::{bare, entries, project};
use testkit::TestEnv;

const SAFEPOINT: &str = env!("CARGO_BIN_EXE_safepoint");

fn plain() -> TestEnv {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    env.write("project/src/app.py", "one\ntwo\nthree\n");
    env
}

/// Runs a line as the client would after the hook, and tells how it ended.
fn run_line(claude: &Claude<'_>, id: &str, line: &str) -> Output {
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

fn read(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.project().join(name)).unwrap_or_default()
}

#[test]
fn su_05_no_variable_leads_an_agent_to_our_store_or_out_of_its_workspace() {
    let env = plain();
    let claude = Claude::new(&env);
    env.json(&["checkpoint"]);
    let store = env.home().join("data/store.db");
    assert!(store.exists());
    let operation = r#"{"type": "sql", "sql": "delete from control_documents"}"#;
    let change = format!("mutate env:X --auto-checkpoint --operation '{operation}'");
    // A line that sets a variable is judged, and none of its variables reaches us.
    for (number, line) in [
        format!("X=sqlite:{} {SAFEPOINT} {change}", store.display()),
        format!("X=sqlite:{}; {SAFEPOINT} {change}", store.display()),
    ]
    .iter()
    .enumerate()
    {
        let said = claude.asks(&format!("t-{number}"), line);
        let instead = (said.code == 0).then(|| passes(&said)).flatten();
        assert!(
            said.code == 2 || instead.is_some_and(|it| it.contains(" perform ")),
            "{said:?}"
        );
    }
    // For everybody: by a variable, by its path, by a link.
    std::os::unix::fs::symlink(&store, env.project().join("link.db")).unwrap();
    fs::hard_link(&store, env.project().join("hard.db")).unwrap();
    let mut env = env;
    env.set("X", &format!("sqlite:{}", store.display()));
    for target in [
        "env:X".to_owned(),
        format!("sqlite:{}", store.display()),
        "sqlite:link.db".to_owned(),
        "sqlite:hard.db".to_owned(),
    ] {
        let words = [
            "mutate",
            &target,
            "--auto-checkpoint",
            "--operation",
            operation,
        ];
        let run = env.run(&words);
        assert_eq!(run.code, 7, "{target}: {run:?}");
        assert!(run.stderr.contains("its own record"), "{run:?}");
        assert_eq!(env.run(&["checkpoint", &target]).code, 7);
    }
    // For agents: none that lies elsewhere.
    env.set("X", &format!("sqlite:{}/other.db", env.root().display()));
    env.set("SAFEPOINT_AGENT", "claude-code");
    let run = env.run(&["checkpoint", "env:X"]);
    assert!(run.stderr.contains("outside the workspace"), "{run:?}");
}

#[test]
fn su_05_an_agent_neither_ends_its_session_nor_speaks_of_other_projects() {
    let env = plain();
    env.write("other/safepoint.yaml", "");
    let claude = Claude::new(&env);
    let event = |name: &str, cwd: &std::path::Path| {
        json!({"session_id": "s-1", "transcript_path": "/dev/null", "cwd": cwd,
            "hook_event_name": name, "source": "startup", "reason": "other"})
        .to_string()
    };
    env.write("project/end.json", &event("SessionEnd", &env.project()));
    let told = denied(&claude.asks("t-1", &format!("{SAFEPOINT} hook claude-code < end.json")));
    assert!(told.contains("CONTROL_FORBIDDEN"), "{told}");
    // Nor from a script that hides it.
    env.write(
        "project/call.sh",
        &format!("{SAFEPOINT} hook claude-code < end.json; echo $? > code\n"),
    );
    claude.does("t-2", "sh call.sh");
    assert_eq!(read(&env, "code"), "2\n");
    assert_eq!(entries(&env, "SessionEnded").len(), 0);
    // Behind the fence of `run` the client's hooks work, for its project alone, and none of its
    // tools ends its session.
    let tool = json!({"session_id": "s-2", "transcript_path": "/dev/null", "cwd": env.project(),
        "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t-1",
        "tool_input": {"command": "sh forge.sh"}});
    env.write("project/tool.json", &tool.to_string());
    env.write(
        "project/start2.json",
        &event("SessionStart", &env.project()).replace("s-1", "s-2"),
    );
    env.write(
        "project/end2.json",
        &event("SessionEnd", &env.project()).replace("s-1", "s-2"),
    );
    env.write(
        "project/other.json",
        &event("SessionStart", &env.root().join("other")).replace("s-1", "s-3"),
    );
    let lines = format!(
        "h() {{ \"{SAFEPOINT}\" hook claude-code < $1 > $1.out 2>&1; echo $? > $1.code; }}\n\
         h start2.json; h other.json; h tool.json; h end2.json\n\
         \"{SAFEPOINT}\" session list --json > after.json\n"
    );
    env.write("project/agent.sh", &lines);
    let run = env.run(&["run", "--", "bash", "agent.sh"]);
    assert_eq!(run.code, 0, "{run:?}");
    let code = |name: &str| read(&env, &format!("{name}.code"));
    assert_eq!(
        code("start2.json"),
        "0\n",
        "{}",
        read(&env, "start2.json.out")
    );
    assert_eq!(code("tool.json"), "0\n", "{}", read(&env, "tool.json.out"));
    for name in ["other.json", "end2.json"] {
        let said = read(&env, &format!("{name}.out"));
        assert!(
            code(name) == "2\n" || said.contains("still runs") || said.contains("works in"),
            "{name}: {said}"
        );
    }
    let after: Value = serde_json::from_str(&read(&env, "after.json")).unwrap();
    let after = after["sessions"].as_array().unwrap();
    assert!(!after.is_empty());
    assert!(after.iter().all(|it| it["ended"].is_null()), "{after:#?}");
    // `run` itself ends it, once the agent has ended.
    assert_eq!(entries(&env, "SessionEnded").len(), 1);
}

#[test]
fn su_05_an_agent_sees_its_own_sessions_and_its_own_workspace() {
    let env = project(support::ASKS);
    let theirs = env.json(&["session", "start", "--atlas", "atlas.yaml"]);
    let theirs = theirs["session_id"].as_str().unwrap().to_owned();
    let claude = Claude::new(&env);
    passes(&claude.says("SessionStart", json!({"source": "startup"})));
    let mine = run_line(&claude, "t-1", &format!("{SAFEPOINT} session list --json"));
    let mine: Value = serde_json::from_slice(&mine.stdout).unwrap();
    let mine = mine["sessions"].as_array().unwrap();
    assert!(!mine.is_empty());
    assert!(
        mine.iter().all(|it| it["session_id"] != theirs.as_str()),
        "{mine:#?}"
    );
    let own = mine[0]["session_id"].as_str().unwrap();
    for (id, session, expected) in [("t-2", own, true), ("t-3", theirs.as_str(), false)] {
        for words in ["show SES", "input SES hello"] {
            let line = format!("{SAFEPOINT} session {}", words.replace("SES", session));
            let output = run_line(&claude, id, &line);
            assert_eq!(output.status.success(), expected, "{line}: {output:?}");
        }
    }
    let mut env = env;
    env.set("SAFEPOINT_AGENT", "claude-code");
    for words in [["log", "--all-workspaces"], ["list", "--all-workspaces"]] {
        assert_eq!(env.run(&words).code, 7, "{words:?}");
    }
}

/// No action is called so. The beginning of an id would be enough to find one.
const UNKNOWN_ACTION: &str = "act_0000000000000000";

/// Arguments with which each command of the list at least parses.
fn arguments(name: &str) -> &'static [&'static str] {
    match name {
        "atlas check" | "atlas show" | "atlas test" => &["atlas.yaml"],
        "completions" => &["bash"],
        "diff" | "show" | "rollback" | "verify" => &["chk_1"],
        "hold show" => &["hld_1"],
        "permit show" => &["pmt_1"],
        "session show" | "session ask" => &["ses_1"],
        "session access" => &["ses_1", "all"],
        "session answer" => &["ses_1", "gate", "--answers", "{}"],
        "session input" => &["ses_1", "hello"],
        "session report" => &["ses_1", UNKNOWN_ACTION, "--outcome", "ok"],
        "session request" => &["ses_1", "ticket.read"],
        "task show" => &["tsk_1"],
        // What is taken back must not take this with it.
        "undo" => &[UNKNOWN_ACTION],
        "trail check-bundle" | "trail check-proof" => &["file.json", "--key", "k"],
        "trail prove" => &["1"],
        "trail show" => &["1"],
        "trail note" => &["@bob said so"],
        "workspace checkpoint" => &["wsp_1", "--body", "{}"],
        "workspace signal" => &["wsp_1", "started"],
        "workspace list" | "workspace watch" => &[],
        name if name.starts_with("workspace ") => &["wsp_1"],
        "exec" => &["--", "true"],
        "mutate" => &["a", "--checkpoint", "chk_1", "--operation", "{}"],
        _ => &[],
    }
}

#[test]
fn au_04_every_command_on_the_list_of_agents_answers_them() {
    let env = project(support::OPEN);
    env.write("project/file.json", "{}");
    let mut script = String::from("set -f\n");
    for command in AGENT_COMMANDS {
        // It goes on until somebody ends it.
        if command.name == "workspace watch" {
            continue;
        }
        let words: Vec<String> = arguments(command.name)
            .iter()
            .map(|word| format!("'{word}'"))
            .collect();
        script.push_str(&format!(
            "{SAFEPOINT} {} {} < /dev/null > $1.out 2>&1; echo $? \"{}\" $(head -c 300 $1.out) >> $1\n",
            command.name,
            words.join(" "),
            command.name,
        ));
    }
    env.write("project/all.sh", &script);
    let claude = Claude::new(&env);
    claude.does("t-1", "bash all.sh perform");
    let run = env.run(&["run", "--", "bash", "all.sh", "run"]);
    assert_eq!(run.code, 0, "{run:?}");
    for place in ["perform", "run"] {
        let told = read(&env, place);
        assert_eq!(
            told.lines().count(),
            AGENT_COMMANDS.len() - 1,
            "{place}: {told}"
        );
        for line in told.lines() {
            assert!(!line.contains("not for agents"), "{place}: {line}");
            assert!(!line.contains("tore is hidden"), "{place}: {line}");
            assert!(!line.contains("ermission denied"), "{place}: {line}");
        }
    }
    assert!(
        AGENT_COMMANDS
            .iter()
            .any(|it| it.reach == AgentReach::Inside)
    );
    // What an agent does is told as its own doing.
    let notes = entries(&env, "note");
    let actors: Vec<&str> = notes
        .iter()
        .map(|it| it["actor"].as_str().unwrap())
        .collect();
    assert_eq!(actors, ["agent:claude-code", "agent:bash"]);
}

#[test]
fn su_05_a_server_is_ours_by_what_it_offers_and_by_what_the_settings_start() {
    let env = plain();
    let claude = Claude::new(&env);
    passes(&claude.before("t-1", "mcp__safepoint__log", json!({})));
    for (id, tool) in [("t-2", "evil"), ("t-3", "hold_approve")] {
        denied(&claude.before(id, &format!("mcp__safepoint__{tool}"), json!({})));
    }
    let settings = |program: &str| {
        json!({"mcpServers": {"safepoint": {"command": program, "args": ["mcp"]}}}).to_string()
    };
    env.write("project/.mcp.json", &settings("/usr/bin/python3"));
    denied(&claude.before("t-4", "mcp__safepoint__log", json!({})));
    env.write("project/.mcp.json", &settings(SAFEPOINT));
    passes(&claude.before("t-5", "mcp__safepoint__log", json!({})));
}

#[test]
fn su_05_options_before_a_command_change_nothing_about_it() {
    let env = plain();
    let claude = Claude::new(&env);
    testkit::tree::git(&env.project(), &["init", "-q"]);
    for (number, words) in [
        "--yes log",
        "-y log",
        "-C. log",
        "-C $(git rev-parse --show-toplevel) log",
        "trail note '@bob is asked'",
        "checkpoint --reason '@alice'",
    ]
    .iter()
    .enumerate()
    {
        let output = run_line(
            &claude,
            &format!("t-{number}"),
            &format!("{SAFEPOINT} {words}"),
        );
        assert!(output.status.success(), "{words}: {output:?}");
    }
    // Usage names the program as everybody calls it.
    let output = run_line(
        &claude,
        "t-9",
        &format!("{SAFEPOINT} rollback --help | cat"),
    );
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("Usage: safepoint rollback"), "{told}");
}

/// The command lines of a text of a skill.
fn taught(text: &str) -> Vec<String> {
    let starts = text.match_indices("PROGRAM ");
    let lines = starts.map(|(start, _)| text[start..].split(['\n', '`']).next().unwrap());
    lines.map(str::to_owned).collect()
}

#[test]
fn ag_11_every_command_that_a_skill_teaches_works() {
    for skill in safepoint_clients::skills::Skill::all() {
        for line in taught(skill.source) {
            let env = plain();
            for name in ["a.txt", "b.txt", "src/parser.py", "tests/test.py"] {
                env.write(&format!("project/{name}"), "a\n");
            }
            let change = r#"{"type": "append", "content": "more\n"}"#;
            let batch = r#"[{"target": "b.txt", "type": "append", "content": "x"}]"#;
            env.write("project/operation.json", batch);
            let made = env.json(&["checkpoint"]);
            let checkpoint = made["checkpoint"]["id"].as_str().unwrap();
            // A checkpoint allows one change.
            let action = match line.contains(" mutate ") {
                true => String::new(),
                false => {
                    let words = ["mutate", "src/parser.py", "--checkpoint", checkpoint];
                    let changed = env.json(&[&words[..], &["--operation", change]].concat());
                    changed["action_id"].as_str().unwrap().to_owned()
                }
            };
            if line.contains(" redo") {
                env.json(&["rollback", checkpoint]);
            }
            let filled = line
                .replace("PROGRAM", SAFEPOINT)
                .replace("CHECKPOINT", checkpoint)
                .replace("ACTION", &action)
                .replace("TARGET", "a.txt")
                // What the project's own check is called, is the project's.
                .replace("make test", "true");
            let mut shell = std::process::Command::new("bash");
            shell.args(["-c", &filled]).current_dir(env.project());
            for (name, value) in env.command(&[]).get_envs() {
                if let Some(value) = value {
                    shell.env(name, value);
                }
            }
            let output = shell.output().unwrap();
            assert!(
                output.status.success(),
                "{}: {line}: {output:?}",
                skill.name
            );
        }
    }
}

/// A checkpoint as the agent makes it.
fn made(claude: &Claude<'_>, id: &str) -> String {
    let output = run_line(claude, id, &format!("{SAFEPOINT} checkpoint --json"));
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    reply["checkpoint"]["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn asks_a_person(output: &Output) {
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED", "{reply:#}");
}

#[test]
fn su_05_states_that_a_person_changed_are_a_persons_work() {
    let env = plain();
    let claude = Claude::new(&env);
    let line = format!("{SAFEPOINT} checkpoint --state plan=1 --json");
    let output = run_line(&claude, "t-1", &line);
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let first = reply["checkpoint"]["id"].as_str().unwrap().to_owned();
    let set = |value: &str| format!(r#"{{"type": "state", "value": {value}}}"#);
    // Its own change goes without asking.
    let words = format!(
        "mutate state:plan --checkpoint {first} --operation '{}'",
        set("2")
    );
    let output = run_line(&claude, "t-2", &format!("{SAFEPOINT} {words}"));
    assert!(output.status.success(), "{output:?}");
    let output = run_line(
        &claude,
        "t-3",
        &format!("{SAFEPOINT} rollback {first} --json"),
    );
    assert!(output.status.success(), "{output:?}");
    let change = set("3");
    env.json(&[
        "mutate",
        "state:plan",
        "--auto-checkpoint",
        "--operation",
        &change,
    ]);
    asks_a_person(&run_line(
        &claude,
        "t-4",
        &format!("{SAFEPOINT} rollback {first} --json"),
    ));
}

#[test]
fn su_05_a_commit_in_a_linked_work_tree_is_whose_it_is() {
    let env = bare();
    env.write("main/a", "one\n");
    let main = env.root().join("main");
    let git = |place: &std::path::Path, words: &[&str]| testkit::tree::git(place, words);
    git(&main, &["init", "-q"]);
    git(&main, &["add", "."]);
    git(&main, &["commit", "-qm", "one"]);
    let project = env.project();
    let _ = fs::remove_dir(&project);
    git(&main, &["worktree", "add", "-q", project.to_str().unwrap()]);
    env.write("project/safepoint.yaml", "");
    let claude = Claude::new(&env);
    let first = made(&claude, "t-1");
    env.write("project/b", "a person's\n");
    git(&project, &["add", "b"]);
    git(&project, &["commit", "-qm", "a person's", "--", "b"]);
    fs::remove_file(project.join("b")).unwrap();
    asks_a_person(&run_line(
        &claude,
        "t-2",
        &format!("{SAFEPOINT} rollback {first} --json"),
    ));
    // Nor once a checkpoint has seen it.
    made(&claude, "t-3");
    asks_a_person(&run_line(
        &claude,
        "t-4",
        &format!("{SAFEPOINT} rollback {first} --json"),
    ));
}

#[test]
fn su_05_what_changes_while_a_line_runs_is_the_lines_once_it_has_told_of_it() {
    let env = plain();
    let claude = Claude::new(&env);
    let first = made(&claude, "t-1");
    // Nobody knows yet who wrote it: it may be a person, who edits beside the line.
    let line = format!("echo more >> src/app.py; {SAFEPOINT} rollback {first} --json | cat");
    asks_a_person(&run_line(&claude, "t-2", &line));
    assert!(read(&env, "src/app.py").ends_with("more\n"));
    let line = format!("echo again >> src/app.py; {SAFEPOINT} checkpoint | cat");
    run_line(&claude, "t-3", &line);
    let output = run_line(
        &claude,
        "t-4",
        &format!("{SAFEPOINT} rollback {first} --json"),
    );
    assert!(output.status.success(), "{output:?}");
    assert_eq!(read(&env, "src/app.py"), "one\ntwo\nthree\n");
}

#[test]
fn su_05_a_client_whose_lines_stay_as_they_are_is_judged_before_it_takes_work_back() {
    let env = plain();
    let claude = Claude {
        flags: vec!["--no-fence"],
        ..Claude::new(&env)
    };
    let first = env.json(&["checkpoint"]);
    let first = first["checkpoint"]["id"].as_str().unwrap();
    env.write("project/src/app.py", "a person's\n");
    let told = denied(&claude.asks("t-1", &format!("{SAFEPOINT} rollback {first}")));
    assert!(told.contains("a person has to approve"), "{told}");
    passes(&claude.asks("t-2", &format!("{SAFEPOINT} log")));
}

/// A program of a tool calls hooks; the client that has started it does too, before and after.
#[test]
fn su_05_only_the_client_speaks_for_itself_behind_the_fence_of_run() {
    let env = plain();
    let caller = |name: &str, between: &str| {
        let text = format!(
            "import subprocess, json\n\
             event = dict(session_id='s-9', transcript_path='/dev/null', cwd={cwd:?}, source='startup', reason='other')\n\
             def hook(name):\n\
             \x20   said = json.dumps(dict(event, hook_event_name=name))\n\
             \x20   code = subprocess.run([{SAFEPOINT:?}, 'hook', 'claude-code'], input=said, text=True).returncode\n\
             \x20   open({name:?}, 'a').write(str(code) + '\\n')\n\
             hook('SessionStart')\n{between}hook('SessionEnd')\n",
            cwd = env.project(),
        );
        env.write(&format!("project/{name}.py"), &text);
    };
    caller("forger", "");
    caller(
        "client",
        "subprocess.run(['bash', '-c', 'python3 forger.py; true'])\n",
    );
    let run = env.run(&["run", "--", "python3", "client.py"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(read(&env, "client"), "0\n0\n", "{run:?}");
    assert_eq!(read(&env, "forger"), "2\n2\n", "{run:?}");
}

#[test]
fn fe_11_a_web_tool_that_would_ask_this_machine_waits_for_a_person() {
    let env = bare();
    env.write("project/safepoint.yaml", "");
    let claude = Claude::new(&env);
    let fetch = |id: &str, url: &str| {
        let input = json!({"url": url, "prompt": "what does it say?"});
        claude.before(id, "WebFetch", input)
    };
    for (number, url) in [
        "http://127.0.0.1:9200/idx/_delete",
        "http://169.254.169.254/latest/meta-data/iam",
        "file:///etc/passwd",
    ]
    .into_iter()
    .enumerate()
    {
        let told = denied(&fetch(&format!("t-{number}"), url));
        assert!(told.contains("hld_"), "{url}: {told}");
    }
    // A control.
    passes(&fetch("t-9", "https://example.org/"));
}
