//! Hosts that may be reached although nobody has named them: those that a project fetches from.
//!
//! They are the registries of the package managers in use, and the hosts of the repository's
//! remotes. Whoever works in the workspace can write its files, so a file only picks from a fixed
//! list of registries, and remotes count as they were when a person, or a client that a person
//! started there, first worked there. They give public names, and never an address. A directory
//! that an agent may have made itself, with remotes of its choice, has none until a person uses it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// On whose behalf the passage is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A person.
    Person,
    /// An agent client that a person started, in the workspace in which its session began.
    Client,
    /// What an agent has started.
    Agent,
}

/// Names that lead to no host of the public network.
pub(super) const PRIVATE_SUFFIXES: [&str; 6] = [
    ".local",
    ".localdomain",
    ".internal",
    ".lan",
    ".home.arpa",
    ".localhost",
];

/// Memory that processes share under a name: everybody writes there, too.
const SHARED_MEMORY: &str = "/dev/shm";

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
        let hosts = registries(root);
        let hosts = hosts.iter().filter_map(|host| host.parse().ok());
        let remotes = self.known_remotes().unwrap_or_default();
        let remotes = remotes.iter().filter_map(|host| host.parse().ok());
        hosts.chain(remotes.filter(is_public_name)).collect()
    }

    /// Records the hosts of the remotes before anything can be changed here. Where that does not
    /// work there are none.
    pub(super) fn note_remotes(&self) {
        let counts = self.default_hosts == DefaultHosts::Fetching && self.far.is_none();
        if counts && self.fence.is_some() {
            drop(self.known_remotes());
        }
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
        if !self.may_bring_remotes()? {
            return Ok(BTreeSet::new());
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

    /// Whether the remotes that are there now were not put there by an agent, as far as that can
    /// be told: a person uses the workspace, or a client whose session began in it, and it does
    /// not lie where agents write.
    fn may_bring_remotes(&self) -> Result<bool, ControlError> {
        match self.asker {
            Asker::Agent => Ok(false),
            // An agent may have taken away what says that it is one.
            Asker::Person => Ok(!self.control.is_within_an_action()?),
            Asker::Client => {
                let root = &self.workspace.root;
                let fence = self.fence.iter();
                let writable = fence.flat_map(|fence| &fence.writable);
                let is_above = |place: &Path| {
                    let real = fs::canonicalize(place);
                    let real = real.as_deref().unwrap_or(place);
                    root != real && root.starts_with(real)
                };
                let mut writable = writable.map(PathBuf::as_path);
                if writable.any(is_above) || is_above(Path::new(SHARED_MEMORY)) {
                    return Ok(false);
                }
                let bench = self.bench()?;
                let store = self.control.trail.store();
                let is_nested = store.read(|sql| bench.is_nested(sql))?;
                Ok(!is_nested && !self.control.is_within_an_action()?)
            }
        }
    }
}

/// Whether a rule means one name that is looked up in the public network.
fn is_public_name(rule: &HostRule) -> bool {
    let is_public = |name: &str| {
        let mut private = PRIVATE_SUFFIXES.iter();
        name.contains('.') && !private.any(|suffix| name.ends_with(suffix))
    };
    rule.is_public() && rule.name().is_some_and(is_public)
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
    fn fe_11_remotes_give_public_names_alone() {
        let is_meant = |text: &str| text.parse().is_ok_and(|rule| is_public_name(&rule));
        assert!(is_meant("example.org:443") && is_meant("git.example.org:7999"));
        for other in [
            "93.184.215.14:443",
            "127.0.0.1:7005",
            "10.1.1.1:22",
            "[2606:4700::1111]:443",
            "localhost:80",
            "a.localhost:80",
            "git.internal:22",
            "server.local:22",
            "server:22",
            "*.example.org:443",
        ] {
            assert!(!is_meant(other), "{other}");
        }
    }

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
