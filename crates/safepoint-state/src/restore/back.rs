//! The rest of a way that was cut off, or the way back from it, from whatever is there now.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::journal::{Journal, Phase};
use super::onward::{Rest, Way};
use super::recover::TAKE_BACK;
use super::{Plan, stage};
use crate::StateError;
use crate::capture::Capture;
use crate::objects::{Objects, Reader};
use crate::part::{Part, Remainder};
use crate::path::TreePath;
use crate::restore::{apply, hold_git};
use crate::scan::{Progress, Sink};
use crate::scope::{Scope, unescape};
use crate::snapshot::{Note, Origin, Record, SnapshotId};
use crate::state::{State, Workspace};

/// The way back from a going back that failed, as the log calls it.
pub(crate) const BACK_OUT: &str = "back_out";
/// So often a way back is tried while somebody goes on changing things.
const MOST_TRIES: u32 = 5;

/// What came of a way back.
pub(crate) struct WentBack {
    /// What somebody else changed, and that was left alone.
    pub(crate) left: Vec<TreePath>,
    /// Databases and states that could not go back without the work of others, and why.
    pub(crate) parts_left: Vec<Note>,
    /// The checkpoint of what was there before it.
    pub(crate) found: SnapshotId,
}

impl WentBack {
    /// All that was left alone: paths, databases and states.
    pub(crate) fn all_left(&self) -> Vec<TreePath> {
        let parts = self.parts_left.iter();
        let parts = parts.map(|note| note.path.clone().into_bytes());
        self.left.iter().cloned().chain(parts).collect()
    }
}

/// What becomes of databases and states on a way back.
#[derive(Default)]
struct PartsBack {
    wanted: Vec<Part>,
    /// What each of those that are put together was made of.
    basis: Vec<Part>,
    left: Vec<Note>,
}

impl State {
    /// Keeps what is there now, whatever happened since the crash.
    fn secured(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        scope: &Scope,
        progress: &Progress,
    ) -> Result<(Capture, SnapshotId), StateError> {
        let writer = objects.writer();
        let capture = {
            let sink = Sink::Store(&writer);
            let before = self.find(journal.before.as_str())?.record;
            let held = [before.files, journal.record.files];
            self.look_for(workspace, scope, objects, &held, &sink, progress)?
        };
        let reason = format!("found half-way: {}", journal.summary);
        let mut found = self.automatic(workspace, scope, &capture, reason)?;
        for part in &journal.record.parts {
            // One that cannot be looked at now may still be brought back.
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            found.record.parts.extend(now);
        }
        found.record.size = writer.finish()?;
        found.record.untold = true;
        self.record(&found, None)?;
        Ok((capture, found.id))
    }

    /// Keeps what is there now, and plans the rest of the way between two states.
    pub(super) fn secured_rest(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        (from, to): (&Record, &Record),
        progress: &Progress,
    ) -> Result<(Rest, SnapshotId), StateError> {
        let scope = Scope::stored(&journal.scope)?;
        let (present, found) = self.secured(workspace, objects, journal, &scope, progress)?;
        let reader = objects.reader();
        let writer = objects.writer();
        let way = Way {
            from,
            to,
            present: &present,
            scope: &scope,
        };
        let rest = way.rest(&workspace.root, &reader, &Sink::Store(&writer))?;
        writer.finish()?;
        Ok((rest, found))
    }

