//! Bringing the work of one directory into another that has moved on since.
//!
//! What happened between two snapshots of the first is put into the second, path
//! by path and line by line: three ways, with the first snapshot as the base.
//! What cannot be merged is a conflict, and then nothing at all is done, unless
//! somebody has said for each what is to become of it. Git state is not brought.

mod clash;
mod sides;
mod weigh;
mod whole;

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use crate::around::Errand;
use crate::aside::Aside;
use crate::lock::Hold;
use crate::path::TreePath;
use crate::restore::{Goal, Restored};
use crate::scan::{MixedTrees, Progress, Sink};
use crate::scope::Scope;
use crate::snapshot::{Note, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind, Trees};
use crate::undo::{FileConflict, Undoing};
use crate::{ContentId, StateError, checkpoint};
pub use sides::{Side, Sides};
pub(crate) use weigh::Weighed;
pub use weigh::is_rule;

/// What is to become of a path that cannot be merged, or that somebody looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It stays as it is here.
    Ours,
    /// It becomes what the work made of it, with all that is below it; of a directory that both
    /// sides have, only its own mode and attributes.
    Theirs,
    /// Both changes, line by line, where they fit.
    Merged,
    /// A file with this content.
    Content(Vec<u8>),
}

/// Work that is to be brought.
#[derive(Clone, Debug)]
pub struct Incoming<'a> {
    /// What both began with.
    pub base: &'a Snapshot,
    /// What the work made of it.
    pub work: &'a Snapshot,
    /// The action that bringing it is.
    pub errand: &'a Errand,
    /// What was decided, path by path.
    pub resolutions: &'a BTreeMap<TreePath, Resolution>,
    /// What was there when it was decided to replace it, path by path. Where something else
    /// is there now, the decision does not hold.
    pub shown: &'a BTreeMap<TreePath, ContentId>,
}

/// What would come of it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Every path that would change.
    pub changes: Vec<Change>,
    /// What cannot be merged. Without a resolution for each, nothing is done.
    pub conflicts: Vec<FileConflict>,
    /// Files that both sides changed, and whose changes fit, with what is there now.
    pub merged: Vec<(TreePath, ContentId)>,
    /// What is not brought, and why.
    pub kept: Vec<Note>,
}

impl State {
    /// Says what would come of bringing the work into `workspace`, and does nothing.
    pub fn arrival(
        &self,
        workspace: &Workspace,
        incoming: &Incoming<'_>,
        progress: &Progress,
    ) -> Result<Arrival, StateError> {
        self.beside(workspace, incoming, progress, |undoing, sink| {
            let aside = self.aside_of(workspace, incoming, undoing.trees)?;
            let weighed = undoing.weigh(incoming, &aside, sink)?;
            let mut merged = Vec::new();
            for path in &weighed.merged {
                merged.push((path.clone(), undoing.shown_at(path)?));
            }
            Ok(Arrival {
                changes: weighed.changes(),
                conflicts: weighed.conflicts.into_values().collect(),
                merged,
                kept: weighed.kept,
            })
        })
    }

    /// Lets `look` see the work beside what is there now. Nothing is stored.
    fn beside<T>(
        &self,
        workspace: &Workspace,
        incoming: &Incoming<'_>,
        progress: &Progress,
        look: impl FnOnce(&Undoing<'_>, &Sink<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        let objects = self.objects()?;
        let fresh = Mutex::new(HashMap::new());
        let sink = Sink::Memory(&fresh);
        let scope = incoming.scope()?;
        let capture = self.look(workspace, &scope, &objects, &sink, progress)?;
        let reader = objects.reader();
        let trees = MixedTrees {
            fresh: &fresh,
            stored: &reader,
        };
        let undoing = Undoing {
            trees: &trees,
            reader: &reader,
            workspace: &workspace.root,
            present: &capture,
            root_mode: checkpoint::root_mode(workspace),
            scope: &scope,
            now: self.now(),
        };
        look(&undoing, &sink)
    }

    /// What the work made that git ignores here, of which each side has its own; and what
    /// it did in submodules of either side.
    pub(crate) fn aside_of(
        &self,
        workspace: &Workspace,
        incoming: &Incoming<'_>,
        trees: &dyn Trees,
    ) -> Result<Aside, StateError> {
        let (base, work) = (&incoming.base.record.files, &incoming.work.record.files);
        let mut made = tree::changes(trees, Some(base), Some(work), &incoming.scope()?)?;
        made.retain(|change| change.kind() != ChangeKind::Time);
        self.aside(workspace, &made)
    }

    /// Brings it. The state before is a checkpoint, and `undo` takes it back.
    pub fn bring(
        &self,
        workspace: &Workspace,
        incoming: &Incoming<'_>,
        progress: &Progress,
    ) -> Result<Restored, StateError> {
        self.restore(workspace, &Goal::Brought(incoming), &[], progress)
    }
}

impl Incoming<'_> {
    pub(crate) fn scope(&self) -> Result<Scope, StateError> {
        let scope = Scope::stored(&self.base.record.scope)?;
        Ok(scope.narrowed(&Scope::stored(&self.work.record.scope)?))
    }
}
