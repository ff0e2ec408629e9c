//! What would have to change for a workspace to be as a snapshot says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use safepoint_store::regular;

use super::spare::spare;
use crate::capture::Capture;
use crate::objects::Reader;
use crate::path::{self, TreePath};
use crate::scan::Sink;
use crate::scan::stat::Found;
use crate::scope::{Cover, Scope, unescape};
use crate::snapshot::{Note, Record};
use crate::tree::{self, Change, Entry, Keep, Node, Subtree, Trees};
use crate::undo::Left;
use crate::work_trees::WorkTrees;
use crate::{ContentId, StateError, git_state, left_out};

/// What will be done, and the trees that will be there then.
pub(crate) struct Plan {
    /// From what is there to what will be, sorted by path.
    pub(crate) changes: Vec<Change>,
    /// What stays although the snapshot does not have it.
    pub(crate) kept: Vec<Note>,
    /// What of that is not brought back to what it was.
    pub(crate) unrestored: Vec<Note>,
    /// What else is to be known of what it does.
    pub(crate) remarks: Vec<String>,
    /// Whether something of the snapshot is not brought back because of that.
    pub(crate) incomplete: bool,
    /// How much there was to take out, when it takes an action out.
    pub(crate) left: Left,
    /// The mode that the workspace itself gets, where that is to be taken out.
    pub(crate) root_mode: Option<u32>,
    /// Directories of which only a part is asked for, as they are now.
    parts: BTreeMap<TreePath, Entry>,
    /// Where the trees that will be differ from those that are.
    pub(crate) file_edits: Vec<(TreePath, Option<Entry>)>,
    pub(crate) git_edits: Vec<(TreePath, Option<Entry>)>,
}

