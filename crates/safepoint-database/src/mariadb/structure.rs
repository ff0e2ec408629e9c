//! The structure of a database, as the statements that make it. It is kept as a
//! piece of the image, in JSON, and what restores goes by it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::DatabaseError;

/// The name of the piece.
pub(super) const PIECE: &str = "structure";

/// Everything but the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Structure {
    /// The version of this form.
    pub(super) format: u32,
    /// The tables, sequences and views that were meant; empty for all.
    pub(super) only: Vec<String>,
    /// `CHARACTER SET …` of the database; empty when only some tables were meant.
    pub(super) database: String,
    pub(super) tables: Vec<TableText>,
    pub(super) sequences: Vec<Sequence>,
    /// In the order in which they fire.
    pub(super) triggers: Vec<Trigger>,
    pub(super) views: Vec<View>,
    pub(super) routines: Vec<Routine>,
    pub(super) events: Vec<Event>,
    /// Tables that we cannot do justice to, with the reason: never touched.
    pub(super) left_out: Vec<(String, String)>,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableText {
    pub(super) name: String,
    /// `CREATE TABLE …`, without the value of `AUTO_INCREMENT`.
    pub(super) create: String,
    /// The next value of `AUTO_INCREMENT`.
    pub(super) counter: Option<u64>,
    pub(super) columns: Vec<ColumnText>,
    /// Whether it keeps its history, which is captured with the rows.
    pub(super) versioned: bool,
    /// Whether it takes part in transactions.
    pub(super) transactional: bool,
    /// When it was created. Two tables with one name and one form differ in this.
    #[serde(skip)]
    pub(super) created: String,
}

/// One column, as far as reading and writing its values goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnText {
    pub(super) name: String,
    pub(super) reading: Reading,
    pub(super) nullable: bool,
}

/// How the values of a column are read, so that nothing of them is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reading {
    /// A number whose text says it all.
    Number,
    /// A number of which the server would show six digits only.
    Float,
    /// Bits, read as a number.
    Bit,
    /// Text, and whatever else has no `NULL` among its values but is written in quotes.
    Text,
    /// Dates and times.
    Moment,
    /// Bytes.
    Bytes,
    /// Text in a character set that does not survive being written as UTF-8.
    Encoded,
    /// Computed from other columns: not read at all.
    Computed,
}

/// One sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sequence {
    pub(super) name: String,
    pub(super) create: String,
    /// Its one row: the next value that is not handed out yet, and the rest.
    pub(super) row: String,
}

/// What a statement depends on besides its text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// `None` for what takes no notice of it.
    pub(super) sql_mode: Option<String>,
    /// The character set that the statement is written in.
    pub(super) client: String,
    /// The collation of texts in it.
    pub(super) connection: String,
    /// The time zone of an event.
    pub(super) time_zone: Option<String>,
}

/// One trigger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trigger {
    pub(super) name: String,
    pub(super) table: String,
    /// Which of those for the same event, from 1.
    pub(super) order: u32,
    pub(super) create: Text,
    pub(super) settings: Settings,
}

/// One view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct View {
    pub(super) name: String,
    pub(super) create: Text,
    pub(super) settings: Settings,
    /// Whether something that it needs is missing, so that it cannot be made again.
    pub(super) broken: bool,
}

/// A procedure, function or package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Routine {
    /// `PROCEDURE`, `FUNCTION`, `PACKAGE`, `PACKAGE BODY`.
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) create: Text,
    pub(super) settings: Settings,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) create: Text,
    pub(super) settings: Settings,
}

/// A statement in the character set of whoever made it. In JSON it is text, or, where it is
/// not UTF-8, `0x…`: no statement begins so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text(pub(super) Vec<u8>);

impl Text {
    /// For people.
    pub(super) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => serializer.serialize_str(&hex(&self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix("0x") {
            None => Ok(Self(text.into_bytes())),
            Some(digits) => unhex(digits.as_bytes())
                .map(Self)
                .ok_or_else(|| serde::de::Error::custom("not hexadecimal")),
        }
    }
}

/// `0x…`, as SQL writes bytes.
pub(super) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2 + 2);
    text.push_str("0x");
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(match nibble {
                0..=9 => b'0' + nibble,
                _ => b'A' + nibble - 10,
            }));
        }
    }
    text
}

/// The bytes that hexadecimal digits say.
pub(super) fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    match rest.is_empty() {
        true => pairs.iter().map(byte).collect(),
        false => None,
    }
}

impl Structure {
    pub(super) const FORMAT: u32 = 1;

    /// Reads the piece. What a newer version has written is refused.
    pub(super) fn from_bytes(bytes: &[u8], address: &str) -> Result<Self, DatabaseError> {
        let wrong = |why: String| DatabaseError::Unsupported {
            address: address.to_owned(),
            why,
        };
        let structure: Self = serde_json::from_slice(bytes)
            .map_err(|error| wrong(format!("its structure cannot be read: {error}")))?;
        match structure.format {
            Self::FORMAT => Ok(structure),
            other => Err(wrong(format!("its structure has the unknown form {other}"))),
        }
    }

    /// Whether a table, sequence or view is meant.
    pub(super) fn means(&self, name: &str) -> bool {
        means(&self.only, name)
    }

    /// The part of it that `only` means.
    pub(super) fn narrowed(mut self, only: &[String]) -> Self {
        if only.is_empty() {
            return self;
        }
        if self.only.is_empty() {
            self.only = only.to_vec();
            self.database.clear();
            self.routines.clear();
            self.events.clear();
        } else {
            self.only.retain(|name| means(only, name));
        }
        let only = self.only.clone();
        self.tables.retain(|table| means(&only, &table.name));
        self.sequences.retain(|one| means(&only, &one.name));
        self.views.retain(|view| means(&only, &view.name));
        self.triggers.retain(|trigger| means(&only, &trigger.table));
        self
    }

    /// What tables and sequences are called.
    pub(super) fn movable(&self) -> impl Iterator<Item = &str> {
        let tables = self.tables.iter().map(|table| table.name.as_str());
        tables.chain(self.sequences.iter().map(|one| one.name.as_str()))
    }

    /// Whether a table of this name is among them.
    pub(super) fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|table| table.name == name)
    }

    /// Whether a table has triggers.
    pub(super) fn has_trigger(&self, table: &str) -> bool {
        self.triggers.iter().any(|trigger| trigger.table == table)
    }

    /// The same without what moves while others write: the values of counters and sequences,
    /// and when a table was created.
    pub(super) fn at_rest(&self) -> Self {
        let mut still = self.clone();
        for table in &mut still.tables {
            table.counter = table.counter.map(|_| 0);
        }
        for sequence in &mut still.sequences {
            sequence.row.clear();
        }
        still
    }
}

fn means(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_bytes() {
        for bytes in [b"CREATE VIEW \xc3\xa4".to_vec(), b"CREATE \xe4'".to_vec()] {
            let text = Text(bytes);
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), text);
        }
        assert_eq!(hex(&[0, 0xab, 0xff]), "0x00ABFF");
        assert_eq!(unhex(b"00abFF"), Some(vec![0, 0xab, 0xff]));
        assert_eq!(unhex(b"0"), None);
        assert_eq!(unhex(b"0g"), None);
    }

    #[test]
    fn a_newer_form_is_refused() {
        let newer = Structure {
            format: 2,
            ..Structure::default()
        };
        let bytes = serde_json::to_vec(&newer).unwrap();
        assert!(Structure::from_bytes(&bytes, "mariadb:///x").is_err());
    }
}
