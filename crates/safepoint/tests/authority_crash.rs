//! A command that is killed anywhere on its way: its effect comes once or not at all, and
//! the next command tells what nobody saw.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use safepoint_control::pass::{DECISION_POINTS, FAULT_POINTS};
use serde_json::Value;
use support::{
    OPEN, approve, assert_sound, denied, entries, exec, exec_command, held, hold_of, lines,
    permit_state, permitted, project, rounds, runs, show, text, waiting, yes_to,
};
use testkit::{Seeded, TestEnv};

const WORDS: [&str; 3] = ["sh", "-c", "echo run >> log"];

/// Runs a command that is killed at a fault point. False when it did not pass there.
#[track_caller]
fn killed(command: &mut Command, fault: &str) -> bool {
    let output = command.env("SAFEPOINT_FAULT", fault).output().unwrap();
    match output.status.signal() {
        Some(9) => true,
        None => false,
        _ => panic!("{fault}: {output:?}"),
    }
}

/// The entries of this kind about an action.
fn about(env: &TestEnv, kind: &str, action: &str) -> Vec<Value> {
    let mut found = entries(env, kind);
    found.retain(|it| it["action_id"] == action);
    found
}

/// What the next command finds after an approved one was cut off.
#[track_caller]
fn check_permitted(env: &TestEnv, permit: &str, fault: &str) {
    let action = text(&env.json(&["permit", "show", permit])["action_id"]);
    // Any command that passes tells what was cut off before it.
    runs(env, &["cat", "a"]);
    let intended = about(env, "action_intended", &action).len();
    let ended = about(env, "action_ended", &action);
    assert_eq!(intended, ended.len(), "{fault}: what was begun has ended");
    let (state, outcome) = permit_state(env, permit);
    match intended {
        0 => {
            assert_eq!(state, "issued", "{fault}");
            assert_eq!(
                lines(env, "log"),
                0,
                "{fault}: done before it was written down"
            );
            runs(env, &WORDS);
            assert_eq!(lines(env, "log"), 1, "{fault}");
        }
        1 => {
            assert_eq!(state, "consumed", "{fault}");
            let told = text(&ended[0]["body"]["outcome"]);
            assert_eq!(outcome.as_deref(), Some(told.as_str()), "{fault}");
            let recorded = matches!(fault, "pass.concluded" | "pass.recorded");
            assert_eq!(told, if recorded { "ok" } else { "unknown" }, "{fault}");
            // It is never done again by itself.
            denied(env, &WORDS, "APPROVAL_REQUIRED");
            assert!(lines(env, "log") <= 1, "{fault}: done twice");
            let logged = env.json(&["log"]);
            let logged = logged["actions"].as_array().unwrap().clone();
            let mine = logged
                .iter()
                .filter(|it| it["action_id"] == action.as_str());
            assert_eq!(mine.count(), 1, "{fault}: {logged:#?}");
        }
        more => panic!("{fault}: begun {more} times"),
    }
    assert_sound(env);
}

#[test]
fn au_24_killed_at_every_point_of_the_passage() {
    for fault in FAULT_POINTS {
        let env = held();
        let permit = permitted(&env, &WORDS);
        assert!(
            killed(&mut exec_command(&env, &[], &WORDS), fault),
            "{fault} is not passed"
        );
        check_permitted(&env, &permit, fault);
    }
}

/// The same at every step of every transaction that it makes.
#[test]
fn au_26_killed_at_every_step_of_every_transaction() {
    for step in [
        "write.begun",
        "write.changed",
        "write.sealed",
        "write.committed",
    ] {
        let mut passed = 0;
        for count in 1.. {
            let fault = format!("{step}:{count}");
            let env = held();
            let permit = permitted(&env, &WORDS);
            if !killed(&mut exec_command(&env, &[], &WORDS), &fault) {
                break;
            }
            passed = count;
            check_anywhere(&env, &permit, &fault);
        }
        assert!(passed >= 2, "{step}: only {passed} transactions");
    }
}

/// Wherever it was killed: the effect comes once at most, and nothing is told twice.
#[track_caller]
fn check_anywhere(env: &TestEnv, permit: &str, fault: &str) {
    let action = text(&env.json(&["permit", "show", permit])["action_id"]);
    runs(env, &["cat", "a"]);
    let intended = about(env, "action_intended", &action).len();
    let ended = about(env, "action_ended", &action).len();
    assert_eq!(intended, ended, "{fault}");
    let (state, outcome) = permit_state(env, permit);
    let (code, reply) = exec(env, &WORDS);
    match (intended, state.as_str()) {
        (0, "issued") => assert_eq!(code, 0, "{fault}: {reply:#}"),
        (1, "consumed") => {
            assert!(
                matches!(outcome.as_deref(), Some("ok" | "unknown")),
                "{fault}"
            );
            assert_eq!(code, 2, "{fault}: {reply:#}");
        }
        other => panic!("{fault}: {other:?}"),
    }
    assert!(lines(env, "log") <= 1, "{fault}: done twice");
    assert_sound(env);
}

