//! The walk itself: one directory at a time, its subdirectories side by side.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::cache::{self, Flagged, Record, Seen, Stamp};
use super::closed::is_closed;
use super::leaf::{Leaf, Settled};
use super::names::{is_own, is_passing, list, open_directory};
use super::read;
use super::rules::OWN;
use super::stat::Found;
use super::{Omitted, Request, Scan, Sink, problem};
use crate::path::{self, TreePath};
use crate::scope::Cover;
use crate::sensitive::{self, Reason};
use crate::tree::{Entry, Moment, Node, Subtree, summarise};
use crate::{ContentId, StateError, left_out};

/// How often all is looked at again because something changed meanwhile.
const ROUNDS: u32 = 5;
/// Deeper than this no tree is walked: each level holds a handle.
const DEEPEST: usize = 500;

/// Looks at everything in the scope. What changes while it is looked at is
/// looked at again, until all of it held still.
pub(crate) fn scan(request: &Request<'_>, sink: &Sink<'_>) -> Result<Scan, StateError> {
    scan_all(request, sink).map_err(|error| error.under(request.workspace))
}

fn scan_all(request: &Request<'_>, sink: &Sink<'_>) -> Result<Scan, StateError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut torn = None;
    for round in 1..=ROUNDS {
        // A handle lists its directory once: every round needs a new one.
        let root = match openat(CWD, request.workspace, flags, Mode::empty()) {
            // Somebody has deleted it, and with it all that was in it.
            Err(Errno::NOENT) => return Ok(Scan::default()),
            other => other.map_err(|error| StateError::file("open", request.workspace, error))?,
        };
        let walk = Walk {
            request,
            sink,
            found: Mutex::default(),
            restless: Mutex::default(),
            visited: Mutex::default(),
        };
        // On a thread of the pool, whose stack is large enough for the deepest tree.
        let cover = request.scope.cover(b"");
        let look = || walk.directory(root.as_fd(), b"", cover, Part::Files);
        let done = rayon::join(look, || ()).0?;
        if let Some(path) = walk.settle(root.as_fd())? {
            torn = Some(path);
            continue;
        }
        // What was moved from one directory to another meanwhile may be in neither.
        let moved = walk.changed_directory(root.as_fd());
        if moved.is_some() && round < ROUNDS {
            continue;
        }
        let mut scan = walk
            .found
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        scan.root = done;
        scan.restless = moved;
        scan.sort();
        return Ok(scan);
    }
    Err(StateError::Torn {
        path: path::as_path(&torn.unwrap_or_default()).to_owned(),
    })
}

/// What kind of tree a directory belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The user's files.
    Files,
    /// The inside of a `.git` directory.
    Git,
}

pub(super) struct Walk<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) sink: &'a Sink<'a>,
    pub(super) found: Mutex<Scan>,
    /// Files that were changed so short a time before they were read that a
    /// change right after it could not be told by their times.
    pub(super) restless: Mutex<Vec<(TreePath, ContentId, Moment)>>,
    /// Directories, and when each had last changed before it was listed.
    pub(super) visited: Mutex<Vec<(TreePath, Moment)>>,
}

/// One name of a directory that is captured, and where what is known of it stands.
pub(super) struct Item {
    pub(super) name: Vec<u8>,
    pub(super) found: Found,
    /// The index of the same name in the cache.
    known: Option<usize>,
}

/// One name that has been captured.
pub(super) struct Captured {
    pub(super) entry: Entry,
    pub(super) stamp: Stamp,
    pub(super) same: bool,
}

