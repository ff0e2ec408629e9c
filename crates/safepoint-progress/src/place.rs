//! The real directory of a workspace, where it has one, and what is seen in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, RecordId, WorkspaceId, text};
use safepoint_state::{Note, SnapshotId};
use serde::Serialize;

use crate::record::shown_path;
use crate::rejection::Rejection;
use crate::words::words;
use crate::{Progress, ProgressError, table};

words! {
    /// How a directory was made.
    PlaceKind, "kind of directory":
    /// A worktree of the repository that it was made from.
    Worktree = "worktree",
    /// A copy.
    Copy = "copy",
}

/// The directory of one workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Whose it is.
    pub workspace: WorkspaceId,
    /// Where it is: absolute, without links.
    pub path: PathBuf,
    /// How it was made.
    pub kind: PlaceKind,
    /// The directory that it was made from, and that its work is brought back to.
    pub origin: PathBuf,
    /// What was in it when it was made.
    pub base: SnapshotId,
}

/// What was seen in a workspace's directory when a record was asked for.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The head of the chain then: what changed is counted from it.
    pub since: Option<RecordId>,
    /// The paths that changed, as they are shown.
    pub files_changed: Vec<String>,
    /// The state that the record stands for.
    pub snapshot: SnapshotId,
    /// What that does not hold, and why.
    pub not_covered: Vec<Note>,
    /// The actions that were done there since then.
    pub actions: Vec<ActionId>,
}

/// So many paths of a difference are named.
const MOST_NAMED: usize = 5;

impl Seen {
    /// Why a path is not in the state that the record stands for.
    fn why_not_covered(&self, path: &str) -> Option<&str> {
        let within = |note: &&Note| {
            let rest = path.strip_prefix(note.path.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let note = self.not_covered.iter().find(within)?;
        Some(&note.why)
    }

    /// Whether a claim of changed paths is what was seen.
    pub(crate) fn confirms(&self, claimed: &[String]) -> Result<(), Rejection> {
        let claimed: BTreeSet<String> = claimed.iter().cloned().collect();
        let seen: BTreeSet<String> = self.files_changed.iter().cloned().collect();
        if claimed == seen {
            return Ok(());
        }
        // Nobody can tell whether it changed: no checkpoint holds it.
        let (beyond, claimed): (BTreeSet<String>, _) = claimed
            .into_iter()
            .partition(|path| self.why_not_covered(path).is_some());
        let told = |path: &String| {
            let why = self.why_not_covered(path).unwrap_or_default();
            text::line(&format!("`{path}` ({why})")).text
        };
        let beyond: Vec<String> = beyond.iter().take(MOST_NAMED).map(told).collect();
        let beyond = (!beyond.is_empty())
            .then(|| format!("not held by any checkpoint: {}", beyond.join(", ")));
        let named = |one: &BTreeSet<String>, other: &BTreeSet<String>, what: &str| {
            let paths: Vec<&String> = one.difference(other).collect();
            let more = paths.len().saturating_sub(MOST_NAMED);
            let mut shown: Vec<String> = paths
                .into_iter()
                .take(MOST_NAMED)
                .map(|path| format!("`{}`", shown_path(path)))
                .collect();
            if more > 0 {
                shown.push(format!("{more} more"));
            }
            (!shown.is_empty()).then(|| format!("{what} {}", shown.join(", ")))
        };
        let told: Vec<String> = [
            beyond,
            named(&claimed, &seen, "unchanged:"),
            named(&seen, &claimed, "changed and not named:"),
        ]
        .into_iter()
        .flatten()
        .collect();
        Err(Rejection::structure(format!(
            "`payload.files_changed` is not what the directory shows ({}); leave it out to have it filled in",
            told.join("; ")
        )))
    }
}

impl Progress {
    /// The directory that was made for a workspace, whether it is still there or not.
    pub fn place(&self, id: &WorkspaceId) -> Result<Option<Place>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            Ok(table::place(sql, id)?)
        })
    }

    /// The workspace whose directory `path` lies in. It must be absolute and without links.
    pub fn at(&self, path: &Path) -> Result<Option<Place>, ProgressError> {
        let above: Vec<&Path> = path.ancestors().collect();
        self.trail
            .store()
            .read(|sql| Ok(table::place_at(sql, &above)?))
    }

    /// All directories that were not removed.
    pub fn places(&self) -> Result<Vec<Place>, ProgressError> {
        self.trail.store().read(|sql| Ok(table::places(sql)?))
    }
}
