//! Errors of databases, explained.

use safepoint_database::{AddressError, DatabaseError};
use safepoint_model::Code;

use super::{Explanation, file};

pub(super) fn explain(error: &DatabaseError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        DatabaseError::Address(AddressError::Password) => (
            Code::InvalidInput,
            None,
            hint(
                "leave it out, and set `PGPASSWORD` or `MYSQL_PWD`, or write it into `~/.pgpass` or `~/.my.cnf`; or name a variable that holds the address: `env:DATABASE_URL`",
            ),
        ),
        DatabaseError::Address(_) => (
            Code::InvalidInput,
            None,
            hint("behind `#` some tables can be named: `postgres://me@host/shop#users,audit.*`"),
        ),
        DatabaseError::Unreachable { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("check the address, and that the server runs"),
        ),
        DatabaseError::Refused { address, .. } => (
            Code::DatabaseRefused,
            Some(address.clone()),
            hint("set `PGPASSWORD` or `MYSQL_PWD`, or write it into `~/.pgpass` or `~/.my.cnf`"),
        ),
        DatabaseError::Lost { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("the database is as it was; try again when the server answers"),
        ),
        DatabaseError::MissingTool { tool, package } => (
            Code::ToolMissing,
            Some(tool.clone()),
            Some(format!("install it: `apt-get install {package}`")),
        ),
        DatabaseError::OldTool { tool, server, .. } => (
            Code::ToolMissing,
            Some(tool.clone()),
            Some(format!(
                "install the version that belongs to {server}, or a newer one"
            )),
        ),
        DatabaseError::Tool { tool, .. } => (
            Code::DatabaseFailed,
            Some(tool.clone()),
            hint("the database is as it was"),
        ),
        DatabaseError::Locked { address } => (
            Code::DatabaseLocked,
            Some(address.clone()),
            hint("nothing was changed; try again when the other connection is done"),
        ),
        DatabaseError::NotFound { name, .. } => (
            Code::ScopeEmpty,
            Some(name.clone()),
            hint("check the spelling"),
        ),
        DatabaseError::Sql { .. } | DatabaseError::PartlyKept { .. } => {
            (Code::OperationFailed, None, hint("everything is as it was"))
        }
        DatabaseError::Unsupported { address, .. }
        | DatabaseError::NotIdentical { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("the database is as it was"),
        ),
        DatabaseError::File { path, error, .. } => file::explain(path, error),
        DatabaseError::Kept(_) => (Code::StoreFailed, None, None),
    }
}
