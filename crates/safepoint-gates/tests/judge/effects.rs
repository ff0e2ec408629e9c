//! What passing a gate brings.

use safepoint_gates::{Decision, RiskTier};
use serde_json::json;

use crate::support::{Story, asking, contexts, engine, gates, guidance};

#[test]
fn ga_30_effects_come_after_the_pass_and_lock_and_deny_win() {
    let text = format!(
        "actions:\n  - action_id: a.one\n  - action_id: b.one\n  - action_id: c.one\n  - action_id: d.one
capabilities:
  - {{capability_id: a, actions: ['a.*']}}
  - {{capability_id: b, actions: ['b.*']}}
  - {{capability_id: c, actions: ['c.*']}}
checkpoints:\n{}",
        asking(
            "door",
            "{type: interactive}",
            "    unlock_capabilities: [a, b]\n    lock_capabilities: [b]\n    allow_actions: ['c.*', 'd.*']\n    deny_actions: ['d.*']\n"
        )
    ) + "  - {checkpoint_id: never, trigger: {type: interactive}, unlock_capabilities: [c], mode: blocking, questions: [{question_id: x, question: 'x?'}]}\n";
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let before = story.ask(Some("door"));
    assert_eq!(before.capabilities.locked, ["a", "b", "c"]);
    assert_eq!(story.decision("a.one"), Decision::Deny);
    assert_eq!(story.decision("d.one"), Decision::Allow);
    let (_, after) = story.answer("door", json!({"ok": true}));
    assert_eq!(after.capabilities.unlocked, ["a"]);
    assert_eq!(after.capabilities.locked, ["b", "c"]);
    assert_eq!(story.decision("a.one"), Decision::Allow);
    assert_eq!(story.decision("b.one"), Decision::Deny);
    assert_eq!(story.decision("c.one"), Decision::Allow, "allowed by name");
    assert_eq!(story.decision("d.one"), Decision::Deny, "deny always wins");
}

#[test]
fn ga_07_a_capability_that_no_gate_unlocks_is_open_and_the_unknown_is_denied() {
    let text = "capabilities:
  - {capability_id: work, actions: ['file.*', process.exec]}
policies:
  - {policy_id: never, type: deny, actions: ['*.drop'], reason: no}
";
    let engine = engine(&[text]);
    let mut story = Story::of(&engine);
    assert_eq!(story.decision("file.write"), Decision::Allow);
    assert_eq!(story.decision("file.deep.write"), Decision::Allow);
    let unknown = story.request("net.send");
    assert_eq!(unknown.decision, Decision::Deny);
    assert!(unknown.reason.contains("knows the action `net.send`"));
    let dropped = story.request("db.drop");
    assert_eq!(dropped.decision, Decision::Deny);
}

#[test]
fn ga_31_a_context_is_given_once_unless_its_mode_says_otherwise() {
    let text = "actions:
  - action_id: pay
context_blocks:
  - {context_id: first, content: at the beginning, inject_mode: always}
  - {context_id: once, content: once, inject_mode: on_demand}
  - {context_id: often, content: often, inject_mode: every_time}
  - {context_id: words, content: words, inject_mode: on_match, keywords: [refund]}
  - {context_id: acts, content: acts, inject_mode: on_match, actions: ['pay']}
  - {context_id: risky, content: risky, inject_mode: risk_based, min_tier: high}
checkpoints:
  - {checkpoint_id: tell, trigger: {type: keyword, patterns: [tell]}, mode: advisory, inject_contexts: [once, often]}
";
    let engine = engine(&[text]);
    let (mut story, start) = Story::begin(&engine);
    assert_eq!(contexts(&start), ["first"]);
    assert_eq!(contexts(&story.input("tell me")), ["once", "often"]);
    assert_eq!(contexts(&story.input("tell me")), ["often"]);
    assert_eq!(contexts(&story.input("a refund")), ["words"]);
    assert!(contexts(&story.input("a refund")).is_empty());
    assert_eq!(contexts(&story.request("pay")), ["acts"]);
    let risky = story.request_with("pay", json!({}), Some(RiskTier::High));
    assert_eq!(contexts(&risky), ["risky"]);
}

