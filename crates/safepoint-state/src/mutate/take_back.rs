//! Taking back a change that failed: what it wrote, and nothing that somebody else wrote since.

use std::collections::BTreeSet;

use safepoint_model::ActionId;
use safepoint_store::Durability;
use safepoint_trail::{FixedKind, Kind};
use serde_json::json;

use super::act::Reached;
use super::aftermath::{Aftermath, changes_between};
use super::place::Target;
use super::{Found, Mutation, Secured};
use crate::capture::Capture;
use crate::objects::Objects;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::restore::Journal;
use crate::scan::Progress;
use crate::scope::Scope;
use crate::share::Share;
use crate::snapshot::{Note, Record, Snapshot, SnapshotId};
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
        /// What else is not as it was, and was left alone.
        beside: &'a [String],
        /// What no checkpoint brings back.
        lost: &'a [Note],
    },
    /// It could not be taken back.
    Standing,
}

/// What a change has led to.
struct Done {
    record: Record,
    /// Where it may have changed something.
    scope: Scope,
    /// What is there now, where a command may have written anything.
    seen: Option<Capture>,
    /// What of that its processes were seen to write; none where nobody can tell who wrote it.
    share: Option<Share>,
}

impl Done {
    fn as_snapshot(&self, secured: &Secured) -> Snapshot {
        let mut snapshot = secured.before.clone();
        snapshot.record = self.record.clone();
        snapshot
    }
}

/// The files that a command and the steps on files before it have led to. Where both wrote, it is
/// what is there.
fn with_steps(
    objects: &Objects,
    files: Subtree,
    reached: &Reached,
    share: &Share,
) -> Result<Subtree, StateError> {
    let Some(wanted) = &reached.files else {
        return Ok(files);
    };
    let reader = objects.reader();
    let mut edits = Vec::new();
    for path in reached.paths.iter().filter(|path| !share.has_path(path)) {
        edits.push((path.clone(), tree::find(&reader, Some(wanted), path)?));
    }
    let writer = objects.writer();
    let files = tree::edit(&reader, Some(&files), edits, &mut |id, bytes| {
        writer.add_tree(id, bytes)
    })?;
    writer.finish()?;
    Ok(files)
}

impl Secured {
    /// The state before, with other files.
    pub(super) fn with_files(&self, files: Subtree) -> Record {
        let mut record = self.before.record.clone();
        record.files = files;
        record.git = self.capture.git;
        record
    }

    /// What of these changes is in no target. What is in the workspace as a whole is.
    fn beside_targets(&self, mut changes: Vec<Change>) -> Vec<Change> {
        let is_target = |found: &Found, path: &[u8]| match &found.target {
            Target::Place(place) if !place.path.is_empty() => path::is_within(path, &place.path),
            _ => false,
        };
        changes.retain(|change| {
            let mut steps = self.steps.iter();
            change.kind() != ChangeKind::Time && !steps.any(|it| is_target(it, &change.path))
        });
        changes
    }
}

