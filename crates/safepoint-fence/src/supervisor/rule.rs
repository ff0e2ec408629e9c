//! What a supervised tree may reach, as the layers above say it.
//!
//! Nothing here looks a name up or opens a connection: a rule only says whether
//! a name or an address is meant.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use super::GuardedNames;
use super::address::{is_public, unfold};

/// Longest name of a host, as DNS has it.
const MAX_NAME_BYTES: usize = 253;
/// Longest part between two dots.
const MAX_LABEL_BYTES: usize = 63;

/// What the supervisor of a process tree lets through. What is not named is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervision {
    /// Hosts that may be dialled. A name never leads to loopback, link-local,
    /// metadata, multicast or private addresses; an address means itself.
    pub hosts: Vec<HostRule>,
    /// Services that may be reached although they are on this machine or in a private network.
    pub services: Vec<HostRule>,
    /// Sockets with a path that may be reached (absolute).
    pub sockets: Vec<PathBuf>,
    /// Where the supervisors of one session register, so that what one action
    /// has started can be reached by the next. Created with mode 0700 if missing.
    /// Nothing behind the fence may write there: it must not be writable, or be hidden.
    pub registry: PathBuf,
    /// Where a [`Freeze`](crate::Freeze) is asked for: one place for all of a user. Likewise. `None`
    /// where this process cannot hear of one: then what moves names goes on during a freeze.
    pub freezer: Option<PathBuf>,
    /// Where the paths that are written are kept while the tree runs, for whoever has to say what
    /// it did after this process was killed. Made with the first path.
    pub journal: Option<PathBuf>,
    /// What is not written although it lies where the fence is writable.
    pub guarded: GuardedNames,
    /// Whether network and sockets are supervised at all.
    pub network: NetworkAccess,
}

/// Whether network and sockets are supervised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkAccess {
    /// What is not named in [`Supervision`], or part of the session, is refused.
    Closed,
    /// Everything can be reached, and is not recorded. Writes are still recorded,
    /// and metadata outside is still held.
    Open,
}

/// A host and a port that may be reached: `example.org:443`, `*.example.org:443`,
/// `example.org:*`, `127.0.0.1:5432`, `[::1]:8080`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostRule {
    host: HostPattern,
    port: PortPattern,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum HostPattern {
    /// Exactly this name, in lower case, without a dot at its end.
    Name(String),
    /// Every name beneath this one, but not the name itself.
    Suffix(String),
    /// This address, unfolded.
    Address(IpAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum PortPattern {
    Any,
    Only(u16),
}

impl HostRule {
    /// Is the port meant?
    pub fn includes_port(&self, port: u16) -> bool {
        match self.port {
            PortPattern::Any => true,
            PortPattern::Only(only) => only == port,
        }
    }

    /// Is the name meant, at some port? Rules for addresses mean no name.
    pub fn includes_name(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        match &self.host {
            HostPattern::Name(own) => own.eq_ignore_ascii_case(name),
            HostPattern::Suffix(suffix) => {
                let name = name.to_ascii_lowercase();
                name.strip_suffix(suffix.as_str())
                    .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            HostPattern::Address(_) => false,
        }
    }

    /// Is the address itself meant? Rules for names mean no address.
    pub fn includes_address(&self, address: IpAddr) -> bool {
        matches!(self.host, HostPattern::Address(own) if own == unfold(address))
    }

    /// Is all that another rule means meant by this one, too?
    pub fn includes(&self, other: &HostRule) -> bool {
        let has_port = match other.port {
            PortPattern::Any => self.port == PortPattern::Any,
            PortPattern::Only(port) => self.includes_port(port),
        };
        has_port
            && match &other.host {
                HostPattern::Name(name) => self.includes_name(name),
                HostPattern::Suffix(_) => self.host == other.host,
                HostPattern::Address(address) => self.includes_address(*address),
            }
    }

    /// Can it only lead to the public network? `localhost` and private addresses do not.
    pub fn is_public(&self) -> bool {
        match &self.host {
            HostPattern::Name(name) | HostPattern::Suffix(name) => {
                name != "localhost" && !name.ends_with(".localhost")
            }
            HostPattern::Address(address) => is_public(*address),
        }
    }

    /// The one name that is meant, where it is one.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            HostPattern::Name(name) => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostPattern::Name(name) => write!(formatter, "{name}")?,
            HostPattern::Suffix(suffix) => write!(formatter, "*.{suffix}")?,
            HostPattern::Address(IpAddr::V4(address)) => write!(formatter, "{address}")?,
            HostPattern::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]")?,
        }
        match self.port {
            PortPattern::Any => write!(formatter, ":*"),
            PortPattern::Only(port) => write!(formatter, ":{port}"),
        }
    }
}

/// Why a text is no [`HostRule`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostRuleError {
    /// The port is not there.
    #[error("`{0}` names no port: write `{0}:443`, or `{0}:*` for every port")]
    NoPort(String),
    /// The port is no port.
    #[error("`{port}` in `{rule}` is not a port: write a number from 1 to 65535, or `*`")]
    Port {
        /// The whole text.
        rule: String,
        /// What stands where the port should.
        port: String,
    },
    /// An IPv6 address without brackets.
    #[error("`{0}` is ambiguous: write an IPv6 address in brackets, as in `[::1]:8080`")]
    Brackets(String),
    /// The host is no host.
    #[error("`{host}` in `{rule}` is neither a host name, `*.` and a name, nor an address")]
    Host {
        /// The whole text.
        rule: String,
        /// What stands where the host should.
        host: String,
    },
}

