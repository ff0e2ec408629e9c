//! Asking the supervisors of a user to hold back what moves names, for as long as somebody outside
//! the fence relies on where a path leads.
//!
//! A client's own file tool acts outside the fence, by a path. Between the moment at which that
//! path is looked at and the end of the tool, nothing behind a fence may put a link in its way.
//!
//! The directory holds two kinds of named pipe. Each supervisor whose tree has moved a name has
//! one (`tree-…`), and listens there. Each freeze is one (`freeze-…`), at which the supervisors
//! answer once no call that moves a name is on its way. A pipe that nobody listens at was left by
//! somebody who is gone.
//!
//! Safepoint's own commands move names outside every fence. Each has a pipe like that of a
//! supervisor while it does ([`NameMove`](crate::NameMove)), and goes on only where no freeze is
//! there already: so one of the two sees the other, whichever came first.
//!
//! Beside each freeze lies its scope (`scope-…`): the places whose names must not move, and the
//! process for which they are frozen. Beside each supervisor's pipe lies where its tree can write,
//! in the same form. Only trees that can write at, above or below one of these places are asked,
//! and wait. A scope that cannot be read concerns everybody.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, mkfifoat, renameat};
use rustix::io::Errno;

use crate::Process;

/// How long a freeze lasts at most, while the process lives for which it was asked: a client may
/// put its own question to a person before its tool writes.
pub const MAX_FREEZE: Duration = Duration::from_secs(15 * 60);

/// How long a freeze lasts for which no process stands, or one that has ended.
pub const MAX_UNATTENDED_FREEZE: Duration = Duration::from_secs(30);

/// What pipes are called of supervisors, and of whoever else moves names.
pub(crate) const TREE: &str = "tree-";
/// What pipes of freezes are called.
pub(crate) const FREEZE: &str = "freeze-";
/// What a pipe is called until it is open.
const NEW: &str = "new-";
/// What files are called that say what a freeze is about.
const SCOPE: &str = "scope-";

/// What ends a scope that was written whole.
const SCOPE_END: &[u8] = b"\0.";

/// How long to wait for a supervisor, in rounds of this many milliseconds.
const ROUND_MILLIS: i64 = 10;
const MAX_ROUNDS: usize = 500;

/// A request that nothing behind a fence moves names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    directory: PathBuf,
    name: String,
}

/// What a freeze is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreezeScope {
    /// The places whose names must not move, nor those of the directories above them.
    pub places: Vec<PathBuf>,
    /// The process that relies on them, and when it was started.
    pub keeper: Option<(u32, u64)>,
}

impl FreezeScope {
    /// Whether whoever can write in these places could move a name of it.
    pub(crate) fn concerns(&self, writable: &[PathBuf]) -> bool {
        let touches = |place: &PathBuf| {
            let mut others = writable.iter();
            others.any(|it| it.starts_with(place) || place.starts_with(it))
        };
        self.places.iter().any(touches)
    }

    /// Whether the process still lives for which it was asked.
    pub(crate) fn is_attended(&self) -> bool {
        self.keeper.is_some_and(|(pid, started)| {
            let process = Process::look(pid);
            process.is_some_and(|it| it.started == started && !it.has_ended())
        })
    }

    fn encode(&self) -> Vec<u8> {
        let (pid, started) = self.keeper.unwrap_or_default();
        let mut text = format!("{pid} {started}").into_bytes();
        for place in &self.places {
            text.push(0);
            text.extend_from_slice(place.as_os_str().as_bytes());
        }
        text.extend_from_slice(SCOPE_END);
        text
    }

    fn decode(text: &[u8]) -> Option<Self> {
        let mut fields = text.strip_suffix(SCOPE_END)?.split(|byte| *byte == 0);
        let keeper = std::str::from_utf8(fields.next()?).ok()?;
        let (pid, started) = keeper.split_once(' ')?;
        let keeper = (pid.parse().ok()?, started.parse().ok()?);
        Some(Self {
            places: fields.map(|it| OsStr::from_bytes(it).into()).collect(),
            keeper: Some(keeper).filter(|(pid, _)| *pid != 0),
        })
    }
}

/// What belongs to the pipe of this name, if it can be read.
pub(crate) fn scope_of(directory: &Path, pipe: &str) -> Option<FreezeScope> {
    let text = std::fs::read(directory.join(format!("{SCOPE}{pipe}"))).ok()?;
    FreezeScope::decode(&text)
}

/// Writes what belongs to the pipe of this name.
pub(crate) fn write_scope(
    directory: &Path,
    pipe: &str,
    scope: &FreezeScope,
) -> std::io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "read while the pipe is there: one that is torn concerns everybody"
    )]
    std::fs::write(directory.join(format!("{SCOPE}{pipe}")), scope.encode())
}

/// Takes a pipe away, with what belongs to it.
pub(crate) fn remove_pipe(directory: &Path, pipe: &str) {
    remove(&directory.join(pipe));
    remove(&directory.join(format!("{SCOPE}{pipe}")));
}

/// Whether the supervisors have answered a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// All of them: no name moves until the freeze ends.
    Yes,
    /// One did not answer in time, or a command of ours still moves names.
    NoAnswer,
}

