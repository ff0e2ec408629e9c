//! Integrations that somebody took back afterwards: by an undo, or by rolling the whole
//! directory back to a state from before them.
//!
//! The states of workspaces and tasks say what happened, and stay: closed is closed. That it
//! was taken back happened too, in the directory, and whoever looks has to be told. A roll back
//! of single paths is not looked at: it takes a part back at most.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, Timestamp, WorkspaceId};
use safepoint_state::{Action, Snapshot, SnapshotId, State};
use safepoint_store::Flow;
use safepoint_trail::Query;

use crate::{Progress, ProgressError, table};

/// So many actions of a directory are looked through.
const MOST_ACTIONS: u32 = 10_000;

/// An action in a directory, with the state that it rolled the whole of it back to.
struct Happened {
    action: Action,
    to: Option<Snapshot>,
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
        let mut happened = Vec::new();
        for action in state.actions(directory, MOST_ACTIONS)?.into_iter().rev() {
            let to = match action.action.as_str() {
                "checkpoint.rollback" => self.rolled_back_to(state, &action)?,
                _ => None,
            };
            happened.push(Happened { action, to });
        }
        Ok(happened)
    }

    /// The state that a roll back led to, as the trail tells; `None` where it was one of a part.
    fn rolled_back_to(
        &self,
        state: &State,
        action: &Action,
    ) -> Result<Option<Snapshot>, ProgressError> {
        // What cannot be found or believed any more says nothing.
        let whole = state
            .find(action.after.as_str())
            .is_ok_and(|after| after.record.scope.is_empty());
        if !whole {
            return Ok(None);
        }
        let query = Query {
            action: Some(action.id.to_string()),
            kind: Some("rolled_back".to_owned()),
            ..Query::default()
        };
        let mut to = None;
        self.trail
            .entries(&query, |entry| -> Result<_, ProgressError> {
                let body: serde_json::Value =
                    serde_json::from_str(&self.trail.body(&entry)?).unwrap_or_default();
                let named = body.get("restored_to").and_then(|value| value.as_str());
                to = named.and_then(|id| state.find(id).ok());
                Ok(Flow::More)
            })?;
        Ok(to)
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
    let mut states: BTreeMap<&SnapshotId, Work> = BTreeMap::new();
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
        states.entry(&action.before).or_insert(former.clone());
        states.entry(&action.after).or_insert(now.clone());
        if now != former {
            before.insert(&action.id, former);
            since.push((action.time, now.clone()));
        }
    }
    now
}

/// Where the work was in a state: what is known of that itself, or by when it was made.
fn at(state: &Snapshot, states: &BTreeMap<&SnapshotId, Work>, since: &[(Timestamp, Work)]) -> Work {
    if let Some(work) = states.get(&state.id) {
        return work.clone();
    }
    let earlier = since.iter().rev().find(|(time, _)| *time <= state.created);
    earlier.map_or(Work::Awaited, |(_, work)| work.clone())
}
