//! Errors of checkpoints, changes and roll backs, explained.

use safepoint_model::Code;
use safepoint_state::git::GitError;
use safepoint_state::{Ending, KeepReason, StateError};

use super::{Explanation, database, file, store, trail};

pub(super) fn explain(error: &StateError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        StateError::File { path, error, .. } => file::explain(path, error),
        StateError::Unwritable { directory, .. } => (
            Code::FileFailed,
            Some(directory.display().to_string()),
            hint(
                "Safepoint writes `.checkpoints/` into the directory that it keeps: give yourself the right to write there, or work on a copy that is yours",
            ),
        ),
        StateError::Damaged { path, .. } => (
            Code::StoreCorrupted,
            Some(path.display().to_string()),
            hint(
                "restore the object store from a backup; `safepoint verify ID` tells which checkpoints are whole",
            ),
        ),
        StateError::Tampered { name, .. } => (
            Code::StateTampered,
            Some(name.clone()),
            hint("`safepoint trail list` tells what was recorded; restore the store from a backup"),
        ),
        StateError::Missing { id } => (
            Code::StoreCorrupted,
            Some(id.to_string()),
            hint("restore the object store from a backup"),
        ),
        StateError::Unrestorable { id, .. } => (
            Code::RollbackFailed,
            Some(id.clone()),
            hint(
                "the tree is untouched; `safepoint list` shows other checkpoints, `safepoint verify ID` tells whether one is whole",
            ),
        ),
        StateError::Torn { path } => (
            Code::FileUnstable,
            Some(path.display().to_string()),
            hint(
                "wait until the program that writes it is done, or leave it out with `exclude` in safepoint.yaml",
            ),
        ),
        StateError::Stale { path } => (
            Code::FileUnstable,
            Some(path.display().to_string()),
            hint("do the same again, once nothing else writes there"),
        ),
        StateError::Changed { paths } => (
            Code::FileUnstable,
            paths.first().map(|path| path.display().to_string()),
            hint("look at what was changed there, and do it again"),
        ),
        StateError::EmptyScope { scope } => (
            Code::ScopeEmpty,
            Some(scope.clone()),
            hint(if scope.starts_with("state:") {
                "check the spelling, or give it a value: `safepoint checkpoint --state NAME=JSON`"
            } else if scope.contains("://") {
                "check the spelling: the server knows no such database"
            } else {
                "check the spelling; a scope is relative to the directory you are in"
            }),
        ),
        StateError::NotHeld { path, .. } => (
            Code::ScopeEmpty,
            Some(path.clone()),
            hint("secrets come back where `checkpoint --seal-sensitive` has encrypted them"),
        ),
        StateError::BadScope { scope, .. } => (
            Code::ScopeInvalid,
            Some(scope.clone()),
            hint(match scope.is_empty() {
                true => "leave it out to mean everything, or name a file, a directory or `.`",
                false => "a scope is a file, a directory or a pattern inside the workspace",
            }),
        ),
        StateError::NotFound { name, .. } => (
            Code::NotFound,
            Some(name.clone()),
            hint("`safepoint list` shows the checkpoints, `safepoint log` the actions"),
        ),
        StateError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        StateError::Expired { id, .. } => (
            Code::CheckpointExpired,
            Some(id.clone()),
            hint("it can still be restored: add `--expired`"),
        ),
        StateError::Conflict { conflicts } => (
            Code::Conflict,
            conflicts
                .first()
                .map(|conflict| safepoint_state::path::display(&conflict.path)),
            hint(
                "nothing was changed; undo the later change first, or roll back the whole file with `safepoint rollback ID PATH`",
            ),
        ),
        StateError::NothingLeft { action, .. } => (
            Code::Conflict,
            Some(action.clone()),
            hint("nothing was changed; `safepoint log` lists what else can be taken back"),
        ),
        StateError::Unattributed { action, .. } => (
            Code::Conflict,
            Some(action.clone()),
            Some(format!(
                "`safepoint undo --dry-run {action}` shows all that would go; `safepoint undo {action}` takes it back"
            )),
        ),
        StateError::OnlyObserved { newest, .. } => (
            Code::NotFound,
            None,
            Some(format!(
                "`safepoint undo {newest}` takes back the newest of them, `safepoint log` lists all"
            )),
        ),
        StateError::Busy { .. } => (
            Code::Busy,
            None,
            hint("wait for the other process to end, then try again"),
        ),
        StateError::NotOurs { path } => (
            Code::FileFailed,
            Some(path.display().to_string()),
            hint("move it away, or delete it: what is in it is no work of Safepoint's"),
        ),
        StateError::Frozen { .. } => (
            Code::Busy,
            None,
            hint(
                "nothing was changed; try again when that call of the tool has ended: answer its question, or end the client",
            ),
        ),
        StateError::CapReached { .. } => (
            Code::StoreCapReached,
            None,
            hint(
                "a person gives space back by collecting garbage, or raises `object_cap` in the settings",
            ),
        ),
        StateError::OtherWorkspace { theirs, .. } => (
            Code::OtherWorkspace,
            Some(theirs.display().to_string()),
            hint("leave out `-C` to restore it where it was made"),
        ),
        StateError::OtherDirectory { workspace } => (
            Code::OtherWorkspace,
            Some(workspace.display().to_string()),
            Some(format!(
                "if it is the same project, a person says so in there: `{}`",
                crate::context::adopting(workspace)
            )),
        ),
        StateError::NotMoved { from } => (
            Code::OtherWorkspace,
            Some(from.display().to_string()),
            hint("`safepoint -C` that directory `list` shows its checkpoints"),
        ),
        StateError::NotIdentical { .. } => (
            Code::RollbackFailed,
            None,
            hint("`safepoint redo` brings back what was there before"),
        ),
        StateError::Unsupported(_) => (Code::Unsupported, None, None),
        StateError::NotCollected => (
            Code::Unsupported,
            None,
            hint("nothing was changed: what is in the bucket stays there"),
        ),
        StateError::NotDeleted {
            id,
            because: KeepReason::OtherWorkspace(_),
        } => (
            Code::OtherWorkspace,
            Some(id.clone()),
            hint("nothing was deleted; name its directory with `-C` to delete it there"),
        ),
        StateError::NotDeleted { id, because } => (
            Code::Conflict,
            Some(id.clone()),
            hint(match because {
                KeepReason::OtherWorkspace(_) => "nothing was deleted",
                KeepReason::Running(_) => {
                    "nothing was deleted, and `--force` does not either; try again when that action has ended"
                }
                KeepReason::Pinned => "nothing was deleted; `safepoint pin --remove ID` unpins it",
                KeepReason::WorkRecord => {
                    "nothing was deleted: work is verified and taken over with it"
                }
                KeepReason::Undo(_) => {
                    "nothing was deleted; add `--force` to give up the undo of that action"
                }
            }),
        ),
        StateError::NoLeave { .. } => (Code::ConstraintViolated, None, None),
        StateError::CheckpointRequired { checkpoint, .. } => (
            Code::CheckpointRequired,
            Some(checkpoint.clone()).filter(|given| !given.is_empty()),
            hint(
                "nothing was changed; `safepoint checkpoint` makes one, or add `--auto-checkpoint`",
            ),
        ),
        StateError::OutOfReach { target } => (
            Code::CheckpointRequired,
            Some(target.clone()),
            hint("nothing was changed; name something inside the workspace and its checkpoint"),
        ),
        StateError::Protected { path, .. } => (
            Code::ConstraintViolated,
            Some(path.clone()),
            hint("nothing was changed"),
        ),
        StateError::BadTarget { target, .. } => (
            Code::TargetInvalid,
            Some(target.clone()),
            hint("a target is a path, `state:NAME`, or the address of a database"),
        ),
        StateError::Inapplicable {
            target, suggestion, ..
        } => (
            Code::OperationFailed,
            Some(target.clone()),
            Some(match suggestion.is_empty() {
                true => "nothing was changed".to_owned(),
                false => format!("nothing was changed; {suggestion}"),
            }),
        ),
        StateError::TargetLocked { path } => (
            Code::TargetLocked,
            Some(path.display().to_string()),
            hint("nothing was changed; try again when the other process releases its lock"),
        ),
        StateError::CommandFailed {
            command, ending, ..
        } => (
            stopped(*ending).unwrap_or(Code::CommandFailed),
            Some(command.clone()),
            hint("what it had done inside the scope of the checkpoint was rolled back"),
        ),
        StateError::CheckFailed { check, ending, .. } => (
            stopped(*ending).unwrap_or(Code::VerificationFailed),
            Some(check.clone()),
            hint(
                "in the scope of the checkpoint everything is as it was, and the checkpoint is still good; `--keep-failed` keeps such a change",
            ),
        ),
        StateError::StillThere { error, paths, .. } => {
            let (code, location, _) = explain(error);
            let suggestion = match paths.is_empty() {
                false => {
                    "a warning names each path, and the command that brings back what was there before"
                }
                true => {
                    "`safepoint diff` shows what changed; `safepoint checkpoint`, or any command that writes, tries again"
                }
            };
            (code, location, hint(suggestion))
        }
        StateError::SideEffects { paths } => (
            Code::ConstraintViolated,
            paths.first().cloned(),
            hint(
                "in the scope of the checkpoint everything is as it was; without `--strict` this is only told",
            ),
        ),
        StateError::NotAsBefore { error, .. } => {
            let (code, location, suggestion) = explain(error);
            let is_of_check = matches!(
                **error,
                StateError::CheckFailed { .. }
                    | StateError::CommandFailed { .. }
                    | StateError::SideEffects { .. }
                    | StateError::Lost { .. }
            );
            let suggestion = match is_of_check {
                true => hint(
                    "what the change itself wrote was taken back, and the checkpoint is still good; the warnings say what differs",
                ),
                false => suggestion,
            };
            (code, location, suggestion)
        }
        StateError::Lost { paths } => (
            Code::ConstraintViolated,
            paths.first().cloned(),
            hint(
                "everything that a checkpoint holds was taken back; `--keep-failed` keeps such a change",
            ),
        ),
        StateError::Database(error) => database::explain(error),
        StateError::Provider {
            key,
            command,
            ending,
            ..
        } => (
            stopped(*ending).unwrap_or(Code::ProviderFailed),
            Some(format!("state:{key}")),
            Some(format!("run `{command}` by hand to see what is wrong")),
        ),
        StateError::Git(error) if matches!(**error, GitError::Foreign { .. }) => (
            Code::GitFailed,
            None,
            hint(
                "a person takes it for its own with the option `--accept-repository` of `init`; `--type file_backup` does without git",
            ),
        ),
        StateError::Git(_) => (
            Code::GitFailed,
            None,
            hint("`--type file_backup` does without git"),
        ),
        StateError::Seal(_) => (
            Code::SealFailed,
            None,
            hint("give the key with `--identity FILE`"),
        ),
        StateError::Store(error) => store::explain(error),
        StateError::Trail(error) => trail::explain(error),
        StateError::Entropy(_) => (Code::Internal, None, None),
    }
}

/// The code of a program that did not end by itself, whatever it was for.
fn stopped(ending: Ending) -> Option<Code> {
    match ending {
        Ending::ByItself => None,
        Ending::Interrupted => Some(Code::Interrupted),
        Ending::TimedOut => Some(Code::TimedOut),
    }
}
