//! What a checkpoint would leave out of a workspace, and what of that git would overwrite.
//!
//! Nothing is kept, and git is only asked. Where it cannot answer, everything that is left
//! out counts as overwritten.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::StateError;
use crate::git::{Git, GitError, Repository, tidied};
use crate::lock::Hold;
use crate::path;
use crate::scan::{Progress, Sink};
use crate::scope::{Scope, unescape};
use crate::snapshot::Note;
use crate::state::{State, Workspace};
use crate::unheld::{CHANGED, is_cache, names};

/// So many paths are asked about at once.
const AT_ONCE: usize = 500;

/// What a checkpoint that is made now would be.
#[derive(Clone, Debug)]
pub struct Foreseen {
    /// What it would leave out, secrets among it, and why.
    pub not_covered: Vec<Note>,
    /// Whether it would hold the state of git.
    pub has_git: bool,
}

/// What a command of git puts other content in the place of, in a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overwrites {
    /// Where it runs.
    pub directory: PathBuf,
    /// Which files that git keeps.
    pub kept: Reach,
    /// Which files it does not keep.
    pub others: Others,
    /// Trees that may be checked out: what they name is put in the place of files that git
    /// does not keep yet.
    pub trees: Vec<String>,
}

/// Which files of a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None.
    Nothing,
    /// Those that these patterns of git name.
    Paths(Vec<String>),
    /// All.
    Whole,
}

/// Files that git does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// None of them.
    Nothing,
    /// Those that it does not ignore.
    Untracked,
    /// All.
    Ignored,
}

impl State {
    /// What a checkpoint of the workspace would leave out now. None is made.
    pub fn foresee(
        &self,
        workspace: &Workspace,
        progress: &Progress,
    ) -> Result<Foreseen, StateError> {
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        let objects = self.objects()?;
        let fresh = Mutex::new(HashMap::new());
        let sink = Sink::Memory(&fresh);
        let scope = Scope::everything();
        let capture = self.look(workspace, &scope, &objects, &sink, progress)?;
        // The checkpoint that would be made may hold some of it encrypted.
        let mut now = self.automatic(workspace, &scope, &capture, String::new())?;
        self.carry_sealed(&mut now)?;
        let mut not_covered = capture.not_covered();
        not_covered.retain(|note| !now.record.holds_sealed(&note.path));
        Ok(Foreseen {
            not_covered,
            has_git: capture.git.is_some(),
        })
    }

    /// Which of these files, that no checkpoint holds, git would overwrite while nobody has
    /// them as they are: neither it nor a checkpoint.
    pub fn overwritten(
        &self,
        workspace: &Workspace,
        not_covered: &[Note],
        what: &Overwrites,
    ) -> Vec<Note> {
        let Some(git) = self.around.git.as_ref().filter(|_| !not_covered.is_empty()) else {
            return Vec::new();
        };
        let Ok(directory) = std::fs::canonicalize(&what.directory) else {
            return Vec::new();
        };
        match around(git, &directory) {
            Ok(None) => Vec::new(),
            Ok(Some(repository)) => {
                let asking = Asking {
                    git,
                    repository: &repository,
                    root: &workspace.root,
                    not_covered,
                };
                let lost = asking.overwritten(&directory, what);
                lost.unwrap_or_else(|_| not_covered.to_vec())
            }
            Err(_) => not_covered.to_vec(),
        }
    }
}

