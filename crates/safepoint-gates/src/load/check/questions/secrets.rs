//! Questions that ask for secrets: answers are recorded, so nobody should.

use crate::atlas::{CheckpointQuestion, ResponseType};
use crate::load::finding::Findings;

/// What is asked for, as words that stand beside each other.
const SECRETS: [&[&str]; 14] = [
    &["password"],
    &["passwords"],
    &["passwd"],
    &["passphrase"],
    &["token"],
    &["tokens"],
    &["secret"],
    &["secrets"],
    &["credential"],
    &["credentials"],
    &["apikey"],
    &["api", "key"],
    &["api", "keys"],
    &["private", "key"],
];

pub(super) fn warn(
    question: &CheckpointQuestion,
    pointer: &dyn Fn() -> String,
    findings: &mut Findings,
) {
    // A yes and an "understood" cannot hold a secret.
    if matches!(
        question.response_type,
        ResponseType::Boolean | ResponseType::Acknowledgment
    ) {
        return;
    }
    let texts = [
        (Some(question.question.as_str()), "question"),
        (question.hint.as_deref(), "hint"),
    ];
    for (text, field) in texts {
        if let Some(secret) = text.and_then(secret) {
            findings.warning(
                format!("{}/{field}", pointer()),
                format!("this asks for a secret (`{secret}`), and answers are recorded"),
                "ask for a reference to it instead, such as its name",
            );
            return;
        }
    }
}

/// The secret that `text` names, if any.
fn secret(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    SECRETS
        .iter()
        .find(|secret| words.windows(secret.len()).any(|window| window == **secret))
        .map(|secret| secret.join(" "))
}
