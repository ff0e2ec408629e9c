//! The write-ahead log: which of its frames are committed, and where the newest
//! content of each page is.
//!
//! Two formats, both documented by SQLite (`fileformat2.html`, `walformat.html`):
//! the log itself, whose frames are chained by checksums and marked with the salts
//! of the log's header, and the header of the index in shared memory, which says how
//! many frames those who are connected regard as committed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// How much of the log is read at a time.
const RUN: usize = 256 * 1024;

/// The running checksum of a log.
type Checksum = (u32, u32);

/// The committed part of a log.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// The size of the pages in it.
    pub(super) page_size: u32,
    /// How many pages the database has after the last commit.
    pub(super) pages: u32,
    /// Where in the log the newest content of a page begins. Pages behind the end of the
    /// database may be among them.
    pub(super) newest: BTreeMap<u32, u64>,
    /// Where in the log the last committed frame ends.
    pub(super) length: u64,
}

/// What the index in shared memory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    /// How many frames are committed; 0 when the log is to be ignored.
    pub(super) frames: u32,
    pages: u32,
    salts: [u8; 8],
    checksum: Checksum,
}

impl Index {
    /// Reads the header. `None` when it was being written, or was never written.
    pub(super) fn read(shared_memory: &File) -> io::Result<Option<Self>> {
        const COPY: usize = 48;
        let mut bytes = [0; 2 * COPY];
        if read_some(shared_memory, &mut bytes, 0)? < bytes.len() {
            return Ok(None);
        }
        let (first, second) = bytes.split_at(COPY);
        if first != second {
            return Ok(None);
        }
        let native = |at: usize| u32::from_ne_bytes(array(first, at).unwrap_or_default());
        let said = (native(40), native(44));
        let counted = add(
            first.get(..40).unwrap_or_default(),
            (0, 0),
            u32::from_ne_bytes,
        );
        // Version, and whether it was ever filled.
        if native(0) != 3_007_000 || first.get(12) != Some(&1) || said != counted {
            return Ok(None);
        }
        Ok(Some(Self {
            frames: native(16),
            pages: native(20),
            salts: array(first, 32).unwrap_or_default(),
            checksum: (native(24), native(28)),
        }))
    }
}

/// What a log holds.
#[derive(Clone, Debug)]
pub(super) enum Log {
    /// Nothing that is committed: the database is complete without it.
    Empty,
    /// Frames that belong to the database.
    Committed(Frames),
    /// Not what the index says. It may be so for a moment.
    Unsettled,
}

/// Reads a log up to the last commit; with an index, up to what that regards as the
/// last commit. Every frame that counts is checked.
pub(super) fn read(log: &File, index: Option<&Index>) -> io::Result<Log> {
    if index.is_some_and(|index| index.frames == 0) {
        return Ok(Log::Empty);
    }
    let nothing = match index {
        Some(_) => Log::Unsettled,
        None => Log::Empty,
    };
    let mut header = [0; HEADER];
    if read_some(log, &mut header, 0)? < HEADER {
        return Ok(nothing);
    }
    let Some(mut reader) = Reader::new(&header) else {
        return Ok(nothing);
    };
    if index.is_some_and(|index| index.salts != reader.salts) {
        return Ok(Log::Unsettled);
    }
    let size = FRAME_HEADER + reader.page_size as usize;
    let mut buffer = vec![0; size.max(RUN / size * size)];
    let limit = index.map_or(u32::MAX, |index| index.frames);
    let mut at = HEADER as u64;
    'log: loop {
        let got = read_some(log, &mut buffer, at)?;
        let whole = buffer.get(..got).unwrap_or_default().chunks_exact(size);
        if whole.len() == 0 {
            break;
        }
        for frame in whole {
            if reader.count >= limit || !reader.take(frame, at) {
                break 'log;
            }
            at += size as u64;
        }
    }
    let Some(frames) = reader.committed else {
        return Ok(nothing);
    };
    // What follows the last commit is no part of it; with an index, nothing does.
    let agrees = index.is_none_or(|index| {
        reader.count == index.frames
            && reader.pending.is_empty()
            && reader.checksum == index.checksum
            && frames.pages == index.pages
    });
    Ok(match agrees {
        true => Log::Committed(frames),
        false => Log::Unsettled,
    })
}

/// Follows the chain of frames.
struct Reader {
    page_size: u32,
    salts: [u8; 8],
    word: fn([u8; 4]) -> u32,
    checksum: Checksum,
    count: u32,
    /// Frames since the last commit.
    pending: Vec<(u32, u64)>,
    committed: Option<Frames>,
}

impl Reader {
    fn new(header: &[u8; HEADER]) -> Option<Self> {
        let big = |at: usize| array(header, at).map(u32::from_be_bytes);
        let word = match big(0)? {
            0x377f_0682 => u32::from_le_bytes,
            0x377f_0683 => u32::from_be_bytes,
            _ => return None,
        };
        let page_size = big(8)?;
        let checksum = add(header.get(..24)?, (0, 0), word);
        let sound = big(4)? == 3_007_000
            && page_size.is_power_of_two()
            && (512..=65536).contains(&page_size)
            && (big(24)?, big(28)?) == checksum;
        sound.then_some(Self {
            page_size,
            salts: array(header, 16)?,
            word,
            checksum,
            count: 0,
            pending: Vec::new(),
            committed: None,
        })
    }

