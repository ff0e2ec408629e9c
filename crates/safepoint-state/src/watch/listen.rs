//! The listener: hears what changes in a workspace, and answers who asks.
//!
//! The kernel queues an event before the call that caused it returns. So when
//! the queue has been read to its end after a question came, everything that
//! happened before the question has been heard.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, Timespec, openat};
use rustix::io::Errno;
use safepoint_model::Entropy;
use safepoint_store::durable;

use super::protocol::{Cursor, Question, Reply};
use super::reach;
use crate::lock::{self, Hold};
use crate::own_directory::OwnDirectory;
use crate::path::{self, TreePath};
use crate::scan::OWN;
use crate::{StateError, own};

/// More paths than this are not remembered: looking at everything is as quick.
const MOST: usize = 100_000;
/// Whoever asks and then says nothing is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often to see whether to stop.
const POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Listens until `stop` is set. Calls `ready` once changes are heard.
pub fn serve(
    workspace: &Path,
    socket: &Path,
    entropy: &dyn Entropy,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<(), StateError> {
    durable::create_directory(socket.parent().unwrap_or(socket))?;
    let _only = lock::try_take(&socket.with_extension("lock"), Hold::Alone)?.ok_or_else(|| {
        StateError::Busy {
            what: format!("the watcher of `{}`", workspace.display()),
        }
    })?;
    durable::remove(socket)?; // of a listener that was killed
    OwnDirectory::make(workspace, own::CHECKPOINTS)?;
    let mut random = [0; 8];
    entropy.fill(&mut random)?;
    let mut ear = Ear::open(workspace, format!("{:016x}", u64::from_be_bytes(random)))?;
    let unreachable = |error| StateError::file("listen at", socket, error);
    let (_held, short) = reach(socket).map_err(unreachable)?;
    let listener = UnixListener::bind(&short).map_err(unreachable)?;
    listener.set_nonblocking(true).map_err(unreachable)?;
    ready();
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = [
            PollFd::new(&ear.inotify, PollFlags::IN),
            PollFd::new(&listener, PollFlags::IN),
        ];
        let _ = poll(&mut waiting, Some(&POLL));
        ear.hear()?;
        while let Ok((stream, _)) = listener.accept() {
            // Whoever asks badly gets no answer, and looks for himself.
            let _ = ear.answer(stream);
        }
    }
    Ok(durable::remove(socket)?)
}

/// What listens, and what it has heard.
struct Ear<'a> {
    workspace: &'a Path,
    instance: String,
    inotify: OwnedFd,
    /// The directories that are listened to, by the kernel's number.
    directories: HashMap<i32, TreePath>,
    sequence: u64,
    last: HashMap<TreePath, u64>,
    /// What was heard up to here may be incomplete.
    lost: u64,
    /// Something cannot be listened to: no answer is complete any more.
    deaf: bool,
}

impl<'a> Ear<'a> {
    fn open(workspace: &'a Path, instance: String) -> Result<Self, StateError> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|error| StateError::file("watch", workspace, error))?;
        let mut ear = Self {
            workspace,
            instance,
            inotify,
            directories: HashMap::new(),
            sequence: 0,
            last: HashMap::new(),
            lost: 0,
            deaf: false,
        };
        ear.listen_to(Vec::new());
        if ear.deaf {
            return Err(StateError::Unsupported(format!(
                "`{}` has more directories than may be watched: raise fs.inotify.max_user_watches",
                workspace.display()
            )));
        }
        Ok(ear)
    }

    /// Listens to a directory and to all below it.
    fn listen_to(&mut self, directory: TreePath) {
        // Only what changes something: whoever reads the whole tree is not heard.
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        let mut waiting = vec![directory];
        while let Some(directory) = waiting.pop() {
            let full = self.workspace.join(path::as_path(&directory));
            match inotify::add_watch(&self.inotify, &full, what) {
                Ok(number) => {
                    self.directories.insert(number, directory.clone());
                }
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                // What may not be read cannot be captured either, and is told then.
                Err(Errno::ACCESS) => continue,
                Err(_) => {
                    self.deaf = true;
                    return;
                }
            }
            waiting.extend(subdirectories(&full, &directory));
        }
    }

    /// Reads everything that has happened so far.
    fn hear(&mut self) -> Result<(), StateError> {
        let mut buffer = [MaybeUninit::<u8>::uninit(); 64 << 10];
        let mut new = Vec::new();
        loop {
            let mut heard = Vec::new();
            let mut reader = Reader::new(&self.inotify, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map(|name| name.to_bytes().to_vec());
                        heard.push((event.wd(), event.events(), name));
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(StateError::file("watch", self.workspace, error)),
                }
            }
            for (number, events, name) in heard {
                new.extend(self.take(number, events, name));
            }
            if new.is_empty() {
                return Ok(());
            }
            // What came into a new directory before it was listened to is found by
            // whoever looks at it as a whole, which is done for every new one.
            for directory in new.drain(..) {
                self.listen_to(directory);
            }
        }
    }

    /// Takes one thing that was heard. Returns a directory that must be listened to.
    fn take(&mut self, number: i32, events: ReadFlags, name: Option<Vec<u8>>) -> Option<TreePath> {
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.lose();
            return None;
        }
        if events.contains(ReadFlags::IGNORED) {
            self.directories.remove(&number);
            return None;
        }
        // Of the directory itself the one above tells, by its name.
        let name = name.filter(|name| !name.is_empty())?;
        let path = path::join(self.directories.get(&number)?, &name);
        if OWN.iter().any(|own| path::is_within(&path, own)) {
            return None;
        }
        self.sequence += 1;
        self.last.insert(path.clone(), self.sequence);
        if self.last.len() > MOST {
            self.lose();
        }
        // One that could not be entered before can perhaps be now.
        let comes = ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::ATTRIB;
        let is_directory = events.contains(ReadFlags::ISDIR);
        (is_directory && events.intersects(comes)).then_some(path)
    }

    /// Something was missed: what is known up to here is not everything.
    fn lose(&mut self) {
        self.sequence += 1;
        self.lost = self.sequence;
        self.last.clear();
    }

    fn answer(&mut self, mut stream: UnixStream) -> std::io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        let question: Question = serde_json::from_str(&line)?;
        self.hear().map_err(std::io::Error::other)?;
        let since = question.since.filter(|since| {
            !self.deaf && since.instance == self.instance && since.sequence >= self.lost
        });
        let changed = since.map(|since| {
            let newer = self.last.iter().filter(|(_, at)| **at > since.sequence);
            newer.map(|(path, _)| path.clone()).collect()
        });
        let cursor = Cursor {
            instance: self.instance.clone(),
            sequence: self.sequence,
        };
        let mut reply = serde_json::to_vec(&Reply::of(cursor, changed))?;
        reply.push(b'\n');
        stream.write_all(&reply)
    }
}

/// The directories in a directory, but for our own.
fn subdirectories(full: &Path, directory: &[u8]) -> Vec<TreePath> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(handle) = openat(CWD, full, flags, Mode::empty()) else {
        return Vec::new();
    };
    let mut buffer = [MaybeUninit::<u8>::uninit(); 16 << 10];
    let mut listing = RawDir::new(&handle, &mut buffer);
    let mut found = Vec::new();
    while let Some(Ok(entry)) = listing.next() {
        let name = entry.file_name().to_bytes();
        let known = entry.file_type();
        if name == b"."
            || name == b".."
            || known != FileType::Directory && known != FileType::Unknown
        {
            continue;
        }
        let path = path::join(directory, name);
        if !OWN.contains(&path.as_slice()) {
            found.push(path);
        }
    }
    found
}
