//! Work on a database in the directory that was looked at, and in no other that its path may come
//! to mean.
//!
//! SQLite opens files by their paths, also later and beside the database. Whoever can write in the
//! workspace can exchange a directory for a link in between. So the directory is opened once,
//! without links on the way, and the work is done on a thread that the kernel (Landlock) lets write
//! beneath exactly this one. What only reads goes by the descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::{Access, Database, DatabaseError};

/// Where SQLite keeps what does not fit in memory.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// The directory of a file, opened.
#[derive(Debug)]
pub(super) struct Directory {
    opened: File,
    name: PathBuf,
}

impl Directory {
    /// That of a path without links; whatever is a link by now is an error.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = openat2(CWD, directory, flags, Mode::empty(), resolve)?;
        Ok(Self {
            opened: opened.into(),
            name: name.into(),
        })
    }

    /// The same; the first directory above it that is there, where that is missing.
    fn around(path: &Path) -> io::Result<Self> {
        match Self::of(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::around(path.parent().ok_or(error)?)
            }
            other => other,
        }
    }

    /// The file, by the descriptor.
    pub(super) fn path(&self) -> PathBuf {
        let number = self.opened.as_fd().as_raw_fd();
        Path::new(&format!("/proc/self/fd/{number}")).join(&self.name)
    }
}

/// The file of a database, without links. It must lie beneath where the database is kept to.
pub(super) fn real_path(database: &Database, path: PathBuf) -> Result<PathBuf, DatabaseError> {
    match &database.within {
        Some(root) if !path.starts_with(root) => Err(DatabaseError::Unsupported {
            address: database.address.to_string(),
            why: "it is outside the workspace".into(),
        }),
        _ => Ok(path),
    }
}

/// Does some work that writes a database, and nothing but what lies in its directory, among our own
/// data and in temporary folders.
pub(crate) fn write_beneath<T: Send>(
    path: &Path,
    access: &Access,
    work: impl FnOnce() -> Result<T, DatabaseError> + Send,
) -> Result<T, DatabaseError> {
    let failed = |error| DatabaseError::file("open", path, error);
    let directory = Directory::around(path).map_err(failed)?;
    let held = || {
        restrict_this_thread(&directory, access).map_err(failed)?;
        work()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("sqlite".to_owned());
        let thread = thread.spawn_scoped(scope, held).map_err(failed)?;
        let broken = || failed(io::Error::other("the work on the database broke off"));
        thread.join().unwrap_or_else(|_| Err(broken()))
    })
}

/// There is no way back for the thread. A kernel without Landlock holds no fence either.
fn restrict_this_thread(directory: &Directory, access: &Access) -> io::Result<()> {
    let rights = AccessFs::from_write(ABI::V3);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(rights)
        .and_then(Ruleset::create)
        .map_err(io::Error::other)?;
    rules = rules
        .add_rule(PathBeneath::new(&directory.opened, rights))
        .map_err(io::Error::other)?;
    let scratch = access.scratch.as_path();
    let data = scratch.parent().unwrap_or(scratch);
    let named = ["TMPDIR", "SQLITE_TMPDIR"];
    let named = named
        .iter()
        .filter_map(|name| access.variables.get(OsStr::new(name)));
    let temporary = TEMPORARY.iter().map(Path::new).chain(named.map(Path::new));
    for place in temporary.chain([data]) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(opened) = rustix::fs::open(place, flags, Mode::empty()) else {
            continue;
        };
        rules = rules
            .add_rule(PathBeneath::new(opened, rights))
            .map_err(io::Error::other)?;
    }
    rules.restrict_self().map_err(io::Error::other)?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    #[test]
    fn fe_01_a_directory_that_is_exchanged_for_a_link_leads_nowhere() {
        // Not where everybody may write, which the sources may lie in.
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let places = [PathBuf::from(env!("CARGO_MANIFEST_DIR"))];
        let places = places.into_iter().chain(home).chain(["/srv".into()]);
        let is_free = |place: &PathBuf| TEMPORARY.iter().any(|free| place.starts_with(free));
        let mut places = places.filter(|place| !is_free(place));
        let place = places.find_map(|place| tempfile::tempdir_in(place).ok());
        let place = place.unwrap();
        let place = place.path().canonicalize().unwrap();
        let (inside, outside) = (place.join("inside"), place.join("outside"));
        let scratch = place.join("data/scratch");
        for directory in [&inside, &outside, &scratch] {
            std::fs::create_dir_all(directory).unwrap();
        }
        let access = Access {
            variables: BTreeMap::new(),
            scratch,
            lock_timeout: Duration::from_secs(1),
        };
        let write = |path: &Path| {
            std::fs::write(path, "x").map_err(|error| DatabaseError::file("write", path, error))
        };
        let file = inside.join("a.db");
        // It was looked at, and then means another one.
        let exchanged = write_beneath(&file, &access, || {
            std::fs::write(inside.join("b"), "x").unwrap();
            write(&outside.join("a.db"))
        });
        assert!(exchanged.is_err() && !outside.join("a.db").exists());
        assert!(inside.join("b").exists());
        std::fs::rename(&inside, place.join("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        assert!(write_beneath(&file, &access, || write(&file)).is_err());
        assert!(Directory::of(&file).is_err() && !outside.join("a.db").exists());
        // Others of this process are not held.
        write(&outside.join("a.db")).unwrap();
    }
}
