//! The object store: every content once, under its digest, in packs.
//!
//! It lies outside all workspaces. Any number of processes read and add at
//! once, under a shared lock; collecting garbage takes the lock alone.

mod chunk;
mod collect;
mod index;
mod pack;
mod reader;
mod shared;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use safepoint_model::Entropy;
use safepoint_store::{StoreError, durable};

pub(crate) use chunk::LARGE;
pub use collect::{Collected, Mode, Usage};
use index::{Index, KnownPack, Located};
use pack::Place;
pub use reader::{Content, Reader};
pub use shared::{FAULT_POINTS as SHARED_FAULT_POINTS, Shared};
pub use writer::{LargeWriter, Writer};

use crate::lock::{self, Hold};
use crate::{ContentId, StateError};

/// How the object store is opened.
#[derive(Clone)]
pub struct Options {
    /// How long to wait for another process.
    pub lock_timeout: Duration,
    /// How many bytes it may have at most.
    pub cap: Option<u64>,
    /// Random bytes, for the names of packs.
    pub entropy: Arc<dyn Entropy>,
    /// Where packs are shared with other machines, if they are.
    pub shared: Option<Shared>,
}

/// The object store of one user.
pub struct Objects {
    directory: PathBuf,
    index: Index,
    options: Options,
    /// What all packs had when the store was opened.
    used: u64,
    /// Held while a pack is fetched: many threads miss it at once.
    fetching: Mutex<()>,
    /// Kept for as long as this is open.
    _lock: File,
}

impl Objects {
    /// Opens the store in `directory` for reading and adding.
    pub fn open(directory: &Path, options: &Options) -> Result<Self, StateError> {
        Self::open_held(directory, options, Hold::Shared)
    }

    /// Opens the store for collecting garbage: nobody else has it open meanwhile.
    pub fn open_alone(directory: &Path, options: &Options) -> Result<Self, StateError> {
        Self::open_held(directory, options, Hold::Alone)
    }

    fn open_held(directory: &Path, options: &Options, hold: Hold) -> Result<Self, StateError> {
        let packs = directory.join("packs");
        durable::create_directory(&packs)?;
        let take = |hold| {
            lock::take(
                &directory.join("lock"),
                hold,
                options.lock_timeout,
                "the object store",
            )
        };
        let path = directory.join("index.db");
        let mut lock = take(hold)?;
        let index = match open_index(&path, options) {
            Err(StateError::Store(StoreError::Corrupted { .. } | StoreError::Foreign { .. })) => {
                // It holds nothing that the packs do not. Nobody else looks at it meanwhile.
                drop(lock);
                let alone = take(Hold::Alone)?;
                if open_index(&path, options).is_err() {
                    for end in ["", "-wal", "-shm"] {
                        durable::remove(&directory.join(format!("index.db{end}")))?;
                    }
                }
                let index = open_index(&path, options)?;
                drop(alone);
                lock = take(hold)?;
                index
            }
            other => other?,
        };
        let known = index.packs()?;
        let mut objects = Self {
            directory: directory.to_owned(),
            index,
            options: options.clone(),
            used: 0,
            fetching: Mutex::default(),
            _lock: lock,
        };
        if known.is_empty() {
            // What caches remember of an index that was lost must not be trusted.
            objects.index.renew(options)?;
            rebuild(&objects.index, &packs)?;
        }
        objects.share_all()?;
        if known.is_empty() {
            // What others have stored need not be stored again.
            objects.learn()?.map_or(Ok(()), Err)?;
        }
        objects.used = objects.index.packs()?.iter().map(|pack| pack.bytes).sum();
        Ok(objects)
    }

    /// Whether other machines have these objects too.
    pub fn is_shared(&self) -> bool {
        self.options.shared.is_some()
    }

