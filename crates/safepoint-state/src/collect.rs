//! Giving back space: the only thing that ever deletes a checkpoint, and only when asked.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, Expiry, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, durable, fault};
use safepoint_trail::{Draft, Kind, Stream, TrailError};
use serde_json::json;

use crate::StateError;
use crate::forget::Remainders;
use crate::objects::{Collected, Mode, Objects, Usage};
use crate::snapshot::{self, Origin, Selection, Snapshot, SnapshotId};
use crate::state::State;
use crate::verify::references;

/// How long both states of an action are kept, expired or not, so that it can be undone.
pub const UNDO_GRACE_HOURS: i64 = 24;

/// The same in microseconds.
pub(crate) const UNDO_GRACE_MICROS: i64 = UNDO_GRACE_HOURS * 3_600 * 1_000_000;

/// An expired checkpoint that stays because an action is undone with it, or still runs.
#[derive(Clone, Debug)]
pub struct KeptForUndo {
    /// The checkpoint.
    pub checkpoint: SnapshotId,
    /// The newest action whose state before or after it is.
    pub action: ActionId,
}

/// Why a checkpoint that somebody names is not deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// It is pinned.
    Pinned,
    /// A record of work in a workspace refers to it.
    WorkRecord,
    /// A recent action is undone with it.
    Undo(ActionId),
    /// It is the state before an action that is being carried out.
    Running(ActionId),
    /// It is of this directory, and another one is meant.
    OtherWorkspace(PathBuf),
}

impl std::fmt::Display for KeepReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pinned => f.write_str("it is pinned"),
            Self::WorkRecord => f.write_str("a record of work refers to it"),
            Self::Undo(action) => write!(f, "the undo of `{action}` needs it"),
            Self::Running(action) => write!(f, "`{action}` is running and begins from it"),
            Self::OtherWorkspace(theirs) => write!(f, "it is of `{}`", theirs.display()),
        }
    }
}

/// Whether a checkpoint is deleted though a recent action cannot be undone without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is refused.
    Careful,
    /// It is deleted.
    Forced,
}

/// The states before the actions that are being carried out, and which action that is. Only the
/// crates above know.
pub type RunningStates = Vec<(SnapshotId, ActionId)>;

/// What was collected, or would be.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Checkpoints that have expired and are not pinned.
    pub deleted: Vec<SnapshotId>,
    /// How many stay.
    pub kept: usize,
    /// Those of them that have expired and that the undo of a recent action needs.
    pub kept_for_undo: Vec<KeptForUndo>,
    /// What the object store got rid of.
    pub objects: Collected,
    /// What could not be removed besides.
    pub warnings: Vec<String>,
}

impl State {
    /// What the object store holds.
    pub fn usage(&self) -> Result<Usage, StateError> {
        self.objects()?.usage()
    }

    /// Deletes expired checkpoints that are not pinned and that neither the undo of a recent
    /// action nor one that is `running` needs, and objects that nothing refers to.
    pub fn collect<E: From<StateError> + From<StoreError> + From<TrailError>>(
        &self,
        running: &dyn Fn(&mut dyn Sql) -> Result<RunningStates, E>,
        mode: Mode,
    ) -> Result<Collection, E> {
        let objects = self.objects_to_collect()?;
        let now = self.now();
        let mut needed = self.needed_for_undo(now)?;
        needed.extend(self.trail.store().read(running)?);
        let all = self.list(&Selection::default())?;
        let (deleted, kept): (Vec<Snapshot>, Vec<Snapshot>) = all
            .into_iter()
            .partition(|one| one.is_expired(now) && !one.pinned && !needed.contains_key(&one.id));
        for snapshot in &deleted {
            // A row can be told that it has expired; the trail cannot.
            self.trail
                .store()
                .read(|sql| snapshot::find_expired(&self.trail, sql, &snapshot.id, now))?;
        }
        let kept_for_undo = kept
            .iter()
            .filter(|one| one.is_expired(now) && !one.pinned)
            .filter_map(|one| {
                Some(KeptForUndo {
                    checkpoint: one.id.clone(),
                    action: needed.get(&one.id)?.clone(),
                })
            })
            .collect();
        let collection = self.delete(&objects, deleted, &kept, running, mode, "it had expired")?;
        Ok(Collection {
            kept_for_undo,
            ..collection
        })
    }

    /// Deletes one checkpoint of the directory `here` because somebody asks for it, expired or
    /// not, and objects that nothing refers to then. What a `running` action needs stays.
    pub fn delete_checkpoint<E: From<StateError> + From<StoreError> + From<TrailError>>(
        &self,
        prefix: &str,
        here: &Path,
        choice: Choice,
        running: &dyn Fn(&mut dyn Sql) -> Result<RunningStates, E>,
        mode: Mode,
    ) -> Result<Collection, E> {
        let objects = self.objects_to_collect()?;
        let chosen = self.find(prefix)?;
        if let Some(because) = self.reason_to_keep(&chosen, here, choice)? {
            return Err(not_deleted(&chosen.id, because).into());
        }
        // Whoever is in the middle of an action cannot give up its way back.
        let needed = self.trail.store().read(running)?;
        refuse_running([&chosen.id], needed)?;
        let all = self.list(&Selection::default())?;
        let (deleted, kept): (Vec<Snapshot>, Vec<Snapshot>) =
            all.into_iter().partition(|one| one.id == chosen.id);
        let why = "somebody asked for it";
        self.delete(&objects, deleted, &kept, running, mode, why)
    }

