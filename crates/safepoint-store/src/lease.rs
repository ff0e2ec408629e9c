//! Leases: which of several processes does a piece of background work.
//!
//! A lease is a row with a name, a holder and an end. Its time is the
//! database's, so that no machine's clock counts, and its fence rises each time
//! the work changes hands. Whoever was slow learns of it from
//! [`Leases::check`], inside the transaction that would have done the work.
//!
//! A lease never makes anything safe by itself: between two checks another
//! process may have taken over. What must happen once is written in a
//! transaction that checks the lease.

use std::sync::Arc;
use std::time::Duration;

use crate::{Component, Durability, Location, Migration, Sql, Store, StoreError, Value, query_one};

/// The table of leases.
const COMPONENT: Component = Component {
    name: "leases",
    migrations: &[Migration {
        sqlite: include_str!("../migrations/leases.1.sql"),
        postgres: include_str!("../migrations/leases.1.sql"),
    }],
};

/// The leases of one store, as one process takes them.
#[derive(Clone, Debug)]
pub struct Leases {
    store: Arc<Store>,
    holder: String,
}

/// A piece of work that this process may do, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    name: String,
    holder: String,
    fence: u64,
}

/// A lease as the database has it.
struct Held {
    holder: String,
    expires: i64,
    fence: i64,
}

impl Leases {
    /// The leases of `store` for the process that is called `holder`. No two processes may have
    /// the same name: a random one is best.
    pub fn open(store: Arc<Store>, holder: impl Into<String>) -> Result<Self, StoreError> {
        store.migrate(&COMPONENT)?;
        Ok(Self {
            store,
            holder: holder.into(),
        })
    }

    /// Takes the work called `name` for as long as `life`, or renews it. `None` when another
    /// process has it.
    pub fn take(&self, name: &str, life: Duration) -> Result<Option<Lease>, StoreError> {
        // Most often another has it, and nobody needs to be kept out to see that.
        let taken = self.store.read(|sql| {
            let now = self.now(sql)?;
            let held = read(sql, name)?;
            Ok::<_, StoreError>(held.is_some_and(|held| self.is_taken(&held, now)))
        })?;
        if taken {
            return Ok(None);
        }
        self.store.write(Durability::Sync, |sql| {
            let now = self.now(sql)?;
            let held = read(sql, name)?;
            let fence = match held {
                Some(held) if self.is_taken(&held, now) => return Ok(None),
                Some(held) if held.expires > now => held.fence,
                Some(held) => held.fence.saturating_add(1),
                None => 1,
            };
            let life = i64::try_from(life.as_micros()).unwrap_or(i64::MAX);
            sql.execute(
                "INSERT INTO leases (name, holder, expires, fence) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires = excluded.expires, fence = excluded.fence",
                &[
                    Value::Text(name),
                    Value::Text(&self.holder),
                    Value::Integer(now.saturating_add(life)),
                    Value::Integer(fence),
                ],
            )?;
            Ok(Some(Lease {
                name: name.to_owned(),
                holder: self.holder.clone(),
                fence: u64::try_from(fence).unwrap_or_default(),
            }))
        })
    }

    /// Gives the work back, so that another need not wait for the end of the lease. One that
    /// was taken over meanwhile stays with whoever has it.
    pub fn give_back(&self, lease: &Lease) -> Result<(), StoreError> {
        self.store.write(Durability::Async, |sql| {
            sql.execute(
                "UPDATE leases SET expires = 0 WHERE name = ?1 AND holder = ?2 AND fence = ?3",
                &[
                    Value::Text(&lease.name),
                    Value::Text(&lease.holder),
                    Value::Integer(i64::try_from(lease.fence).unwrap_or(i64::MAX)),
                ],
            )
            .map(drop)
        })
    }

    /// Fails unless this process still has the work. Within a transaction that writes, nobody
    /// can take it over until that is committed.
    pub fn check(&self, sql: &mut dyn Sql, lease: &Lease) -> Result<(), StoreError> {
        let now = self.now(sql)?;
        let same = |held: Held| {
            held.holder == lease.holder
                && u64::try_from(held.fence) == Ok(lease.fence)
                && held.expires > now
        };
        match read(sql, &lease.name)?.is_some_and(same) {
            true => Ok(()),
            false => Err(StoreError::LeaseLost {
                name: lease.name.clone(),
            }),
        }
    }

    fn is_taken(&self, held: &Held, now: i64) -> bool {
        held.holder != self.holder && held.expires > now
    }

    /// The database's own clock, in microseconds.
    fn now(&self, sql: &mut dyn Sql) -> Result<i64, StoreError> {
        let clock = match self.store.location() {
            Location::Sqlite(_) => "SELECT CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER)",
            // Not `now()`, which stands still within a transaction.
            Location::Postgres(_) => {
                "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
            }
        };
        query_one(sql, clock, &[], |row| row.integer(0))?
            .ok_or_else(|| StoreError::corrupted(self.store.location().to_string(), "no clock"))
    }
}

impl Lease {
    /// The work it is for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the work had changed hands when this lease was taken.
    pub fn fence(&self) -> u64 {
        self.fence
    }
}

fn read(sql: &mut dyn Sql, name: &str) -> Result<Option<Held>, StoreError> {
    query_one(
        sql,
        "SELECT holder, expires, fence FROM leases WHERE name = ?1",
        &[Value::Text(name)],
        |row| {
            Ok(Held {
                holder: row.text(0)?.to_owned(),
                expires: row.integer(1)?,
                fence: row.integer(2)?,
            })
        },
    )
}
