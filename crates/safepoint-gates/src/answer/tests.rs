//! Answers that will do, and answers that will not.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Accepted, Rules};
use crate::atlas::{AnswerValidation, CheckpointQuestion, Expect};

const STATEMENT: &str = "I understand this deletion cannot be undone";

fn judged(question: &CheckpointQuestion, answer: &Value) -> Result<Accepted, Vec<&'static str>> {
    Rules::compile(question)
        .unwrap()
        .judge(answer)
        .map_err(|failures| failures.iter().map(|failure| failure.rule).collect())
}

fn checked(validation: AnswerValidation, answer: &str) -> Vec<&'static str> {
    let question = CheckpointQuestion::text("why", "Why?").with_validation(validation);
    judged(&question, &json!(answer)).err().unwrap_or_default()
}

fn forbidding(words: &[&str]) -> AnswerValidation {
    AnswerValidation {
        must_not_contain: words.iter().map(|word| (*word).to_owned()).collect(),
        ..AnswerValidation::default()
    }
}

fn wanting(words: &[&str]) -> AnswerValidation {
    AnswerValidation {
        must_contain: words.iter().map(|word| (*word).to_owned()).collect(),
        ..AnswerValidation::default()
    }
}

#[test]
fn ga_21_yes_and_no() {
    let question = CheckpointQuestion::boolean("agree", "Do you agree?");
    for yes in [
        json!(true),
        json!("yes"),
        json!(" YES. "),
        json!("Y"),
        json!("true"),
        json!("I agree"),
        json!("Yes, I agree!"),
    ] {
        assert_eq!(judged(&question, &yes), Ok(Accepted::Passes), "{yes}");
    }
    for no in [
        json!(false),
        json!("no"),
        json!("False"),
        json!("I don’t agree"),
        json!("I do not"),
    ] {
        assert_eq!(judged(&question, &no), Ok(Accepted::Refuses), "{no}");
    }
    for other in [
        json!("yes?"),
        json!("maybe"),
        json!(1),
        json!("1"),
        json!([true]),
        json!("yes no"),
        json!("yes and no"),
        json!("not yes"),
    ] {
        assert_eq!(
            judged(&question, &other),
            Err(vec!["response_type"]),
            "{other}"
        );
    }
    for (expect, yes, no) in [
        (Expect::Yes, Accepted::Passes, Accepted::Refuses),
        (Expect::No, Accepted::Refuses, Accepted::Passes),
        (Expect::Any, Accepted::Passes, Accepted::Passes),
    ] {
        let mut question = question.clone();
        question.expect = expect;
        assert_eq!(judged(&question, &json!(true)), Ok(yes));
        assert_eq!(judged(&question, &json!("no")), Ok(no));
    }
}

#[test]
fn ga_21_acknowledgments_are_explicit() {
    let question = CheckpointQuestion::acknowledgment("confirm", STATEMENT);
    for answer in [
        json!("understood"),
        json!("Understood."),
        json!("acknowledged"),
        json!("I understand"),
        json!("I acknowledge that this deletion is final"),
        json!("I acknowledge that this deletion cannot be undone."),
        json!("I hereby confirm"),
        json!("I have read and understood"),
        json!("Yes, understood"),
        json!("confirmed"),
        json!("agreed"),
        json!("We agree"),
        json!("ｕｎｄｅｒｓｔｏｏｄ"),
        json!("i understand   THIS deletion cannot be undone!"),
        json!(true),
    ] {
        assert_eq!(judged(&question, &answer), Ok(Accepted::Passes), "{answer}");
    }
    assert_eq!(judged(&question, &json!(false)), Ok(Accepted::Refuses));
    for answer in [
        json!("yes"),
        json!("ok"),
        json!("true"),
        json!("sure"),
        json!("whatever"),
        json!("understand"),
        json!("I do not understand"),
        json!("I don't agree"),
        json!("I dont agree"),
        json!("not acknowledged"),
        json!("understood? no"),
        json!("Understood?"),
        json!("understood: never"),
        json!("understood, nоt"),
        json!("understood, n\u{200b}ot"),
        json!("understood... NOT"),
        json!("cannot confirm"),
        json!("I cannot confirm"),
        json!("I can't confirm"),
        json!("I never agree"),
        json!("I understand nothing"),
        json!("I agree to disagree"),
        json!("I agree but only in part"),
        json!("I understand this deletion can be undone, not"),
        json!("misunderstood"),
        json!("is that understood"),
        json!("I acknowledge no such thing"),
        json!(1),
        json!(["understood"]),
        json!({"understood": true}),
    ] {
        assert_eq!(
            judged(&question, &answer),
            Err(vec!["response_type"]),
            "{answer}"
        );
    }
    let asked = CheckpointQuestion::acknowledgment("confirm", "Do you understand?");
    assert!(judged(&asked, &json!("Do you understand?")).is_err());
    assert!(judged(&asked, &json!("do you understand")).is_err());
    assert!(judged(&asked, &json!("understood")).is_ok());
}

