//! The git state of a linked work tree: `HEAD`, the branch that is checked out, and the index.
//!
//! Git keeps them beside the main work tree, outside of the workspace. Nothing else there is
//! touched: no other branch, no other work tree, no setting.

use safepoint_store::durable::{self, Access};
use serde::{Deserialize, Serialize};

use crate::git::{Git, Head, Repository};
use crate::objects::Reader;
use crate::restore::Goal;
use crate::scope::Scope;
use crate::state::{State, Workspace};
use crate::tree::{Change, Entry, Moment, Node};
use crate::{ContentId, StateError};

/// The longest index that is captured.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// The git state of a linked work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkedGit {
    /// The branch that is checked out, without `refs/heads/`; none when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit that is checked out; none before the first.
    pub commit: Option<String>,
    /// The content of the index; none when there is no index.
    pub index: Option<ContentId>,
}

impl LinkedGit {
    /// Whether the same commit of the same branch is checked out.
    pub(crate) fn has_same_head(&self, other: &Self) -> bool {
        (&self.branch, &self.commit) == (&other.branch, &other.commit)
    }

    fn head(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("no commit");
        match &self.branch {
            Some(branch) => format!("`{branch}` at {commit}"),
            None => commit.to_owned(),
        }
    }
}

/// What the move of a linked work tree's `HEAD` looks like in a list of changes.
pub(crate) fn head_change(before: Option<&LinkedGit>, after: Option<&LinkedGit>) -> Option<Change> {
    let (before, after) = (before?, after?);
    if before.has_same_head(after) {
        return None;
    }
    let entry = |state: &LinkedGit| {
        let text = state.head();
        Some(Entry {
            name: b"HEAD".to_vec(),
            mode: 0o644,
            owner: 0,
            group: 0,
            modified: Moment::default(),
            attributes: Vec::new(),
            node: Node::File {
                size: text.len() as u64,
                content: ContentId::of(text.as_bytes()),
                sparse: false,
                link: None,
            },
        })
    };
    Some(Change {
        path: b".git/HEAD".to_vec(),
        from: entry(before),
        to: entry(after),
        relinked: false,
    })
}

impl State {
    /// The repository of a linked work tree; none where the repository lies in the workspace.
    fn linked_repository(&self, workspace: &Workspace) -> Option<(&Git, Repository)> {
        let git = self.around.git.as_ref()?;
        let repository = self.repository(workspace)?;
        let is_linked = repository.git_dir() != repository.common_dir()
            && !repository.git_dir().starts_with(&workspace.root);
        is_linked.then_some((git, repository))
    }

