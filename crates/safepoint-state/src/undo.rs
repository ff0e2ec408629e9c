//! Taking one change out of the middle of a history.
//!
//! What an action did is the difference between the state before it and the
//! state after it. Where nothing has touched a path since, it becomes what it
//! was; where something has, the three states are merged line by line. What
//! cannot be merged is a conflict, and then nothing at all is done.

mod repository;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use safepoint_model::Timestamp;
use safepoint_store::regular;

use crate::capture::Capture;
use crate::contested::Contested;
use crate::objects::Reader;
use crate::path::{self, TreePath};
use crate::restore::{Plan, renumber};
use crate::scan::Sink;
use crate::scope::{Cover, Scope};
use crate::snapshot::{Note, Record};
use crate::text::{self, Conflict, Merge};
use crate::tree::{self, Change, ChangeKind, Entry, Moment, Node, Trees, same_content};
use crate::{ContentId, StateError, git_state};

/// A file in which a change cannot be taken out, because a later one stands on it.
#[derive(Clone, Debug)]
pub struct FileConflict {
    /// Where.
    pub path: TreePath,
    /// Why, in a sentence.
    pub why: String,
    /// The places, when it is text.
    pub hunks: Vec<Conflict>,
    /// What is there now, when somebody is to decide about it.
    pub ours: Option<ContentId>,
    /// Where it is a directory on one side alone: it is decided with all that is below it, of
    /// which these paths do not fit either.
    pub below: Option<Vec<TreePath>>,
}

/// How much of what an action did there is to take out.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Whether it did anything that people care about.
    pub(crate) was_any: bool,
    /// Whether what the action staged stays, because something else was staged since.
    pub(crate) is_index_kept: bool,
    /// Whether anything of that is there still.
    pub(crate) is_any: bool,
    /// What was to become something else in a repository, and cannot.
    pub(crate) staying: Vec<Note>,
    /// What it changed that is gone altogether since.
    pub(crate) gone: Vec<TreePath>,
}

/// Larger files are not merged.
const LARGEST_MERGED: u64 = 32 << 20;

/// What is needed to take a change out.
pub(crate) struct Undoing<'a> {
    pub(crate) trees: &'a dyn Trees,
    pub(crate) reader: &'a Reader<'a>,
    pub(crate) workspace: &'a Path,
    pub(crate) present: &'a Capture,
    /// The mode of the workspace itself.
    pub(crate) root_mode: Option<u32>,
    pub(crate) scope: &'a Scope,
    pub(crate) now: Timestamp,
}

