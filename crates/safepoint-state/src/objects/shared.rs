//! Packs that several machines share: they lie in the depot, and the store has
//! a list of them. What lies here is a cache.
//!
//! A pack is in the depot, durably, then in the list, and only then does
//! anybody refer to what is in it. Killed in between, a pack is left that
//! nobody refers to. A pack is named by the digest of all its bytes, and the
//! list has the digest of its table of contents: nothing that comes out of the
//! depot is believed.
//!
//! Nothing is ever deleted from the depot here: no machine knows what another
//! is about to refer to.

use std::path::Path;
use std::sync::Arc;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use safepoint_store::durable::{self, Access};
use safepoint_store::{
    Component, Depot, Durability, Migration, Row, Store, StoreError, Value, fault, query_all,
    query_one,
};

use super::index::NewPack;
use super::{Objects, pack};
use crate::{ContentId, StateError};

/// The list of packs in the store.
const COMPONENT: Component = Component {
    name: "packs",
    migrations: &[Migration {
        sqlite: include_str!("../../migrations/packs.1.sql"),
        postgres: include_str!("../../migrations/packs.1.sql"),
    }],
};

/// The fault points of this module, in their order.
pub const FAULT_POINTS: [&str; 2] = ["objects.uploaded", "objects.shared"];

/// Where packs are shared, and listed.
#[derive(Clone, Debug)]
pub struct Shared {
    depot: Arc<Depot>,
    store: Arc<Store>,
}

/// A pack as the list has it.
#[derive(Clone, Debug)]
struct Listed {
    number: i64,
    name: ContentId,
    bytes: u64,
    list_bytes: u64,
    list_digest: ContentId,
}

impl Shared {
    /// The packs in `depot` that `store` lists.
    pub fn open(depot: Arc<Depot>, store: Arc<Store>) -> Result<Self, StateError> {
        store.migrate(&COMPONENT)?;
        Ok(Self { depot, store })
    }

    /// Puts the pack at `path` into the depot and into the list, and tells its name there.
    pub(super) fn share(&self, path: &Path) -> Result<ContentId, StateError> {
        let bytes = std::fs::read(path).map_err(|error| StateError::file("read", path, error))?;
        let list = pack::list_of(&bytes, path)?;
        let name = ContentId::of(&bytes);
        let listed = Listed {
            number: 0,
            name,
            bytes: bytes.len() as u64,
            list_bytes: list.len() as u64,
            list_digest: ContentId::of(list),
        };
        self.depot.create(&depot_name(name), bytes)?;
        fault::point("objects.uploaded");
        self.enlist(&listed)?;
        fault::point("objects.shared");
        Ok(name)
    }

    fn enlist(&self, pack: &Listed) -> Result<(), StateError> {
        // What refers to the pack is written after this, and is not durable before it.
        Ok(self.store.write(Durability::Async, |sql| {
            let newest = query_one(
                sql,
                "SELECT number FROM shared_packs ORDER BY number DESC LIMIT 1",
                &[],
                |row| row.integer(0),
            )?;
            let whole = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
            sql.execute(
                "INSERT INTO shared_packs (number, name, bytes, list_bytes, list_digest) \
                 VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (name) DO NOTHING",
                &[
                    Value::Integer(newest.unwrap_or(0).saturating_add(1)),
                    Value::Text(&pack.name.to_string()),
                    whole(pack.bytes),
                    whole(pack.list_bytes),
                    Value::Text(&pack.list_digest.to_string()),
                ],
            )
            .map(drop)
        })?)
    }

    /// The packs that were listed behind `number`.
    fn behind(&self, number: i64) -> Result<Vec<Listed>, StateError> {
        Ok(self.store.read(|sql| {
            query_all(
                sql,
                "SELECT number, name, bytes, list_bytes, list_digest FROM shared_packs \
                 WHERE number > ?1 ORDER BY number",
                &[Value::Integer(number)],
                read_listed,
            )
        })?)
    }

