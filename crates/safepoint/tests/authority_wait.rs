//! Waiting for an operator from outside: one way, whatever waits, and what ends it.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{
    HELD, REFUNDS, approve, denied, entries, executable, held, hold_of, is_denied, permit_state,
    project, run, show, text, waiting,
};
use testkit::TestEnv;

/// Starts something that waits for somebody.
fn start(env: &TestEnv, words: &[&str]) -> Child {
    let mut command = env.command(&[&["--json"], words].concat());
    command.stdout(Stdio::piped()).spawn().unwrap()
}

/// The hold that it makes.
fn first_hold(env: &TestEnv) -> String {
    loop {
        if let Some(hold) = waiting(env).first() {
            return text(&hold["hold_id"]);
        }
    }
}

/// How it ended, and what it said.
fn end(child: Child) -> (i32, Value) {
    let output = child.wait_with_output().unwrap();
    let reply = serde_json::from_slice(&output.stdout);
    let reply = reply.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output.status.code().unwrap_or(-1), reply)
}

fn refund_session(env: &TestEnv) -> String {
    let words = [
        "session",
        "start",
        "--atlas",
        "atlas.yaml",
        "--goal",
        "help",
    ];
    text(&env.json(&words)["session_id"])
}

/// A workflow whose only step waits.
fn flow(env: &TestEnv, step: &Value) -> Vec<&'static str> {
    let flow = json!({"name": "flow", "steps": [step]});
    env.write("project/flow.yaml", &flow.to_string());
    vec!["run", "flow.yaml", "--objective", "see", "--no-tui"]
}

#[test]
fn au_25_another_list_of_rules_while_somebody_waits_voids_the_permit() {
    let env = held();
    let child = start(
        &env,
        &["exec", "--no-tui", "--wait", "10m", "--", "cp", "a", "b"],
    );
    let hold = first_hold(&env);
    env.write(
        "project/other.yaml",
        &HELD.replace("tests.held", "tests.other"),
    );
    env.write(
        "project/safepoint.yaml",
        "atlases: [atlas.yaml, other.yaml]\n",
    );
    let permit = text(&approve(&env, &hold)["permit"]["permit_id"]);
    let (code, reply) = end(child);
    is_denied(code, &reply, "POLICY_CHANGED");
    assert_eq!(permit_state(&env, &permit).0, "void");
    assert!(!env.project().join("b").exists());
}

#[test]
fn au_27_a_signal_ends_every_wait() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let env = project(REFUNDS);
        let session = refund_session(&env);
        let pay = flow(&env, &json!({"id": "pay", "action": "refund.create"}));
        let request = ["session", "request", &session, "refund.create"];
        for words in [&request[..], &pay] {
            let child = start(&env, &[words, &["--wait", "10m"]].concat());
            let hold = first_hold(&env);
            kill_process(Pid::from_child(&child), signal).unwrap();
            let (code, reply) = end(child);
            assert_eq!(code, 3, "{signal:?}: {reply:#}");
            env.json(&["hold", "deny", &hold]);
        }
    }
}

#[test]
fn au_27_a_signal_ends_a_command_that_waits() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let env = support::bare();
        env.write("project/safepoint.yaml", "");
        let words = ["exec", "--no-tui", "--wait", "10m", "--", "git", "push"];
        let child = start(&env, &words);
        first_hold(&env);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (code, reply) = end(child);
        assert_eq!(code, 3, "{signal:?}: {reply:#}");
    }
}

#[test]
fn au_25_rules_that_change_while_a_request_waits_void_the_permit() {
    for by_workflow in [false, true] {
        let env = project(REFUNDS);
        let session = refund_session(&env);
        let pay = flow(&env, &json!({"id": "pay", "action": "refund.create"}));
        let request = ["session", "request", &session, "refund.create"];
        let words = if by_workflow { &pay[..] } else { &request };
        let child = start(&env, &[words, &["--wait", "10m"]].concat());
        let hold = first_hold(&env);
        env.write("project/atlas.yaml", &REFUNDS.replace("looks at", "sees"));
        let permit = text(&approve(&env, &hold)["permit"]["permit_id"]);
        let (code, reply) = end(child);
        is_denied(code, &reply, "POLICY_CHANGED");
        assert_eq!(permit_state(&env, &permit).0, "void");
    }
}

