//! Recording a snapshot, and what happened since the one before it.

use std::collections::BTreeSet;

use safepoint_model::{ActionId, Expiry};
use safepoint_store::Durability;
use safepoint_trail::Kind;
use serde_json::json;

use crate::StateError;
use crate::account::Observed;
use crate::git::index;
use crate::git_state::{
    is_index, is_reference_list, is_stash_list, lost_objects, lost_stash_references,
};
use crate::identity::Marks;
use crate::objects::Reader;
use crate::part::{self, WantedPart};
use crate::path::TreePath;
use crate::scope::{Cover, Scope};
use crate::snapshot::{self, Action, Record, Snapshot};
use crate::state::State;
use crate::tree::{self, Change, Entry, Node, Trees};
use crate::work_trees::WorkTrees;

/// What nobody asked for, and was found by looking.
pub(crate) const OBSERVED: &str = "workspace.change";

impl State {
    /// What nobody told of, as an action of its own.
    pub(crate) fn observed_action(
        &self,
        before: &Snapshot,
        after: &Snapshot,
        changes: &[Change],
    ) -> Result<Action, StateError> {
        Ok(Action {
            id: ActionId::generate(&*self.around.entropy)?,
            workspace: after.workspace.clone(),
            time: after.created,
            session: None,
            action: OBSERVED.to_owned(),
            summary: summarise_changes(changes),
            decision: None,
            outcome: "observed".to_owned(),
            before: before.id.clone(),
            after: after.id.clone(),
            undoes: None,
        })
    }

    pub(crate) fn record_observed(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        action: &Action,
    ) -> Result<(), StateError> {
        let body = json!({
            "row": snapshot::of_action(action), "action": action.action, "summary": action.summary, "outcome": action.outcome,
            "before": action.before, "after": action.after,
        });
        let kind = Kind::fixed("action_observed");
        let draft = self.draft(&action.workspace, kind, Some(&action.id), body);
        let entry = writing.append(draft)?;
        snapshot::insert_action(writing.sql(), action, entry.seq)
    }

