//! The engines' own programs: found, asked for their version, and run without
//! a password in sight of others.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::DatabaseError;

/// The names of all of them.
pub const PROGRAMS: [&str; 3] = [PG_DUMP, MARIADB, MYSQL];
pub(crate) const PG_DUMP: &str = "pg_dump";
pub(crate) const MARIADB: &str = "mariadb";
/// What the client of MariaDB was called before it had a name of its own.
pub(crate) const MYSQL: &str = "mysql";

/// A program that was found.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    /// What it is called.
    pub(crate) name: String,
    program: PathBuf,
}

impl Tool {
    /// The first of `names` on `PATH`. Relative entries of the path are passed over: they would
    /// let a work tree bring its own program.
    pub(crate) fn find(
        names: &[&str],
        variables: &BTreeMap<OsString, OsString>,
        package: &str,
    ) -> Result<Self, DatabaseError> {
        let path = variables.get(OsStr::new("PATH"));
        for name in names {
            let found = path
                .into_iter()
                .flat_map(std::env::split_paths)
                .find_map(|directory| {
                    let program = directory.join(name);
                    (directory.is_absolute() && is_executable(&program)).then_some(program)
                });
            if let Some(program) = found {
                return Ok(Self {
                    name: (*name).to_owned(),
                    program,
                });
            }
        }
        Err(DatabaseError::MissingTool {
            tool: names.first().copied().unwrap_or_default().to_owned(),
            package: package.to_owned(),
        })
    }

    /// A command of it with nothing but `variables` in its environment. Whatever is secret
    /// goes there: arguments can be read by everybody.
    pub(crate) fn command<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a OsString, &'a OsString)>,
    ) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "the engines' own programs are run here, and nothing else is"
        )]
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .envs(variables)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The error that says this tool failed.
    pub(crate) fn failed(&self, why: impl Into<String>) -> DatabaseError {
        DatabaseError::Tool {
            tool: self.name.clone(),
            why: why.into(),
        }
    }
}

fn is_executable(program: &std::path::Path) -> bool {
    std::fs::metadata(program)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}
