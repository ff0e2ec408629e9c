//! A tree with some of its paths exchanged: what a directory will be after a
//! roll back of a part of it, or after one change was taken out of the middle.

use std::collections::BTreeMap;

use super::{Entry, Node, Subtree, Trees, summarise};
use crate::path::{self, TreePath};
use crate::{ContentId, StateError};

/// What takes new tree objects.
pub type Keep<'a> = dyn FnMut(ContentId, Vec<u8>) -> Result<(), StateError> + 'a;

/// What is to stand at a path, and below it.
#[derive(Default)]
struct Edit {
    /// `None`: as it was. `Some(None)`: nothing.
    entry: Option<Option<Entry>>,
    inside: BTreeMap<Vec<u8>, Edit>,
}

/// The tree `root` with each path of `edits` put in place, or taken away.
///
/// A directory that is put in place is empty but for what `edits` puts into it
/// and what was in the directory of the same name before.
pub fn edit(
    trees: &dyn Trees,
    root: Option<&Subtree>,
    edits: impl IntoIterator<Item = (TreePath, Option<Entry>)>,
    keep: &mut Keep<'_>,
) -> Result<Subtree, StateError> {
    let mut top = Edit::default();
    for (path, entry) in edits {
        let mut at = &mut top;
        for name in path::names(&path) {
            at = at.inside.entry(name.to_vec()).or_default();
        }
        at.entry = Some(entry);
    }
    let entries = match root {
        Some(root) => trees.tree(root.tree)?,
        None => Vec::new(),
    };
    directory(trees, entries, top.inside, keep)
}

fn directory(
    trees: &dyn Trees,
    entries: Vec<Entry>,
    edits: BTreeMap<Vec<u8>, Edit>,
    keep: &mut Keep<'_>,
) -> Result<Subtree, StateError> {
    let mut by_name: BTreeMap<Vec<u8>, Entry> = entries
        .into_iter()
        .map(|entry| (entry.name.clone(), entry))
        .collect();
    for (name, edit) in edits {
        let old = by_name.remove(&name);
        let inside = old.as_ref().and_then(Entry::subtree).copied();
        let Some(mut new) = edit.entry.unwrap_or(old) else {
            continue;
        };
        if let Node::Directory(subtree) = &mut new.node {
            let entries = match inside {
                Some(inside) => trees.tree(inside.tree)?,
                None => Vec::new(),
            };
            *subtree = directory(trees, entries, edit.inside, keep)?;
        }
        by_name.insert(name, new);
    }
    let entries: Vec<Entry> = by_name.into_values().collect();
    let (encoded, subtree) = summarise(&entries);
    keep(subtree.tree, encoded)?;
    Ok(subtree)
}
