//! What a way back never does to a repository: it takes no objects away, no entries of a stash, no
//! references of checkpoints, and nothing that other work trees need.

use std::collections::BTreeSet;

use super::plan::ContentOf;
use super::shelf;
use crate::path::{self, TreePath};
use crate::scan::Sink;
use crate::snapshot::Note;
use crate::tree::{self, Change, Entry, Subtree, Trees};
use crate::work_trees::{PutBack, WorkTrees};
use crate::{StateError, git_state};

/// Takes out of the changes of git directories what is never done to them:
/// objects are not removed, stash entries and references of checkpoints are not
/// taken away, and other work trees of the repository are left alone. Directories that hold any
/// of that stay; those that were to become something else go into `staying`.
pub(crate) fn spare(
    changes: Vec<Change>,
    trees: &dyn Trees,
    present: &Subtree,
    others: &WorkTrees,
    (content, sink): (&ContentOf<'_>, &Sink<'_>),
    staying: &mut Vec<Note>,
) -> Result<Vec<Change>, StateError> {
    // A repository that was not there at all goes, or comes, as a whole; so does a
    // directory in it that holds repositories of submodules.
    let is_directory =
        |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.subtree().is_some());
    let whole: Vec<TreePath> = changes
        .iter()
        .filter(|change| {
            git_state::is_repository(&change.path)
                && (is_directory(&change.from) && change.to.is_none()
                    || is_directory(&change.to) && change.from.is_none())
        })
        .map(|change| change.path.clone())
        .collect();
    let is_whole = |path: &[u8]| whole.iter().any(|whole| path::is_within(path, whole));
    let (whole_changes, changes) = changes
        .into_iter()
        .partition::<Vec<Change>, _>(|change| is_whole(&change.path));
    let changes = others.leave_branches(changes, trees, present, content, sink)?;
    let put_back = PutBack::of(&changes, content);
    let mut kept: Vec<Change> = shelf::keep(changes, trees, present, content, sink)?
        .into_iter()
        .filter(|change| {
            let object = git_state::is_object(&change.path);
            let elsewhere = git_state::is_of_other_work_trees(&change.path)
                && others.is_left_alone(change, &put_back);
            // Each is there as long as its checkpoint, whatever state is brought back.
            let shelved = git_state::is_checkpoint_reference(&change.path);
            !elsewhere
                && !shelved
                && !(object && (change.to.is_none() || change.kind() == tree::ChangeKind::Time))
        })
        .collect();
    kept.extend(whole_changes);
    kept.sort_by(|a, b| a.path.cmp(&b.path));
    keep_full_directories(kept, trees, present, staying)
}

/// Leaves out of the changes, which are sorted, that a directory goes which would not be empty.
fn keep_full_directories(
    changes: Vec<Change>,
    trees: &dyn Trees,
    present: &Subtree,
    staying: &mut Vec<Note>,
) -> Result<Vec<Change>, StateError> {
    let is_directory =
        |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.subtree().is_some());
    let mut gone: BTreeSet<TreePath> = BTreeSet::new();
    let mut kept = Vec::new();
    // The deepest first.
    for change in changes.into_iter().rev() {
        if is_directory(&change.from) && !is_directory(&change.to) {
            let found = tree::find(trees, Some(present), &change.path)?;
            let inside = match found.as_ref().and_then(Entry::subtree) {
                Some(subtree) => trees.tree(subtree.tree)?,
                None => Vec::new(),
            };
            let goes = |child: &Entry| gone.contains(&path::join(&change.path, &child.name));
            if !inside.iter().all(goes) {
                if change.to.is_some() {
                    staying.push(Note {
                        path: path::display(&change.path),
                        why: "it holds objects or stashes, which are never taken away".to_owned(),
                    });
                }
                continue;
            }
        }
        if change.to.is_none() {
            gone.insert(change.path.clone());
        }
        kept.push(change);
    }
    kept.reverse();
    Ok(kept)
}
