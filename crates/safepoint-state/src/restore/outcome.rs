//! What came of a going back: looked at again, and recorded.

use std::collections::HashMap;
use std::sync::Mutex;

use safepoint_model::Digest;
use safepoint_store::Durability;
use safepoint_trail::Kind;
use serde_json::json;

use super::journal::Journal;
use super::owner::{self, Owned};
use super::{Plan, apply, check, stage};
use crate::identity::{Marks, RESTORING};
use crate::objects::Objects;
use crate::path::TreePath;
use crate::scan::{MixedTrees, Progress, Sink};
use crate::scope::Scope;
use crate::snapshot::{self, Action, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind, Entry, same_content};
use crate::{StateError, checkpoint, record};

/// What is there after a going back.
pub(super) struct Seen {
    /// The hash of it.
    pub(super) hash: Digest,
    /// What is not as it should be.
    pub(super) left: Vec<Change>,
    /// What is, but for its owner or group, which only a superuser could give.
    pub(super) not_given: Vec<TreePath>,
}

/// Whether nothing differs from what is wanted but an owner or group that could not be given.
fn is_not_given(change: &Change) -> bool {
    let (Some(wanted), Some(found)) = (&change.from, &change.to) else {
        return false;
    };
    let alike = Entry {
        owner: wanted.owner,
        group: wanted.group,
        ..found.clone()
    };
    !change.relinked
        && same_content(&wanted.node, &found.node)
        && wanted.same_metadata(&alike)
        && wanted.modified == found.modified
        && owner::of(wanted, found.owner, found.group) == Owned::Ours
}

impl State {
    /// Looks again, and tells what is not as it should be.
    pub(super) fn verify_restored(
        &self,
        workspace: &Workspace,
        objects: &Objects,
        (plan, staged): (&Plan, &stage::Staged),
        journal: &Journal,
        progress: &Progress,
    ) -> Result<Seen, StateError> {
        if let Some(not_given) = check::as_planned(&workspace.root, plan, staged)? {
            return Ok(Seen {
                hash: journal.record.files.hash,
                left: Vec::new(),
                not_given,
            });
        }
        // Something is not: all is looked at, to say what.
        let scope = Scope::stored(&journal.scope)?;
        let fresh = Mutex::new(HashMap::new());
        let sink = Sink::Memory(&fresh);
        let held = [journal.record.files];
        let capture = self.look_for(workspace, &scope, objects, &held, &sink, progress)?;
        let reader = objects.reader();
        let trees = MixedTrees {
            fresh: &fresh,
            stored: &reader,
        };
        let wanted = &journal.record;
        let mut left = tree::changes(&trees, Some(&wanted.files), Some(&capture.files), &scope)?;
        if let (Some(wanted), Some(found)) = (&wanted.git, &capture.git) {
            let git = tree::changes(&trees, Some(wanted), Some(found), &scope)?;
            left.extend(git.into_iter().filter(|change| {
                crate::git_state::inside(&change.path).is_some()
                    && change.to.as_ref().is_none_or(|to| to.subtree().is_none())
            }));
        }
        let of_directory = |change: &Change| {
            change.kind() == ChangeKind::Time
                && change.to.as_ref().is_some_and(|to| to.subtree().is_some())
        };
        left.retain(|change| !of_directory(change));
        if journal.taking_back.is_some() {
            // What is wanted then is the state before as it was looked at, and not with what a
            // going back leaves in a repository.
            left.retain(|change| {
                let is_new = change.from.is_none() || change.kind() == ChangeKind::Time;
                !is_new || !crate::git_state::is_left(&change.path)
            });
        }
        let (not_given, left) = left.into_iter().partition(is_not_given);
        let not_given: Vec<Change> = not_given;
        Ok(Seen {
            hash: capture.files.hash,
            left,
            not_given: not_given.into_iter().map(|change| change.path).collect(),
        })
    }

