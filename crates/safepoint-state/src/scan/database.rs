//! SQLite databases among the files: database, log and journal are read together,
//! under SQLite's own locks, so that what is kept is one moment of the database
//! however many write to it.
//!
//! Nothing is opened through SQLite here, and nothing is written: what is kept
//! are the files as they lie there.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::fs::fstat;
use safepoint_database::sqlite::{self, Held};

use super::leaf::Leaf;
use super::read::{self, Outcome, Sniff};
use super::stat::Found;
use super::walk::{Item, Walk};
use crate::StateError;
use crate::path;
use crate::sensitive;
use crate::tree::Node;

/// How long to wait for somebody who writes. Then the file is read like any other,
/// which fails when it does not hold still.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is read again because somebody connected meanwhile.
const TRIES: u32 = 4;
const PIECE: usize = 1 << 20;

/// What SQLite keeps beside a database.
const BESIDE: [&[u8]; 3] = [b"-wal", b"-journal", b"-shm"];

/// The name of the database that a file belongs to, if it may belong to one.
pub(super) fn owner(name: &[u8]) -> Option<&[u8]> {
    BESIDE.iter().find_map(|end| name.strip_suffix(*end))
}

/// What one database and the files beside it gave.
struct Group {
    leaves: Vec<Leaf>,
    names: Vec<Vec<u8>>,
}

