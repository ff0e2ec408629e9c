//! What differs between two trees. Subtrees with the same name are not read,
//! so the cost follows the difference.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Entry, Node, Subtree, Trees};
use crate::path::{self, TreePath};
use crate::scope::{Cover, Scope};
use crate::{ContentId, StateError};

/// One path that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: TreePath,
    /// What was there.
    pub from: Option<Entry>,
    /// What is there instead.
    pub to: Option<Entry>,
    /// Whether the names that share one file are others.
    pub relinked: bool,
}

/// How something differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// Its content, its target or what it is.
    Modified,
    /// It is no longer there.
    Deleted,
    /// Its mode, owner, attributes or links.
    Metadata,
    /// Nothing but the time of its last change.
    Time,
}

impl ChangeKind {
    /// As the log and the diff call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::Metadata | Self::Time => "metadata",
        }
    }
}

impl Change {
    /// How it differs.
    pub fn kind(&self) -> ChangeKind {
        match (&self.from, &self.to) {
            (None, _) => ChangeKind::Created,
            (_, None) => ChangeKind::Deleted,
            (Some(from), Some(to)) if !same_content(&from.node, &to.node) => ChangeKind::Modified,
            (Some(from), Some(to)) if self.relinked || !from.same_metadata(to) => {
                ChangeKind::Metadata
            }
            _ => ChangeKind::Time,
        }
    }

    /// Whether people care: the time of a directory changes with whatever happens in it.
    pub fn is_notable(&self) -> bool {
        let directory =
            |entry: &Option<Entry>| entry.as_ref().is_some_and(|it| it.subtree().is_some());
        !(self.kind() == ChangeKind::Time && directory(&self.to))
    }
}

/// Whether two nodes hold the same, apart from what lies inside directories.
pub(crate) fn same_content(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::File { content: a, .. }, Node::File { content: b, .. }) => a == b,
        (Node::Directory(_), Node::Directory(_)) => true,
        (a, b) => a == b,
    }
}

/// Adds the changes of the git directories to those of the files. A `.git` that is a file is in the
/// tree of the files, and one that is a directory is in the other: where one becomes the other,
/// that is one change.
pub(crate) fn add_git(changes: &mut Vec<Change>, git: impl Iterator<Item = Change>) {
    let is_known = |(_, change): &(usize, &Change)| change.path.ends_with(b".git");
    let known: HashMap<TreePath, usize> = changes
        .iter()
        .enumerate()
        .filter(is_known)
        .map(|(at, change)| (change.path.clone(), at))
        .collect();
    for change in git {
        match known.get(&change.path).and_then(|at| changes.get_mut(*at)) {
            Some(known) => {
                known.from = known.from.take().or(change.from);
                known.to = known.to.take().or(change.to);
            }
            None => changes.push(change),
        }
    }
}

/// Every path inside `scope` that differs between two trees, directories before what they hold.
pub fn changes(
    trees: &dyn Trees,
    from: Option<&Subtree>,
    to: Option<&Subtree>,
    scope: &Scope,
) -> Result<Vec<Change>, StateError> {
    let mut found = Vec::new();
    let cover = scope.cover(b"");
    Comparison {
        trees,
        scope,
        found: &mut found,
    }
    .directories(b"", cover, from, to)?;
    let links = |side: Option<&Subtree>| side.is_some_and(|side| side.links);
    if links(from) || links(to) {
        add_relinked(trees, scope, from, to, &mut found)?;
    }
    Ok(found)
}

struct Comparison<'a> {
    trees: &'a dyn Trees,
    scope: &'a Scope,
    found: &'a mut Vec<Change>,
}

impl Comparison<'_> {
    fn directories(
        &mut self,
        path: &[u8],
        cover: Cover,
        from: Option<&Subtree>,
        to: Option<&Subtree>,
    ) -> Result<(), StateError> {
        if cover == Cover::Nothing || from.map(|it| it.tree) == to.map(|it| it.tree) {
            return Ok(());
        }
        let read = |side: Option<&Subtree>| match side {
            Some(subtree) => self.trees.tree(subtree.tree),
            None => Ok(Vec::new()),
        };
        let (from, to) = (read(from)?, read(to)?);
        let (mut from, mut to) = (from.into_iter().peekable(), to.into_iter().peekable());
        loop {
            let order = match (from.peek(), to.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.name.cmp(&b.name),
            };
            let a = if order.is_le() { from.next() } else { None };
            let b = if order.is_ge() { to.next() } else { None };
            self.entries(path, cover, a, b)?;
        }
    }

    fn entries(
        &mut self,
        parent: &[u8],
        parent_cover: Cover,
        from: Option<Entry>,
        to: Option<Entry>,
    ) -> Result<(), StateError> {
        let name = from
            .as_ref()
            .or(to.as_ref())
            .map(|entry| entry.name.clone());
        let path = path::join(parent, &name.unwrap_or_default());
        let cover = match parent_cover {
            Cover::Everything => Cover::Everything,
            _ => self.scope.cover(&path),
        };
        if cover == Cover::Nothing {
            return Ok(());
        }
        let before = from.as_ref().and_then(Entry::subtree).copied();
        let after = to.as_ref().and_then(Entry::subtree).copied();
        let differs = match (&from, &to) {
            (Some(a), Some(b)) => {
                a.modified != b.modified || !a.same_metadata(b) || !same_content(&a.node, &b.node)
            }
            _ => true,
        };
        // A directory of which only a part is asked for is left as it is.
        if differs && cover == Cover::Everything {
            self.found.push(Change {
                path: path.clone(),
                from,
                to,
                relinked: false,
            });
        }
        self.directories(&path, cover, before.as_ref(), after.as_ref())
    }
}

