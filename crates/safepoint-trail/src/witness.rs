//! The copy of the head that is kept outside the database, with the hashes under it.
//!
//! Whoever can write the database can rewrite all of it, but not this: a
//! directory with every leaf hash and the last signed head that is known to be
//! on disk. A cut tail, an edited last entry or a wholly rewritten log each
//! differ from it, and because all leaf hashes are here, the first entry that
//! differs can be named. Proofs are read from here too.
//!
//! | file | content |
//! |---|---|
//! | `hashes.0` | the leaf hashes, 32 bytes each |
//! | `hashes.1` … | the roots of complete subtrees of 256, 65,536 … leaves |
//! | `head` | two slots of 512 bytes, each a signed head padded with newlines |
//! | `store` | the address of the store, without password |
//! | `verifier` | the public key of the log, so that it is missed also where its private key is gone |
//! | `made_anew` | how many entries the database had when this copy was made from it; absent where it is as old as the trail |
//! | `cosigned/` | the newest head that each independent witness has cosigned |
//!
//! Hashes are written at fixed places before the head that covers them, and
//! the two slots take turns, each no larger than a disk sector. So a killed
//! process leaves a head with its hashes; writing them again is harmless.
//!
//! Nothing here is synced. The head in the database is the durable one, and
//! this copy may lag behind it, never run ahead. A power cut may leave the head
//! without some of its hashes; they are then made anew from the database, if
//! and only if what is there gives the root that was signed.

use std::cmp::Reverse;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use safepoint_model::Digest;
use safepoint_store::durable::{self, Access};
use safepoint_store::{StoreError, fault};

use crate::head::SignedHead;
use crate::note::PublicKey;
use crate::origin::Copy;
use crate::tree::{self, Frontier, Nodes};
use crate::verify::Bad;

/// The fault points of this module.
pub(crate) const FAULT_POINTS: [&str; 2] = ["witness.hashes_written", "witness.head_written"];

/// Stored levels of the tree are this many apart: 256 nodes below one above.
const LEVEL_HEIGHT: u32 = 8;
const SLOT: usize = 512;
const HASH: u64 = 32;

/// The file with the public key.
const VERIFIER: &str = "verifier";

/// The public key of the log whose copy is in a directory, if it says so.
pub(crate) fn key_in(directory: &Path) -> Option<PublicKey> {
    let text = std::fs::read_to_string(directory.join(VERIFIER)).ok()?;
    text.parse().ok()
}

/// The file that says that a copy is younger than its trail.
const MADE_ANEW: &str = "made_anew";

/// Behind the size in that file once the trail has an entry about it.
const RECORDED: &str = " recorded";

/// Whether the trail has an entry about a copy that was made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    Yes,
    No,
}

/// Says of the copy in a directory that it was made when the trail had `size` entries.
pub(crate) fn mark_made_anew(
    directory: &Path,
    size: u64,
    recorded: Recorded,
) -> Result<(), StoreError> {
    let end = match recorded {
        Recorded::Yes => RECORDED,
        Recorded::No => "",
    };
    let text = format!("{size}{end}\n");
    durable::write(&directory.join(MADE_ANEW), text.as_bytes(), Access::Private)
}

/// How many leaf hashes lie in a directory, whether or not it has a head.
pub(crate) fn count_hashes(directory: &Path) -> Result<u64, StoreError> {
    let path = directory.join("hashes.0");
    match std::fs::metadata(&path) {
        Ok(found) => Ok(found.len() / HASH),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::file("read", path, error)),
    }
}

/// The files of one log outside the database.
#[derive(Debug)]
pub(crate) struct Witness {
    directory: PathBuf,
    key: PublicKey,
    head: File,
    leaves: File,
    state: Mutex<State>,
    /// The size of the head last seen.
    covered: AtomicU64,
}

/// What this process knows of the files, so that it need not read and check them each time.
#[derive(Debug, Default)]
struct State {
    /// The bytes of both slots as last seen, and the head in them.
    seen: Option<(Vec<u8>, SignedHead)>,
    frontier: Option<Frontier>,
}

impl Witness {
    /// Makes the directory for a new log whose first head, over nothing, is
    /// `head`, and whose store is at `place`.
    pub(crate) fn create(
        directory: &Path,
        key: &PublicKey,
        place: &str,
        head: &SignedHead,
    ) -> Result<Self, StoreError> {
        durable::create_directory(directory)?;
        durable::write(&directory.join("hashes.0"), &[], Access::Private)?;
        durable::write(&directory.join("store"), place.as_bytes(), Access::Private)?;
        let verifier = key.to_string();
        durable::write(
            &directory.join(VERIFIER),
            verifier.as_bytes(),
            Access::Private,
        )?;
        let mut slots = padded(head)?.to_vec();
        slots.resize(2 * SLOT, b'\n');
        // Last, because its presence says that the rest is there.
        durable::write(&directory.join("head"), &slots, Access::Private)?;
        Self::open(directory, key)?
            .ok_or_else(|| StoreError::corrupted(directory.display().to_string(), "no head in it"))
    }

