//! What works, and is perhaps not meant.

use super::{atlas, errors, warnings};
use crate::load::read;

#[track_caller]
fn only(rest: &str, expected: &str) {
    assert_eq!(warnings(rest), [expected], "{rest}");
    assert_eq!(errors(rest), Vec::<String>::new());
    assert!(read(&atlas(rest)).is_ok());
}

/// Whoever checks is told that it is wrong; a session may begin under it all the same.
#[track_caller]
fn mistake(rest: &str, expected: &str) {
    assert_eq!(errors(rest), [expected], "{rest}");
    assert_eq!(warnings(rest), Vec::<String>::new());
    assert!(read(&atlas(rest)).is_ok());
}

#[track_caller]
fn nothing(rest: &str) {
    assert_eq!(warnings(rest), Vec::<String>::new(), "{rest}");
}

#[test]
fn ga_02_gates_that_are_never_raised_are_flagged() {
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: session_start}, enabled: false}]\n",
        "/checkpoints/0/enabled: gate `g` is switched off",
    );
    mistake(
        "capabilities: [{capability_id: c, actions: []}]\ncheckpoints: [{checkpoint_id: g, trigger: {type: capability_access, capability_ids: [c]}}]\n",
        "/checkpoints/0/trigger/capability_ids/0: capability `c` has no actions, so none raises gate `g`",
    );
    mistake(
        "checkpoints: [{checkpoint_id: g, trigger: {type: capability_gate, capability_ids: []}}]\n",
        "/checkpoints/0/trigger/capability_ids: gate `g` is never raised: it names no capability",
    );
    mistake(
        "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: []}}]\n",
        "/checkpoints/0/trigger/patterns: gate `g` is never raised: it names no action",
    );
    mistake(
        "checkpoints: [{checkpoint_id: g, trigger: {type: keyword, patterns: []}}]\n",
        "/checkpoints/0/trigger/patterns: gate `g` is never raised: it names no words",
    );
    mistake(
        "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: ['ticket.*']}}]\n",
        "/checkpoints/0/trigger/patterns/0: `ticket.*` stands for no known action",
    );
    // An MCP server can have a tool of any name.
    nothing(
        "checkpoints: [{checkpoint_id: g, trigger: {type: action_pre, patterns: ['mcp.*', '*.delete']}}]\n",
    );
    nothing("checkpoints: [{checkpoint_id: g, trigger: {type: interactive}}]\n");
}

#[test]
fn ga_02_questions_that_nobody_answers_are_flagged() {
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: session_start}, mode: blocking}]\n",
        "/checkpoints/0: gate `g` is blocking and asks nothing, so it blocks nothing",
    );
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: session_start}, questions: [{question_id: q, question: x}]}]\n",
        "/checkpoints/0/questions: gate `g` is not blocking, so nobody has to answer its questions",
    );
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: session_start}, mode: blocking, questions: [{question_id: q, question: x, expect: no}]}]\n",
        "/checkpoints/0/questions/0/expect: only a yes-or-no question can expect a yes or a no",
    );
}

#[test]
fn ga_02_locks_without_a_key_and_triggers_without_code_are_flagged() {
    only(
        "capabilities: [{capability_id: c, actions: [file.read]}]\ncheckpoints: [{checkpoint_id: g, trigger: {type: session_start}, lock_capabilities: [c]}]\n",
        "/checkpoints/0/lock_capabilities/0: capability `c` is locked here, and no gate unlocks it",
    );
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: custom, trigger_id: mood}}]\n",
        "/checkpoints/0/trigger/trigger_id: no extension defines `mood`, so this gate is always raised",
    );
}

#[test]
fn ga_02_a_trigger_that_names_its_code_by_itself_is_no_trigger_without_code() {
    for code in [
        "'cel: input.contains(\"angry\")'",
        "'wasm: mood.wasm'",
        "'https://steward.example/mood'",
    ] {
        nothing(&format!(
            "checkpoints: [{{checkpoint_id: g, trigger: {{type: custom, trigger_id: {code}}}}}]\n"
        ));
    }
    let wrong =
        "checkpoints: [{checkpoint_id: g, trigger: {type: custom, trigger_id: 'cel: 1 +'}}]\n";
    let found = errors(wrong);
    assert!(
        matches!(found.as_slice(), [one] if one.starts_with("/checkpoints/0/trigger/trigger_id: ")),
        "{found:?}"
    );
}

