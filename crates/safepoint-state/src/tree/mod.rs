//! A directory as a snapshot holds it: its entries, sorted by name.
//!
//! A tree is an object like any other. It names its subdirectories by the
//! digest of their trees, so that what has not changed is stored, compared and
//! restored by its name alone.

mod build;
pub(crate) mod codec;
mod compare;
mod hash;

use safepoint_model::Digest;
use serde::{Deserialize, Serialize};

pub use build::{Keep, edit};
pub use codec::{decode, encode};
pub use compare::{Change, ChangeKind, changes, entry_at};
pub(crate) use compare::{add_git, find, same_content};
pub use hash::{HASH_TAG, tree_hash};

use crate::objects::Reader;
use crate::{ContentId, StateError};

/// A moment as file systems keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds since 1970.
    pub seconds: i64,
    /// And so many nanoseconds.
    pub nanos: u32,
}

/// Extended attributes, sorted by name.
pub type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name: any bytes but `/` and NUL.
    pub name: Vec<u8>,
    /// Permission bits, with set-user-id and the like.
    pub mode: u32,
    /// The user it belongs to.
    pub owner: u32,
    /// The group it belongs to.
    pub group: u32,
    /// When its content was last changed.
    pub modified: Moment,
    /// Its extended attributes.
    pub attributes: Attributes,
    /// What it is.
    pub node: Node,
}

/// What stands under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// How many bytes it has.
        size: u64,
        /// Which.
        content: ContentId,
        /// Whether it has holes.
        sparse: bool,
        /// Files with the same number here are one file under several names.
        link: Option<u64>,
    },
    /// A directory.
    Directory(Subtree),
    /// A symbolic link.
    Symlink {
        /// Where it points, whether anything is there or not.
        target: Vec<u8>,
    },
    /// Something that is recorded, and never opened.
    Special {
        /// What it is.
        kind: Special,
        /// The number of a device.
        device: u64,
    },
}

/// What is known of a directory without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subtree {
    /// The tree object.
    pub tree: ContentId,
    /// The hash that a stranger can recompute.
    pub hash: Digest,
    /// How many files and links are in it, at any depth.
    pub files: u64,
    /// How many bytes its files have.
    pub bytes: u64,
    /// Whether there are files with several names in it.
    pub links: bool,
}

/// Things that are not files, directories or links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl Special {
    /// What it is, in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fifo => "named pipe",
            Self::Socket => "socket",
            Self::CharacterDevice => "character device",
            Self::BlockDevice => "block device",
        }
    }
}

impl Entry {
    /// The directory behind this entry, if it is one.
    pub fn subtree(&self) -> Option<&Subtree> {
        match &self.node {
            Node::Directory(subtree) => Some(subtree),
            _ => None,
        }
    }

    /// Whether both are the same but for the time, the link number and what directories hold.
    pub(crate) fn same_metadata(&self, other: &Self) -> bool {
        self.mode == other.mode
            && self.owner == other.owner
            && self.group == other.group
            && self.attributes == other.attributes
    }
}

/// Where trees are read from.
pub trait Trees {
    /// The entries of the tree, sorted by name.
    fn tree(&self, id: ContentId) -> Result<Vec<Entry>, StateError>;
}

impl Trees for Reader<'_> {
    fn tree(&self, id: ContentId) -> Result<Vec<Entry>, StateError> {
        decode(&self.read(id)?).ok_or_else(|| {
            StateError::Unsupported(format!(
                "the tree {id} is not in a format this program knows"
            ))
        })
    }
}

/// What a directory with these entries is called.
pub(crate) fn summarise(entries: &[Entry]) -> (Vec<u8>, Subtree) {
    let encoded = encode(entries);
    let mut subtree = Subtree {
        tree: ContentId::of(&encoded),
        hash: tree_hash(entries),
        files: 0,
        bytes: 0,
        links: false,
    };
    for entry in entries {
        match &entry.node {
            Node::File { size, link, .. } => {
                subtree.files += 1;
                subtree.bytes += size;
                subtree.links |= link.is_some();
            }
            Node::Directory(below) => {
                subtree.files += below.files;
                subtree.bytes += below.bytes;
                subtree.links |= below.links;
            }
            Node::Symlink { .. } | Node::Special { .. } => subtree.files += 1,
        }
    }
    (encoded, subtree)
}
