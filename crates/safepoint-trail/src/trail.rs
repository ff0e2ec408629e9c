//! The trail of one store: opening it, writing to it, reading its head.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use safepoint_model::{Clock, Digest, Entropy, Timestamp};
use safepoint_store::{Blobs, Component, Depot, Durability, Migration, Sql, Store, StoreError};

use crate::append::{Appender, Draft, Mark, Prepared, State};
use crate::dsse::Envelope;
use crate::head::SignedHead;
use crate::note::PublicKey;
use crate::origin::{self, Copy, Log, Other};
use crate::redact::Redactor;
use crate::stored::StoredHead;
use crate::verify::Bad;
use crate::witness::{self, Recorded, Witness};
use crate::{Actor, Entry, Kind, Stream, TrailError, proof, tree};

/// The tables of the trail.
pub const COMPONENT: Component = Component {
    name: "trail",
    migrations: &[Migration {
        sqlite: include_str!("../migrations/1.sqlite.sql"),
        postgres: include_str!("../migrations/1.postgres.sql"),
    }],
};

/// What to do when the store is empty although a trail was kept for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostStore {
    /// Refuse: somebody may have deleted it to be rid of the evidence.
    Refuse,
    /// Begin a new trail, whose first entry tells of the lost one.
    StartAnew,
}

/// Everything a trail needs besides its store.
#[derive(Clone)]
pub struct Surroundings {
    /// Where private keys are: a directory; or the one key file of a deployment, if its name
    /// ends with `.key`.
    pub keys: PathBuf,
    /// Where copies of heads are kept, outside the database.
    pub witnesses: PathBuf,
    /// Where large bodies go.
    pub blobs: Blobs,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// What to do about an empty store that was not empty before.
    pub lost_store: LostStore,
}

/// The one trail of a store. A copy of it is the same trail.
#[derive(Clone, Debug)]
pub struct Trail {
    store: Arc<Store>,
    appender: Arc<Appender>,
    copy: Copy,
    /// Whether anything was recorded through this one, or a copy of it.
    recorded: Arc<AtomicBool>,
}

/// What proves that a trail continues an older one.
pub(crate) struct Consistency {
    pub(crate) old_root: Digest,
    pub(crate) path: Vec<Digest>,
    pub(crate) head: SignedHead,
}

/// An open transaction that can also add entries.
pub struct Writing<'a> {
    sql: &'a mut dyn Sql,
    appender: &'a Appender,
    /// Whether an entry was added.
    added: bool,
}

impl Writing<'_> {
    /// The statements of the transaction.
    pub fn sql(&mut self) -> &mut dyn Sql {
        self.sql
    }

    /// A text without tokens of workspaces and servers, as [`Trail::without_tokens`] gives it.
    pub fn without_tokens(&self, text: String) -> String {
        self.appender.redactor.redact_tokens(&text).unwrap_or(text)
    }

    /// Where a stream has come to, as far as that is known without asking anybody. Who remembers
    /// what it tells of need not read that again while this is the same.
    pub fn mark(&self, stream: &Stream) -> Option<Mark> {
        self.appender.mark(stream)
    }

    /// Makes all marks differ: something has changed that no entry tells of.
    pub fn change_marks(&self) {
        self.appender.touched.fetch_add(1, Ordering::SeqCst);
    }

    /// The present, later than everything that is recorded. The next entry bears it.
    pub fn moment(&mut self) -> Timestamp {
        self.appender.moment()
    }

    /// Adds an entry to the trail. It is there if, and only if, the transaction is.
    pub fn append(&mut self, draft: Draft) -> Result<Entry, TrailError> {
        let prepared = self.appender.prepare(draft)?;
        self.append_prepared(prepared)
    }

    /// Adds an entry that was prepared before the transaction began.
    pub fn append_prepared(&mut self, prepared: Prepared) -> Result<Entry, TrailError> {
        self.added = true;
        self.appender.append(self.sql, prepared)
    }
}

