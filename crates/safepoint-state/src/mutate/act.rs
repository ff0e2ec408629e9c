//! Doing it: steps on files by a plan, everything else by whatever owns it.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};

use safepoint_database::{SqlChange, Verdict as SqlVerdict};
use safepoint_store::fault;

use super::authority::{self, Reach};
use super::operation::Operation;
use super::picture::Picture;
use super::place::{self, LastLink, Place, Target};
use super::{Found, Mutation, Secured, Structured};
use crate::capture::Capture;
use crate::edit::{self, Format};
use crate::objects::Objects;
use crate::part::{Part, Subject};
use crate::path::{self, TreePath};
use crate::restore::{Journal, Phase, Plan};
use crate::scan::{Progress, Sink};
use crate::scope::Scope;
use crate::state::{State, Workspace};
use crate::tree::{Moment, Subtree};
use crate::{Ending, StateError};

/// What a run of steps on files will do.
pub(super) struct Planned {
    plan: Plan,
    pub(super) files: Subtree,
    pub(super) meant: BTreeSet<TreePath>,
    lines: Vec<String>,
    structure: Vec<Structured>,
    warnings: Vec<String>,
    /// How many steps it is made of.
    steps: usize,
}

impl Planned {
    /// Every path that will be touched.
    pub(super) fn paths(&self) -> impl Iterator<Item = &TreePath> {
        self.plan.changes.iter().map(|change| &change.path)
    }
}

/// What has been done.
#[derive(Default)]
pub(super) struct Acted {
    /// Paths that were meant to change, and what is below them.
    pub(super) meant: BTreeSet<TreePath>,
    /// Exactly the paths that steps on files wrote.
    pub(super) written: BTreeSet<TreePath>,
    /// The tree that steps on files alone lead to.
    pub(super) wanted: Option<Subtree>,
    pub(super) lines: Vec<String>,
    pub(super) structure: Vec<Structured>,
    pub(super) warnings: Vec<String>,
    pub(super) output: Option<String>,
    /// Queries that decided about SQL, and what they said.
    pub(super) queries: Vec<(String, String)>,
    /// Databases and states as the steps have left them.
    pub(super) left: Vec<Part>,
}

impl Acted {
    /// What the steps have made of a database or state, where that was looked at.
    pub(super) fn part_left(&self, subject: &Subject) -> Option<&Part> {
        self.left.iter().find(|part| part.subject == *subject)
    }
}

/// What a change may have touched, however far it came.
#[derive(Default)]
pub(super) struct Reached {
    /// The tree that steps on files lead to, as far as they have come.
    pub(super) files: Option<Subtree>,
    /// The paths that they change.
    pub(super) paths: BTreeSet<TreePath>,
    /// Databases and states.
    parts: Vec<Subject>,
    /// The same as they were right after the last step: what differs later is others' work. None
    /// where that was not looked at.
    pub(super) left: Vec<Part>,
    /// A command can reach all that the checkpoint covers, and nobody can tell what it wrote. A
    /// check is to change nothing: what changes while it runs is not taken for the change's.
    pub(super) everything: bool,
}

impl Reached {
    fn is_nothing(&self) -> bool {
        self.files.is_none() && !self.everything && self.parts.is_empty()
    }

    /// Whether it was brought back as a whole although others may have written to it: nobody has
    /// looked at what the steps left there.
    pub(super) fn is_others(&self, before: &Part, found: &Part) -> bool {
        !found.is_same(before) && !self.left.iter().any(|it| it.subject == before.subject)
    }

    /// Whether others have written to it since the steps did, if it is as `found`.
    pub(super) fn is_shared(&self, before: &Part, found: &Part) -> bool {
        let mut left = self.left.iter().filter(|it| it.subject == before.subject);
        !found.is_same(before) && left.any(|left| !left.is_same(found))
    }

    pub(super) fn has(&self, subject: &Subject) -> bool {
        self.everything || self.parts.contains(subject)
    }
}

