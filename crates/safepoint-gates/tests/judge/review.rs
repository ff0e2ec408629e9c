//! Ways past a gate that somebody once found. None of them may come back.

use safepoint_gates::{Decision, Engine, Event, Loaded, load};
use safepoint_model::Digest;
use serde_json::json;

use crate::support::{Story, asking, engine};

#[test]
fn ga_07_a_limit_on_everything_makes_nothing_known() {
    let text = "actions: [{action_id: a.b}]
policies:
  - {policy_id: ceiling, type: risk, actions: ['*'], parameters: {max_tier: high}}
  - {policy_id: few, type: rate_limit, actions: ['*'], parameters: {max_calls: 9, window_seconds: 9}}
";
    let engine = engine(&[text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.b"), Decision::Allow);
    assert_eq!(story.decision("nuke"), Decision::Deny);
}

#[test]
fn ga_20_shutting_one_gate_opens_no_other() {
    let text = format!(
        "actions: [{{action_id: a.b}}, {{action_id: x.y}}]\ncheckpoints:\n{}  - checkpoint_id: pre\n    trigger: {{type: action_pre, patterns: [a.b]}}\n    mode: blocking\n    questions:\n      - {{question_id: n, question: \"How many?\", response_type: number, on_invalid: block}}\n",
        asking("count", "{type: count_interval, actions: 1}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.b"), Decision::Hold);
    let (_, after) = story.answer("pre", json!({"n": "x"}));
    assert_eq!(after.decision, Decision::Deny);
    assert_eq!(
        story.decision("x.y"),
        Decision::Hold,
        "the other one still waits"
    );
}

#[test]
fn ga_20_what_waits_for_a_request_is_raised_anew_by_input() {
    let text = format!(
        "actions: [{{action_id: a.x}}, {{action_id: a.y}}]\nextensions:\n  - {{extension_id: danger, cel: 'input == \"danger\" || action == \"a.x\"'}}\ncheckpoints:\n{}",
        asking("own", "{type: custom, trigger_id: danger}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.x"), Decision::Hold);
    assert_eq!(story.decision("a.y"), Decision::Allow);
    assert_eq!(story.input("danger").decision, Decision::Hold);
    assert_eq!(story.decision("a.y"), Decision::Hold);
}

#[test]
fn ga_04_what_one_atlas_locks_no_other_opens() {
    let strict = format!(
        "capabilities: [{{capability_id: db, actions: [db.drop]}}]\ncheckpoints:\n{}",
        asking(
            "door",
            "{type: interactive}",
            "    unlock_capabilities: [db]\n"
        )
    );
    let lax = "capabilities: [{capability_id: all, actions: ['db.*']}]
policies: [{policy_id: fine, type: allow, actions: [db.drop]}]
";
    let engine = engine(&[&strict, lax]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("db.drop"), Decision::Deny);
    assert_eq!(story.decision("db.read"), Decision::Allow);
    story.ask(Some("door"));
    story.answer("door", json!({"ok": true}));
    assert_eq!(story.decision("db.drop"), Decision::Allow);
}

#[test]
fn ga_04_two_atlases_with_one_id_are_refused() {
    let text = "atlas_version: \"1.0\"\natlas_id: same\nversion: \"1\"\nname: Same\n";
    let loaded = || Loaded {
        manifest: load::read(text).unwrap(),
        digest: Digest::of_parts(&[text.as_bytes()]),
        modules: std::collections::BTreeMap::new(),
    };
    assert!(Engine::new(vec![loaded()]).is_ok());
    assert!(Engine::new(vec![loaded(), loaded()]).is_err());
}

#[test]
fn ga_23_asking_again_gives_no_new_attempts() {
    let text = "actions: [{action_id: a.b}]
checkpoints:
  - checkpoint_id: pre
    trigger: {type: action_pre, patterns: [a.b]}
    mode: blocking
    questions:
      - {question_id: n, question: \"How many?\", response_type: number, max_attempts: 3}
";
    let engine = engine(&[text]);
    let mut story = Story::of(&engine);
    let mut guesses = 0;
    for number in 0..10 {
        let held = story.request_with("a.b", json!({"try": number}), None);
        if held.decision == Decision::Deny {
            break;
        }
        let wrong = json!({"n": "guess"});
        story.try_answer("pre", held.hold_id, wrong).unwrap();
        guesses += 1;
    }
    assert_eq!(guesses, 3);
}

#[test]
fn ga_36_an_answer_that_will_not_do_reads_as_a_hold() {
    let text = format!(
        "capabilities: [{{capability_id: db, actions: [db.drop]}}]\ncheckpoints:\n{}{}{}",
        asking("named", "{type: interactive}", ""),
        asking(
            "door",
            "{type: capability_access, capability_ids: [db]}",
            "    unlock_capabilities: [db]\n"
        ),
        asking("bye", "{type: session_end}", ""),
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.ask(Some("named"));
    story.access("db");
    story.end();
    for gate in ["named", "door", "bye"] {
        for answer in [json!({"ok": "perhaps"}), json!({"ok": false})] {
            let (_, resolution) = story.answer(gate, answer);
            assert_eq!(resolution.decision, Decision::Hold, "{gate}");
            assert!(resolution.hold_id.is_some(), "{gate}");
        }
    }
}

#[test]
fn ga_32_what_only_looks_like_an_action_is_none() {
    let text = "capabilities: [{capability_id: tickets, actions: ['ticket.*']}]
policies: [{policy_id: no, type: deny, actions: [ticket.delete], reason: never}]
";
    let engine = engine(&[text]);
    let mut story = Story::of(&engine);
    for name in [
        "ticket.delete ",
        "ticket.delete\n",
        "ticket.delete\u{200b}",
        "ticket.\u{1b}[2Jdelete",
        "ticket.*",
        "",
        "ticket.\u{ad}delete",
    ] {
        let resolution = story.request(name);
        assert_eq!(resolution.decision, Decision::Deny, "{name:?}");
    }
    assert_eq!(story.decision("ticket.update"), Decision::Allow);
}

#[test]
fn ga_14_a_clock_that_goes_back_is_not_believed() {
    let text = "actions: [{action_id: a.b}]\n";
    let engine = engine(&[text]);
    let mut story = Story::of(&engine);
    story.wait(100);
    story.input("x");
    let latest = story.simulation.session.latest;
    story.wait(-50);
    let judged = story.step(&Event::Input {
        text: "y".to_owned(),
    });
    assert_eq!(judged.session.latest, latest);
}
