//! The part of an action in what changed while it went on.

use std::collections::BTreeMap;

use crate::StateError;
use crate::account::{ToldBy, ToldEdits};
use crate::objects::{Objects, Reader};
use crate::path::{self, TreePath};
use crate::scope::Scope;
use crate::share::{LinkedShare, Moved, Share, mark_of};
use crate::snapshot::{Origin, Snapshot, SnapshotId};
use crate::state::State;
use crate::tree::{self, Entry, Subtree, Trees, same_content};

type Edits = BTreeMap<TreePath, (Option<Entry>, ToldBy)>;

impl State {
    /// The state from which an action's own changes are counted, where that is not the one before
    /// it: it wrote something that others have told of meanwhile. What a person did there before
    /// the action did is theirs; what another action did is counted for both, since nobody knows
    /// which of the two was first, but for what this one only took away again.
    pub(crate) fn beginning(
        &self,
        objects: &Objects,
        before: &Snapshot,
        present: &Snapshot,
        share: &Share,
    ) -> Result<Option<Snapshot>, StateError> {
        let Share::Observed { .. } = share else {
            return Ok(None);
        };
        let mut told = match self.told_since(objects, before) {
            Ok(told) => told,
            Err(StateError::Damaged { .. } | StateError::Missing { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let reader = objects.reader();
        told.root_mode = None;
        let keep = |edits: &mut Edits, before: &Subtree, present: &Subtree| {
            let all = std::mem::take(edits);
            for (path, (entry, by)) in all.clone() {
                let was = tree::find(&reader, Some(before), &path)?;
                let is_own = share.has_path(&path) && !is_directory(&was) && !is_directory(&entry);
                if !is_own || is_alike(&was, &entry) {
                    continue;
                }
                let is_back = by == ToldBy::Action
                    && is_alike(&was, &tree::find(&reader, Some(present), &path)?);
                if by == ToldBy::Nobody || is_back {
                    edits.insert(path, (entry, by));
                }
            }
            // What lies in a directory needs that.
            let parents: Vec<TreePath> = edits.keys().flat_map(|path| above(path)).collect();
            for parent in parents {
                if let (None, Some((Some(entry), by))) = (
                    tree::find(&reader, Some(before), &parent)?,
                    all.get(&parent),
                ) {
                    edits.insert(parent, (Some(entry.clone()), *by));
                }
            }
            Ok::<_, StateError>(())
        };
        let ToldEdits { files, git, .. } = &mut told;
        keep(files, &before.record.files, &present.record.files)?;
        match (&before.record.git, &present.record.git) {
            (Some(before), Some(present)) => keep(git, before, present)?,
            _ => git.clear(),
        }
        if files.is_empty() && git.is_empty() {
            return Ok(None);
        }
        let mut began = before.clone();
        self.put_told(objects, &mut began, told)?;
        // It counts from the same moment.
        began.id = SnapshotId::generate(before.created, &*self.around.entropy)?;
        began.expiry = crate::restore::automatic_expiry(self.now());
        (began.pinned, began.spent) = (false, None);
        began.record.origin = Origin::Automatic;
        began.record.untold = true;
        Ok(Some(began))
    }

    /// The state that there would be if only this action had changed something.
    pub(crate) fn own_part(
        &self,
        objects: &crate::objects::Objects,
        before: &Snapshot,
        present: &Snapshot,
        share: &Share,
    ) -> Result<Snapshot, StateError> {
        let (old, new) = (&before.record.scope, &present.record.scope);
        let scope = Scope::stored(old)?.narrowed(&Scope::stored(new)?);
        let writer = objects.writer();
        // A repository that is moved lies among the files then.
        let mut moved = moved_beneath(&objects.reader(), &before.record.files, share.trees())?;
        if let Some(git) = &before.record.git {
            moved.extend(moved_beneath(&objects.reader(), git, share.trees())?);
        }
        let own_tree = |before: &Subtree, present: &Subtree| -> Result<Subtree, StateError> {
            let reader = objects.reader();
            let changes = tree::changes(&reader, Some(before), Some(present), &scope)?;
            let mine = changes
                .into_iter()
                .filter(|change| share.has(change, &moved));
            tree::edit(
                &reader,
                Some(before),
                mine.map(|change| (change.path, change.to)),
                &mut |id, bytes| writer.add_tree(id, bytes),
            )
        };
        let files = own_tree(&before.record.files, &present.record.files)?;
        let git = match (share, &before.record.git, &present.record.git) {
            (Share::Observed { .. }, Some(before), Some(present)) => {
                Some(own_tree(before, present)?)
            }
            (_, _, present) => *present,
        };
        writer.finish()?;
        let mut own = present.clone();
        own.id = crate::snapshot::SnapshotId::generate(self.now(), &*self.around.entropy)?;
        own.record.files = files;
        own.record.git = git;
        if !share.has_path(b"") {
            own.record.root_mode = before.record.root_mode;
        }
        own.record
            .keep_sealed_of(&before.record, |path| !share.has_path(path));
        if matches!(share, Share::Only(_)) {
            own.record.git = before.record.git;
        }
        let others = LinkedShare::Others;
        if matches!(share, Share::Only(_))
            || matches!(share, Share::Observed { linked, .. } if *linked == others)
        {
            own.record.linked.clone_from(&before.record.linked);
        }
        Ok(own)
    }
}

/// All directories that a path lies in, but for the workspace itself.
fn above(path: &[u8]) -> Vec<TreePath> {
    let mut found = Vec::new();
    let mut at = path::split(path).0;
    while !at.is_empty() {
        found.push(at.to_vec());
        at = path::split(at).0;
    }
    found
}

fn is_directory(entry: &Option<Entry>) -> bool {
    entry
        .as_ref()
        .is_some_and(|entry| entry.subtree().is_some())
}

fn is_alike(one: &Option<Entry>, other: &Option<Entry>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            same_content(&one.node, &other.node) && one.same_metadata(other)
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// What lies beneath these directories, as far as it can be recognised elsewhere.
fn moved_beneath(
    reader: &Reader<'_>,
    root: &Subtree,
    directories: &[TreePath],
) -> Result<Moved, StateError> {
    let mut moved = Moved::new();
    for directory in directories {
        let found = tree::find(reader, Some(root), directory)?;
        moved.extend(found.iter().filter_map(mark_of));
        let mut trees: Vec<_> = found
            .iter()
            .filter_map(Entry::subtree)
            .map(|it| it.tree)
            .collect();
        while let Some(tree) = trees.pop() {
            for entry in reader.tree(tree)? {
                moved.extend(mark_of(&entry));
                trees.extend(entry.subtree().map(|it| it.tree));
            }
        }
    }
    Ok(moved)
}
