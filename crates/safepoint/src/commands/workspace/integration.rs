//! An integration as it is printed.

use safepoint_model::{ActionId, Exit, text};
use safepoint_progress::integrate::{Conflict, Integration, Outcome};
use safepoint_progress::record::shown_path;
use safepoint_state::tree::Change;
use schemars::JsonSchema;
use serde::Serialize;

use super::both;
use super::checkpoint::lines_of;
use super::sides::Sides;
use crate::commands::checkpoint::NoteDocument;
use crate::commands::restoring::{ChangeDocument, documents, line as change_line};
use crate::console::{BAD, FAINT, GOOD, HINT, STRONG, WARNING, count};
use crate::context::Context;
use crate::error::CliError;

/// So many files that were changed are listed for people.
const MOST_CHANGES: usize = 20;

/// What `workspace integrate` and `workspace resolve` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IntegrationReply {
    #[schemars(with = "IntegrationDocument")]
    integration: Integration,
    /// The action by which files were changed: `safepoint undo ACTION` takes it back.
    action_id: Option<String>,
    /// The files that were changed.
    changes: Vec<ChangeDocument>,
    /// Both sides of each conflict that is open.
    sides: Vec<Sides>,
    /// What was in the agent's directory and not in the checkpoint: it is not taken over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    not_covered: Vec<NoteDocument>,
    /// What could not be done as meant while files were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    warnings: Vec<String>,
}

/// How far an integration has come.
#[derive(Serialize, JsonSchema)]
pub(crate) struct IntegrationDocument {
    /// The workspace whose work is taken over.
    source: String,
    /// The one that takes it over: its parent, or the nearest above it that has not ended.
    target: String,
    /// The how manyeth integration of the parent this is.
    turn: i64,
    /// `normal` or `salvage`.
    mode: String,
    /// `direct`, `layered` or `evaluated`.
    strategy: String,
    /// The checkpoint that is taken over.
    checkpoint_ref: String,
    started: String,
    /// The actions by which files were changed, or were to be.
    actions: Vec<String>,
    /// What does not fit.
    conflicts: Vec<ConflictDocument>,
    /// `success`, `conflict_resolved` or `aborted`; null while it has not ended.
    result: Option<String>,
}

/// Something that does not fit.
#[derive(Serialize, JsonSchema)]
struct ConflictDocument {
    /// What `workspace resolve` takes.
    id: String,
    /// In what way it does not fit.
    #[serde(rename = "type")]
    kind: String,
    path: Option<String>,
    /// Whether both changes fit line by line all the same.
    mergeable: bool,
    description: String,
    /// What was decided; null while nothing was.
    resolution: Option<ResolutionDocument>,
}

/// What was decided about a conflict.
#[derive(Serialize, JsonSchema)]
struct ResolutionDocument {
    /// `coordinator_resolve`, `human_escalate`, `agent_rework` or `timeout`.
    strategy: String,
    /// `ours`, `theirs`, `merged` or `content`.
    choice: Option<String>,
}

impl IntegrationReply {
    pub(super) fn of(integration: Integration) -> Self {
        Self {
            integration,
            action_id: None,
            changes: Vec::new(),
            sides: Vec::new(),
            not_covered: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// With what the checkpoint does not hold.
    pub(super) fn without(self, not_covered: Vec<NoteDocument>) -> Self {
        Self {
            not_covered,
            ..self
        }
    }

    /// With what was changed, and by which action.
    pub(super) fn with_changes(
        self,
        action: ActionId,
        changes: &[Change],
        warnings: Vec<String>,
    ) -> Self {
        let notable = changes.iter().filter(|change| change.is_notable());
        let notable: Vec<Change> = notable.cloned().collect();
        Self {
            action_id: Some(action.to_string()),
            changes: documents(&notable),
            warnings,
            ..self
        }
    }

    /// With both sides of what is open.
    pub(super) fn with_sides(self, sides: Vec<Sides>) -> Self {
        Self { sides, ..self }
    }
}

/// Prints it. One that waits for decisions is a conflict.
pub(super) fn print(context: &mut Context, reply: &IntegrationReply) -> Result<Exit, CliError> {
    context.console.value(reply, show)?;
    Ok(match reply.integration.result {
        Some(Outcome::Success | Outcome::ConflictResolved) => Exit::Done,
        Some(Outcome::Aborted) => Exit::Failed,
        None => Exit::Conflict,
    })
}

fn show(reply: &IntegrationReply) -> String {
    let one = &reply.integration;
    let word = match one.result {
        Some(Outcome::Success | Outcome::ConflictResolved) => {
            format!("{GOOD}integrated{GOOD:#}")
        }
        Some(Outcome::Aborted) => format!("{BAD}given up{BAD:#}"),
        None => format!("{WARNING}conflicted{WARNING:#}"),
    };
    let mut shown = format!(
        "{word}  {STRONG}{}{STRONG:#}  {FAINT}{}, {}{FAINT:#}\n",
        one.source, one.mode, one.strategy
    );
    shown.push_str(&format!(
        "{FAINT}checkpoint{FAINT:#}  {}\n",
        one.checkpoint_ref
    ));
    if let Some(action) = &reply.action_id {
        shown.push_str(&format!(
            "{FAINT}action{FAINT:#}      {action}  {FAINT}(`safepoint undo {action}` takes it back){FAINT:#}\n"
        ));
    }
    for change in reply.changes.iter().take(MOST_CHANGES) {
        shown.push_str(&change_line(change));
    }
    if let Some(more) = reply.changes.len().checked_sub(MOST_CHANGES + 1) {
        shown.push_str(&format!("  {FAINT}… and {} more{FAINT:#}\n", more + 1));
    }
    shown.push_str(&lines_of(&reply.not_covered));
    for conflict in &one.conflicts {
        shown.push_str(&line(conflict));
        let sides = reply.sides.iter().find(|it| it.conflict == conflict.id);
        if let Some(sides) = sides {
            shown.push_str(&both::page(conflict, sides));
        }
    }
    let mut open = one.conflicts.iter().filter(|it| it.resolution.is_none());
    let first = open.next();
    if let (None, Some(first)) = (one.result, first) {
        let words: Vec<&str> = first.choices().iter().map(|it| it.as_str()).collect();
        let content = match first.takes_content() {
            true => ", or --content @FILE",
            false => "",
        };
        shown.push_str(&format!(
            "{HINT}next{HINT:#}  {} to decide: safepoint workspace resolve {} {} --use {}{content}\n",
            count(open.count() as u64 + 1, "conflict", "conflicts"),
            one.source,
            first.id,
            words.join("|")
        ));
    }
    shown
}

fn line(conflict: &Conflict) -> String {
    let decided = match &conflict.resolution {
        None => format!("{WARNING}open{WARNING:#}"),
        Some(resolved) => match resolved.choice {
            Some(choice) => format!("{GOOD}{choice}{GOOD:#}"),
            None => resolved.strategy.to_string(),
        },
    };
    let about = conflict.path.as_deref().unwrap_or("");
    format!(
        "  {STRONG}{}{STRONG:#}  {decided}  {}  {FAINT}{}: {}{FAINT:#}\n",
        conflict.id,
        shown_path(about),
        conflict.kind,
        text::line(&conflict.description).text
    )
}
