//! The caches of tools that cannot be told to keep them elsewhere: their variable moves settings
//! or programs as well, or projects remember where the cache was.
//!
//! What lies here is written by what runs behind the fence, and used by the user's own builds.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

/// A tool, how its projects are known, and what it writes.
struct Tool {
    /// Files of a project: names, or `*.` and what a name ends with.
    projects: &'static [&'static str],
    /// Directories beneath the home.
    folders: &'static [&'static str],
    /// Files beneath it, which the tool locks.
    files: &'static [&'static str],
}

const TOOLS: [Tool; 11] = [
    Tool {
        projects: &["Cargo.toml"],
        folders: &[".cargo/registry", ".cargo/git"],
        files: &[
            ".cargo/.package-cache",
            ".cargo/.package-cache-mutate",
            ".cargo/.global-cache",
        ],
    },
    Tool {
        projects: &["go.mod"],
        folders: &["go/pkg"],
        files: &[],
    },
    Tool {
        projects: &["pom.xml"],
        folders: &[".m2/repository"],
        files: &[],
    },
    Tool {
        projects: &[
            "build.gradle",
            "build.gradle.kts",
            "settings.gradle",
            "settings.gradle.kts",
        ],
        folders: &[
            ".gradle/caches",
            ".gradle/daemon",
            ".gradle/native",
            ".gradle/notifications",
            ".gradle/workers",
            ".gradle/wrapper/dists",
            ".gradle/.tmp",
        ],
        files: &[],
    },
    Tool {
        projects: &["build.sbt"],
        folders: &[".ivy2/cache", ".sbt/boot"],
        files: &[],
    },
    Tool {
        projects: &["*.csproj", "*.fsproj", "*.vbproj", "*.sln"],
        folders: &[".nuget/packages"],
        files: &[],
    },
    Tool {
        projects: &["pnpm-lock.yaml"],
        folders: &[".local/share/pnpm/store", ".local/state/pnpm"],
        files: &[],
    },
    Tool {
        projects: &["mix.exs"],
        folders: &[".hex/packages"],
        files: &[],
    },
    Tool {
        projects: &["stack.yaml"],
        folders: &[".stack/pantry"],
        files: &[],
    },
    Tool {
        projects: &["*.cabal"],
        folders: &[".cabal/packages"],
        files: &[],
    },
    Tool {
        projects: &["pubspec.yaml"],
        folders: &[".pub-cache/hosted"],
        files: &[],
    },
];

/// What tools write beside their caches in passing, and do without: a count of what was used, a
/// note that there is a newer version. Beneath the home, with all that lies there.
const IN_PASSING: [&str; 5] = [
    ".cargo/.global-cache-journal",
    ".cargo/.global-cache-shm",
    ".cargo/.global-cache-wal",
    ".config/configstore",
    ".config/go/telemetry",
];

/// Whether a tool writes this in passing, so that nobody misses it where it is refused.
pub fn is_written_in_passing(home: &Path, path: &Path) -> bool {
    let mut known = IN_PASSING.iter().map(|name| home.join(name));
    known.any(|known| path.starts_with(known))
}

/// More directories of a project are not looked into, and no more entries of one.
const MAX_DIRECTORIES: usize = 100;
const MAX_ENTRIES: usize = 1000;

/// All of them, beneath a home.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    let of = |tool: &'static Tool| tool.folders.iter().chain(tool.files).copied();
    TOOLS.iter().flat_map(of)
}

impl Tool {
    fn is_missing_in(&self, home: &Path) -> bool {
        let mut paths = self.folders.iter().chain(self.files);
        paths.any(|path| home.join(path).symlink_metadata().is_err())
    }

    fn is_of_project(&self, name: &OsStr) -> bool {
        self.projects
            .iter()
            .any(|known| match known.strip_prefix('*') {
                Some(end) => name.as_bytes().ends_with(end.as_bytes()),
                None => name == *known,
            })
    }

    /// Makes what is missing, as the tool would. Links in a home are the user's own.
    fn make_in(&self, home: &Path) {
        for path in self.folders {
            let _ = std::fs::create_dir_all(home.join(path));
        }
        for path in self.files {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let _ = openat(CWD, home.join(path), flags, Mode::from_raw_mode(0o644));
        }
    }
}

/// Makes what the tools of a project expect in a home. Other tools leave no trace there.
pub(super) fn make_for(home: &Path, project: &Path) {
    let missing: Vec<&Tool> = TOOLS.iter().filter(|it| it.is_missing_in(home)).collect();
    if missing.is_empty() {
        return;
    }
    let names = names_of(project);
    for tool in missing {
        if names.iter().any(|name| tool.is_of_project(name)) {
            tool.make_in(home);
        }
    }
}

