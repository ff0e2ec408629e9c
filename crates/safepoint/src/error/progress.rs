//! Errors of workspaces and tasks, explained.

use safepoint_model::Code;
use safepoint_progress::ProgressError;

use super::{Explanation, store, trail};

pub(super) fn explain(error: &ProgressError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        ProgressError::NotFound { what, name } => (
            Code::NotFound,
            Some(name.clone()),
            hint(match *what {
                "role" => {
                    "the base roles are `worker` and `observer`; others come from the taxonomy of the run"
                }
                "task" => "`safepoint task list` shows the tasks",
                "checkpoint" => "`safepoint workspace log` shows the checkpoints of a workspace",
                _ => "`safepoint workspace list` shows the workspaces",
            }),
        ),
        ProgressError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        ProgressError::Move(_) => (
            Code::WorkspaceState,
            None,
            hint("`safepoint workspace show` tells where it stands; a pause ends where it began"),
        ),
        ProgressError::NotTheAgent(id) => (
            Code::AuthenticationFailed,
            Some(id.to_string()),
            hint("`safepoint workspace migrate` makes a new token, and the old one stops counting"),
        ),
        ProgressError::Unfit(_) => (
            Code::WorkspaceState,
            None,
            hint(
                "`safepoint workspace show` tells where a workspace stands, `safepoint task show` where a task does",
            ),
        ),
        ProgressError::Invalid(_) => (Code::InvalidInput, None, None),
        ProgressError::Refused(_) => (Code::ConstraintViolated, None, None),
        ProgressError::Unheld { id, .. } => (
            Code::ConstraintViolated,
            Some(id.clone()),
            hint("take out what is wanted; then `--discard` removes the directory with the rest"),
        ),
        ProgressError::Tampered { id, .. } => (
            Code::RecordTampered,
            Some(id.clone()),
            hint("`safepoint workspace verify` names the first bad one; nothing is built upon it"),
        ),
        ProgressError::Canonical(_) => (
            Code::InvalidInput,
            None,
            hint("numbers must be finite and integers within ±(2^53 − 1)"),
        ),
        ProgressError::State(error) => super::state::explain(error),
        ProgressError::Store(error) => store::explain(error),
        ProgressError::Trail(error) => trail::explain(error),
        ProgressError::Entropy(_) => (Code::Internal, None, None),
    }
}
