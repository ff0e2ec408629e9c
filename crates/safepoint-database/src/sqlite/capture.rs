//! A database captured at one moment, however many write to it meanwhile.

use std::fs::File;
use std::io;
use std::path::Path;

use super::beneath::Directory;
use super::error::Place;
use super::hold::hold;
use super::open::{path, recover};
use super::schema::{self, Description, Scope};
use super::view::View;
use crate::{Database, DatabaseError, Engine, Image, Keep};

/// The piece that is the whole database, of an image of the whole database.
pub(super) const WHOLE: &str = "file";
/// The same, of an image that is only about some of its tables.
pub(super) const TABLES: &str = "file-for-tables";

/// How often a database is read again because somebody connected meanwhile.
const ATTEMPTS: usize = 5;

pub(crate) fn capture(database: &Database, keep: &dyn Keep) -> Result<Image, DatabaseError> {
    let path = path(database)?;
    let scope = Scope::new(database.address.only());
    let place = Place {
        address: &database.address,
        path: &path,
    };
    look(database, &path, &mut |view| {
        let description = described(view, &scope, place)?;
        let piece = view.keep(keep, &|error| read_failed(place, error))?;
        let name = match scope {
            Scope::All => WHOLE,
            Scope::Only(_) => TABLES,
        };
        Ok(Image {
            format: Image::FORMAT,
            engine: Engine::Sqlite,
            server: format!("SQLite {}", rusqlite::version()),
            schema: description.schema,
            tables: description.tables,
            pieces: vec![(name.to_owned(), piece)],
            not_covered: description.not_covered,
        })
    })
}

/// Reads structure and rows of a view.
pub(super) fn described(
    view: &View<'_>,
    scope: &Scope,
    place: Place<'_>,
) -> Result<Description, DatabaseError> {
    let entries = schema::entries(view).map_err(|error| read_failed(place, error))?;
    let scope = schema::resolve(scope, &entries).map_err(|name| place.no_table(&name))?;
    schema::describe(view, &entries, &scope).map_err(|error| read_failed(place, error))
}

/// Holds a database, and lets `read` look at it. It may have to look again.
pub(super) fn look<T>(
    database: &Database,
    path: &Path,
    read: &mut dyn FnMut(&View<'_>) -> Result<T, DatabaseError>,
) -> Result<T, DatabaseError> {
    let place = Place {
        address: &database.address,
        path,
    };
    let directory = match Directory::of(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(place.no_file()),
        other => other.map_err(|error| DatabaseError::file("read", path, error))?,
    };
    let by_descriptor = directory.path();
    for attempt in 0..ATTEMPTS {
        let held = match hold(&by_descriptor, database.access.lock_timeout) {
            Ok(Some(held)) => held,
            Ok(None) => return read(&empty(&by_descriptor, place)?.view()?),
            Err(DatabaseError::Locked { .. }) => return Err(place.locked()),
            // A writer died while it wrote to the shared memory, and the others have not
            // noticed yet. Who looks through SQLite puts it right.
            Err(DatabaseError::Unsupported { .. }) if attempt == 0 => {
                recover(database, path)?;
                continue;
            }
            Err(DatabaseError::File { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                return Err(place.no_file());
            }
            Err(DatabaseError::File { action, error, .. }) => {
                return Err(DatabaseError::File {
                    action,
                    path: path.to_owned(),
                    error,
                });
            }
            Err(error) => return Err(error),
        };
        if held.has_hot_journal() {
            drop(held);
            recover(database, path)?;
            continue;
        }
        let view = held.view().map_err(|error| read_failed(place, error))?;
        let result = read(&view);
        if held.is_intact() {
            return result;
        }
    }
    Err(place.locked())
}

/// A file without anything in it, which SQLite takes for a database without tables.
struct Empty(File);

impl Empty {
    fn view(&self) -> Result<View<'_>, DatabaseError> {
        View::new(&self.0, None).map_err(|error| DatabaseError::file("read", "", error))
    }
}

fn empty(path: &Path, place: Place<'_>) -> Result<Empty, DatabaseError> {
    let failed = |error| DatabaseError::file("read", path, error);
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() || found.len() > 0 {
        return Err(place.unsupported("it is not a SQLite database"));
    }
    // A file of our own: one more that is opened here would have to be closed with care.
    tempfile::tempfile().map(Empty).map_err(failed)
}

/// What is wrong when pages cannot be read.
pub(super) fn read_failed(place: Place<'_>, error: io::Error) -> DatabaseError {
    match error.kind() {
        io::ErrorKind::InvalidData => place.damaged(&error.to_string()),
        _ => DatabaseError::file("read", place.path, error),
    }
}
