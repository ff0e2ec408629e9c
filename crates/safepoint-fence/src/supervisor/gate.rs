//! Who is asked when a supervised tree wants something that no rule names.
//!
//! The call waits for the answer. An answer that does not come is a refusal.

use std::fmt::Debug;
use std::path::Path;

use super::Refusal;

/// Answers for a supervised tree. It is called from threads of the supervisor, also from several
/// at once.
pub trait Gate: Debug + Send + Sync {
    /// May this be reached after all? It is asked of hosts and of sockets, each time that one is
    /// wanted; files outside are held by Landlock, which nothing widens later.
    fn admit(&self, wanted: &Refusal) -> bool;

    /// May this be written? It is asked before each call that would write, with the path as it
    /// really is, links in its directories resolved.
    fn may_write(&self, path: &Path) -> bool;
}
