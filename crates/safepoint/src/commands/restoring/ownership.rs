//! Whose work an agent's roll back would take away. Its own goes without asking, unless everything
//! is asked about (`--checkpoint always`); what a person did, or another session, a person decides
//! about.

use std::collections::BTreeSet;

use safepoint_control::pass::{Answer, Leave, Stdin};
use safepoint_model::{Digest, Timestamp, text};
use safepoint_state::path::TreePath;
use safepoint_state::scope::{Cover, Scope};
use safepoint_state::{
    Action, Goal, Part, PartChange, Preview, Progress, Selection, Snapshot, State, StateError,
    Subject, Workspace, taken_back,
};

use crate::commands::agents::{KEPT_AGENT, KEPT_BY_RUN, WORKS_SINCE};
use crate::commands::mcp::AGENT as MCP_AGENT;
use crate::commands::passing::{Flags, Room};
use crate::commands::session::deliver;
use crate::context::Context;
use crate::error::{CliError, FailedReply};
use crate::settings::CheckpointMode;

/// So far back is looked for whose work it is.
const LOOKED_AT: u32 = 1_000;
/// What is different from when anybody last looked.
const UNTOLD: &str = "changes that nobody has told of yet";
/// So many of them are named.
const NAMED: usize = 3;

/// Leave for a roll back that an agent needed leave for.
pub(super) struct GivenLeave {
    room: Room,
    leave: Box<Leave>,
}

impl GivenLeave {
    /// Records how it ended.
    pub(super) fn conclude(self, outcome: &str) -> Result<(), CliError> {
        let passage = self.room.passage();
        Ok(passage.conclude_change(&self.leave, outcome)?)
    }
}

/// Asks for leave where an agent would take away work that is not its own. `None` where it
/// needs none.
pub(super) fn ask_for_leave(
    context: &mut Context,
    state: &State,
    workspace: &Workspace,
    goal: &Goal<'_>,
) -> Result<Option<GivenLeave>, CliError> {
    if !context.is_agent() {
        return Ok(None);
    }
    let progress = Progress::default();
    let preview = state.preview(workspace, goal, &progress)?;
    let caller = Caller::of(context)?;
    let others = others_work(state, workspace, goal, &caller, &preview)?;
    let asks_always = context.settings.checkpoint.value == CheckpointMode::Always;
    if others.is_empty() && !asks_always {
        return Ok(None);
    }
    let flags = Flags::of_session(caller.session);
    let room = Room::open(context, &flags)?;
    let mut named: Vec<String> = others.iter().take(NAMED).cloned().collect();
    if others.len() > NAMED {
        named.push(format!("{} more", others.len() - NAMED));
    }
    let because = match others.is_empty() {
        true => "it takes back work of its own session".to_owned(),
        false => format!(
            "it takes back work that is not this session's: {}",
            named.join("; ")
        ),
    };
    let operations = match goal {
        Goal::Snapshot { snapshot, .. } => vec!["rollback".to_owned(), snapshot.id.to_string()],
        Goal::Without { action, verb } => vec![(*verb).to_owned(), action.id.to_string()],
        Goal::Brought(_) => return Ok(None),
    };
    let act = room
        .passage()
        .restoring(operations, &preview.changes, &because);
    let proposal = room.proposal(context, &flags, act, Stdin::Empty)?;
    let answer = room.passage().ask(&proposal)?;
    match answer {
        Answer::Leave(leave) => Ok(Some(GivenLeave { room, leave })),
        Answer::Denied(mut denied) => {
            deliver::start(context, &room.control);
            denied.denial.reason = format!("{}: {because}", denied.denial.reason);
            let mut reply = serde_json::Map::new();
            let denial = serde_json::to_value(&denied.denial)?;
            reply.insert("rolled_back".to_owned(), false.into());
            reply.insert("denial".to_owned(), denial);
            let error = CliError::Denied(Box::new(denied.denial));
            Err(CliError::WithReply(Box::new(FailedReply { error, reply })))
        }
    }
}

/// Who asks.
struct Caller {
    session: Option<String>,
    /// All sessions that are its own.
    sessions: BTreeSet<String>,
    /// Since when what nobody is known to have changed is its own.
    since: Option<Timestamp>,
}

impl Caller {
    fn of(context: &mut Context) -> Result<Self, CliError> {
        let session = context.environment.text("SAFEPOINT_SESSION");
        let agent = context
            .environment
            .text("SAFEPOINT_AGENT")
            .unwrap_or_default();
        // A tool of an MCP server, and an agent that `run` keeps, have a session of their own
        // beside the one of the client's hooks.
        let is_kept = context.environment.path(KEPT_BY_RUN).is_some();
        let of_hooks = match is_kept || [MCP_AGENT, KEPT_AGENT].contains(&agent.as_str()) {
            true => context.control()?.sessions_of_client()?,
            false => Vec::new(),
        };
        let since = context.environment.text(WORKS_SINCE);
        // Where hooks tell what the client of a server does, the rest is not its work.
        let since = since.filter(|_| agent != MCP_AGENT || of_hooks.is_empty());
        let mut sessions: BTreeSet<String> = of_hooks.iter().map(ToString::to_string).collect();
        sessions.extend(session.clone());
        Ok(Self {
            session,
            sessions,
            since: since.and_then(|text| Timestamp::parse(&text).ok()),
        })
    }

