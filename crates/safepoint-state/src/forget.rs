//! What a deleted checkpoint has outside the store: its manifest, and what git keeps of it.
//!
//! It is removed after the row: until then the checkpoint counts, and has all that belongs to it.
//! What is to be removed is written down before the row goes. So the next collection ends what was
//! cut off, and tries again what could not be reached.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use safepoint_store::durable::{self, Access};
use serde::{Deserialize, Serialize};

use crate::checkpoint::{git_reference, stash_label};
use crate::git::stash;
use crate::snapshot::{self, Origin, Snapshot, SnapshotId, SnapshotType};
use crate::state::State;
use crate::{StateError, own};

/// The version of [`Remainders`].
const FORMAT: u32 = 1;

/// What is to be removed after one collection.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remainders {
    format: u32,
    /// Why the checkpoints were deleted.
    why: String,
    checkpoints: Vec<Remainder>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Remainder {
    checkpoint_id: String,
    workspace: String,
    reason: Option<String>,
    /// Whether its manifest is gone and the log in its workspace tells of it.
    is_told: bool,
    git: Option<GitRemainder>,
}

/// What git keeps: a reference, or an entry of the stash.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct GitRemainder {
    label: String,
    /// The directory of the repository, where that is not in the workspace.
    common_dir: Option<String>,
}

impl Remainders {
    pub(crate) fn new(snapshots: &[Snapshot], why: &str) -> Self {
        let checkpoints = snapshots.iter().map(|snapshot| {
            let record = &snapshot.record;
            let is_kept_by_git =
                record.kind == SnapshotType::GitStash && record.origin == Origin::Asked;
            Remainder {
                checkpoint_id: snapshot.id.to_string(),
                workspace: crate::checkpoint::shown(&snapshot.workspace),
                reason: record.reason.clone(),
                is_told: false,
                git: is_kept_by_git.then(|| GitRemainder {
                    label: stash_label(snapshot),
                    common_dir: record.git_common.clone(),
                }),
            }
        });
        Self {
            format: FORMAT,
            why: why.to_owned(),
            checkpoints: checkpoints.collect(),
        }
    }
}

impl State {
    /// Writes down what is to be removed. Whoever calls has the object store alone.
    pub(crate) fn note_remainders(&self, remainders: &Remainders) -> Result<(), StateError> {
        let Some(first) = remainders.checkpoints.first() else {
            return Ok(());
        };
        let directory = self.remainders_directory();
        durable::create_directory(&directory)?;
        let path = directory.join(format!("{}.json", first.checkpoint_id));
        write(&path, remainders)
    }

    /// Removes what was written down, now or earlier, and says what could not be removed.
    pub(crate) fn remove_remainders(&self) -> Result<Vec<String>, StateError> {
        let mut warnings = Vec::new();
        let listing = std::fs::read_dir(self.remainders_directory());
        let mut files: Vec<PathBuf> = listing
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension() == Some(OsStr::new("json")))
            .collect();
        files.sort();
        for path in files {
            let text = std::fs::read(&path).map_err(|e| StateError::file("read", &path, e))?;
            let Ok(mut remainders) = serde_json::from_slice::<Remainders>(&text) else {
                // Of a later version, or changed by somebody: it is left to whoever can read it.
                warnings.push(format!("`{}` cannot be read", path.display()));
                continue;
            };
            let why = remainders.why.clone();
            let mut left = Vec::new();
            for mut remainder in remainders.checkpoints {
                // A collection that was cut off before its transaction deleted nothing.
                if !self.is_known(&remainder.checkpoint_id)?
                    && !self.remove_remainder(&mut remainder, &why, &mut warnings)
                {
                    left.push(remainder);
                }
            }
            remainders.checkpoints = left;
            match remainders.checkpoints.is_empty() {
                true => durable::remove(&path)?,
                false => write(&path, &remainders)?,
            }
        }
        Ok(warnings)
    }

    /// Removes what is left of one checkpoint, and says whether that was all.
    fn remove_remainder(
        &self,
        remainder: &mut Remainder,
        why: &str,
        warnings: &mut Vec<String>,
    ) -> bool {
        let Ok(id) = remainder.checkpoint_id.parse::<SnapshotId>() else {
            return true;
        };
        let workspace = read_path(&remainder.workspace);
        if !remainder.is_told {
            own::remove_manifest(&workspace, &id);
            own::log(
                &workspace,
                self.now(),
                &own::Operation {
                    name: "gc",
                    checkpoint: Some(id.as_str()),
                    reason: remainder.reason.as_deref(),
                    outcome: &format!("deleted: {why}"),
                    ..own::Operation::default()
                },
            );
            remainder.is_told = true;
        }
        let Some(kept) = &remainder.git else {
            return true;
        };
        match self.forget_in_git(&workspace, &id, kept) {
            Ok(was_reached) => was_reached,
            Err(error) => {
                warnings.push(format!("git still has what it kept of {id}: {error}"));
                false
            }
        }
    }

    /// Removes the reference or the stash entry of a checkpoint, and says whether its repository
    /// was there. A linked work tree that is gone has left its repository behind.
    fn forget_in_git(
        &self,
        workspace: &Path,
        id: &SnapshotId,
        kept: &GitRemainder,
    ) -> Result<bool, StateError> {
        let Some(git) = &self.around.git else {
            return Ok(false);
        };
        let common_dir = kept.common_dir.as_deref().map(read_path);
        // A repository's own work tree stands around its directory `.git`.
        let main = common_dir
            .as_deref()
            .filter(|directory| directory.ends_with(".git"))
            .and_then(Path::parent);
        let mut trees = [Some(workspace), main].into_iter().flatten();
        let Some(tree) = trees.find(|tree| tree.symlink_metadata().is_ok()) else {
            // Nothing is left of a repository of which we know where it was.
            let is_there = |directory: &Path| directory.symlink_metadata().is_ok();
            return Ok(common_dir.as_deref().is_some_and(|it| !is_there(it)));
        };
        if let Some(repository) = self.repository_at(tree)?
            && !stash::delete_reference(git, &repository, &git_reference(id))?
        {
            stash::drop_labelled(git, &repository, &kept.label)?;
        }
        Ok(true)
    }

    fn is_known(&self, id: &str) -> Result<bool, StateError> {
        let store = self.trail.store();
        store.read(|sql| snapshot::is_listed(sql, id))
    }

    fn remainders_directory(&self) -> PathBuf {
        self.around.data.join("forgotten").join(self.trail_name())
    }
}

fn write(path: &Path, remainders: &Remainders) -> Result<(), StateError> {
    let text = serde_json::to_vec(remainders)
        .map_err(|error| StateError::Unsupported(error.to_string()))?;
    Ok(durable::write(path, &text, Access::Private)?)
}

fn read_path(shown: &str) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&crate::scope::unescape(shown)))
}
