//! The hash of a tree that a stranger can recompute with a short script.
//!
//! The hash of a directory is SHA-256 over a tag and, for each entry in the
//! order of the bytes of its name,
//!
//! ```text
//! KIND SP MODE SP VALUE [SP XATTRS] NUL NAME NUL
//! ```
//!
//! where a file has `f`, its mode as four octal digits and the BLAKE3 digest of
//! its bytes; a directory `d` and its own hash; a link `l` and the BLAKE3 digest
//! of its target; anything else its letter and `-`. Times, owners and hard
//! links are kept by a checkpoint, but are no part of the hash: the same tree
//! has the same hash on any machine. `docs/formats/tree-hash.md` has a script.

use safepoint_model::Digest;
use sha2::{Digest as _, Sha256};

use super::{Entry, Node, Special};
use crate::ContentId;

/// What every directory's hash begins with.
pub const HASH_TAG: &[u8] = b"safepoint tree 1\n";

/// The hash of a directory with these entries, which are sorted by name.
pub fn tree_hash(entries: &[Entry]) -> Digest {
    let mut hasher = Sha256::new();
    let mut text = Vec::with_capacity(HASH_TAG.len() + entries.len() * 100);
    text.extend_from_slice(HASH_TAG);
    for entry in entries {
        line(&mut text, entry);
    }
    hasher.update(&text);
    Digest::from_bytes(hasher.finalize().into())
}

fn line(text: &mut Vec<u8>, entry: &Entry) {
    let kind = match &entry.node {
        Node::File { .. } => b'f',
        Node::Directory(_) => b'd',
        Node::Symlink { .. } => b'l',
        Node::Special { kind, .. } => match kind {
            Special::Fifo => b'p',
            Special::Socket => b's',
            Special::CharacterDevice => b'c',
            Special::BlockDevice => b'b',
        },
    };
    text.extend_from_slice(&[kind, b' ']);
    for shift in [9, 6, 3, 0] {
        text.push(b'0' + u8::try_from(entry.mode >> shift & 7).unwrap_or_default());
    }
    text.push(b' ');
    match &entry.node {
        Node::File { content, .. } => hexadecimal(text, content.as_bytes()),
        Node::Directory(subtree) => hexadecimal(text, subtree.hash.as_bytes()),
        Node::Symlink { target } => hexadecimal(text, ContentId::of(target).as_bytes()),
        Node::Special { .. } => text.push(b'-'),
    }
    if !entry.attributes.is_empty() {
        let mut attributes = Vec::new();
        for (name, value) in &entry.attributes {
            attributes.extend_from_slice(name);
            attributes.push(0);
            attributes.extend((value.len() as u64).to_be_bytes());
            attributes.extend_from_slice(value);
        }
        text.push(b' ');
        hexadecimal(text, ContentId::of(&attributes).as_bytes());
    }
    text.push(0);
    text.extend_from_slice(&entry.name);
    text.push(0);
}

fn hexadecimal(text: &mut Vec<u8>, bytes: &[u8]) {
    let digit = |value: u8| match value {
        0..10 => b'0' + value,
        _ => b'a' + value - 10,
    };
    text.extend(
        bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]),
    );
}
