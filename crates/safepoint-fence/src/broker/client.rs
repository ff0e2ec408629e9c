//! Inside the fence: a command is handed over, and its exit code comes back.
//!
//! Nothing is done here when nobody answers: the caller says so and ends. It
//! never falls back to doing the work itself.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::FenceError;

use super::socket::{connect, open_place, send_with};
use super::wire::{self, Answer};

/// The streams that the work outside reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct Streams<'a> {
    /// What it reads.
    pub stdin: BorrowedFd<'a>,
    /// Where data goes.
    pub stdout: BorrowedFd<'a>,
    /// Where talk goes.
    pub stderr: BorrowedFd<'a>,
}

/// Hands a command over to the process that serves `socket`, with the standard
/// streams of this one, and waits for its exit code. `directory` is the path of
/// the working directory; it goes along as a descriptor as well.
///
/// Whoever ends this process, with Ctrl-C for example, ends the call.
///
/// # Errors
///
/// When nobody serves the socket, the call is refused, or the answer is lost.
pub fn hand_over(
    socket: &Path,
    arguments: &[OsString],
    directory: &Path,
    variables: &[(OsString, OsString)],
) -> Result<u8, FenceError> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let streams = Streams {
        stdin: stdin.as_fd(),
        stdout: stdout.as_fd(),
        stderr: stderr.as_fd(),
    };
    hand_over_streams(socket, arguments, directory, variables, streams)
}

/// As [`hand_over`], with these streams.
///
/// # Errors
///
/// As [`hand_over`].
pub fn hand_over_streams(
    socket: &Path,
    arguments: &[OsString],
    directory: &Path,
    variables: &[(OsString, OsString)],
    streams: Streams<'_>,
) -> Result<u8, FenceError> {
    let request = wire::encode(arguments, directory, variables)?;
    let failed = |source| FenceError::Socket {
        path: socket.to_owned(),
        source,
    };
    let place = open_place(Path::new(".")).map_err(|source| FenceError::Path {
        path: directory.to_owned(),
        source,
    })?;
    let mut connection = connect(socket).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => FenceError::Absent {
            path: socket.to_owned(),
            source,
        },
        _ => failed(source),
    })?;
    let descriptors = [streams.stdin, streams.stdout, streams.stderr, place.as_fd()];
    let sent = send_with(&connection, &request, &descriptors);
    // A server that refuses early does not read the rest: its answer counts.
    if let Err(error) = sent
        && error.kind() != io::ErrorKind::BrokenPipe
        && error.kind() != io::ErrorKind::ConnectionReset
    {
        return Err(failed(error));
    }
    let mut answer = [0; 2];
    let unanswered = || FenceError::Unanswered {
        path: socket.to_owned(),
    };
    connection
        .read_exact(&mut answer)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => unanswered(),
            _ => failed(error),
        })?;
    match Answer::decode(answer).ok_or_else(unanswered)? {
        Answer::Exit(code) => Ok(code),
        Answer::Refused(refusal) => Err(FenceError::Refused {
            path: socket.to_owned(),
            refusal,
        }),
    }
}
