//! Where a supervised tree may write, and what a path of it really names.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, AtFlags, CWD, accessat, readlinkat};
use rustix::io::Errno;

use super::caller::{Caller, Follow, Place, open_plain};

/// Links at the end of a path that are followed one after another.
const MAX_LINKS: usize = 40;

/// More directories are not remembered at once.
const MAX_DIRECTORIES: usize = 4096;

/// Places where nothing is kept: what is opened there for writing is of no interest.
const NOT_KEPT: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The places that may be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    /// Without links in them.
    pub(crate) writable: Vec<PathBuf>,
    /// Taken out of them again.
    pub(crate) hidden: Vec<PathBuf>,
}

impl Places {
    /// Whether Landlock lets this be written. The path has no links in it.
    pub(super) fn include(&self, path: &Path) -> bool {
        let beneath = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        beneath(&self.writable) && !beneath(&self.hidden)
    }

    /// Whether a path is hidden, or something hidden goes where it goes.
    pub(super) fn hide(&self, path: &Path) -> bool {
        let mut hidden = self.hidden.iter();
        hidden.any(|place| path.starts_with(place) || place.starts_with(path))
    }
}

/// Whether what is written there is a file at all.
pub(super) fn is_kept(path: &Path) -> bool {
    !NOT_KEPT.iter().any(|place| path.starts_with(place)) || path.starts_with("/dev/shm")
}

/// Whether this user could write there without a fence: the file, or new names beside it.
pub(super) fn is_own(path: &Path) -> bool {
    let may_write = |path: &Path| accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    match may_write(path) {
        Ok(()) => true,
        Err(Errno::NOENT) => path
            .parent()
            .is_some_and(|parent| may_write(parent).is_ok()),
        Err(_) => false,
    }
}

/// Directories whose real paths are known. Only calls that move, remove or link something can
/// change them: the list is emptied then.
#[derive(Debug, Default)]
pub(super) struct DirectoryCache(Mutex<HashMap<PathBuf, PathBuf>>);

impl DirectoryCache {
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn real(&self, directory: PathBuf) -> Result<PathBuf, Errno> {
        if let Some(real) = self.lock().get(&directory) {
            return Ok(real.clone());
        }
        let real = path_of(&open_plain(CWD, &directory, Follow::Yes)?)?;
        let mut known = self.lock();
        if known.len() == MAX_DIRECTORIES {
            known.clear();
        }
        known.insert(directory, real.clone());
        Ok(real)
    }
}

/// The absolute path, without links, of what a call names. What is not there yet is named by its
/// directory.
pub(super) fn real_path(
    caller: &Caller<'_>,
    known: &DirectoryCache,
    directory: i32,
    path: &OsStr,
    follow: Follow,
) -> Result<PathBuf, Errno> {
    let mut place = caller.locate(directory, path);
    for _ in 0..MAX_LINKS {
        let Some(name) = last_name(&place.rest) else {
            return path_of(&place.open(Follow::Yes)?);
        };
        let real = parent(&place, &name, known)?.join(&name);
        if follow == Follow::No {
            return Ok(real);
        }
        match readlinkat(CWD, &real, Vec::new()) {
            // Links of the kernel, such as those of descriptors, lead where no path does.
            Ok(_) if real.starts_with("/proc") => return Err(Errno::LOOP),
            Ok(target) => {
                let target = OsString::from_vec(target.into_bytes());
                place = match target.as_bytes().starts_with(b"/") {
                    true => caller.locate(libc::AT_FDCWD, &target),
                    false => Place {
                        start: None,
                        rest: real.with_file_name(target).into(),
                    },
                };
            }
            Err(Errno::INVAL | Errno::NOENT) => return Ok(real),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP)
}

/// The real path of the directory that a place lies in.
fn parent(place: &Place, name: &OsStr, known: &DirectoryCache) -> Result<PathBuf, Errno> {
    let rest = parent_of(&place.rest, name);
    let Some(start) = &place.start else {
        return known.real(rest.into());
    };
    let base = readlinkat(CWD, start, Vec::new())?.into_bytes();
    let base = PathBuf::from(OsString::from_vec(base));
    if !base.is_absolute() {
        return Err(Errno::NOTDIR);
    }
    known.real(base.join(&rest)).or_else(|_| {
        // From `/` it cannot be reached, or not by so long a path. The caller is there already.
        let directory = Place {
            start: Some(start.clone()),
            rest,
        };
        path_of(&directory.open(Follow::Yes)?)
    })
}

/// The path of something that is open.
pub(super) fn path_of(file: &impl AsFd) -> Result<PathBuf, Errno> {
    let name = format!("/proc/thread-self/fd/{}", file.as_fd().as_raw_fd());
    let path = readlinkat(CWD, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

/// The last part of a path, if it is a name of its own.
fn last_name(path: &OsStr) -> Option<OsString> {
    match Path::new(path).components().next_back()? {
        // `components` passes over a dot at the end, which means the directory itself.
        Component::Normal(name) if !ends_in_dot(path) => Some(name.to_owned()),
        _ => None,
    }
}

fn ends_in_dot(path: &OsStr) -> bool {
    let path = path.as_bytes();
    let end = path.iter().rposition(|byte| *byte != b'/');
    let path = end.and_then(|end| path.get(..=end)).unwrap_or_default();
    path.ends_with(b"/.") || path == b"."
}

/// What stands before the last name. Paths are not put together anew: `..` behind a link is not
/// what it seems.
fn parent_of(path: &OsStr, name: &OsStr) -> OsString {
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/');
    let end = end.map_or(0, |end| end + 1).saturating_sub(name.len());
    match bytes.get(..end) {
        Some(b"") | None => OsString::from("."),
        Some(parent) => OsStr::from_bytes(parent).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_33_the_last_name_is_told_from_the_way_to_it() {
        let split = |path: &str| {
            let name = last_name(OsStr::new(path))?;
            let parent = parent_of(OsStr::new(path), &name);
            Some((parent.into_string().ok()?, name.into_string().ok()?))
        };
        let is = |parent: &str, name: &str| Some((parent.to_owned(), name.to_owned()));
        assert_eq!(split("/a/b"), is("/a/", "b"));
        assert_eq!(split("/a/../b//"), is("/a/../", "b"));
        assert_eq!(split("/b"), is("/", "b"));
        for whole in ["/", "/a/..", "/a/.", "/a/./", "/proc/1/fd/.."] {
            assert_eq!(split(whole), None, "{whole}");
        }
    }

    #[test]
    fn fe_14_hidden_places_are_taken_out_of_writable_ones() {
        let places = Places {
            writable: vec!["/w".into(), "/tmp".into()],
            hidden: vec!["/w/keys".into()],
        };
        assert!(places.include(Path::new("/w/a")));
        assert!(places.include(Path::new("/w")));
        assert!(!places.include(Path::new("/w/keys/a")));
        assert!(!places.include(Path::new("/ww/a")));
        assert!(is_kept(Path::new("/dev/shm/x")) && !is_kept(Path::new("/dev/null")));
    }
}
