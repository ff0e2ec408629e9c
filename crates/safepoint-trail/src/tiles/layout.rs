//! Where tiles lie, and what is in them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use safepoint_model::Digest;
use safepoint_store::StoreError;
use safepoint_store::durable;

use crate::TrailError;
use crate::tree::node_hash;

/// What a tile has in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Hashes of this level.
    Hashes(u32),
    /// Entries.
    Entries,
}

/// The unfinished tile of one level.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) index: u64,
    pub(super) hashes: Vec<Digest>,
}

/// One tile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub(super) level: Content,
    pub(super) index: u64,
    /// How much is in it; 0 when it is full.
    pub(super) width: u64,
}

/// The path of a tile: `tile/0/x001/x234/067`, or with `.p/WIDTH` where it is not full.
pub fn tile_path(content: Content, index: u64, width: u64) -> String {
    let mut path = match content {
        Content::Hashes(level) => format!("tile/{level}"),
        Content::Entries => "tile/entries".to_owned(),
    };
    let digits = index.to_string();
    let groups = digits.len().div_ceil(3);
    let padded = format!("{digits:0>length$}", length = 3 * groups);
    for place in 0..groups {
        let group = padded.get(3 * place..3 * place + 3).unwrap_or_default();
        let mark = if place + 1 < groups { "x" } else { "" };
        // Writing to a string never fails.
        let _ = write!(path, "/{mark}{group}");
    }
    if width > 0 {
        let _ = write!(path, ".p/{width}");
    }
    path
}

impl Tile {
    pub(super) fn path(&self, directory: &Path) -> PathBuf {
        directory.join(tile_path(self.level, self.index, self.width))
    }

    /// The hashes in the file of this tile.
    pub(super) fn read_hashes(&self, directory: &Path) -> Result<Vec<Digest>, TrailError> {
        let path = self.path(directory);
        let bytes = std::fs::read(&path).map_err(|error| StoreError::file("read", &path, error))?;
        let (hashes, rest) = bytes.as_chunks::<32>();
        if !rest.is_empty() || hashes.len() as u64 != self.width {
            return Err(TrailError::Tiles {
                path,
                reason: format!("it does not have {} hashes", self.width),
            });
        }
        Ok(hashes
            .iter()
            .map(|hash| Digest::from_bytes(*hash))
            .collect())
    }
}

/// The roots of the complete subtrees over these hashes, largest first.
pub(super) fn peaks(hashes: &[Digest]) -> Vec<Digest> {
    let mut peaks = Vec::new();
    let mut rest = hashes;
    while let Some(height) = rest.len().checked_ilog2() {
        let (first, others) = rest.split_at(1 << height);
        peaks.extend(root(first));
        rest = others;
    }
    peaks
}

/// The root over a power of two of hashes.
fn root(hashes: &[Digest]) -> Option<Digest> {
    let mut nodes = hashes.to_vec();
    while nodes.len() > 1 {
        let (pairs, _) = nodes.as_chunks::<2>();
        nodes = pairs
            .iter()
            .map(|[left, right]| node_hash(left, right))
            .collect();
    }
    nodes.first().copied()
}

pub(super) fn bytes(hashes: &[Digest]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| *hash.as_bytes()).collect()
}

/// Makes a directory that others may read, and syncs its name: tiles are there to be served.
pub(super) fn create_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() || path.as_os_str().is_empty() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(path);
    create_directory(above)?;
    match std::fs::create_dir(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(error) => return Err(StoreError::file("create the directory", path, error)),
    }
    let above = match above.as_os_str().is_empty() {
        true => Path::new("."),
        false => above,
    };
    durable::sync_directory(above)
}

/// Removes the directory that a partial tile lies in, with all widths of that tile.
pub(super) fn remove_partial(tile: &Path) -> Result<(), StoreError> {
    let Some(directory) = tile.parent() else {
        return Ok(());
    };
    let Ok(files) = std::fs::read_dir(directory) else {
        return Ok(()); // gone already
    };
    for file in files.flatten() {
        durable::remove(&file.path())?;
    }
    // Not empty, because somebody else put something there: then it stays.
    let _ = std::fs::remove_dir(directory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_06_paths_are_those_of_the_specification() {
        for (content, index, width, path) in [
            (Content::Hashes(0), 0, 0, "tile/0/000"),
            (Content::Hashes(0), 273, 112, "tile/0/273.p/112"),
            (Content::Hashes(2), 1_234_067, 0, "tile/2/x001/x234/067"),
            (Content::Entries, 1_000, 255, "tile/entries/x001/000.p/255"),
            (Content::Entries, 999, 0, "tile/entries/999"),
        ] {
            assert_eq!(tile_path(content, index, width), path);
        }
    }
}
