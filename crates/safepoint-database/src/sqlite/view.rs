//! A database as pages: those of its file, with those of the log laid over them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use super::hold::MAGIC;
use super::wal::{Frames, array, read_some};
use crate::{DatabaseError, Keep, Piece};

/// How much is read and handed on at a time: little enough to stay near the processor
/// while it is digested, cut and compressed.
const RUN: usize = 256 * 1024;

/// A database as of one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    main: &'a File,
    log: Option<(&'a File, &'a BTreeMap<u32, u64>)>,
    header: [u8; 100],
    page_size: u32,
    pages: u32,
}

/// How text is written in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16Little,
    Utf16Big,
}

impl<'a> View<'a> {
    /// The pages of `main`, and over them those of a log.
    pub(super) fn new(main: &'a File, log: Option<(&'a File, &'a Frames)>) -> io::Result<Self> {
        let size = main.metadata()?.len();
        let mut view = Self {
            main,
            log: log.map(|(log, frames)| (log, &frames.newest)),
            header: [0; 100],
            page_size: 4096,
            pages: 0,
        };
        if size == 0 {
            return Ok(view); // a database without anything in it
        }
        read_some(main, &mut view.header, 0)?;
        view.page_size = page_size(&view.header)?;
        if let Some((_, frames)) = log {
            if frames.page_size != view.page_size {
                return Err(damaged("its log has pages of another size"));
            }
            view.pages = frames.pages;
        }
        let mut first = vec![0; view.page_size as usize];
        if log.is_some() {
            view.read(1, &mut first)?;
            view.header = array(&first, 0).unwrap_or([0; 100]);
        }
        if view.header.first_chunk() != Some(MAGIC) || page_size(&view.header)? != view.page_size {
            return Err(damaged("its first page is not that of a database"));
        }
        if view.header.get(19).is_some_and(|version| *version > 2) {
            return Err(damaged("its format is newer than we know"));
        }
        if log.is_none() {
            // The number in the header counts when whoever wrote last knew of it.
            let in_file = u32::try_from(size / u64::from(view.page_size))
                .map_err(|_| damaged("it has too many pages"))?;
            let said = view.number(28);
            let counts = said > 0 && view.number(24) == view.number(92);
            view.pages = if counts { said } else { in_file };
            if view.pages > in_file {
                return Err(damaged("it is shorter than it says"));
            }
        }
        Ok(view)
    }

    /// How many pages it has.
    pub(super) fn pages(&self) -> u32 {
        self.pages
    }

    /// How large they are.
    pub(super) fn page_size(&self) -> usize {
        self.page_size as usize
    }

    /// How much of each page is used.
    pub(super) fn usable(&self) -> usize {
        let reserved = self.header.get(20).copied().unwrap_or(0);
        self.page_size().saturating_sub(usize::from(reserved))
    }

    /// The number at an offset of the header.
    pub(super) fn number(&self, at: usize) -> u32 {
        array(&self.header, at).map_or(0, u32::from_be_bytes)
    }

    /// How text is written.
    pub(super) fn encoding(&self) -> Encoding {
        match self.number(56) {
            2 => Encoding::Utf16Little,
            3 => Encoding::Utf16Big,
            _ => Encoding::Utf8,
        }
    }

    /// Reads consecutive pages from `first` on, as many as fill `buffer`.
    pub(super) fn read(&self, first: u32, buffer: &mut [u8]) -> io::Result<()> {
        let size = self.page_size();
        let count = u32::try_from(buffer.len() / size).map_err(|_| damaged("too many pages"))?;
        let end = first.saturating_add(count);
        if first == 0 || end - 1 > self.pages {
            return Err(damaged("it refers to a page that it does not have"));
        }
        let at = u64::from(first - 1) * u64::from(self.page_size);
        // Nothing needs to be read from the file of pages that are all in the log.
        let over = self
            .log
            .map(|(log, newest)| (log, newest.range(first..end)));
        if over
            .as_ref()
            .is_none_or(|(_, found)| found.clone().count() < count as usize)
        {
            let got = read_some(self.main, buffer, at)?;
            // Pages that were never written: the log has them, or nobody asks for them.
            buffer.get_mut(got..).unwrap_or_default().fill(0);
        }
        for (log, (page, place)) in over
            .into_iter()
            .flat_map(|(log, found)| found.map(move |entry| (log, entry)))
        {
            let start = (page - first) as usize * size;
            let target = buffer.get_mut(start..start + size).unwrap_or_default();
            if read_some(log, target, *place)? < size {
                return Err(damaged("its log was cut short"));
            }
        }
        // The page with the bytes that are locked is never used, whatever is in it.
        let locked = 0x4000_0000 / self.page_size + 1;
        if (first..end).contains(&locked) {
            let start = (locked - first) as usize * size;
            buffer
                .get_mut(start..start + size)
                .unwrap_or_default()
                .fill(0);
        }
        Ok(())
    }

    /// Keeps all of it as one piece.
    pub(super) fn keep(
        &self,
        keep: &dyn Keep,
        fail: &dyn Fn(io::Error) -> DatabaseError,
    ) -> Result<Piece, DatabaseError> {
        let mut sink = keep.begin();
        let mut buffer = vec![0; RUN.max(self.page_size())];
        let most = u32::try_from(buffer.len() / self.page_size()).unwrap_or(1);
        let mut next = 1;
        while next <= self.pages {
            let count = most.min(self.pages - next + 1);
            let run = buffer
                .get_mut(..count as usize * self.page_size())
                .unwrap_or_default();
            self.read(next, run).map_err(fail)?;
            sink.push(run)?;
            next += count;
        }
        sink.finish()
    }
}

fn page_size(header: &[u8; 100]) -> io::Result<u32> {
    let size = match array(header, 16).map(u16::from_be_bytes) {
        Some(1) => 65536,
        Some(size) => u32::from(size),
        None => 0,
    };
    match size.is_power_of_two() && size >= 512 {
        true => Ok(size),
        false => Err(damaged("the size of its pages is wrong")),
    }
}

/// What is wrong with a database.
pub(super) fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
