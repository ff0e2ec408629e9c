//! Where a trail comes from: its key, its rows, its copy outside the database;
//! made together, found again, taken up on another machine, or missed.

use std::path::{Path, PathBuf};

use safepoint_model::LogId;
use safepoint_store::durable::{self, Access};
use safepoint_store::{Durability, Location, Sql, Store, StoreError, Value, fault, query_one};

use crate::TrailError;
use crate::append::each_leaf_hash;
use crate::head::{Head, SignedHead};
use crate::note::{PublicKey, Signer};
use crate::published;
use crate::stored::{StoredHead, write_head};
use crate::trail::{LostStore, Surroundings};
use crate::tree::Frontier;
use crate::verify::Bad;
use crate::witness::{self, Recorded, Witness};

/// The fault points of making a new trail.
pub(crate) const FAULT_POINTS: [&str; 2] = ["create.key_written", "create.witness_made"];

/// The public key of a log, and its id, which names its files.
pub(crate) struct Log {
    pub(crate) key: PublicKey,
    id: LogId,
}

impl Log {
    /// The log that `key` signs; `None` when its name is not one of ours.
    ///
    /// The name may come from a hostile database, and the id becomes part of a
    /// path: it is an id, or it is nothing.
    fn new(key: PublicKey) -> Option<Self> {
        let id = key.name().strip_prefix("safepoint/")?.parse().ok()?;
        Some(Self { key, id })
    }

    /// The log of this store, if it has one.
    pub(crate) fn read(sql: &mut dyn Sql) -> Result<Option<Self>, StoreError> {
        let text = query_one(
            sql,
            "SELECT verifier_key FROM trail_log WHERE only_row = 1",
            &[],
            |row| Ok(row.text(0)?.to_owned()),
        )?;
        text.map(|text| {
            text.parse()
                .ok()
                .and_then(Self::new)
                .ok_or_else(|| StoreError::seal(Bad::at(0, "the database names no key of a trail")))
        })
        .transpose()
    }

    fn key_path(&self, keys: &Path) -> PathBuf {
        match is_given(keys) {
            true => keys.to_owned(),
            false => keys.join(format!("{}.key", self.id)),
        }
    }

    fn witness_path(&self, witnesses: &Path) -> PathBuf {
        witnesses.join(self.id.as_str())
    }

    /// The private key, which must be the one the database names.
    pub(crate) fn signer(&self, keys: &Path) -> Result<Signer, TrailError> {
        let path = self.key_path(keys);
        let origin = self.key.name().to_owned();
        let Some(signer) = read_key(&path, &origin)? else {
            return Err(TrailError::KeyMissing { origin, path });
        };
        if *signer.public() == self.key {
            return Ok(signer);
        }
        if is_given(keys) {
            return Err(TrailError::KeyOther { origin, path });
        }
        // The key file is ours and outside the database: it is the database that is wrong.
        Err(TrailError::Tampered(Bad::at(
            0,
            "the database names another key than the one that signs this trail",
        )))
    }

    /// The copy outside the database, taken from the database where this
    /// machine has the key but has never seen the log.
    pub(crate) fn witness(
        &self,
        store: &Store,
        around: &Surroundings,
        signer: &Signer,
    ) -> Result<(Witness, Copy), TrailError> {
        let directory = self.witness_path(&around.witnesses);
        match Witness::open(&directory, &self.key)? {
            Some(witness) => {
                remember_place(&directory, &place_of(store.location()))?;
                let copy = witness.copy();
                Ok((witness, copy))
            }
            None => {
                let witness = adopt(store, around, &directory, signer)?;
                let copy = witness.copy();
                Ok((witness, copy))
            }
        }
    }
}

/// Whether this is the one key file of a deployment, and not a directory of keys.
fn is_given(keys: &Path) -> bool {
    keys.extension().is_some_and(|end| end == "key")
}

/// The key in a file; `None` when there is none.
fn read_key(path: &Path, origin: &str) -> Result<Option<Signer>, TrailError> {
    let (origin, path) = (origin.to_owned(), path.to_owned());
    match std::fs::read_to_string(&path) {
        Ok(text) => match Signer::parse(&text) {
            Ok(signer) => Ok(Some(signer)),
            Err(cause) => Err(TrailError::KeyInvalid {
                origin,
                path,
                cause,
            }),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TrailError::KeyUnreadable {
            origin,
            path,
            error,
        }),
    }
}

