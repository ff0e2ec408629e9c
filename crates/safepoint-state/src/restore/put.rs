//! Putting a plan into the tree for a change, with the same care as a going back.

use std::path::Path;

use safepoint_store::fault;

use super::{Plan, apply, check, stage};
use crate::StateError;
use crate::objects::Reader;
use crate::path::TreePath;
use crate::tree::Subtree;

/// Stages, looks whether anything moved meanwhile, says `touching`, applies, and reads
/// back. `trees` are the files and git directories that will be there.
pub(crate) fn put_files(
    root: &Path,
    plan: &Plan,
    trees: (&Subtree, Option<&Subtree>),
    reader: &Reader<'_>,
    touching: &mut dyn FnMut() -> Result<(), StateError>,
) -> Result<(), StateError> {
    let staged = stage::prepare(root, &plan.changes, reader)?;
    match put_staged(root, &staged, plan, trees, reader, touching)? {
        Some(not_given) if not_given.is_empty() => Ok(()),
        _ => Err(StateError::NotIdentical {
            why: "what was written is not what is there".to_owned(),
        }),
    }
}

/// Fills a new directory. Files that lie in `like` with the same content are cloned from
/// there where the file system can. They belong to whoever makes it, where they cannot be given
/// to whom they belong there.
pub(crate) fn put_new_files(
    root: &Path,
    like: &Path,
    plan: &Plan,
    files: &Subtree,
    reader: &Reader<'_>,
) -> Result<(), StateError> {
    let staged = stage::prepare_like(root, Some(like), &plan.changes, reader)?;
    match put_staged(root, &staged, plan, (files, None), reader, &mut || Ok(()))? {
        Some(_) => Ok(()),
        None => {
            let why = "what was written is not what is read back: somebody else writes there, or the file system keeps no modes or times";
            Err(StateError::file("fill", root, std::io::Error::other(why)))
        }
    }
}

/// Says what could not be given to whom it belonged; `None` where anything else is wrong.
fn put_staged(
    root: &Path,
    staged: &stage::Staged,
    plan: &Plan,
    trees: (&Subtree, Option<&Subtree>),
    reader: &Reader<'_>,
    touching: &mut dyn FnMut() -> Result<(), StateError>,
) -> Result<Option<Vec<TreePath>>, StateError> {
    let seen = apply::check_unchanged(root, &plan.changes)?;
    let directories = plan.directories(reader, trees.0, trees.1)?;
    touching()?;
    fault::point("mutate.touching");
    apply::Tree::open(root)?.apply(&plan.changes, (staged, &seen), &directories)?;
    fault::point("mutate.applied");
    stage::clear(root)?;
    check::as_planned(root, plan, staged)
}
