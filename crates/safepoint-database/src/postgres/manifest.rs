//! What a restore has to know besides the scripts and the rows. It is kept as a piece of
//! its own, in JSON; its form is versioned.

use serde::{Deserialize, Serialize};

use super::catalogue::Sequence;
use super::name::Name;
use super::scope::Extent;
use crate::{Contents, DatabaseError, Image};

/// The name of the piece.
pub(super) const PIECE: &str = "manifest";

/// What was captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) format: u32,
    /// What an address would ask for; empty for all.
    pub(super) only: Vec<String>,
    pub(super) units: Vec<UnitManifest>,
    /// All tables that have rows of their own.
    pub(super) tables: Vec<TableManifest>,
    pub(super) sequences: Vec<SequenceManifest>,
    /// Materialised views that were filled, in an order in which they can be filled again.
    pub(super) filled: Vec<Name>,
    pub(super) schemas: Vec<SchemaManifest>,
    /// In the order in which they were made.
    pub(super) extensions: Vec<ExtensionManifest>,
}

/// One unit. Its scripts are the pieces `structure:LABEL` and `finish:LABEL`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitManifest {
    pub(super) extent: Extent,
    pub(super) label: String,
    /// The tables of a unit that is a table.
    pub(super) tables: Vec<Name>,
    /// A digest of its structure, for telling whether it has changed since.
    pub(super) structure: String,
    /// The same of who owns it and who may do what with it.
    pub(super) privileges: String,
}

/// A table that has rows of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableManifest {
    pub(super) name: Name,
    /// The columns that are kept; others are computed from them.
    pub(super) columns: Vec<String>,
}

/// Where a sequence stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SequenceManifest {
    pub(super) name: Name,
    pub(super) value: i64,
    pub(super) called: bool,
}

/// A schema by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SchemaManifest {
    pub(super) name: String,
    pub(super) owner: String,
    pub(super) grants: Vec<Grant>,
    pub(super) comment: Option<String>,
}

/// A right that somebody was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    /// By whom; the owner's come first.
    pub(super) grantor: String,
    /// To whom; empty for everybody.
    pub(super) grantee: String,
    pub(super) privilege: String,
    /// Whether it may be handed on.
    pub(super) grantable: bool,
}

/// An extension that was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtensionManifest {
    pub(super) name: String,
    pub(super) schema: String,
    pub(super) version: String,
}

impl Manifest {
    /// The version of this form.
    pub(super) const FORMAT: u32 = 1;

    /// The manifest of an image.
    pub(super) fn read(
        image: &Image,
        contents: &dyn Contents,
        address: &str,
    ) -> Result<Self, DatabaseError> {
        let unsupported = |why: String| DatabaseError::Unsupported {
            address: address.to_owned(),
            why,
        };
        if image.format != Image::FORMAT {
            return Err(unsupported(format!(
                "the capture has format {}, and this version knows {}",
                image.format,
                Image::FORMAT
            )));
        }
        let manifest: Self = read_json(image, PIECE, contents, address)?;
        match manifest.format == Self::FORMAT {
            true => Ok(manifest),
            false => Err(unsupported(format!(
                "the capture has manifest format {}, and this version knows {}",
                manifest.format,
                Self::FORMAT
            ))),
        }
    }
}

impl SequenceManifest {
    pub(super) fn of(sequence: &Sequence, value: i64, called: bool) -> Self {
        Self {
            name: sequence.name.clone(),
            value,
            called,
        }
    }
}

/// The name of the piece with what is made before the rows come.
pub(super) fn structure_piece(label: &str) -> String {
    format!("structure:{label}")
}

/// The name of the piece with what is made behind them: indexes, constraints, triggers.
pub(super) fn finish_piece(label: &str) -> String {
    format!("finish:{label}")
}

/// A piece that is JSON.
pub(super) fn read_json<T: for<'de> Deserialize<'de>>(
    image: &Image,
    name: &str,
    contents: &dyn Contents,
    address: &str,
) -> Result<T, DatabaseError> {
    let unsupported = |why: String| DatabaseError::Unsupported {
        address: address.to_owned(),
        why,
    };
    let piece = image
        .piece(name)
        .ok_or_else(|| unsupported(format!("the capture has no piece `{name}`")))?;
    serde_json::from_slice(&contents.read(piece)?)
        .map_err(|error| unsupported(format!("piece `{name}` of the capture is damaged: {error}")))
}
