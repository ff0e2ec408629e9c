//! What `rollback`, `undo` and `redo` share: the reply, the plan, and the key for secrets.

mod ownership;

use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, Exit, text};
use safepoint_state::seal::{ExposeSecret, Identity, Recipient};
use safepoint_state::tree::{Change, ChangeKind};
use safepoint_state::{
    Action, Goal, Preview, Progress, Restored, Snapshot, State, Workspace, path,
};
use safepoint_store::durable;
use schemars::JsonSchema;
use serde::Serialize;

use super::diff;
use crate::console::{BAD, FAINT, GOOD, STRONG, count, name};
use crate::context::Context;
use crate::error::CliError;

/// What `rollback`, `undo` and `redo` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RestoreReply {
    /// Whether it was done.
    rolled_back: bool,
    /// The same, for the short contract.
    restored: bool,
    /// The checkpoint that was restored; null for an undo.
    restored_to: Option<String>,
    /// The action that was taken back; null for a roll back to a checkpoint.
    taken_back: Option<ActionName>,
    /// Changes that came later and that nobody asked for, which an undo without a name left alone.
    left_alone: Vec<ActionName>,
    /// What changed.
    changes_reverted: Vec<ChangeDocument>,
    /// What was there before and could not be brought back, and why.
    not_restored: Vec<super::checkpoint::NoteDocument>,
    verification: Verification,
    warnings: Vec<String>,
    /// What can be done next.
    next_actions: Vec<String>,
    /// 1 when looking again found exactly what was wanted, and nothing is missing that no checkpoint holds.
    confidence: f64,
    /// Where to see that it is so.
    evidence_anchors: Vec<String>,
    /// What was taken for granted.
    assumptions: Vec<String>,
    /// This roll back, as an action in the log.
    action_id: String,
    /// The checkpoint of what was there before it.
    safety_checkpoint_id: String,
}

/// An action, so that people know which.
#[derive(Clone, Serialize, JsonSchema)]
pub(super) struct ActionName {
    /// Its id.
    action_id: String,
    /// What it was, in the words of policies.
    action: String,
    /// What it was, in a sentence.
    summary: String,
}

impl ActionName {
    fn of(action: &Action) -> Self {
        Self {
            action_id: action.id.to_string(),
            action: action.action.clone(),
            summary: action.summary.clone(),
        }
    }

    /// The action that a goal takes back.
    fn of_goal(goal: &Goal<'_>) -> Option<Self> {
        match goal {
            Goal::Without { action, .. } => Some(Self::of(action)),
            Goal::Snapshot { .. } | Goal::Brought(_) => None,
        }
    }

    fn shown(&self) -> String {
        let summary = text::line(&self.summary).text;
        format!("{STRONG}{}{STRONG:#} ({summary})", self.action_id)
    }
}

/// What came later than what is taken back, and is left alone.
#[derive(Default)]
pub(super) struct Beside {
    left_alone: Vec<ActionName>,
    /// What else is to be known of what is going on.
    warnings: Vec<String>,
}

impl Beside {
    /// These, the newest first.
    pub(super) fn new(actions: &[&Action]) -> Self {
        Self {
            left_alone: actions
                .iter()
                .map(|action| ActionName::of(action))
                .collect(),
            warnings: Vec::new(),
        }
    }

    /// With a warning for each of these actions, which have not ended: their ids and summaries.
    pub(super) fn with_running(mut self, running: &[(ActionId, String)]) -> Self {
        let one = |(id, summary): &(ActionId, String)| {
            let summary = text::line(summary).text;
            format!(
                "{id} ({summary}) is still running, and is not what is taken back: `safepoint undo {id}` does that once it has ended"
            )
        };
        self.warnings.extend(running.iter().map(one));
        self
    }
}

/// The hashes before and after.
#[derive(Serialize, JsonSchema)]
struct Verification {
    pre_state_hash: String,
    post_state_hash: String,
    checkpoint_hash: String,
    #[serde(rename = "match")]
    matches: bool,
}

/// One path that changed.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangeDocument {
    /// Where.
    pub(super) path: String,
    /// `created`, `modified`, `deleted` or `metadata`.
    pub(super) change: &'static str,
}

