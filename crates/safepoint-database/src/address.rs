//! Where a database is: `sqlite:PATH`, `postgres://USER@HOST/NAME`,
//! `mariadb://USER@HOST/NAME`, each with `#TABLE,…` behind it to mean only some
//! of its tables.
//!
//! An address never holds a password: it is stored, logged and shown.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::postgres;

/// Which kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// A file.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
    /// A MariaDB or MySQL server.
    Mariadb,
}

impl Engine {
    /// The scheme of its addresses.
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
        }
    }
}

/// Where a database is, and which part of it is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    place: Place,
    /// Tables (`users`, `public.users`) and schemas (`audit.*`); empty for all.
    only: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    File(PathBuf),
    Server(Engine, Server),
}

/// A database on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    /// A name, a number, or the directory of a socket; empty for the usual one.
    pub host: String,
    /// The port, where it is not the usual one.
    pub port: Option<u16>,
    /// The user; empty for the usual one.
    pub user: String,
    /// The database.
    pub name: String,
}

/// Where a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerPlace {
    /// A name or an address, and a port.
    Host(String, u16),
    /// A socket with a path.
    Socket(PathBuf),
}

/// A text that is not the address of a database. It is not repeated where it may
/// hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// A password on a command line can be read by every process of the machine.
    #[error("a password in an address is seen by every process on this machine")]
    Password,
    /// Something is missing or wrong.
    #[error(
        "the address of a database is `sqlite:PATH`, `postgres://USER@HOST/NAME` or `mariadb://USER@HOST/NAME`: {0}"
    )]
    Malformed(String),
}

/// What may follow a `:` to make a text the address of a database.
const SCHEMES: [(&str, Engine); 6] = [
    ("sqlite", Engine::Sqlite),
    ("sqlite3", Engine::Sqlite),
    ("postgres", Engine::Postgres),
    ("postgresql", Engine::Postgres),
    ("mariadb", Engine::Mariadb),
    ("mysql", Engine::Mariadb),
];

impl Address {
    /// Whether a text is meant to be the address of a database.
    pub fn is_meant(text: &str) -> bool {
        let scheme = text.split_once(':').map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|(known, _)| *known == scheme))
    }

    /// Reads an address; a relative path is taken from `base`. One with a password in it
    /// is refused.
    pub fn parse(text: &str, base: &Path) -> Result<Self, AddressError> {
        let (address, password) = Self::parse_with_password(text, base)?;
        match password {
            None => Ok(address),
            Some(_) => Err(AddressError::Password),
        }
    }

    /// The same for a text that comes from a file or the environment, where a password
    /// may be. It is handed out by itself.
    pub fn parse_with_password(
        text: &str,
        base: &Path,
    ) -> Result<(Self, Option<String>), AddressError> {
        let malformed = |why: &str| AddressError::Malformed(why.to_owned());
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| malformed("it begins with none of these"))?;
        let engine = SCHEMES
            .iter()
            .find_map(|(known, engine)| (*known == scheme).then_some(*engine))
            .ok_or_else(|| malformed("it begins with none of these"))?;
        let (rest, only) = match rest.split_once('#') {
            Some((rest, only)) => (rest, read_only(only)?),
            None => (rest, Vec::new()),
        };
        if engine == Engine::Sqlite {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path.ends_with('/') {
                return Err(malformed("`sqlite:` needs the path of a file behind it"));
            }
            let place = Place::File(base.join(path));
            return Ok((Self { place, only }, None));
        }
        let rest = rest
            .strip_prefix("//")
            .ok_or_else(|| malformed("`//` is missing behind the scheme"))?;
        let (server, password) = read_server(rest)?;
        let place = Place::Server(engine, server);
        Ok((Self { place, only }, password))
    }

    /// Which kind of database.
    pub fn engine(&self) -> Engine {
        match &self.place {
            Place::File(_) => Engine::Sqlite,
            Place::Server(engine, _) => *engine,
        }
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Server(..) => None,
        }
    }

    /// The server of any other.
    pub fn server(&self) -> Option<&Server> {
        match &self.place {
            Place::File(_) => None,
            Place::Server(_, server) => Some(server),
        }
    }

    /// Where its server is reached, where nothing but the address and these variables say so.
    pub fn server_place(&self, variables: &BTreeMap<OsString, OsString>) -> Option<ServerPlace> {
        let server = self.server()?;
        let variable = |name: &str| {
            let found = variables.get(OsStr::new(name))?.to_str()?;
            (!found.is_empty()).then(|| found.to_owned())
        };
        let given = Some(server.host.clone()).filter(|host| !host.is_empty());
        let (host, port) = match self.engine() {
            Engine::Postgres => {
                let port = server.port;
                let port = port.or_else(|| variable("PGPORT")?.parse().ok());
                let port = port.unwrap_or(5432);
                let host = given.or_else(|| variable("PGHOST"));
                (host.unwrap_or_else(|| postgres::usual_socket(port)), port)
            }
            // The client's own settings may say otherwise: they are the user's.
            Engine::Mariadb | Engine::Sqlite => (
                given.unwrap_or_else(|| "localhost".to_owned()),
                server.port.unwrap_or(3306),
            ),
        };
        Some(match host.starts_with('/') {
            true => ServerPlace::Socket(match self.engine() {
                Engine::Postgres => Path::new(&host).join(format!(".s.PGSQL.{port}")),
                Engine::Mariadb | Engine::Sqlite => host.into(),
            }),
            false => ServerPlace::Host(host, port),
        })
    }

    /// The tables and schemas that are meant; empty for all.
    pub fn only(&self) -> &[String] {
        &self.only
    }

    /// The same database, all of it.
    pub fn whole(&self) -> Self {
        Self {
            place: self.place.clone(),
            only: Vec::new(),
        }
    }

    /// Whether whatever `other` means is meant by this one too.
    pub fn covers(&self, other: &Self) -> bool {
        self.place == other.place
            && (self.only.is_empty()
                || !other.only.is_empty()
                    && other
                        .only
                        .iter()
                        .all(|wanted| self.only.iter().any(|known| covers_name(known, wanted))))
    }

    /// Whether a table is meant. `name` has its schema in front where there are schemas.
    pub fn means(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|known| covers_name(known, name))
    }
}

