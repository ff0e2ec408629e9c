//! Not written yet.

use crate::{
    Changed, Contents, Database, DatabaseError, Image, Keep, Restored, SqlChange, Trial, Verdict,
};

fn missing(database: &Database) -> DatabaseError {
    DatabaseError::Unsupported {
        address: database.address.to_string(),
        why: "not written yet".into(),
    }
}

pub(crate) fn capture(database: &Database, _keep: &dyn Keep) -> Result<Image, DatabaseError> {
    Err(missing(database))
}

pub(crate) fn restore(
    database: &Database,
    _image: &Image,
    _contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    Err(missing(database))
}

pub(crate) fn change(
    database: &Database,
    _change: &SqlChange,
    _judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    Err(missing(database))
}

pub(crate) fn rows(
    _image: &Image,
    _table: &str,
    _contents: &dyn Contents,
    _visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    Ok(())
}

pub(crate) fn show_row(_columns: &[&str], row: &[u8]) -> String {
    String::from_utf8_lossy(row).into_owned()
}
