//! Asking the supervisors of a workspace to hold back what moves names, for as long as somebody
//! outside the fence relies on where a path leads.
//!
//! A client's own file tool acts outside the fence, by a path. Between the moment at which that
//! path is looked at and the end of the tool, nothing behind a fence may put a link in its way.
//!
//! The directory holds two kinds of named pipe. Each supervisor whose tree has moved a name has
//! one (`tree-…`), and listens there. Each freeze is one (`freeze-…`), at which the supervisors
//! answer once no call that moves a name is on its way. A pipe that nobody listens at was left by
//! somebody who is gone. Nothing here decides what is frozen.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::io::Errno;

/// How long a freeze lasts at most: nothing stays frozen when whoever asked for it has died.
pub const MAX_FREEZE: Duration = Duration::from_secs(30);

/// What pipes of supervisors are called.
pub(crate) const TREE: &str = "tree-";
/// What pipes of freezes are called.
pub(crate) const FREEZE: &str = "freeze-";

/// How long to wait for a supervisor, in rounds of this many milliseconds.
const ROUND_MILLIS: i64 = 10;
const MAX_ROUNDS: usize = 500;

/// A request that nothing behind a fence moves names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    directory: PathBuf,
    path: PathBuf,
}

/// Whether the supervisors have answered a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// All of them: no name moves until the freeze ends.
    Yes,
    /// One did not answer in time, and may still let a name be moved.
    NoAnswer,
}

impl Freeze {
    /// A freeze in this directory, under a name that is a word.
    pub fn new(directory: &Path, name: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            path: directory.join(format!("{FREEZE}{name}")),
        }
    }

    /// Asks for it, and waits until every living supervisor has answered.
    pub fn begin(&self) -> std::io::Result<Frozen> {
        create_directory(&self.directory)?;
        // One of the same name would be older, and end sooner.
        self.end();
        make_pipe(&self.path)?;
        // Open for both: it neither waits for writers nor ends with the last of them.
        let mut answers = open_pipe(&self.path, Ends::Both)?;
        let mut missing = self.ask_supervisors()?;
        let mut text = Vec::new();
        for _ in 0..MAX_ROUNDS {
            if missing.is_empty() {
                return Ok(Frozen::Yes);
            }
            let patience = Timespec {
                tv_sec: 0,
                tv_nsec: ROUND_MILLIS * 1_000_000,
            };
            match poll(&mut [PollFd::new(&answers, PollFlags::IN)], Some(&patience)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            drain(&mut answers, &mut text);
            for name in text.split(|byte| *byte == b'\n') {
                missing.remove(String::from_utf8_lossy(name).as_ref());
            }
            missing.retain(|name| is_listened_at(&self.directory.join(name)));
        }
        Ok(Frozen::NoAnswer)
    }

    /// Ends it. Supervisors look every few milliseconds.
    pub fn end(&self) {
        remove(&self.path);
    }

    /// Wakes every supervisor that listens; their names.
    fn ask_supervisors(&self) -> std::io::Result<BTreeSet<String>> {
        let mut asked = BTreeSet::new();
        for name in names(&self.directory, TREE)? {
            let path = self.directory.join(&name);
            match open_pipe(&path, Ends::Writing) {
                // What does not fit is there already, and wakes it as well.
                Ok(mut pipe) => drop(pipe.write(b"!")),
                Err(error) if has_nobody(&error) => {
                    remove(&path);
                    continue;
                }
                Err(error) => return Err(error),
            }
            asked.insert(name);
        }
        Ok(asked)
    }
}

/// Which ends of a pipe are opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Both,
    Writing,
}

pub(crate) fn create_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

pub(crate) fn make_pipe(path: &Path) -> std::io::Result<()> {
    Ok(mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR)?)
}

/// Opens a pipe without waiting for its other end.
pub(crate) fn open_pipe(path: &Path, ends: Ends) -> std::io::Result<File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a pipe between our own processes: nothing is kept in it"
    )]
    File::options()
        .read(ends == Ends::Both)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
}

/// The names in the directory that begin with this.
pub(crate) fn names(directory: &Path, beginning: &str) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name();
        names.extend(
            name.to_str()
                .filter(|it| it.starts_with(beginning))
                .map(str::to_owned),
        );
    }
    Ok(names)
}

/// Reads what is there.
pub(crate) fn drain(pipe: &mut File, text: &mut Vec<u8>) {
    let mut bytes = [0; 512];
    while let Ok(read @ 1..) = pipe.read(&mut bytes) {
        text.extend(bytes.iter().take(read));
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pipe of ours that nobody needs any more"
)]
pub(crate) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

fn is_listened_at(path: &Path) -> bool {
    match open_pipe(path, Ends::Writing) {
        Ok(_) => true,
        Err(error) => !has_nobody(&error),
    }
}

/// Whether a pipe is not there, or nobody listens at it.
fn has_nobody(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}