#[test]
fn au_27_a_session_that_ends_is_waited_for_no_more() {
    let write =
        json!({"id": "one", "mutate": {"type": "write", "target": "a", "content": "new\n"}});
    let pay = json!({"id": "pay", "action": "refund.create"});
    for (rules, step) in [(REFUNDS, Some(pay)), (HELD, Some(write)), (REFUNDS, None)] {
        let env = project(rules);
        let session = refund_session(&env);
        let words = match &step {
            Some(step) => flow(&env, step),
            None => vec!["session", "request", &session, "refund.create"],
        };
        let child = start(&env, &[&words[..], &["--wait", "10m"]].concat());
        let hold = first_hold(&env);
        let session = text(&show(&env, &hold)["session_id"]);
        env.json(&["session", "end", &session, "--abandon"]);
        let (code, reply) = end(child);
        is_denied(code, &reply, "SESSION_ENDED");
    }
}

#[test]
fn au_27_a_workflow_that_waits_in_vain_leaves_no_hold() {
    let write =
        json!({"id": "one", "mutate": {"type": "write", "target": "a", "content": "new\n"}});
    let pay = json!({"id": "pay", "action": "refund.create"});
    for (rules, step) in [(REFUNDS, pay), (HELD, write)] {
        let env = project(rules);
        let words = flow(&env, &step);
        let (code, reply) = run(&env, &[&words[..], &["--wait", "300ms"]].concat());
        is_denied(code, &reply, "TIMED_OUT");
        assert!(waiting(&env).is_empty(), "nothing is left waiting");
        // And in time it goes on.
        let child = start(&env, &[&words[..], &["--wait", "10m"]].concat());
        approve(&env, &first_hold(&env));
        let (code, reply) = end(child);
        assert_eq!(code, 0, "{reply:#}");
    }
}

#[test]
fn au_25_with_its_session_a_permit_ends() {
    let env = held();
    let hold = hold_of(&env, &["cp", "a", "b"]);
    let permit = text(&approve(&env, &hold)["permit"]["permit_id"]);
    let session = text(&show(&env, &hold)["session_id"]);
    env.json(&["session", "end", &session, "--abandon"]);
    assert_eq!(permit_state(&env, &permit).0, "void");
}

/// With an approval goes what became of the last one.
#[test]
fn au_26_a_hold_after_a_run_that_was_cut_off_tells_of_it() {
    let env = held();
    let path = env.write(
        "project/tool",
        "#!/bin/sh\necho $$ > process\nexec sleep 600\n",
    );
    executable(&path);
    let words = ["./tool"];
    let first = hold_of(&env, &words);
    approve(&env, &first);
    let mut child = start(&env, &[&["exec", "--no-tui", "--"], &words[..]].concat());
    let process = loop {
        let text = fs::read_to_string(env.project().join("process")).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it runs");
        std::thread::yield_now();
    };
    let action = text(&entries(&env, "action_intended")[0]["action_id"]);
    // Its child does the work, and ends with it.
    let id = child.id();
    let worker = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let stat = format!("/proc/{}/stat", worker.trim());
    while fs::read_to_string(&stat).is_ok_and(|it| !it.contains(") Z ")) {
        std::thread::yield_now();
    }
    let process = Pid::from_raw(process.trim().parse().unwrap()).unwrap();
    let _ = kill_process(process, Signal::KILL);
    let denial = denied(&env, &words, "APPROVAL_REQUIRED");
    assert!(text(&denial["reason"]).contains(&action), "{denial:#}");
    let hold = text(&denial["hold_id"]);
    assert_ne!(hold, first);
    let shown = show(&env, &hold);
    assert_eq!(shown["earlier_run"]["action_id"], action.as_str());
    assert_eq!(shown["earlier_run"]["hold_id"], first.as_str());
    let page = env.run(&["hold", "show", &hold]).stdout;
    assert!(page.contains("nobody knows how far it came"), "{page}");
    assert_eq!(show(&env, &first).get("earlier_run"), None);
}

