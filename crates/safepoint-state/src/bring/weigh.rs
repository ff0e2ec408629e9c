//! What is to be done at each path when work is brought, and where it cannot be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::whole::is_below;
use super::{Incoming, Resolution};
use crate::aside::Aside;
use crate::path::{self, TreePath};
use crate::restore::{Plan, renumber};
use crate::scan::Sink;
use crate::scope::unescape;
use crate::snapshot::Note;
use crate::text::{self, Conflict, Merge};
use crate::tree::{self, Change, ChangeKind, Entry, Moment, Node, same_content};
use crate::undo::{Edits, FileConflict, Undoing, all_files, merged_metadata, moment};
use crate::{ContentId, StateError, git_state};

/// What was found.
#[derive(Default)]
pub(crate) struct Weighed {
    pub(crate) edits: Edits,
    pub(crate) conflicts: BTreeMap<TreePath, FileConflict>,
    pub(crate) merged: BTreeSet<TreePath>,
    pub(crate) kept: Vec<Note>,
}

impl Weighed {
    pub(crate) fn conflict(&mut self, path: &[u8], why: &str, hunks: Vec<Conflict>) {
        let one = || FileConflict {
            path: path.to_vec(),
            why: why.to_owned(),
            hunks,
            ours: None,
            below: None,
        };
        self.conflicts.entry(path.to_vec()).or_insert_with(one);
    }

    /// What would be done, path by path.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let change = |(path, (from, to, relinked)): (&TreePath, &(_, _, bool))| Change {
            path: path.clone(),
            from: Option::clone(from),
            to: Option::clone(to),
            relinked: *relinked,
        };
        self.edits.iter().map(change).collect()
    }
}

/// Files that say what agents may do: a person has to look at each change of them.
const OWN: [&[u8]; 2] = [b"safepoint.yaml", b".safepoint"];

/// Whether a path says what agents may do.
pub fn is_rule(path: &[u8]) -> bool {
    OWN.iter().any(|own| path::is_within(path, own))
}

