//! Directories that a checkpoint leaves out by default: caches that their tool builds again.
//!
//! One table, so that it can be shown to people as it is. What may be the only
//! copy of something is not in it: `dist`, `build` and `out` may hold what was
//! released, `vendor` and `.yarn/cache` are often part of the project, and
//! `.hypothesis` keeps the failures that it found.

use std::fmt;

/// The file with which a tool marks a directory as a cache.
pub const CACHEDIR_TAG: &str = "CACHEDIR.TAG";

/// What a [`CACHEDIR_TAG`] must begin with; without it the file means nothing.
pub const CACHEDIR_SIGNATURE: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// What is said of a directory that is left out because of its [`CACHEDIR_TAG`].
pub const TAGGED: &str = "tagged as a cache (CACHEDIR.TAG)";
/// Why something that may not be read is left out.
pub const UNREADABLE: &str = "it may not be read (permission denied)";

/// When a directory of a name is a cache: any of these files tells, and without any the name alone does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Files that stand in the directory.
    pub inside: &'static [&'static str],
    /// Files that stand beside the directory.
    pub beside: &'static [&'static str],
}

impl Condition {
    /// The name alone tells.
    pub const ALWAYS: Self = Self {
        inside: &[],
        beside: &[],
    };

    const fn inside(files: &'static [&'static str]) -> Self {
        Self {
            inside: files,
            beside: &[],
        }
    }

    const fn beside(files: &'static [&'static str]) -> Self {
        Self {
            inside: &[],
            beside: files,
        }
    }

    fn holds(&self, has: &dyn Fn(&str) -> bool, beside: &dyn Fn(&str) -> bool) -> bool {
        *self == Self::ALWAYS
            || self.beside.iter().any(|file| beside(file))
            || self.inside.iter().any(|file| has(file))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.beside, self.inside) {
            ([], []) => formatter.write_str("always"),
            (beside, []) => write!(formatter, "beside {}", beside.join(" or ")),
            ([], inside) => write!(formatter, "with {} inside", inside.join(" or ")),
            (beside, inside) => write!(
                formatter,
                "beside {}, or with {} inside",
                beside.join(" or "),
                inside.join(" or ")
            ),
        }
    }
}

const GRADLE: &[&str] = &[
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];

/// The names, for documentation: name, condition, why.
pub const TABLE: &[(&str, Condition, &str)] = &[
    (
        "node_modules",
        Condition::ALWAYS,
        "packages that npm, yarn or pnpm installs",
    ),
    (
        "bower_components",
        Condition::ALWAYS,
        "packages that Bower installs",
    ),
    (
        "target",
        Condition {
            inside: &[CACHEDIR_TAG],
            beside: &["Cargo.toml", "pom.xml"],
        },
        "build output of Cargo or Maven",
    ),
    (
        ".venv",
        Condition::inside(&["pyvenv.cfg"]),
        "a virtual environment of Python",
    ),
    (
        "venv",
        Condition::inside(&["pyvenv.cfg"]),
        "a virtual environment of Python",
    ),
    (
        "__pycache__",
        Condition::ALWAYS,
        "compiled modules of Python",
    ),
    (".tox", Condition::ALWAYS, "environments that tox builds"),
    (".nox", Condition::ALWAYS, "environments that Nox builds"),
    (
        ".eggs",
        Condition::ALWAYS,
        "packages that setuptools fetches",
    ),
    (".mypy_cache", Condition::ALWAYS, "the cache of mypy"),
    (".pytest_cache", Condition::ALWAYS, "the cache of pytest"),
    (".ruff_cache", Condition::ALWAYS, "the cache of Ruff"),
    (
        ".gradle",
        Condition::beside(GRADLE),
        "the project cache of Gradle",
    ),
    (
        ".terraform",
        Condition::ALWAYS,
        "providers and modules that terraform init fetches",
    ),
    (
        "cache",
        Condition::beside(&["build-manifest.json"]),
        "the build cache of Next.js",
    ),
    (
        ".nuxt",
        Condition::beside(&["package.json"]),
        "what Nuxt generates",
    ),
    (
        ".svelte-kit",
        Condition::beside(&["package.json"]),
        "what SvelteKit generates",
    ),
    (".parcel-cache", Condition::ALWAYS, "the cache of Parcel"),
    (".turbo", Condition::ALWAYS, "the cache of Turborepo"),
    (
        ".cache",
        Condition::beside(&["package.json"]),
        "a cache of JavaScript tools",
    ),
    (
        ".pnpm-store",
        Condition::ALWAYS,
        "packages that pnpm fetched",
    ),
    (
        "elm-stuff",
        Condition::beside(&["elm.json"]),
        "packages and build output of Elm",
    ),
    (
        "_build",
        Condition::beside(&["mix.exs"]),
        "build output of Mix",
    ),
    (
        "deps",
        Condition::beside(&["mix.exs"]),
        "packages that Mix fetches",
    ),
    (".dart_tool", Condition::ALWAYS, "what Dart tools generate"),
    (
        "Pods",
        Condition::beside(&["Podfile"]),
        "packages that CocoaPods installs",
    ),
    ("DerivedData", Condition::ALWAYS, "build output of Xcode"),
];

