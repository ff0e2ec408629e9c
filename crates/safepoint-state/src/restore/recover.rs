//! What is done about a going back that was cut off.

use std::path::{Path, PathBuf};

use safepoint_store::{Durability, durable, fault};
use safepoint_trail::Kind;

use super::back::within;
use super::beginning::workspace_of;
use super::journal::{Extent, Ground, Journal, Mutating, PathText, Phase, directory as journals};
use super::stage;
use crate::identity::Marks;
use crate::lock::{self, Hold};
use crate::mutate::Back;
use crate::objects::Objects;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::restore::hold_git;
use crate::scan::{Progress, Sink};
use crate::scope::Scope;
use crate::snapshot::{Action, Note, Record, SnapshotId};
use crate::state::{Access, State, Workspace};
use crate::{StateError, record};

/// What taking a change back is called.
pub(super) const TAKE_BACK: &str = "take_back";

/// One that was cut off, and what became of it.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Where.
    pub workspace: PathBuf,
    /// What it was, in a sentence.
    pub summary: String,
    /// What became of it.
    pub end: End,
}

/// Something that was cut off.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Where.
    pub workspace: PathBuf,
    /// What it was, in a sentence.
    pub summary: String,
    /// What the next command that writes makes of it.
    pub remedy: Remedy,
}

/// What recovery makes of something that was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A roll back or an undo is brought to its end.
    Finish,
    /// What a change wrote is taken back.
    TakeBack,
    /// Of a command nobody can say what it did: it is ended, and recorded as unknown.
    Record,
    /// Nothing, since its directory is no longer there: it was moved or deleted.
    Elsewhere,
}

/// What became of a going back that was cut off.
#[derive(Clone, Debug)]
pub enum End {
    /// It was brought to its end.
    Finished,
    /// The same, but for secrets, for which the key is needed.
    WithoutSecrets,
    /// Nothing had been touched, and it was dropped.
    Dropped,
    /// It waits, since its directory was moved or deleted.
    Elsewhere,
    /// What had been done was taken back.
    TakenBack,
    /// The same, because somebody changed these since. They were left as they are.
    Changed(Vec<TreePath>),
    /// The same, but for what is in no tree of a checkpoint: a program of the change, such as its
    /// check, may have taken it.
    TakenBackInPart {
        /// What is not as it was.
        lost: Vec<Note>,
        /// The state before, which holds some of it encrypted.
        before: SnapshotId,
    },
    /// Nobody saw how far it came. What is there now is recorded as what it did.
    Unknown,
    /// It could not be ended: the workspace is still half-way.
    Failed(StateError),
}

/// Whether a going back, or an action that wrote something, may have been cut off: a look at two
/// directories.
pub fn is_unfinished(state: &Path) -> bool {
    Journal::all(&journals(state)).is_ok_and(|found| !found.is_empty())
        || crate::written::is_any_kept(state)
}

impl State {
    /// What was cut off and has not been ended. Others that are still at work are not among it.
    pub fn unfinished(&self) -> Result<Vec<Unfinished>, StateError> {
        let mut unfinished = Vec::new();
        for path in Journal::all(&self.journal_directory())? {
            let Ok(journal) = Journal::read(&path) else {
                continue; // its owner has just ended, or `recover` says what is wrong with it
            };
            let root = journal.workspace.to_path();
            let held = lock::try_take(&self.lock_path(&root)?, Hold::Alone)?;
            if held.is_some() && path.exists() {
                unfinished.push(Unfinished {
                    remedy: match &journal.mutating {
                        _ if journal.ground() != Ground::Same => Remedy::Elsewhere,
                        Some(it) if it.extent == Extent::Unknown => Remedy::Record,
                        _ if journal.is_of_change() => Remedy::TakeBack,
                        _ => Remedy::Finish,
                    },
                    workspace: root,
                    summary: journal.summary,
                });
            }
        }
        Ok(unfinished)
    }

    /// Ends whatever was cut off by a crash. Others that are still at work are left alone.
    /// What was cut off in a directory that is no longer there waits for it.
    pub fn recover(&self) -> Result<Vec<Recovered>, StateError> {
        self.recover_for(None)
    }

