//! One connection, held by a `mariadb` client that runs as a child of ours.
//!
//! Statements go in through its standard input, one at a time, and their rows come
//! out of its standard output. Behind each statement go two marks with a random
//! number: a `SELECT`, whose row ends the answer, and a `SIGNAL`, whose error ends
//! what the client says on its standard error. So both streams tell where an
//! answer ends, errors cannot overtake rows, and a statement that fails leaves the
//! session usable. Both streams are read by threads all the time: no pipe fills
//! up while we write.
//!
//! When our process dies, the client reads the end of its input and goes; the
//! server then rolls back and releases whatever the session held.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::DatabaseError;
use crate::database::CONNECT_TIMEOUT;

use super::lex::{self, Backslash};
use super::pipe::{Event, RUNS, forward, is_lost, random, unescape};
use super::trouble::{Trouble, read_error};

/// How long the client has until its first answer: to start, and to be let in by the server, for
/// which it has the usual time.
const FIRST_ANSWER_TIMEOUT: Duration = Duration::from_secs(2 * CONNECT_TIMEOUT.as_secs());

/// What is known behind a statement that worked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    /// How many rows it touched; negative when that means nothing.
    pub(super) touched: i64,
    /// The `sql_mode` of the session.
    pub(super) sql_mode: String,
}

/// A row of an answer. NULL reads `NULL`: where that matters, the query must ask.
pub(super) type Fields = Vec<Vec<u8>>;

/// A connection.
pub(super) struct Session {
    child: Child,
    input: Option<ChildStdin>,
    events: Receiver<Event>,
    errors: Vec<u8>,
    secret: String,
    count: u64,
    address: Arc<str>,
    /// How the session reads quotes.
    pub(super) backslash: Backslash,
}