    /// Captures the git state of a linked work tree. The caller has the object store open, so
    /// that nobody collects what is stored here.
    pub(crate) fn capture_linked(
        &self,
        workspace: &Workspace,
        scope: &Scope,
    ) -> Result<Option<LinkedGit>, StateError> {
        if !scope.is_everything() {
            return Ok(None);
        }
        let Some((_, repository)) = self.linked_repository(workspace) else {
            return Ok(None);
        };
        let path = repository.git_dir().join("index");
        let index = match safepoint_store::regular::read(&path, MAX_INDEX_BYTES) {
            Ok(bytes) => {
                let id = ContentId::of(&bytes);
                let objects = self.objects()?;
                let writer = objects.writer();
                writer.add(id, bytes)?;
                writer.finish()?;
                Some(id)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(StateError::file("read", &path, error)),
        };
        let (branch, commit) = match repository.head() {
            Head::Branch { name, commit } => (Some(name.clone()), commit.clone()),
            Head::Detached { commit } => (None, Some(commit.clone())),
        };
        Ok(Some(LinkedGit {
            branch,
            commit,
            index,
        }))
    }

    /// What a going back makes of a linked work tree's git state, and why not where it leaves it
    /// as it is.
    pub(crate) fn linked_after(
        &self,
        goal: &Goal<'_>,
        scope: &Scope,
        now: Option<&LinkedGit>,
    ) -> Result<(Option<LinkedGit>, Option<String>), StateError> {
        let around = match goal {
            Goal::Without { action, .. } => Some((
                self.find(action.before.as_str())?.record.linked,
                self.find(action.after.as_str())?.record.linked,
            )),
            Goal::Snapshot { .. } | Goal::Brought(_) => None,
        };
        let keep = || now.cloned();
        Ok(match goal {
            Goal::Snapshot { snapshot, .. } if scope.is_everything() => {
                match (&snapshot.record.linked, now) {
                    (None, Some(_)) => {
                        let why = "the checkpoint has no git state of this linked work tree";
                        (keep(), Some(why.to_owned()))
                    }
                    (wanted, Some(_)) => (wanted.clone(), None),
                    (_, None) => (None, None),
                }
            }
            Goal::Without { .. } => match (around, now) {
                (Some((Some(before), Some(after))), Some(now)) if !before.has_same_head(&after) => {
                    match now.has_same_head(&after) {
                        true => (Some(before), None),
                        false if now.has_same_head(&before) => (keep(), None),
                        false => {
                            let why = "the repository has moved on since";
                            (keep(), Some(why.to_owned()))
                        }
                    }
                }
                (Some((Some(before), Some(after))), Some(now))
                    if before.index != after.index && now == &after =>
                {
                    (Some(before), None)
                }
                _ => (keep(), None),
            },
            Goal::Snapshot { .. } | Goal::Brought(_) => (keep(), None),
        })
    }

    /// Puts the git state of a linked work tree back, and says what could not be.
    pub(crate) fn put_linked(
        &self,
        workspace: &Workspace,
        wanted: Option<&LinkedGit>,
        reader: &Reader<'_>,
    ) -> Result<Option<String>, StateError> {
        let Some(wanted) = wanted else {
            return Ok(None);
        };
        let everything = Scope::everything();
        let Some((git, repository)) = self.linked_repository(workspace) else {
            return Ok(Some("its repository is gone".to_owned()));
        };
        let now = self.capture_linked(workspace, &everything)?;
        if now.as_ref() == Some(wanted) {
            return Ok(None);
        }
        if repository.git_dir().join("index.lock").exists() {
            return Ok(Some("git is at work there (`index.lock`)".to_owned()));
        }
        if let Some(branch) = &wanted.branch
            && is_checked_out_elsewhere(&repository, branch)
        {
            return Ok(Some(format!(
                "another work tree has the branch `{branch}` checked out"
            )));
        }
        match put_head(git, &repository, wanted) {
            Ok(()) => {}
            Err(error) => return Ok(Some(error.to_string())),
        }
        let index = repository.git_dir().join("index");
        match wanted.index {
            Some(content) => durable::write(&index, &reader.read(content)?, Access::Shared)?,
            None => durable::remove(&index)?,
        }
        let found = self.capture_linked(workspace, &everything)?;
        Ok((found.as_ref() != Some(wanted))
            .then(|| "it is not as it should be after it was put back".to_owned()))
    }
}

/// Moves the branch and `HEAD`, as git itself does it.
fn put_head(
    git: &Git,
    repository: &Repository,
    wanted: &LinkedGit,
) -> Result<(), crate::git::GitError> {
    let reason = "safepoint: going back";
    match (&wanted.branch, &wanted.commit) {
        (Some(branch), commit) => {
            let name = format!("refs/heads/{branch}");
            match commit {
                Some(commit) => {
                    repository.run(git, &["update-ref", "-m", reason, &name, commit], b"")?;
                }
                None => {
                    repository.run(git, &["update-ref", "-d", &name], b"")?;
                }
            }
            repository.run(git, &["symbolic-ref", "-m", reason, "HEAD", &name], b"")?;
        }
        (None, Some(commit)) => {
            let detach = ["update-ref", "--no-deref", "-m", reason, "HEAD", commit];
            repository.run(git, &detach, b"")?;
        }
        (None, None) => {}
    }
    Ok(())
}

/// Whether another work tree of the repository, the main one too, works on a branch.
fn is_checked_out_elsewhere(repository: &Repository, branch: &str) -> bool {
    let common = repository.common_dir();
    let linked = std::fs::read_dir(common.join("worktrees"));
    let others = linked.into_iter().flatten().flatten();
    let directories = others.map(|entry| entry.path());
    directories
        .chain([common.to_owned()])
        .filter(|directory| directory != repository.git_dir())
        .any(|directory| {
            let head = safepoint_store::regular::read(&directory.join("HEAD"), 4096);
            let wanted = format!("ref: refs/heads/{branch}");
            head.is_ok_and(|head| String::from_utf8_lossy(&head).trim() == wanted)
        })
}