/// Since when the copy outside the database has been there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// Since the trail began.
    Kept,
    /// It was missing once, and this machine made it from the database, so it
    /// vouches for nothing that was there before.
    MadeAnew {
        /// How many entries the database had then.
        since: u64,
    },
}

/// The places at which a log was kept, one a line.
fn places(directory: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(directory.join("store")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Remembers a place to which a store was moved.
fn remember_place(directory: &Path, place: &str) -> Result<(), StoreError> {
    let mut places = places(directory);
    if places.iter().any(|known| known == place) {
        return Ok(());
    }
    places.push(place.to_owned());
    let text = places.join("\n");
    durable::write(&directory.join("store"), text.as_bytes(), Access::Private)
}

/// The head of a trail without entries.
fn empty_head(signer: &Signer) -> SignedHead {
    let head = Head {
        origin: signer.public().name().to_owned(),
        size: 0,
        root: Frontier::empty().root(),
    };
    head.sign(signer)
}

/// Makes the key, the directory outside the database, and the rows inside it.
///
/// All under the write lock, so that two processes make one log; and the rows
/// last, so that a crash in between leaves at most a key that nobody uses.
pub(crate) fn create(store: &Store, around: &Surroundings) -> Result<Log, TrailError> {
    store.write(Durability::Sync, |sql| {
        if let Some(log) = Log::read(sql)? {
            return Ok(log);
        }
        let mut lost = others(around, store.location(), None)?;
        lost.retain(|other| other.superseded_by.is_none());
        if around.lost_store == LostStore::Refuse
            && let Some(other) = lost.first()
        {
            return Err(TrailError::StoreLost {
                place: store.location().to_string(),
                origin: other.origin.clone(),
                size: other.head.size(),
            });
        }
        let (log, signer) = begin(store, around)?;
        fault::point("create.key_written");
        let head = empty_head(&signer);
        let directory = log.witness_path(&around.witnesses);
        Witness::create(&directory, &log.key, &place_of(store.location()), &head)?;
        fault::point("create.witness_made");
        for other in lost {
            let path = other.directory.join("superseded");
            durable::write(&path, log.key.name().as_bytes(), Access::Private)?;
        }
        sql.execute(
            "INSERT INTO trail_log (only_row, verifier_key) VALUES (1, ?1)",
            &[Value::Text(&log.key.to_string())],
        )?;
        write_head(sql, &head, &Frontier::empty())?;
        Ok(log)
    })
}

/// The key of a new log: the one that was given, or a new one.
fn begin(store: &Store, around: &Surroundings) -> Result<(Log, Signer), TrailError> {
    let given = match is_given(&around.keys) {
        true => read_key(&around.keys, "of this store")?,
        false => None,
    };
    if let Some(signer) = given {
        let log = Log::new(signer.public().clone()).ok_or_else(|| TrailError::KeyOther {
            origin: signer.public().name().to_owned(),
            path: around.keys.clone(),
        })?;
        // A key signs one log. What was published with it is another one, or this one's past.
        if let Some(depot) = around.blobs.depot() {
            depot.claim(log.key.name());
            if let Some(head) = published::newest(depot, &log.key)? {
                return Err(TrailError::StoreLost {
                    place: store.location().to_string(),
                    origin: log.key.name().to_owned(),
                    size: head.size(),
                });
            }
        }
        return Ok((log, signer));
    }
    let id = LogId::generate(&*around.entropy)?;
    let signer = Signer::generate(&format!("safepoint/{id}"), &*around.entropy)?;
    let key = signer.public().clone();
    let log = Log { key, id };
    let path = log.key_path(&around.keys);
    if let Some(directory) = path.parent() {
        durable::create_directory(directory)?;
    }
    let text = format!("{}\n", signer.to_text());
    durable::write(&path, text.as_bytes(), Access::Private)?;
    Ok((log, signer))
}

/// Takes up the log of a store for which this machine has the key, but no copy outside.
fn adopt(
    store: &Store,
    around: &Surroundings,
    directory: &Path,
    signer: &Signer,
) -> Result<Witness, TrailError> {
    let key = signer.public();
    let published = match around.blobs.depot() {
        Some(depot) => published::newest(depot, key)?,
        None => None,
    };
    // Under the write lock, so that two processes do not make one copy.
    store.write(Durability::Sync, |sql| {
        if let Some(witness) = Witness::open(directory, key)? {
            return Ok(witness);
        }
        let stored = StoredHead::read(sql)?
            .ok_or_else(|| StoreError::seal(Bad::at(0, "the head in the database is gone")))?;
        let head = SignedHead::open(&stored.note, key)?;
        // Before anything is kept: what is kept is believed from then on.
        if let Some(published) = &published {
            published::check(sql, published, head.size())?;
        }
        // The head goes into a copy first and its hashes after it, so hashes without a head
        // are left by whoever took the head away.
        let hashes = witness::count_hashes(directory)?;
        if hashes > head.size() {
            return Err(TrailError::Tampered(Bad::at(
                head.size(),
                format!(
                    "the database has {} entries, and the copy outside has the hashes of {hashes}",
                    head.size()
                ),
            )));
        }
        let place = place_of(store.location());
        if head.size() > 0 {
            durable::create_directory(directory)?;
            witness::mark_made_anew(directory, head.size(), Recorded::No)?;
        }
        let witness = Witness::create(directory, key, &place, &empty_head(signer))?;
        witness.advance(&head, |from, take| {
            store.read(|sql| each_leaf_hash(sql, from, head.size(), take))
        })?;
        Ok(witness)
    })
}

/// The address of a store as it is remembered: the same for every way to write a path.
fn place_of(location: &Location) -> String {
    match location {
        Location::Sqlite(path) => {
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            Location::Sqlite(path).to_string()
        }
        Location::Postgres(_) => location.to_string(),
    }
}

/// A log that was kept for a place and is not the one it holds now.
pub(crate) struct Other {
    pub(crate) origin: String,
    pub(crate) head: SignedHead,
    directory: PathBuf,
    /// The log that a person began in its place, if one did.
    superseded_by: Option<String>,
}

/// The other logs that were kept for this place, the longest first.
fn others(
    around: &Surroundings,
    place: &Location,
    present: Option<&PublicKey>,
) -> Result<Vec<Other>, TrailError> {
    let listing = match std::fs::read_dir(&around.witnesses) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::file("read", &around.witnesses, error).into()),
    };
    let mut found = Vec::new();
    for directory in listing.flatten().map(|item| item.path()) {
        if !places(&directory).contains(&place_of(place)) {
            continue;
        }
        let id = directory.file_name().unwrap_or_default().to_string_lossy();
        let path = match is_given(&around.keys) {
            true => around.keys.clone(),
            false => around.keys.join(format!("{id}.key")),
        };
        let private = std::fs::read_to_string(path);
        let private = private.ok().and_then(|text| Signer::parse(&text).ok());
        // Whoever took the private key away, too, has not made it another log.
        let Some(key) = private
            .map(|signer| signer.public().clone())
            .or_else(|| witness::key_in(&directory))
            .filter(|key| present != Some(key) && key.name() == format!("safepoint/{id}"))
        else {
            continue;
        };
        let Some(witness) = Witness::open(&directory, &key)? else {
            continue;
        };
        // One without entries was never used: a process died while it made it.
        if let Ok(head) = witness.head()?
            && head.size() > 0
        {
            found.push(Other {
                origin: key.name().to_owned(),
                head,
                superseded_by: std::fs::read_to_string(directory.join("superseded")).ok(),
                directory,
            });
        }
    }
    found.sort_by_key(|other| std::cmp::Reverse(other.head.size()));
    Ok(found)
}

/// The log that a person has given up for the present one.
pub(crate) fn replaced(
    around: &Surroundings,
    place: &Location,
    present: &PublicKey,
) -> Result<Option<Other>, TrailError> {
    let others = others(around, place, Some(present))?;
    let by_present = |other: &Other| other.superseded_by.as_deref() == Some(present.name());
    Ok(others.into_iter().find(by_present))
}

/// Refuses a store that holds another log than the one that was kept there:
/// somebody has put another database in its place.
pub(crate) fn refuse_exchanged(
    around: &Surroundings,
    place: &Location,
    present: &Log,
) -> Result<(), TrailError> {
    let others = others(around, place, Some(&present.key))?;
    match others.iter().find(|other| other.superseded_by.is_none()) {
        None => Ok(()),
        Some(other) => Err(TrailError::Tampered(Bad::at(
            0,
            format!(
                "the store holds another trail than `{}`, which has {} entries",
                other.origin,
                other.head.size()
            ),
        ))),
    }
}
