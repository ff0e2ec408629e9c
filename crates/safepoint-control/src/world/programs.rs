//! Which program a name means, and whether only the system's owner can change it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use safepoint_authority::{Executable, Program, Programs};

use super::{digest_of, text};
use crate::ControlError;

/// Where systems keep the programs that come with them.
const SYSTEM: [&str; 9] = [
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/lib",
    "/usr/libexec",
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
    SYSTEM.iter().any(|place| path.starts_with(place))
        && guarded(path)
        && path.parent().is_some_and(guarded)
}

/// A program, held open: what was seen is what runs.
#[derive(Debug)]
pub(crate) struct Opened {
    /// What it is.
    pub(crate) executable: Executable,
    /// Where it lies.
    pub(crate) path: PathBuf,
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
        file,
        is_script,
    })
}
