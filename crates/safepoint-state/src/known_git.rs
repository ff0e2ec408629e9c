//! Which repository a work tree had when it was first seen.
//!
//! A `.git` that is a file names a directory anywhere, and whoever works in the workspace can
//! write that file. So a repository that lies elsewhere counts as the workspace's only if it was
//! so when the workspace was first seen, and then only if both name each other, or a person was
//! there to see it. What the workspace had first is kept beside the other data, where no agent
//! writes; a directory that takes the workspace's place is seen for the first time again.
//!
//! A work tree that is given another repository on purpose keeps the first one until a person says
//! that the new one is its own (`init --accept-repository`).
//!
//! It never writes into a repository, and never follows a link from one to the other.

use std::path::{Path, PathBuf};

use safepoint_store::durable::{self, Access};
use safepoint_store::{Durability, regular};
use safepoint_trail::Kind;
use serde::{Deserialize, Serialize};

use crate::StateError;
use crate::git::{self, Bond, GitError, Repository, Tie};
use crate::identity::mark;
use crate::path;
use crate::state::{State, Workspace, key};

const FORMAT: u32 = 1;
/// No record is longer.
const MAX_RECORD_BYTES: u64 = 64 << 10;

/// For whom snapshots are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Somebody who works here themselves.
    Person,
    /// An agent, or a client that works for one.
    Agent,
}

/// What a workspace had when it was first seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstSight {
    format: u32,
    workspace: String,
    /// Which directory it was.
    root: String,
    /// The repository elsewhere; none where it had none, or its own.
    elsewhere: Option<Elsewhere>,
}

/// A repository elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    /// Which directories they are.
    git_dir: String,
    common_dir: String,
    /// Whether it counts as the workspace's.
    is_accepted: bool,
}

impl Elsewhere {
    fn of(tie: &Tie) -> Option<Self> {
        Some(Self {
            git_dir: mark(&tie.git_dir)?,
            common_dir: mark(&tie.common_dir)?,
            is_accepted: false,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.git_dir, &self.common_dir) == (&other.git_dir, &other.common_dir)
    }
}

/// What git may write outside of a linked work tree, if the repository is the workspace's.
pub fn linked_places(data: &Path, worktree: &Path, writable: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(worktree) = std::fs::canonicalize(worktree) else {
        return Vec::new();
    };
    let tie = git::tie(&worktree);
    match belongs(data, &worktree, tie.as_ref(), Caller::Agent) {
        Ok(true) => git::linked_places(&worktree, writable),
        Ok(false) | Err(_) => Vec::new(),
    }
}

/// Whether what `.git` leads to is the workspace's own repository. The first answer is kept.
fn belongs(
    data: &Path,
    root: &Path,
    tie: Option<&Tie>,
    caller: Caller,
) -> Result<bool, StateError> {
    let tie = tie.filter(|tie| tie.bond != Bond::Inside);
    let now = tie.and_then(Elsewhere::of);
    if tie.is_some() && now.is_none() {
        return Ok(false); // nobody knows which directories they are
    }
    let Some(root_mark) = mark(root) else {
        return Ok(now.is_none());
    };
    let file = data.join("first-seen").join(format!("{}.json", key(root)));
    let known = read(&file)?;
    let is_new_place = known.is_none();
    let had = known.as_ref().and_then(|known| known.elsewhere.as_ref());
    if now.is_none() && had.is_some_and(|had| had.is_accepted) {
        return Ok(true); // a work tree that was removed: it may come back
    }
    let known = known.filter(|known| known.root == root_mark);
    let accepted = match (&known, &now) {
        (Some(_), None) => return Ok(true),
        (None, None) => true,
        (Some(known), Some(now)) => match &known.elsewhere {
            Some(first) if first.is_same(now) => match (first.is_accepted, caller) {
                (true, _) => return Ok(true),
                (false, Caller::Person) => true,
                (false, Caller::Agent) => return Ok(false),
            },
            _ => return Ok(false),
        },
        (None, Some(_)) => {
            let is_mutual = tie.is_some_and(|tie| tie.bond == Bond::Mutual);
            is_mutual || is_new_place && caller == Caller::Person
        }
    };
    let record = FirstSight {
        format: FORMAT,
        workspace: path::display(std::os::unix::ffi::OsStrExt::as_bytes(root.as_os_str())),
        root: root_mark,
        elsewhere: now.clone().map(|now| Elsewhere {
            is_accepted: accepted,
            ..now
        }),
    };
    let written = write(&file, &record);
    // Its own repository needs no record to be its own.
    match now {
        None => Ok(true),
        Some(_) => written.map(|()| accepted),
    }
}

fn read(file: &Path) -> Result<Option<FirstSight>, StateError> {
    let bytes = match regular::read(file, MAX_RECORD_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StateError::file("read", file, error)),
    };
    let broken = |why: String| StateError::Unsupported(format!("`{}`: {why}", file.display()));
    let found: FirstSight =
        serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
    match found.format {
        FORMAT => Ok(Some(found)),
        other => Err(broken(format!("format {other} is newer than this release"))),
    }
}

