//! The workspace as it will be: operations on files are carried out on a picture
//! of the tree first. What does not apply shows here, when nothing has happened.

mod entries;

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;

use super::Structured;
use super::operation::{self, Operation, Replace};
use super::place::Place;
use crate::edit::{self, Change, Format, Replacement};
use crate::objects::{Reader, Writer};
use crate::path::{self, TreePath};
use crate::scan::MixedTrees;
use crate::tree::{self, Entry, Moment, Node, Subtree};
use crate::{ContentId, StateError};
use entries::{empty, file_node, refuse_foreign, refuse_unwritable};

/// A tree that operations change.
pub(super) struct Picture<'a> {
    root: Subtree,
    /// Trees and contents that are not stored yet.
    trees: Mutex<HashMap<ContentId, Vec<u8>>>,
    contents: HashMap<ContentId, Vec<u8>>,
    reader: &'a Reader<'a>,
    now: Moment,
    /// Permissions that new files and directories do not get.
    umask: u32,
    /// Every path that an operation meant.
    pub(super) meant: BTreeSet<TreePath>,
    /// What is to be known besides.
    pub(super) warnings: Vec<String>,
    /// Where the operations touched text: `path:line`.
    pub(super) lines: Vec<String>,
    /// What changed in structured files.
    pub(super) structure: Vec<Structured>,
}

/// Larger files are not edited as text.
const LARGEST_EDITED: u64 = 64 << 20;

impl<'a> Picture<'a> {
    pub(super) fn new(root: Subtree, reader: &'a Reader<'a>, now: Moment) -> Self {
        Self {
            root,
            trees: Mutex::default(),
            contents: HashMap::new(),
            reader,
            now,
            umask: entries::umask(),
            meant: BTreeSet::new(),
            warnings: Vec::new(),
            lines: Vec::new(),
            structure: Vec::new(),
        }
    }

    /// The tree, with everything new in it handed to `writer`.
    pub(super) fn keep(self, writer: &Writer<'_>) -> Result<Subtree, StateError> {
        let trees = self.trees.into_inner();
        let trees = trees.unwrap_or_else(std::sync::PoisonError::into_inner);
        for (id, bytes) in trees {
            writer.add_tree(id, bytes)?;
        }
        for (id, bytes) in self.contents {
            writer.add(id, bytes)?;
        }
        Ok(self.root)
    }

    /// What stands at a path.
    pub(super) fn find(&self, path: &[u8]) -> Result<Option<Entry>, StateError> {
        let trees = MixedTrees {
            fresh: &self.trees,
            stored: self.reader,
        };
        tree::find(&trees, Some(&self.root), path)
    }

    /// Carries an operation out. `other` is the second place of a `move`, `inside` finds
    /// the places that a patch of several files names.
    pub(super) fn carry_out(
        &mut self,
        place: &Place,
        operation: &Operation,
        other: Option<&Place>,
        inside: &dyn Fn(&str) -> Result<Place, StateError>,
    ) -> Result<(), StateError> {
        let here = [Some(place), other];
        let root = here.into_iter().flatten().find(|it| it.path.is_empty());
        if let (Some(root), false) = (root, matches!(operation, Operation::Patch { .. })) {
            return Err(inapplicable(
                root,
                "it is the workspace itself",
                "name something in it",
            ));
        }
        match operation {
            Operation::Edit {
                changes: Some(changes),
            } => self.edit(place, changes),
            Operation::Edit { changes: None } => Err(inapplicable(
                place,
                "`changes` is missing, so it is not said what to edit",
                "say it: `\"changes\": [{\"old\": \"a\", \"new\": \"b\"}]`",
            )),
            Operation::Write {
                content,
                base64,
                mode,
            } => {
                let bytes = operation::bytes(content.as_ref(), base64.as_ref())
                    .map_err(|why| inapplicable(place, why, ""))?;
                self.write(place, bytes, mode.map(|mode| mode.0))
            }
            Operation::Append { content, base64 } => {
                let more = operation::bytes(content.as_ref(), base64.as_ref())
                    .map_err(|why| inapplicable(place, why, ""))?;
                let mut bytes = match self.find(&place.path)? {
                    Some(entry) => self.content(place, &entry)?,
                    None => Vec::new(),
                };
                bytes.extend_from_slice(&more);
                self.write(place, bytes, None)
            }
            Operation::Delete { recursive } => self.delete(place, *recursive),
            Operation::Move { overwrite, .. } => match other {
                Some(to) => self.rename(place, to, *overwrite),
                None => Ok(()),
            },
            Operation::Mkdir { mode } => {
                if self.find(&place.path)?.is_some() {
                    return Err(inapplicable(place, "it is there already", ""));
                }
                self.make_parents(place, &place.path)?;
                let entry = self.new_entry(&place.path, 0o777, Node::Directory(empty()))?;
                self.put(&place.path, entry)?;
                match mode {
                    Some(mode) => self.chmod(place, mode.0),
                    None => Ok(()),
                }
            }
            Operation::Chmod { mode } => self.chmod(place, mode.0),
            Operation::Symlink { to, overwrite } => self.symlink(place, to, *overwrite),
            Operation::Patch { patch } => self.patch(place, patch, inside),
            Operation::Json {
                patch,
                merge,
                format,
            } => {
                let change = match (patch, merge) {
                    (Some(patch), _) => Change::Patch(patch.clone()),
                    (None, merge) => Change::Merge(merge.clone().unwrap_or_default()),
                };
                self.structured(place, &change, format.map(Into::into))
            }
            Operation::Sql { .. } | Operation::State { .. } | Operation::Command { .. } => Ok(()),
        }
    }

