//! Where the server is and who we are there: from the address first, then from the
//! variables that `psql` knows, then from what is usual.
//!
//! The password lives here, and leaves only for the server and for the environment of
//! `pg_dump`. Nothing here can be printed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::Config;

use crate::database::CONNECT_TIMEOUT;
use crate::{Database, DatabaseError};

/// Where sockets usually are.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];
/// The port of a server that nobody has set up otherwise.
const PORT: u16 = 5432;

/// Everything that a connection needs.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) address: String,
    host: String,
    port: u16,
    user: String,
    database: String,
    password: Option<String>,
    /// A file of passwords that was passed over, because others can read it.
    open_file: Option<PathBuf>,
    timeout: Duration,
    /// What a child needs besides.
    surroundings: BTreeMap<OsString, OsString>,
}

impl Place {
    pub(super) fn of(database: &Database) -> Result<Self, DatabaseError> {
        let address = database.address.to_string();
        let unsupported = |why: &str| DatabaseError::Unsupported {
            address: address.clone(),
            why: why.to_owned(),
        };
        let server = database.address.server().cloned().unwrap_or_default();
        let variables = &database.access.variables;
        let variable = |name: &str| {
            let found = variables.get(OsStr::new(name));
            let found = found.and_then(|text| text.to_str());
            found.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let port = match (server.port, variable("PGPORT")) {
            (Some(port), _) => port,
            (None, Some(text)) => text
                .parse()
                .map_err(|_| unsupported("`PGPORT` is no number"))?,
            (None, None) => PORT,
        };
        let host = given(&server.host)
            .or_else(|| variable("PGHOST"))
            .unwrap_or_else(|| usual_socket(port));
        let user = given(&server.user)
            .or_else(|| variable("PGUSER"))
            .or_else(|| variable("USER"))
            .or_else(|| variable("LOGNAME"))
            .ok_or_else(|| unsupported("it names no user, and neither does `PGUSER`"))?;
        let name = given(&server.name)
            .or_else(|| variable("PGDATABASE"))
            .unwrap_or_else(|| user.clone());
        let encrypted = variable("PGSSLMODE")
            .is_some_and(|mode| ["require", "verify-ca", "verify-full"].contains(&mode.as_str()));
        if encrypted && !host.starts_with('/') {
            // Going on without would send rows over the wire that were meant to be hidden.
            return Err(unsupported(
                "`PGSSLMODE` asks for encryption, which is not supported; reach the server through a socket or a tunnel",
            ));
        }
        let mut place = Self {
            address,
            host,
            port,
            user,
            database: name,
            password: variable("PGPASSWORD"),
            open_file: None,
            timeout: variable("PGCONNECT_TIMEOUT")
                .and_then(|text| text.parse().ok())
                .filter(|seconds| *seconds > 0)
                .map_or(CONNECT_TIMEOUT, Duration::from_secs),
            surroundings: surroundings(variables),
        };
        if place.password.is_none() {
            let file = variables.get(OsStr::new("PGPASSFILE")).map(PathBuf::from);
            let home = variables.get(OsStr::new("HOME"));
            let file = file.or_else(|| home.map(|home| Path::new(home).join(".pgpass")));
            if let Some(file) = file {
                place.look_up_password(file);
            }
        }
        Ok(place)
    }

    /// How long the server has until its first answer.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// For our own connection.
    pub(super) fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host(&self.host)
            .port(self.port)
            .user(&self.user)
            .dbname(&self.database)
            .application_name("safepoint")
            .connect_timeout(self.timeout)
            .notice_callback(|_| {});
        if let Some(password) = &self.password {
            config.password(password);
        }
        config
    }

    /// For the environment of a child. Its arguments could be read by everybody.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        let mut variables = self.surroundings.clone();
        let mut set = |name: &str, value: &str| {
            variables.insert(name.into(), value.into());
        };
        set("PGHOST", &self.host);
        set("PGPORT", &self.port.to_string());
        set("PGUSER", &self.user);
        set("PGDATABASE", &self.database);
        set("PGAPPNAME", "safepoint");
        set("PGCONNECT_TIMEOUT", &self.timeout.as_secs().to_string());
        if let Some(password) = &self.password {
            set("PGPASSWORD", password);
        }
        variables
    }

    /// The name of the database on its server.
    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// What to do when the server does not take our password, or wants one.
    pub(super) fn advice(&self) -> String {
        match &self.open_file {
            Some(file) => format!(
                "`{}` was passed over, because others can read it: `chmod 600` it",
                file.display()
            ),
            None => "set `PGPASSWORD`, or write the password into `~/.pgpass`".to_owned(),
        }
    }

    fn look_up_password(&mut self, file: PathBuf) {
        let Ok(found) = std::fs::metadata(&file) else {
            return;
        };
        if !found.is_file() {
            return;
        }
        if found.mode() & 0o077 != 0 {
            self.open_file = Some(file);
            return;
        }
        let Ok(text) = std::fs::read(&file) else {
            return;
        };
        // What `libpq` calls the usual socket.
        let host = match SOCKETS.contains(&self.host.as_str()) {
            true => "localhost",
            false => &self.host,
        };
        let port = self.port.to_string();
        let wanted = [host, &port, &self.database, &self.user];
        let line = text
            .split(|byte| *byte == b'\n')
            .find_map(|line| password_in(line.strip_suffix(b"\r").unwrap_or(line), wanted));
        self.password = line;
    }
}

