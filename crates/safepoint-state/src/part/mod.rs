//! What a snapshot holds besides files: databases and named states.
//!
//! Each part is captured and brought back by itself, through whatever owns it:
//! the database's engine, the commands of a provider, or, for a state that has
//! no provider, our own store.

mod capture;
mod kept;
mod provider;
mod restore;
mod revert;
mod value;

use safepoint_database::Address;
use safepoint_model::{Digest, Frame};
use serde::{Deserialize, Serialize};

pub(crate) use capture::{part_of_image, set_given};
pub(crate) use kept::{Keeping, Reading, content_of, image_of};
pub use provider::Provider;
pub(crate) use revert::Remainder;
pub(crate) use value::copy_values;

use crate::text::{self, Comparison};
use crate::{ContentId, StateError};

/// What a part is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// A named state.
    State {
        /// Its name.
        key: String,
    },
    /// A database, or some of its tables.
    Database {
        /// Where it is.
        address: Address,
        /// The variable of the environment that holds the same address with the password.
        #[serde(default)]
        variable: Option<String>,
    },
}

impl Subject {
    /// How it is named on a command line.
    pub fn name(&self) -> String {
        match self {
            Self::State { key } => format!("state:{key}"),
            Self::Database { address, .. } => address.to_string(),
        }
    }
}

/// A part that is to be captured.
#[derive(Clone, Debug)]
pub struct WantedPart {
    /// Of what.
    pub subject: Subject,
    /// The value of a state, where it is given rather than asked for.
    pub value: Option<Vec<u8>>,
}

/// A part as it was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Of what.
    pub subject: Subject,
    /// What it was.
    pub held: Held,
    /// A digest of what it was, whatever it was kept as.
    pub hash: Digest,
}

/// What a part was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Held {
    /// It was not there.
    Absent,
    /// Bytes: the value of a state, or a file that should be a database and is none.
    Bytes {
        /// Which.
        content: ContentId,
        /// How many.
        size: u64,
    },
    /// A database.
    Image {
        /// The object that describes it and names its pieces.
        image: ContentId,
        /// How many tables are in it.
        tables: u64,
        /// How many rows.
        rows: u64,
        /// How many bytes its pieces have.
        size: u64,
    },
}

impl Part {
    /// Whether both hold the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.hash == other.hash
    }

    /// What it is, in a few words.
    pub fn summary(&self) -> String {
        let name = self.subject.name();
        match &self.held {
            Held::Absent => format!("{name} (not there)"),
            Held::Bytes { size, .. } => format!("{name} ({size} bytes)"),
            Held::Image { tables, rows, .. } => format!("{name} ({tables} tables, {rows} rows)"),
        }
    }
}

/// The hash of files and parts together. Without parts it is that of the files.
pub(crate) fn hash(files: Digest, parts: &[Part]) -> Digest {
    if parts.is_empty() {
        return files;
    }
    let mut frame = Frame::new("safepoint/checkpoint/v1");
    frame.field(files.as_bytes());
    for part in parts {
        frame.field(part.subject.name().as_bytes());
        frame.field(part.hash.as_bytes());
    }
    frame.digest()
}

/// A value for people: JSON on several lines, anything else as it is.
pub(crate) fn pretty(value: &[u8]) -> Vec<u8> {
    let parsed: Result<serde_json::Value, _> = serde_json::from_slice(value);
    match parsed.map(|value| serde_json::to_vec_pretty(&value)) {
        Ok(Ok(mut text)) => {
            text.push(b'\n');
            text
        }
        _ => value.to_vec(),
    }
}

/// What differs between two values.
pub(crate) fn unified(old: &[u8], new: &[u8]) -> String {
    match text::compare(old, new, 3) {
        Comparison::Same => String::new(),
        Comparison::Binary => format!("{} → {} bytes\n", old.len(), new.len()),
        Comparison::Text(hunks) => String::from_utf8_lossy(&text::unified(&hunks)).into_owned(),
    }
}

/// The subjects in a fixed order, each once.
pub(crate) fn in_order(mut wanted: Vec<WantedPart>) -> Result<Vec<WantedPart>, StateError> {
    wanted.sort_by(|a, b| a.subject.cmp(&b.subject));
    for pair in wanted.windows(2) {
        if let [a, b] = pair
            && a.subject == b.subject
        {
            return Err(StateError::BadScope {
                scope: a.subject.name(),
                why: "it is named twice".to_owned(),
            });
        }
    }
    Ok(wanted)
}
