//! Looking at a workspace: what is there now, and the objects that hold it.
//!
//! Directories are walked on all cores, with one `stat` for each name. What
//! the cache knows to be unchanged is not read. Nothing is followed: links are
//! recorded, pipes and devices are never opened, and every step is relative to
//! the handle of the directory above, so that exchanging a directory for a
//! link meanwhile leads nowhere.

pub(crate) mod cache;
mod closed;
mod database;
mod leaf;
mod names;
mod partial;
mod read;
mod rules;
mod settle;
pub(crate) mod stat;
mod walk;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use safepoint_model::Clock;

pub(crate) use partial::{Known, rescan};
pub(crate) use read::{attributes, is_kept, read_back};
pub(crate) use rules::{EXCLUDED, OWN};
pub use rules::{Patterns, Rules};

use crate::objects::{LargeWriter, Objects, Reader, Writer};
use crate::path::TreePath;
use crate::scope::Scope;
use crate::sensitive::Reason;
use crate::tree::{self, Entry, Special, Subtree, Trees};
use crate::{ContentId, StateError};
use cache::{Cache, Seen};

/// How far a scan has come, for whoever watches.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Files seen, and bytes read.
    pub fn now(&self) -> (u64, u64) {
        (
            self.files.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn add(&self, files: u64, bytes: u64) {
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Where contents and trees go.
pub(crate) enum Sink<'a> {
    /// Into the object store.
    Store(&'a Writer<'a>),
    /// Trees into memory, contents nowhere: for looking without keeping.
    Memory(&'a Mutex<HashMap<ContentId, Vec<u8>>>),
    /// Trees and contents into memory: for showing what would be written.
    Plan {
        trees: &'a Mutex<HashMap<ContentId, Vec<u8>>>,
        contents: &'a Mutex<HashMap<ContentId, Vec<u8>>>,
    },
    /// Nowhere at all.
    Nowhere,
}

impl Sink<'_> {
    pub(crate) fn content(&self, id: ContentId, bytes: Vec<u8>) -> Result<(), StateError> {
        match self {
            Self::Store(writer) => writer.add(id, bytes),
            Self::Plan { contents, .. } => {
                let mut contents = contents.lock().unwrap_or_else(PoisonError::into_inner);
                contents.insert(id, bytes);
                Ok(())
            }
            Self::Memory(_) | Self::Nowhere => Ok(()),
        }
    }

    pub(crate) fn tree(&self, id: ContentId, bytes: Vec<u8>) -> Result<(), StateError> {
        match self {
            Self::Store(writer) => writer.add_tree(id, bytes),
            Self::Memory(trees) | Self::Plan { trees, .. } => {
                let mut trees = trees.lock().unwrap_or_else(PoisonError::into_inner);
                trees.insert(id, bytes);
                Ok(())
            }
            Self::Nowhere => Ok(()),
        }
    }

    fn large(&self) -> Large<'_> {
        match self {
            Self::Store(writer) => Large::Store(LargeWriter::new(writer)),
            Self::Memory(_) | Self::Plan { .. } | Self::Nowhere => {
                Large::Hash(blake3::Hasher::new())
            }
        }
    }
}

/// A content that comes in pieces.
enum Large<'a> {
    Store(LargeWriter<'a, 'a>),
    Hash(blake3::Hasher),
}

impl Large<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        match self {
            Self::Store(writer) => writer.push(bytes),
            Self::Hash(hasher) => {
                hasher.update(bytes);
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<ContentId, StateError> {
        match self {
            Self::Store(writer) => writer.finish(),
            Self::Hash(hasher) => Ok(hasher.finalize().into()),
        }
    }
}

/// Trees that may not be stored yet, in front of those that are.
pub(crate) struct MixedTrees<'a> {
    pub(crate) fresh: &'a Mutex<HashMap<ContentId, Vec<u8>>>,
    pub(crate) stored: &'a Reader<'a>,
}

impl Trees for MixedTrees<'_> {
    fn tree(&self, id: ContentId) -> Result<Vec<Entry>, StateError> {
        let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
        let found = fresh.get(&id).and_then(|bytes| crate::tree::decode(bytes));
        drop(fresh);
        match found {
            Some(entries) => Ok(entries),
            None => self.stored.tree(id),
        }
    }
}

/// What is captured although it looks like a cache, or the settings exclude it, now: what brings a
/// state back has to see all that the state holds, whatever was written there since.
#[derive(Default)]
pub(crate) struct Held<'a> {
    states: Vec<(&'a Objects, Subtree)>,
}

impl<'a> Held<'a> {
    /// What these states hold.
    pub(crate) fn of(objects: &'a Objects, states: &[Subtree]) -> Self {
        Self {
            states: states.iter().map(|state| (objects, *state)).collect(),
        }
    }

    fn has(&self, path: &[u8]) -> bool {
        self.states.iter().any(|(objects, state)| {
            let found = tree::find(&objects.reader(), Some(state), path);
            found.is_ok_and(|it| it.is_some())
        })
    }
}

/// What to look at, and how.
pub(crate) struct Request<'a> {
    pub(crate) held: Held<'a>,
    pub(crate) workspace: &'a Path,
    pub(crate) scope: &'a Scope,
    pub(crate) rules: &'a Rules,
    pub(crate) cache: &'a Cache,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) progress: &'a Progress,
}

/// Something that is there and is not captured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Omitted {
    pub(crate) path: TreePath,
    pub(crate) why: String,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Scan {
    /// The files; `None` when nothing at all is in the scope.
    pub(crate) root: Option<Subtree>,
    /// The `.git` directories, by path.
    pub(crate) git: Vec<(TreePath, Entry)>,
    /// Caches, and what the settings exclude.
    pub(crate) left_out: Vec<Omitted>,
    /// Secrets.
    pub(crate) sensitive: Vec<(TreePath, Reason)>,
    /// Pipes, sockets and devices.
    pub(crate) special: Vec<(TreePath, Special)>,
    /// A directory in which names went on coming and going while it was looked at.
    pub(crate) restless: Option<TreePath>,
    /// For the cache.
    pub(crate) seen: Vec<(TreePath, Seen)>,
}

impl Scan {
    fn sort(&mut self) {
        self.git.sort_by(|a, b| a.0.cmp(&b.0));
        self.left_out.sort();
        self.left_out.dedup();
        self.sensitive.sort_by(|a, b| a.0.cmp(&b.0));
        self.sensitive.dedup_by(|a, b| a.0 == b.0);
        self.special.sort_by(|a, b| a.0.cmp(&b.0));
        self.special.dedup_by(|a, b| a.0 == b.0);
        self.seen.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

pub(crate) use names::{list, open_beneath};
pub(crate) use walk::{is_forbidden, scan};

fn problem(action: &'static str, path: &[u8], error: rustix::io::Errno) -> StateError {
    let path = match path {
        b"" => Path::new("."),
        path => crate::path::as_path(path),
    };
    StateError::file(action, path, error)
}
