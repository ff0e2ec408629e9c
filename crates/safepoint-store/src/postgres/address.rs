//! The address of a database, and whether the way to it is encrypted.
//!
//! `sslmode` and `sslrootcert` are read here, because the client library knows
//! only half of them. There are two ways: plain, or encrypted to a server whose
//! certificate and name were verified. Encryption to whoever answers does not
//! exist: `require` means `verify-full`.

use std::path::PathBuf;

use postgres::Config;
use postgres::config::{Host, SslMode};

use crate::LocationError;
use crate::location::describe;

/// Whom to trust on the way to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Whom the machine trusts.
    System,
    /// The certificates in this file.
    File(PathBuf),
}

/// An address that was read.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// `None` when the way is not encrypted.
    pub(crate) roots: Option<Roots>,
}

impl Address {
    /// Reads `postgres://…`.
    pub(crate) fn read(url: &str) -> Result<Self, LocationError> {
        let wrong = |what: &str| LocationError::Postgres(what.to_owned());
        let (before, parameters) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots, mut others) = (None, None, Vec::new());
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => {
                    let path = decoded(value)
                        .filter(|path| !path.is_empty())
                        .ok_or_else(|| wrong("`sslrootcert` is no path"))?;
                    roots = Some(match path.as_str() {
                        "system" => Roots::System,
                        _ => Roots::File(path.into()),
                    });
                }
                _ => others.push(parameter),
            }
        }
        let is_encrypted = match mode {
            None | Some("disable" | "prefer") => false,
            Some("require" | "verify-ca" | "verify-full") => true,
            Some(_) => {
                return Err(wrong(
                    "`sslmode` is `disable`, `prefer`, `require` or `verify-full`",
                ));
            }
        };
        if roots.is_some() && !is_encrypted {
            return Err(wrong(
                "`sslrootcert` needs `sslmode=verify-full` beside it: without it nothing is encrypted",
            ));
        }
        let rest = match others.is_empty() {
            true => before.to_owned(),
            false => format!("{before}?{}", others.join("&")),
        };
        let mut config: Config = rest
            .parse()
            .map_err(|error: postgres::Error| LocationError::Postgres(describe(&error)))?;
        if !is_encrypted {
            config.ssl_mode(SslMode::Disable);
            return Ok(Self {
                config,
                roots: None,
            });
        }
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        if config.get_hosts().is_empty() || config.get_hosts().iter().any(is_socket) {
            return Err(wrong(
                "a socket on this machine cannot be encrypted: name a host, or leave out `sslmode`",
            ));
        }
        config.ssl_mode(SslMode::Require);
        Ok(Self {
            config,
            roots: Some(roots.unwrap_or(Roots::System)),
        })
    }
}

/// A text without its `%2F`; `None` when it is not one.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots(url: &str) -> Result<Option<Roots>, LocationError> {
        Address::read(url).map(|address| address.roots)
    }

    #[test]
    fn su_09_encryption_is_asked_for_in_the_address() {
        assert_eq!(roots("postgres://u@h/d"), Ok(None));
        assert_eq!(roots("postgres://u@h/d?sslmode=disable"), Ok(None));
        for mode in ["require", "verify-ca", "verify-full"] {
            let url = format!("postgres://u@h/d?connect_timeout=3&sslmode={mode}");
            assert_eq!(roots(&url), Ok(Some(Roots::System)), "{mode}");
            let file = format!("{url}&sslrootcert=%2Fetc%2Fca.pem");
            assert_eq!(roots(&file), Ok(Some(Roots::File("/etc/ca.pem".into()))));
        }
    }

    #[test]
    fn su_09_what_would_leave_the_way_open_is_refused() {
        for parameters in [
            "sslmode=verify",
            "sslmode=Require",
            "sslrootcert=/etc/ca.pem",
            "sslmode=disable&sslrootcert=/etc/ca.pem",
            "sslmode=require&sslrootcert=%2",
            "sslmode=require&sslrootcert=",
        ] {
            assert!(
                roots(&format!("postgres://u@h/d?{parameters}")).is_err(),
                "{parameters}"
            );
        }
        assert!(roots("postgres://u@%2Ftmp/d?sslmode=require").is_err());
    }
}
