//! The rest of a way that was cut off: on to its end, or back to where it began.
//!
//! Only paths that the way itself changes are looked at, and each must be as it was at
//! one of the two ends. What is neither was changed by somebody else: it is told, and
//! left alone. So is everything beside the way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::owner::{self, Owned};
use super::plan::{ContentOf, Plan, content, renumber};
use super::spare::spare;
use super::unclose::{OPEN_DIRECTORY, OPEN_FILE};
use crate::capture::Capture;
use crate::objects::Reader;
use crate::path::{self, TreePath};
use crate::scan::Sink;
use crate::scope::{Cover, Scope};
use crate::snapshot::Record;
use crate::tree::{self, Change, Entry, Node, Subtree, same_content};
use crate::work_trees::WorkTrees;
use crate::{StateError, git_state};

/// From where to where, through what is there now.
pub(super) struct Way<'a> {
    pub(super) from: &'a Record,
    pub(super) to: &'a Record,
    pub(super) present: &'a Capture,
    pub(super) scope: &'a Scope,
}

/// What is left to do, and what is left alone because somebody else changed it.
pub(super) struct Rest {
    pub(super) plan: Plan,
    pub(super) changed: Vec<TreePath>,
}

impl Way<'_> {
    /// What is left of it.
    pub(super) fn rest(
        &self,
        workspace: &Path,
        reader: &Reader<'_>,
        sink: &Sink<'_>,
    ) -> Result<Rest, StateError> {
        let mut changed = BTreeSet::new();
        let (from, to, present) = (self.from, self.to, self.present);
        let mut files = self.part(
            reader,
            (&from.files, &to.files, &present.files),
            &mut changed,
        )?;
        files.iter_mut().for_each(|change| renumber(&mut change.to));
        let mut staying = Vec::new();
        let git = match (&from.git, &to.git, &present.git) {
            (Some(from), Some(to), Some(now)) => {
                let changes = self.part(reader, (from, to, now), &mut changed)?;
                let content = |path: &[u8], entry: &Entry| content(reader, workspace, path, entry);
                let around = (workspace, present.scan.left_out.as_slice());
                let others = WorkTrees::of(&changes, reader, now, around, &content)?;
                let with = (&content as &ContentOf<'_>, sink);
                spare(changes, reader, now, &others, with, &mut staying)?
            }
            _ => Vec::new(),
        };
        let mut plan = Plan::new(present, &[to], files, git);
        plan.unrestored.append(&mut staying);
        plan.add_parts(reader, workspace, self.scope, &to.files)?;
        Ok(Rest {
            plan,
            changed: changed.into_iter().collect(),
        })
    }

    fn part(
        &self,
        reader: &Reader<'_>,
        (from, to, present): (&Subtree, &Subtree, &Subtree),
        changed: &mut BTreeSet<TreePath>,
    ) -> Result<Vec<Change>, StateError> {
        let way: BTreeMap<TreePath, Change> =
            tree::changes(reader, Some(from), Some(to), self.scope)?
                .into_iter()
                .map(|change| (change.path.clone(), change))
                .collect();
        let parents: BTreeSet<&[u8]> = way.keys().map(|path| path::split(path).0).collect();
        let scan = &self.present.scan;
        let unseen = scan.left_out.iter().map(|one| &one.path);
        let unseen: BTreeSet<&TreePath> = unseen
            .chain(scan.sensitive.iter().map(|(path, _)| path))
            .collect();
        // What cannot be seen now could be seen when the way began.
        changed.extend(way.keys().filter(|path| unseen.contains(path)).cloned());
        let mut left_alone = BTreeSet::new();
        let mut blocked = BTreeSet::new();
        let mut kept = Vec::new();
        for change in tree::changes(reader, Some(present), Some(to), self.scope)? {
            let on_the_way = match way.get(&change.path) {
                Some(planned) => {
                    let ours = is_between(&change.from, planned)
                        && !unseen.contains(&change.path)
                        && !is_below(&blocked, &change.path);
                    // What git keeps for itself it writes at any time.
                    let of_git = git_state::inside(&change.path).is_some()
                        && !git_state::is_notable(&change.path);
                    if !ours && !of_git {
                        changed.insert(change.path.clone());
                    }
                    ours || of_git
                }
                None => {
                    parents.contains(change.path.as_slice())
                        && self.scope.cover(&change.path) == Cover::Everything
                        && is_our_trace(&change)
                }
            };
            if on_the_way {
                kept.push(change);
                continue;
            }
            if !change.from.as_ref().is_some_and(is_directory) {
                blocked.insert(change.path.clone());
            }
            left_alone.insert(change.path);
        }
        // A directory stays with what is left alone in it.
        kept.retain(|change| {
            let goes = change.from.as_ref().is_some_and(is_directory)
                && !change.to.as_ref().is_some_and(is_directory);
            let stays = goes && has_below(&left_alone, &change.path);
            if stays && change.to.is_some() {
                changed.insert(change.path.clone());
            }
            !stays
        });
        Ok(kept)
    }
}

fn is_directory(entry: &Entry) -> bool {
    entry.subtree().is_some()
}

/// Whether an entry is as at one end of a change, or on the way between both.
fn is_between(present: &Option<Entry>, planned: &Change) -> bool {
    let ends = [&planned.from, &planned.to];
    let Some(present) = present else {
        // Where a directory and something else change places, one goes before the other comes.
        let is_directory = |end: &&Option<Entry>| end.as_ref().is_some_and(is_directory);
        return ends.iter().any(|end| end.is_none())
            || ends.iter().any(is_directory) && !ends.iter().all(is_directory);
    };
    let any = |same: &dyn Fn(&Entry) -> bool| ends.iter().any(|end| end.as_ref().is_some_and(same));
    any(&|end| same_content(&end.node, &present.node))
        && (any(&|end| end.mode == present.mode) || is_opened(present))
        && any(&|end| owner::of(end, present.owner, present.group) != Owned::Wrong)
        && any(&|end| end.attributes == present.attributes)
}

/// Whether an entry has the mode that it has while something is done in it, or that it was
/// opened with to be read.
fn is_opened(entry: &Entry) -> bool {
    match entry.node {
        Node::Directory(_) => entry.mode == OPEN_DIRECTORY,
        Node::File { .. } => entry.mode == OPEN_FILE,
        _ => false,
    }
}

/// Whether a directory differs only in what changes while something is done in it.
fn is_our_trace(change: &Change) -> bool {
    match (&change.from, &change.to) {
        (Some(from), Some(to)) => {
            is_directory(from)
                && is_directory(to)
                && (from.mode == to.mode || is_opened(from))
                && from.attributes == to.attributes
                && owner::of(to, from.owner, from.group) != Owned::Wrong
        }
        _ => false,
    }
}

fn is_below(paths: &BTreeSet<TreePath>, path: &[u8]) -> bool {
    let mut above = path::split(path).0;
    while !above.is_empty() {
        if paths.contains(above) {
            return true;
        }
        above = path::split(above).0;
    }
    false
}

fn has_below(paths: &BTreeSet<TreePath>, path: &[u8]) -> bool {
    let inside = [path, b"/"].concat();
    let next = paths.range(inside.clone()..).next();
    next.is_some_and(|path| path.starts_with(&inside))
}