    /// Opens the directory; `None` when there is none.
    pub(crate) fn open(directory: &Path, key: &PublicKey) -> Result<Option<Self>, StoreError> {
        let path = directory.join("head");
        let head = match writable(&path) {
            Ok(head) => head,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("open", path, error)),
        };
        let path = directory.join("hashes.0");
        let leaves = writable(&path).map_err(|error| StoreError::file("open", path, error))?;
        Ok(Some(Self {
            directory: directory.to_owned(),
            key: key.clone(),
            head,
            leaves,
            state: Mutex::default(),
            covered: AtomicU64::new(0),
        }))
    }

    /// Since when this copy has been there.
    pub(crate) fn copy(&self) -> Copy {
        match self.made_anew() {
            Some((since, _)) => Copy::MadeAnew { since },
            None => Copy::Kept,
        }
    }

    /// How many entries the trail had when this copy was made from it, where it is younger.
    pub(crate) fn made_anew(&self) -> Option<(u64, Recorded)> {
        let text = std::fs::read_to_string(self.directory.join(MADE_ANEW)).ok()?;
        let text = text.trim_end();
        let (size, recorded) = match text.strip_suffix(RECORDED) {
            Some(size) => (size, Recorded::Yes),
            None => (text, Recorded::No),
        };
        // A file that says nothing that can be read says at least that there is one.
        Some((size.parse().unwrap_or(0), recorded))
    }

    /// Where the files are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many entries the head covered when this process last saw it. Reads no file, and
    /// waits for nobody.
    pub(crate) fn covered(&self) -> u64 {
        self.covered.load(Ordering::Relaxed)
    }

    /// The newest head in the slots, checked against the key.
    pub(crate) fn head(&self) -> Result<Result<SignedHead, Bad>, StoreError> {
        let mut state = self.lock()?;
        let head = self.read_head(&mut state);
        self.unlock();
        head
    }

    /// Brings the copy up to `head`. `leaves(from, take)` hands the leaf hashes
    /// from there up to the size of `head` to `take`.
    pub(crate) fn advance(
        &self,
        head: &SignedHead,
        leaves: impl Fn(u64, &mut dyn FnMut(Digest)) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock()?;
        let advanced = self.advance_locked(&mut state, head, &leaves);
        if advanced.is_err() {
            *state = State::default();
        }
        self.unlock();
        advanced
    }

    fn advance_locked(
        &self,
        state: &mut State,
        head: &SignedHead,
        leaves: &Leaves<'_>,
    ) -> Result<(), StoreError> {
        let current = self.read_head(state)?.map_err(StoreError::seal)?;
        if current.size() > head.size() || current == *head {
            return Ok(()); // another process was faster
        }
        let frontier = match state.frontier.take() {
            Some(frontier) if frontier.size() == current.size() => frontier,
            // Where a power cut has taken hashes, begin anew.
            _ => self.frontier_of(&current).unwrap_or(Frontier::empty()),
        };
        let grown = self.grow(frontier, &current, head, leaves)?;
        fault::point("witness.hashes_written");
        self.write_head(state, head)?;
        fault::point("witness.head_written");
        state.frontier = Some(grown);
        Ok(())
    }

    /// Makes all hashes under the present head anew.
    pub(crate) fn rebuild(
        &self,
        leaves: impl Fn(u64, &mut dyn FnMut(Digest)) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut state = self.lock()?;
        state.frontier = None;
        let rebuilt = self.read_head(&mut state).and_then(|current| {
            let current = current.map_err(StoreError::seal)?;
            self.grow(Frontier::empty(), &current, &current, &leaves)
        });
        self.unlock();
        rebuilt.map(drop)
    }

    /// The right edge of the tree under `head`, if the hashes for it are there and right.
    pub(crate) fn frontier_of(&self, head: &SignedHead) -> Option<Frontier> {
        let frontier = tree::frontier(self, head.size()).ok()?;
        (frontier.root() == head.root()).then_some(frontier)
    }

    /// Writes the hashes from `frontier` up to `head`, which must continue `current`.
    fn grow(
        &self,
        mut frontier: Frontier,
        current: &SignedHead,
        head: &SignedHead,
        leaves: &Leaves<'_>,
    ) -> Result<Frontier, StoreError> {
        let from = frontier.size();
        let mut continues = from == current.size();
        if !continues && root_over(current.size(), leaves)? != current.root() {
            // What is there says which entry was changed: it is not written over with that one.
            return Err(not_continued(current, head));
        }
        let mut hashes = HashWriter::new(self, from);
        let mut written = Ok(());
        leaves(from, &mut |leaf| {
            if frontier.size() >= head.size() {
                return; // added since
            }
            frontier.push(leaf, |height, hash| hashes.push(height, hash));
            if frontier.size() == current.size() {
                continues = frontier.root() == current.root();
            }
            if written.is_ok() && hashes.is_large() {
                written = hashes.flush();
            }
        })?;
        written.and_then(|()| hashes.flush())?;
        if !continues || frontier.size() != head.size() || frontier.root() != head.root() {
            return Err(not_continued(current, head));
        }
        Ok(frontier)
    }

    /// Writes hashes of one level from `place` on.
    fn write_hashes(&self, level: u32, place: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.level_path(level);
        let written = if level == 0 {
            self.leaves.write_all_at(bytes, place * HASH)
        } else {
            writable_or_new(&path).and_then(|file| file.write_all_at(bytes, place * HASH))
        };
        written.map_err(|error| StoreError::file("write", path, error))
    }

    /// Writes `head` into the slot that does not hold the present one.
    fn write_head(&self, state: &mut State, head: &SignedHead) -> Result<(), StoreError> {
        let (mut slots, current) = state.seen.take().unwrap_or_else(|| {
            (vec![b'\n'; 2 * SLOT], head.clone()) // not reached: the head was just read
        });
        let second = slots.get(..SLOT) == Some(padded(&current)?.as_slice());
        let place = if second { SLOT } else { 0 };
        let bytes = padded(head)?;
        self.head
            .write_all_at(&bytes, place as u64)
            .map_err(|error| StoreError::file("write", self.directory.join("head"), error))?;
        if let Some(slot) = slots.get_mut(place..place + SLOT) {
            slot.copy_from_slice(&bytes);
        }
        state.seen = Some((slots, head.clone()));
        self.covered.store(head.size(), Ordering::Relaxed);
        Ok(())
    }

    fn read_head(&self, state: &mut State) -> Result<Result<SignedHead, Bad>, StoreError> {
        let mut slots = vec![0; 2 * SLOT];
        self.head
            .read_exact_at(&mut slots, 0)
            .map_err(|error| StoreError::file("read", self.directory.join("head"), error))?;
        if let Some((seen, head)) = &state.seen
            && *seen == slots
        {
            return Ok(Ok(head.clone()));
        }
        let mut notes: Vec<String> = slots
            .chunks(SLOT)
            .filter_map(|slot| std::str::from_utf8(slot).ok())
            .map(|slot| format!("{}\n", slot.trim_end_matches('\n')))
            .collect();
        // The one that says it is the newest first: most often only its signature is checked.
        notes.sort_by_key(|note| Reverse(claimed_size(note)));
        let newest = notes
            .iter()
            .find_map(|note| SignedHead::open(note, &self.key).ok());
        Ok(match newest {
            Some(head) => {
                state.seen = Some((slots, head.clone()));
                self.covered.store(head.size(), Ordering::Relaxed);
                Ok(head)
            }
            None => Err(Bad::at(
                0,
                "the head kept outside the database is not signed by the key of this trail",
            )),
        })
    }

    /// Leaf hashes `from..to`, as they were when they were signed; fewer where some are lost.
    pub(crate) fn leaves(&self, from: u64, to: u64) -> Result<Vec<Digest>, StoreError> {
        let mut bytes = vec![0; (to.saturating_sub(from) * HASH) as usize];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.leaves.read_at(rest, from * HASH + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) => return Err(StoreError::file("read", self.level_path(0), error)),
            }
        }
        bytes.truncate(filled);
        Ok(digests(&bytes))
    }

    fn read_hashes(&self, level: u32, from: u64, count: u64) -> Result<Vec<Digest>, StoreError> {
        let path = self.level_path(level);
        let mut bytes = vec![0; (count * HASH) as usize];
        let read = if level == 0 {
            self.leaves.read_exact_at(&mut bytes, from * HASH)
        } else {
            File::open(&path).and_then(|file| file.read_exact_at(&mut bytes, from * HASH))
        };
        read.map_err(|error| StoreError::file("read", path, error))?;
        Ok(digests(&bytes))
    }

    fn level_path(&self, level: u32) -> PathBuf {
        self.directory.join(format!("hashes.{level}"))
    }

    /// Keeps other threads and other processes out.
    fn lock(&self) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        rustix::fs::flock(&self.head, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| StoreError::file("lock", self.directory.join("head"), error.into()))?;
        Ok(state)
    }

    fn unlock(&self) {
        // Closing the file unlocks it too; failing to is no reason to fail what was done.
        let _ = rustix::fs::flock(&self.head, rustix::fs::FlockOperation::Unlock);
    }
}

