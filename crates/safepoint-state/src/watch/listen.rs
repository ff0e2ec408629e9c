//! The listener: hears what changes in a workspace, and answers who asks.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{Event, EventKind, RecursiveMode, Watcher};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use safepoint_model::Entropy;
use safepoint_store::durable;

use super::protocol::{Cursor, Question, Reply};
use crate::lock::{self, Hold};
use crate::path::TreePath;
use crate::{StateError, own};

/// More paths than this are not remembered: looking at everything is as quick.
const MOST: usize = 100_000;
/// How long to wait for our own mark to be heard.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);
/// How our own marks are named.
const MARK: &str = ".heard-";

/// What has been heard.
#[derive(Default)]
struct Heard {
    sequence: u64,
    last: HashMap<TreePath, u64>,
    /// What was heard up to here may be incomplete.
    lost: u64,
    /// Something could not be watched: no answer is complete any more.
    broken: bool,
    /// Directories to be watched anew.
    rewatch: Vec<PathBuf>,
    /// How many marks were made, for their names.
    made: u64,
    /// Marks of our own: when one is heard, so is everything before it.
    marks: Vec<Vec<u8>>,
}

struct Shared {
    heard: Mutex<Heard>,
    marked: Condvar,
}

/// Listens until `stop` is set. Calls `ready` once changes are heard.
pub fn serve(
    workspace: &Path,
    socket: &Path,
    entropy: &dyn Entropy,
    stop: &AtomicBool,
    ready: impl FnOnce(),
) -> Result<(), StateError> {
    let directory = socket.parent().unwrap_or(socket);
    durable::create_directory(directory)?;
    let _only = lock::try_take(&socket.with_extension("lock"), Hold::Alone)?.ok_or_else(|| {
        StateError::Busy {
            what: format!("the watcher of `{}`", workspace.display()),
        }
    })?;
    durable::remove(socket)?; // of a listener that was killed
    own::prepare(&own::checkpoints(workspace))?;
    let shared = Arc::new(Shared {
        heard: Mutex::default(),
        marked: Condvar::new(),
    });
    let hear = Arc::clone(&shared);
    let root = workspace.to_owned();
    let failed = |error: notify::Error| {
        StateError::Unsupported(format!(
            "`{}` cannot be watched: {error}",
            workspace.display()
        ))
    };
    // A link to somewhere else must not make us listen there, or hear under its name.
    let settings = notify::Config::default().with_follow_symlinks(false);
    let mut watcher =
        notify::RecommendedWatcher::new(move |event| hear.take(&root, event), settings)
            .map_err(failed)?;
    watcher
        .watch(workspace, RecursiveMode::Recursive)
        .map_err(failed)?;
    let listener =
        UnixListener::bind(socket).map_err(|error| StateError::file("listen at", socket, error))?;
    listener
        .set_nonblocking(true)
        .map_err(|error| StateError::file("listen at", socket, error))?;
    let mut instance = [0; 8];
    entropy.fill(&mut instance)?;
    let instance = format!("{:016x}", u64::from_be_bytes(instance));
    ready();
    while !stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => {
                // Whoever asks badly gets no answer, and looks for himself.
                let again = std::mem::take(&mut shared.lock().rewatch);
                for directory in again {
                    let gone = !directory.is_dir();
                    if !gone && watcher.watch(&directory, RecursiveMode::Recursive).is_err() {
                        shared.lock().broken = true;
                    }
                }
                let _ = answer(&shared, workspace, &instance, stream);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => wait(&listener),
            Err(error) => return Err(StateError::file("listen at", socket, error)),
        }
    }
    Ok(durable::remove(socket)?)
}

/// Sleeps until somebody asks, and wakes now and then to see whether to stop.
fn wait(listener: &UnixListener) {
    let mut ready = [rustix::event::PollFd::new(
        listener,
        rustix::event::PollFlags::IN,
    )];
    let timeout = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(POLL.subsec_nanos()),
    };
    let _ = rustix::event::poll(&mut ready, Some(&timeout));
}

fn answer(
    shared: &Shared,
    workspace: &Path,
    instance: &str,
    mut stream: UnixStream,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line)?;
    let question: Question = serde_json::from_str(&line)?;
    // Directories that were made just now are watched by the time a second mark is
    // heard; what came in between is told now, and told again the next time.
    let first = shared.catch_up(workspace);
    let sequence = shared.lock().sequence;
    let complete = shared.catch_up(workspace) && first;
    let heard = shared.lock();
    let since = question.since.filter(|since| {
        complete && !heard.broken && since.instance == instance && since.sequence >= heard.lost
    });
    let changed = since.map(|since| {
        let newer = heard.last.iter().filter(|(_, at)| **at > since.sequence);
        newer.map(|(path, _)| path.clone()).collect()
    });
    let cursor = Cursor {
        instance: instance.to_owned(),
        sequence,
    };
    drop(heard);
    let mut reply = serde_json::to_vec(&Reply::of(cursor, changed))?;
    reply.push(b'\n');
    stream.write_all(&reply)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one thing that was heard.
    fn take(&self, root: &Path, event: Result<Event, notify::Error>) {
        let mut heard = self.lock();
        let Ok(event) = event else {
            // Something cannot be watched: from now on nothing is certain.
            heard.broken = true;
            return;
        };
        // A directory that could not be entered before can perhaps be now.
        if let EventKind::Modify(ModifyKind::Metadata(_)) = event.kind {
            let directories = event.paths.iter().filter(|path| path.is_dir()).cloned();
            heard.rewatch.extend(directories);
        }
        if event.need_rescan() {
            heard.lose();
        }
        let only_read = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => true,
            _ => false,
        };
        if only_read {
            return;
        }
        for path in event.paths {
            let Ok(inside) = path.strip_prefix(root) else {
                continue;
            };
            let inside = inside.as_os_str().as_bytes();
            if inside.is_empty() {
                continue; // of the workspace itself nothing is captured but its mode
            }
            let own = |name: &[u8]| crate::path::is_within(inside, name);
            if own(b".checkpoints") || own(b".audit") {
                if heard.marks.iter().any(|mark| mark == inside) {
                    heard.marks.retain(|mark| mark != inside);
                    self.marked.notify_all();
                }
                continue;
            }
            heard.sequence += 1;
            let at = heard.sequence;
            heard.last.insert(inside.to_vec(), at);
        }
        if heard.last.len() > MOST {
            heard.lose();
        }
    }

    /// Waits until everything that has happened so far has been heard: a mark
    /// is made, and what comes before it is heard before it.
    fn catch_up(&self, workspace: &Path) -> bool {
        let directory = own::checkpoints(workspace);
        let number = {
            let mut heard = self.lock();
            heard.made += 1;
            heard.made
        };
        let name = format!("{MARK}{number}-{}", std::process::id());
        let mark = format!(".checkpoints/{name}").into_bytes();
        self.lock().marks.push(mark.clone());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let path = directory.join(&name);
        if openat(CWD, &path, flags, Mode::from_raw_mode(0o600)).is_err() {
            return false;
        }
        let (_heard, timeout) = self
            .marked
            .wait_timeout_while(self.lock(), PATIENCE, |heard| heard.marks.contains(&mark))
            .unwrap_or_else(PoisonError::into_inner);
        let _ = unlinkat(CWD, &path, AtFlags::empty());
        !timeout.timed_out()
    }
}

impl Heard {
    /// Something was missed: what is known up to here is not everything.
    fn lose(&mut self) {
        self.sequence += 1;
        self.lost = self.sequence;
        self.last.clear();
    }
}