    fn reason_to_keep(
        &self,
        chosen: &Snapshot,
        here: &Path,
        choice: Choice,
    ) -> Result<Option<KeepReason>, StateError> {
        if chosen.workspace != here {
            let theirs = chosen.workspace.clone();
            return Ok(Some(KeepReason::OtherWorkspace(theirs)));
        }
        if chosen.pinned {
            return Ok(Some(KeepReason::Pinned));
        }
        // Nothing else makes an automatic checkpoint that never expires.
        if chosen.record.origin == Origin::Automatic && chosen.expiry == Expiry::Never {
            return Ok(Some(KeepReason::WorkRecord));
        }
        if choice == Choice::Forced {
            return Ok(None);
        }
        let needed = self.needed_for_undo(self.now())?;
        Ok(needed.get(&chosen.id).cloned().map(KeepReason::Undo))
    }

    fn objects_to_collect(&self) -> Result<Objects, StateError> {
        let objects = self.objects_alone()?;
        match objects.is_shared() {
            true => Err(StateError::NotCollected),
            false => Ok(objects),
        }
    }

    /// Deletes these checkpoints, and objects that no other one refers to.
    fn delete<E: From<StateError> + From<StoreError> + From<TrailError>>(
        &self,
        objects: &Objects,
        deleted: Vec<Snapshot>,
        kept: &[Snapshot],
        running: &dyn Fn(&mut dyn Sql) -> Result<RunningStates, E>,
        mode: Mode,
        why: &str,
    ) -> Result<Collection, E> {
        let mut live = HashSet::new();
        let reader = objects.reader();
        for snapshot in kept {
            // Else what a genuine one refers to could be given away.
            let told = self.find(snapshot.id.as_str())?;
            references(&reader, &told.record, &mut live)?;
        }
        for record in self.journalled()? {
            references(&reader, &record, &mut live)?;
        }
        let remainders = Remainders::new(&deleted, why);
        let deleted: Vec<SnapshotId> = deleted.into_iter().map(|one| one.id).collect();
        let mut warnings = Vec::new();
        // Records go first: a crash then leaves objects that nothing refers to, and files of
        // which it is written down that they go.
        if mode == Mode::Apply && !deleted.is_empty() {
            self.note_remainders(&remainders)?;
            fault::point("collect.noted");
            self.trail.write(Durability::Sync, |writing| {
                // One may have begun since we looked.
                refuse_running(&deleted, running(writing.sql())?)?;
                for id in &deleted {
                    snapshot::delete(writing.sql(), id)?;
                }
                writing.append(Draft {
                    stream: Stream::store(),
                    actor: self.around.actor.clone(),
                    kind: Kind::fixed("checkpoints_collected").into(),
                    action_id: None,
                    body: json!({ "deleted": deleted, "kept": kept.len(), "why": why }),
                })?;
                Ok::<_, E>(())
            })?;
        }
        fault::point("collect.recorded");
        if mode == Mode::Apply {
            warnings = self.remove_remainders()?;
            fault::point("collect.removed");
        }
        let collected = objects.collect(live, mode)?;
        if mode == Mode::Apply {
            self.sweep()?;
        }
        Ok(Collection {
            deleted,
            kept: kept.len(),
            kept_for_undo: Vec::new(),
            objects: collected,
            warnings,
        })
    }

    /// The checkpoints without which a recent action could not be undone, and for which action.
    fn needed_for_undo(&self, now: Timestamp) -> Result<HashMap<SnapshotId, ActionId>, StateError> {
        let since = Timestamp::from_micros(now.as_micros().saturating_sub(UNDO_GRACE_MICROS));
        let recent = self
            .trail
            .store()
            .read(|sql| snapshot::recent_actions(sql, since))?;
        let mut needed = HashMap::new();
        for action in recent {
            for state in [action.before, action.after] {
                needed.entry(state).or_insert_with(|| action.id.clone());
            }
        }
        Ok(needed)
    }

    /// Deletes half-written files that killed processes left. Whoever writes such
    /// files has the object store open, which we have alone.
    fn sweep(&self) -> Result<(), StateError> {
        for directory in [self.journal_directory(), self.around.data.join("cache")] {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.file_name().to_string_lossy().ends_with(".tmp") {
                    durable::remove(&entry.path())?;
                }
            }
        }
        Ok(())
    }
}

fn not_deleted(id: &SnapshotId, because: KeepReason) -> StateError {
    StateError::NotDeleted {
        id: id.to_string(),
        because,
    }
}

/// Refuses to delete the state before an action that is being carried out.
fn refuse_running<'a>(
    ids: impl IntoIterator<Item = &'a SnapshotId>,
    running: RunningStates,
) -> Result<(), StateError> {
    let running: HashMap<SnapshotId, ActionId> = running.into_iter().collect();
    match ids.into_iter().find_map(|id| Some((id, running.get(id)?))) {
        Some((id, action)) => Err(not_deleted(id, KeepReason::Running(action.clone()))),
        None => Ok(()),
    }
}
