//! `run` from outside: workflows, agents behind their fence, and changes that pass like any action.

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
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use support::{
    OPEN, REFUNDS, approve, assert_sound, bare, denied, entries, exec, exec_with, held, is_denied,
    permit_state, project, run, text, waiting,
};
use testkit::TestEnv;

/// An agent that is a script of the project's.
fn agent(env: &TestEnv, lines: &str) {
    let path = env.write("project/agent.sh", &format!("#!/bin/sh\n{lines}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn st_28_a_change_waits_for_a_person_like_any_action() {
    let env = held();
    let checkpoint = env.json(&["checkpoint"])["checkpoint_id"].clone();
    let checkpoint = checkpoint.as_str().unwrap();
    let write = json!({"type": "write", "content": "new\n"}).to_string();
    let change = [
        "mutate",
        "a",
        "--checkpoint",
        checkpoint,
        "--operation",
        &write,
    ];
    let (code, reply) = run(&env, &change);
    assert_eq!(code, 2, "{reply:#}");
    assert_eq!(reply["error"]["code"], "F502");
    assert_eq!(reply["success"], false);
    let hold = reply["denial"]["hold_id"].as_str().unwrap();
    assert_eq!(
        fs::read_to_string(env.project().join("a")).unwrap(),
        "content of a\n"
    );
    approve(&env, hold);
    let (code, reply) = run(&env, &change);
    assert_eq!(code, 0, "{reply:#}");
    assert_eq!(
        fs::read_to_string(env.project().join("a")).unwrap(),
        "new\n"
    );
    // One id from proposal to outcome.
    let action = reply["action_id"].as_str().unwrap();
    let story = env.json(&["trail", "list", "--action", action]);
    let kinds: Vec<&str> = story["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["kind"].as_str().unwrap())
        .collect();
    for kind in [
        "approval_decision",
        "permit_issued",
        "mutation_done",
        "action_ended",
    ] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let (code, _) = run(
        &env,
        &["mutate", "a", "--auto-checkpoint", "--operation", &write],
    );
    assert_eq!(code, 2, "a yes is good once");
}

#[test]
fn st_28_a_policy_that_denies_denies_a_change() {
    let env = held();
    let gone = json!({"type": "delete"}).to_string();
    let (code, reply) = run(
        &env,
        &["mutate", "a", "--auto-checkpoint", "--operation", &gone],
    );
    assert_eq!(code, 2, "{reply:#}");
    assert_eq!(reply["denial"]["code"], "POLICY_DENIED");
    assert!(env.project().join("a").exists());
    let other = bare();
    other.write("project/a", "content of a\n");
    let (code, _) = run(
        &other,
        &["mutate", "a", "--auto-checkpoint", "--operation", &gone],
    );
    assert_eq!(code, 0, "without that policy it is made");
}

#[test]
fn au_42_a_workflow_runs_its_steps_and_takes_a_failed_one_back() {
    let env = bare();
    env.write(
        "project/.safepoint/workflows/flow.yaml",
        "name: flow\nsteps:\n  - {id: make, argv: [touch, made], verify: test -f made}\n  \
         - {id: change, mutate: {target: made, type: write, content: x}}\n  \
         - {id: fail, argv: [sh, -c, 'echo bad > bad; exit 3'], on_failure: roll_back}\n  \
         - {id: never, argv: [touch, never]}\n",
    );
    let (code, reply) = run(&env, &["run", "flow", "--objective", "see", "--no-tui"]);
    assert_eq!(code, 1, "{reply:#}");
    let outcomes: Vec<&Value> = reply["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| &step["outcome"])
        .collect();
    assert_eq!(outcomes, ["ok", "ok", "rolled_back"], "{reply:#}");
    assert_eq!(fs::read_to_string(env.project().join("made")).unwrap(), "x");
    for name in ["bad", "never"] {
        assert!(!env.project().join(name).exists(), "{name}");
    }
    let (code, _) = run(&env, &["run", "flow", "--objective", "see", "--dry-run"]);
    assert_eq!(code, 0);
    assert_eq!(run(&env, &["run", "flow"]).0, 7, "what for");
    assert_eq!(run(&env, &["run", "none", "--objective", "x"]).0, 8);
}

#[test]
fn au_42_a_workflow_keeps_to_what_it_says() {
    let env = bare();
    env.write(
        "project/flow.yaml",
        "name: flow\nenvelope: {actions: [file.read], side_effects: [read]}\nsteps:\n  \
         - {id: look, argv: [ls]}\n  - {id: make, argv: [touch, made]}\n",
    );
    let (code, reply) = run(
        &env,
        &["run", "flow.yaml", "--objective", "see", "--no-tui"],
    );
    assert_eq!(code, 2, "{reply:#}");
    assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED");
    assert!(!env.project().join("made").exists());
    let hold = reply["denial"]["hold_id"].as_str().unwrap();
    let shown = env.json(&["hold", "show", hold]);
    assert_eq!(shown["checkpoint_type"], "outside_envelope", "{shown:#}");
    assert_eq!(shown["scope_delta"]["actions"][0], "file.write");
    // A step that is something else than it says is not run either.
    env.write(
        "project/says.yaml",
        "name: says\nsteps:\n  - {id: look, action: file.read, argv: [touch, made]}\n",
    );
    let (code, reply) = run(
        &env,
        &["run", "says.yaml", "--objective", "see", "--no-tui"],
    );
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (2, &json!("CLASS_UNDECLARED"))
    );
}

/// Whoever may write in the workspace may give any file the name of a trusted workflow.
#[test]
fn au_30_a_trusted_workflow_with_other_content_is_not_trusted() {
    let env = project(OPEN);
    let path = "project/.safepoint/workflows/copy.yaml";
    let steps = "name: copy\nsteps:\n  - {id: copy, argv: [cp, a, b]}\n";
    env.write(path, steps);
    let never = |name: &str| {
        let flags = ["--objective", "see", "--no-tui", "--checkpoint", "never"];
        let (code, reply) = run(&env, &[&["run", name][..], &flags].concat());
        let denial = reply["denial"]["code"].as_str().unwrap_or_default();
        (code, denial.to_owned())
    };
    let grant = ["trust", "grant", "workflow:copy", "--level", "elevated"];
    let refused = (2, "MODE_REFUSED".to_owned());
    assert_eq!(never("copy"), refused);
    let granted = env.json(&grant);
    assert_eq!(granted["content"].as_array().unwrap().len(), 1);
    assert_eq!(never("copy").0, 0);

    env.write(path, &steps.replace("cp, a, b", "cp, a, c"));
    env.write("project/other.yaml", &steps.replace("cp, a, b", "cp, a, d"));
    assert_eq!(never("copy"), refused);
    assert_eq!(never("other.yaml"), refused, "the name alone is not enough");
    assert!(!env.project().join("c").exists());
    assert!(!env.project().join("d").exists());

    // The same content counts wherever it lies, and its digest is enough to grant it.
    env.write("project/same.yaml", steps);
    assert_eq!(never("same.yaml").0, 0);
    let digest = granted["content"][0]["digest"].as_str().unwrap();
    let other = env.json(&["trust", "revoke", "workflow:copy"]);
    assert_eq!(other["level"], "untrusted");
    assert_eq!(never("same.yaml"), refused);
    env.json(&[&grant[..], &["--content", digest]].concat());
    assert_eq!(never("same.yaml").0, 0);

    // What is not here, has another name or is no workflow cannot be granted.
    assert_eq!(run(&env, &["trust", "grant", "workflow:none"]).0, 8);
    env.write("project/wrong", &steps.replace("name: copy", "name: other"));
    assert_eq!(run(&env, &["trust", "grant", "workflow:wrong"]).0, 7);
    let provider = ["trust", "grant", "provider:acme", "--content", digest];
    assert_eq!(run(&env, &provider).0, 7);
}

#[test]
fn au_42_an_agent_works_behind_its_fence_and_is_recorded() {
    let env = bare();
    env.write("project/a", "content of a\n");
    env.json(&["operator", "add", "ann"]);
    let outside = env.root().join("outside");
    let home = env.home();
    agent(
        &env,
        &format!(
            "safepoint=\"{}\"\n\
             echo made > made\n\
             echo out > {} 2>/dev/null && echo escaped > escaped\n\
             cat {}/data/operators/ann.key > key 2>/dev/null\n\
             $safepoint exec --no-tui -- rm a; echo $? > deleted\n\
             $safepoint exec --no-tui -- kill -0 1; echo $? > killed\n\
             $safepoint operator add me; echo $? > operator\n\
             $safepoint --store sqlite:other.db status; echo $? > store\n\
             true",
            env!("CARGO_BIN_EXE_safepoint"),
            outside.display(),
            home.display()
        ),
    );
    let (code, reply) = run(&env, &["run", "--objective", "try", "--", "./agent.sh"]);
    assert_eq!(code, 0, "{reply:#}");
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap_or_default();
    assert_eq!(read("made"), "made\n");
    assert!(!outside.exists() && read("escaped").is_empty());
    assert_eq!(read("key"), "", "keys are out of reach");
    assert_eq!(read("deleted"), "0\n", "the broker runs what is for agents");
    assert!(!env.project().join("a").exists());
    assert_eq!(
        read("killed"),
        "2\n",
        "and what waits for a person is denied"
    );
    assert_eq!(
        (read("operator"), read("store")),
        ("6\n".into(), "6\n".into())
    );
    let names: Vec<String> = env.json(&["operator", "list"])["operators"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["ann"]);
    // All of it is one action that can be undone.
    let action = reply["action_id"].as_str().unwrap();
    env.json(&["undo", action]);
    assert_eq!(read("a"), "content of a\n");
    assert_eq!(read("made"), "");
}

/// A server that is started in the background is nothing unusual: it is told, and stays.
#[test]
fn au_42_what_is_left_running_is_told() {
    let env = project(support::OPEN);
    let line = "sleep 600 >/dev/null 2>&1 & setsid sleep 600 >/dev/null 2>&1 & echo $$ > group; jobs -p > left";
    let reply = support::runs(&env, &["bash", "-c", line]);
    assert_eq!(reply["left_running"], 2, "{reply:#}");
    let action = reply["action_id"].as_str().unwrap();
    let story = env.json(&[
        "trail",
        "list",
        "--action",
        action,
        "--kind",
        "action_ended",
    ]);
    assert_eq!(story["entries"][0]["body"]["left_running"], 2, "{story:#}");
    let left = fs::read_to_string(env.project().join("left")).unwrap();
    for process in left.lines() {
        // Still there, as it would be without us; then it is in nobody's way.
        let process = rustix::process::Pid::from_raw(process.parse().unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    assert_eq!(left.lines().count(), 2);
    // The control.
    let reply = support::runs(&env, &["sh", "-c", "true & wait"]);
    assert_eq!(reply["left_running"], 0, "{reply:#}");
}

/// Inside `exec` nobody answers, and that is said in words.
#[test]
fn au_42_safepoint_inside_a_command_says_where_it_works() {
    let env = project(support::OPEN);
    let line = format!(
        "{0} status > out 2> error; echo $? > code; {0} --version > version",
        env!("CARGO_BIN_EXE_safepoint")
    );
    env.write("project/call.sh", &line);
    support::runs(&env, &["sh", "call.sh"]);
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap();
    assert_eq!(read("code"), "5\n", "{}", read("error"));
    assert!(
        read("error").contains("safepoint run --"),
        "{}",
        read("error")
    );
    assert!(read("version").starts_with("safepoint"));
}

/// A program may write in temporary folders and caches: that is told, and nobody is asked.
#[test]
fn au_12_what_is_written_beside_the_workspace_is_named() {
    let env = bare();
    env.write("project/build.sh", "echo x > made\n");
    let (code, reply) = exec(&env, &["sh", "build.sh"]);
    assert_eq!(
        (code, &reply["reversibility"]),
        (0, &json!("reversible")),
        "{reply:#}"
    );
    let told = reply["not_covered"].to_string();
    assert!(told.contains("temporary folders"), "{told}");
    // The control: what names all it touches leaves nothing out.
    let (code, reply) = exec(&env, &["cp", "made", "other"]);
    assert_eq!((code, &reply["not_covered"]), (0, &json!([])), "{reply:#}");
}

/// What an agent's client runs is not written unseen; and where a script has written it, a
/// person looks before anything else is done.
#[test]
fn au_27_settings_of_clients_are_looked_at_first() {
    for target in [
        ".claude/settings.json",
        ".codex/hooks.json",
        ".github/hooks/x.json",
    ] {
        let made = |target: &str| {
            let env = bare();
            env.json(&["operator", "add", "ann"]);
            env.write("project/a", "{}\n");
            env.write(&format!("project/{target}"), "{\"hooks\": 1}\n");
            env.write("project/swap.sh", &format!("cp a {target}\n"));
            env
        };
        let (code, reply) = exec(&made(target), &["cp", "a", target]);
        assert_eq!(code, 2, "{reply:#}");
        // Where a client is started anew, it reads them before it calls us.
        let env = made(target);
        let (code, reply) = exec(&env, &["sh", "swap.sh"]);
        assert_ne!(code, 0, "{reply:#}");
        let refused = reply["refused"].to_string();
        assert!(
            refused.contains(target) && refused.contains("hld_"),
            "{reply:#}"
        );
        let content = std::fs::read_to_string(env.project().join(target)).unwrap();
        assert_eq!(content, "{\"hooks\": 1}\n");
        assert_eq!(exec(&env, &["ls"]).0, 0);
        let env = made(&format!("sub/{target}"));
        let (code, reply) = exec(&env, &["sh", "swap.sh"]);
        assert_eq!(code, 0, "{reply:#}");
        let reply = denied(&env, &["ls"], "APPROVAL_REQUIRED");
        let hold = reply["hold_id"].as_str().unwrap();
        assert_eq!(
            env.json(&["hold", "show", hold])["checkpoint_type"],
            "policy_boundary"
        );
    }
    // The control: other files beside them.
    let env = bare();
    env.write("project/a", "x\n");
    env.write("project/swap.sh", "mkdir .claude; cp a .claude/notes.md\n");
    assert_eq!(exec(&env, &["sh", "swap.sh"]).0, 0);
    assert_eq!(exec(&env, &["ls"]).0, 0);
}

#[test]
fn au_27_rules_that_an_agent_exchanges_are_looked_at_first() {
    let env = bare();
    env.json(&["operator", "add", "ann"]);
    let lax = r#"{"atlas_version": "1.0", "atlas_id": "lax", "version": "1.0.0", "name": "Lax",
        "description": "All", "policies": [{"policy_id": "all", "type": "allow", "actions": ["*"]}]}"#;
    env.write("project/lax.yaml", lax);
    let swap = env.write(
        "project/swap.sh",
        "echo 'atlases: [lax.yaml]' > safepoint.yaml\n",
    );
    fs::set_permissions(swap, fs::Permissions::from_mode(0o755)).unwrap();
    let (code, reply) = exec(&env, &["sh", "swap.sh"]);
    assert_eq!(code, 0, "{reply:#}");
    let reply = denied(&env, &["ls"], "APPROVAL_REQUIRED");
    let hold = reply["hold_id"].as_str().unwrap();
    let shown = env.json(&["hold", "show", hold]);
    assert_eq!(shown["checkpoint_type"], "policy_boundary");
    // Nor does a session of one's own choose the rules.
    fs::remove_file(env.project().join("safepoint.yaml")).unwrap();
    let begun = env.json(&["session", "start", "--atlas", "lax.yaml"]);
    let session = begun["session_id"].as_str().unwrap();
    let (code, reply) = exec_with(&env, &["--session", session], &["ls"]);
    assert_eq!(
        (code, &reply["error"]["code"]),
        (2, &json!("F504")),
        "{reply:#}"
    );
}

#[test]
fn au_27_no_variable_and_no_flag_opens_the_fence_unseen() {
    let env = bare();
    // Not in `/tmp`, which is free for all.
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let outside = place.path().to_owned();
    let line = format!("echo x > {}/made\n", outside.display());
    env.write("project/write.sh", &line);
    for variable in ["TMPDIR", "XDG_CACHE_HOME", "CARGO_HOME", "GOCACHE"] {
        let mut command = env.command(&["--json", "exec", "--no-tui", "--", "sh", "write.sh"]);
        command.env(variable, &outside);
        command.output().unwrap();
        assert!(!outside.join("made").exists(), "{variable}");
    }
    let (code, reply) = exec_with(&env, &["--no-fence"], &["sh", "write.sh"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (2, &json!("APPROVAL_REQUIRED"))
    );
    let (code, reply) = exec(&env, &["sh", "-c", "kill -0 $$; sh write.sh"]);
    assert_eq!(code, 2, "{reply:#}");
    assert!(!outside.join("made").exists());
}

#[test]
fn au_25_a_row_that_was_taken_away_is_missed() {
    let env = project(support::HELD);
    let reply = denied(&env, &["cp", "a", "b"], "APPROVAL_REQUIRED");
    let hold = reply["hold_id"].as_str().unwrap();
    env.json(&["hold", "halt", hold]);
    denied(&env, &["ls"], "SESSION_HALTED");
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let gone = store.execute("DELETE FROM control_documents WHERE kind = 'standing'", []);
    assert!(gone.unwrap() > 0);
    drop(store);
    let (code, reply) = exec(&env, &["ls"]);
    assert_eq!(
        (code, &reply["error"]["code"]),
        (2, &json!("F520")),
        "{reply:#}"
    );
}

#[test]
fn au_27_whoever_waits_in_vain_is_denied() {
    let env = held();
    let (code, reply) = exec_with(&env, &["--wait", "300ms"], &["cp", "a", "b"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (2, &json!("TIMED_OUT")),
        "{reply:#}"
    );
    assert!(!env.project().join("b").exists());
    let list = env.json(&["hold", "list"]);
    assert_eq!(list["holds"], json!([]), "nothing is left waiting");
}

#[test]
fn au_22_whoever_waits_goes_on_when_somebody_says_yes() {
    let env = held();
    let words = [
        "--json", "exec", "--no-tui", "--wait", "10m", "--", "cp", "a", "b",
    ];
    let waiting = env
        .command(&words)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let hold = loop {
        let list = env.json(&["hold", "list"]);
        if let Some(hold) = list["holds"][0]["hold_id"].as_str() {
            break hold.to_owned();
        }
    };
    approve(&env, &hold);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(env.project().join("b").exists());
}

#[test]
fn au_21_trust_permits_and_operators_change_by_an_operators_word_alone() {
    let env = bare();
    let grant = ["trust", "grant", "tool:/usr/bin/git"];
    assert_eq!(run(&env, &grant).0, 6, "nobody decides yet");
    env.json(&["operator", "add", "ann"]);
    env.json(&grant);
    let said = env.json(&["trail", "list", "--kind", "operator_said"]);
    let word = said["entries"][0]["body"]["word"].as_str().unwrap();
    assert!(word.contains("trust tool:/usr/bin/git trusted"), "{word}");
    assert_eq!(said["entries"][0]["actor"], "operator:ann");
    // Without the key of the first, no second comes in, and nothing is trusted.
    let key = env.home().join("data/operators/ann.key");
    let kept = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    for words in [
        &["operator", "add", "eve"][..],
        &["operator", "remove", "ann"],
        &["trust", "revoke", "tool:/usr/bin/git"],
    ] {
        assert_eq!(run(&env, words).0, 6, "{words:?}");
    }
    fs::write(&key, kept).unwrap();
    env.json(&["operator", "add", "eve"]);
    assert_eq!(
        env.json(&["operator", "list"])["operators"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// What `session request` says of a refund of so much.
fn refund(env: &TestEnv, session: &str, amount: u32) -> (i32, Value) {
    let params = json!({ "amount": amount }).to_string();
    let words = ["session", "request", session, "refund.create", "--params"];
    run(env, &[&words[..], &[&params]].concat())
}

#[track_caller]
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

#[test]
fn au_10_a_request_that_needs_a_person_makes_a_hold_and_is_allowed_once() {
    let env = project(REFUNDS);
    let session = refund_session(&env);
    let (exit, reply) = refund(&env, &session, 7);
    let denial = is_denied(exit, &reply, "APPROVAL_REQUIRED");
    let hold = text(&denial["hold_id"]);
    assert_eq!(reply["resolution"]["decision"], "requires_approval");
    assert_eq!(reply["resolution"]["hold_id"], hold.as_str());
    assert_eq!(denial["action_id"], reply["request_id"]);
    assert_eq!(denial["policy_basis"][0]["policy_id"], "refunds");
    let next = text(&denial["next"]);
    assert!(next.contains("a person has to approve"), "{next}");
    // Asked again it is the same hold, which everybody finds.
    let (_, again) = refund(&env, &session, 7);
    assert_eq!(again["denial"]["hold_id"], hold.as_str());
    let listed = waiting(&env);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["fingerprint"], denial["fingerprint"]);
    assert_eq!(listed[0]["proposer"]["objective"], "help");
    assert_eq!(entries(&env, "checkpoint_pending").len(), 1);

    let permit = text(&approve(&env, &hold)["permit"]["permit_id"]);
    // A yes to one is none to another, whatever the session.
    let (exit, other) = refund(&env, &session, 8);
    is_denied(exit, &other, "APPROVAL_REQUIRED");
    let (exit, elsewhere) = refund(&env, &refund_session(&env), 7);
    is_denied(exit, &elsewhere, "APPROVAL_REQUIRED");
    let (exit, allowed) = refund(&env, &session, 7);
    assert_eq!(
        (exit, &allowed["resolution"]["decision"]),
        (0, &json!("allow"))
    );
    assert_eq!(allowed["request_id"], denial["action_id"]);
    assert_eq!(allowed.get("denial"), None);
    assert_eq!(permit_state(&env, &permit).0, "consumed");
    let request = text(&allowed["request_id"]);
    env.json(&["session", "report", &session, &request, "--outcome", "ok"]);
    // Once.
    let (exit, anew) = refund(&env, &session, 7);
    let denial = is_denied(exit, &anew, "APPROVAL_REQUIRED");
    assert_ne!(denial["hold_id"], hold.as_str());
    assert_ne!(anew["request_id"], allowed["request_id"]);
    // What an operator said no to is not put before them again, and their reason is told.
    let words = [
        "hold",
        "deny",
        &text(&denial["hold_id"]),
        "--reason",
        "too much",
    ];
    env.json(&words);
    let (exit, denied) = refund(&env, &session, 7);
    assert_eq!(
        is_denied(exit, &denied, "OPERATOR_DENIED")["reason"],
        "too much"
    );
    assert_eq!(denied["resolution"]["decision"], "deny");
    assert_sound(&env);
}

#[test]
fn au_41_a_request_that_is_not_allowed_always_has_its_denial() {
    let env = project(REFUNDS);
    let session = refund_session(&env);
    let (exit, reply) = run(&env, &["session", "request", &session, "ticket.delete"]);
    let denial = is_denied(exit, &reply, "QUESTIONS_PENDING");
    assert_eq!(denial["hold_id"], reply["resolution"]["hold_id"]);
    assert!(text(&denial["next"]).contains("session answer"), "{denial}");
    assert!(
        waiting(&env).is_empty(),
        "a gate's question needs no person"
    );
    let (exit, reply) = run(&env, &["session", "request", &session, "ticket.purge"]);
    is_denied(exit, &reply, "POLICY_DENIED");
    // Halted, nothing goes on in the session; in others everything does.
    let (exit, reply) = refund(&env, &session, 7);
    let hold = text(&is_denied(exit, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    env.json(&["hold", "halt", &hold]);
    let (exit, reply) = run(&env, &["session", "request", &session, "ticket.get"]);
    is_denied(exit, &reply, "SESSION_HALTED");
    let other = refund_session(&env);
    assert_eq!(
        run(&env, &["session", "request", &other, "ticket.get"]).0,
        0
    );
    let (exit, reply) = refund(&env, &other, 7);
    is_denied(exit, &reply, "APPROVAL_REQUIRED");
}

#[test]
fn au_41_a_step_of_a_workflow_that_somebody_else_does_waits_for_a_person() {
    let env = project(REFUNDS);
    env.write(
        "project/pay.yaml",
        "name: pay\nsteps:\n  - {id: pay, action: refund.create, params: {amount: 9}}\n",
    );
    let pay = || run(&env, &["run", "pay.yaml", "--objective", "pay", "--no-tui"]);
    let (exit, reply) = pay();
    let denial = is_denied(exit, &reply, "APPROVAL_REQUIRED");
    assert_eq!(reply["steps"][0]["denial"], denial);
    approve(&env, &text(&denial["hold_id"]));
    let (exit, reply) = pay();
    assert_eq!((exit, &reply["outcome"]), (0, &json!("ok")), "{reply:#}");
    let (exit, reply) = pay();
    is_denied(exit, &reply, "APPROVAL_REQUIRED");
    assert_sound(&env);
}

#[test]
fn au_10_whoever_waits_is_allowed_as_soon_as_somebody_says_yes() {
    let env = project(REFUNDS);
    let session = refund_session(&env);
    let words = ["--json", "session", "request", &session, "refund.create"];
    let mut waits = env.command(&[&words[..], &["--wait", "60s"]].concat());
    let waits = waits.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let hold = loop {
        if let Some(hold) = waiting(&env).first() {
            break text(&hold["hold_id"]);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    approve(&env, &hold);
    let output = waits.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["resolution"]["decision"], "allow", "{reply:#}");
    // And in vain it is denied, and the hold is over.
    let (exit, reply) = run(&env, &[&words[1..], &["--wait", "1s"]].concat());
    is_denied(exit, &reply, "TIMED_OUT");
    assert!(waiting(&env).is_empty());
}

#[test]
fn au_42_always_asks_before_the_calls_of_an_agent() {
    let env = bare();
    env.write("project/a", "content of a\n");
    agent(
        &env,
        &format!(
            "safepoint=\"{}\"\n\
             $safepoint exec --no-tui -- cat a > out; echo $? > asked\n\
             $safepoint exec --no-tui --checkpoint policy -- cat a > out; echo $? > loosened",
            env!("CARGO_BIN_EXE_safepoint"),
        ),
    );
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap();
    let (code, reply) = run(&env, &["run", "--", "./agent.sh"]);
    assert_eq!((code, read("asked").as_str()), (0, "0\n"), "{reply:#}");
    let (code, reply) = run(&env, &["run", "--checkpoint", "always", "--", "./agent.sh"]);
    assert_eq!(code, 0, "a person starts it: {reply:#}");
    assert_eq!(read("asked"), "2\n");
    assert_eq!(read("loosened"), "2\n", "an agent's flag loosens nothing");
    // With the agent its session has ended, and what waited in it.
    assert_eq!(support::waiting(&env), Vec::<Value>::new());
    let holds = env.json(&["hold", "list", "--all"])["holds"].clone();
    assert_eq!(holds[0]["checkpoint_type"], "every_step", "{holds:#}");
    assert_eq!(holds[0]["state"], "closed", "{holds:#}");
}

/// An agent's roll back of its own work needs nobody, but where everything is asked about.
#[test]
fn au_42_always_asks_before_the_roll_back_of_an_agent() {
    let env = bare();
    env.write("project/a", "content of a\n");
    let id = text(&env.json(&["checkpoint"])["checkpoint_id"]);
    agent(
        &env,
        &format!(
            "echo changed > a; \"{}\" rollback {id} a > /dev/null 2>&1; echo $? > result",
            env!("CARGO_BIN_EXE_safepoint"),
        ),
    );
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap();
    run(&env, &["run", "--", "./agent.sh"]);
    assert_eq!(read("result"), "0\n");
    assert_eq!(read("a"), "content of a\n");
    run(&env, &["run", "--checkpoint", "always", "--", "./agent.sh"]);
    assert_ne!(read("result"), "0\n");
    assert_eq!(read("a"), "changed\n");
    let holds = env.json(&["hold", "list", "--all"])["holds"].clone();
    assert_eq!(
        holds[0]["state"], "closed",
        "it ended with its agent: {holds:#}"
    );
}

#[test]
fn au_44_an_agent_ends_after_its_time() {
    let env = bare();
    agent(&env, "echo made > made\nsleep 600");
    let (code, reply) = run(&env, &["run", "--timeout", "500ms", "--", "./agent.sh"]);
    assert_eq!(code, 3, "{reply:#}");
    assert_eq!(reply["ended"], "timed_out");
    assert_eq!(reply["outcome"], "error");
    assert_eq!(reply["changed"], 1);
    env.json(&["undo", reply["action_id"].as_str().unwrap()]);
    assert!(!env.project().join("made").exists());
}

#[test]
fn au_42_the_start_of_an_agent_is_judged() {
    let env = held();
    agent(&env, "echo made > made");
    let start = ["run", "--no-tui", "--objective", "try", "--", "./agent.sh"];
    let dry = ["run", "--dry-run", "--no-tui", "--", "./agent.sh"];
    let (code, reply) = run(&env, &dry);
    assert_eq!(code, 4, "{reply:#}");
    assert_eq!(reply["would_run"], false);
    assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED");
    let (code, reply) = run(&env, &start);
    assert_eq!(code, 2, "{reply:#}");
    assert_eq!(reply["denial"]["code"], "APPROVAL_REQUIRED");
    assert!(!env.project().join("made").exists());
    approve(&env, reply["denial"]["hold_id"].as_str().unwrap());
    let (code, reply) = run(&env, &start);
    assert_eq!(code, 0, "{reply:#}");
    assert!(env.project().join("made").exists());
    let log = env.json(&["log"]);
    let action = &log["actions"][0];
    assert_eq!(action["action_id"], reply["action_id"]);
    assert_eq!(
        (&action["action"], &action["decision"]),
        (&json!("agent.run"), &json!("approved"))
    );
    // A yes is good once; a no is a no; and where no rule says anything, nobody is asked.
    assert_eq!(run(&env, &start).0, 2);
    let env = project(&support::HELD.replace("requires_approval", "deny"));
    agent(&env, "echo made > made");
    let (code, reply) = run(&env, &start);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (2, &json!("POLICY_DENIED"))
    );
    assert!(!env.project().join("made").exists());
    let env = bare();
    agent(&env, "echo made > made");
    let (code, reply) = run(&env, &dry);
    assert_eq!((code, &reply["would_run"]), (0, &json!(true)), "{reply:#}");
    assert!(!env.project().join("made").exists());
    assert_eq!(run(&env, &start).0, 0);
}

#[test]
fn au_26_an_agent_that_is_cut_off_is_in_the_trail() {
    let env = bare();
    agent(&env, "echo made > made\necho $$ > process\nexec sleep 600");
    let mut child = env
        .command(&["run", "--objective", "try", "--", "./agent.sh"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let process = loop {
        let text = fs::read_to_string(env.project().join("process")).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it runs");
        std::thread::yield_now();
    };
    let intended = support::entries(&env, "action_intended");
    assert_eq!(
        intended[0]["body"]["summary"], "./agent.sh",
        "{intended:#?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let process = rustix::process::Pid::from_raw(process.trim().parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    assert_eq!(exec(&env, &["true"]).0, 0);
    let log = env.json(&["log"]);
    let actions = log["actions"].as_array().unwrap();
    let cut = actions
        .iter()
        .find(|it| it["action"] == "agent.run")
        .unwrap();
    assert_eq!(cut["outcome"], "unknown", "{log:#}");
    assert_eq!(cut["action_id"], intended[0]["action_id"]);
    let changes = cut["changes"].as_array().unwrap();
    assert!(changes.iter().any(|it| it["path"] == "made"), "{cut:#}");
}

/// Starts a command that waits for somebody.
fn start_waiting(env: &TestEnv) -> std::process::Child {
    let words = [
        "--json", "exec", "--no-tui", "--wait", "10m", "--", "cp", "a", "b",
    ];
    env.command(&words)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}

/// The hold that it makes.
fn first_hold(env: &TestEnv) -> String {
    loop {
        let list = env.json(&["hold", "list"]);
        if let Some(hold) = list["holds"][0]["hold_id"].as_str() {
            return hold.to_owned();
        }
    }
}

#[test]
fn au_27_a_signal_ends_a_wait_and_nothing_else() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let env = held();
        let waiting = start_waiting(&env);
        let hold = first_hold(&env);
        kill_process(Pid::from_child(&waiting), signal).unwrap();
        let output = waiting.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{signal:?}: {output:?}");
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["error"]["name"], "INTERRUPTED", "{reply:#}");
        assert!(!env.project().join("b").exists());
        // It goes on waiting for a decision; what is approved then runs when it is asked for.
        approve(&env, &hold);
        assert_eq!(exec(&env, &["cp", "a", "b"]).0, 0);
    }
}

#[test]
fn au_25_rules_that_change_while_somebody_waits_void_the_permit() {
    let env = held();
    let waiting = start_waiting(&env);
    let hold = first_hold(&env);
    env.write(
        "project/atlas.yaml",
        &support::HELD.replace("Some things", "Most things"),
    );
    let permit = support::text(&approve(&env, &hold)["permit"]["permit_id"]);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(reply["denial"]["code"], "POLICY_CHANGED", "{reply:#}");
    assert_eq!(reply["denial"]["hold_id"], hold.as_str());
    assert_eq!(support::permit_state(&env, &permit).0, "void");
    assert!(!env.project().join("b").exists());
}

/// What skills teach works inside `run`, and a person's work is asked about.
#[test]
fn au_42_an_agent_checkpoints_changes_verifies_and_rolls_back_inside() {
    let env = bare();
    env.write("project/a", "content of a\n");
    env.write("project/b", "content of b\n");
    let before = env.json(&["checkpoint"]);
    let before = before["checkpoint"]["id"].as_str().unwrap();
    env.write("project/b", "a person's\n");
    agent(
        &env,
        &format!(
            "safepoint=\"{}\"\n\
             id() {{ grep -o 'chk_[0-9a-z_]*' | head -n 1; }}\n\
             C=$($safepoint checkpoint --json | id)\n\
             echo changed > a\n\
             $safepoint -C . diff $C --name-only > diff\n\
             $safepoint -C {} rollback $C -- a | cat > /dev/null; echo ${{PIPESTATUS[0]}} > rolled\n\
             cp a back\n\
             $safepoint mutate a --checkpoint $C --operation '{{\"type\": \"append\", \"content\": \"more\\n\"}}' \
               --verify 'grep -q more a' --json > mutated; echo $? > mutate\n\
             A=$(grep -o 'act_[0-9a-z]*' mutated | head -n 1)\n\
             $safepoint verify $A > /dev/null; echo $? > verify\n\
             $safepoint undo $A > /dev/null; echo $? > undo\n\
             $safepoint redo > /dev/null; echo $? > redo\n\
             $safepoint audit --since 1h --json | head -c 20 > audit\n\
             $safepoint log | head -n 1 > log; $safepoint list > list; $safepoint show $C > show\n\
             $safepoint rollback {before} --json > person; echo $? > asked\n\
             true",
            env!("CARGO_BIN_EXE_safepoint"),
            env.project().display(),
        ),
    );
    let script = fs::read_to_string(env.project().join("agent.sh")).unwrap();
    env.write(
        "project/agent.sh",
        &script.replace("#!/bin/sh", "#!/bin/bash"),
    );
    let (code, reply) = run(
        &env,
        &["run", "--objective", "try", "--", "bash", "agent.sh"],
    );
    assert_eq!(code, 0, "{reply:#}");
    let read = |name: &str| fs::read_to_string(env.project().join(name)).unwrap_or_default();
    assert!(read("diff").starts_with("a\n"), "{}", read("diff"));
    assert_eq!(
        (read("rolled"), read("back")),
        ("0\n".into(), "content of a\n".into())
    );
    let codes = ["mutate", "verify", "undo", "redo"].map(&read);
    assert_eq!(codes, ["0\n"; 4], "{}", read("mutated"));
    assert_eq!(read("a"), "content of a\nmore\n");
    for name in ["audit", "log", "list", "show"] {
        assert!(!read(name).is_empty(), "{name}");
    }
    assert_eq!(read("asked"), "2\n", "{}", read("person"));
    assert!(read("person").contains("hld_"), "{}", read("person"));
    assert_eq!(read("b"), "a person's\n");
}

/// What Landlock does not hold is held for whole agents, too; their network is their own.
#[test]
fn fe_14_an_agent_under_run_changes_no_metadata_outside_and_makes_terminals() {
    let env = project(OPEN);
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let outside = place.path().join("outside");
    fs::write(&outside, "before\n").unwrap();
    let mode = || fs::metadata(&outside).unwrap().permissions().mode() & 0o777;
    let before = mode();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let file = outside.display();
    agent(
        &env,
        &format!(
            "chmod 777 {file}; touch -d @7 {file}\n\
             python3 - <<'E' > told\n\
             import ctypes, os, pty, socket\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             print(libc.syscall(425, 1, ctypes.create_string_buffer(256)))\n\
             print(socket.create_connection(('127.0.0.1', {port})) is not None)\n\
             print(pty.spawn(['sh', '-c', 'test -t 1 && exit 5']))\n\
             E\n\
             chmod 700 told; (sleep 0.3; echo late > late) > /dev/null 2>&1 &\n"
        ),
    );
    let reply = run(&env, &["run", "--", "./agent.sh"]);
    assert_eq!(reply.0, 0, "{reply:#?}");
    assert_eq!(mode(), before);
    let modified = fs::metadata(&outside).unwrap().modified().unwrap();
    assert!(modified.elapsed().unwrap().as_secs() < 3_600);
    let told = fs::read_to_string(env.project().join("told")).unwrap();
    // A control: inside the same call works; so do the network and terminals.
    let own = fs::metadata(env.project().join("told")).unwrap();
    assert_eq!(own.permissions().mode() & 0o777, 0o700);
    assert_eq!(told, "-1\nTrue\n1280\n");
    // What is left running goes on writing.
    let late = env.project().join("late");
    while fs::read_to_string(&late).unwrap_or_default() != "late\n" {
        std::thread::yield_now();
    }
}
