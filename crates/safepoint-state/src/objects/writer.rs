//! Adding objects: hashed by the caller, pressed into blocks by whichever
//! thread fills one, written to one pack, synced once, read back once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use safepoint_store::durable::{self, Access, Replacement};
use safepoint_store::fault;

use super::Objects;
use super::chunk::{self, LARGE};
use super::index::NewPack;
use super::pack::{self, Form, Place};
use crate::{ContentId, StateError};

/// Objects that are looked up and pressed together.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_OBJECTS: usize = 512;
/// Small objects fill blocks of about this size.
const BLOCK: usize = 256 << 10;
/// A pack that is shared is sent in one piece, and held in memory for it.
const LARGEST_SHARED: u64 = 64 << 20;

/// Everything that one checkpoint adds.
pub struct Writer<'a> {
    objects: &'a Objects,
    /// One batch for each thread: what one thread reads belongs together, and
    /// is wanted together again.
    waiting: Vec<Mutex<Batch>>,
    /// Trees are read by themselves, one after the other: they get blocks of their own.
    trees: Mutex<Batch>,
    /// What this writer has taken already, so that one content is stored once.
    taken: Mutex<HashSet<ContentId>>,
    pack: Mutex<Option<OpenPack>>,
    /// Packs that were full.
    closed: Mutex<Vec<NewPack>>,
    known: Known,
}

/// What is done about objects that the store has already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// They are not written again.
    Skip,
    /// They are: they move from a pack that goes away, or there are none.
    Move,
}

#[derive(Default)]
struct Batch {
    objects: Vec<(ContentId, Form, Vec<u8>)>,
    bytes: usize,
}

struct OpenPack {
    name: String,
    path: PathBuf,
    file: Replacement,
    length: u64,
    objects: Vec<(ContentId, Place)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(objects: &'a Objects, known: Known) -> Self {
        Self {
            objects,
            known,
            waiting: (0..=rayon::current_num_threads())
                .map(|_| Mutex::default())
                .collect(),
            trees: Mutex::default(),
            taken: Mutex::default(),
            pack: Mutex::new(None),
            closed: Mutex::default(),
        }
    }

    /// Adds a content that fits in memory, under its digest.
    pub fn add(&self, id: ContentId, bytes: Vec<u8>) -> Result<(), StateError> {
        if bytes.len() > LARGE {
            let mut large = LargeWriter::new(self);
            large.push(&bytes)?;
            return large.finish_as(id);
        }
        self.add_object(id, Form::Whole, bytes)
    }

    /// Adds a tree, under its digest.
    pub fn add_tree(&self, id: ContentId, bytes: Vec<u8>) -> Result<(), StateError> {
        if bytes.len() > LARGE {
            return self.add(id, bytes);
        }
        self.add_to(&self.trees, id, Form::Whole, bytes)
    }

    pub(super) fn add_object(
        &self,
        id: ContentId,
        form: Form,
        bytes: Vec<u8>,
    ) -> Result<(), StateError> {
        let thread = rayon::current_thread_index().map_or(0, |thread| thread + 1);
        let waiting = self.waiting.get(thread).unwrap_or(&self.trees);
        self.add_to(waiting, id, form, bytes)
    }

    fn add_to(
        &self,
        waiting: &Mutex<Batch>,
        id: ContentId,
        form: Form,
        bytes: Vec<u8>,
    ) -> Result<(), StateError> {
        if !lock(&self.taken).insert(id) {
            return Ok(());
        }
        let full = {
            let mut waiting = lock(waiting);
            waiting.bytes += bytes.len();
            waiting.objects.push((id, form, bytes));
            (waiting.bytes >= BATCH_BYTES || waiting.objects.len() >= BATCH_OBJECTS)
                .then(|| std::mem::take(&mut *waiting))
        };
        full.map_or(Ok(()), |batch| self.store(batch))
    }

    /// Presses and writes those objects of a batch that are new.
    fn store(&self, batch: Batch) -> Result<(), StateError> {
        let new = match self.known {
            Known::Move => batch.objects,
            Known::Skip => {
                let ids = batch.objects.iter().map(|(id, ..)| *id);
                let found = self.objects.index.find(ids)?;
                let pairs = batch.objects.into_iter().zip(found);
                pairs
                    .filter_map(|(object, found)| found.is_none().then_some(object))
                    .collect()
            }
        };
        // Contents that belong together come from one directory and are alike:
        // their order is kept, which is what makes pressing them together pay.
        let pressing = |error| StateError::file("compress for", &self.objects.directory, error);
        let mut press = pack::Press::take().map_err(pressing)?;
        let mut raw = Vec::with_capacity(BLOCK);
        let mut held = Vec::new();
        for (id, form, bytes) in new {
            if !raw.is_empty() && raw.len() + bytes.len() > BLOCK {
                let block = press.block(&raw).map_err(pressing)?;
                self.append(block, &mut held)?;
                raw.clear();
            }
            held.push((id, raw.len(), bytes.len(), form));
            raw.extend_from_slice(&bytes);
        }
        if !held.is_empty() {
            let block = press.block(&raw).map_err(pressing)?;
            self.append(block, &mut held)?;
        }
        press.keep();
        Ok(())
    }

