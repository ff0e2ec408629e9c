//! What the last scan found, so that the next one reads only what changed.
//!
//! A file is taken as unchanged when its size, mode, both times and its number
//! are those of the last time, *and* it had been quiet for a while when it was
//! read then. The time of the last change of the inode cannot be set back by a
//! program, so an edit that keeps size and time is still seen.
//!
//! Losing the cache costs time, nothing else. A cache that is damaged, or was
//! written before objects were deleted, or under other rules, is not used.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use safepoint_model::Digest;
use safepoint_store::durable::{self, Access};

use crate::path::TreePath;
use crate::tree::codec::{Input, bytes, number};
use crate::tree::{self, Entry, Moment, Subtree};
use crate::{ContentId, StateError};

const MAGIC: &[u8] = b"SPSTAT\n1";

/// What tells an inode's state at the time it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The time of its last change, as the kernel keeps it.
    pub(crate) changed: Moment,
    /// Its number.
    pub(crate) inode: u64,
    /// Whether it had been quiet for long enough to be trusted.
    pub(crate) quiet: bool,
}

/// A file that was left out because of what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Flagged {
    pub(crate) name: Vec<u8>,
    pub(crate) reason: u8,
    pub(crate) size: u64,
    pub(crate) modified: Moment,
    pub(crate) stamp: Stamp,
}

/// One directory as it was.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) subtree: Subtree,
    pub(crate) entries: Vec<Entry>,
    pub(crate) stamps: Vec<Stamp>,
    pub(crate) flagged: Vec<Flagged>,
}

/// What was found by the last scan of a workspace.
#[derive(Default)]
pub(crate) struct Cache {
    content: Vec<u8>,
    directories: HashMap<TreePath, Range<usize>>,
}

/// What a cache must fit to be used.
#[derive(Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) generation: u64,
    pub(crate) rules: ContentId,
}

impl Validity {
    fn header(self) -> Vec<u8> {
        let mut header = MAGIC.to_vec();
        header.extend(self.generation.to_le_bytes());
        header.extend_from_slice(self.rules.as_bytes());
        header
    }
}

impl Cache {
    /// Reads the cache at `path`; an empty one where there is none that can be used.
    pub(crate) fn load(path: &Path, validity: Validity) -> Self {
        std::fs::read(path)
            .ok()
            .and_then(|content| Self::parse(content, validity))
            .unwrap_or_default()
    }

    fn parse(content: Vec<u8>, validity: Validity) -> Option<Self> {
        let header = validity.header();
        let end = content.len().checked_sub(ContentId::LENGTH)?;
        let (body, digest) = content.split_at_checked(end)?;
        if !body.starts_with(&header) || ContentId::of(body).as_bytes() != digest {
            return None;
        }
        let mut directories = HashMap::new();
        let mut input = Input(body.get(header.len()..)?);
        while !input.0.is_empty() {
            let path = input.bytes()?.to_vec();
            let record = input.bytes()?;
            let from = end - input.0.len() - record.len();
            directories.insert(path, from..from + record.len());
        }
        Some(Self {
            content,
            directories,
        })
    }

    fn raw(&self, path: &[u8]) -> Option<&[u8]> {
        self.content.get(self.directories.get(path)?.clone())
    }

    /// What is known of the directory at `path`.
    pub(crate) fn get(&self, path: &[u8]) -> Option<Record> {
        decode(self.raw(path)?)
    }

    /// Writes a cache of what `seen` found. `whole` says that directories that were not seen are gone.
    pub(crate) fn save(
        &self,
        path: &Path,
        validity: Validity,
        seen: &[(TreePath, Seen)],
        whole: bool,
    ) -> Result<(), StateError> {
        let changed = |(_, seen): &(TreePath, Seen)| matches!(seen, Seen::New(_));
        if !seen.iter().any(changed) && (!whole || seen.len() == self.directories.len()) {
            return Ok(());
        }
        let mut content = validity.header();
        for (path, seen) in seen {
            let record = match seen {
                Seen::New(record) => record.as_slice(),
                Seen::Same => self.raw(path).unwrap_or_default(),
            };
            bytes(&mut content, path);
            bytes(&mut content, record);
        }
        if !whole {
            let paths: std::collections::HashSet<&TreePath> =
                seen.iter().map(|(path, _)| path).collect();
            for path in self.directories.keys().filter(|path| !paths.contains(path)) {
                bytes(&mut content, path);
                bytes(&mut content, self.raw(path).unwrap_or_default());
            }
        }
        let digest = ContentId::of(&content);
        content.extend_from_slice(digest.as_bytes());
        if let Some(directory) = path.parent() {
            durable::create_directory(directory)?;
        }
        Ok(durable::write(path, &content, Access::Private)?)
    }
}

/// What a scan found in one directory.
pub(crate) enum Seen {
    /// What the cache says.
    Same,
    /// Something else: the new record.
    New(Vec<u8>),
}

pub(crate) fn encode(record: &Record) -> Vec<u8> {
    let tree = tree::encode(&record.entries);
    let mut out = Vec::with_capacity(tree.len() + record.stamps.len() * 14 + 80);
    out.extend_from_slice(record.subtree.tree.as_bytes());
    out.extend_from_slice(record.subtree.hash.as_bytes());
    number(&mut out, record.subtree.files);
    number(&mut out, record.subtree.bytes);
    out.push(u8::from(record.subtree.links));
    bytes(&mut out, &tree);
    for stamp in &record.stamps {
        encode_stamp(&mut out, *stamp);
    }
    for flagged in &record.flagged {
        bytes(&mut out, &flagged.name);
        out.push(flagged.reason);
        number(&mut out, flagged.size);
        encode_moment(&mut out, flagged.modified);
        encode_stamp(&mut out, flagged.stamp);
    }
    out
}

fn encode_moment(out: &mut Vec<u8>, moment: Moment) {
    out.extend(moment.seconds.to_le_bytes());
    out.extend(moment.nanos.to_le_bytes());
}

fn encode_stamp(out: &mut Vec<u8>, stamp: Stamp) {
    encode_moment(out, stamp.changed);
    number(out, stamp.inode);
    out.push(u8::from(stamp.quiet));
}

fn decode(record: &[u8]) -> Option<Record> {
    let mut input = Input(record);
    let subtree = Subtree {
        tree: input.content()?,
        hash: Digest::from_bytes(input.take(32)?.try_into().ok()?),
        files: input.number()?,
        bytes: input.number()?,
        links: input.byte()? == 1,
    };
    let entries = tree::decode(input.bytes()?)?;
    let stamps = entries
        .iter()
        .map(|_| decode_stamp(&mut input))
        .collect::<Option<_>>()?;
    let mut flagged = Vec::new();
    while !input.0.is_empty() {
        flagged.push(Flagged {
            name: input.bytes()?.to_vec(),
            reason: input.byte()?,
            size: input.number()?,
            modified: decode_moment(&mut input)?,
            stamp: decode_stamp(&mut input)?,
        });
    }
    Some(Record {
        subtree,
        entries,
        stamps,
        flagged,
    })
}

fn decode_moment(input: &mut Input<'_>) -> Option<Moment> {
    Some(Moment {
        seconds: i64::from_le_bytes(input.take(8)?.try_into().ok()?),
        nanos: u32::from_le_bytes(input.take(4)?.try_into().ok()?),
    })
}

fn decode_stamp(input: &mut Input<'_>) -> Option<Stamp> {
    Some(Stamp {
        changed: decode_moment(input)?,
        inode: input.number()?,
        quiet: input.byte()? == 1,
    })
}
