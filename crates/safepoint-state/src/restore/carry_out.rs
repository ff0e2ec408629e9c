//! Doing what a plan says: staged, journalled, applied, verified, and then recorded.

use safepoint_store::fault;

use super::outcome::{not_given_as_warning, remarks_as_warnings, restore_root_mode};
use super::secrets::Secrets;
use super::{Journal, Phase, Plan, Restored, apply, hold_git, parts, recover, stage};
use crate::objects::Objects;
use crate::scan::Progress;
use crate::state::{State, Workspace};
use crate::tree::Change;
use crate::{StateError, own, part};

impl State {
    /// Stages, applies, verifies and records what the journal says.
    pub(super) fn carry_out(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        plan: &Plan,
        mut journal: Journal,
        secrets: Secrets,
        progress: &Progress,
    ) -> Result<Restored, StateError> {
        let journals = self.journal_directory();
        let reader = objects.reader();
        journal.write(&journals)?;
        fault::point("restore.journalled");
        let prepared = stage::prepare(&workspace.root, &plan.changes, &reader).and_then(|staged| {
            let git = hold_git::hold(&workspace.root, &plan.changes, self.around.lock_timeout)?;
            // Last of all: git may have been waited for.
            let seen = apply::check_unchanged(&workspace.root, &plan.changes)?;
            Ok((staged, git, seen))
        });
        let (staged, git, seen) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                // Nothing has been touched.
                stage::clear(&workspace.root)?;
                journal.remove(&journals)?;
                return Err(match (&journal.restored_to, error) {
                    (
                        Some(id),
                        error @ (StateError::Damaged { .. } | StateError::Missing { .. }),
                    ) => StateError::Unrestorable {
                        id: id.to_string(),
                        error: Box::new(error),
                    },
                    (_, error) => error,
                });
            }
        };
        let directories =
            plan.directories(&reader, &journal.record.files, journal.record.git.as_ref())?;
        journal.phase = Phase::Applying;
        journal.write(&journals)?;
        fault::point("restore.applying");
        // First: each of them is done as a whole or not at all.
        let mut warnings = self.put_parts(workspace, &reader, &journal)?;
        fault::point("restore.parts");
        let remarks = apply::Tree::open(&workspace.root)?.apply(
            &plan.changes,
            (&staged, &seen),
            &directories,
        );
        warnings.extend(git.warnings());
        drop(git);
        let remarks = match remarks {
            Ok(remarks) => remarks,
            Err(error) => {
                let back =
                    self.back_out(workspace, objects, &journal, &journal.record, progress)?;
                return Err(recover::with_more(error, &workspace.root, &back.left));
            }
        };
        restore_root_mode(workspace, journal.record.root_mode)?;
        fault::point("restore.applied");
        warnings.extend(remarks_as_warnings(plan, &staged, &remarks));
        let secret_changes = secrets.changes();
        warnings.extend(secrets.put(&workspace.root)?);
        // Only what is meant to move is written: git may be used there meanwhile.
        let present = self.find(journal.before.as_str())?.record.linked;
        let moves = journal.mutating.is_none()
            && journal.taking_back.is_none()
            && present != journal.record.linked;
        let wanted = journal.record.linked.as_ref().filter(|_| moves);
        let unmoved = self.put_linked(workspace, wanted, &reader)?;
        let moved = moves && unmoved.is_empty();
        let seen = self.verify_restored(workspace, objects, (plan, &staged), &journal, progress)?;
        let left = seen.left;
        for change in left.iter().take(10) {
            let path = crate::path::display(&change.path);
            warnings.push(format!(
                "`{path}` is not as it should be ({})",
                change.kind().as_str()
            ));
        }
        warnings.extend(not_given_as_warning(&seen.not_given));
        fault::point("restore.verified");
        let matches = left.is_empty() && !plan.incomplete && unmoved.is_empty();
        self.record_restored(workspace, &journal, plan, matches)?;
        fault::point("restore.recorded");
        stage::clear(&workspace.root)?;
        journal.remove(&journals)?;
        fault::point("restore.cleaned");
        let shown = journal.restored_to.as_ref().unwrap_or(&journal.before);
        own::log(
            &workspace.root,
            self.now(),
            &own::Operation {
                name: &journal.verb,
                checkpoint: Some(shown.as_str()),
                action: Some(journal.action.as_str()),
                reason: Some(&journal.summary),
                outcome: "ok",
                ..own::Operation::default()
            },
        );
        let before = self.find(journal.before.as_str())?;
        let parts = parts::changed(&before.record, &journal.record);
        let root = before.record.root_change(&journal.record);
        let mut changes: Vec<Change> = root.into_iter().collect();
        changes.extend(plan.changes.iter().cloned());
        changes.extend(secret_changes);
        if moved {
            let to = journal.record.linked.as_ref();
            let trees = objects.reader();
            changes.extend(crate::linked::changes(&trees, present.as_ref(), to)?);
        }
        Ok(Restored {
            action: journal.action,
            before: journal.before.clone(),
            after: journal.after,
            changes,
            parts: parts.into_iter().map(|(_, part)| part).collect(),
            pre_hash: before.hash(),
            post_hash: part::hash(seen.hash, &journal.record.parts),
            matches,
            not_restored: unmoved,
            warnings,
        })
    }
}