    fn edit(&mut self, place: &Place, changes: &[Replace]) -> Result<(), StateError> {
        let (entry, old) = self.file(place)?;
        let changes: Vec<Replacement> = changes
            .iter()
            .map(|change| Replacement {
                line: change.line,
                old: change.old.clone(),
                new: change.new.clone(),
                all: change.all,
            })
            .collect();
        let done = edit::replace(&old, &changes).map_err(|error| refused(place, &error))?;
        for line in done.lines {
            self.lines
                .push(format!("{}:{line}", path::display(&place.path)));
        }
        self.fill(place, entry, done.bytes)
    }

    fn structured(
        &mut self,
        place: &Place,
        change: &Change,
        format: Option<Format>,
    ) -> Result<(), StateError> {
        let (entry, old) = self.file(place)?;
        let format = format.or_else(|| Format::of_name(&place.path));
        let format = format.ok_or_else(|| {
            inapplicable(
                place,
                "its name does not tell whether it is JSON, YAML or TOML",
                "say so with `format`",
            )
        })?;
        let done = edit::change(format, &old, change).map_err(|error| refused(place, &error))?;
        let one = |pointer| Structured {
            path: place.path.clone(),
            pointer,
        };
        self.structure.extend(done.paths.into_iter().map(one));
        self.fill(place, entry, done.bytes)
    }

    fn patch(
        &mut self,
        place: &Place,
        patch: &str,
        inside: &dyn Fn(&str) -> Result<Place, StateError>,
    ) -> Result<(), StateError> {
        let files = edit::patch::parse(patch.as_bytes()).map_err(|error| refused(place, &error))?;
        let directory = place.path.is_empty()
            || self
                .find(&place.path)?
                .is_some_and(|it| it.subtree().is_some());
        if !directory && files.len() != 1 {
            return Err(inapplicable(
                place,
                "the patch is of several files",
                "give the directory that they are in as the target",
            ));
        }
        for file in &files {
            let named = |name: &Option<Vec<u8>>| -> Result<Option<Place>, StateError> {
                match name {
                    None => Ok(None),
                    Some(_) if !directory => Ok(Some(place.clone())),
                    Some(name) => inside(&String::from_utf8_lossy(name)).map(Some),
                }
            };
            // A patch of hunks alone is of the target.
            let (from, to) = match (&file.old, &file.new) {
                (None, None) if directory => {
                    return Err(inapplicable(
                        place,
                        "the patch names no file",
                        "give the file as the target",
                    ));
                }
                (None, None) => (Some(place.clone()), Some(place.clone())),
                (old, new) => (named(old)?, named(new)?),
            };
            self.patch_one(place, file, from, to)?;
        }
        Ok(())
    }

    fn patch_one(
        &mut self,
        place: &Place,
        file: &edit::FilePatch,
        from: Option<Place>,
        to: Option<Place>,
    ) -> Result<(), StateError> {
        let here = from.as_ref().or(to.as_ref()).unwrap_or(place);
        let old = match &from {
            Some(from) => Some(self.file(from)?.1),
            None => match self.find(&here.path)? {
                Some(entry) => Some(self.content(here, &entry)?),
                None => None,
            },
        };
        let done = edit::apply(old.as_deref(), file).map_err(|error| refused(here, &error))?;
        for moved in &done.moved {
            self.warnings.push(format!(
                "hunk {} of `{}` was found in line {}, not in line {}",
                moved.hunk,
                path::display(&here.path),
                moved.found,
                moved.stated
            ));
        }
        let (Some(to), Some(bytes)) = (to.clone(), done.bytes) else {
            return self.delete(here, false);
        };
        if let Some(from) = &from
            && from.path != to.path
            && !file.copied
        {
            self.rename(from, &to, false)?;
        }
        for hunk in &file.hunks {
            self.lines
                .push(format!("{}:{}", path::display(&to.path), hunk.new_start));
        }
        self.write(&to, bytes, file.new_mode.map(|mode| mode & 0o7777))
    }

