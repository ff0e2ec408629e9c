//! What may not be read is opened before a going back looks at it.
//!
//! An action can take every right from a file or a directory (`chmod 000`). Its owner can give
//! them back, and whoever goes back wants that. So what the state to go back to could read is
//! made readable first, for its owner alone, and is then looked at, kept and restored like
//! everything else; the modes go back with it. What belongs to somebody else stays as it is,
//! and is told. When nothing comes of the going back, each gets the mode again that it had;
//! killed in between, its owner may read it afterwards, and nobody else.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, chmod, fstat, openat};

use super::Goal;
use crate::capture::Capture;
use crate::objects::Objects;
use crate::path::{self, TreePath};
use crate::scan::stat::Found;
use crate::scan::{list, open_beneath};
use crate::scope::{Cover, Scope, unescape};
use crate::snapshot::{Note, Record};
use crate::state::State;
use crate::tree::{self, Entry, Keep, Subtree};
use crate::{StateError, git_state, left_out};

/// Nothing below this depth is captured either.
const DEEPEST: usize = 500;
/// What a directory gets while it is open, as during any other step of a going back.
pub(super) const OPEN_DIRECTORY: u32 = 0o700;
/// What a file gets.
pub(super) const OPEN_FILE: u32 = 0o400;

/// What was opened.
#[derive(Debug, Default)]
pub(super) struct Unclosed {
    /// What was named as unreadable.
    tops: Vec<TreePath>,
    /// Everything that has another mode now, a directory before what is in it.
    opened: Vec<Opened>,
    /// The files and git directories after the action that is taken out, of which the unreadable
    /// part was not seen then.
    after: Option<(Subtree, Option<Subtree>)>,
    /// The mode that the workspace itself had.
    root: Option<u32>,
}

#[derive(Debug)]
struct Opened {
    path: TreePath,
    was: u32,
    now: u32,
}

/// Makes the workspace itself readable for its owner, and tells the mode that it had.
pub(crate) fn open_root(workspace: &Path) -> Result<Option<u32>, StateError> {
    let Ok(stat) = rustix::fs::lstat(workspace) else {
        return Ok(None);
    };
    let found = Found::of(&stat);
    if !found.is_directory() || !is_ours(&found) || is_open(&found) {
        return Ok(None);
    }
    chmod(workspace, Mode::from_raw_mode(OPEN_DIRECTORY))
        .map_err(|error| StateError::file("change", workspace, error))?;
    Ok(Some(found.mode))
}

fn is_ours(found: &Found) -> bool {
    let me = rustix::process::geteuid();
    !me.is_root() && found.owner == me.as_raw()
}

fn is_open(found: &Found) -> bool {
    match found.is_directory() {
        true => found.mode & 0o500 == 0o500,
        false => !found.is_file() || found.mode & OPEN_FILE == OPEN_FILE,
    }
}

impl Unclosed {
    /// What may not be read now, is this user's own, and could be read in the state that a goal
    /// goes back to.
    pub(super) fn of(
        state: &State,
        workspace: &Path,
        goal: &Goal<'_>,
        scope: &Scope,
        present: &Capture,
    ) -> Result<Self, StateError> {
        let unreadable = |note: &&Note| note.why == left_out::UNREADABLE;
        let paths = |record: &Record| -> Vec<TreePath> {
            let notes = record.left_out.iter().chain(&record.sensitive);
            notes.map(|note| unescape(&note.path)).collect()
        };
        let (wanted, caused) = match goal {
            Goal::Snapshot { snapshot, .. } => (paths(&snapshot.record), None),
            Goal::Without { action, .. } => {
                let after = state.find(action.after.as_str())?.record;
                let notes = after.left_out.iter().filter(unreadable);
                let caused = notes.map(|note| unescape(&note.path)).collect::<Vec<_>>();
                let before = state.find(action.before.as_str())?.record;
                (paths(&before), Some(caused))
            }
            Goal::Brought(_) => return Ok(Self::default()),
        };
        let within =
            |path: &[u8], all: &[TreePath]| all.iter().any(|one| path::is_within(path, one));
        let is_meant = |path: &TreePath| {
            scope.cover(path) == Cover::Everything
                && !within(path, &wanted)
                && caused.as_ref().is_none_or(|caused| within(path, caused))
                && rustix::fs::lstat(workspace.join(path::as_path(path)))
                    .is_ok_and(|stat| is_ours(&Found::of(&stat)))
        };
        let omitted = present.scan.left_out.iter();
        let tops = omitted
            .filter(|one| one.why == left_out::UNREADABLE && is_meant(&one.path))
            .map(|one| one.path.clone())
            .collect();
        Ok(Self {
            tops,
            ..Self::default()
        })
    }

    /// Whether there is nothing to open.
    pub(super) fn is_empty(&self) -> bool {
        self.tops.is_empty()
    }

    /// The mode that the workspace had is given back when nothing comes of it.
    pub(super) fn with_root(self, root: Option<u32>) -> Self {
        Self { root, ..self }
    }

    /// The mode that the workspace had, if it was opened.
    pub(super) const fn root(&self) -> Option<u32> {
        self.root
    }

    /// Whether a note is about something that was opened.
    pub(super) fn covers(&self, note: &Note) -> bool {
        let path = unescape(&note.path);
        self.tops.iter().any(|top| path::is_within(&path, top))
    }

    /// Leaves it to the plan: what is not opened would be, and what is in it is as it was known.
    pub(super) fn foresee(&self, present: &mut Capture) {
        let is_open = |path: &[u8]| self.tops.iter().any(|top| path::is_within(path, top));
        present.scan.left_out.retain(|one| !is_open(&one.path));
    }

