//! Lines that a client runs in a sandbox of its own, which lets nobody reach the store.
//!
//! The hook, which clients start outside their sandboxes, makes two pipes with a name and starts
//! a relay: a process of ours that has the store, and stays outside. `perform` finds itself in a
//! sandbox, and tells the relay its line through one pipe; the other brings back what is to be
//! done. Sockets will not do: Codex and Claude Code deny `connect` inside.
//!
//! ```text
//! inside ── claim: the line ───────────> outside   claims it, makes the checkpoint
//!        <─ order: fence, or why not ──
//!        ── ended: how, and what was seen ──────>  keeps the record
//!        <─ recorded: what to tell ────
//! ```
//!
//! A line that only calls us for what agents may ask is done outside by the relay, behind a fence
//! in which it writes nothing, and what it prints is brought back.
//!
//! A relay serves one line, once. It is asked for nothing else: no decision, no other action, no
//! path. Whatever is not as it should be ends it, and then the line does not run.

mod calls;
mod inside;
mod outside;
mod pipes;
mod sandbox;

use std::path::{Path, PathBuf};

use safepoint_control::pass::{LineOrder, LineReport};
use safepoint_model::Digest;
use serde::{Deserialize, Serialize};

pub(super) use inside::{Candidate, is_store_out_of_reach, run_candidates};
pub(crate) use outside::{Arguments, RelayedLine, run, start};
pub(crate) use sandbox::may_be_sandboxed;

/// The version of what is said through the pipes. Both ends are this program.
const FORMAT: u32 = 1;

/// Where relays have their pipes, in the runtime directory.
const DIRECTORY: &str = "relays";

/// So much of a digest tells lines apart.
const KEY_CHARACTERS: usize = 32;

/// What is said from inside.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FromInside {
    /// A line is to be run.
    Claim { format: u32, line: String },
    /// It has ended.
    Ended { report: LineReport },
}

/// What is said from outside.
#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum FromOutside {
    /// The line is to be run so.
    Order { format: u32, order: Box<LineOrder> },
    /// It is not to be run.
    Refused { why: String },
    /// It only called us, and that was done outside.
    Called {
        code: u8,
        stdout: String,
        stderr: String,
    },
    /// How it ended is recorded; this is to be told to whoever reads its output.
    Recorded { refusals: Vec<String> },
}

/// What the directory of a relay is called: by the session or the action that is named inside,
/// and by the line.
fn key(name: &str, line: &str) -> String {
    let digest = Digest::of_parts(&[b"relay", name.as_bytes(), line.as_bytes()]);
    let digest = digest.to_string();
    let plain = digest.chars().filter(char::is_ascii_alphanumeric);
    let all: Vec<char> = plain.collect();
    all.iter().rev().take(KEY_CHARACTERS).collect()
}

/// Where relays have their pipes.
fn place(runtime: &Path) -> PathBuf {
    runtime.join(DIRECTORY)
}

/// Nobody needs the relay of a line any more that reached the store itself.
pub(super) fn dismiss(runtime: &Path, name: &str, line: &str) {
    for directory in pipes::directories(&place(runtime), &key(name, line)) {
        pipes::remove(&directory);
    }
}

/// The same for all lines of a client's session that were let through and did not run.
pub(crate) fn dismiss_all(runtime: &Path, session: &str) {
    let all = pipes::directories(&place(runtime), "");
    let end = format!("-{}", key(session, ""));
    for directory in all {
        if directory.to_string_lossy().ends_with(&end) && !pipes::is_claimed(&directory) {
            pipes::remove(&directory);
        }
    }
}
