//! A captured database as a file of ours, for SQLite to read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use tempfile::NamedTempFile;

use super::capture::{TABLES, WHOLE};
use super::view::View;
use super::wal::read_some;
use crate::{Contents, DatabaseError, Image, Piece};

/// A captured database in a file that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Stored {
    file: NamedTempFile,
    /// The two bytes of the header that tell the journal mode.
    mode: [u8; 2],
}

/// The database of an image.
pub(super) fn piece(image: &Image) -> Result<&Piece, DatabaseError> {
    image
        .piece(WHOLE)
        .or_else(|| image.piece(TABLES))
        .ok_or_else(|| DatabaseError::Unsupported {
            address: "the image of a SQLite database".into(),
            why: "it has no file in it".into(),
        })
}

impl Stored {
    /// Writes the database of an image to a file in `scratch`.
    pub(crate) fn new(
        image: &Image,
        contents: &dyn Contents,
        scratch: &Path,
    ) -> Result<Self, DatabaseError> {
        let failed = |error: io::Error| DatabaseError::file("write", scratch, error);
        let mut file = tempfile::Builder::new()
            .prefix("sqlite-")
            .suffix(".db")
            .tempfile_in(scratch)
            .map_err(failed)?;
        contents.copy(piece(image)?, &mut |bytes| {
            file.write_all(bytes).map_err(failed)
        })?;
        // Without a log beside it: there is none.
        let mut mode = [0; 2];
        if read_some(file.as_file(), &mut mode, 18).map_err(failed)? == mode.len() {
            file.as_file().write_all_at(&[1, 1], 18).map_err(failed)?;
        }
        Ok(Self { file, mode })
    }

    pub(super) fn file(&self) -> &File {
        self.file.as_file()
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The bytes at 18 of the header as they were captured.
    pub(super) fn mode(&self) -> [u8; 2] {
        self.mode
    }

    pub(super) fn view(&self) -> io::Result<View<'_>> {
        View::new(self.file.as_file(), None)
    }

    /// Its address for SQLite, as a file that nobody changes: nothing is locked, and
    /// nothing made beside it.
    pub(super) fn address(&self) -> String {
        let mut address = String::from("file:");
        for byte in self.path().as_os_str().as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                    address.push(char::from(*byte));
                }
                _ => address.push_str(&format!("%{byte:02X}")),
            }
        }
        address.push_str("?immutable=1");
        address
    }

    /// A connection that may write to it.
    pub(super) fn open_for_writing(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        #[expect(
            clippy::disallowed_methods,
            reason = "it is a file of ours, and no store"
        )]
        Connection::open_with_flags(self.path(), flags)
    }

    /// Gives its header the journal mode that was captured: it is read as pages from now on.
    pub(super) fn put_mode_back(&self) -> io::Result<()> {
        self.file.as_file().write_all_at(&self.mode, 18)
    }

    /// A connection that can only read it.
    pub(super) fn open(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        #[expect(
            clippy::disallowed_methods,
            reason = "it is a file of ours, and no store"
        )]
        Connection::open_with_flags(self.address(), flags)
    }
}