/// The plan that makes everything inside `scope` identical to `target`.
pub(crate) fn identical(
    trees: &dyn Trees,
    reader: &Reader<'_>,
    workspace: &Path,
    present: &Capture,
    target: &Record,
    scope: &Scope,
    sink: &Sink<'_>,
) -> Result<Plan, StateError> {
    let mut files = tree::changes(trees, Some(&present.files), Some(&target.files), scope)?;
    files.iter_mut().for_each(|change| renumber(&mut change.to));
    let mut used = Vec::new();
    let mut staying = Vec::new();
    let git = match (&present.git, &target.git) {
        (Some(now), Some(then)) => {
            let mut changes = tree::changes(trees, Some(now), Some(then), scope)?;
            // One that is only wanted in part was not looked at.
            changes.retain(|change| {
                let directory = git_state::directory(&change.path);
                directory.is_none_or(|directory| scope.cover(directory) == Cover::Everything)
            });
            let content = |path: &[u8], entry: &Entry| content(reader, workspace, path, entry);
            let around = (workspace, present.scan.left_out.as_slice());
            let others = WorkTrees::of(&changes, trees, now, around, &content)?;
            used.extend(
                changes
                    .iter()
                    .map(|change| &change.path)
                    .filter(|path| others.has_branch(path) && git_state::is_notable(path))
                    .cloned(),
            );
            let with = (&content as &ContentOf<'_>, sink);
            spare(changes, trees, now, &others, with, &mut staying)?
        }
        _ => Vec::new(), // it was not captured: it is left as it is
    };
    let mut plan = Plan::new(present, &[target], files, git);
    plan.unrestored.extend(used.iter().map(|path| Note {
        path: path::display(path),
        why: "another work tree has this branch checked out, and it stays as it is".to_owned(),
    }));
    let has_tables = plan.changes.iter().any(|change| {
        git_state::is_reference_list(&change.path) && change.from.is_some() && change.to.is_some()
    });
    if has_tables {
        let remark = "references in tables (`reftable`) go back as a whole, and with them what was put on the stash since: `safepoint redo` brings that back";
        plan.remarks.push(remark.to_owned());
    }
    plan.incomplete |= !staying.is_empty();
    plan.unrestored.append(&mut staying);
    plan.name_unreadable(present, target, scope);
    plan.add_parts(trees, workspace, scope, &target.files)?;
    Ok(plan)
}

/// Files that are brought back get other link numbers than files that are there can
/// have: those are numbers of inodes, which are given out again.
pub(crate) fn renumber(entry: &mut Option<Entry>) {
    if let Some(Entry {
        node: Node::File {
            link: Some(link), ..
        },
        ..
    }) = entry
    {
        let digest = ContentId::of(&[b"link".as_slice(), &link.to_le_bytes()].concat());
        let number = digest.as_bytes().first_chunk::<8>();
        *link = number.map_or(*link, |bytes| u64::from_le_bytes(*bytes));
    }
}

impl Plan {
    /// A plan that does nothing.
    pub(crate) fn nothing() -> Self {
        Self {
            changes: Vec::new(),
            kept: Vec::new(),
            unrestored: Vec::new(),
            remarks: Vec::new(),
            incomplete: false,
            left: Left::default(),
            root_mode: None,
            parts: BTreeMap::new(),
            file_edits: Vec::new(),
            git_edits: Vec::new(),
        }
    }

    /// A plan of these changes. What is not captured now, or was not captured in
    /// `records`, is not touched, nor are the directories that hold it removed.
    pub(crate) fn new(
        present: &Capture,
        records: &[&Record],
        files: Vec<Change>,
        git: Vec<Change>,
    ) -> Self {
        let mut omitted: BTreeSet<TreePath> = BTreeSet::new();
        omitted.extend(present.scan.left_out.iter().map(|one| one.path.clone()));
        omitted.extend(present.scan.sensitive.iter().map(|(path, _)| path.clone()));
        let mut left_out_then = BTreeSet::new();
        for record in records {
            let notes = record.left_out.iter().chain(&record.sensitive);
            left_out_then.extend(notes.map(|note| unescape(&note.path)));
        }
        let mut kept = Vec::new();
        let mut incomplete = false;
        let mut unrestored = Vec::new();
        let mut stay = |change: &Change, why: String| {
            let note = Note {
                path: path::display(&change.path),
                why,
            };
            if change.to.is_some() && change.is_notable() {
                unrestored.push(note.clone());
            }
            kept.push(note);
        };
        // Directories that stay, each with what it holds.
        let mut outermost: Vec<(TreePath, &TreePath)> = Vec::new();
        let files: Vec<Change> = files
            .into_iter()
            .filter(|change| {
                let within = |path: &&TreePath| path::is_within(&change.path, path);
                // Of a directory that could not be read then, the mode is known all the same.
                let is_known_itself = left_out_then.contains(&change.path)
                    && [&change.from, &change.to]
                        .iter()
                        .all(|side| side.as_ref().is_some_and(|it| it.subtree().is_some()));
                let is_left_out = left_out_then
                    .iter()
                    .filter(|path| !is_known_itself || **path != change.path);
                if is_left_out.clone().any(|path| within(&path)) {
                    stay(change, "the checkpoint left it out".to_owned());
                    return false;
                }
                if omitted.iter().any(|path| within(&path)) {
                    incomplete |= change.to.is_some();
                    stay(
                        change,
                        "it is not captured now, so replacing it could lose it".to_owned(),
                    );
                    return false;
                }
                let is_directory =
                    |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.subtree().is_some());
                if !is_directory(&change.from) || is_directory(&change.to) {
                    return true;
                }
                let inside = |path: &&TreePath| path::is_within(path, &change.path);
                match omitted.iter().chain(&left_out_then).find(inside) {
                    Some(inside) => {
                        incomplete |= change.to.is_some();
                        // A directory nested without end would be named at each level.
                        let is_told = outermost.iter().any(|(outer, held)| {
                            path::is_within(&change.path, outer) && *held == inside
                        });
                        if !is_told || change.to.is_some() {
                            outermost.push((change.path.clone(), inside));
                            let inside = path::display(inside);
                            let inside = path::shorten(&inside);
                            stay(
                                change,
                                format!("it holds `{inside}`, which is not captured"),
                            );
                        }
                        false
                    }
                    None => true,
                }
            })
            .collect();
        // A repository is put back as a whole, but for what cannot be reached in it.
        let mut git = git;
        git.retain(|change| {
            let closed = omitted
                .iter()
                .find(|path| path::is_within(&change.path, path));
            if let Some(closed) = closed {
                incomplete |= change.to.is_some();
                let left_out = present.scan.left_out.iter();
                let known = left_out.clone().find(|one| one.path == **closed);
                let why = known.map_or("it is not captured now", |one| one.why.as_str());
                unrestored.push(Note {
                    path: path::display(closed),
                    why: format!("{why}, and stays as it is"),
                });
            }
            closed.is_none()
        });
        let edits = |changes: &[Change]| {
            changes
                .iter()
                .map(|change| (change.path.clone(), change.to.clone()))
                .collect()
        };
        let (file_edits, git_edits) = (edits(&files), edits(&git));
        let git = git
            .into_iter()
            .filter(|change| git_state::inside(&change.path).is_some());
        let mut changes = files;
        tree::add_git(&mut changes, git);
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Self {
            changes,
            kept,
            unrestored,
            remarks: Vec::new(),
            incomplete,
            left: Left::default(),
            root_mode: None,
            file_edits,
            git_edits,
            parts: BTreeMap::new(),
        }
    }

    /// Names what may not be read now and could be read then, or was not there.
    fn name_unreadable(&mut self, present: &Capture, target: &Record, scope: &Scope) {
        let then: BTreeSet<TreePath> = target
            .left_out
            .iter()
            .map(|note| unescape(&note.path))
            .collect();
        for one in &present.scan.left_out {
            if one.why == left_out::UNREADABLE
                && !then.contains(&one.path)
                && scope.cover(&one.path) == Cover::Everything
            {
                self.incomplete = true;
                self.unrestored.push(Note {
                    path: path::display(&one.path),
                    why: format!("{}, and stays as it is", one.why),
                });
            }
        }
    }

    /// Looks at the directories of which only a part is asked for: they are made
    /// where they are missing, and keep what they have where they are not.
    pub(crate) fn add_parts(
        &mut self,
        trees: &dyn Trees,
        workspace: &Path,
        scope: &Scope,
        target: &Subtree,
    ) -> Result<(), StateError> {
        let mut above: BTreeSet<TreePath> = BTreeSet::new();
        for change in &self.changes {
            let mut parent = path::split(&change.path).0;
            while !parent.is_empty() {
                if scope.cover(parent) == Cover::Part {
                    above.insert(parent.to_vec());
                }
                parent = path::split(parent).0;
            }
        }
        for path in above {
            let found = rustix::fs::lstat(workspace.join(path::as_path(&path)));
            let found = found.ok().map(|stat| Found::of(&stat));
            match found.filter(Found::is_directory) {
                Some(found) => {
                    let (_, name) = path::split(&path);
                    let entry = found.entry(name, Node::Directory(*target));
                    self.file_edits.push((path.clone(), Some(entry.clone())));
                    self.parts.insert(path, entry);
                }
                None => {
                    let entry = tree::find(trees, Some(target), &path)?;
                    if entry.is_some() {
                        self.file_edits.push((path.clone(), entry.clone()));
                        self.changes.push(Change {
                            path,
                            from: None,
                            to: entry,
                            relinked: false,
                        });
                    }
                }
            }
        }
        self.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// The trees that will be there: files, and git directories.
    pub(crate) fn outcome(
        &self,
        trees: &dyn Trees,
        present: &Capture,
        keep: &mut Keep<'_>,
    ) -> Result<(Subtree, Option<Subtree>), StateError> {
        let files = tree::edit(trees, Some(&present.files), self.file_edits.clone(), keep)?;
        let git = match &present.git {
            Some(git) => Some(tree::edit(trees, Some(git), self.git_edits.clone(), keep)?),
            None => None,
        };
        Ok((files, git))
    }

    /// The directories whose metadata must be set when all else is done.
    pub(crate) fn directories(
        &self,
        trees: &dyn Trees,
        files: &Subtree,
        git: Option<&Subtree>,
    ) -> Result<BTreeMap<TreePath, Entry>, StateError> {
        let mut wanted = BTreeSet::new();
        for change in &self.changes {
            let (parent, _) = path::split(&change.path);
            if !parent.is_empty() {
                wanted.insert(parent.to_vec());
            }
            if change.to.as_ref().is_some_and(|to| to.subtree().is_some()) {
                wanted.insert(change.path.clone());
            }
        }
        let mut found = BTreeMap::new();
        collect(trees, b"", files, &wanted, &mut found)?;
        for (path, entry) in &self.parts {
            if let Some(planned) = found.get_mut(path) {
                planned.clone_from(entry);
            }
        }
        if let Some(git) = git {
            let inside = |path: &&TreePath| git_state::inside(path).is_some();
            let wanted = wanted.iter().filter(inside).cloned().collect();
            collect(trees, b"", git, &wanted, &mut found)?;
        }
        Ok(found)
    }
}

/// The entries of the directories that are `wanted`. Each tree on the way is read once.
fn collect(
    trees: &dyn Trees,
    path: &[u8],
    tree: &Subtree,
    wanted: &BTreeSet<TreePath>,
    found: &mut BTreeMap<TreePath, Entry>,
) -> Result<(), StateError> {
    for entry in trees.tree(tree.tree)? {
        let Some(subtree) = entry.subtree().copied() else {
            continue;
        };
        let child = path::join(path, &entry.name);
        // Whatever lies inside sorts behind `child/`, with others like `child-x` before that.
        let inside = [child.as_slice(), b"/"].concat();
        let below = wanted.range(inside.clone()..).next();
        let descend = below.is_some_and(|path| path.starts_with(&inside));
        if wanted.contains(&child) {
            found.insert(child.clone(), entry);
        }
        if descend {
            collect(trees, &child, &subtree, wanted, found)?;
        }
    }
    Ok(())
}

/// Reads what an entry holds, from the store or, when it is not stored, from the tree.
pub(super) fn content(
    reader: &Reader<'_>,
    workspace: &Path,
    path: &[u8],
    entry: &Entry,
) -> Result<Vec<u8>, StateError> {
    let Node::File { content, .. } = &entry.node else {
        return Ok(Vec::new());
    };
    match reader.read(*content) {
        Err(StateError::Missing { .. }) => {
            let full = workspace.join(path::as_path(path));
            regular::read(&full, u64::MAX).map_err(|error| StateError::file("read", &full, error))
        }
        other => other,
    }
}

pub(crate) type ContentOf<'a> = dyn Fn(&[u8], &Entry) -> Result<Vec<u8>, StateError> + 'a;
