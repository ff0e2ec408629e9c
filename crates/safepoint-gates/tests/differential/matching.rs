//! Patterns, words, schemas and answers, in the plainest way that can be right.
//! Nothing of the crate is used but its data types.

use safepoint_gates::{CheckpointQuestion, CheckpointTrigger, Expect, MatchMode, ResponseType};
use serde_json::Value;

/// Whether the pattern stands for the action.
pub(crate) fn fits(pattern: &str, action: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    let action: Vec<&str> = action.split('.').collect();
    segments(&pattern, &action)
}

fn segments(pattern: &[&str], action: &[&str]) -> bool {
    match (pattern, action) {
        ([], []) => true,
        (["*", rest @ ..], [_, others @ ..]) => {
            // One segment, or this one and more.
            segments(rest, others) || segments(pattern, others)
        }
        ([first, rest @ ..], [name, others @ ..]) => {
            run(first.as_bytes(), name.as_bytes()) && segments(rest, others)
        }
        _ => false,
    }
}

/// Whether `*` in one segment or word can be filled so that both are equal.
fn run(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            run(rest, name) || matches!(name, [_, others @ ..] if run(pattern, others))
        }
        ([first, rest @ ..], [letter, others @ ..]) => first == letter && run(rest, others),
        _ => false,
    }
}

pub(crate) fn any_fits(patterns: &[String], action: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern, action))
}

/// The actions that a trigger names.
pub(crate) fn trigger_patterns(trigger: &CheckpointTrigger) -> &[String] {
    match trigger {
        CheckpointTrigger::ActionPre { patterns } | CheckpointTrigger::ActionPost { patterns } => {
            patterns
        }
        _ => &[],
    }
}

/// Whether the words of a keyword rule are in the text.
pub(crate) fn words_fit(
    patterns: &[String],
    mode: MatchMode,
    case_sensitive: bool,
    text: &str,
) -> bool {
    let form = |text: &str| {
        if case_sensitive {
            text.to_owned()
        } else {
            text.to_lowercase()
        }
    };
    if mode == MatchMode::Regex {
        let text = form(text);
        return patterns
            .iter()
            .any(|pattern| expression(pattern, &text, case_sensitive));
    }
    let text = split(&form(text));
    // Each pattern: its alternatives, each of them some words behind each other.
    let patterns: Vec<Vec<Vec<String>>> = patterns
        .iter()
        .map(|pattern| form(pattern).split('|').map(split_pattern).collect())
        .collect();
    let occurs = |pattern: &Vec<Vec<String>>| {
        (0..text.len()).any(|at| sequence(std::slice::from_ref(pattern), &text[at..]))
    };
    match mode {
        MatchMode::Any => patterns.iter().any(occurs),
        MatchMode::All => patterns.iter().all(occurs),
        _ => (0..text.len()).any(|at| sequence(&patterns, &text[at..])),
    }
}

/// Whether the text begins with one alternative of each pattern in turn.
fn sequence(patterns: &[Vec<Vec<String>>], text: &[String]) -> bool {
    let [first, rest @ ..] = patterns else {
        return true;
    };
    first.iter().any(|words| {
        words.len() <= text.len()
            && words
                .iter()
                .zip(text)
                .all(|(wanted, word)| run(wanted.as_bytes(), word.as_bytes()))
            && sequence(rest, &text[words.len()..])
    })
}

fn split(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn split_pattern(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The few regular expressions that are generated, by hand.
fn expression(pattern: &str, text: &str, case_sensitive: bool) -> bool {
    let letters: Vec<char> = text.chars().collect();
    match pattern {
        "refu.d" => letters
            .windows(6)
            .any(|window| window[..4] == ['r', 'e', 'f', 'u'] && window[5] == 'd'),
        "^Stop" => text.starts_with(if case_sensitive { "Stop" } else { "stop" }),
        "[0-9]{2}" => letters
            .windows(2)
            .any(|window| window.iter().all(char::is_ascii_digit)),
        other => panic!("no hand-written reading of `{other}`"),
    }
}

/// Whether parameters fit the one schema that is generated.
pub(crate) fn parameters_fit(schema: Option<&Value>, parameters: &Value) -> bool {
    schema.is_none() || parameters.get("n").is_some_and(Value::is_u64)
}

/// What is thought of one answer.
pub(crate) enum Thought {
    Passes,
    /// A proper answer, and a no.
    No,
    /// The rules that it does not fulfil.
    Bad(Vec<&'static str>),
}

pub(crate) fn think(question: &CheckpointQuestion, answer: &Value) -> Thought {
    let written = match answer {
        Value::String(said) => said.clone(),
        other => other.to_string(),
    };
    if written.trim().is_empty() {
        return if question.required {
            Thought::Bad(vec!["required"])
        } else {
            Thought::Passes
        };
    }
    let mut bad = Vec::new();
    let mut no = false;
    match &question.response_type {
        ResponseType::Text => {
            if !answer.is_string() {
                bad.push("response_type");
            }
        }
        ResponseType::Boolean => {
            let said = match answer {
                Value::Bool(said) => Some(*said),
                Value::String(said) if said == "yes" || said == "Yes." => Some(true),
                Value::String(said) if said == "no" => Some(false),
                _ => None,
            };
            match (said, question.expect) {
                (None, _) => bad.push("response_type"),
                (Some(true), Expect::No) | (Some(false), Expect::Yes) => no = true,
                _ => {}
            }
        }
        ResponseType::Acknowledgment => match answer {
            Value::Bool(said) => no = !said,
            Value::String(said) if ["understood", "I acknowledge it"].contains(&said.as_str()) => {}
            _ => bad.push("response_type"),
        },
        ResponseType::Choice(_) => {
            let chosen = question.choices().iter().any(|option| {
                answer
                    .as_str()
                    .is_some_and(|said| said.eq_ignore_ascii_case(option))
            });
            if !chosen {
                bad.push("response_type");
            }
        }
        ResponseType::Number(_) => {
            let number = match answer {
                Value::Number(number) => number.as_f64(),
                Value::String(said) if said.bytes().all(|byte| byte.is_ascii_digit()) => {
                    said.parse().ok()
                }
                _ => None,
            };
            let (min, max) = question.bounds();
            match number {
                None => bad.push("response_type"),
                Some(number) => {
                    if min.is_some_and(|min| number < min) {
                        bad.push("min");
                    }
                    if max.is_some_and(|max| number > max) {
                        bad.push("max");
                    }
                }
            }
        }
        ResponseType::Json(_) => panic!("no such question is generated"),
    }
    if let Some(rules) = &question.validation {
        if rules
            .min_length
            .is_some_and(|min| written.trim().len() < min)
        {
            bad.push("min_length");
        }
        let lower = written.to_lowercase();
        for word in &rules.must_contain {
            if !lower.contains(&word.to_lowercase()) {
                bad.push("must_contain");
            }
        }
    }
    if !bad.is_empty() {
        Thought::Bad(bad)
    } else if no {
        Thought::No
    } else {
        Thought::Passes
    }
}
