//! Giving back space: the only thing that ever deletes a checkpoint, and only when asked.

use std::collections::HashSet;

use safepoint_store::{Durability, durable, fault};
use safepoint_trail::{Draft, Kind, Stream};
use serde_json::json;

use crate::checkpoint::{git_reference, stash_label};
use crate::git::{Repository, stash};
use crate::objects::{Collected, Mode, Usage};
use crate::snapshot::{self, Origin, Selection, Snapshot, SnapshotId, SnapshotType};
use crate::state::State;
use crate::verify::references;
use crate::{StateError, own};

/// What was collected, or would be.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Checkpoints that have expired and are not pinned.
    pub deleted: Vec<SnapshotId>,
    /// How many stay.
    pub kept: usize,
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

    /// Deletes expired checkpoints that are not pinned, and objects that nothing refers to.
    pub fn collect(&self, mode: Mode) -> Result<Collection, StateError> {
        let objects = self.objects_alone()?;
        if objects.is_shared() {
            return Err(StateError::NotCollected);
        }
        let now = self.now();
        let all = self.list(&Selection::default())?;
        let (deleted, kept): (Vec<Snapshot>, Vec<Snapshot>) = all
            .into_iter()
            .partition(|one| one.is_expired(now) && !one.pinned);
        let mut live = HashSet::new();
        let reader = objects.reader();
        for snapshot in &kept {
            // Else what a genuine one refers to could be given away.
            let told = self.find(snapshot.id.as_str())?;
            references(&reader, &told.record, &mut live)?;
        }
        for snapshot in &deleted {
            // A row can be told that it has expired; the trail cannot.
            self.trail
                .store()
                .read(|sql| snapshot::find_expired(&self.trail, sql, &snapshot.id, now))?;
        }
        for record in self.journalled()? {
            references(&reader, &record, &mut live)?;
        }
        let mut warnings = Vec::new();
        if mode == Mode::Apply {
            deleted.iter().for_each(own::remove_manifest);
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
                    body: json!({ "deleted": deleted, "kept": kept.len() }),
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
