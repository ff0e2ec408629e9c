//! What `mutate` answers, whether the change was made or not.

use safepoint_model::{Timestamp, text};
use safepoint_state::mutate::{Aftermath, Failed, Mutated, Outcome, Seen};
use safepoint_state::{Note, State, Workspace, path};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::difference::{self, DiffFields};
use super::{Told, way_back};
use crate::commands::checkpoint::NoteDocument;
use crate::commands::restoring::{ChangeDocument, documents};
use crate::commands::verdict::VerdictDocument;
use crate::console::{BAD, FAINT, GOOD, STRONG, WARNING, count};
use crate::context::Context;
use crate::error::CliError;

/// What `mutate` prints. A failure prints the same fields with `success` false and an `error`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MutateReply {
    /// Whether it was made, and holds.
    success: bool,
    /// Whether it was kept: also, with `--keep-failed`, one that does not hold.
    kept: bool,
    /// What was changed.
    target: String,
    /// What was done, in a sentence.
    operation: String,
    previous_state: PreviousState,
    new_state: NewState,
    diff: DiffFields,
    /// The checkpoint that allowed it, and is used up now.
    checkpoint_id: String,
    /// The command that brings back what was there before.
    rollback_command: String,
    /// Where to see that it is so.
    evidence_anchors: Vec<String>,
    /// This change, as an action in the log.
    action_id: Option<String>,
    /// The state just before: the checkpoint, or one made by itself when something had happened since.
    before_checkpoint_id: Option<String>,
    /// Every path, database and state that it changed; of a failure, what of that is still there.
    changes: Vec<ChangeDocument>,
    /// What changed besides the target; of a failure, what is not as it was before it and was left
    /// alone. While a check runs this may be the work of others, which is no part of the change.
    side_effects: Vec<String>,
    /// What was taken back with a command that failed, besides its target, whoever wrote it.
    taken_back: Vec<ChangeDocument>,
    /// The checkpoint that has what was there before that was taken back.
    safety_checkpoint_id: Option<String>,
    /// What nothing covers of what it does: no roll back brings it back.
    not_covered: Vec<String>,
    /// What was changed or is gone that no checkpoint brings back, and why.
    not_restored: Vec<NoteDocument>,
    verification: Option<VerdictDocument>,
    /// The share of what could be checked that was, and held.
    confidence: f64,
    /// What a command printed.
    output: Option<String>,
    warnings: Vec<String>,
}

/// The target before.
#[derive(Serialize, JsonSchema)]
struct PreviousState {
    /// The text of a file, the tables of a database, the value of a state; null for nothing.
    snapshot: Value,
    captured_at: Option<String>,
}

/// The target after, read back.
#[derive(Serialize, JsonSchema)]
struct NewState {
    snapshot: Value,
    verified_at: Option<String>,
}

