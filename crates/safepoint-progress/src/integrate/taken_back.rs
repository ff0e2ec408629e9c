//! Integrations that somebody took back afterwards: by an undo, or by rolling the whole
//! directory back to a state from before them.
//!
//! The states of workspaces and tasks say what happened, and stay: closed is closed. That it
//! was taken back happened too, in the directory, and whoever looks has to be told. A roll back
//! of single paths is not looked at: it takes a part back at most.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, Timestamp, WorkspaceId};
use safepoint_state::{Action, State};
use safepoint_store::Flow;
use safepoint_trail::{Entry, Query};
use serde_json::Value;

use crate::{Progress, ProgressError, table};

/// So many actions of a directory are looked through.
const MOST_ACTIONS: u32 = 10_000;

/// An action in a directory, with the state that it rolled the whole of it back to.
struct Happened {
    action: Action,
    to: Option<Former>,
}

/// A checkpoint, and when it was made.
struct Former {
    id: String,
    made: Timestamp,
}

/// Where the work of one integration is.
#[derive(Clone, PartialEq, Eq)]
enum Work {
    /// It has not come yet.
    Awaited,
    /// In the directory.
    Here,
    /// No longer, by this action.
    TakenBack(ActionId),
}

impl Progress {
    /// Whether any work was ever brought into a directory.
    pub fn took_over(&self) -> Result<bool, ProgressError> {
        let all = self
            .trail
            .store()
            .read(|sql| Ok::<_, ProgressError>(table::takeovers(sql)?))?;
        Ok(!all.is_empty())
    }

    /// The workspaces whose work was taken over and then taken back, with the action that did.
    pub fn taken_back(
        &self,
        state: &State,
    ) -> Result<BTreeMap<WorkspaceId, ActionId>, ProgressError> {
        let all = self
            .trail
            .store()
            .read(|sql| Ok::<_, ProgressError>(table::takeovers(sql)?))?;
        let mut directories: BTreeMap<PathBuf, Vec<Happened>> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (source, action) in all {
            let Ok(done) = state.find_action(action.as_str()) else {
                continue; // it was meant, and something came in between
            };
            if !directories.contains_key(&done.workspace) {
                let happened = self.happened(state, &done.workspace)?;
                directories.insert(done.workspace.clone(), happened);
            }
            let happened = directories.get(&done.workspace).map(Vec::as_slice);
            match follow(&action, happened.unwrap_or_default()) {
                Work::TakenBack(by) => found.insert(source, by),
                Work::Awaited | Work::Here => found.remove(&source),
            };
        }
        Ok(found)
    }

    /// What happened in a directory, the oldest first.
    fn happened(&self, state: &State, directory: &Path) -> Result<Vec<Happened>, ProgressError> {
        let actions = state.actions(directory, MOST_ACTIONS)?;
        let is_roll_back = |action: &Action| action.action == "checkpoint.rollback";
        let mut to = match actions.iter().any(is_roll_back) {
            true => self.rolled_back(directory)?,
            false => BTreeMap::new(),
        };
        let happened = actions.into_iter().rev().map(|action| Happened {
            to: to.remove(&action.id),
            action,
        });
        Ok(happened.collect())
    }

    /// The states that roll backs of the whole directory led to. The trail tells of them also
    /// when they are no longer kept.
    fn rolled_back(&self, directory: &Path) -> Result<BTreeMap<ActionId, Former>, ProgressError> {
        let mut led_to: Vec<(ActionId, String, String)> = Vec::new();
        self.told(directory, "rolled_back", |entry, body| {
            let text = |name: &str| Some(body.get(name)?.as_str()?.to_owned());
            if let (Some(action), Some(to), Some(after)) =
                (&entry.action_id, text("restored_to"), text("after"))
            {
                led_to.push((action.clone(), to, after));
            }
        })?;
        let mut made: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut partial: BTreeSet<String> = BTreeSet::new();
        self.told(directory, "checkpoint_created", |entry, body| {
            let id = body.get("checkpoint_id").and_then(Value::as_str);
            let scope = body.get("scope").and_then(Value::as_array);
            let id = id.unwrap_or_default().to_owned();
            if scope.is_none_or(|scope| !scope.is_empty()) {
                partial.insert(id.clone());
            }
            made.insert(id, entry.time);
        })?;
        let whole = led_to.into_iter().filter_map(|(action, id, after)| {
            let is_whole = made.contains_key(&after) && !partial.contains(&after);
            let made = made.get(&id).copied().filter(|_| is_whole)?;
            Some((action, Former { id, made }))
        });
        Ok(whole.collect())
    }

    /// Hands out what the trail tells of a directory.
    fn told(
        &self,
        directory: &Path,
        kind: &str,
        mut each: impl FnMut(&Entry, Value),
    ) -> Result<(), ProgressError> {
        let query = Query {
            streams: vec![safepoint_state::stream(directory)],
            kind: Some(kind.to_owned()),
            ..Query::default()
        };
        self.trail.entries(&query, |entry| {
            let body = serde_json::from_str(&self.trail.body(&entry)?);
            each(&entry, body.unwrap_or_default());
            Ok(Flow::More)
        })
    }
}

/// Where the work that an action brought is, after all that happened.
fn follow(brought: &ActionId, happened: &[Happened]) -> Work {
    let is_told = happened.iter().any(|one| one.action.id == *brought);
    let mut now = match is_told {
        true => Work::Awaited,
        false => Work::Here, // longer ago than is looked
    };
    let mut before: BTreeMap<&ActionId, Work> = BTreeMap::new();
    let mut states: BTreeMap<&str, Work> = BTreeMap::new();
    let mut since: Vec<(Timestamp, Work)> = Vec::new();
    for Happened { action, to } in happened {
        let former = now.clone();
        let undone = action.undoes.as_ref().and_then(|undone| before.get(undone));
        let leads_to = match (undone, to) {
            _ if action.id == *brought => Some(Work::Here),
            (Some(work), _) => Some(work.clone()),
            (None, Some(to)) => Some(at(to, &states, &since)),
            (None, None) => None,
        };
        now = match (leads_to, &former) {
            (Some(Work::Here), _) => Work::Here,
            (Some(_), Work::Here) => Work::TakenBack(action.id.clone()),
            _ => former.clone(),
        };
        states
            .entry(action.before.as_str())
            .or_insert(former.clone());
        states.entry(action.after.as_str()).or_insert(now.clone());
        if now != former {
            before.insert(&action.id, former);
            since.push((action.time, now.clone()));
        }
    }
    now
}

/// Where the work was in a state: what is known of that itself, or by when it was made.
fn at(state: &Former, states: &BTreeMap<&str, Work>, since: &[(Timestamp, Work)]) -> Work {
    if let Some(work) = states.get(state.id.as_str()) {
        return work.clone();
    }
    let earlier = since.iter().rev().find(|(time, _)| *time <= state.made);
    earlier.map_or(Work::Awaited, |(_, work)| work.clone())
}
