//! What is written down of a roll back, an undo or a change before anything is touched.

use safepoint_model::ActionId;

use super::journal::{self, PathText};
use super::{Goal, Journal, Mutating, Phase, Told, describe};
use crate::StateError;
use crate::identity::Marks;
use crate::scope::Scope;
use crate::snapshot::{Snapshot, SnapshotId};
use crate::state::{State, Workspace};

impl State {
    pub(super) fn journal(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        scope: &Scope,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Journal, StateError> {
        let (verb, restored_to, undoes) = match goal {
            Goal::Snapshot { snapshot, .. } => ("rollback", Some(snapshot.id.clone()), None),
            Goal::Without { action, verb } => (*verb, None, Some(action.id.clone())),
            Goal::Brought(_) => ("integrate", None, None),
        };
        let (action, errand) = match goal {
            Goal::Brought(incoming) => {
                (incoming.errand.id.clone(), Some(Told::of(incoming.errand)))
            }
            _ => (ActionId::generate(&*self.around.entropy)?, None),
        };
        Ok(Journal {
            format: journal::FORMAT,
            phase: Phase::Staging,
            workspace: PathText::of(&workspace.root),
            directory: Marks::of(&workspace.root),
            patterns: workspace.rules.patterns().clone(),
            providers: workspace.providers.clone(),
            scope: scope.to_stored(),
            before: before.id.clone(),
            after: after.id.clone(),
            record: after.record.clone(),
            action,
            verb: verb.to_owned(),
            summary: describe(goal),
            restored_to,
            undoes,
            mutating: None,
            errand,
            taking_back: None,
        })
    }

    /// The journal of a change: whatever becomes of it, what was there before comes back.
    pub(crate) fn journal_of_mutation(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        before: &Snapshot,
        action: &ActionId,
        summary: String,
        mutating: Mutating,
    ) -> Result<Journal, StateError> {
        Ok(Journal {
            format: journal::FORMAT,
            phase: Phase::Staging,
            workspace: PathText::of(&workspace.root),
            directory: Marks::of(&workspace.root),
            patterns: workspace.rules.patterns().clone(),
            providers: workspace.providers.clone(),
            scope: scope.to_stored(),
            before: before.id.clone(),
            after: SnapshotId::generate(self.now(), &*self.around.entropy)?,
            record: before.record.clone(),
            action: action.clone(),
            verb: "mutate".to_owned(),
            summary,
            restored_to: None,
            undoes: None,
            mutating: Some(mutating),
            errand: None,
            taking_back: None,
        })
    }
}

/// The workspace of a journal.
pub(super) fn workspace_of(journal: &Journal) -> Result<Workspace, StateError> {
    Ok(Workspace {
        root: journal.workspace.to_path(),
        rules: crate::scan::Rules::new(journal.patterns.clone())?,
        providers: journal.providers.clone(),
    })
}