/// A gate that waits in several holds is answered in the one that is named.
#[test]
fn au_41_the_command_that_answers_a_gate_names_the_hold() {
    let env = project(REFUNDS);
    let session = refund_session(&env);
    let ask = |action: &str| run(&env, &["session", "request", &session, action]);
    ask("ticket.delete");
    let (code, reply) = ask("refund.delete");
    let denial = is_denied(code, &reply, "QUESTIONS_PENDING");
    let hold = text(&denial["hold_id"]);
    let next = text(&denial["next"]);
    assert!(next.contains(&format!("--hold {hold}")), "{next}");
    let answers = ["--answers", "{\"agree\": true}"];
    let words = ["session", "answer", &session, "sure", "--hold", &hold];
    let reply = env.json(&[&words[..], &answers].concat());
    assert_eq!(reply["validation"]["is_valid"], true, "{reply:#}");
}

/// What a command is given in its variables is nobody's to read.
#[test]
fn au_25_values_of_variables_are_in_no_hold() {
    let env = held();
    let operation =
        json!({"type": "command", "argv": ["./tool"], "env": {"DEPLOY_KEYCODE": "55443322"}});
    support::program(&env, "tool", b"#!/bin/sh\ntrue\n");
    let words = [
        "mutate",
        ".",
        "--auto-checkpoint",
        "--operation",
        &operation.to_string(),
    ];
    let (code, reply) = run(&env, &words);
    let denial = is_denied(code, &reply, "APPROVAL_REQUIRED");
    let hold = text(&denial["hold_id"]);
    let shown = show(&env, &hold).to_string();
    assert!(shown.contains("DEPLOY_KEYCODE"), "{shown}");
    let trail = env.json(&["trail", "list"]).to_string();
    let listed = env.json(&["hold", "list"]).to_string();
    for told in [reply.to_string(), shown, trail, listed] {
        assert!(!told.contains("55443322"), "{told}");
    }
    approve(&env, &hold);
    let (code, reply) = run(&env, &words);
    assert_eq!(code, 0, "{reply:#}");
}

/// Opens a terminal for the words after the first, closes it as soon as something was drawn, and
/// tells how it ended. With `own` it is the terminal of a session of its own, which is told.
const CLOSED_TERMINAL: &str = r#"
import os, pty, subprocess, sys
own, words = sys.argv[1], sys.argv[2:]
if own == "own":
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    ended = lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
else:
    terminal, side = pty.openpty()
    child = subprocess.Popen(words, stdin=side, stdout=side, stderr=side)
    os.close(side)
    ended = child.wait
seen = b""
while b"?1049h" not in seen:
    seen += os.read(terminal, 4096)
os.close(terminal)
print(ended())
"#;

#[test]
fn au_40_a_terminal_that_goes_away_ends_the_program() {
    let env = held();
    hold_of(&env, &["cp", "a", "b"]);
    let words = [&["tui"][..], &["exec", "--", "cp", "a", "b"]];
    for (own, words) in [
        ("own", words[0]),
        ("other", words[0]),
        ("own", words[1]),
        ("other", words[1]),
    ] {
        let given = env.command(words);
        let mut command = std::process::Command::new("python3");
        command.args(["-c", CLOSED_TERMINAL, own]);
        command.arg(given.get_program()).args(given.get_args());
        command.env_clear().current_dir(env.project());
        let variables = given.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        command.env("TERM", "xterm");
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(told.trim(), "3", "{own} {words:?}: {output:?}");
    }
}
