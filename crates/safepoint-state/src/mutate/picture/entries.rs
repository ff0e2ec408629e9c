//! What operations are made of: entries of the picture, found, made and put in place,
//! and what stands in the way of that.

use std::path::Path;

use super::{LARGEST_EDITED, Picture, inapplicable};
use crate::mutate::place::Place;
use crate::path::{self, TreePath};
use crate::scan::MixedTrees;
use crate::tree::{self, Entry, Node, Subtree};
use crate::{ContentId, StateError};

impl Picture<'_> {
    /// Exchanges the content of a file. Everything else of it stays.
    pub(super) fn fill(
        &mut self,
        place: &Place,
        mut entry: Entry,
        bytes: Vec<u8>,
    ) -> Result<(), StateError> {
        refuse_foreign(place, &entry)?;
        if let Node::File { link: Some(_), .. } = entry.node {
            self.warnings.push(format!(
                "`{}` had other names too: they keep the old content",
                path::display(&place.path)
            ));
        }
        entry.node = file_node(&bytes);
        entry.modified = self.now;
        self.contents.insert(ContentId::of(&bytes), bytes);
        self.put(&place.path, entry)
    }

    /// A file that is there and may be written, and what is in it.
    pub(super) fn file(&self, place: &Place) -> Result<(Entry, Vec<u8>), StateError> {
        let entry = self.there(place)?;
        refuse_unwritable(place, &entry)?;
        let content = self.content(place, &entry)?;
        Ok((entry, content))
    }

    pub(super) fn content(&self, place: &Place, entry: &Entry) -> Result<Vec<u8>, StateError> {
        refuse_unwritable(place, entry)?;
        match &entry.node {
            Node::File { size, .. } if *size > LARGEST_EDITED => Err(inapplicable(
                place,
                "it is too large to be edited",
                "use `write`, or a `command`",
            )),
            Node::File { content, .. } => match self.contents.get(content) {
                Some(bytes) => Ok(bytes.clone()),
                None => self.reader.read(*content),
            },
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn there(&self, place: &Place) -> Result<Entry, StateError> {
        self.find(&place.path)?
            .ok_or_else(|| inapplicable(place, "it is not there", "check the spelling"))
    }

    pub(super) fn entries(&self, subtree: &Subtree) -> Result<Vec<Entry>, StateError> {
        use crate::tree::Trees;
        let trees = MixedTrees {
            fresh: &self.trees,
            stored: self.reader,
        };
        trees.tree(subtree.tree)
    }

    /// Makes the directories above a path that are missing.
    pub(super) fn make_parents(&mut self, place: &Place, path: &[u8]) -> Result<(), StateError> {
        let (parent, _) = path::split(path);
        if parent.is_empty() {
            return Ok(());
        }
        match self.find(parent)? {
            Some(entry) if entry.subtree().is_some() => self.refuse_closed(place, parent),
            Some(_) => Err(inapplicable(
                place,
                format!("`{}` is no directory", path::display(parent)),
                "",
            )),
            None => {
                self.make_parents(place, parent)?;
                let entry = self.new_entry(parent, 0o777, Node::Directory(empty()))?;
                self.put(parent, entry)
            }
        }
    }

    /// Refuses to make or delete a name in a directory that is read-only.
    pub(super) fn refuse_closed(&self, place: &Place, directory: &[u8]) -> Result<(), StateError> {
        let found = match directory.is_empty() {
            true => None, // the workspace itself, in which we have files of our own
            false => self.find(directory)?,
        };
        match found {
            Some(entry) if entry.mode & 0o222 == 0 => Err(inapplicable(
                place,
                format!("`{}` is read-only", path::display(directory)),
                "make it writable first, with a `chmod` of its own or in the same batch",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn put(&mut self, path: &[u8], entry: Entry) -> Result<(), StateError> {
        self.edit_tree(vec![(path.to_vec(), Some(entry))])?;
        self.touch_parent(path)?;
        self.meant.insert(path.to_vec());
        Ok(())
    }

    /// A name that comes, goes or is exchanged moves the time of its directory: others
    /// tell by it that they must look again.
    pub(super) fn touch_parent(&mut self, path: &[u8]) -> Result<(), StateError> {
        let (parent, _) = path::split(path);
        if parent.is_empty() {
            return Ok(());
        }
        if let Some(mut entry) = self.find(parent)? {
            entry.modified = self.now;
            self.edit_tree(vec![(parent.to_vec(), Some(entry))])?;
        }
        Ok(())
    }

    pub(super) fn edit_tree(
        &mut self,
        edits: Vec<(TreePath, Option<Entry>)>,
    ) -> Result<(), StateError> {
        let trees = MixedTrees {
            fresh: &self.trees,
            stored: self.reader,
        };
        let mut made = Vec::new();
        let root = tree::edit(&trees, Some(&self.root), edits, &mut |id, bytes| {
            made.push((id, bytes));
            Ok(())
        })?;
        self.trees
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .extend(made);
        self.root = root;
        Ok(())
    }

    /// Something new: of whoever runs this, or of the group that the directory hands on.
    pub(super) fn new_entry(
        &self,
        path: &[u8],
        mode: u32,
        node: Node,
    ) -> Result<Entry, StateError> {
        let (parent, name) = path::split(path);
        let mut entry = Entry {
            name: name.to_vec(),
            mode: mode & !self.umask,
            owner: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            modified: self.now,
            attributes: Vec::new(),
            node,
        };
        if let Some(parent) = self
            .find(parent)?
            .filter(|parent| parent.mode & 0o2000 != 0)
        {
            entry.group = parent.group;
            if entry.subtree().is_some() {
                entry.mode |= 0o2000;
            }
        }
        Ok(entry)
    }
}

pub(super) fn empty() -> Subtree {
    tree::summarise(&[]).1
}

pub(super) fn file_node(bytes: &[u8]) -> Node {
    Node::File {
        size: bytes.len() as u64,
        content: ContentId::of(bytes),
        sparse: false,
        link: None,
    }
}

/// Refuses a file that would not belong to whom it belongs, because only a superuser can
/// give one away: what is put in its place is a new one.
pub(super) fn refuse_foreign(place: &Place, entry: &Entry) -> Result<(), StateError> {
    use rustix::process::{Gid, Uid, getegid, geteuid, getgroups};
    let (owner, group) = (Uid::from_raw(entry.owner), Gid::from_raw(entry.group));
    let ours =
        |group: Gid| group == getegid() || getgroups().is_ok_and(|known| known.contains(&group));
    match geteuid().is_root() || (owner == geteuid() && ours(group)) {
        true => Ok(()),
        false => Err(inapplicable(
            place,
            format!(
                "it belongs to user {} and group {}, and would not any more",
                entry.owner, entry.group
            ),
            "change it as its owner, or with a `command` that writes into it",
        )),
    }
}

pub(super) fn refuse_unwritable(place: &Place, entry: &Entry) -> Result<(), StateError> {
    match &entry.node {
        Node::File { .. } if entry.mode & 0o222 == 0 => Err(inapplicable(
            place,
            "it is read-only",
            "make it writable first, with a `chmod` of its own or in the same batch",
        )),
        Node::File { .. } => Ok(()),
        Node::Directory(_) => Err(inapplicable(
            place,
            "it is a directory",
            "name a file in it",
        )),
        Node::Symlink { .. } => Err(inapplicable(
            place,
            "it is a link",
            "name what it points to",
        )),
        Node::Special { .. } => Err(inapplicable(place, "it is no regular file", "")),
    }
}

/// Asking the kernel for it would change it for all threads for a moment.
pub(super) fn umask() -> u32 {
    let status = std::fs::read_to_string(Path::new("/proc/self/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok())
        .unwrap_or(0o022)
}
