//! The pack file: blocks of compressed objects, then the list of what is in it.
//!
//! Small objects share a block, so that files that look alike are compressed
//! together; a large one has a block of its own. The list at the end lets the
//! index be rebuilt from packs alone. `docs/formats/objects.md` has the layout.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::{ContentId, StateError};

/// What every pack begins with: the last character is the version.
pub(super) const MAGIC: &[u8; 8] = b"SPPACK\n1";
/// What every pack ends with, behind the length of its list and a digest of it.
pub(super) const END: &[u8; 8] = b"SPLIST\n1";
/// Length of raw bytes, length of stored bytes, how they are stored, and a digest of them.
pub(super) const BLOCK_HEADER: usize = 9 + CHECK;
/// So much of the BLAKE3 digest of the stored bytes stands in front of them.
const CHECK: usize = 16;
/// Digest, block, position, length, form.
const LISTED: usize = 32 + 8 + 4 + 4 + 1;
const TRAILER: usize = 8 + 32 + 8;
/// No block holds more than this; a larger claim is damage.
pub(super) const LARGEST_BLOCK: usize = 16 << 20;
const LEVEL: i32 = 1;

/// What an object's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    /// The content itself.
    Whole = 0,
    /// The digests of the chunks that make it up, with their lengths.
    Recipe = 1,
}

impl Form {
    pub(super) fn from_code(code: i64) -> Option<Self> {
        match code {
            0 => Some(Self::Whole),
            1 => Some(Self::Recipe),
            _ => None,
        }
    }
}

/// Where an object lies within its pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) block: u64,
    pub(super) position: u32,
    pub(super) length: u32,
    pub(super) form: Form,
}

/// So much of a large block is tried before all of it is.
const DENSE_SAMPLE: usize = 64 << 10;
/// So much of that is counted before it is tried.
const EVEN_SAMPLE: usize = 8 << 10;

/// Presses raw bytes into blocks. Making one costs memory and time: each thread keeps its own.
pub(super) struct Press {
    compressor: zstd::bulk::Compressor<'static>,
    block: Vec<u8>,
}

impl Press {
    /// The one that this thread has kept, or a new one.
    pub(super) fn take() -> std::io::Result<Self> {
        match PRESS.take() {
            Some(kept) => Ok(kept),
            None => Ok(Self {
                compressor: compressor()?,
                block: Vec::new(),
            }),
        }
    }

    /// Keeps it for the next time.
    pub(super) fn keep(self) {
        PRESS.set(Some(self));
    }

    /// Presses raw bytes into a block, header included. Stored as they are where that is no longer.
    pub(super) fn block(&mut self, raw: &[u8]) -> std::io::Result<&[u8]> {
        let looks_dense = raw.len() > DENSE_SAMPLE * 2 && self.is_dense(raw)?;
        let is_pressed = !looks_dense && self.compress(raw)? < raw.len();
        if !is_pressed {
            self.block.clear();
            self.block.resize(BLOCK_HEADER, 0);
            self.block.extend_from_slice(raw);
        }
        let (header, stored) = self.block.split_at_mut(BLOCK_HEADER);
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
        let fields = length(raw).into_iter().chain(length(stored));
        let fields = fields.chain([u8::from(is_pressed)]).chain(check_of(stored));
        header
            .iter_mut()
            .zip(fields)
            .for_each(|(to, from)| *to = from);
        Ok(&self.block)
    }

    /// Fills the block with `raw`, pressed, behind room for the header. Returns how many bytes
    /// that made.
    fn compress(&mut self, raw: &[u8]) -> std::io::Result<usize> {
        let bound = zstd::zstd_safe::compress_bound(raw.len());
        self.block.clear();
        self.block.reserve(BLOCK_HEADER + bound);
        self.block.resize(BLOCK_HEADER, 0);
        let mut behind_header = Cursor::new(&mut self.block);
        behind_header.set_position(BLOCK_HEADER as u64);
        self.compressor.compress_to_buffer(raw, &mut behind_header)
    }

    /// Whether a piece from the middle shrinks by less than a fiftieth: media, archives, random data.
    fn is_dense(&mut self, raw: &[u8]) -> std::io::Result<bool> {
        let from = raw.len() / 2;
        let sample = raw.get(from..from + DENSE_SAMPLE).unwrap_or(raw);
        if !is_even(sample.get(..EVEN_SAMPLE).unwrap_or(sample)) {
            return Ok(false);
        }
        Ok(self.compress(sample)? > sample.len() - sample.len() / 50)
    }
}

