//! A name under which a server is reached.

use std::str::FromStr;

/// A name under which a server is reached, in small letters, with its port if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// By the way that the server itself listens.
    Direct(String),
    /// Over HTTPS, which the server itself or something in front of it speaks.
    Https(String),
}

/// It is no name of a host.
#[derive(Debug, thiserror::Error)]
#[error("a host is `NAME[:PORT]`, or `https://NAME[:PORT]`")]
pub struct HostError;

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let text = text.to_ascii_lowercase();
        let (make, name): (fn(String) -> Self, &str) = match text.strip_prefix("https://") {
            Some(name) => (Self::Https, name.strip_suffix('/').unwrap_or(name)),
            None => (Self::Direct, &text),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        match !name.is_empty() && name.chars().all(plain) {
            true => Ok(make(name.to_owned())),
            false => Err(HostError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_a_host_is_a_name_and_perhaps_how_it_is_reached() {
        let read = |text: &str| text.parse::<Host>().ok();
        let direct = |name: &str| Some(Host::Direct(name.to_owned()));
        let https = |name: &str| Some(Host::Https(name.to_owned()));
        assert_eq!(read("Safepoint.example"), direct("safepoint.example"));
        assert_eq!(read("[::1]:8940"), direct("[::1]:8940"));
        assert_eq!(read("HTTPS://a.example:444"), https("a.example:444"));
        assert_eq!(read("https://a.example/"), https("a.example"));
        for bad in [
            "",
            "https://",
            "http://a.example",
            "a.example/x",
            "https://a.example/x",
            "a b",
            "me@a.example",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
