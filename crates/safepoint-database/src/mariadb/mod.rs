//! MariaDB and MySQL, through the `mariadb` client (or `mysql`) that its user has.
//!
//! ```text
//! server ── which client, where to, set up how
//!   └ session ── one connection: statements in, rows and errors out
//! capture ── structure (read, structure, definition) and rows (row) of one moment
//! restore ── load (build beside, check) → plan → step (swap) → recover (when cut off)
//! change  ── a transaction, statement by statement (lex)
//! ```
//!
//! Tried with MariaDB 10.5, 10.11 and 11.8, and with MySQL 9.7 and its own client.
//!
//! `mariadb-dump` is not used. It writes `FLOAT` with six digits, so that what comes
//! back is not what was there; it cannot hold one moment over structure and rows;
//! and its text would have to be parsed again.
//!
//! Not captured: privileges (they are the server's, and stay by name), and rows that
//! are kept elsewhere (`FEDERATED`, `CONNECT`, `MERGE` …), which are named in
//! [`Image::not_covered`] and left alone. Sequences come back with the next value
//! that is stored: values that the server had handed out to its cache are skipped,
//! as after a restart of the server.

mod beyond;
mod capture;
mod change;
mod definition;
mod lex;
mod load;
mod outside;
mod pipe;
mod plan;
mod program;
mod read;
mod recover;
mod replace;
mod restore;
mod row;
mod schema;
mod scratch;
mod server;
mod session;
mod step;
mod structure;
mod trouble;
mod version;

use crate::{
    Changed, Contents, Database, DatabaseError, Image, Keep, Restored, SqlChange, Trial, Verdict,
};

pub(crate) use beyond::refuse_beyond;
pub(crate) use row::{Tally, values};

pub(crate) fn capture(database: &Database, keep: &dyn Keep) -> Result<Image, DatabaseError> {
    capture::capture(database, keep)
}

pub(crate) fn restore(
    database: &Database,
    image: &Image,
    contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    restore::restore(database, image, contents)
}

pub(crate) fn change(
    database: &Database,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    change::change(database, change, judge)
}

pub(crate) fn rows(
    image: &Image,
    table: &str,
    contents: &dyn Contents,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let table = image.tables.iter().find(|known| known.name == table);
    match table.and_then(|table| table.data.as_ref()) {
        Some(piece) => load::each_line(piece, contents, visit),
        None => Ok(()),
    }
}

pub(crate) fn show_row(columns: &[&str], row: &[u8]) -> String {
    row::show(columns, row)
}
