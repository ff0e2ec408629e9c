//! The values of a row, as SQLite writes them.

use std::io;

use super::btree::{Part, varint, walk};
use super::view::{Encoding, View, damaged};
use super::wal::array;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Value {
    /// The text; empty for anything else.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            _ => String::new(),
        }
    }
}

/// All rows of a small table with row numbers, in their order.
pub(super) fn rows(view: &View<'_>, root: u32) -> io::Result<Vec<Vec<Value>>> {
    let mut entries: Vec<Vec<u8>> = Vec::new();
    walk(view, root, |part| match part {
        Part::Row(bytes) => entries.push(bytes.to_vec()),
        Part::More(bytes) => {
            if let Some(entry) = entries.last_mut() {
                entry.extend_from_slice(bytes);
            }
        }
    })?;
    entries
        .iter()
        .map(|entry| {
            read(entry, view.encoding()).ok_or_else(|| damaged("a row cannot be understood"))
        })
        .collect()
}

/// The values of an entry of a table with row numbers.
fn read(entry: &[u8], encoding: Encoding) -> Option<Vec<Value>> {
    let (_, length) = varint(entry)?;
    let entry = entry.get(length..)?;
    let (_, number) = varint(entry)?;
    let record = entry.get(number..)?;
    let (head, first) = varint(record)?;
    let (mut kinds, mut body) = record.split_at_checked(usize::try_from(head).ok()?)?;
    kinds = kinds.get(first..)?;
    let mut values = Vec::new();
    while !kinds.is_empty() {
        let (kind, length) = varint(kinds)?;
        kinds = kinds.get(length..)?;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => kind,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            _ => (kind - 12) / 2,
        };
        let (bytes, rest) = body.split_at_checked(usize::try_from(size).ok()?)?;
        body = rest;
        values.push(match kind {
            0 => Value::Null,
            7 => Value::Real(f64::from_be_bytes(array(bytes, 0)?)),
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            1..=6 => Value::Integer(integer(bytes)),
            _ if kind % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => Value::Text(text(bytes, encoding)),
        });
    }
    Some(values)
}

/// A number with a sign, of up to eight bytes.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| number << 8 | i64::from(*byte))
}

fn text(bytes: &[u8], encoding: Encoding) -> String {
    let words = |word: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks::<2>();
        let words: Vec<u16> = pairs.iter().map(|pair| word(*pair)).collect();
        String::from_utf16_lossy(&words)
    };
    match encoding {
        Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
        Encoding::Utf16Little => words(u16::from_le_bytes),
        Encoding::Utf16Big => words(u16::from_be_bytes),
    }
}
