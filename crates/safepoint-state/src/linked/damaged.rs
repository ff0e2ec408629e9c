//! A linked work tree whose own git directory was removed or overwritten, so that git rejects it.
//!
//! The repository still has the objects and the branches. What a checkpoint holds of the rest is
//! put back into a directory that is made anew, where the file `.git` of the work tree points.
//! Nothing is written into the directory of another work tree.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use safepoint_store::durable::{self, Access};
use safepoint_store::regular;

use super::{LinkedGit, MAX_INDEX_BYTES, files, shared};
use crate::git::{Git, Repository};
use crate::objects::Writer;
use crate::{ContentId, StateError};

/// The longest of the small files that are read here.
const MAX_TEXT_BYTES: u64 = 64 << 10;

/// What is said where there is no repository to put anything into.
pub(super) const GONE: &str = "its repository is gone";
/// What is said where another work tree has come to that place.
pub(super) const TAKEN: &str = "another work tree has its place in the repository";

/// What is said where the work tree names another repository than it had.
pub(super) const FOREIGN: &str = "it names another repository than it had when it was first seen";

/// Where the git directory of a linked work tree lies, or lay.
#[derive(Debug)]
pub(super) struct OwnDirectory {
    pointer: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let text = regular::read(path, MAX_TEXT_BYTES).ok()?;
    Some(text.trim_ascii_end().to_vec())
}

fn is_plain_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_dir())
}

impl OwnDirectory {
    /// Of the work tree, where the repository is there. Otherwise why not.
    pub(super) fn of(root: &Path) -> Result<Self, &'static str> {
        let pointer = root.join(".git");
        let text = read(&pointer).ok_or(GONE)?;
        let target = text.strip_prefix(b"gitdir: ").ok_or(GONE)?;
        let named = root.join(PathBuf::from(OsString::from_vec(target.to_vec())));
        let name = named.file_name().ok_or(GONE)?;
        let place = named.parent().ok_or(GONE)?;
        if place.file_name().is_none_or(|it| it != "worktrees") {
            return Err(GONE);
        }
        let common_dir = place.parent().and_then(|it| std::fs::canonicalize(it).ok());
        let common_dir = common_dir.ok_or(GONE)?;
        if !common_dir.join("objects").is_dir() || !common_dir.join("HEAD").is_file() {
            return Err(GONE);
        }
        let worktrees = common_dir.join("worktrees");
        let git_dir = worktrees.join(name);
        for place in [&worktrees, &git_dir] {
            if place.symlink_metadata().is_ok() && !is_plain_directory(place) {
                return Err("something else is in the place of its git directory");
            }
        }
        let found = Self {
            pointer,
            git_dir,
            common_dir,
        };
        match found.is_of_another() {
            true => Err(TAKEN),
            false => Ok(found),
        }
    }

    /// The repository that it is part of.
    pub(super) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Whether the directory says that it belongs to another work tree that is there.
    fn is_of_another(&self) -> bool {
        let Some(back) = read(&self.git_dir.join("gitdir")) else {
            return false;
        };
        let back = self.git_dir.join(PathBuf::from(OsString::from_vec(back)));
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        real(&back).is_some_and(|back| real(&self.pointer) != Some(back))
    }

    /// The repository, as the main work tree has it.
    fn main(&self, git: &Git) -> Option<Repository> {
        let worktree = self.common_dir.parent()?;
        let found = Repository::open(git, worktree).ok().flatten()?;
        (found.common_dir() == self.common_dir).then_some(found)
    }

    /// What there is of the git state: neither a branch nor a commit.
    pub(super) fn capture(&self, git: &Git, writer: &Writer<'_>) -> Result<LinkedGit, StateError> {
        let path = self.git_dir.join("index");
        let index = match regular::read(&path, MAX_INDEX_BYTES) {
            Ok(bytes) => {
                let id = ContentId::of(&bytes);
                writer.add(id, bytes)?;
                Some(id)
            }
            Err(_) => None,
        };
        let own = files::capture(files::of_link(&self.git_dir)?, writer)?;
        let shared = match self.main(git) {
            Some(main) => shared::capture(git, &main, writer)?,
            None => None,
        };
        Ok(LinkedGit {
            branch: None,
            commit: None,
            index,
            own: Some(own),
            shared,
        })
    }

    /// Makes of the directory what git accepts, with this `HEAD`.
    pub(super) fn mend(&self, wanted: &LinkedGit) -> Result<(), StateError> {
        durable::create_directory(&self.git_dir)?;
        let write = |name: &str, text: &[u8]| {
            let path = self.git_dir.join(name);
            durable::write(&path, &[text, b"\n"].concat(), Access::Shared)
        };
        let leads_to = |name: &str, wanted: &Path| {
            let text = read(&self.git_dir.join(name));
            let path = text.map(|text| self.git_dir.join(PathBuf::from(OsString::from_vec(text))));
            path.and_then(|path| std::fs::canonicalize(path).ok())
                == std::fs::canonicalize(wanted).ok()
        };
        if !leads_to("commondir", &self.common_dir) {
            write("commondir", b"../..")?;
        }
        if !leads_to("gitdir", &self.pointer) {
            write("gitdir", self.pointer.as_os_str().as_bytes())?;
        }
        let used = shared::used_beside(&self.common_dir, &self.git_dir);
        let head = match (&wanted.branch, &wanted.commit) {
            (Some(branch), commit) if commit.is_none() || !used.contains(branch) => {
                format!("ref: refs/heads/{branch}")
            }
            (_, Some(commit)) => commit.clone(),
            (_, None) => return Ok(()),
        };
        Ok(write("HEAD", head.as_bytes())?)
    }
}
