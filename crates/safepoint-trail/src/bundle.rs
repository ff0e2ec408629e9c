//! Evidence of one session in one file, which a stranger checks with nothing but the key of
//! the trail: every entry of the session and of its actions, a proof for each, the
//! signed head, large bodies, and a signed statement that these are all.
//!
//! [`check`] needs no store, believes nothing that is not proved, and names what is wrong.

mod gather;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::{Digest, EntryId};
use safepoint_store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::cosign::with_cosignatures;
use crate::dsse::{Envelope, EnvelopeError};
use crate::entry::blob_of;
use crate::export::{BUNDLE_PREDICATE, STATEMENT, Statement, Subject, action_of};
use crate::head::{HeadError, SignedHead};
use crate::note::PublicKey;
use crate::proof::{self, ProofError, Proven};
use crate::rows::entry_at;
use crate::{Entry, Stream, Trail, TrailError};

/// What a bundle is, and in which version.
pub const FORMAT: &str = "safepoint/bundle/v1";

/// Why a bundle proves nothing.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum BundleError {
    /// It cannot be read.
    #[error("not a bundle: {0}")]
    Shape(String),
    /// It is of another version.
    #[error("a bundle of the format `{0}` cannot be checked: expected `{FORMAT}`")]
    Format(String),
    /// The head in it cannot be trusted.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The proof of an entry does not hold.
    #[error("entry {place} of the bundle: {error}")]
    Proof {
        /// Which one, from 1.
        place: usize,
        /// What is wrong.
        error: ProofError,
    },
    /// Something else is wrong with an entry.
    #[error("entry {place} of the bundle ({id}): {reason}")]
    Entry {
        /// Which one, from 1.
        place: usize,
        /// The entry.
        id: EntryId,
        /// What is wrong.
        reason: &'static str,
    },
    /// The statement about all of it does not hold.
    #[error("the statement of the bundle: {0}")]
    Statement(&'static str),
    /// The statement is not signed.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
}

/// What a bundle has been found to prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedBundle {
    /// The session.
    pub session: Stream,
    /// The head of the trail.
    pub head: SignedHead,
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// How many actions they are of.
    pub actions: usize,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenBundle {
    /// The head of the trail.
    pub head: SignedHead,
    /// How many entries are in it.
    pub entries: u64,
    /// How many actions they are of.
    pub actions: usize,
}

/// A bundle, as it is read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    session: String,
    #[serde(rename = "key")]
    _key: String,
    head: String,
    entries: Vec<Line>,
    blobs: BTreeMap<Digest, String>,
    statement: Envelope,
}

/// One entry of a bundle.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    entry: Box<RawValue>,
    proof: String,
}

/// What the statement says besides which entries there are.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    log: String,
    session_id: String,
    size: u64,
    root: Digest,
    entries: u64,
}

impl Predicate {
    fn new(session: &str, head: &SignedHead, entries: usize) -> Self {
        Self {
            log: head.head().origin.clone(),
            session_id: session.to_owned(),
            size: head.size(),
            root: head.root(),
            entries: entries as u64,
        }
    }
}

impl Trail {
    /// Writes the bundle of a session, piece by piece.
    pub fn write_bundle<E>(
        &self,
        session: &Stream,
        mut write: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<WrittenBundle, E>
    where
        E: From<TrailError> + From<serde_json::Error>,
    {
        let head = self.witnessed_head()?;
        let places = gather::places(self, session, head.size())?;
        let note = with_cosignatures(&head, &self.cosigned()?);
        write(&format!(
            "{{\"format\":{},\"session\":{},\"key\":{},\"head\":{},\"entries\":[",
            serde_json::to_string(FORMAT)?,
            serde_json::to_string(session)?,
            serde_json::to_string(&self.key().to_string())?,
            serde_json::to_string(&note)?,
        ))?;
        let mut subjects = Vec::new();
        let mut blobs = BTreeSet::new();
        let mut actions = BTreeSet::new();
        for seq in places {
            let missing = || StoreError::corrupted("the trail", format!("entry {seq} is missing"));
            let entry = self.store().read(|sql| entry_at(sql, seq));
            let entry = entry
                .map_err(TrailError::from)?
                .ok_or_else(|| TrailError::from(missing()))?;
            let line = Line {
                proof: self.prove_under(&entry, &head)?,
                entry: serde_json::value::to_raw_value(&entry)?,
            };
            let comma = if subjects.is_empty() { "" } else { "," };
            write(&format!("{comma}\n{}", serde_json::to_string(&line)?))?;
            blobs.extend(blob_of(entry.body.as_bytes()));
            actions.extend(action_of(&entry));
            subjects.push(Subject::new(entry.id.as_str(), entry.hash));
        }
        write("\n],\"blobs\":{")?;
        for (place, digest) in blobs.iter().enumerate() {
            let blob = self.blobs().get(digest).map_err(TrailError::from)?;
            let missing = || StoreError::corrupted(digest.to_string(), "its blob is missing");
            let blob = blob.ok_or_else(|| TrailError::from(missing()))?;
            let comma = if place == 0 { "" } else { "," };
            write(&format!(
                "{comma}\n\"{digest}\":\"{}\"",
                BASE64.encode(blob)
            ))?;
        }
        let entries = subjects.len();
        let predicate = Predicate::new(session.as_str(), &head, entries);
        let statement = Statement::new(subjects, BUNDLE_PREDICATE, &predicate)?;
        let envelope = self.envelope(&serde_json::to_vec(&statement)?);
        let envelope = serde_json::to_string(&envelope)?;
        write(&format!("}},\"statement\":{envelope}}}\n"))?;
        Ok(WrittenBundle {
            head,
            entries: entries as u64,
            actions: actions.len(),
        })
    }
}

/// Checks a bundle with nothing but the public key of the trail.
pub fn check(text: &str, key: &PublicKey) -> Result<CheckedBundle, BundleError> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| BundleError::Shape(error.to_string()))?;
    if document.format != FORMAT {
        return Err(BundleError::Format(document.format));
    }
    let session: Stream = document
        .session
        .parse()
        .map_err(|_| BundleError::Shape("its session has no proper name".to_owned()))?;
    let head = SignedHead::open(&document.head, key)?;
    let mut entries = Vec::new();
    for (place, line) in (1..).zip(&document.entries) {
        entries.push(proved(place, line, &head, key)?);
    }
    in_order(&entries)?;
    chained(&session, &entries)?;
    large_bodies(&entries, &document.blobs)?;
    let statement = document.statement.open(key)?;
    stated(&statement, &session, &head, &entries)?;
    let actions: BTreeSet<_> = entries.iter().filter_map(action_of).collect();
    Ok(CheckedBundle {
        session,
        head,
        actions: actions.len(),
        entries,
    })
}

