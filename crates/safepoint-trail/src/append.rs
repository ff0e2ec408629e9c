//! Adding entries: inside the transaction that makes the change they tell of.
//!
//! The trail takes part in every transaction of its store as its
//! [`Seal`]: when one begins, the tip is read, unless nobody can have moved it;
//! entries are chained and hashed as they come; before the commit the new head
//! is signed and written beside them; once the commit is on disk, the copy
//! outside the database follows.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use safepoint_model::{Clock, Digest, Entropy, EntryId, Frame, Timestamp, json, next_after};
use safepoint_store::{
    AfterDurable, Blobs, Durability, Flow, Meanwhile, Seal, Sql, Store, StoreError, Value,
};

use crate::blocks::Noted;
use crate::entry::{BLOB_FIELD, ENTRY_TAG, Fields, LARGEST_BODY};
use crate::head::{Head, SignedHead};
use crate::note::{PublicKey, Signer};
use crate::redact::Redactor;
use crate::rows::entry_at;
use crate::stored::{StoredHead, write_head};
use crate::tree::{self, Frontier};
use crate::verify::Bad;
use crate::witness::Witness;
use crate::{Actor, Entry, Kind, Stream, TrailError};

/// What is to be recorded: an entry before it has a place.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The chain it belongs to.
    pub stream: Stream,
    /// Who did it.
    pub actor: Actor,
    /// What happened.
    pub kind: Kind,
    /// The action it belongs to.
    pub action_id: Option<safepoint_model::ActionId>,
    /// The rest. Secrets in it are taken out before anything is stored.
    pub body: serde_json::Value,
}

/// Where a stream has come to. While it is the same, everything that the stream tells of is as it
/// was: nothing was told since, nothing came to nothing, and nobody else has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The hash of its last entry.
    last: Digest,
    /// How often there was a reason to look again.
    doubts: u64,
}

/// A draft without secrets and with its body in canonical form. Made outside
/// the transaction, so that the store is held no longer than needed.
#[derive(Clone, Debug)]
pub struct Prepared {
    stream: Stream,
    actor: Actor,
    kind: Kind,
    action_id: Option<safepoint_model::ActionId>,
    body: String,
}

impl Prepared {
    /// The entry that this becomes at its place in the trail.
    pub fn place(self, seq: u64, id: EntryId, time: Timestamp, prev_hash: Option<Digest>) -> Entry {
        let mut entry = Entry {
            seq,
            id,
            time,
            stream: self.stream,
            actor: self.actor,
            kind: self.kind,
            action_id: self.action_id,
            body: self.body,
            prev_hash,
            hash: Digest::from_bytes([0; 32]),
        };
        entry.hash = entry.fields().hash(&mut Frame::new(ENTRY_TAG));
        entry
    }
}

/// The part of the trail that lives inside the store's transactions.
pub(crate) struct Appender {
    pub(crate) signer: Signer,
    pub(crate) redactor: Redactor,
    pub(crate) blobs: Blobs,
    pub(crate) witness: Arc<Witness>,
    pub(crate) store: Weak<Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) state: Mutex<State>,
    /// How often entries that were added came to nothing.
    pub(crate) undone: AtomicU64,
    /// How often somebody else may have written in between.
    pub(crate) touched: AtomicU64,
}

/// What is known of the end of the trail while a transaction is open.
#[derive(Default)]
pub(crate) struct State {
    tip: Option<Tip>,
    /// Leaf hashes added since the transaction began.
    added: Vec<Digest>,
    /// The tip and the number of added leaves before the present member.
    before_member: Option<(Tip, usize)>,
    /// The last hash of streams seen lately.
    streams: HashMap<Stream, Digest>,
    noted: Noted,
    /// Whether the tip was read in the present transaction, and not known before.
    is_fresh: bool,
    /// A time that was given to what the next entry tells of: the entry is not earlier.
    promised: Option<Timestamp>,
    /// Whether an entry could not be added.
    failed: bool,
}

/// The end of the trail.
#[derive(Clone)]
struct Tip {
    head: SignedHead,
    frontier: Frontier,
    time: Option<Timestamp>,
}