    /// Whether a snapshot from a list can be acted upon. One that somebody has changed is no
    /// ground for another, and no reason to make none.
    pub(crate) fn is_as_told(&self, listed: &Snapshot) -> Result<bool, StateError> {
        match self.find(listed.id.as_str()) {
            Ok(_) => Ok(true),
            Err(StateError::Tampered { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Commits the snapshot, what was observed, and the entries that tell of both.
    pub(crate) fn record(
        &self,
        snapshot: &Snapshot,
        observed: Option<&Observed>,
    ) -> Result<(), StateError> {
        self.record_with(snapshot, observed, &[])
    }

    /// The same, with the values that were given for states.
    pub(crate) fn record_with(
        &self,
        snapshot: &Snapshot,
        observed: Option<&Observed>,
        given: &[WantedPart],
    ) -> Result<(), StateError> {
        self.trail.write(Durability::Sync, |writing| {
            self.record_look(writing, snapshot, observed)?;
            part::set_given(writing.sql(), &snapshot.workspace, given)
        })
    }

    /// What is there, and what of it was observed. The newest state is what is there.
    pub(crate) fn record_look(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        snapshot: &Snapshot,
        observed: Option<&Observed>,
    ) -> Result<(), StateError> {
        if let Some(known) = observed.and_then(|it| it.known.as_ref()) {
            self.record_in(writing, known)?;
        }
        self.record_in(writing, snapshot)?;
        match observed {
            Some(observed) => self.record_observed(writing, &observed.action),
            None => Ok(()),
        }
    }

    pub(crate) fn record_in(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        snapshot: &Snapshot,
    ) -> Result<(), StateError> {
        let record = &snapshot.record;
        let text = snapshot::text_of(record)?;
        let body = json!({
            "checkpoint_id": snapshot.id,
            "subject": "state",
            "row": snapshot::of_snapshot(snapshot, &text),
            "type": record.kind,
            "origin": record.origin,
            "reason": record.reason,
            "scope": record.scope,
            "hash": format!("sha256:{}", record.files.hash),
            "tree": record.files.tree,
            "git_tree": record.git.map(|git| git.tree),
            "files": record.files.files,
            "bytes": record.files.bytes,
            "size": record.size,
            "expiry": match snapshot.expiry {
                Expiry::Never => None,
                Expiry::At(time) => Some(time),
            },
            "directory": Marks::of(&snapshot.workspace),
            "left_out": record.left_out.len(),
            "sensitive": record.sensitive.iter().map(|note| &note.path).collect::<Vec<_>>(),
        });
        let kind = Kind::fixed("checkpoint_created");
        let entry = writing.append(self.draft(&snapshot.workspace, kind, None, body))?;
        snapshot::insert(writing.sql(), snapshot, &text, entry.seq)
    }
}

/// What differs between two snapshots that people care about.
pub(crate) fn notable_changes(
    trees: &dyn Trees,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<Change>, StateError> {
    let scope = Scope::stored(&before.record.scope)?.narrowed(&Scope::stored(&after.record.scope)?);
    let mut changes = tree::changes(
        trees,
        Some(&before.record.files),
        Some(&after.record.files),
        &scope,
    )?;
    changes.retain(Change::is_notable);
    forget_omitted(&mut changes, [&before.record, &after.record]);
    if scope.cover(b"") == Cover::Everything {
        changes.splice(0..0, before.record.root_change(&after.record));
    }
    if let (Some(before), Some(after)) = (&before.record.git, &after.record.git) {
        let git = tree::changes(trees, Some(before), Some(after), &scope)?;
        let git = git.into_iter().filter(|change| {
            change.kind() != tree::ChangeKind::Time && crate::git_state::is_notable(&change.path)
        });
        tree::add_git(&mut changes, git);
    }
    Ok(changes)
}

/// The same, with what the first holds encrypted and is gone or changed in the second.
pub(crate) fn observed_changes(
    trees: &dyn Trees,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<Change>, StateError> {
    let mut changes = notable_changes(trees, before, after)?;
    for mut change in before.record.sealed_changes(&after.record, trees) {
        if change.to.is_none() {
            // What is no longer sensitive is captured as it is now.
            change.to = tree::find(trees, Some(&after.record.files), &change.path)?;
        }
        changes.push(change);
    }
    Ok(changes)
}

/// The same, of something that was done by somebody: what it took from a list of stashes, or put
/// there, is its doing. Between actions such a list grows with every checkpoint that is asked for.
pub(crate) fn changes_by_action(
    trees: &Reader<'_>,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<Change>, StateError> {
    let mut changes = observed_changes(trees, before, after)?;
    add_repository_changes(trees, before, after, &mut changes)?;
    Ok(changes)
}

/// Adds what was done to repositories that is notable only of somebody's doing: what a linked work
/// tree has in its own git directory, and what is gone of stashes and objects. Takes out branches
/// that other work trees have checked out.
pub(crate) fn add_repository_changes(
    trees: &Reader<'_>,
    before: &Snapshot,
    after: &Snapshot,
    changes: &mut Vec<Change>,
) -> Result<(), StateError> {
    let (old, new) = (&before.record.linked, &after.record.linked);
    changes.extend(crate::linked::changes(trees, old.as_ref(), new.as_ref())?);
    if let (Some(old), Some(new)) = (&before.record.git, &after.record.git) {
        let scope =
            Scope::stored(&before.record.scope)?.narrowed(&Scope::stored(&after.record.scope)?);
        let git = tree::changes(trees, Some(old), Some(new), &scope)?;
        // A branch that another work tree has checked out is moved by that one.
        let content = |_: &[u8], entry: &Entry| match &entry.node {
            Node::File { content, .. } => trees.read(*content),
            _ => Ok(Vec::new()),
        };
        let left_out = after.record.omitted_paths();
        let around = (after.workspace.as_path(), left_out.as_slice());
        for state in [old, new] {
            let others = WorkTrees::of(&git, trees, state, around, &content)?;
            changes.retain(|change| !others.has_branch(&change.path));
        }
        for change in git.iter().filter(|change| is_index(&change.path)) {
            if is_lost_index(trees, change)? {
                changes.push(change.clone());
            }
        }
        let lost: BTreeSet<TreePath> = lost_objects(
            git.iter()
                .map(|it| (it.path.as_slice(), it.from.as_ref(), it.to.as_ref())),
        )
        .into_iter()
        .map(<[u8]>::to_vec)
        .chain(lost_stash_references(&git).map(|change| change.path.clone()))
        .collect();
        changes.extend(git.into_iter().filter(|change| {
            let is_list = is_stash_list(&change.path) || is_reference_list(&change.path);
            change.kind() != tree::ChangeKind::Time && is_list || lost.contains(&change.path)
        }));
    }
    Ok(())
}

/// Whether an index went, or became something that git cannot read.
fn is_lost_index(trees: &Reader<'_>, change: &Change) -> Result<bool, StateError> {
    let is_whole = |side: &Option<Entry>| match side.as_ref().map(|entry| &entry.node) {
        Some(Node::File { content, .. }) => {
            Ok::<_, StateError>(index::staged(&trees.read(*content)?).is_some())
        }
        _ => Ok(false),
    };
    Ok(
        change.kind() != tree::ChangeKind::Time
            && is_whole(&change.from)?
            && !is_whole(&change.to)?,
    )
}

/// Takes out what one of the two did not capture: that it is not there says nothing.
pub(crate) fn forget_omitted<'r>(
    changes: &mut Vec<Change>,
    records: impl IntoIterator<Item = &'r Record>,
) {
    let omitted: Vec<TreePath> = records
        .into_iter()
        .flat_map(|record| record.left_out.iter().chain(&record.sensitive))
        .map(|note| crate::scope::unescape(&note.path))
        .collect();
    changes.retain(|change| {
        let one_sided = change.from.is_none() || change.to.is_none();
        !one_sided
            || !omitted
                .iter()
                .any(|path| crate::path::is_within(&change.path, path))
    });
}

/// `3 files created, 1 modified`.
pub(crate) fn summarise_changes(changes: &[Change]) -> String {
    use tree::ChangeKind::{Created, Deleted, Metadata, Modified, Time};
    let count = |kinds: &[tree::ChangeKind]| {
        changes
            .iter()
            .filter(|change| kinds.contains(&change.kind()))
            .count()
    };
    let parts: Vec<String> = [
        (count(&[Created]), "created"),
        (count(&[Modified]), "modified"),
        (count(&[Deleted]), "deleted"),
        (count(&[Metadata, Time]), "with other metadata"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    parts.join(", ")
}
