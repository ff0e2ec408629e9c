//! A supervisor for what Landlock does not hold: addresses, names, sockets with
//! a path, metadata of files outside, and the record of who wrote what.
//!
//! ```text
//! rule, address ─ what may be reached
//! observation ─── what was seen
//! ```
//!
//! The supervisor never makes a decision that the rules do not make, and it never
//! lets the kernel go on with a call whose arguments lie in memory that the
//! caller can still change, unless Landlock holds that call too.

#[allow(dead_code, reason = "its callers come with the filter")]
mod address;
mod gate;
mod observation;
mod rule;

pub use gate::Gate;
pub use observation::{Observation, Refusal, Writes};
pub use rule::{HostRule, HostRuleError, NetworkAccess, Supervision};

/// Watches over a process tree, from threads of this process. It stands as long
/// as this process does: when that ends, supervised calls fail with `ENOSYS`.
#[derive(Debug)]
pub struct Supervisor {}

impl Supervisor {
    /// What was seen so far.
    pub fn observe(&self) -> Observation {
        Observation::default()
    }

    /// Does any process still live behind the filter?
    pub fn is_in_use(&self) -> bool {
        false
    }

    /// Blocks until the last process behind the filter is gone.
    pub fn wait_until_unused(&self) {}
}