/// How many entries the copy outside the database may lack before a write has to bring them
/// to disk, and with them the copy. Whoever opens the trail reads and checks each of them, and
/// they could be cut off unseen.
const MOST_BEHIND: u64 = 4096;

/// The same for the first write after the trail was read: commands that write a little and go
/// would leave it to each other otherwise.
const MOST_BEHIND_AT_FIRST: u64 = 64;

/// How many streams to remember before starting over.
const STREAMS_REMEMBERED: usize = 4096;

impl Appender {
    /// Takes out secrets, brings the body into canonical form, and moves a large one to the blob store.
    pub(crate) fn prepare(&self, draft: Draft) -> Result<Prepared, TrailError> {
        let mut body = draft.body;
        if body.get(BLOB_FIELD).is_some() {
            return Err(TrailError::ReservedField);
        }
        self.redactor.redact(&mut body);
        let mut bytes = json::canonical(&body)?;
        if bytes.len() > LARGEST_BODY {
            let digest = self.blobs.put(&bytes)?;
            bytes = json::canonical(&serde_json::json!({
                BLOB_FIELD: {"sha256": digest, "size": bytes.len()}
            }))?;
        }
        Ok(Prepared {
            stream: draft.stream,
            actor: draft.actor,
            kind: draft.kind,
            action_id: draft.action_id,
            // Canonical JSON is UTF-8; nothing is lost here.
            body: String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        })
    }

    /// Adds an entry inside the present transaction.
    ///
    /// One that fails fails the transaction, or its member, even if the caller goes on.
    pub(crate) fn append(
        &self,
        sql: &mut dyn Sql,
        prepared: Prepared,
    ) -> Result<Entry, TrailError> {
        let mut state = self.state();
        let added = self.append_to(&mut state, sql, prepared);
        state.failed |= added.is_err();
        added
    }

    fn append_to(
        &self,
        state: &mut State,
        sql: &mut dyn Sql,
        prepared: Prepared,
    ) -> Result<Entry, TrailError> {
        let tip = state.tip.as_mut().ok_or_else(|| {
            StoreError::corrupted("the trail", "an entry was added outside a transaction")
        })?;
        if state.before_member.is_none() {
            state.before_member = Some((tip.clone(), state.added.len()));
        }
        let prev_hash = match state.streams.get(&prepared.stream) {
            Some(known) => Some(*known),
            None => self.last_of_stream(sql, &prepared.stream)?,
        };
        let time = match state.promised.take() {
            Some(promised) => promised,
            None => next_after(tip.time, &*self.clock),
        };
        let id = EntryId::new(time, &*self.entropy)?;
        let entry = prepared.place(tip.frontier.size(), id, time, prev_hash);
        insert(sql, &entry)?;
        state.noted.note(sql, &entry)?;

        tip.time = Some(time);
        tip.frontier.push(entry.hash, |_, _| {});
        state.added.push(entry.hash);
        if state.streams.len() >= STREAMS_REMEMBERED {
            state.streams.clear();
        }
        state.streams.insert(entry.stream.clone(), entry.hash);
        Ok(entry)
    }

    /// A time later than every entry and every time given out before it. The next entry bears
    /// it: were the clock asked twice, and set back in between, the entry would be the earlier
    /// of the two, and what comes after it could be earlier than what it tells of.
    pub(crate) fn moment(&self) -> Timestamp {
        let mut state = self.state();
        let newest = state.tip.as_ref().and_then(|tip| tip.time);
        let moment = next_after(newest.max(state.promised), &*self.clock);
        state.promised = Some(moment);
        moment
    }

    /// Where a stream has come to, if that is known without asking anybody.
    pub(crate) fn mark(&self, stream: &Stream) -> Option<Mark> {
        let last = *self.state().streams.get(stream)?;
        let doubts = self.undone.load(Ordering::SeqCst) + self.touched.load(Ordering::SeqCst);
        Some(Mark { last, doubts })
    }

