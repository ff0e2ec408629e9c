//! What can go wrong with snapshots.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use safepoint_database::DatabaseError;
use safepoint_model::EntropyError;
use safepoint_store::{Cause, StoreError};
use safepoint_trail::TrailError;

use crate::git::GitError;
use crate::seal::SealError;
use crate::undo::FileConflict;

/// How a program that others chose came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// By itself, or it never began.
    #[default]
    ByItself,
    /// Somebody interrupted it.
    Interrupted,
    /// It took too long.
    TimedOut,
}

/// So many ids that begin alike are counted.
pub(crate) const MOST_ALIKE: usize = 20;

fn at_most(count: usize) -> String {
    match count > MOST_ALIKE {
        true => format!("more than {MOST_ALIKE}"),
        false => count.to_string(),
    }
}

/// Why something could not be captured, compared or restored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StateError {
    /// A file or directory of the user's could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        error: Arc<std::io::Error>,
    },
    /// A directory of the user's may not be written.
    #[error("the directory `{}` cannot be written", directory.display())]
    Unwritable {
        /// Which.
        directory: PathBuf,
        /// Why not.
        #[source]
        cause: Cause,
    },
    /// What was stored is not what is there now.
    #[error("`{}` is damaged: {why}", path.display())]
    Damaged {
        /// The file of the object store.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The row of a checkpoint or an action is not the one that the trail tells of.
    #[error("the {what} `{name}` was changed behind our back")]
    Tampered {
        /// What it is.
        what: &'static str,
        /// Which.
        name: String,
    },
    /// An object that should be stored is not.
    #[error("the content {id} is not in the object store")]
    Missing {
        /// Which.
        id: crate::ContentId,
    },
    /// A roll back could not begin, and nothing was touched.
    #[error("checkpoint `{id}` cannot be restored, and nothing was touched")]
    Unrestorable {
        /// Which checkpoint.
        id: String,
        /// What is wrong with it.
        #[source]
        error: Box<StateError>,
    },
    /// A file went on changing while it was read.
    #[error("`{}` goes on changing while it is read", path.display())]
    Torn {
        /// Which.
        path: PathBuf,
    },
    /// Something is not what a plan saw. Nothing was touched.
    #[error("`{}` is not what it was when the change was planned, and nothing was touched", path.display())]
    Stale {
        /// Which.
        path: PathBuf,
    },
    /// Somebody changed what was about to be replaced. What had been done was taken back.
    #[error(
        "{} changed by somebody else meanwhile: what had been done was taken back, and that change was kept",
        named(paths)
    )]
    Changed {
        /// What was changed.
        paths: Vec<PathBuf>,
    },
    /// The scope matches nothing.
    #[error("the scope `{scope}` matches nothing")]
    EmptyScope {
        /// As it was given.
        scope: String,
    },
    /// What is asked for was left out of the checkpoint.
    #[error("no checkpoint holds `{path}`, so it cannot be brought back: {why}")]
    NotHeld {
        /// Which.
        path: String,
        /// Why it was left out.
        why: String,
    },
    /// The scope cannot be understood.
    #[error("the scope `{scope}` cannot be used: {why}")]
    BadScope {
        /// As it was given.
        scope: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no checkpoint of this name.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// As it was given.
        name: String,
    },
    /// The beginning of an id fits more than one.
    #[error("`{prefix}` is the beginning of {} {what} ids", at_most(*count))]
    Ambiguous {
        /// What kind of thing.
        what: &'static str,
        /// As it was given.
        prefix: String,
        /// How many it fits; more than [`MOST_ALIKE`] are not counted.
        count: usize,
    },
    /// The checkpoint has expired.
    #[error("checkpoint `{id}` expired at {expiry}")]
    Expired {
        /// Which.
        id: String,
        /// When.
        expiry: String,
    },
    /// Taking a change out would destroy a later one.
    #[error("{} later changed in the same places", files_changed(conflicts))]
    Conflict {
        /// Where.
        conflicts: Vec<FileConflict>,
    },
    /// There is nothing of an action that could be taken back.
    #[error("nothing that `{action}` ({summary}) did is left to take back: {why}")]
    NothingLeft {
        /// Which.
        action: String,
        /// What it was.
        summary: String,
        /// Where it went.
        why: String,
    },
    /// Nobody knows how much of what an action is booked with is its own.
    #[error("{why}")]
    Unattributed {
        /// Which action.
        action: String,
        /// What is not known.
        why: String,
    },
    /// All that there is to take back is what nobody asked for.
    #[error(
        "there is no action to take back in `{}`: what is left are changes that nobody asked for",
        workspace.display()
    )]
    OnlyObserved {
        /// Where.
        workspace: PathBuf,
        /// The newest of those changes.
        newest: String,
    },
    /// Another process works on the same workspace or object store.
    #[error("{what} is in use by another process")]
    Busy {
        /// What is held.
        what: String,
    },
    /// Something else is in the place of a file or directory of ours.
    #[error(
        "cannot use `{}`: it is a link, or something else that Safepoint has not made",
        path.display()
    )]
    NotOurs {
        /// Where.
        path: PathBuf,
    },
    /// A client's file tool relies on where names lead that would move.
    #[error(
        "nothing may move in `{}` now: a file tool or an approved line of {keeper} is at work there, or asks a person first",
        workspace.display()
    )]
    Frozen {
        /// Where.
        workspace: PathBuf,
        /// Whose tool it is.
        keeper: String,
    },
    /// The store would grow beyond its cap.
    #[error("the object store has {used} bytes and may not have more than {cap}")]
    CapReached {
        /// What it has now.
        used: u64,
        /// What it may have.
        cap: u64,
    },
    /// Objects that several machines share are not collected.
    #[error(
        "objects that several machines share are not collected: another machine may be about to refer to them"
    )]
    NotCollected,
    /// A checkpoint that somebody named is not deleted.
    #[error("checkpoint `{id}` is not deleted: {because}")]
    NotDeleted {
        /// Which.
        id: String,
        /// Why.
        because: crate::collect::KeepReason,
    },
    /// The checkpoint belongs to another directory.
    #[error("checkpoint `{id}` is of `{}`, not of `{}`", theirs.display(), here.display())]
    OtherWorkspace {
        /// Which.
        id: String,
        /// Where it was made.
        theirs: PathBuf,
        /// Where it was asked for.
        here: PathBuf,
    },
    /// What was recorded of a path is of another directory than the one that is there now.
    #[error(
        "another directory is at `{}` than the one that this was recorded of, and nothing was touched",
        workspace.display()
    )]
    OtherDirectory {
        /// Where.
        workspace: PathBuf,
    },
    /// A directory is said to have been moved, and is where it was.
    #[error("`{}` was not moved: it is still there", from.display())]
    NotMoved {
        /// Which.
        from: PathBuf,
    },
    /// After restoring, the tree is not what it should be.
    #[error("the restored tree is not that of the checkpoint: {why}")]
    NotIdentical {
        /// What differs.
        why: String,
    },
    /// Something that a snapshot cannot hold.
    #[error("{0}")]
    Unsupported(String),
    /// Whoever was asked for leave did not give it.
    #[error("{why}")]
    NoLeave {
        /// Why.
        why: String,
    },
    /// There is no checkpoint that allows a change.
    #[error("{}: {why}", refusal(checkpoint))]
    CheckpointRequired {
        /// As it was given.
        checkpoint: String,
        /// Why not.
        why: String,
    },
    /// A target that no checkpoint of this workspace can cover.
    #[error("`{target}` lies outside the workspace, where no checkpoint of it reaches")]
    OutOfReach {
        /// As it was given.
        target: String,
    },
    /// What no change may touch.
    #[error("`{path}` may not be changed: {why}")]
    Protected {
        /// Where.
        path: String,
        /// Why not.
        why: String,
    },
    /// A target that cannot be one.
    #[error("`{target}` cannot be the target: {why}")]
    BadTarget {
        /// As it was given.
        target: String,
        /// Why not.
        why: String,
    },
    /// An operation that does not fit what is there.
    #[error("`{target}`: {why}")]
    Inapplicable {
        /// On what.
        target: String,
        /// Why not.
        why: String,
        /// What would help; may be empty.
        suggestion: String,
    },
    /// Another program has a lock on the target.
    #[error("`{}` is locked by another process", path.display())]
    TargetLocked {
        /// Which.
        path: PathBuf,
    },
    /// A command that was the change failed.
    #[error("`{command}` failed: {why}")]
    CommandFailed {
        /// Which.
        command: String,
        /// How.
        why: String,
        /// Whether it ended by itself.
        ending: Ending,
    },
    /// A check says that the change does not hold.
    #[error("the check `{check}` failed: {why}")]
    CheckFailed {
        /// Which.
        check: String,
        /// How.
        why: String,
        /// Whether it ended by itself.
        ending: Ending,
    },
    /// A change failed, and some of it is still there.
    #[error("{error}; what it wrote is still there{}: {why}", listed(paths))]
    StillThere {
        /// Why it failed.
        error: Box<StateError>,
        /// Where, as far as that is known.
        paths: Vec<String>,
        /// Why it was not taken back.
        why: String,
    },
    /// A change failed, and not everything is as it was before it.
    #[error("{error}; {difference}")]
    NotAsBefore {
        /// Why it failed.
        error: Box<StateError>,
        /// What differs.
        difference: String,
    },
    /// A change destroyed what no checkpoint holds.
    #[error("the change changed or deleted what no checkpoint holds: {}", paths.join(", "))]
    Lost {
        /// What.
        paths: Vec<String>,
    },
    /// Something changed that was not meant to.
    #[error("the change touched more than its target: {}", paths.join(", "))]
    SideEffects {
        /// What.
        paths: Vec<String>,
    },
    /// A database could not be captured or brought back.
    #[error(transparent)]
    Database(Arc<DatabaseError>),
    /// The commands that own a state failed.
    #[error("the provider of `state:{key}` failed: {why}")]
    Provider {
        /// Which state.
        key: String,
        /// What was run.
        command: String,
        /// How it failed.
        why: String,
        /// Whether it ended by itself.
        ending: Ending,
    },
    /// Git could not do its part.
    #[error(transparent)]
    Git(#[from] Arc<GitError>),
    /// A secret could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] Arc<SealError>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trail failed.
    #[error(transparent)]
    Trail(#[from] Arc<TrailError>),
    /// No random bytes.
    #[error("{0}")]
    Entropy(String),
}

fn refusal(checkpoint: &str) -> String {
    match checkpoint.is_empty() {
        true => "a change needs a checkpoint".to_owned(),
        false => format!("checkpoint `{checkpoint}` allows no change here"),
    }
}

fn named(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .take(3)
        .map(|path| format!("`{}`", path.display()))
        .collect();
    let verb = if paths.len() == 1 { "was" } else { "were" };
    match paths.len().saturating_sub(names.len()) {
        0 => format!("{} {verb}", names.join(", ")),
        more => format!("{} and {more} more {verb}", names.join(", ")),
    }
}

fn files_changed(conflicts: &[FileConflict]) -> String {
    let names: Vec<String> = conflicts
        .iter()
        .take(3)
        .map(|conflict| format!("`{}`", crate::path::display(&conflict.path)))
        .collect();
    let more = conflicts.len().saturating_sub(names.len());
    match more {
        0 => names.join(", "),
        _ => format!("{} and {more} more", names.join(", ")),
    }
}

/// These paths, as part of a sentence.
fn listed(paths: &[String]) -> String {
    match paths.is_empty() {
        true => String::new(),
        false => format!(" in {}", shortened(paths)),
    }
}

/// The first of these names, and how many more there are.
pub(crate) fn shortened(names: &[String]) -> String {
    const MOST_NAMES: usize = 5;
    match names.len().saturating_sub(MOST_NAMES) {
        0 => names.join(", "),
        more => {
            let first = names.get(..MOST_NAMES).unwrap_or_default();
            format!("{} and {more} more", first.join(", "))
        }
    }
}

impl StateError {
    pub(crate) fn file(
        action: &'static str,
        path: impl AsRef<Path>,
        error: impl Into<std::io::Error>,
    ) -> Self {
        Self::File {
            action,
            path: path.as_ref().to_owned(),
            error: Arc::new(error.into()),
        }
    }

    /// The same error, with a path inside the workspace made whole.
    pub(crate) fn under(self, workspace: &Path) -> Self {
        match self {
            Self::File {
                action,
                path,
                error,
            } => Self::File {
                action,
                path: workspace.join(path),
                error,
            },
            Self::Torn { path } => Self::Torn {
                path: workspace.join(path),
            },
            other => other,
        }
    }

    pub(crate) fn damaged(path: &Path, why: String) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            why,
        }
    }
}

impl From<TrailError> for StateError {
    fn from(error: TrailError) -> Self {
        match error {
            TrailError::Store(error) => Self::Store(error),
            other => Self::Trail(Arc::new(other)),
        }
    }
}

impl From<GitError> for StateError {
    fn from(error: GitError) -> Self {
        Self::Git(Arc::new(error))
    }
}

impl From<SealError> for StateError {
    fn from(error: SealError) -> Self {
        Self::Seal(Arc::new(error))
    }
}

impl From<EntropyError> for StateError {
    fn from(error: EntropyError) -> Self {
        Self::Entropy(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_03_many_ids_that_begin_alike_are_not_counted() {
        let told = |count| {
            let (what, prefix) = ("checkpoint", "chk".to_owned());
            StateError::Ambiguous {
                what,
                prefix,
                count,
            }
            .to_string()
        };
        assert_eq!(told(20), "`chk` is the beginning of 20 checkpoint ids");
        assert_eq!(
            told(21),
            "`chk` is the beginning of more than 20 checkpoint ids"
        );
    }
}
