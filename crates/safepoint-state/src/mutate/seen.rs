//! What a target was and what it is, as the record of a change tells it.

use safepoint_database::Image;
use serde_json::{Value, json};

use super::place::Target;
use crate::StateError;
use crate::objects::Reader;
use crate::part::{Held, Part, image_of};
use crate::path;
use crate::tree::{self, Entry, Node, Subtree};

/// More text than this is told by its size and digest.
const MOST_TEXT: u64 = 64 << 10;

/// A target as it stands in a capture.
pub(super) fn state_of(
    reader: &Reader<'_>,
    files: &Subtree,
    parts: &[Part],
    target: &Target,
) -> Result<Value, StateError> {
    match target {
        Target::Place(place) if place.path.is_empty() => Ok(directory(files)),
        Target::Place(place) => {
            let found = tree::find(reader, Some(files), &place.path)?;
            found.map_or(Ok(Value::Null), |entry| file(reader, &entry))
        }
        Target::Part(subject) => {
            let part = parts.iter().find(|part| part.subject == *subject);
            part.map_or(Ok(Value::Null), |part| part_value(reader, part))
        }
    }
}

fn directory(subtree: &Subtree) -> Value {
    json!({
        "kind": "directory",
        "files": subtree.files,
        "bytes": subtree.bytes,
        "hash": format!("sha256:{}", subtree.hash),
    })
}

fn file(reader: &Reader<'_>, entry: &Entry) -> Result<Value, StateError> {
    let mode = format!("{:04o}", entry.mode);
    Ok(match &entry.node {
        Node::File { size, content, .. } => {
            if *size <= MOST_TEXT
                && let Ok(text) = String::from_utf8(reader.read(*content)?)
                && !text.contains('\0')
            {
                return Ok(Value::String(text));
            }
            json!({ "kind": "file", "size": size, "blake3": content, "mode": mode })
        }
        Node::Directory(subtree) => directory(subtree),
        Node::Symlink { target } => json!({ "kind": "symlink", "to": path::display(target) }),
        Node::Special { kind, .. } => json!({ "kind": kind.as_str() }),
    })
}

/// A database by its tables, a state by its value.
fn part_value(reader: &Reader<'_>, part: &Part) -> Result<Value, StateError> {
    Ok(match &part.held {
        Held::Absent => Value::Null,
        Held::Bytes { content, .. } => {
            let bytes = reader.read(*content)?;
            serde_json::from_slice(&bytes)
                .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()))
        }
        Held::Image { image, .. } => tables(&image_of(reader, *image)?),
    })
}

fn tables(image: &Image) -> Value {
    let rows = |name: &str| {
        let table = image.tables.iter().find(|table| table.name == name);
        table.map_or(0, |table| table.rows)
    };
    let tables: serde_json::Map<String, Value> = image
        .schema
        .tables
        .iter()
        .map(|table| {
            let columns: Vec<&str> = table.columns.iter().map(|it| it.name.as_str()).collect();
            let value = json!({ "columns": columns, "rows": rows(&table.name) });
            (table.name.clone(), value)
        })
        .collect();
    json!({ "tables": tables, "hash": format!("sha256:{}", image.digest()) })
}