    /// The tip as the database has it, checked against its signature, against
    /// the copy outside, and down to the last entry: what is signed next stands on it.
    fn load_tip(&self, sql: &mut dyn Sql, stored: StoredHead) -> Result<Tip, StoreError> {
        let last = stored.size.saturating_sub(1);
        let bad = |seq, reason| StoreError::seal(Bad::at(seq, reason));
        let head = SignedHead::open(&stored.note, self.signer.public()).map_err(|_| {
            bad(
                last,
                "the head in the database is not signed by the key of this trail",
            )
        })?;
        let frontier = Frontier::from_peaks(stored.size, stored.peaks)
            .filter(|frontier| head.size() == stored.size && frontier.root() == head.root())
            .ok_or_else(|| {
                bad(
                    last,
                    "the head in the database does not match its signature",
                )
            })?;
        let witnessed = self.witness.head()?.map_err(StoreError::seal)?;
        if witnessed.size() > head.size() {
            return Err(bad(
                head.size(),
                "the database has lost entries that were signed",
            ));
        }
        let since = leaf_hashes(sql, witnessed.size(), head.size())?;
        if !self.continues(&witnessed, &since, &head)? {
            return Err(bad(
                witnessed.size().min(last),
                "the database does not continue what was signed before",
            ));
        }
        let mut time = None;
        if stored.size > 0 {
            let trusted = match since.last() {
                Some(hash) => Some(*hash),
                None => self.witness.leaves(last, stored.size)?.first().copied(),
            };
            let entry = entry_at(sql, last)?;
            let genuine = entry.filter(|entry| {
                let hash = tree::leaf_hash(&entry.to_leaf());
                trusted.is_none_or(|trusted| trusted == hash) && entry.hash == hash
            });
            let reason = "the last entry is not the one that was signed";
            time = Some(genuine.ok_or_else(|| bad(last, reason))?.time);
        }
        Ok(Tip {
            head,
            frontier,
            time,
        })
    }

