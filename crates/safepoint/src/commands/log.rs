//! `safepoint log`: what happened, the newest first, with what each action changed.

use safepoint_control::pass::{ReachedTargets, RefusedTarget};
use safepoint_control::{Control, ControlError};
use safepoint_model::{Exit, text};
use safepoint_state::{Action, State, StateError};
use schemars::JsonSchema;
use serde::Serialize;

use super::checkpoint::NoteDocument;
use super::list::refuse_missing;
use super::restoring::{ChangeDocument, documents, line};
use crate::console::{BAD, FAINT, Mode, STRONG, WARNING, name};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `log`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Draw which action took back which
    #[arg(long)]
    graph: bool,
    /// At most so many
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Of every workspace, not only of this one
    #[arg(long)]
    all_workspaces: bool,
}

/// What `log` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ActionLog {
    actions: Vec<ActionDocument>,
}

/// One action.
#[derive(Serialize, JsonSchema)]
struct ActionDocument {
    action_id: String,
    /// In which session, if in one.
    session_id: Option<String>,
    /// The directory in which it happened.
    workspace: String,
    /// The workspace of an agent whose directory this is.
    workspace_id: Option<String>,
    time: String,
    /// What it was, in the words of policies.
    action: String,
    /// What it was, in a sentence.
    summary: String,
    /// What was decided about it.
    decision: Option<String>,
    /// How it ended.
    outcome: String,
    /// The state before it.
    checkpoint_id: String,
    /// The state after it.
    after_checkpoint_id: String,
    /// The action that it took back.
    undoes: Option<String>,
    /// What it changed. Null when the states before and after are no longer kept, or when what is
    /// kept was tampered with.
    changes: Option<Vec<ChangeDocument>>,
    /// Whether it can be taken back, as it turned out: `reversible`, `partly`, `irreversible` or
    /// `unknown`. Null for what did not pass.
    reversibility: Option<&'static str>,
    /// What of it cannot.
    remainder: Vec<String>,
    /// What it reached outside the fence.
    reached: ReachedTargets,
    /// What the fence refused it.
    refused: Vec<RefusedTarget>,
    /// What it did that no checkpoint holds: no undo brings it back.
    not_held: Vec<NoteDocument>,
    /// Whether what the store keeps of it is not what the trail tells.
    tampered: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (place, found, state) = match context.looks_everywhere(arguments.all_workspaces)? {
        true => {
            let state = context.state()?;
            (None, state.all_actions(arguments.limit)?, state)
        }
        false => {
            let root = context.workspace()?.root;
            let state = context.state()?;
            refuse_missing(&state, &root)?;
            let place = context.place_of(&root, state.trail())?;
            (place, state.actions(&root, arguments.limit)?, state)
        }
    };
    let control = context.control()?;
    let place = place.map(|id| id.to_string());
    let actions = found
        .iter()
        .map(|action| document(&state, &control, action, place.as_deref()))
        .collect::<Result<Vec<_>, _>>()?;
    if context.console.mode == Mode::Ndjson {
        for one in &actions {
            context.console.json(one)?;
        }
        return Ok(Exit::Done);
    }
    let log = ActionLog { actions };
    let (graph, all) = (arguments.graph, arguments.all_workspaces);
    context.console.value(&log, |log| show(log, graph, all))?;
    if log.actions.is_empty() && context.console.mode == Mode::Text {
        let place = match (context.names_directory(), context.workspace()) {
            // A directory that is named is a workspace of its own, whatever is around it.
            (true, Ok(workspace)) => format!(" in `{}`", workspace.root.display()),
            _ => String::new(),
        };
        context.console.say(&format!(
            "nothing has happened yet{place} that a checkpoint would have seen"
        ));
    }
    Ok(Exit::Done)
}