/// Whether no bytes are much more frequent than others. Where some are, as in text, a fiftieth
/// is saved by that alone, and need not be tried.
fn is_even(sample: &[u8]) -> bool {
    let mut counts = [0_u64; 256];
    for byte in sample {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let squares: u64 = counts.iter().map(|count| count * count).sum();
    let length = sample.len() as u64;
    // Equally frequent bytes give half of this.
    squares < length * length / 128
}

/// A compressor as packs want it: fast first, and better than that only where it is free.
fn compressor() -> std::io::Result<zstd::bulk::Compressor<'static>> {
    use zstd::zstd_safe::{CParameter, ParamSwitch};
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    // Longer matches, searched in larger steps in a table that fits the nearest
    // cache: on source text a quarter faster than the level alone, for a tenth more bytes.
    for parameter in [
        CParameter::MinMatch(7),
        CParameter::HashLog(12),
        CParameter::TargetLength(4),
        CParameter::LiteralCompressionMode(ParamSwitch::Enable),
    ] {
        compressor.set_parameter(parameter)?;
    }
    Ok(compressor)
}

fn check_of(stored: &[u8]) -> [u8; CHECK] {
    let digest = ContentId::of(stored);
    digest.as_bytes().first_chunk().copied().unwrap_or_default()
}

/// A block as it lies in its file, known to be what was written.
struct Stored {
    raw_length: usize,
    method: u8,
    bytes: Vec<u8>,
}

fn read_stored(file: &File, path: &Path, at: u64) -> Result<Stored, StateError> {
    let damaged = |why: &str| StateError::damaged(path, format!("the block at {at} {why}"));
    let mut header = [0; BLOCK_HEADER];
    read_exact_at(file, path, &mut header, at)?;
    let [a, b, c, d, e, f, g, h, method, check @ ..] = header;
    let raw_length = u32::from_le_bytes([a, b, c, d]) as usize;
    let stored_length = u32::from_le_bytes([e, f, g, h]) as usize;
    if raw_length > LARGEST_BLOCK || stored_length > LARGEST_BLOCK {
        return Err(damaged("claims an impossible length"));
    }
    let mut bytes = vec![0; stored_length];
    read_exact_at(file, path, &mut bytes, at + BLOCK_HEADER as u64)?;
    if check_of(&bytes) != check {
        return Err(damaged("is not what was written"));
    }
    Ok(Stored {
        raw_length,
        method,
        bytes,
    })
}

/// Reads a block back and hashes it again.
pub(super) fn check_block(file: &File, path: &Path, at: u64) -> Result<(), StateError> {
    read_stored(file, path, at).map(drop)
}

thread_local! {
    static PRESS: Cell<Option<Press>> = const { Cell::new(None) };
    /// Making one costs more than pressing out a small block with it.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The raw bytes of the block at `at`.
pub(super) fn read_block(file: &File, path: &Path, at: u64) -> Result<Vec<u8>, StateError> {
    let damaged = |why: &str| StateError::damaged(path, format!("the block at {at} {why}"));
    let stored = read_stored(file, path, at)?;
    let raw = match stored.method {
        0 => stored.bytes,
        1 => DECOMPRESSOR
            .with_borrow_mut(|kept| {
                let decompressor = match kept {
                    Some(decompressor) => decompressor,
                    none => none.insert(zstd::bulk::Decompressor::new()?),
                };
                decompressor.decompress(&stored.bytes, stored.raw_length)
            })
            .map_err(|error| damaged(&format!("does not decompress ({error})")))?,
        _ => return Err(damaged("is stored in an unknown way")),
    };
    if raw.len() != stored.raw_length {
        return Err(damaged("has another length than it says"));
    }
    Ok(raw)
}

fn read_exact_at(file: &File, path: &Path, into: &mut [u8], at: u64) -> Result<(), StateError> {
    file.read_exact_at(into, at).map_err(|error| {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            StateError::damaged(path, "it is shorter than it should be".into())
        } else {
            StateError::file("read", path, error)
        }
    })
}

/// The list at the end of a pack, trailer included.
pub(super) fn encode_list(objects: &[(ContentId, Place)]) -> Vec<u8> {
    let mut list = Vec::with_capacity(objects.len() * LISTED + TRAILER);
    for (id, place) in objects {
        list.extend_from_slice(id.as_bytes());
        list.extend(place.block.to_le_bytes());
        list.extend(place.position.to_le_bytes());
        list.extend(place.length.to_le_bytes());
        list.push(place.form as u8);
    }
    let digest = ContentId::of(&list);
    let length = list.len() as u64;
    list.extend(length.to_le_bytes());
    list.extend_from_slice(digest.as_bytes());
    list.extend_from_slice(END);
    list
}