fn write(file: &Path, record: &FirstSight) -> Result<(), StateError> {
    if let Some(directory) = file.parent() {
        durable::create_directory(directory)?;
    }
    let text =
        serde_json::to_vec(record).map_err(|error| StateError::Unsupported(error.to_string()))?;
    Ok(durable::write(file, &text, Access::Private)?)
}

/// The record of a workspace, if it had this repository. The directory itself may have been made
/// anew since, as a roll back makes one that was deleted.
fn known_with(data: &Path, root: &Path, common_dir: &Path) -> Option<(PathBuf, FirstSight)> {
    let common_dir = mark(common_dir)?;
    let file = data.join("first-seen").join(format!("{}.json", key(root)));
    let known = read(&file).ok()??;
    let elsewhere = known.elsewhere.as_ref()?;
    let is_it = elsewhere.is_accepted && elsewhere.common_dir == common_dir;
    is_it.then_some((file, known))
}

impl State {
    /// Whether a linked work tree had this repository when it was first seen. What the repository
    /// kept for the work tree may be gone.
    pub(crate) fn had_repository(&self, root: &Path, common_dir: &Path) -> bool {
        let root = std::fs::canonicalize(root);
        root.is_ok_and(|root| known_with(&self.around.data, &root, common_dir).is_some())
    }

    /// Keeps that the git directory of a work tree was made anew in its repository.
    pub(crate) fn keep_made_anew(&self, root: &Path) -> Result<(), StateError> {
        let Ok(root) = std::fs::canonicalize(root) else {
            return Ok(());
        };
        let Some(tie) = git::tie(&root) else {
            return Ok(());
        };
        let known = known_with(&self.around.data, &root, &tie.common_dir);
        let (Some((file, known)), Some(now)) = (known, Elsewhere::of(&tie)) else {
            return Ok(());
        };
        let Some(root) = mark(&root) else {
            return Ok(());
        };
        let elsewhere = Some(Elsewhere {
            is_accepted: true,
            ..now
        });
        let record = FirstSight {
            root,
            elsewhere,
            ..known
        };
        write(&file, &record)
    }

