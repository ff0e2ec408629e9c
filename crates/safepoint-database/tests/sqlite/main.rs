//! SQLite, with real files and other processes that write to them.
//!
//! Whoever else is connected is always another process: connections that this
//! process opens beside the crate would lose their locks when it closes a file.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests start processes, open databases themselves and fail loudly"
)]

mod change;
mod child;
mod compare;
mod faults;
mod features;
mod held;
mod large;
mod property;
mod revert;
mod support;
mod tables;
mod writers;
