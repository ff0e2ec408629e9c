//! Progress: workspaces, and immutable chains of work product in them.
//!
//! A workspace belongs to one agent; what the agent produces is a linear chain
//! of records that nobody changes. The rules are pure functions (`state`,
//! `taxonomy`, `record`, `meter`, `task`); [`Progress`] keeps what happens, in
//! one transaction with the entries that tell of it. Its tables only grow.

mod account;
mod agent;
mod begin;
mod believed;
mod chain;
mod create;
mod deliver;
mod emitted;
mod error;
mod find;
mod follow;
pub mod integrate;
mod isolated;
mod judged;
mod known;
mod limits;
pub mod meter;
mod metering;
mod moves;
mod object;
mod place;
mod presence;
mod progress;
pub mod record;
mod recover;
pub mod rejection;
pub mod role;
pub mod signal;
pub mod state;
mod table;
pub mod task;
mod tasks;
pub mod taxonomy;
mod tell;
mod verify;
mod violation;
mod watch;
mod words;

pub use begin::{Beginning, Created, Given};
pub use chain::{Found, Link};
pub use error::ProgressError;
pub use isolated::{Apart, Removed, Unheld, checkpoint_in, create_apart, remove_apart};
pub use metering::Metered;
pub use place::{Place, PlaceKind, Seen};
pub use presence::Presence;
pub use progress::{Progress, Workspace};
pub use recover::Recovered;
pub use verify::{Fault, Subject, Verified, VerifiedFiles};
pub use violation::{ActionTaken, Violation, Wrong};
pub use words::UnknownWord;

use safepoint_store::{Component, Migration};

/// The points at which a test may kill a process, besides those of the store and the trail.
pub const FAULT_POINTS: [&str; 21] = [
    "progress.create.recorded",
    "progress.create.kept",
    "progress.create.bound",
    "progress.move.recorded",
    "progress.move.kept",
    "progress.record.recorded",
    "progress.record.kept",
    "progress.record.told",
    "progress.record.acknowledged",
    "progress.signal.recorded",
    "progress.signal.in_line",
    "progress.signal.acknowledged",
    "progress.deliver.recorded",
    "progress.deliver.kept",
    "progress.deliver.out_of_line",
    "progress.recover.verified",
    "progress.recover.compared",
    "progress.recover.moved",
    "progress.recover.lined_up",
    "progress.recover.delivered",
    "progress.recover.told",
];

/// The tables of this crate.
pub const COMPONENT: Component = Component {
    name: "progress",
    migrations: &[
        Migration {
            sqlite: include_str!("../migrations/1.sqlite.sql"),
            postgres: include_str!("../migrations/1.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/2.sqlite.sql"),
            postgres: include_str!("../migrations/2.postgres.sql"),
        },
        Migration {
            sqlite: include_str!("../migrations/3.sqlite.sql"),
            postgres: include_str!("../migrations/3.postgres.sql"),
        },
    ],
};
