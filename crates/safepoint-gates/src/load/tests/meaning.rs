//! Faults that the types cannot see: each is an error at its own place.

use super::{ACME, atlas, errors, problems};
use crate::load::{Severity, check, read};

/// A gate with these fields after its name and trigger.
fn gate(fields: &str) -> String {
    format!(
        "checkpoints:\n  - checkpoint_id: gate\n    trigger: {{type: session_start}}\n    mode: blocking\n{fields}"
    )
}

/// A gate that asks this.
fn question(fields: &str) -> String {
    gate(&format!(
        "    questions:\n      - {{question_id: q, question: Why, {fields}}}\n"
    ))
}

#[track_caller]
fn only(rest: &str, expected: &str) {
    assert_eq!(errors(rest), [expected], "{rest}");
    assert!(read(&atlas(rest)).is_err());
    assert!(check(&atlas(rest)).manifest.is_none());
}

#[test]
fn ga_02_another_version_of_the_format_is_refused() {
    let text = ACME.replace("atlas_version: \"1.0\"", "atlas_version: \"2.0\"");
    let problems = check(&text).problems;
    assert_eq!(
        problems[0].message,
        "version `2.0` of the atlas format is not known"
    );
    assert_eq!(problems[0].place.unwrap().column, 16);
    assert!(read(&text).is_err());
}

#[test]
fn ga_02_ids_are_names_and_stand_for_one_thing() {
    only(
        "actions: [{action_id: a.b}, {action_id: a.b}]\n",
        "/actions/1/action_id: action `a.b` is defined twice",
    );
    only(
        "capabilities: [{capability_id: a b, actions: []}]\n",
        "/capabilities/0/capability_id: `a b` cannot name this capability: it has white space in it",
    );
    only(
        "context_blocks: [{context_id: '', content: x}]\n",
        "/context_blocks/0/context_id: `` cannot name this context: it is empty",
    );
    only(
        "context_blocks: [{context_id: c, content: x}, {context_id: c, content: y}]\n",
        "/context_blocks/1/context_id: context `c` is defined twice",
    );
    only(
        "policies: [{policy_id: \"p\\x07\", type: deny, actions: [file.read]}]\n",
        "/policies/0/policy_id: `p\\u{7}` cannot name this policy: it has a control character in it",
    );
    only(
        "extensions: [{extension_id: e, cel: 'true'}, {extension_id: e, cel: 'true'}]\n",
        "/extensions/1/extension_id: extension `e` is defined twice",
    );
    only(
        "tests: [{name: t, steps: []}, {name: t, steps: []}]\n",
        "/tests/1/name: test `t` is defined twice",
    );
    only(
        &gate("    questions: [{question_id: q, question: x}, {question_id: q, question: y}]\n"),
        "/checkpoints/0/questions/1/question_id: question `q` is defined twice",
    );
    only(
        &(gate("    questions: [{question_id: q, question: x}]\n")
            + "  - {checkpoint_id: gate, trigger: {type: session_end}}\n"),
        "/checkpoints/1/checkpoint_id: checkpoint `gate` is defined twice",
    );
}

#[test]
fn ga_02_dangling_references_are_found_everywhere() {
    let text = "\
context_blocks: [{context_id: intro, content: x}]
capabilities: [{capability_id: basic, actions: [file.read]}]
checkpoints:
  - checkpoint_id: gate
    trigger: {type: capability_gate, capability_ids: [basic, basik]}
    inject_contexts: [intro, inttro]
    unlock_capabilities: [basic, other]
    lock_capabilities: [another]
    guidance: {content: x, expires_after: gatte}
checkpoint_config:
  session_start: {inject_contexts: [c1]}
  keyword_match: {mappings: {some/words: [c2]}}
  action_pre: {mappings: {'file.*': {inject_contexts: [c3]}}}
  risk_threshold: {min_tier: low, inject_contexts: [c4]}
  time_interval: {seconds: 1, inject_contexts: [c5]}
  count_interval: {actions: 1, inject_contexts: [c6]}
  explicit_request: {inject_contexts: [c7]}
  action_post: {mappings: {'file.*': {inject_contexts: [c8]}}}
  error_occurred: {inject_contexts: [c9]}
  session_end: {inject_contexts: [c10]}
";
    assert_eq!(
        errors(text),
        [
            "/checkpoints/0/trigger/capability_ids/1: capability `basik` does not exist",
            "/checkpoints/0/inject_contexts/1: context `inttro` does not exist",
            "/checkpoints/0/unlock_capabilities/1: capability `other` does not exist",
            "/checkpoints/0/lock_capabilities/0: capability `another` does not exist",
            "/checkpoints/0/guidance/expires_after: guidance ends after `gatte`, and no gate is called so",
            "/checkpoint_config/session_start/inject_contexts/0: context `c1` does not exist",
            "/checkpoint_config/keyword_match/mappings/some~1words/0: context `c2` does not exist",
            "/checkpoint_config/action_pre/mappings/file.*/inject_contexts/0: context `c3` does not exist",
            "/checkpoint_config/risk_threshold/inject_contexts/0: context `c4` does not exist",
            "/checkpoint_config/time_interval/inject_contexts/0: context `c5` does not exist",
            "/checkpoint_config/count_interval/inject_contexts/0: context `c6` does not exist",
            "/checkpoint_config/explicit_request/inject_contexts/0: context `c7` does not exist",
            "/checkpoint_config/action_post/mappings/file.*/inject_contexts/0: context `c8` does not exist",
            "/checkpoint_config/error_occurred/inject_contexts/0: context `c9` does not exist",
            "/checkpoint_config/session_end/inject_contexts/0: context `c10` does not exist",
        ]
    );
    let problems = check(&atlas(text)).problems;
    assert_eq!(problems[0].hint.as_deref(), Some("did you mean `basic`?"));
    assert!(problems.iter().all(|it| it.place.is_some()));
    let place = problems[6].place.unwrap();
    assert_eq!((place.line, place.column, place.length), (16, 43, 2));
}

