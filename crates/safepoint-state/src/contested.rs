//! Files that two actions wrote while both went on. Nobody knows what of them is whose, so neither
//! is taken back without a word: that is a conflict.

use std::collections::BTreeMap;

use crate::StateError;
use crate::path::TreePath;
use crate::record::notable_changes;
use crate::snapshot::{self, Action, Snapshot};
use crate::state::State;
use crate::tree::{Change, Trees};

/// An agent that a person started: what its calls did is told of them, and of it.
const AGENT_RUN: &str = "agent.run";

/// The other action that wrote a path, by its id.
pub(crate) type Contested = BTreeMap<TreePath, String>;

impl State {
    /// Of what an action changed between two states, what another one claims that went on at the
    /// same time.
    pub(crate) fn contested(
        &self,
        trees: &dyn Trees,
        action: &Action,
        (before, after): (&Snapshot, &Snapshot),
    ) -> Result<Contested, StateError> {
        let mut contested = Contested::new();
        if is_apart(action) {
            return Ok(contested);
        }
        let own = changed_files(trees, before, after)?;
        if own.is_empty() {
            return Ok(contested);
        }
        let sources = self.sources(&after.workspace)?;
        let later = self
            .trail
            .store()
            .read(|sql| snapshot::actions_since(sql, &sources, before.created))?;
        for other in later
            .iter()
            .filter(|it| it.id != action.id && !is_apart(it))
        {
            // The name of a state begins with its time.
            if moment(other.before.as_str()) > moment(after.id.as_str()) {
                continue;
            }
            let found = self
                .find(other.before.as_str())
                .and_then(|began| Ok((began, self.find(other.after.as_str())?)));
            let (began, ended) = match found {
                Ok(found) => found,
                Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => continue,
                Err(error) => return Err(error),
            };
            if began.created >= after.created || before.created >= ended.created {
                continue;
            }
            for path in changed_files(trees, &began, &ended)? {
                if own.contains(&path) {
                    contested.insert(path, other.id.to_string());
                }
            }
        }
        Ok(contested)
    }
}

fn is_apart(action: &Action) -> bool {
    action.is_observed() || action.action == AGENT_RUN
}

fn moment(id: &str) -> &str {
    id.rsplit_once('_').map_or(id, |(moment, _)| moment)
}

/// The paths of all changes but those of directories.
fn changed_files(
    trees: &dyn Trees,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<TreePath>, StateError> {
    let is_file = |change: &Change| {
        let is_directory = |side: &Option<crate::tree::Entry>| {
            side.as_ref().is_some_and(|entry| entry.subtree().is_some())
        };
        !is_directory(&change.from) && !is_directory(&change.to)
    };
    let changes = notable_changes(trees, before, after)?;
    let files = changes.into_iter().filter(is_file);
    Ok(files.map(|change| change.path).collect())
}
