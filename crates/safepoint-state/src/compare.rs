//! What differs between a snapshot and the present, or between two snapshots.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

use safepoint_store::regular;

use crate::checkpoint::root_mode;
use crate::linked::{self, LinkedGit};
use crate::lock::Hold;
use crate::objects::Objects;
use crate::path;
use crate::record::{changes_by_action, forget_omitted, notable_changes, observed_changes};
use crate::scan::{MixedTrees, Progress, Sink};
use crate::scope::{Cover, Scope};
use crate::snapshot::{Action, Record, Selection, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{Change, Entry, Node};
use crate::{StateError, git_state, tree};

impl State {
    /// What has happened in a workspace since a snapshot, as far as it covers it.
    pub fn changes_since(
        &self,
        workspace: &Workspace,
        snapshot: &Snapshot,
        chosen: &Scope,
        progress: &Progress,
    ) -> Result<Vec<Change>, StateError> {
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        let objects = self.objects()?;
        let scope = Scope::stored(&snapshot.record.scope)?.narrowed(chosen);
        let fresh = Mutex::new(HashMap::new());
        let sink = Sink::Memory(&fresh);
        let capture = self.look(workspace, &scope, &objects, &sink, progress)?;
        let reader = objects.reader();
        let trees = MixedTrees {
            fresh: &fresh,
            stored: &reader,
        };
        let record = &snapshot.record;
        let mut changes = tree::changes(&trees, Some(&record.files), Some(&capture.files), &scope)?;
        changes.retain(Change::is_notable);
        forget_omitted(&mut changes, [record]);
        if scope.cover(b"") == Cover::Everything {
            let now = Record {
                files: capture.files,
                root_mode: root_mode(workspace),
                ..record.clone()
            };
            changes.splice(0..0, record.root_change(&now));
        }
        if let (Some(before), Some(now)) = (&record.git, &capture.git) {
            let git = tree::changes(&trees, Some(before), Some(now), &scope)?;
            changes.extend(
                git.into_iter()
                    .filter(|change| git_state::is_notable(&change.path)),
            );
        }
        Ok(changes)
    }

    /// Whether the workspace itself has another mode than in a snapshot.
    pub fn has_other_mode(&self, workspace: &Workspace, snapshot: &Snapshot) -> bool {
        snapshot.record.root_mode != root_mode(workspace)
    }

    /// Whether anything has happened since the newest snapshot that covers the whole workspace.
    pub fn changes_since_last(
        &self,
        workspace: &Workspace,
        progress: &Progress,
    ) -> Result<bool, StateError> {
        let recent = self.list(&Selection {
            workspace: Some(workspace.root.clone()),
            limit: Some(20),
        })?;
        match recent.iter().find(|one| one.record.scope.is_empty()) {
            Some(last) => {
                let changes =
                    self.changes_since(workspace, last, &Scope::everything(), progress)?;
                Ok(!changes.is_empty())
            }
            None => Ok(false),
        }
    }

    /// Whether a linked work tree has another `HEAD`, or something else in progress, in the second
    /// snapshot.
    pub fn has_moved_head(&self, before: &Snapshot, after: &Snapshot) -> Result<bool, StateError> {
        let (before, after) = (&before.record.linked, &after.record.linked);
        self.is_other_work(before.as_ref(), after.as_ref())
    }

    /// Whether a linked work tree has another `HEAD`, or something else in progress, now.
    pub fn has_moved_head_since(
        &self,
        workspace: &Workspace,
        snapshot: &Snapshot,
    ) -> Result<bool, StateError> {
        let now = self.capture_linked(workspace, &Scope::everything())?;
        self.is_other_work(snapshot.record.linked.as_ref(), now.as_ref())
    }

    fn is_other_work(
        &self,
        before: Option<&LinkedGit>,
        after: Option<&LinkedGit>,
    ) -> Result<bool, StateError> {
        let (Some(before), Some(after)) = (before, after) else {
            return Ok(false);
        };
        let objects = self.objects()?;
        Ok(!linked::is_same_work(&objects.reader(), before, after)?)
    }

    /// What differs between two snapshots.
    pub fn changes_between(
        &self,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Vec<Change>, StateError> {
        let objects = self.objects()?;
        let reader = objects.reader();
        notable_changes(&reader, before, after)
    }

    /// Whether an action was a roll back to what was there already.
    pub fn has_changed_nothing(&self, action: &Action) -> bool {
        if action.action != "checkpoint.rollback" {
            return false;
        }
        let ends = (
            self.find(action.before.as_str()),
            self.find(action.after.as_str()),
        );
        let (Ok(before), Ok(after)) = ends else {
            return false;
        };
        let (before, after) = (before.record, after.record);
        let has_same_parts = before.parts.len() == after.parts.len()
            && before
                .parts
                .iter()
                .zip(&after.parts)
                .all(|(a, b)| a.is_same(b));
        (before.files, before.git, before.root_mode) == (after.files, after.git, after.root_mode)
            && (before.linked, before.sealed) == (after.linked, after.sealed)
            && has_same_parts
    }

    /// What an action changed, between the snapshots before and after it.
    pub fn changes_of(
        &self,
        action: &Action,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<Vec<Change>, StateError> {
        match action.is_observed() {
            true => observed_changes(&self.objects()?.reader(), before, after),
            false => changes_by_action(&self.objects()?.reader(), before, after),
        }
    }

    /// What an entry holds: from the store or, where it is not stored, from the workspace.
    pub fn content_of(
        &self,
        objects: &Objects,
        root: &Path,
        path: &[u8],
        entry: &Entry,
    ) -> Result<Vec<u8>, StateError> {
        match &entry.node {
            Node::File { content, .. } => match objects.reader().read(*content) {
                Err(StateError::Missing { .. }) => {
                    let full = root.join(path::as_path(path));
                    regular::read(&full, u64::MAX)
                        .map_err(|error| StateError::file("read", &full, error))
                }
                other => other,
            },
            Node::Symlink { target } => Ok(target.clone()),
            Node::Directory(_) | Node::Special { .. } => Ok(Vec::new()),
        }
    }
}
