//! `pg_dump`, for the structure alone: it knows how everything that a server can hold is
//! written down. The rows come over our own connection, from the same snapshot.

use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use super::name::{Name, quote};
use super::place::Place;
use super::scope::{Extent, Unit};
use super::script::{Step, steps};
use crate::tool::{PG_DUMP, Tool};
use crate::{Database, DatabaseError};

/// What is made before the rows, and what behind them.
pub(super) struct Scripts {
    pub(super) structure: Vec<Step>,
    pub(super) finish: Vec<Step>,
}

/// How to call it.
pub(super) struct Dump<'a> {
    tool: Tool,
    place: &'a Place,
    snapshot: &'a str,
    version: u32,
    server: &'a str,
    lock_timeout: Duration,
}

impl<'a> Dump<'a> {
    /// Finds it. That it is new enough is seen when it runs: asking costs as much as running.
    pub(super) fn find(
        database: &Database,
        place: &'a Place,
        snapshot: &'a str,
        (version, server): (u32, &'a str),
    ) -> Result<Self, DatabaseError> {
        let variables = &database.access.variables;
        Ok(Self {
            tool: Tool::find(&[PG_DUMP], variables, "postgresql-client")?,
            place,
            snapshot,
            version,
            server,
            lock_timeout: database.access.lock_timeout,
        })
    }

    /// The scripts of one unit.
    pub(super) fn scripts(&self, unit: &Unit) -> Result<Scripts, DatabaseError> {
        // Beside each other: most of the time, each waits for the server.
        let (structure, finish) = thread::scope(|threads| {
            let structure = threads.spawn(|| self.section("pre-data", unit));
            let finish = self.section("post-data", unit);
            let structure = structure
                .join()
                .unwrap_or_else(|_| Err(self.tool.failed("it could not be read")));
            (structure, finish)
        });
        Ok(Scripts {
            structure: steps(&structure?),
            finish: steps(&finish?),
        })
    }

    fn section(&self, section: &str, unit: &Unit) -> Result<String, DatabaseError> {
        let variables = self.place.variables();
        let mut command = self.tool.command(&variables);
        command.args([
            "--schema-only",
            "--no-password",
            "--no-subscriptions",
            "--encoding=UTF8",
            "--strict-names",
        ]);
        command.arg(format!("--section={section}"));
        command.arg(format!("--snapshot={}", self.snapshot));
        command.arg(format!(
            "--lock-wait-timeout={}",
            self.lock_timeout.as_millis().max(1)
        ));
        match &unit.extent {
            Extent::Database => {}
            Extent::Schema(schema) => {
                command.arg(format!("--schema={}", quote(schema)));
            }
            Extent::Table(_) => {
                for table in &unit.tables {
                    // In quotes, nothing in it is a pattern.
                    command.arg(format!("--table={}", Name::sql(table)));
                }
            }
        }
        let (status, script, said) = self.run(command)?;
        if !status.success() {
            return Err(self.failure(&String::from_utf8_lossy(&said)));
        }
        String::from_utf8(script).map_err(|_| DatabaseError::Unsupported {
            address: self.place.address.clone(),
            why: "its names and definitions are in no encoding that is known".into(),
        })
    }

    fn run(&self, mut command: Command) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), DatabaseError> {
        let failed = |error: std::io::Error| self.tool.failed(error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let read = read_both(&mut child);
        let status = child.wait().map_err(failed)?;
        let (output, said) = read.map_err(failed)?;
        Ok((status, output, said))
    }

    /// What its message means.
    fn failure(&self, said: &str) -> DatabaseError {
        if said.contains("lock timeout") {
            return DatabaseError::Locked {
                address: self.place.address.clone(),
            };
        }
        if said.contains("server version mismatch") {
            let found = said
                .split_once("pg_dump version: ")
                .and_then(|(_, found)| found.split_whitespace().next())
                .unwrap_or("an older version");
            return DatabaseError::OldTool {
                tool: self.tool.name.clone(),
                found: found.to_owned(),
                address: self.place.address.clone(),
                server: match self.server.split_whitespace().next() {
                    Some(server) => server.to_owned(),
                    None => (self.version / 10_000).to_string(),
                },
            };
        }
        let lines: Vec<&str> = said
            .lines()
            .map(|line| {
                line.trim_start_matches("pg_dump: ")
                    .trim_start_matches("error: ")
            })
            .collect();
        self.tool.failed(lines.join("; "))
    }
}

/// Reads both outputs at once, so that neither blocks the other.
fn read_both(child: &mut Child) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let (mut output, mut said) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    thread::scope(|threads| {
        let errors = threads.spawn(|| match stderr {
            Some(mut stderr) => stderr.read_to_end(&mut said).map(|_| ()),
            None => Ok(()),
        });
        if let Some(mut stdout) = stdout {
            stdout.read_to_end(&mut output)?;
        }
        errors
            .join()
            .unwrap_or_else(|_| Err(std::io::Error::other("its messages could not be read")))
    })?;
    Ok((output, said))
}
