//! Faults of shape: how they are listed and drawn.

use super::{ACME, atlas, problems};
use crate::load::check;

fn drawn(text: &str) -> String {
    let problems = check(text).problems;
    problems
        .iter()
        .map(|it| it.render("atlas.yaml", text))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn ga_02_an_unknown_field_is_drawn_with_a_caret_and_a_hint() {
    let text = atlas(
        "checkpoints:\n  - chekpoint_id: \"onboarding\"\n    trigger: {type: session_start}\n",
    );
    assert_eq!(
        drawn(&text),
        "\
error: unknown field `chekpoint_id`
 --> atlas.yaml:6:5
  |
6 |   - chekpoint_id: \"onboarding\"
  |     ^^^^^^^^^^^^
  = hint: did you mean `checkpoint_id`?
"
    );
    let deep = ACME.replace("    force_sync_trace: true", "    forced_sync_trace: true");
    let all = drawn(&deep);
    let first = all.split("\n\n").next().unwrap();
    assert_eq!(
        first,
        "\
error: unknown field `forced_sync_trace`
  --> atlas.yaml:68:5
   |
68 |     forced_sync_trace: true
   |     ^^^^^^^^^^^^^^^^^
   = hint: did you mean `force_sync_trace`?"
    );
}

#[test]
fn ga_02_all_faults_are_listed_and_not_only_the_first() {
    let text = "\
atlas_version: \"1.0\"
atlas_id: a.b
name: Test
colour: red
checkpoints:
  - checkpoint_id: one
    trigger: {type: sesion_start}
    mode: strict
    priority: high
    priority: 3
  - trigger: {type: action_pre, pattern: [a.b]}
    enabled: maybe
    questions: none
  - checkpoint_id: [x]
    trigger: {type: time_interval, seconds: 0}
    guidance:
";
    assert_eq!(
        problems(text),
        [
            "error 1:1 field `version` is missing",
            "error 4:1 unknown field `colour`",
            "error 7:21 `sesion_start` is not known here",
            "error 8:11 `strict` is not known here",
            "error 9:15 expected a whole number, found the text `high`",
            "error 10:5 key `priority` occurs twice",
            "error 11:5 field `checkpoint_id` is missing",
            "error 11:33 unknown field `pattern`",
            "error 12:14 expected `true` or `false`, found the text `maybe`",
            "error 13:16 expected a list, found the text `none`",
            "error 14:20 expected a text, found a list",
            "error 15:45 `0` is too small: at least 1 is expected",
        ]
    );
}

#[test]
fn ga_02_a_misspelled_field_does_not_hide_what_else_is_wrong() {
    let text = atlas(
        "capabilites:\n  - {capability_id: one, actions: [file.read]}\ncheckpoints:\n  - checkpoint_id: gate\n    trigger: {type: capability_access, capability_ids: [one, two]}\n",
    );
    assert_eq!(
        problems(&text),
        [
            "error 5:1 unknown field `capabilites`",
            "error 9:62 capability `two` does not exist",
        ]
    );
}

#[test]
fn ga_02_wrong_words_come_with_the_list_of_right_ones() {
    let hint = |rest: &str| check(&atlas(rest)).problems[0].hint.clone().unwrap();
    assert_eq!(
        hint("policies:\n  - {policy_id: p, type: forbid, actions: [file.read]}\n"),
        "it is one of `allow`, `deny`, `requires_approval`, `rate_limit`, `risk` or `cedar`"
    );
    assert_eq!(
        hint("actions:\n  - {action_id: a.b, risk_tier: hihg}\n"),
        "did you mean `high`? It is one of `low`, `medium`, `high` or `critical`"
    );
    assert_eq!(
        hint("checkpoints:\n  - {checkpoint_id: a, trigger: {type: session_start, wen: 1}}\n"),
        "leave it out"
    );
    assert_eq!(
        hint("checkpoints:\n  - {trigger: {type: session_start}}\n"),
        "`checkpoint_id`: Its name in this atlas."
    );
    assert_eq!(
        hint(
            "checkpoints:\n  - {checkpoint_id: a, trigger: {type: session_start}, questions: [{question_id: q, question: x, response_type: txt}]}\n"
        ),
        "did you mean `text`? It is one of `text`, `boolean`, `acknowledgment`, `choice`, `number` or `json`"
    );
}

#[test]
fn ga_02_syntax_and_duplicates_have_places() {
    assert_eq!(
        problems(&atlas("checkpoints: [\n")),
        [syntax_of(&atlas("checkpoints: [\n"))]
    );
    assert_eq!(
        problems(&atlas("name: Again\n")),
        ["error 5:1 key `name` occurs twice"]
    );
    assert_eq!(
        problems("{\"atlas_version\": \"1.0\",}"),
        [
            "error 1:1 field `atlas_id` is missing",
            "error 1:1 field `version` is missing",
            "error 1:1 field `name` is missing",
            "error 1:25 found `}` where a key in double quotes was expected",
        ]
    );
    assert_eq!(
        problems("- a\n"),
        ["error 1:1 expected a mapping, found a list"]
    );
    assert!(!problems("").is_empty());
    assert!(!problems("\u{0}").is_empty());
    let second = atlas("---\na: b\n");
    assert_eq!(
        problems(&second),
        ["error 6:1 a second document begins here; only one is read"]
    );
}

/// The parser's own words: they are its concern, the place is ours.
fn syntax_of(text: &str) -> String {
    let error = safepoint_model::yaml::read_as::<serde_json::Value>(text).unwrap_err();
    assert!(error.line.is_some());
    format!(
        "error {}:{} {}",
        error.line.unwrap(),
        error.column.unwrap(),
        error.message
    )
}

#[test]
fn ga_02_json_faults_have_places_too() {
    let text = "{\n  \"atlas_version\": \"1.0\",\n  \"atlas_id\": \"a.b\",\n  \"version\": 1,\n  \"name\": \"Test\",\n  \"nam\": \"x\"\n}\n";
    assert_eq!(
        problems(text),
        [
            "error 4:14 expected a text, found the number `1`",
            "error 6:3 unknown field `nam`",
        ]
    );
}

#[test]
fn ga_02_hostile_and_odd_lines_are_drawn_harmlessly() {
    let text = atlas("\"\\e[2J\u{202e}x\": 1\n");
    let out = drawn(&text);
    assert!(
        !out.contains('\u{1b}') && !out.contains('\u{202e}'),
        "{out:?}"
    );
    // A wide character takes two columns, so the caret stands under its word.
    let wide = atlas("actions: [{action_id: \"文\", risc_tier: low}]\n");
    let out = drawn(&wide);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[3],
        "5 | actions: [{action_id: \"文\", risc_tier: low}]"
    );
    assert_eq!(lines[4], "  |                             ^^^^^^^^^");
    let long = atlas(&format!("description: {}\n", "x".repeat(5_000)))
        + &format!("{}: 1\n", "y".repeat(500));
    let out = drawn(&long);
    let source = out.lines().filter(|line| line.contains(" | "));
    assert_eq!(source.clone().count(), 2);
    assert!(
        source.clone().all(|line| line.chars().count() <= 105),
        "{out}"
    );
    let file = check(&wide).problems[0].render("a\u{1b}[2J.yaml", &wide);
    assert!(!file.contains('\u{1b}'));
}

