//! What no checkpoint of a directory apart holds: put there from git where it is committed,
//! named before it would be lost, and commits that a ref keeps.
//!
//! Nothing here captures a secret: what is committed is in git, and what is not is only named.

use std::collections::BTreeSet;
use std::path::Path;

use crate::StateError;
use crate::git::{GitError, Repository};
use crate::path::{self, TreePath};
use crate::scope::unescape;
use crate::snapshot::{Note, Record};
use crate::state::{State, Workspace};

/// Which files are not as they are in `HEAD`. Of submodules, only which commit they have: git
/// would start itself in them, and do what their configuration says.
pub(crate) const CHANGED: [&str; 6] = [
    "diff",
    "--name-only",
    "--no-renames",
    "--ignore-submodules=dirty",
    "-z",
    "HEAD",
];

/// Where the commits of a directory stay when it is removed.
const COMMITS: &str = "refs/safepoint/workspaces";

impl Record {
    /// What it does not hold, and why: secrets, and what was left out.
    pub fn not_covered(&self) -> Vec<Note> {
        let sealed = |note: &&Note| !self.sealed.iter().any(|it| it.path == note.path);
        let secrets = self.sensitive.iter().filter(sealed);
        secrets.chain(&self.left_out).cloned().collect()
    }

    /// Whether it holds a sensitive file at a path, or below it, encrypted.
    pub fn seals(&self, path: &[u8]) -> bool {
        let mut sealed = self.sealed.iter();
        sealed.any(|it| path::is_within(&unescape(&it.path), path))
    }

    /// Why it does not hold what is at a path, if it was left out.
    pub fn note_of(&self, path: &[u8]) -> Option<Note> {
        let at = |note: &Note| path::is_within(path, &unescape(&note.path));
        self.not_covered().into_iter().find(at)
    }
}

impl State {
    /// Puts what is committed and was not captured into a new work tree, as git has it: an
    /// agent must not take it for deleted.
    pub(crate) fn check_out_omitted(
        &self,
        root: &Path,
        omitted: &[TreePath],
    ) -> Result<(), StateError> {
        let Some(git) = self.around.git.as_ref().filter(|_| !omitted.is_empty()) else {
            return Ok(());
        };
        let Some(own) = self.repository_at(root)? else {
            return Ok(());
        };
        let mut wanted = own.run(git, &["ls-files", "--cached", "-z"], b"")?;
        wanted = names(&wanted)
            .filter(|name| omitted.iter().any(|one| is_within(name, one)))
            .flat_map(|name| name.iter().copied().chain([0]))
            .collect();
        if !wanted.is_empty() {
            own.change_with(
                git,
                &[root],
                &["checkout-index", "-q", "-u", "-z", "--stdin"],
                &wanted,
            )?;
        }
        Ok(())
    }

    /// What somebody made or changed in a directory apart that a record of it does not hold.
    /// What git has as it is, and caches that are built again, are not lost with it.
    pub fn unheld(&self, workspace: &Workspace, record: &Record) -> Result<Vec<Note>, StateError> {
        let notes = record.not_covered();
        let is_there = |path: &[u8]| {
            let path = workspace.root.join(path::as_path(path));
            path.symlink_metadata().is_ok()
        };
        let worktree = match (&self.around.git, self.repository(workspace)) {
            (Some(git), Some(repository)) => Some((git, repository)),
            _ => None,
        };
        let Some((git, repository)) = worktree else {
            let lost = |note: &Note| !is_cache(note) && is_there(&unescape(&note.path));
            return Ok(notes.into_iter().filter(lost).collect());
        };
        if notes.is_empty() {
            return Ok(notes);
        }
        let changed = repository.run(git, &CHANGED, b"")?;
        let others = repository.run(git, &["ls-files", "--others", "-z"], b"")?;
        let mut lost = BTreeSet::new();
        for note in &notes {
            let place = unescape(&note.path);
            let new = names(&others).filter(|_| !is_cache(note));
            let mine = names(&changed).chain(new).filter(|name| {
                is_there(name) && (is_within(name, &place) || is_within(&place, name))
            });
            lost.extend(mine.map(|name| (path::display(name), note.why.clone())));
        }
        let lost = lost.into_iter();
        Ok(lost.map(|(path, why)| Note { path, why }).collect())
    }

    /// Keeps the commits that are checked out below `place` from being collected, and says
    /// which work trees git knows there, whether or not they are still there.
    pub(crate) fn keep_commits(
        &self,
        repository: &Repository,
        place: &Path,
    ) -> Result<Vec<String>, StateError> {
        let (Some(git), Some(name)) = (&self.around.git, place.file_name()) else {
            return Ok(Vec::new());
        };
        let real = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        let listed = repository.run(git, &["worktree", "list", "--porcelain", "-z"], b"")?;
        let mut found: Vec<String> = Vec::new();
        let mut is_here = false;
        for line in names(&listed) {
            let line = String::from_utf8_lossy(line);
            if let Some(path) = line.strip_prefix("worktree ") {
                let below = |top: &Path| Path::new(path).starts_with(top);
                is_here = below(place) || below(&real);
                if is_here {
                    found.push(path.to_owned());
                }
            } else if let Some(commit) = line.strip_prefix("HEAD ").filter(|_| is_here) {
                let holds = ["for-each-ref", "--count=1", "--contains", commit];
                if is_known(repository.run(git, &holds, b""))? {
                    continue;
                }
                let kept = format!("{COMMITS}/{}", name.display());
                repository.change(git, &["update-ref", &kept, commit], b"")?;
            }
        }
        Ok(found)
    }
}

/// Whether a ref was listed. A commit that is not there cannot be kept.
fn is_known(listed: Result<Vec<u8>, GitError>) -> Result<bool, GitError> {
    match listed {
        Ok(listed) => Ok(!listed.is_empty()),
        Err(GitError::Failed { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

pub(crate) fn names(listed: &[u8]) -> impl Iterator<Item = &[u8]> {
    listed
        .split(|byte| *byte == 0)
        .map(|name| name.strip_suffix(b"/").unwrap_or(name))
        .filter(|name| !name.is_empty())
}

/// Whether a path is another one or lies below it.
fn is_within(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether it was left out because a tool builds it again.
pub(crate) fn is_cache(note: &Note) -> bool {
    let table = crate::left_out::TABLE.iter();
    note.why == crate::left_out::TAGGED || table.into_iter().any(|(_, _, why)| note.why == *why)
}
