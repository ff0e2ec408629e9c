//! The trail of one store: opening it, writing to it, reading its head.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use safepoint_model::{Clock, Digest, Entropy, SessionId};
use safepoint_store::durable::{self, Access};
use safepoint_store::{
    Blobs, Component, Durability, Location, Migration, Sql, Store, StoreError, Value, query_one,
};

use crate::append::{Appender, Draft, Prepared, State, StoredHead, leaf_hashes, write_head};
use crate::head::{Head, SignedHead};
use crate::note::{PublicKey, Signer};
use crate::redact::Redactor;
use crate::tree::{self, Frontier};
use crate::verify::Bad;
use crate::witness::Witness;
use crate::{Actor, Entry, Kind, Stream, TrailError};

/// The tables of the trail.
pub const COMPONENT: Component = Component {
    name: "trail",
    migrations: &[Migration {
        sqlite: include_str!("../migrations/1.sqlite.sql"),
        postgres: include_str!("../migrations/1.postgres.sql"),
    }],
};

/// The fault points of making a new trail.
pub(crate) const FAULT_POINTS: [&str; 2] = ["create.key_written", "create.witness_made"];

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
    /// Where private keys are.
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

/// The one trail of a store.
#[derive(Debug)]
pub struct Trail {
    store: Arc<Store>,
    appender: Arc<Appender>,
}

/// An open transaction that can also add entries.
pub struct Writing<'a> {
    sql: &'a mut dyn Sql,
    appender: &'a Appender,
}

impl Writing<'_> {
    /// The statements of the transaction.
    pub fn sql(&mut self) -> &mut dyn Sql {
        self.sql
    }

    /// Adds an entry to the trail. It is there if, and only if, the transaction is.
    pub fn append(&mut self, draft: Draft) -> Result<Entry, TrailError> {
        let prepared = self.appender.prepare(draft)?;
        self.append_prepared(prepared)
    }

    /// Adds an entry that was prepared before the transaction began.
    pub fn append_prepared(&mut self, prepared: Prepared) -> Result<Entry, TrailError> {
        self.appender.append(self.sql, prepared)
    }
}

impl Trail {
    /// Opens the trail of `store`, and begins one where there is none.
    pub fn open(store: Arc<Store>, around: &Surroundings) -> Result<Self, TrailError> {
        store.migrate(&COMPONENT)?;
        let key = match store.read(read_log)? {
            Some(key) => key,
            None => create(&store, around)?,
        };
        let signer = load_signer(&key, &around.keys)?;
        let directory = around.witnesses.join(log_id(&key));
        let witness = match Witness::open(&directory, &key)? {
            Some(witness) => witness,
            None => adopt(&store, &directory, &key, &signer)?,
        };
        let secret = signer.derive_secret("safepoint/redaction/v1");
        let redactor = Redactor::new(secret)
            .map_err(|error| StoreError::corrupted("redaction", error.to_string()))?;
        let appender = Arc::new(Appender {
            signer,
            redactor,
            blobs: around.blobs.clone(),
            witness: Arc::new(witness),
            store: Arc::downgrade(&store),
            clock: Arc::clone(&around.clock),
            entropy: Arc::clone(&around.entropy),
            state: Mutex::new(State::default()),
        });
        store.seal_with(Arc::clone(&appender) as Arc<dyn safepoint_store::Seal>);
        let trail = Self { store, appender };
        trail.record_beginning(around)?;
        Ok(trail)
    }