#[test]
fn ga_21_choices() {
    let question = CheckpointQuestion::choice("role", "Which role?", vec!["Admin", "User", "user"]);
    for (answer, fits) in [
        (json!("Admin"), true),
        (json!(" admin "), true),
        (json!("User"), true),
        (json!("user"), true),
        (json!("USER"), false),
        (json!("Admin, User"), false),
        (json!("root"), false),
        (json!(0), false),
        (json!(["Admin"]), false),
    ] {
        assert_eq!(judged(&question, &answer).is_ok(), fits, "{answer}");
    }
    let failures = Rules::compile(&question)
        .unwrap()
        .judge(&json!("root"))
        .unwrap_err();
    assert_eq!(
        failures[0].message,
        "the answer must be one of `Admin`, `User`, `user`"
    );
    let mut other: CheckpointQuestion = serde_json::from_value(json!({
        "question_id": "role", "question": "Which?", "response_type": "choice", "options": ["a"],
    }))
    .unwrap();
    assert!(judged(&other, &json!("A")).is_ok());
    other.options.clear();
    assert_eq!(Rules::compile(&other).unwrap_err().pointer, "/options");
    other.options = vec!["a".to_owned(), "a".to_owned()];
    assert_eq!(Rules::compile(&other).unwrap_err().pointer, "/options/1");
}

#[test]
fn ga_21_numbers() {
    let mut question = CheckpointQuestion::number("count", "How many?");
    question.min = Some(-1.5);
    question.max = Some(10.0);
    for (answer, expected) in [
        (json!(10), None),
        (json!(-1.5), None),
        (json!("3.25"), None),
        (json!(" +7 "), None),
        (json!(10.01), Some("max")),
        (json!("-2"), Some("min")),
        (json!("NaN"), Some("response_type")),
        (json!("inf"), Some("response_type")),
        (json!("0x1"), Some("response_type")),
        (json!("1e2"), Some("response_type")),
        (json!("1e999"), Some("response_type")),
        (json!("9".repeat(400)), Some("response_type")),
        (json!("1."), Some("response_type")),
        (json!(".5"), Some("response_type")),
        (json!("--1"), Some("response_type")),
        (json!("١"), Some("response_type")),
        (json!("three"), Some("response_type")),
        (json!(true), Some("response_type")),
        (json!([3]), Some("response_type")),
    ] {
        assert_eq!(
            judged(&question, &answer).err(),
            expected.map(|rule| vec![rule]),
            "{answer}"
        );
    }
    question.min = Some(11.0);
    assert_eq!(Rules::compile(&question).unwrap_err().pointer, "/min");
    question.min = Some(f64::NAN);
    assert_eq!(Rules::compile(&question).unwrap_err().pointer, "/min");
}

