//! Whether a directory is still the one that another was made from, or that was made.
//!
//! A path says nothing: somebody may have moved a directory away and made another in its
//! place. A work tree is known by the repository that names it. For anything else the number
//! of the directory and the moment it was made at were written down. The device is not: it
//! may get another number whenever the system starts.
//!
//! A directory that was deleted and that a roll back made anew, from a checkpoint of it, counts
//! as the same. The trail says which directory each checkpoint was of, and in the place of
//! which one a roll back filled an empty one; nothing but the trail is believed for that.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use safepoint_store::durable::{self, Access};
use safepoint_store::regular;
use serde::{Deserialize, Serialize};

use crate::state::{State, Workspace};
use crate::{StateError, snapshot};

/// The file beside a directory that says which ones it is about.
pub(crate) const IDENTITY: &str = ".identity";

/// So many actions are looked through for those that restored a directory.
const MOST_ACTIONS: u32 = 10_000;

/// What restores, as journals call it; the log has it with `checkpoint.` before it.
pub(crate) const RESTORING: [&str; 3] = ["rollback", "undo", "redo"];

/// Which directory something was of, as the trail says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    /// The directory itself.
    pub(crate) root: String,
    /// The repository that lies in it.
    pub(crate) repository: Option<String>,
}

impl Marks {
    /// Those of a directory as it is now, if it is one.
    pub(crate) fn of(root: &Path) -> Option<Self> {
        let repository = root.join(".git");
        Some(Self {
            root: mark(root)?,
            repository: (!is_link(&repository)).then(|| mark(&repository)).flatten(),
        })
    }

    /// Whether both are of the same directory, or of one repository that was put into another
    /// directory.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.root == other.root || self.repository.is_some() && self.repository == other.repository
    }

    /// Whether `now` is of this directory, wherever it is. Where the file system does not know
    /// when something was made, a number alone may have been given out again.
    pub(crate) fn was_moved(&self, now: &Self) -> bool {
        let is_certain = !self.root.ends_with(" -");
        let repository = self.repository.is_some() && self.repository == now.repository;
        self.root == now.root && (is_certain || repository)
    }
}

/// Of whom something is written down.
#[derive(Clone, Copy)]
enum Whose {
    Origin,
    Repository,
    Place,
}

/// What stands in the place of a directory that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The one that was made.
    Made,
    /// Nothing.
    Gone,
    /// Something else: a link, or a directory that somebody has put there.
    Another,
}

impl Whose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::Repository => "repository",
            Self::Place => "place",
        }
    }
}

impl State {
    /// Writes down who `origin` and the directory `root`, which was made from it, are.
    pub(crate) fn identify(
        &self,
        origin: &Workspace,
        place: &Path,
        root: &Path,
    ) -> Result<(), StateError> {
        let repository = self.repository(origin);
        let common = repository.as_ref().map(|it| it.common_dir());
        let known = [
            (Whose::Origin, Some(origin.root.as_path())),
            (Whose::Repository, common),
            (Whose::Place, Some(root)),
        ];
        let mut text = String::new();
        for (whose, directory) in known {
            if let Some(mark) = directory.and_then(mark) {
                text.push_str(&format!("{} {mark}\n", whose.as_str()));
            }
        }
        let path = place.join(IDENTITY);
        Ok(durable::write(&path, text.as_bytes(), Access::Private)?)
    }

    /// Whether `origin` is the directory that the one called `name` was made from.
    pub fn is_origin(&self, name: &str, origin: &Workspace) -> Result<bool, StateError> {
        let place = self.isolated_directory(name)?;
        if let (Some(_), repository) = (written(&place, Whose::Repository), self.repository(origin))
        {
            let Some(repository) = repository else {
                return Ok(false);
            };
            let common = repository.common_dir();
            return Ok(names(common, &place)
                || is_marked(&place, Whose::Repository, common)
                || self.is_restored(&place, Whose::Origin, &origin.root, Some(common))?);
        }
        Ok(is_marked(&place, Whose::Origin, &origin.root)
            || self.is_restored(&place, Whose::Origin, &origin.root, None)?)
    }