impl Trail {
    /// Opens the trail of `store`, and begins one where there is none.
    pub fn open(store: Arc<Store>, around: &Surroundings) -> Result<Self, TrailError> {
        store.migrate(&COMPONENT)?;
        let log = match store.read(Log::read)? {
            Some(log) => {
                origin::refuse_exchanged(around, store.location(), &log)?;
                log
            }
            None => origin::create(&store, around)?,
        };
        let signer = log.signer(&around.keys)?;
        if let Some(depot) = around.blobs.depot() {
            depot.claim(log.key.name());
        }
        let (witness, copy) = log.witness(&store, around, &signer)?;
        let secret = signer.derive_secret("safepoint/redaction/v1");
        let appender = Arc::new(Appender {
            signer,
            redactor: Redactor::new(secret),
            blobs: around.blobs.clone(),
            witness: Arc::new(witness),
            store: Arc::downgrade(&store),
            clock: Arc::clone(&around.clock),
            entropy: Arc::clone(&around.entropy),
            state: Mutex::new(State::default()),
            undone: AtomicU64::new(0),
            touched: AtomicU64::new(0),
        });
        store.seal_with(Arc::clone(&appender) as Arc<dyn safepoint_store::Seal>);
        let trail = Self {
            store,
            appender,
            copy,
            recorded: Arc::default(),
        };
        trail.record_beginning(around)?;
        match trail.record_new_copy() {
            // Nothing is signed on top of it; `verify` says what is wrong.
            Err(TrailError::Tampered(_)) => {}
            recorded => recorded?,
        }
        Ok(trail)
    }

    /// An entry tells of a copy outside the database that was missing, so that it is still
    /// known after the next command.
    fn record_new_copy(&self) -> Result<(), TrailError> {
        let Some((size, Recorded::No)) = self.witness().made_anew() else {
            return Ok(());
        };
        let draft = Draft {
            stream: Stream::store(),
            actor: Actor::safepoint(),
            kind: Kind::fixed("trail_copy_made_anew").into(),
            action_id: None,
            body: serde_json::json!({
                "size": size,
                "reason": "the copy outside the database was missing; it vouches for no entry from before",
            }),
        };
        self.append(draft, Durability::Sync)?;
        Ok(witness::mark_made_anew(
            self.witness().directory(),
            size,
            Recorded::Yes,
        )?)
    }

    /// The first entry of every trail says which log it is.
    fn record_beginning(&self, around: &Surroundings) -> Result<(), TrailError> {
        // Without a head something is wrong, and `verify` says what.
        if self
            .store
            .read(StoredHead::read)?
            .is_none_or(|head| head.size > 0)
        {
            return Ok(());
        }
        let key = self.key().clone();
        let replaced = origin::replaced(around, self.store.location(), &key)?;
        self.write(Durability::Sync, |writing| {
            if StoredHead::read(writing.sql())?.is_some_and(|head| head.size > 0) {
                return Ok(()); // another process was faster
            }
            let replaces = replaced.map(|other| {
                let Other { origin, head, .. } = other;
                serde_json::json!({"origin": origin, "size": head.size(), "root": head.root()})
            });
            writing.append(Draft {
                stream: Stream::store(),
                actor: Actor::safepoint(),
                kind: Kind::fixed("trail_created").into(),
                action_id: None,
                body: serde_json::json!({
                    "origin": key.name(),
                    "verifier_key": key.to_string(),
                    "replaces": replaces,
                }),
            })?;
            Ok(())
        })
    }

    /// The store this trail is in.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the copy outside the database was there when the trail was opened.
    pub fn copy(&self) -> Copy {
        self.copy
    }

    /// The public key of this trail.
    pub fn key(&self) -> &PublicKey {
        self.appender.signer.public()
    }

    pub(crate) fn witness(&self) -> &Witness {
        &self.appender.witness
    }

    /// Where objects are shared with other machines, if they are.
    pub fn depot(&self) -> Option<&Arc<Depot>> {
        self.appender.blobs.depot()
    }

    pub(crate) fn blobs(&self) -> &Blobs {
        &self.appender.blobs
    }