#[test]
fn ga_21_json_follows_its_schema() {
    let schema = json!({
        "type": "object", "required": ["why"], "additionalProperties": false,
        "properties": {"why": {"type": "string", "pattern": "^(a+)+$"}, "n": {"maximum": 3}},
    });
    let question = CheckpointQuestion::json("plan", "What?", schema);
    assert!(judged(&question, &json!({"why": "aaa"})).is_ok());
    assert!(judged(&question, &json!("{\"why\": \"aaa\", \"n\": 2}")).is_ok());
    assert_eq!(
        judged(&question, &json!({"why": 1, "n": 4})),
        Err(vec!["schema", "schema"])
    );
    assert_eq!(
        judged(&question, &json!("not json")),
        Err(vec!["response_type"])
    );
    // Twice the same key, and a pattern that would take for ever where it goes back.
    assert!(judged(&question, &json!("{\"why\": \"a\", \"why\": \"b\"}")).is_err());
    assert_eq!(
        judged(&question, &json!({"why": "a".repeat(60_000) + "!"})),
        Err(vec!["schema"])
    );

    let secret = Rules::compile(&question)
        .unwrap()
        .judge(&json!({"why": 4711_4711}))
        .unwrap_err();
    assert!(
        !secret[0].message.contains("47114711"),
        "{}",
        secret[0].message
    );

    let many = CheckpointQuestion::json("all", "What?", json!({"items": {"type": "string"}}));
    let failures = Rules::compile(&many)
        .unwrap()
        .judge(&json!(vec![1; 1_000]))
        .unwrap_err();
    assert_eq!(failures.len(), 10);
    assert!(
        failures
            .iter()
            .all(|failure| failure.message.chars().count() <= 300)
    );

    let free: CheckpointQuestion = serde_json::from_value(
        json!({"question_id": "x", "question": "x", "response_type": "json"}),
    )
    .unwrap();
    assert!(judged(&free, &json!([1])).is_ok());
    assert!(judged(&free, &json!("[1]")).is_ok());
    assert_eq!(judged(&free, &json!("[1")), Err(vec!["response_type"]));
    let text = CheckpointQuestion::json("x", "x", json!({"type": "string"}));
    assert!(judged(&text, &json!("plain words")).is_ok());
}

#[test]
fn ga_21_schemas_that_cannot_be_used() {
    for schema in [
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"properties": {"a": {"$ref": "other.json#/x"}}}),
        json!({"type": "nothing"}),
        json!({"pattern": "("}),
        json!({"pattern": "(?=a)b"}),
        json!({"pattern": "(a{1000}){1000}"}),
        json!(7),
    ] {
        let Err(error) = Rules::compile(&CheckpointQuestion::json("x", "x", schema.clone())) else {
            panic!("{schema} can be used");
        };
        assert_eq!(error.pointer, "/schema", "{schema}");
    }
    let local = json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "integer"}}});
    let question = CheckpointQuestion::json("x", "x", local);
    assert!(judged(&question, &json!(1)).is_ok());
    assert!(judged(&question, &json!([])).is_err());
}

#[test]
fn ga_21_text_and_nothing() {
    let question = CheckpointQuestion::text("why", "Why?");
    assert!(judged(&question, &json!("because")).is_ok());
    for other in [json!(1), json!(true), json!({}), json!(["because"])] {
        assert_eq!(
            judged(&question, &other),
            Err(vec!["response_type"]),
            "{other}"
        );
    }
    for nothing in [
        json!(""),
        json!(" \n\t"),
        json!("\u{200b}\u{3000}\u{ad}"),
        json!("\u{2800}\u{3164}"),
        Value::Null,
    ] {
        assert_eq!(
            judged(&question, &nothing),
            Err(vec!["required"]),
            "{nothing}"
        );
        assert_eq!(
            judged(&question.clone().optional(), &nothing),
            Ok(Accepted::Passes)
        );
    }
}

#[test]
fn ga_22_all_failures_together_with_the_hint() {
    let question = CheckpointQuestion::text("justification", "Why?")
        .with_hint("Explain why")
        .with_validation(AnswerValidation {
            min_length: Some(20),
            must_contain: vec!["reason".to_owned()],
            must_not_contain: vec!["hack".to_owned(), "bypass".to_owned()],
            pattern: Some(r"^[A-Za-z].*\.$".to_owned()),
            ..AnswerValidation::default()
        });
    let rules = Rules::compile(&question).unwrap();
    let failures = rules.judge(&json!("1 hack bypass")).unwrap_err();
    let names: Vec<_> = failures.iter().map(|failure| failure.rule).collect();
    assert_eq!(
        names,
        [
            "min_length",
            "must_contain",
            "must_not_contain",
            "must_not_contain",
            "pattern"
        ]
    );
    for failure in &failures {
        assert_eq!(failure.hint.as_deref(), Some("Explain why"));
        assert_eq!(failure.question_id, "justification");
    }
    assert_eq!(
        rules.judge(&json!("The reason is a broken order.")),
        Ok(Accepted::Passes)
    );
    let failures = rules.judge(&json!(7)).unwrap_err();
    assert_eq!(failures[0].rule, "response_type");
    assert_eq!(failures.len(), 4);
}

