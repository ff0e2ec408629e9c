//! The little SQL that both databases speak alike.
//!
//! Statements are written once, in the common subset, with `?1`, `?2` … for
//! values. What differs (types and triggers) differs only in migrations.

use crate::StoreError;

/// A value handed to a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// SQL `NULL`.
    Null,
    /// A 64-bit integer.
    Integer(i64),
    /// Text without NUL characters.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(bytes)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(option: Option<T>) -> Self {
        option.map_or(Self::Null, Into::into)
    }
}

/// One row of an answer. Columns count from 0.
pub trait Row {
    /// An integer that is not `NULL`.
    fn integer(&self, column: usize) -> Result<i64, StoreError>;
    /// The bytes of a text or blob column; `None` for `NULL`.
    fn bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError>;

    /// A text that is not `NULL`.
    fn text(&self, column: usize) -> Result<&str, StoreError> {
        self.optional_text(column)?.ok_or(StoreError::Column {
            column,
            expected: "text",
        })
    }

    /// A text, or `None` for `NULL`.
    fn optional_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        self.bytes(column)?
            .map(std::str::from_utf8)
            .transpose()
            .map_err(|_| StoreError::Column {
                column,
                expected: "UTF-8 text",
            })
    }

    /// Bytes that are not `NULL`.
    fn blob(&self, column: usize) -> Result<&[u8], StoreError> {
        self.bytes(column)?.ok_or(StoreError::Column {
            column,
            expected: "bytes",
        })
    }
}

/// Whether to go on with the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Give me the next row.
    More,
    /// That was enough.
    Enough,
}

/// Something that runs statements: a transaction or a reading snapshot.
pub trait Sql {
    /// Runs a statement and tells how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;

    /// Runs a query, one row at a time and in constant memory.
    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<Flow, StoreError>,
    ) -> Result<(), StoreError>;
}

/// The first row of an answer, if there is one.
pub fn query_one<T>(
    sql: &mut dyn Sql,
    statement: &str,
    values: &[Value<'_>],
    read: impl FnOnce(&dyn Row) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    let (mut found, mut read) = (None, Some(read));
    sql.query(statement, values, &mut |row| {
        if let Some(read) = read.take() {
            found = Some(read(row)?);
        }
        Ok(Flow::Enough)
    })?;
    Ok(found)
}

/// All rows of an answer that is known to be small.
pub fn query_all<T>(
    sql: &mut dyn Sql,
    statement: &str,
    values: &[Value<'_>],
    mut read: impl FnMut(&dyn Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut found = Vec::new();
    sql.query(statement, values, &mut |row| {
        found.push(read(row)?);
        Ok(Flow::More)
    })?;
    Ok(found)
}
