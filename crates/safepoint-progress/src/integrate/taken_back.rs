//! Integrations that somebody undid afterwards.
//!
//! The states of workspaces and tasks say what happened, and stay: closed is closed. That it
//! was taken back happened too, in the directory, and whoever looks has to be told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use safepoint_model::{ActionId, WorkspaceId};
use safepoint_state::State;

use crate::{Progress, ProgressError, table};

/// So many actions of a directory are looked through.
const MOST_ACTIONS: u32 = 10_000;

/// What was undone in a directory, and by which action.
type Undone = BTreeMap<ActionId, ActionId>;

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
        let mut directories: BTreeMap<PathBuf, Undone> = BTreeMap::new();
        let mut found = BTreeMap::new();
        for (source, action) in all {
            let Ok(done) = state.find_action(action.as_str()) else {
                continue; // it was meant, and something came in between
            };
            if !directories.contains_key(&done.workspace) {
                let undone = undone(state, &done.workspace)?;
                directories.insert(done.workspace.clone(), undone);
            }
            let undone = directories.get(&done.workspace);
            match undone.and_then(|undone| undone.get(&action)) {
                Some(by) => found.insert(source, by.clone()),
                None => found.remove(&source),
            };
        }
        Ok(found)
    }
}

fn undone(state: &State, directory: &std::path::Path) -> Result<Undone, ProgressError> {
    let actions = state.actions(directory, MOST_ACTIONS)?;
    let redone: BTreeSet<ActionId> = actions
        .iter()
        .filter(|one| one.action == "checkpoint.redo")
        .filter_map(|one| one.undoes.clone())
        .collect();
    let undoing = actions.into_iter().filter(|one| !redone.contains(&one.id));
    Ok(undoing
        .filter_map(|one| Some((one.undoes?, one.id)))
        .collect())
}
