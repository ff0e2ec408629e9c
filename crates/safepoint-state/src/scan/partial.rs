//! Looking again at some paths only, where the rest is known.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::database;
use super::leaf::Leaf;
use super::names::{list, open_beneath, open_directory};
use super::stat::Found;
use super::walk::{Item, Part, Walk};
use super::{Request, Scan, Sink, problem};
use crate::path::{self, TreePath};
use crate::scope::Cover;
use crate::tree::{Entry, Node, Subtree, Trees, summarise};
use crate::{StateError, git_state};

/// What is known of a workspace.
pub(crate) struct Known<'a> {
    pub(crate) trees: &'a dyn Trees,
    pub(crate) files: &'a Subtree,
    pub(crate) git: &'a Subtree,
    pub(crate) notes: Scan,
}

/// The workspace as it is now, when nothing but `changed` is different from what is `known`.
/// `None` when something moved while it was looked at.
pub(crate) fn rescan(
    request: &Request<'_>,
    sink: &Sink<'_>,
    known: Known<'_>,
    changed: &BTreeSet<TreePath>,
) -> Result<Option<Scan>, StateError> {
    // A database is read with all that lies beside it: that takes a walk.
    if changed.iter().any(|path| database::owner(path).is_some()) {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = match openat(CWD, request.workspace, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        other => other.map_err(|error| StateError::file("open", request.workspace, error))?,
    };
    let mut notes = known.notes;
    let outdated = |path: &TreePath| changed.iter().any(|changed| path::is_within(path, changed));
    notes.left_out.retain(|one| !outdated(&one.path));
    notes.sensitive.retain(|(path, _)| !outdated(path));
    notes.special.retain(|(path, _)| !outdated(path));
    let walk = Walk {
        request,
        sink,
        found: Mutex::new(notes),
        restless: Mutex::default(),
        visited: Mutex::default(),
    };
    // What `.git` itself is now, a directory or not, shows beside the other files.
    let (git, files): (BTreeSet<&TreePath>, BTreeSet<&TreePath>) = changed
        .iter()
        .partition(|path| git_state::inside(path).is_some_and(|inside| !inside.is_empty()));
    let partial = Partial {
        walk: &walk,
        trees: known.trees,
    };
    let done = partial.directory(root.as_fd(), b"", known.files, &files, Part::Files)?;
    let mut parts: BTreeMap<TreePath, Entry> = git_parts(known.trees, known.git)?
        .into_iter()
        .filter(|(path, _)| !files.iter().any(|changed| path::is_within(path, changed)))
        .collect();
    let touched: BTreeSet<&[u8]> = git
        .iter()
        .filter_map(|path| git_state::directory(path))
        .filter(|directory| !files.iter().any(|path| path::is_within(directory, path)))
        .collect();
    for directory in touched {
        let old = parts.remove(directory);
        let inside: BTreeSet<&TreePath> = git
            .iter()
            .filter(|path| path::is_within(path, directory))
            .copied()
            .collect();
        let entry = partial.git(root.as_fd(), directory, old, &inside)?;
        parts.extend(entry.map(|entry| (directory.to_vec(), entry)));
    }
    if walk.settle(root.as_fd())?.is_some() {
        return Ok(None);
    }
    let mut scan = walk
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    // What may not be read is known from a whole look, which remembers it by name.
    let is_unreadable = |one: &super::Omitted| one.why == crate::left_out::UNREADABLE;
    if scan.left_out.iter().any(is_unreadable) {
        return Ok(None);
    }
    // Directories that were walked in full have told of their repositories themselves.
    for (path, entry) in std::mem::take(&mut scan.git) {
        parts.insert(path, entry);
    }
    scan.git = parts.into_iter().collect();
    scan.root = Some(done);
    scan.sort();
    Ok(Some(scan))
}

struct Partial<'w, 'a> {
    walk: &'w Walk<'a>,
    trees: &'w dyn Trees,
}

impl Partial<'_, '_> {
    fn directory(
        &self,
        handle: BorrowedFd<'_>,
        path: &[u8],
        old: &Subtree,
        changed: &BTreeSet<&TreePath>,
        part: Part,
    ) -> Result<Subtree, StateError> {
        // By name in this directory: what changed at the name itself, and what below it.
        let mut by_name: BTreeMap<&[u8], (bool, BTreeSet<&TreePath>)> = BTreeMap::new();
        for one in changed {
            let rest = one.get(path.len()..).unwrap_or_default();
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            let mut names = path::names(rest);
            let Some(name) = names.next() else { continue };
            let (itself, below) = by_name.entry(name).or_default();
            match names.next() {
                None => *itself = true,
                Some(_) => {
                    below.insert(one);
                }
            }
        }
        if by_name.is_empty() {
            return Ok(*old);
        }
        let mut entries: BTreeMap<Vec<u8>, Entry> = self
            .trees
            .tree(old.tree)?
            .into_iter()
            .map(|entry| (entry.name.clone(), entry))
            .collect();
        let beside = list(handle, path)?;
        for (name, (itself, below)) in by_name {
            let known = entries.remove(name);
            let entry = self.name(handle, path, name, known, itself, &below, part, &beside)?;
            entries.extend(entry.map(|entry| (name.to_vec(), entry)));
        }
        let entries: Vec<Entry> = entries.into_values().collect();
        let (encoded, subtree) = summarise(&entries);
        self.walk.sink.tree(subtree.tree, encoded)?;
        Ok(subtree)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "what is known of one name, and where it is"
    )]
    fn name(
        &self,
        handle: BorrowedFd<'_>,
        parent: &[u8],
        name: &[u8],
        known: Option<Entry>,
        itself: bool,
        below: &BTreeSet<&TreePath>,
        part: Part,
        beside: &[Vec<u8>],
    ) -> Result<Option<Entry>, StateError> {
        let path = path::join(parent, name);
        let found = match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Found::of(&stat),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(problem("read", &path, error)),
        };
        if let (false, true, Some(old)) = (itself, found.is_directory(), &known)
            && let Some(subtree) = old.subtree()
        {
            let Some(inside) = open_directory(handle, name, &path)? else {
                return Ok(None);
            };
            let subtree = self.directory(inside.as_fd(), &path, subtree, below, part)?;
            let mut entry = found.entry(name, Node::Directory(subtree));
            entry.attributes = old.attributes.clone();
            return Ok(Some(entry));
        }
        // New, exchanged, or not a directory: looked at as if nothing were known.
        let names = vec![name.to_vec()];
        let items = self.walk.sort_out(
            handle,
            parent,
            Cover::Everything,
            part,
            &names,
            beside,
            None,
        )?;
        let Some(item) = items.into_iter().next() else {
            return Ok(None);
        };
        self.whole(handle, parent, part, &item)
    }

    fn whole(
        &self,
        handle: BorrowedFd<'_>,
        parent: &[u8],
        part: Part,
        item: &Item,
    ) -> Result<Option<Entry>, StateError> {
        if item.found.is_directory() {
            let captured =
                self.walk
                    .subdirectory(handle, parent, Cover::Everything, part, item, None)?;
            return Ok(captured.map(|captured| captured.entry));
        }
        match self.walk.leaf(handle, parent, part, item, None)? {
            Leaf::Captured(captured) => Ok(Some(captured.entry)),
            Leaf::Flagged(_) | Leaf::Gone => Ok(None),
        }
    }

    /// A git directory of which some paths changed.
    fn git(
        &self,
        root: BorrowedFd<'_>,
        path: &[u8],
        old: Option<Entry>,
        changed: &BTreeSet<&TreePath>,
    ) -> Result<Option<Entry>, StateError> {
        let (parent, name) = path::split(path);
        let Some(handle) = open_beneath(root, parent)? else {
            return Ok(None);
        };
        let found = match statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Found::of(&stat),
            Err(_) => return Ok(None),
        };
        if !found.is_directory() {
            return Ok(None);
        }
        let Some(inside) = open_directory(handle.as_fd(), name, path)? else {
            return Ok(None);
        };
        let itself = changed.iter().any(|changed| changed.as_slice() == path);
        let known = old.as_ref().and_then(Entry::subtree).filter(|_| !itself);
        let subtree = match known {
            Some(known) => Some(self.directory(inside.as_fd(), path, known, changed, Part::Git)?),
            None => self
                .walk
                .directory(inside.as_fd(), path, Cover::Everything, Part::Git)?,
        };
        let Some(subtree) = subtree else {
            return Ok(None);
        };
        let mut entry = found.entry(name, Node::Directory(subtree));
        entry.attributes =
            super::attributes(inside.as_fd()).map_err(|error| problem("read", path, error))?;
        Ok(Some(entry))
    }
}

/// The git directories in the tree that holds nothing else.
fn git_parts(trees: &dyn Trees, root: &Subtree) -> Result<Vec<(TreePath, Entry)>, StateError> {
    let mut found = Vec::new();
    let mut waiting = vec![(TreePath::new(), root.tree)];
    while let Some((directory, tree)) = waiting.pop() {
        for entry in trees.tree(tree)? {
            let path = path::join(&directory, &entry.name);
            match entry.subtree() {
                Some(_) if entry.name == b".git" => found.push((path, entry)),
                Some(subtree) => waiting.push((path, subtree.tree)),
                None => {}
            }
        }
    }
    Ok(found)
}