impl Walk<'_> {
    /// Captures one directory and everything below it. `None` when only a part
    /// was asked for and nothing in it belongs to that.
    pub(super) fn directory(
        &self,
        handle: BorrowedFd<'_>,
        path: &[u8],
        cover: Cover,
        part: Part,
    ) -> Result<Option<Subtree>, StateError> {
        if path::names(path).count() > DEEPEST {
            // A program can nest directories without end: that must not keep the rest from
            // being captured.
            let why = format!("it is nested deeper than {DEEPEST} directories");
            self.leave_out(path, &why);
            return Ok(None);
        }
        if let Ok(stat) = fstat(handle) {
            let changed = Found::of(&stat).changed;
            lock(&self.visited).push((path.to_vec(), changed));
        }
        let names = list(handle, path)?;
        // Of a directory that is wanted in part, the cache would know too much.
        let known = match cover {
            Cover::Everything => self.request.cache.get(path),
            _ => None,
        };
        // What was captured under the same rules is no cache because a tag was put there since.
        if part == Part::Files
            && cover == Cover::Everything
            && known.is_none()
            && self.is_tagged_cache(handle, path, &names)
            && !self.request.held.has(path)
        {
            self.leave_out(path, left_out::TAGGED);
            return Ok(None);
        }
        let items = self.sort_out(handle, path, cover, part, &names, &names, known.as_ref())?;
        let (directories, files): (Vec<Item>, Vec<Item>) = items
            .into_iter()
            .partition(|item| item.found.is_directory());
        let known_ref = known.as_ref();
        self.request.progress.add(files.len() as u64, 0);
        let mut flagged = Vec::new();
        let mut captured = Vec::with_capacity(files.len() + directories.len());
        let (mut same, mut changed): (Vec<Item>, Vec<Item>) = files.into_iter().partition(|item| {
            let known = item.known_in(known_ref);
            known.is_some_and(|(entry, stamp)| item.found.matches(entry, stamp))
        });
        let databases = match part {
            Part::Files => self.databases(handle, path, &mut changed, &mut same)?,
            Part::Git => Vec::new(),
        };
        for item in same {
            if let Some((entry, stamp)) = item.known_in(known_ref) {
                captured.push(Captured {
                    entry: entry.clone(),
                    stamp: *stamp,
                    same: true,
                });
            }
        }
        let read: Vec<_> = if changed.len() > 1 {
            changed
                .par_iter()
                .map(|item| self.leaf(handle, path, part, item, known_ref))
                .collect::<Result<_, _>>()?
        } else {
            changed
                .iter()
                .map(|item| self.leaf(handle, path, part, item, known_ref))
                .collect::<Result<_, _>>()?
        };
        for leaf in databases.into_iter().chain(read) {
            match leaf {
                Leaf::Captured(leaf) => captured.push(leaf),
                Leaf::Flagged(leaf) => flagged.push(leaf),
                Leaf::Gone => {}
            }
        }
        let below: Vec<_> = directories
            .into_par_iter()
            .map(|item| self.subdirectory(handle, path, cover, part, &item, known_ref))
            .collect::<Result<_, _>>()?;
        captured.extend(below.into_iter().flatten());
        self.finish(path, cover, known, captured, flagged)
    }

    /// Decides by name and kind which of `names` are captured.
    #[expect(clippy::too_many_arguments, reason = "what is known of one directory")]
    pub(super) fn sort_out(
        &self,
        handle: BorrowedFd<'_>,
        path: &[u8],
        cover: Cover,
        part: Part,
        names: &[Vec<u8>],
        beside: &[Vec<u8>],
        known: Option<&Record>,
    ) -> Result<Vec<Item>, StateError> {
        let mut items = Vec::with_capacity(names.len());
        let mut next_known = 0;
        let mut child = path.to_vec();
        for name in names {
            if path.is_empty() && OWN.contains(&name.as_slice()) {
                self.name_strangers(handle, name);
                continue;
            }
            if part == Part::Git && is_passing(name) {
                continue;
            }
            child.truncate(path.len());
            if !path.is_empty() {
                child.push(b'/');
            }
            child.extend_from_slice(name);
            let here = match cover {
                Cover::Everything => Cover::Everything,
                _ => self.request.scope.cover(&child),
            };
            if here == Cover::Nothing {
                continue;
            }
            let found = match statat(handle, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Found::of(&stat),
                Err(Errno::NOENT) => continue, // gone since it was listed
                Err(Errno::ACCESS) => {
                    self.leave_out(&child, left_out::UNREADABLE);
                    continue;
                }
                Err(error) => return Err(problem("read", &child, error)),
            };
            if here == Cover::Part && !found.is_directory() {
                continue;
            }
            let known = known.and_then(|record| {
                while record
                    .entries
                    .get(next_known)
                    .is_some_and(|entry| entry.name < *name)
                {
                    next_known += 1;
                }
                let entry = record.entries.get(next_known)?;
                (entry.name == *name && found.is_same_kind(entry)).then_some(next_known)
            });
            let item = Item {
                name: name.clone(),
                found,
                known,
            };
            // What the cache knows was let in under the same rules.
            if part == Part::Files
                && (item.known.is_none() || item.name == b".git")
                && self.turn_away(handle, &child, &item, here, beside)?
            {
                continue;
            }
            items.push(item);
        }
        Ok(items)
    }

    /// Whether something new is left out, sensitive, or a git directory that is captured apart.
    fn turn_away(
        &self,
        handle: BorrowedFd<'_>,
        path: &[u8],
        item: &Item,
        cover: Cover,
        beside: &[Vec<u8>],
    ) -> Result<bool, StateError> {
        let rules = self.request.rules;
        if let Some(why) = rules.excluded(path)
            && !self.request.held.has(path)
        {
            self.leave_out(path, why);
            return Ok(true);
        }
        if !item.found.is_directory() {
            if item.found.is_file()
                && let Some(reason) = sensitive::by_name(path)
            {
                self.flag(path, reason);
                return Ok(true);
            }
            return Ok(false);
        }
        let inside = |file: &str| {
            let inner = path::join(&item.name, file.as_bytes());
            statat(handle, inner.as_slice(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        if item.name == b".git" && is_closed(handle, item) {
            self.closed_git_directory(path, item);
            return Ok(true);
        }
        // Whatever it holds: one that is damaged goes back as what it was.
        if item.name == b".git" {
            if cover == Cover::Everything {
                self.git_directory(handle, path, item)?;
            }
            return Ok(true);
        }
        if !rules.included(path) {
            let stands_beside = |file: &str| beside.iter().any(|name| name == file.as_bytes());
            if let Some(why) = left_out::is_cache(&item.name, &inside, &stands_beside)
                && !self.request.held.has(path)
            {
                self.leave_out(path, why);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn git_directory(
        &self,
        handle: BorrowedFd<'_>,
        path: &[u8],
        item: &Item,
    ) -> Result<(), StateError> {
        let Some(inside) = open_directory(handle, &item.name, path)? else {
            return Ok(());
        };
        let tree = self.directory(inside.as_fd(), path, Cover::Everything, Part::Git)?;
        if let Some(tree) = tree {
            let mut entry = item.found.entry(b".git", Node::Directory(tree));
            entry.attributes =
                read::attributes(inside.as_fd()).map_err(|error| problem("read", path, error))?;
            lock(&self.found).git.push((path.to_vec(), entry));
        }
        Ok(())
    }

    pub(super) fn subdirectory(
        &self,
        handle: BorrowedFd<'_>,
        parent: &[u8],
        cover: Cover,
        part: Part,
        item: &Item,
        known: Option<&Record>,
    ) -> Result<Option<Captured>, StateError> {
        let path = path::join(parent, &item.name);
        let cover = match cover {
            Cover::Everything => Cover::Everything,
            _ => self.request.scope.cover(&path),
        };
        if is_closed(handle, item) {
            return Ok(self.closed_directory(&path, item, known));
        }
        let inside = match open_directory(handle, &item.name, &path) {
            Err(error) if is_forbidden(&error) => {
                return Ok(self.closed_directory(&path, item, known));
            }
            other => other?,
        };
        let Some(inside) = inside else {
            return Ok(None);
        };
        let Some(subtree) = self.directory(inside.as_fd(), &path, cover, part)? else {
            return Ok(None);
        };
        let known = item
            .known_in(known)
            .filter(|(entry, stamp)| item.found.matches(entry, stamp));
        let mut entry = item.found.entry(&item.name, Node::Directory(subtree));
        entry.attributes = match known {
            Some((known, _)) => known.attributes.clone(),
            None => {
                read::attributes(inside.as_fd()).map_err(|error| problem("read", &path, error))?
            }
        };
        let same = known.is_some_and(|(known, _)| *known == entry);
        let stamp = self.stamp(&item.found, Settled::No);
        Ok(Some(Captured { entry, stamp, same }))
    }

    /// Puts a directory together from what was captured of it.
    fn finish(
        &self,
        path: &[u8],
        cover: Cover,
        known: Option<Record>,
        mut captured: Vec<Captured>,
        flagged: Vec<Flagged>,
    ) -> Result<Option<Subtree>, StateError> {
        if cover == Cover::Part && captured.is_empty() && !path.is_empty() {
            return Ok(None);
        }
        let nothing_new = captured.iter().all(|one| one.same);
        if let Some(known) = &known
            && nothing_new
            && captured.len() == known.entries.len()
            && flagged.len() == known.flagged.len()
        {
            lock(&self.found).seen.push((path.to_vec(), Seen::Same));
            return Ok(Some(known.subtree));
        }
        captured.sort_unstable_by(|a, b| a.entry.name.cmp(&b.entry.name));
        let stamps = captured.iter().map(|one| one.stamp).collect();
        let entries: Vec<Entry> = captured.into_iter().map(|one| one.entry).collect();
        let (encoded, subtree) = summarise(&entries);
        self.sink.tree(subtree.tree, encoded)?;
        if cover == Cover::Everything {
            let record = cache::encode(&Record {
                subtree,
                entries,
                stamps,
                flagged,
            });
            lock(&self.found)
                .seen
                .push((path.to_vec(), Seen::New(record)));
        }
        Ok(Some(subtree))
    }

    fn is_tagged_cache(&self, handle: BorrowedFd<'_>, path: &[u8], names: &[Vec<u8>]) -> bool {
        if path.is_empty()
            || !names
                .iter()
                .any(|name| name == left_out::CACHEDIR_TAG.as_bytes())
            || self.request.rules.included(path)
        {
            return false;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(tag) = openat(handle, left_out::CACHEDIR_TAG, flags, Mode::empty()) else {
            return false;
        };
        let mut start = vec![0; left_out::CACHEDIR_SIGNATURE.len()];
        rustix::io::read(&tag, &mut start[..]).is_ok_and(|length| length == start.len())
            && start == left_out::CACHEDIR_SIGNATURE
    }

    /// Somebody else's files in a directory of ours are not captured, and so are named.
    fn name_strangers(&self, handle: BorrowedFd<'_>, own: &[u8]) {
        let Ok(Some(directory)) = open_directory(handle, own, own) else {
            return;
        };
        for name in list(directory.as_fd(), own).unwrap_or_default() {
            if !is_own(&name) {
                let path = path::join(own, &name);
                self.leave_out(
                    &path,
                    "it lies in a directory that Safepoint keeps for itself",
                );
            }
        }
    }

    pub(super) fn leave_out(&self, path: &[u8], why: &str) {
        lock(&self.found).left_out.push(Omitted {
            path: path.to_vec(),
            why: why.to_owned(),
        });
    }

    pub(super) fn flag(&self, path: &[u8], reason: Reason) {
        lock(&self.found).sensitive.push((path.to_vec(), reason));
    }
}

impl Item {
    /// What the cache knows of the same name.
    pub(super) fn known_in<'k>(&self, known: Option<&'k Record>) -> Option<(&'k Entry, &'k Stamp)> {
        let (record, at) = (known?, self.known?);
        Some((record.entries.get(at)?, record.stamps.get(at)?))
    }
}

/// Whether an error is that something may not be read.
pub(crate) fn is_forbidden(error: &StateError) -> bool {
    matches!(error, StateError::File { error, .. }
        if error.kind() == std::io::ErrorKind::PermissionDenied)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
