//! Changing the tree: by renaming and naming anew, each step relative to the handle of
//! its directory.
//!
//! Nothing is replaced or deleted that is not what the plan saw. Where somebody else was
//! meanwhile, all ends there, and whoever asked takes back what was done.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, chmodat, chownat, fchmod, fchown, fsync, futimens,
    mkdirat, openat, renameat, statat, syncfs, unlinkat, utimensat,
};
use rustix::io::Errno;
use safepoint_store::fault;

use super::displace::{self, Displaced, Known, Places, Step};
use super::owner;
use super::stage::{Staged, needs_content, set_attributes, times};
use crate::path::{self, TreePath};
use crate::scan::open_beneath;
use crate::scan::stat::Found;
use crate::tree::{Change, Entry, Node};
use crate::{StateError, scan};

/// Up to so many directories are synced one by one.
const FEW: usize = 64;

/// What could not be done as planned, and why that is no failure.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// Directories that stay because something is in them that is not ours to remove.
    pub(super) kept: Vec<TreePath>,
}

/// The tree that is being changed.
pub(super) struct Tree<'a> {
    root: OwnedFd,
    workspace: &'a Path,
    /// Directories that were opened, and those that are known not to be there.
    handles: HashMap<TreePath, Option<OwnedFd>>,
    /// The modes that files got, by their numbers: other names of them have them too.
    modes: HashMap<u64, u32>,
}

/// How each path looked that will be touched.
pub(super) type Seen = HashMap<TreePath, Found>;

/// Makes sure that everything is still as it was when the plan was made.
pub(super) fn check_unchanged(workspace: &Path, changes: &[Change]) -> Result<Seen, StateError> {
    let mut tree = Tree::open(workspace)?;
    let mut seen = Seen::new();
    for change in changes {
        let (parent, name) = path::split(&change.path);
        let found = match tree.parent(parent)? {
            Some(parent) => match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(Found::of(&stat)),
                Err(Errno::NOENT) => None,
                Err(error) => return Err(tree.failed("read", &change.path, error)),
            },
            None => None,
        };
        let same = match (&change.from, &found) {
            (None, None) => true,
            (Some(entry), Some(found)) => is_still(entry, found),
            _ => false,
        };
        if !same {
            return Err(StateError::Stale {
                path: workspace.join(path::as_path(&change.path)),
            });
        }
        // Where a link points is not seen from outside: it is read each time.
        if let Some(found) = found.filter(|found| found.kind != FileType::Symlink) {
            seen.insert(change.path.clone(), found);
        }
    }
    Ok(seen)
}

fn is_still(entry: &Entry, found: &Found) -> bool {
    let kind = match &entry.node {
        Node::File { size, .. } => {
            found.is_file() && found.size == *size && found.modified == entry.modified
        }
        Node::Directory(_) => found.is_directory(), // its time moves with what happens in it
        Node::Symlink { .. } => found.kind == FileType::Symlink,
        Node::Special { kind, .. } => found.special() == Some(*kind),
    };
    kind && found.mode == entry.mode
}

impl<'a> Tree<'a> {
    pub(super) fn open(workspace: &'a Path) -> Result<Self, StateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, workspace, flags, Mode::empty())
            .map_err(|error| StateError::file("open", workspace, error))?;
        Ok(Self {
            root,
            workspace,
            handles: HashMap::new(),
            modes: HashMap::new(),
        })
    }

    fn failed(&self, action: &'static str, path: &[u8], error: Errno) -> StateError {
        StateError::file(action, self.workspace.join(path::as_path(path)), error)
    }

