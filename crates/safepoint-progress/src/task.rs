//! Tasks: what is to be done, and how far it is.

use std::collections::BTreeSet;

use safepoint_model::{RecordId, TaskId, Timestamp, WorkspaceId};
use serde::Serialize;

use crate::words::words;

words! {
    /// How far a task is.
    TaskState, "state of a task":
    /// Proposed.
    Draft = "draft",
    /// To be done.
    Pending = "pending",
    /// Given to a workspace.
    Assigned = "assigned",
    /// Somebody is at it.
    InProgress = "in_progress",
    /// There is a final record.
    Completed = "completed",
    /// It did not work; it can be tried again.
    Failed = "failed",
    /// Its result was taken over. Nothing follows.
    Integrated = "integrated",
    /// Nobody wants it any more. Nothing follows.
    Cancelled = "cancelled",
}

impl TaskState {
    /// Whether nothing can follow.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Integrated | Self::Cancelled)
    }

    /// Whether what waits for it can begin.
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Completed | Self::Integrated)
    }

    /// Whether `to` may follow.
    pub const fn may_become(self, to: Self) -> bool {
        match (self, to) {
            (Self::Draft, Self::Pending)
            | (Self::Pending, Self::Assigned)
            | (Self::Assigned, Self::InProgress | Self::Failed)
            | (Self::InProgress, Self::Completed | Self::Failed)
            // The parent may refuse a result that its agent found complete.
            | (Self::Completed, Self::Integrated | Self::Failed)
            | (Self::Failed, Self::Pending) => true,
            (from, Self::Cancelled) => !from.is_terminal(),
            _ => false,
        }
    }
}

/// Whether one gets from `start` to `end`, or is there, by what each task waits for.
pub(crate) fn leads_to<E>(
    start: &TaskId,
    end: &TaskId,
    mut waits_for: impl FnMut(&TaskId) -> Result<Vec<TaskId>, E>,
) -> Result<bool, E> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![start.clone()]);
    while let Some(task) = next.pop() {
        if task == *end {
            return Ok(true);
        }
        if !seen.contains(&task) {
            next.extend(waits_for(&task)?);
            seen.insert(task);
        }
    }
    Ok(false)
}

/// One task, as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Its identifier.
    pub task_id: TaskId,
    /// What is to be done.
    pub title: String,
    /// How far it is.
    pub status: TaskState,
    /// What must be completed before it can be assigned.
    pub dependencies: Vec<TaskId>,
    /// Every workspace that it was given to, in order; the last one counts.
    pub workspace_history: Vec<WorkspaceId>,
    /// Its result.
    pub checkpoint_ref: Option<RecordId>,
    /// When it was made.
    pub created: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_34_exactly_the_listed_moves_are_legal() {
        let listed = "draft>pending draft>cancelled pending>assigned pending>cancelled assigned>in_progress \
             assigned>failed assigned>cancelled in_progress>completed in_progress>failed in_progress>cancelled \
             completed>integrated completed>failed completed>cancelled failed>pending failed>cancelled";
        let listed: Vec<&str> = listed.split_whitespace().collect();
        let mut found = 0;
        for from in TaskState::ALL {
            for to in TaskState::ALL {
                let name = format!("{from}>{to}");
                assert_eq!(
                    from.may_become(*to),
                    listed.contains(&name.as_str()),
                    "{name}"
                );
                found += usize::from(from.may_become(*to));
            }
        }
        assert_eq!(found, listed.len());
    }
}