#[test]
fn ga_22_lengths_are_of_characters() {
    let between = |min, max| AnswerValidation {
        min_length: Some(min),
        max_length: Some(max),
        ..AnswerValidation::default()
    };
    assert!(checked(between(4, 4), " cafe\u{301} ").is_empty());
    assert!(checked(between(4, 4), "日本語文").is_empty());
    assert_eq!(checked(between(5, 9), "café"), ["min_length"]);
    assert_eq!(
        checked(between(5, 90), "caf\u{200b}\u{200b}\u{200b}"),
        ["min_length"]
    );
    assert_eq!(checked(between(1, 3), "café"), ["max_length"]);
}

#[test]
fn ga_22_forbidden_words_in_disguise() {
    for answer in [
        "hack",
        "HACK it",
        "shacking",
        "hаck",
        "НАСК",
        "h\u{200b}ack",
        "h\u{ad}a\u{2060}ck",
        "ｈａｃｋ",
        "𝓱𝓪𝓬𝓴",
        "häck",
        "h̶a̶c̶k̶",
        "h-a-c-k",
        "h a c k",
        "to h.a.c.k it",
        "h\u{202e}ack",
        "ha\u{fe0f}ck",
    ] {
        assert_eq!(
            checked(forbidding(&["hack"]), answer),
            ["must_not_contain"],
            "{answer:?}"
        );
    }
    for answer in ["ha-ck", "h4ck", "hock", "a c k"] {
        assert!(
            checked(forbidding(&["hack"]), answer).is_empty(),
            "{answer:?}"
        );
    }
    assert_eq!(checked(forbidding(&["hаck"]), "hack"), ["must_not_contain"]);
    assert_eq!(
        checked(forbidding(&["ignore previous"]), "IGNORE \n previous"),
        ["must_not_contain"]
    );
    assert_eq!(
        checked(forbidding(&["admin"]), "АDМІN"),
        ["must_not_contain"]
    );
    assert_eq!(
        checked(forbidding(&["admin"]), "a-d-m-i-n"),
        ["must_not_contain"]
    );
    assert_eq!(checked(forbidding(&["kill"]), "kiII"), ["must_not_contain"]);
    assert_eq!(
        checked(forbidding(&["straße"]), "STRASSE"),
        ["must_not_contain"]
    );
}

#[test]
fn ga_22_wanted_words_are_really_there() {
    for answer in [
        "the reason",
        "REASON",
        "ｒｅａｓｏｎ",
        "rea\u{ad}son",
        "reasonable",
    ] {
        assert!(
            checked(wanting(&["reason"]), answer).is_empty(),
            "{answer:?}"
        );
    }
    for answer in ["rеason", "r-e-a-s-o-n", "réason", "reas0n"] {
        assert!(
            !checked(wanting(&["reason"]), answer).is_empty(),
            "{answer:?}"
        );
    }
    assert!(checked(wanting(&["credit card"]), "Credit\n card").is_empty());
}

#[test]
fn ga_22_patterns_stay_linear_and_small() {
    let pattern = |text: &str| AnswerValidation {
        pattern: Some(text.to_owned()),
        ..AnswerValidation::default()
    };
    assert_eq!(
        checked(pattern("^(a+)+$"), &("a".repeat(60_000) + "!")),
        ["pattern"]
    );
    assert!(checked(pattern("[0-9]"), "a1b").is_empty());
    assert_eq!(checked(pattern("^Hack$"), "hack"), ["pattern"]);
    for bad in ["(", "(?=a)", r"(\w{100}){100}", &"a".repeat(1_001)] {
        let question = CheckpointQuestion::text("x", "x").with_validation(pattern(bad));
        let error = Rules::compile(&question).unwrap_err();
        assert_eq!(error.pointer, "/validation/pattern");
        assert!(!error.message.contains('\n'), "{error}");
    }
}

