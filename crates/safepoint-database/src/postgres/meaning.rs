//! What the server's errors mean for the user.

use postgres::error::{DbError, SqlState};

use super::place::Place;
use crate::DatabaseError;

/// Why there is no connection.
pub(super) fn refused(place: &Place, error: &postgres::Error) -> DatabaseError {
    let address = place.address.clone();
    let Some(said) = error.as_db_error() else {
        let why = describe(error);
        // Not an answer of the server: its question for a password, which we do not have.
        return match why.contains("password missing") {
            true => DatabaseError::Refused {
                address,
                why: format!("it wants a password; {}", place.advice()),
            },
            false if why.starts_with("authentication error") => {
                DatabaseError::Refused { address, why }
            }
            false => DatabaseError::Unreachable { address, why },
        };
    };
    let why = sentence(said);
    match said.code() {
        code if *code == SqlState::INVALID_PASSWORD => DatabaseError::Refused {
            address,
            why: format!("{why}; {}", place.advice()),
        },
        code if *code == SqlState::INVALID_CATALOG_NAME => DatabaseError::NotFound {
            what: "database",
            name: place.database().to_owned(),
            address,
        },
        code if code.code().starts_with("28") || code.code().starts_with("42") => {
            DatabaseError::Refused { address, why }
        }
        _ => DatabaseError::Unreachable { address, why },
    }
}

/// What an error on a connection means.
pub(super) fn classify(place: &Place, error: &postgres::Error) -> DatabaseError {
    let address = place.address.clone();
    let Some(said) = error.as_db_error() else {
        let why = describe(error);
        let cause = std::error::Error::source(error);
        return match error.is_closed() || cause.is_some_and(|cause| cause.is::<std::io::Error>()) {
            true => DatabaseError::Lost { address, why },
            false => DatabaseError::Sql { message: why },
        };
    };
    let code = said.code();
    let lost = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    if *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        DatabaseError::Locked { address }
    } else if lost.contains(code) || code.code().starts_with("08") {
        let why = sentence(said);
        DatabaseError::Lost { address, why }
    } else {
        let message = sentence(said);
        DatabaseError::Sql { message }
    }
}

/// The same for an error that has passed through a reader or a writer.
pub(super) fn broken(place: &Place, error: &std::io::Error) -> DatabaseError {
    let inner = error.get_ref();
    match inner.and_then(|inner| inner.downcast_ref::<postgres::Error>()) {
        Some(error) => classify(place, error),
        None => DatabaseError::Lost {
            address: place.address.clone(),
            why: error.to_string(),
        },
    }
}

/// What the server says, on one line.
fn sentence(said: &DbError) -> String {
    let mut text = said.message().to_owned();
    for more in [said.detail(), said.hint()].into_iter().flatten() {
        let more = more.lines().collect::<Vec<_>>().join(", ");
        text.push_str(&format!(": {more}"));
    }
    text
}

/// An error with its sources, on one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    text
}
