//! Paths that are a directory on one side alone: what is below them is decided with them.
//!
//! A decision about such a path and one about something below it could contradict each other,
//! so there is only one conflict, that of the upper path, and only its decision counts.

use std::collections::BTreeMap;

use super::weigh::is_directory;
use super::{Incoming, Resolution, Weighed};
use crate::path::{self, TreePath};
use crate::scan::Sink;
use crate::tree::{self, Entry};
use crate::undo::{FileConflict, Undoing};
use crate::{StateError, git_state};

impl Undoing<'_> {
    /// Whether a path is a directory on both sides: then it is decided without what is in it.
    pub(super) fn is_shared(
        &self,
        incoming: &Incoming<'_>,
        path: &[u8],
    ) -> Result<bool, StateError> {
        let sides = [&self.present.files, &incoming.work.record.files];
        for side in sides {
            let entry = tree::find(self.trees, Some(side), path)?;
            if !entry.as_ref().is_some_and(is_directory) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The decisions that hold for everything below their path as well.
    pub(super) fn whole<'a>(
        &self,
        incoming: &Incoming<'a>,
    ) -> Result<BTreeMap<&'a TreePath, &'a Resolution>, StateError> {
        let mut whole = BTreeMap::new();
        for (path, resolution) in incoming.resolutions {
            let replaces = matches!(resolution, Resolution::Content(_));
            if replaces || !self.is_shared(incoming, path)? {
                whole.insert(path, resolution);
            }
        }
        Ok(whole)
    }

    /// Puts what was decided in the place of whole paths, the uppermost ones.
    pub(super) fn replace_whole(
        &self,
        incoming: &Incoming<'_>,
        whole: &BTreeMap<&TreePath, &Resolution>,
        sink: &Sink<'_>,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        for (path, resolution) in whole {
            if is_below(path, whole) {
                continue;
            }
            match resolution {
                Resolution::Theirs => self.take_theirs(incoming, path, weighed)?,
                Resolution::Content(bytes) => {
                    let there = |files| tree::find(self.trees, Some(files), path);
                    let ours = there(&self.present.files)?;
                    let theirs = there(&incoming.work.record.files)?;
                    let like = match ours.as_ref().or(theirs.as_ref()) {
                        Some(like) => Some(like.clone()),
                        None => there(&incoming.base.record.files)?,
                    };
                    let entry = self.file_of(path, like.as_ref(), bytes.clone(), sink)?;
                    if let Some(ours) = &ours {
                        self.clear_below(path, ours, weighed)?;
                    }
                    let edit = (ours, Some(entry), false);
                    weighed.edits.insert(path.to_vec(), edit);
                }
                Resolution::Ours | Resolution::Merged => {}
            }
        }
        Ok(())
    }

    /// Everything in a directory goes.
    fn clear_below(
        &self,
        at: &[u8],
        directory: &Entry,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        let Some(subtree) = directory.subtree() else {
            return Ok(());
        };
        for child in self.trees.tree(subtree.tree)? {
            let path = path::join(at, &child.name);
            if git_state::inside(&path).is_none() {
                self.clear_below(&path, &child, weighed)?;
                weighed.edits.insert(path, (Some(child), None, false));
            }
        }
        Ok(())
    }

    /// Makes one conflict of those that contain each other.
    pub(super) fn join_conflicts(
        &self,
        incoming: &Incoming<'_>,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        let mut joined: BTreeMap<TreePath, FileConflict> = BTreeMap::new();
        // An upper path comes before what is below it.
        for (path, mut conflict) in std::mem::take(&mut weighed.conflicts) {
            let above = joined.values_mut().find(|one| {
                one.below.is_some() && path != one.path && path::is_within(&path, &one.path)
            });
            match above.and_then(|above| above.below.as_mut()) {
                Some(below) => below.push(path),
                None => {
                    if self.is_directory_on_a_side(incoming, &path)? {
                        conflict.below = Some(Vec::new());
                    }
                    joined.insert(path, conflict);
                }
            }
        }
        weighed.conflicts = joined;
        Ok(())
    }

    fn is_directory_on_a_side(
        &self,
        incoming: &Incoming<'_>,
        path: &[u8],
    ) -> Result<bool, StateError> {
        let ours = tree::find(self.trees, Some(&self.present.files), path)?;
        let theirs = tree::find(self.trees, Some(&incoming.work.record.files), path)?;
        let is_directory = |entry: &Option<Entry>| entry.as_ref().is_some_and(is_directory);
        Ok(is_directory(&ours) != is_directory(&theirs))
    }
}

/// Whether something above a path is decided with all that is in it.
pub(super) fn is_below(path: &[u8], whole: &BTreeMap<&TreePath, &Resolution>) -> bool {
    let mut above = path::split(path).0;
    while !above.is_empty() {
        if whole.contains_key(&above.to_vec()) {
            return true;
        }
        above = path::split(above).0;
    }
    false
}
