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

    /// Is this removed on behalf of the caller? Landlock gives the right to remove for a whole
    /// directory, and one name in it may be all that was allowed.
    fn removes(&self, _path: &Path) -> bool {
        false
    }

    /// Was this directory made in advance, for the caller to make? Landlock gives the right to write
    /// in it only where it is there when the fence is made. It is asked once.
    fn has_made(&self, _path: &Path) -> bool {
        false
    }
}
