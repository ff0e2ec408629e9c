//! The two pipes of a relay, and whole messages through them.
//!
//! Each message is a line of JSON. A pipe whose other end is gone, and whatever is too long or no
//! message, is an error.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat};
use rustix::io::Errno;
use safepoint_model::json::{Limits, read_as};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// From inside to outside.
const ASK: &str = "ask";
/// From outside to inside.
const ANSWER: &str = "answer";
/// Is there once a line was claimed.
const CLAIMED: &str = "claimed";

/// The longest message.
const MAX_MESSAGE_BYTES: usize = 32 << 20;

/// The ends that the relay has.
pub(super) struct OuterEnds {
    pub(super) directory: PathBuf,
    pub(super) ask: File,
    pub(super) answer: File,
}

/// Makes the pipes of one relay.
pub(super) fn make(above: &Path, name: &str) -> std::io::Result<OuterEnds> {
    let private = |path: &Path| std::fs::DirBuilder::new().mode(0o700).create(path);
    match private(above) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => is_private(above)?,
    }
    let directory = above.join(name);
    private(&directory)?;
    for pipe in [ASK, ANSWER] {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, directory.join(pipe), FileType::Fifo, mode, 0)?;
    }
    Ok(OuterEnds {
        // Without a writing end of its own: so it is seen when the other one is gone.
        ask: open(&directory.join(ASK), Ends::Reading)?,
        answer: open(&directory.join(ANSWER), Ends::Both)?,
        directory,
    })
}

/// The ends that a line in a sandbox has.
pub(super) struct InnerEnds {
    pub(super) ask: File,
    pub(super) answer: File,
}

/// Opens the pipes of a relay that listens. None where there is nobody.
pub(super) fn reach(directory: &Path) -> std::io::Result<Option<InnerEnds>> {
    is_private(directory)?;
    let ask = match open(&directory.join(ASK), Ends::Writing) {
        Ok(ask) => ask,
        Err(error) if is_nobody(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    fcntl_setfl(&ask, OFlags::empty())?;
    let answer = open(&directory.join(ANSWER), Ends::Reading)?;
    Ok(Some(InnerEnds { ask, answer }))
}

/// The directories of relays whose names begin so, in a fixed order.
pub(super) fn directories(above: &Path, beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let named = names.filter(|name| name.to_string_lossy().starts_with(beginning));
    let mut all: Vec<PathBuf> = named.map(|name| above.join(name)).collect();
    all.sort();
    all
}

/// Whether somebody has claimed the line of a relay.
pub(super) fn is_claimed(directory: &Path) -> bool {
    directory.join(CLAIMED).exists()
}

/// Says that the line is claimed: from here on the relay stays to the end.
pub(super) fn mark_claimed(directory: &Path) -> std::io::Result<()> {
    let private = std::fs::DirBuilder::new()
        .mode(0o700)
        .create(directory.join(CLAIMED));
    match private {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Removes the directory of a relay, with what belongs there and nothing else.
pub(super) fn remove(directory: &Path) {
    #[expect(
        clippy::disallowed_methods,
        reason = "pipes of ours that nobody needs any more"
    )]
    for pipe in [ASK, ANSWER] {
        let _ = std::fs::remove_file(directory.join(pipe));
    }
    let _ = std::fs::remove_dir(directory.join(CLAIMED));
    let _ = std::fs::remove_dir(directory);
}

/// A directory of ours, where nobody else writes; not a link to one.
fn is_private(directory: &Path) -> std::io::Result<()> {
    let found = std::fs::symlink_metadata(directory)?;
    let own = rustix::process::geteuid().as_raw();
    match found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 {
        true => Ok(()),
        false => Err(Error::other(format!(
            "`{}` is no private directory",
            directory.display()
        ))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Reading,
    Writing,
    Both,
}

/// Opens a pipe of ours without waiting for its other end.
fn open(path: &Path, ends: Ends) -> std::io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    #[expect(
        clippy::disallowed_methods,
        reason = "a pipe between our own processes: nothing is kept in it"
    )]
    let pipe = File::options()
        .read(ends != Ends::Writing)
        .write(ends != Ends::Reading)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    let found = pipe.metadata()?;
    let own = rustix::process::geteuid().as_raw();
    match found.file_type().is_fifo() && found.uid() == own {
        true => Ok(pipe),
        false => Err(Error::other(format!(
            "`{}` is no pipe of ours",
            path.display()
        ))),
    }
}

/// Whether a pipe is not there, or nobody listens at it.
fn is_nobody(error: &Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::NXIO.raw_os_error())
}