    fn did(&self, action: &Action) -> bool {
        match &action.session {
            Some(session) => self.sessions.contains(session),
            // What was asked for without a session was asked for by a person.
            None => {
                let since = self.since.filter(|_| action.is_observed());
                since.is_some_and(|since| action.time >= since)
            }
        }
    }
}

/// What others did that the goal would take back, each in a few words.
fn others_work(
    state: &State,
    workspace: &Workspace,
    goal: &Goal<'_>,
    caller: &Caller,
    preview: &Preview,
) -> Result<Vec<String>, CliError> {
    let snapshot = match goal {
        Goal::Without { action, .. } if caller.did(action) => return Ok(Vec::new()),
        Goal::Without { action, .. } => return Ok(vec![describe(action)]),
        Goal::Brought(_) => return Ok(Vec::new()),
        Goal::Snapshot { snapshot, .. } => snapshot,
    };
    let paths: BTreeSet<TreePath> = preview.changes.iter().map(|it| it.path.clone()).collect();
    let mut found = Vec::new();
    if caller.since.is_none() && is_changed_unseen(state, workspace, &paths)? {
        found.push(UNTOLD.to_owned());
    }
    let actions = state.actions(&workspace.root, LOOKED_AT)?;
    let is_later = |action: &&Action| action.time > snapshot.created;
    let is_whole = actions.len() < LOOKED_AT as usize || !actions.iter().all(|it| is_later(&it));
    if !is_whole {
        found.push("more actions than are looked through".to_owned());
    }
    let taken = taken_back(&actions);
    let later: Vec<&Action> = actions.iter().filter(is_later).collect();
    let (own, others): (Vec<&Action>, Vec<&Action>) =
        later.into_iter().partition(|it| caller.did(it));
    let mut spans = Vec::new();
    if others.iter().any(|action| action.is_observed()) {
        for action in &own {
            spans.extend(LineSpan::of(state, action)?);
        }
    }
    for action in others.into_iter().filter(|it| !taken.contains_key(&it.id)) {
        let changes = ActionChanges::of(state, action)?;
        if changes.touch(&paths, &preview.parts, action, &spans) {
            found.push(describe(action));
        }
    }
    // What a snapshot was made of while the agent worked under it is its own, as with files.
    if caller.since.is_some_and(|since| snapshot.created >= since) {
        return Ok(found);
    }
    let has_moved_head =
        goes_back_with_head(goal) && state.has_moved_head_since(workspace, snapshot)?;
    if !has_moved_head && preview.parts.is_empty() {
        return Ok(found);
    }
    let history = OwnHistory::new(state, snapshot, &own)?;
    if has_moved_head
        && (!history.head_is_known || state.has_moved_head_since(workspace, &history.head)?)
    {
        found.push("a move of `HEAD` that is not its own".to_owned());
    }
    for change in &preview.parts {
        if history.part(&change.to) != Some(change.from.hash) {
            let name = change.from.subject.name();
            found.push(format!(
                "changes of {name} that are not known to be its own"
            ));
        }
    }
    Ok(found)
}

/// Whether one of these paths is not as it was when anybody last looked at it.
fn is_changed_unseen(
    state: &State,
    workspace: &Workspace,
    paths: &BTreeSet<TreePath>,
) -> Result<bool, CliError> {
    let snapshots = state.list(&Selection {
        workspace: Some(workspace.root.clone()),
        limit: Some(LOOKED_AT),
    })?;
    let mut left = paths.clone();
    for snapshot in snapshots {
        // One of a part of the workspace says nothing about the rest.
        let scope = Scope::stored(&snapshot.record.scope)?;
        let seen: BTreeSet<TreePath> = left
            .iter()
            .filter(|path| scope.cover(path) != Cover::Nothing)
            .cloned()
            .collect();
        if seen.is_empty() {
            continue;
        }
        let scope = Scope::of_paths(seen.iter());
        let since = state.changes_since(workspace, &snapshot, &scope, &Progress::default())?;
        if since.iter().any(|change| seen.contains(&change.path)) {
            return Ok(true);
        }
        left.retain(|path| !seen.contains(path));
        if left.is_empty() {
            return Ok(false);
        }
    }
    Ok(!left.is_empty())
}

