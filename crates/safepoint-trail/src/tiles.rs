//! The trail as files that anybody can serve and anybody can check: C2SP `tlog-tiles`.
//!
//! Every entry is hashed anew on its way out, and the checkpoint is written last, only if
//! the tiles give the root that was signed. So a directory is always a whole log, of
//! the present or of an earlier size, whatever happens while it is written. Writing
//! again writes only what is new.

mod layout;

use std::path::{Path, PathBuf};

use safepoint_model::Digest;
use safepoint_store::durable::{self, Access};
use safepoint_store::{Flow, StoreError};

use crate::cosign::with_cosignatures;
use crate::head::SignedHead;
use crate::tree::{self, Frontier};
use crate::verify::Bad;
use crate::{Query, Trail, TrailError};
use layout::{Level, Tile};

pub use layout::{Content, tile_path};

/// How many entries or hashes a full tile has.
pub const WIDTH: u64 = 256;

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The head that the tiles are of.
    pub head: SignedHead,
    /// The checkpoint, with the cosignatures that are known.
    pub checkpoint: String,
    /// How many entries were there before.
    pub before: u64,
    /// How many tiles and bundles of entries are new.
    pub files: u64,
}

impl Trail {
    /// Brings the tiles in `directory` up to the present head. `progress` hears how many
    /// entries the tiles have so far.
    pub fn write_tiles(
        &self,
        directory: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<Written, TrailError> {
        let head = self.witnessed_head()?;
        let checkpoint = with_cosignatures(&head, &self.cosigned()?);
        let mut writer = Writer::open(self, directory, &head)?;
        let (before, start) = (writer.published.len() as u64, writer.frontier.size());
        let before = before + start;
        if before < head.size() {
            let query = Query {
                from: start,
                ..Query::default()
            };
            self.entries(&query, |entry| -> Result<Flow, TrailError> {
                if entry.seq >= head.size() {
                    return Ok(Flow::Enough); // added since
                }
                let leaf = entry.to_leaf();
                writer.add(entry.seq, &leaf)?;
                if writer.frontier.size().is_multiple_of(WIDTH) {
                    progress(writer.frontier.size());
                }
                Ok(Flow::More)
            })?;
            writer.finish(&head)?;
        }
        let path = directory.join("checkpoint");
        if std::fs::read(&path).ok().as_deref() != Some(checkpoint.as_bytes()) {
            durable::write(&path, checkpoint.as_bytes(), Access::Shared)?;
        }
        writer.remove_outdated(before, head.size())?;
        Ok(Written {
            checkpoint,
            before,
            files: writer.files,
            head,
        })
    }
}

/// Puts leaves into tiles.
struct Writer<'a> {
    directory: &'a Path,
    frontier: Frontier,
    /// The unfinished tile of each level.
    levels: Vec<Level>,
    /// The entries of the unfinished tile at level 0, as their bundle has them.
    bundle: Vec<u8>,
    /// Hashes behind the frontier that were published before.
    published: Vec<Digest>,
    files: u64,
}

impl<'a> Writer<'a> {
    /// Goes on where the tiles in `directory` end, at the last boundary between bundles.
    fn open(trail: &Trail, directory: &'a Path, head: &SignedHead) -> Result<Self, TrailError> {
        layout::create_directory(directory)?;
        let mut writer = Self {
            directory,
            frontier: Frontier::empty(),
            levels: vec![Level::default()],
            bundle: Vec::new(),
            published: Vec::new(),
            files: 0,
        };
        let path = directory.join("checkpoint");
        let note = match std::fs::read_to_string(&path) {
            Ok(note) => note,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(writer),
            Err(error) => return Err(StoreError::file("read", path, error).into()),
        };
        let old = SignedHead::open(&note, trail.key())
            .map_err(|error| unusable(&path, error.to_string()))?;
        if old.size() > head.size() {
            let reason = format!("{} entries were published as tiles", old.size());
            return Err(TrailError::Tampered(Bad::at(head.size(), reason)));
        }
        if old.size() == head.size() && old.root() != head.root() {
            let reason = "the trail is not the one that was published as tiles";
            return Err(TrailError::Tampered(Bad::at(0, reason)));
        }
        writer.resume(&old)?;
        Ok(writer)
    }

    /// Reads the right edge of what was published, and checks that it is what was signed.
    fn resume(&mut self, old: &SignedHead) -> Result<(), TrailError> {
        let start = old.size() - old.size() % WIDTH;
        let mut peaks = Vec::new();
        self.levels.clear();
        for level in 0..u64::BITS / 8 {
            let count = old.size() >> (8 * level);
            if count == 0 {
                break;
            }
            let tile = Tile {
                level: Content::Hashes(level),
                index: count / WIDTH,
                width: count % WIDTH,
            };
            let hashes = match tile.width {
                0 => Vec::new(),
                _ => tile.read_hashes(self.directory)?,
            };
            let above = match level {
                0 => {
                    self.published = hashes;
                    Vec::new()
                }
                _ => hashes,
            };
            peaks.push(layout::peaks(&above));
            self.levels.push(Level {
                index: tile.index,
                hashes: above,
            });
        }
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let peaks = peaks.into_iter().rev().flatten().collect();
        let frontier = Frontier::from_peaks(start, peaks);
        let whole = frontier.clone().map(|mut frontier| {
            for leaf in &self.published {
                frontier.push(*leaf, |_, _| {});
            }
            frontier.root()
        });
        if whole != Some(old.root()) {
            let reason = "its tiles do not give the root in its checkpoint".to_owned();
            return Err(unusable(self.directory, reason));
        }
        self.frontier = frontier.unwrap_or(Frontier::empty());
        Ok(())
    }