    /// Takes the repository elsewhere that `.git` leads to now for the workspace's own, because a
    /// person says so, and returns where it lies. The decision is in the trail.
    pub fn accept_repository(&self, root: &Path) -> Result<PathBuf, StateError> {
        let root =
            std::fs::canonicalize(root).map_err(|error| StateError::file("read", root, error))?;
        let missing = || StateError::NotFound {
            what: "repository elsewhere of the work tree",
            name: root.display().to_string(),
        };
        let tie = git::tie(&root).filter(|tie| tie.bond != Bond::Inside);
        let tie = tie.ok_or_else(missing)?;
        let (Some(now), Some(root_mark)) = (Elsewhere::of(&tie), mark(&root)) else {
            return Err(missing());
        };
        if self.caller == Caller::Agent {
            let git_dir = tie.git_dir;
            let worktree = root;
            return Err(GitError::Foreign { worktree, git_dir }.into());
        }
        let shown =
            |path: &Path| path::display(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()));
        let record = FirstSight {
            format: FORMAT,
            workspace: shown(&root),
            root: root_mark,
            elsewhere: Some(Elsewhere {
                is_accepted: true,
                ..now
            }),
        };
        let body = serde_json::json!({
            "git_dir": shown(&tie.git_dir), "common_dir": shown(&tie.common_dir),
        });
        self.trail.write(Durability::Sync, |writing| {
            let kind = Kind::fixed("repository_accepted");
            writing.append(self.draft(&root, kind, None, body))?;
            Ok::<_, StateError>(())
        })?;
        let data = &self.around.data;
        write(
            &data.join("first-seen").join(format!("{}.json", key(&root))),
            &record,
        )?;
        Ok(tie.git_dir)
    }

    /// The repository of a work tree, if it is its own.
    pub(crate) fn repository_at(&self, root: &Path) -> Result<Option<Repository>, StateError> {
        let Some(git) = &self.around.git else {
            return Ok(None);
        };
        let found = Repository::open(git, root);
        let Ok(place) = std::fs::canonicalize(root) else {
            return Ok(found?);
        };
        let tie = match &found {
            Ok(Some(repository)) => Some(repository.tie()),
            _ => None,
        };
        let is_own = belongs(&self.around.data, &place, tie.as_ref(), self.caller)?;
        match found? {
            Some(repository) if !is_own => Err(GitError::Foreign {
                worktree: place,
                git_dir: repository.git_dir().to_owned(),
            }
            .into()),
            Some(repository) => Ok(Some(repository.known())),
            None => Ok(None),
        }
    }

    /// The same for a workspace; none also where it cannot be read.
    pub(crate) fn repository(&self, workspace: &Workspace) -> Option<Repository> {
        self.repository_at(&workspace.root).ok().flatten()
    }

    /// Why the repository that `.git` leads to is left alone.
    pub(crate) fn foreign_warning(&self, workspace: &Workspace) -> Option<String> {
        self.around.git.as_ref()?;
        let worktree = std::fs::canonicalize(&workspace.root).ok()?;
        let tie = git::tie(&worktree)?;
        let is_own = belongs(&self.around.data, &worktree, Some(&tie), self.caller);
        let foreign = GitError::Foreign {
            worktree,
            git_dir: tie.git_dir,
        };
        (!is_own.unwrap_or(false))
            .then(|| format!("{foreign}: what git keeps there is neither captured nor restored; a person takes it for its own with the option `--accept-repository` of `init`"))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "the files of a project")]

    use std::fs;

    use super::*;

    #[test]
    fn fe_05_only_the_repository_that_was_there_first_is_the_workspaces() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (data, root) = (place.join("data"), place.join("tree"));
        for name in ["tree", "one", "other"] {
            fs::create_dir(place.join(name)).unwrap();
        }
        let tie = |name: &str, bond| Tie {
            git_dir: place.join(name),
            common_dir: place.join(name),
            bond,
        };
        let ask = |tie: &Tie, caller| belongs(&data, &root, Some(tie), caller).unwrap();
        let (one, other) = (tie("one", Bond::OneSided), tie("other", Bond::Mutual));
        // An agent is no witness, and a person is.
        assert!(!ask(&one, Caller::Agent));
        assert!(ask(&one, Caller::Person) && ask(&one, Caller::Agent));
        // Another one is not the first, whoever it names.
        assert!(!ask(&other, Caller::Person) && !ask(&other, Caller::Agent));
        assert!(ask(&tie("tree", Bond::Inside), Caller::Agent));
        // Another directory in the same place begins anew, but not by one side's word alone.
        fs::rename(&root, place.join("moved")).unwrap();
        fs::create_dir(&root).unwrap();
        assert!(!ask(&one, Caller::Person) || mark(&root).unwrap().ends_with(" -"));
        let fresh = place.join("fresh");
        fs::create_dir(&fresh).unwrap();
        assert!(belongs(&data, &fresh, Some(&other), Caller::Agent).unwrap());
        assert!(belongs(&data, &fresh, None, Caller::Agent).unwrap());
        assert!(!belongs(&data, &fresh, Some(&one), Caller::Person).unwrap());
    }
}
