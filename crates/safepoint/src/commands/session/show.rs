//! A resolution for people.

use safepoint_authority::{Denial, DenialCode};
use safepoint_gates::{ActionNote, Decision, GateStatus, QuestionNote, Resolution, Validation};
use safepoint_model::{HoldId, text};

use crate::console::{BAD, FAINT, GOOD, HINT, STRONG};

/// How many actions are named before they are only counted.
const MOST_NAMES: usize = 12;

pub(super) fn started(session: &str, resolution: &Resolution) -> String {
    format!(
        "{FAINT}session{FAINT:#}  {STRONG}{session}{STRONG:#}\n{}",
        step(session, None, None, resolution)
    )
}

pub(super) fn step(
    session: &str,
    request: Option<&str>,
    validation: Option<&Validation>,
    resolution: &Resolution,
) -> String {
    let mut shown = String::new();
    for failure in validation.iter().flat_map(|it| &it.failures) {
        shown.push_str(&format!(
            "{BAD}invalid{BAD:#}  {}: {}\n",
            line(&failure.question_id),
            line(&failure.message)
        ));
        if let Some(hint) = &failure.hint {
            shown.push_str(&format!("{HINT}hint:{HINT:#} {}\n", line(hint)));
        }
    }
    let style = match resolution.decision {
        Decision::Allow => GOOD,
        Decision::Hold | Decision::RequiresApproval => HINT,
        Decision::Deny => BAD,
    };
    let decision = resolution.decision.as_str();
    shown.push_str(&format!(
        "{style}{decision}{style:#}  {}\n",
        line(&resolution.reason)
    ));
    if let Some(request) = request {
        shown.push_str(&format!("{FAINT}request{FAINT:#}  {request}\n"));
    }
    for warning in &resolution.warnings {
        shown.push_str(&format!("{HINT}warning:{HINT:#} {}\n", line(warning)));
    }
    for gate in &resolution.checkpoints {
        let status = match gate.status {
            GateStatus::Passed => "passed",
            GateStatus::Pending => "pending",
            GateStatus::Blocked => "blocked",
            GateStatus::Recorded => "recorded",
        };
        shown.push_str(&format!(
            "{FAINT}checkpoint{FAINT:#}  {STRONG}{}{STRONG:#}  {}  {status}\n",
            line(&gate.checkpoint_id),
            gate.gate_type
        ));
    }
    questions(&mut shown, session, resolution);
    for context in &resolution.contexts {
        shown.push_str(&format!(
            "{FAINT}context{FAINT:#}  {STRONG}{}{STRONG:#}\n{}\n",
            line(&context.context_id),
            indented(&context.content)
        ));
    }
    // What was said before is still in force, but not news.
    let news = |id: &String| {
        let gates = resolution.checkpoints.iter();
        gates.map(|gate| &gate.checkpoint_id).any(|gate| gate == id)
    };
    for guidance in resolution
        .guidance
        .iter()
        .filter(|it| news(&it.checkpoint_id))
    {
        shown.push_str(&format!(
            "{FAINT}guidance{FAINT:#}  {STRONG}{}{STRONG:#}\n{}\n",
            line(&guidance.checkpoint_id),
            indented(&guidance.content)
        ));
    }
    for dropped in &resolution.dropped {
        let what = dropped
            .context_id
            .as_ref()
            .unwrap_or(&dropped.checkpoint_id);
        shown.push_str(&format!(
            "{FAINT}left out{FAINT:#}  {} ({})\n",
            line(what),
            dropped.reason
        ));
    }
    names(&mut shown, "may", &resolution.allowed_actions);
    names(&mut shown, "may not", &resolution.denied_actions);
    shown
}

/// What waits for a person, and how to go on.
pub(super) fn hold(denial: Option<&Denial>) -> String {
    let waits = |denial: &&Denial| denial.code != DenialCode::QuestionsPending;
    let Some((denial, hold)) = denial
        .filter(waits)
        .and_then(|denial| Some((denial, denial.hold_id.as_ref()?)))
    else {
        return String::new();
    };
    format!(
        "{STRONG}hold{STRONG:#}  {hold}  {FAINT}{}{FAINT:#}\n{HINT}next{HINT:#}  {}\n",
        denial.code.name(),
        line(&denial.next)
    )
}

fn questions(shown: &mut String, session: &str, resolution: &Resolution) {
    let mut gates: Vec<(&str, Option<&HoldId>)> = Vec::new();
    for question in &resolution.questions {
        shown.push_str(&ask(question));
        let known = |(gate, _): &(&str, _)| *gate == question.checkpoint_id;
        if !gates.iter().any(known) {
            gates.push((&question.checkpoint_id, question.hold_id.as_ref()));
        }
    }
    for (gate, hold) in gates {
        let hold = hold.map_or_else(String::new, |hold| format!(" --hold {hold}"));
        let answers: Vec<String> = resolution
            .questions
            .iter()
            .filter(|question| question.checkpoint_id == gate && question.required)
            .map(|question| format!("\"{}\": …", line(&question.question_id)))
            .collect();
        shown.push_str(&format!(
            "{HINT}answer{HINT:#}  safepoint session answer {session} {}{hold} --answers '{{{}}}'\n",
            line(gate),
            answers.join(", ")
        ));
    }
}

fn ask(question: &QuestionNote) -> String {
    let optional = if question.required { "" } else { ", optional" };
    let mut shown = format!(
        "{FAINT}question{FAINT:#}  {STRONG}{}{STRONG:#}  {} {FAINT}({}{optional}){FAINT:#}\n",
        line(&question.question_id),
        line(&question.question),
        question.response_type
    );
    if !question.options.is_empty() {
        shown.push_str(&format!("  {}\n", line(&question.options.join(" | "))));
    }
    if let Some(hint) = &question.hint {
        shown.push_str(&format!("  {FAINT}{}{FAINT:#}\n", line(hint)));
    }
    shown
}

fn names(shown: &mut String, word: &str, notes: &[ActionNote]) {
    if notes.is_empty() {
        return;
    }
    let names: Vec<String> = notes
        .iter()
        .take(MOST_NAMES)
        .map(|note| line(&note.action_id))
        .collect();
    let more = match notes.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    shown.push_str(&format!(
        "{FAINT}{word}{FAINT:#}  {}{more}\n",
        names.join(", ")
    ));
}

fn indented(content: &str) -> String {
    let block = text::block(content).text;
    let lines: Vec<String> = block.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn line(text: &str) -> String {
    text::line(text).text
}