    /// What is in a listed pack, without the pack itself.
    fn contents(&self, listed: &Listed) -> Result<NewPack, StateError> {
        let name = depot_name(listed.name);
        let from = listed.bytes.saturating_sub(listed.list_bytes);
        let list = self
            .depot
            .read_range(&name, from..listed.bytes)?
            .ok_or_else(|| self.damaged(&name, "it is gone"))?;
        if ContentId::of(&list) != listed.list_digest {
            return Err(self.damaged(&name, "its list is not what was written"));
        }
        let objects = pack::decode_list(&list)
            .ok_or_else(|| self.damaged(&name, "its list cannot be read"))?;
        Ok((listed.name.to_string(), listed.bytes, objects))
    }

    /// Fetches a pack into the file at `path`.
    pub(super) fn fetch(&self, name: ContentId, path: &Path) -> Result<(), StateError> {
        let in_depot = depot_name(name);
        let bytes = self
            .depot
            .read(&in_depot)?
            .ok_or_else(|| self.damaged(&in_depot, "it is gone"))?;
        if ContentId::of(&bytes) != name {
            return Err(self.damaged(&in_depot, "it is not what its name says"));
        }
        Ok(durable::write(path, &bytes, Access::Private)?)
    }

    fn damaged(&self, name: &str, why: &str) -> StateError {
        let place = format!("{}/{name}", self.depot.place());
        StateError::damaged(Path::new(&place), why.to_owned())
    }
}

impl Objects {
    /// Puts packs into the depot that were made before there was one.
    pub(super) fn share_all(&self) -> Result<(), StateError> {
        let Some(shared) = &self.options.shared else {
            return Ok(());
        };
        for pack in self.index.packs()? {
            if pack.shared_as.is_none() {
                let name = shared.share(&self.pack_path(&pack.name))?;
                self.index.shared(pack.number, name)?;
            }
        }
        Ok(())
    }

    /// Learns what packs others have shared since the last time. What could not be learned is
    /// tried again the next time; the first reason is returned.
    pub(super) fn learn(&self) -> Result<Option<StateError>, StateError> {
        let Some(shared) = &self.options.shared else {
            return Ok(None);
        };
        let mut listed = shared.behind(self.index.learned()?)?;
        let known: Vec<ContentId> = self
            .index
            .packs()?
            .into_iter()
            .filter_map(|pack| pack.shared_as)
            .collect();
        let mut newest = listed.last().map(|last| last.number);
        listed.retain(|pack| !known.contains(&pack.name));
        let found: Vec<(Listed, Result<NewPack, StateError>)> = listed
            .into_par_iter()
            .map(|pack| {
                let contents = shared.contents(&pack);
                (pack, contents)
            })
            .collect();
        let (mut new, mut failure) = (Vec::new(), None);
        for (listed, contents) in found {
            match contents {
                Ok(pack) => new.push((listed.name, pack)),
                Err(error) if failure.is_none() => {
                    newest = Some(listed.number - 1);
                    failure = Some(error);
                }
                Err(_) => {}
            }
        }
        if let Some(newest) = newest {
            self.index.learn(&new, newest)?;
        }
        Ok(failure)
    }
}

fn read_listed(row: &dyn Row) -> Result<Listed, StoreError> {
    let digest = |column: usize| -> Result<ContentId, StoreError> {
        row.text(column)?.parse().map_err(|()| StoreError::Column {
            column,
            expected: "a digest",
        })
    };
    let size = |column: usize| -> Result<u64, StoreError> {
        u64::try_from(row.integer(column)?).map_err(|_| StoreError::Column {
            column,
            expected: "a size",
        })
    };
    Ok(Listed {
        number: row.integer(0)?,
        name: digest(1)?,
        bytes: size(2)?,
        list_bytes: size(3)?,
        list_digest: digest(4)?,
    })
}

fn depot_name(name: ContentId) -> String {
    format!("packs/{name}")
}
