//! The one place that starts `git`.
//!
//! Every call gets the same environment: the user's own, without the variables
//! that would point git elsewhere, and with settings that keep it from running
//! anything else. Settings are advice: a repository next to this one, or one whose
//! configuration is changed meanwhile, is not asked. So every call runs behind a fence, where
//! git writes only in the places that the call names, has no sockets, and starts nothing but
//! itself, if anything.
//!
//! The settings travel in `GIT_CONFIG_COUNT` and its companions and not in
//! `-c`, which cannot express a filter named `a=b`.
//!
//! It never reads the environment itself, never asks at the terminal, and never
//! lets git look for a repository above the directory it was given.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use safepoint_fence::{Children, FenceError, LoneFence, is_native};

use super::error::GitError;
use super::settings::{PROBE, SETTINGS, SHOWING, Setting, VARIABLES, is_inherited, silenced};

/// A file that is smaller is no git, but something that starts one.
const LEAST_PROGRAM_BYTES: u64 = 1 << 20;

/// What one run of git may write and start.
#[derive(Clone, Debug)]
pub(super) struct Allowance(LoneFence);

impl Allowance {
    /// Nothing.
    pub(super) const fn reading() -> Self {
        Self(LoneFence {
            writable: Vec::new(),
            children: Children::None,
        })
    }

    /// It writes nothing, and may start itself.
    pub(super) const fn reading_with_children() -> Self {
        Self(LoneFence {
            writable: Vec::new(),
            children: Children::Itself,
        })
    }

    /// It may write in these places, and start itself.
    pub(super) const fn writing(writable: Vec<PathBuf>) -> Self {
        Self(LoneFence {
            writable,
            children: Children::Itself,
        })
    }
}

/// The `git` program and the environment it is run in.
#[derive(Clone)]
pub struct Git {
    program: PathBuf,
    /// The program itself, where `program` only starts it. Found at the first run.
    native: Arc<OnceLock<PathBuf>>,
    environment: Vec<(OsString, OsString)>,
}

// By hand: an environment holds secrets.
impl fmt::Debug for Git {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Git")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

impl Git {
    /// The first `git` on `path_variable` (the value of `PATH`), to be run with
    /// `environment` as the variables of the user's process.
    ///
    /// Relative entries of the path are passed over: they would let a work tree
    /// bring its own `git`.
    pub fn find(
        path_variable: Option<&OsStr>,
        environment: Vec<(OsString, OsString)>,
    ) -> Option<Self> {
        let program = std::env::split_paths(path_variable?)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("git"))
            .find(|program| is_executable(program))?;
        let environment = environment
            .into_iter()
            .filter(|(name, _)| is_inherited(name))
            .chain(
                VARIABLES
                    .iter()
                    .map(|&(name, value)| (name.into(), value.into())),
            )
            .collect();
        Some(Self {
            program,
            native: Arc::default(),
            environment,
        })
    }

    /// The program that the fence lets start itself. A script or a small program that starts
    /// git says where that is.
    ///
    /// # Errors
    ///
    /// When the program cannot be looked at, or does not say where git is.
    pub fn native(&self) -> Result<&Path, GitError> {
        if let Some(known) = self.native.get() {
            return Ok(known);
        }
        let found = native(&self.program, &self.environment);
        let found = found.map_err(|source| GitError::Run {
            program: self.program.clone(),
            source,
        })?;
        Ok(self.native.get_or_init(|| found))
    }

    /// Where the program is.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The settings that switch off whatever the configuration seen from
    /// `directory` would run: its filters, and hooks that are configured.
    pub(super) fn silencers(&self, directory: &Path) -> Result<Vec<Setting>, GitError> {
        let pattern = r"^(safepoint\.probe$|filter\.|hook\.)";
        let arguments = ["config", "-z", "--name-only", "--get-regexp", pattern].map(OsStr::new);
        let answer = match self.run(
            directory,
            (&[], &Allowance::reading()),
            &arguments,
            &mut |_| Ok(()),
        ) {
            // It ends with 1 when nothing is found, not even our probe.
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Vec::new(),
            other => other?,
        };
        let names: Vec<&[u8]> = answer.split(|&byte| byte == 0).collect();
        if !names.contains(&PROBE.as_bytes()) {
            return Err(GitError::TooOld {
                program: self.program.clone(),
            });
        }
        let mut settings: Vec<Setting> = names.into_iter().flat_map(silenced).collect();
        settings.sort();
        settings.dedup();
        Ok(settings)
    }

