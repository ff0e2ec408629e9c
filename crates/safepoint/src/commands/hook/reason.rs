//! What the model is told: why something was denied and how to go on, and what stewards
//! want it to know.

use safepoint_authority::DenialCode;
use safepoint_control::pass::{Denied, StrayWrite};
use safepoint_gates::{QuestionNote, Resolution};
use safepoint_model::{HoldId, text};
use safepoint_state::Note;
use serde_json::Value;

use crate::error::{CliError, with_causes};

/// A denial, in sentences that a model can act on.
pub(crate) fn of_denial(denied: &Denied) -> String {
    let denial = &denied.denial;
    let mut told = format!(
        "Safepoint did not let this through ({}): {}.",
        denial.code.name(),
        sentence(&denial.reason)
    );
    if let Some(resolution) = &denied.resolution {
        told.push_str(&questions(resolution, denied.session_id.as_str()));
    }
    let waits = matches!(
        denial.code,
        DenialCode::ApprovalRequired | DenialCode::QuestionsPending
    );
    if let Some(hold) = denial.hold_id.as_ref().filter(|_| waits) {
        told.push_str(&format!("\nIt waits as {hold}."));
    }
    // Where there are questions, answering them is the way.
    let asks = denied.resolution.as_ref();
    let asks = asks.is_some_and(|resolution| !resolution.questions.is_empty());
    if !denial.next.is_empty() && !asks {
        told.push_str(&format!("\nHow to go on: {}", sentence(&denial.next)));
    }
    told
}

/// The questions that wait, and the exact command that answers each gate.
pub(super) fn questions(resolution: &Resolution, session: &str) -> String {
    let mut told = String::new();
    let mut gates: Vec<(&str, Option<&HoldId>)> = Vec::new();
    for question in &resolution.questions {
        let known = |(gate, _): &(&str, _)| *gate == question.checkpoint_id;
        if !gates.iter().any(known) {
            gates.push((&question.checkpoint_id, question.hold_id.as_ref()));
        }
    }
    for (gate, hold) in gates {
        let hold = hold.map_or_else(String::new, |hold| format!(" --hold {hold}"));
        told.push_str("\nAnswer these questions first:");
        let mut answers = serde_json::Map::new();
        let mine = resolution.questions.iter();
        for question in mine.filter(|it| it.checkpoint_id == gate) {
            told.push_str(&format!(
                "\n- {} ({}, {})",
                sentence(&question.question),
                question.question_id,
                question.response_type
            ));
            if !question.options.is_empty() {
                told.push_str(&format!(": one of {}", question.options.join(", ")));
            }
            if let Some(hint) = &question.hint {
                told.push_str(&format!(" [{}]", sentence(hint)));
            }
            answers.insert(question.question_id.clone(), sample(question));
        }
        told.push_str(&format!(
            "\nwith this command: {} session answer {session} {gate}{hold} --answers '{}'",
            program(),
            Value::Object(answers).to_string().replace('\'', r"'\''")
        ));
    }
    told
}

/// What an answer to a question looks like.
fn sample(question: &QuestionNote) -> Value {
    match (question.response_type.as_ref(), question.options.first()) {
        ("boolean" | "acknowledgment", _) => true.into(),
        ("number", _) => question.min.unwrap_or(0.0).into(),
        ("choice", Some(option)) => option.as_str().into(),
        _ => "…".into(),
    }
}

/// This program, by its path: a client's shell may search elsewhere.
fn program() -> String {
    let program = crate::world::this_program();
    program.map_or_else(
        |_| "safepoint".to_owned(),
        |path| super::quoted(&path.to_string_lossy()),
    )
}

/// What is said of writes that went astray.
pub(super) fn stray_writes(stray: &[StrayWrite]) -> Option<String> {
    let lines = stray.iter().map(|it| {
        format!(
            "\n- {}: {} (it leads to {})",
            text::line(&it.path).text,
            it.why,
            text::line(&it.leads_to).text
        )
    });
    let lines: String = lines.collect();
    (!lines.is_empty()).then(|| {
        format!("Safepoint does not find what this call wrote, and a person has to look before the next one:{lines}")
    })
}

/// One after the other.
pub(super) fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (first, second) => first.or(second),
    }
}

/// So many losses are named.
const MOST_LOSSES: usize = 10;

/// What a call did that no checkpoint holds.
pub(super) fn losses(lost: &[Note]) -> Option<String> {
    let mut named: Vec<String> = lost
        .iter()
        .take(MOST_LOSSES)
        .map(|note| {
            format!(
                "`{}` ({})",
                text::line(&safepoint_state::path::shorten(&note.path)).text,
                text::line(&note.why).text
            )
        })
        .collect();
    if let more @ 1.. = lost.len().saturating_sub(MOST_LOSSES) {
        named.push(format!("{more} more"));
    }
    (!named.is_empty()).then(|| {
        format!(
            "Safepoint cannot take all of this back: {}.",
            named.join(", ")
        )
    })
}

/// What stewards gave at once, without the guidance that is in force.
pub(super) fn new_contexts(resolution: &Resolution) -> Option<String> {
    told(resolution, |_| false)
}

/// What stewards want the model to know now, and all guidance that is in force.
pub(super) fn context(resolution: &Resolution) -> Option<String> {
    told(resolution, |_| true)
}

/// The same about one call: guidance of the gates that have to do with it, and no other.
pub(super) fn context_of_call(resolution: &Resolution) -> Option<String> {
    told(resolution, |gate| {
        let mut gates = resolution.checkpoints.iter();
        gates.any(|note| note.checkpoint_id == gate)
    })
}

fn told(resolution: &Resolution, counts: impl Fn(&str) -> bool) -> Option<String> {
    let contexts = resolution.contexts.iter().map(|it| it.content.as_str());
    let guidance = resolution.guidance.iter();
    let guidance = guidance.filter(|it| counts(&it.checkpoint_id));
    let told: Vec<&str> = contexts
        .chain(guidance.map(|it| it.content.as_str()))
        .collect();
    match told.is_empty() {
        true => None,
        false => Some(told.join("\n\n")),
    }
}

/// An error, for whoever is refused because of it.
pub(crate) fn of_error(error: &CliError) -> String {
    format!(
        "Safepoint could not judge this, so it is denied: {}",
        with_causes(error)
    )
}

fn sentence(words: &str) -> String {
    text::line(words).text.trim_end_matches('.').to_owned()
}