fn document(
    state: &State,
    control: &Control,
    action: &Action,
    place: Option<&str>,
) -> Result<ActionDocument, CliError> {
    let sides = state.find_action(action.id.as_str()).and_then(|_| {
        let before = state.find(action.before.as_str())?;
        Ok((before, state.find(action.after.as_str())?))
    });
    let effect = control.effect_of(&action.id);
    let is_forged = matches!(effect, Err(ControlError::Tampered { .. }));
    let effect = match effect {
        Err(ControlError::Tampered { .. }) => None,
        effect => effect?,
    };
    let measured = effect.as_ref().and_then(|it| it.measured.clone());
    let record = effect.map(|it| it.record).unwrap_or_default();
    let tampered = is_forged || matches!(sides, Err(StateError::Tampered { .. }));
    let changes = match sides {
        Ok((before, after)) => {
            let mut changes = documents(&state.changes_of(action, &before, &after)?);
            let parts = state.changed_parts(&before, &after);
            changes.extend(parts.into_iter().map(|path| ChangeDocument {
                path,
                change: "modified",
            }));
            Some(changes)
        }
        // Collected, or changed behind our back: one of them must not hide the others.
        Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(ActionDocument {
        action_id: action.id.to_string(),
        session_id: action.session.clone(),
        workspace: action.workspace.display().to_string(),
        workspace_id: place.map(str::to_owned),
        time: action.time.to_string(),
        action: action.action.clone(),
        summary: action.summary.clone(),
        decision: action.decision.clone(),
        outcome: action.outcome.clone(),
        checkpoint_id: action.before.to_string(),
        after_checkpoint_id: action.after.to_string(),
        undoes: action.undoes.as_ref().map(ToString::to_string),
        changes,
        reversibility: measured.as_ref().map(|it| it.reversibility.as_str()),
        remainder: measured.map_or_else(Vec::new, |it| it.remainder.into_iter().collect()),
        reached: record.reached,
        refused: record.refused,
        not_held: state.lost_by(&action.id)?.iter().map(Into::into).collect(),
        tampered,
    })
}

fn show(log: &ActionLog, graph: bool, all: bool) -> String {
    const SHOWN: usize = 8;
    let mut shown = String::new();
    for (place, action) in log.actions.iter().enumerate() {
        let (node, rail) = match graph {
            true => (
                "● ",
                if place + 1 < log.actions.len() {
                    "│ "
                } else {
                    "  "
                },
            ),
            false => ("", ""),
        };
        shown.push_str(&format!(
            "{node}{STRONG}{}{STRONG:#}  {}  {}  {FAINT}{}{FAINT:#}\n",
            action.action_id,
            action
                .time
                .replace('T', " ")
                .get(..19)
                .unwrap_or(&action.time),
            action.action,
            text::line(&action.outcome).text,
        ));
        shown.push_str(&format!("{rail}  {}\n", text::line(&action.summary).text));
        if all {
            shown.push_str(&format!("{rail}  in {}\n", name(&action.workspace)));
        }
        if let (true, Some(undoes)) = (graph, &action.undoes) {
            shown.push_str(&format!("{rail}  {FAINT}takes back {undoes}{FAINT:#}\n"));
        }
        match &action.changes {
            None if action.tampered => shown.push_str(&format!(
                "{rail}  {BAD}(this is not what the trail tells: somebody has changed the store){BAD:#}\n"
            )),
            None => shown.push_str(&format!(
                "{rail}  {FAINT}(its checkpoints have been collected){FAINT:#}\n"
            )),
            Some(changes) => {
                for change in changes.iter().take(SHOWN) {
                    shown.push_str(&format!("{rail}{}", line(change)));
                }
                if changes.len() > SHOWN {
                    shown.push_str(&format!(
                        "{rail}  {FAINT}… and {} more{FAINT:#}\n",
                        changes.len() - SHOWN
                    ));
                }
            }
        }
        for told in outside(action) {
            shown.push_str(&format!("{rail}  {told}\n"));
        }
        for note in action.not_held.iter().take(SHOWN) {
            let note = note.shown();
            shown.push_str(&format!("{rail}  {BAD}not held{BAD:#}  {note}\n"));
        }
        if action.not_held.len() > SHOWN {
            let more = action.not_held.len() - SHOWN;
            shown.push_str(&format!("{rail}  {FAINT}… and {more} more{FAINT:#}\n"));
        }
    }
    shown
}

/// What an action reached and was refused outside, and what cannot be taken back: a line each.
fn outside(action: &ActionDocument) -> Vec<String> {
    const SHOWN: usize = 8;
    let reached = &action.reached;
    let targets = reached.names();
    let refused = action.refused.iter();
    let refused = refused.map(|it| format!("{} {}", it.action, it.target));
    let parts = [
        ("reached", WARNING, targets.cloned().collect::<Vec<_>>()),
        ("refused", FAINT, refused.collect()),
        ("for good", BAD, action.remainder.clone()),
    ];
    let mut lines = Vec::new();
    for (word, style, all) in parts {
        for one in all.iter().take(SHOWN) {
            let one = text::line(one.trim_end()).text;
            lines.push(format!("{style}{word:<8}{style:#}  {one}"));
        }
        if let more @ 1.. = all.len().saturating_sub(SHOWN) {
            lines.push(format!("{FAINT}… and {more} more{FAINT:#}"));
        }
    }
    lines
}