    /// The same for whoever works at the path `wanted`: what was cut off in a directory that was
    /// deleted there went with it, and what was cut off in one before the present one is set
    /// aside.
    pub(crate) fn recover_for(&self, wanted: Option<&Path>) -> Result<Vec<Recovered>, StateError> {
        let mut recovered = Vec::new();
        for path in Journal::all(&self.journal_directory())? {
            let Ok(journal) = Journal::read(&path) else {
                if !path.exists() {
                    continue; // its owner has just ended
                }
                Journal::read(&path)?;
                continue;
            };
            if self.access == Access::Reading {
                continue;
            }
            let root = journal.workspace.to_path();
            // A live owner holds the lock of its workspace.
            let Some(_held) = lock::try_take(&self.lock_path(&root)?, Hold::Alone)? else {
                continue;
            };
            if !path.exists() {
                continue;
            }
            let _names = match self.try_hold_names(&root) {
                Ok(names) => names,
                Err(error) => {
                    recovered.push(Recovered {
                        workspace: root,
                        summary: journal.summary,
                        end: End::Failed(error),
                    });
                    continue;
                }
            };
            let journals = self.journal_directory();
            let is_wanted = wanted == Some(&*root) && path == Journal::path(&journals, &root);
            match journal.ground() {
                Ground::Same => {}
                Ground::Gone if is_wanted => {
                    let why = "it was cut off, and its directory was deleted since";
                    self.drop_journal(&journal, why)?;
                    continue;
                }
                Ground::Another if is_wanted => {
                    journal.set_aside(&path, &journals)?;
                    continue;
                }
                // It was moved, and ended there.
                _ if self.has_recorded(&journal.action)? => {
                    durable::remove(&path)?;
                    continue;
                }
                _ => {
                    recovered.push(Recovered {
                        workspace: root,
                        summary: journal.summary,
                        end: End::Elsewhere,
                    });
                    continue;
                }
            }
            let (workspace, summary) = (root, journal.summary.clone());
            let sealed = !journal.record.sealed.is_empty();
            recovered.push(match self.finish(journal) {
                Ok(one) => one,
                // One workspace that cannot be mended must not keep all others from working.
                Err(error) => Recovered {
                    workspace,
                    summary,
                    end: End::Failed(error),
                },
            });
            if sealed
                && let Some(Recovered {
                    end: end @ End::Finished,
                    ..
                }) = recovered.last_mut()
            {
                *end = End::WithoutSecrets;
            }
        }
        Ok(recovered)
    }

    fn finish(&self, journal: Journal) -> Result<Recovered, StateError> {
        let root = journal.workspace.to_path();
        let summary = journal.summary.clone();
        if journal.mutating.is_some() {
            // Else a command that outlived us would go on writing, and that would be booked as
            // what others did.
            crate::run::kill_leftovers(&journal.action);
        }
        if journal.phase == Phase::Applying && root.exists() {
            super::salvage::salvage(&root, &self.objects()?.reader())?;
        }
        stage::clear(&root)?;
        hold_git::release(&root);
        if journal.phase == Phase::Staging {
            self.drop_journal(&journal, "it was cut off before it touched anything")?;
            return Ok(Recovered {
                workspace: root,
                summary,
                end: End::Dropped,
            });
        }
        fault::point("recover.begun");
        durable::create_directory(&root)?; // it may have been deleted since
        let workspace = workspace_of(&journal)?;
        let objects = self.objects()?;
        let progress = Progress::default();
        if let Some(mutating) = journal.mutating.clone() {
            let end = self.end_mutation(&workspace, &objects, &journal, &mutating, &progress)?;
            return Ok(Recovered {
                workspace: root,
                summary,
                end,
            });
        }
        let end = self.end_restore(&workspace, &objects, journal, &progress)?;
        Ok(Recovered {
            workspace: root,
            summary,
            end,
        })
    }

    /// Drops what left nothing behind, and records the failure of a change.
    fn drop_journal(&self, journal: &Journal, why: &str) -> Result<(), StateError> {
        if let Some(mutating) = &journal.mutating {
            let workspace = workspace_of(journal)?;
            let checkpoint = &mutating.checkpoint;
            let action = (&journal.action, &[][..]);
            self.record_failure(&workspace, action, checkpoint, why, Back::Untouched)?;
        }
        journal.remove(&self.journal_directory())
    }