pub(super) fn of_failure(
    context: &Context,
    told: &Told,
    error: &CliError,
    failed: Option<&Failed>,
) -> Result<Map<String, Value>, CliError> {
    let previous = failed.map_or(&[][..], |failed| &failed.previous);
    let action = failed.and_then(|failed| failed.action.as_ref());
    let before = failed.and_then(|failed| failed.before.as_ref());
    let aftermath = failed.map(|failed| &failed.aftermath);
    let standing = aftermath.map_or(&[][..], |it| &it.standing);
    let reply = MutateReply {
        success: false,
        kept: false,
        target: told.target.clone(),
        operation: format!("{} (FAILED)", told.operation)
            .trim_start()
            .to_owned(),
        previous_state: PreviousState {
            snapshot: states(previous),
            captured_at: time(failed.and_then(|failed| failed.captured)),
        },
        new_state: NewState {
            snapshot: Value::Null,
            verified_at: None,
        },
        diff: DiffFields {
            kind: "none",
            content: format!("Mutation failed: {error}"),
        },
        checkpoint_id: told.checkpoint.clone(),
        rollback_command: match (standing, before) {
            ([_, ..], Some(before)) => way_back::of_standing(context, before, standing),
            _ => "N/A - mutation did not complete".to_owned(),
        },
        evidence_anchors: [error_anchor(error)]
            .into_iter()
            .chain(action.map(|action| format!("tool:bash:safepoint trail list --action {action}")))
            .collect(),
        action_id: action.map(ToString::to_string),
        before_checkpoint_id: before.map(|before| before.id.to_string()),
        changes: documents(standing),
        side_effects: aftermath.map_or_else(Vec::new, |it| it.beside.clone()),
        taken_back: aftermath.map_or_else(Vec::new, taken_back),
        safety_checkpoint_id: aftermath.and_then(|it| Some(it.safety.as_ref()?.to_string())),
        not_covered: told.not_covered.clone(),
        not_restored: notes(aftermath.map_or(&[][..], |it| &it.not_restored)),
        verification: failed.and_then(|it| it.verdict.as_ref()).map(Into::into),
        confidence: 0.0,
        output: None,
        warnings: failed.map_or_else(Vec::new, |failed| warnings(context, told, failed)),
    };
    match serde_json::to_value(reply)? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

/// What went back with the change although nobody can tell that it was the change's.
fn taken_back(aftermath: &Aftermath) -> Vec<ChangeDocument> {
    let parts = aftermath.parts_taken_back.iter();
    let parts = parts.map(|name| ChangeDocument {
        path: name.clone(),
        change: "modified",
    });
    documents(&aftermath.taken_back)
        .into_iter()
        .chain(parts)
        .collect()
}

/// What people must know of how a failure left things.
pub(super) fn warnings(context: &Context, told: &Told, failed: &Failed) -> Vec<String> {
    let mut warnings = failed.aftermath.warnings.clone();
    warnings.extend(told.beyond());
    if let (standing @ [_, ..], Some(before)) = (&*failed.aftermath.standing, &failed.before) {
        let command = way_back::of_standing(context, before, standing);
        warnings.push(format!("`{command}` brings back what was there before"));
    }
    warnings
}

fn notes(notes: &[Note]) -> Vec<NoteDocument> {
    notes.iter().map(NoteDocument::from).collect()
}

/// What went wrong, as evidence.
fn error_anchor(error: &CliError) -> String {
    match error.problem().name {
        "TARGET_LOCKED" => "error:file_locked".to_owned(),
        name => format!("error:{}", name.to_ascii_lowercase()),
    }
}

pub(super) fn of_change(
    context: &Context,
    state: &State,
    workspace: &Workspace,
    told: &Told,
    mutated: &Mutated,
) -> Result<MutateReply, CliError> {
    let verification = VerdictDocument::from(&mutated.verdict);
    let mut changes = documents(&mutated.changes);
    changes.extend(mutated.parts.iter().map(|part| ChangeDocument {
        path: part.to.subject.name(),
        change: "modified",
    }));
    changes.extend(mutated.secrets.iter().map(|secret| ChangeDocument {
        path: path::display(&secret.path),
        change: secret.kind.as_str(),
    }));
    let mut anchors = mutated.lines.clone();
    anchors.extend(told.anchors.iter().cloned());
    anchors.extend([
        format!("tool:bash:safepoint trail list --action {}", mutated.action),
        format!("tool:bash:safepoint verify {}", mutated.action),
        format!("checkpoint:{}", mutated.checkpoint),
    ]);
    Ok(MutateReply {
        success: mutated.verdict.outcome() == Outcome::Pass,
        kept: true,
        target: told.target.clone(),
        operation: told.operation.clone(),
        previous_state: PreviousState {
            snapshot: states(&mutated.previous),
            captured_at: time(Some(mutated.captured)),
        },
        new_state: NewState {
            snapshot: states(&mutated.new),
            verified_at: time(Some(mutated.verified)),
        },
        // It is done: what cannot be shown is no reason to answer otherwise.
        diff: difference::between(state, workspace, mutated).unwrap_or_else(|error| DiffFields {
            kind: "summary",
            content: format!("the difference cannot be shown: {error}"),
        }),
        checkpoint_id: mutated.checkpoint.to_string(),
        rollback_command: way_back::command(context, workspace, mutated),
        evidence_anchors: anchors,
        action_id: Some(mutated.action.to_string()),
        before_checkpoint_id: Some(mutated.before.id.to_string()),
        changes,
        side_effects: mutated
            .beside
            .iter()
            .map(|path| path::display(path))
            .collect(),
        taken_back: Vec::new(),
        safety_checkpoint_id: None,
        not_covered: told.not_covered.clone(),
        not_restored: notes(&mutated.not_restorable),
        confidence: verification.confidence(),
        verification: Some(verification),
        output: mutated.output.clone(),
        warnings: warnings_of_change(told, mutated),
    })
}

/// What people must know of a change that was made.
pub(super) fn warnings_of_change(told: &Told, mutated: &Mutated) -> Vec<String> {
    let mut warnings = mutated.warnings.clone();
    warnings.extend(told.beyond());
    if mutated.verdict.outcome() != Outcome::Pass {
        warnings.push(KEPT_THOUGH.to_owned());
    }
    warnings
}

/// What is said of a change that does not hold.
const KEPT_THOUGH: &str = "it was kept, as `--keep-failed` asks, although its checks do not hold";

fn time(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

/// One target as it is, several by their names.
fn states(seen: &[Seen]) -> Value {
    match seen {
        [] => Value::Null,
        [one] => one.state.clone(),
        several => {
            let pairs = several
                .iter()
                .map(|one| (one.target.clone(), one.state.clone()));
            Value::Object(pairs.collect())
        }
    }
}

/// How many lines of a diff people see.
const LINES_SHOWN: usize = 60;

pub(super) fn show(reply: &MutateReply) -> String {
    let safe = |text: &str| text::line(text).text;
    let operation = safe(&reply.operation);
    let mut shown = match reply.success {
        true => format!("{GOOD}done{GOOD:#}  {STRONG}{operation}{STRONG:#}\n"),
        false => {
            format!("{BAD}kept, and does not hold{BAD:#}  {STRONG}{operation}{STRONG:#}\n")
        }
    };
    if let Some(action) = &reply.action_id {
        let changes = count(reply.changes.len() as u64, "change", "changes");
        shown.push_str(&format!("  {FAINT}{action}, {changes}{FAINT:#}\n"));
    }
    for line in reply.output.iter().flat_map(|output| output.lines()) {
        shown.push_str(&format!("  {FAINT}│{FAINT:#} {}\n", safe(line)));
    }
    let lines: Vec<&str> = reply.diff.content.lines().collect();
    for line in lines.iter().take(LINES_SHOWN) {
        shown.push_str(&format!("{}\n", safe(line)));
    }
    if lines.len() > LINES_SHOWN {
        let more = count((lines.len() - LINES_SHOWN) as u64, "line", "lines");
        shown.push_str(&format!("  {FAINT}… and {more} more{FAINT:#}\n"));
    }
    if let Some(verification) = &reply.verification {
        shown.push_str(&verification.lines());
    }
    for path in &reply.side_effects {
        shown.push_str(&format!(
            "  {WARNING}also changed{WARNING:#} {}\n",
            crate::console::name(path)
        ));
    }
    // It is safe as it is, and must be exact.
    shown.push_str(&format!("  undo with  {}\n", reply.rollback_command));
    shown
}