    /// Goes on from the middle. The journal says "applying" throughout.
    pub(super) fn carry_on(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        plan: &Plan,
        journal: Journal,
        basis: &[Part],
        progress: &Progress,
    ) -> Result<(), StateError> {
        let reader = objects.reader();
        let directories =
            plan.directories(&reader, &journal.record.files, journal.record.git.as_ref())?;
        let staged = stage::prepare(&workspace.root, &plan.changes, &reader)?;
        let git = hold_git::hold(&workspace.root, &plan.changes, self.around.lock_timeout)?;
        let seen = apply::check_unchanged(&workspace.root, &plan.changes)?;
        self.put_parts_again(workspace, &reader, &journal.record, basis)?;
        let mut tree = apply::Tree::open(&workspace.root)?;
        tree.apply(&plan.changes, (&staged, &seen), &directories)?;
        drop(git);
        super::outcome::restore_root_mode(workspace, journal.record.root_mode)?;
        let is_linked_put = self.put_rest_of_linked(workspace, &journal, &reader)?;
        let seen = self.verify_restored(workspace, objects, (plan, &staged), &journal, progress)?;
        let matches = seen.left.is_empty() && !plan.incomplete && is_linked_put;
        self.record_restored(workspace, &journal, plan, matches)?;
        stage::clear(&workspace.root)?;
        journal.remove(&self.journal_directory())
    }

    /// Puts the git state of a linked work tree where the way leads, as far as nobody else has
    /// moved it since. False where it is not there then.
    fn put_rest_of_linked(
        &self,
        workspace: &Workspace,
        journal: &Journal,
        reader: &Reader<'_>,
    ) -> Result<bool, StateError> {
        let from = match &journal.taking_back {
            Some(done) => done.linked.clone(),
            None => self.find(journal.before.as_str())?.record.linked,
        };
        let wanted = journal.record.linked.as_ref();
        let (Some(from), Some(wanted)) = (from, wanted) else {
            return Ok(true);
        };
        if journal.mutating.is_some() || from == *wanted {
            return Ok(true);
        }
        let now = self.capture_linked(workspace, &Scope::everything())?;
        if now.as_ref() == Some(wanted) {
            return Ok(true);
        }
        // The head moves first, and the index after it.
        let is_on_the_way = now
            .is_some_and(|now| now == from || now.has_same_head(wanted) && now.index == from.index);
        if !is_on_the_way {
            return Ok(false);
        }
        let stays = self.put_linked(workspace, Some(wanted), reader)?;
        Ok(stays.is_empty())
    }

    /// After a failure: back to what was there before, so that the tree is not left half-way.
    /// Only what leads to `done` is taken back. What somebody else changed stays, and is
    /// returned.
    pub(crate) fn back_out(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        done: &Record,
        progress: &Progress,
    ) -> Result<WentBack, StateError> {
        let mut record = self.find(journal.before.as_str())?.record;
        let summary = format!("back from a failed {}", journal.summary);
        // What was there before may be a checkpoint that somebody asked for: the state
        // after going back to it is not another one.
        record.origin = Origin::Automatic;
        record.reason = Some(format!("after going {summary}"));
        record.size = 0;
        if journal.mutating.is_some() {
            // Those that the change may have reached.
            record.parts.clone_from(&journal.record.parts);
        }
        let back = Journal {
            verb: match journal.mutating {
                Some(_) => TAKE_BACK,
                None => BACK_OUT,
            }
            .to_owned(),
            restored_to: None,
            undoes: journal.mutating.as_ref().map(|_| journal.action.clone()),
            mutating: None,
            errand: None,
            taking_back: Some(Box::new(done.clone())),
            phase: Phase::Applying,
            record,
            summary,
            action: safepoint_model::ActionId::generate(&*self.around.entropy)?,
            after: SnapshotId::generate(self.now(), &*self.around.entropy)?,
            ..journal.clone()
        };
        back.write(&self.journal_directory())?;
        super::salvage::salvage(&workspace.root, &objects.reader())?;
        self.go_back(workspace, objects, &back, progress)
    }

