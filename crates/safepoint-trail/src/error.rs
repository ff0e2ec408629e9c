//! What can go wrong with the trail.

use std::path::PathBuf;

use safepoint_model::{EntropyError, json};
use safepoint_store::StoreError;

use crate::head::HeadError;
use crate::note::NoteError;
use crate::verify::Bad;

/// Why an entry could not be written, read or proved.
#[derive(Debug, thiserror::Error)]
pub enum TrailError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),

    /// The trail is not what it was.
    #[error("the trail has been tampered with: {0}")]
    Tampered(Bad),

    /// The key that signs this trail is not on this machine.
    #[error("the key that signs the trail `{origin}` is not at `{}`", path.display())]
    KeyMissing {
        /// Which log.
        origin: String,
        /// Where the key should be.
        path: PathBuf,
    },

    /// The file with the key is there, and cannot be read.
    #[error("the key of the trail `{origin}` at `{}` cannot be read", path.display())]
    KeyUnreadable {
        /// Which log.
        origin: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: std::io::Error,
    },

    /// The file with the key holds something else.
    #[error("`{}` does not hold the key of the trail `{origin}`", path.display())]
    KeyInvalid {
        /// Which log.
        origin: String,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        cause: NoteError,
    },

    /// The key that was given is that of another trail.
    #[error("the key in `{}` is not the one that signs the trail `{origin}`", path.display())]
    KeyOther {
        /// The log of the store.
        origin: String,
        /// The file.
        path: PathBuf,
    },

    /// The store at this place is empty, but a trail was kept for it here.
    #[error(
        "the store `{place}` is empty, but the trail `{origin}` with {size} entries was kept there"
    )]
    StoreLost {
        /// The store.
        place: String,
        /// The trail that is gone.
        origin: String,
        /// How many entries it had.
        size: u64,
    },

    /// A directory of tiles that cannot be continued.
    #[error("the tiles at `{}` cannot be continued: {reason}", path.display())]
    Tiles {
        /// The directory, or what in it is wrong.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A body that is not within RFC 8785.
    #[error("the body of an entry cannot be written as canonical JSON")]
    Body(#[from] json::WriteError),

    /// A body with a field that is kept for our own use.
    #[error("the body of an entry has the field `$blob`, which is reserved")]
    ReservedField,

    /// A signed head that cannot be opened.
    #[error("the head of the trail cannot be trusted")]
    Head(#[from] HeadError),

    /// Something was asked for that the trail does not have.
    #[error("the trail has no {0}")]
    NotFound(String),

    /// A prefix that fits more than one of its kind.
    #[error("`{prefix}` fits more than one {what}: {}", candidates.join(", "))]
    Ambiguous {
        /// Of what there is more than one.
        what: String,
        /// What was given.
        prefix: String,
        /// Some that it fits.
        candidates: Vec<String>,
    },

    /// No randomness for an id or a key.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

impl From<StoreError> for TrailError {
    /// What the trail itself refused inside a commit comes back as what it was.
    fn from(error: StoreError) -> Self {
        if let StoreError::Seal(cause) = &error
            && let Some(bad) = cause.downcast_ref::<Bad>()
        {
            return Self::Tampered(bad.clone());
        }
        Self::Store(error)
    }
}
