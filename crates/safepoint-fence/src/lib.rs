//! Keeps a process tree in its place.
//!
//! ```text
//! Fence ──── what a tree may write, and what it may not even read (Landlock)
//! supervisor  what it may reach and change beyond that, and what it wrote (seccomp)
//! freeze ─── how somebody outside keeps it from moving names for a moment
//! broker ─── how a program inside asks for something to be done outside
//! tree ───── who belongs to a tree, and that nobody leaves it
//! ```
//!
//! This crate decides nothing: what is writable, what is hidden and which calls
//! are answered is said by the layers above. What a fence cannot hold is listed
//! in docs/confinement.md.

mod broker;
mod caches;
mod carve;
mod error;
mod fence;
mod freeze;
mod kernel;
mod supervisor;
mod tree;

pub use broker::{Call, CallRefusal, Listener, Peer, Streams, hand_over, hand_over_streams};
pub use caches::default_caches;
pub use error::FenceError;
pub use fence::{Fence, FencedChild, Listing, Strength, Terminals, strength};
pub use freeze::{Freeze, FreezeScope, Frozen, MAX_FREEZE, MAX_UNATTENDED_FREEZE};
pub use supervisor::{
    Gate, HostRule, HostRuleError, NetworkAccess, Observation, Refusal, Supervision, Supervisor,
    Writes,
};
pub use tree::{
    Membership, Process, ancestors, become_subreaper, descendants, is_within, membership,
    reap_orphans,
};