/// What a look at a pipe has brought.
pub(super) enum Received<T> {
    Message(T),
    /// Nothing yet.
    Nothing,
    /// Nobody has the other end.
    Gone,
}

/// Reads messages.
pub(super) struct MessageReader {
    pipe: File,
    bytes: Vec<u8>,
}

impl MessageReader {
    pub(super) fn new(pipe: File) -> Self {
        Self {
            pipe,
            bytes: Vec::new(),
        }
    }

    /// The next message, if there is one within so many milliseconds.
    pub(super) fn receive<T: DeserializeOwned>(
        &mut self,
        milliseconds: u32,
    ) -> std::io::Result<Received<T>> {
        if let Some(message) = self.take_message()? {
            return Ok(Received::Message(message));
        }
        let events = wait_for(&self.pipe, PollFlags::IN, milliseconds)?;
        if !events.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return Ok(Received::Nothing);
        }
        let mut piece = vec![0; 64 << 10];
        loop {
            match self.pipe.read(&mut piece) {
                Ok(0) => return Ok(Received::Gone),
                Ok(length) => {
                    self.bytes
                        .extend_from_slice(piece.get(..length).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(Received::Nothing);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.bytes.len() > MAX_MESSAGE_BYTES {
                return Err(Error::other("a message is too long"));
            }
            if let Some(message) = self.take_message()? {
                return Ok(Received::Message(message));
            }
        }
    }

    /// The first message of what was read, if it is whole.
    fn take_message<T: DeserializeOwned>(&mut self) -> std::io::Result<Option<T>> {
        let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
            return Ok(None);
        };
        let rest = self.bytes.split_off(end + 1);
        let message = std::mem::replace(&mut self.bytes, rest);
        read_message(&message).map(Some)
    }

    /// The same pipe, for somebody who waits for its end beside us.
    pub(super) fn watch(&self) -> std::io::Result<Self> {
        Ok(Self::new(self.pipe.try_clone()?))
    }

    /// Whether the other end is gone, or is within so many milliseconds.
    pub(super) fn is_gone(&self, milliseconds: u32) -> std::io::Result<bool> {
        let events = wait_for(&self.pipe, PollFlags::empty(), milliseconds)?;
        Ok(events.intersects(PollFlags::HUP | PollFlags::ERR))
    }
}

fn read_message<T: DeserializeOwned>(bytes: &[u8]) -> std::io::Result<T> {
    let limits = Limits {
        bytes: MAX_MESSAGE_BYTES,
        ..Limits::default()
    };
    read_as(bytes, limits).map_err(|error| Error::other(format!("that is no message: {error}")))
}

/// Writes a message, for as long as somebody is there to read it.
pub(super) fn send(
    pipe: &mut File,
    message: &impl Serialize,
    mut is_gone: impl FnMut() -> bool,
) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        match pipe.write(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(length) => rest = rest.get(length..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if is_gone() {
                    return Err(ErrorKind::BrokenPipe.into());
                }
                wait_for(pipe, PollFlags::OUT, 100)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_for(pipe: &impl AsFd, wanted: PollFlags, milliseconds: u32) -> std::io::Result<PollFlags> {
    let mut polled = [PollFd::new(pipe, wanted)];
    let timeout = Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let [polled] = polled;
    Ok(polled.revents())
}