/// Whether `known` (`users`, `public.users`, `audit.*`) means `name`, or all that `name` means.
pub(crate) fn covers_name(known: &str, name: &str) -> bool {
    if known == name {
        return true;
    }
    match known.strip_suffix(".*") {
        Some(schema) => name
            .strip_prefix(schema)
            .is_some_and(|rest| rest.starts_with('.')),
        // Without a schema, the usual one is meant.
        None => {
            name.strip_prefix("public.") == Some(known)
                || known.strip_prefix("public.") == Some(name)
        }
    }
}

fn read_only(text: &str) -> Result<Vec<String>, AddressError> {
    let mut only = Vec::new();
    for name in text.split(',') {
        let name = decode(name)?;
        if name.is_empty() || name == "*" || name.starts_with('.') {
            return Err(AddressError::Malformed(
                "behind `#` come names of tables, or `SCHEMA.*`, with commas between them".into(),
            ));
        }
        only.push(name);
    }
    only.sort();
    only.dedup();
    Ok(only)
}

fn read_server(text: &str) -> Result<(Server, Option<String>), AddressError> {
    let malformed = |why: &str| AddressError::Malformed(why.to_owned());
    if text.contains('?') {
        return Err(malformed("settings behind `?` are not understood"));
    }
    let (authority, name) = text
        .split_once('/')
        .ok_or_else(|| malformed("the name of the database is missing"))?;
    let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = match user.split_once(':') {
        Some((user, password)) => (user, Some(decode(password)?)),
        None => (user, None),
    };
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let port = port
                .parse()
                .map_err(|_| malformed("the port is no number"))?;
            (host, Some(port))
        }
        _ => (place, None),
    };
    let server = Server {
        host: decode(host.trim_start_matches('[').trim_end_matches(']'))?,
        port,
        user: decode(user)?,
        name: decode(name)?,
    };
    if server.name.is_empty() || server.name.contains('/') {
        return Err(malformed("the name of the database is missing"));
    }
    let bad = |text: &str| text.chars().any(char::is_control) || text.starts_with('-');
    if bad(&server.host) || bad(&server.user) || bad(&server.name) {
        return Err(malformed("it holds characters that no name has"));
    }
    Ok((server, password))
}

