//! Proofs as text, for people who have no store: C2SP `tlog-proof` for one
//! entry, and a sibling of it for two heads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::Digest;

use crate::head::{HeadError, SignedHead};
use crate::note::PublicKey;
use crate::{Entry, tree};

const INCLUSION: &str = "c2sp.org/tlog-proof@v1";
const CONSISTENCY: &str = "safepoint/consistency-proof/v1";

/// Why a proof does not prove anything.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum ProofError {
    /// Neither kind of proof.
    #[error("not a proof: the first line is neither `{INCLUSION}` nor `{CONSISTENCY}`")]
    Unknown,
    /// A line is missing or out of place.
    #[error("the proof is malformed: {0}")]
    Shape(&'static str),
    /// The head in it cannot be trusted.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// It does not carry the entry it is about.
    #[error("the proof does not carry its entry in the `extra` line")]
    NoEntry,
    /// The hashes do not lead from the entry to the head.
    #[error("the proof does not lead from the entry to the signed head")]
    NotIncluded,
    /// The hashes do not lead from the old head to the new one.
    #[error("the proof does not lead from the old head to the signed head")]
    NotConsistent,
}

/// What a proof has been found to prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proven {
    /// This entry is in the trail with this head.
    Inclusion {
        /// The entry.
        entry: Box<Entry>,
        /// The head of the trail it is in.
        head: SignedHead,
    },
    /// The trail with the old size and root is the beginning of the trail with this head.
    Consistency {
        /// How many entries the old trail had.
        old_size: u64,
        /// Its root.
        old_root: Digest,
        /// The head of the trail that continues it.
        head: SignedHead,
    },
}

/// Writes the proof that `entry` is in the trail with `head`.
pub fn write_inclusion(entry: &Entry, path: &[Digest], head: &SignedHead) -> String {
    let extra = BASE64.encode(entry.to_leaf());
    let mut text = format!("{INCLUSION}\nextra {extra}\nindex {}\n", entry.seq);
    write_path(&mut text, path, head);
    text
}

/// Writes the proof that the trail of `old_size` entries is the beginning of the one with `head`.
pub fn write_consistency(
    old_size: u64,
    old_root: &Digest,
    path: &[Digest],
    head: &SignedHead,
) -> String {
    let root = BASE64.encode(old_root.as_bytes());
    let mut text = format!("{CONSISTENCY}\nold {old_size} {root}\n");
    write_path(&mut text, path, head);
    text
}

fn write_path(text: &mut String, path: &[Digest], head: &SignedHead) {
    for hash in path {
        text.push_str(&BASE64.encode(hash.as_bytes()));
        text.push('\n');
    }
    text.push('\n');
    text.push_str(head.note());
}

/// Checks a proof with nothing but the public key of the trail.
pub fn check(text: &str, key: &PublicKey) -> Result<Proven, ProofError> {
    let (lines, note) = text
        .split_once("\n\n")
        .ok_or(ProofError::Shape("no empty line before the head"))?;
    let head = || SignedHead::open(note, key).map_err(ProofError::from);
    let mut lines = lines.split('\n');
    match lines.next() {
        Some(INCLUSION) => check_inclusion(lines, head()?),
        Some(CONSISTENCY) => check_consistency(lines, head()?),
        _ => Err(ProofError::Unknown),
    }
}

fn check_inclusion<'a>(
    mut lines: impl Iterator<Item = &'a str>,
    head: SignedHead,
) -> Result<Proven, ProofError> {
    let mut line = lines.next().unwrap_or_default();
    let mut leaf = None;
    if let Some(extra) = line.strip_prefix("extra ") {
        let bytes = BASE64.decode(extra);
        leaf = Some(bytes.map_err(|_| ProofError::Shape("the `extra` line is not base64"))?);
        line = lines.next().unwrap_or_default();
    }
    let index = line
        .strip_prefix("index ")
        .and_then(decimal)
        .ok_or(ProofError::Shape("no `index` line"))?;
    let path = read_path(lines)?;
    // The extra data is only a claim until its hash has led to the signed root.
    let leaf = leaf.ok_or(ProofError::NoEntry)?;
    let hash = tree::leaf_hash(&leaf);
    if !tree::includes(&hash, index, head.size(), &head.root(), &path) {
        return Err(ProofError::NotIncluded);
    }
    let entry = Entry::from_leaf(&leaf).filter(|entry| entry.seq == index);
    Ok(Proven::Inclusion {
        entry: Box::new(entry.ok_or(ProofError::Shape("the `extra` line is not an entry"))?),
        head,
    })
}

fn check_consistency<'a>(
    mut lines: impl Iterator<Item = &'a str>,
    head: SignedHead,
) -> Result<Proven, ProofError> {
    let (old_size, old_root) = lines
        .next()
        .and_then(|line| line.strip_prefix("old ")?.split_once(' '))
        .and_then(|(size, root)| Some((decimal(size)?, hash(root)?)))
        .ok_or(ProofError::Shape("no `old SIZE ROOT` line"))?;
    let path = read_path(lines)?;
    if !tree::extends(old_size, &old_root, head.size(), &head.root(), &path) {
        return Err(ProofError::NotConsistent);
    }
    Ok(Proven::Consistency {
        old_size,
        old_root,
        head,
    })
}

fn read_path<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<Digest>, ProofError> {
    let path: Option<Vec<_>> = lines.take(65).map(hash).collect();
    path.filter(|path| path.len() <= 64)
        .ok_or(ProofError::Shape(
            "its hashes are not base64, 32 bytes each, at most 64",
        ))
}

fn hash(line: &str) -> Option<Digest> {
    Digest::from_slice(&BASE64.decode(line).ok()?).ok()
}

/// A number without leading zeroes or sign.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