    /// Adds the next entry.
    fn add(&mut self, seq: u64, leaf: &[u8]) -> Result<(), TrailError> {
        let bad = |reason| TrailError::Tampered(Bad::at(seq, reason));
        let place = self.frontier.size();
        if seq != place {
            return Err(TrailError::Tampered(Bad::at(place, "it is missing")));
        }
        let hash = tree::leaf_hash(leaf);
        let published = usize::try_from(place % WIDTH).ok();
        let published = published.and_then(|place| self.published.get(place));
        if published.is_some_and(|published| *published != hash) {
            return Err(bad("it is not the entry that was published as tiles"));
        }
        let length = u16::try_from(leaf.len())
            .map_err(|_| bad("it is longer than 65,535 bytes, which no bundle can hold"))?;
        self.bundle.extend_from_slice(&length.to_be_bytes());
        self.bundle.extend_from_slice(leaf);
        let levels = &mut self.levels;
        self.frontier.push(hash, |height, node| {
            if height.is_multiple_of(8) {
                let level = (height / 8) as usize;
                levels.resize_with(levels.len().max(level + 1), Level::default);
                levels
                    .iter_mut()
                    .skip(level)
                    .take(1)
                    .for_each(|level| level.hashes.push(node));
            }
        });
        if self.frontier.size().is_multiple_of(WIDTH) {
            self.write_bundle(0)?;
            self.published.clear();
            self.write_full()?;
        }
        Ok(())
    }

    /// Writes every tile that is full now. What is above it says what its root must be.
    fn write_full(&mut self) -> Result<(), TrailError> {
        for level in 0..self.levels.len() {
            let above = self.levels.get(level + 1);
            let root = above.and_then(|above| above.hashes.last().copied());
            let Some(full) = self.levels.get_mut(level) else {
                break;
            };
            if full.hashes.len() as u64 != WIDTH {
                break;
            }
            if Some(layout::peaks(&full.hashes)) != root.map(|root| vec![root]) {
                let reason = format!("a tile of level {level} is not what was signed");
                return Err(unusable(self.directory, reason));
            }
            let hashes = std::mem::take(&mut full.hashes);
            let index = full.index;
            full.index += 1;
            let tile = Tile {
                level: Content::Hashes(u32::try_from(level).unwrap_or(0)),
                index,
                width: 0,
            };
            self.write(&tile, &layout::bytes(&hashes))?;
        }
        Ok(())
    }

    /// Writes what is unfinished, if everything gives the root that was signed.
    fn finish(&mut self, head: &SignedHead) -> Result<(), TrailError> {
        if self.frontier.size() != head.size() || self.frontier.root() != head.root() {
            let reason = "the entries do not give the root that was signed";
            let last = head.size().saturating_sub(1);
            return Err(TrailError::Tampered(Bad::at(last, reason)));
        }
        let width = head.size() % WIDTH;
        if width > 0 {
            self.write_bundle(width)?;
        }
        let levels = std::mem::take(&mut self.levels);
        for (number, level) in (0..).zip(&levels) {
            if !level.hashes.is_empty() {
                let tile = Tile {
                    level: Content::Hashes(number),
                    index: level.index,
                    width: level.hashes.len() as u64,
                };
                self.write(&tile, &layout::bytes(&level.hashes))?;
            }
        }
        Ok(())
    }

    fn write_bundle(&mut self, width: u64) -> Result<(), TrailError> {
        let index = match width {
            0 => self.frontier.size() / WIDTH - 1,
            _ => self.frontier.size() / WIDTH,
        };
        let bundle = std::mem::take(&mut self.bundle);
        let tile = Tile {
            level: Content::Entries,
            index,
            width,
        };
        self.write(&tile, &bundle)
    }

    /// Writes a file, unless it is there already.
    fn write(&mut self, tile: &Tile, bytes: &[u8]) -> Result<(), TrailError> {
        let path = tile.path(self.directory);
        if std::fs::read(&path).ok().as_deref() == Some(bytes) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            layout::create_directory(parent)?;
        }
        durable::write(&path, bytes, Access::Shared)?;
        self.files += 1;
        Ok(())
    }

    /// Removes partial tiles that a full one stands for now. Others stay: whoever has an
    /// older checkpoint needs them.
    fn remove_outdated(&self, before: u64, size: u64) -> Result<(), TrailError> {
        let levels = (0..u64::BITS / 8).map(|level| (Content::Hashes(level), level));
        for (name, level) in levels.chain([(Content::Entries, 0)]) {
            let (old, new) = (before >> (8 * level), size >> (8 * level));
            if !old.is_multiple_of(WIDTH) && new / WIDTH > old / WIDTH {
                let tile = Tile {
                    level: name,
                    index: old / WIDTH,
                    width: 1,
                };
                layout::remove_partial(&tile.path(self.directory))?;
            }
        }
        Ok(())
    }
}

fn unusable(path: &Path, reason: String) -> TrailError {
    TrailError::Tiles {
        path: PathBuf::from(path),
        reason,
    }
}
