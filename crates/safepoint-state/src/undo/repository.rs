//! Taking out what an action did to the repositories of a workspace.
//!
//! A list of stashes is never shortened, and what has moved on since is a conflict. A repository
//! that goes does so as a whole, or stays: half of one is of no use to anybody.

use std::collections::{BTreeSet, HashMap};

use super::{FileConflict, Left, Undoing, contested_file, same};
use crate::contested::Contested;
use crate::git::index;
use crate::git_state::is_index;
use crate::path::{self, TreePath};
use crate::restore::{ContentOf, newest_stash, spare, stash_file, with_what_was_taken};
use crate::scan::Sink;
use crate::snapshot::{Note, Record};
use crate::tree::{self, Change, ChangeKind, Entry, Node, Subtree, same_content};
use crate::work_trees::WorkTrees;
use crate::{ContentId, StateError, git_state};

impl Undoing<'_> {
    /// The git state that the action changed, where it has not moved on since.
    pub(super) fn git(
        &self,
        (before, after): (&Record, &Record),
        contested: &Contested,
        sink: &Sink<'_>,
        conflicts: &mut Vec<FileConflict>,
        left: &mut Left,
    ) -> Result<Vec<Change>, StateError> {
        let (Some(before), Some(after), Some(now)) = (&before.git, &after.git, &self.present.git)
        else {
            return Ok(Vec::new());
        };
        let mut undone = tree::changes(self.trees, Some(after), Some(before), self.scope)?;
        let around = (self.workspace, self.present.scan.left_out.as_slice());
        let content = |path: &[u8], entry: &Entry| self.present_content(path, entry);
        let others = WorkTrees::of(&undone, self.trees, now, around, &content)?;
        // A branch that another work tree has checked out is moved by that one.
        undone.retain(|change| !others.has_branch(&change.path));
        let going = going_repositories(&undone);
        let is_going = |path: &TreePath| going.iter().any(|it| path::is_within(path, it));
        let mut gone = Vec::new();
        if !going.is_empty() {
            left.was_any = true;
            undone.retain(|change| !is_going(&change.path));
            gone = tree::changes(self.trees, Some(now), Some(before), self.scope)?;
            gone.retain(|change| change.to.is_none() && is_going(&change.path));
            let since = self.changed_since(after, now)?;
            let since = going.iter().filter_map(|one| {
                let mut within = since.iter().filter(|path| path::is_within(path, one));
                within.next().cloned()
            });
            conflicts.extend(since.map(has_moved_on));
        }
        let tables = self.keep_moved_tables(&mut undone, now, left)?;
        let (stashes, undone): (Vec<Change>, Vec<Change>) = undone
            .into_iter()
            .partition(|change| git_state::is_stash(&change.path));
        let moved = tables
            || undone.iter().any(|change| {
                change.kind() != ChangeKind::Time && git_state::is_notable(&change.path)
            });
        let lost: BTreeSet<TreePath> = git_state::lost_objects(
            undone
                .iter()
                .map(|it| (it.path.as_slice(), it.to.as_ref(), it.from.as_ref())),
        )
        .into_iter()
        .map(<[u8]>::to_vec)
        .collect();
        left.was_any |= moved || !lost.is_empty();
        let mut untouched = true;
        for change in &undone {
            let present = tree::find(self.trees, Some(now), &change.path)?;
            untouched &= self.is_as_left(change, &present)?;
        }
        let mut made = HashMap::new();
        let mut wanted = self.stashes(&stashes, now, &mut made, left, sink)?;
        let stashed = !wanted.is_empty();
        for change in undone {
            // Nothing but the index and what git keeps for itself goes back only as long as it
            // is exactly what the action left; what a stash consists of is needed in any case.
            let holds_stash = || {
                let mut paths = stashes.iter().map(|stash| &stash.path);
                paths.any(|path| path::is_within(path, &change.path))
            };
            let needed = stashed && (git_state::is_object(&change.path) || holds_stash())
                || lost.contains(&change.path);
            let present = tree::find(self.trees, Some(now), &change.path)?;
            if !moved && !untouched && !needed {
                left.is_index_kept |= is_index(&change.path)
                    && !self.stages_the_same(&change.path, &change.from, &change.to)?
                    && !self.stages_the_same(&change.path, &present, &change.to)?;
                continue;
            }
            if same(&present, &change.to) {
                continue;
            }
            let untouched = self.is_as_left(&change, &present)?;
            if let Some(other) = contested.get(&change.path) {
                conflicts.push(contested_file(&change, other));
                continue;
            }
            if !untouched && git_state::is_notable(&change.path) {
                conflicts.push(has_moved_on(change.path.clone()));
            }
            // The index goes with `HEAD`, even when git has refreshed it.
            if untouched || is_index(&change.path) {
                wanted.push(Change {
                    from: present,
                    ..change
                });
            }
        }
        let content = |path: &[u8], entry: &Entry| match &entry.node {
            Node::File { content, .. } if made.contains_key(content) => {
                Ok(made.get(content).cloned().unwrap_or_default())
            }
            _ => self.present_content(path, entry),
        };
        wanted.extend(gone);
        let with = (&content as &ContentOf<'_>, sink);
        spare(wanted, self.trees, now, &others, with, &mut left.staying)
    }

    /// Leaves references in tables alone where they have moved on since the action: nobody can
    /// take one change out of a table. Returns whether any of the rest is to be put back.
    fn keep_moved_tables(
        &self,
        undone: &mut Vec<Change>,
        now: &Subtree,
        left: &mut Left,
    ) -> Result<bool, StateError> {
        let mut moved = Vec::new();
        let mut has_changed = false;
        for change in undone.iter() {
            if !git_state::is_reference_list(&change.path) || change.kind() == ChangeKind::Time {
                continue;
            }
            has_changed = true;
            let present = tree::find(self.trees, Some(now), &change.path)?;
            if !same(&present, &change.from) && !same(&present, &change.to) {
                moved.push(path::split(&change.path).0.to_vec());
            }
        }
        left.was_any |= has_changed;
        for directory in &moved {
            undone.retain(|change| !path::is_within(&change.path, directory));
            left.staying.push(Note {
                path: path::display(directory),
                why: "references have moved on since, and stay".to_owned(),
            });
        }
        Ok(has_changed && moved.is_empty())
    }

    /// Where repositories are not as an action left them.
    fn changed_since(&self, after: &Subtree, now: &Subtree) -> Result<Vec<TreePath>, StateError> {
        let mut since = Vec::new();
        for change in tree::changes(self.trees, Some(after), Some(now), self.scope)? {
            let is_ours = git_state::is_checkpoint_reference(&change.path);
            let is_same = change.kind() == ChangeKind::Time
                || is_index(&change.path)
                    && self.stages_the_same(&change.path, &change.from, &change.to)?;
            // References of checkpoints lie in directories that are made for them.
            let is_directory = change.to.as_ref().is_some_and(|to| to.subtree().is_some());
            let is_made = change.from.is_none() && is_directory;
            if !is_ours && !is_same && !is_made {
                since.push(change.path);
            }
        }
        Ok(since)
    }

    /// Whether something in a repository is as an action left it. Git writes times into its
    /// index whenever it looks at the files.
    fn is_as_left(&self, change: &Change, present: &Option<Entry>) -> Result<bool, StateError> {
        Ok(same(present, &change.from)
            || is_index(&change.path)
                && self.stages_the_same(&change.path, present, &change.from)?)
    }

    /// Whether two indexes stage the same.
    fn stages_the_same(
        &self,
        path: &[u8],
        one: &Option<Entry>,
        other: &Option<Entry>,
    ) -> Result<bool, StateError> {
        let (Some(one), Some(other)) = (one, other) else {
            return Ok(one.is_none() && other.is_none());
        };
        if same_content(&one.node, &other.node) {
            return Ok(true);
        }
        let read = |entry: &Entry| self.present_content(path, entry);
        let (one, other) = (index::staged(&read(one)?), index::staged(&read(other)?));
        Ok(one.is_some() && one == other)
    }

    /// The lists of stashes, with what the action took from them. What it added stays: nothing
    /// is ever taken from such a list, and what came later on it is no obstacle.
    fn stashes(
        &self,
        undone: &[Change],
        now: &Subtree,
        made: &mut HashMap<ContentId, Vec<u8>>,
        left: &mut Left,
        sink: &Sink<'_>,
    ) -> Result<Vec<Change>, StateError> {
        let mut wanted = Vec::new();
        for change in undone {
            if self.is_lost_reference(change, undone, now)? {
                left.was_any = true;
                wanted.push(change.clone());
                continue;
            }
            let Some(before) = change
                .to
                .as_ref()
                .filter(|_| git_state::is_stash_list(&change.path))
            else {
                continue;
            };
            let stored = |side: &Option<Entry>| match side {
                Some(entry) => self.content(entry),
                None => Ok(Vec::new()),
            };
            let (was, became) = (self.content(before)?, stored(&change.from)?);
            left.was_any |= with_what_was_taken(&was, &became, &became).is_some();
            let present = tree::find(self.trees, Some(now), &change.path)?;
            let there = match &present {
                Some(entry) => self.present_content(&change.path, entry)?,
                None => Vec::new(),
            };
            let Some(list) = with_what_was_taken(&was, &became, &there) else {
                continue;
            };
            // Where the whole repository comes back, nothing else brings the reference to the
            // newest entry.
            if let Some(reference) = undone.iter().find(|other| {
                git_state::shelf(&other.path) == git_state::shelf(&change.path)
                    && !git_state::is_stash_list(&other.path)
                    && other.from.is_none()
            }) && let Some(like) = &reference.to
                && tree::find(self.trees, Some(now), &reference.path)?.is_none()
            {
                let tip = newest_stash(&list);
                let entry = stash_file(like, &tip);
                sink.content(ContentId::of(&tip), tip)?;
                wanted.push(Change {
                    to: Some(entry),
                    ..reference.clone()
                });
            }
            let entry = stash_file(before, &list);
            sink.content(ContentId::of(&list), list.clone())?;
            made.insert(ContentId::of(&list), list);
            wanted.push(Change {
                path: change.path.clone(),
                from: present,
                to: Some(entry),
                relinked: false,
            });
        }
        Ok(wanted)
    }

    /// Whether an action took the reference to the newest entry of a list, which is still there,
    /// and nobody has put another in its place. What it is to name is seen to with the list.
    fn is_lost_reference(
        &self,
        change: &Change,
        undone: &[Change],
        now: &Subtree,
    ) -> Result<bool, StateError> {
        let has_list = undone.iter().any(|other| {
            git_state::is_stash_list(&other.path)
                && git_state::shelf(&other.path) == git_state::shelf(&change.path)
        });
        if git_state::is_stash_list(&change.path) || has_list || change.to.is_none() {
            return Ok(false);
        }
        let present = tree::find(self.trees, Some(now), &change.path)?;
        Ok(change.kind() != ChangeKind::Time && same(&present, &change.from))
    }
}

/// The repositories that go as a whole, without those in one that goes.
fn going_repositories(undone: &[Change]) -> Vec<TreePath> {
    let mut going: Vec<TreePath> = Vec::new();
    for change in undone {
        let was_directory = change
            .from
            .as_ref()
            .is_some_and(|it| it.subtree().is_some());
        if was_directory
            && change.to.is_none()
            && git_state::is_repository(&change.path)
            && !going.iter().any(|one| path::is_within(&change.path, one))
        {
            going.push(change.path.clone());
        }
    }
    going
}

fn has_moved_on(path: TreePath) -> FileConflict {
    FileConflict {
        path,
        why: "the repository has moved on since".to_owned(),
        hunks: Vec::new(),
        ours: None,
        below: None,
    }
}