    /// Writes one block and notes what is in it.
    fn append(
        &self,
        block: &[u8],
        held: &mut Vec<(ContentId, usize, usize, Form)>,
    ) -> Result<(), StateError> {
        let mut pack = lock(&self.pack);
        let open = match &mut *pack {
            Some(open) => open,
            none => none.insert(self.begin()?),
        };
        if let Some(cap) = self.objects.room()
            && open.length + block.len() as u64 > cap
        {
            return Err(self.objects.cap_reached());
        }
        open.file.write(block)?;
        for (id, position, length, form) in held.drain(..) {
            let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            open.objects.push((
                id,
                Place {
                    block: open.length,
                    position: small(position),
                    length: small(length),
                    form,
                },
            ));
        }
        open.length += block.len() as u64;
        if self.objects.is_shared() && open.length >= LARGEST_SHARED {
            let full = pack.take();
            drop(pack);
            if let Some(full) = full {
                let closed = full.close()?;
                lock(&self.closed).push(closed);
            }
        }
        Ok(())
    }

    fn begin(&self) -> Result<OpenPack, StateError> {
        let name = self.objects.new_pack_name()?;
        let path = self.objects.pack_path(&name);
        let mut file = Replacement::begin(&path, Access::Private)?;
        file.write(pack::MAGIC)?;
        Ok(OpenPack {
            name,
            path,
            file,
            length: pack::MAGIC.len() as u64,
            objects: Vec::new(),
        })
    }

    /// Writes what is waiting, makes all of it durable, reads it back, and
    /// lets it be found, here and by others. Returns how many bytes the store grew by.
    pub fn finish(self) -> Result<u64, StateError> {
        let objects = self.objects;
        let mut grown = 0;
        for closed in self.close()? {
            let shared_as = match &objects.options.shared {
                Some(shared) => {
                    let path = objects.pack_path(&closed.0);
                    let name = shared.share(&path).inspect_err(|_| {
                        // What others cannot have must not be found here either.
                        let _ = durable::remove(&path);
                    })?;
                    Some(name)
                }
                None => None,
            };
            objects.index.add(&closed, shared_as)?;
            fault::point("objects.indexed");
            grown += closed.1;
        }
        Ok(grown)
    }

    /// The same without letting it be found. Empty when nothing was new.
    pub(super) fn close(self) -> Result<Vec<NewPack>, StateError> {
        for waiting in self.waiting.iter().chain([&self.trees]) {
            let batch = std::mem::take(&mut *lock(waiting));
            self.store(batch)?;
        }
        let mut closed = std::mem::take(&mut *lock(&self.closed));
        if let Some(open) = lock(&self.pack).take() {
            closed.push(open.close()?);
        }
        Ok(closed)
    }
}

impl OpenPack {
    /// Makes the pack durable and whole, and reads it back.
    fn close(mut self) -> Result<NewPack, StateError> {
        let list = pack::encode_list(&self.objects);
        self.file.write(&list)?;
        fault::point("objects.written");
        self.file.finish()?;
        fault::point("objects.packed");
        if let Err(error) = check(&self.path, &self.objects) {
            // What cannot be read back must not be there at all.
            let _ = durable::remove(&self.path);
            return Err(error);
        }
        let bytes = self.length + list.len() as u64;
        Ok((self.name, bytes, self.objects))
    }
}

/// Reads every block of a pack back and hashes it again.
fn check(path: &Path, objects: &[(ContentId, Place)]) -> Result<(), StateError> {
    let file = std::fs::File::open(path).map_err(|error| StateError::file("read", path, error))?;
    let mut blocks: Vec<u64> = objects.iter().map(|(_, place)| place.block).collect();
    blocks.dedup();
    blocks
        .into_par_iter()
        .try_for_each(|at| pack::check_block(&file, path, at))
}

/// Adds a content that does not fit in memory, as chunks.
pub struct LargeWriter<'w, 'a> {
    writer: &'w Writer<'a>,
    chunker: chunk::Chunker,
    hasher: blake3::Hasher,
    recipe: Vec<u8>,
}

impl<'w, 'a> LargeWriter<'w, 'a> {
    /// A content to be added piece by piece.
    pub fn new(writer: &'w Writer<'a>) -> Self {
        Self {
            writer,
            chunker: chunk::Chunker::default(),
            hasher: blake3::Hasher::new(),
            recipe: Vec::new(),
        }
    }

    /// Adds the next piece.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.hasher.update(bytes);
        let (writer, recipe) = (self.writer, &mut self.recipe);
        self.chunker
            .push(bytes, &mut |chunk| add_chunk(writer, recipe, chunk))
    }

    /// Ends the content and returns its digest.
    pub fn finish(mut self) -> Result<ContentId, StateError> {
        let id = ContentId::from(self.hasher.finalize());
        let (writer, recipe) = (self.writer, &mut self.recipe);
        self.chunker
            .finish(&mut |chunk| add_chunk(writer, recipe, chunk))?;
        self.writer.add_object(id, Form::Recipe, self.recipe)?;
        Ok(id)
    }

    fn finish_as(self, expected: ContentId) -> Result<(), StateError> {
        let found = self.finish()?;
        debug_assert_eq!(found, expected);
        Ok(())
    }
}

fn add_chunk(writer: &Writer<'_>, recipe: &mut Vec<u8>, chunk: &[u8]) -> Result<(), StateError> {
    let id = ContentId::of(chunk);
    recipe.extend_from_slice(id.as_bytes());
    recipe.extend(u32::try_from(chunk.len()).unwrap_or(u32::MAX).to_le_bytes());
    writer.add_object(id, Form::Whole, chunk.to_vec())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
