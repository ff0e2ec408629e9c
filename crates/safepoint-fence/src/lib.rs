//! Keeps a process tree in its place.
//!
//! ```text
//! caches ─── where tools inside keep what they can make again
//! Fence ──── what a tree may write, and what it may not even read (Landlock)
//! lone ───── a program of ours that writes in a few places and starts nothing else
//! supervisor  what it may reach and change beyond that, and what it wrote (seccomp)
//! freeze ─── how somebody outside keeps it from moving names for a moment
//! name_move  how somebody outside moves names that nobody relies on
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
mod lone;
mod name_move;
mod supervisor;
mod tree;

pub use broker::{Call, CallRefusal, Listener, Peer, Streams, hand_over, hand_over_streams};
pub use caches::{
    CachePlan, CacheVariable, MadeCaches, is_written_in_passing, shared_cache_names, shared_caches,
};
pub use error::FenceError;
pub use fence::{
    Caches, Fence, FencedChild, Listing, Strength, Terminals, is_supervision_possible, strength,
};
pub use freeze::{Freeze, FreezeScope, Frozen, MAX_FREEZE, MAX_UNATTENDED_FREEZE, StandingFreeze};
pub use lone::{Children, LoneFence, is_native};
pub use name_move::{NameMove, NameMoveStart, find_freeze};
pub use supervisor::{
    Gate, GuardedNames, HostRule, HostRuleError, NetworkAccess, Observation, Refusal, Supervision,
    Supervisor, WriteAccess, Writes, builds_sandbox,
};
pub use tree::{
    Membership, Process, ancestors, become_subreaper, descendants, is_within, membership,
    reap_orphans,
};
