//! The entries of a tree of pages, in the order of their keys.
//!
//! Tables are trees, and so are indexes. What is given out is what SQLite wrote for
//! each row, however the rows are spread over pages: the length of the record, the row's
//! number (not in a table without row numbers), and the record. Where two trees hold the same
//! rows, the bytes are the same, also after `VACUUM`, or with another page size.

use std::io;

use super::view::{View, damaged};
use super::wal::array;

/// How many bytes of consecutive pages are read at a time.
const RUN: usize = 256 * 1024;
/// SQLite itself goes no deeper.
const DEEPEST: usize = 20;

/// Part of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part<'a> {
    /// An entry begins.
    Row(&'a [u8]),
    /// It goes on.
    More(&'a [u8]),
}

/// Hands out all entries of the tree that begins at page `root`.
pub(super) fn walk<V: FnMut(Part<'_>)>(view: &View<'_>, root: u32, visit: V) -> io::Result<()> {
    let mut walker = Walker {
        view,
        left: view.pages(),
        buffers: Vec::new(),
        overflow: Vec::new(),
        visit,
    };
    walker.trees(&[root], 0)
}

struct Walker<'a, V> {
    view: &'a View<'a>,
    /// A tree has no more pages than the database: more of them go round in a circle.
    left: u32,
    /// One for each depth.
    buffers: Vec<Vec<u8>>,
    overflow: Vec<u8>,
    visit: V,
}

impl<V: FnMut(Part<'_>)> Walker<'_, V> {
    /// Goes through trees, one after another.
    fn trees(&mut self, roots: &[u32], depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(damaged("a tree is too deep"));
        }
        if self.buffers.len() <= depth {
            self.buffers.resize(depth + 1, Vec::new());
        }
        let mut buffer = self
            .buffers
            .get_mut(depth)
            .map(std::mem::take)
            .unwrap_or_default();
        let size = self.view.page_size();
        let most = (RUN / size).max(1);
        for together in roots.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
            for run in together.chunks(most) {
                buffer.resize(run.len() * size, 0);
                self.view
                    .read(run.first().copied().unwrap_or(0), &mut buffer)?;
                for (number, page) in run.iter().zip(buffer.chunks_exact(size)) {
                    self.page(*number, page, depth)?;
                }
            }
        }
        if let Some(place) = self.buffers.get_mut(depth) {
            *place = buffer;
        }
        Ok(())
    }

    fn page(&mut self, number: u32, page: &[u8], depth: usize) -> io::Result<()> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| damaged("the pages of a tree go round in a circle"))?;
        // The first page begins with the header of the database.
        let head = if number == 1 { 100 } else { 0 };
        let page = page.get(..self.view.usable()).unwrap_or(page);
        let (kind, pointers) = match page.get(head) {
            Some(kind @ (2 | 5)) => (*kind, head + 12),
            Some(kind @ (10 | 13)) => (*kind, head + 8),
            _ => return Err(damaged("a page of a tree is none")),
        };
        let count = usize::from(short(page, head + 3)?);
        let pointers = page
            .get(pointers..pointers + 2 * count)
            .ok_or_else(|| damaged("a page of a tree has too many entries"))?;
        let (pointers, _) = pointers.as_chunks::<2>();
        let cells = pointers.iter().map(|pointer| {
            page.get(usize::from(u16::from_be_bytes(*pointer))..)
                .ok_or_else(|| damaged("an entry lies outside of its page"))
        });
        match kind {
            13 => {
                for cell in cells {
                    self.entry(cell?, Numbered::Yes)?;
                }
            }
            10 => {
                for cell in cells {
                    self.entry(cell?, Numbered::No)?;
                }
            }
            5 => {
                let mut children = Vec::with_capacity(count + 1);
                for cell in cells {
                    children.push(long(cell?, 0)?);
                }
                children.push(long(page, head + 8)?);
                self.trees(&children, depth + 1)?;
            }
            // Entries of an index lie between those of its children.
            _ => {
                for cell in cells {
                    let cell = cell?;
                    self.trees(&[long(cell, 0)?], depth + 1)?;
                    self.entry(cell.get(4..).unwrap_or_default(), Numbered::No)?;
                }
                self.trees(&[long(page, head + 8)?], depth + 1)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn entry(&mut self, cell: &[u8], numbered: Numbered) -> io::Result<()> {
        let outside = || damaged("an entry lies outside of its page");
        let (length, mut head) = varint(cell).ok_or_else(outside)?;
        let length = usize::try_from(length).map_err(|_| outside())?;
        if length > (self.view.pages() as usize).saturating_mul(self.view.page_size()) {
            return Err(damaged("an entry is longer than the database"));
        }
        if numbered == Numbered::Yes {
            let rest = cell.get(head..).unwrap_or_default();
            head += varint(rest).ok_or_else(outside)?.1;
        }
        let here = local(length, self.view.usable(), numbered);
        let entry = cell.get(..head + here).ok_or_else(outside)?;
        (self.visit)(Part::Row(entry));
        if here < length {
            self.more(long(cell, head + here)?, length - here)?;
        }
        Ok(())
    }

    /// Hands out what did not fit in the page: a chain of pages of its own. They often
    /// follow one another in the file, so more and more of them are read together.
    fn more(&mut self, first: u32, mut length: usize) -> io::Result<()> {
        let size = self.view.page_size();
        let usable = self.view.usable();
        let most = (RUN / size).max(1);
        let (mut number, mut together) = (first, 1);
        let mut buffer = std::mem::take(&mut self.overflow);
        while length > 0 {
            let needed = length.div_ceil(usable.saturating_sub(4).max(1));
            let behind = self.view.pages().saturating_sub(number) as usize + 1;
            let count = together.min(needed).min(behind).max(1);
            buffer.resize(count * size, 0);
            self.view.read(number, &mut buffer)?;
            let start = number;
            for (offset, page) in (0..).zip(buffer.chunks_exact(size)) {
                if number != start + offset {
                    together = 1;
                    break;
                }
                let content = page.get(4..usable).unwrap_or_default();
                let content = content.get(..length).unwrap_or(content);
                (self.visit)(Part::More(content));
                length -= content.len();
                number = long(page, 0)?;
                together = (together * 2).min(most);
            }
        }
        self.overflow = buffer;
        Ok(())
    }
}

/// Whether entries have a number, as rows of most tables do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Yes,
    No,
}

/// How much of a record lies in the page of its entry.
fn local(length: usize, usable: usize, numbered: Numbered) -> usize {
    let share = |of: usize| usable.saturating_sub(12) * of / 255;
    let most = match numbered {
        Numbered::Yes => usable.saturating_sub(35),
        Numbered::No => share(64).saturating_sub(23),
    };
    if length <= most {
        return length;
    }
    let least = share(32).saturating_sub(23);
    let wanted = least + (length - least) % usable.saturating_sub(4).max(1);
    if wanted <= most { wanted } else { least }
}

fn short(page: &[u8], at: usize) -> io::Result<u16> {
    array(page, at)
        .map(u16::from_be_bytes)
        .ok_or_else(|| damaged("a page is too short"))
}

fn long(page: &[u8], at: usize) -> io::Result<u32> {
    array(page, at)
        .map(u32::from_be_bytes)
        .ok_or_else(|| damaged("a page is too short"))
}

/// A number of one to nine bytes, and how many.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(8).enumerate() {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, index + 1));
        }
    }
    Some((number << 8 | u64::from(*bytes.get(8)?), 9))
}
