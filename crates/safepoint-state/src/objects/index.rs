//! Where each object lies: a small SQLite database beside the packs.
//!
//! It holds nothing that the packs do not: when it is lost it is rebuilt.

use std::path::Path;
use std::time::Duration;

use safepoint_store::{
    Component, Durability, Location, Migration, Options, Row, Sql, Store, StoreError, Value,
    query_all, query_one,
};

use super::pack::{Form, Place};
use crate::{ContentId, StateError};

const COMPONENT: Component = Component {
    name: "objects",
    // Packs are local files, and so is their index.
    migrations: &[
        Migration {
            sqlite: include_str!("../../migrations/objects.1.sql"),
            postgres: "",
        },
        Migration {
            sqlite: include_str!("../../migrations/objects.2.sql"),
            postgres: "",
        },
    ],
};

/// A pack as the index knows it.
#[derive(Clone, Debug)]
pub(super) struct KnownPack {
    pub(super) number: i64,
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Its name in the depot, if it is there.
    pub(super) shared_as: Option<ContentId>,
}

/// An object's pack, and where it lies in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    pub(super) pack: i64,
    pub(super) place: Place,
}

#[derive(Debug)]
pub(super) struct Index {
    store: Store,
}

impl Index {
    pub(super) fn open(path: &Path, lock_timeout: Duration) -> Result<Self, StateError> {
        let store = Store::open(&Location::Sqlite(path.to_owned()), Options { lock_timeout })?;
        store.migrate(&COMPONENT)?;
        Ok(Self { store })
    }

    /// A number that changes whenever objects are deleted: what was known of
    /// them before must not be trusted any more.
    pub(super) fn generation(&self) -> Result<u64, StateError> {
        let found = self.store.read(|sql| {
            query_one(
                sql,
                "SELECT generation FROM object_generation",
                &[],
                |row| row.integer(0),
            )
        })?;
        Ok(found
            .and_then(|found| u64::try_from(found).ok())
            .unwrap_or(0))
    }

    /// Gives it a generation that no other index had.
    pub(super) fn renew(&self, options: &super::Options) -> Result<(), StateError> {
        let mut random = [0; 8];
        options.entropy.fill(&mut random)?;
        let generation = i64::from_be_bytes(random) & (i64::MAX >> 1);
        Ok(self.store.write(Durability::Sync, |sql| {
            sql.execute(
                "UPDATE object_generation SET generation = ?1",
                &[Value::Integer(generation)],
            )
            .map(drop)
        })?)
    }

    pub(super) fn packs(&self) -> Result<Vec<KnownPack>, StateError> {
        Ok(self.store.read(|sql| {
            query_all(
                sql,
                "SELECT number, name, bytes, shared_as FROM object_packs ORDER BY number",
                &[],
                read_pack,
            )
        })?)
    }

    /// The pack of this number.
    pub(super) fn pack(&self, number: i64) -> Result<Option<KnownPack>, StateError> {
        Ok(self.store.read(|sql| {
            query_one(
                sql,
                "SELECT number, name, bytes, shared_as FROM object_packs WHERE number = ?1",
                &[Value::Integer(number)],
                read_pack,
            )
        })?)
    }

    pub(super) fn objects(&self) -> Result<u64, StateError> {
        let found = self.store.read(|sql| {
            query_one(sql, "SELECT count(*) FROM object_places", &[], |row| {
                row.integer(0)
            })
        })?;
        Ok(found
            .and_then(|found| u64::try_from(found).ok())
            .unwrap_or(0))
    }

    /// Where these objects lie, in the same order.
    pub(super) fn find(
        &self,
        ids: impl IntoIterator<Item = ContentId>,
    ) -> Result<Vec<Option<Located>>, StateError> {
        Ok(self.store.read(|sql| {
            ids.into_iter()
                .map(|id| find_one(sql, id))
                .collect::<Result<_, StoreError>>()
        })?)
    }

