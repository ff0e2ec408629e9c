//! What entries tell of what is kept. Fields that are not compared are not read.

use std::borrow::Cow;

use safepoint_model::{Digest, RecordId, Span, TaskId, Timestamp, WorkspaceId};
use safepoint_state::SnapshotId;
use safepoint_trail::{Brief, Trail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::marked::RowsTold;
use crate::ProgressError;
use crate::meter::Budget;
use crate::record::{Confidence, Status};
use crate::role::Name;
use crate::signal::SignalType;
use crate::state::State;

#[derive(Deserialize)]
pub(super) struct WorkspaceTold {
    pub(super) workspace: WorkspaceId,
    pub(super) run: WorkspaceId,
    pub(super) parent: Option<WorkspaceId>,
    pub(super) role: Name,
    pub(super) originator: String,
    pub(super) agent: Digest,
    pub(super) taxonomy: TaxonomyTold,
    pub(super) directive: Option<Digest>,
    pub(super) budget: Budget,
    pub(super) timeout: Option<Span>,
    pub(super) task: Option<TaskId>,
    pub(super) timestamp: Timestamp,
    pub(super) rows: RowsTold,
}

/// What any entry says that has rows.
#[derive(Deserialize)]
pub(super) struct OnlyRows {
    #[serde(default)]
    pub(super) rows: RowsTold,
}

#[derive(Deserialize)]
pub(super) struct TaskGiven {
    pub(super) task: TaskId,
}

#[derive(Deserialize)]
pub(super) struct TaxonomyTold {
    pub(super) digest: Digest,
}

#[derive(Deserialize)]
pub(super) struct BindingTold {
    pub(super) agent: Digest,
    pub(super) timestamp: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct MoveTold {
    pub(super) from: State,
    pub(super) to: State,
    pub(super) reason: Option<String>,
    pub(super) timestamp: Timestamp,
    pub(super) rows: RowsTold,
}

/// What an entry says of a record that was made.
#[derive(Deserialize)]
pub(crate) struct RecordTold {
    pub(crate) checkpoint_id: RecordId,
    pub(crate) workspace: WorkspaceId,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) status: Status,
    pub(crate) confidence: Confidence,
    pub(crate) parent: Option<RecordId>,
    pub(crate) timestamp: Timestamp,
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) integrity: IntegrityTold,
    pub(crate) request: Option<Digest>,
    pub(crate) rows: RowsTold,
}

#[derive(Deserialize)]
pub(crate) struct IntegrityTold {
    pub(crate) proof: Digest,
}

/// Of signals there are most: what is only compared is borrowed.
#[derive(Deserialize)]
pub(super) struct SignalTold<'a> {
    #[serde(borrow)]
    pub(super) signal_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) from: Cow<'a, str>,
    #[serde(rename = "type")]
    pub(super) kind: SignalType,
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct DeliveryTold<'a> {
    #[serde(borrow)]
    pub(super) signal_id: Cow<'a, str>,
    pub(super) from: WorkspaceId,
    #[serde(borrow)]
    pub(super) delivered_to: Cow<'a, str>,
    pub(super) emission: u64,
}

/// Reads what an entry tells.
pub(super) fn read<T: DeserializeOwned>(
    trail: &Trail,
    entry: Brief<'_>,
) -> Result<T, ProgressError> {
    read_from(entry, &trail.whole_body(entry.body)?)
}

/// The same for what borrows from the whole body of the entry.
pub(super) fn read_from<'a, T: Deserialize<'a>>(
    entry: Brief<'_>,
    body: &'a str,
) -> Result<T, ProgressError> {
    serde_json::from_str(body).map_err(|_| ProgressError::Tampered {
        what: "trail entry",
        id: entry.id.to_string(),
    })
}
