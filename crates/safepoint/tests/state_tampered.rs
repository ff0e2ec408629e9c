//! Rows of checkpoints and actions that somebody changed behind our back are used for nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::fs;

use serde_json::{Value, json};
use testkit::TestEnv;
use testkit::tree::{assert_same, look};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv, content: &str) -> String {
    fs::write(env.project().join("f"), content).unwrap();
    let reply = env.json(&["checkpoint"]);
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

/// Runs a statement as somebody with write access to the store would.
fn tamper(env: &TestEnv, statement: &str) {
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    assert_eq!(store.execute(statement, []).unwrap(), 1, "{statement}");
}

fn refused(env: &TestEnv, arguments: &[&str], code: i32, name: &str) {
    let run = env.run(&[&["--json"], arguments].concat());
    assert_eq!(run.code, code, "{run:?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains(name), "{run:?}");
    assert!(said.contains("changed behind our back"), "{run:?}");
}

#[test]
fn st_20_a_checkpoint_that_was_exchanged_is_used_for_nothing() {
    let columns = [
        "record = (SELECT record FROM state_snapshots WHERE id = '{other}')",
        "record = (SELECT record FROM state_snapshots WHERE id = '{other}'), \
         entry = (SELECT entry FROM state_snapshots WHERE id = '{other}')",
        "entry = -1",
        "created = created - 1",
    ];
    for change in columns {
        let env = env();
        let good = checkpoint(&env, "good\n");
        let other = checkpoint(&env, "evil\n");
        let before = look(&env.project());
        let change = change.replace("{other}", &other);
        let set = format!("UPDATE state_snapshots SET {change} WHERE id = '{good}'");
        tamper(&env, &set);
        for arguments in [
            &["rollback", &good][..],
            &["verify", &good],
            &["diff", &good],
            &["show", &good],
        ] {
            refused(&env, arguments, 1, "STATE_TAMPERED");
        }
        let operation = json!({"type": "write", "content": "x"}).to_string();
        let mutate = [
            "mutate",
            "g",
            "--checkpoint",
            &good,
            "--operation",
            &operation,
        ];
        refused(&env, &mutate, 2, "CHECKPOINT_REQUIRED");
        assert_same(&before, &look(&env.project()));
        // Nobody else's is affected.
        env.json(&["verify", &other]);
    }
}

#[test]
fn st_35_an_action_that_was_changed_is_not_undone() {
    let columns = [
        "before_id = '{first}'",
        "after_id = '{first}'",
        "summary = 'ls -l'",
        "outcome = 'denied'",
        "time = time - 1",
        "decision = NULL",
    ];
    for change in columns {
        let env = env();
        let first = checkpoint(&env, "first\n");
        checkpoint(&env, "second\n");
        let ran = env.run(&["exec", "--no-tui", "--json", "--", "cp", "f", "g"]);
        let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
        let action = ran["action_id"].as_str().unwrap();
        let before = look(&env.project());
        let change = change.replace("{first}", &first);
        tamper(
            &env,
            &format!("UPDATE state_actions SET {change} WHERE action_id = '{action}'"),
        );
        refused(&env, &["undo", action], 1, "STATE_TAMPERED");
        assert_same(&before, &look(&env.project()));
        assert_eq!(
            fs::read_to_string(env.project().join("f")).unwrap(),
            "second\n"
        );
    }
}

#[test]
fn st_35_nor_is_it_when_it_is_the_last_one_or_what_was_undone() {
    let env = env();
    let first = checkpoint(&env, "first\n");
    checkpoint(&env, "second\n");
    checkpoint(&env, "third\n");
    let actions = env.json(&["log"])["actions"].clone();
    let last = actions[0]["action_id"].as_str().unwrap().to_owned();
    let before = look(&env.project());
    let exchange = |to: &str, id: &str| {
        tamper(
            &env,
            &format!("UPDATE state_actions SET before_id = '{to}' WHERE action_id = '{id}'"),
        );
    };
    let genuine = actions[0]["checkpoint_id"].as_str().unwrap().to_owned();
    exchange(&first, &last);
    refused(&env, &["undo", &last], 1, "STATE_TAMPERED");
    assert_same(&before, &look(&env.project()));
    // The others can still be looked at.
    let seen = env.json(&["log"])["actions"].clone();
    assert_eq!(
        seen.as_array().unwrap().len(),
        actions.as_array().unwrap().len()
    );
    exchange(&genuine, &last);
    env.json(&["undo", &last]);
    let undone = env.json(&["log"])["actions"][0]["action_id"].clone();
    let before = look(&env.project());
    exchange(&first, undone.as_str().unwrap());
    refused(&env, &["redo"], 1, "STATE_TAMPERED");
    assert_same(&before, &look(&env.project()));
}

#[test]
fn st_07_nothing_is_collected_because_its_row_was_made_to_expire() {
    let env = env();
    let (never, hour) = (checkpoint(&env, "same\n"), {
        // Nothing changed in between: no undo needs one of them.
        let reply = env.json(&["checkpoint", "--expiry", "1h"]);
        reply["checkpoint_id"].as_str().unwrap().to_owned()
    });
    for id in [&never, &hour] {
        let set = |expiry: &str| {
            tamper(
                &env,
                &format!("UPDATE state_snapshots SET expiry = {expiry} WHERE id = '{id}'"),
            );
        };
        set("1");
        refused(&env, &["gc", "--dry-run"], 1, "STATE_TAMPERED");
        refused(&env, &["gc"], 1, "STATE_TAMPERED");
        env.json(&["verify", id]);
        // That one is kept for longer does no harm.
        set(&i64::MAX.to_string());
        assert_eq!(env.json(&["gc"])["deleted"], json!([]));
    }
}

#[test]
fn st_20_what_was_changed_is_no_ground_for_an_action() {
    for change in ["entry = entry - 1", "created = created - 1"] {
        let env = env();
        let old = checkpoint(&env, "kept\n");
        tamper(
            &env,
            &format!("UPDATE state_snapshots SET {change} WHERE id = '{old}'"),
        );
        let ran = env.run(&["exec", "--no-tui", "--json", "--", "rm", "f"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
        env.json(&["undo", ran["action_id"].as_str().unwrap()]);
        assert_eq!(
            fs::read_to_string(env.project().join("f")).unwrap(),
            "kept\n"
        );
    }
}

#[test]
fn st_17_nothing_is_collected_while_a_row_is_not_as_the_trail_tells() {
    let env = env();
    let good = checkpoint(&env, "good\n");
    let other = checkpoint(&env, "other\n");
    let record = |from: &str| format!("(SELECT record FROM state_snapshots WHERE id = '{from}')");
    tamper(
        &env,
        &format!(
            "UPDATE state_snapshots SET record = {} WHERE id = '{good}'",
            record(&other)
        ),
    );
    refused(&env, &["gc"], 1, "STATE_TAMPERED");
}

#[test]
fn st_20_a_row_that_cannot_be_read_or_names_another_entry_is_refused() {
    for change in [
        "record = 'x'".to_owned(),
        // An entry that has the digest of a row, and tells of something else.
        "entry = (SELECT max(entry) FROM state_actions)".to_owned(),
    ] {
        let env = env();
        let good = checkpoint(&env, "good\n");
        checkpoint(&env, "other\n");
        tamper(
            &env,
            &format!("UPDATE state_snapshots SET {change} WHERE id = '{good}'"),
        );
        refused(&env, &["rollback", &good], 1, "STATE_TAMPERED");
    }
}

#[test]
fn tr_11_an_audit_and_the_log_name_what_was_tampered_with() {
    let changes = [
        "UPDATE state_actions SET before_id = after_id WHERE action_id = '{action}'",
        "UPDATE state_snapshots SET created = created - 1 WHERE id = '{before}'",
    ];
    for change in changes {
        let env = env();
        checkpoint(&env, "first\n");
        let ran = env.run(&["exec", "--no-tui", "--json", "--", "cp", "f", "g"]);
        let ran: Value = serde_json::from_str(&ran.stdout).unwrap();
        let action = ran["action_id"].as_str().unwrap();
        let log = env.json(&["log", "--limit", "1"]);
        assert_eq!(log["actions"][0]["tampered"], false);
        let before = log["actions"][0]["checkpoint_id"].as_str().unwrap();
        let change = change.replace("{action}", action);
        tamper(&env, &change.replace("{before}", before));
        // Also for somebody who asks about another file: who knows what it changed?
        for scope in [&[][..], &["--scope", "elsewhere"]] {
            let audit = env.json(&[&["audit"], scope].concat());
            let failures = audit["failures"].as_array().unwrap();
            let named = |it: &&Value| it["action_id"] == action && it["outcome"] == "tampered";
            assert_eq!(failures.iter().filter(named).count(), 1, "{audit}");
            assert!(audit["confidence"].as_f64().unwrap() < 1.0, "{audit}");
        }
        let log = env.json(&["log", "--limit", "1"]);
        assert_eq!(log["actions"][0]["tampered"], true);
        let shown = env.run(&["log", "--limit", "1"]).stdout;
        assert!(shown.contains("somebody has changed the store"), "{shown}");
    }
}