    /// Runs git in `directory` with more `settings`, and lets it do what is allowed; `feed`
    /// writes its input. Gives back its output.
    ///
    /// When `feed` fails, git is ended and the failure of `feed` comes back.
    pub(super) fn run(
        &self,
        directory: &Path,
        (settings, allowance): (&[Setting], &Allowance),
        arguments: &[&OsStr],
        feed: &mut dyn FnMut(&mut dyn Write) -> Result<(), GitError>,
    ) -> Result<Vec<u8>, GitError> {
        let broken = |source| GitError::Run {
            program: self.program.clone(),
            source,
        };
        let command = self.command(directory, settings, arguments)?;
        let mut child = match allowance.0.spawn(command) {
            Ok(fenced) => fenced.child,
            Err(FenceError::Start { source, .. }) => return Err(broken(source)),
            Err(error) => {
                return Err(GitError::Fence {
                    program: self.program.clone(),
                    source: Box::new(error),
                });
            }
        };
        let (fed, stdout, stderr) = converse(&mut child, feed);
        let status = child.wait().map_err(broken)?;
        fed?;
        if status.success() {
            return stdout.map_err(broken);
        }
        let stderr = stderr.map_err(broken)?;
        Err(refusal(directory, arguments, status, &stderr))
    }

    fn command(
        &self,
        directory: &Path,
        settings: &[Setting],
        arguments: &[&OsStr],
    ) -> Result<Command, GitError> {
        let program = self.native()?;
        let mut command = plain(program, &self.environment);
        // Where it finds itself: the fence lets no other file be executed.
        if let Some(place) = program.parent() {
            command.env("GIT_EXEC_PATH", place);
        }
        // A broken repository must not make git find the one around it.
        if let Some(parent) = directory.parent() {
            command.env("GIT_CEILING_DIRECTORIES", parent);
        }
        let fixed = SETTINGS
            .iter()
            .map(|&(name, value)| (OsStr::new(name), OsStr::new(value)));
        let more = settings
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        let mut count = 0;
        for (name, value) in fixed.chain(more) {
            command.env(format!("GIT_CONFIG_KEY_{count}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        command.env("GIT_CONFIG_COUNT", count.to_string());
        // Not the directory of the process: the thread that starts it may not fork, and not
        // every library can change directories without.
        command
            .arg("-C")
            .arg(directory)
            .arg("--no-pager")
            .args(arguments.iter().take(1));
        if arguments
            .first()
            .is_some_and(|name| SHOWING.iter().any(|shows| name == shows))
        {
            command.args(["--no-ext-diff", "--no-textconv"]);
        }
        command.args(arguments.iter().skip(1));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }
}

/// The program that a `git` starts in the end, which a fence around it must name.
fn native(program: &Path, environment: &[(OsString, OsString)]) -> io::Result<PathBuf> {
    let size = fs::metadata(program)?.len();
    if size >= LEAST_PROGRAM_BYTES && is_native(program) {
        return Ok(program.to_owned());
    }
    let mut asking = plain(program, environment);
    let answer = asking.arg("--exec-path").current_dir("/").output()?;
    let place = OsStr::from_bytes(answer.stdout.trim_ascii_end());
    Ok(Path::new(place).join("git"))
}

/// A program with an environment.
fn plain(program: &Path, environment: &[(OsString, OsString)]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place that runs git")]
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

/// A git that takes longer than this is stuck.
const LONGEST: Duration = Duration::from_secs(120);

/// How feeding went, and what came out and on the error output.
type Conversation = (
    Result<(), GitError>,
    io::Result<Vec<u8>>,
    io::Result<Vec<u8>>,
);

/// Feeds the child while both of its outputs are read, so that no pipe fills up.
fn converse(
    child: &mut Child,
    feed: &mut dyn FnMut(&mut dyn Write) -> Result<(), GitError>,
) -> Conversation {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let pid = rustix::process::Pid::from_child(child);
    let (done, waiting) = mpsc::channel::<()>();
    thread::scope(|scope| {
        // Git waits for ever where a pipe stands in the place of an ignore file.
        scope.spawn(move || {
            if waiting.recv_timeout(LONGEST) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        let stdout = scope.spawn(move || read_all(stdout));
        let stderr = scope.spawn(move || read_all(stderr));
        let mut fed = Ok(());
        if let Some(stdin) = stdin {
            let mut input = BufWriter::new(Deaf(stdin));
            fed = feed(&mut input);
            if fed.is_err() {
                // Before its input ends, which it could take for the whole. It may
                // have ended already: that is as good.
                let _ = child.kill();
            }
            // `Deaf` never fails, so the last bytes are written or unwanted.
            let _ = input.flush();
        }
        let gone = |_| Err(io::Error::other("the thread that read from git ended"));
        let (stdout, stderr) = (
            stdout.join().unwrap_or_else(gone),
            stderr.join().unwrap_or_else(gone),
        );
        drop(done);
        (fed, stdout, stderr)
    })
}

fn read_all(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}

/// Input of a child that may have stopped listening. Why it did is told by its
/// own exit status and words, so a closed pipe is no failure by itself.
struct Deaf<W>(W);

impl<W: Write> Write for Deaf<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(_) => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn refusal(directory: &Path, arguments: &[&OsStr], status: ExitStatus, stderr: &[u8]) -> GitError {
    let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
    let worktree = directory.to_path_buf();
    if stderr.contains("detected dubious ownership") || stderr.contains("unsafe repository") {
        return GitError::Untrusted { worktree };
    }
    if stderr.contains("not a git repository") {
        return GitError::Broken {
            worktree,
            why: stderr,
        };
    }
    GitError::Failed {
        command: spoken(arguments),
        status,
        stderr,
    }
}

/// The arguments as one line, for people.
fn spoken(arguments: &[&OsStr]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    words.join(" ")
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;

    use super::{Allowance, Git, GitError};

    #[test]
    fn st_13_an_input_that_breaks_off_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(directory.path()).unwrap();
        let git = Git::find(option_env!("PATH").map(OsStr::new), Vec::new()).unwrap();
        let writing = Allowance::writing(vec![top.clone()]);
        git.run(&top, (&[], &writing), &["init".as_ref()], &mut |_| Ok(()))
            .unwrap();
        let names = || {
            let mut names: Vec<_> = fs::read_dir(top.join(".git"))
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        let before = names();
        let command = ["fast-import", "--done", "--quiet"].map(OsStr::new);
        let error = git.run(&top, (&[], &writing), &command, &mut |input| {
            let _ = input.write_all(b"commit refs/heads/x\ncommitter A <b> 1 +0000\ndata 0\n\n");
            Err(GitError::Changed {
                path: "large".into(),
            })
        });
        assert!(matches!(error, Err(GitError::Changed { .. })));
        assert_eq!(before, names());
        assert!(!top.join(".git/refs/heads/x").exists());
    }

    #[test]
    fn st_13_a_refusal_says_what_and_why() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::find(option_env!("PATH").map(OsStr::new), Vec::new()).unwrap();
        let more = vec![b'x'; 1 << 20];
        let reading = Allowance::reading();
        let words = ["no-such".as_ref()];
        let answer = git.run(directory.path(), (&[], &reading), &words, &mut |input| {
            // More than a pipe holds, for a child that does not listen.
            input.write_all(&more).unwrap();
            Ok(())
        });
        let said = answer.unwrap_err().to_string();
        assert!(
            said.starts_with("git no-such failed (exit status: 1): git: 'no-such'"),
            "{said}"
        );
    }
}
