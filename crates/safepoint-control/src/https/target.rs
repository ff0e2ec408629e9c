//! Where a message goes, read strictly: what two readers may read differently
//! is refused, so that what is checked is what is connected to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ureq::http::Uri;
use ureq::http::uri::Scheme;

use super::{HttpsError, Reach, address};

/// An address that may be connected to, as far as its text tells.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) uri: Uri,
}

impl Target {
    /// Reads `url`, and refuses it where it is already known to lie outside of `reach`.
    pub(super) fn read(url: &str, reach: Reach) -> Result<Self, HttpsError> {
        let refused = |reason| Err(HttpsError::Address(reason));
        let Ok(uri) = url.parse::<Uri>() else {
            return refused("it is not one of the form `https://HOST/PATH`");
        };
        let plain = reach == Reach::AsNamed && uri.scheme() == Some(&Scheme::HTTP);
        if uri.scheme() != Some(&Scheme::HTTPS) && !plain {
            return refused("only `https:` is used");
        }
        let Some(authority) = uri.authority() else {
            return refused("it names no host");
        };
        if authority.as_str().contains('@') {
            return refused("it carries a user name or a password, which are never sent");
        }
        let host = authority.host();
        // Nothing but a port may stand behind the host.
        let port = authority.as_str().strip_prefix(host).unwrap_or_default();
        if !port.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
            return refused("its port is not a number from 1 to 65535");
        }
        match read_host(host) {
            Some(Host::Name) => {}
            Some(Host::Number(found)) => {
                reach.check(found)?;
                check_encryption(&uri, found)?;
            }
            None => return refused("its host is neither a name nor an address in the usual form"),
        }
        Ok(Self { uri })
    }
}

/// `https://HOST:PORT` of an address, for showing: paths may be secret.
pub(crate) fn shown_origin(url: &str) -> String {
    match Target::read(url, Reach::AlsoPrivate) {
        Ok(Target { uri }) => uri
            .authority()
            .map(|authority| format!("https://{authority}"))
            .unwrap_or_default(),
        Err(_) => "an address that cannot be used".to_owned(),
    }
}

/// The same of an address that a person gave by hand, which may go without encryption here.
pub(crate) fn shown_origin_as_named(url: &str) -> String {
    match Target::read(url, Reach::AsNamed) {
        Ok(Target { uri }) => match (uri.scheme_str(), uri.authority()) {
            (Some(scheme), Some(authority)) => format!("{scheme}://{authority}"),
            _ => String::new(),
        },
        Err(_) => "an address that cannot be used".to_owned(),
    }
}

/// Whether something could be sent there, as far as the text of the address tells.
pub(crate) fn check_address(url: &str, reach: Reach) -> Result<(), HttpsError> {
    Target::read(url, reach).map(drop)
}

/// Refuses to go without encryption to anywhere but this machine.
pub(super) fn check_encryption(uri: &Uri, found: IpAddr) -> Result<(), HttpsError> {
    let plain = uri.scheme() != Some(&Scheme::HTTPS);
    match plain && !found.to_canonical().is_loopback() {
        true => Err(HttpsError::Address(
            "`http:` is used on this machine alone: write `https:`",
        )),
        false => Ok(()),
    }
}

enum Host {
    /// To be looked up.
    Name,
    Number(IpAddr),
}

