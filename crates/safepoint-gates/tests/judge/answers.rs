//! What answers do, and what they cannot do.

use safepoint_gates::{CheckpointAction, Decision, Event, GateStatus, Refusal};
use serde_json::json;

use crate::support::{Story, asking, engine, gates, questions, rules};

const ACTIONS: &str = "actions:\n  - action_id: ticket.get\n  - action_id: ticket.delete\n";

/// A gate before `ticket.delete` with these questions.
fn gate(questions: &str) -> String {
    format!(
        "{ACTIONS}checkpoints:\n  - checkpoint_id: gate\n    trigger: {{type: action_pre, patterns: [ticket.delete]}}\n    mode: blocking\n    questions:\n{questions}"
    )
}

#[test]
fn ga_20_every_required_question_is_answered_before_it_goes_on() {
    let text = gate(
        "      - {question_id: one, question: \"1?\", response_type: boolean}
      - {question_id: two, question: \"2?\", response_type: number, min: 1, max: 3}
      - {question_id: three, question: \"3?\", response_type: text, required: false}\n",
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    let (validation, resolution) = story.answer("gate", json!({"one": true}));
    assert!(!validation.is_valid);
    assert_eq!(rules(&validation), ["required"]);
    assert_eq!(
        questions(&resolution),
        ["two", "three"],
        "what is good is remembered"
    );
    let (validation, resolution) = story.answer("gate", json!({"two": 4}));
    assert_eq!(rules(&validation), ["max"]);
    assert_eq!(resolution.decision, Decision::Hold);
    let (validation, resolution) = story.answer("gate", json!({"two": 2}));
    assert!(validation.is_valid);
    assert_eq!(validation.actions, [CheckpointAction::Proceed]);
    assert_eq!(resolution.decision, Decision::Allow);
}

#[test]
fn ga_21_a_no_is_valid_and_does_not_pass_unless_any_answer_will_do() {
    let text = gate("      - {question_id: ok, question: \"Sure?\", response_type: boolean}\n");
    let strict = engine(&[&text]);
    let mut story = Story::of(&strict);
    story.request("ticket.delete");
    let (validation, resolution) = story.answer("gate", json!({"ok": false}));
    assert!(validation.is_valid);
    assert_eq!(resolution.decision, Decision::Hold);
    let (_, resolution) = story.answer("gate", json!({"ok": true}));
    assert_eq!(resolution.decision, Decision::Allow);

    let text = gate(
        "      - {question_id: ok, question: \"Sure?\", response_type: boolean, expect: any}\n",
    );
    let open = engine(&[&text]);
    let mut story = Story::of(&open);
    story.request("ticket.delete");
    let (_, resolution) = story.answer("gate", json!({"ok": false}));
    assert_eq!(resolution.decision, Decision::Allow);
}

#[test]
fn ga_22_all_that_is_wrong_is_told_together_with_the_hint() {
    let text = gate(
        "      - question_id: why
        question: \"Why?\"
        response_type: text
        hint: \"a sentence\"
        validation: {min_length: 20, must_contain: [reason], must_not_contain: [hack], pattern: '\\.$'}\n",
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    let (validation, _) = story.answer("gate", json!({"why": "h\u{200b}ack it"}));
    assert_eq!(
        rules(&validation),
        ["min_length", "must_contain", "must_not_contain", "pattern"]
    );
    let hints: Vec<_> = validation
        .failures
        .iter()
        .map(|it| it.hint.as_deref())
        .collect();
    assert_eq!(hints, [Some("a sentence"); 4]);
}

#[test]
fn ga_15_a_validator_of_the_stewards_own_decides_and_fails_closed() {
    let question = |validator: &str| {
        gate(&format!(
            "      - question_id: why\n        question: \"Why?\"\n        response_type: text\n        validation: {{custom_validator: {validator}}}\n"
        ))
    };
    let cases = [
        (
            "\"cel:answer.startsWith('because')\"",
            "because of rain",
            true,
        ),
        ("\"cel:answer.startsWith('because')\"", "no reason", false),
        ("\"cel:1 / 0 == 1\"", "because", false),
        ("\"https://steward.example/check\"", "because", false),
    ];
    for (validator, answer, passes) in cases {
        let text = question(validator);
        let engine = engine(&[&text]);
        let mut story = Story::of(&engine);
        story.request("ticket.delete");
        let (validation, resolution) = story.answer("gate", json!({"why": answer}));
        assert_eq!(validation.is_valid, passes, "{validator} {answer}");
        assert_eq!(resolution.decision == Decision::Allow, passes);
        if !passes {
            assert_eq!(rules(&validation), ["custom_validator"]);
        }
    }
}

#[test]
fn ga_23_retry_has_a_limit_after_which_the_gate_is_shut() {
    let text = gate(
        "      - {question_id: n, question: \"How many?\", response_type: number, max_attempts: 2}\n",
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    let (_, resolution) = story.answer("gate", json!({"n": "many"}));
    assert_eq!(resolution.decision, Decision::Hold);
    let left: Vec<u32> = resolution
        .questions
        .iter()
        .map(|it| it.attempts_left)
        .collect();
    assert_eq!(left, [1]);
    let (_, resolution) = story.answer("gate", json!({"n": "more"}));
    assert_eq!(resolution.decision, Decision::Deny);
    // Neither the right answer nor another request for the action opens it again.
    let late = story.try_answer("gate", None, json!({"n": 1})).unwrap_err();
    assert_eq!(late, Refusal::NotWaiting("gate".to_owned()));
    let again = story.request_with("ticket.delete", json!({"x": 1}), None);
    assert_eq!(again.decision, Decision::Deny);
    let status: Vec<GateStatus> = again.checkpoints.iter().map(|it| it.status).collect();
    assert_eq!(status, [GateStatus::Blocked]);
    assert_eq!(story.decision("ticket.get"), Decision::Allow);
}

#[test]
fn ga_23_block_shuts_at_once_and_the_others_go_on() {
    let question = |on_invalid: &str| {
        gate(&format!(
            "      - {{question_id: n, question: \"How many?\", response_type: number, on_invalid: {on_invalid}}}\n"
        ))
    };
    let cases = [
        ("retry", false, Decision::Hold, 0),
        ("block", false, Decision::Deny, 0),
        ("warn_and_continue", true, Decision::Allow, 1),
        ("log_and_continue", true, Decision::Allow, 0),
    ];
    for (on_invalid, is_valid, decision, warnings) in cases {
        let text = question(on_invalid);
        let engine = engine(&[&text]);
        let mut story = Story::of(&engine);
        story.request("ticket.delete");
        let (validation, resolution) = story.answer("gate", json!({"n": "many"}));
        assert_eq!(validation.is_valid, is_valid, "{on_invalid}");
        assert_eq!(rules(&validation), ["response_type"], "{on_invalid}");
        assert_eq!(resolution.decision, decision, "{on_invalid}");
        assert_eq!(resolution.warnings.len(), warnings, "{on_invalid}");
    }
}

#[test]
fn ga_41_an_answer_that_failed_is_recorded_as_such_and_what_let_it_through() {
    for (on_invalid, let_through) in [
        ("retry", json!({})),
        ("block", json!({})),
        ("warn_and_continue", json!({"n": "warn_and_continue"})),
        ("log_and_continue", json!({"n": "log_and_continue"})),
    ] {
        let text = gate(&format!(
            "      - {{question_id: n, question: \"How many?\", response_type: number, on_invalid: {on_invalid}}}\n"
        ));
        let engine = engine(&[&text]);
        let mut story = Story::of(&engine);
        story.request("ticket.delete");
        let judgement = story.try_answer("gate", None, json!({"n": "many"}));
        let records = judgement.unwrap().records;
        let response = records.first().unwrap();
        assert_eq!(response.kind, "CheckpointResponse");
        assert_eq!(
            response.body["validation_result"], "invalid",
            "{on_invalid}"
        );
        assert_eq!(response.body["let_through"], let_through, "{on_invalid}");
    }
}

#[test]
fn ga_23_a_shut_gate_at_the_beginning_shuts_the_session() {
    let text = format!(
        "{ACTIONS}checkpoints:\n  - checkpoint_id: terms\n    trigger: {{type: session_start}}\n    mode: blocking\n    questions:\n      - {{question_id: n, question: \"How many?\", response_type: number, on_invalid: block}}\n"
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let (_, resolution) = story.answer("terms", json!({"n": "x"}));
    assert_eq!(resolution.decision, Decision::Deny);
    let denied = story.request("ticket.get");
    assert_eq!(denied.decision, Decision::Deny);
    assert!(denied.allowed_actions.is_empty());
}

#[test]
fn ga_24_an_answer_belongs_to_one_hold_and_is_taken_once() {
    let text = gate("      - {question_id: ok, question: \"Sure?\", response_type: boolean}\n");
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let yes = json!({"ok": true});
    let early = story.try_answer("gate", None, yes.clone()).unwrap_err();
    assert_eq!(early, Refusal::NotWaiting("gate".to_owned()));
    let nobody = story.try_answer("nobody", None, yes.clone()).unwrap_err();
    assert_eq!(nobody, Refusal::UnknownGate("nobody".to_owned()));

    let one = story.request_with("ticket.delete", json!({"id": 1}), None);
    let two = story.request_with("ticket.delete", json!({"id": 2}), None);
    assert_ne!(one.hold_id, two.hold_id);
    let which = story.try_answer("gate", None, yes.clone()).unwrap_err();
    assert!(matches!(which, Refusal::SeveralHolds { .. }));
    let judged = story.try_answer("gate", one.hold_id.clone(), yes.clone());
    assert_eq!(judged.unwrap().resolution.decision, Decision::Allow);
    let replayed = story.try_answer("gate", one.hold_id, yes).unwrap_err();
    assert_eq!(replayed, Refusal::NotWaiting("gate".to_owned()));
    let second = story.request_with("ticket.delete", json!({"id": 2}), None);
    assert_eq!(
        second.decision,
        Decision::Hold,
        "the other hold is untouched"
    );
}

#[test]
fn ga_24_an_answer_to_another_question_passes_nothing() {
    let text = gate("      - {question_id: ok, question: \"Sure?\", response_type: boolean}\n");
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    let (validation, resolution) = story.answer("gate", json!({"ok": true, "passed": true}));
    assert!(!validation.is_valid);
    assert_eq!(rules(&validation), ["unknown_question"]);
    assert_eq!(resolution.decision, Decision::Hold);
}

#[test]
fn ga_25_a_session_that_ends_denies_what_still_waits() {
    let text = gate("      - {question_id: ok, question: \"Sure?\", response_type: boolean}\n");
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    story.request("ticket.delete");
    let ended = story.step(&Event::End { abandon: false });
    let kinds: Vec<&str> = ended.records.iter().map(|it| it.kind).collect();
    assert_eq!(kinds, ["CheckpointBlocked", "SessionEnded"]);
    assert!(ended.session.holds.is_empty());
    let late = story
        .try_answer("gate", None, json!({"ok": true}))
        .unwrap_err();
    assert_eq!(late, Refusal::Ended);
}

#[test]
fn ga_25_what_is_asked_at_the_end_is_answered_first() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}",
        asking("bye", "{type: session_end}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.end().decision, Decision::Hold);
    assert_eq!(gates(&story.end()), ["bye"]);
    assert_eq!(story.decision("ticket.get"), Decision::Allow);
    story.answer("bye", json!({"ok": true}));
    assert_eq!(story.end().decision, Decision::Allow);
    assert!(story.simulation.session.ended.is_some());

    let mut story = Story::of(&engine);
    story.step(&Event::End { abandon: true });
    assert!(story.simulation.session.ended.is_some());
}