#[test]
fn ga_02_variables_that_nothing_gives_are_flagged() {
    only(
        "checkpoints: [{checkpoint_id: g, trigger: {type: custom, trigger_id: 'cel: size(parameters) > 1 && [1].all(x, x > 0)'}}]\n",
        "/checkpoints/0/trigger/trigger_id: nothing gives `parameters`, so this fails each time",
    );
    only(
        "extensions: [{extension_id: e, cel: 'answr == \"x\"'}]\n",
        "/extensions/0/cel: nothing gives `answr`, so this fails each time",
    );
}

#[test]
fn ga_02_settings_that_change_nothing_or_too_much_are_flagged() {
    only(
        "checkpoint_config: {action_pre: {mappings: {'file.*': {require_policy_check: true}}}}\n",
        "/checkpoint_config/action_pre/mappings/file.*/require_policy_check: `require_policy_check` changes nothing: policies are always checked",
    );
    for (mode, pattern) in [
        ("any", "a"),
        ("any", "refund|x"),
        ("regex", ".*"),
        ("regex", "x?"),
    ] {
        only(
            &format!(
                "checkpoints: [{{checkpoint_id: g, trigger: {{type: keyword, match_mode: {mode}, patterns: ['{pattern}']}}}}]\n"
            ),
            &format!("/checkpoints/0/trigger/patterns/0: `{pattern}` occurs in nearly every text"),
        );
    }
    nothing("checkpoints: [{checkpoint_id: g, trigger: {type: keyword, patterns: [退, re*]}}]\n");
    // The door to Cedar may refuse such a set: it is told once, either way.
    let set = "policies:\n  - policy_id: p\n    type: cedar\n    cedar: |\n      // permit\n      forbid (principal, action, resource);\n";
    let told = [errors(set), warnings(set)].concat();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("/policies/0/cedar: ") && told[0].contains("permit"));
    only(
        "steward: {id: s, access: {api_keys: ['sk-acme-*', sk-live-0123456789abcdef]}}\n",
        "/steward/access/api_keys/1: this looks like a whole key, and everybody who has the atlas can read it",
    );
}

#[test]
fn ga_42_questions_that_ask_for_secrets_are_flagged() {
    let question = |fields: &str| {
        format!(
            "checkpoints: [{{checkpoint_id: g, trigger: {{type: session_start}}, mode: blocking, questions: [{{question_id: q, {fields}}}]}}]\n"
        )
    };
    let cases = [
        ("question: What is your Password?", "question", "password"),
        ("question: Paste the API key.", "question", "api key"),
        ("question: Give the api_key", "question", "api key"),
        ("question: Which access-token?", "question", "token"),
        (
            "question: Who?, hint: Use your private key",
            "hint",
            "private key",
        ),
        (
            "question: Your credentials, response_type: json",
            "question",
            "credentials",
        ),
    ];
    for (fields, field, secret) in cases {
        only(
            &question(fields),
            &format!(
                "/checkpoints/0/questions/0/{field}: this asks for a secret (`{secret}`), and answers are recorded"
            ),
        );
    }
    nothing(&question(
        "question: I will keep every password to myself, response_type: acknowledgment",
    ));
    nothing(&question("question: Which tokenizer?"));
}

#[test]
fn ga_06_built_in_actions_need_no_definition() {
    nothing(
        "capabilities: [{capability_id: c, actions: [file.delete, safepoint.control, mcp.github.create_issue, 'x.*']}]\n",
    );
    only(
        "policies: [{policy_id: p, type: deny, actions: [pay.out]}, {policy_id: q, type: deny, actions: [pay.out]}]\n",
        "/policies/0/actions/0: action `pay.out` is not defined",
    );
}