impl Walk<'_> {
    /// Captures the databases of a directory of which anything has changed, and takes
    /// them out of what is still to be read.
    pub(super) fn databases(
        &self,
        handle: std::os::fd::BorrowedFd<'_>,
        directory: &[u8],
        changed: &mut Vec<Item>,
        same: &mut Vec<Item>,
    ) -> Result<Vec<Leaf>, StateError> {
        let mut mains: Vec<Vec<u8>> = Vec::new();
        for item in changed.iter() {
            let main = owner(&item.name).unwrap_or(&item.name);
            let is_main = |item: &&Item| item.name == main && looks_like_one(&item.found);
            let there = changed.iter().chain(same.iter()).any(|item| is_main(&item));
            if there && !mains.iter().any(|known| known == main) {
                mains.push(main.to_vec());
            }
        }
        let mut leaves = Vec::new();
        for main in mains {
            let beside: Vec<Vec<u8>> = changed
                .iter()
                .chain(same.iter())
                .filter(|item| item.found.is_file() && owner(&item.name) == Some(&main))
                .map(|item| item.name.clone())
                .collect();
            let Some(group) = self.database(handle, directory, &main, &beside)? else {
                continue;
            };
            let taken = |item: &Item| group.names.contains(&item.name);
            changed.retain(|item| !taken(item));
            same.retain(|item| !taken(item));
            leaves.extend(group.leaves);
        }
        Ok(leaves)
    }

    /// Captures one database; `None` when it is none, or nobody lets go of it.
    fn database(
        &self,
        handle: std::os::fd::BorrowedFd<'_>,
        directory: &[u8],
        main: &[u8],
        beside: &[Vec<u8>],
    ) -> Result<Option<Group>, StateError> {
        let relative = path::join(directory, main);
        let full = self.request.workspace.join(path::as_path(&relative));
        for _ in 0..TRIES {
            let Ok(Some(held)) = sqlite::hold(&full, PATIENCE) else {
                return Ok(None);
            };
            let mut group = Group {
                leaves: Vec::new(),
                names: vec![main.to_vec()],
            };
            let Some(file) = held.file() else {
                return Ok(None);
            };
            match self.held_file(file, main, &relative, Length::Whole, Sniff::Yes)? {
                Some(leaf) => group.leaves.push(leaf),
                None => continue, // it did not hold still after all
            }
            let mut whole = true;
            for name in beside {
                group.names.push(name.clone());
                let path = path::join(directory, name);
                match self.beside(handle, &held, name, &path)? {
                    Ok(leaf) => group.leaves.extend(leaf),
                    Err(()) => whole = false,
                }
            }
            if whole && held.is_intact() {
                return Ok(Some(group));
            }
        }
        Ok(None)
    }

    /// Captures a file beside a held database. `Err(())` when all is to be read again.
    fn beside(
        &self,
        handle: std::os::fd::BorrowedFd<'_>,
        held: &Held,
        name: &[u8],
        path: &[u8],
    ) -> Result<Result<Option<Leaf>, ()>, StateError> {
        if name.ends_with(b"-wal")
            && let Some((log, length)) = held.log()
        {
            // Behind what counts, writers go on: it is kept only if nobody does.
            let exact = self.held_file(log, name, path, Length::Whole, Sniff::No)?;
            let leaf = match exact {
                Some(leaf) => Some(leaf),
                None => self.held_file(log, name, path, Length::First(length), Sniff::No)?,
            };
            return Ok(leaf.map(Some).ok_or(()));
        }
        let outcome = match read::file(handle, name, path, self.sink, Sniff::No, None) {
            // A journal of a writer at work: the database is whole without it.
            Err(StateError::Torn { .. }) if !held.has_hot_journal() => return Ok(Ok(None)),
            Err(StateError::Torn { .. }) => return Ok(Err(())),
            other => other?,
        };
        Ok(Ok(match outcome {
            Outcome::Gone | Outcome::Secret(..) => None,
            Outcome::Kept {
                node,
                attributes,
                found,
            } => {
                let mut entry = found.entry(name, node);
                entry.attributes = attributes;
                Some(self.still(entry, &found))
            }
        }))
    }

    /// Captures a file through a handle that keeps it still. `None` when its whole length
    /// was wanted and it changed.
    fn held_file(
        &self,
        file: &File,
        name: &[u8],
        path: &[u8],
        length: Length,
        sniff: Sniff,
    ) -> Result<Option<Leaf>, StateError> {
        let failed = |error: std::io::Error| StateError::file("read", path::as_path(path), error);
        let look = || -> Result<Found, StateError> {
            let stat = fstat(file).map_err(|error| failed(error.into()))?;
            Ok(Found::of(&stat))
        };
        let before = look()?;
        let size = match length {
            Length::Whole => before.size,
            Length::First(length) => length,
        };
        let mut first = true;
        let mut large = self.sink.large();
        let mut small = Vec::new();
        let mut at = 0;
        let mut piece = vec![0; PIECE];
        while at < size {
            let wanted = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
            let bytes = piece.get_mut(..wanted).unwrap_or_default();
            file.read_exact_at(bytes, at).map_err(failed)?;
            if std::mem::take(&mut first)
                && sniff == Sniff::Yes
                && let Some(reason) = sensitive::by_content(bytes)
            {
                return Ok(Some(self.flagged(name, path, reason, &before)));
            }
            match size <= crate::objects::LARGE as u64 {
                true => small.extend_from_slice(bytes),
                false => large.push(bytes)?,
            }
            at += wanted as u64;
        }
        let content = match size <= crate::objects::LARGE as u64 {
            true => {
                let content = crate::ContentId::of(&small);
                self.sink.content(content, small)?;
                content
            }
            false => large.finish()?,
        };
        if length == Length::Whole && !before.same_state(&look()?) {
            return Ok(None);
        }
        let mut entry = before.entry(
            name,
            Node::File {
                size,
                content,
                sparse: before.blocks * 512 < size,
                link: before.link(),
            },
        );
        entry.attributes = read::attributes(file.as_fd()).map_err(|error| failed(error.into()))?;
        self.request.progress.add(0, size);
        Ok(Some(self.still(entry, &before)))
    }
}

/// How much of a file is captured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    Whole,
    First(u64),
}

/// A database has whole pages.
fn looks_like_one(found: &Found) -> bool {
    found.is_file() && found.size >= 512 && found.size.is_multiple_of(512)
}