    /// The first entry of every trail says which log it is.
    fn record_beginning(&self, around: &Surroundings) -> Result<(), TrailError> {
        if self.stored_head()?.size > 0 {
            return Ok(());
        }
        let key = self.key().clone();
        let lost = lost_trail(around, self.store.location(), &key)?;
        self.write(Durability::Sync, |writing| {
            if StoredHead::read(writing.sql())?.is_some_and(|head| head.size > 0) {
                return Ok(()); // another process was faster
            }
            let replaces = lost.map(|(origin, head)| {
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

    /// The public key of this trail.
    pub fn key(&self) -> &PublicKey {
        self.appender.signer.public()
    }

    pub(crate) fn witness(&self) -> &Witness {
        &self.appender.witness
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
        self.store.write(durability, |sql| {
            change(&mut Writing {
                sql,
                appender: &self.appender,
            })
        })
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

    /// The signed head over all entries.
    pub fn head(&self) -> Result<SignedHead, TrailError> {
        let stored = self.stored_head()?;
        Ok(SignedHead::open(&stored.note, self.key())?)
    }

    pub(crate) fn stored_head(&self) -> Result<StoredHead, TrailError> {
        self.store
            .read(StoredHead::read)?
            .ok_or_else(|| StoreError::corrupted("the trail", "its head is missing").into())
    }

    /// The proof that `entry` is in the trail, as C2SP `tlog-proof` text.
    pub fn prove(&self, entry: &Entry) -> Result<String, TrailError> {
        let head = self.witnessed_head()?;
        let path = tree::prove_inclusion(self.witness(), entry.seq, head.size())?;
        Ok(crate::proof::write_inclusion(entry, &path, &head))
    }

    /// The proof that the first `old_size` entries are still the first ones.
    pub fn prove_consistency(&self, old_size: u64) -> Result<String, TrailError> {
        let head = self.witnessed_head()?;
        if old_size > head.size() {
            return Err(TrailError::NotFound(format!(
                "head of size {old_size}: it has {} entries",
                head.size()
            )));
        }
        let old_root = tree::frontier(self.witness(), old_size)?.root();
        let path = tree::prove_consistency(self.witness(), old_size, head.size())?;
        Ok(crate::proof::write_consistency(
            old_size, &old_root, &path, &head,
        ))
    }

    /// The head outside the database, brought up to the one inside first.
    fn witnessed_head(&self) -> Result<SignedHead, TrailError> {
        let stored = self.head()?;
        let witnessed = self.witness().head()?.map_err(TrailError::Tampered)?;
        if witnessed.size() >= stored.size() {
            return Ok(witnessed);
        }
        self.flush()?;
        self.witness().head()?.map_err(TrailError::Tampered)
    }
}

/// The public key of the log in this store, if it has one.
fn read_log(sql: &mut dyn Sql) -> Result<Option<PublicKey>, StoreError> {
    let text = query_one(
        sql,
        "SELECT verifier_key FROM trail_log WHERE only_row = 1",
        &[],
        |row| Ok(row.text(0)?.to_owned()),
    )?;
    text.map(|text| text.parse())
        .transpose()
        .map_err(|_| StoreError::corrupted("the trail", "its verifier key cannot be read"))
}

/// The last part of a log's origin, which names its files.
fn log_id(key: &PublicKey) -> &str {
    key.name().rsplit('/').next().unwrap_or_default()
}

fn key_path(key: &PublicKey, keys: &Path) -> PathBuf {
    keys.join(format!("{}.key", log_id(key)))
}

fn load_signer(key: &PublicKey, keys: &Path) -> Result<Signer, TrailError> {
    let path = key_path(key, keys);
    let origin = key.name().to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(TrailError::KeyMissing { origin, path });
        }
        Err(error) => return Err(StoreError::file("read", path, error).into()),
    };
    let signer = Signer::parse(&text).map_err(|cause| TrailError::KeyInvalid {
        origin: origin.clone(),
        path: path.clone(),
        cause,
    })?;
    if signer.public() != key {
        // The key file is ours and outside the database: it is the database that is wrong.
        return Err(TrailError::Tampered(Bad::at(
            0,
            "the database names another key than the one that signs this trail",
        )));
    }
    Ok(signer)
}

/// Makes the key, the directory outside the database, and the rows inside it.
///
/// All under the write lock, so that two processes make one log; and the rows
/// last, so that a crash in between leaves at most a key that nobody uses.
fn create(store: &Store, around: &Surroundings) -> Result<PublicKey, TrailError> {
    store.write(Durability::Sync, |sql| {
        if let Some(key) = read_log(sql)? {
            return Ok(key);
        }
        if around.lost_store == LostStore::Refuse
            && let Some((origin, head)) = find_lost(around, store.location())?
        {
            return Err(TrailError::StoreLost {
                place: store.location().to_string(),
                origin,
                size: head.size(),
            });
        }
        let random = SessionId::generate(&*around.entropy)?;
        let id = random.as_str().rsplit('_').next().unwrap_or_default();
        let signer = Signer::generate(&format!("safepoint/{id}"), &*around.entropy)?;
        let key = signer.public();
        durable::create_directory(&around.keys)?;
        durable::write(
            &key_path(key, &around.keys),
            format!("{}\n", signer.to_text()).as_bytes(),
            Access::Private,
        )?;
        safepoint_store::fault::point("create.key_written");
        let empty = Frontier::empty();
        let head = Head {
            origin: key.name().to_owned(),
            size: 0,
            root: empty.root(),
        }
        .sign(&signer);
        let directory = around.witnesses.join(log_id(key));
        Witness::create(&directory, key, store.location(), &head)?;
        safepoint_store::fault::point("create.witness_made");
        sql.execute(
            "INSERT INTO trail_log (only_row, origin, verifier_key) VALUES (1, ?1, ?2)",
            &[Value::Text(key.name()), Value::Text(&key.to_string())],
        )?;
        write_head(sql, &head, &empty)?;
        Ok(key.clone())
    })
}

/// Takes the log of a store that this machine has a key for, but has never seen.
fn adopt(
    store: &Store,
    directory: &Path,
    key: &PublicKey,
    signer: &Signer,
) -> Result<Witness, TrailError> {
    let (stored, leaves) = store.read(|sql| -> Result<_, StoreError> {
        let stored = StoredHead::read(sql)?
            .ok_or_else(|| StoreError::corrupted("the trail", "its head is missing"))?;
        let leaves = leaf_hashes(sql, 0, stored.size)?;
        Ok((stored, leaves))
    })?;
    let head = SignedHead::open(&stored.note, key)?;
    let empty = Head {
        origin: key.name().to_owned(),
        size: 0,
        root: Frontier::empty().root(),
    }
    .sign(signer);
    let witness = Witness::create(directory, key, store.location(), &empty)?;
    witness.advance(&head, |_| Ok(leaves))?;
    Ok(witness)
}

/// A log that was kept for this place and is not the one it holds now.
fn lost_trail(
    around: &Surroundings,
    place: &Location,
    present: &PublicKey,
) -> Result<Option<(String, SignedHead)>, TrailError> {
    let lost = find_lost(around, place)?;
    Ok(lost.filter(|(origin, _)| origin != present.name()))
}

/// The log with most entries among those that were kept for this place.
fn find_lost(
    around: &Surroundings,
    place: &Location,
) -> Result<Option<(String, SignedHead)>, TrailError> {
    let listing = match std::fs::read_dir(&around.witnesses) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::file("read", &around.witnesses, error).into()),
    };
    let mut found: Option<(String, SignedHead)> = None;
    for directory in listing.flatten().map(|item| item.path()) {
        let same = std::fs::read_to_string(directory.join("store"))
            .is_ok_and(|text| text == place.to_string());
        if !same {
            continue;
        }
        let id = directory.file_name().unwrap_or_default().to_string_lossy();
        let path = around.keys.join(format!("{id}.key"));
        let Some(signer) = std::fs::read_to_string(path)
            .ok()
            .and_then(|text| Signer::parse(&text).ok())
        else {
            continue;
        };
        let Some(witness) = Witness::open(&directory, signer.public())? else {
            continue;
        };
        if let Ok(head) = witness.head()?
            && head.size() > found.as_ref().map_or(0, |(_, head)| head.size())
        {
            found = Some((signer.public().name().to_owned(), head));
        }
    }
    Ok(found)
}

/// The digest of a blob that stands in place of a large body.
pub(crate) fn blob_of(body: &[u8]) -> Option<Digest> {
    let rest = body.strip_prefix(br#"{"$blob":{"sha256":""#)?;
    std::str::from_utf8(rest.get(..64)?).ok()?.parse().ok()
}
