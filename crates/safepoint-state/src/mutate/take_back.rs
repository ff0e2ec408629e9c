//! Taking back a change that failed: what it wrote, and nothing that somebody else wrote since.

use std::collections::BTreeSet;

use safepoint_model::ActionId;
use safepoint_store::Durability;
use safepoint_trail::{FixedKind, Kind};
use serde_json::json;

use super::Secured;
use super::act::Reached;
use crate::objects::Objects;
use crate::path::{self, TreePath};
use crate::restore::Journal;
use crate::scan::Progress;
use crate::scope::Scope;
use crate::snapshot::{Record, SnapshotId};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind, Subtree};
use crate::{StateError, own};

/// What became of the files of a change that was not kept.
pub(crate) enum Back<'a> {
    /// It had touched nothing.
    Untouched,
    /// It was taken back, but for what somebody else changed since.
    Taken {
        /// That.
        left: &'a [TreePath],
    },
    /// It could not be taken back.
    Standing,
}

/// What of a change that failed is still there.
#[derive(Default)]
pub(super) struct Standing {
    pub(super) changes: Vec<Change>,
    /// Why, where it could not be taken back.
    pub(super) error: Option<StateError>,
}

impl Secured {
    /// The state before, with other files.
    pub(super) fn with_files(&self, files: Subtree) -> Record {
        let mut record = self.before.record.clone();
        record.files = files;
        record.git = self.capture.git;
        record
    }
}

impl State {
    /// After a failure: as it was before, and the checkpoint is still good.
    pub(super) fn take_back(
        &self,
        workspace: &Workspace,
        (secured, objects): (&Secured, &Objects),
        journal: Journal,
        reached: &Reached,
        error: &StateError,
        progress: &Progress,
    ) -> Result<Standing, StateError> {
        if self.has_recorded(&secured.action)? {
            return Ok(Standing::default()); // what failed came after that, and is told
        }
        let why = error.to_string();
        let tell = |back| {
            let checkpoint = &secured.checkpoint.id;
            self.record_failure(workspace, &secured.action, checkpoint, &why, back)
        };
        if !self.is_touched(workspace) {
            self.drop_mutation(workspace, &journal)?;
            tell(Back::Untouched)?;
            return Ok(Standing::default());
        }
        let (done, scope) = match self.done_by(workspace, secured, objects, reached) {
            Ok(done) => done,
            Err(error) => {
                tell(Back::Standing)?;
                return Ok(Standing {
                    changes: Vec::new(),
                    error: Some(error),
                });
            }
        };
        let journal = journal.within(&scope);
        let changes = || {
            let (before, done) = (&secured.before.record.files, &done.files);
            tree::changes(&objects.reader(), Some(before), Some(done), &scope)
        };
        match self.back_out(workspace, objects, &journal, &done, progress) {
            Ok(left) => {
                tell(Back::Taken { left: &left })?;
                let mut changes = changes()?;
                changes.retain(|change| left.contains(&change.path));
                Ok(Standing {
                    changes,
                    error: None,
                })
            }
            Err(error) => {
                tell(Back::Standing)?;
                let mut changes = changes()?;
                changes.retain(|change| change.is_notable() && change.kind() != ChangeKind::Time);
                Ok(Standing {
                    changes,
                    error: Some(error),
                })
            }
        }
    }

    /// What a change has led to so far, and where it may have changed something. A program may
    /// have changed anything; where that cannot be seen, because somebody goes on changing
    /// files, it is at least known what the steps on files wrote.
    fn done_by(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        objects: &Objects,
        reached: &Reached,
    ) -> Result<(Record, Scope), StateError> {
        let by_steps = || {
            let files = reached.files.unwrap_or(secured.before.record.files);
            let paths: BTreeSet<&TreePath> = reached.paths.iter().collect();
            let scope = Scope::of_paths(paths).narrowed(&secured.scope);
            (secured.with_files(files), scope)
        };
        if !reached.everything {
            return Ok(by_steps());
        }
        match self.look_stored(workspace, &secured.scope, objects) {
            Ok(capture) => {
                let mut record = secured.with_files(capture.files);
                record.git = capture.git;
                Ok((record, secured.scope.clone()))
            }
            Err(_) if reached.files.is_some() => Ok(by_steps()),
            Err(error) => Err(error),
        }
    }

    /// Tells the trail that a change was not kept.
    pub(crate) fn record_failure(
        &self,
        workspace: &Workspace,
        action: &ActionId,
        checkpoint: &SnapshotId,
        why: &str,
        back: Back<'_>,
    ) -> Result<(), StateError> {
        let kind: FixedKind = Kind::fixed("mutation_failed");
        let mut body = json!({
            "checkpoint_id": checkpoint, "why": why,
            "rolled_back": matches!(back, Back::Taken { .. }),
        });
        if let (
            Back::Taken {
                left: left @ [_, ..],
            },
            Some(fields),
        ) = (&back, body.as_object_mut())
        {
            let left: Vec<String> = left.iter().map(|path| path::display(path)).collect();
            fields.insert("left_alone".to_owned(), left.into());
        }
        self.trail.write(Durability::Sync, |writing| {
            writing.append(self.draft(&workspace.root, kind, Some(action), body))?;
            Ok::<_, StateError>(())
        })?;
        let outcome = match back {
            Back::Untouched => "failed",
            Back::Taken { left: [] } => "failed, taken back",
            Back::Taken { .. } => "failed, taken back in part",
            Back::Standing => "failed, not taken back",
        };
        let (root, id) = (&workspace.root, checkpoint.as_str());
        own::log(root, self.now(), "mutate", id, Some(why), outcome);
        Ok(())
    }

    /// Adds a change that touched nothing to the log of operations.
    pub(super) fn log_refusal(&self, workspace: &Workspace, checkpoint: &str, error: &StateError) {
        let why = error.to_string();
        let (root, now) = (&workspace.root, self.now());
        own::log(root, now, "mutate", checkpoint, Some(&why), "refused");
    }
}

impl StateError {
    /// The same error, which says what of the change is still there.
    pub(super) fn still_there(self, standing: &Standing) -> Self {
        let names = |change: &Change| format!("`{}`", path::display(&change.path));
        let paths: Vec<String> = standing.changes.iter().map(names).collect();
        let why = match &standing.error {
            None if paths.is_empty() => return self,
            None => "somebody else has changed it since, and that is left alone".to_owned(),
            Some(error) => format!("it could not be taken back: {error}"),
        };
        Self::StillThere {
            error: Box::new(self),
            paths,
            why,
        }
    }
}
