//! Names that nobody behind the fence writes, although they lie where it is writable: what other
//! programs outside take as orders, such as the settings of an agent's client.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many files below a guarded name are compared with one that has several names.
const MAX_COMPARED: usize = 1000;

/// Names that are not written, moved or removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedNames {
    /// They, with all that is beneath them (absolute).
    pub names: Vec<PathBuf>,
    /// Of those, what may be written after all, with all that is beneath it.
    pub released: Vec<PathBuf>,
}

impl GuardedNames {
    /// The same, with what links lead to by now.
    pub(super) fn resolved(mut self) -> Self {
        for names in [&mut self.names, &mut self.released] {
            let real: Vec<PathBuf> = names.iter().flat_map(|name| real_names(name)).collect();
            names.extend(real);
        }
        self
    }

    /// Whether a path, as it really is, may not be written.
    pub(super) fn include(&self, path: &Path) -> bool {
        if self.names.is_empty() || self.is_released(path) {
            return false;
        }
        self.names.iter().any(|name| path.starts_with(name)) || self.is_another_name(path)
    }

    /// Whether nothing may be put in the place of a path, since a guarded name lies beneath it.
    pub(super) fn lie_beneath(&self, path: &Path) -> bool {
        let is_beneath = |name: &PathBuf| name.starts_with(path) && !self.is_released(name);
        self.names.iter().any(is_beneath)
    }

    fn is_released(&self, path: &Path) -> bool {
        self.released.iter().any(|name| path.starts_with(name))
    }

    /// Whether it is a file that has one of these names, too.
    fn is_another_name(&self, path: &Path) -> bool {
        let Ok(found) = path.symlink_metadata() else {
            return false;
        };
        if !found.is_file() || found.nlink() < 2 {
            return false;
        }
        let is_same = |other: &Metadata| (other.dev(), other.ino()) == (found.dev(), found.ino());
        let mut left: Vec<PathBuf> = self.names.clone();
        let mut compared = 0;
        while let Some(name) = left.pop() {
            compared += 1;
            match name.symlink_metadata() {
                // Nobody can look at all of them.
                _ if compared > MAX_COMPARED => return true,
                Ok(it) if it.is_dir() => {
                    let below = std::fs::read_dir(&name).into_iter().flatten().flatten();
                    left.extend(below.map(|entry| entry.path()));
                }
                Ok(it) if is_same(&it) && !self.is_released(&name) => return true,
                _ => {}
            }
        }
        false
    }
}

/// Where a name leads, over a link in its place and over links on the way to it.
fn real_names(name: &Path) -> Vec<PathBuf> {
    let directory = name.parent().and_then(|it| std::fs::canonicalize(it).ok());
    let placed = directory
        .zip(name.file_name())
        .map(|(it, name)| it.join(name));
    let real = std::fs::canonicalize(name).ok();
    let mut names: Vec<PathBuf> = placed.into_iter().chain(real).collect();
    names.retain(|it| it != name);
    names
}
