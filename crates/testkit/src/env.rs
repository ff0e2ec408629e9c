//! A hermetic environment for the binary: nothing of the machine comes in, and
//! what differs from run to run is taken out of what is compared.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::Regex;

/// A project directory, a home, and the binary.
pub struct TestEnv {
    directory: tempfile::TempDir,
    binary: PathBuf,
    variables: Vec<(String, String)>,
}

/// What one run of the binary gave.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl TestEnv {
    /// An environment for `env!("CARGO_BIN_EXE_safepoint")`.
    pub fn new(binary: &str) -> Self {
        // Whatever `TMPDIR` says: what is a temporary folder decides what the fence allows.
        let directory = tempfile::tempdir_in("/tmp").unwrap();
        std::fs::create_dir(directory.path().join("project")).unwrap();
        Self {
            directory,
            binary: binary.into(),
            variables: Vec::new(),
        }
    }

    /// The directory everything is in.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    /// The directory commands run in.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// A folder beside the project in which what runs behind the fence can write.
    pub fn scratch(&self) -> PathBuf {
        let path = self.root().join("scratch");
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// `SAFEPOINT_HOME`.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The one object store below `SAFEPOINT_HOME`.
    pub fn objects(&self) -> PathBuf {
        let stores = std::fs::read_dir(self.home().join("data/objects")).unwrap();
        let mut stores: Vec<PathBuf> = stores.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(stores.len(), 1, "{stores:?}");
        stores.remove(0)
    }

    /// Sets a variable for every run from now on.
    pub fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Writes a file, `path` being relative to the root.
    pub fn write(&self, path: &str, content: &str) -> PathBuf {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The command with these arguments, not yet started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.root().join("user"))
            .env("SAFEPOINT_HOME", self.home())
            .env("COLUMNS", "100")
            .env("TZ", "UTC")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary.
    pub fn run(&self, arguments: &[&str]) -> Run {
        let output = self.command(arguments).output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the binary with something on its standard input.
    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Run {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One that does not read it may have ended before it is written.
        match child.stdin.take().unwrap().write_all(input) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        let output = child.wait_with_output().unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the binary, expects success, and reads what it printed as JSON.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let run = self.run(&arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// What a command prints as JSON that ends with this exit code.
    #[track_caller]
    pub fn json_with_code(&self, code: i32, arguments: &[&str]) -> serde_json::Value {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let run = self.run(&arguments);
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    }

    /// The newest change that was only seen, where there is nothing else to take back: an undo
    /// without a name leaves it to whoever asks, and says which it is.
    pub fn seen_action(&self) -> String {
        let refused = self.run(&["undo"]);
        assert_eq!(refused.code, 8, "{refused:?}");
        let (_, rest) = refused.stderr.split_once("`safepoint undo ").unwrap();
        rest.split_once('`').unwrap().0.to_owned()
    }

    /// Takes that back.
    pub fn undo_seen(&self) -> serde_json::Value {
        let action = self.seen_action();
        self.json(&["undo", &action])
    }

    /// A run as it is compared with a snapshot.
    pub fn snapshot(&self, arguments: &[&str]) -> String {
        let run = self.run(arguments);
        let mut text = format!("exit {}\n", run.code);
        for (name, stream) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
            if !stream.is_empty() {
                text.push_str(&format!("----- {name}\n{stream}"));
            }
        }
        self.normalise(&text)
    }

    /// Takes out what differs from run to run: paths, ids, times, hashes, keys.
    pub fn normalise(&self, text: &str) -> String {
        static PATTERNS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
            [
                (r"ent_[0-9a-z]{26}", "ent_[id]"),
                (r"(act|log|ses|wsp)_[0-9a-z]{16}", "${1}_[id]"),
                (r"chk_\d[0-9a-z_]*", "chk_[id]"),
                (r"dir:[0-9a-f]{16}", "dir:[key]"),
                (r"\d+(\.\d)? (B|KiB) new", "[size] new"),
                (r"\+[0-9a-f]{8}\+[0-9A-Za-z+/]{44}", "+[key]"),
                (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "[time]"),
                (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "[time]"),
                (r"user:[a-z_][a-z0-9_-]*", "user:[me]"),
                (r"\b[0-9a-f]{64}\b", "[hash]"),
                (r"— (\S+) [0-9A-Za-z+/]{90,}=*", "— $1 [signature]"),
                (r"[0-9A-Za-z+/]{43}=", "[hash]"),
            ]
            .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
            .into()
        });
        let mut text = text.replace(&*self.root().to_string_lossy(), "[root]");
        for (pattern, name) in PATTERNS.iter() {
            text = pattern.replace_all(&text, *name).into_owned();
        }
        text
    }
}