#[test]
fn ga_02_a_flood_of_faults_is_cut_and_says_so() {
    let many: String = (0..5_000)
        .map(|number| format!("zz{number}: 1\n"))
        .collect();
    let problems = check(&atlas(&many)).problems;
    assert_eq!(problems.len(), 1_001);
    assert_eq!(problems[1_000].message, "4000 more problems are not listed");
}

#[test]
fn ga_02_aliases_cannot_make_the_report_long() {
    let mut bomb = String::from("a0: &a0 {x: [1, 1, 1, 1, 1, 1, 1, 1, 1]}\n");
    for level in 1..12 {
        let list = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} {{x: [{list}]}}\n"));
    }
    assert!(!problems(&atlas(&format!("{bomb}checkpoints: *a11\n"))).is_empty());
    assert!(!problems(&atlas("actions: &a [*a]\n")).is_empty());
}

#[test]
fn ga_02_a_misspelled_word_does_not_hide_what_is_wrong_elsewhere() {
    let found = super::errors(
        "checkpoints:
  - checkpoint_id: g1
    name: g
    trigger: { type: acton_pre, patterns: [\"*.delete\"] }
    mode: blokcing
    unlock_capabilities: [nope]
  - checkpoint_id: g1
    name: g
    trigger: { type: session_start }
    extra_field: 1
",
    );
    let has = |text: &str| found.iter().filter(|it| it.contains(text)).count();
    assert_eq!(has("`acton_pre` is not known"), 1, "{found:#?}");
    assert_eq!(has("`blokcing` is not known"), 1, "{found:#?}");
    assert_eq!(has("unknown field `extra_field`"), 1, "{found:#?}");
    assert!(has("nope") >= 1, "{found:#?}");
    assert!(has("`g1`") >= 1, "the second of the same name: {found:#?}");
}
