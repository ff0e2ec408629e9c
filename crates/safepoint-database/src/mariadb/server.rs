//! How a server is reached: which client, with which arguments, and how a session
//! of ours is set up. The client finds the password by itself, in `MYSQL_PWD` or
//! in the user's own `~/.my.cnf`; it is in no argument.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::address::Server as Place;
use crate::database::CONNECT_TIMEOUT;
use crate::tool::{MARIADB, MYSQL, Tool};
use crate::{Database, DatabaseError};

use super::lex;
use super::session::Session;
use super::trouble::{NO_DATABASE, Trouble};
use super::version::Version;

/// How a server is reached.
pub(super) struct Server {
    tool: Tool,
    arguments: Vec<OsString>,
    variables: BTreeMap<OsString, OsString>,
    /// The address, for errors.
    pub(super) address: String,
    /// The name of the database, as the address has it.
    pub(super) database: String,
    /// How many seconds to wait for locks.
    pub(super) patience: u64,
    /// The version of the server.
    pub(super) version: Version,
}

/// What overrides the user's own settings of the client, so that its output is as expected.
/// In binary mode, statements hold no commands to the client, such as `\!`.
const FIXED: [&str; 27] = [
    "--batch",
    "--binary-mode",
    "--comments",
    "--default-character-set=utf8mb4",
    "--force",
    "--init-command=DO 0",
    "--local-infile=0",
    "--loose-skip-binary-as-hex",
    "--loose-skip-print-query-on-error",
    "--loose-skip-progress-reports",
    "--max-allowed-packet=1G",
    "--quick",
    "--skip-auto-rehash",
    "--skip-auto-vertical-output",
    "--skip-column-names",
    "--skip-html",
    "--skip-named-commands",
    "--skip-pager",
    "--skip-raw",
    "--skip-reconnect",
    "--skip-safe-updates",
    "--skip-show-warnings",
    "--skip-table",
    "--skip-tee",
    "--skip-vertical",
    "--skip-xml",
    "--unbuffered",
];

/// The variables that the client has a use for.
const VARIABLES: [&str; 9] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "USER",
];