impl State {
    /// After a failure: as it was before, and the checkpoint is still good.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that is known of the change"
    )]
    pub(super) fn take_back(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        (secured, objects): (&Secured, &Objects),
        journal: Journal,
        reached: &Reached,
        error: &StateError,
        progress: &Progress,
    ) -> Result<Aftermath, StateError> {
        let mut aftermath = Aftermath::default();
        if self.has_recorded(&secured.action)? {
            return Ok(aftermath); // what failed came after that, and is told
        }
        let why = error.to_string();
        let tell = |back| {
            let checkpoint = &secured.checkpoint.id;
            let targets = secured.target_names();
            self.record_failure(
                workspace,
                (&secured.action, &targets),
                checkpoint,
                &why,
                back,
            )
        };
        if !self.is_touched(workspace) {
            self.drop_mutation(workspace, &journal)?;
            tell(Back::Untouched)?;
            return Ok(aftermath);
        }
        let mut done = match self.done_by(workspace, mutation, (secured, objects), reached) {
            Ok(done) => done,
            Err(error) => {
                tell(Back::Standing)?;
                aftermath.error = Some(error);
                self.find_lost(workspace, secured, &mut aftermath);
                aftermath.tell(mutation, secured);
                return Ok(aftermath);
            }
        };
        let kept = match &done.seen {
            Some(seen) => self.keep_changed_secrets(workspace, mutation, secured, objects, seen),
            None => Ok(None),
        };
        // Without it, what was changed is not replaced.
        let kept = kept.unwrap_or_default();
        let journal = journal.within(&done.scope);
        let mut written = changes_between(objects, &secured.before, &done.as_snapshot(secured))?;
        let parts = journal.record.parts.clone();
        done.record.parts.clone_from(&reached.left);
        match self.back_out(workspace, objects, &journal, &done.record, progress) {
            Ok(back) => {
                let found = self.find(back.found.as_str())?.record.parts;
                let of = |part: &Part| found.iter().find(|it| it.subject == part.subject);
                let is_others =
                    |part: &&Part| of(part).is_none_or(|it| reached.is_others(part, it));
                let others = parts.iter().filter(is_others);
                aftermath.parts_taken_back = others.map(|it| it.subject.name()).collect();
                aftermath.parts_left.clone_from(&back.parts_left);
                let is_shared =
                    |part: &&Part| of(part).is_some_and(|it| reached.is_shared(part, it));
                let shared = parts.iter().filter(is_shared).map(|it| it.subject.name());
                let is_left = |name: &String| back.parts_left.iter().any(|it| it.path == *name);
                aftermath.parts_shared = shared.filter(|name| !is_left(name)).collect();
                let share = done.share.as_ref();
                let own = (kept.as_ref(), share);
                let told = self.bring_secrets_back(workspace, mutation, secured, objects, own);
                aftermath.warnings.extend(told);
                let (left, taken) = written
                    .into_iter()
                    .partition(|change| back.left.contains(&change.path));
                aftermath.standing = left;
                let is_everything = done.seen.is_some();
                if is_everything {
                    if share.is_none() {
                        aftermath.taken_back = secured.beside_targets(taken);
                    }
                    aftermath.safety = Some(kept.unwrap_or_else(|| back.found.clone()));
                }
                if !aftermath.parts_taken_back.is_empty() {
                    aftermath.safety = Some(back.found.clone());
                }
                let own = match is_everything {
                    true => BTreeSet::new(),
                    false => reached.paths.clone(),
                };
                self.compare_with_before(workspace, (secured, objects), &own, &mut aftermath);
                self.find_lost(workspace, secured, &mut aftermath);
                tell(Back::Taken {
                    left: &back.all_left(),
                    beside: &aftermath.beside,
                    lost: &aftermath.not_restored,
                })?;
            }
            Err(error) => {
                written.retain(|change| change.kind() != ChangeKind::Time);
                aftermath.standing = written;
                aftermath.error = Some(error);
                self.find_lost(workspace, secured, &mut aftermath);
                tell(Back::Standing)?;
            }
        }
        aftermath.tell(mutation, secured);
        Ok(aftermath)
    }

    /// What a change has led to so far, and where it may have changed something. Of a command that
    /// is what its processes were seen to write, and anything where nobody watched them; where that cannot be seen, because somebody goes on changing
    /// files, it is at least known what the steps on files wrote.
    fn done_by(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        (secured, objects): (&Secured, &Objects),
        reached: &Reached,
    ) -> Result<Done, StateError> {
        let by_steps = || {
            let files = reached.files.unwrap_or(secured.before.record.files);
            let paths: BTreeSet<&TreePath> = reached.paths.iter().collect();
            Done {
                record: secured.with_files(files),
                scope: Scope::of_paths(paths).narrowed(&secured.scope),
                seen: None,
                share: None,
            }
        };
        if !reached.everything {
            return Ok(by_steps());
        }
        match self.look_stored(workspace, &secured.scope, objects) {
            Ok(capture) => {
                let share = self.share_of_command(workspace, mutation, secured);
                let mut record = secured.with_files(capture.files);
                record.git = capture.git;
                record.linked = self.capture_linked(workspace, &secured.scope)?;
                if let Some(share) = &share {
                    let present = self.automatic(
                        workspace,
                        &secured.scope,
                        &capture,
                        format!("after {}", secured.action),
                    )?;
                    let own = self.own_part(objects, &secured.before, &present, share)?;
                    record.files = with_steps(objects, own.record.files, reached, share)?;
                    record.git = own.record.git;
                    record.linked = own.record.linked;
                }
                Ok(Done {
                    record,
                    scope: secured.scope.clone(),
                    seen: Some(capture),
                    share,
                })
            }
            Err(_) if reached.files.is_some() => Ok(by_steps()),
            Err(error) => Err(error),
        }
    }

    /// What the processes of a change were seen to write; none where one of them was not watched.
    fn share_of_command(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
    ) -> Option<Share> {
        let leave = mutation.leave.filter(|leave| leave.has_seen_writes());
        leave.map(|_| self.share_of_cut_off(&workspace.root, &secured.action))
    }

    /// Tells the trail that a change was not kept.
    pub(crate) fn record_failure(
        &self,
        workspace: &Workspace,
        (action, targets): (&ActionId, &[String]),
        checkpoint: &SnapshotId,
        why: &str,
        back: Back<'_>,
    ) -> Result<(), StateError> {
        let why = &self.redacted(why);
        let kind: FixedKind = Kind::fixed("mutation_failed");
        let is_whole = matches!(
            back,
            Back::Taken {
                left: [],
                lost: [],
                ..
            }
        );
        let mut body = json!({
            "checkpoint_id": checkpoint, "why": why,
            "rolled_back": is_whole,
        });
        if let (Back::Taken { left, beside, lost }, Some(fields)) = (&back, body.as_object_mut()) {
            let left: Vec<String> = left.iter().map(|path| path::display(path)).collect();
            let beside = beside.iter().take(100).cloned().collect();
            let lost = lost
                .iter()
                .take(100)
                .map(|note| note.path.clone())
                .collect();
            for (name, paths) in [
                ("left_alone", left),
                ("beside", beside),
                ("not_restored", lost),
            ] {
                if !paths.is_empty() {
                    fields.insert(name.to_owned(), paths.into());
                }
            }
        }
        self.trail.write(Durability::Sync, |writing| {
            writing.append(self.draft(&workspace.root, kind, Some(action), body))?;
            Ok::<_, StateError>(())
        })?;
        let outcome = match back {
            Back::Untouched => "failed",
            Back::Taken { .. } if is_whole => "failed, taken back",
            Back::Taken { .. } => "failed, taken back in part",
            Back::Standing => "failed, not taken back",
        };
        own::log(
            &workspace.root,
            self.now(),
            &own::Operation {
                name: "mutate",
                checkpoint: Some(checkpoint.as_str()),
                action: Some(action.as_str()),
                targets,
                reason: Some(why),
                outcome,
            },
        );
        Ok(())
    }

    /// Adds a change that touched nothing to the log of operations.
    pub(super) fn log_refusal(
        &self,
        workspace: &Workspace,
        (checkpoint, action): (&str, Option<&ActionId>),
        targets: &[String],
        error: &StateError,
    ) {
        own::log(
            &workspace.root,
            self.now(),
            &own::Operation {
                name: "mutate",
                checkpoint: Some(checkpoint),
                action: action.map(ActionId::as_str),
                targets,
                reason: Some(&self.redacted(&error.to_string())),
                outcome: "refused",
            },
        );
    }
}
