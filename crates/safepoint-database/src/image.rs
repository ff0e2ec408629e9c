//! What a capture is: the structure, the rows of each table, and whatever else
//! its engine needs to bring it back.

use safepoint_model::Digest;
use serde::{Deserialize, Serialize};

use crate::{Engine, Piece};

/// A database as it was at one moment. Its form is versioned: it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Image {
    /// The version of this form.
    pub format: u32,
    /// Which kind of database.
    pub engine: Engine,
    /// What the server says its version is.
    pub server: String,
    /// The structure, for comparing. Restoring uses `pieces`.
    pub schema: Schema,
    /// The tables in scope, sorted by name.
    pub tables: Vec<TableImage>,
    /// What the engine restores from, by a name that the engine knows.
    pub pieces: Vec<(String, Piece)>,
    /// What is in the database and was not captured.
    pub not_covered: Vec<String>,
}

/// The rows of one table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableImage {
    /// Its name, with the schema in front of it where the engine has schemas.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// A digest of the rows, as the engine writes them.
    pub checksum: Digest,
    /// The rows, one to a line, where the engine keeps them by themselves.
    pub data: Option<Piece>,
}

/// The structure of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The tables in scope, sorted by name.
    pub tables: Vec<Table>,
    /// Everything else: indexes, constraints, sequences, views, triggers, types,
    /// functions; sorted by kind and name.
    pub objects: Vec<Object>,
}

/// The structure of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name, as in [`TableImage::name`].
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<Column>,
    /// The names of the columns of its primary key.
    pub key: Vec<String>,
}

/// One column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type and everything else that its definition says, as the engine writes it:
    /// `varchar(20) DEFAULT 'active'`.
    pub definition: String,
}

/// Something that belongs to the structure and is no table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Object {
    /// `index`, `constraint`, `sequence`, `view`, `trigger`, `type`, `function` …
    pub kind: String,
    /// Its name.
    pub name: String,
    /// How it is defined; for a sequence also where it stands.
    pub definition: String,
}

impl Image {
    /// The version of the form.
    pub const FORMAT: u32 = 1;

    /// A digest of structure and rows. Two captures of the same state have the same,
    /// whatever the file or dump that they were kept in looks like.
    pub fn digest(&self) -> Digest {
        let mut text = String::from("safepoint database 1\n");
        for table in &self.schema.tables {
            line(&mut text, "table", &table.name, &table.key.join(","));
            for column in &table.columns {
                line(&mut text, "column", &column.name, &column.definition);
            }
        }
        for object in &self.schema.objects {
            line(&mut text, &object.kind, &object.name, &object.definition);
        }
        for table in &self.tables {
            let rows = format!("{} {}", table.rows, table.checksum);
            line(&mut text, "rows", &table.name, &rows);
        }
        Digest::of_parts(&[text.as_bytes()])
    }

    /// How many rows all tables have together.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// The piece that the engine keeps under `name`.
    pub fn piece(&self, name: &str) -> Option<&Piece> {
        self.pieces
            .iter()
            .find_map(|(known, piece)| (known == name).then_some(piece))
    }

    /// Everything that this image needs to be kept.
    pub fn all_pieces(&self) -> impl Iterator<Item = &Piece> {
        let data = self.tables.iter().filter_map(|table| table.data.as_ref());
        self.pieces.iter().map(|(_, piece)| piece).chain(data)
    }
}

/// One line, framed by lengths, so that no name can be taken for the next one.
fn line(text: &mut String, kind: &str, name: &str, rest: &str) {
    use std::fmt::Write;
    let _ = writeln!(text, "{kind} {} {name} {} {rest}", name.len(), rest.len());
}
