//! Records: immutable pieces of work product, and what is asked for when one is to be made.
//!
//! A record is its canonical JSON. The proof is a digest over those bytes, so
//! that whatever is changed in it is found. Nothing is stored here.

mod payload;
mod request;
mod usage;

use safepoint_model::{ActionId, Digest, Frame, RecordId, Timestamp, WorkspaceId, json, text};
use safepoint_state::SnapshotId;
use serde::{Deserialize, Serialize};

pub use payload::Payload;
pub use request::{Asked, Files, read, type_of};
pub use usage::{Usage, WallTime};

use crate::words::words;

words! {
    /// Whether the agent considers it done.
    Status, "status of a checkpoint":
    /// It may be superseded.
    Provisional = "provisional",
    /// It may be integrated.
    Final = "final",
}

words! {
    /// How sure the agent is. Nothing depends on it but people's decisions.
    Confidence, "confidence":
    /// It is right.
    High = "high",
    /// There are reservations.
    Medium = "medium",
    /// It is uncertain.
    Low = "low",
}

/// The tag of a record's frame: what it is, and in which version.
pub const RECORD_TAG: &str = "safepoint/record/v1";

/// One record, as it is stored and shown.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its identifier; later ones in a workspace sort later.
    pub id: RecordId,
    /// The workspace whose chain it is in.
    pub workspace: WorkspaceId,
    /// Its type: a base type, or one of the taxonomy.
    #[serde(rename = "type")]
    pub kind: String,
    /// The work product.
    pub payload: Payload,
    /// Why it exists, in the agent's words.
    pub intent: String,
    /// The record before it; `None` for the first.
    pub parent: Option<RecordId>,
    /// Whether it is done.
    pub status: Status,
    /// How sure the agent is.
    pub confidence: Confidence,
    /// What it took since the record before it, by the agent's own account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_usage: Option<Usage>,
    /// The snapshot of the workspace's own directory that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotId>,
    /// The actions that made it, since the record before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<ActionId>,
    /// When it was made; later than the record before it.
    pub timestamp: Timestamp,
}

impl Record {
    /// The bytes that are stored and that the proof covers: RFC 8785 JSON.
    pub fn to_canonical(&self) -> Result<Vec<u8>, json::WriteError> {
        json::canonical_of(self)
    }
}

/// A path of a record for people. It may be escaped already, as the directory showed it: then
/// it is not escaped again.
pub fn shown_path(path: &str) -> String {
    let parts: Vec<String> = path.split('\\').map(|part| text::line(part).text).collect();
    parts.join("\\")
}

/// The integrity proof over the stored bytes of a record.
pub fn proof(id: &RecordId, canonical: &[u8]) -> Digest {
    Frame::new(RECORD_TAG)
        .field(id.as_str().as_bytes())
        .field(canonical)
        .digest()
}
