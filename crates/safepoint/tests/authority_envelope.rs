//! Envelopes from outside: what an operator's and a workflow's let through, and what they never do.

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
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use support::{
    HELD, OPEN, REFUNDS, approve_with, assert_sound, bare, denied, entries, held, hold_of,
    is_denied, program, project, run, runs, show, text, waiting,
};
use testkit::TestEnv;

/// The flags of a workflow that nobody is asked about here and now.
const START: [&str; 5] = ["run", "flow.yaml", "--objective", "see", "--no-tui"];

fn flow(env: &TestEnv, envelope: &Value, steps: &Value) {
    let flow = json!({"name": "flow", "envelope": envelope, "steps": steps});
    env.write("project/flow.yaml", &flow.to_string());
}

fn start(env: &TestEnv, more: &[&str]) -> (i32, Value) {
    run(env, &[&START[..], more].concat())
}

/// Whoever writes a workflow is not asked, so its envelope opens no fence.
#[test]
fn au_23_a_workflow_opens_no_fence() {
    let env = bare();
    let root = env.project().canonicalize().unwrap();
    let victim = env.home().join("victim");
    fs::create_dir(root.join("src")).unwrap();
    symlink(env.home(), root.join("lk")).unwrap();
    let script = format!("echo x > {}\necho x > lk/victim\ntrue\n", victim.display());
    env.write("project/src/wl.sh", &script);
    let steps = json!([{"id": "one", "argv": ["sh", "src/wl.sh"]}]);
    let home = env.home().to_str().unwrap().to_owned();
    for outside in ["/", home.as_str(), "lk"] {
        let envelope = json!({
            "actions": ["file.*", "process.exec", "shell.opaque"],
            "side_effects": ["read", "write", "exec"], "paths": ["src", outside],
        });
        flow(&env, &envelope, &steps);
        let (code, reply) = start(&env, &[]);
        assert_eq!(code, 7, "{outside}: {reply:#}");
        let message = text(&reply["error"]["message"]);
        assert!(message.contains("leads out of the workspace"), "{message}");
        assert!(!victim.exists(), "{outside}");
    }
    // A link that stays inside is a path like any other.
    let envelope = json!({
        "actions": ["file.*", "process.exec", "shell.opaque"],
        "side_effects": ["read", "write", "exec"], "paths": ["src", "later"],
    });
    symlink(root.join("src"), root.join("later")).unwrap();
    flow(&env, &envelope, &steps);
    assert_eq!(start(&env, &[]).0, 0);
    assert!(!victim.exists());
}

/// What an operator approved is the place that was there, not whatever has its name later.
#[test]
fn au_23_an_approved_path_that_leads_elsewhere_is_denied() {
    let rules = HELD.replace(
        "  - policy_id: \"deletions\"\n    type: deny",
        "  - policy_id: \"deletions\"\n    type: allow",
    );
    let env = project(&rules);
    let root = env.project().canonicalize().unwrap();
    let victim = env.home().join("victim2");
    fs::create_dir(&victim).unwrap();
    fs::create_dir(root.join("src")).unwrap();
    program(&env, "bin/tool", b"#!/bin/sh\necho x > src/pwned\ntrue\n");
    let words = ["cp", "a", "b"];
    let hold = hold_of(&env, &words);
    let envelope = json!({
        "actions": ["file.*", "process.exec"], "paths": [root.join("src"), root.join("bin")],
        "side_effects": ["read", "write", "exec"],
    });
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    runs(&env, &words);
    runs(&env, &["bin/tool"]);
    assert!(root.join("src/pwned").exists());
    fs::remove_dir_all(root.join("src")).unwrap();
    symlink(&victim, root.join("src")).unwrap();
    let (code, reply) = support::exec_with(&env, &["--dry-run"], &["bin/tool"]);
    assert_eq!(
        (code, &reply["denial"]["code"]),
        (4, &json!("PATH_IDENTITY_CHANGED")),
        "{reply:#}"
    );
    let denial = denied(&env, &["bin/tool"], "PATH_IDENTITY_CHANGED");
    assert!(text(&denial["reason"]).contains("/src`"), "{denial}");
    assert_eq!(fs::read_dir(&victim).unwrap().count(), 0);
    // What was approved is gone, so a person is asked anew.
    hold_of(&env, &["bin/tool"]);
    assert_sound(&env);
}

/// A link in the workspace is in it by its name alone.
#[test]
fn au_23_an_envelope_does_not_reach_through_a_link() {
    let env = held();
    let root = env.project().canonicalize().unwrap();
    let victim = env.home().join("victim");
    fs::write(&victim, "mine\n").unwrap();
    symlink(&victim, root.join("lk")).unwrap();
    let hold = hold_of(&env, &["cp", "a", "b"]);
    let envelope = json!({
        "actions": ["file.*"], "paths": [&root], "side_effects": ["read", "write", "exec"],
    });
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    runs(&env, &["cp", "a", "c"]);
    let hold = hold_of(&env, &["cp", "a", "lk"]);
    let delta = show(&env, &hold)["scope_delta"]["paths"].clone();
    assert_eq!(delta, json!([root.join("lk")]));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n");
}