    /// Where these objects lie, in the same order; asks what others have stored where some are
    /// not known.
    fn find(&self, ids: &[ContentId]) -> Result<Vec<Option<Located>>, StateError> {
        let found = self.index.find(ids.iter().copied())?;
        if self.options.shared.is_none() || found.iter().all(Option::is_some) {
            return Ok(found);
        }
        let failure = self.learn()?;
        let found = self.index.find(ids.iter().copied())?;
        match failure {
            Some(error) if found.iter().any(Option::is_none) => Err(error),
            _ => Ok(found),
        }
    }

    /// The file of a pack, fetched where it is not here.
    fn pack_file(&self, pack: &KnownPack) -> Result<(PathBuf, File), StateError> {
        let path = self.pack_path(&pack.name);
        let open = || match File::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StateError::file("read", &path, error)),
        };
        let found = match (open()?, &self.options.shared, pack.shared_as) {
            (None, Some(shared), Some(name)) => {
                let _turn = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
                if open()?.is_none() {
                    shared.fetch(name, &path)?;
                }
                open()?
            }
            (found, ..) => found,
        };
        match found {
            Some(file) => Ok((path, file)),
            None => Err(StateError::damaged(&path, "it is gone".into())),
        }
    }

    /// Fetches a pack again whose file here is damaged; `None` where there is no other.
    fn pack_anew(&self, pack: &KnownPack) -> Result<Option<(PathBuf, File)>, StateError> {
        let (Some(shared), Some(name)) = (&self.options.shared, pack.shared_as) else {
            return Ok(None);
        };
        shared.fetch(name, &self.pack_path(&pack.name))?;
        self.pack_file(pack).map(Some)
    }

    /// A number that changes whenever objects are deleted.
    pub fn generation(&self) -> Result<u64, StateError> {
        self.index.generation()
    }

    /// Where it lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Begins to add.
    pub fn writer(&self) -> Writer<'_> {
        // Of an empty store nothing needs to be asked.
        let known = match self.used {
            0 => writer::Known::Move,
            _ => writer::Known::Skip,
        };
        Writer::new(self, known)
    }

    /// Begins to read.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self)
    }

    fn pack_path(&self, name: &str) -> PathBuf {
        self.directory.join("packs").join(format!("{name}.pack"))
    }

    fn new_pack_name(&self) -> Result<String, StateError> {
        let mut random = [0; 8];
        self.options.entropy.fill(&mut random)?;
        Ok(format!("{:016x}", u64::from_be_bytes(random)))
    }

    /// How many bytes may still be added.
    fn room(&self) -> Option<u64> {
        self.options.cap.map(|cap| cap.saturating_sub(self.used))
    }

    fn cap_reached(&self) -> StateError {
        StateError::CapReached {
            used: self.used,
            cap: self.options.cap.unwrap_or(u64::MAX),
        }
    }
}

/// Opens the index, and looks whether it can be read.
fn open_index(path: &Path, options: &Options) -> Result<Index, StateError> {
    let index = Index::open(path, options.lock_timeout)?;
    index.packs()?;
    Ok(index)
}

/// Fills an empty index from the packs that are there: it was lost, or a
/// process was killed before it added its first pack.
fn rebuild(index: &Index, packs: &Path) -> Result<(), StateError> {
    let listing =
        std::fs::read_dir(packs).map_err(|error| StateError::file("read", packs, error))?;
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|error| StateError::file("read", packs, error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(name) = name.strip_suffix(".pack")
            && !name.starts_with('.')
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let path = packs.join(format!("{name}.pack"));
        // One that cannot be read stays where it is: what is in it is missing, and is
        // told of by whoever needs it.
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let Ok(objects) = pack::read_list(&file, &path) else {
            continue;
        };
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        found.push((name, bytes, objects));
    }
    index.add_all(&found)
}

/// The bytes of one object within its block.
fn cut(block: &[u8], place: Place) -> Option<&[u8]> {
    let from = place.position as usize;
    block.get(from..from.checked_add(place.length as usize)?)
}
