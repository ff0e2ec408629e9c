//! What one `stat` tells, in our own words.

use rustix::fs::{FileType, Stat};

use super::cache::Stamp;
use crate::tree::{Entry, Moment, Node, Special};

/// What is known of a name without opening it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) kind: FileType,
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) links: u64,
    pub(crate) inode: u64,
    /// The number of a device, when it is one.
    pub(crate) device: u64,
    /// The file system it is on.
    pub(crate) file_system: u64,
    pub(crate) modified: Moment,
    pub(crate) changed: Moment,
}

impl Found {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: stat.st_mode & 0o7777,
            owner: stat.st_uid,
            group: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
            links: stat.st_nlink,
            inode: stat.st_ino,
            device: stat.st_rdev,
            file_system: stat.st_dev,
            modified: moment_of(stat.st_mtime, stat.st_mtime_nsec),
            changed: moment_of(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    /// What it is, if it is nothing that can be read.
    pub(crate) fn special(&self) -> Option<Special> {
        match self.kind {
            FileType::Fifo => Some(Special::Fifo),
            FileType::Socket => Some(Special::Socket),
            FileType::CharacterDevice => Some(Special::CharacterDevice),
            FileType::BlockDevice => Some(Special::BlockDevice),
            _ => None,
        }
    }

    /// Whether nothing happened to the file between two looks.
    pub(crate) fn same_state(&self, other: &Self) -> bool {
        self.inode == other.inode
            && self.size == other.size
            && self.modified == other.modified
            && self.changed == other.changed
    }

    /// Whether it is the same sort of thing.
    pub(crate) fn is_same_kind(&self, entry: &Entry) -> bool {
        match &entry.node {
            Node::File { .. } => self.is_file(),
            Node::Directory(_) => self.is_directory(),
            Node::Symlink { .. } => self.kind == FileType::Symlink,
            Node::Special { kind, .. } => self.special() == Some(*kind),
        }
    }

    /// A number for all names of one file: inodes of other file systems have others.
    pub(crate) fn link(&self) -> Option<u64> {
        (self.links > 1).then_some(self.inode ^ self.file_system.rotate_left(40))
    }

    /// Whether it still is what the cache knows.
    pub(crate) fn matches(&self, entry: &Entry, stamp: &Stamp) -> bool {
        stamp.quiet
            && self.changed == stamp.changed
            && self.inode == stamp.inode
            && self.modified == entry.modified
            && self.mode == entry.mode
            && self.owner == entry.owner
            && self.group == entry.group
            && match &entry.node {
                Node::File { size, link, .. } => {
                    self.is_file() && self.size == *size && link.is_some() == (self.links > 1)
                }
                Node::Directory(_) => self.is_directory(),
                Node::Symlink { .. } => self.kind == FileType::Symlink,
                Node::Special { kind, device } => {
                    self.special() == Some(*kind) && self.device == *device
                }
            }
    }

    /// An entry with this metadata.
    pub(crate) fn entry(&self, name: &[u8], node: Node) -> Entry {
        Entry {
            name: name.to_vec(),
            mode: self.mode,
            owner: self.owner,
            group: self.group,
            modified: self.modified,
            attributes: Vec::new(),
            node,
        }
    }
}

fn moment_of(seconds: i64, nanos: impl TryInto<u32>) -> Moment {
    Moment {
        seconds,
        nanos: nanos.try_into().unwrap_or(0),
    }
}