#[test]
fn ga_02_numbers_below_one_are_refused_where_one_is_the_least() {
    let text = "\
steward: {id: s, access: {rate_limit: {requests_per_minute: 0, sessions_per_day: 0}}}
policies: [{policy_id: p, type: rate_limit, actions: [file.read], parameters: {max_calls: 0, window_seconds: 0}}]
checkpoint_config: {time_interval: {seconds: 0}, count_interval: {actions: 0}}
checkpoints:
  - {checkpoint_id: a, trigger: {type: time_interval, seconds: 0}}
  - {checkpoint_id: b, trigger: {type: count_interval, actions: 0}}
  - {checkpoint_id: c, trigger: {type: session_start}, mode: blocking, questions: [{question_id: q, question: x, max_attempts: 0}]}
";
    let told = errors(text);
    assert_eq!(told.len(), 8, "{told:?}");
    assert!(
        told.iter()
            .all(|it| it.ends_with(": `0` is too small: at least 1 is expected"))
    );
}

#[test]
fn ga_02_contradictory_bounds_are_refused() {
    let q = "/checkpoints/0/questions/0";
    let cases = [
        (
            "validation: {min_length: 9, max_length: 3}",
            "/validation/min_length: no answer has at least 9 and at most 3 characters",
        ),
        (
            "validation: {max_length: 0}",
            "/validation/max_length: an answer is required, and none may have a character",
        ),
        (
            "validation: {must_contain: [Reason], must_not_contain: [reason]}",
            "/validation/must_contain/0: `Reason` must occur, and must not",
        ),
        (
            "validation: {must_contain: [reason], max_length: 3}",
            "/validation/must_contain/0: `reason` must occur, and an answer has at most 3 characters",
        ),
        ("response_type: choice", ": there is nothing to choose from"),
        (
            "response_type: {choice: {options: []}}",
            ": there is nothing to choose from",
        ),
        (
            "response_type: choice, options: [a, a]",
            "/options/1: option `a` is given twice",
        ),
        (
            "response_type: {choice: {options: [a]}}, options: [b]",
            "/options: the options are given twice",
        ),
        (
            "response_type: number, min: 3, max: 1",
            "/min: no number is at least 3 and at most 1",
        ),
        (
            "response_type: {number: {min: 3, max: 1}}",
            ": no number is at least 3 and at most 1",
        ),
        (
            "response_type: text, options: [a]",
            "/options: `options` says nothing about an answer of type `text`",
        ),
        (
            "response_type: choice, options: [a], min: 1",
            "/min: `min` says nothing about an answer of type `choice`",
        ),
        (
            "response_type: json, max: 1",
            "/max: `max` says nothing about an answer of type `json`",
        ),
        (
            "response_type: number, schema: {}",
            "/schema: `schema` says nothing about an answer of type `number`",
        ),
        (
            "validation: {custom_validator: nobody}",
            "/validation/custom_validator: no extension is called `nobody`",
        ),
        (
            "validation: {custom_validator: 'http://x.example'}",
            "/validation/custom_validator: no extension is called `http://x.example`",
        ),
        (
            "validation: {custom_validator: 'https:///x'}",
            "/validation/custom_validator: `https:///x` is not an `https:` address",
        ),
        (
            "validation: {custom_validator: 'wasm:'}",
            "/validation/custom_validator: `wasm:` names no module",
        ),
    ];
    for (fields, expected) in cases {
        only(&question(fields), &format!("{q}{expected}"));
    }
    assert_eq!(
        errors(&question("validation: {max_length: 0}, required: false")),
        Vec::<String>::new()
    );
    assert_eq!(
        errors(&question(
            "validation: {custom_validator: 'https://x.example/y'}"
        )),
        Vec::<String>::new()
    );
}

