//! Collecting garbage: what nothing refers to any more goes, packs that are
//! mostly garbage are written anew, and many small packs become one: each
//! checkpoint adds one, so that without this their number would only grow.
//!
//! New packs are durable before the index changes, and old packs go only
//! after it has: killed at any instant, nothing that is referred to is lost,
//! and what is left over goes with the next collection.

use std::collections::HashSet;

use safepoint_store::{durable, fault};

use super::index::{KnownPack, NewPack, Rearrangement};
use super::writer::{Known, Writer};
use super::{Objects, cut};
use crate::{ContentId, StateError};

/// What the object store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many packs there are.
    pub packs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many objects are in them.
    pub objects: u64,
}

/// What a collection did, or would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects that nothing refers to.
    pub objects: u64,
    /// Packs that go, or are written anew.
    pub packs: u64,
    /// Bytes that become free.
    pub bytes: u64,
}

/// Whether to do it, or only to say what would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Do it.
    Apply,
    /// Say what would be done.
    DryRun,
}

/// A pack is written anew when at least a quarter of it is garbage.
const WORTH_IT: u64 = 4;
/// A pack below this size is small.
const SMALL_PACK: u64 = 4 << 20;
/// So many small packs are written together as one. With fewer, one that was made from many
/// would be written again at every collection.
const MERGE_FROM: usize = 8;

impl Objects {
    /// What the store holds now.
    pub fn usage(&self) -> Result<Usage, StateError> {
        let packs = self.index.packs()?;
        Ok(Usage {
            packs: packs.len() as u64,
            bytes: packs.iter().map(|pack| pack.bytes).sum(),
            objects: self.index.objects()?,
        })
    }

    /// Deletes everything but `live` and what it is made of. The store must be open alone.
    pub fn collect(&self, live: HashSet<ContentId>, mode: Mode) -> Result<Collected, StateError> {
        let live = self.with_chunks(live)?;
        let mut collected = Collected::default();
        let mut change = Rearrangement::default();
        let mut old_packs = Vec::new();
        let mut small = Vec::new();
        let packs = self.index.packs()?;
        for pack in &packs {
            let objects = self.index.of_pack(pack.number)?;
            let (kept, dropped): (Vec<_>, Vec<_>) =
                objects.into_iter().partition(|(id, _)| live.contains(id));
            let weight = |objects: &[(ContentId, super::Place)]| -> u64 {
                objects
                    .iter()
                    .map(|(_, place)| u64::from(place.length))
                    .sum()
            };
            let (alive, dead) = (weight(&kept), weight(&dropped));
            collected.objects += dropped.len() as u64;
            change.dropped.extend(dropped.into_iter().map(|(id, _)| id));
            if !kept.is_empty() && dead * WORTH_IT < alive + dead {
                if pack.bytes < SMALL_PACK {
                    small.push((pack, kept));
                }
                continue;
            }
            collected.packs += 1;
            if mode == Mode::DryRun {
                // Compressed together, so this is an estimate.
                let share = u128::from(pack.bytes) * u128::from(dead);
                let freed = share / u128::from((alive + dead).max(1));
                collected.bytes += u64::try_from(freed).unwrap_or(pack.bytes);
                continue;
            }
            collected.bytes += pack.bytes;
            for moved in self.move_objects(&[(pack, kept)])? {
                collected.bytes = collected.bytes.saturating_sub(moved.1);
                change.added.push(moved);
            }
            change.removed.push(pack.number);
            old_packs.push(self.pack_path(&pack.name));
        }
        let bytes: u64 = small.iter().map(|(pack, _)| pack.bytes).sum();
        // For a moment both are there.
        let has_room = self.room().is_none_or(|room| bytes <= room);
        if small.len() >= MERGE_FROM && has_room {
            collected.packs += small.len() as u64;
            if mode == Mode::Apply {
                let mut written = 0;
                for moved in self.move_objects(&small)? {
                    written += moved.1;
                    change.added.push(moved);
                }
                collected.bytes += bytes.saturating_sub(written);
                for (pack, _) in &small {
                    change.removed.push(pack.number);
                    old_packs.push(self.pack_path(&pack.name));
                }
            }
        }
        if mode == Mode::DryRun {
            return Ok(collected);
        }
        fault::point("collect.packed");
        if !change.dropped.is_empty() || !change.removed.is_empty() {
            self.index.rearrange(&change)?;
        }
        fault::point("collect.indexed");
        for path in old_packs {
            durable::remove(&path)?;
        }
        self.sweep()?;
        Ok(collected)
    }