    /// Every object of one pack.
    pub(super) fn of_pack(&self, pack: i64) -> Result<Vec<(ContentId, Place)>, StateError> {
        Ok(self.store.read(|sql| {
            query_all(
                sql,
                "SELECT pack, block, position, length, form, id FROM object_places WHERE pack = ?1 ORDER BY block, position",
                &[Value::Integer(pack)],
                |row| {
                    let id = row
                        .bytes(5)?
                        .and_then(ContentId::from_slice)
                        .ok_or(StoreError::Column {
                            column: 5,
                            expected: "a digest",
                        })?;
                    Ok((id, read_located(row)?.place))
                },
            )
        })?)
    }

    /// Adds a pack with its objects. Those that another process added first stay where they are.
    pub(super) fn add(
        &self,
        (name, bytes, objects): &NewPack,
        shared_as: Option<ContentId>,
    ) -> Result<(), StateError> {
        let mut sorted: Vec<_> = objects.iter().collect();
        sorted.sort_unstable_by_key(|(id, _)| *id); // the tree of the index grows at one end
        Ok(self.store.write(Durability::Sync, |sql| {
            let pack = add_pack(sql, name, *bytes)?;
            for (id, place) in sorted {
                add_place(sql, Clash::Keep, *id, pack, *place)?;
            }
            shared_as.map_or(Ok(()), |shared_as| note_shared(sql, pack, shared_as))
        })?)
    }

    /// Notes that a pack lies in the depot.
    pub(super) fn shared(&self, pack: i64, name: ContentId) -> Result<(), StateError> {
        Ok(self
            .store
            .write(Durability::Sync, |sql| note_shared(sql, pack, name))?)
    }

    /// How much of the list of shared packs is known.
    pub(super) fn learned(&self) -> Result<i64, StateError> {
        let found = self.store.read(|sql| {
            query_one(sql, "SELECT number FROM object_learned", &[], |row| {
                row.integer(0)
            })
        })?;
        Ok(found.unwrap_or(0))
    }

    /// Adds packs that others have shared, and notes how much of their list is known.
    pub(super) fn learn(
        &self,
        packs: &[(ContentId, NewPack)],
        learned: i64,
    ) -> Result<(), StateError> {
        Ok(self.store.write(Durability::Sync, |sql| {
            for (shared_as, (name, bytes, objects)) in packs {
                let pack = add_pack(sql, name, *bytes)?;
                for (id, place) in objects {
                    add_place(sql, Clash::Keep, *id, pack, *place)?;
                }
                note_shared(sql, pack, *shared_as)?;
            }
            sql.execute(
                "UPDATE object_learned SET number = ?1 WHERE number < ?1",
                &[Value::Integer(learned)],
            )?;
            Ok::<_, StoreError>(())
        })?)
    }

    /// The same for many packs at once: all of them, or none.
    pub(super) fn add_all(&self, packs: &[NewPack]) -> Result<(), StateError> {
        Ok(self.store.write(Durability::Sync, |sql| {
            for (name, bytes, objects) in packs {
                let pack = add_pack(sql, name, *bytes)?;
                for (id, place) in objects {
                    add_place(sql, Clash::Keep, *id, pack, *place)?;
                }
            }
            Ok::<_, StoreError>(())
        })?)
    }

    /// Puts what is kept into its new places and forgets the rest, all at once.
    pub(super) fn rearrange(&self, change: &Rearrangement) -> Result<(), StateError> {
        Ok(self.store.write(Durability::Sync, |sql| {
            for (name, bytes, objects) in &change.added {
                let pack = add_pack(sql, name, *bytes)?;
                for (id, place) in objects {
                    add_place(sql, Clash::Replace, *id, pack, *place)?;
                }
            }
            for id in &change.dropped {
                sql.execute(
                    "DELETE FROM object_places WHERE id = ?1",
                    &[Value::Blob(id.as_bytes())],
                )?;
            }
            for pack in &change.removed {
                sql.execute(
                    "DELETE FROM object_packs WHERE number = ?1",
                    &[Value::Integer(*pack)],
                )?;
            }
            sql.execute(
                "UPDATE object_generation SET generation = generation + 1",
                &[],
            )?;
            Ok::<_, StoreError>(())
        })?)
    }
}