    /// Whether we have restored `root`, and with it its repository, in the place of the
    /// directory that is written down; or in the place of one that we had so restored.
    fn is_restored(
        &self,
        place: &Path,
        whose: Whose,
        root: &Path,
        common: Option<&Path>,
    ) -> Result<bool, StateError> {
        let (Some(first), Some(now)) = (written(place, whose), Marks::of(root)) else {
            return Ok(false);
        };
        let repository = common.map(mark);
        let mut same = BTreeSet::from([first]);
        let mut found = false;
        for action in self.actions(root, MOST_ACTIONS)?.into_iter().rev() {
            let verb = action.action.strip_prefix("checkpoint.");
            if !verb.is_some_and(|verb| RESTORING.contains(&verb)) {
                continue;
            }
            let told = self
                .trail
                .store()
                .read(|sql| snapshot::find_action_said(&self.trail, sql, action.id.as_str()));
            let said = match told {
                Ok((_, said)) => said,
                Err(StateError::Tampered { .. }) => continue,
                Err(error) => return Err(error),
            };
            let (Some(restored), Some(earlier)) = (said.directory, said.in_place_of) else {
                continue;
            };
            if !same.contains(&earlier) {
                continue;
            }
            found |= restored.root == now.root
                && repository
                    .as_ref()
                    .is_none_or(|now| now.is_some() && *now == restored.repository);
            same.insert(restored.root);
        }
        Ok(found)
    }

    /// What stands where the directory called `name` was made.
    pub fn standing(&self, name: &str, root: &Path) -> Result<Standing, StateError> {
        let place = self.isolated_directory(name)?;
        let found = match root.symlink_metadata() {
            Ok(found) => found,
            Err(error) if is_absence(&error) => return Ok(Standing::Gone),
            Err(error) => return Err(StateError::file("look at", root, error)),
        };
        // A link is never what was made, wherever it leads, and nor is what lies behind one.
        let direct = found.is_dir() && !is_link(&place);
        let made = direct
            && (is_marked(&place, Whose::Place, root)
                || self.is_restored(&place, Whose::Place, root, None)?);
        match made {
            true => Ok(Standing::Made),
            false => Ok(Standing::Another),
        }
    }
}

pub(crate) fn is_link(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_symlink())
}

/// Whether nothing is there.
fn is_absence(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Longer paths are none.
const MAX_PATH_BYTES: u64 = 1 << 16;

/// Whether a repository has a work tree in this place.
fn names(common: &Path, place: &Path) -> bool {
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let known = std::fs::read_dir(common.join("worktrees"));
    known.into_iter().flatten().flatten().any(|entry| {
        let text = regular::read(&entry.path().join("gitdir"), MAX_PATH_BYTES).unwrap_or_default();
        Path::new(std::ffi::OsStr::from_bytes(text.trim_ascii_end())).starts_with(&place)
    })
}

/// What is written down of somebody.
fn written(place: &Path, whose: Whose) -> Option<String> {
    let text = std::fs::read_to_string(place.join(IDENTITY)).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(whose.as_str())?.strip_prefix(' '));
    line.map(str::to_owned)
}

/// Whether a directory is what is written down. Where nothing is, nothing is known against it.
fn is_marked(place: &Path, whose: Whose, directory: &Path) -> bool {
    let Some(written) = written(place, whose) else {
        return true;
    };
    mark(directory).is_some_and(|now| now == written)
}

/// The number of a directory, and when it was made where the file system knows that.
pub(crate) fn mark(directory: &Path) -> Option<String> {
    let found = std::fs::metadata(directory).ok()?;
    let made = found.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.map_or("-".to_owned(), |made| made.as_nanos().to_string());
    found.is_dir().then(|| format!("{} {made}", found.ino()))
}