/// Adds the paths whose fellows are others: hard links that were made or broken.
fn add_relinked(
    trees: &dyn Trees,
    scope: &Scope,
    from: Option<&Subtree>,
    to: Option<&Subtree>,
    found: &mut Vec<Change>,
) -> Result<(), StateError> {
    let (before, after) = (fellows(trees, scope, from)?, fellows(trees, scope, to)?);
    let alone = BTreeSet::new();
    let paths: BTreeSet<&TreePath> = before.keys().chain(after.keys()).collect();
    let mut marked: HashMap<TreePath, Change> = HashMap::new();
    for path in paths {
        let of = |side: &BTreeMap<TreePath, (Entry, BTreeSet<TreePath>)>| {
            side.get(path).map(|(entry, fellows)| {
                (
                    entry.clone(),
                    if fellows.len() > 1 {
                        fellows.clone()
                    } else {
                        alone.clone()
                    },
                )
            })
        };
        let (a, b) = (of(&before), of(&after));
        let differ = match (&a, &b) {
            (Some((_, a)), Some((_, b))) => a != b,
            (None, Some((_, fellows))) | (Some((_, fellows)), None) => !fellows.is_empty(),
            (None, None) => false,
        };
        if !differ {
            continue;
        }
        let entry = |side: Option<(Entry, BTreeSet<TreePath>)>, root: Option<&Subtree>| match side {
            Some((entry, _)) => Ok(Some(entry)),
            None => find(trees, root, path),
        };
        let change = Change {
            path: path.clone(),
            from: entry(a, from)?,
            to: entry(b, to)?,
            relinked: true,
        };
        if change.from.is_some() || change.to.is_some() {
            marked.insert(path.clone(), change);
        }
    }
    for change in found.iter_mut() {
        if marked.remove(&change.path).is_some() {
            change.relinked = true;
        }
    }
    found.extend(marked.into_values());
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

type Fellows = BTreeMap<TreePath, (Entry, BTreeSet<TreePath>)>;

/// Every file with a link number, and all paths in the scope that share it.
fn fellows(
    trees: &dyn Trees,
    scope: &Scope,
    root: Option<&Subtree>,
) -> Result<Fellows, StateError> {
    let mut groups: BTreeMap<u64, Vec<(TreePath, Entry)>> = BTreeMap::new();
    let mut waiting: Vec<(TreePath, ContentId)> = root
        .filter(|root| root.links)
        .map(|root| (Vec::new(), root.tree))
        .into_iter()
        .collect();
    while let Some((directory, tree)) = waiting.pop() {
        for entry in trees.tree(tree)? {
            let path = path::join(&directory, &entry.name);
            match &entry.node {
                Node::Directory(subtree) if subtree.links => waiting.push((path, subtree.tree)),
                Node::File {
                    link: Some(link), ..
                } if scope.cover(&path) == Cover::Everything => {
                    groups.entry(*link).or_default().push((path, entry));
                }
                _ => {}
            }
        }
    }
    let mut found = BTreeMap::new();
    for members in groups.into_values() {
        let paths: BTreeSet<TreePath> = members.iter().map(|(path, _)| path.clone()).collect();
        for (path, entry) in members {
            found.insert(path, (entry, paths.clone()));
        }
    }
    Ok(found)
}

/// The entry at `path`, if there is one.
pub(crate) fn find(
    trees: &dyn Trees,
    root: Option<&Subtree>,
    path: &[u8],
) -> Result<Option<Entry>, StateError> {
    let Some(root) = root else { return Ok(None) };
    let mut tree = Some(root.tree);
    let mut found = None;
    for name in path::names(path) {
        let Some(directory) = tree else {
            return Ok(None);
        };
        let entry = trees
            .tree(directory)?
            .into_iter()
            .find(|entry| entry.name == name);
        tree = entry.as_ref().and_then(Entry::subtree).map(|it| it.tree);
        match entry {
            Some(entry) => found = Some(entry),
            None => return Ok(None),
        }
    }
    Ok(found)
}

/// The entry at `path` of a tree, if there is one.
pub fn entry_at(
    trees: &dyn Trees,
    root: &Subtree,
    path: &[u8],
) -> Result<Option<Entry>, StateError> {
    find(trees, Some(root), path)
}
