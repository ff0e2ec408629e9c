//! PostgreSQL.
//!
//! ```text
//! Place ── address, variables, password file → Session (our connection), Dump (pg_dump)
//! capture ── one snapshot: Dump writes the structure, COPY the rows, Catalogue the schema
//! restore ── one transaction: clear, make, fill, compare, commit
//! change  ── one transaction: statements, query, verdict
//! ```
//!
//! What the image keeps: a manifest, for each unit of the scope (the database, a schema,
//! a table) a script of what comes before the rows and one of what comes behind them, and
//! the rows of each table.

mod beyond;
mod capture;
mod catalogue;
mod change;
mod dump;
mod leftovers;
mod manifest;
mod meaning;
mod name;
mod place;
mod restore;
mod rows;
mod scope;
mod script;
mod session;
mod statements;
mod surroundings;

pub(crate) use beyond::refuse_beyond;
pub(crate) use capture::capture;
pub(crate) use change::change;
pub(crate) use place::usual_socket;
pub(crate) use restore::restore;
pub(crate) use rows::{is_kept, rows, show_row};