fn read_host(host: &str) -> Option<Host> {
    if let Some(inner) = host.strip_prefix('[') {
        let found: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(Host::Number(found.into()));
    }
    // Strict: four decimal numbers without leading zeros.
    if let Ok(found) = host.parse::<Ipv4Addr>() {
        return Some(Host::Number(found.into()));
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| (1..=63).contains(&label.len()) && label.bytes().all(plain);
    let last = name.rsplit('.').next()?;
    // `2130706433`, `0x7f.1`, `0177.0.0.1`: numbers to some resolvers, names to others.
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.starts_with("0x")
        || last.starts_with("0X");
    (name.len() <= 253 && name.split('.').all(is_label) && !numeric).then_some(Host::Name)
}

impl Reach {
    /// Refuses an address that lies outside.
    pub(super) fn check(self, found: IpAddr) -> Result<(), HttpsError> {
        match self {
            Self::AlsoPrivate | Self::AsNamed => Ok(()),
            Self::Public if address::is_public(found) => Ok(()),
            Self::Public => Err(HttpsError::Private),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> HttpsError {
        Target::read(url, Reach::Public).expect_err(url)
    }

    #[test]
    fn ga_15_odd_forms_of_addresses_are_refused() {
        for url in [
            "",
            "https:",
            "https://",
            "https:///path",
            "https:host",
            "//example.com/",
            "/path",
            "example.com",
            "http://example.com/",
            "HTTP://example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0X7F.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://127.0.0.1./",
            "https://1.2.3.4.5/",
            "https://010.8.8.8/",
            "https://example.0x1/",
            "https://user@example.com/",
            "https://user:pass@example.com/",
            "https://example.com:pass@127.0.0.1/",
            "https://example.com@127.0.0.1/",
            "https://example.com:0/",
            "https://example.com:/",
            "https://example.com:65536/",
            "https://example.com:4x/",
            "https://example..com/",
            "https://.example.com/",
            "https://example.com../",
            "https://exa%6dple.com/",
            "https://[fe80::1%25eth0]/",
            "https://[::1",
            "https://[127.0.0.1]/",
            "https://[v1.x]/",
            "https://bücher.example/",
            "https://１２７.0.0.1/",
            "https://exa mple.com/",
            "https://example.com\\@127.0.0.1/",
            "https://example.com/\r\nx: y",
            "https://example.com\t/",
        ] {
            let error = refusal(url);
            assert!(matches!(error, HttpsError::Address(_)), "{url}: {error}");
            assert!(!error.to_string().contains("pass@"), "{error}");
        }
    }

    #[test]
    fn ga_15_private_addresses_in_the_text_are_refused_before_anything_is_sent() {
        for url in [
            "https://127.0.0.1/",
            "https://127.0.0.1:8443/",
            "https://10.1.2.3/x",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::1]:8443/",
            "https://[0:0:0:0:0:0:0:1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[fd00::1]/",
            "https://0.0.0.0/",
        ] {
            assert_eq!(refusal(url), HttpsError::Private, "{url}");
            assert!(Target::read(url, Reach::AlsoPrivate).is_ok(), "{url}");
        }
    }

    #[test]
    fn tr_06_without_encryption_nothing_leaves_this_machine() {
        for (url, allowed) in [
            ("http://127.0.0.1:4318/v1/traces", true),
            ("http://[::1]:4318/", true),
            ("http://localhost:4318/", true), // its addresses are checked when they are known
            ("http://10.0.0.1/", false),
            ("http://8.8.8.8/", false),
            ("https://10.0.0.1/", true),
            ("https://8.8.8.8/", true),
            ("ftp://127.0.0.1/", false),
        ] {
            let read = Target::read(url, Reach::AsNamed);
            assert_eq!(read.is_ok(), allowed, "{url}: {read:?}");
        }
        for reach in [Reach::Public, Reach::AlsoPrivate] {
            assert!(Target::read("http://127.0.0.1/", reach).is_err());
        }
        let plain: Uri = "http://localhost/".parse().unwrap();
        let loopback = "127.0.0.1".parse().unwrap();
        assert!(check_encryption(&plain, loopback).is_ok());
        assert!(check_encryption(&plain, "10.0.0.1".parse().unwrap()).is_err());
        assert!(check_encryption(&plain, "::ffff:127.0.0.1".parse().unwrap()).is_ok());
    }

    #[test]
    fn ga_15_usual_forms_of_addresses_are_taken() {
        for url in [
            "https://example.com",
            "https://example.com/",
            "HTTPS://EXAMPLE.com/a?b=c#d",
            "https://example.com.:8443/",
            "https://my_service.example-1.com/",
            "https://1password.example/",
            "https://8.8.8.8/",
            "https://[2606:4700::1111]:443/",
        ] {
            assert!(Target::read(url, Reach::Public).is_ok(), "{url}");
        }
    }

    #[test]
    fn ga_43_what_is_shown_of_an_address_has_no_secrets() {
        for (url, shown) in [
            (
                "https://hooks.example.com/T0/secret?token=x",
                "https://hooks.example.com",
            ),
            (
                "https://hooks.example.com:8443/x",
                "https://hooks.example.com:8443",
            ),
            (
                "https://me:secret@example.com/",
                "an address that cannot be used",
            ),
        ] {
            assert_eq!(shown_origin(url), shown);
        }
    }
}
