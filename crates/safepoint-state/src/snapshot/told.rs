//! A row of a checkpoint or an action is acted upon only when the trail tells of it.
//!
//! The entry that tells of a row has its digest, and the row knows the place of that entry. What
//! somebody wrote into the tables behind our back has no such entry. How long a checkpoint is kept,
//! whether it is pinned and what it was spent on change later, and are not part of it. That it is
//! kept for longer than was told at first does no harm; before it is deleted because it has
//! expired, that is read in the entry.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_model::{ActionId, Digest, Expiry, Frame, Timestamp};
use safepoint_store::{Sql, StoreError};
use safepoint_trail::{Trail, entry_at};
use serde::Deserialize;

use super::{Action, Note, Record, Snapshot, SnapshotId, table};
use crate::StateError;
use crate::identity::Marks;
use crate::state::stream;

const SNAPSHOT_TAG: &str = "safepoint/checkpoint-row/v1";
const ACTION_TAG: &str = "safepoint/action-row/v1";

/// A row, and where the trail tells of it.
pub(crate) struct Told<T> {
    pub(crate) row: T,
    pub(crate) entry: i64,
    pub(crate) digest: Digest,
}

/// The part of such an entry that is about its row, and about the directory.
#[derive(Deserialize)]
pub(crate) struct Said {
    row: Digest,
    /// The place of the entry.
    #[serde(skip)]
    pub(crate) entry: u64,
    /// Which directory it was; entries of earlier releases do not say.
    #[serde(default)]
    pub(crate) directory: Option<Marks>,
    /// The one that it was restored in the place of.
    #[serde(default)]
    pub(crate) in_place_of: Option<String>,
    /// What an action did that no checkpoint holds.
    #[serde(default)]
    pub(crate) unheld: Vec<Note>,
    /// Until when a checkpoint is kept; for ever without it.
    #[serde(default)]
    expiry: Option<Timestamp>,
}

/// The text that the row of a checkpoint has of its record.
pub(crate) fn text_of(record: &Record) -> Result<String, StateError> {
    serde_json::to_string(record).map_err(|error| StateError::Unsupported(error.to_string()))
}

/// The digest of the row of a checkpoint, with the text of its record.
pub(crate) fn of_snapshot(snapshot: &Snapshot, record: &str) -> Digest {
    Frame::new(SNAPSHOT_TAG)
        .field(snapshot.id.as_str().as_bytes())
        .field(snapshot.workspace.as_os_str().as_bytes())
        .field(&snapshot.created.as_micros().to_be_bytes())
        .field(record.as_bytes())
        .digest()
}

/// The digest of the row of an action.
pub(crate) fn of_action(action: &Action) -> Digest {
    let mut frame = Frame::new(ACTION_TAG);
    frame
        .field(action.id.as_str().as_bytes())
        .field(action.workspace.as_os_str().as_bytes())
        .field(&action.time.as_micros().to_be_bytes());
    // What is not there is told apart from what is empty.
    for optional in [
        action.session.as_deref(),
        action.decision.as_deref(),
        action.undoes.as_ref().map(ActionId::as_str),
    ] {
        frame.number(u64::from(optional.is_some()));
        frame.field(optional.unwrap_or_default().as_bytes());
    }
    for text in [
        &action.action,
        &action.summary,
        &action.outcome,
        action.before.as_str(),
        action.after.as_str(),
    ] {
        frame.field(text.as_bytes());
    }
    frame.digest()
}

/// The kinds of entries that tell of the row of an action.
const OF_ACTIONS: [&str; 10] = [
    "action_observed",
    "action_done",
    "mutation_done",
    "mutation_unknown",
    "mutation_rolled_back",
    "roll_back_failed",
    "rolled_back",
    "undone",
    "redone",
    "work_brought",
];