    /// Whether the entries behind `witnessed`, with these hashes, lead to `head`.
    fn continues(
        &self,
        witnessed: &SignedHead,
        since: &[Digest],
        head: &SignedHead,
    ) -> Result<bool, StoreError> {
        if since.is_empty() {
            return Ok(witnessed.size() == head.size() && witnessed.root() == head.root());
        }
        let Some(mut frontier) = self.witness.frontier_of(witnessed) else {
            return Ok(true); // hashes lost in a power cut: they are made anew, and checked, when the copy follows
        };
        for leaf in since {
            frontier.push(*leaf, |_, _| {});
        }
        Ok(frontier.size() == head.size() && frontier.root() == head.root())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seal for Appender {
    fn begun(&self, sql: &mut dyn Sql, meanwhile: Meanwhile) -> Result<(), StoreError> {
        let mut state = self.state();
        state.added.clear();
        state.before_member = None;
        state.failed = false;
        state.promised = None;
        state.is_fresh = false;
        if meanwhile == Meanwhile::Untouched && state.tip.is_some() {
            return Ok(());
        }
        self.touched.fetch_add(1, Ordering::SeqCst);
        let Some(stored) = StoredHead::read(sql)? else {
            return Err(StoreError::corrupted("the trail", "its head is missing"));
        };
        let current = state
            .tip
            .as_ref()
            .is_some_and(|tip| tip.head.note() == stored.note && tip.head.size() == stored.size);
        if !current {
            state.streams.clear();
            state.noted = Noted::default();
            state.tip = Some(self.load_tip(sql, stored)?);
            state.is_fresh = true;
        }
        Ok(())
    }

    fn member_kept(&self) {
        let mut state = self.state();
        state.before_member = None;
        state.promised = None;
    }

    fn member_undone(&self) {
        self.undone.fetch_add(1, Ordering::SeqCst);
        let mut state = self.state();
        if let Some((tip, added)) = state.before_member.take() {
            state.tip = Some(tip);
            state.added.truncate(added);
            state.streams.clear();
            state.noted = Noted::default();
        }
        state.promised = None;
        state.failed = false;
    }

    fn least_durability(&self) -> Durability {
        let state = self.state();
        let size = state.tip.as_ref().map_or(0, |tip| tip.frontier.size());
        let most = match state.is_fresh {
            true => MOST_BEHIND_AT_FIRST,
            false => MOST_BEHIND,
        };
        match size.saturating_sub(self.witness.covered()) > most {
            true => Durability::Sync,
            false => Durability::Async,
        }
    }

    fn before_commit(&self, sql: &mut dyn Sql) -> Result<AfterDurable, StoreError> {
        let mut state = self.state();
        if state.failed {
            return Err(StoreError::corrupted(
                "the trail",
                "an entry could not be added",
            ));
        }
        let added = std::mem::take(&mut state.added);
        let tip = state
            .tip
            .as_mut()
            .ok_or_else(|| StoreError::corrupted("the trail", "a commit without a beginning"))?;
        if !added.is_empty() {
            let head = Head {
                origin: self.signer.public().name().to_owned(),
                size: tip.frontier.size(),
                root: tip.frontier.root(),
            };
            tip.head = head.sign(&self.signer);
            write_head(sql, &tip.head, &tip.frontier)?;
        }
        let (head, witness, store) = (
            tip.head.clone(),
            Arc::clone(&self.witness),
            self.store.clone(),
        );
        Ok(Box::new(move || {
            let first = head.size() - added.len() as u64;
            witness.advance(&head, |from, take| {
                if from == first {
                    added.iter().copied().for_each(take);
                    return Ok(());
                }
                // Another process, or an asynchronous write, came in between.
                let store = store
                    .upgrade()
                    .ok_or_else(|| StoreError::corrupted("the trail", "its store was closed"))?;
                store.read(|sql| each_leaf_hash(sql, from, head.size(), take))
            })
        }))
    }

    fn committed(&self) {
        self.state().before_member = None;
    }

    fn rolled_back(&self) {
        self.undone.fetch_add(1, Ordering::SeqCst);
        *self.state() = State::default();
    }
}

fn insert(sql: &mut dyn Sql, entry: &Entry) -> Result<(), StoreError> {
    let Fields { seq, time, .. } = entry.fields();
    sql.execute(
        "INSERT INTO trail_entries (seq, id, time, stream, actor, kind, action_id, body, prev_hash, hash) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        &[
            Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX)),
            Value::Text(entry.id.as_str()),
            Value::Integer(time),
            Value::Text(entry.stream.as_str()),
            Value::Text(entry.actor.as_str()),
            Value::Text(entry.kind.as_str()),
            Value::from(entry.action_id.as_ref().map(|id| id.as_str())),
            Value::Text(&entry.body),
            Value::from(entry.prev_hash.as_ref().map(|hash| hash.as_bytes().as_slice())),
            Value::Blob(entry.hash.as_bytes()),
        ],
    )
    .map(drop)
}

/// The hashes of entries `from..to`, as the database has them.
fn leaf_hashes(sql: &mut dyn Sql, from: u64, to: u64) -> Result<Vec<Digest>, StoreError> {
    let mut hashes = Vec::new();
    each_leaf_hash(sql, from, to, &mut |hash| hashes.push(hash))?;
    Ok(hashes)
}

/// The same, one by one.
pub(crate) fn each_leaf_hash(
    sql: &mut dyn Sql,
    from: u64,
    to: u64,
    take: &mut dyn FnMut(Digest),
) -> Result<(), StoreError> {
    let bound = |seq| Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX));
    sql.query(
        "SELECT hash FROM trail_entries WHERE seq >= ?1 AND seq < ?2 ORDER BY seq",
        &[bound(from), bound(to)],
        &mut |row| {
            take(digest(row.blob(0)?)?);
            Ok(Flow::More)
        },
    )
}

fn digest(bytes: &[u8]) -> Result<Digest, StoreError> {
    Digest::from_slice(bytes)
        .map_err(|_| StoreError::corrupted("the trail", "a hash is not 32 bytes long"))
}

impl std::fmt::Debug for Appender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Appender({})", PublicKey::name(self.signer.public()))
    }
}