    /// Forgets every object that can no longer be read, so that it is stored anew by
    /// whoever still has it. Returns how many there were.
    pub fn heal(&self) -> Result<usize, StateError> {
        let mut change = Rearrangement::default();
        for pack in self.index.packs()? {
            let path = self.pack_path(&pack.name);
            let file = self.pack_file(&pack).map(|(_, file)| file).ok();
            for block in self
                .index
                .of_pack(pack.number)?
                .chunk_by(|(_, a), (_, b)| a.block == b.block)
            {
                let at = block.first().map_or(0, |(_, place)| place.block);
                let whole = file
                    .as_ref()
                    .is_some_and(|file| super::pack::check_block(file, &path, at).is_ok());
                if !whole {
                    change.dropped.extend(block.iter().map(|(id, _)| *id));
                }
            }
        }
        if !change.dropped.is_empty() {
            self.index.rearrange(&change)?;
        }
        Ok(change.dropped.len())
    }

    /// Writes the objects that are kept of these packs into a new one.
    fn move_objects(
        &self,
        packs: &[(&KnownPack, Vec<(ContentId, super::Place)>)],
    ) -> Result<Vec<NewPack>, StateError> {
        let writer = Writer::new(self, Known::Move);
        for (pack, kept) in packs.iter().filter(|(_, kept)| !kept.is_empty()) {
            let path = self.pack_path(&pack.name);
            let file = std::fs::File::open(&path)
                .map_err(|error| StateError::file("read", &path, error))?;
            for block in kept.chunk_by(|(_, a), (_, b)| a.block == b.block) {
                let Some((_, first)) = block.first() else {
                    continue;
                };
                let raw = super::pack::read_block(&file, &path, first.block)?;
                for (id, place) in block {
                    let bytes = cut(&raw, *place).ok_or_else(|| {
                        StateError::damaged(&path, format!("{id} lies outside its block"))
                    })?;
                    writer.add_object(*id, place.form, bytes.to_vec())?;
                }
            }
        }
        writer.close()
    }

    /// `live`, and the chunks that large ones are made of.
    fn with_chunks(&self, mut live: HashSet<ContentId>) -> Result<HashSet<ContentId>, StateError> {
        let reader = self.reader();
        let ids: Vec<ContentId> = live.iter().copied().collect();
        let found = self.index.find(ids.iter().copied())?;
        let mut places: Vec<_> = ids
            .into_iter()
            .zip(found)
            .filter_map(|(id, located)| Some((id, located?)))
            .collect();
        // Block after block: each is read once, whatever their number.
        places.sort_unstable_by_key(|(_, located)| (located.pack, located.place.block));
        for (id, located) in places {
            live.extend(reader.chunks(id, located)?);
        }
        Ok(live)
    }

    /// Deletes what killed processes left behind: packs that no index knows, half-written files.
    fn sweep(&self) -> Result<(), StateError> {
        let known: HashSet<String> = self
            .index
            .packs()?
            .into_iter()
            .map(|pack| format!("{}.pack", pack.name))
            .collect();
        let directory = self.directory.join("packs");
        let listing = std::fs::read_dir(&directory)
            .map_err(|error| StateError::file("read", &directory, error))?;
        for entry in listing {
            let entry = entry.map_err(|error| StateError::file("read", &directory, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // One whose list cannot be read may still be mended by somebody.
            let path = entry.path();
            let readable = std::fs::File::open(&path)
                .is_ok_and(|file| super::pack::read_list(&file, &path).is_ok());
            if !known.contains(&name) && (readable || name.ends_with(".tmp")) {
                durable::remove(&path)?;
            }
        }
        Ok(())
    }
}