/// A change is a step like any other: under the flags, the envelope and the mode of its workflow.
#[test]
fn au_42_a_change_in_a_workflow_keeps_to_what_the_workflow_says() {
    let env = project(OPEN);
    let write = |target: &str| json!([{"id": "one", "mutate": {"type": "write", "target": target, "content": "new\n"}}]);
    let wide = json!({"actions": ["file.*"], "paths": ["."], "side_effects": ["read", "write"]});
    let narrow =
        json!({"actions": ["file.*"], "paths": ["sub"], "side_effects": ["read", "write"]});
    let unchanged = || fs::read_to_string(env.project().join("a")).unwrap() == "content of a\n";

    flow(&env, &wide, &write("a"));
    let (code, reply) = start(&env, &["--checkpoint", "always", "--dry-run"]);
    assert_eq!(code, 4, "{reply:#}");
    assert_eq!(reply["steps"][0]["denial"]["code"], "APPROVAL_REQUIRED");
    let (code, reply) = start(&env, &["--checkpoint", "always"]);
    let hold = text(&is_denied(code, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "every_step");
    // What waits is decided one after the other.
    support::approve(&env, &hold);
    let (code, reply) = start(&env, &["--checkpoint", "never"]);
    assert_eq!(code, 2, "{reply:#}");
    assert_ne!(reply["denial"], Value::Null, "{reply:#}");
    assert!(unchanged());

    let mut other = write("a");
    other[0]["mutate"]["content"] = json!("other\n");
    flow(&env, &narrow, &other);
    let (code, reply) = start(&env, &["--dry-run"]);
    assert_eq!(code, 4, "{reply:#}");
    let (code, reply) = start(&env, &[]);
    let hold = text(&is_denied(code, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "outside_envelope");
    support::approve(&env, &hold);
    assert!(unchanged());

    let mut declared = write("a");
    declared[0]["effects"] = json!(["read"]);
    flow(&env, &wide, &declared);
    let (code, reply) = start(&env, &[]);
    is_denied(code, &reply, "CLASS_UNDECLARED");
    assert!(unchanged());
    // That was a violation, so somebody looks at the next one; a check needs no effects of its own.
    declared[0]["effects"] = json!(["read", "write"]);
    declared[0]["verify"] = json!("grep -q new a");
    let wide = json!({
        "actions": ["file.*", "process.exec"], "paths": ["."],
        "side_effects": ["read", "write", "exec"],
    });
    flow(&env, &wide, &declared);
    let (code, reply) = start(&env, &[]);
    let hold = text(&is_denied(code, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    support::approve(&env, &hold);
    let (code, reply) = start(&env, &[]);
    assert_eq!(code, 0, "{reply:#}");
    assert!(!unchanged());
}

/// So is an action that somebody else carries out.
#[test]
fn au_42_an_action_of_somebody_else_keeps_to_what_the_workflow_says() {
    let env = project(REFUNDS);
    let chat = json!([{"id": "one", "action": "ticket.get"}]);
    let files = json!({"actions": ["file.*"], "side_effects": ["read"]});
    flow(&env, &files, &chat);
    let (code, reply) = start(&env, &["--dry-run"]);
    assert_eq!(code, 4, "{reply:#}");
    assert!(waiting(&env).is_empty(), "nothing is written");
    let (code, reply) = start(&env, &[]);
    let hold = text(&is_denied(code, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "outside_envelope");

    let tickets = json!({"actions": ["ticket.*", "refund.*"], "side_effects": ["read"]});
    flow(&env, &tickets, &chat);
    assert_eq!(start(&env, &["--dry-run"]).0, 0);
    assert_eq!(start(&env, &[]).0, 0);
    let (code, reply) = start(&env, &["--checkpoint", "never"]);
    assert_eq!(code, 2, "{reply:#}");
    for (action, denied) in [
        ("ticket.purge", "POLICY_DENIED"),
        ("refund.create", "APPROVAL_REQUIRED"),
    ] {
        flow(&env, &tickets, &json!([{"id": "one", "action": action}]));
        let (code, reply) = start(&env, &["--dry-run"]);
        assert_eq!(code, 4, "{reply:#}");
        assert_eq!(reply["denial"]["code"], denied, "{reply:#}");
        assert_eq!(waiting(&env).len(), 1, "nothing is written");
    }
}

/// What an envelope lets through leaves the same traces as what a permit does.
#[test]
fn au_23_a_request_that_an_envelope_lets_through_is_recorded() {
    let env = project(REFUNDS);
    let words = [
        "session",
        "start",
        "--atlas",
        "atlas.yaml",
        "--goal",
        "help",
    ];
    let session = text(&env.json(&words)["session_id"]);
    let pay = ["session", "request", &session, "refund.create"];
    let (code, reply) = run(&env, &pay);
    let hold = text(&is_denied(code, &reply, "APPROVAL_REQUIRED")["hold_id"]);
    let envelope = json!({"actions": ["refund.*"], "side_effects": []});
    approve_with(&env, &hold, &["--envelope", &envelope.to_string()]);
    assert_eq!(run(&env, &pay).0, 0, "the permit");
    let (code, reply) = run(&env, &pay);
    assert_eq!(code, 0, "{reply:#}");
    assert!(
        text(&reply["resolution"]["reason"]).contains(&hold),
        "{reply:#}"
    );
    let intended = entries(&env, "action_intended");
    let last = intended
        .iter()
        .find(|entry| entry["action_id"] == reply["request_id"])
        .unwrap();
    assert_eq!(last["body"]["hold_id"], hold.as_str(), "{last:#}");
    assert_eq!(last["body"]["by_envelope"], true, "{last:#}");
}