    /// Takes back what was done on the way of a journal, where nobody else was. Somebody
    /// who goes on changing things is left alone with what they changed.
    pub(super) fn go_back(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        journal: &Journal,
        progress: &Progress,
    ) -> Result<WentBack, StateError> {
        let done = journal.taking_back.as_deref().unwrap_or(&journal.record);
        let mut tries = MOST_TRIES;
        let mut first = None;
        loop {
            let ends = (done, &journal.record);
            let (mut rest, found) =
                self.secured_rest(workspace, objects, journal, ends, progress)?;
            let first = first.get_or_insert_with(|| found.clone());
            let reader = objects.reader();
            for note in self.put_linked_back(workspace, done, &journal.record, &reader)? {
                rest.changed.push(unescape(&note.path));
                rest.plan.remarks.push(note.why);
            }
            tries -= 1;
            let mut parts = self.parts_back(objects, journal, done, &found)?;
            if tries == 0 {
                parts.leave_busy();
            }
            let mut journal = journal.clone();
            journal.record.parts = parts.wanted;
            let plan = &rest.plan;
            match self.carry_on(workspace, objects, plan, journal, &parts.basis, progress) {
                Ok(()) => {
                    return Ok(WentBack {
                        left: rest.changed,
                        parts_left: parts.left,
                        found: first.clone(),
                    });
                }
                Err(
                    StateError::Changed { .. } | StateError::Stale { .. } | StateError::Torn { .. },
                ) if tries > 0 => {
                    super::salvage::salvage(&workspace.root, &objects.reader())?;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl State {
    /// What databases and states become without what a change wrote there. What it wrote is known
    /// of those that were looked at after it; others become what they were before it.
    fn parts_back(
        &self,
        objects: &Objects,
        journal: &Journal,
        done: &Record,
        found: &SnapshotId,
    ) -> Result<PartsBack, StateError> {
        let mut back = PartsBack::default();
        if journal.record.parts.is_empty() {
            return Ok(back);
        }
        let present = self.find(found.as_str())?.record.parts;
        let of = |parts: &[Part], part: &Part| {
            let mut parts = parts.iter();
            parts.find(|one| one.subject == part.subject).cloned()
        };
        for before in &journal.record.parts {
            let (Some(after), Some(now)) = (of(&done.parts, before), of(&present, before)) else {
                back.wanted.push(before.clone());
                continue;
            };
            match self.part_without(objects, (before, &after), &now)? {
                Remainder::Unchanged => {}
                Remainder::Part(part) => {
                    back.wanted.push(*part);
                    back.basis.push(now);
                }
                Remainder::Conflict(why) => back.left.push(Note {
                    path: before.subject.name(),
                    why,
                }),
            }
        }
        Ok(back)
    }

    /// Puts back what was done to the git state of a linked work tree, unless it has moved on
    /// since, and says what of it stays. Crash and repetition do it no harm.
    fn put_linked_back(
        &self,
        workspace: &Workspace,
        done: &Record,
        to: &Record,
        reader: &crate::objects::Reader<'_>,
    ) -> Result<Vec<Note>, StateError> {
        if done.linked.is_none() || to.linked.is_none() || done.linked == to.linked {
            return Ok(Vec::new());
        }
        let now = self.capture_linked(workspace, &Scope::everything())?;
        let (wanted, mut stays) = self.linked_without(to, done, now.as_ref())?;
        if wanted != now {
            stays.extend(self.put_linked(workspace, wanted.as_ref(), reader)?);
        }
        Ok(stays)
    }
}

impl PartsBack {
    /// Leaves those alone that others go on writing to.
    fn leave_busy(&mut self) {
        for now in self.basis.drain(..) {
            self.wanted.retain(|part| part.subject != now.subject);
            self.left.push(Note {
                path: now.subject.name(),
                why: "others go on writing to it".to_owned(),
            });
        }
    }
}

/// These paths, as they are called inside a workspace.
pub(super) fn within(root: &Path, paths: &[PathBuf]) -> Vec<TreePath> {
    let inside = |path: &PathBuf| {
        let inside = path.strip_prefix(root).ok()?;
        Some(inside.as_os_str().as_bytes().to_vec())
    };
    paths.iter().filter_map(inside).collect()
}