    /// Takes the frame that begins at `at`, unless the chain has ended.
    fn take(&mut self, frame: &[u8], at: u64) -> bool {
        let Some((head, content)) = frame.split_at_checked(FRAME_HEADER) else {
            return false;
        };
        let big = |at: usize| array(head, at).map_or(0, u32::from_be_bytes);
        let page = big(0);
        if page == 0 || array(head, 8) != Some(self.salts) {
            return false;
        }
        let checksum = add(head.get(..8).unwrap_or_default(), self.checksum, self.word);
        let checksum = add(content, checksum, self.word);
        if checksum != (big(16), big(20)) {
            return false;
        }
        self.checksum = checksum;
        self.count += 1;
        self.pending.push((page, at + FRAME_HEADER as u64));
        let pages = big(4);
        if pages > 0 {
            let frames = self.committed.get_or_insert_with(|| Frames {
                page_size: self.page_size,
                pages,
                newest: BTreeMap::new(),
                length: 0,
            });
            frames.pages = pages;
            frames.newest.extend(self.pending.drain(..));
            frames.length = at + frame.len() as u64;
        }
        true
    }
}

/// SQLite's checksum: over pairs of words, in the order of bytes that the log says.
fn add(bytes: &[u8], start: Checksum, word: fn([u8; 4]) -> u32) -> Checksum {
    let (pairs, _) = bytes.as_chunks::<8>();
    let (mut first, mut second) = start;
    for [a, b, c, d, e, f, g, h] in pairs {
        first = first
            .wrapping_add(word([*a, *b, *c, *d]))
            .wrapping_add(second);
        second = second
            .wrapping_add(word([*e, *f, *g, *h]))
            .wrapping_add(first);
    }
    (first, second)
}

/// `N` bytes at `at`.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Reads as much as there is, up to the length of `buffer`.
pub(super) fn read_some(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::parked::beside;

    fn write(connection: &Connection, count: usize) {
        connection
            .execute_batch(&"INSERT INTO t VALUES (randomblob(3000));".repeat(count))
            .unwrap();
    }

    fn look(path: &Path) -> (File, Index) {
        let memory = File::open(beside(path, "-shm")).unwrap();
        let index = Index::read(&memory).unwrap().unwrap();
        (File::open(beside(path, "-wal")).unwrap(), index)
    }

    fn committed(log: Log) -> Option<(u32, u64, usize)> {
        match log {
            Log::Committed(frames) => Some((frames.pages, frames.length, frames.newest.len())),
            _ => None,
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a database of the test")]
    fn st_16_the_index_decides_how_much_of_a_log_counts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("app.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(x)",
            )
            .unwrap();
        write(&connection, 5);
        let (log, early) = look(&path);
        let then = committed(read(&log, Some(&early)).unwrap()).unwrap();
        write(&connection, 5);
        let (_, late) = look(&path);
        let now = committed(read(&log, Some(&late)).unwrap()).unwrap();
        assert!(now.0 > then.0 && now.1 > then.1);
        // Without an index, as far as the frames are sound; with one, as far as it says.
        assert_eq!(committed(read(&log, None).unwrap()), Some(now));
        assert_eq!(committed(read(&log, Some(&early)).unwrap()), Some(then));

        // Begun again, but not written to yet: all of it is in the database.
        let begun = Index {
            frames: 0,
            salts: [9; 8],
            ..late
        };
        assert!(matches!(read(&log, Some(&begun)).unwrap(), Log::Empty));
        for other in [
            Index {
                salts: [9; 8],
                ..late
            },
            Index {
                frames: late.frames + 1,
                ..late
            },
            Index {
                checksum: (1, 2),
                ..late
            },
            Index {
                pages: late.pages + 1,
                ..late
            },
        ] {
            assert!(matches!(read(&log, Some(&other)).unwrap(), Log::Unsettled));
        }

        // A frame that is not what was written ends it.
        let copy = directory.path().join("copy");
        let mut bytes = fs::read(beside(&path, "-wal")).unwrap();
        let length = usize::try_from(then.1).unwrap();
        bytes[length + 100] ^= 1;
        fs::write(&copy, &bytes).unwrap();
        let torn = File::open(&copy).unwrap();
        assert_eq!(committed(read(&torn, None).unwrap()), Some(then));
        assert!(matches!(read(&torn, Some(&late)).unwrap(), Log::Unsettled));
        for length in [0, 10, 32, 33, 500] {
            fs::write(&copy, &bytes[..length]).unwrap();
            let short = File::open(&copy).unwrap();
            assert!(matches!(read(&short, None).unwrap(), Log::Empty));
        }
    }
}