    /// Opens all of it.
    pub(super) fn open(&mut self, workspace: &Path) -> Result<(), StateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, workspace, flags, Mode::empty())
            .map_err(|error| StateError::file("open", workspace, error))?;
        for top in &self.tops {
            let (parent, name) = path::split(top);
            if let Ok(Some(parent)) = open_beneath(root.as_fd(), parent) {
                open_entry(parent.as_fd(), name, top, &mut self.opened);
            }
        }
        Ok(())
    }

    /// Gives everything the mode that it had, the deepest first.
    pub(super) fn close(&self, workspace: &Path) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, workspace, flags, Mode::empty());
        for one in self.opened.iter().rev() {
            let Ok(root) = &root else { break };
            let (parent, name) = path::split(&one.path);
            let Ok(Some(parent)) = open_beneath(root.as_fd(), parent) else {
                continue;
            };
            set_mode(parent.as_fd(), name, one.now, one.was);
        }
        if let Some(mode) = self.root {
            let _ = chmod(workspace, Mode::from_raw_mode(mode));
        }
    }

    /// Puts the modes that there were into the record of the state before.
    pub(super) fn amend_before(
        &self,
        record: &mut Record,
        objects: &Objects,
    ) -> Result<(), StateError> {
        record.root_mode = self.root.or(record.root_mode);
        if self.opened.is_empty() {
            return Ok(());
        }
        let reader = objects.reader();
        let writer = objects.writer();
        let keep: &mut Keep<'_> = &mut |id, bytes| writer.add_tree(id, bytes);
        let closed = |root: &Subtree, is_git: bool| -> Result<Vec<_>, StateError> {
            let mut edits = Vec::new();
            for one in &self.opened {
                if git_state::inside(&one.path).is_some() != is_git {
                    continue;
                }
                if let Some(entry) = tree::find(&reader, Some(root), &one.path)? {
                    let entry = Entry {
                        mode: one.was,
                        ..entry
                    };
                    edits.push((one.path.clone(), Some(entry)));
                }
            }
            Ok(edits)
        };
        let edits = closed(&record.files, false)?;
        record.files = tree::edit(&reader, Some(&record.files), edits, keep)?;
        if let Some(git) = record.git {
            let edits = closed(&git, true)?;
            record.git = Some(tree::edit(&reader, Some(&git), edits, keep)?);
        }
        writer.finish()?;
        Ok(())
    }

    /// Completes what an action left behind. Nobody could look into what was closed then, and
    /// it has been closed until now: what is there is what the action left.
    pub(super) fn complete(
        &mut self,
        after: &Record,
        present: &Capture,
        scope: &Scope,
        objects: &Objects,
    ) -> Result<(), StateError> {
        if self.tops.is_empty() {
            return Ok(());
        }
        let reader = objects.reader();
        let writer = objects.writer();
        let keep: &mut Keep<'_> = &mut |id, bytes| writer.add_tree(id, bytes);
        let completed = |then: &Subtree, now: &Subtree, keep: &mut Keep<'_>| {
            let changes = tree::changes(&reader, Some(then), Some(now), scope)?;
            let inside = |path: &[u8]| self.tops.iter().any(|top| path::is_within(path, top));
            let edits = changes.into_iter().filter(|change| inside(&change.path));
            let edits = edits.map(|change| (change.path, change.to));
            tree::edit(&reader, Some(then), edits, keep)
        };
        let files = completed(&after.files, &present.files, keep)?;
        let git = match (&after.git, &present.git) {
            (Some(then), Some(now)) => Some(completed(then, now, keep)?),
            _ => after.git,
        };
        writer.finish()?;
        self.after = Some((files, git));
        Ok(())
    }

    /// The state after the action as it is known now.
    pub(super) fn amend_after(&self, mut after: Record) -> Record {
        after.left_out.retain(|note| !self.covers(note));
        if let Some((files, git)) = self.after {
            (after.files, after.git) = (files, git);
        }
        after
    }
}

/// Opens one entry, and all that is in it.
fn open_entry(parent: BorrowedFd<'_>, name: &[u8], path: &[u8], opened: &mut Vec<Opened>) {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(handle) = openat(parent, name, flags, Mode::empty()) else {
        return;
    };
    let Ok(stat) = fstat(&handle) else { return };
    let found = Found::of(&stat);
    drop(handle);
    if !is_ours(&found) {
        return;
    }
    if !is_open(&found) {
        let now = match found.is_directory() {
            true => OPEN_DIRECTORY,
            false => OPEN_FILE,
        };
        if !set_mode(parent, name, found.mode, now) {
            return;
        }
        opened.push(Opened {
            path: path.to_vec(),
            was: found.mode,
            now,
        });
    }
    if !found.is_directory() || path::names(path).count() > DEEPEST {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(inside) = openat(parent, name, flags, Mode::empty()) else {
        return;
    };
    for name in list(inside.as_fd(), path).unwrap_or_default() {
        open_entry(inside.as_fd(), &name, &path::join(path, &name), opened);
    }
}

/// Gives an entry another mode, if it has the one that is expected and is no link.
fn set_mode(parent: BorrowedFd<'_>, name: &[u8], expected: u32, mode: u32) -> bool {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(handle) = openat(parent, name, flags, Mode::empty()) else {
        return false;
    };
    let is_it = fstat(&handle).is_ok_and(|stat| {
        let found = Found::of(&stat);
        (found.is_directory() || found.is_file()) && found.mode == expected
    });
    // What may not be read cannot be opened, but by its handle it can be changed: whatever
    // stands at its name meanwhile.
    let by_handle = format!("/proc/self/fd/{}", handle.as_raw_fd());
    is_it && chmod(by_handle, Mode::from_raw_mode(mode)).is_ok()
}
