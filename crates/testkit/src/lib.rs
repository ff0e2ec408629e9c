//! What tests share: a fixed clock and fixed randomness, rooms with a store of
//! their own on either database, and a hermetic environment for the binary.
//!
//! Depending on this crate switches the fault points of `safepoint-store` on.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "test support: it fails loudly and does what the product may not"
)]

mod cluster;
mod env;
mod outside;
mod room;
pub mod tree;
mod world;

pub use cluster::Cluster;
pub use env::{Run, TestEnv};
pub use outside::outside;
pub use room::{Database, Room, append, draft};
pub use world::{FixedClock, RealClock, Seeded};

/// Makes one test for each database out of one story.
#[macro_export]
macro_rules! on_every_store {
    ($($(#[$meta:meta])* fn $name:ident($room:ident: Room) $body:block)*) => {$(
        mod $name {
            use super::*;

            fn story($room: $crate::Room) $body

            $(#[$meta])*
            #[test]
            fn on_sqlite() {
                story($crate::Room::new($crate::Database::Sqlite));
            }

            $(#[$meta])*
            #[test]
            fn on_postgres() {
                story($crate::Room::new($crate::Database::Postgres));
            }
        }
    )*};
}