/// What a dry run prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct PlanReply {
    /// Always true.
    dry_run: bool,
    /// Always false: nothing was done.
    rolled_back: bool,
    /// The action that would be taken back; null for a roll back to a checkpoint.
    taken_back: Option<ActionName>,
    /// Changes that came later and that nobody asked for, which would be left alone.
    left_alone: Vec<ActionName>,
    /// What would change.
    changes: Vec<ChangeDocument>,
    /// What would stay although the checkpoint does not have it.
    kept: Vec<super::checkpoint::NoteDocument>,
    /// What could not be brought back, and why.
    not_restored: Vec<super::checkpoint::NoteDocument>,
    /// What else is to be known.
    warnings: Vec<String>,
    /// What would change in each file.
    diff: String,
}

/// The changes as they are told.
pub(super) fn documents(changes: &[Change]) -> Vec<ChangeDocument> {
    changes
        .iter()
        .filter(|change| change.is_notable())
        .map(|change| ChangeDocument {
            path: path::display(&change.path),
            change: change.kind().as_str(),
        })
        .collect()
}

/// Carries a goal out, or shows what that would do.
pub(super) fn run(
    context: &mut Context,
    state: &State,
    workspace: &Workspace,
    goal: &Goal<'_>,
    dry_run: bool,
    identity: Option<&Path>,
    beside: Beside,
) -> Result<Exit, CliError> {
    let progress = Progress::default();
    if dry_run {
        let preview = context
            .console
            .watching(&progress, || state.preview(workspace, goal, &progress))?;
        return show_plan(context, state, workspace, goal, &preview, beside);
    }
    let identities = identities(context, identity)?;
    let leave = ownership::ask_for_leave(context, state, workspace, goal)?;
    let restored = context.console.watching(&progress, || {
        state.restore(workspace, goal, &identities, &progress)
    });
    if let Some(leave) = leave {
        leave.conclude(if restored.is_ok() { "ok" } else { "error" })?;
    }
    let mut restored = restored?;
    restored
        .warnings
        .splice(0..0, beside.warnings.iter().cloned());
    let reply = reply(state, goal, &restored, beside)?;
    context.console.value(&reply, show)?;
    for warning in &restored.warnings {
        context.console.warn(warning);
    }
    Ok(match reply.rolled_back {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn reply(
    state: &State,
    goal: &Goal<'_>,
    restored: &Restored,
    beside: Beside,
) -> Result<RestoreReply, CliError> {
    let after = state.find(restored.after.as_str())?;
    let target: &Snapshot = match goal {
        Goal::Snapshot { snapshot, .. } => snapshot,
        Goal::Without { .. } | Goal::Brought(_) => &after,
    };
    let restored_to = match goal {
        Goal::Snapshot { snapshot, .. } => Some(snapshot.id.to_string()),
        Goal::Without { .. } | Goal::Brought(_) => None,
    };
    let hash = |hash| format!("sha256:{hash}");
    let changes_reverted: Vec<ChangeDocument> = documents(&restored.changes)
        .into_iter()
        .chain(restored.parts.iter().map(|part| ChangeDocument {
            path: part.subject.name(),
            change: "modified",
        }))
        .collect();
    // Nothing of what was to be taken back is.
    let in_vain = matches!(goal, Goal::Without { .. })
        && changes_reverted.is_empty()
        && !restored.not_restored.is_empty();
    let matches = restored.matches && !in_vain;
    let mut anchors = vec![
        format!("tool:bash:safepoint verify {}", target.id),
        format!(
            "tool:bash:safepoint trail list --action {}",
            restored.action
        ),
    ];
    anchors.extend(restored_to.as_ref().map(|id| format!("checkpoint:{id}")));
    Ok(RestoreReply {
        rolled_back: matches,
        restored: matches,
        restored_to,
        taken_back: ActionName::of_goal(goal),
        left_alone: beside.left_alone,
        changes_reverted,
        verification: Verification {
            pre_state_hash: hash(restored.pre_hash),
            post_state_hash: hash(restored.post_hash),
            checkpoint_hash: hash(target.hash()),
            matches,
        },
        not_restored: restored.not_restored.iter().map(Into::into).collect(),
        warnings: restored.warnings.clone(),
        next_actions: vec![way_on(goal, restored)],
        confidence: match (matches, restored.not_restored.is_empty()) {
            (true, true) => 1.0,
            (true, false) => 0.8,
            (false, _) => 0.5,
        },
        evidence_anchors: anchors,
        assumptions: Vec::new(),
        action_id: restored.action.to_string(),
        safety_checkpoint_id: restored.before.to_string(),
    })
}

/// How to take back what was just done.
fn way_on(goal: &Goal<'_>, restored: &Restored) -> String {
    match goal {
        Goal::Without { verb: "redo", .. } => {
            format!("`safepoint undo {}` takes it back again", restored.action)
        }
        _ => "`safepoint redo` brings back what was there before".to_owned(),
    }
}

fn show(reply: &RestoreReply) -> String {
    let mut shown = String::new();
    let nothing = reply.changes_reverted.is_empty();
    let what = match (&reply.restored_to, &reply.taken_back) {
        (Some(id), _) => format!("rolled back to {STRONG}{id}{STRONG:#}"),
        (None, Some(action)) if nothing && !reply.not_restored.is_empty() => {
            format!("nothing that a checkpoint holds of {}", action.shown())
        }
        (None, Some(action)) if nothing => format!("nothing to take back of {}", action.shown()),
        (None, Some(action)) => format!("taken back {}", action.shown()),
        (None, None) => "taken back".to_owned(),
    };
    // Only what was looked at is verified.
    let (style, verdict) = match (reply.verification.matches, reply.not_restored.is_empty()) {
        (true, true) => (GOOD, "verified"),
        (_, false) if nothing && reply.taken_back.is_some() => (BAD, "not taken back"),
        (true, false) => (BAD, "verified in part"),
        (false, _) => (BAD, "not identical"),
    };
    let number = count(reply.changes_reverted.len() as u64, "path", "paths");
    shown.push_str(&format!("{style}{verdict}{style:#}  {what}, {number}\n"));
    for change in reply.changes_reverted.iter().take(MOST_SHOWN) {
        shown.push_str(&line(change));
    }
    more(&mut shown, reply.changes_reverted.len());
    not_restored(&mut shown, &reply.not_restored);
    kept(&mut shown, &reply.left_alone);
    for next in &reply.next_actions {
        shown.push_str(&format!("  {FAINT}{next}{FAINT:#}\n"));
    }
    shown
}

/// As many lines as a person reads.
const MOST_SHOWN: usize = 20;

fn more(shown: &mut String, total: usize) {
    if total > MOST_SHOWN {
        shown.push_str(&format!(
            "  {FAINT}… and {} more{FAINT:#}\n",
            total - MOST_SHOWN
        ));
    }
}

/// What could not be brought back, and why.
fn not_restored(shown: &mut String, notes: &[super::checkpoint::NoteDocument]) {
    for note in notes.iter().take(MOST_SHOWN) {
        shown.push_str(&format!("  {BAD}not restored{BAD:#}  {}\n", note.shown()));
    }
    more(shown, notes.len());
}

/// What came later and was left alone, and how it would be taken back.
fn kept(shown: &mut String, left_alone: &[ActionName]) {
    let Some(newest) = left_alone.first() else {
        return;
    };
    let number = count(left_alone.len() as u64, "newer change", "newer changes");
    let newest = &newest.action_id;
    let which = match left_alone.len() {
        1 => format!("{STRONG}{newest}{STRONG:#}"),
        _ => format!("the newest {STRONG}{newest}{STRONG:#}"),
    };
    shown.push_str(&format!(
        "  kept      {number} that nobody asked for, {which}; `safepoint undo {newest}` takes it back\n"
    ));
}

/// One change on a line.
pub(super) fn line(change: &ChangeDocument) -> String {
    format!("  {:<9} {}\n", change.change, name(&change.path))
}

fn show_plan(
    context: &mut Context,
    state: &State,
    workspace: &Workspace,
    goal: &Goal<'_>,
    preview: &Preview,
    beside: Beside,
) -> Result<Exit, CliError> {
    let visible: Vec<Change> = preview
        .changes
        .iter()
        .filter(|change| change.is_notable() && !is_git(change))
        .cloned()
        .collect();
    let objects = state.objects()?;
    let source = diff::Source {
        state,
        objects: &objects,
        root: &workspace.root,
        planned: Some(&preview.contents),
    };
    let mut diff = diff::unified(&source, &visible, diff::Colours::None)?;
    for part in &preview.parts {
        diff.push_str(&diff::of_part(part, context.console.mode));
    }
    let reply = PlanReply {
        dry_run: true,
        rolled_back: false,
        taken_back: ActionName::of_goal(goal),
        left_alone: beside.left_alone,
        changes: documents(&preview.changes)
            .into_iter()
            .chain(preview.parts.iter().map(|part| ChangeDocument {
                path: part.to.subject.name(),
                change: "modified",
            }))
            .collect(),
        kept: preview.kept.iter().map(Into::into).collect(),
        not_restored: preview.not_restored.iter().map(Into::into).collect(),
        warnings: preview.warnings.clone(),
        diff,
    };
    context.console.value(&reply, |reply| {
        let number = count(reply.changes.len() as u64, "path", "paths");
        let mut shown = match &reply.taken_back {
            Some(action) => format!("would take back {}, {number}\n", action.shown()),
            None => format!("{STRONG}would change{STRONG:#} {number}\n"),
        };
        for change in &reply.changes {
            shown.push_str(&line(change));
        }
        for note in &reply.kept {
            shown.push_str(&format!("  stays     {}\n", note.shown()));
        }
        not_restored(&mut shown, &reply.not_restored);
        kept(&mut shown, &reply.left_alone);
        shown.push_str(&reply.diff);
        shown
    })?;
    for warning in &preview.warnings {
        context.console.warn(warning);
    }
    Ok(Exit::Done)
}

/// Whether a change is inside a git directory, where a diff tells nobody anything.
fn is_git(change: &Change) -> bool {
    change
        .path
        .split(|byte| *byte == b'/')
        .any(|name| name == b".git")
        || change.kind() == ChangeKind::Time
}

fn key_file(context: &Context) -> PathBuf {
    context.paths.data.join("keys").join("seal.age")
}

/// To whom sensitive files are encrypted: those the settings name, or a key of one's own.
pub(super) fn recipients(context: &Context) -> Result<Vec<Recipient>, CliError> {
    let invalid = |message: String| CliError::Invalid {
        message,
        suggestion: "`seal_to` takes public keys of age, which begin with `age1`",
    };
    if !context.settings.seal_to.is_empty() {
        return context
            .settings
            .seal_to
            .iter()
            .map(|key| {
                key.parse()
                    .map_err(|error| invalid(format!("`seal_to`: {error}")))
            })
            .collect();
    }
    let path = key_file(context);
    if !path.exists() {
        durable::create_directory(path.parent().unwrap_or(&path))?;
        let identity = Identity::generate();
        let own = path.with_extension(format!("{}.new", std::process::id()));
        durable::write(
            &own,
            identity.to_file_text().expose_secret().as_bytes(),
            durable::Access::Private,
        )?;
        // Whoever comes first decides: what was sealed with a key that is replaced opens no more.
        let linked = std::fs::hard_link(&own, &path);
        durable::remove(&own)?;
        if let (Err(error), false) = (linked, path.exists()) {
            return Err(CliError::File {
                action: "write",
                path,
                error,
            });
        }
        durable::sync_directory(path.parent().unwrap_or(&path))?;
    }
    Ok(read_identities(&path)?
        .iter()
        .map(Identity::recipient)
        .collect())
}

pub(super) fn identities(
    context: &Context,
    given: Option<&Path>,
) -> Result<Vec<Identity>, CliError> {
    match given {
        Some(path) => read_identities(&context.directory.join(path)),
        None if key_file(context).exists() => read_identities(&key_file(context)),
        None => Ok(Vec::new()),
    }
}

fn read_identities(path: &Path) -> Result<Vec<Identity>, CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    })?;
    Identity::all_of(&text).map_err(|error| CliError::Invalid {
        message: format!("`{}`: {error}", path.display()),
        suggestion: "it should be an identity file of age",
    })
}
