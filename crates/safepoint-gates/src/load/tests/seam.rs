//! Faults that other modules find: patterns, words, rules, Cedar and CEL.

use super::errors;

#[track_caller]
fn at(rest: &str, pointer: &str) {
    let told = errors(rest);
    assert_eq!(told.len(), 1, "{rest}: {told:?}");
    assert!(told[0].starts_with(&format!("{pointer}: ")), "{told:?}");
}

#[test]
fn ga_02_bad_patterns_of_actions_are_found_everywhere() {
    at(
        "capabilities: [{capability_id: c, actions: ['a..b']}]\n",
        "/capabilities/0/actions/0",
    );
    at(
        "policies: [{policy_id: p, type: deny, actions: ['']}]\n",
        "/policies/0/actions/0",
    );
    at(
        "context_blocks: [{context_id: c, content: x, actions: ['a b']}]\n",
        "/context_blocks/0/actions/0",
    );
    let gate = |fields: &str| format!("checkpoints: [{{checkpoint_id: g, {fields}}}]\n");
    at(
        &gate("trigger: {type: action_pre, patterns: ['.a']}"),
        "/checkpoints/0/trigger/patterns/0",
    );
    at(
        &gate("trigger: {type: session_start}, allow_actions: ['a.']"),
        "/checkpoints/0/allow_actions/0",
    );
    at(
        &gate("trigger: {type: session_start}, deny_actions: ['a..b']"),
        "/checkpoints/0/deny_actions/0",
    );
    at(
        "checkpoint_config: {action_pre: {mappings: {'a..b': {}}}}\n",
        "/checkpoint_config/action_pre/mappings/a..b",
    );
}

#[test]
fn ga_02_bad_regular_expressions_are_found() {
    let gate =
        |trigger: &str| format!("checkpoints: [{{checkpoint_id: g, trigger: {{{trigger}}}}}]\n");
    at(
        &gate("type: keyword, match_mode: regex, patterns: [fine, '(']"),
        "/checkpoints/0/trigger/patterns/1",
    );
    at(
        "checkpoint_config: {keyword_match: {match_mode: regex, mappings: {'(': []}}}\n",
        "/checkpoint_config/keyword_match/mappings/(",
    );
    let question = |fields: &str| {
        format!(
            "checkpoints: [{{checkpoint_id: g, trigger: {{type: session_start}}, mode: blocking, questions: [{{question_id: q, question: x, {fields}}}]}}]\n"
        )
    };
    at(
        &question("validation: {pattern: '('}"),
        "/checkpoints/0/questions/0/validation/pattern",
    );
    at(
        &question("response_type: json, schema: {type: objekt}"),
        "/checkpoints/0/questions/0/schema",
    );
    at(
        &question("response_type: choice, options: [red, blue], validation: {min_length: 9}"),
        "/checkpoints/0/questions/0/validation",
    );
    at(
        &question("validation: {must_contain: [because], must_not_contain: [cause]}"),
        "/checkpoints/0/questions/0/validation/must_contain/0",
    );
}

#[test]
fn ga_02_bad_code_is_found() {
    at(
        "policies: [{policy_id: p, type: cedar, cedar: 'permit everything;'}]\n",
        "/policies/0/cedar",
    );
    at(
        "extensions: [{extension_id: e, cel: '1 +'}]\n",
        "/extensions/0/cel",
    );
}