impl Undoing<'_> {
    /// The plan that brings the work, or the conflicts that keep it from being brought.
    pub(crate) fn bring(
        &self,
        incoming: &Incoming<'_>,
        aside: &Aside,
        sink: &Sink<'_>,
    ) -> Result<Plan, StateError> {
        let weighed = self.weigh(incoming, aside, sink)?;
        if !weighed.conflicts.is_empty() {
            let conflicts = weighed.conflicts.into_values().collect();
            return Err(StateError::Conflict { conflicts });
        }
        let (base, work) = (&incoming.base.record, &incoming.work.record);
        let mut plan = Plan::new(self.present, &[base, work], weighed.changes(), Vec::new());
        plan.kept.extend(weighed.kept);
        plan.remarks = plan
            .changes
            .iter()
            .filter_map(|change| leads_out(self.workspace, change))
            .collect();
        plan.add_parts(self.trees, self.workspace, self.scope, &work.files)?;
        Ok(plan)
    }

    /// Looks at every path that the work changed.
    pub(crate) fn weigh(
        &self,
        incoming: &Incoming<'_>,
        aside: &Aside,
        sink: &Sink<'_>,
    ) -> Result<Weighed, StateError> {
        let mut weighed = Weighed::default();
        let mut holding = incoming.resolutions.clone();
        for path in self.void(incoming)? {
            holding.remove(&path);
            let why = "it was changed here after that was decided, so the decision is void";
            weighed.conflict(&path, why, Vec::new());
        }
        let incoming = &Incoming {
            resolutions: &holding,
            ..incoming.clone()
        };
        let (base, work) = (&incoming.base.record, &incoming.work.record);
        let whole = self.whole(incoming)?;
        self.replace_whole(incoming, &whole, sink, &mut weighed)?;
        let changes = tree::changes(self.trees, Some(&base.files), Some(&work.files), self.scope)?;
        for mut change in changes {
            let decided = whole.get(&change.path).is_some_and(|it| is_replaced(it));
            if decided || is_below(&change.path, &whole) {
                continue; // it is as was decided
            }
            if change.kind() == ChangeKind::Time || git_state::inside(&change.path).is_some() {
                continue;
            }
            let made = change.from.is_none();
            let why = aside
                .why(&change.path)
                .filter(|_| made || aside.is_in_submodule(&change.path));
            if let Some(why) = why
                && !incoming.resolutions.contains_key(&change.path)
            {
                weighed.kept.push(Note {
                    path: path::display(&change.path),
                    why: why.to_owned(),
                });
                continue;
            }
            renumber(&mut change.to);
            self.weigh_one(incoming, &change, sink, &mut weighed)?;
        }
        self.settle_clashes(incoming, &whole, &mut weighed)?;
        self.spare_uncaptured(incoming, &mut weighed);
        self.join_conflicts(incoming, &mut weighed)?;
        for note in &work.sensitive {
            let path = unescape(&note.path);
            if !base.sensitive.iter().any(|known| known.path == note.path)
                && !weighed.conflicts.contains_key(&path)
            {
                weighed.kept.push(Note {
                    path: note.path.clone(),
                    why: "it holds a secret, which is not captured and so not brought".to_owned(),
                });
            }
        }
        for (path, conflict) in &mut weighed.conflicts {
            conflict.ours = Some(self.shown_at(path)?);
        }
        Ok(weighed)
    }

    /// The decisions to replace something that is no longer what was shown.
    fn void(&self, incoming: &Incoming<'_>) -> Result<Vec<TreePath>, StateError> {
        let mut void = Vec::new();
        for (path, resolution) in incoming.resolutions {
            if let (true, Some(shown)) = (is_replaced(resolution), incoming.shown.get(path))
                && self.shown_at(path)? != *shown
            {
                void.push(path.clone());
            }
        }
        Ok(void)
    }

    /// What is at a path now, in one word: it is another when its content, its mode or
    /// what it is has changed.
    pub(super) fn shown_at(&self, path: &[u8]) -> Result<ContentId, StateError> {
        let entry = tree::find(self.trees, Some(&self.present.files), path)?;
        let word = entry.map_or_else(
            || "nothing".to_owned(),
            |entry| {
                let mode = entry.mode;
                match &entry.node {
                    Node::File { content, .. } => format!("file {mode:o} {content}"),
                    Node::Directory(tree) => format!("directory {mode:o} {}", tree.hash),
                    Node::Symlink { target } => format!("link {}", ContentId::of(target)),
                    Node::Special { kind, .. } => format!("{} {mode:o}", kind.as_str()),
                }
            },
        );
        Ok(ContentId::of(word.as_bytes()))
    }

    fn weigh_one(
        &self,
        incoming: &Incoming<'_>,
        change: &Change,
        sink: &Sink<'_>,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        let ours = tree::find(self.trees, Some(&self.present.files), &change.path)?;
        let (base, theirs) = (&change.from, &change.to);
        let resolution = incoming.resolutions.get(&change.path);
        match resolution {
            Some(Resolution::Ours) => return Ok(()),
            // A directory on both sides: what is in it is looked at by itself. Everything else
            // that is replaced has been.
            Some(Resolution::Theirs | Resolution::Content(_)) => {
                if let (Some(o), Some(t)) = (&ours, theirs) {
                    let mut wanted = o.clone();
                    wanted.mode = t.mode;
                    wanted.attributes = t.attributes.clone();
                    let edit = (ours, Some(wanted), false);
                    weighed.edits.insert(change.path.clone(), edit);
                }
                return Ok(());
            }
            Some(Resolution::Merged) | None => {}
        }
        if alike(&ours, theirs) {
            return Ok(()); // both came to the same
        }
        if is_rule(&change.path) && resolution.is_none() {
            let why = "it says what agents may do: somebody has to look at it";
            weighed.conflict(&change.path, why, Vec::new());
            return Ok(());
        }
        if alike(&ours, base) {
            // Nobody touched it here.
            let wanted = theirs
                .clone()
                .map(|entry| self.as_new(entry, ours.as_ref()));
            let edit = (ours, wanted, change.relinked);
            weighed.edits.insert(change.path.clone(), edit);
            return Ok(());
        }
        self.weigh_both(change, ours, sink, weighed)
    }

    /// A path that both sides changed, each in its own way.
    fn weigh_both(
        &self,
        change: &Change,
        ours: Option<Entry>,
        sink: &Sink<'_>,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        let at = &change.path;
        match (&change.from, &ours, &change.to) {
            (base, Some(o), Some(t)) if is_directory(o) && is_directory(t) => {
                // What is in it is looked at by itself.
                if let Some(b) = base.as_ref().filter(|base| is_directory(base)) {
                    match metadata_clash(b, o, t) {
                        Some(why) => weighed.conflict(at, why, Vec::new()),
                        None => {
                            let merged = merged_metadata(o, b, t);
                            weighed
                                .edits
                                .insert(at.clone(), (ours, Some(merged), false));
                        }
                    }
                }
            }
            (Some(b), Some(o), None) if is_directory(b) && is_directory(o) => {
                weighed.edits.insert(at.clone(), (ours, None, false));
            }
            (Some(b), None, Some(t)) if is_directory(b) && is_directory(t) => {}
            (Some(b), Some(o), Some(t)) if all_files(b, o, t) => {
                if let Some(why) = metadata_clash(b, o, t) {
                    weighed.conflict(at, why, Vec::new());
                    return Ok(());
                }
                weighed.merged.insert(at.clone());
                match self.merge(change, b, o, t, sink)? {
                    Ok(entry) => {
                        weighed.edits.insert(at.clone(), (ours, Some(entry), false));
                    }
                    Err(hunks) => {
                        let why = match hunks.iter().any(is_no_text) {
                            _ if hunks.is_empty() => {
                                "both sides changed it, and it is too large to merge"
                            }
                            true => "both sides changed it, and it is not text",
                            false => "both sides changed the same lines",
                        };
                        weighed.conflict(at, why, hunks);
                    }
                }
            }
            (None, Some(o), Some(t)) => {
                let hunks = self.hunks_of_two(at, o, t)?;
                weighed.conflict(at, "both sides made it, each in its own way", hunks);
            }
            (Some(_), None, Some(_)) => {
                weighed.conflict(
                    at,
                    "it was deleted here, and changed in the work",
                    Vec::new(),
                );
            }
            (Some(_), Some(_), None) => {
                weighed.conflict(
                    at,
                    "it was changed here, and deleted in the work",
                    Vec::new(),
                );
            }
            _ => weighed.conflict(at, "both sides made something else of it", Vec::new()),
        }
        Ok(())
    }

    /// Where two new files differ.
    fn hunks_of_two(
        &self,
        at: &[u8],
        ours: &Entry,
        theirs: &Entry,
    ) -> Result<Vec<Conflict>, StateError> {
        if !all_files(ours, ours, theirs) || [ours, theirs].into_iter().any(Self::is_too_large) {
            return Ok(Vec::new());
        }
        let ours = self.present_content(at, ours)?;
        Ok(match text::merge(b"", &ours, &self.content(theirs)?) {
            Merge::Conflict(hunks) => hunks,
            Merge::Clean(_) => Vec::new(),
        })
    }

    /// A file with a content that somebody gave.
    pub(super) fn file_of(
        &self,
        at: &[u8],
        like: Option<&Entry>,
        bytes: Vec<u8>,
        sink: &Sink<'_>,
    ) -> Result<Entry, StateError> {
        let content = ContentId::of(&bytes);
        let size = bytes.len() as u64;
        sink.content(content, bytes)?;
        let file = like.filter(|entry| matches!(entry.node, Node::File { .. }));
        Ok(Entry {
            name: path::split(at).1.to_vec(),
            mode: file.map_or(0o644, |entry| entry.mode),
            owner: like.map_or(0, |entry| entry.owner),
            group: like.map_or(0, |entry| entry.group),
            modified: moment(self.now),
            attributes: file.map_or_else(Vec::new, |entry| entry.attributes.clone()),
            node: Node::File {
                size,
                content,
                sparse: false,
                link: None,
            },
        })
    }

    /// An entry of the work as it will stand here: new to whoever builds by times, and
    /// belonging to whom it belonged.
    pub(super) fn as_new(&self, mut entry: Entry, ours: Option<&Entry>) -> Entry {
        let unchanged = ours.filter(|ours| same_content(&ours.node, &entry.node));
        let now: Moment = moment(self.now);
        entry.modified = unchanged.map_or(now, |ours| ours.modified);
        if let Some(ours) = ours {
            (entry.owner, entry.group) = (ours.owner, ours.group);
        }
        entry
    }
}

