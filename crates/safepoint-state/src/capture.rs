//! From a scan to the trees that a snapshot records.

use std::collections::BTreeMap;

use crate::StateError;
use crate::path::{self, TreePath};
use crate::scan::{Omitted, Scan, Sink};
use crate::snapshot::Note;
use crate::tree::{Entry, Moment, Node, Subtree, summarise};

/// What a workspace holds at one moment.
pub(crate) struct Capture {
    pub(crate) files: Subtree,
    /// `None` when it is not to be captured.
    pub(crate) git: Option<Subtree>,
    pub(crate) scan: Scan,
}

impl Capture {
    /// Makes the trees of a scan.
    pub(crate) fn of(scan: Scan, sink: &Sink<'_>) -> Result<Self, StateError> {
        let files = match scan.root {
            Some(root) => root,
            None => keep(Vec::new(), sink)?,
        };
        // Even when there is none: that is something to go back to as well.
        let git = Some(git_tree(&scan.git, sink)?);
        Ok(Self { files, git, scan })
    }

    /// Whether nothing at all was found, captured or not.
    pub(crate) fn is_hollow(&self) -> bool {
        let scan = &self.scan;
        self.files.hash == crate::tree::tree_hash(&[])
            && scan.git.is_empty()
            && scan.sensitive.is_empty()
            && scan.left_out.is_empty()
    }

    pub(crate) fn left_out(&self) -> Vec<Note> {
        self.scan.left_out.iter().map(note).collect()
    }

    pub(crate) fn sensitive(&self) -> Vec<Note> {
        self.scan
            .sensitive
            .iter()
            .map(|(path, reason)| Note {
                path: path::display(path),
                why: reason.as_str().to_owned(),
            })
            .collect()
    }

    pub(crate) fn special(&self) -> Vec<Note> {
        self.scan
            .special
            .iter()
            .map(|(path, kind)| Note {
                path: path::display(path),
                why: kind.as_str().to_owned(),
            })
            .collect()
    }
}

fn note(omitted: &Omitted) -> Note {
    Note {
        path: path::display(&omitted.path),
        why: omitted.why.clone(),
    }
}

/// The git directories as a tree of their own: it holds nothing but them and
/// the directories that lead to them, which have no metadata here.
fn git_tree(parts: &[(TreePath, Entry)], sink: &Sink<'_>) -> Result<Subtree, StateError> {
    #[derive(Default)]
    struct Level {
        here: Vec<Entry>,
        below: BTreeMap<Vec<u8>, Level>,
    }

    fn build(level: Level, sink: &Sink<'_>) -> Result<Subtree, StateError> {
        let mut entries = level.here;
        for (name, below) in level.below {
            entries.push(Entry {
                name,
                mode: 0o755,
                owner: 0,
                group: 0,
                modified: Moment::default(),
                attributes: Vec::new(),
                node: Node::Directory(build(below, sink)?),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        keep(entries, sink)
    }

    let mut top = Level::default();
    for (path, entry) in parts {
        let mut at = &mut top;
        for name in path::names(path::split(path).0) {
            at = at.below.entry(name.to_vec()).or_default();
        }
        at.here.push(entry.clone());
    }
    build(top, sink)
}

fn keep(entries: Vec<Entry>, sink: &Sink<'_>) -> Result<Subtree, StateError> {
    let (encoded, subtree) = summarise(&entries);
    sink.tree(subtree.tree, encoded)?;
    Ok(subtree)
}