#[test]
fn au_24_what_needed_nobody_is_told_of_as_well() {
    for fault in FAULT_POINTS {
        let env = project(OPEN);
        runs(&env, &["cat", "a"]);
        assert!(
            killed(&mut exec_command(&env, &[], &WORDS), fault),
            "{fault} is not passed"
        );
        runs(&env, &["cat", "a"]);
        let intended = entries(&env, "action_intended");
        let ended = entries(&env, "action_ended");
        assert_eq!(intended.len(), ended.len(), "{fault}");
        let unknown = ended
            .iter()
            .filter(|it| it["body"]["outcome"] == "unknown")
            .count();
        let expected = match fault {
            "pass.begun" | "pass.secured" | "pass.concluded" | "pass.recorded" => 0,
            _ => 1,
        };
        assert_eq!(unknown, expected, "{fault}");
        assert_sound(&env);
    }
}

/// Again and again in one place, wherever it happens to be hit: `scripts/passage-campaign`
/// does it some hundred times.
#[test]
fn au_24_killed_again_and_again_in_one_place() {
    let env = held();
    let random = Seeded::new(40);
    let steps = [
        "write.begun",
        "write.changed",
        "write.sealed",
        "write.committed",
    ];
    let (mut hit, mut unknown) = (0, 0);
    for round in 1..=rounds(10) {
        let line = format!("echo {round} >> log");
        let words = ["sh", "-c", line.as_str()];
        let permit = permitted(&env, &words);
        let before = lines(&env, "log");
        let pick = random.next() as usize % (FAULT_POINTS.len() + steps.len());
        let fault = match FAULT_POINTS.get(pick) {
            Some(point) => (*point).to_owned(),
            None => {
                let step = steps[pick - FAULT_POINTS.len()];
                format!("{step}:{}", 1 + random.next() % 5)
            }
        };
        hit += usize::from(killed(&mut exec_command(&env, &[], &words), &fault));
        runs(&env, &["cat", "a"]);
        let action = text(&env.json(&["permit", "show", &permit])["action_id"]);
        let list = env.json(&["trail", "list", "--action", &action]);
        let count = |kind: &str| {
            let all = list["entries"].as_array().unwrap().iter();
            all.filter(|it| it["kind"] == kind).count()
        };
        assert_eq!(
            count("action_intended"),
            count("action_ended"),
            "{round}: {fault}"
        );
        let (state, outcome) = permit_state(&env, &permit);
        match (count("action_intended"), state.as_str()) {
            (0, "issued") => drop(runs(&env, &words)),
            (1, "consumed") => unknown += usize::from(outcome.as_deref() == Some("unknown")),
            other => panic!("{round}: {fault}: {other:?}"),
        }
        let made = lines(&env, "log") - before;
        assert!(made <= 1, "{round}: {fault}: done {made} times");
        if outcome.as_deref() != Some("unknown") {
            assert_eq!(made, 1, "{round}: {fault}");
        }
    }
    println!("{hit} killed, {unknown} of unknown outcome");
    assert!(hit > 0);
    assert_sound(&env);
}

/// What was cut off is told by whoever comes next, and by one of them only.
#[test]
fn au_24_the_recovery_is_killed_too() {
    for count in 1..20 {
        let env = held();
        let permit = permitted(&env, &WORDS);
        assert!(killed(&mut exec_command(&env, &[], &WORDS), "pass.ran"));
        let fault = format!("write.committed:{count}");
        let again = killed(&mut exec_command(&env, &[], &["cat", "a"]), &fault);
        check_permitted(&env, &permit, "pass.ran");
        assert_eq!(lines(&env, "log"), 1);
        if !again {
            assert!(count > 2, "the recovery makes no transactions");
            return;
        }
    }
    panic!("there is no end of transactions");
}

#[test]
fn au_20_a_decision_that_is_killed_was_made_or_was_not() {
    for fault in DECISION_POINTS.into_iter().chain([
        "write.begun",
        "write.changed",
        "write.sealed",
        "write.committed",
    ]) {
        let env = held();
        let hold = hold_of(&env, &WORDS);
        let words = yes_to(&env, &hold, &[]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(
            killed(&mut env.command(&words), fault),
            "{fault} is not passed"
        );
        let state = text(&show(&env, &hold)["state"]);
        let permits = env.json(&["permit", "list"]);
        let permits = permits["permits"].as_array().unwrap().len();
        match (state.as_str(), permits) {
            ("pending", 0) => {
                assert_eq!(waiting(&env).len(), 1, "{fault}");
                assert_eq!(entries(&env, "approval_decision").len(), 0, "{fault}");
                approve(&env, &hold);
            }
            ("approved", 1) => {
                assert_eq!(entries(&env, "approval_decision").len(), 1, "{fault}");
            }
            other => panic!("{fault}: {other:?}"),
        }
        runs(&env, &WORDS);
        assert_eq!(lines(&env, "log"), 1, "{fault}");
        assert_sound(&env);
    }
}