impl State {
    /// Looks at a database or state as a step has left it, and writes that down: what differs from
    /// it later is the work of others, also for whoever finds the change cut off. Without it,
    /// nobody can tell.
    fn look_at_reached(
        &self,
        workspace: &Workspace,
        subject: &Subject,
        journal: &mut Journal,
        reached: &mut Reached,
    ) -> Result<(), StateError> {
        let objects = self.objects()?;
        let writer = objects.writer();
        let left = self.capture_part(workspace, subject, &writer, &mut Vec::new())?;
        writer.finish()?;
        reached.left.retain(|part| part.subject != *subject);
        reached.left.push(left);
        if let Some(mutating) = &mut journal.mutating {
            mutating.left.clone_from(&reached.left);
        }
        journal.write(&self.journal_directory())
    }

    /// Plans the steps on files that come first.
    pub(super) fn first_picture(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        objects: &Objects,
    ) -> Result<Option<Planned>, StateError> {
        let count = file_steps(&secured.steps);
        if count == 0 {
            return Ok(None);
        }
        let steps = secured.steps.get(..count).unwrap_or_default();
        self.plan_files(workspace, secured, &secured.capture, objects, steps)
            .map(Some)
    }

    fn plan_files(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        present: &Capture,
        objects: &Objects,
        steps: &[Found],
    ) -> Result<Planned, StateError> {
        let reader = objects.reader();
        let mut picture = Picture::new(present.files, &reader, moment(self.now()));
        for found in steps {
            let Target::Place(place) = &found.target else {
                continue;
            };
            refuse_locked(workspace, place)?;
            if let Some(other) = &found.other {
                refuse_locked(workspace, other)?;
            }
            let here = workspace.root.join(path::as_path(&place.path));
            let inside = |name: &str| -> Result<Place, StateError> {
                let found = place::find(&workspace.root, &here, name, LastLink::Follow)?;
                let target = Target::Place(found.clone());
                authority::covers(&secured.checkpoint, present, &target, Reach::Itself)?;
                refuse_locked(workspace, &found)?;
                Ok(found)
            };
            picture.carry_out(place, &found.step.operation, found.other.as_ref(), &inside)?;
        }
        let mut planned = Planned {
            plan: Plan::nothing(),
            files: present.files,
            meant: std::mem::take(&mut picture.meant),
            lines: std::mem::take(&mut picture.lines),
            structure: std::mem::take(&mut picture.structure),
            warnings: std::mem::take(&mut picture.warnings),
            steps: steps.len(),
        };
        let writer = objects.writer();
        planned.files = picture.keep(&writer)?;
        writer.finish()?;
        let mut target = secured.before.record.clone();
        target.files = planned.files;
        target.git = present.git;
        let reader = objects.reader();
        planned.plan = crate::restore::identical(
            &reader,
            &reader,
            &workspace.root,
            present,
            &target,
            &secured.scope,
            &Sink::Nowhere,
        )?;
        if let Some(kept) = planned.plan.kept.first() {
            return Err(StateError::Protected {
                path: kept.path.clone(),
                why: kept.why.clone(),
            });
        }
        Ok(planned)
    }