impl Nodes for Witness {
    type Error = StoreError;

    /// Levels in between are computed from the stored one below, at most 128 nodes.
    fn node(&self, height: u32, index: u64) -> Result<Digest, StoreError> {
        let (level, above) = (height / LEVEL_HEIGHT, height % LEVEL_HEIGHT);
        let mut nodes = self.read_hashes(level, index << above, 1 << above)?;
        while nodes.len() > 1 {
            nodes = nodes
                .as_chunks::<2>()
                .0
                .iter()
                .map(|[left, right]| tree::node_hash(left, right))
                .collect();
        }
        nodes.first().copied().ok_or_else(|| {
            StoreError::corrupted(self.level_path(level).display().to_string(), "empty")
        })
    }
}

/// The root over the first `size` leaves.
fn root_over(size: u64, leaves: &Leaves<'_>) -> Result<Digest, StoreError> {
    let mut frontier = Frontier::empty();
    leaves(0, &mut |leaf| {
        if frontier.size() < size {
            frontier.push(leaf, |_, _| {});
        }
    })?;
    Ok(frontier.root())
}

fn not_continued(current: &SignedHead, head: &SignedHead) -> StoreError {
    StoreError::seal(Bad::at(
        current.size().min(head.size()),
        "the database does not continue what was signed before",
    ))
}

