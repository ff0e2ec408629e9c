//! Reading objects back: every byte that leaves here has been hashed and is
//! what its name says.

use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::index::{KnownPack, Located};
use super::pack::{self, Form};
use super::{Objects, cut};
use crate::{ContentId, StateError};

/// Decoded blocks that are kept: neighbours are often wanted next.
const KEPT_BLOCKS: usize = 32;
/// Packs that are kept open. A store has any number of packs, a process only so many handles.
const OPEN_PACKS: usize = 16;

/// Reads objects, and remembers what it opened.
pub struct Reader<'a> {
    objects: &'a Objects,
    /// Those that were wanted last come first.
    packs: Mutex<VecDeque<(i64, Arc<OpenPack>)>>,
    blocks: Mutex<VecDeque<(BlockKey, Arc<Vec<u8>>)>>,
}

type BlockKey = (i64, u64);

struct OpenPack {
    path: PathBuf,
    file: File,
}

/// A content that was found, ready to be copied out.
pub struct Content<'r> {
    reader: &'r Reader<'r>,
    id: ContentId,
    form: Form,
    block: Arc<Vec<u8>>,
    located: Located,
}

impl Content<'_> {
    /// Its name.
    pub fn id(&self) -> ContentId {
        self.id
    }

    /// Hands out the bytes, piece by piece, each checked before it is handed out.
    ///
    /// The order of the pieces is checked only by the digest of the whole: when
    /// this fails, what was handed out before must be thrown away.
    pub fn copy(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), StateError>,
    ) -> Result<(), StateError> {
        let bytes = self.bytes()?;
        match self.form {
            Form::Whole => {
                if ContentId::of(bytes) != self.id {
                    return Err(self.damaged());
                }
                sink(bytes)
            }
            Form::Recipe => {
                let mut hasher = blake3::Hasher::new();
                for (chunk, _) in recipe(bytes) {
                    let chunk = self.reader.read(chunk)?;
                    hasher.update(&chunk);
                    sink(&chunk)?;
                }
                if ContentId::from(hasher.finalize()) != self.id {
                    return Err(self.damaged());
                }
                Ok(())
            }
        }
    }

    /// The bytes of a content that is in one piece, which nobody has checked yet. For those who
    /// hash what becomes of them: when that is another content, [`Self::copy`] tells whether the
    /// store is to blame.
    pub fn unchecked(&self) -> Option<&[u8]> {
        match self.form {
            Form::Whole => self.bytes().ok(),
            Form::Recipe => None,
        }
    }

    fn bytes(&self) -> Result<&[u8], StateError> {
        cut(&self.block, self.located.place).ok_or_else(|| self.damaged())
    }

    fn damaged(&self) -> StateError {
        match self.reader.open(self.located.pack) {
            Ok(pack) => StateError::damaged(&pack.path, format!("{} has another content", self.id)),
            Err(error) => error,
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(objects: &'a Objects) -> Self {
        Self {
            objects,
            packs: Mutex::default(),
            blocks: Mutex::default(),
        }
    }

    /// All bytes of an object.
    pub fn read(&self, id: ContentId) -> Result<Vec<u8>, StateError> {
        let mut bytes = Vec::new();
        self.find(id)?.copy(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        Ok(bytes)
    }

    /// An object, to be copied out.
    pub fn find(&self, id: ContentId) -> Result<Content<'_>, StateError> {
        let located = self
            .objects
            .find(&[id])?
            .into_iter()
            .next()
            .flatten()
            .ok_or(StateError::Missing { id })?;
        self.content(id, located)
    }

    fn content(&self, id: ContentId, located: Located) -> Result<Content<'_>, StateError> {
        Ok(Content {
            reader: self,
            id,
            form: located.place.form,
            block: self.block(located.pack, located.place.block)?,
            located,
        })
    }

    /// Hands out many objects, by whatever order is fastest, on all cores.
    pub fn each<T: Send>(
        &self,
        wanted: Vec<(ContentId, T)>,
        take: impl Fn(T, &Content<'_>) -> Result<(), StateError> + Sync,
    ) -> Result<(), StateError> {
        let ids: Vec<ContentId> = wanted.iter().map(|(id, _)| *id).collect();
        let found = self.objects.find(&ids)?;
        let mut located = Vec::with_capacity(wanted.len());
        for ((id, tag), found) in wanted.into_iter().zip(found) {
            located.push((found.ok_or(StateError::Missing { id })?, id, tag));
        }
        located.sort_unstable_by_key(|(found, ..)| (found.pack, found.place.block));
        let mut groups: Vec<Vec<(Located, ContentId, T)>> = Vec::new();
        for item in located {
            let key = |found: &Located| (found.pack, found.place.block);
            match groups.last_mut() {
                Some(group)
                    if group
                        .first()
                        .is_some_and(|(found, ..)| key(found) == key(&item.0)) =>
                {
                    group.push(item);
                }
                _ => groups.push(vec![item]),
            }
        }
        groups.into_par_iter().try_for_each(|group| {
            for (found, id, tag) in group {
                take(tag, &self.content(id, found)?)?;
            }
            Ok(())
        })
    }

    /// Checks that these objects can be read, and returns the chunks that recipes name.
    pub fn check(&self, ids: Vec<ContentId>) -> Result<(), StateError> {
        let wanted = ids.into_iter().map(|id| (id, ())).collect();
        self.each(wanted, |(), content| content.copy(&mut |_| Ok(())))
    }

    /// The chunks that make up an object; empty when it is stored whole.
    pub(super) fn chunks(
        &self,
        id: ContentId,
        located: Located,
    ) -> Result<Vec<ContentId>, StateError> {
        let content = self.content(id, located)?;
        match content.form {
            Form::Whole => Ok(Vec::new()),
            Form::Recipe => Ok(recipe(content.bytes()?).map(|(chunk, _)| chunk).collect()),
        }
    }

    fn block(&self, pack: i64, at: u64) -> Result<Arc<Vec<u8>>, StateError> {
        let key = (pack, at);
        if let Some((_, block)) = lock(&self.blocks).iter().find(|(known, _)| *known == key) {
            return Ok(Arc::clone(block));
        }
        let open = self.open(pack)?;
        let block = match pack::read_block(&open.file, &open.path, at) {
            Err(damaged @ StateError::Damaged { .. }) => self.block_anew(pack, at, damaged)?,
            other => other?,
        };
        let block = Arc::new(block);
        let mut blocks = lock(&self.blocks);
        blocks.push_front((key, Arc::clone(&block)));
        blocks.truncate(KEPT_BLOCKS);
        Ok(block)
    }

    /// A block of a pack that is damaged here, from where others have it.
    fn block_anew(&self, number: i64, at: u64, damaged: StateError) -> Result<Vec<u8>, StateError> {
        let pack = self.known(number)?;
        let Some((path, file)) = self.objects.pack_anew(&pack)? else {
            return Err(damaged);
        };
        let block = pack::read_block(&file, &path, at)?;
        self.keep_open(number, Arc::new(OpenPack { path, file }));
        Ok(block)
    }

    fn open(&self, number: i64) -> Result<Arc<OpenPack>, StateError> {
        {
            let mut packs = lock(&self.packs);
            if let Some(at) = packs.iter().position(|(known, _)| *known == number)
                && let Some((_, open)) = packs.remove(at)
            {
                packs.push_front((number, Arc::clone(&open)));
                return Ok(open);
            }
        }
        let (path, file) = self.objects.pack_file(&self.known(number)?)?;
        let open = Arc::new(OpenPack { path, file });
        self.keep_open(number, Arc::clone(&open));
        Ok(open)
    }

    /// Keeps a pack open, and closes the one that was not wanted for the longest time. Whoever
    /// still reads from that one has it open until then.
    fn keep_open(&self, number: i64, open: Arc<OpenPack>) {
        let mut packs = lock(&self.packs);
        packs.retain(|(known, _)| *known != number);
        packs.push_front((number, open));
        packs.truncate(OPEN_PACKS);
    }

    fn known(&self, number: i64) -> Result<KnownPack, StateError> {
        let found = self.objects.index.pack(number)?;
        Ok(found.unwrap_or_else(|| KnownPack {
            number,
            name: format!("unknown-{number}"),
            bytes: 0,
            shared_as: None,
        }))
    }
}

/// The chunks of a recipe: digest and length.
fn recipe(bytes: &[u8]) -> impl Iterator<Item = (ContentId, u32)> {
    bytes.chunks_exact(36).filter_map(|entry| {
        let (id, length) = entry.split_at_checked(32)?;
        Some((
            ContentId::from_slice(id)?,
            u32::from_le_bytes(length.try_into().ok()?),
        ))
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
