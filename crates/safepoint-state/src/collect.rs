//! Giving back space: the only thing that ever deletes a checkpoint, and only when asked.

use std::collections::{HashMap, HashSet};

use safepoint_model::{ActionId, Expiry, Timestamp};
use safepoint_store::{Durability, durable, fault};
use safepoint_trail::{Draft, Kind, Stream};
use serde_json::json;

use crate::checkpoint::{git_reference, stash_label};
use crate::git::{Repository, stash};
use crate::objects::{Collected, Mode, Objects, Usage};
use crate::snapshot::{self, Origin, Selection, Snapshot, SnapshotId, SnapshotType};
use crate::state::State;
use crate::verify::references;
use crate::{StateError, own};

/// How long both states of an action are kept, expired or not, so that it can be undone.
pub const UNDO_GRACE_HOURS: i64 = 24;

/// The same in microseconds.
pub(crate) const UNDO_GRACE_MICROS: i64 = UNDO_GRACE_HOURS * 3_600 * 1_000_000;

/// An expired checkpoint that stays because an action is undone with it.
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
}

impl std::fmt::Display for KeepReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pinned => f.write_str("it is pinned"),
            Self::WorkRecord => f.write_str("a record of work refers to it"),
            Self::Undo(action) => write!(f, "the undo of `{action}` needs it"),
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

    /// Deletes expired checkpoints that are not pinned and that no recent action needs for its
    /// undo, and objects that nothing refers to.
    pub fn collect(&self, mode: Mode) -> Result<Collection, StateError> {
        let objects = self.objects_to_collect()?;
        let now = self.now();
        let needed = self.needed_for_undo(now)?;
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
        let collection = self.delete(&objects, deleted, &kept, mode, "it had expired")?;
        Ok(Collection {
            kept_for_undo,
            ..collection
        })
    }

    /// Deletes one checkpoint because somebody asks for it, expired or not, and objects that
    /// nothing refers to then.
    pub fn delete_checkpoint(
        &self,
        prefix: &str,
        choice: Choice,
        mode: Mode,
    ) -> Result<Collection, StateError> {
        let objects = self.objects_to_collect()?;
        let chosen = self.find(prefix)?;
        if let Some(because) = self.reason_to_keep(&chosen, choice)? {
            return Err(StateError::NotDeleted {
                id: chosen.id.to_string(),
                because,
            });
        }
        let all = self.list(&Selection::default())?;
        let (deleted, kept): (Vec<Snapshot>, Vec<Snapshot>) =
            all.into_iter().partition(|one| one.id == chosen.id);
        self.delete(&objects, deleted, &kept, mode, "somebody asked for it")
    }

    fn reason_to_keep(
        &self,
        chosen: &Snapshot,
        choice: Choice,
    ) -> Result<Option<KeepReason>, StateError> {
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
    fn delete(
        &self,
        objects: &Objects,
        deleted: Vec<Snapshot>,
        kept: &[Snapshot],
        mode: Mode,
        why: &str,
    ) -> Result<Collection, StateError> {
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
        let mut warnings = Vec::new();
        if mode == Mode::Apply {
            for snapshot in &deleted {
                own::remove_manifest(snapshot);
                own::log(
                    &snapshot.workspace,
                    self.now(),
                    "gc",
                    snapshot.id.as_str(),
                    snapshot.record.reason.as_deref(),
                    &format!("deleted: {why}"),
                );
            }
            warnings = self.forget_in_git(&deleted);
        }
        let deleted: Vec<SnapshotId> = deleted.into_iter().map(|one| one.id).collect();
        // Records go first: a crash then leaves objects that nothing refers to.
        if mode == Mode::Apply && !deleted.is_empty() {
            self.trail.write(Durability::Sync, |writing| {
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
                Ok::<_, StateError>(())
            })?;
        }
        fault::point("collect.recorded");
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

    /// Removes the stash entries and references of checkpoints from their repositories, and
    /// says what could not be removed. A repository that is gone has none.
    pub(crate) fn forget_in_git(&self, snapshots: &[Snapshot]) -> Vec<String> {
        let Some(git) = &self.around.git else {
            return Vec::new();
        };
        let mut warnings = Vec::new();
        for snapshot in snapshots {
            let record = &snapshot.record;
            let is_kept_by_git =
                record.kind == SnapshotType::GitStash && record.origin == Origin::Asked;
            if !is_kept_by_git || snapshot.workspace.symlink_metadata().is_err() {
                continue;
            }
            let removed = Repository::open(git, &snapshot.workspace).and_then(|repository| {
                let Some(repository) = repository else {
                    return Ok(());
                };
                if !stash::delete_reference(git, &repository, &git_reference(&snapshot.id))? {
                    stash::drop_labelled(git, &repository, &stash_label(snapshot))?;
                }
                Ok(())
            });
            if let Err(error) = removed {
                warnings.push(format!(
                    "git still has what it kept of {}: {error}",
                    snapshot.id
                ));
            }
        }
        warnings
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