    /// The handle of a directory; `None` when it is not there.
    fn parent(&mut self, path: &[u8]) -> Result<Option<BorrowedFd<'_>>, StateError> {
        if path.is_empty() {
            return Ok(Some(self.root.as_fd()));
        }
        if !self.handles.contains_key(path) {
            if self.handles.len() >= 256 {
                self.handles.clear();
            }
            let handle = open_beneath(self.root.as_fd(), path)?;
            self.handles.insert(path.to_vec(), handle);
        }
        let known = self.handles.get(path).and_then(Option::as_ref);
        Ok(known.map(OwnedFd::as_fd))
    }

    /// Does `step` in the directory that holds `path`. One that may not be
    /// written is made writable for it; it gets its mode back with all others.
    fn at<T>(
        &mut self,
        action: &'static str,
        path: &[u8],
        step: impl Fn(BorrowedFd<'_>, &[u8]) -> Result<T, Errno>,
    ) -> Result<Option<T>, StateError> {
        let (parent, name) = path::split(path);
        let Some(handle) = self.parent(parent)? else {
            return Ok(None);
        };
        let result = match step(handle, name) {
            Err(Errno::ACCESS) => {
                let opened = fchmod(handle, Mode::from_raw_mode(0o700));
                opened.and_then(|()| step(handle, name))
            }
            other => other,
        };
        match result {
            Ok(done) => Ok(Some(done)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(action, path, error)),
        }
    }

    /// Makes the tree what the changes say.
    pub(super) fn apply(
        &mut self,
        changes: &[Change],
        (staged, seen): (&Staged, &Seen),
        directories: &BTreeMap<TreePath, Entry>,
    ) -> Result<Remarks, StateError> {
        let mut remarks = Remarks::default();
        let mut displaced = Vec::new();
        self.remove(changes, (staged, seen), &mut remarks, &mut displaced)?;
        fault::point("restore.removed");
        for change in changes {
            let is_directory =
                |entry: &Option<Entry>| entry.as_ref().is_some_and(|it| it.subtree().is_some());
            let new = is_directory(&change.to) && !is_directory(&change.from);
            if new && !staged.has(&change.path) {
                self.make_directory(&change.path)?;
            }
        }
        for change in changes {
            match staged.names.get(&change.path) {
                Some(name) => displaced.extend(self.put(change, name, (staged, seen))?),
                None if staged.inside.contains(&change.path) => {}
                None => self.retouch(change, seen.get(&change.path))?,
            }
        }
        fault::point("restore.renamed");
        self.look_back(&displaced, staged)?;
        self.finish_directories(directories)?;
        self.sync(changes)?;
        Ok(remarks)
    }

    fn changed(&self, path: &[u8]) -> StateError {
        StateError::Changed {
            paths: vec![self.workspace.join(path::as_path(path))],
        }
    }

    /// Removes what must not be there, the deepest first.
    fn remove<'c>(
        &mut self,
        changes: &'c [Change],
        (staged, seen): (&Staged, &Seen),
        remarks: &mut Remarks,
        displaced: &mut Vec<Displaced<'c>>,
    ) -> Result<(), StateError> {
        for (number, change) in changes.iter().enumerate().rev() {
            let Some(from) = &change.from else { continue };
            let was_directory = from.subtree().is_some();
            let becomes_directory = change.to.as_ref().map(|to| to.subtree().is_some());
            // What is replaced by a rename needs no removing.
            if becomes_directory == Some(was_directory)
                || becomes_directory == Some(false) && !was_directory
            {
                continue;
            }
            fault::point("restore.step");
            if was_directory {
                self.remove_directory(&change.path, remarks)?;
                continue;
            }
            let name = displace::gone(number);
            let modes = std::mem::take(&mut self.modes);
            let known = Known {
                entry: from,
                seen: seen.get(&change.path),
                modes: &modes,
            };
            let step = self.at("delete", &change.path, |parent, target| {
                let at = Places {
                    beside: staged.handle.as_fd(),
                    name: &name,
                    parent,
                    target,
                };
                displace::take_out(at, change, known)
            });
            self.modes = modes;
            let step = step?;
            match step {
                Some(Step::Changed) => return Err(self.changed(&change.path)),
                Some(Step::Done(out)) => displaced.extend(out),
                None => {}
            }
        }
        Ok(())
    }

    /// Removes a directory, if nothing is in it. What somebody put in its place stays.
    fn remove_directory(&mut self, path: &[u8], remarks: &mut Remarks) -> Result<(), StateError> {
        let removed = self.at("delete", path, |parent, name| {
            match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTDIR) => Ok(true),
                Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
                other => other.map(|()| true),
            }
        })?;
        if removed == Some(false) {
            remarks.kept.push(path.to_vec());
        }
        self.handles.remove(path);
        Ok(())
    }

    /// Whether somebody wrote to what was taken out, by a handle from before. Then it goes back.
    fn look_back(&mut self, out: &[Displaced<'_>], staged: &Staged) -> Result<(), StateError> {
        let beside = staged.handle.as_fd();
        for one in out {
            let path = &one.change.path;
            let written = one.is_written(beside);
            if !written.map_err(|error| self.failed("read", path, error))? {
                continue;
            }
            self.at("write", path, |parent, target| {
                displace::give_back(Places {
                    beside,
                    name: one.name(),
                    parent,
                    target,
                })
            })?;
            return Err(self.changed(path));
        }
        Ok(())
    }

    fn make_directory(&mut self, path: &[u8]) -> Result<(), StateError> {
        fault::point("restore.step");
        self.handles.remove(path);
        let made = self.at("create the directory", path, |parent, name| {
            match mkdirat(parent, name, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => Ok(()),
                other => other,
            }
        })?;
        made.ok_or_else(|| self.failed("create the directory", path, Errno::NOENT))
    }

    /// Puts what lies ready in its place, and what was there beside the tree.
    fn put<'c>(
        &mut self,
        change: &'c Change,
        name: &str,
        (staged, seen): (&Staged, &Seen),
    ) -> Result<Option<Displaced<'c>>, StateError> {
        fault::point("restore.step");
        let is_directory = |entry: &Entry| entry.subtree().is_some();
        if change.to.as_ref().is_some_and(is_directory) {
            self.handles.clear(); // what was not there before may be there now
        }
        // A directory, and what became one, has been removed before.
        let replaced = change
            .from
            .as_ref()
            .filter(|from| !is_directory(from) && !change.to.as_ref().is_some_and(is_directory));
        let modes = std::mem::take(&mut self.modes);
        let step = self.at("write", &change.path, |parent, target| {
            let at = Places {
                beside: staged.handle.as_fd(),
                name,
                parent,
                target,
            };
            match replaced {
                None => displace::put_new(at),
                Some(entry) => {
                    let known = Known {
                        entry,
                        seen: seen.get(&change.path),
                        modes: &modes,
                    };
                    displace::exchange(at, change, known)
                }
            }
        });
        self.modes = modes;
        match step? {
            Some(Step::Done(out)) => Ok(out),
            Some(Step::Changed) => Err(self.changed(&change.path)),
            None => Err(self.failed("write", &change.path, Errno::NOENT)),
        }
    }

    /// Gives a file, which has the right content, the right mode, owner, time and attributes.
    fn retouch(&mut self, change: &Change, seen: Option<&Found>) -> Result<(), StateError> {
        let (Some(from), Some(to)) = (&change.from, &change.to) else {
            return Ok(());
        };
        if to.subtree().is_some() || needs_content(change) {
            return Ok(());
        }
        fault::point("restore.step");
        let no_follow = AtFlags::SYMLINK_NOFOLLOW;
        let modes = std::mem::take(&mut self.modes);
        let known = Known {
            entry: from,
            seen,
            modes: &modes,
        };
        let touched = self.at("change", &change.path, |parent, name| {
            let found = Found::of(&statat(parent, name, no_follow)?);
            if !known.is_still(parent, name, &found) {
                return Ok(None);
            }
            if from.attributes != to.attributes {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let handle = openat(parent, name, flags, Mode::empty())?;
                set_attributes(handle.as_fd(), &to.attributes)?;
            }
            if (from.owner, from.group) != (to.owner, to.group) {
                owner::give((to.owner, to.group), |owner, group| {
                    chownat(parent, name, owner, group, no_follow)
                })?;
            }
            if from.mode != to.mode && !matches!(to.node, Node::Symlink { .. }) {
                chmodat(parent, name, Mode::from_raw_mode(to.mode), AtFlags::empty())?;
            }
            utimensat(parent, name, &times(to.modified), no_follow).map(|()| Some(found.inode))
        });
        self.modes = modes;
        match touched? {
            Some(None) => Err(self.changed(&change.path)),
            Some(Some(inode)) => {
                self.modes.insert(inode, to.mode);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Gives directories their metadata, the deepest first: it changes with what happens in them.
    fn finish_directories(
        &mut self,
        directories: &BTreeMap<TreePath, Entry>,
    ) -> Result<(), StateError> {
        for (path, entry) in directories.iter().rev() {
            self.handles.remove(path);
            let Some(handle) = self.parent(path)? else {
                continue;
            };
            let finish = || {
                if scan::attributes(handle)? != entry.attributes {
                    set_attributes(handle, &entry.attributes)?;
                }
                owner::give((entry.owner, entry.group), |owner, group| {
                    fchown(handle, owner, group)
                })?;
                fchmod(handle, Mode::from_raw_mode(entry.mode))?;
                futimens(handle, &times(entry.modified))
            };
            let finished = finish();
            finished.map_err(|error| self.failed("change", path, error))?;
        }
        Ok(())
    }

    /// Makes all of it durable.
    fn sync(&mut self, changes: &[Change]) -> Result<(), StateError> {
        let parents: BTreeSet<&[u8]> = changes
            .iter()
            .map(|change| path::split(&change.path).0)
            .collect();
        if parents.len() > FEW {
            return syncfs(&self.root).map_err(|error| self.failed("sync", b"", error));
        }
        for parent in parents {
            let handle = match self.parent(parent) {
                // It has got the mode back with which nobody may open it.
                Err(error) if scan::is_forbidden(&error) => {
                    return syncfs(&self.root).map_err(|error| self.failed("sync", b"", error));
                }
                other => other?,
            };
            if let Some(handle) = handle {
                let synced = fsync(handle);
                synced.map_err(|error| self.failed("sync", parent, error))?;
            }
        }
        Ok(())
    }
}

/// Copies what lies ready to another file system, and puts it in place there.
pub(super) fn copy_across(
    staging: BorrowedFd<'_>,
    name: &str,
    parent: BorrowedFd<'_>,
    target: &[u8],
) -> Result<(), Errno> {
    let stat = statat(staging, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let found = Found::of(&stat);
    let beside = [b".safepoint-", name.as_bytes()].concat();
    let _ = unlinkat(parent, beside.as_slice(), AtFlags::empty());
    if found.kind == FileType::Symlink {
        let to = rustix::fs::readlinkat(staging, name, Vec::new())?;
        rustix::fs::symlinkat(&to, parent, beside.as_slice())?;
    } else {
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let write = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let source = openat(staging, name, read, Mode::empty())?;
        let copy = openat(parent, beside.as_slice(), write, Mode::from_raw_mode(0o600))?;
        let attributes = scan::attributes(source.as_fd())?;
        let mut from = std::fs::File::from(source);
        let mut to = std::fs::File::from(copy);
        std::io::copy(&mut from, &mut to)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        set_attributes(to.as_fd(), &attributes)?;
        owner::give((found.owner, found.group), |owner, group| {
            fchown(&to, owner, group)
        })?;
        fchmod(&to, Mode::from_raw_mode(found.mode))?;
        fsync(&to)?;
    }
    utimensat(
        parent,
        beside.as_slice(),
        &times(found.modified),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    renameat(parent, beside.as_slice(), parent, target)
}
