//! Who is asked when a supervised tree wants something that no rule names.
//!
//! The call waits for the answer. An answer that does not come is a refusal.

use std::fmt::Debug;
use std::path::Path;

use super::Refusal;

/// Who makes a call that writes a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAccess {
    /// The kernel goes on with it, and Landlock holds it. The kernel reads the path again.
    Kernel,
    /// The supervisor makes it on behalf of the caller, by the path that was looked at.
    Supervisor,
    /// Nobody.
    None,
}

/// Answers for a supervised tree. It is called from threads of the supervisor, also from several
/// at once.
pub trait Gate: Debug + Send + Sync {
    /// May this be reached after all? It is asked of hosts and of sockets, each time that one is
    /// wanted; files outside are held by Landlock, which nothing widens later.
    fn admit(&self, wanted: &Refusal) -> bool;

    /// Who may write this? It is asked before each call that would write, with the path as it
    /// really is, links in its directories resolved.
    fn write_access(&self, path: &Path) -> WriteAccess;

    /// May the kernel go on with calls that write? A caller can change a path after it was looked
    /// at, so this is about every place that Landlock lets be written.
    fn may_continue(&self) -> bool {
        true
    }

    /// Are calls handed to the kernel without asking by now?
    fn continues(&self) -> bool {
        true
    }
}