/// The entry of a line, proved to be in the trail with `head`.
fn proved(
    place: usize,
    line: &Line,
    head: &SignedHead,
    key: &PublicKey,
) -> Result<Entry, BundleError> {
    let wrong = |error| BundleError::Proof { place, error };
    let (entry, under) = match proof::check(&line.proof, key).map_err(wrong)? {
        Proven::Inclusion { entry, head } => (*entry, head),
        Proven::Consistency { .. } => return Err(wrong(ProofError::NoEntry)),
    };
    let fault = |reason| BundleError::Entry {
        place,
        id: entry.id.clone(),
        reason,
    };
    if under.head() != head.head() {
        return Err(fault(
            "it is proved under another head than that of the bundle",
        ));
    }
    // Compared as values: who formats a bundle anew does not spoil it.
    let shown: Option<serde_json::Value> = serde_json::from_str(line.entry.get()).ok();
    if shown.is_none() || shown != serde_json::to_value(&entry).ok() {
        return Err(fault("what is shown is not what is proved"));
    }
    Ok(entry)
}

fn in_order(entries: &[Entry]) -> Result<(), BundleError> {
    let pairs = entries.iter().zip(entries.iter().skip(1));
    for (place, (before, entry)) in (2..).zip(pairs) {
        if before.seq >= entry.seq {
            return Err(BundleError::Entry {
                place,
                id: entry.id.clone(),
                reason: "it does not come behind the one before it",
            });
        }
    }
    Ok(())
}

/// Whether the entries of the session are a chain from its first one on.
fn chained(session: &Stream, entries: &[Entry]) -> Result<(), BundleError> {
    let mut before = None;
    for (place, entry) in (1..).zip(entries) {
        if entry.stream != *session {
            continue;
        }
        if entry.prev_hash != before {
            return Err(BundleError::Entry {
                place,
                id: entry.id.clone(),
                reason: "an entry of the session is missing before it",
            });
        }
        before = Some(entry.hash);
    }
    match before {
        Some(_) => Ok(()),
        None => Err(BundleError::Shape("it has no entry of its session".into())),
    }
}

fn large_bodies(entries: &[Entry], blobs: &BTreeMap<Digest, String>) -> Result<(), BundleError> {
    let mut unused: BTreeSet<&Digest> = blobs.keys().collect();
    for (place, entry) in (1..).zip(entries) {
        let Some(digest) = blob_of(entry.body.as_bytes()) else {
            continue;
        };
        let blob = blobs.get(&digest).and_then(|blob| BASE64.decode(blob).ok());
        if blob.is_none_or(|blob| Digest::of_parts(&[&blob]) != digest) {
            return Err(BundleError::Entry {
                place,
                id: entry.id.clone(),
                reason: "its large body is missing, or not the one that was recorded",
            });
        }
        unused.remove(&digest);
    }
    match unused.is_empty() {
        true => Ok(()),
        false => Err(BundleError::Shape("it has a body of no entry".into())),
    }
}

/// Whether the statement is about exactly these entries.
fn stated(
    statement: &[u8],
    session: &Stream,
    head: &SignedHead,
    entries: &[Entry],
) -> Result<(), BundleError> {
    let wrong = |reason| Err(BundleError::Statement(reason));
    let Ok(statement) = serde_json::from_slice::<Statement>(statement) else {
        return wrong("it is not an in-toto statement");
    };
    if statement.kind != STATEMENT || statement.predicate_type != BUNDLE_PREDICATE {
        return wrong("it is about something else than a bundle");
    }
    let predicate = serde_json::from_str::<Predicate>(statement.predicate.get()).ok();
    if predicate != Some(Predicate::new(session.as_str(), head, entries.len())) {
        return wrong("it is about another session, another head or another number of entries");
    }
    let subjects: Vec<Subject> = entries
        .iter()
        .map(|entry| Subject::new(entry.id.as_str(), entry.hash))
        .collect();
    match statement.subject == subjects {
        true => Ok(()),
        false => wrong("it is about other entries than those of the bundle"),
    }
}