    /// What becomes of a going back that was cut off in the middle: it goes on, unless
    /// somebody has changed what it would replace.
    fn end_restore(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: Journal,
        progress: &Progress,
    ) -> Result<End, StateError> {
        if self.has_recorded(&journal.action)? {
            // The crash came between the record and the end of the journal: whatever was
            // changed since came after it.
            stage::clear(&workspace.root)?;
            journal.remove(&self.journal_directory())?;
            return Ok(End::Finished);
        }
        if journal.taking_back.is_some() {
            let left = self
                .go_back(workspace, objects, &journal, progress)?
                .all_left();
            return Ok(match left.is_empty() {
                true => End::TakenBack,
                false => End::Changed(left),
            });
        }
        let before = self.find(journal.before.as_str())?.record;
        let ends = (&before, &journal.record);
        let (rest, _) = self.secured_rest(workspace, objects, &journal, ends, progress)?;
        fault::point("recover.planned");
        let changed = match rest.changed.is_empty() {
            true => {
                let plan = &rest.plan;
                match self.carry_on(workspace, objects, plan, journal.clone(), &[], progress) {
                    Ok(()) => return Ok(End::Finished),
                    Err(StateError::Changed { paths }) => within(&workspace.root, &paths),
                    Err(error) => return Err(error),
                }
            }
            false => rest.changed,
        };
        let back = self.back_out(workspace, objects, &journal, &journal.record, progress)?;
        let mut left = back.all_left();
        left.extend(changed);
        left.sort();
        left.dedup();
        Ok(End::Changed(left))
    }

    /// What becomes of a change that was cut off in the middle.
    fn end_mutation(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        mutating: &Mutating,
        progress: &Progress,
    ) -> Result<End, StateError> {
        if self.has_recorded(&journal.action)? {
            // The crash came between the record and the end of the journal.
            journal.remove(&self.journal_directory())?;
            return Ok(End::Finished);
        }
        match (mutating.extent, &mutating.wanted) {
            (Extent::Known, Some(wanted)) => {
                let back = self.back_out(workspace, objects, journal, wanted, progress)?;
                let left = back.all_left();
                let before = self.find(journal.before.as_str())?;
                let lost = before.record.losses(&workspace.root);
                let why = "it was cut off in the middle";
                let checkpoint = &mutating.checkpoint;
                let back = Back::Taken {
                    left: &left,
                    beside: &[],
                    lost: &lost,
                };
                self.record_failure(workspace, (&journal.action, &[]), checkpoint, why, back)?;
                Ok(match (left.is_empty(), lost.is_empty()) {
                    (true, true) => End::TakenBack,
                    (true, false) => End::TakenBackInPart {
                        lost,
                        before: before.id,
                    },
                    (false, _) => End::Changed(left),
                })
            }
            _ => {
                self.record_unknown(workspace, objects, journal, mutating, progress)?;
                Ok(End::Unknown)
            }
        }
    }

    /// Records what is there now as what a change did of which nobody saw the end.
    fn record_unknown(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        mutating: &Mutating,
        progress: &Progress,
    ) -> Result<(), StateError> {
        let scope = Scope::stored(&journal.scope)?;
        let writer = objects.writer();
        let capture = {
            let sink = Sink::Store(&writer);
            self.look(workspace, &scope, objects, &sink, progress)?
        };
        let before = self.find(journal.before.as_str())?;
        let mut parts = Vec::new();
        for part in &before.record.parts {
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            // A database that cannot be reached now is not what it was about.
            parts.push(now.unwrap_or_else(|_| part.clone()));
        }
        writer.finish()?;
        let mut after = self.automatic(
            workspace,
            &scope,
            &capture,
            format!("after {}", journal.action),
        )?;
        after.record.parts = parts;
        // A person may have worked here since.
        let share = self.share_of_cut_off(&workspace.root, &journal.action);
        let mut own = self.own_part(objects, &before, &after, &share)?;
        own.id = journal.after.clone();
        tell_parts_apart(&mut own.record, &before.record, &mutating.left);
        own.record.untold = true;
        let mut present = after;
        let reader = objects.reader();
        let changes = record::changes_by_action(&reader, &before, &own)?;
        let paths = changes.into_iter().map(|change| change.path);
        let mut others = self.writes_of_others(&workspace.root, Some(&journal.action), None)?;
        others.add_own(&share, paths);
        let rest = self.account(objects, &mut present, others)?;
        let told = journal.errand.as_ref();
        let named = |told: &super::journal::Told| (told.action.clone(), told.decision.clone());
        let (name, decision) = told.map_or_else(|| ("batch".into(), "allow".into()), named);
        let mut unheld = before.record.lapsed_until(&present.record, &reader);
        unheld.retain(|note| {
            // What is held encrypted comes back, and is among the changes.
            share.has_path(&crate::scope::unescape(&note.path))
                && !before.record.holds_sealed(&note.path)
        });
        let action = Action {
            id: journal.action.clone(),
            workspace: workspace.root.clone(),
            time: self.now(),
            session: told.and_then(|told| told.session.clone()),
            action: name,
            summary: journal.summary.clone(),
            decision: Some(decision),
            outcome: "unknown".to_owned(),
            before: journal.before.clone(),
            after: own.id.clone(),
            undoes: None,
        };
        let body = serde_json::json!({
            "row": crate::snapshot::of_action(&action),
            "checkpoint_id": mutating.checkpoint,
            "before": action.before, "after": action.after, "outcome": action.outcome,
            "unheld": unheld.iter().take(crate::omitted::MAX_TOLD).collect::<Vec<_>>(),
        });
        self.trail.write(Durability::Sync, |writing| {
            self.record_in(writing, &own)?;
            self.record_look(writing, &present, rest.as_ref())?;
            let kind = Kind::fixed("mutation_unknown");
            let draft = self.draft(&workspace.root, kind, Some(&action.id), body);
            let entry = writing.append(draft)?;
            crate::snapshot::insert_action(writing.sql(), &action, entry.seq)
        })?;
        self.end_write_journal(&journal.action);
        journal.remove(&self.journal_directory())
    }

