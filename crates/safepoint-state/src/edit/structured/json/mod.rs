//! JSON with the place of every value.
//!
//! What people write into JSON files against the rules is read and kept:
//! comments as in C, and a comma behind the last entry. A key that stands twice
//! in one object is refused, since readers disagree on what it means.

mod read;
mod scalar;
mod write;

pub(super) use read::read;
pub(super) use scalar::quoted;
pub(super) use write::{newline, write};
