//! Directories for work that is done apart: made from a user's directory, and removed again.
//!
//! Each holds what the user sees at that moment, also what is not committed; secrets,
//! caches, what git ignores and the git state of repositories inside it stay where they are. In a repository it is a work tree of
//! its own, without a branch; elsewhere it is a copy. They lie below our own data, never
//! in a directory of the user's. One that nobody knows of is what a crash left.

use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use safepoint_store::durable::{self, Access};
use safepoint_store::fault;

use crate::checkpoint::Wanted;
use crate::git::Repository;
use crate::identity::{IDENTITY, is_link};
use crate::left_behind::LeftBehind;
use crate::lock::{self, Hold};
use crate::path::{self, TreePath};
use crate::restore::{Plan, automatic_expiry, put_new_files};
use crate::scan::Progress;
use crate::scope::Scope;
use crate::snapshot::{Note, Origin, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change};
use crate::{ContentId, StateError};

/// How a directory was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// A work tree of the repository that it was made from.
    Worktree,
    /// A copy.
    Copy,
}

/// A directory that was made. Whoever holds this keeps it from being taken for a leftover.
#[derive(Debug)]
pub struct Isolated {
    /// The directory, with the rules of the one it was made from.
    pub workspace: Workspace,
    /// How it was made.
    pub how: Apart,
    /// What was in it when it was made: to be kept by whoever tells the store of it.
    pub base: Snapshot,
    /// What is not in it of the one that it was made from, but for what git ignores.
    pub left_out: Vec<Note>,
    _held: Held,
}

/// Whoever has it works with the directory of one name, alone.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "it lets go when it is dropped")] File);

/// The file beside a directory that names where it was made from.
const ORIGIN: &str = "origin";

impl State {
    /// Makes a directory called `name` from what is in `origin` now.
    pub fn isolate(
        &self,
        origin: &Workspace,
        name: &str,
        progress: &Progress,
    ) -> Result<Isolated, StateError> {
        let held = self.hold_isolated(name)?.ok_or_else(|| StateError::Busy {
            what: format!("`{name}`"),
        })?;
        let place = self.isolated_directory(name)?;
        if place.symlink_metadata().is_ok() {
            let why = format!("there is a directory for `{name}` already");
            return Err(StateError::Unsupported(why));
        }
        let made = self.isolate_in(origin, name, &place, progress);
        let (workspace, how, base, left_out) = match made {
            Ok(made) => made,
            Err(error) => {
                // What is left of it after this is found by whoever clears up.
                let _ = self.remove_place(&place);
                return Err(error);
            }
        };
        Ok(Isolated {
            workspace,
            how,
            base,
            left_out,
            _held: held,
        })
    }

    fn isolate_in(
        &self,
        origin: &Workspace,
        name: &str,
        place: &Path,
        progress: &Progress,
    ) -> Result<(Workspace, Apart, Snapshot, Vec<Note>), StateError> {
        durable::create_directory(place)?;
        let from = origin.root.as_os_str().as_bytes();
        durable::write(&place.join(ORIGIN), from, Access::Private)?;
        fault::point("isolate.begun");
        let project = origin.root.file_name().unwrap_or("files".as_ref());
        // The names of our own notes are not to be had.
        let root = match project == ORIGIN || project == IDENTITY {
            true => place.join("files"),
            false => place.join(project),
        };
        let repository = self.repository(origin);
        let worktree = match &repository {
            Some(repository) => self.add_worktree(repository, &root)?,
            None => false,
        };
        durable::create_directory(&root)?;
        self.identify(origin, place, &root)?;
        fault::point("isolate.made");
        let ignored = match (&repository, worktree) {
            (Some(repository), true) => self.ignored(repository)?,
            _ => Vec::new(),
        };
        let left_behind = self.fill(origin, &root, ignored, progress)?;
        if worktree {
            self.check_out_omitted(&root, &left_behind.omitted())?;
        }
        let left_out = left_behind.missing(&root);
        fault::point("isolate.filled");
        let workspace = Workspace {
            root: std::fs::canonicalize(&root)
                .map_err(|error| StateError::file("find", &root, error))?,
            ..origin.clone()
        };
        let wanted = Wanted {
            scope: &Scope::everything(),
            parts: Vec::new(),
            reason: Some(format!("where the work of {name} begins")),
            kind: None,
            expiry: automatic_expiry(self.now()),
            origin: Origin::Automatic,
            seal_to: &[],
        };
        let base = self.checkpoint(&workspace, &wanted, progress)?.snapshot;
        fault::point("isolate.recorded");
        let how = if worktree {
            Apart::Worktree
        } else {
            Apart::Copy
        };
        Ok((workspace, how, base, left_out))
    }

