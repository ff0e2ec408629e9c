//! Where everything is kept: SQLite or PostgreSQL behind one interface, blobs
//! on disk, and the depot in which several machines share them.
//!
//! The one promise made here is that what is written together is kept
//! together: [`Store::write`] runs a closure inside one transaction, and many
//! closures share one commit when many threads write at once ([`group`]).
//! This crate knows no domain rule: tables belong to the crates above, which
//! bring their own [`Component`] of migrations.

pub mod blob;
pub mod depot;
pub mod disk;
pub mod durable;
mod error;
pub mod fault;
mod group;
mod lease;
mod location;
mod migrate;
mod postgres;
pub mod regular;
mod sql;
mod sqlite;
mod store;
mod watch;

pub use blob::Blobs;
pub use depot::{Depot, DepotAddress, DepotAddressError};
pub use error::{Cause, StoreError};
pub use group::{AfterDurable, Durability, Meanwhile, Seal};
pub use lease::{Lease, Leases};
pub use location::{Location, LocationError};
pub use migrate::{Component, Migration};
pub use sql::{Flow, Row, Sql, Value, query_all, query_one};
pub use store::{Options, Store};
pub use watch::{Watch, Woken};
