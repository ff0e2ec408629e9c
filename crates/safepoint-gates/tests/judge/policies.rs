//! Policies, parameters, several atlases, and what the resolution lists.

use safepoint_gates::{Decision, RiskTier};
use serde_json::json;

use crate::support::{Story, asking, engine, gates};

const ACTIONS: &str = "actions:
  - action_id: a.read
  - {action_id: a.write, risk_tier: high}
  - action_id: a.drop
  - action_id: b.read
    parameters_schema: {type: object, required: [id], properties: {id: {type: string, pattern: '^[a-z]+$'}}}
";

#[test]
fn ga_33_parameters_are_checked_before_anything_else() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}",
        asking("door", "{type: session_start}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    // Even before the session is open: wrong parameters are wrong.
    for bad in [json!({}), json!({"id": 7}), json!({"id": "A"}), json!([])] {
        let resolution = story.request_with("b.read", bad.clone(), None);
        assert_eq!(resolution.decision, Decision::Deny, "{bad}");
        assert!(resolution.reason.contains("parameters"), "{resolution:?}");
        assert!(gates(&resolution).contains(&"door"));
    }
    let good = story.request_with("b.read", json!({"id": "a"}), None);
    assert_eq!(good.decision, Decision::Hold);
}

#[test]
fn ga_35_policies_deny_ask_for_approval_and_limit() {
    let text = format!(
        "{ACTIONS}policies:
  - {{policy_id: no, type: deny, actions: ['*.drop'], reason: never}}
  - {{policy_id: person, type: requires_approval, actions: [a.write], reason: a person decides}}
  - {{policy_id: few, type: rate_limit, actions: [a.read], parameters: {{max_calls: 2, window_seconds: 60}}, reason: too many}}
  - {{policy_id: ceiling, type: risk, actions: ['*'], parameters: {{max_tier: high}}, reason: too risky}}
"
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let denied = story.request("a.drop");
    assert_eq!(
        (denied.decision, denied.reason.as_str()),
        (Decision::Deny, "never")
    );
    let asked = story.request("a.write");
    assert_eq!(asked.decision, Decision::RequiresApproval);
    assert_eq!(asked.reason, "a person decides");
    assert_eq!(asked.policies.len(), 1);
    assert_eq!(story.decision("a.read"), Decision::Allow);
    assert_eq!(story.decision("a.read"), Decision::Allow);
    let limited = story.request("a.read");
    assert_eq!(limited.decision, Decision::Deny);
    assert!(limited.reason.contains("too many"));
    story.wait(61);
    assert_eq!(story.decision("a.read"), Decision::Allow);
    let risky = story.request_with("a.read", json!({}), Some(RiskTier::Critical));
    assert_eq!(risky.reason, "too risky");
}

#[test]
fn ga_35_a_policy_is_asked_after_the_gates_and_denial_comes_before_both() {
    let text = format!(
        "{ACTIONS}policies:
  - {{policy_id: person, type: requires_approval, actions: [a.write], reason: a person decides}}
  - {{policy_id: no, type: deny, actions: [a.drop], reason: never}}
checkpoints:\n{}",
        asking("before", "{type: action_pre, patterns: ['a.*']}", "")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.write"), Decision::Hold);
    let (_, after) = story.answer("before", json!({"ok": true}));
    assert_eq!(after.decision, Decision::RequiresApproval);
    assert_eq!(
        story.decision("a.write"),
        Decision::RequiresApproval,
        "not asked again"
    );
    let denied = story.request("a.drop");
    assert_eq!(denied.decision, Decision::Deny);
    assert!(gates(&denied).is_empty(), "nothing is asked for nothing");
}

#[test]
fn ga_35_an_inline_cedar_policy_decides() {
    let text = format!(
        "{ACTIONS}policies:
  - policy_id: cedar
    type: cedar
    cedar: |
      permit(principal, action == Action::\"a.read\", resource);
      permit(principal, action == Action::\"a.write\", resource);
      forbid(principal, action == Action::\"a.write\", resource) when {{ context.risk_level >= 3 }};
"
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.read"), Decision::Allow);
    assert_eq!(
        story.decision("a.drop"),
        Decision::Deny,
        "nothing permits it"
    );
    let critical = story.request_with("a.write", json!({}), Some(RiskTier::Critical));
    assert_eq!(critical.decision, Decision::Deny);
}

#[test]
fn ga_32_an_allow_policy_allows_in_a_locked_capability() {
    let text = format!(
        "{ACTIONS}capabilities:
  - {{capability_id: all, actions: ['a.*']}}
policies:
  - {{policy_id: fine, type: allow, actions: [a.read]}}
checkpoints:\n{}",
        asking(
            "door",
            "{type: interactive}",
            "    unlock_capabilities: [all]\n"
        )
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("a.read"), Decision::Allow);
    let locked = story.request("a.drop");
    assert_eq!(locked.decision, Decision::Deny);
    assert_eq!(
        locked.reason,
        "capability `all` is locked until checkpoint `door` is passed"
    );
}

#[test]
fn ga_04_of_several_atlases_the_strictest_counts_and_ids_are_qualified() {
    let first = format!(
        "{ACTIONS}checkpoints:\n{}",
        asking("gate", "{type: action_pre, patterns: [a.write]}", "")
    );
    let second = format!(
        "actions:\n  - action_id: c.read\npolicies:\n  - {{policy_id: no, type: deny, actions: [a.drop], reason: second says no}}\ncheckpoints:\n{}",
        asking("gate", "{type: action_pre, patterns: ['*.write']}", "")
    );
    let engine = engine(&[&first, &second]);
    let mut story = Story::of(&engine);
    assert_eq!(
        story.decision("a.read"),
        Decision::Allow,
        "who does not know it is silent"
    );
    assert_eq!(story.decision("c.read"), Decision::Allow);
    assert_eq!(story.request("a.drop").reason, "second says no");
    let held = story.request("a.write");
    assert_eq!(gates(&held), ["atlas-0/gate", "atlas-1/gate"]);
    let which = story
        .try_answer("gate", None, json!({"ok": true}))
        .unwrap_err();
    assert_eq!(
        which.to_string(),
        "`gate` can be atlas-0/gate, atlas-1/gate"
    );
    story.answer("atlas-0/gate", json!({"ok": true}));
    let (_, after) = story.answer("atlas-1/gate", json!({"ok": true}));
    assert_eq!(after.decision, Decision::Allow);
}

#[test]
fn ga_36_the_resolution_lists_everything_with_reasons() {
    let text = format!(
        "{ACTIONS}capabilities:
  - {{capability_id: writing, actions: [a.write]}}
policies:
  - {{policy_id: no, type: deny, actions: [a.drop], reason: never}}
context_blocks:
  - {{context_id: note, content: hello, inject_mode: always}}
checkpoints:\n{}",
        asking(
            "door",
            "{type: capability_access, capability_ids: [writing]}",
            "    unlock_capabilities: [writing]\n"
        )
    );
    let engine = engine(&[&text]);
    let (_, start) = Story::begin(&engine);
    let value = serde_json::to_value(&start).unwrap();
    assert_eq!(
        value,
        json!({
            "decision": "allow",
            "reason": "the session is open",
            "allowed_actions": [
                {"action_id": "a.read", "reason": "in no capability, so open"},
                {"action_id": "b.read", "reason": "in no capability, so open"},
            ],
            "denied_actions": [
                {"action_id": "a.drop", "reason": "never"},
                {"action_id": "a.write", "reason": "capability `writing` is locked until checkpoint `door` is passed"},
            ],
            "checkpoints": [],
            "questions": [],
            "contexts": [{"context_id": "note", "content": "hello"}],
            "guidance": [],
            "capabilities": {"unlocked": [], "locked": ["writing"]},
            "policies": [],
            "dropped": [],
            "warnings": [],
            "hold_id": null,
        })
    );
}

#[test]
fn ga_41_the_trail_gets_the_words_and_fields_of_the_specification() {
    let text = format!(
        "{ACTIONS}checkpoints:\n{}",
        asking(
            "gate",
            "{type: action_pre, patterns: [a.write]}",
            "    force_sync_trace: true\n"
        )
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let request = safepoint_gates::Event::Request(safepoint_gates::Request {
        action: "a.write".to_owned(),
        parameters: json!({}),
        risk: None,
        conditions: std::collections::BTreeSet::new(),
    });
    let held = story.step(&request);
    assert!(held.sync, "on disk before anybody hears of it");
    let kinds: Vec<&str> = held.records.iter().map(|it| it.kind).collect();
    assert_eq!(
        kinds,
        [
            "ActionRequested",
            "CheckpointTriggered",
            "CheckpointBlocked",
            "ActionHeld"
        ]
    );
    let triggered = held.records.get(1).unwrap();
    assert_eq!(triggered.body["checkpoint_id"], "gate");
    assert_eq!(triggered.body["checkpoint_type"], "action_pre");
    assert_eq!(triggered.body["mode"], "blocking");
    assert_eq!(triggered.body["trigger_data"]["action_id"], "a.write");
    let blocked = held.records.get(2).unwrap();
    assert_eq!(blocked.body["reason"], "Required question not answered");
    assert_eq!(blocked.body["blocked_action"], "a.write");
    let answered = story.try_answer("gate", None, json!({"ok": true})).unwrap();
    let kinds: Vec<&str> = answered.records.iter().map(|it| it.kind).collect();
    assert_eq!(
        kinds,
        ["CheckpointResponse", "CheckpointPassed", "ActionAllowed"]
    );
    let response = answered.records.first().unwrap();
    assert_eq!(response.body["validation_result"], "valid");
    assert_eq!(response.body["answers"], json!({"ok": true}));
}