/// Hands the leaf hashes from a place on to whoever takes them.
type Leaves<'a> = dyn Fn(u64, &mut dyn FnMut(Digest)) -> Result<(), StoreError> + 'a;

fn digests(bytes: &[u8]) -> Vec<Digest> {
    let (hashes, _) = bytes.as_chunks::<32>();
    hashes
        .iter()
        .map(|hash| Digest::from_bytes(*hash))
        .collect()
}

/// Collects the hashes of each level and writes them in large pieces.
struct HashWriter<'a> {
    witness: &'a Witness,
    /// For each level: the place of the next hash, and the hashes waiting to be written from there.
    levels: Vec<(u64, Vec<u8>)>,
}

impl<'a> HashWriter<'a> {
    /// A writer of what leaves from `from` on complete.
    fn new(witness: &'a Witness, from: u64) -> Self {
        let place = |level: u32| from >> (level * LEVEL_HEIGHT);
        Self {
            witness,
            levels: (0..u64::BITS / LEVEL_HEIGHT)
                .map(|level| (place(level), Vec::new()))
                .collect(),
        }
    }

    fn push(&mut self, height: u32, hash: Digest) {
        if height.is_multiple_of(LEVEL_HEIGHT)
            && let Some((_, bytes)) = self.levels.get_mut((height / LEVEL_HEIGHT) as usize)
        {
            bytes.extend_from_slice(hash.as_bytes());
        }
    }

    fn is_large(&self) -> bool {
        let leaves = self.levels.first();
        leaves.is_some_and(|(_, bytes)| bytes.len() >= 1 << 20)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        for (level, (place, bytes)) in (0..).zip(&mut self.levels) {
            if !bytes.is_empty() {
                self.witness.write_hashes(level, *place, bytes)?;
                *place += bytes.len() as u64 / HASH;
                bytes.clear();
            }
        }
        Ok(())
    }
}

/// The size in the second line of a note, whoever wrote it.
fn claimed_size(note: &str) -> Option<u64> {
    note.lines().nth(1)?.parse().ok()
}

/// The note of a head, padded to the size of a slot.
fn padded(head: &SignedHead) -> Result<[u8; SLOT], StoreError> {
    let mut slot = [b'\n'; SLOT];
    let note = head.note().as_bytes();
    let place = slot.get_mut(..note.len()).ok_or_else(|| {
        StoreError::corrupted("the trail", "its signed head is longer than 512 bytes")
    })?;
    place.copy_from_slice(note);
    Ok(slot)
}

#[expect(
    clippy::disallowed_methods,
    reason = "these files are written in place, at fixed offsets, and need no rename"
)]
fn writable(path: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).open(path)
}

#[expect(clippy::disallowed_methods, reason = "as above")]
fn writable_or_new(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}
