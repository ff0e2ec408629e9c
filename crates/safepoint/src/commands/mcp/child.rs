//! Runs the command behind a tool: this program again, as a process of its own, with `--json`.
//!
//! Not in this process: a command reads its standard input, prints to standard output, opens
//! the store and ends with a code, and standard output belongs to the protocol. So a tool is
//! exactly its command, with the same checks and the same records; one that breaks down takes
//! nothing with it; and inside a fence it is handed over like any other command. It costs
//! the start of a process and the opening of the store for each call.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::sync::OnceLock;

use safepoint_model::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::cli::Global;
use crate::commands::agents::{PINNED_ROOT, WORKS_SINCE};
use crate::commands::form::Words;
use crate::world::SystemClock;

/// What the trail calls an agent that works through us.
pub(crate) const AGENT: &str = "mcp";

/// How commands are run.
pub(super) struct Runner {
    /// The directory they work in, if it was named.
    directory: Option<PathBuf>,
    store: Option<String>,
    /// When the server was started.
    since: Timestamp,
    /// The workspace, once it is known: agents can change what a search would find.
    root: OnceLock<PathBuf>,
}

/// What came of one.
pub(super) struct Ran {
    /// What it printed.
    pub(super) document: Value,
    /// Whether it did what was asked.
    pub(super) done: bool,
}

impl Runner {
    pub(super) fn new(global: &Global) -> Self {
        Self {
            directory: global.directory.clone(),
            store: global.store.clone(),
            since: SystemClock.now(),
            root: OnceLock::new(),
        }
    }

    /// The workspace, if it is known.
    pub(super) fn root(&self) -> Option<&Path> {
        self.root.get().map(PathBuf::as_path)
    }

    /// Keeps to this workspace from now on.
    pub(super) fn keep_to(&self, root: &Path) {
        let _ = self.root.set(root.to_owned());
    }

    /// Runs a command for an agent, in this session.
    pub(super) fn run(&self, words: Words, session: Option<&str>) -> Ran {
        match self.start(words, session) {
            Ok(ran) => ran,
            Err(error) => failed(&format!("it could not be run: {error}")),
        }
    }

    fn start(&self, words: Words, session: Option<&str>) -> std::io::Result<Ran> {
        // The file that runs now, whatever lies under its name.
        #[expect(clippy::disallowed_methods, reason = "this program again")]
        let mut command = Process::new("/proc/self/exe");
        command.arg("--json");
        if let Some(directory) = &self.directory {
            command.arg("-C").arg(directory);
        }
        if let Some(store) = &self.store {
            command.arg(format!("--store={store}"));
        }
        if let Some(root) = self.root() {
            command.env(PINNED_ROOT, root);
        }
        if let Some(session) = session {
            command.env("SAFEPOINT_SESSION", session);
        }
        let stdin = match words.input {
            Some(_) => Stdio::piped(),
            None => Stdio::null(),
        };
        let mut child = command
            .args(&words.words)
            .env("SAFEPOINT_AGENT", AGENT)
            .env(WORKS_SINCE, self.since.to_string())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), words.input) {
            // One that does not read its input tells so by how it ends.
            std::thread::spawn(move || pipe.write_all(input.as_bytes()));
        }
        let output = child.wait_with_output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        Ok(match serde_json::from_slice(&output.stdout) {
            Ok(document) => Ran {
                document,
                done: output.status.success(),
            },
            Err(_) => failed(&format!("it ended with {}: {}", output.status, told.trim())),
        })
    }
}

fn failed(message: &str) -> Ran {
    Ran {
        document: json!({"error": {"message": message}}),
        done: false,
    }
}