/// A pack that is not in the index yet: name, bytes, objects.
pub(super) type NewPack = (String, u64, Vec<(ContentId, Place)>);

/// What a collection of garbage changes.
#[derive(Debug, Default)]
pub(super) struct Rearrangement {
    pub(super) added: Vec<NewPack>,
    pub(super) dropped: Vec<ContentId>,
    pub(super) removed: Vec<i64>,
}

fn find_one(sql: &mut dyn Sql, id: ContentId) -> Result<Option<Located>, StoreError> {
    query_one(
        sql,
        "SELECT pack, block, position, length, form FROM object_places WHERE id = ?1",
        &[Value::Blob(id.as_bytes())],
        read_located,
    )
}

fn read_pack(row: &dyn Row) -> Result<KnownPack, StoreError> {
    Ok(KnownPack {
        number: row.integer(0)?,
        name: row.text(1)?.to_owned(),
        bytes: u64::try_from(row.integer(2)?).unwrap_or(0),
        shared_as: row.optional_text(3)?.and_then(|name| name.parse().ok()),
    })
}

fn read_located(row: &dyn Row) -> Result<Located, StoreError> {
    let wrong = |column| StoreError::Column {
        column,
        expected: "a place in a pack",
    };
    let small = |column: usize| -> Result<u32, StoreError> {
        u32::try_from(row.integer(column)?).map_err(|_| wrong(column))
    };
    Ok(Located {
        pack: row.integer(0)?,
        place: Place {
            block: u64::try_from(row.integer(1)?).map_err(|_| wrong(1))?,
            position: small(2)?,
            length: small(3)?,
            form: Form::from_code(row.integer(4)?).ok_or_else(|| wrong(4))?,
        },
    })
}

fn add_pack(sql: &mut dyn Sql, name: &str, bytes: u64) -> Result<i64, StoreError> {
    sql.execute(
        // Another process may have found it first, while it rebuilt an empty index.
        "INSERT OR IGNORE INTO object_packs (name, bytes) VALUES (?1, ?2)",
        &[
            Value::Text(name),
            Value::Integer(i64::try_from(bytes).unwrap_or(i64::MAX)),
        ],
    )?;
    let number = query_one(
        sql,
        "SELECT number FROM object_packs WHERE name = ?1",
        &[Value::Text(name)],
        |row| row.integer(0),
    )?;
    Ok(number.unwrap_or_default())
}

fn note_shared(sql: &mut dyn Sql, pack: i64, name: ContentId) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE object_packs SET shared_as = ?2 WHERE number = ?1",
        &[Value::Integer(pack), Value::Text(&name.to_string())],
    )
    .map(drop)
}

/// What becomes of an object that has a place already.
#[derive(Clone, Copy)]
enum Clash {
    Keep,
    Replace,
}

fn add_place(
    sql: &mut dyn Sql,
    clash: Clash,
    id: ContentId,
    pack: i64,
    place: Place,
) -> Result<(), StoreError> {
    let statement = match clash {
        Clash::Replace => {
            "INSERT OR REPLACE INTO object_places (id, pack, block, position, length, form) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        }
        Clash::Keep => {
            "INSERT OR IGNORE INTO object_places (id, pack, block, position, length, form) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
        }
    };
    sql.execute(
        statement,
        &[
            Value::Blob(id.as_bytes()),
            Value::Integer(pack),
            Value::Integer(i64::try_from(place.block).unwrap_or(i64::MAX)),
            Value::Integer(i64::from(place.position)),
            Value::Integer(i64::from(place.length)),
            Value::Integer(i64::from(place.form as u8)),
        ],
    )?;
    Ok(())
}
