//! Hosts that may be reached although nobody has named them: those that a project fetches from.
//!
//! They are the registries of the package managers in use, and the hosts of the repository's
//! remotes. Whoever works in the workspace can write its files, so a file only picks from a fixed
//! list of registries, and remotes count as they were when an agent first worked there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use safepoint_fence::HostRule;
use safepoint_model::Timestamp;
use safepoint_store::Durability;
use serde::{Deserialize, Serialize};

use super::Passage;
use crate::ControlError;
use crate::kept::{self, Kept};

/// Which hosts may be reached although nobody has named them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultHosts {
    /// Those that the project fetches from.
    #[default]
    Fetching,
    /// None.
    None,
}

/// Files by which a package manager is known, and the hosts that it fetches from.
const REGISTRIES: [(&[&str], &[&str]); 10] = [
    (
        &["Cargo.toml"],
        &[
            "index.crates.io:443",
            "static.crates.io:443",
            "crates.io:443",
        ],
    ),
    (
        &["package.json"],
        &["registry.npmjs.org:443", "registry.yarnpkg.com:443"],
    ),
    (
        &[
            "pyproject.toml",
            "requirements.txt",
            "setup.py",
            "setup.cfg",
            "Pipfile",
            "environment.yml",
        ],
        &["pypi.org:443", "files.pythonhosted.org:443"],
    ),
    (&["go.mod"], &["proxy.golang.org:443", "sum.golang.org:443"]),
    (
        &["Gemfile"],
        &["rubygems.org:443", "index.rubygems.org:443"],
    ),
    (
        &["composer.json"],
        &["repo.packagist.org:443", "packagist.org:443"],
    ),
    (
        &["pom.xml", "build.gradle", "build.gradle.kts"],
        &[
            "repo.maven.apache.org:443",
            "repo1.maven.org:443",
            "plugins.gradle.org:443",
            "services.gradle.org:443",
        ],
    ),
    (&["mix.exs"], &["repo.hex.pm:443", "hex.pm:443"]),
    (&["pubspec.yaml"], &["pub.dev:443"]),
    (
        &["deno.json", "deno.jsonc"],
        &["jsr.io:443", "deno.land:443"],
    ),
];

/// More directories of a workspace are not looked into.
const MAX_DIRECTORIES: usize = 200;

/// The hosts of a repository's remotes, as they were when an agent first worked there.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownRemotes {
    format: u32,
    workspace: String,
    hosts: BTreeSet<String>,
    time: Timestamp,
}

impl Kept for KnownRemotes {
    const KIND: &'static str = "remotes";
    const WHAT: &'static str = "hosts of the remotes of the directory";

    fn id(&self) -> String {
        self.workspace.clone()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
}

impl Passage<'_> {
    /// The hosts that this project fetches from. Where that cannot be found out there are none.
    pub(super) fn default_hosts(&self) -> Vec<HostRule> {
        if self.default_hosts == DefaultHosts::None || self.far.is_some() {
            return Vec::new();
        }
        let root = &self.workspace.root;
        let mut hosts = registries(root);
        hosts.extend(self.known_remotes().unwrap_or_default());
        hosts.iter().filter_map(|host| host.parse().ok()).collect()
    }

    fn known_remotes(&self) -> Result<BTreeSet<String>, ControlError> {
        let workspace = crate::world::text(&self.workspace.root)?;
        let known: Option<KnownRemotes> = self
            .control
            .trail
            .store()
            .read(|sql| kept::get(sql, &workspace))?;
        if let Some(known) = known {
            return Ok(known.hosts);
        }
        let hosts = safepoint_state::git::remote_hosts(&self.workspace.root);
        let time = self.now();
        self.control.trail.write(Durability::Sync, |writing| {
            let known: Option<KnownRemotes> = kept::get(writing.sql(), &workspace)?;
            if let Some(known) = known {
                return Ok(known.hosts);
            }
            let known = KnownRemotes {
                format: 1,
                workspace: workspace.clone(),
                hosts,
                time,
            };
            kept::put(writing, &known)?;
            Ok(known.hosts)
        })
    }
}

/// The registries of the package managers in use, at the top of the workspace and one level below.
fn registries(root: &Path) -> BTreeSet<String> {
    let below = fs::read_dir(root).into_iter().flatten().flatten();
    let below = below
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .take(MAX_DIRECTORIES)
        .map(|entry| entry.path());
    let places: Vec<_> = std::iter::once(root.to_owned()).chain(below).collect();
    let is_used = |files: &[&str]| {
        let mut places = places.iter();
        places.any(|place| files.iter().any(|file| place.join(file).is_file()))
    };
    let used = REGISTRIES.iter().filter(|(files, _)| is_used(files));
    used.flat_map(|(_, hosts)| hosts.iter().map(|host| (*host).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the files of a project")]
    fn fe_11_registries_are_those_of_the_package_managers_in_use() {
        let place = tempfile::tempdir().unwrap();
        assert!(registries(place.path()).is_empty());
        fs::write(place.path().join("Cargo.toml"), "").unwrap();
        fs::create_dir(place.path().join("web")).unwrap();
        fs::write(place.path().join("web/package.json"), "{}").unwrap();
        let found = registries(place.path());
        assert!(found.contains("static.crates.io:443"));
        assert!(found.contains("registry.npmjs.org:443"));
        assert!(!found.contains("pypi.org:443"));
    }

    #[test]
    fn fe_11_every_registry_is_a_rule() {
        for host in REGISTRIES.iter().flat_map(|(_, hosts)| hosts.iter()) {
            assert!(host.parse::<HostRule>().is_ok(), "{host}");
        }
    }
}
