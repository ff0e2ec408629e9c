//! What no checkpoint holds, and whether it has gone or changed since.
//!
//! A checkpoint keeps a mark of each entry that it left out: of a file its mode, size and time,
//! of a directory a digest over the times of its upper directories. No content is read, so a
//! secret leaves no trace. A file that is rewritten deep inside a directory does not show.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, lstat, openat};
use serde::{Deserialize, Serialize};

use crate::part::Subject;
use crate::path::{self, TreePath};
use crate::scan::Omitted;
use crate::scan::stat::Found;
use crate::scope::{Cover, Scope, unescape};
use crate::snapshot::{Action, Note, Record};
use crate::state::State;
use crate::tree::{self, Change, Trees};
use crate::{ContentId, StateError, left_out, snapshot};

/// So many directories inside one that is left out are listed.
const MAX_LISTED_DIRECTORIES: usize = 64;
/// So many directories inside one that is left out are looked at.
const MAX_SEEN_DIRECTORIES: usize = 1024;
/// So many entries are marked; of more it is only known whether they are there.
const MAX_MARKS: usize = 4096;
/// Longer paths the kernel does not take at once.
const MAX_PATH_BYTES: usize = 4096;
/// So many entries are told of an action.
pub(crate) const MAX_TOLD: usize = 1000;

/// How an entry that was left out looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OmittedMark {
    /// Where; what is not UTF-8 is escaped.
    pub path: String,
    /// Its mark.
    pub mark: String,
}

/// What became of an entry that no checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    Gone,
    Changed,
    Made,
    /// It was captured before, and is left out now.
    Hidden,
    Closed,
}

/// Between what became of an entry, and why it was left out.
const NOT_HELD: &str = "; no checkpoint holds it: ";

impl Lapse {
    /// What became of one that was not left out in `before`. One that may not be read may have
    /// been there all the time.
    fn of_new(note: &Note, before: &Record, trees: &dyn Trees) -> Self {
        if note.why == left_out::UNREADABLE {
            return Self::Closed;
        }
        match tree::find(trees, Some(&before.files), &unescape(&note.path)) {
            Ok(Some(_)) => Self::Hidden,
            Ok(None) | Err(_) => Self::Made,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "it is gone",
            Self::Changed => "it has changed",
            Self::Made => "it is new, and stays",
            Self::Hidden => "it was captured before, and stays as it is now",
            Self::Closed => "it was closed, and what is in it now is not known",
        }
    }

    pub(crate) fn note(self, note: &Note) -> Note {
        Note {
            path: note.path.clone(),
            why: format!("{}{NOT_HELD}{}", self.as_str(), note.why),
        }
    }
}

/// Whether what an action did to an entry is more than what tools do whenever they run: they
/// write into their caches, but do not take them away.
pub(crate) fn is_lost(told: &Note) -> bool {
    let Some((what, why)) = told.why.split_once(NOT_HELD) else {
        return true;
    };
    let note = Note {
        path: told.path.clone(),
        why: why.to_owned(),
    };
    what == Lapse::Gone.as_str()
        || what == Lapse::Hidden.as_str()
        || !crate::unheld::is_cache(&note)
}

/// What is left out now and was not there when a state was captured: it stays.
pub(crate) fn made_since<'n>(
    then: &Record,
    trees: &dyn Trees,
    now: impl Iterator<Item = &'n Note>,
    scope: &Scope,
) -> Vec<Note> {
    let known = then.omitted();
    let is_new = |note: &&Note| {
        let path = unescape(&note.path);
        scope.cover(&path) == Cover::Everything
            && !known.contains_key(note.path.as_str())
            && !crate::unheld::is_cache(note)
    };
    now.filter(is_new)
        .map(|note| match Lapse::of_new(note, then, trees) {
            // What is in it stays, whatever may be read of it.
            Lapse::Closed => Lapse::Made.note(note),
            lapse => lapse.note(note),
        })
        .collect()
}

/// The marks of what was left out of a capture of `root`.
pub(crate) fn marks<'n>(root: &Path, notes: impl Iterator<Item = &'n Note>) -> Vec<OmittedMark> {
    let marked = notes.take(MAX_MARKS).filter_map(|note| {
        let mark = mark_of(&root.join(path::as_path(&unescape(&note.path))))?;
        Some(OmittedMark {
            path: note.path.clone(),
            mark,
        })
    });
    marked.collect()
}

/// The mark of what is at a path; `None` where nothing is.
pub(crate) fn mark_of(full: &Path) -> Option<String> {
    let near = NearPath::of(full)?;
    let full = near.path.as_path();
    let found = Found::of(&lstat(full).ok()?);
    let time = |found: &Found| format!("{}.{:09}", found.modified.seconds, found.modified.nanos);
    Some(match found.kind {
        FileType::Directory => format!("directory {}", directory_digest(full, &time)),
        FileType::RegularFile => {
            format!("file {:o} {} {}", found.mode, found.size, time(&found))
        }
        _ => format!("other {}", time(&found)),
    })
}

/// A path that the kernel takes, however deep its file lies.
struct NearPath {
    path: PathBuf,
    /// Where `path` begins, if not at the root.
    _parent: Option<OwnedFd>,
}

