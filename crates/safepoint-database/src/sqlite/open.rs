//! Connections to a user's database.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use super::beneath::{real_path, write_beneath};
use super::error::Place;
use super::parked::{Connected, Identity};
use crate::{Database, DatabaseError};

/// A connection, and that it is one of ours. Fields are dropped in their order.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) connection: Connection,
    _connected: Connected,
}

/// The file of a database as SQLite sees it: links are followed, so that the files beside
/// it are found. A path that leads nowhere stays as it is.
pub(crate) fn path(database: &Database) -> Result<PathBuf, DatabaseError> {
    let Some(path) = database.address.file() else {
        return Err(DatabaseError::Unsupported {
            address: database.address.to_string(),
            why: "it is not a file".into(),
        });
    };
    match path.canonicalize() {
        Ok(real) => real_path(database, real),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Its directory may be there.
            let directory = path.parent().and_then(|it| it.canonicalize().ok());
            let real = directory.and_then(|it| Some(it.join(path.file_name()?)));
            real_path(database, real.unwrap_or_else(|| path.to_owned()))
        }
        Err(error) => Err(DatabaseError::file("open", path, error)),
    }
}

/// Opens a database that is there, for reading and writing.
pub(super) fn open(database: &Database, path: &Path) -> Result<Open, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let found = match std::fs::metadata(path) {
        Ok(found) if found.is_file() => found,
        Ok(_) => return Err(place.unsupported("it is not a file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(place.no_file()),
        Err(error) => return Err(DatabaseError::file("open", path, error)),
    };
    let connected = Connected::to(Identity::of(&found), path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    #[expect(
        clippy::disallowed_methods,
        reason = "users' databases are opened here, and nowhere else"
    )]
    let connection = Connection::open_with_flags(path, flags).map_err(|error| place.fail(error))?;
    connection
        .busy_timeout(database.access.lock_timeout)
        .map_err(|error| place.fail(error))?;
    Ok(Open {
        connection,
        _connected: connected,
    })
}

/// Lets SQLite roll back what a dead writer left half done.
pub(super) fn recover(database: &Database, path: &Path) -> Result<(), DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    write_beneath(path, &database.access, || {
        let open = open(database, path)?;
        open.connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
            .map_err(|error| place.fail(error))
    })
}
