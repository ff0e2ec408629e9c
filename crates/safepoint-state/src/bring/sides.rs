//! What stands at a path on each side of a conflict, for whoever has to decide.
//!
//! It only looks. What no checkpoint holds is named, and its content is not shown.

use super::Incoming;
use super::weigh::is_directory;
use crate::path::{self, TreePath};
use crate::scan::Progress;
use crate::scope::{Scope, unescape};
use crate::snapshot::Record;
use crate::state::{State, Workspace};
use crate::tree::{self, Attributes, Change, Entry, Node};
use crate::undo::Undoing;
use crate::{StateError, git_state};

/// A path on every side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Where both began.
    pub base: Option<Side>,
    /// Here.
    pub ours: Option<Side>,
    /// In the work.
    pub theirs: Option<Side>,
}

/// What stands at a path on one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// What it is: `file`, `directory`, `link`, `not captured` or the name of something special.
    pub kind: &'static str,
    /// Its permission bits, where they say something.
    pub mode: Option<u32>,
    /// How many bytes a file has.
    pub size: Option<u64>,
    /// Where a link points.
    pub target: Option<Vec<u8>>,
    /// Its extended attributes.
    pub attributes: Attributes,
    /// What is in a file, unless it is too large to be taken apart.
    pub content: Option<Vec<u8>>,
    /// What this side changed at and below the path, where it is a directory on one side alone.
    pub changes: Vec<Change>,
}

impl State {
    /// What stands at each of these paths, on each side.
    pub fn sides(
        &self,
        workspace: &Workspace,
        incoming: &Incoming<'_>,
        paths: &[&TreePath],
        progress: &Progress,
    ) -> Result<Vec<Sides>, StateError> {
        self.beside(workspace, incoming, progress, |undoing, _| {
            let each = paths.iter().map(|path| undoing.sides(incoming, path));
            each.collect()
        })
    }
}

impl Undoing<'_> {
    fn sides(&self, incoming: &Incoming<'_>, at: &TreePath) -> Result<Sides, StateError> {
        let (base, work) = (&incoming.base.record, &incoming.work.record);
        let there = |record: &Record| tree::find(self.trees, Some(&record.files), at);
        let (began, theirs) = (there(base)?, there(work)?);
        let ours = tree::find(self.trees, Some(&self.present.files), at)?;
        let is_one = |entry: &Option<Entry>| entry.as_ref().is_some_and(is_directory);
        let below = is_one(&ours) != is_one(&theirs);
        let mut sides = Sides {
            base: began.map(|entry| self.stored(&entry)).transpose()?,
            theirs: theirs.map(|entry| self.stored(&entry)).transpose()?,
            ours: match ours {
                Some(entry) => Some(self.standing(&entry, || self.present_content(at, &entry))?),
                None => None,
            },
        };
        let full = self.workspace.join(path::as_path(at));
        if sides.ours.is_none() && full.symlink_metadata().is_ok() {
            sides.ours = Some(not_captured());
        }
        let mut left = work.left_out.iter().chain(&work.sensitive);
        if sides.theirs.is_none() && left.any(|note| unescape(&note.path) == *at) {
            sides.theirs = Some(not_captured());
        }
        if below {
            let since = |files| {
                let everything = Scope::everything();
                let changes =
                    tree::changes(self.trees, Some(&base.files), Some(files), &everything)?;
                let wanted = |change: &Change| {
                    path::is_within(&change.path, at)
                        && change.is_notable()
                        && git_state::inside(&change.path).is_none()
                };
                Ok::<Vec<Change>, StateError>(changes.into_iter().filter(wanted).collect())
            };
            if let Some(ours) = &mut sides.ours {
                ours.changes = since(&self.present.files)?;
            }
            if let Some(theirs) = &mut sides.theirs {
                theirs.changes = since(&work.files)?;
            }
        }
        Ok(sides)
    }

    fn stored(&self, entry: &Entry) -> Result<Side, StateError> {
        self.standing(entry, || self.content(entry))
    }

    fn standing(
        &self,
        entry: &Entry,
        content: impl FnOnce() -> Result<Vec<u8>, StateError>,
    ) -> Result<Side, StateError> {
        let of = |kind| Side {
            kind,
            mode: Some(entry.mode),
            attributes: entry.attributes.clone(),
            ..Side::default()
        };
        Ok(match &entry.node {
            Node::File { size, .. } => Side {
                size: Some(*size),
                content: match Self::is_too_large(entry) {
                    true => None,
                    false => Some(content()?),
                },
                ..of("file")
            },
            Node::Directory(_) => of("directory"),
            Node::Symlink { target } => Side {
                mode: None,
                target: Some(target.clone()),
                ..of("link")
            },
            Node::Special { kind, .. } => of(kind.as_str()),
        })
    }
}

fn not_captured() -> Side {
    Side {
        kind: "not captured",
        ..Side::default()
    }
}