/// Whether `HEAD` goes back too: only where all of the workspace does.
fn goes_back_with_head(goal: &Goal<'_>) -> bool {
    matches!(goal, Goal::Snapshot { scope, .. } if scope.is_everything())
}

/// What an action changed; `None` where its states are gone.
struct ActionChanges(Option<(Snapshot, Snapshot, Vec<TreePath>)>);

impl ActionChanges {
    fn of(state: &State, action: &Action) -> Result<Self, StateError> {
        let Some((before, after)) = ends_of(state, action)? else {
            return Ok(Self(None));
        };
        let changes = state.changes_of(action, &before, &after)?;
        let paths = changes.into_iter().map(|change| change.path).collect();
        Ok(Self(Some((before, after, paths))))
    }

    /// Whether one of these paths or parts is among them. One whose states are gone may have
    /// changed them. What was only observed while a line of the caller ran, and that line told of
    /// when it ended, is the line's.
    fn touch(
        &self,
        paths: &BTreeSet<TreePath>,
        parts: &[PartChange],
        action: &Action,
        spans: &[LineSpan],
    ) -> bool {
        let Some((before, after, changed)) = &self.0 else {
            return true;
        };
        let is_of_line = |path: &TreePath| {
            let mut spans = spans.iter();
            action.is_observed() && spans.any(|span| span.has(action.time, path))
        };
        let part = |one: &PartChange| {
            let subject = &one.to.subject;
            let sides = part_of(before, subject).zip(part_of(after, subject));
            sides.is_some_and(|(one, other)| one.hash != other.hash)
        };
        let mut touched = changed.iter().filter(|path| paths.contains(*path));
        touched.any(|path| !is_of_line(path)) || parts.iter().any(part)
    }
}

/// An action of the caller that has ended: how long it took, and what it told of.
struct LineSpan {
    since: Timestamp,
    until: Timestamp,
    paths: Vec<TreePath>,
}

impl LineSpan {
    fn of(state: &State, action: &Action) -> Result<Option<Self>, StateError> {
        let changes = match action.is_observed() {
            true => None,
            false => ActionChanges::of(state, action)?.0,
        };
        Ok(changes.map(|(before, _, paths)| Self {
            since: before.created,
            until: action.time,
            paths,
        }))
    }

    fn has(&self, time: Timestamp, path: &TreePath) -> bool {
        self.since < time && time <= self.until && self.paths.contains(path)
    }
}

/// What the caller's own actions have made of a snapshot, one after the other, where each begins
/// with what the one before it left.
struct OwnHistory {
    head: Snapshot,
    head_is_known: bool,
    snapshot: Snapshot,
    steps: Vec<(Snapshot, Snapshot)>,
}

impl OwnHistory {
    /// `own` has the newest first.
    fn new(state: &State, snapshot: &Snapshot, own: &[&Action]) -> Result<Self, StateError> {
        let mut history = Self {
            head: snapshot.clone(),
            head_is_known: true,
            snapshot: snapshot.clone(),
            steps: Vec::new(),
        };
        for action in own.iter().rev() {
            let Some((before, after)) = ends_of(state, action)? else {
                continue;
            };
            if state.has_moved_head(&before, &after)? {
                history.head_is_known &= !state.has_moved_head(&history.head, &before)?;
                history.head = after.clone();
            }
            history.steps.push((before, after));
        }
        Ok(history)
    }

    /// What the part was at last; `None` where somebody else changed it in between.
    fn part(&self, wanted: &Part) -> Option<Digest> {
        let mut hash = part_of(&self.snapshot, &wanted.subject).map(|part| part.hash);
        for (before, after) in &self.steps {
            let sides = part_of(before, &wanted.subject).zip(part_of(after, &wanted.subject));
            let Some((before, after)) = sides.filter(|(one, other)| one.hash != other.hash) else {
                continue;
            };
            if hash != Some(before.hash) {
                return None;
            }
            hash = Some(after.hash);
        }
        hash
    }
}

/// The states before and after an action; `None` where they are gone.
fn ends_of(state: &State, action: &Action) -> Result<Option<(Snapshot, Snapshot)>, StateError> {
    let find = || {
        Ok((
            state.find(action.before.as_str())?,
            state.find(action.after.as_str())?,
        ))
    };
    match find() {
        Ok(ends) => Ok(Some(ends)),
        Err(StateError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn part_of<'s>(snapshot: &'s Snapshot, subject: &Subject) -> Option<&'s Part> {
    let mut parts = snapshot.record.parts.iter();
    parts.find(|part| part.subject == *subject)
}

fn describe(action: &Action) -> String {
    let who = match (&action.session, action.is_observed()) {
        (Some(session), _) => session.clone(),
        (None, true) => "somebody".to_owned(),
        (None, false) => "a person".to_owned(),
    };
    format!(
        "{} ({who}: {})",
        action.id,
        text::line(&action.summary).text
    )
}
