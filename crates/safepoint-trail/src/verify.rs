//! Checking the whole trail, and naming the first entry that is not what it was.
//!
//! Every entry is hashed anew and compared with three things: the hash beside
//! it, the leaf hash kept outside the database, and the `prev_hash` of what
//! follows it in its stream. The tree over the new hashes must give both the
//! signed head in the database and the one outside. Pieces of the trail are
//! checked on all cores and put together in order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use safepoint_model::{Digest, EntryId, Frame};
use safepoint_store::{Flow, Row, StoreError, Value, query_one};
use serde::Serialize;

use crate::blocks;
use crate::entry::{ENTRY_TAG, Fields, blob_of};
use crate::head::SignedHead;
use crate::note::PublicKey;
use crate::stored::StoredHead;
use crate::tree::Frontier;
use crate::{Copy, Trail, TrailError};

/// How many entries are checked at a time by one thread.
const PIECE: u64 = 8 * blocks::BLOCK;

/// The first entry that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bad {
    /// Its place in the trail.
    pub seq: u64,
    /// Its id, if it can still be told.
    pub id: Option<String>,
    /// What is wrong.
    pub reason: String,
}

impl Bad {
    /// Something wrong at this place.
    pub fn at(seq: u64, reason: impl Into<String>) -> Self {
        Self {
            seq,
            id: None,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}", self.seq)?;
        if let Some(id) = &self.id {
            write!(f, " ({id})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Bad {}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// How many entries were checked and found good.
    pub checked: u64,
    /// How many of them the head outside the database covers.
    pub witnessed: u64,
    /// Whether that copy was there to compare with.
    pub copy: Copy,
    /// The first bad one.
    pub first_bad: Option<Bad>,
}

impl Trail {
    /// Checks everything. `progress` hears how many entries have been checked so far.
    pub fn verify(&self, progress: impl FnMut(u64)) -> Result<Verification, TrailError> {
        // The head outside is read first: it may only lag behind what is read next.
        let outside = self.witness().head()?;
        let Extent {
            stored,
            lowest,
            highest,
            last_block,
        } = self.store().read(Extent::read)?;
        let inside = match &stored {
            Some(stored) => open_stored(stored, self.key()),
            None => Err("the head in the database is gone"),
        };
        let witnessed = outside.as_ref().map_or(0, SignedHead::size);
        let covered = inside.as_ref().map_or(witnessed, SignedHead::size);
        let end = witnessed.max(covered);
        let mut check = Check {
            trail: self,
            outside: outside.as_ref().ok(),
            inside: inside.as_ref().ok(),
            peaks: stored.as_ref().map(|stored| stored.peaks.as_slice()),
            frontier: Frontier::empty(),
            streams: HashMap::new(),
            suspect: None,
        };
        let scanned = check.scan(end, progress)?;
        let (checked, suspect) = (check.frontier.size(), check.suspect.take());
        let beyond = i64::try_from(end).is_ok_and(|end| highest >= end);
        let found = [
            scanned,
            (lowest < 0)
                .then(|| Bad::at(0, format!("an entry stands before the first, at {lowest}"))),
            beyond.then(|| Bad::at(end, "it is not covered by the signed head")),
            (last_block > blocks::of(highest)).then(|| {
                Bad::at(
                    end,
                    "the table of blocks names what is beyond the last entry",
                )
            }),
            outside.as_ref().err().cloned(),
            inside.err().map(|reason| Bad::at(witnessed, reason)),
        ];
        let mut first_bad = found.into_iter().flatten().min_by_key(|bad| bad.seq);
        if first_bad.is_none() && suspect.is_some() {
            // The entries give the root that was signed, so it is the hashes
            // outside that are damaged: a power cut took them.
            self.rebuild_witness()?;
        }
        if first_bad.is_none() {
            // What is left is a trail that was exchanged with its copy and its key.
            first_bad = self.contradicted()?;
        }
        Ok(Verification {
            checked,
            witnessed,
            copy: self.copy(),
            first_bad: first_bad.map(|bad| self.named(bad)),
        })
    }

    /// Adds the id that stands at the place of a bad entry, if there is one.
    fn named(&self, mut bad: Bad) -> Bad {
        let seq = i64::try_from(bad.seq).unwrap_or(i64::MAX);
        let id = self.store().read(|sql| {
            query_one(
                sql,
                "SELECT id FROM trail_entries WHERE seq = ?1",
                &[Value::Integer(seq)],
                |row| Ok(row.text(0)?.to_owned()),
            )
        });
        // Only if it is one: what stands in a tampered row may be anything.
        bad.id = id
            .unwrap_or(None::<String>)
            .filter(|text| text.parse::<EntryId>().is_ok());
        bad
    }
}

/// How far the trail reaches, at one moment.
struct Extent {
    stored: Option<StoredHead>,
    lowest: i64,
    /// -1 in an empty trail.
    highest: i64,
    /// -1 without any.
    last_block: i64,
}

impl Extent {
    fn read(sql: &mut dyn safepoint_store::Sql) -> Result<Self, StoreError> {
        // Each on its own, so that the database looks at one end of an index; NULL without a row.
        let mut bound = |statement: &str, none: i64| -> Result<i64, StoreError> {
            let found = query_one(sql, statement, &[], |row| {
                Ok(row.integer(0).unwrap_or(none))
            });
            Ok(found?.unwrap_or(none))
        };
        Ok(Self {
            lowest: bound("SELECT min(seq) FROM trail_entries", 0)?,
            highest: bound("SELECT max(seq) FROM trail_entries", -1)?,
            last_block: bound("SELECT max(block) FROM trail_blocks", -1)?,
            stored: StoredHead::read(sql)?,
        })
    }
}

fn open_stored(stored: &StoredHead, key: &PublicKey) -> Result<SignedHead, &'static str> {
    let head = SignedHead::open(&stored.note, key)
        .map_err(|_| "the head in the database is not signed by the key of this trail")?;
    if head.size() != stored.size {
        return Err("the head in the database does not match its signature");
    }
    Ok(head)
}

/// The state of one verification: what has been put together so far.
struct Check<'a> {
    trail: &'a Trail,
    outside: Option<&'a SignedHead>,
    inside: Option<&'a SignedHead>,
    /// The peaks beside the head in the database.
    peaks: Option<&'a [Digest]>,
    frontier: Frontier,
    streams: HashMap<Vec<u8>, Digest>,
    /// The first entry that differs from the hash outside. Whether the entry or
    /// the hash is wrong is known when the signed root is reached.
    suspect: Option<u64>,
}

/// What one thread found in one piece of the trail.
struct Piece {
    leaves: Vec<Digest>,
    /// The first entry of each stream in this piece: where it stands, and what it says came before.
    opened: Vec<(Vec<u8>, u64, Option<Digest>)>,
    /// The last hash of each stream in this piece.
    closed: HashMap<Vec<u8>, Digest>,
    /// What should be noted, for each block of this piece.
    names: HashSet<(u64, Vec<u8>)>,
    /// Of the last entry: kind, actor and action, so that not each one looks into `names`.
    last_names: [Vec<u8>; 3],
    first_time: i64,
    last_time: i64,
    /// The first entry that differs from the hash outside, or has none there.
    suspect: Option<u64>,
    bad: Option<Bad>,
}

impl Check<'_> {
    /// Checks entries `0..end` and returns the first bad one.
    fn scan(&mut self, end: u64, mut progress: impl FnMut(u64)) -> Result<Option<Bad>, TrailError> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let (trail, outside) = (self.trail, self.outside);
        let witnessed = outside.map_or(0, SignedHead::size);
        std::thread::scope(|scope| {
            let (send, receive) = mpsc::sync_channel(threads);
            for _ in 0..threads {
                let (send, next, stop) = (send.clone(), &next, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let from = next.fetch_add(PIECE, Ordering::Relaxed);
                        if from >= end {
                            break;
                        }
                        let piece = read_piece(trail, from, end.min(from + PIECE), witnessed);
                        if send.send((from, piece)).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let mut last_time = i64::MIN;
            let mut waiting = BTreeMap::new();
            let mut bad = None;
            for (from, piece) in receive {
                waiting.insert(from, piece);
                while bad.is_none()
                    && let Some(piece) = waiting.remove(&self.frontier.size())
                {
                    let piece = piece?;
                    bad = self.join(piece, &mut last_time);
                    progress(self.frontier.size());
                }
                if bad.is_some() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            Ok(bad)
        })
    }

    /// Puts the next piece behind what has been checked.
    fn join(&mut self, piece: Piece, last_time: &mut i64) -> Option<Bad> {
        let from = self.frontier.size();
        let mut bad = piece.bad;
        let mut note = |found: Bad| {
            if bad.as_ref().is_none_or(|bad| found.seq <= bad.seq) {
                bad = Some(found);
            }
        };
        if !piece.leaves.is_empty() && piece.first_time <= *last_time {
            note(Bad::at(from, OUT_OF_TIME));
        }
        for (stream, seq, prev) in piece.opened {
            if self.streams.get(&stream) != prev.as_ref() {
                note(Bad::at(seq, OUT_OF_CHAIN));
            }
        }
        self.suspect = self.suspect.or(piece.suspect);
        for leaf in piece.leaves {
            self.frontier.push(leaf, |_, _| {});
            if let Some(found) = self.check_heads() {
                note(found);
            }
        }
        self.streams.extend(piece.closed);
        *last_time = piece.last_time;
        // Where the scan ends early, the signed root is never reached.
        let undecided = self.suspect.filter(|_| {
            self.outside
                .is_some_and(|head| self.frontier.size() < head.size())
        });
        match (bad, undecided) {
            (Some(bad), Some(suspect)) if suspect <= bad.seq => Some(Bad::at(suspect, NOT_SIGNED)),
            (bad, _) => bad,
        }
    }

    /// Compares the tree over the entries so far with the heads that are signed for this size.
    fn check_heads(&self) -> Option<Bad> {
        let size = self.frontier.size();
        let signed = |head: &&SignedHead| head.size() == size;
        let (outside, inside) = (self.outside.filter(signed), self.inside.filter(signed));
        if outside.is_none() && inside.is_none() {
            return None;
        }
        let root = self.frontier.root();
        if outside.is_some_and(|head| head.root() != root) {
            return Some(Bad::at(self.suspect.unwrap_or(size - 1), NOT_SIGNED));
        }
        if inside.is_some_and(|head| head.root() != root) {
            let reason = "the root over the entries up to here is not the signed one";
            return Some(Bad::at(size - 1, reason));
        }
        let known = inside.is_none() || self.peaks == Some(self.frontier.peaks());
        (!known).then(|| {
            Bad::at(
                size - 1,
                "the peaks beside the signed head are not those of the tree",
            )
        })
    }
}

const NOT_SIGNED: &str = "it is not the entry that was signed";
const OUT_OF_TIME: &str = "its time is not after that of the entry before it";
const OUT_OF_CHAIN: &str = "it does not follow the entry before it in its stream";

/// Hashes entries `from..to` anew.
fn read_piece(trail: &Trail, from: u64, to: u64, witnessed: u64) -> Result<Piece, StoreError> {
    let known = if from < witnessed {
        trail.witness().leaves(from, to.min(witnessed))?
    } else {
        Vec::new()
    };
    let mut piece = Piece {
        leaves: Vec::with_capacity((to - from) as usize),
        opened: Vec::new(),
        closed: HashMap::new(),
        names: HashSet::new(),
        last_names: Default::default(),
        suspect: None,
        first_time: i64::MAX,
        last_time: i64::MIN,
        bad: None,
    };
    let mut frame = Frame::new(ENTRY_TAG);
    let bound = |seq| Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX));
    let noted = trail.store().read(|sql| {
        sql.query(
            "SELECT seq, id, time, stream, actor, kind, action_id, body, prev_hash, hash \
             FROM trail_entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
            &[bound(from), bound(to)],
            &mut |row| {
                let seq = from + piece.leaves.len() as u64;
                let known = known.get(piece.leaves.len());
                match check_entry(trail, row, seq, &mut frame, &mut piece) {
                    Ok(()) => {
                        if seq < witnessed && piece.leaves.last() != known {
                            piece.suspect.get_or_insert(seq);
                        }
                        Ok(Flow::More)
                    }
                    Err(reason) => {
                        piece.bad = Some(Bad::at(seq, reason));
                        Ok(Flow::Enough)
                    }
                }
            },
        )?;
        blocks::names_in(sql, from / blocks::BLOCK, to.div_ceil(blocks::BLOCK))
    })?;
    let reached = from + piece.leaves.len() as u64;
    if piece.bad.is_none() && reached < to {
        piece.bad = Some(Bad::at(reached, "it is missing"));
    }
    if let Some(bad) = misnoted(&piece.names, &noted, reached)
        && piece.bad.as_ref().is_none_or(|first| bad.seq < first.seq)
    {
        piece.bad = Some(bad);
    }
    Ok(piece)
}