impl Session {
    /// Starts the client. That it is connected, the first statement shows.
    pub(super) fn start(mut command: Command, address: &str) -> Result<Self, DatabaseError> {
        let program = command.get_program().to_owned();
        let failed = |error| DatabaseError::file("start", &program, error);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, events) = sync_channel(RUNS);
        if let Some(output) = child.stdout.take() {
            forward(output, sender.clone(), Event::Output);
        }
        if let Some(errors) = child.stderr.take() {
            forward(errors, sender, Event::Errors);
        }
        let mut session = Self {
            input: child.stdin.take(),
            child,
            events,
            errors: Vec::new(),
            secret: random(),
            count: 0,
            address: address.into(),
            backslash: Backslash::Escapes,
        };
        let terminator = format!("DELIMITER {}\n", session.terminator());
        session.write(terminator.as_bytes())?;
        Ok(session)
    }

    /// What ends a statement. The client takes fifteen characters of it.
    fn terminator(&self) -> String {
        format!("sp{:.12}", self.secret)
    }

    /// Runs one statement and throws its rows away.
    pub(super) fn run(&mut self, statement: impl AsRef<[u8]>) -> Result<Done, Trouble> {
        self.stream(&[statement.as_ref()], &mut |_| Ok(()))
    }

    /// The rows of a query.
    pub(super) fn query(&mut self, statement: impl AsRef<[u8]>) -> Result<Vec<Fields>, Trouble> {
        self.query_all(&[statement.as_ref()])
    }

    /// The rows of several statements, run one after another with nothing between them.
    pub(super) fn query_all(&mut self, statements: &[&[u8]]) -> Result<Vec<Fields>, Trouble> {
        let mut rows = Vec::new();
        self.stream(statements, &mut |line| {
            rows.push(line.split(|byte| *byte == b'\t').map(unescape).collect());
            Ok(())
        })?;
        Ok(rows)
    }

    /// The same as texts.
    pub(super) fn texts(&mut self, statement: &str) -> Result<Vec<Vec<String>>, Trouble> {
        let text = |field: Vec<u8>| String::from_utf8_lossy(&field).into_owned();
        let rows = self.query(statement)?;
        Ok(rows
            .into_iter()
            .map(|row| row.into_iter().map(text).collect())
            .collect())
    }

    /// The first field of the first row.
    pub(super) fn value(&mut self, statement: &str) -> Result<String, Trouble> {
        let row = self.texts(statement)?.into_iter().next();
        Ok(row
            .and_then(|row| row.into_iter().next())
            .unwrap_or_default())
    }

    /// Runs statements and hands out each line of their rows as the client writes it. When
    /// `visit` fails, the session is over.
    pub(super) fn stream(
        &mut self,
        statements: &[&[u8]],
        visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<Done, Trouble> {
        let whole = |statement: &&[u8]| lex::is_whole(statement, self.backslash);
        if !statements.iter().all(whole) {
            return Err(self.refused(0, lex::Broken.to_string()));
        }
        self.count += 1;
        let mark = format!("{}.{}", self.secret, self.count);
        self.write(&self.framed(statements, &mark))?;
        let result = self.answer(&mark, visit);
        if !matches!(result, Ok(_) | Err(Trouble::Refused { .. })) {
            self.end();
        }
        result
    }

    /// The statements with the marks behind them, in one run: a short one is never cut in two.
    fn framed(&self, statements: &[&[u8]], mark: &str) -> Vec<u8> {
        let ask = format!("SELECT '{mark}', ROW_COUNT(), @@sql_mode");
        let signal = format!("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{mark}'");
        let marks = [ask.as_bytes(), signal.as_bytes()];
        let mut text = Vec::new();
        for statement in statements.iter().copied().chain(marks) {
            text.extend_from_slice(statement);
            text.extend_from_slice(format!("\n{}\n", self.terminator()).as_bytes());
        }
        text
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let written = match &mut self.input {
            Some(input) => input.write_all(bytes).and_then(|()| input.flush()),
            None => Err(std::io::ErrorKind::BrokenPipe.into()),
        };
        // The client is gone: what it said last tells why.
        written.map_err(|_| self.over())
    }

    fn answer(
        &mut self,
        mark: &str,
        visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<Done, Trouble> {
        let signal = format!(": {mark}\n");
        let mut partial = Vec::new();
        let mut done = None;
        loop {
            let signalled = self.errors.ends_with(signal.as_bytes());
            match done.take() {
                Some(done) if signalled => return self.verdict(done),
                kept => done = kept,
            }
            let event = match self.count {
                // The first answer also tells that there is a server, and one that speaks.
                1 => match self.events.recv_timeout(FIRST_ANSWER_TIMEOUT) {
                    Err(RecvTimeoutError::Timeout) => return Err(self.silent()),
                    event => event.ok(),
                },
                _ => self.events.recv().ok(),
            };
            match event.unwrap_or(Event::End) {
                Event::End => return Err(self.over()),
                Event::Errors(run) => {
                    self.errors.extend_from_slice(&run);
                    // The marks fail as well then, and no row ever comes.
                    if is_lost(&self.errors) {
                        return Err(self.over());
                    }
                }
                Event::Output(run) => {
                    for piece in run.split_inclusive(|byte| *byte == b'\n') {
                        partial.extend_from_slice(piece);
                        let Some(line) = partial.strip_suffix(b"\n") else {
                            continue;
                        };
                        match line.strip_prefix(mark.as_bytes()) {
                            Some(footer) => done = Some(read_footer(footer)),
                            None => visit(line)?,
                        }
                        partial.clear();
                    }
                }
            }
        }
    }

    /// What the errors before the mark say.
    fn verdict(&mut self, done: Done) -> Result<Done, Trouble> {
        self.backslash = Backslash::in_mode(&done.sql_mode);
        let said = String::from_utf8_lossy(&std::mem::take(&mut self.errors)).into_owned();
        let before = said.rfind("\nERROR ").and_then(|last| said.get(..last));
        // The client repeats the statement that failed: here, the mark.
        let echo = before.and_then(|said| said.rfind("--------------\nSIGNAL "));
        let own = match (before, echo) {
            (Some(said), Some(echo)) => said.get(..echo).unwrap_or_default(),
            (before, _) => before.unwrap_or_default(),
        };
        match read_error(own) {
            Some((code, message)) => Err(self.refused(code, message)),
            None => Ok(done),
        }
    }

    pub(super) fn refused(&self, code: u32, message: String) -> Trouble {
        Trouble::Refused {
            code,
            message,
            address: self.address.clone(),
        }
    }

    /// The server accepts connections and says nothing.
    fn silent(&mut self) -> Trouble {
        self.end();
        Trouble::Other(DatabaseError::Unreachable {
            address: self.address.to_string(),
            why: format!(
                "the server said nothing for {} s",
                FIRST_ANSWER_TIMEOUT.as_secs()
            ),
        })
    }

    /// The session is over: reads all that the client has said, and tells why.
    fn over(&mut self) -> Trouble {
        self.end();
        while let Ok(event) = self.events.recv() {
            if let Event::Errors(run) = event {
                self.errors.extend_from_slice(&run);
            }
        }
        let said = String::from_utf8_lossy(&self.errors);
        // The first one that says so is the cause; those behind it follow from it.
        let first = said.split_inclusive('\n').find_map(|line| {
            let (code, message) = read_error(line)?;
            let fatal = self.count <= 1 || is_lost(line.as_bytes()) || code == 1927;
            fatal.then_some((code, message))
        });
        match first {
            Some((code, message)) => {
                let error = DatabaseError::from(self.refused(code, message));
                Trouble::Other(match error {
                    // In the middle, nobody answering means that somebody did before.
                    DatabaseError::Unreachable { address, why } if self.count > 1 => {
                        DatabaseError::Lost { address, why }
                    }
                    error => error,
                })
            }
            None => Trouble::Other(DatabaseError::Lost {
                address: self.address.to_string(),
                why: match said.trim().lines().last() {
                    None => "the client ended without a word".to_owned(),
                    Some(last) => last.to_owned(),
                },
            }),
        }
    }

    /// Whether the connection is gone.
    pub(super) fn is_over(&self) -> bool {
        self.input.is_none()
    }

    /// Ends the client, whatever it is at.
    fn end(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Lets the client say goodbye to the server.
    pub(super) fn close(mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

fn read_footer(footer: &[u8]) -> Done {
    let text = String::from_utf8_lossy(footer);
    let mut fields = text.trim_start_matches('\t').split('\t');
    Done {
        touched: fields
            .next()
            .and_then(|rows| rows.parse().ok())
            .unwrap_or(-1),
        sql_mode: fields.next().unwrap_or_default().to_owned(),
    }
}