    /// Makes a work tree without files and without a branch. False when the repository
    /// has no commit yet that one could stand on.
    fn add_worktree(&self, repository: &Repository, root: &Path) -> Result<bool, StateError> {
        let (Some(git), Some(commit), Some(path)) =
            (&self.around.git, repository.head().commit(), root.to_str())
        else {
            return Ok(false);
        };
        // Locked: nobody prunes it because our data is not to be seen for a while.
        let add = [
            "worktree",
            "add",
            "--no-checkout",
            "--detach",
            "--lock",
            path,
            commit,
        ];
        let places: Vec<&Path> = root.parent().into_iter().collect();
        repository.change_with(git, &places, &add, b"")?;
        if let Some(own) = self.repository_at(root)? {
            // The index, which git fills when it checks files out. No file is touched.
            own.change(git, &["read-tree", commit], b"")?;
        }
        Ok(true)
    }

    /// What git ignores there.
    fn ignored(&self, repository: &Repository) -> Result<Vec<TreePath>, StateError> {
        let Some(git) = &self.around.git else {
            return Ok(Vec::new());
        };
        let list = [
            "ls-files",
            "--others",
            "--ignored",
            "--exclude-standard",
            "--directory",
            "-z",
        ];
        let found = repository.run(git, &list, b"")?;
        let paths = found
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        Ok(paths
            .map(|path| path.strip_suffix(b"/").unwrap_or(path).to_vec())
            .collect())
    }

    /// Puts what is in `origin` into the new directory, but for `without`. Says what else was
    /// not put there.
    fn fill(
        &self,
        origin: &Workspace,
        root: &Path,
        without: Vec<TreePath>,
        progress: &Progress,
    ) -> Result<LeftBehind, StateError> {
        let _held = self.hold(&origin.root, Hold::Shared)?;
        // Open until all is written: nothing that was stored for it is collected meanwhile.
        let objects = self.objects()?;
        let (capture, _) = self.look_and_keep(origin, &objects, progress)?;
        let reader = objects.reader();
        let writer = objects.writer();
        let files = tree::edit(
            &reader,
            Some(&capture.files),
            without.into_iter().map(|path| (path, None)),
            &mut |id, bytes| writer.add_tree(id, bytes),
        )?;
        writer.finish()?;
        let reader = objects.reader();
        let mut changes = tree::changes(&reader, None, Some(&files), &Scope::everything())?;
        let mut pointers = Vec::new();
        changes.retain(
            |change: &Change| match crate::git_state::inside(&change.path) {
                None => true,
                Some(inside) => {
                    pointers.extend(inside.is_empty().then(|| change.path.clone()));
                    false
                }
            },
        );
        let plan = Plan::new(&capture, &[], changes, Vec::new());
        let _names = self.hold_names(root)?;
        put_new_files(root, &origin.root, &plan, &files, &reader)?;
        Ok(LeftBehind::of(&capture, pointers))
    }

    /// Takes the directory called `name` for the caller alone; `None` when somebody has it.
    pub fn hold_isolated(&self, name: &str) -> Result<Option<Held>, StateError> {
        let path = self.lock_path(&self.isolated_directory(name)?)?;
        Ok(lock::try_take(&path, Hold::Alone)?.map(Held))
    }

