//! One connection of ours.
//!
//! Queries go by the simple protocol: answers are texts, and a whole script is one
//! message. Everything that is set is set for one transaction, so that a pool between
//! us and the server hands nothing of it on.

use std::io::{BufRead, Write};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use postgres::{Client, NoTls, SimpleQueryMessage};

use super::meaning::{broken, classify, refused};
use super::place::Place;
use crate::{Database, DatabaseError, Row};

/// The oldest server that we know the catalogue of.
const OLDEST: u32 = 120_000;

/// How many bytes of rows are handed on at once.
const RUN: usize = 128 * 1024;

/// Somebody who takes rows, in runs.
pub(super) type Take<'a> = dyn FnMut(&[u8]) -> Result<(), DatabaseError> + 'a;

/// One connection.
pub(super) struct Session {
    client: Client,
    place: Place,
    /// As the server counts: 150004 for 15.4.
    pub(super) version: u32,
    /// As the server writes it.
    pub(super) server: String,
    /// `COPY` writes bytes as they are where the server does not know what they mean.
    unknown_encoding: bool,
}

impl Session {
    /// Connects.
    pub(super) fn open(database: &Database) -> Result<Self, DatabaseError> {
        Self::connect(Place::of(database)?)
    }

    /// Connects once more.
    pub(super) fn again(&self) -> Result<Self, DatabaseError> {
        Self::connect(self.place.clone())
    }

    /// Connects. The client library bounds only the time until the server accepts; a server that
    /// accepts and then says nothing would hold us forever, so everything up to its first answer
    /// is done on a thread that is waited for no longer than that.
    fn connect(place: Place) -> Result<Self, DatabaseError> {
        let (limit, address) = (place.timeout(), place.address.clone());
        let unreachable = |why: String| DatabaseError::Unreachable { address, why };
        let (sender, attempt) = sync_channel(1);
        let begun = std::thread::Builder::new()
            .name("postgres-connect".to_owned())
            .spawn(move || {
                // Nobody may be waiting any more; then the connection is closed.
                let _ = sender.send(Self::shake_hands(place));
            });
        if let Err(error) = begun {
            return Err(unreachable(error.to_string()));
        }
        match attempt.recv_timeout(limit) {
            Ok(connected) => connected,
            Err(RecvTimeoutError::Timeout) => Err(unreachable(format!(
                "the server said nothing for {} s (`PGCONNECT_TIMEOUT`)",
                limit.as_secs()
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                Err(unreachable("the attempt to connect was cut off".to_owned()))
            }
        }
    }

    fn shake_hands(place: Place) -> Result<Self, DatabaseError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the user's databases are opened here, and never as a store"
        )]
        let connected = place.config().connect(NoTls);
        let client = connected.map_err(|error| refused(&place, &error))?;
        let mut session = Self {
            client,
            place,
            version: 0,
            server: String::new(),
            unknown_encoding: false,
        };
        let known = session.one(
            "SELECT current_setting('server_version_num'), current_setting('server_version'), \
             current_setting('server_encoding') = 'SQL_ASCII'",
        )?;
        let mut known = known.into_iter();
        let mut text = || known.next().flatten().unwrap_or_default();
        session.version = text().parse().unwrap_or(0);
        session.server = text();
        session.unknown_encoding = text() == "t";
        if session.version < OLDEST {
            return Err(session.unsupported(format!(
                "PostgreSQL {} is older than 12, which is the oldest that is supported",
                session.server
            )));
        }
        Ok(session)
    }

    /// Where it leads.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Runs a script and forgets its answers.
    pub(super) fn run(&mut self, script: &str) -> Result<(), DatabaseError> {
        let done = self.client.batch_execute(script);
        done.map_err(|error| self.failed(&error))
    }

    /// The same, with the server's code beside the error.
    pub(super) fn attempt(&mut self, script: &str) -> Result<(), (DatabaseError, Option<String>)> {
        let done = self.client.batch_execute(script);
        done.map_err(|error| {
            let code = error.code().map(|code| code.code().to_owned());
            (self.failed(&error), code)
        })
    }

    /// All rows of the answer.
    pub(super) fn ask(&mut self, query: &str) -> Result<Vec<Row>, DatabaseError> {
        let answer = self.client.simple_query(query);
        let answer = answer.map_err(|error| self.failed(&error))?;
        let mut rows = Vec::new();
        for message in answer {
            if let SimpleQueryMessage::Row(row) = message {
                let cells = (0..row.len()).map(|cell| row.try_get(cell).ok().flatten());
                rows.push(cells.map(|cell| cell.map(str::to_owned)).collect());
            }
        }
        Ok(rows)
    }

    /// The first row of the answer.
    pub(super) fn one(&mut self, query: &str) -> Result<Row, DatabaseError> {
        Ok(self.ask(query)?.into_iter().next().unwrap_or_default())
    }

    /// The first column of all rows.
    pub(super) fn column(&mut self, query: &str) -> Result<Vec<String>, DatabaseError> {
        let rows = self.ask(query)?;
        Ok(rows
            .into_iter()
            .filter_map(|row| row.into_iter().next().flatten())
            .collect())
    }

    /// The rows of a table, in runs, one row to a line. Returns how many there were.
    pub(super) fn copy_out(
        &mut self,
        table: &str,
        take: &mut Take<'_>,
    ) -> Result<u64, DatabaseError> {
        let command = format!("COPY {table} TO STDOUT{}", self.copy_options(&[]));
        let mut rows = 0;
        let mut run = Vec::with_capacity(RUN + RUN / 4);
        let place = &self.place;
        let mut reader = match self.client.copy_out(command.as_str()) {
            Ok(reader) => reader,
            Err(error) => return Err(classify(place, &error)),
        };
        loop {
            let read = reader.fill_buf().map_err(|error| broken(place, &error))?;
            let length = read.len();
            run.extend_from_slice(read);
            reader.consume(length);
            if run.len() >= RUN || length == 0 {
                rows += lines(&run);
                if !run.is_empty() {
                    take(&run)?;
                }
                run.clear();
            }
            if length == 0 {
                return Ok(rows);
            }
        }
    }

    /// Fills a table with what `give` writes. Returns how many rows the server took.
    pub(super) fn copy_in(
        &mut self,
        table: &str,
        give: &mut dyn FnMut(&mut Take<'_>) -> Result<(), DatabaseError>,
    ) -> Result<u64, DatabaseError> {
        // Nobody sees these rows before the commit, so they need no later vacuum.
        let command = format!("COPY {table} FROM STDIN{}", self.copy_options(&["FREEZE"]));
        let place = &self.place;
        let mut writer = match self.client.copy_in(command.as_str()) {
            Ok(writer) => writer,
            Err(error) => return Err(classify(place, &error)),
        };
        // Dropped without `finish`, it tells the server to take nothing.
        give(&mut |run| {
            let written = writer.write_all(run);
            written.map_err(|error| broken(place, &error))
        })?;
        writer.finish().map_err(|error| classify(place, &error))
    }

    fn copy_options(&self, options: &[&str]) -> String {
        let mut options: Vec<&str> = options.to_vec();
        if self.unknown_encoding {
            options.push("ENCODING 'SQL_ASCII'");
        }
        match options.is_empty() {
            true => String::new(),
            false => format!(" ({})", options.join(", ")),
        }
    }

    /// Commits. When the connection is lost in that very moment, the server is asked what
    /// became of the transaction.
    pub(super) fn commit(&mut self) -> Result<(), DatabaseError> {
        let number = self.one("SELECT txid_current()")?;
        let number = number.into_iter().next().flatten().unwrap_or_default();
        let lost = match self.run("COMMIT") {
            Err(lost @ DatabaseError::Lost { .. }) => lost,
            other => return other,
        };
        let mut again = self.again().map_err(|_| lost.clone())?;
        let status = again.one(&format!("SELECT txid_status({number})"));
        match status
            .ok()
            .into_iter()
            .flatten()
            .next()
            .flatten()
            .as_deref()
        {
            Some("committed") => Ok(()),
            Some("aborted") => Err(lost),
            _ => Err(DatabaseError::Lost {
                address: self.place.address.clone(),
                why: "whether the last commit was done is not known; look at the database".into(),
            }),
        }
    }

    /// Ends the transaction without a trace. A lost connection has done that already.
    pub(super) fn roll_back(&mut self) {
        let _ = self.run("ROLLBACK");
    }

    /// The error for something that we cannot do justice to.
    pub(super) fn unsupported(&self, why: impl Into<String>) -> DatabaseError {
        DatabaseError::Unsupported {
            address: self.place.address.clone(),
            why: why.into(),
        }
    }

    fn failed(&self, error: &postgres::Error) -> DatabaseError {
        classify(&self.place, error)
    }
}