impl NearPath {
    /// `None` where nothing is.
    fn of(full: &Path) -> Option<Self> {
        let plain = || Self {
            path: full.to_owned(),
            _parent: None,
        };
        let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
            return Some(plain());
        };
        if full.as_os_str().len() < MAX_PATH_BYTES {
            return Some(plain());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut at = openat(CWD, "/", flags, Mode::empty()).ok()?;
        for name in path::names(parent.as_os_str().as_bytes()) {
            at = openat(&at, name, flags, Mode::empty()).ok()?;
        }
        Some(Self {
            path: PathBuf::from(format!("/proc/self/fd/{}", at.as_raw_fd())).join(name),
            _parent: Some(at),
        })
    }

    /// Whether something is there.
    fn exists(full: &Path) -> bool {
        Self::of(full).is_some_and(|near| lstat(&near.path).is_ok())
    }
}

/// The digest of the upper directories below `top`, level by level.
fn directory_digest(top: &Path, time: &dyn Fn(&Found) -> String) -> ContentId {
    let mut text = Vec::new();
    let mut waiting = VecDeque::from([TreePath::new()]);
    let (mut seen, mut listed) = (0, 0);
    while let Some(directory) = waiting.pop_front() {
        let full = top.join(path::as_path(&directory));
        let Ok(stat) = lstat(&full) else { continue };
        let found = Found::of(&stat);
        text.extend_from_slice(&directory);
        text.extend_from_slice(format!("\0{:o} {}\n", found.mode, time(&found)).as_bytes());
        seen += 1;
        if seen >= MAX_SEEN_DIRECTORIES {
            break;
        }
        if listed >= MAX_LISTED_DIRECTORIES {
            continue;
        }
        listed += 1;
        let mut below = Vec::new();
        for entry in std::fs::read_dir(&full).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().as_bytes().to_vec();
                below.push(path::join(&directory, &name));
            }
        }
        below.sort();
        waiting.extend(below.into_iter().take(MAX_SEEN_DIRECTORIES));
    }
    ContentId::of(&text)
}

impl Record {
    /// What it left out, by path.
    fn omitted(&self) -> BTreeMap<&str, &Note> {
        let notes = self.left_out.iter().chain(&self.sensitive);
        // The files of a database that is captured by itself come back with it.
        let is_unheld = |note: &&Note| {
            let mut named = unescape(&note.path);
            for end in [b"-wal".as_slice(), b"-shm", b"-journal"] {
                if let Some(file) = named.strip_suffix(end) {
                    named = file.to_vec();
                }
            }
            !self.parts.iter().any(|part| match &part.subject {
                Subject::Database { address, .. } => address
                    .file()
                    .is_some_and(|file| file.ends_with(path::as_path(&named))),
                _ => false,
            })
        };
        notes
            .filter(is_unheld)
            .map(|note| (note.path.as_str(), note))
            .collect()
    }

    pub(crate) fn mark(&self, path: &str) -> Option<&str> {
        let found = self.marks.iter().find(|mark| mark.path == path);
        found.map(|mark| mark.mark.as_str())
    }

    /// What became of an entry that it left out: nothing, as far as its mark tells.
    fn lapse(&self, root: &Path, note: &Note) -> Option<Lapse> {
        let full = root.join(path::as_path(&unescape(&note.path)));
        match (self.mark(&note.path), mark_of(&full)) {
            (_, None) => Some(Lapse::Gone),
            (Some(then), Some(now)) if then != now => Some(Lapse::Changed),
            _ => None,
        }
    }

    /// What it left out in `scope` that is gone or changed now.
    pub(crate) fn lapses(&self, root: &Path, scope: &Scope) -> Vec<(&Note, Lapse)> {
        let in_scope = |note: &&Note| scope.cover(&unescape(&note.path)) == Cover::Everything;
        let all = self.omitted().into_values().filter(in_scope);
        all.filter_map(|note| Some((note, self.lapse(root, note)?)))
            .collect()
    }

    /// What it has in no tree and is gone or changed now, beside what tools build again.
    pub(crate) fn losses(&self, root: &Path) -> Vec<Note> {
        let lapses = self.lapses(root, &Scope::everything()).into_iter();
        let lapses =
            lapses.filter(|(note, lapse)| *lapse == Lapse::Gone || !crate::unheld::is_cache(note));
        lapses
            .map(|(note, lapse)| match self.holds_sealed(&note.path) {
                true => Note {
                    path: note.path.clone(),
                    why: lapse.as_str().to_owned(),
                },
                false => lapse.note(note),
            })
            .collect()
    }

    /// What it left out in `scope` that is gone or changed now, without what it holds encrypted
    /// and is there.
    pub(crate) fn lapsed(&self, root: &Path, scope: &Scope) -> Vec<Note> {
        let lapses = self.lapses(root, scope).into_iter();
        lapses
            .map(|(note, lapse)| lapse.note(note))
            .filter(|note| !self.is_sealed_and_there(root, &note.path))
            .collect()
    }

