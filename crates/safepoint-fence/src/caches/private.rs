//! The caches of agents alone, and the variables by which tools find them.
//!
//! What runs behind a fence writes in this directory as it likes, and nothing that runs outside
//! is told of it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

/// A variable that names a part of the private directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheVariable {
    /// The variable.
    pub name: String,
    /// The directory beneath the private one; empty for that itself.
    pub folder: PathBuf,
}

impl CacheVariable {
    /// What it says.
    pub(super) fn value_in(&self, private: &Path) -> PathBuf {
        match self.folder.as_os_str().is_empty() {
            true => private.to_owned(),
            false => private.join(&self.folder),
        }
    }
}

/// When a tool is told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// Its cache would lie elsewhere otherwise.
    Always,
    /// It keeps to `XDG_CACHE_HOME`, unless this variable leads elsewhere.
    WhereSet,
}

/// Variables of tools, the directory that each gets, and when. Not here are tools whose variable
/// moves settings or programs as well (`CARGO_HOME`, `GRADLE_USER_HOME`), or whose projects keep
/// the place of the cache, so that the user's own run would miss it (pnpm's store, NuGet).
const VARIABLES: [(&str, &str, When); 22] = [
    ("XDG_CACHE_HOME", "", When::Always),
    ("npm_config_cache", "npm", When::Always),
    ("YARN_GLOBAL_FOLDER", "yarn-berry", When::Always),
    ("BUN_INSTALL_CACHE_DIR", "bun", When::Always),
    ("PUPPETEER_CACHE_DIR", "puppeteer", When::Always),
    ("VIRTUALENV_OVERRIDE_APP_DATA", "virtualenv", When::Always),
    ("CONDA_PKGS_DIRS", "conda", When::Always),
    ("BUNDLE_USER_CACHE", "bundle", When::Always),
    ("COMPOSER_CACHE_DIR", "composer", When::Always),
    ("NUGET_HTTP_CACHE_PATH", "nuget-http", When::Always),
    ("CCACHE_DIR", "ccache", When::Always),
    ("GOCACHE", "go-build", When::WhereSet),
    ("PIP_CACHE_DIR", "pip", When::WhereSet),
    ("UV_CACHE_DIR", "uv", When::WhereSet),
    ("POETRY_CACHE_DIR", "pypoetry", When::WhereSet),
    ("PRE_COMMIT_HOME", "pre-commit", When::WhereSet),
    ("YARN_CACHE_FOLDER", "yarn", When::WhereSet),
    ("npm_config_devdir", "node-gyp", When::WhereSet),
    ("DENO_DIR", "deno", When::WhereSet),
    ("SCCACHE_DIR", "sccache", When::WhereSet),
    ("COURSIER_CACHE", "coursier/v1", When::WhereSet),
    ("CYPRESS_CACHE_FOLDER", "Cypress", When::WhereSet),
];

/// Variables that npm reads in capitals, too.
const NPM_PREFIX: &str = "npm_config_";

/// Those variables that have to name the private directory. One that leads to a writable place
/// stays, and so does one that is no path (`GOCACHE=off`).
pub(super) fn variables(
    private: &Path,
    writable: &[PathBuf],
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<CacheVariable> {
    let is_writable = |path: &Path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut places = writable.iter().map(PathBuf::as_path).chain([private]);
        places.any(|place| real.starts_with(place) || path.starts_with(place))
    };
    let mut found = Vec::new();
    for (name, folder, when) in VARIABLES {
        let capitals = name.starts_with(NPM_PREFIX).then(|| name.to_uppercase());
        let names = std::iter::once(name.to_owned()).chain(capitals);
        let set: Vec<(String, PathBuf)> = names
            .filter_map(|name| Some((variable(&name)?, name)))
            .filter(|(value, _)| !value.is_empty())
            .map(|(value, name)| (name, value.into()))
            .collect();
        let named = |name: String| CacheVariable {
            name,
            folder: folder.into(),
        };
        if set.is_empty() && when == When::Always {
            found.push(named(name.to_owned()));
        }
        let elsewhere = set
            .into_iter()
            .filter(|(_, value)| value.is_absolute() && !is_writable(value));
        found.extend(elsewhere.map(|(name, _)| named(name)));
    }
    found
}