    fn delete(&mut self, place: &Place, recursive: bool) -> Result<(), StateError> {
        let entry = self.there(place)?;
        if let Some(subtree) = entry.subtree()
            && !recursive
            && !self.entries(subtree)?.is_empty()
        {
            return Err(inapplicable(
                place,
                "it is a directory with something in it",
                "add `\"recursive\": true` to delete all of it",
            ));
        }
        self.refuse_closed(place, path::split(&place.path).0)?;
        self.edit_tree(vec![(place.path.clone(), None)])?;
        self.touch_parent(&place.path)?;
        self.meant.insert(place.path.clone());
        Ok(())
    }

    fn rename(&mut self, from: &Place, to: &Place, overwrite: bool) -> Result<(), StateError> {
        let entry = self.there(from)?;
        if path::is_within(&to.path, &from.path) {
            return Err(inapplicable(from, "it cannot be moved into itself", ""));
        }
        if let Some(there) = self.find(&to.path)? {
            if there.subtree().is_some() {
                return Err(inapplicable(to, "a directory is there already", ""));
            }
            if !overwrite {
                return Err(inapplicable(
                    to,
                    "it is there already",
                    "add `\"overwrite\": true` to replace it",
                ));
            }
        }
        self.refuse_closed(from, path::split(&from.path).0)?;
        self.make_parents(to, &to.path)?;
        let mut edits = vec![(from.path.clone(), None)];
        let mut waiting = vec![(to.path.clone(), entry)];
        while let Some((path, mut entry)) = waiting.pop() {
            refuse_foreign(from, &entry)?;
            entry.name = path::split(&path).1.to_vec();
            if let Some(subtree) = entry.subtree() {
                for child in self.entries(subtree)? {
                    waiting.push((path::join(&path, &child.name), child));
                }
            }
            edits.push((path, Some(entry)));
        }
        self.edit_tree(edits)?;
        self.touch_parent(&from.path)?;
        self.touch_parent(&to.path)?;
        self.meant.extend([from.path.clone(), to.path.clone()]);
        Ok(())
    }

    fn chmod(&mut self, place: &Place, mode: u32) -> Result<(), StateError> {
        let mut entry = self.there(place)?;
        if matches!(entry.node, Node::Symlink { .. }) {
            return Err(inapplicable(
                place,
                "a link has no permissions of its own",
                "",
            ));
        }
        entry.mode = mode;
        self.meant.insert(place.path.clone());
        self.edit_tree(vec![(place.path.clone(), Some(entry))])
    }

    fn symlink(&mut self, place: &Place, to: &str, overwrite: bool) -> Result<(), StateError> {
        if to.is_empty() || to.contains('\0') {
            return Err(inapplicable(place, "a link needs somewhere to point", ""));
        }
        match self.find(&place.path)? {
            Some(entry) if entry.subtree().is_some() => {
                return Err(inapplicable(place, "a directory is there already", ""));
            }
            Some(_) if !overwrite => {
                return Err(inapplicable(
                    place,
                    "it is there already",
                    "add `\"overwrite\": true` to replace it",
                ));
            }
            _ => {}
        }
        self.make_parents(place, &place.path)?;
        let node = Node::Symlink {
            target: to.as_bytes().to_vec(),
        };
        let mut entry = self.new_entry(&place.path, 0o777, node)?;
        entry.mode = 0o777;
        self.put(&place.path, entry)
    }

    /// Gives a file this content, and makes it when it is not there.
    fn write(
        &mut self,
        place: &Place,
        bytes: Vec<u8>,
        mode: Option<u32>,
    ) -> Result<(), StateError> {
        match self.find(&place.path)? {
            Some(entry) => {
                refuse_unwritable(place, &entry)?;
                self.fill(place, entry, bytes)?;
            }
            None => {
                self.make_parents(place, &place.path)?;
                let entry = self.new_entry(&place.path, 0o666, file_node(&bytes))?;
                self.contents.insert(ContentId::of(&bytes), bytes);
                self.put(&place.path, entry)?;
            }
        }
        match mode {
            Some(mode) => self.chmod(place, mode),
            None => Ok(()),
        }
    }
}

pub(super) fn inapplicable(place: &Place, why: impl AsRef<str>, suggestion: &str) -> StateError {
    StateError::Inapplicable {
        target: place.shown(),
        why: why.as_ref().to_owned(),
        suggestion: suggestion.to_owned(),
    }
}

fn refused(place: &Place, error: &edit::EditError) -> StateError {
    inapplicable(place, error.to_string(), &error.suggestion())
}