#[test]
fn ga_02_policies_have_what_their_type_needs() {
    let cases = [
        ("type: deny", ": policy `p` is about no action"),
        ("type: cedar", ": policy `p` has no Cedar text"),
        (
            "type: cedar, cedar: ' '",
            "/cedar: the Cedar policy set is empty",
        ),
        (
            "type: deny, actions: ['*'], cedar: x",
            "/cedar: policy `p` is not of type `cedar`, so this text is never used",
        ),
        (
            "type: rate_limit, actions: ['*']",
            ": policy `p` limits a rate without saying which",
        ),
        (
            "type: rate_limit, actions: ['*'], parameters: {max_calls: 1}",
            ": policy `p` limits a rate without saying which",
        ),
        (
            "type: risk, actions: ['*'], parameters: {}",
            ": policy `p` is about risk and names no tier",
        ),
        (
            "type: allow, actions: ['*'], parameters: {max_tier: low}",
            "/parameters: policy `p` has parameters that its type does not use",
        ),
    ];
    for (fields, expected) in cases {
        only(
            &format!("policies: [{{policy_id: p, {fields}}}]\n"),
            &format!("/policies/0{expected}"),
        );
    }
}

#[test]
fn ga_02_extensions_have_one_kind_of_code() {
    let cases = [
        ("", ": extension `e` has no code"),
        (
            ", cel: 'true', wasm: x",
            ": extension `e` has more than one kind of code",
        ),
        (", wasm: ' '", "/wasm: extension `e` names no module"),
        (
            ", url: 'http://x.example'",
            "/url: `http://x.example` is not an `https:` address",
        ),
        (
            ", url: 'https://'",
            "/url: `https://` is not an `https:` address",
        ),
    ];
    for (fields, expected) in cases {
        only(
            &format!("extensions: [{{extension_id: e{fields}}}]\n"),
            &format!("/extensions/0{expected}"),
        );
    }
}

#[test]
fn ga_02_schemas_and_patterns_in_actions_are_checked() {
    let told = errors(
        "actions: [{action_id: a.b, parameters_schema: {type: objekt}}, {action_id: 'a.*'}]\n",
    );
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("/actions/0/parameters_schema: this is not a JSON Schema: "),
        "{told:?}"
    );
    assert_eq!(
        told[1],
        "/actions/1/action_id: `a.*` is a pattern, and an action has one name"
    );
    // Nothing is fetched, and nothing is matched in exponential time.
    for schema in ["{$ref: 'https://example.com/x'}", "{pattern: '(?=x)'}"] {
        let told = errors(&format!(
            "actions: [{{action_id: a.b, parameters_schema: {schema}}}]\n"
        ));
        assert_eq!(told.len(), 1, "{schema}: {told:?}");
    }
}

#[test]
fn ga_02_each_step_of_a_test_says_one_thing() {
    let cases = [
        ("{}", ": nothing happens in this step"),
        ("{end: false}", ": nothing happens in this step"),
        (
            "{input: x, request: file.read}",
            ": `input` and `request` happen in one step",
        ),
        (
            "{input: x, params: {}}",
            "/params: `params` says nothing without `request`",
        ),
        (
            "{ask: x, risk: low}",
            "/risk: `risk` says nothing without `request`",
        ),
        (
            "{request: x, answers: {}}",
            "/answers: `answers` says nothing without `answer`",
        ),
        ("{report: fine}", "/report: `fine` is not known here"),
        (
            "{end: true, expect: {decision: alow}}",
            "/expect/decision: `alow` is not known here",
        ),
    ];
    for (step, expected) in cases {
        only(
            &format!("tests: [{{name: t, steps: [{step}]}}]\n"),
            &format!("/tests/0/steps/0{expected}"),
        );
    }
    let told = errors("tests: [{name: t, steps: [{wait: soon}]}]\n");
    assert!(
        told[0].starts_with("/tests/0/steps/0/wait: `soon` is not a length of time"),
        "{told:?}"
    );
}

#[test]
fn ga_02_errors_come_first_and_then_by_place() {
    let text = atlas(
        "capabilities: [{capability_id: c, actions: [x.y]}]\nactions: [{action_id: ''}]\natlas_idd: x\n",
    );
    let listed: Vec<_> = check(&text).problems.iter().map(|it| it.severity).collect();
    assert_eq!(
        listed,
        [Severity::Error, Severity::Error, Severity::Warning],
        "{:?}",
        problems(&text)
    );
}
