//! Which program a name means, and whether only the system's owner can change it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use safepoint_authority::{Executable, Program, Programs};

use super::{digest_of, text};
use crate::ControlError;

/// Where systems keep the programs that come with them. Some lie beside what they need, and
/// only a link to them is where programs are looked for.
const SYSTEM: [&str; 13] = [
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/local/share",
    "/nix/store",
];

/// Finds programs as a shell would.
pub(crate) struct Search {
    directories: Vec<PathBuf>,
}

impl Search {
    /// A search along the `PATH` among these variables.
    pub(crate) fn new(variables: &[(OsString, OsString)]) -> Self {
        let path = variables.iter().find(|(name, _)| name == "PATH");
        let directories = path.map(|(_, value)| std::env::split_paths(value).collect());
        Self {
            directories: directories.unwrap_or_default(),
        }
    }

    /// The file that `name` means when it is started in `directory`; links are not resolved.
    pub(crate) fn file(&self, name: &str, directory: &Path) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(directory.join(name)).filter(|path| is_program(path));
        }
        self.directories
            .iter()
            // An empty or relative entry means the working directory.
            .map(|entry| directory.join(entry).join(name))
            .find(|path| is_program(path))
    }
}

impl Programs for Search {
    fn find(&self, name: &str, directory: &Path) -> Program {
        let Some(found) = self.file(name, directory) else {
            return Program::Missing;
        };
        match std::fs::canonicalize(&found) {
            Ok(path) if is_of_the_system(&path) => Program::System(path),
            Ok(path) => Program::Other(path),
            Err(_) => Program::Missing,
        }
    }
}

fn is_program(path: &Path) -> bool {
    let metadata = std::fs::metadata(path);
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// Whether it lies where only the system's owner writes.
fn is_of_the_system(path: &Path) -> bool {
    let guarded = |path: &Path| {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|it| it.uid() == 0 && it.permissions().mode() & 0o022 == 0)
    };
    is_place_of_the_system(path) && guarded(path) && path.parent().is_some_and(guarded)
}

fn is_place_of_the_system(path: &Path) -> bool {
    SYSTEM.iter().any(|place| path.starts_with(place))
}

/// A program, held open: what was seen is what runs.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What it is.
    pub(crate) executable: Executable,
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// The path that it is started by: as it was called, or as it was found. It may be a link,
    /// and some programs do what its name says.
    pub(crate) called: PathBuf,
    /// The file itself.
    pub(crate) file: File,
    /// Whether it is a script, which its interpreter opens again by name.
    pub(crate) is_script: bool,
}

/// Opens the program that `name` means, and says what it is.
pub(crate) fn open_program(
    search: &Search,
    name: &str,
    directory: &Path,
) -> Result<Opened, ControlError> {
    let missing = |error| ControlError::Start {
        program: name.to_owned(),
        error,
    };
    let found = search.file(name, directory).ok_or_else(|| {
        let kind = std::io::ErrorKind::NotFound;
        missing(std::io::Error::new(kind, "there is no such program"))
    })?;
    let path = std::fs::canonicalize(&found).map_err(missing)?;
    let mut file = File::open(&path).map_err(missing)?;
    let mut start = [0; 2];
    let is_script = file.read_exact(&mut start).is_ok() && start == *b"#!";
    file.rewind().map_err(missing)?;
    let digest = digest_of(&mut file).map_err(missing)?;
    Ok(Opened {
        executable: Executable {
            path: text(&path)?,
            digest,
        },
        path,
        // A script is told this name, and expects the one that was typed.
        called: match name.contains('/') {
            true => PathBuf::from(name),
            false => found,
        },
        file,
        is_script,
    })
}

impl Opened {
    /// Whether what it is called by still leads to the file that is held.
    pub(crate) fn is_where_it_was(&self, directory: &Path) -> std::io::Result<bool> {
        let called = directory.join(&self.called);
        let (now, held) = (std::fs::metadata(&called)?, self.file.metadata()?);
        let same = (now.dev(), now.ino()) == (held.dev(), held.ino());
        Ok(same && std::fs::canonicalize(&called)? == self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_04_programs_of_the_system_lie_where_their_links_lead() {
        for path in [
            "/usr/bin/git",
            "/usr/lib/postgresql/15/bin/psql",
            "/usr/share/postgresql-common/pg_wrapper",
            "/usr/local/lib/node_modules/npm/bin/npm-cli.js",
        ] {
            assert!(is_place_of_the_system(Path::new(path)), "{path}");
        }
        for path in ["/home/sam/bin/git", "/usr/shared/x", "/tmp/usr/bin/x"] {
            assert!(!is_place_of_the_system(Path::new(path)), "{path}");
        }
    }
}
