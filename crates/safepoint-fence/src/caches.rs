//! Where builds write outside a workspace, and nothing precious is kept.
//!
//! Only caches are named: no place that holds programs a shell finds, settings,
//! credentials or scripts that a tool runs by itself (such as `~/.gradle/init.d`
//! or `~/.cargo/bin`). What a build leaves in a cache is not undone.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Beneath the home directory.
const IN_HOME: [&str; 36] = [
    // Any tool that knows the XDG base directories.
    ".cache",
    // Rust: see also `CARGO_HOME`.
    ".rustup/downloads",
    ".rustup/tmp",
    // JavaScript
    ".npm",
    ".node-gyp",
    ".yarn/berry/cache",
    ".yarn/berry/metadata",
    ".yarn-cache",
    ".local/share/pnpm/store",
    ".local/state/pnpm",
    ".pnpm-store",
    ".bun/install/cache",
    ".electron",
    ".electron-gyp",
    // Python
    ".local/share/virtualenv",
    ".conda/pkgs",
    // Java and its kin
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/notifications",
    ".gradle/workers",
    ".gradle/wrapper/dists",
    ".gradle/.tmp",
    ".m2/repository",
    ".ivy2/cache",
    ".sbt/boot",
    // Go
    "go/pkg",
    // .NET
    ".nuget/packages",
    ".local/share/NuGet",
    ".dotnet/TelemetryStorageService",
    // Others
    ".bundle/cache",
    ".hex/packages",
    ".stack/pantry",
    ".cabal/packages",
    ".pub-cache/hosted",
    "Library/Caches",
];

/// Beneath `CARGO_HOME`, or `~/.cargo`.
const IN_CARGO_HOME: [&str; 5] = [
    "registry",
    "git",
    ".package-cache",
    ".package-cache-mutate",
    ".global-cache",
];

/// Variables that name a cache, or with a second part a cache beneath them.
const VARIABLES: [(&str, &str); 16] = [
    ("XDG_CACHE_HOME", ""),
    ("GOCACHE", ""),
    ("GOMODCACHE", ""),
    ("NPM_CONFIG_CACHE", ""),
    ("npm_config_cache", ""),
    ("YARN_CACHE_FOLDER", ""),
    ("PIP_CACHE_DIR", ""),
    ("UV_CACHE_DIR", ""),
    ("POETRY_CACHE_DIR", ""),
    ("DENO_DIR", ""),
    ("NUGET_PACKAGES", ""),
    ("CCACHE_DIR", ""),
    ("SCCACHE_DIR", ""),
    ("BUN_INSTALL_CACHE_DIR", ""),
    ("GRADLE_USER_HOME", "caches"),
    ("PNPM_HOME", "store"),
];

/// The caches of common tools, whether they exist or not. `variable` looks up a
/// variable of the environment; values that are no absolute path, or the home
/// directory itself or above it, are left out.
pub fn default_caches(home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from);
    let cargo = named("CARGO_HOME").unwrap_or_else(|| home.join(".cargo"));
    let mut caches: Vec<PathBuf> = IN_HOME.iter().map(|path| home.join(path)).collect();
    caches.extend(IN_CARGO_HOME.iter().map(|path| cargo.join(path)));
    caches.extend(VARIABLES.iter().filter_map(|(name, beneath)| {
        let folder = named(name)?;
        Some(if beneath.is_empty() {
            folder
        } else {
            folder.join(beneath)
        })
    }));
    let go = variable("GOPATH").unwrap_or_default();
    caches.extend(std::env::split_paths(&go).map(|path| path.join("pkg")));
    caches.retain(|path| path.is_absolute() && !home.starts_with(path));
    caches.sort();
    caches.dedup();
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caches(variables: &[(&str, &str)]) -> Vec<PathBuf> {
        default_caches(Path::new("/home/ada"), |name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        })
    }

    #[test]
    fn au_42_caches_of_common_tools_are_known() {
        let caches = caches(&[]);
        for path in [".cache", ".cargo/registry", ".m2/repository", "go/pkg"] {
            assert!(
                caches.contains(&Path::new("/home/ada").join(path)),
                "{path}"
            );
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
        ];
        for path in precious.map(|path| Path::new("/home/ada").join(path)) {
            let within = caches(&[])
                .into_iter()
                .find(|cache| path.starts_with(cache));
            assert_eq!(within, None, "{}", path.display());
        }
    }

    #[test]
    fn au_42_variables_move_caches_and_cannot_open_the_home() {
        let caches = caches(&[
            ("CARGO_HOME", "/opt/cargo"),
            ("GOPATH", "/srv/go:/home/ada/more"),
            ("GRADLE_USER_HOME", "/opt/gradle"),
            ("GOCACHE", "off"),
            ("XDG_CACHE_HOME", "/home/ada"),
            ("PIP_CACHE_DIR", "/"),
        ]);
        for path in [
            "/opt/cargo/registry",
            "/srv/go/pkg",
            "/home/ada/more/pkg",
            "/opt/gradle/caches",
        ] {
            assert!(caches.contains(&PathBuf::from(path)), "{path}");
        }
        for path in ["/home/ada/.cargo/registry", "off", "/home/ada", "/"] {
            assert!(!caches.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