impl Server {
    /// Finds the client and the server, and asks both for their versions.
    pub(super) fn reach(database: &Database) -> Result<Self, DatabaseError> {
        let address = database.address.to_string();
        let place = database
            .address
            .server()
            .ok_or_else(|| DatabaseError::Unsupported {
                address: address.clone(),
                why: "it is not the address of a server".into(),
            })?;
        let variables: BTreeMap<OsString, OsString> = database
            .access
            .variables
            .iter()
            .filter(|(name, _)| is_passed(&name.to_string_lossy()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let tool = Tool::find(&[MARIADB, MYSQL], &variables, "mariadb-client")?;
        let timeout = database.access.lock_timeout;
        let mut server = Self {
            arguments: arguments(place, CONNECT_TIMEOUT.as_secs()),
            tool,
            variables,
            address,
            database: place.name.clone(),
            patience: timeout.as_millis().div_ceil(1000).max(1) as u64,
            version: Version::default(),
        };
        let client = server.client_version()?;
        let mut session = server.start()?;
        server.version = Version::read(&session.value("SELECT VERSION()")?);
        if server.version.number == (0, 0) {
            let why = "it prints more than it is asked for: is `verbose` in its settings?";
            return Err(server.tool.failed(why));
        }
        if session.value("SELECT @@lower_case_table_names")? == "1" {
            // This server writes all names small, and lists them so.
            server.database = server.database.to_lowercase();
        }
        if !server.version.is_enough() {
            return Err(DatabaseError::Unsupported {
                why: format!(
                    "version {} is older than MariaDB 10.3 and MySQL 8.0",
                    server.version.text
                ),
                address: server.address,
            });
        }
        // An older client than this one has no binary mode to rely on.
        if client.number < (5, 6) {
            return Err(DatabaseError::OldTool {
                tool: server.tool.name,
                found: client.text,
                address: server.address,
                server: server.version.text,
            });
        }
        session.close();
        Ok(server)
    }

    fn client_version(&self) -> Result<Version, DatabaseError> {
        let mut command = self.tool.command(&self.variables);
        let output = command
            .arg("--version")
            .output()
            .map_err(|error| self.tool.failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Version::read_tool(&text).ok_or_else(|| self.tool.failed("`--version` tells no version"))
    }

    fn start(&self) -> Result<Session, DatabaseError> {
        let mut command = self.tool.command(&self.variables);
        command.args(&self.arguments);
        Session::start(command, &self.address)
    }

    /// A session with the server's own settings, in the database, for the user's statements.
    pub(super) fn plain_session(&self) -> Result<Session, DatabaseError> {
        let mut session = self.start()?;
        // Learns the `sql_mode`, and with it how quotes are read.
        session.run("DO 0")?;
        session.run(format!(
            "SET SESSION lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0}",
            self.patience
        ))?;
        self.enter(&mut session, &self.database)?;
        Ok(session)
    }

    /// A session that reads and writes everything as it is stored, in no database yet.
    pub(super) fn session(&self) -> Result<Session, DatabaseError> {
        let mut session = self.start()?;
        for statement in self.settings() {
            session.run(statement)?;
        }
        Ok(session)
    }

    fn settings(&self) -> Vec<String> {
        let mut settings = vec![
            // Dates that no calendar has, and rows with the number 0, are stored as they are.
            format!("SET SESSION sql_mode = '{OWN_MODE}'"),
            "SET SESSION time_zone = '+00:00', sql_quote_show_create = 1".to_owned(),
            format!(
                "SET SESSION lock_wait_timeout = {0}, innodb_lock_wait_timeout = {0}",
                self.patience
            ),
            // We may be slow: what we read goes to a disk.
            "SET SESSION net_read_timeout = 3600, net_write_timeout = 3600, \
             wait_timeout = 86400"
                .to_owned(),
            "SET SESSION foreign_key_checks = 0, unique_checks = 0".to_owned(),
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
        ];
        let settings_of_the_kind: &[&str] = match self.version.is_mariadb {
            true => &[
                "SET SESSION max_statement_time = 0, check_constraint_checks = 0, \
                 innodb_strict_mode = 0",
            ],
            // It lets only administrators set more.
            false => &["SET SESSION max_execution_time = 0, information_schema_stats_expiry = 0"],
        };
        settings.extend(settings_of_the_kind.iter().map(|text| (*text).to_owned()));
        if self.version.is_mariadb_from(10, 11) {
            settings.push(
                "SET SESSION system_versioning_insert_history = 1, \
                 explicit_defaults_for_timestamp = 1"
                    .to_owned(),
            );
        }
        settings
    }

    /// Makes `database` the one that names without a database mean.
    pub(super) fn enter(&self, session: &mut Session, database: &str) -> Result<(), DatabaseError> {
        match session.run(format!("USE {}", lex::name(database))) {
            Err(trouble) if trouble.code() == Some(NO_DATABASE) => Err(self.no_database()),
            result => Ok(result.map(|_| ())?),
        }
    }

    fn no_database(&self) -> DatabaseError {
        DatabaseError::NotFound {
            what: "database",
            name: self.database.clone(),
            address: self.address.clone(),
        }
    }

    /// Takes a lock that lives as long as the session; `false` when somebody has it for
    /// longer than `patience` seconds.
    pub(super) fn lock(
        &self,
        session: &mut Session,
        name: &str,
        patience: u64,
    ) -> Result<bool, Trouble> {
        Ok(session.value(&format!("SELECT GET_LOCK('{name}', {patience})"))? == "1")
    }

    /// The error that says something is locked.
    pub(super) fn locked(&self) -> DatabaseError {
        DatabaseError::Locked {
            address: self.address.clone(),
        }
    }

    /// The error that says something cannot be done justice to.
    pub(super) fn unsupported(&self, why: impl Into<String>) -> DatabaseError {
        DatabaseError::Unsupported {
            address: self.address.clone(),
            why: why.into(),
        }
    }
}

/// The `sql_mode` of our own sessions.
pub(super) const OWN_MODE: &str = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO";

fn is_passed(name: &str) -> bool {
    VARIABLES.contains(&name) || name.starts_with("MYSQL_") || name.starts_with("MARIADB_")
}

fn arguments(place: &Place, timeout: u64) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = FIXED.iter().map(OsString::from).collect();
    arguments.push(format!("--connect-timeout={timeout}").into());
    if !place.user.is_empty() {
        arguments.push(format!("--user={}", place.user).into());
    }
    if let Some(port) = place.port {
        arguments.push(format!("--port={port}").into());
    }
    match place.host.as_str() {
        "" => {}
        path if path.starts_with('/') => {
            let mut socket = OsString::from("--socket=");
            socket.push(socket_at(Path::new(path)));
            arguments.push(socket);
            arguments.push("--protocol=socket".into());
        }
        host => {
            arguments.push(format!("--host={host}").into());
            if place.port.is_some() {
                // The client would take `localhost` for a socket.
                arguments.push("--protocol=tcp".into());
            }
        }
    }
    arguments
}

/// The socket that `path` is, or the first one by name in the directory that it is.
fn socket_at(path: &Path) -> std::path::PathBuf {
    let mut sockets: Vec<_> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
        .map(|entry| entry.path())
        .collect();
    sockets.sort();
    sockets
        .into_iter()
        .next()
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_with_a_slash_is_a_socket() {
        let place = Place {
            host: "/run/nowhere/mysqld.sock".into(),
            port: None,
            user: "me".into(),
            name: "shop".into(),
        };
        let arguments = arguments(&place, 10);
        for wanted in [
            "--user=me",
            "--socket=/run/nowhere/mysqld.sock",
            "--protocol=socket",
        ] {
            assert!(arguments.contains(&wanted.into()), "{wanted}");
        }
        let tcp = Place {
            host: "localhost".into(),
            port: Some(3307),
            ..Place::default()
        };
        assert!(super::arguments(&tcp, 10).contains(&"--protocol=tcp".into()));
    }
}
