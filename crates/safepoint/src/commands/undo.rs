//! `safepoint undo`: takes back what one action did, and keeps what came later.

use safepoint_model::{Exit, text};
use safepoint_state::scope::Scope;
use safepoint_state::{FileConflict, Goal, Origin, Progress, StateError, Wanted, path};
use serde_json::{Value, json};

use super::restoring;
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `undo`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which action, as `safepoint log` lists them; the last one without it
    action: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let state = context.state()?;
    let action = match &arguments.action {
        Some(prefix) => state.find_action(prefix)?,
        None => {
            // What happened since the last checkpoint is the last thing that happened.
            observe(&state, &workspace)?;
            let actions = state.actions(&workspace.root, 100)?;
            let taken_back = |by: &str| -> Vec<_> {
                let by = actions.iter().filter(|one| one.action == by);
                by.filter_map(|one| one.undoes.clone()).collect()
            };
            let redone = taken_back("checkpoint.redo");
            let undone: Vec<_> = actions
                .iter()
                .filter(|one| !redone.contains(&one.id))
                .filter_map(|one| one.undoes.clone())
                .collect();
            let last = actions
                .into_iter()
                .find(|one| {
                    one.undoes.is_none() && one.before != one.after && !undone.contains(&one.id)
                })
                .ok_or_else(|| StateError::NotFound {
                    what: "action to undo in",
                    name: workspace.root.display().to_string(),
                })?;
            state.find_action(last.id.as_str())? // as the trail tells of it
        }
    };
    let workspace = context.workspace_at(&action.workspace)?;
    let goal = Goal::Without {
        action: &action,
        verb: "undo",
    };
    restoring::run(context, &state, &workspace, &goal, arguments.dry_run, None)
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
        text::line(&path::display(&conflict.path)).text,
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
