//! What agents may reach outside the fence, as settings files say it: hosts, and services of this
//! machine or of a private network.

use std::path::PathBuf;

use safepoint_control::pass::DefaultHosts;
use safepoint_fence::HostRule;
use serde::{Deserialize, Deserializer};

/// What is reached at a name or an address starts with this where it is a socket with a path.
const SOCKET: &str = "unix:";

/// `network:` in a settings file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NetworkSection {
    /// Hosts with a public address.
    #[serde(default)]
    pub(crate) hosts: Vec<HostEntry>,
    /// Hosts that may be reached although nobody has named them.
    pub(crate) defaults: Option<DefaultHosts>,
}

/// `NAME:PORT`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostEntry(pub(crate) HostRule);

/// `HOST:PORT`, or `unix:PATH`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServiceEntry {
    Host(HostRule),
    Socket(PathBuf),
}

/// Everything that settings files let agents reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reachable {
    pub(crate) hosts: Vec<HostRule>,
    pub(crate) services: Vec<HostRule>,
    pub(crate) sockets: Vec<PathBuf>,
    /// Whether what the project fetches from may be reached.
    pub(crate) defaults: DefaultHosts,
}

impl Reachable {
    pub(crate) fn of(network: Option<&NetworkSection>, services: &[ServiceEntry]) -> Self {
        let hosts = network.into_iter().flat_map(|section| &section.hosts);
        let defaults = network.and_then(|section| section.defaults);
        let mut reachable = Self {
            defaults: defaults.unwrap_or_default(),
            hosts: hosts.map(|entry| entry.0.clone()).collect(),
            ..Self::default()
        };
        for service in services {
            match service {
                ServiceEntry::Host(rule) => reachable.services.push(rule.clone()),
                ServiceEntry::Socket(path) => reachable.sockets.push(path.clone()),
            }
        }
        reachable
    }

    /// Both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.hosts.extend(other.hosts);
        self.services.extend(other.services);
        self.sockets.extend(other.sockets);
        // Who closes them is not overruled.
        if other.defaults == DefaultHosts::None {
            self.defaults = other.defaults;
        }
        self
    }
}

impl<'de> Deserialize<'de> for HostEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ServiceEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix(SOCKET) {
            Some(path) if path.starts_with('/') => Ok(Self::Socket(path.into())),
            Some(path) => Err(serde::de::Error::custom(format!(
                "`{path}` is not the whole path of a socket: write it as in `unix:/run/docker.sock`"
            ))),
            None => text
                .parse()
                .map(Self::Host)
                .map_err(serde::de::Error::custom),
        }
    }
}