    /// Runs `change` in one transaction with the entries that tell of it.
    /// When it returns, all of it is kept; when it fails, nothing is.
    pub fn write<T, E: From<StoreError> + From<TrailError>>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Writing<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut added = false;
        let written = self.store.write(durability, |sql| {
            let mut writing = Writing {
                sql,
                appender: &self.appender,
                added: false,
            };
            let changed = change(&mut writing);
            added = writing.added;
            changed
        });
        if added && written.is_ok() {
            self.recorded.store(true, Ordering::Relaxed);
        }
        written
    }

    /// The same for a change that borrows nothing, which another thread may make for this one, as
    /// [`Store::write_shared`] says.
    pub fn write_shared<T, E>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut Writing<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + From<TrailError> + Send + 'static,
    {
        let appender = Arc::clone(&self.appender);
        let recorded = Arc::clone(&self.recorded);
        let (value, added) = self.store.write_shared(durability, move |sql| {
            let mut writing = Writing {
                sql,
                appender: &appender,
                added: false,
            };
            let changed = change(&mut writing);
            changed.map(|value| (value, writing.added))
        })?;
        if added {
            recorded.store(true, Ordering::Relaxed);
        }
        Ok(value)
    }

    /// How often what was written here came to nothing: until then an entry that was seen stays
    /// where it was seen.
    pub fn undone(&self) -> u64 {
        self.appender.undone.load(Ordering::SeqCst)
    }

    /// The same trail for a piece of work of its own, which can be asked whether it has
    /// recorded anything.
    pub fn apart(&self) -> Self {
        Self {
            recorded: Arc::default(),
            ..self.clone()
        }
    }

    /// Whether anything was recorded through this one, or a copy of it.
    pub fn has_recorded(&self) -> bool {
        self.recorded.load(Ordering::Relaxed)
    }

    /// Adds one entry on its own.
    pub fn append(&self, draft: Draft, durability: Durability) -> Result<Entry, TrailError> {
        let prepared = self.prepare(draft)?;
        self.write(durability, |writing| writing.append_prepared(prepared))
    }

    /// Does the part of adding an entry that needs no transaction.
    pub fn prepare(&self, draft: Draft) -> Result<Prepared, TrailError> {
        self.appender.prepare(draft)
    }

    /// Brings everything acknowledged so far to disk, asynchronous writes too.
    pub fn flush(&self) -> Result<(), TrailError> {
        self.store.write(Durability::Sync, |_| Ok(()))
    }

    /// What is signed for `purpose`: a line that says so, and `text`.
    ///
    /// A head begins with the name of its log alone, and names have no spaces,
    /// so nothing that is signed here can be taken for one.
    pub fn statement(&self, purpose: &'static str, text: &str) -> String {
        format!("{purpose} of {}\n{text}", self.key().name())
    }

    /// The signature under such a statement by the key of this trail, in base64.
    pub fn sign(&self, purpose: &'static str, text: &str) -> String {
        let statement = self.statement(purpose, text);
        self.appender.signer.signature(&statement)
    }

    /// An in-toto statement in an envelope that the key of this trail signs.
    pub fn envelope(&self, statement: &[u8]) -> Envelope {
        Envelope::sign(&self.appender.signer, statement)
    }

    /// A secret for another purpose, which only those have who have the key of this trail.
    pub fn derive_secret(&self, label: &'static str) -> Digest {
        self.appender.signer.derive_secret(label)
    }

    /// Takes secrets out of what leaves by another way, as they are taken out of entries.
    pub fn redact(&self, value: &mut serde_json::Value) {
        self.appender.redactor.redact(value);
    }

    /// A keyed digest that stands in place of the value of a variable.
    pub fn mark_variable(&self, name: &str, value: &str) -> String {
        self.appender.redactor.mark_variable(name, value)
    }

    /// The text without tokens of workspaces and servers. The rest stays as it is, for whoever decides
    /// about it; equal tokens leave equal marks.
    pub fn without_tokens(&self, text: String) -> String {
        self.appender.redactor.redact_tokens(&text).unwrap_or(text)
    }

    /// The signed head over all entries.
    pub fn head(&self) -> Result<SignedHead, TrailError> {
        let stored = self.stored_head()?;
        Ok(SignedHead::open(&stored.note, self.key())?)
    }

    /// How many entries the copy outside the database covers.
    pub fn witnessed(&self) -> Result<u64, TrailError> {
        let head = self.witness().head()?.map_err(TrailError::Tampered)?;
        Ok(head.size())
    }

    pub(crate) fn stored_head(&self) -> Result<StoredHead, TrailError> {
        self.store
            .read(StoredHead::read)?
            .ok_or_else(|| StoreError::corrupted("the trail", "its head is missing").into())
    }

    /// The proof that `entry` is in the trail, as C2SP `tlog-proof` text.
    ///
    /// It is checked before it is given away: an entry that was tampered with has none.
    pub fn prove(&self, entry: &Entry) -> Result<String, TrailError> {
        self.prove_under(entry, &self.witnessed_head()?)
    }

    /// The same under a head that the copy outside the database covers.
    pub(crate) fn prove_under(
        &self,
        entry: &Entry,
        head: &SignedHead,
    ) -> Result<String, TrailError> {
        let leaf = tree::leaf_hash(&entry.to_leaf());
        let path = self.proven(
            |witness| tree::prove_inclusion(witness, entry.seq, head.size()),
            |path| tree::includes(&leaf, entry.seq, head.size(), &head.root(), path),
            entry.seq,
        )?;
        Ok(proof::write_inclusion(entry, &path, head))
    }

    /// The proof that the first `old_size` entries are still the first ones.
    pub fn prove_consistency(&self, old_size: u64) -> Result<String, TrailError> {
        let Consistency {
            old_root,
            path,
            head,
        } = self.consistency(old_size)?;
        Ok(proof::write_consistency(old_size, &old_root, &path, &head))
    }

    /// The same, before it is written.
    pub(crate) fn consistency(&self, old_size: u64) -> Result<Consistency, TrailError> {
        let head = self.witnessed_head()?;
        if old_size > head.size() {
            return Err(TrailError::NotFound(format!(
                "head of size {old_size}: it has {} entries",
                head.size()
            )));
        }
        let old_root = || tree::frontier(self.witness(), old_size).map(|old| old.root());
        let path = self.proven(
            |witness| tree::prove_consistency(witness, old_size, head.size()),
            |path| {
                old_root().is_ok_and(|old_root| {
                    tree::extends(old_size, &old_root, head.size(), &head.root(), path)
                })
            },
            old_size,
        )?;
        Ok(Consistency {
            old_root: old_root()?,
            path,
            head,
        })
    }

    /// A path of hashes that holds; made anew once where a power cut has taken some.
    fn proven(
        &self,
        path: impl Fn(&Witness) -> Result<Vec<Digest>, StoreError>,
        holds: impl Fn(&[Digest]) -> bool,
        seq: u64,
    ) -> Result<Vec<Digest>, TrailError> {
        if let Ok(path) = path(self.witness())
            && holds(&path)
        {
            return Ok(path);
        }
        self.rebuild_witness()?;
        let path = path(self.witness())?;
        if holds(&path) {
            return Ok(path);
        }
        let reason = "it is not the entry that was signed";
        Err(TrailError::Tampered(Bad::at(seq, reason)))
    }

    /// Whether an entry is what was signed, as far as one entry alone can tell: by its own
    /// hash, and by the one outside the database where that is there.
    pub fn is_genuine(&self, entry: &Entry) -> Result<bool, TrailError> {
        Ok(self.appender.is_genuine(entry)?)
    }

    /// Makes the hashes outside the database anew, where what is inside gives the signed root.
    pub(crate) fn rebuild_witness(&self) -> Result<(), TrailError> {
        Ok(self.appender.rebuild_witness()?)
    }

    /// The head outside the database, brought up to the one inside first.
    pub(crate) fn witnessed_head(&self) -> Result<SignedHead, TrailError> {
        let stored = self.head()?;
        let witnessed = self.witness().head()?.map_err(TrailError::Tampered)?;
        if witnessed.size() >= stored.size() {
            return Ok(witnessed);
        }
        self.flush()?;
        self.witness().head()?.map_err(TrailError::Tampered)
    }
}