    /// What was cut off in the directory that was at `from` and is at `root` now is ended there
    /// by whatever writes next.
    pub(crate) fn move_journals(
        &self,
        from: &Path,
        root: &Path,
        now: &Marks,
    ) -> Result<(), StateError> {
        let journals = self.journal_directory();
        for path in Journal::all(&journals)? {
            let Ok(mut journal) = Journal::read(&path) else {
                continue; // `recover` says what is wrong with it
            };
            let is_same = journal.directory.as_ref().is_some_and(|it| it.is_same(now));
            if !is_same || journal.workspace.to_path() != from || self.is_cut_off(root) {
                continue;
            }
            let Some(_held) = lock::try_take(&self.lock_path(from)?, Hold::Alone)? else {
                continue; // its owner is at work
            };
            journal.workspace = PathText::of(root);
            journal.write(&journals)?;
            durable::remove(&path)?;
        }
        Ok(())
    }

    /// Whether a change has touched anything yet.
    pub(crate) fn is_touched(&self, workspace: &Workspace) -> bool {
        let path = Journal::path(&self.journal_directory(), &workspace.root);
        Journal::read(&path).is_ok_and(|journal| journal.phase == Phase::Applying)
    }

    /// Drops a change that has touched nothing.
    pub(crate) fn drop_mutation(
        &self,
        workspace: &Workspace,
        journal: &Journal,
    ) -> Result<(), StateError> {
        stage::clear(&workspace.root)?;
        journal.remove(&self.journal_directory())
    }

    /// Whether a going back in this workspace has not come to its end.
    pub(crate) fn is_cut_off(&self, workspace: &Path) -> bool {
        Journal::path(&self.journal_directory(), workspace).exists()
    }

    /// Everything that journals refer to, which no snapshot does yet.
    pub(crate) fn journalled(&self) -> Result<Vec<Record>, StateError> {
        let mut records = Vec::new();
        for path in Journal::all(&self.journal_directory())? {
            let journal = Journal::read(&path)?;
            records.push(journal.record);
            records.extend(journal.taking_back.map(|record| *record));
            let wanted = journal.mutating.and_then(|mutating| mutating.wanted);
            records.extend(wanted.map(|record| *record));
        }
        Ok(records)
    }

    /// A workspace that is half-way must be whole before anything else is done to it.
    pub(crate) fn refuse_unfinished(&self, workspace: &Path) -> Result<(), StateError> {
        if self.is_cut_off(workspace) {
            return Err(StateError::Busy {
                what: format!(
                    "`{}` (something was cut off there and could not be ended)",
                    workspace.display()
                ),
            });
        }
        Ok(())
    }
}

/// Makes what a change has left of databases and states its work. Of those that were not looked at
/// then, all that differs counts as its work, and a warning says so.
fn tell_parts_apart(own: &mut Record, before: &Record, left: &[Part]) {
    for part in &mut own.parts {
        if let Some(left) = left.iter().find(|left| left.subject == part.subject) {
            part.clone_from(left);
            continue;
        }
        let mut known = before.parts.iter();
        if known.any(|was| was.subject == part.subject && !was.is_same(part)) {
            own.warnings.push(format!(
                "nobody saw what the change wrote to `{}`: whatever was there when it was found cut off counts as its work, also what others have written",
                part.subject.name()
            ));
        }
    }
}

/// An error that names everything that somebody else changed.
pub(super) fn with_more(error: StateError, root: &Path, left: &[TreePath]) -> StateError {
    match error {
        StateError::Changed { mut paths } => {
            paths.extend(left.iter().map(|path| root.join(path::as_path(path))));
            paths.sort();
            paths.dedup();
            StateError::Changed { paths }
        }
        other => other,
    }
}