    /// Removes the directory called `name`, and what git knows of it. What is recorded stays.
    pub fn remove_isolated(&self, name: &str) -> Result<(), StateError> {
        let busy = || StateError::Busy {
            what: format!("the directory of `{name}`"),
        };
        let _held = self.hold_isolated(name)?.ok_or_else(busy)?;
        self.remove_place(&self.isolated_directory(name)?)
    }

    /// Removes directories of which `is_known` knows nothing: somebody was cut off before
    /// the store knew of them. Says which.
    pub fn clear_isolated<E: From<StateError>>(
        &self,
        is_known: &mut dyn FnMut(&str) -> Result<bool, E>,
    ) -> Result<Vec<PathBuf>, E> {
        let mut removed = Vec::new();
        let Ok(listing) = std::fs::read_dir(self.isolated_directories()) else {
            return Ok(removed);
        };
        for entry in listing.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_known(name)? {
                continue;
            }
            // Whoever is about to tell the store of it has it.
            let Some(_held) = self.hold_isolated(name)? else {
                continue;
            };
            if !is_known(name)? {
                self.remove_place(&entry.path())?;
                removed.push(entry.path());
            }
        }
        Ok(removed)
    }

    fn isolated_directories(&self) -> PathBuf {
        // As with objects: what one store knows of, another would take for leftovers.
        let trail = ContentId::of(self.trail.key().to_string().as_bytes()).to_string();
        let trail: String = trail.chars().take(16).collect();
        self.around.data.join("workspaces").join(trail)
    }

    pub(crate) fn isolated_directory(&self, name: &str) -> Result<PathBuf, StateError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            let why = format!("`{name}` cannot be the name of a directory");
            return Err(StateError::Unsupported(why));
        }
        Ok(self.isolated_directories().join(name))
    }

    fn remove_place(&self, place: &Path) -> Result<(), StateError> {
        if is_link(place) {
            // Somebody put it there: it goes, and what it leads to is nothing of ours.
            return Ok(durable::remove(place)?);
        }
        let origin = std::fs::read(place.join(ORIGIN)).ok();
        let roots: Vec<PathBuf> = std::fs::read_dir(place)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| !path.ends_with(ORIGIN) && !path.ends_with(IDENTITY))
            .collect();
        // The repository may be gone, or know nothing of it: then there is nothing to do.
        let repository = match (&origin, &self.around.git) {
            (Some(origin), Some(_)) => self.repository_at(path::as_path(origin)).ok().flatten(),
            _ => None,
        };
        // Also one that somebody has deleted by hand: git knows it until it is told.
        let worktrees = match &repository {
            Some(repository) => self.keep_commits(repository, place)?,
            None => Vec::new(),
        };
        for root in &roots {
            remove_all(root)?;
        }
        if let (Some(repository), Some(git)) = (repository, &self.around.git) {
            for root in &worktrees {
                // Twice: it is locked.
                let remove = ["worktree", "remove", "--force", "--force", root];
                let _ = repository.change(git, &remove, b"");
            }
        }
        // Last: while the note is there, whoever comes next can do all this again.
        remove_all(place)
    }
}

/// Removes a directory of ours, also where somebody took its rights away.
fn remove_all(directory: &Path) -> Result<(), StateError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a directory that was made for this purpose; links are not followed"
    )]
    let remove = || match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    if remove().is_ok() {
        return Ok(());
    }
    unlock(directory);
    remove().map_err(|error| StateError::file("delete", directory, error))
}

/// Gives its owner back the right to change a directory and those in it.
fn unlock(directory: &Path) {
    let Ok(found) = directory.symlink_metadata() else {
        return;
    };
    if !found.is_dir() {
        return;
    }
    let mode = found.permissions().mode() | 0o700;
    let _ = std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        unlock(&entry.path());
    }
}
