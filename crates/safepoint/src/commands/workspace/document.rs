//! Workspaces, checkpoints and signals as they are printed: their schemas, and how people
//! see them.
//!
//! What is printed is what the crate below has; here it is only described.

use std::collections::BTreeMap;

use safepoint_model::{ActionId, WorkspaceId, text};
use safepoint_progress::meter::Budget;
use safepoint_progress::record::{Confidence, Record, Status, shown_path};
use safepoint_progress::signal::Signal;
use safepoint_progress::state::State;
use safepoint_progress::{Link, Progress, Workspace};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, FAINT, GOOD, STRONG, WARNING, count};
use crate::context::Context;
use crate::error::CliError;

/// A checkpoint in the chain of a workspace.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RecordDocument {
    /// Its identifier; later ones in a workspace sort later.
    id: String,
    /// The workspace whose chain it is in.
    workspace: String,
    /// `artifact`, `observation`, or a type of the taxonomy.
    #[serde(rename = "type")]
    kind: String,
    /// The work product.
    payload: PayloadDocument,
    /// Why it exists.
    intent: String,
    /// The checkpoint before it; null for the first.
    parent: Option<String>,
    /// `provisional` or `final`.
    status: String,
    /// `high`, `medium` or `low`.
    confidence: String,
    /// What it took since the checkpoint before it, by the agent's own account.
    resource_usage: Option<UsageDocument>,
    /// The snapshot of the workspace's own directory that it stands for.
    snapshot: Option<String>,
    /// The actions that made it.
    #[serde(default)]
    actions: Vec<String>,
    /// When it was made.
    timestamp: String,
}

/// The work product: these three, and whatever its type asks for.
#[derive(Serialize, JsonSchema)]
struct PayloadDocument {
    /// Paths below the root of the workspace.
    files_changed: Vec<String>,
    /// The substance, or a summary of it.
    content: String,
    /// References to what was produced.
    artifacts: Vec<serde_json::Value>,
}

/// What a piece of work took.
#[derive(Serialize, JsonSchema)]
struct UsageDocument {
    tokens_consumed: Option<u64>,
    /// In seconds.
    wall_time: Option<f64>,
    cost: Option<f64>,
}

/// A signal from a workspace to its parent.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignalDocument {
    id: String,
    /// The workspace that it comes from.
    from: String,
    /// What it says.
    #[serde(rename = "type")]
    kind: String,
    /// Why.
    reason: Option<String>,
    /// What it is about, such as the id of a checkpoint.
    #[serde(rename = "ref")]
    about: Option<String>,
    /// When it was emitted.
    timestamp: String,
    /// The parent; null at the root, where there is nobody to tell.
    delivered_to: Option<String>,
    /// When the parent got it; null while it waits.
    delivered_at: Option<String>,
}

/// What a workspace may take; what is not there has no limit.
#[derive(Serialize, JsonSchema)]
struct BudgetDocument {
    tokens: Option<u64>,
    /// In seconds.
    wall_time: Option<f64>,
    cost: Option<f64>,
    checkpoint_bytes: Option<u64>,
}

/// One workspace, and how far it is.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WorkspaceDocument {
    pub(crate) workspace_id: String,
    /// The root of its tree.
    run: String,
    /// The one above it; null for the root.
    pub(crate) parent: Option<String>,
    /// Its role.
    pub(crate) role: String,
    /// What it was told to do.
    pub(crate) directive: Option<String>,
    /// The task that it is or was for.
    pub(crate) task: Option<String>,
    /// What it may take.
    #[schemars(with = "BudgetDocument")]
    pub(crate) budget: Budget,
    /// How long it may be at work before it fails.
    pub(crate) timeout: Option<String>,
    /// Where it stands.
    #[schemars(with = "String")]
    pub(crate) state: State,
    /// Why, if somebody said so: what it is blocked by, or how it failed.
    pub(crate) reason: Option<String>,
    /// Where a pause will end.
    #[schemars(with = "Option<String>")]
    pub(crate) former: Option<State>,
    /// When it was made.
    pub(crate) created: String,
    /// Its own directory, if it has one.
    pub(crate) path: Option<String>,
    /// How many checkpoints its chain has.
    pub(crate) length: u64,
    /// The end of its chain.
    pub(crate) head: Option<String>,
    /// Whether the agent considers that done.
    #[schemars(with = "Option<String>")]
    pub(crate) status: Option<Status>,
    /// How sure the agent is of it.
    #[schemars(with = "Option<String>")]
    pub(crate) confidence: Option<Confidence>,
    /// Whether the end of its chain, or its final checkpoint, is not what was written.
    pub(crate) tampered: bool,
    /// The action that undid the integration of its work, if one did.
    pub(crate) taken_back_by: Option<String>,
}

impl WorkspaceDocument {
    fn new(workspace: Workspace, link: Option<&Link>) -> Self {
        Self {
            workspace_id: workspace.workspace_id.to_string(),
            run: workspace.run.to_string(),
            parent: workspace.parent.map(|parent| parent.to_string()),
            role: workspace.role.to_string(),
            directive: workspace.directive,
            task: workspace.task.map(|task| task.to_string()),
            budget: workspace.budget,
            timeout: workspace.timeout.map(|timeout| timeout.to_string()),
            state: workspace.state,
            reason: workspace.reason,
            former: workspace.former,
            created: workspace.created.to_string(),
            path: None,
            length: link.map_or(0, |link| link.length),
            head: link
                .and_then(|link| link.head.as_ref())
                .map(ToString::to_string),
            status: link.and_then(|link| link.status),
            confidence: link.and_then(|link| link.confidence),
            tampered: link.is_some_and(|link| link.tampered),
            taken_back_by: None,
        }
    }

