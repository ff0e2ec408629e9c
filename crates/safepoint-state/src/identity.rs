//! Whether a directory is still the one that another was made from, or that was made.
//!
//! A path says nothing: somebody may have moved a directory away and made another in its
//! place. A work tree is known by the repository that names it. For anything else the number
//! of the directory and the moment it was made at were written down. The device is not: it
//! may get another number whenever the system starts.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use safepoint_store::durable::{self, Access};

use crate::StateError;
use crate::state::{State, Workspace};

/// The file beside a directory that says which ones it is about.
pub(crate) const IDENTITY: &str = ".identity";

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
            return Ok(names(common, &place) || is_marked(&place, Whose::Repository, common));
        }
        Ok(is_marked(&place, Whose::Origin, &origin.root))
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
        match direct && is_marked(&place, Whose::Place, root) {
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

/// Whether a repository has a work tree in this place.
fn names(common: &Path, place: &Path) -> bool {
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let known = std::fs::read_dir(common.join("worktrees"));
    known.into_iter().flatten().flatten().any(|entry| {
        let text = std::fs::read(entry.path().join("gitdir")).unwrap_or_default();
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
fn mark(directory: &Path) -> Option<String> {
    let found = std::fs::metadata(directory).ok()?;
    let made = found.created().ok();
    let made = made.and_then(|made| made.duration_since(UNIX_EPOCH).ok());
    let made = made.map_or("-".to_owned(), |made| made.as_nanos().to_string());
    found.is_dir().then(|| format!("{} {made}", found.ino()))
}
