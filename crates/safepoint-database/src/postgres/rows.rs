//! Rows as they are kept: one to a line, in the text form of `COPY`.

use crate::image::Column;
use crate::{Contents, DatabaseError, Image};

/// How much of a value people are shown.
const SHOWN: usize = 200;

/// Hands out the rows of a table, each as it is kept.
pub(crate) fn rows(
    image: &Image,
    table: &str,
    contents: &dyn Contents,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let found = image.tables.iter().find(|known| known.name == table);
    let Some(piece) = found.and_then(|table| table.data.as_ref()) else {
        return Ok(());
    };
    let mut begun: Vec<u8> = Vec::new();
    contents.copy(piece, &mut |run| {
        let mut lines = run.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            // What stands behind the last line break goes on in the next run.
            if lines.peek().is_none() {
                begun.extend_from_slice(line);
            } else if begun.is_empty() {
                visit(line)?;
            } else {
                begun.extend_from_slice(line);
                visit(&begun)?;
                begun.clear();
            }
        }
        Ok(())
    })
}

/// Whether rows have this column. Those that the server computes are not kept.
pub(crate) fn is_kept(column: &Column) -> bool {
    let definition = &column.definition;
    !definition.ends_with(") STORED") && !definition.ends_with(") VIRTUAL")
}

/// A row for people: `id=1, name='Ann', note=NULL`. `columns` are those that are kept.
pub(crate) fn show_row(columns: &[&str], row: &[u8]) -> String {
    let values = row.split(|byte| *byte == b'\t').map(show_value);
    let named = columns.iter().zip(values);
    let shown: Vec<String> = named
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    shown.join(", ")
}

fn show_value(value: &[u8]) -> String {
    if value == b"\\N" {
        return "NULL".to_owned();
    }
    let bytes = unescape(value);
    let text = String::from_utf8_lossy(&bytes);
    if is_number(&text) {
        return text.into_owned();
    }
    let mut shown: String = text.chars().take(SHOWN).collect();
    shown = shown.replace('\'', "''");
    match text.chars().nth(SHOWN) {
        Some(_) => format!("'{shown}…'"),
        None => format!("'{shown}'"),
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits
            .chars()
            .all(|next| next.is_ascii_digit() || next == '.')
        && digits.matches('.').count() <= 1
}

/// Undoes what `COPY` does to line breaks, tabs and backslashes.
fn unescape(value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.iter().copied();
    while let Some(byte) = rest.next() {
        let meant = match byte {
            b'\\' => match rest.next() {
                Some(b'b') => 8,
                Some(b'f') => 12,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'v') => 11,
                Some(other) => other,
                None => b'\\',
            },
            other => other,
        };
        bytes.push(meant);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_shown_with_their_names() {
        let row = b"1\tAnn's\t\\N\ta\\tb\\\\c\t\t-2.50\t1.2.3";
        assert_eq!(
            show_row(&["id", "name", "note", "text", "empty", "sum", "ip"], row),
            "id=1, name='Ann''s', note=NULL, text='a\tb\\c', empty='', sum=-2.50, ip='1.2.3'"
        );
        let long = format!("{}\n", "x".repeat(300));
        let shown = show_row(&["a"], long.as_bytes());
        assert!(shown.ends_with("x…'") && shown.len() < 220);
    }

    #[test]
    fn computed_columns_are_not_kept() {
        let column = |definition: &str| Column {
            name: "c".into(),
            definition: definition.into(),
        };
        assert!(is_kept(&column("text DEFAULT '(x) STORED'::text")));
        assert!(!is_kept(&column(
            "integer GENERATED ALWAYS AS ((a + 1)) STORED"
        )));
    }
}
