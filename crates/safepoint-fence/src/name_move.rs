//! Moving names outside every fence, without moving one that somebody else relies on.
//!
//! Safepoint's own roll backs and changes are held by no supervisor. So whoever makes one says so
//! before it moves the first name, and then looks whether there is a [`Freeze`](crate::Freeze)
//! already; a freeze is made first, too, and then looks who moves names. So one of the two sees
//! the other. While a move goes on, a freeze waits for its end; while there is a freeze, no move
//! begins.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::FreezeScope;
use crate::freeze::{
    StandingFreeze, TREE, create_directory, make_open_pipe, remove_pipe, standing_freezes,
    write_scope,
};

/// Tells the moves of one process apart.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Leave to move names in some places, until it is dropped.
#[derive(Debug)]
pub struct NameMove {
    directory: PathBuf,
    name: String,
    /// Open: whoever looks at its name sees that we live.
    _pipe: File,
}

/// Whether names may be moved.
#[derive(Debug)]
pub enum NameMoveStart {
    /// They may, until this is dropped.
    Begun(NameMove),
    /// Somebody relies on where one of them leads.
    Frozen(StandingFreeze),
}

impl NameMove {
    /// Says in the directory of freezes that names in these places are about to move. Nothing may
    /// be moved where there is a freeze already.
    pub fn begin(directory: &Path, places: &[PathBuf]) -> std::io::Result<NameMoveStart> {
        create_directory(directory)?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TREE}{}-own-{number}", std::process::id());
        // Whoever had this name before is gone.
        remove_pipe(directory, &name);
        let scope = FreezeScope {
            places: places.to_vec(),
            keeper: None,
        };
        write_scope(directory, &name, &scope)?;
        let pipe = make_open_pipe(directory, &name);
        let pipe = pipe.inspect_err(|_| remove_pipe(directory, &name))?;
        let begun = Self {
            directory: directory.to_owned(),
            name,
            _pipe: pipe,
        };
        Ok(match find_freeze(directory, places)? {
            None => NameMoveStart::Begun(begun),
            Some(freeze) => NameMoveStart::Frozen(freeze),
        })
    }
}

impl Drop for NameMove {
    fn drop(&mut self) {
        remove_pipe(&self.directory, &self.name);
    }
}

/// A freeze because of which no name in these places may move, if there is one.
pub fn find_freeze(
    directory: &Path,
    places: &[PathBuf],
) -> std::io::Result<Option<StandingFreeze>> {
    let standing = standing_freezes(directory)?;
    Ok(standing.into_iter().find(|it| it.concerns(places)))
}
