//! In the sandbox: tells a relay the line, and does what it says.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use safepoint_control::pass::{LinePlace, ShellLine};

use super::pipes::{self, MessageReader, Received};
use super::{FORMAT, FromInside, FromOutside, key, place};
use crate::detach;
use crate::error::with_causes;
use crate::paths::Paths;

/// How a line ends that was not run.
const NOT_RUN: u8 = 126;

/// So long one wait for a message takes, in milliseconds.
const WAIT_MILLISECONDS: u32 = 1000;

/// What is said where nobody outside answers.
const NOBODY: &str = "this is a sandbox of the client, and no process of Safepoint outside of it answers for this line";

/// A line under the name by which the hook let it through.
pub(crate) struct Candidate<'a> {
    /// The action, or the client's session.
    pub(crate) name: &'a str,
    /// The line.
    pub(crate) line: &'a str,
}

/// Whether this is a sandbox in which our store cannot be written, whoever we are.
pub(crate) fn is_store_out_of_reach(paths: &Paths) -> bool {
    [&paths.runtime, &paths.data]
        .iter()
        .any(|path| access(path.as_path(), Access::WRITE_OK) == Err(Errno::ROFS))
}

/// Runs the first of these lines that a relay answers for. The shell is given `text`.
pub(crate) fn run_candidates(
    paths: &Paths,
    candidates: &[Candidate<'_>],
    shell: &Path,
    text: &OsStr,
) -> u8 {
    match try_candidates(paths, candidates, shell, text) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("safepoint: this line was not run: {}", with_causes(&error));
            NOT_RUN
        }
    }
}

fn try_candidates(
    paths: &Paths,
    candidates: &[Candidate<'_>],
    shell: &Path,
    text: &OsStr,
) -> std::io::Result<u8> {
    let mut why = NOBODY.to_owned();
    for candidate in candidates {
        let beginning = key(candidate.name, candidate.line);
        for directory in pipes::directories(&place(&paths.runtime), &beginning) {
            // An equal line has that one.
            if pipes::is_claimed(&directory) {
                continue;
            }
            let Some(ends) = pipes::reach(&directory)? else {
                continue;
            };
            let mut reader = MessageReader::new(ends.answer);
            let mut ask = ends.ask;
            let claim = FromInside::Claim {
                format: FORMAT,
                line: candidate.line.to_owned(),
            };
            pipes::send(&mut ask, &claim, || false)?;
            match answer(&mut reader)? {
                FromOutside::Refused { why: refused } => why = refused,
                FromOutside::Called {
                    code,
                    stdout,
                    stderr,
                } => {
                    std::io::stdout().write_all(stdout.as_bytes())?;
                    std::io::stderr().write_all(stderr.as_bytes())?;
                    return Ok(code);
                }
                FromOutside::Order { format, order } if format == FORMAT => {
                    let line = ShellLine {
                        shell,
                        text,
                        without: detach::VARIABLE,
                        // The order says what may be written, wherever it runs.
                        place: LinePlace::AnyBehindFence,
                    };
                    let report = while_answered(&reader, || order.carry_out(&line))?;
                    return finish(&mut reader, &mut ask, report);
                }
                _ => return Err(std::io::Error::other("the answer from outside is none")),
            }
        }
    }
    Err(std::io::Error::other(why))
}

/// Does something, and is asked to end where nobody keeps the record any more.
fn while_answered<T>(reader: &MessageReader, work: impl FnOnce() -> T) -> std::io::Result<T> {
    let is_done = Arc::new(AtomicBool::new(false));
    let (seen, watched) = (Arc::clone(&is_done), reader.watch()?);
    std::thread::spawn(move || {
        while !seen.load(Ordering::Acquire) {
            if watched.is_gone(WAIT_MILLISECONDS).unwrap_or(true) {
                if !seen.load(Ordering::Acquire) {
                    eprintln!("safepoint: what keeps the record of this line is gone");
                    let _ = kill_process(getpid(), Signal::TERM);
                }
                return;
            }
        }
    });
    let done = work();
    is_done.store(true, Ordering::Release);
    Ok(done)
}

/// Tells how the line ended, and says what it was refused.
fn finish(
    reader: &mut MessageReader,
    ask: &mut File,
    report: safepoint_control::pass::LineReport,
) -> std::io::Result<u8> {
    let code = report.code;
    if let Some(error) = report.why() {
        eprintln!("safepoint: this line could not be started: {error}");
    }
    let told = pipes::send(ask, &FromInside::Ended { report }, || false);
    match told.and_then(|()| answer(reader)) {
        Ok(FromOutside::Recorded { refusals }) => {
            for refusal in refusals {
                eprintln!("warning: {refusal}");
            }
        }
        // It has run: how it ended is not ours to change.
        Ok(_) | Err(_) => eprintln!("safepoint: how this line ended was not recorded"),
    }
    Ok(code)
}

fn answer(reader: &mut MessageReader) -> std::io::Result<FromOutside> {
    loop {
        match reader.receive(WAIT_MILLISECONDS)? {
            Received::Message(message) => return Ok(message),
            Received::Nothing => {}
            Received::Gone => return Err(std::io::Error::other(NOBODY)),
        }
    }
}
