//! Where the files of a repository lie, and what they say by being there.
//!
//! Reads a handful of small files and never writes.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

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

/// How a work tree and the repository that its `.git` leads to name each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// `.git` is a directory, and all of the repository.
    Inside,
    /// The repository lies elsewhere, belongs to the user, and names this work tree.
    Mutual,
    /// Only the work tree names the repository, or over a link.
    OneSided,
}

/// Where the repository of a work tree lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tie {
    pub(crate) git_dir: PathBuf,
    pub(crate) common_dir: PathBuf,
    pub(crate) bond: Bond,
}

/// Where the repository of a work tree, a path without links, lies; none where there is none.
pub(crate) fn tie(worktree: &Path) -> Option<Tie> {
    let git_dir = find_git_dir(worktree).ok()??;
    let common_dir = find_common_dir(&git_dir).ok()?;
    let bond = bond(worktree, &git_dir, &common_dir);
    Some(Tie {
        git_dir,
        common_dir,
        bond,
    })
}

/// How the two name each other. Where the repository says that its work tree is, no link is
/// followed: whoever can put one there would be taken for the work tree.
pub(super) fn bond(worktree: &Path, git_dir: &Path, common_dir: &Path) -> Bond {
    let pointer = worktree.join(".git");
    match fs::symlink_metadata(&pointer) {
        Ok(found) if found.is_dir() && git_dir == common_dir => return Bond::Inside,
        Ok(found) if found.is_file() => {}
        _ => return Bond::OneSided,
    }
    let user = rustix::process::geteuid().as_raw();
    let is_own = |directory: &Path| {
        fs::symlink_metadata(directory).is_ok_and(|it| it.is_dir() && it.uid() == user)
    };
    let named = if git_dir == common_dir {
        let settings = read_text(&git_dir.join("config")).ok().flatten();
        let named = settings.and_then(|text| config::value(&text, "core", "worktree"));
        named.map(|named| tidied(&git_dir.join(named)) == worktree)
    } else {
        let above = git_dir.parent();
        let is_linked = above.is_some_and(|it| it.file_name().is_some_and(|it| it == "worktrees"))
            && above.and_then(Path::parent) == Some(common_dir);
        let back = regular::read(&git_dir.join("gitdir"), LARGEST).ok();
        let back = back
            .filter(|_| is_linked)
            .map(|back| PathBuf::from(OsString::from_vec(back.trim_ascii_end().to_vec())));
        back.map(|back| tidied(&git_dir.join(back)) == pointer)
    };
    match named {
        Some(true) if is_own(git_dir) && is_own(common_dir) => Bond::Mutual,
        _ => Bond::OneSided,
    }
}

/// A path without `.` and `..`.
pub(crate) fn tidied(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                tidy.pop();
            }
            Component::CurDir => {}
            other => tidy.push(other),
        }
    }
    tidy
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
        let Tie {
            git_dir,
            common_dir,
            bond,
        } = tie(&worktree)?;
        let is_linked = bond == Bond::Mutual && git_dir != common_dir;
        let is_own_name = common_dir.file_name()? == ".git"
            && !common_dir.parent()?.iter().any(|name| name == ".git");
        let is_outside = !writable.iter().any(|place| {
            let place = fs::canonicalize(place);
            place.is_ok_and(|place| common_dir.starts_with(place))
        });
        (is_linked && is_own_name && is_outside).then(|| vec![common_dir])
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
