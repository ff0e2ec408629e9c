//! Databases and states in a going back: what is wanted of each, what is there
//! now, and putting them in place before the first file is touched.

use super::{Goal, Journal, stage};
use crate::StateError;
use crate::objects::{Objects, Reader, Writer};
use crate::part::{Part, Remainder, Subject};
use crate::snapshot::{Action, Record, Snapshot};
use crate::state::{State, Workspace};
use crate::undo::FileConflict;

/// A database or state that would change.
#[derive(Clone, Debug)]
pub struct PartChange {
    /// What it is now.
    pub from: Part,
    /// What it would be.
    pub to: Part,
    /// What differs, for people.
    pub text: String,
}

/// How many rows of each table are shown.
const ROWS_SHOWN: usize = 20;

impl State {
    /// What nobody knows of an action whose end nobody saw: how much of what it is booked with is
    /// its own.
    pub fn doubts_about(&self, action: &Action) -> Result<Vec<String>, StateError> {
        match action.outcome.as_str() {
            "unknown" => Ok(self.find(action.after.as_str())?.record.warnings),
            _ => Ok(Vec::new()),
        }
    }

    /// The same of what a goal takes back.
    pub(super) fn doubts(&self, goal: &Goal<'_>) -> Result<Vec<String>, StateError> {
        match goal {
            Goal::Without { action, .. } => self.doubts_about(action),
            Goal::Snapshot { .. } | Goal::Brought(_) => Ok(Vec::new()),
        }
    }

    /// The databases and states that a goal is about.
    pub(super) fn subjects_of(&self, goal: &Goal<'_>) -> Result<Vec<Subject>, StateError> {
        let of = |parts: &[Part]| parts.iter().map(|part| part.subject.clone()).collect();
        Ok(match goal {
            Goal::Snapshot { parts, .. } => of(parts),
            Goal::Without { action, .. } => of(&self.find(action.before.as_str())?.record.parts),
            Goal::Brought(_) => Vec::new(),
        })
    }

