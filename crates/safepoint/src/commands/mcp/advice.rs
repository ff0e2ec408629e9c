//! What a model is told of something that was not done: why, and how to go on.

use safepoint_model::text;
use serde_json::Value;

/// How to go on, from what a command printed.
pub(super) fn of(document: &Value) -> String {
    let said = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    let mut told = String::new();
    let mut tell = |sentence: &str| {
        let sentence = text::line(sentence).text;
        if !told.is_empty() {
            told.push('\n');
        }
        told.push_str(sentence.trim_end_matches('.'));
        told.push('.');
    };
    if let Some(reason) = said("/denial/reason") {
        tell(&format!("Safepoint did not let this through: {reason}"));
    } else if let Some(message) = said("/error/message") {
        tell(&format!("It was not done: {message}"));
    } else if let Some(decision) = said("/resolution/decision").filter(|it| *it != "allow") {
        let reason = said("/resolution/reason").unwrap_or("a rule says so");
        tell(&format!("The decision is `{decision}`: {reason}"));
    }
    let failures = document.pointer("/validation/failures");
    for failure in failures.and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| failure.get(name).and_then(Value::as_str);
        let question = field("question_id").unwrap_or_default();
        let message = field("message").unwrap_or("it was not accepted");
        tell(&format!(
            "The answer to `{question}` was not accepted: {message}"
        ));
    }
    let questions = document.pointer("/resolution/questions");
    for question in questions.and_then(Value::as_array).into_iter().flatten() {
        let field = |name: &str| question.get(name).and_then(Value::as_str);
        tell(&format!(
            "Use the tool `answer` with `checkpoint_id` \"{}\" and answer `{}` ({}): {}",
            field("checkpoint_id").unwrap_or_default(),
            field("question_id").unwrap_or_default(),
            field("response_type").unwrap_or("text"),
            field("question").unwrap_or_default(),
        ));
    }
    let hold = said("/denial/hold_id").or_else(|| said("/resolution/hold_id"));
    if let Some(hold) = hold {
        tell(&format!("It waits as {hold}"));
    }
    if let Some(next) = said("/denial/next").filter(|next| !next.is_empty()) {
        tell(&format!("How to go on: {next}"));
    } else if let Some(suggestion) = said("/error/suggestion") {
        tell(&format!("How to go on: {suggestion}"));
    }
    match told.is_empty() {
        true => "It did not do what was asked; the document says more.".to_owned(),
        false => told,
    }
}
