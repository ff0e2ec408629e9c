//! The rows of a captured table, one by one, and as people read them.

use std::path::Path;

use rusqlite::types::ValueRef;

use super::stored::Stored;
use crate::{Contents, DatabaseError, Image};

/// Values longer than this are cut when they are shown.
const SHOWN: usize = 200;

/// The captured database that rows are read from; it is made when the first are asked for.
#[derive(Debug, Default)]
pub(crate) struct Rows(Option<Stored>);

impl Rows {
    /// The file with the rows of `image`, which is always the same one.
    pub(crate) fn of(
        &mut self,
        image: &Image,
        contents: &dyn Contents,
        scratch: &Path,
    ) -> Result<&Stored, DatabaseError> {
        let stored = match self.0.take() {
            Some(stored) => stored,
            None => Stored::new(image, contents, scratch)?,
        };
        Ok(self.0.insert(stored))
    }

    /// Hands out the rows of a table of `image`, which is always the same one.
    pub(crate) fn visit(
        &mut self,
        image: &Image,
        table: &str,
        contents: &dyn Contents,
        scratch: &Path,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        each(self.of(image, contents, scratch)?, table, visit)
    }
}

fn each(
    stored: &Stored,
    table: &str,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let failed = |error: rusqlite::Error| DatabaseError::Sql {
        message: format!("cannot read the captured table `{table}`: {error}"),
    };
    let connection = stored.open().map_err(failed)?;
    let mut statement = connection
        .prepare(&format!("SELECT * FROM main.{}", quote(table)))
        .map_err(failed)?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(failed)?;
    let mut bytes = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        bytes.clear();
        for column in 0..columns {
            write(&mut bytes, row.get_ref(column).map_err(failed)?);
        }
        visit(&bytes)?;
    }
    Ok(())
}

/// A name as it stands in a statement.
pub(super) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Adds a value: its kind, for text and blobs its length, and its bytes.
pub(super) fn write(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let long = |bytes: &mut Vec<u8>, kind: u8, value: &[u8]| {
        bytes.push(kind);
        bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
        bytes.extend_from_slice(value);
    };
    match value {
        ValueRef::Null => bytes.push(b'n'),
        ValueRef::Integer(value) => {
            bytes.push(b'i');
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::Real(value) => {
            bytes.push(b'r');
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        ValueRef::Text(value) => long(bytes, b't', value),
        ValueRef::Blob(value) => long(bytes, b'b', value),
    }
}

/// Takes a value from the front.
pub(super) fn read<'a>(bytes: &mut &'a [u8]) -> Option<ValueRef<'a>> {
    let (kind, rest) = bytes.split_first()?;
    if *kind == b'n' {
        *bytes = rest;
        return Some(ValueRef::Null);
    }
    let (number, rest) = rest.split_first_chunk::<8>()?;
    let length = match kind {
        b't' | b'b' => usize::try_from(u64::from_be_bytes(*number)).ok()?,
        _ => 0,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *bytes = rest;
    Some(match kind {
        b'i' => ValueRef::Integer(i64::from_be_bytes(*number)),
        b'r' => ValueRef::Real(f64::from_be_bytes(*number)),
        b't' => ValueRef::Text(content),
        _ => ValueRef::Blob(content),
    })
}

/// A row for people: `id=1, name='Ann', note=NULL`.
pub(crate) fn show_row(columns: &[&str], mut row: &[u8]) -> String {
    let mut shown = String::new();
    let mut columns = columns.iter();
    while let Some(value) = read(&mut row) {
        if !shown.is_empty() {
            shown.push_str(", ");
        }
        shown.push_str(columns.next().unwrap_or(&"?"));
        shown.push('=');
        shown.push_str(&show(value));
    }
    shown
}

fn show(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".into(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => format!("{value:?}"),
        ValueRef::Text(value) => {
            let text = String::from_utf8_lossy(value);
            let mut shown = String::from("'");
            for letter in text.chars().take(SHOWN) {
                match letter {
                    '\'' => shown.push_str("''"),
                    // Nothing that moves the cursor, or begins a line.
                    letter if letter.is_control() => shown.extend(letter.escape_default()),
                    letter => shown.push(letter),
                }
            }
            shown.push('\'');
            if text.chars().nth(SHOWN).is_some() {
                shown.push('…');
            }
            shown
        }
        ValueRef::Blob(value) => {
            let mut shown = String::from("x'");
            for byte in value.iter().take(SHOWN / 2) {
                shown.push_str(&format!("{byte:02x}"));
            }
            shown.push('\'');
            if value.len() > SHOWN / 2 {
                shown.push('…');
            }
            shown
        }
    }
}

/// A value as text; `None` for NULL.
pub(super) fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Text(value) => Some(String::from_utf8_lossy(value).into_owned()),
        other => Some(show(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shown_as_they_were_written() {
        let mut row = Vec::new();
        for value in [
            ValueRef::Integer(-1),
            ValueRef::Text(b"O'Neil\n"),
            ValueRef::Null,
            ValueRef::Real(2.0),
            ValueRef::Blob(&[0, 255]),
            ValueRef::Text(b""),
        ] {
            write(&mut row, value);
        }
        assert_eq!(
            show_row(&["id", "name", "note", "r", "b"], &row),
            r"id=-1, name='O''Neil\n', note=NULL, r=2.0, b=x'00ff', ?=''"
        );
        assert_eq!(show_row(&["id"], b"i\0"), "");
    }
}