    /// The parts that a goal is about: as they are now, and as they are to be.
    pub(super) fn parts_of(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        writer: &Writer<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(Vec<Part>, Vec<Part>), StateError> {
        let (mut now, mut then) = (Vec::new(), Vec::new());
        match goal {
            Goal::Brought(_) => {}
            Goal::Snapshot { parts, .. } => {
                for part in parts {
                    now.push(self.capture_part(workspace, &part.subject, writer, warnings)?);
                    then.push(part.clone());
                }
            }
            Goal::Without { action, .. } => {
                let before = self.find(action.before.as_str())?;
                let after = self.find(action.after.as_str())?;
                let mut conflicts = Vec::new();
                for (was, became) in changed(&before.record, &after.record) {
                    let objects = self.objects()?;
                    let fresh = objects.writer();
                    let subject = &was.subject;
                    let found = self.capture_part(workspace, subject, &fresh, warnings)?;
                    fresh.finish()?;
                    match self.part_without(&objects, (&was, &became), &found)? {
                        Remainder::Unchanged => then.push(found.clone()),
                        Remainder::Part(part) => then.push(*part),
                        Remainder::Conflict(why) => {
                            conflicts.push(FileConflict {
                                path: was.subject.name().into_bytes(),
                                why,
                                hunks: Vec::new(),
                                ours: None,
                                below: None,
                            });
                            continue;
                        }
                    }
                    now.push(found);
                }
                if !conflicts.is_empty() {
                    return Err(StateError::Conflict { conflicts });
                }
            }
        }
        Ok((now, then))
    }

    /// Puts the parts in place. When one fails, those before it get back what they
    /// had, and nothing has happened.
    pub(super) fn put_parts(
        &self,
        workspace: &Workspace,
        reader: &Reader<'_>,
        journal: &Journal,
    ) -> Result<Vec<String>, StateError> {
        let before = self.find(journal.before.as_str())?;
        let mut warnings = Vec::new();
        let mut done: Vec<Part> = Vec::new();
        for (was, wanted) in changed(&before.record, &journal.record) {
            match self.restore_part(workspace, &wanted, reader) {
                Ok(more) => {
                    warnings.extend(more);
                    done.push(was);
                }
                Err(error) => {
                    // A provider may have done something all the same.
                    if matches!(was.subject, Subject::State { .. }) {
                        done.push(was);
                    }
                    let mut back = Ok(());
                    for part in done.iter().rev() {
                        let restored = self.restore_part(workspace, part, reader);
                        back = back.and(restored.map(drop));
                    }
                    stage::clear(&workspace.root)?;
                    journal.remove(&self.journal_directory())?;
                    return Err(match back {
                        Ok(()) => error,
                        Err(left) => not_taken_back(error, &left),
                    });
                }
            }
        }
        Ok(warnings)
    }

    /// Puts all parts of a journal in place, whatever is there: a crash came before. Those that
    /// were made of what is in `basis` are put there only as long as that is what is there.
    pub(super) fn put_parts_again(
        &self,
        workspace: &Workspace,
        reader: &Reader<'_>,
        record: &Record,
        basis: &[Part],
    ) -> Result<(), StateError> {
        let objects = self.objects()?;
        for part in &record.parts {
            let writer = objects.writer();
            // Looking is cheaper than bringing back, and one that cannot be looked at is not right.
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            let expected = basis.iter().find(|one| one.subject == part.subject);
            match now {
                Ok(now) if now.is_same(part) => {}
                Ok(now) if expected.is_some_and(|expected| !expected.is_same(&now)) => {
                    return Err(StateError::Changed {
                        paths: vec![part.subject.name().into()],
                    });
                }
                Ok(_) | Err(_) => {
                    self.restore_part(workspace, part, reader)?;
                }
            }
        }
        Ok(())
    }

    /// What has become of a snapshot's databases and states since it was made.
    pub fn part_changes_since(
        &self,
        workspace: &Workspace,
        snapshot: &Snapshot,
    ) -> Result<Vec<PartChange>, StateError> {
        let objects = self.objects()?;
        let writer = objects.writer();
        let mut now = Vec::new();
        for part in &snapshot.record.parts {
            now.push(self.capture_part(workspace, &part.subject, &writer, &mut Vec::new())?);
        }
        writer.finish()?;
        let pairs = snapshot.record.parts.iter().zip(&now);
        self.part_changes(&objects, pairs)
    }

    /// The databases and states that differ between two snapshots, by name.
    pub fn changed_parts(&self, before: &Snapshot, after: &Snapshot) -> Vec<String> {
        let pairs = changed(&before.record, &after.record);
        pairs.iter().map(|(part, _)| part.subject.name()).collect()
    }

    /// What differs between the databases and states of two snapshots.
    pub fn part_changes_between(
        &self,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Vec<PartChange>, StateError> {
        let objects = self.objects()?;
        let pairs = changed(&before.record, &after.record);
        self.part_changes(&objects, pairs.iter().map(|(a, b)| (a, b)))
    }

    pub(super) fn part_changes<'p>(
        &self,
        objects: &Objects,
        pairs: impl Iterator<Item = (&'p Part, &'p Part)>,
    ) -> Result<Vec<PartChange>, StateError> {
        pairs
            .filter(|(from, to)| !from.is_same(to))
            .map(|(from, to)| {
                Ok(PartChange {
                    from: from.clone(),
                    to: to.clone(),
                    text: self.compare_parts(objects, from, to, ROWS_SHOWN)?,
                })
            })
            .collect()
    }
}

/// The same error, when what was there before it could not be brought back.
fn not_taken_back(error: StateError, left: &StateError) -> StateError {
    match error {
        StateError::Provider {
            key,
            command,
            why,
            ending,
        } => StateError::Provider {
            key,
            command,
            ending,
            why: format!("{why}; what was there before could not be brought back: {left}"),
        },
        other => other,
    }
}

/// The parts that both records have, and that differ.
pub(crate) fn changed(before: &Record, after: &Record) -> Vec<(Part, Part)> {
    before
        .parts
        .iter()
        .filter_map(|was| {
            let became = after.parts.iter().find(|one| one.subject == was.subject)?;
            (!was.is_same(became)).then(|| (was.clone(), became.clone()))
        })
        .collect()
}
