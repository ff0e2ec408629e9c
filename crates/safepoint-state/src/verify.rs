//! Whether a snapshot can be restored: everything it needs is read and hashed.

use std::collections::HashSet;

use crate::linked::LinkedGit;
use crate::objects::{Objects, Reader};
use crate::part::{self, Held, Part};
use crate::snapshot::{Record, Snapshot};
use crate::state::State;
use crate::tree::{Node, Subtree, Trees, tree_hash};
use crate::{ContentId, StateError};

/// A checkpoint with no more bytes than this is verified as a whole whenever it is made or restored.
const SMALL: u64 = 32 << 20;

/// What was found to be whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many directories.
    pub trees: u64,
    /// How many different contents.
    pub contents: u64,
}

impl State {
    /// Reads everything that a snapshot needs, and hashes it again.
    pub fn verify(&self, snapshot: &Snapshot) -> Result<Verified, StateError> {
        let objects = self.objects()?;
        let (found, contents) = needed(&objects.reader(), snapshot)?;
        let verified = Verified {
            trees: found,
            contents: contents.len() as u64,
        };
        objects.reader().check(contents.into_iter().collect())?;
        Ok(verified)
    }

    /// Everything when that is little, and otherwise the roots. What a roll back needs
    /// of the rest is checked when it is put beside the tree.
    pub(crate) fn verify_with(
        &self,
        objects: &Objects,
        snapshot: &Snapshot,
    ) -> Result<(), StateError> {
        let reader = objects.reader();
        if snapshot.record.files.bytes + part_bytes(&snapshot.record) <= SMALL {
            let (_, contents) = needed(&reader, snapshot)?;
            return reader.check(contents.into_iter().collect());
        }
        reader.tree(snapshot.record.files.tree)?;
        if let Some(git) = &snapshot.record.git {
            reader.tree(git.tree)?;
        }
        // Secrets are put in place last, when it would be too late to refuse.
        let sealed = snapshot.record.sealed.iter();
        reader.check(sealed.map(|sealed| sealed.content).collect())
    }
}

/// Every content a snapshot needs, and how many trees name them. The trees are checked on the way.
fn needed(
    reader: &Reader<'_>,
    snapshot: &Snapshot,
) -> Result<(u64, HashSet<ContentId>), StateError> {
    let mut contents: HashSet<ContentId> = snapshot
        .record
        .sealed
        .iter()
        .map(|sealed| sealed.content)
        .collect();
    let linked = snapshot.record.linked.as_ref();
    contents.extend(linked.and_then(|linked| linked.index));
    let of_linked = linked.into_iter().flat_map(LinkedGit::trees);
    for part in &snapshot.record.parts {
        contents_of_part(reader, part, &mut contents)?;
    }
    let mut seen = HashSet::new();
    let roots = [Some(snapshot.record.files), snapshot.record.git];
    let mut waiting: Vec<Subtree> = roots.into_iter().flatten().chain(of_linked).collect();
    while let Some(subtree) = waiting.pop() {
        if !seen.insert(subtree.tree) {
            continue;
        }
        let entries = reader.tree(subtree.tree)?;
        if tree_hash(&entries) != subtree.hash {
            return Err(StateError::NotIdentical {
                why: format!(
                    "the tree {} has another hash than was recorded",
                    subtree.tree
                ),
            });
        }
        for entry in entries {
            match entry.node {
                Node::Directory(below) => waiting.push(below),
                Node::File { content, .. } => {
                    contents.insert(content);
                }
                Node::Symlink { .. } | Node::Special { .. } => {}
            }
        }
    }
    Ok((seen.len() as u64, contents))
}

/// How many bytes its databases and states have.
fn part_bytes(record: &Record) -> u64 {
    let bytes = |part: &Part| match &part.held {
        Held::Absent => 0,
        Held::Bytes { size, .. } | Held::Image { size, .. } => *size,
    };
    record.parts.iter().map(bytes).sum()
}

/// Everything a part needs.
fn contents_of_part(
    reader: &Reader<'_>,
    part: &Part,
    contents: &mut HashSet<ContentId>,
) -> Result<(), StateError> {
    match &part.held {
        Held::Absent => {}
        Held::Bytes { content, .. } => {
            contents.insert(*content);
        }
        Held::Image { image, .. } => {
            contents.insert(*image);
            let image = part::image_of(reader, *image)?;
            if image.digest() != part.hash {
                return Err(StateError::NotIdentical {
                    why: format!(
                        "`{}` has another hash than was recorded",
                        part.subject.name()
                    ),
                });
            }
            contents.extend(image.all_pieces().map(part::content_of));
        }
    }
    Ok(())
}

/// Everything a snapshot refers to: what garbage collection must keep.
pub(crate) fn references(
    reader: &Reader<'_>,
    record: &Record,
    live: &mut HashSet<ContentId>,
) -> Result<(), StateError> {
    live.extend(record.sealed.iter().map(|sealed| sealed.content));
    live.extend(record.linked.iter().filter_map(|linked| linked.index));
    for part in &record.parts {
        contents_of_part(reader, part, live)?;
    }
    let roots = [Some(record.files), record.git];
    let of_linked = record.linked.iter().flat_map(LinkedGit::trees);
    let roots = roots.into_iter().flatten().chain(of_linked);
    let mut waiting: Vec<ContentId> = roots.map(|it| it.tree).collect();
    while let Some(tree) = waiting.pop() {
        if !live.insert(tree) {
            continue; // another snapshot has it too
        }
        for entry in reader.tree(tree)? {
            match entry.node {
                Node::Directory(below) => waiting.push(below.tree),
                Node::File { content, .. } => {
                    live.insert(content);
                }
                Node::Symlink { .. } | Node::Special { .. } => {}
            }
        }
    }
    Ok(())
}
