//! Taking an action back of which nothing is left: it is said, and nothing is done.

use super::{Goal, Plan};
use crate::part::Part;
use crate::snapshot::taken_back;
use crate::state::{State, Workspace};
use crate::{StateError, path};

/// So far back is looked for what took an action back.
const LOOKED_AT: u32 = 1_000;

impl State {
    /// Refuses to take back an action when nothing of it is left. One that never changed
    /// anything is no mistake, nor is a `redo`: the next one would find the same again.
    pub(super) fn refuse_empty(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        plan: &Plan,
        (now, then): (&[Part], &[Part]),
    ) -> Result<(), StateError> {
        let Goal::Without {
            action,
            verb: "undo",
        } = goal
        else {
            return Ok(());
        };
        let was_any = plan.left.was_any || !then.is_empty();
        let is_any = plan.left.is_any || now.iter().zip(then).any(|(a, b)| !a.is_same(b));
        if !was_any || is_any || self.has_secrets(goal)? {
            return Ok(());
        }
        let recent = self.actions(&workspace.root, LOOKED_AT)?;
        let why = match (
            taken_back(&recent).get(&action.id),
            plan.left.gone.as_slice(),
        ) {
            (Some(by), _) => format!("`{by}` took it back already"),
            (None, [one]) => format!("`{}` is gone since", path::display(one)),
            (None, [one, more @ ..]) => {
                let (one, more) = (path::display(one), more.len());
                format!("`{one}` and {more} more are gone since")
            }
            (None, []) => "everything is as it was before it".to_owned(),
        };
        Err(StateError::NothingLeft {
            action: action.id.to_string(),
            summary: action.summary.clone(),
            why,
        })
    }

    fn has_secrets(&self, goal: &Goal<'_>) -> Result<bool, StateError> {
        let Goal::Without { action, .. } = goal else {
            return Ok(false);
        };
        let (before, after) = (
            self.find(action.before.as_str())?.record,
            self.find(action.after.as_str())?.record,
        );
        let mut sealed = before.sealed.iter().chain(&after.sealed);
        // What is as it was after the action has not been touched by it.
        Ok(sealed.any(|one| {
            let mark = before.mark(&one.path);
            mark.is_none() || mark != after.mark(&one.path)
        }))
    }
}
