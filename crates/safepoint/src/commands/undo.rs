//! `safepoint undo`: takes back what one action did, and keeps what came later.
//!
//! Without a name it is the last thing that somebody did through Safepoint. What was merely seen
//! to have changed since is most likely the work of the person who asks: it is left alone, and
//! taken back by its name, or when the whole directory is gone.

use std::path::Path;

use safepoint_model::{Exit, text};
use safepoint_state::scope::Scope;
use safepoint_state::{
    Action, FileConflict, Goal, Origin, Progress, StateError, Wanted, path, taken_back,
};
use serde_json::{Value, json};

use super::restoring::{self, Beside};
use crate::console::{FAINT, STRONG, name};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `undo`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which action, as `safepoint log` lists them; without it the last one that was asked for,
    /// and not what was only seen to change since
    action: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let state = context.state()?;
    let (action, beside) = match &arguments.action {
        Some(prefix) => (state.find_action(prefix)?, Beside::default()),
        None => {
            // What happened since the last checkpoint is the last thing that happened.
            let is_gone = state.is_gone(&workspace.root)?;
            observe(&state, &workspace)?;
            let actions = state.actions(&workspace.root, LOOKED_AT)?;
            let (last, newer) = match actions.first().filter(|_| is_gone) {
                // Who asks after the whole directory was deleted wants it back.
                Some(newest) if newest.is_observed() => (newest, Vec::new()),
                _ => last_of(&state, &actions, &workspace.root)?,
            };
            let last = state.find_action(last.id.as_str())?; // as the trail tells of it
            if let [why, ..] = state.doubts_about(&last)?.as_slice() {
                return Err(StateError::Unattributed {
                    action: last.id.to_string(),
                    why: why.clone(),
                }
                .into());
            }
            // Of an agent's line that calls us, the agent knows.
            let running = match context.is_agent() || context.control()?.is_within_an_action()? {
                true => Vec::new(),
                false => context.control()?.running_in(&workspace.root)?,
            };
            (last, Beside::new(&newer).with_running(&running))
        }
    };
    let workspace = context.workspace_at(&action.workspace)?;
    let goal = Goal::Without {
        action: &action,
        verb: "undo",
    };
    restoring::run(
        context,
        &state,
        &workspace,
        &goal,
        arguments.dry_run,
        None,
        beside,
    )
}

/// So far back is looked for something to take back.
const LOOKED_AT: u32 = 1_000;

/// What was done last of these actions, the newest first, and what was seen to change since.
fn last_of<'a>(
    state: &safepoint_state::State,
    actions: &'a [Action],
    workspace: &Path,
) -> Result<(&'a Action, Vec<&'a Action>), StateError> {
    let taken = taken_back(actions);
    // What changed nothing, and what took something back, is nothing to take back.
    let did = |one: &&Action| one.undoes.is_none() && !one.is_back_out() && one.before != one.after;
    let live =
        |one: &&Action| did(one) && !taken.contains_key(&one.id) && !state.has_changed_nothing(one);
    let asked = actions
        .iter()
        .position(|one| live(&one) && !one.is_observed());
    let seen = |one: &&Action| live(one) && one.is_observed();
    match (asked, actions.iter().find(seen)) {
        (Some(place), _) => {
            let (newer, rest) = actions.split_at(place);
            let newer = newer.iter().filter(seen).collect();
            rest.first().map(|last| (last, newer))
        }
        // It is most likely the work of whoever asks.
        (None, Some(newest)) => {
            return Err(StateError::OnlyObserved {
                workspace: workspace.to_owned(),
                newest: newest.id.to_string(),
            });
        }
        (None, None) => None,
    }
    .ok_or_else(|| StateError::NotFound {
        what: "action to undo in",
        name: workspace.display().to_string(),
    })
}

/// Makes what has happened since the last checkpoint an action, if there is a checkpoint.
fn observe(
    state: &safepoint_state::State,
    workspace: &safepoint_state::Workspace,
) -> Result<(), CliError> {
    let selection = safepoint_state::Selection {
        workspace: Some(workspace.root.clone()),
        limit: Some(1),
    };
    if state.list(&selection)?.is_empty() {
        return Ok(());
    }
    let progress = Progress::default();
    let scope = Scope::everything();
    let changed = state.changes_since_last(workspace, &progress)?;
    if !changed {
        return Ok(());
    }
    let wanted = Wanted {
        scope: &scope,
        parts: Vec::new(),
        reason: Some("before undo".to_owned()),
        kind: None,
        expiry: safepoint_state::automatic_expiry(state.now()),
        origin: Origin::Automatic,
        seal_to: &[],
    };
    state.checkpoint(workspace, &wanted, &progress)?;
    Ok(())
}

/// A conflict as JSON.
pub(crate) fn conflict_document(conflict: &FileConflict) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let hunks: Vec<Value> = conflict
        .hunks
        .iter()
        .map(|hunk| {
            json!({
                "line": hunk.line,
                "action": text(&hunk.base),
                "present": text(&hunk.ours),
                "before": text(&hunk.theirs),
            })
        })
        .collect();
    json!({ "path": path::display(&conflict.path), "reason": conflict.why, "hunks": hunks })
}

/// A conflict for people.
pub(crate) fn show_conflict(conflict: &FileConflict) -> String {
    let mut shown = format!(
        "{STRONG}{}{STRONG:#}: {}\n",
        name(&path::display(&conflict.path)),
        conflict.why
    );
    let side = |shown: &mut String, title: &str, bytes: &[u8]| {
        shown.push_str(&format!("  {FAINT}{title}{FAINT:#}\n"));
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(line);
            shown.push_str(&format!("    {}\n", text::line(line.trim_end()).text));
        }
    };
    for hunk in &conflict.hunks {
        shown.push_str(&format!("  line {}\n", hunk.line));
        side(&mut shown, "what the action wrote", &hunk.base);
        side(&mut shown, "what is there now", &hunk.ours);
        side(&mut shown, "what was there before the action", &hunk.theirs);
    }
    shown
}
