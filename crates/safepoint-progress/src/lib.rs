//! Progress: workspaces, and immutable chains of work product in them.
//!
//! A workspace belongs to one agent; what the agent produces is a linear chain
//! of records that nobody changes. The rules are pure functions (`state`,
//! `taxonomy`, `record`, `meter`, `task`); [`Progress`] keeps what happens, in
//! one transaction with the entries that tell of it. Its tables only grow.

mod agent;
mod begin;
mod chain;
mod create;
mod error;
pub mod meter;
mod moves;
mod place;
mod progress;
pub mod record;
pub mod rejection;
pub mod role;
pub mod signal;
pub mod state;
mod table;
pub mod task;
pub mod taxonomy;
mod tell;
mod verify;
mod words;

pub use begin::{Beginning, Created, Given};
pub use chain::Link;
pub use error::ProgressError;
pub use place::{Place, PlaceKind, Seen};
pub use progress::{Progress, Workspace};
pub use verify::{Fault, Verified};
pub use words::UnknownWord;

use safepoint_store::{Component, Migration};

/// The tables of this crate.
pub const COMPONENT: Component = Component {
    name: "progress",
    migrations: &[Migration {
        sqlite: include_str!("../migrations/1.sqlite.sql"),
        postgres: include_str!("../migrations/1.postgres.sql"),
    }],
};