impl FromStr for HostRule {
    type Err = HostRuleError;

    fn from_str(rule: &str) -> Result<Self, HostRuleError> {
        if rule.parse::<std::net::Ipv6Addr>().is_ok() {
            return Err(HostRuleError::Brackets(rule.to_owned()));
        }
        let is_bare = rule.starts_with('[') && rule.ends_with(']');
        let (host, port) = rule
            .rsplit_once(':')
            .filter(|_| !is_bare)
            .ok_or_else(|| HostRuleError::NoPort(rule.to_owned()))?;
        let port = match port {
            "*" => PortPattern::Any,
            text => match text.parse::<u16>() {
                Ok(port) if port > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                    PortPattern::Only(port)
                }
                _ => {
                    return Err(HostRuleError::Port {
                        rule: rule.to_owned(),
                        port: text.to_owned(),
                    });
                }
            },
        };
        let host = parse_host(host).ok_or_else(|| {
            if host.contains(':') && !host.starts_with('[') {
                return HostRuleError::Brackets(rule.to_owned());
            }
            HostRuleError::Host {
                rule: rule.to_owned(),
                host: host.to_owned(),
            }
        })?;
        Ok(Self { host, port })
    }
}

fn parse_host(host: &str) -> Option<HostPattern> {
    if let Some(inner) = host.strip_prefix('[') {
        let address = inner.strip_suffix(']')?.parse().ok()?;
        return Some(HostPattern::Address(unfold(IpAddr::V6(address))));
    }
    if let Ok(address) = host.parse() {
        return Some(HostPattern::Address(IpAddr::V4(address)));
    }
    match host.strip_prefix("*.") {
        Some(suffix) => normalise_name(suffix).map(HostPattern::Suffix),
        None => normalise_name(host).map(HostPattern::Name),
    }
}

/// A name of a host in lower case, without a dot at its end.
pub(super) fn normalise_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    // A name whose last part is a number is an address that somebody misspelt,
    // and resolvers disagree about what it means.
    let ends_in_number = name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    (name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label) && !ends_in_number)
        .then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap()
    }

    #[test]
    fn fe_11_rules_are_written_as_they_are_read() {
        for (text, written) in [
            ("Example.ORG.:443", "example.org:443"),
            ("example.org:*", "example.org:*"),
            ("*.example.org:443", "*.example.org:443"),
            ("[::1]:8080", "[::1]:8080"),
            ("127.0.0.1:5432", "127.0.0.1:5432"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ] {
            assert_eq!(rule(text).to_string(), written);
            assert_eq!(rule(written), rule(text));
        }
    }

    #[test]
    fn fe_11_a_suffix_means_what_is_beneath_it_and_nothing_beside_it() {
        let suffix = rule("*.example.org:443");
        assert!(suffix.includes_name("a.example.org"));
        assert!(suffix.includes_name("a.B.Example.org."));
        for name in [
            "example.org",
            ".example.org",
            "badexample.org",
            "example.org.evil",
        ] {
            assert!(!suffix.includes_name(name), "{name}");
        }
        assert!(suffix.includes_port(443) && !suffix.includes_port(80));
        assert!(rule("[::1]:*").includes_address("::1".parse().unwrap()));
        assert!(rule("10.0.0.1:*").includes_address("::ffff:10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn fe_30_a_rule_includes_what_another_means_and_knows_what_is_public() {
        for (one, other, is_included) in [
            ("example.org:443", "example.org:443", true),
            ("*.example.org:*", "a.example.org:443", true),
            ("10.0.0.1:*", "10.0.0.1:5432", true),
            ("example.org:443", "example.org:*", false),
            ("example.org:443", "example.org:80", false),
            ("example.org:443", "*.example.org:443", false),
            ("10.0.0.1:*", "10.0.0.2:5432", false),
        ] {
            assert_eq!(
                rule(one).includes(&rule(other)),
                is_included,
                "{one} {other}"
            );
        }
        for public in ["example.org:443", "93.184.215.14:80"] {
            assert!(rule(public).is_public(), "{public}");
        }
        for private in [
            "localhost:5432",
            "127.0.0.1:5432",
            "10.0.0.1:80",
            "[::1]:80",
        ] {
            assert!(!rule(private).is_public(), "{private}");
        }
    }

    #[test]
    fn fe_11_a_rule_that_cannot_be_read_says_why() {
        for (text, why) in [
            ("example.org", "names no port"),
            ("[::1]", "names no port"),
            ("::1", "in brackets"),
            ("::1:80", "in brackets"),
            ("example.org:http", "is not a port"),
            ("example.org:0", "is not a port"),
            ("example.org:+1", "is not a port"),
            ("*:443", "neither a host name"),
            ("a b:443", "neither a host name"),
            ("10.0.1:443", "neither a host name"),
            (":443", "neither a host name"),
            ("[::1:443", "neither a host name"),
        ] {
            let error = text.parse::<HostRule>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
