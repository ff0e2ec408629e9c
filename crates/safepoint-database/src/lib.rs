//! Databases that are not ours: captured, compared, changed under a savepoint,
//! and brought back in place.
//!
//! ```text
//! Address ── where it is, never with a password in it
//!    └ Database ── capture → Image, restore ← Image, change (SQL), revert (rows of one change)
//!         ├ sqlite      read beside live writers, restored through SQLite itself
//!         ├ postgres    one exported snapshot: pg_dump for the structure, COPY for the rows
//!         └ mariadb     one snapshot, and a restore that is built beside and swapped in
//! ```
//!
//! This crate knows nothing of checkpoints. What it captures goes to a [`Keep`],
//! and comes back from [`Contents`]; who may do what is decided above.

mod address;
mod beyond;
mod compare;
mod database;
mod error;
mod image;
mod mariadb;
mod piece;
mod postgres;
mod revert;
pub mod sqlite;
mod tool;

pub use address::{Address, AddressError, Engine, ServerPlace};
pub use compare::{Difference, RowChange, SchemaChange, TableChange, compare};
pub use database::{Access, Changed, Database, Restored, Row, SqlChange, Trial, Verdict};
pub use error::DatabaseError;
pub use image::{Column, Image, Object, Schema, Table, TableImage};
pub use piece::{Contents, Keep, Piece, Sink};
pub use revert::{Reverted, Revisions, RowConflict};
pub use tool::PROGRAMS;
