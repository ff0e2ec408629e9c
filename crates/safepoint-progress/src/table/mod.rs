//! The tables: rows in and out. No rule is decided here.

mod account;
mod delivery;
mod integration;
mod kept;
mod place;
mod record;
mod task;
mod workspace;

use safepoint_store::{Row, StoreError, Value};

pub(crate) use account::*;
pub(crate) use delivery::*;
pub(crate) use integration::*;
pub(crate) use kept::*;
pub(crate) use place::*;
pub(crate) use record::*;
pub(crate) use task::*;
pub(crate) use workspace::*;

/// Reads a column that holds one of our own words or ids.
pub(crate) fn parsed<T: std::str::FromStr>(text: &str, column: usize) -> Result<T, StoreError> {
    text.parse().map_err(|_| StoreError::Column {
        column,
        expected: "a word or an id of ours",
    })
}

pub(crate) fn optional<T: std::str::FromStr>(
    row: &dyn Row,
    column: usize,
) -> Result<Option<T>, StoreError> {
    row.optional_text(column)?
        .map(|text| parsed(text, column))
        .transpose()
}

/// A place in the trail, as a column has it.
pub(crate) fn position(seq: u64) -> Value<'static> {
    Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX))
}