/// The private directory, made if it is missing. It is the user's own, and no link: what lies in
/// it was written by agents, and nobody else looks for it there.
pub(super) fn open(private: &Path) -> io::Result<OwnedFd> {
    let (Some(above), Some(name)) = (private.parent(), private.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    // The parent belongs to the user, who may have put a link there.
    std::fs::create_dir_all(above)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = openat(CWD, above, flags, Mode::empty())?;
    let folder = open_folder(&above, name)?;
    match fstat(&folder)?.st_uid == rustix::process::geteuid().as_raw() {
        true => Ok(folder),
        false => Err(Errno::PERM.into()),
    }
}

/// A directory in another, made if it is missing. Whatever else has its name is an error.
pub(super) fn open_folder(above: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    match mkdirat(&above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(above, name, flags, Mode::empty())?)
}

/// Opens a directory some levels below, and makes what is missing of it. No link is followed.
pub(super) fn make_folder(above: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let mut folder = above.try_clone().ok()?;
    for name in path {
        folder = open_folder(&folder, name).ok()?;
    }
    Some(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const PRIVATE: &str = "/home/ada/.cache/safepoint/agents";

    fn named(environment: &[(&str, &str)]) -> Vec<(String, PathBuf)> {
        let writable = [PathBuf::from("/work"), PathBuf::from("/tmp")];
        let found = variables(Path::new(PRIVATE), &writable, |name| {
            let found = environment.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        });
        found.into_iter().map(|it| (it.name, it.folder)).collect()
    }

    #[test]
    fn fe_07_variables_name_private_caches_where_they_are_not_set() {
        let found = named(&[]);
        let is = |name: &str, folder: &str| found.contains(&(name.into(), folder.into()));
        assert!(is("XDG_CACHE_HOME", "") && is("npm_config_cache", "npm"));
        // What lies below `XDG_CACHE_HOME` by itself needs no variable.
        assert!(!found.iter().any(|(name, _)| name == "PIP_CACHE_DIR"));
    }

    #[test]
    fn fe_07_a_variable_that_is_set_stays_only_where_it_leads_to_a_writable_place() {
        let found = named(&[
            ("XDG_CACHE_HOME", "/home/ada/.cache"),
            ("NPM_CONFIG_CACHE", "/data/npm"),
            ("BUN_INSTALL_CACHE_DIR", "/work/.bun"),
            ("PIP_CACHE_DIR", "/data/pip"),
            ("UV_CACHE_DIR", "/tmp/uv"),
            ("GOCACHE", "off"),
            ("CCACHE_DIR", ""),
            (
                "YARN_GLOBAL_FOLDER",
                "/home/ada/.cache/safepoint/agents/mine",
            ),
        ]);
        let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
        for told in [
            "XDG_CACHE_HOME",
            "NPM_CONFIG_CACHE",
            "PIP_CACHE_DIR",
            "CCACHE_DIR",
        ] {
            assert!(names.contains(&told), "{told}");
        }
        for left in [
            "npm_config_cache",
            "BUN_INSTALL_CACHE_DIR",
            "UV_CACHE_DIR",
            "GOCACHE",
            "YARN_GLOBAL_FOLDER",
        ] {
            assert!(!names.contains(&left), "{left}");
        }
    }

    #[test]
    fn fe_07_the_private_directory_is_the_users_alone_and_never_a_link() {
        let place = tempfile::tempdir().unwrap();
        let private = place.path().join("cache/safepoint/agents");
        open(&private).unwrap();
        let mode = fs::metadata(&private).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        open(&private).unwrap();

        let elsewhere = place.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let link = place.path().join("cache/safepoint/link");
        symlink(&elsewhere, &link).unwrap();
        assert!(open(&link).is_err());
        // An agent may have put a link inside.
        symlink(&elsewhere, private.join("npm")).unwrap();
        let folder = open(&private).unwrap();
        assert!(make_folder(&folder, Path::new("npm/deep")).is_none());
        assert!(make_folder(&folder, Path::new("bun/deep")).is_some());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
