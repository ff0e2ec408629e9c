//! What can go wrong with a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::AddressError;

/// Why a database could not be captured, changed or brought back. No message
/// ever holds a password.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DatabaseError {
    /// The address cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Nobody answers there.
    #[error("cannot reach `{address}`: {why}")]
    Unreachable {
        /// Which database.
        address: String,
        /// Why not.
        why: String,
    },
    /// The server does not let us in.
    #[error("`{address}` does not let us in: {why}")]
    Refused {
        /// Which database.
        address: String,
        /// What the server says.
        why: String,
    },
    /// The connection ended in the middle.
    #[error("the connection to `{address}` was lost: {why}")]
    Lost {
        /// Which database.
        address: String,
        /// How.
        why: String,
    },
    /// A program that is needed is not there.
    #[error("`{tool}` is not installed")]
    MissingTool {
        /// Which.
        tool: String,
        /// The package that brings it.
        package: String,
    },
    /// A program is too old for the server.
    #[error("`{tool}` is of version {found}, and `{address}` of version {server}")]
    OldTool {
        /// Which program.
        tool: String,
        /// Its version.
        found: String,
        /// Which database.
        address: String,
        /// The version of its server.
        server: String,
    },
    /// A program failed.
    #[error("`{tool}` failed: {why}")]
    Tool {
        /// Which.
        tool: String,
        /// What it said.
        why: String,
    },
    /// Somebody else has it locked.
    #[error("`{address}` is locked by another connection")]
    Locked {
        /// Which database.
        address: String,
    },
    /// Something that was named is not there.
    #[error("there is no {what} `{name}` in `{address}`")]
    NotFound {
        /// `table`, `schema`, `database`, `file`.
        what: &'static str,
        /// As it was given.
        name: String,
        /// Which database.
        address: String,
    },
    /// The server refuses a statement.
    #[error("{message}")]
    Sql {
        /// What it says.
        message: String,
    },
    /// The server refuses a statement, or is gone, after it has committed others of the same
    /// change on its own: the database is changed.
    #[error("{message}; statements before it are committed already")]
    PartlyKept {
        /// What it says.
        message: String,
    },
    /// It holds something that we cannot do justice to.
    #[error("`{address}`: {why}")]
    Unsupported {
        /// Which database.
        address: String,
        /// What.
        why: String,
    },
    /// After restoring, it is not what it should be.
    #[error("`{address}` is not what it should be after restoring: {why}")]
    NotIdentical {
        /// Which database.
        address: String,
        /// What differs.
        why: String,
    },
    /// A file could not be read or written.
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
    /// Where pieces are kept failed.
    #[error("{0}")]
    Kept(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl DatabaseError {
    /// Whether a change that failed so has surely left nothing in the database.
    pub fn kept_nothing(&self) -> bool {
        match self {
            Self::Address(_)
            | Self::Unreachable { .. }
            | Self::Refused { .. }
            | Self::MissingTool { .. }
            | Self::OldTool { .. }
            | Self::Locked { .. }
            | Self::NotFound { .. }
            | Self::Sql { .. }
            | Self::Unsupported { .. } => true,
            Self::Lost { .. }
            | Self::Tool { .. }
            | Self::PartlyKept { .. }
            | Self::NotIdentical { .. }
            | Self::File { .. }
            | Self::Kept(_) => false,
        }
    }

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
}
