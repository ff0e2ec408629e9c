//! Everything that can go wrong with a store, told apart by what the user can do about it.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use crate::LocationError;

/// The error beneath one of ours. Shared, because all writers of one commit
/// learn the same failure.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Why a store could not be opened, read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The address of the store makes no sense.
    #[error(transparent)]
    Location(#[from] LocationError),

    /// Somebody else holds the write lock and did not let go in time.
    #[error("the store `{place}` is locked by another process")]
    Locked {
        /// The store.
        place: String,
        /// What the database said.
        #[source]
        cause: Cause,
    },

    /// The store may be read but not written.
    #[error("the store `{place}` is read-only")]
    ReadOnly {
        /// The store or file.
        place: String,
        /// What the database or the system said.
        #[source]
        cause: Cause,
    },

    /// No space is left for the store or another file that is needed.
    #[error("no space is left on {disk} for `{place}`")]
    Full {
        /// The store or file.
        place: String,
        /// Which file system is full, in words.
        disk: String,
        /// What the database or the system said.
        #[source]
        cause: Cause,
    },

    /// What is stored cannot be read as what was written.
    #[error("the store `{place}` is damaged")]
    Corrupted {
        /// The store or file.
        place: String,
        /// What the database said, or what was found.
        #[source]
        cause: Cause,
    },

    /// The file or database holds something else than a Safepoint store.
    #[error("`{place}` is not a Safepoint store")]
    Foreign {
        /// The store.
        place: String,
    },

    /// A newer Safepoint has written here.
    #[error(
        "the store `{place}` was written by a newer Safepoint: its `{component}` tables have version {found}, this one knows {known}"
    )]
    Newer {
        /// The store.
        place: String,
        /// Whose tables they are.
        component: &'static str,
        /// The version found.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },

    /// Nothing answers at the store's address.
    #[error("the store `{place}` cannot be reached")]
    Unreachable {
        /// The store.
        place: String,
        /// What the network or the database said.
        #[source]
        cause: Cause,
    },

    /// The connection was lost while it was asked to commit: the change may be kept, or not.
    #[error("nobody knows whether the store `{place}` has the change")]
    Unconfirmed {
        /// The store.
        place: String,
        /// What the network or the database said.
        #[source]
        cause: Cause,
    },

    /// A file beside the database could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: Cause,
    },

    /// A statement failed for a reason of its own: a constraint, a bug.
    #[error("a statement on the store `{place}` failed")]
    Statement {
        /// The store.
        place: String,
        /// What the database said.
        #[source]
        cause: Cause,
    },

    /// A column held another type than the one asked for.
    #[error("column {column} of a stored row is not {expected}")]
    Column {
        /// Its place in the row, from 0.
        column: usize,
        /// What was expected of it.
        expected: &'static str,
    },

    /// The change is kept, but what must follow it failed: it may not survive a
    /// power cut, or the copy outside the database lags behind.
    #[error("the change is recorded, but what follows a commit failed")]
    AfterCommit(#[source] Arc<StoreError>),

    /// The server of the shared objects does not know us, or does not let us.
    #[error("the shared objects `{place}` are refused to us")]
    DepotRefused {
        /// The depot.
        place: String,
        /// What the server said, or what is missing.
        #[source]
        cause: Cause,
    },

    /// The shared objects are those of another store.
    #[error("the shared objects `{place}` belong to `{owner}`, not to this store")]
    DepotForeign {
        /// The depot.
        place: String,
        /// Whose it is.
        owner: String,
    },

    /// The server of the shared objects cannot be relied on.
    #[error("the shared objects `{place}` would not be safe")]
    DepotUnsafe {
        /// The depot.
        place: String,
        /// What it does wrong.
        #[source]
        cause: Cause,
    },

    /// Another process has taken over a piece of background work.
    #[error("another process does the work `{name}` now")]
    LeaseLost {
        /// The work.
        name: String,
    },

    /// The crate that seals each commit refused to.
    #[error("the commit was refused")]
    Seal(#[source] Cause),
}

/// A message that stands where a cause is expected.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Said(pub(crate) String);

impl StoreError {
    /// An error of the file system at `path`, told apart by its cause.
    pub fn file(action: &'static str, path: impl Into<PathBuf>, error: std::io::Error) -> Self {
        let path = path.into();
        let place = path.display().to_string();
        let cause: Cause = Arc::new(error);
        match io_kind(&cause) {
            Some(std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded) => {
                let disk = crate::disk::name_of(&path);
                Self::Full { place, disk, cause }
            }
            Some(std::io::ErrorKind::ReadOnlyFilesystem) => Self::ReadOnly { place, cause },
            Some(std::io::ErrorKind::PermissionDenied) if action != "read" => {
                Self::ReadOnly { place, cause }
            }
            _ => Self::File {
                action,
                path,
                cause,
            },
        }
    }

    /// Damage found by looking, rather than reported by the database.
    pub fn corrupted(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Corrupted {
            place: place.into(),
            cause: Arc::new(Said(what.into())),
        }
    }

    /// Wraps the refusal of a [`Seal`](crate::Seal).
    pub fn seal(cause: impl Error + Send + Sync + 'static) -> Self {
        Self::Seal(Arc::new(cause))
    }
}

fn io_kind(cause: &Cause) -> Option<std::io::ErrorKind> {
    cause
        .downcast_ref::<std::io::Error>()
        .map(std::io::Error::kind)
}