/// Undoes `%41`.
fn decode(text: &str) -> Result<String, AddressError> {
    let malformed = || AddressError::Malformed("`%` stands before two hexadecimal digits".into());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2).ok_or_else(malformed)?;
        let digits = std::str::from_utf8(digits).map_err(|_| malformed())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| malformed())?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| malformed())
}

/// Writes `%41` for what would not be read back.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'*' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::File(path) => write!(f, "sqlite:{}", path.display())?,
            Place::Server(engine, server) => {
                write!(f, "{}://", engine.scheme())?;
                if !server.user.is_empty() {
                    write!(f, "{}@", encode(&server.user))?;
                }
                match server.host.contains(':') {
                    true => write!(f, "[{}]", server.host)?,
                    false => write!(f, "{}", encode(&server.host))?,
                }
                if let Some(port) = server.port {
                    write!(f, ":{port}")?;
                }
                write!(f, "/{}", encode(&server.name))?;
            }
        }
        let mut before = '#';
        for name in &self.only {
            write!(f, "{before}{}", encode(name))?;
            before = ',';
        }
        Ok(())
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text, Path::new("/")).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, AddressError> {
        Address::parse(text, Path::new("/base")).map(|address| address.to_string())
    }

    #[test]
    fn addresses_print_as_they_are_read() {
        for (given, shown) in [
            ("sqlite:app.db", "sqlite:/base/app.db"),
            (
                "sqlite:/a b/app.db#users,orders",
                "sqlite:/a b/app.db#orders,users",
            ),
            (
                "postgres://me@db.example:5433/shop",
                "postgres://me@db.example:5433/shop",
            ),
            ("postgresql:///shop#audit.*", "postgres:///shop#audit.*"),
            ("postgres://%2Ftmp%2Fpg/shop", "postgres://%2Ftmp%2Fpg/shop"),
            (
                "postgres://me@[::1]:5433/shop",
                "postgres://me@[::1]:5433/shop",
            ),
            (
                "mysql://root@localhost/shop",
                "mariadb://root@localhost/shop",
            ),
        ] {
            assert_eq!(read(given), Ok(shown.to_owned()), "{given}");
            assert_eq!(read(shown), Ok(shown.to_owned()), "{shown}");
        }
    }

    #[test]
    fn st_16_a_password_in_an_address_is_refused_and_not_repeated() {
        let error = read("postgres://me:hunter2@db/shop").unwrap_err();
        assert_eq!(error, AddressError::Password);
        assert!(!error.to_string().contains("hunter2"));
        let given = "postgres://me:hunter%32@db/shop";
        let (address, password) = Address::parse_with_password(given, Path::new("/")).unwrap();
        assert_eq!(address.to_string(), "postgres://me@db/shop");
        assert_eq!(password.as_deref(), Some("hunter2"));
    }

    #[test]
    fn bad_addresses_are_refused() {
        for bad in [
            "sqlite:",
            "sqlite:dir/",
            "postgres:shop",
            "postgres://db",
            "postgres://db/",
            "postgres://db:x/shop",
            "postgres://db/a/b",
            "postgres://db/shop?sslmode=off",
            "postgres://-h/shop",
            "postgres://db/sh%op",
            "postgres://db/shop#",
            "redis://x/y",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn parts_are_covered_by_the_whole_and_by_schemas() {
        let address = |text| Address::parse(text, Path::new("/")).unwrap();
        let whole = address("postgres://db/shop");
        let users = address("postgres://db/shop#public.users");
        let schema = address("postgres://db/shop#public.*");
        assert!(whole.covers(&users) && schema.covers(&users) && users.covers(&users));
        assert!(!users.covers(&whole) && !users.covers(&schema));
        assert!(users.covers(&address("postgres://db/shop#users")));
        assert!(!whole.covers(&address("postgres://other/shop")));
        assert!(schema.means("public.x") && !schema.means("publicx.y"));
    }
}