    /// How far it is, in a few words.
    pub(crate) fn progress(&self) -> String {
        if self.tampered {
            let length = count(self.length, "checkpoint", "checkpoints");
            return format!("{length}, {BAD}tampered with{BAD:#}");
        }
        match (self.status, self.confidence) {
            (Some(status), Some(confidence)) => format!(
                "{}, {} at {} confidence",
                count(self.length, "checkpoint", "checkpoints"),
                status_word(status),
                confidence_word(confidence),
            ),
            _ => format!("{FAINT}no checkpoints{FAINT:#}"),
        }
    }
}

/// The workspaces whose integration was undone, with the action that did.
pub(crate) type TakenBack = BTreeMap<WorkspaceId, ActionId>;

/// What was taken over and then taken back.
pub(crate) fn taken_back(
    context: &mut Context,
    progress: &Progress,
) -> Result<TakenBack, CliError> {
    match progress.took_over()? {
        true => Ok(progress.taken_back(&context.state()?)?),
        false => Ok(TakenBack::new()),
    }
}

/// All workspaces with how far each is, the oldest first.
pub(crate) fn documents(
    progress: &Progress,
    workspaces: Vec<Workspace>,
    taken_back: &TakenBack,
) -> Result<Vec<WorkspaceDocument>, CliError> {
    let (links, places) = (progress.overview()?, progress.places()?);
    let links: BTreeMap<_, _> = links
        .iter()
        .map(|link| (&link.workspace_id, link))
        .collect();
    let shown = workspaces.into_iter().map(|workspace| {
        let id = workspace.workspace_id.clone();
        let place = places.iter().find(|place| place.workspace == id);
        WorkspaceDocument {
            path: place.map(|place| place.path.display().to_string()),
            taken_back_by: taken_back.get(&id).map(ToString::to_string),
            ..WorkspaceDocument::new(workspace, links.get(&id).copied())
        }
    });
    Ok(shown.collect())
}

/// `2026-11-16 02:45:41`.
pub(crate) fn moment(time: &str) -> String {
    let time = time.replace('T', " ");
    time.get(..19).unwrap_or(&time).to_owned()
}

pub(crate) fn state_word(state: State) -> String {
    let style = match state {
        State::Active | State::Closed => GOOD,
        State::Failed | State::Conflicted => BAD,
        State::Blocked => WARNING,
        State::Idle | State::Migrating | State::Suspended | State::Integrating => FAINT,
    };
    format!("{style}{state}{style:#}")
}

pub(crate) fn status_word(status: Status) -> String {
    match status {
        Status::Final => format!("{GOOD}final{GOOD:#}"),
        Status::Provisional => "provisional".to_owned(),
    }
}

pub(crate) fn confidence_word(confidence: Confidence) -> String {
    match confidence {
        Confidence::Low => format!("{WARNING}low{WARNING:#}"),
        other => other.to_string(),
    }
}

/// One checkpoint, for people: everything but the content of its payload.
pub(crate) fn page(record: &Record) -> String {
    let mut rows = vec![
        ("checkpoint", format!("{STRONG}{}{STRONG:#}", record.id)),
        ("intent", text::line(&record.intent).text),
        ("type", text::line(&record.kind).text),
        (
            "status",
            format!(
                "{}, {} confidence",
                status_word(record.status),
                confidence_word(record.confidence)
            ),
        ),
        (
            "parent",
            record
                .parent
                .as_ref()
                .map_or_else(|| "none, it is the first".to_owned(), ToString::to_string),
        ),
        ("made", moment(&record.timestamp.to_string())),
        ("in", record.workspace.to_string()),
    ];
    if let Some(snapshot) = &record.snapshot {
        rows.push(("snapshot", snapshot.to_string()));
    }
    for action in &record.actions {
        rows.push(("action", action.to_string()));
    }
    for file in &record.payload.files_changed {
        rows.push(("file", shown_path(file)));
    }
    let mut page = rows_of(&rows);
    if !record.payload.content.is_empty() {
        let content = text::block(&record.payload.content).text;
        page.push('\n');
        for line in content.lines() {
            page.push_str(&format!("  {line}\n"));
        }
    }
    page
}

/// What a workspace may take, on one line.
pub(crate) fn budget_line(budget: &Budget) -> String {
    let tokens = budget.tokens.map(|tokens| count(tokens, "token", "tokens"));
    let time = budget
        .wall_time
        .map(|time| format!("{} s", time.as_seconds()));
    let cost = budget.cost.map(|cost| format!("{cost} of money"));
    let bytes = budget.checkpoint_bytes;
    let bytes = bytes.map(|bytes| count(bytes, "byte of checkpoints", "bytes of checkpoints"));
    let all = [tokens, time, cost, bytes];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Names and values in two columns.
pub(crate) fn rows_of(rows: &[(&str, String)]) -> String {
    rows.iter()
        .map(|(name, value)| format!("{FAINT}{name:<11}{FAINT:#} {value}\n"))
        .collect()
}

/// One signal on a line.
pub(crate) fn signal_line(signal: &Signal) -> String {
    let mut line = format!(
        "{FAINT}{}{FAINT:#}  {}  {STRONG}{:<12}{STRONG:#}",
        moment(&signal.timestamp.to_string()),
        signal.from,
        signal.kind.as_str(),
    );
    if let Some(about) = &signal.about {
        line.push_str(&format!("  {}", text::line(about).text));
    }
    if let Some(reason) = &signal.reason {
        line.push_str(&format!("  {}", text::line(reason).text));
    }
    if signal.delivered_to.is_some() && signal.delivered_at.is_none() {
        line.push_str(&format!("  {WARNING}waits{WARNING:#}"));
    }
    let mut line = line.trim_end().to_owned();
    line.push('\n');
    line
}
