//! Changing values of JSON, YAML and TOML documents.
//!
//! A change is made twice: to what the document says, and to its text, in which
//! nothing else is touched. The new text is then read again, and has to say
//! exactly what was asked for; otherwise there is no new text.

mod brackets;
mod editor;
mod json;
mod merge;
mod number;
mod operations;
mod pointer;
mod splice;
#[cfg(test)]
mod tests;
mod toml;
mod tree;
mod yaml;

use std::fmt;

use serde_json::Value;

use super::EditError;
use super::lines::{BYTE_ORDER_MARK, MOST_BYTES, as_text, check_limit, check_size};
use editor::Editor;

/// What is to be changed.
///
/// A [`Value`] holds numbers of up to 64 bits: one with more digits has lost
/// some of them before it comes here. Numbers of the document never do.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A JSON Patch (RFC 6902): a list of operations.
    Patch(Value),
    /// A JSON Merge Patch (RFC 7386).
    Merge(Value),
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON; comments and a last comma are kept where there are any.
    Json,
    /// YAML 1.2.
    Yaml,
    /// TOML 1.0.
    Toml,
}

impl Format {
    /// The format of a file, by the ending of its name.
    pub fn of_name(name: &[u8]) -> Option<Self> {
        let name = name.rsplit(|byte| *byte == b'/').next()?;
        let dot = name.iter().rposition(|byte| *byte == b'.')?;
        let ending = name.get(dot + 1..)?.to_ascii_lowercase();
        match ending.as_slice() {
            b"json" | b"jsonc" | b"geojson" | b"ipynb" | b"webmanifest" => Some(Self::Json),
            b"yaml" | b"yml" => Some(Self::Yaml),
            b"toml" => Some(Self::Toml),
            _ => None,
        }
    }
}

impl Format {
    /// So large a document may be. What the parsers take grows with it.
    fn most_bytes(self) -> usize {
        match self {
            Self::Json => MOST_BYTES,
            Self::Yaml => MOST_BYTES / 2,
            Self::Toml => MOST_BYTES / 4,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
        })
    }
}

/// A document after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The new content.
    pub bytes: Vec<u8>,
    /// JSON pointers to what changed, in the order of the operations and as
    /// each of them saw the document. Nothing when it says already what was
    /// asked for; the content is then the same.
    pub paths: Vec<String>,
}

/// Changes values of a document: all that is asked for, or nothing.
pub fn change(format: Format, content: &[u8], change: &Change) -> Result<Changed, EditError> {
    check_limit("the file", content.len(), format.most_bytes(), "bytes")?;
    let whole = as_text(content)?;
    let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
    let (changed, paths) = match format {
        Format::Json => changed(format, text, change, json::read, json::write),
        Format::Yaml => changed(format, text, change, yaml::read, yaml::write),
        Format::Toml => changed(format, text, change, toml::read, toml::write),
    }?
    .unwrap_or_else(|| (text.to_owned(), Vec::new()));
    let mark = if whole.len() > text.len() {
        BYTE_ORDER_MARK
    } else {
        ""
    };
    let bytes = [mark.as_bytes(), changed.as_bytes()].concat();
    check_size("the result", &bytes)?;
    Ok(Changed { bytes, paths })
}

type Read<Source> = fn(&str) -> Result<(tree::Tree, Source), EditError>;
type Write<Source> = fn(&str, &Source, &tree::Tree) -> Result<String, EditError>;

/// The new text and what changed in it; nothing when nothing did.
fn changed<Source>(
    format: Format,
    text: &str,
    change: &Change,
    read: Read<Source>,
    write: Write<Source>,
) -> Result<Option<(String, Vec<String>)>, EditError> {
    let (tree, source) = read(text)?;
    let mut editor = Editor::new(tree);
    match change {
        Change::Patch(patch) => operations::patch(&mut editor, patch)?,
        Change::Merge(patch) => merge::merge(&mut editor, patch)?,
    }
    if editor.paths.is_empty() {
        return Ok(None);
    }
    let Editor { tree, paths, .. } = editor;
    tree.check()?;
    let changed = write(text, &source, &tree)?;
    let (check, _) = read(&changed).map_err(|_| EditError::NotExact {
        format,
        why: "the result could not be read again",
    })?;
    if !tree.identical(tree.root, &check, check.root) {
        return Err(EditError::NotExact {
            format,
            why: "the result does not say what was asked for",
        });
    }
    Ok(Some((changed, paths)))
}
