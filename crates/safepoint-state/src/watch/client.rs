//! Asking the listener.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::protocol::{Answer, Cursor, Question, Reply};

/// A listener that does not answer soon is not waited for: looking is quick enough.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the listener at `socket` knows; `None` when there is none.
pub(crate) fn ask(socket: &Path, since: Option<Cursor>) -> Option<Answer> {
    let (_held, short) = super::reach(socket).ok()?;
    let mut stream = UnixStream::connect(&short).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut question = serde_json::to_vec(&Question { since }).ok()?;
    question.push(b'\n');
    stream.write_all(&question).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    let reply: Reply = serde_json::from_str(&line).ok()?;
    Some(reply.into())
}

/// Whether a listener is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It answers.
    Running,
    /// There is none.
    Absent,
}

/// Whether there is a listener at `socket`.
pub fn standing(socket: &Path) -> Standing {
    match ask(socket, None) {
        Some(_) => Standing::Running,
        None => Standing::Absent,
    }
}