/// The first block of which something else is noted than what was found in it. What nothing was
/// found of is looked for only where all of a block was read: the last one may have grown.
fn misnoted(
    names: &HashSet<(u64, Vec<u8>)>,
    noted: &HashSet<(u64, Vec<u8>)>,
    reached: u64,
) -> Option<Bad> {
    let missing = names.difference(noted).map(|(block, _)| {
        let reason = "a kind, actor or action from here on is missing from the table of blocks";
        (*block, reason)
    });
    let whole = |block: u64| (block + 1) * blocks::BLOCK <= reached;
    let extra = noted.difference(names).filter(|(block, _)| whole(*block));
    let extra = extra.map(|(block, _)| {
        let reason = "the table of blocks names a kind, actor or action that is not here";
        (*block, reason)
    });
    let (block, reason) = missing.chain(extra).min()?;
    Some(Bad::at(block * blocks::BLOCK, reason))
}

/// Checks one row, and adds it to the piece; or says what is wrong with it.
fn check_entry(
    trail: &Trail,
    row: &dyn Row,
    seq: u64,
    frame: &mut Frame,
    piece: &mut Piece,
) -> Result<(), String> {
    let unreadable = |error: StoreError| format!("it cannot be read: {error}");
    if u64::try_from(row.integer(0).map_err(unreadable)?) != Ok(seq) {
        return Err("it is missing".into());
    }
    let text = |column| row.bytes(column).map(Option::unwrap_or_default);
    let fields = Fields {
        seq,
        id: text(1).map_err(unreadable)?,
        time: row.integer(2).map_err(unreadable)?,
        stream: text(3).map_err(unreadable)?,
        actor: text(4).map_err(unreadable)?,
        kind: text(5).map_err(unreadable)?,
        action_id: text(6).map_err(unreadable)?,
        body: text(7).map_err(unreadable)?,
        prev_hash: text(8).map_err(unreadable)?,
    };
    let hash = fields.hash(frame);
    if text(9).map_err(unreadable)? != hash.as_bytes() {
        return Err("its content does not match its hash".into());
    }
    if fields.time <= piece.last_time && !piece.leaves.is_empty() {
        return Err(OUT_OF_TIME.into());
    }
    let prev = match fields.prev_hash {
        [] => None,
        bytes => Some(Digest::from_slice(bytes).map_err(|error| error.to_string())?),
    };
    match piece.closed.get_mut(fields.stream) {
        Some(last) if prev.as_ref() != Some(last) => {
            return Err(OUT_OF_CHAIN.into());
        }
        Some(last) => *last = hash,
        None => {
            piece.opened.push((fields.stream.to_owned(), seq, prev));
            piece.closed.insert(fields.stream.to_owned(), hash);
        }
    }
    if let Some(digest) = blob_of(fields.body) {
        match trail.blobs().get(&digest) {
            Ok(Some(_)) => {}
            Ok(None) => return Err("its body is missing from the blob store".into()),
            Err(error) => return Err(format!("its body cannot be read: {error}")),
        }
    }
    if seq.is_multiple_of(blocks::BLOCK) {
        piece.last_names = Default::default();
    }
    let texts = [
        (&b"kind:"[..], fields.kind),
        (b"actor:", fields.actor),
        (b"action:", fields.action_id),
    ];
    for ((what, text), last) in texts.into_iter().zip(&mut piece.last_names) {
        if text != last.as_slice() {
            text.clone_into(last);
            if !text.is_empty() {
                let name = [what, text].concat(); // an entry without an action has none
                piece.names.insert((seq / blocks::BLOCK, name));
            }
        }
    }
    if piece.leaves.is_empty() {
        piece.first_time = fields.time;
    }
    piece.last_time = fields.time;
    piece.leaves.push(hash);
    Ok(())
}