/// Reads the list of a pack, to rebuild the index.
pub(super) fn read_list(file: &File, path: &Path) -> Result<Vec<(ContentId, Place)>, StateError> {
    let damaged = |why: &str| StateError::damaged(path, why.to_owned());
    let size = file
        .metadata()
        .map_err(|error| StateError::file("read", path, error))?
        .len();
    let mut magic = [0; 8];
    read_exact_at(file, path, &mut magic, 0)?;
    if &magic != MAGIC {
        return Err(damaged("it does not begin like a pack"));
    }
    let mut trailer = [0; TRAILER];
    let trailer_at = size
        .checked_sub(TRAILER as u64)
        .ok_or_else(|| damaged("it is too short"))?;
    read_exact_at(file, path, &mut trailer, trailer_at)?;
    let length = length_in(&trailer)
        .filter(|length| *length <= trailer_at)
        .ok_or_else(|| damaged("it does not end like a pack"))?;
    let whole = length + TRAILER as u64;
    let mut list = vec![0; usize::try_from(whole).unwrap_or(usize::MAX)];
    read_exact_at(file, path, &mut list, size - whole)?;
    decode_list(&list).ok_or_else(|| damaged("its list is not what was written"))
}

/// The list at the end of a pack that is in memory, trailer included.
pub(super) fn list_of<'p>(pack: &'p [u8], path: &Path) -> Result<&'p [u8], StateError> {
    let found = || {
        let length = usize::try_from(length_in(pack.last_chunk::<TRAILER>()?)?).ok()?;
        pack.get(pack.len().checked_sub(length.checked_add(TRAILER)?)?..)
    };
    found().ok_or_else(|| StateError::damaged(path, "it does not end like a pack".to_owned()))
}

/// The length of the list that a trailer tells of.
fn length_in(trailer: &[u8; TRAILER]) -> Option<u64> {
    let length = u64::from_le_bytes(*trailer.first_chunk()?);
    (trailer.ends_with(END) && length % LISTED as u64 == 0).then_some(length)
}

/// Reads a list, trailer included.
pub(super) fn decode_list(list: &[u8]) -> Option<Vec<(ContentId, Place)>> {
    let (entries, trailer) = list.split_last_chunk::<TRAILER>()?;
    let digest = trailer.get(8..40)?;
    if length_in(trailer)? != entries.len() as u64 || ContentId::of(entries).as_bytes() != digest {
        return None;
    }
    entries.chunks_exact(LISTED).map(decode_listed).collect()
}

fn decode_listed(entry: &[u8]) -> Option<(ContentId, Place)> {
    let (id, rest) = entry.split_at_checked(32)?;
    let (block, rest) = rest.split_at_checked(8)?;
    let (position, rest) = rest.split_at_checked(4)?;
    let (length, form) = rest.split_at_checked(4)?;
    Some((
        ContentId::from_slice(id)?,
        Place {
            block: u64::from_le_bytes(block.try_into().ok()?),
            position: u32::from_le_bytes(position.try_into().ok()?),
            length: u32::from_le_bytes(length.try_into().ok()?),
            form: Form::from_code(i64::from(*form.first()?))?,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that nothing presses.
    fn noise(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().finalize_xof().fill(&mut bytes);
        bytes
    }

    fn method_and_length(raw: &[u8]) -> (u8, usize) {
        let mut press = Press::take().unwrap();
        let block = press.block(raw).unwrap().to_vec();
        press.keep();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&block, 0).unwrap();
        assert_eq!(read_block(&file, Path::new("pack"), 0).unwrap(), raw);
        (block[8], block.len() - BLOCK_HEADER)
    }

    #[test]
    fn st_17_what_is_pressed_comes_back_whatever_it_is() {
        let text = b"fn main() { println!(\"hello\"); }\n".repeat(10_000);
        let (method, length) = method_and_length(&text);
        assert!(method == 1 && length < text.len() / 10, "{length}");
        let noise = noise(300_000);
        assert_eq!(method_and_length(&noise), (0, noise.len()));
        // Evenly spread, and yet it repeats itself.
        let again = noise[..20_000].repeat(15);
        let (method, length) = method_and_length(&again);
        assert!(method == 1 && length < again.len() / 4, "{length}");
        assert_eq!(method_and_length(b"short"), (0, 5));
        assert_eq!(method_and_length(b""), (0, 0));
    }

    #[test]
    fn text_is_told_from_what_is_dense() {
        assert!(is_even(&noise(EVEN_SAMPLE)));
        assert!(!is_even(&b"some words of a text, and more ".repeat(300)));
        assert!(!is_even(&[0; EVEN_SAMPLE]));
    }
}
