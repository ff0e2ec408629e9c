//! What can go wrong with a workspace.

use safepoint_model::{EntropyError, WorkspaceId, json, text};
use safepoint_state::{Note, StateError};
use safepoint_store::StoreError;
use safepoint_trail::TrailError;

use crate::state::IllegalMove;

/// Why something was not done. What was refused by a rule is in the trail all the same.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// There is no such thing.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// The beginning of an id fits several.
    #[error("more than one {what} begins with `{prefix}`")]
    Ambiguous {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        prefix: String,
    },
    /// The life of a workspace does not have this move.
    #[error(transparent)]
    Move(#[from] IllegalMove),
    /// The token is not the one of the agent that the workspace is bound to.
    #[error("the token is not that of the agent of `{0}`; a migration makes a new one")]
    NotTheAgent(WorkspaceId),
    /// Something is not where this could be done.
    #[error("{0}")]
    Unfit(String),
    /// What was asked for cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// A rule says no.
    #[error("{0}")]
    Refused(String),
    /// Work would be lost that no checkpoint holds.
    #[error(
        "the directory of `{id}` has work that no checkpoint holds: {}",
        named(paths)
    )]
    Unheld {
        /// Whose directory.
        id: String,
        /// What, and why no checkpoint holds it.
        paths: Vec<Note>,
    },
    /// What is stored is not what was written.
    #[error("the {what} `{id}` was changed behind our back")]
    Tampered {
        /// What kind of thing.
        what: &'static str,
        /// Which one.
        id: String,
    },
    /// A record has no canonical form.
    #[error("the checkpoint cannot be written as canonical JSON")]
    Canonical(#[from] json::WriteError),
    /// A directory could not be looked at or changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trail failed.
    #[error(transparent)]
    Trail(#[from] TrailError),
    /// No random bytes.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

/// Refuses a text from outside that not every database can keep.
pub(crate) fn without_nul(what: &str, text: Option<&str>) -> Result<(), ProgressError> {
    match text.is_some_and(|text| text.contains('\0')) {
        true => Err(ProgressError::Invalid(format!(
            "{what} holds no NUL character; leave it out"
        ))),
        false => Ok(()),
    }
}

/// So many paths are named.
const MOST_NAMED: usize = 5;

fn named(paths: &[Note]) -> String {
    let one = |note: &Note| text::line(&format!("`{}` ({})", note.path, note.why)).text;
    let mut shown: Vec<String> = paths.iter().take(MOST_NAMED).map(one).collect();
    let more = paths.len().saturating_sub(MOST_NAMED);
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}