impl Undoing<'_> {
    /// The plan that takes out what happened between `before` and `after`.
    pub(crate) fn plan(
        &self,
        before: &Record,
        after: &Record,
        contested: &Contested,
        sink: &Sink<'_>,
    ) -> Result<Plan, StateError> {
        let mut conflicts = Vec::new();
        let mut edits = BTreeMap::new();
        let mut left = Left::default();
        let mut undone = tree::changes(
            self.trees,
            Some(&after.files),
            Some(&before.files),
            self.scope,
        )?;
        undone
            .iter_mut()
            .for_each(|change| renumber(&mut change.to));
        self.take_hidden(&mut undone, after)?;
        left.was_any = undone.iter().any(Change::is_notable);
        for change in &undone {
            if let Some(other) = contested.get(&change.path) {
                let present = tree::find(self.trees, Some(&self.present.files), &change.path)?;
                if !same(&present, &change.to) {
                    conflicts.push(contested_file(change, other));
                }
                continue;
            }
            if self.file(change, sink, &mut edits, &mut conflicts)? == Found::Gone
                && change.is_notable()
            {
                left.gone.push(change.path.clone());
            }
        }
        let staying = self.keep_full_directories(&mut edits)?;
        self.add_missing_parents(before, &mut edits)?;
        let git = self.git((before, after), contested, sink, &mut conflicts, &mut left)?;
        if !conflicts.is_empty() {
            return Err(StateError::Conflict { conflicts });
        }
        let files = edits
            .into_iter()
            .map(|(path, (from, to, relinked))| Change {
                path,
                from,
                to,
                relinked,
            })
            .collect();
        // What the action left out is not there, or is not captured now either, or is taken for
        // what it left.
        let mut plan = Plan::new(self.present, &[before], files, git);
        plan.add_parts(self.trees, self.workspace, self.scope, &before.files)?;
        left.is_any = !plan.kept.is_empty() || plan.changes.iter().any(is_felt);
        if let Some(change) = before.root_change(after).and_then(|it| it.from.zip(it.to)) {
            let (was, became) = (change.0.mode, change.1.mode);
            left.was_any = true;
            if self.root_mode == Some(became) {
                left.is_any = true;
                plan.root_mode = Some(was);
            } else if self.root_mode != Some(was) {
                left.is_any = true;
                plan.unrestored.push(Note {
                    path: path::display(b""),
                    why: "its mode has been changed since, and stays".to_owned(),
                });
            }
        }
        let (old, new) = (before.linked.as_ref(), after.linked.as_ref());
        if !crate::linked::changes(self.trees, old, new)?.is_empty() {
            left.was_any = true;
            left.is_any = true;
        }
        if let (true, Some(first)) = (left.is_any, left.gone.first()) {
            let more = match left.gone.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            plan.remarks.push(format!(
                "`{}`{more} went since, and with it what was to be taken back of it",
                path::display(first)
            ));
        }
        // The deepest first: what is around each of them stays with it.
        let outermost = |path: &&TreePath| {
            let mut others = staying.iter().filter(|other| other != path);
            !others.any(|other| path::is_within(path, other))
        };
        plan.remarks
            .extend(staying.iter().filter(outermost).map(|path| {
                let path = path::display(path);
                format!("`{path}` stays: not all that it holds is of this action")
            }));
        if left.is_index_kept {
            plan.unrestored.push(Note {
                path: ".git/index".to_owned(),
                why: "what is staged stays: it has changed since".to_owned(),
            });
        }
        plan.incomplete |= !left.staying.is_empty();
        plan.unrestored.append(&mut left.staying);
        plan.left = left;
        Ok(plan)
    }

    /// What an action left was not captured where it excluded it at the same time. What is there
    /// now counts as that.
    fn take_hidden(&self, undone: &mut [Change], after: &Record) -> Result<(), StateError> {
        let hidden = after.omitted_paths();
        for change in undone.iter_mut().filter(|change| change.from.is_none()) {
            if hidden
                .iter()
                .any(|one| path::is_within(&change.path, &one.path))
            {
                change.from = tree::find(self.trees, Some(&self.present.files), &change.path)?;
            }
        }
        Ok(())
    }

    fn file(
        &self,
        change: &Change,
        sink: &Sink<'_>,
        edits: &mut Edits,
        conflicts: &mut Vec<FileConflict>,
    ) -> Result<Found, StateError> {
        let present = tree::find(self.trees, Some(&self.present.files), &change.path)?;
        let (after, before) = (&change.from, &change.to);
        if same(&present, after) {
            // Nobody touched it since.
            edits.insert(
                change.path.clone(),
                (present, before.clone(), change.relinked),
            );
            return Ok(Found::There);
        }
        if same(&present, before) {
            return Ok(Found::There); // somebody has taken it back already
        }
        let mut conflict = |why: &str, hunks: Vec<Conflict>| {
            conflicts.push(FileConflict {
                path: change.path.clone(),
                why: why.to_owned(),
                hunks,
                ours: None,
                below: None,
            });
        };
        match (after, &present, before) {
            // A directory that has been changed since stays; what is in it is looked at by itself.
            (Some(a), Some(p), None) if a.subtree().is_some() && p.subtree().is_some() => {
                edits.insert(change.path.clone(), (present, None, false));
            }
            (Some(a), Some(p), Some(b))
                if a.subtree().is_some() && p.subtree().is_some() && b.subtree().is_some() =>
            {
                let merged = merged_metadata(p, a, b);
                edits.insert(change.path.clone(), (present.clone(), Some(merged), false));
            }
            (Some(a), Some(p), Some(b)) if all_files(a, p, b) => {
                match self.merge(change, a, p, b, sink)? {
                    Ok(entry) => {
                        edits.insert(change.path.clone(), (present.clone(), Some(entry), false));
                    }
                    Err(hunks) => conflict("it was changed in the same lines since", hunks),
                }
            }
            (Some(_), None, _) => return Ok(Found::Gone), // there is nothing left to take out
            (None, Some(_), _) => conflict(
                "it was deleted by the action, and made anew since",
                Vec::new(),
            ),
            (Some(_), Some(_), None) => {
                conflict(
                    "it was created by the action, and changed since",
                    Vec::new(),
                );
            }
            _ => conflict("it has become something else since", Vec::new()),
        }
        Ok(Found::There)
    }

    /// Merges the contents of a file, and stores the result.
    pub(crate) fn merge(
        &self,
        change: &Change,
        after: &Entry,
        present: &Entry,
        before: &Entry,
        sink: &Sink<'_>,
    ) -> Result<Result<Entry, Vec<Conflict>>, StateError> {
        let mut merged = merged_metadata(present, after, before);
        if same_content(&after.node, &before.node) || same_content(&present.node, &before.node) {
            return Ok(Ok(merged)); // only the metadata was changed
        }
        if same_content(&present.node, &after.node) {
            merged.node = before.node.clone();
            merged.modified = before.modified;
            return Ok(Ok(merged));
        }
        if [after, present, before].into_iter().any(Self::is_too_large) {
            return Ok(Err(Vec::new()));
        }
        let base = self.content(after)?;
        let ours = self.present_content(&change.path, present)?;
        let theirs = self.content(before)?;
        match text::merge(&base, &ours, &theirs) {
            Merge::Conflict(hunks) => Ok(Err(hunks)),
            Merge::Clean(bytes) if bytes == ours => Ok(Ok(merged)), // it is taken out already
            Merge::Clean(bytes) => {
                let content = ContentId::of(&bytes);
                merged.node = Node::File {
                    size: bytes.len() as u64,
                    content,
                    sparse: false,
                    link: None,
                };
                merged.modified = moment(self.now);
                sink.content(content, bytes)?;
                Ok(Ok(merged))
            }
        }
    }

    /// Whether a file is not taken apart.
    pub(crate) fn is_too_large(entry: &Entry) -> bool {
        matches!(entry.node, Node::File { size, .. } if size > LARGEST_MERGED)
    }

    pub(crate) fn content(&self, entry: &Entry) -> Result<Vec<u8>, StateError> {
        match &entry.node {
            Node::File { content, .. } => self.reader.read(*content),
            _ => Ok(Vec::new()),
        }
    }

    /// What is in a file now: stored, or, when nothing is to be kept, in the tree.
    pub(crate) fn present_content(
        &self,
        path: &[u8],
        entry: &Entry,
    ) -> Result<Vec<u8>, StateError> {
        match self.content(entry) {
            Err(StateError::Missing { .. }) => {
                let full = self.workspace.join(path::as_path(path));
                regular::read(&full, u64::MAX)
                    .map_err(|error| StateError::file("read", &full, error))
            }
            other => other,
        }
    }

    /// A directory is removed only when everything in it is.
    /// Returns those that stay.
    pub(crate) fn keep_full_directories(
        &self,
        edits: &mut Edits,
    ) -> Result<Vec<TreePath>, StateError> {
        let mut staying = Vec::new();
        let removed: Vec<TreePath> = edits
            .iter()
            .filter(|(_, (from, to, _))| {
                to.is_none() && from.as_ref().is_some_and(|it| it.subtree().is_some())
            })
            .map(|(path, _)| path.clone())
            .collect();
        for path in removed.into_iter().rev() {
            let Some(entry) = tree::find(self.trees, Some(&self.present.files), &path)? else {
                continue;
            };
            let Some(subtree) = entry.subtree() else {
                continue;
            };
            let stays = self.trees.tree(subtree.tree)?.into_iter().any(|child| {
                let child = path::join(&path, &child.name);
                edits.get(&child).is_none_or(|(_, to, _)| to.is_some())
            });
            if stays {
                edits.remove(&path);
                staying.push(path);
            }
        }
        Ok(staying)
    }

    /// What is brought back needs the directories it was in.
    pub(crate) fn add_missing_parents(
        &self,
        before: &Record,
        edits: &mut Edits,
    ) -> Result<(), StateError> {
        let mut parents = BTreeSet::new();
        for (path, (_, to, _)) in edits.iter() {
            let mut above = path::split(path).0;
            while to.is_some() && !above.is_empty() {
                parents.insert(above.to_vec());
                above = path::split(above).0;
            }
        }
        for parent in parents {
            // Those of which only a part is asked for are seen to by the plan.
            if edits.contains_key(&parent) || self.scope.cover(&parent) != Cover::Everything {
                continue;
            }
            let present = tree::find(self.trees, Some(&self.present.files), &parent)?;
            if present.is_none() {
                let entry = tree::find(self.trees, Some(&before.files), &parent)?;
                edits.insert(parent, (None, entry, false));
            }
        }
        Ok(())
    }
}

