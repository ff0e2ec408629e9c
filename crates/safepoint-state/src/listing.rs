//! What is in a checkpoint, file by file, and what is told of it.

use safepoint_model::Timestamp;

use crate::StateError;
use crate::objects::Reader;
use crate::path::TreePath;
use crate::snapshot::Snapshot;
use crate::tree::{self, Entry, Node, Trees};

/// A file, a link or something else in a checkpoint.
#[derive(Clone, Debug)]
pub struct ListedFile {
    /// Where it is.
    pub path: TreePath,
    /// What it is.
    pub entry: Entry,
}

impl ListedFile {
    /// What it is, in a word: `file`, `symlink` or `special`.
    pub fn kind(&self) -> &'static str {
        match &self.entry.node {
            Node::File { .. } => "file",
            Node::Symlink { .. } => "symlink",
            Node::Directory(_) => "directory",
            Node::Special { .. } => "special",
        }
    }

    /// How many bytes it has.
    pub fn size(&self) -> Option<u64> {
        match &self.entry.node {
            Node::File { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// The hash of its content, with the name of the algorithm. The store names contents by it,
    /// so nothing is read for it.
    pub fn hash(&self) -> Option<String> {
        match &self.entry.node {
            Node::File { content, .. } => Some(format!("blake3:{content}")),
            _ => None,
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "path": crate::path::display(&self.path),
            "type": self.kind(),
            "size": self.size(),
            "hash": self.hash(),
        })
    }
}

/// So many paths are listed; of more only the number is told.
const MOST_LISTED: u64 = 5_000;

/// Lines are counted of so many files, and of so many bytes.
const MAX_COUNTED_FILES: u64 = 200;
const MAX_COUNTED_BYTES: u64 = 1 << 20;

/// All files, unless there are very many.
pub(crate) fn list_files(
    trees: &dyn Trees,
    snapshot: &Snapshot,
) -> Result<Option<Vec<ListedFile>>, StateError> {
    if snapshot.record.files.files > MOST_LISTED {
        return Ok(None);
    }
    all_entries(trees, &snapshot.record.files).map(Some)
}

/// How many lines the files have, where that costs little; `None` where it does not, or where
/// some content is no text.
pub(crate) fn count_lines(
    reader: &Reader<'_>,
    snapshot: &Snapshot,
    files: &[ListedFile],
) -> Option<u64> {
    let root = &snapshot.record.files;
    if root.files > MAX_COUNTED_FILES || root.bytes > MAX_COUNTED_BYTES {
        return None;
    }
    let mut lines = 0;
    for file in files {
        if let Node::File { content, .. } = file.entry.node {
            let mut last = b'\n';
            let counted = reader.find(content).ok()?.copy(&mut |bytes| {
                lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
                last = bytes.last().copied().unwrap_or(last);
                Ok(())
            });
            counted.ok()?;
            lines += u64::from(last != b'\n');
        }
    }
    Some(lines)
}

/// When one of the files was last changed.
pub(crate) fn last_modified(files: &[ListedFile]) -> Option<Timestamp> {
    let latest = files.iter().map(|file| file.entry.modified).max()?;
    let micros = latest.seconds.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros))
}

/// The paths of everything but directories, sorted.
pub fn all_files(trees: &dyn Trees, root: &tree::Subtree) -> Result<Vec<TreePath>, StateError> {
    let found = all_entries(trees, root)?;
    Ok(found.into_iter().map(|file| file.path).collect())
}

/// Everything but directories, sorted by path.
pub fn all_entries(trees: &dyn Trees, root: &tree::Subtree) -> Result<Vec<ListedFile>, StateError> {
    let mut found = Vec::new();
    let mut waiting = vec![(TreePath::new(), root.tree)];
    while let Some((directory, tree)) = waiting.pop() {
        for entry in trees.tree(tree)? {
            let path = crate::path::join(&directory, &entry.name);
            match entry.node {
                Node::Directory(subtree) => waiting.push((path, subtree.tree)),
                _ => found.push(ListedFile { path, entry }),
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}
