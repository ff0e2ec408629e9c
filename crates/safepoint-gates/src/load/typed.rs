//! Straight from text into the types, and the first fault on the way.

use safepoint_model::{json, text, yaml};
use serde::Deserialize;

use super::strict::Strict;
use super::{Place, Problem, Severity};
use crate::atlas::AtlasManifest;

/// What kept a text from being an atlas.
pub(super) struct Fault {
    pub(super) problem: Problem,
    /// Whether it is told whatever else is found: the tree of places does not see it.
    pub(super) always: bool,
}

/// Whether the text is meant as JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Reads `text`; the first fault otherwise.
pub(super) fn read(text: &str) -> Result<AtlasManifest, Fault> {
    if !is_json(text) {
        return yaml::read_as(text).map_err(|error| Fault {
            problem: problem(error.message, String::new(), error.line.zip(error.column)),
            always: false,
        });
    }
    let limits = json::Limits {
        bytes: yaml::MAX_BYTES,
        ..json::Limits::default()
    };
    // Nearly every document: the rest is read again, by what can say what is wrong.
    if let Some(manifest) = json::read_plain(text.as_bytes(), limits) {
        return Ok(manifest);
    }
    let value = json::read(text.as_bytes(), limits).map_err(|error| Fault {
        // A key that occurs twice is found again, with all the others.
        always: !matches!(error.kind, json::ReadErrorKind::DuplicateKey { .. }),
        problem: problem(
            error.kind.to_string(),
            error.path,
            Some((error.line, error.column)),
        ),
    })?;
    AtlasManifest::deserialize(Strict(value)).map_err(|error| fault(error.to_string()))
}

fn fault(message: String) -> Fault {
    Fault {
        problem: problem(message, String::new(), None),
        always: false,
    }
}

fn problem(message: String, pointer: String, at: Option<(usize, usize)>) -> Problem {
    Problem {
        severity: Severity::Error,
        message: text::line(&message).text,
        hint: None,
        pointer,
        place: at.map(|(line, column)| Place {
            line,
            column,
            length: 1,
        }),
    }
}