    pub(super) fn record_restored(
        &self,
        workspace: &Workspace,
        journal: &Journal,
        plan: &Plan,
        matches: bool,
    ) -> Result<(), StateError> {
        let now = self.now();
        let after = Snapshot {
            id: journal.after.clone(),
            workspace: workspace.root.clone(),
            created: now,
            expiry: super::automatic_expiry(now),
            pinned: false,
            spent: None,
            record: journal.record.clone(),
        };
        let notable: Vec<Change> = plan
            .changes
            .iter()
            .filter(|it| it.is_notable())
            .cloned()
            .collect();
        let errand = journal.errand.as_ref();
        let action = Action {
            id: journal.action.clone(),
            workspace: workspace.root.clone(),
            time: now,
            session: match errand {
                Some(told) => told.session.clone(),
                None => self.session.clone(),
            },
            action: match errand {
                Some(told) => told.action.clone(),
                None => format!("checkpoint.{}", journal.verb),
            },
            summary: journal.summary.clone(),
            decision: Some(errand.map_or("allow", |told| &told.decision).to_owned()),
            outcome: if matches { "ok" } else { "incomplete" }.to_owned(),
            before: journal.before.clone(),
            after: journal.after.clone(),
            undoes: journal.undoes.clone(),
        };
        let kind = match journal.verb.as_str() {
            "undo" => Kind::fixed("undone"),
            "redo" => Kind::fixed("redone"),
            "take_back" => Kind::fixed("mutation_rolled_back"),
            super::BACK_OUT => Kind::fixed("roll_back_failed"),
            "integrate" => Kind::fixed("work_brought"),
            _ => Kind::fixed("rolled_back"),
        };
        let directory = Marks::of(&workspace.root);
        let in_place_of = self.in_place_of(journal, directory.as_ref())?;
        self.trail.write(Durability::Sync, |writing| {
            if snapshot::is_recorded(&self.trail, writing.sql(), &action.id)? {
                return Ok(()); // a crash came between this and the end of the journal
            }
            self.record_in(writing, &after)?;
            let body = json!({
                "row": snapshot::of_action(&action),
                "restored_to": journal.restored_to,
                "undoes": journal.undoes,
                "before": journal.before,
                "after": journal.after,
                "changes": record::summarise_changes(&notable),
                "match": matches,
                "directory": directory,
                "in_place_of": in_place_of,
            });
            let draft = self.draft(&workspace.root, kind, Some(&action.id), body);
            let entry = writing.append(draft)?;
            snapshot::insert_action(writing.sql(), &action, entry.seq)
        })
    }

    /// The directory that this one stands for, now that a state of that one was restored where
    /// nothing was.
    fn in_place_of(
        &self,
        journal: &Journal,
        now: Option<&Marks>,
    ) -> Result<Option<String>, StateError> {
        let restored = match (&journal.restored_to, &journal.undoes) {
            (Some(snapshot), _) => snapshot.clone(),
            (None, Some(action)) if RESTORING.contains(&journal.verb.as_str()) => {
                self.find_action(action.as_str())?.before
            }
            // A change that is taken back, or work that is brought.
            _ => return Ok(None),
        };
        let (before, said) = self.find_said(&journal.before)?;
        // Somebody else's directory does not become another by what is put into it.
        let was_empty = said.directory.is_some_and(|was| {
            now.is_some_and(|now| now.root == was.root) && before.record.is_empty()
        });
        if !was_empty {
            return Ok(None);
        }
        match self.find_said(&restored) {
            Ok((_, said)) => Ok(said.directory.map(|directory| directory.root)),
            // It may have been collected since; then nobody can say of what it was.
            Err(StateError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Gives the workspace itself the mode it had.
pub(crate) fn restore_root_mode(
    workspace: &Workspace,
    mode: Option<u32>,
) -> Result<(), StateError> {
    match mode {
        Some(mode) if checkpoint::root_mode(workspace) != Some(mode) => {
            rustix::fs::chmod(&workspace.root, rustix::fs::Mode::from_raw_mode(mode))
                .map_err(|error| StateError::file("change", &workspace.root, error))
        }
        _ => Ok(()),
    }
}

/// So many paths are named.
const MOST_NAMED: usize = 10;

/// Says what could not be given to whom it belonged.
pub(super) fn not_given_as_warning(paths: &[TreePath]) -> Option<String> {
    let mut named: Vec<String> = paths
        .iter()
        .take(MOST_NAMED)
        .map(|path| format!("`{}`", crate::path::display(path)))
        .collect();
    match paths.len().saturating_sub(MOST_NAMED) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    (!named.is_empty()).then(|| {
        format!(
            "of {} the owner or group is yours now: only a superuser gives files to others",
            named.join(", ")
        )
    })
}

pub(super) fn remarks_as_warnings(
    plan: &Plan,
    staged: &stage::Staged,
    remarks: &apply::Remarks,
) -> Vec<String> {
    let mut warnings: Vec<String> = plan
        .kept
        .iter()
        .map(|note| format!("`{}` stays: {}", note.path, note.why))
        .collect();
    warnings.extend(plan.remarks.iter().cloned());
    for path in &remarks.kept {
        let path = crate::path::display(path);
        warnings.push(format!("`{path}` stays: it is not empty"));
    }
    for (path, kind) in &staged.impossible {
        let path = crate::path::display(path);
        warnings.push(format!(
            "`{path}` is a {} and cannot be made again",
            kind.as_str()
        ));
    }
    warnings
}