    /// Does all steps, one after the other.
    pub(super) fn act(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        (secured, objects): (&Secured, &Objects),
        first: Option<Planned>,
        journal: &Journal,
        reached: &mut Reached,
    ) -> Result<Acted, StateError> {
        let mut acted = Acted::default();
        let mut journal = journal.clone();
        let mut done = 0;
        let mut planned = first;
        while done < secured.steps.len() {
            let rest = secured.steps.get(done..).unwrap_or_default();
            let count = file_steps(rest);
            if count > 0 {
                let planned = match planned.take() {
                    Some(planned) => planned,
                    None => {
                        let present = self.look_stored(workspace, &secured.scope, objects)?;
                        let steps = rest.get(..count).unwrap_or_default();
                        self.plan_files(workspace, secured, &present, objects, steps)?
                    }
                };
                done += planned.steps;
                reached.files = Some(planned.files);
                reached.paths.extend(planned.paths().cloned());
                self.put(workspace, secured, objects, planned, &journal, &mut acted)?;
                continue;
            }
            let Some(found) = rest.first() else { break };
            journal.phase = Phase::Applying;
            journal.write(&self.journal_directory())?;
            fault::point("mutate.outside");
            acted.wanted = None;
            let ended = match &found.step.operation {
                Operation::Command { .. } => {
                    self.run_step(workspace, mutation, secured, found, &mut acted, reached)
                }
                _ => self.outside(workspace, found, &mut acted, reached),
            };
            fault::point("mutate.stepped");
            if let Target::Part(subject) = &found.target
                && reached.parts.contains(subject)
            {
                // Where it cannot be looked at, less is known of who wrote what.
                let looked = self.look_at_reached(workspace, subject, &mut journal, reached);
                acted.warnings.extend(looked.err().map(|error| {
                    let name = subject.name();
                    format!("`{name}` could not be looked at right after the change: {error}")
                }));
                acted.left.clone_from(&reached.left);
                fault::point("mutate.looked");
            }
            if let Err(error) = ended {
                if reached.is_nothing() {
                    // What a database has rolled back itself needs no way back, which would
                    // take with it what others have written since.
                    let journal = journal.clone();
                    journal.advance(Phase::Staging, &self.journal_directory())?;
                }
                return Err(error);
            }
            done += 1;
        }
        Ok(acted)
    }

    /// Puts a plan into the tree.
    fn put(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        objects: &Objects,
        planned: Planned,
        journal: &Journal,
        acted: &mut Acted,
    ) -> Result<(), StateError> {
        let reader = objects.reader();
        let journals = self.journal_directory();
        let mut touching = || journal.clone().advance(Phase::Applying, &journals);
        crate::restore::put_files(
            &workspace.root,
            &planned.plan,
            (&planned.files, secured.capture.git.as_ref()),
            &reader,
            &mut touching,
        )?;
        touch_parents(workspace, &secured.scope, &planned);
        acted.written.extend(planned.paths().cloned());
        acted.meant.extend(planned.meant);
        acted.lines.extend(planned.lines);
        acted.structure.extend(planned.structure);
        acted.warnings.extend(planned.warnings);
        acted.wanted = Some(planned.files);
        Ok(())
    }

