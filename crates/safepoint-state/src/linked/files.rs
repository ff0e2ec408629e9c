//! Small files of git directories, as trees: captured by name and content, and put back.

use std::path::Path;

use super::place::GitPlace;
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
    match GitPlace::find(directory)? {
        Some(place) => collect_in(&place, path, keep, depth, files),
        None => Ok(()),
    }
}

fn collect_in(
    place: &GitPlace,
    path: &[u8],
    keep: &dyn Fn(&str) -> bool,
    depth: usize,
    files: &mut Vec<GitFile>,
) -> Result<(), StateError> {
    for file_name in place.names()? {
        let name = String::from_utf8_lossy(&file_name);
        if name.ends_with(".lock") || name.starts_with("fsmonitor--daemon") || !keep(&name) {
            continue;
        }
        let inner = path::join(path, &file_name);
        // What goes, or turns into a link, while it is looked at is not there.
        if place.is_directory(&file_name) {
            if let Some(below) = place.child(&file_name)?.filter(|_| depth < DEEPEST) {
                collect_in(&below, &inner, &|_| true, depth + 1, files)?;
            }
        } else if let Some((mode, bytes)) = place.read(&file_name, MAX_FILE_BYTES)? {
            let is_secret = may_hold_secrets(&inner) && sensitive::by_content(&bytes).is_some();
            let node = match is_secret {
                true => GitNode::Others,
                false => GitNode::File { mode, bytes },
            };
            files.push(GitFile { path: inner, node });
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
/// A link on the way to one is an error, and nothing is written behind it.
pub(super) fn put(
    git_dir: &Path,
    changes: &[Change],
    reader: &Reader<'_>,
) -> Result<(), StateError> {
    if changes.is_empty() {
        return Ok(());
    }
    let place = GitPlace::open(git_dir)?;
    for change in changes.iter().rev() {
        let inside = inside(&change.path);
        match (&change.from, &change.to) {
            (Some(from), None) if from.subtree().is_some() => place.remove_directory(inside)?,
            (Some(_), None) => place.remove(inside)?,
            _ => {}
        }
    }
    for change in changes {
        let inside = inside(&change.path);
        let Some(to) = &change.to else { continue };
        match &to.node {
            Node::Directory(_) => place.make_directory(inside)?,
            Node::File { content, .. } => {
                place.write(inside, &reader.read(*content)?, Some(to.mode))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A path that is called as if the git directory were in the workspace, below that directory.
fn inside(path: &[u8]) -> &[u8] {
    path.strip_prefix(b".git/").unwrap_or_default()
}