impl<T> Told<T> {
    /// The row, if an entry of the trail that is of one of these kinds tells of it, in the stream
    /// of its directory.
    fn proved(
        self,
        trail: &Trail,
        sql: &mut dyn Sql,
        kinds: &[&str],
        directory: impl FnOnce(&T) -> &Path,
    ) -> Result<Option<(T, Said)>, StateError> {
        let entry = match u64::try_from(self.entry) {
            Ok(place) => entry_at(sql, place)?,
            Err(_) => None,
        };
        let stream = stream(directory(&self.row));
        let right =
            entry.filter(|entry| kinds.contains(&entry.kind.as_str()) && entry.stream == stream);
        let Some(entry) = right else { return Ok(None) };
        if !trail.is_genuine(&entry)? {
            return Ok(None);
        }
        let said: Option<Said> = serde_json::from_str(&trail.whole_body(&entry.body)?).ok();
        let said = said.filter(|said| said.row == self.digest);
        let place = entry.seq;
        Ok(said.map(|said| {
            let said = Said {
                entry: place,
                ..said
            };
            (self.row, said)
        }))
    }
}

fn tampered(what: &'static str, name: &str) -> StateError {
    let name = name.to_owned();
    StateError::Tampered { what, name }
}

/// What was found; a row that cannot be read was not written by us.
fn readable<T>(
    found: Result<T, StateError>,
    what: &'static str,
    name: &str,
) -> Result<T, StateError> {
    match found {
        Err(StateError::Store(StoreError::Column { .. })) => Err(tampered(what, name)),
        other => other,
    }
}

/// The one checkpoint whose id begins with `prefix`, as the trail tells of it.
pub(crate) fn find(trail: &Trail, sql: &mut dyn Sql, prefix: &str) -> Result<Snapshot, StateError> {
    find_said(trail, sql, prefix).map(|(snapshot, _)| snapshot)
}

/// The same, of one that has expired. One that its row says has expired, and the trail not, was
/// changed by somebody.
pub(crate) fn find_expired(
    trail: &Trail,
    sql: &mut dyn Sql,
    id: &SnapshotId,
    now: Timestamp,
) -> Result<Snapshot, StateError> {
    let (snapshot, said) = find_said(trail, sql, id.as_str())?;
    let told = Snapshot {
        expiry: said.expiry.map_or(Expiry::Never, Expiry::At),
        ..snapshot
    };
    match told.is_expired(now) {
        true => Ok(told),
        false => Err(tampered("checkpoint", id.as_str())),
    }
}

/// The same, with what else the trail says of it.
pub(crate) fn find_said(
    trail: &Trail,
    sql: &mut dyn Sql,
    prefix: &str,
) -> Result<(Snapshot, Said), StateError> {
    let what = "checkpoint";
    let found = readable(table::find(sql, prefix), what, prefix)?;
    let name = found.row.id.to_string();
    let proved = found.proved(trail, sql, &["checkpoint_created"], |row| &row.workspace)?;
    proved.ok_or_else(|| tampered(what, &name))
}

/// The one action whose id begins with `prefix`, as the trail tells of it.
pub(crate) fn find_action(
    trail: &Trail,
    sql: &mut dyn Sql,
    prefix: &str,
) -> Result<Action, StateError> {
    find_action_said(trail, sql, prefix).map(|(action, _)| action)
}

/// The same, with what else the trail says of it.
pub(crate) fn find_action_said(
    trail: &Trail,
    sql: &mut dyn Sql,
    prefix: &str,
) -> Result<(Action, Said), StateError> {
    let what = "action";
    let found = readable(table::find_action(sql, prefix), what, prefix)?;
    let name = found.row.id.to_string();
    let proved = found.proved(trail, sql, &OF_ACTIONS, |row| &row.workspace)?;
    proved.ok_or_else(|| tampered(what, &name))
}

/// Whether an action is recorded. A row of it that the trail does not tell of is an error.
pub(crate) fn is_recorded(
    trail: &Trail,
    sql: &mut dyn Sql,
    id: &ActionId,
) -> Result<bool, StateError> {
    match find_action(trail, sql, id.as_str()) {
        Ok(_) => Ok(true),
        Err(StateError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses a checkpoint that is not there, or not as the trail tells of it.
pub fn prove(trail: &Trail, sql: &mut dyn Sql, id: &SnapshotId) -> Result<(), StateError> {
    find(trail, sql, id.as_str()).map(drop)
}
