//! SQLite: a file, and what lies beside it.
//!
//! ```text
//! hold     the file held still, by locks alone      parked   files not to be closed yet
//! wal      which frames of the log count             lock     the bytes that SQLite locks
//! view     file and log as pages
//! btree    the rows of a table, in order             record, definition, schema, digest
//! capture  one moment, beside live writers
//! restore  all of it, through SQLite's own backup    replace, tables, fill, stored
//! change   SQL in a transaction that is judged     revert   rows taken out of a capture
//! ```
//!
//! Capturing reads pages and never opens the database through SQLite. What changes a
//! database goes through SQLite alone, so that whoever else is connected sees it as
//! any other transaction, and a crash at any moment leaves the old state or the new.

mod beneath;
mod btree;
mod capture;
mod change;
mod definition;
mod digest;
mod error;
mod fill;
mod hold;
mod lock;
mod open;
mod parked;
mod record;
mod replace;
mod restore;
mod revert;
mod rows;
mod schema;
mod stored;
mod tables;
mod view;
mod wal;

pub use hold::{Held, hold};
pub use parked::close;

pub(crate) use beneath::write_beneath;
pub(crate) use capture::capture;
pub(crate) use change::change;
pub(crate) use open::path as path_of;
pub(crate) use restore::restore;
pub(crate) use revert::{revert_rows, show_keyed_row, visit_keyed};
pub(crate) use rows::{Rows, show_row};
