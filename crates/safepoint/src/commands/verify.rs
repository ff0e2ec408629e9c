//! `safepoint verify`: whether a checkpoint can be restored, or a change still holds.

use safepoint_model::Exit;
use safepoint_state::mutate::{Checked, Outcome, Verdict, Weight};
use safepoint_state::{Ending, Progress, StateError};
use schemars::JsonSchema;
use serde::Serialize;

use super::verdict::VerdictDocument;
use crate::console::{BAD, GOOD, STRONG, count};
use crate::context::Context;
use crate::error::{CliError, FailedReply};

/// Arguments of `verify`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which checkpoint or action; the beginning of its id is enough
    id: String,
}

/// What `verify` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifyReply {
    /// The checkpoint that was read back; of an action, the one before it.
    checkpoint_id: String,
    /// The action that was checked.
    action_id: Option<String>,
    /// Whether everything holds.
    valid: bool,
    /// How many directories were read and hashed.
    directories: u64,
    /// How many different contents were read and hashed.
    contents: u64,
    /// The hash of everything in it.
    hash: String,
    #[serde(flatten)]
    verification: VerdictDocument,
    /// The share of what could be checked that was, and held.
    confidence: f64,
    /// Where to see that it is so.
    evidence_anchors: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let reply = match arguments.id.starts_with("act_") {
        true => of_action(context, &arguments.id)?,
        false => of_checkpoint(context, &arguments.id)?,
    };
    context.console.value(&reply, show)?;
    Ok(match reply.valid {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn of_checkpoint(context: &mut Context, id: &str) -> Result<VerifyReply, CliError> {
    let state = context.state()?;
    let snapshot = state.find(id)?;
    context.keep_to(&snapshot.workspace, "checkpoint")?;
    let verified = match state.verify(&snapshot) {
        Ok(verified) => verified,
        Err(error) => {
            let verdict = Verdict {
                checks: vec![whole(snapshot.id.as_str(), &Err(error.clone()))],
                possible: 1,
                ending: Ending::ByItself,
            };
            return Err(not_whole(&snapshot.id.to_string(), &verdict, error)?);
        }
    };
    let verdict = Verdict {
        checks: vec![whole(&snapshot.id.to_string(), &Ok(()))],
        possible: 1,
        ending: Ending::ByItself,
    };
    Ok(VerifyReply {
        checkpoint_id: snapshot.id.to_string(),
        action_id: None,
        valid: true,
        directories: verified.trees,
        contents: verified.contents,
        hash: format!("sha256:{}", snapshot.hash()),
        verification: (&verdict).into(),
        confidence: 1.0,
        evidence_anchors: vec![
            format!("tool:bash:safepoint verify {}", snapshot.id),
            format!("checkpoint:{}", snapshot.id),
        ],
    })
}

/// A checkpoint that does not hold: the error, and beside it what was checked.
fn not_whole(id: &str, verdict: &Verdict, error: StateError) -> Result<CliError, CliError> {
    let mut reply = match serde_json::to_value(VerdictDocument::from(verdict))? {
        serde_json::Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    reply.insert("checkpoint_id".to_owned(), id.into());
    reply.insert("valid".to_owned(), false.into());
    Ok(CliError::WithReply(Box::new(FailedReply {
        error: error.into(),
        reply,
    })))
}

/// Of a change: whether it can be taken back, whether it is in the trail, and whether
/// what it left is still there.
fn of_action(context: &mut Context, id: &str) -> Result<VerifyReply, CliError> {
    let state = context.state()?;
    let action = state.find_action(id)?;
    let (before, after) = (
        state.find(action.before.as_str())?,
        state.find(action.after.as_str())?,
    );
    let workspace = context.workspace_at(&action.workspace)?;
    let checked = state.verify(&before);
    let mut checks = vec![
        whole(
            before.id.as_str(),
            &checked.as_ref().map(|_| ()).map_err(Clone::clone),
        ),
        whole(after.id.as_str(), &state.verify(&after).map(|_| ())),
        in_trail(&state, &action)?,
    ];
    checks.push(still_there(&state, &workspace, &before, &after)?);
    let verdict = Verdict {
        possible: checks.len(),
        checks,
        ending: Ending::ByItself,
    };
    let verified = checked.unwrap_or_default();
    let verification = VerdictDocument::from(&verdict);
    Ok(VerifyReply {
        checkpoint_id: before.id.to_string(),
        action_id: Some(action.id.to_string()),
        valid: verdict.outcome() == Outcome::Pass,
        directories: verified.trees,
        contents: verified.contents,
        hash: format!("sha256:{}", before.hash()),
        confidence: verification.confidence(),
        verification,
        evidence_anchors: vec![
            format!("tool:bash:safepoint trail list --action {}", action.id),
            format!("checkpoint:{}", before.id),
            format!("checkpoint:{}", after.id),
        ],
    })
}

fn whole(id: &str, result: &Result<(), StateError>) -> Checked {
    Checked {
        name: "checkpoint_whole",
        target: id.to_owned(),
        outcome: match result {
            Ok(()) => Outcome::Pass,
            Err(_) => Outcome::Fail,
        },
        expected: "everything it needs is read back and has its hash".to_owned(),
        actual: match result {
            Ok(()) => "read back".to_owned(),
            Err(error) => error.to_string(),
        },
        weight: Weight::Decides,
    }
}

/// Whether the trail tells of the action.
fn in_trail(
    state: &safepoint_state::State,
    action: &safepoint_state::Action,
) -> Result<Checked, CliError> {
    let query = safepoint_trail::Query {
        action: Some(action.id.to_string()),
        ..Default::default()
    };
    let mut kinds = Vec::new();
    state.trail().entries(&query, |entry| {
        let kind = entry.kind.to_string();
        // What was judged and approved on the way is told by the trail itself.
        if kind.starts_with("mutation_") || kind.starts_with("action_done") {
            kinds.push(kind);
        }
        Ok::<_, CliError>(safepoint_store::Flow::More)
    })?;
    Ok(Checked {
        name: "recorded",
        target: action.id.to_string(),
        outcome: match kinds.is_empty() {
            true => Outcome::Fail,
            false => Outcome::Pass,
        },
        expected: "entries in the trail".to_owned(),
        actual: kinds.join(", "),
        weight: Weight::Decides,
    })
}

/// Whether what the action changed is still as it left it.
fn still_there(
    state: &safepoint_state::State,
    workspace: &safepoint_state::Workspace,
    before: &safepoint_state::Snapshot,
    after: &safepoint_state::Snapshot,
) -> Result<Checked, CliError> {
    let touched = state.changes_between(before, after)?;
    // Of the workspace itself only its mode was changed: what is in it is no concern of that.
    let (root, paths): (Vec<_>, Vec<_>) = touched.iter().partition(|it| it.path.is_empty());
    let scope = safepoint_state::scope::Scope::of_paths(paths.iter().map(|it| &it.path));
    let mut since = state.changes_since(workspace, after, &scope, &Progress::default())?;
    if !root.is_empty() && state.has_other_mode(workspace, after) {
        since.extend(root.into_iter().cloned());
    }
    let mut later: Vec<String> = since
        .iter()
        .map(|change| safepoint_state::path::display(&change.path))
        .collect();
    // What became of states and databases that it did not change is not its concern.
    let changed = state.part_changes_between(before, after)?;
    let is_changed = |name: &String| changed.iter().any(|it| it.to.subject.name() == *name);
    let parts = state.part_changes_since(workspace, after)?;
    let parts = parts.iter().map(|part| part.to.subject.name());
    later.extend(parts.filter(is_changed));
    Ok(Checked {
        name: "still_there",
        target: safepoint_state::path::display(
            &touched
                .first()
                .map(|it| it.path.clone())
                .unwrap_or_default(),
        ),
        outcome: match later.is_empty() {
            true => Outcome::Pass,
            false => Outcome::Fail,
        },
        expected: "as the action left it".to_owned(),
        actual: match later.is_empty() {
            true => "the same".to_owned(),
            false => format!("changed since: {}", later.join(", ")),
        },
        weight: Weight::Decides,
    })
}

fn show(reply: &VerifyReply) -> String {
    if let Some(action) = &reply.action_id {
        let (style, word) = match reply.valid {
            true => (GOOD, "holds"),
            false => (BAD, "does not hold"),
        };
        return format!(
            "{style}{word}{style:#}  {STRONG}{action}{STRONG:#}\n{}",
            reply.verification.lines()
        );
    }
    format!(
        "{GOOD}whole{GOOD:#}  {STRONG}{}{STRONG:#}: {} and {} read back\n",
        reply.checkpoint_id,
        count(reply.directories, "directory", "directories"),
        count(reply.contents, "content", "contents"),
    )
}
