//! Whose work an agent's roll back would take away. Its own goes without asking; what a person
//! did, or another session, a person decides about.

use std::collections::BTreeSet;

use safepoint_control::pass::{Answer, Leave, Stdin};
use safepoint_model::{Timestamp, text};
use safepoint_state::path::TreePath;
use safepoint_state::scope::{Cover, Scope};
use safepoint_state::{
    Action, Goal, Progress, Selection, State, StateError, Workspace, taken_back,
};

use crate::commands::agents::{KEPT_AGENT, WORKS_SINCE};
use crate::commands::mcp::AGENT as MCP_AGENT;
use crate::commands::passing::{Flags, Room};
use crate::commands::session::deliver;
use crate::context::Context;
use crate::error::{CliError, FailedReply};

/// So far back is looked for whose work it is.
const LOOKED_AT: u32 = 1_000;
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
    let paths: BTreeSet<TreePath> = preview.changes.iter().map(|it| it.path.clone()).collect();
    let caller = Caller::of(context)?;
    let others = others_work(state, workspace, goal, &caller, &paths)?;
    if others.is_empty() {
        return Ok(None);
    }
    let flags = Flags::of_session(caller.session);
    let room = Room::open(context, &flags)?;
    let mut named: Vec<String> = others.iter().take(NAMED).cloned().collect();
    if others.len() > NAMED {
        named.push(format!("{} more", others.len() - NAMED));
    }
    let because = format!(
        "it takes back work that is not this session's: {}",
        named.join("; ")
    );
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
        let of_hooks = match agent.as_str() {
            MCP_AGENT | KEPT_AGENT => context.control()?.sessions_of_client()?,
            _ => Vec::new(),
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
    paths: &BTreeSet<TreePath>,
) -> Result<Vec<String>, CliError> {
    let snapshot = match goal {
        Goal::Without { action, .. } if caller.did(action) => return Ok(Vec::new()),
        Goal::Without { action, .. } => return Ok(vec![describe(action)]),
        Goal::Brought(_) => return Ok(Vec::new()),
        Goal::Snapshot { snapshot, .. } => snapshot,
    };
    let mut found = Vec::new();
    if caller.since.is_none() && is_changed_unseen(state, workspace, paths)? {
        found.push("changes that nobody has told of yet".to_owned());
    }
    let actions = state.actions(&workspace.root, LOOKED_AT)?;
    let taken = taken_back(&actions);
    let later = actions.iter().filter(|it| it.time > snapshot.created);
    for action in later.filter(|it| !caller.did(it) && !taken.contains_key(&it.id)) {
        if action.before != action.after && touches(state, action, paths)? {
            found.push(describe(action));
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

/// Whether an action changed one of these paths. One whose states are gone may have.
fn touches(state: &State, action: &Action, paths: &BTreeSet<TreePath>) -> Result<bool, StateError> {
    let changes = || {
        let before = state.find(action.before.as_str())?;
        let after = state.find(action.after.as_str())?;
        state.changes_between(&before, &after)
    };
    match changes() {
        Ok(changes) => Ok(changes.iter().any(|change| paths.contains(&change.path))),
        Err(StateError::NotFound { .. }) => Ok(true),
        Err(error) => Err(error),
    }
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