#[test]
fn ga_31_guidance_is_appended_replaced_and_ended() {
    let tell = |id: &str, more: &str| {
        format!(
            "  - {{checkpoint_id: {id}, trigger: {{type: keyword, patterns: [{id}]}}, mode: advisory, guidance: {{content: {id}{more}}}}}\n"
        )
    };
    let text = format!(
        "checkpoints:\n{}",
        [
            tell("one", ""),
            tell("two", ", priority: 5"),
            tell("system", ", format: system_instruction"),
            tell("short", ", expires_after: two"),
            tell("only", ", append: false"),
        ]
        .concat()
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    assert_eq!(guidance(&story.input("one")), ["one"]);
    assert_eq!(guidance(&story.input("short")), ["one", "short"]);
    assert_eq!(
        guidance(&story.input("two")),
        ["two", "one"],
        "it ended what ends with it"
    );
    assert_eq!(guidance(&story.input("system")), ["system", "two", "one"]);
    assert_eq!(guidance(&story.input("only")), ["only"]);
    assert_eq!(guidance(&story.input("one")), ["only", "one"]);
}

#[test]
fn ga_34_the_budget_drops_advisory_gates_first_and_never_a_blocking_one() {
    let gate = |id: &str, mode: &str| {
        format!(
            "  - {{checkpoint_id: {id}, trigger: {{type: action_pre, patterns: [go]}}, mode: {mode}}}\n"
        )
    };
    let text = format!(
        "actions:\n  - action_id: go\ncheckpoint_config:\n  budget: {{max_checkpoints_per_input: 2}}\ncheckpoints:\n{}{}{}{}{}",
        gate("advice-1", "advisory"),
        gate("advice-2", "advisory"),
        gate("watch", "observational"),
        asking("hold-1", "{type: action_pre, patterns: [go]}", ""),
        asking("hold-2", "{type: action_pre, patterns: [go]}", ""),
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let resolution = story.request("go");
    assert_eq!(gates(&resolution), ["hold-1", "hold-2"]);
    let dropped: Vec<&str> = resolution
        .dropped
        .iter()
        .map(|it| it.checkpoint_id.as_str())
        .collect();
    assert_eq!(dropped, ["advice-2", "advice-1", "watch"]);
}

#[test]
fn ga_34_contexts_that_are_too_much_are_left_out_and_may_come_later() {
    let text = format!(
        "checkpoint_config:\n  budget: {{max_context_injection_size: 10}}
context_blocks:
  - {{context_id: small, content: '12345678'}}
  - {{context_id: large, content: '123456789'}}
  - {{context_id: must, content: '12345678901234567890'}}
checkpoints:
  - {{checkpoint_id: both, trigger: {{type: keyword, patterns: [both]}}, mode: advisory, inject_contexts: [small, large]}}
  - {{checkpoint_id: later, trigger: {{type: keyword, patterns: [later]}}, mode: advisory, inject_contexts: [large]}}\n{}",
        asking("must", "{type: keyword, patterns: [must]}", "    inject_contexts: [must]\n")
    );
    let engine = engine(&[&text]);
    let mut story = Story::of(&engine);
    let both = story.input("both");
    assert_eq!(contexts(&both), ["small"]);
    assert_eq!(both.dropped.len(), 1);
    assert_eq!(contexts(&story.input("later")), ["large"]);
    story.input("must");
    let (_, after) = story.answer("must", json!({"ok": true}));
    assert_eq!(
        contexts(&after),
        ["must"],
        "a blocking gate brings what it brings"
    );
}

#[test]
fn ga_01_the_sections_of_checkpoint_config_are_gates() {
    let text = "actions:\n  - action_id: delete_user\n    risk_tier: high\n
context_blocks:
  - {context_id: facts, content: facts}
  - {context_id: geometry, content: geometry}
  - {context_id: warning, content: warning}
  - {context_id: risk, content: risk}
  - {context_id: refresh, content: refresh}
  - {context_id: reminder, content: reminder}
checkpoint_config:
  session_start: {enabled: true, inject_contexts: [facts]}
  keyword_match: {enabled: true, mappings: {'geometry|index': [geometry]}}
  action_pre: {enabled: true, mappings: {'delete_*': {inject_contexts: [warning], require_policy_check: true, require_confirmation: true}}}
  risk_threshold: {enabled: true, min_tier: high, inject_contexts: [risk], require_sync_trace: true}
  time_interval: {enabled: true, seconds: 300, inject_contexts: [refresh]}
  count_interval: {enabled: false, actions: 1, inject_contexts: [reminder]}
";
    let engine = engine(&[text]);
    let (mut story, start) = Story::begin(&engine);
    assert_eq!(contexts(&start), ["facts"]);
    assert_eq!(contexts(&story.input("the INDEX is broken")), ["geometry"]);
    story.wait(301);
    assert_eq!(contexts(&story.input("x")), ["refresh"]);
    let held = story.request("delete_user");
    assert_eq!(held.decision, Decision::Hold);
    assert_eq!(
        gates(&held),
        [
            "checkpoint_config.risk_threshold",
            "checkpoint_config.action_pre.delete_*"
        ]
    );
    assert_eq!(contexts(&held), ["risk"]);
    let (_, after) = story.answer(
        "checkpoint_config.action_pre.delete_*",
        json!({"confirm": "I understand"}),
    );
    assert_eq!(after.decision, Decision::Allow);
    assert_eq!(contexts(&after), ["warning"]);
}
