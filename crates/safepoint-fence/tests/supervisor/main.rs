//! Supervised programs, on the kernel that runs the tests. Each refusal is looked for by its
//! effect, and has a control beside it that succeeds.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs, make the files that those must not reach, and stop where they fail"
)]

mod behalf;
mod closed;
mod cost;
mod freeze;
mod metadata;
mod network;
mod sockets;
mod writes;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use safepoint_fence::{
    Caches, Fence, Gate, GuardedNames, Listing, NetworkAccess, Observation, Refusal, Supervision,
    Terminals, WriteAccess,
};
use tempfile::TempDir;

/// A workspace, a place outside, and what may be reached.
struct Room {
    directory: TempDir,
    supervision: Supervision,
    gate: Arc<Answers>,
}

/// Answers as a test wants, and remembers what was asked.
#[derive(Debug, Default)]
struct Answers {
    admitted: Mutex<BTreeSet<Refusal>>,
    asked: Mutex<Vec<Refusal>>,
    closed_to_writes: Mutex<Option<PathBuf>>,
    /// What is written on behalf of the caller.
    given: Mutex<Vec<PathBuf>>,
    /// Whether the kernel gets calls that write, where nothing is secured yet.
    kernel: Mutex<Option<bool>>,
    kernel_asked: Mutex<usize>,
}

impl Gate for Answers {
    fn admit(&self, wanted: &Refusal) -> bool {
        self.asked.lock().unwrap().push(wanted.clone());
        self.admitted.lock().unwrap().contains(wanted)
    }

    fn write_access(&self, path: &Path) -> WriteAccess {
        let closed = self.closed_to_writes.lock().unwrap();
        let is_closed = closed.as_ref().is_some_and(|it| path.starts_with(it));
        let given = self.given.lock().unwrap();
        match is_closed {
            true => WriteAccess::None,
            false if given.iter().any(|it| path.starts_with(it)) => WriteAccess::Supervisor,
            false => WriteAccess::Kernel,
        }
    }

    fn may_continue(&self) -> bool {
        let kernel = *self.kernel.lock().unwrap();
        *self.kernel_asked.lock().unwrap() += usize::from(kernel.is_some());
        kernel.unwrap_or(true)
    }

    fn continues(&self) -> bool {
        self.kernel.lock().unwrap().is_none()
    }
}

/// How a supervised program ended.
struct Ran {
    output: Output,
    seen: Observation,
}

impl Ran {
    fn talk(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&self.output.stdout) + &text(&self.output.stderr)
    }

    #[track_caller]
    fn succeeded(self) -> Self {
        assert!(self.output.status.success(), "{}", self.talk());
        self
    }

    #[track_caller]
    fn failed(self) -> Self {
        assert!(!self.output.status.success(), "{}", self.talk());
        self
    }
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for folder in ["work/deep", "outside", "registry"] {
            fs::create_dir_all(directory.path().join(folder)).unwrap();
        }
        for file in ["work/file", "outside/file"] {
            fs::write(directory.path().join(file), "before\n").unwrap();
        }
        let supervision = Supervision {
            hosts: Vec::new(),
            services: Vec::new(),
            sockets: Vec::new(),
            registry: directory.path().join("registry/session"),
            journal: None,
            guarded: GuardedNames::default(),
            freezer: Some(directory.path().join("registry/freezes")),
            network: NetworkAccess::Closed,
        };
        Self {
            directory,
            supervision,
            gate: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("ROOM", self.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn fence(&self) -> Fence {
        Fence {
            writable: vec![self.path("work")],
            exact: Vec::new(),
            hidden: vec![self.path("registry")],
            listing: Listing::Everywhere,
            terminals: Terminals::None,
            supervision: Some(self.supervision.clone()),
            caches: Caches::None,
        }
    }

    fn run(&self, command: Command) -> Ran {
        let gate = Arc::clone(&self.gate) as Arc<dyn Gate>;
        let started = self.fence().spawn_asking(command, gate).unwrap();
        let supervisor = started.supervisor.unwrap();
        let output = started.child.wait_with_output().unwrap();
        supervisor.wait_until_unused();
        assert!(!supervisor.is_in_use());
        Ran {
            output,
            seen: supervisor.observe(),
        }
    }

    fn shell(&self, script: &str) -> Ran {
        self.run(self.command("/bin/sh", &["-c", script]))
    }

    fn python(&self, script: &str) -> Ran {
        self.run(self.command("python3", &["-c", script]))
    }

    /// The same without a fence.
    fn free(&self, program: &str, script: &str) -> Output {
        self.command(program, &["-c", script]).output().unwrap()
    }
}

fn host(text: &str) -> Refusal {
    Refusal::Host(text.to_owned())
}
