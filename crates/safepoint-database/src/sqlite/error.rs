//! What SQLite says, as errors of ours.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::{Address, DatabaseError};

/// What failed on the database at `address`, whose file is at `path`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) address: &'a Address,
    pub(super) path: &'a Path,
}

impl Place<'_> {
    /// An error of SQLite while reading or writing this database.
    pub(super) fn fail(self, error: rusqlite::Error) -> DatabaseError {
        let write = |kind: io::ErrorKind| {
            DatabaseError::file("write", self.path, io::Error::new(kind, error.to_string()))
        };
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed,
            ) => self.locked(),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                write(io::ErrorKind::PermissionDenied)
            }
            Some(ErrorCode::DiskFull) => write(io::ErrorKind::StorageFull),
            Some(ErrorCode::SystemIoFailure) => write(io::ErrorKind::Other),
            Some(ErrorCode::CannotOpen) => {
                DatabaseError::file("open", self.path, io::Error::other(error.to_string()))
            }
            Some(ErrorCode::NotADatabase) => self.unsupported("it is not a SQLite database"),
            Some(ErrorCode::DatabaseCorrupt) => self.damaged(&error.to_string()),
            _ => DatabaseError::Sql {
                message: message(&error),
            },
        }
    }

    pub(super) fn locked(self) -> DatabaseError {
        DatabaseError::Locked {
            address: self.address.to_string(),
        }
    }

    pub(super) fn unsupported(self, why: impl Into<String>) -> DatabaseError {
        DatabaseError::Unsupported {
            address: self.address.to_string(),
            why: why.into(),
        }
    }

    pub(super) fn damaged(self, what: &str) -> DatabaseError {
        self.unsupported(format!("it is damaged: {what}"))
    }

    pub(super) fn not_identical(self, why: impl Into<String>) -> DatabaseError {
        DatabaseError::NotIdentical {
            address: self.address.to_string(),
            why: why.into(),
        }
    }

    pub(super) fn no_file(self) -> DatabaseError {
        DatabaseError::NotFound {
            what: "file",
            name: self.path.display().to_string(),
            address: self.address.to_string(),
        }
    }

    pub(super) fn no_table(self, name: &str) -> DatabaseError {
        DatabaseError::NotFound {
            what: "table",
            name: name.to_owned(),
            address: self.address.to_string(),
        }
    }
}

/// What SQLite says, without the statement around it.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, offset, .. } if *offset >= 0 => {
            format!("{msg} (at byte {offset} of the statement)")
        }
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
