//! Ways past a gate that random stories found (`tests/differential`), closed.

use safepoint_gates::{Decision, Event, Outcome};
use serde_json::json;

use crate::support::{Story, asking, contexts, engine, gates};

const ACTIONS: &str = "actions:\n  - {action_id: a, risk_tier: high}\n  - action_id: b\n";
const BEFORE_A: &str = "{type: action_pre, patterns: [a]}";
const EVERY_MINUTE: &str = "{type: time_interval, seconds: 60}";

/// A gate that one bad answer shuts.
fn brittle(id: &str, trigger: &str) -> String {
    asking(id, trigger, "").replace("boolean}", "boolean, on_invalid: block}")
}

#[test]
fn ga_23_a_shut_gate_is_not_passed_by_answering_another() {
    let risk = asking("risk", "{type: risk_threshold, min_tier: high}", "");
    let text = format!(
        "{ACTIONS}checkpoints:\n{}{risk}",
        brittle("first", BEFORE_A)
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a"), Decision::Hold);
    let (_, resolution) = story.answer("first", json!({"ok": "perhaps"}));
    assert_eq!(resolution.decision, Decision::Deny);
    let resolution = story.request("a");
    assert_eq!(resolution.decision, Decision::Deny);
    assert!(
        resolution.questions.is_empty(),
        "they would be asked in vain"
    );
    assert!(story.try_answer("risk", None, json!({"ok": true})).is_err());
    assert_eq!(story.decision("a"), Decision::Deny);
}

#[test]
fn ga_20_what_everything_waits_for_outlives_the_hold_it_began_in() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}{}",
        brittle("first", BEFORE_A),
        asking("pause", EVERY_MINUTE, "")
    );
    let engine = engine(&[&text]);
    // Shutting the other gate of the hold does not help.
    let mut story = Story::of(&engine);
    story.wait(60);
    assert_eq!(story.decision("a"), Decision::Hold);
    story.answer("first", json!({"ok": "perhaps"}));
    assert_eq!(story.decision("b"), Decision::Hold);
    story.answer("pause", json!({"ok": true}));
    assert_eq!(story.decision("b"), Decision::Allow);
    assert_eq!(story.decision("a"), Decision::Deny);
    // Nor does saying that the action is done.
    let mut story = Story::of(&engine);
    story.wait(60);
    assert_eq!(story.decision("a"), Decision::Hold);
    assert_eq!(story.report(Outcome::Ok).decision, Decision::Hold);
    assert_eq!(story.decision("b"), Decision::Hold);
}

#[test]
fn ga_20_what_one_request_waits_for_does_not_hide_it_from_input() {
    let text = format!(
        "{ACTIONS}extensions:\n  - {{extension_id: always, cel: \"true\"}}\ncheckpoints:\n{}",
        asking("custom", "{type: custom, trigger_id: always}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.answer("custom", json!({"ok": true}));
    assert_eq!(story.decision("a"), Decision::Hold);
    assert_eq!(story.input("anything").decision, Decision::Hold);
    let resolution = story.request("b");
    assert_eq!(resolution.decision, Decision::Hold, "{}", resolution.reason);
    assert!(
        story
            .try_answer("custom", None, json!({"ok": true}))
            .is_err(),
        "it waits twice"
    );
}

#[test]
fn ga_04_what_one_atlas_opens_another_keeps_locked() {
    let key = asking(
        "key",
        "{type: interactive}",
        "    unlock_capabilities: [c]\n",
    );
    let locked =
        format!("capabilities:\n  - {{capability_id: c, actions: [a]}}\ncheckpoints:\n{key}");
    let lavish = "capabilities:\n  - {capability_id: d, actions: [a]}\n\
                  policies:\n  - {policy_id: p, type: allow, actions: [a]}\n";
    let engine = engine(&[&locked, lavish]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a"), Decision::Deny);
    story.ask(Some("key"));
    story.answer("key", json!({"ok": true}));
    assert_eq!(story.decision("a"), Decision::Allow);
}

#[test]
fn ga_20_an_answer_that_does_not_pass_is_not_told_that_it_may_go_on() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}",
        asking("talk", "{type: interactive}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.ask(Some("talk")).decision, Decision::Hold);
    assert_eq!(
        story.ask(Some("talk")).decision,
        Decision::Hold,
        "it still waits"
    );
    let (validation, resolution) = story.answer("talk", json!({"ok": "perhaps"}));
    assert!(!validation.is_valid);
    assert_eq!(resolution.decision, Decision::Hold);
    let (_, resolution) = story.answer("talk", json!({"ok": true}));
    assert_eq!(resolution.decision, Decision::Allow);
}

#[test]
fn ga_25_a_session_whose_last_gate_is_shut_is_only_abandoned() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}",
        brittle("last", "{type: session_end}")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.end().decision, Decision::Hold);
    story.answer("last", json!({"ok": "perhaps"}));
    assert_eq!(story.end().decision, Decision::Deny);
    assert!(story.simulation.session.ended.is_none());
    story.step(&Event::End { abandon: true });
    assert!(story.simulation.session.ended.is_some());
}

#[test]
fn ga_14_a_gate_that_the_budget_left_out_is_still_due() {
    let text = format!(
        "{ACTIONS}checkpoint_config:\n  budget: {{max_checkpoints_per_input: 1}}\ncheckpoints:\n  \
         - {{checkpoint_id: pause, trigger: {EVERY_MINUTE}}}\n  \
         - {{checkpoint_id: word, trigger: {{type: keyword, patterns: [stop]}}}}\n"
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.wait(60);
    assert_eq!(gates(&story.input("stop")), ["word"]);
    assert_eq!(gates(&story.input("go")), ["pause"]);
    assert!(gates(&story.input("go")).is_empty());
}

#[test]
fn ga_31_important_contexts_come_first() {
    let text = format!(
        "{ACTIONS}context_blocks:\n  - {{context_id: low, content: l, inject_mode: always}}\n  \
         - {{context_id: high, content: h, inject_mode: always, priority: 5}}\n"
    );
    let engine = engine(&[&text]);
    let (_, start) = Story::begin(&engine);
    assert_eq!(contexts(&start), ["high", "low"]);
}

#[test]
fn ga_04_gates_in_short_of_two_atlases_can_be_told_apart() {
    let text = "checkpoint_config:\n  session_start: {}\n";
    let engine = engine(&[text, text]);
    let (_, start) = Story::begin(&engine);
    assert_eq!(
        gates(&start),
        [
            "atlas-0/checkpoint_config.session_start",
            "atlas-1/checkpoint_config.session_start"
        ]
    );
}