/// Whether a place is a whole content that cannot be taken apart: lines hold no NUL.
fn is_no_text(hunk: &Conflict) -> bool {
    let sides = [&hunk.base, &hunk.ours, &hunk.theirs];
    sides.into_iter().any(|side| side.contains(&0))
}

/// Whether something else is put in the place of what is here.
fn is_replaced(resolution: &Resolution) -> bool {
    matches!(resolution, Resolution::Theirs | Resolution::Content(_))
}

/// What is told of a link that leads out of the directory. Links on its way are not followed.
fn leads_out(root: &Path, change: &Change) -> Option<String> {
    let Some(Node::Symlink { target }) = change.to.as_ref().map(|entry| &entry.node) else {
        return None;
    };
    let to = path::as_path(target);
    let above = root.join(path::as_path(path::split(&change.path).0));
    let mut place = PathBuf::new();
    for part in above.join(to).components() {
        match part {
            Component::ParentDir => {
                place.pop();
            }
            Component::CurDir => {}
            other => place.push(other),
        }
    }
    (!place.starts_with(root)).then(|| {
        format!(
            "`{}` is a link that leads out of the directory, to `{}`",
            path::display(&change.path),
            path::display(target)
        )
    })
}

/// Whether two entries are the same to people. Whose they are does not count: a copy
/// belongs to whoever made it.
pub(super) fn alike(a: &Option<Entry>, b: &Option<Entry>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            same_content(&a.node, &b.node) && a.mode == b.mode && a.attributes == b.attributes
        }
        _ => false,
    }
}

pub(super) fn is_directory(entry: &Entry) -> bool {
    entry.subtree().is_some()
}

/// Whether both sides changed the same metadata, each in its own way.
fn metadata_clash(base: &Entry, ours: &Entry, theirs: &Entry) -> Option<&'static str> {
    if ours.mode != base.mode && theirs.mode != base.mode && ours.mode != theirs.mode {
        return Some("both sides changed its mode, each in its own way");
    }
    let (b, o, t) = (&base.attributes, &ours.attributes, &theirs.attributes);
    (o != b && t != b && o != t).then_some("both sides changed its attributes, each in its own way")
}
