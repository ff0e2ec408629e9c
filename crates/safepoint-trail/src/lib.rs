//! The one tamper-evident record of everything.
//!
//! Entries are chained per stream, and all of them are leaves of one Merkle
//! tree (RFC 6962) whose head is signed with every commit. [`Trail`] is the
//! only writer of entries. Checking a proof needs no store: [`proof::check`]
//! takes a text and a public key.

mod append;
mod blocks;
pub mod bundle;
pub mod cosign;
mod cosigned;
pub mod dsse;
mod entry;
mod error;
pub mod export;
mod genuine;
pub mod head;
mod names;
pub mod note;
mod origin;
pub mod proof;
mod published;
mod query;
pub mod redact;
mod rows;
mod shape;
mod stored;
pub mod tiles;
mod trail;
pub mod tree;
mod verify;
mod witness;

pub use append::{Draft, Mark, Prepared};
pub use dsse::{Envelope, EnvelopeSignature};
pub use entry::{ENTRY_TAG, Entry, LARGEST_BODY};
pub use error::TrailError;
pub use names::{Actor, FixedKind, Kind, NameError, Stream};
pub use origin::Copy;
pub use published::Published;
pub use query::{FieldFilter, Query};
pub use rows::{Brief, each_brief, end, entry_at, newest_of, newest_time, page_of, page_of_kinds};
pub use trail::{COMPONENT, LostStore, Surroundings, Trail, Writing};
pub use verify::{Bad, Verification};

/// Every point at which a test may kill a process that writes to the trail.
pub fn fault_points() -> impl Iterator<Item = &'static str> {
    origin::FAULT_POINTS
        .into_iter()
        .chain(safepoint_store::fault::POINTS)
        .chain(witness::FAULT_POINTS)
}