/// Whether the directory `name` is a cache that can be built again, and why.
///
/// `name` is the base name. `has` tells whether a file of a name stands inside
/// the directory, `beside` whether one stands beside it; both are asked only
/// about directories whose name is in the [`TABLE`]. For [`CACHEDIR_TAG`] `has`
/// must also have seen the [`CACHEDIR_SIGNATURE`].
pub fn is_cache(
    name: &[u8],
    has: &dyn Fn(&str) -> bool,
    beside: &dyn Fn(&str) -> bool,
) -> Option<&'static str> {
    let (_, condition, why) = TABLE
        .iter()
        .find(|(known, _, _)| known.as_bytes() == name)?;
    condition.holds(has, beside).then_some(*why)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::HashSet;

    use super::*;

    fn left_out(name: &str, inside: &[&str], beside: &[&str]) -> bool {
        is_cache(name.as_bytes(), &|file| inside.contains(&file), &|file| {
            beside.contains(&file)
        })
        .is_some()
    }

    #[test]
    fn st_12_names_that_tell_alone_need_no_marks() {
        for name in ["node_modules", "__pycache__", ".mypy_cache", ".terraform"] {
            assert!(left_out(name, &[], &[]), "{name}");
        }
    }

    #[test]
    fn st_12_names_with_two_meanings_need_their_marks() {
        assert!(!left_out("target", &[], &[]));
        assert!(left_out("target", &[], &["Cargo.toml"]));
        assert!(left_out("target", &[], &["pom.xml"]));
        assert!(left_out("target", &[CACHEDIR_TAG], &[]));
        assert!(!left_out("venv", &[], &["pyvenv.cfg"]));
        assert!(left_out("venv", &["pyvenv.cfg"], &[]));
        assert!(!left_out("deps", &[], &["package.json"]));
        assert!(left_out("deps", &[], &["mix.exs"]));
        assert!(!left_out(".cache", &[], &[]));
        assert!(!left_out("Pods", &[], &[]));
    }

    #[test]
    fn st_12_every_row_holds_with_any_one_of_its_files() {
        for (name, condition, _) in TABLE {
            for file in condition.inside {
                assert!(left_out(name, &[file], &[]), "{name} with {file}");
            }
            for file in condition.beside {
                assert!(left_out(name, &[], &[file]), "{name} beside {file}");
            }
            assert_eq!(left_out(name, &[], &[]), *condition == Condition::ALWAYS);
        }
        let names: HashSet<_> = TABLE.iter().map(|(name, _, _)| name).collect();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn st_12_what_may_be_the_only_copy_stays() {
        let all = |_: &str| true;
        for name in [
            "dist",
            "build",
            "out",
            "vendor",
            "src",
            ".hypothesis",
            ".git",
            ".yarn",
            "Target",
            "pkg.egg-info",
            "target ",
            "",
        ] {
            assert_eq!(is_cache(name.as_bytes(), &all, &all), None, "{name}");
        }
        assert_eq!(is_cache(b"\xff\xfe", &all, &all), None);
    }

    #[test]
    fn st_12_files_are_looked_for_only_when_the_name_is_known() {
        let asked = Cell::new(0);
        let count = |_: &str| {
            asked.set(asked.get() + 1);
            false
        };
        is_cache(b"src", &count, &count);
        is_cache(b"node_modules", &count, &count);
        assert_eq!(asked.get(), 0);
        is_cache(b"target", &count, &count);
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn st_12_conditions_read_as_text() {
        let of = |name: &str| {
            TABLE
                .iter()
                .find(|row| row.0 == name)
                .unwrap()
                .1
                .to_string()
        };
        assert_eq!(of(".tox"), "always");
        assert_eq!(of("venv"), "with pyvenv.cfg inside");
        assert_eq!(of("Pods"), "beside Podfile");
        assert_eq!(
            of("target"),
            "beside Cargo.toml or pom.xml, or with CACHEDIR.TAG inside"
        );
    }
}