/// Settings that make the server write and read the same bytes for the same rows,
/// whoever has set what for the role or the database.
pub(super) fn settings(version: u32, lock_timeout: Duration) -> String {
    let newer = match version >= 170_000 {
        true => "SET LOCAL transaction_timeout = 0; ",
        false => "",
    };
    let milliseconds = lock_timeout.as_millis().clamp(1, i32::MAX as u128); // 0 would mean forever
    format!(
        "{newer}SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {milliseconds}; \
         SET LOCAL idle_in_transaction_session_timeout = 0; \
         SET LOCAL search_path TO ''; SET LOCAL row_security = off; \
         SET LOCAL datestyle = 'ISO, YMD'; SET LOCAL intervalstyle = postgres; \
         SET LOCAL timezone = 'UTC'; SET LOCAL extra_float_digits = 3; \
         SET LOCAL bytea_output = hex; SET LOCAL lc_monetary = 'C'; SET LOCAL xmloption = content; \
         SET LOCAL standard_conforming_strings = on; SET LOCAL quote_all_identifiers = off; \
         SET LOCAL synchronize_seqscans = off; SET LOCAL check_function_bodies = off; \
         SET LOCAL client_min_messages = warning; SET LOCAL jit = off;"
    )
}

/// How many lines there are: the line breaks in values are written in another way.
fn lines(run: &[u8]) -> u64 {
    run.iter().map(|byte| u64::from(*byte == b'\n')).sum()
}