impl Freeze {
    /// A freeze in this directory, under a name that is a word.
    pub fn new(directory: &Path, name: &str) -> Self {
        Self {
            directory: directory.to_owned(),
            name: format!("{FREEZE}{name}"),
        }
    }

    /// Asks for it, and waits until every living supervisor has answered.
    pub fn begin(&self, scope: &FreezeScope) -> std::io::Result<Frozen> {
        create_directory(&self.directory)?;
        // One of the same name would be older, and end sooner.
        self.end();
        write_scope(&self.directory, &self.name, scope)?;
        let mut answers = make_open_pipe(&self.directory, &self.name)?;
        let mut missing = self.ask_supervisors(scope)?;
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
        remove_pipe(&self.directory, &self.name);
    }

    /// Says that nobody stands for it any more: it ends by itself after a short time.
    pub fn let_expire(&self) -> std::io::Result<()> {
        match scope_of(&self.directory, &self.name) {
            Some(scope) if scope.keeper.is_some() => {
                let keeper = None;
                let scope = FreezeScope { keeper, ..scope };
                write_scope(&self.directory, &self.name, &scope)
            }
            _ => Ok(()),
        }
    }

    /// Wakes every supervisor that listens and whom it concerns; their names.
    fn ask_supervisors(&self, scope: &FreezeScope) -> std::io::Result<BTreeSet<String>> {
        let mut asked = BTreeSet::new();
        for name in names(&self.directory, TREE)? {
            let path = self.directory.join(&name);
            match open_pipe(&path, Ends::Writing) {
                Ok(mut pipe) => {
                    let tree = scope_of(&self.directory, &name);
                    if tree.is_some_and(|tree| !scope.concerns(&tree.places)) {
                        continue;
                    }
                    // What does not fit is there already, and wakes it as well.
                    let _ = pipe.write(b"!");
                }
                Err(error) if has_nobody(&error) => {
                    remove_pipe(&self.directory, &name);
                    continue;
                }
                Err(error) => return Err(error),
            }
            asked.insert(name);
        }
        Ok(asked)
    }
}

/// A freeze that has not ended. Another one under its name is another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandingFreeze {
    pub(crate) name: String,
    pub(crate) made: (u64, i64, i64),
    /// What it is about; none where that cannot be read, and it concerns everybody.
    pub scope: Option<FreezeScope>,
}

impl StandingFreeze {
    /// Whether whoever can write in these places could move a name of it.
    pub(crate) fn concerns(&self, writable: &[PathBuf]) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|it| it.concerns(writable))
    }
}

/// Freezes that have not ended. Those that have lasted too long are taken away.
pub(crate) fn standing_freezes(directory: &Path) -> std::io::Result<Vec<StandingFreeze>> {
    let mut standing = Vec::new();
    for name in names(directory, FREEZE)? {
        let path = directory.join(&name);
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        let scope = scope_of(directory, &name);
        let age = metadata.modified().ok().and_then(|it| it.elapsed().ok());
        // One from the future is of now: the clock was put back.
        let age = age.unwrap_or_default();
        let is_attended = || scope.as_ref().is_some_and(FreezeScope::is_attended);
        if age > MAX_FREEZE || (age > MAX_UNATTENDED_FREEZE && !is_attended()) {
            remove_pipe(directory, &name);
            continue;
        }
        standing.push(StandingFreeze {
            made: (metadata.ino(), metadata.mtime(), metadata.mtime_nsec()),
            scope,
            name,
        });
    }
    Ok(standing)
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

/// Makes a pipe, open for both: it neither waits for writers nor ends with the last of them. It
/// gets its name when it is open, so nobody takes it for one that was left.
pub(crate) fn make_open_pipe(directory: &Path, name: &str) -> std::io::Result<File> {
    let unnamed = directory.join(format!("{NEW}{name}"));
    remove(&unnamed);
    mkfifoat(CWD, &unnamed, Mode::RUSR | Mode::WUSR)?;
    let pipe = open_pipe(&unnamed, Ends::Both)?;
    renameat(CWD, &unnamed, CWD, directory.join(name))?;
    Ok(pipe)
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
fn remove(path: &Path) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_05_a_scope_concerns_those_who_can_move_one_of_its_names() {
        let scope = FreezeScope {
            places: vec!["/home/u/work".into(), "/srv/x/y".into()],
            keeper: Some((7, 9)),
        };
        assert_eq!(FreezeScope::decode(&scope.encode()), Some(scope.clone()));
        let text = scope.encode();
        for end in 0..text.len() {
            let part = text.get(..end).and_then(FreezeScope::decode);
            assert_eq!(part, None, "{end}");
        }
        let concerns = |place: &str| scope.concerns(&[place.into()]);
        for place in ["/home/u/work", "/home/u/work/sub", "/home/u", "/", "/srv/x"] {
            assert!(concerns(place), "{place}");
        }
        for place in ["/home/u/other", "/home/u/work2", "/srv/x/z", "/tmp"] {
            assert!(!concerns(place), "{place}");
        }
    }
}