/// The repository that a directory belongs to.
fn around(git: &Git, directory: &Path) -> Result<Option<Repository>, GitError> {
    for top in directory.ancestors() {
        if let Some(found) = Repository::open(git, top)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// One repository, and what no checkpoint holds.
struct Asking<'a> {
    git: &'a Git,
    repository: &'a Repository,
    root: &'a Path,
    not_covered: &'a [Note],
}

impl Asking<'_> {
    fn overwritten(&self, directory: &Path, what: &Overwrites) -> Result<Vec<Note>, GitError> {
        let top = self.repository.worktree();
        let paths = match &what.kept {
            Reach::Nothing => None,
            Reach::Paths(paths) if paths.is_empty() => None,
            Reach::Whole => Some(Vec::new()),
            Reach::Paths(paths) => Some(from_top(top, directory, paths)),
        };
        let mut lost = BTreeSet::new();
        if let Some(paths) = &paths {
            let changed = match self.names(&CHANGED, paths) {
                // Before the first commit there is nothing to compare with.
                Err(GitError::Failed { .. }) => self.names(&["ls-files", "--cached", "-z"], paths),
                other => other,
            };
            lost.extend(self.among(&changed?, |_| true));
            let others = match what.others {
                Others::Nothing => Vec::new(),
                Others::Untracked => {
                    self.names(&["ls-files", "--others", "--exclude-standard", "-z"], paths)?
                }
                Others::Ignored => self.names(&["ls-files", "--others", "-z"], paths)?,
            };
            // What a tool builds again is not lost with it.
            lost.extend(self.among(&others, |note| !is_cache(note)));
        }
        if !what.trees.is_empty() {
            let untracked = self.untracked()?;
            for tree in &what.trees {
                lost.extend(self.among(&self.in_tree(tree, &untracked), |_| true));
            }
        }
        let lost = lost.into_iter();
        Ok(lost.map(|(path, why)| Note { path, why }).collect())
    }

    /// What git lists.
    fn names(&self, words: &[&str], paths: &[String]) -> Result<Vec<Vec<u8>>, GitError> {
        let paths = paths.iter().map(String::as_str);
        let words: Vec<&str> = words.iter().copied().chain(["--"]).chain(paths).collect();
        let listed = self.repository.run(self.git, &words, b"")?;
        Ok(names(&listed).map(<[u8]>::to_vec).collect())
    }

    /// Those of the files that no checkpoint holds that git does not keep.
    fn untracked(&self) -> Result<Vec<String>, GitError> {
        let top = self.repository.worktree();
        let places: Vec<String> = self
            .not_covered
            .iter()
            .filter(|note| !is_cache(note))
            .filter_map(|note| {
                let place = self.place(note);
                let below = place.strip_prefix(top).ok()?.to_str()?;
                Some(format!(":(literal){below}"))
            })
            .collect();
        let mut found = Vec::new();
        for some in places.chunks(AT_ONCE) {
            let listed = self.names(&["ls-files", "--others", "-z"], some)?;
            found.extend(
                listed
                    .into_iter()
                    .filter_map(|it| String::from_utf8(it).ok()),
            );
        }
        Ok(found)
    }

    /// Those of these files that a tree has. A word that names none has none.
    fn in_tree(&self, tree: &str, files: &[String]) -> Vec<Vec<u8>> {
        let words = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree];
        let some = files.chunks(AT_ONCE);
        some.flat_map(|some| self.names(&words, some).unwrap_or_default())
            .collect()
    }

    /// What of these files is there, and held by no checkpoint.
    fn among(
        &self,
        listed: &[Vec<u8>],
        counts: impl Fn(&Note) -> bool,
    ) -> BTreeSet<(String, String)> {
        let top = self.repository.worktree();
        let mut found = BTreeSet::new();
        for note in self.not_covered.iter().filter(|note| counts(note)) {
            let place = self.place(note);
            let is_it = |name: &&Vec<u8>| {
                let file = top.join(path::as_path(name));
                let same = file.starts_with(&place) || place.starts_with(&file);
                same && file.symlink_metadata().is_ok()
            };
            if listed.iter().any(|name| is_it(&name)) {
                found.insert((note.path.clone(), note.why.clone()));
            }
        }
        found
    }

    fn place(&self, note: &Note) -> PathBuf {
        self.root.join(path::as_path(&unescape(&note.path)))
    }
}

/// Patterns as they are meant from the top of a work tree; all of it where that is not plain.
fn from_top(top: &Path, directory: &Path, paths: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for pattern in paths {
        let is_from_top = pattern.starts_with(":/") || directory == top;
        let from_here = match pattern.starts_with(':') {
            true if is_from_top => Some(pattern.clone()),
            true => None,
            false => tidied(&directory.join(pattern))
                .strip_prefix(top)
                .ok()
                .and_then(Path::to_str)
                .map(str::to_owned),
        };
        match from_here.filter(|pattern| !pattern.is_empty()) {
            Some(pattern) => all.push(pattern),
            None => return Vec::new(),
        }
    }
    all
}