/// A file that another action wrote while this one went on.
fn contested_file(change: &Change, other: &str) -> FileConflict {
    FileConflict {
        path: change.path.clone(),
        why: format!("{other} wrote it too while this went on, and nobody knows what is whose"),
        hunks: Vec::new(),
        ours: None,
        below: None,
    }
}

/// What was found where an action had changed something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Something, or nothing as before the action.
    There,
    /// Nothing any more, though the action had left something.
    Gone,
}

/// Whether anybody would notice that a change is made: not if it only sets the time of a
/// directory, or what git keeps for itself.
fn is_felt(change: &Change) -> bool {
    if git_state::inside(&change.path).is_some() {
        let known = git_state::is_notable(&change.path)
            || git_state::is_stash(&change.path)
            || git_state::is_reference_table(&change.path)
            || (git_state::is_object(&change.path)
                || git_state::is_of_other_work_trees(&change.path))
                && change.to.is_some();
        return known && change.kind() != ChangeKind::Time;
    }
    let modified = |side: &Option<Entry>| side.as_ref().map(|entry| entry.modified);
    change.is_notable()
        && (change.kind() != ChangeKind::Time || modified(&change.from) != modified(&change.to))
}

/// Present and wanted entry of each path, and whether its links change.
pub(crate) type Edits = BTreeMap<TreePath, (Option<Entry>, Option<Entry>, bool)>;

/// Whether two entries are the same to people: the time does not count, nor what a directory holds.
fn same(a: &Option<Entry>, b: &Option<Entry>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => same_content(&a.node, &b.node) && a.same_metadata(b),
        _ => false,
    }
}

pub(crate) fn all_files(a: &Entry, b: &Entry, c: &Entry) -> bool {
    [a, b, c]
        .iter()
        .all(|entry| matches!(entry.node, Node::File { .. }))
}

/// The present entry, with the metadata that the action changed put back.
pub(crate) fn merged_metadata(present: &Entry, after: &Entry, before: &Entry) -> Entry {
    let mut merged = present.clone();
    if present.mode == after.mode {
        merged.mode = before.mode;
    }
    if present.attributes == after.attributes {
        merged.attributes = before.attributes.clone();
    }
    if (present.owner, present.group) == (after.owner, after.group) {
        (merged.owner, merged.group) = (before.owner, before.group);
    }
    merged
}

pub(crate) fn moment(time: Timestamp) -> Moment {
    Moment {
        seconds: time.as_micros().div_euclid(1_000_000),
        nanos: u32::try_from(time.as_micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0),
    }
}