    fn is_sealed_and_there(&self, root: &Path, path: &str) -> bool {
        let full = root.join(path::as_path(&unescape(path)));
        self.sealed.iter().any(|sealed| sealed.path == path) && NearPath::exists(&full)
    }

    /// The same, as a look at the workspace has it.
    pub(crate) fn omitted_paths(&self) -> Vec<Omitted> {
        let notes = self.left_out.iter().map(|note| Omitted {
            path: unescape(&note.path),
            why: note.why.clone(),
        });
        notes.collect()
    }

    /// Whether something may not be read that was no reason for `before` to leave it out.
    pub(crate) fn has_closed_since(&self, before: &Self) -> bool {
        let known = before.omitted();
        let unreadable = |note: &&Note| note.why == left_out::UNREADABLE;
        let mut closed = self.left_out.iter().filter(unreadable);
        closed.any(|note| !known.contains_key(note.path.as_str()))
    }

    /// What this left out that is gone, changed or new in `after`.
    pub(crate) fn lapsed_until(&self, after: &Self, trees: &dyn Trees) -> Vec<Note> {
        let lapses = self.lapses_until(after, trees).into_iter();
        lapses.map(|(note, lapse)| lapse.note(note)).collect()
    }

    /// What this holds encrypted and is gone or changed in `after`. Nothing tells of its content.
    pub(crate) fn sealed_changes(&self, after: &Self, trees: &dyn Trees) -> Vec<Change> {
        let lapses = self.lapses_until(after, trees).into_iter();
        let lapses = lapses.filter_map(|(note, lapse)| {
            let sealed = self.sealed.iter().find(|sealed| sealed.path == note.path)?;
            let path = unescape(&sealed.path);
            let is_there = match lapse {
                Lapse::Gone => false,
                Lapse::Changed => true,
                Lapse::Made | Lapse::Hidden | Lapse::Closed => return None,
            };
            let entry = |content: &[u8]| sealed.entry(&path, ContentId::of(content));
            Some(Change {
                from: Some(entry(b"before")),
                to: is_there.then(|| entry(b"after")),
                path,
                relinked: false,
            })
        });
        lapses.collect()
    }

    /// Takes the marks of some of what `before` holds encrypted from there: others changed it.
    pub(crate) fn keep_sealed_of(&mut self, before: &Self, is_kept: impl Fn(&[u8]) -> bool) {
        for sealed in &before.sealed {
            let path = &sealed.path;
            if self.mark(path) == before.mark(path) || !is_kept(&unescape(path)) {
                continue;
            }
            let mark = before.marks.iter().find(|mark| mark.path == *path);
            self.marks.retain(|mark| mark.path != *path);
            self.marks.extend(mark.cloned());
            let note = before.sensitive.iter().find(|note| note.path == *path);
            self.sensitive.retain(|note| note.path != *path);
            self.sensitive.extend(note.cloned());
        }
    }

    /// The same, told apart.
    pub(crate) fn lapses_until<'r>(
        &'r self,
        after: &'r Self,
        trees: &dyn Trees,
    ) -> Vec<(&'r Note, Lapse)> {
        let (before, later) = (self.omitted(), after.omitted());
        let mut told = Vec::new();
        for (path, note) in &before {
            match (self.mark(path), after.mark(path)) {
                (Some(_), None) if !later.contains_key(path) => told.push((*note, Lapse::Gone)),
                (Some(then), Some(now)) if then != now => told.push((*note, Lapse::Changed)),
                _ => {}
            }
        }
        let new = later.iter().filter(|(path, _)| !before.contains_key(*path));
        told.extend(new.map(|(_, note)| (*note, Lapse::of_new(note, self, trees))));
        told
    }
}

impl State {
    /// What an action did that no checkpoint holds, as far as it still stands.
    pub(crate) fn lapsed_by(&self, action: &Action, root: &Path) -> Result<Vec<Note>, StateError> {
        let (before, after) = (
            self.find(action.before.as_str())?.record,
            self.find(action.after.as_str())?.record,
        );
        let (_, said) = self
            .trail
            .store()
            .read(|sql| snapshot::find_action_said(&self.trail, sql, action.id.as_str()))?;
        let (then, later) = (before.omitted(), after.omitted());
        let mut told = Vec::new();
        let mut known = BTreeSet::new();
        let objects = self.objects()?;
        let trees = objects.reader();
        for candidate in said
            .unheld
            .iter()
            .chain(&before.lapsed_until(&after, &trees))
        {
            if !known.insert(candidate.path.clone()) {
                continue;
            }
            let full = root.join(path::as_path(&unescape(&candidate.path)));
            match then.get(candidate.path.as_str()) {
                Some(note) if !before.is_sealed_and_there(root, &note.path) => {
                    told.extend(before.lapse(root, note).map(|lapse| lapse.note(note)));
                }
                Some(_) => {}
                None if NearPath::exists(&full) => {
                    let note = later.get(candidate.path.as_str());
                    told.push(note.map_or(candidate.clone(), |note| {
                        Lapse::of_new(note, &before, &trees).note(note)
                    }));
                }
                None => {}
            }
        }
        Ok(told)
    }
}
