//! Where the files of a repository lie, and what they say by being there.
//!
//! Reads a handful of small files and never writes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use safepoint_store::regular;

use super::config;
use super::error::GitError;

/// The longest of the files that are read here: configurations, and names of directories.
const LARGEST: u64 = 8 << 20;

/// Where `.git` of a work tree is or points to.
pub(super) fn find_git_dir(worktree: &Path) -> Result<Option<PathBuf>, GitError> {
    let path = worktree.join(".git");
    let broken = |why: String| GitError::Broken {
        worktree: worktree.to_path_buf(),
        why,
    };
    let git_dir = match fs::metadata(&path) {
        Ok(found) if found.is_dir() => path,
        Ok(_) => {
            let content = regular::read(&path, LARGEST).map_err(unreadable(&path))?;
            let Some(target) = content.strip_prefix(b"gitdir: ") else {
                return Err(broken("its `.git` is no directory and names none".into()));
            };
            let target = PathBuf::from(OsString::from_vec(target.trim_ascii_end().to_vec()));
            fs::canonicalize(worktree.join(&target)).map_err(|error| {
                broken(format!(
                    "its `.git` points to {}: {error}",
                    target.display()
                ))
            })?
        }
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(unreadable(&path)(error)),
    };
    // Not followed: an old `HEAD` may be a symbolic link to a branch yet to be born.
    let head = fs::symlink_metadata(git_dir.join("HEAD"));
    if !head.is_ok_and(|head| head.is_file() || head.is_symlink()) {
        return Err(broken("it has no file `HEAD`".into()));
    }
    Ok(Some(git_dir))
}

pub(super) fn find_common_dir(git_dir: &Path) -> Result<PathBuf, GitError> {
    let path = git_dir.join("commondir");
    match regular::read(&path, LARGEST) {
        Ok(content) => {
            let target = OsString::from_vec(content.trim_ascii_end().to_vec());
            fs::canonicalize(git_dir.join(target)).map_err(unreadable(&path))
        }
        Err(error) if is_missing(&error) => Ok(git_dir.to_path_buf()),
        Err(error) => Err(unreadable(&path)(error)),
    }
}

/// What git has to write outside of a linked work tree: the repository that it shares, as a
/// whole. Git makes and removes names in its top directory (`packed-refs.lock`), and a rule for
/// that holds for everything below: nothing in there can be taken out of it.
///
/// The work tree may be written by whoever is to be held, and so may its file `.git`. So the
/// repository must name this work tree too, must lie outside of everything that is `writable`
/// already, and must not lie inside another git directory, where objects could pose as one.
pub fn linked_places(worktree: &Path, writable: &[PathBuf]) -> Vec<PathBuf> {
    let find = || -> Option<Vec<PathBuf>> {
        let worktree = fs::canonicalize(worktree).ok()?;
        let pointer = worktree.join(".git");
        if !fs::symlink_metadata(&pointer).ok()?.is_file() {
            return None;
        }
        let git_dir = find_git_dir(&worktree).ok()??;
        let common_dir = git_dir.parent()?.parent()?;
        let is_own_name = git_dir.parent()?.file_name()? == "worktrees"
            && common_dir.file_name()? == ".git"
            && !common_dir.parent()?.iter().any(|name| name == ".git");
        let is_common = find_common_dir(&git_dir).ok()? == common_dir;
        let back = regular::read(&git_dir.join("gitdir"), LARGEST).ok()?;
        let back = PathBuf::from(OsString::from_vec(back.trim_ascii_end().to_vec()));
        let is_named = fs::canonicalize(git_dir.join(back)).ok()? == pointer;
        let is_outside = !writable.iter().any(|place| {
            let place = fs::canonicalize(place);
            place.is_ok_and(|place| common_dir.starts_with(place))
        });
        if !(is_own_name && is_common && is_named && is_outside) {
            return None;
        }
        Some(vec![common_dir.to_owned()])
    };
    find().unwrap_or_default()
}

/// Whether the configuration `text` agrees that `worktree` is the work tree. A
/// linked work tree is one whatever the main one says of itself.
pub(super) fn is_worktree_of(
    worktree: &Path,
    git_dir: &Path,
    common_dir: &Path,
    text: &str,
) -> Result<bool, GitError> {
    let mut text = if git_dir == common_dir {
        text.to_owned()
    } else {
        String::new()
    };
    if git_dir == common_dir && config::is_on(&text, "extensions", "worktreeconfig") {
        text.push('\n');
        text.push_str(&read_text(&git_dir.join("config.worktree"))?.unwrap_or_default());
    }
    if let Some(other) = config::value(&text, "core", "worktree") {
        return Ok(fs::canonicalize(git_dir.join(other)).is_ok_and(|other| other == worktree));
    }
    Ok(!config::is_on(&text, "core", "bare"))
}

/// Whether the repository in a directory says that it has no work tree of its own.
pub(crate) fn is_bare(common_dir: &Path) -> bool {
    let text = |name: &str| read_text(&common_dir.join(name)).ok().flatten();
    let mut settings = text("config").unwrap_or_default();
    if config::is_on(&settings, "extensions", "worktreeconfig") {
        settings.push('\n');
        settings.push_str(&text("config.worktree").unwrap_or_default());
    }
    config::is_on(&settings, "core", "bare")
}

pub(super) fn in_progress(git_dir: &Path) -> Vec<&'static str> {
    let exists = |name: &str| git_dir.join(name).exists();
    let am = exists("rebase-apply/applying");
    let rebase = exists("rebase-merge") || (exists("rebase-apply") && !am);
    [
        ("merge", exists("MERGE_HEAD")),
        ("rebase", rebase),
        ("am", am),
        // A rebase picks commits too, which is nothing the user began.
        ("cherry-pick", exists("CHERRY_PICK_HEAD") && !rebase),
        ("revert", exists("REVERT_HEAD") && !rebase),
        ("bisect", exists("BISECT_LOG")),
    ]
    .into_iter()
    .filter_map(|(what, is)| is.then_some(what))
    .collect()
}

/// The text of a file; none when it is not there, or a directory is.
pub(super) fn read_text(path: &Path) -> Result<Option<String>, GitError> {
    match regular::read(path, LARGEST) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(None),
        Err(error) => Err(unreadable(path)(error)),
    }
}

pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

pub(super) fn unreadable(path: &Path) -> impl Fn(io::Error) -> GitError {
    move |source| GitError::Read {
        path: path.to_path_buf(),
        source,
    }
}