/// The password in a line `host:port:database:user:password`, when the line is for us.
fn password_in(line: &[u8], wanted: [&str; 4]) -> Option<String> {
    if line.first() == Some(&b'#') {
        return None;
    }
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            ':' => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let [host, port, database, user, password] = fields.as_slice() else {
        return None;
    };
    let fits = [host, port, database, user]
        .iter()
        .zip(wanted)
        .all(|(field, wanted)| field.as_str() == "*" || field.as_str() == wanted);
    (fits && !password.is_empty()).then(|| password.clone())
}

/// The first of the usual directories that has a socket in it.
pub(crate) fn usual_socket(port: u16) -> String {
    let found = SOCKETS.iter().find(|directory| {
        Path::new(directory)
            .join(format!(".s.PGSQL.{port}"))
            .exists()
    });
    found
        .or(SOCKETS.first())
        .map_or_else(String::new, |directory| (*directory).to_owned())
}

/// What a child needs to run at all. Its messages are in English: we read them.
fn surroundings(variables: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<_, _> = variables
        .iter()
        .filter(|(name, _)| {
            let name = name.as_bytes();
            [&b"PATH"[..], b"HOME", b"PGSSLMODE", b"PGSSLROOTCERT"].contains(&name)
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    kept.insert("LC_ALL".into(), "C".into());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Address};

    fn place(address: &str, variables: &[(&str, &str)]) -> Place {
        let address = Address::parse(address, Path::new("/")).unwrap();
        let access = Access {
            variables: variables
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect(),
            scratch: PathBuf::new(),
            lock_timeout: Duration::from_secs(1),
        };
        Place::of(&Database::new(address, access)).ok().unwrap()
    }

    #[test]
    fn the_address_comes_before_the_variables() {
        let variables = [
            ("PGHOST", "elsewhere"),
            ("PGPORT", "6000"),
            ("PGUSER", "someone"),
            ("USER", "login"),
        ];
        let given = place("postgres://me@db:5433/shop", &variables);
        assert_eq!(
            (given.host.as_str(), given.port, given.user.as_str()),
            ("db", 5433, "me")
        );
        let open = place("postgres:///shop", &variables);
        assert_eq!(
            (open.host.as_str(), open.port, open.user.as_str()),
            ("elsewhere", 6000, "someone")
        );
        let login = place("postgres://db/shop", &[("USER", "login")]);
        assert_eq!((login.user.as_str(), login.port), ("login", 5432));
    }

    #[test]
    fn st_16_a_password_reaches_a_child_by_its_environment_alone() {
        let place = place("postgres://me@db/shop", &[("PGPASSWORD", "hunter2")]);
        let variables = place.variables();
        assert_eq!(
            variables.get(OsStr::new("PGPASSWORD")),
            Some(&OsString::from("hunter2"))
        );
        assert!(!place.address.contains("hunter2"));
    }

    #[test]
    fn a_line_of_a_password_file_is_for_us_or_not() {
        let wanted = ["db", "5432", "shop", "me"];
        for (line, password) in [
            ("db:5432:shop:me:secret", Some("secret")),
            ("*:*:*:me:secret", Some("secret")),
            (r"*:*:*:me:a\:b\\c", Some(r"a:b\c")),
            ("*:*:*:you:secret", None),
            ("*:*:*:me:", None),
            ("# *:*:*:me:secret", None),
            ("nonsense", None),
        ] {
            assert_eq!(
                password_in(line.as_bytes(), wanted).as_deref(),
                password,
                "{line}"
            );
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "the test writes a file of its own"
    )]
    fn a_password_file_that_others_can_read_is_passed_over() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(".pgpass");
        std::fs::write(&file, "other:*:*:*:no\n*:*:shop:me:secret\n").unwrap();
        let variables = [("HOME", directory.path().to_str().unwrap())];
        let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o600);
        let read = place("postgres://me@db/shop", &variables);
        assert_eq!(read.password.as_deref(), Some("secret"));
        mode(0o644);
        let open = place("postgres://me@db/shop", &variables);
        assert_eq!(open.password, None);
        assert!(open.advice().contains("chmod 600"));
    }
}
