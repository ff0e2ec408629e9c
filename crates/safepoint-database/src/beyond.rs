//! What SQL can do beyond its database: read and write files of the server's machine, and start
//! programs there. No savepoint takes that back, so it is not done for whoever may only do what can
//! be taken back.
//!
//! Nobody can tell from words what a statement does that puts others together. So those are not
//! let through either, where the server itself would not stop them.

use crate::{Database, DatabaseError, Engine, SqlChange, mariadb, postgres};

impl Database {
    /// Refuses a change that may act on the machine of the server.
    pub fn refuse_beyond(&self, change: &SqlChange) -> Result<(), DatabaseError> {
        match self.address.engine() {
            // It has no server, and other files are refused when a statement is compiled.
            Engine::Sqlite => Ok(()),
            Engine::Postgres => postgres::refuse_beyond(self, change),
            Engine::Mariadb => mariadb::refuse_beyond(self, change),
        }
    }
}

/// The first of these that a text has, in any case of its letters.
pub(crate) fn first_of<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    let text = text.to_ascii_lowercase();
    words.iter().copied().find(|word| text.contains(word))
}

/// The error that says so.
pub(crate) fn refusal(address: String, what: &str) -> DatabaseError {
    DatabaseError::Unsupported {
        address,
        why: format!(
            "`{what}` may act on the machine of the server, where no savepoint takes it back; an \
             agent uses a role that cannot do that, or asks a person"
        ),
    }
}