/// The names of files at the top of a project and one level below.
fn names_of(project: &Path) -> Vec<std::ffi::OsString> {
    let (mut files, mut folders) = (Vec::new(), vec![project.to_owned()]);
    let mut position = 0;
    while let Some(folder) = folders.get(position).cloned() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.take(MAX_ENTRIES) {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && position == 0 => {
                    if folders.len() <= MAX_DIRECTORIES {
                        folders.push(entry.path());
                    }
                }
                Ok(kind) if kind.is_file() => files.push(entry.file_name()),
                Ok(_) | Err(_) => {}
            }
        }
        position += 1;
    }
    files
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs;

    use super::super::shared_caches;
    use super::*;

    #[test]
    fn au_42_caches_of_common_tools_are_known() {
        let caches = shared_caches(Path::new("/home/ada"));
        for path in [".cargo/registry", ".m2/repository", "go/pkg"] {
            let path = Path::new("/home/ada").join(path);
            assert!(caches.contains(&path), "{}", path.display());
        }
    }

    #[test]
    fn au_42_caches_hold_no_programs_settings_or_credentials() {
        let precious = [
            ".cargo/bin/cargo",
            ".cargo/config.toml",
            ".cargo/credentials.toml",
            ".cargo/env",
            ".rustup/toolchains/stable/bin/rustc",
            ".rustup/settings.toml",
            ".npmrc",
            ".gradle/init.d/a.gradle",
            ".gradle/gradle.properties",
            ".m2/settings.xml",
            ".bun/bin/bun",
            ".deno/bin/deno",
            "go/bin/gopls",
            "go/src/a/a.go",
            ".nuget/NuGet/NuGet.Config",
            ".local/bin/tool",
            ".local/share/pnpm/pnpm",
            ".bashrc",
            // Shells source these, and hooks of git and `npx` run them.
            ".cache/p10k-instant-prompt-ada.zsh",
            ".cache/gitstatus/gitstatusd-linux-x86_64",
            ".cache/pre-commit/repo1/py_env/bin/black",
            ".npm/_npx/1/node_modules/.bin/tool",
            ".local/share/virtualenv/wheel/3.11/pip.whl",
        ];
        let caches = shared_caches(Path::new("/home/ada"));
        for path in precious.map(|path| Path::new("/home/ada").join(path)) {
            let within = caches.iter().find(|cache| path.starts_with(cache));
            assert_eq!(within, None, "{}", path.display());
        }
    }

    #[test]
    fn fe_07_what_tools_write_in_passing_is_told_from_what_somebody_misses() {
        let home = Path::new("/home/ada");
        let is_passing = |path: &str| is_written_in_passing(home, &home.join(path));
        assert!(is_passing(".cargo/.global-cache-journal"));
        assert!(is_passing(".config/go/telemetry/local/a.count"));
        for missed in [
            ".cargo/config.toml",
            ".config/go/env",
            "/root/.config/configstore",
        ] {
            assert!(!is_passing(missed), "{missed}");
        }
    }

    #[test]
    fn fe_07_what_the_tools_of_a_project_expect_is_made_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let (home, project) = (place.path().join("home"), place.path().join("project"));
        fs::create_dir_all(project.join("server")).unwrap();
        fs::create_dir(&home).unwrap();
        make_for(&home, &project);
        assert_eq!(fs::read_dir(&home).unwrap().count(), 0);

        fs::write(project.join("Cargo.toml"), "").unwrap();
        fs::write(project.join("server/app.csproj"), "").unwrap();
        fs::create_dir(project.join("go.mod")).unwrap();
        make_for(&home, &project);
        for path in [
            ".cargo/registry",
            ".cargo/.package-cache",
            ".nuget/packages",
        ] {
            assert!(home.join(path).exists(), "{path}");
        }
        for path in ["go", ".m2", ".gradle"] {
            assert!(!home.join(path).exists(), "{path}");
        }
        // What is there stays.
        fs::write(home.join(".cargo/.package-cache"), "locked").unwrap();
        fs::remove_dir(home.join(".cargo/git")).unwrap();
        make_for(&home, &project);
        let kept = fs::read(home.join(".cargo/.package-cache")).unwrap();
        assert_eq!(kept, b"locked");
        assert!(home.join(".cargo/git").exists());
    }
}