    /// A step that is not on files.
    fn outside(
        &self,
        workspace: &Workspace,
        found: &Found,
        acted: &mut Acted,
        reached: &mut Reached,
    ) -> Result<(), StateError> {
        match (&found.step.operation, &found.target) {
            (
                Operation::Sql { sql, verify },
                Target::Part(subject @ Subject::Database { address, variable }),
            ) => {
                let database = self.database(&address.whole(), variable.as_deref())?;
                let change = SqlChange {
                    statements: sql.clone(),
                    check: verify.clone(),
                };
                if self.check_database(address)?.is_kept_inside {
                    database.refuse_beyond(&change)?;
                }
                let done = database.change(&change, &mut |trial| match trial.passes() {
                    true => SqlVerdict::Keep,
                    false => SqlVerdict::Drop,
                });
                let kept = match &done {
                    Ok(done) => done.kept,
                    Err(error) => !error.kept_nothing(),
                };
                if kept {
                    reached.parts.push(subject.clone());
                }
                let done = done?;
                if let Some(query) = verify {
                    let said = told(done.trial.check.as_deref().unwrap_or_default());
                    if !done.trial.passes() {
                        return Err(StateError::CheckFailed {
                            check: query.clone(),
                            why: format!("it answered {said}"),
                            ending: Ending::ByItself,
                        });
                    }
                    acted.queries.push((query.clone(), said));
                }
                Ok(())
            }
            (
                Operation::State {
                    value,
                    patch,
                    merge,
                },
                Target::Part(subject @ Subject::State { key }),
            ) => {
                let new = match (value, patch, merge) {
                    (Some(value), ..) => serde_json::to_vec(value)
                        .map_err(|error| StateError::Unsupported(error.to_string()))?,
                    (None, patch, merge) => {
                        let change = match patch {
                            Some(patch) => edit::Change::Patch(patch.clone()),
                            None => edit::Change::Merge(merge.clone().unwrap_or_default()),
                        };
                        let old = self.present_state(workspace, key)?.unwrap_or_default();
                        let done = edit::change(Format::Json, &old, &change).map_err(|error| {
                            StateError::Inapplicable {
                                target: format!("state:{key}"),
                                why: error.to_string(),
                                suggestion: error.suggestion(),
                            }
                        })?;
                        done.bytes
                    }
                };
                // A provider that fails may have done something all the same.
                reached.parts.push(subject.clone());
                self.restore_state(workspace, key, Some(&new))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn look_stored(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        objects: &Objects,
    ) -> Result<Capture, StateError> {
        let writer = objects.writer();
        let capture = {
            let sink = Sink::Store(&writer);
            self.look(workspace, scope, objects, &sink, &Progress::default())?
        };
        writer.finish()?;
        Ok(capture)
    }
}

/// What a query answered, on one line.
fn told(rows: &[safepoint_database::Row]) -> String {
    let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "NULL".to_owned());
    let row = |row: &safepoint_database::Row| {
        let cells: Vec<String> = row.iter().map(cell).collect();
        cells.join(", ")
    };
    let shown: Vec<String> = rows.iter().take(5).map(row).collect();
    match rows.len() {
        0 => "no row".to_owned(),
        1..=5 => shown.join("; "),
        many => format!("{} and {} more rows", shown.join("; "), many - 5),
    }
}

/// How many of the steps at the beginning are on files.
fn file_steps(steps: &[Found]) -> usize {
    let on_files = |found: &&Found| found.step.operation.is_on_files();
    steps.iter().take_while(on_files).count()
}

/// A file that another program has locked is not changed behind its back.
fn refuse_locked(workspace: &Workspace, place: &Place) -> Result<(), StateError> {
    use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
    use rustix::fs::{fcntl_lock, flock, openat, statat};
    let (parent, name) = path::split(&place.path);
    let Some(directory) = directory(workspace, parent) else {
        return Ok(()); // there is nothing yet
    };
    let regular = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file());
    if !regular {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(&directory, name, flags | OFlags::RDWR, Mode::empty()) else {
        return Ok(()); // one that may not be opened tells so when it is written
    };
    let locked = |result: Result<(), rustix::io::Errno>| {
        matches!(
            result,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS)
        )
    };
    if locked(flock(&file, FlockOperation::NonBlockingLockExclusive))
        || locked(fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive))
    {
        let path = workspace.root.join(path::as_path(&place.path));
        return Err(StateError::TargetLocked { path });
    }
    Ok(())
}

/// The handle of a directory in the workspace, by no link; `None` when there is none.
pub(super) fn directory(workspace: &Workspace, path: &[u8]) -> Option<OwnedFd> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, &workspace.root, flags, Mode::empty()).ok()?;
    crate::scan::open_beneath(root.as_fd(), path).ok()?
}

/// Directories of which the scope has only a part keep their metadata; their time moves
/// all the same, because something in them changed.
fn touch_parents(workspace: &Workspace, scope: &Scope, planned: &Planned) {
    use crate::scope::Cover;
    use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
    let parents: BTreeSet<&[u8]> = planned.paths().map(|path| path::split(path).0).collect();
    let time = |nanos| Timespec {
        tv_sec: 0,
        tv_nsec: nanos,
    };
    for parent in parents {
        if parent.is_empty() || scope.cover(parent) == Cover::Everything {
            continue;
        }
        let times = Timestamps {
            last_access: time(UTIME_OMIT),
            last_modification: time(UTIME_NOW),
        };
        // A directory that may not be touched has still been changed.
        if let Some(handle) = directory(workspace, parent) {
            let _ = futimens(&handle, &times);
        }
    }
}

/// The present as file systems keep it.
pub(super) fn moment(now: safepoint_model::Timestamp) -> Moment {
    let micros = now.as_micros();
    Moment {
        seconds: micros.div_euclid(1_000_000),
        nanos: u32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}