#[test]
fn ga_22_rules_that_no_answer_fulfils() {
    for (validation, pointer) in [
        (
            AnswerValidation {
                min_length: Some(2),
                max_length: Some(1),
                ..AnswerValidation::default()
            },
            "/validation/min_length",
        ),
        (wanting(&["a", " "]), "/validation/must_contain/1"),
        (forbidding(&["\u{200b}"]), "/validation/must_not_contain/0"),
        (
            AnswerValidation {
                must_contain: vec!["hacking".to_owned()],
                ..forbidding(&["hack"])
            },
            "/validation/must_contain/0",
        ),
    ] {
        let question = CheckpointQuestion::text("x", "x").with_validation(validation);
        assert_eq!(Rules::compile(&question).unwrap_err().pointer, pointer);
    }
}

#[test]
fn ga_22_huge_answers() {
    let question = CheckpointQuestion::text("x", "x").with_validation(forbidding(&["hack"]));
    assert_eq!(
        judged(&question, &json!("a".repeat(1 << 20))),
        Err(vec!["max_size"])
    );
    assert_eq!(
        judged(&question, &json!(vec!["a"; 1 << 18])),
        Err(vec!["max_size"])
    );
    assert!(judged(&question, &json!("a".repeat(64 << 10))).is_ok());
    assert!(judged(&question, &json!("\u{301}".repeat(32 << 10))).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn ga_22_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_answer(&bytes);
    }

    #[test]
    fn ga_22_any_text_is_survived(text in "\\PC{1,20}\n\\PC{0,40}") {
        fuzz_answer(text.as_bytes());
    }

    #[test]
    fn ga_22_forbidden_is_found_wherever_it_stands(before in "\\PC{0,10}", after in "\\PC{0,10}") {
        let answer = format!("{before} hack {after}");
        prop_assert_eq!(checked(forbidding(&["hack"]), &answer), ["must_not_contain"]);
    }

    #[test]
    fn ga_21_a_negation_never_acknowledges(
        head in "(understood|i agree|i confirm|acknowledged)",
        between in "( [a-z]{1,6}){0,3}",
        negation in "(not|never|cannot|don't|refuse|nothing)",
        after in "( [a-z]{1,6}){0,3}",
    ) {
        let question = CheckpointQuestion::acknowledgment("x", STATEMENT);
        let answer = format!("{head}{between} {negation}{after}");
        prop_assert!(judged(&question, &json!(answer)).is_err(), "{}", answer);
    }
}

/// The first line is a rule, the rest an answer, for every kind of question.
fn fuzz_answer(bytes: &[u8]) {
    let all = String::from_utf8_lossy(bytes);
    let (rule, said) = all.split_once('\n').unwrap_or((&all, &all));
    let schema = serde_json::from_str(rule).unwrap_or_else(|_| json!({"pattern": rule}));
    let validation = AnswerValidation {
        must_not_contain: vec![rule.to_owned()],
        max_length: Some(rule.len()),
        pattern: Some(rule.to_owned()),
        ..AnswerValidation::default()
    };
    let answer = serde_json::from_str(said).unwrap_or_else(|_| json!(said));
    for question in [
        CheckpointQuestion::text("x", rule),
        CheckpointQuestion::boolean("x", rule),
        CheckpointQuestion::acknowledgment("x", rule),
        CheckpointQuestion::choice("x", "x", vec![rule]),
        CheckpointQuestion::number("x", rule),
        CheckpointQuestion::json("x", rule, schema),
    ] {
        for question in [
            question.clone(),
            question.with_validation(validation.clone()),
        ] {
            let Ok(rules) = Rules::compile(&question) else {
                continue;
            };
            for answer in [&answer, &json!(said)] {
                if let Err(failures) = rules.judge(answer) {
                    assert!(!failures.is_empty() && failures.len() <= 14);
                }
            }
        }
    }
}
