//! The address of a store: `sqlite:PATH` or `postgres://…`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::postgres::Address;

/// Where a store is. Its [`Display`](fmt::Display) never shows a password.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// A SQLite database in this file.
    Sqlite(PathBuf),
    /// A PostgreSQL database under this connection string.
    Postgres(String),
}

/// A text that is not the address of a store.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum LocationError {
    /// Neither of the known schemes.
    #[error("a store is `sqlite:PATH` or `postgres://USER@HOST/DATABASE`, not `{0}:…`")]
    UnknownScheme(String),
    /// No scheme at all. It is not repeated: it may hold a password.
    #[error("a store is `sqlite:PATH` or `postgres://USER@HOST/DATABASE`")]
    NoScheme,
    /// `sqlite:` and nothing behind it.
    #[error("`sqlite:` needs the path of a file behind it")]
    NoPath,
    /// PostgreSQL cannot read it.
    #[error("not a PostgreSQL address: {0}")]
    Postgres(String),
}

impl Location {
    /// The same place, with a relative path taken from `base`.
    pub fn based_on(self, base: &Path) -> Self {
        match self {
            Self::Sqlite(path) => Self::Sqlite(base.join(path)),
            postgres @ Self::Postgres(_) => postgres,
        }
    }
}

impl FromStr for Location {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(LocationError::NoPath);
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            Address::read(text)?;
            return Ok(Self::Postgres(text.to_owned()));
        }
        // Only the scheme is repeated: what follows may hold a password.
        match text.split_once(':') {
            Some((scheme, _)) if scheme.chars().all(|c| c.is_ascii_lowercase()) => {
                Err(LocationError::UnknownScheme(scheme.to_owned()))
            }
            _ => Err(LocationError::NoScheme),
        }
    }
}

/// The error with its sources on one line; `tokio-postgres` keeps the facts in the source.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                let Ok(Address { config, .. }) = Address::read(url) else {
                    return f.write_str("postgres://…");
                };
                f.write_str("postgres://")?;
                if let Some(user) = config.get_user() {
                    write!(f, "{user}@")?;
                }
                match config.get_hosts().first() {
                    Some(::postgres::config::Host::Tcp(host)) => f.write_str(host)?,
                    Some(::postgres::config::Host::Unix(path)) => {
                        let path = path.display().to_string();
                        f.write_str(&path.replace('/', "%2F"))?;
                    }
                    None => f.write_str("localhost")?,
                }
                if let Some(port) = config.get_ports().first() {
                    write!(f, ":{port}")?;
                }
                write!(f, "/{}", config.get_dbname().unwrap_or_default())
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_03_both_kinds_are_read() {
        assert_eq!(
            "sqlite:a/b.db".parse(),
            Ok(Location::Sqlite("a/b.db".into()))
        );
        assert_eq!(
            "sqlite:///a/b.db".parse(),
            Ok(Location::Sqlite("/a/b.db".into()))
        );
        assert!(matches!(
            "postgres://u@h/d".parse(),
            Ok(Location::Postgres(_))
        ));
        assert_eq!("sqlite:".parse::<Location>(), Err(LocationError::NoPath));
        for bad in ["", "mysql://x", "/tmp/x.db"] {
            assert!(bad.parse::<Location>().is_err(), "{bad}");
        }
        assert!("postgres://u@h:port/d".parse::<Location>().is_err());
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgres://me:hunter2@db.example:5433/trail",
            "postgres://me@db.example:5433/trail?password=hunter2",
        ] {
            let location: Location = url.parse().unwrap();
            assert_eq!(location.to_string(), "postgres://me@db.example:5433/trail");
            assert!(!format!("{location:?}").contains("hunter2"));
        }
        for text in ["mysql:hunter2", "host=db password=hunter2", "hunter2"] {
            let error = text.parse::<Location>().unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
