//! Small files of git directories, as trees: captured by name and content, and put back.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use safepoint_store::durable::{self, Access};

use super::{Entry, Moment, Node};
use crate::git::Repository;
use crate::objects::{Reader, Writer};
use crate::path::{self, TreePath};
use crate::tree::{self, Change, Entry as TreeEntry, Subtree, Trees};
use crate::{ContentId, StateError, sensitive};

/// Larger files are not captured: nothing that git keeps for a work tree is.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// As deep as git itself nests what it keeps for a work tree.
const DEEPEST: usize = 8;

/// What a linked work tree's own directory has that says where it belongs, or that git needs
/// for nothing but telling what happened.
const OF_A_LINK: [&str; 7] = [
    "HEAD",
    "index",
    "commondir",
    "gitdir",
    "locked",
    "logs",
    "modules",
];
/// What a repository has for all its work trees.
const OF_ALL: [&str; 12] = [
    "objects",
    "refs",
    "hooks",
    "info",
    "worktrees",
    "lfs",
    "config",
    "packed-refs",
    "description",
    "branches",
    "shallow",
    "reftable",
];

/// A file, and what is in it.
pub(super) struct GitFile {
    /// As it would be called if the git directory were in the workspace.
    pub(super) path: TreePath,
    pub(super) node: GitNode,
}

pub(super) enum GitNode {
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    /// Something whose content is not ours to tell.
    Others,
}

/// Trees that have nothing yet.
struct NoTrees;

impl Trees for NoTrees {
    fn tree(&self, _: ContentId) -> Result<Vec<TreeEntry>, StateError> {
        Ok(Vec::new())
    }
}

/// An entry for a file with these bytes.
pub(super) fn entry(name: &[u8], mode: u32, bytes: &[u8]) -> Entry {
    Entry {
        name: name.to_vec(),
        mode,
        owner: 0,
        group: 0,
        modified: Moment::default(),
        attributes: Vec::new(),
        node: Node::File {
            size: bytes.len() as u64,
            content: ContentId::of(bytes),
            sparse: false,
            link: None,
        },
    }
}

/// What git keeps for this work tree alone, but for `HEAD` and the index.
pub(super) fn own(repository: &Repository) -> Result<Vec<GitFile>, StateError> {
    let is_linked = repository.git_dir() != repository.common_dir();
    let keep = |name: &str| !OF_A_LINK.contains(&name) && (is_linked || !OF_ALL.contains(&name));
    let mut files = Vec::new();
    collect(repository.git_dir(), b".git", &keep, 0, &mut files)?;
    Ok(files)
}

/// The same of the directory of a linked work tree, whether or not git accepts it.
pub(super) fn of_link(git_dir: &Path) -> Result<Vec<GitFile>, StateError> {
    let mut files = Vec::new();
    let keep = |name: &str| !OF_A_LINK.contains(&name);
    collect(git_dir, b".git", &keep, 0, &mut files)?;
    Ok(files)
}

/// Reads every plain file below a directory, as far as its first names are to be kept.
pub(super) fn collect(
    directory: &Path,
    path: &[u8],
    keep: &dyn Fn(&str) -> bool,
    depth: usize,
    files: &mut Vec<GitFile>,
) -> Result<(), StateError> {
    let listing = match std::fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StateError::file("list", directory, error)),
    };
    for found in listing {
        let found = found.map_err(|error| StateError::file("list", directory, error))?;
        let file_name = found.file_name();
        let name = file_name.to_string_lossy();
        if name.ends_with(".lock") || name.starts_with("fsmonitor--daemon") || !keep(&name) {
            continue;
        }
        let inner = path::join(path, std::os::unix::ffi::OsStrExt::as_bytes(&*file_name));
        let full = found.path();
        // What goes while it is looked at is not there.
        let Ok(metadata) = full.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() && depth < DEEPEST {
            collect(&full, &inner, &|_| true, depth + 1, files)?;
        } else if metadata.is_file() {
            match safepoint_store::regular::read(&full, MAX_FILE_BYTES) {
                Ok(bytes) => {
                    let mode = metadata.permissions().mode() & 0o777;
                    let is_secret =
                        may_hold_secrets(&inner) && sensitive::by_content(&bytes).is_some();
                    let node = match is_secret {
                        true => GitNode::Others,
                        false => GitNode::File { mode, bytes },
                    };
                    files.push(GitFile { path: inner, node });
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(StateError::file("read", &full, error)),
            }
        }
    }
    Ok(())
}

/// Whether a file is one that people write: an address with a password in it may stand there.
fn may_hold_secrets(path: &[u8]) -> bool {
    let written: [&[u8]; 4] = [
        b".git/config",
        b".git/config.worktree",
        b".git/hooks",
        b".git/info",
    ];
    written.iter().any(|above| path::is_within(path, above))
}

/// The tree of these files, stored with what is in them.
pub(super) fn capture(files: Vec<GitFile>, writer: &Writer<'_>) -> Result<Subtree, StateError> {
    let mut edits: Vec<(TreePath, Option<Entry>)> = Vec::new();
    for file in files {
        let (parent, name) = path::split(&file.path);
        let mut above = parent;
        while !above.is_empty() {
            let (next, name) = path::split(above);
            let node = Node::Directory(tree::summarise(&[]).1);
            let directory = Entry {
                node,
                ..entry(name, 0o755, b"")
            };
            edits.push((above.to_vec(), Some(directory)));
            above = next;
        }
        let entry = match file.node {
            GitNode::File { mode, bytes } => {
                let entry = entry(name, mode, &bytes);
                writer.add(ContentId::of(&bytes), bytes)?;
                entry
            }
            GitNode::Others => Entry {
                node: Node::Symlink { target: Vec::new() },
                ..entry(name, 0o644, b"")
            },
        };
        edits.push((file.path, Some(entry)));
    }
    tree::edit(&NoTrees, None, edits, &mut |id, bytes| {
        writer.add_tree(id, bytes)
    })
}

/// Makes files of a git directory what the changes say. Directories that nothing is left in go.
pub(super) fn put(
    git_dir: &Path,
    changes: &[Change],
    reader: &Reader<'_>,
) -> Result<(), StateError> {
    for change in changes.iter().rev() {
        let full = place(git_dir, &change.path);
        match (&change.from, &change.to) {
            (Some(from), None) if from.subtree().is_some() => {
                // Something else may have come into it.
                let _ = std::fs::remove_dir(&full);
            }
            (Some(_), None) => durable::remove(&full)?,
            _ => {}
        }
    }
    for change in changes {
        let full = place(git_dir, &change.path);
        let Some(to) = &change.to else { continue };
        match &to.node {
            Node::Directory(_) => durable::create_directory(&full)?,
            Node::File { content, .. } => {
                if let Some(parent) = full.parent() {
                    durable::create_directory(parent)?;
                }
                durable::write(&full, &reader.read(*content)?, Access::Shared)?;
                let mode = rustix::fs::Mode::from_raw_mode(to.mode);
                rustix::fs::chmod(&full, mode)
                    .map_err(|error| StateError::file("change", &full, error))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where a path lies that is called as if the git directory were in the workspace.
fn place(git_dir: &Path, inner: &[u8]) -> std::path::PathBuf {
    let inside = inner.strip_prefix(b".git/").unwrap_or_default();
    git_dir.join(path::as_path(inside))
}
