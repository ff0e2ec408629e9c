//! What was seen of a supervised tree, as the layers above read it.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What a supervised tree did so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observation {
    /// Hosts that were really reached, as `name:port`, or as `address:port` where
    /// no name is known. What the session started itself is not listed.
    pub hosts: BTreeSet<String>,
    /// Sockets with a path outside the session that were really reached.
    pub sockets: BTreeSet<PathBuf>,
    /// What was refused.
    pub refused: BTreeSet<Refusal>,
    /// What was written, or tried to be.
    pub written: Writes,
}

/// Something that a supervised tree wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// A host and its port.
    Host(String),
    /// A Unix socket: its path, or `@` and its name where it is abstract.
    Socket(PathBuf),
    /// Writing to, or changing the metadata of, a file outside.
    Outside(PathBuf),
    /// A system call that is closed, by its name.
    Call(String),
}

/// Absolute paths that the tree opened for writing, made, moved, linked, emptied
/// or removed, or whose metadata it changed. The call may have failed.
///
/// Not seen are `ftruncate`, maps, and descriptors that were inherited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writes {
    /// Single paths.
    pub paths: BTreeSet<PathBuf>,
    /// Directories that were moved or removed: they and all beneath them.
    pub trees: BTreeSet<PathBuf>,
    /// False where a record was lost or could not be read, so that more may have
    /// been written than is listed.
    pub is_complete: bool,
}

impl Default for Writes {
    fn default() -> Self {
        Self {
            paths: BTreeSet::new(),
            trees: BTreeSet::new(),
            is_complete: true,
        }
    }
}
