//! The supervisor's side of a [`Freeze`](crate::Freeze): calls that move names wait while there is
//! one, and it is answered once none is on its way.
//!
//! A call that the kernel goes on with takes place some time after it was answered, and nobody
//! tells when it is over. So the last such call of each thread is remembered, and before a freeze
//! is answered each of those threads must be seen somewhere else: in another call, in none, or
//! having worked for longer than the call takes.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::FreezeScope;
use crate::freeze::{
    Ends, TREE, create_directory, drain, make_open_pipe, open_pipe, remove_pipe, standing_freezes,
    write_scope,
};

/// How often a freezer looks whether a freeze has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// A thread that has worked for so long since is past its call.
const CALL_NANOSECONDS: u64 = 20_000_000;
/// How often threads are looked at before a freeze is not answered.
const MAX_LOOKS: usize = 4000;
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// More threads are not remembered at once, unless they live.
const MAX_THREADS: usize = 256;

/// Tells the pipes of one process apart.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Whether calls of one supervised tree that move names may go on.
#[derive(Debug)]
pub(super) struct Freezer {
    /// Where freezes are asked for, if this process hears of them.
    directory: Option<PathBuf>,
    /// Where the tree can move names.
    writable: Vec<PathBuf>,
    shared: Arc<Shared>,
    /// Made with the first call that moves a name.
    watcher: OnceLock<Result<Watcher, Errno>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<FreezeState>,
    thawed: Condvar,
}

#[derive(Debug, Default)]
struct FreezeState {
    frozen: BTreeSet<String>,
    /// Threads, with the call that each made last, where that moves names.
    on_the_way: HashMap<u32, i64>,
}

/// The thread that listens for freezes. It ends when this is dropped.
#[derive(Debug)]
struct Watcher {
    _wake: UnixStream,
}

/// Whether a call may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passing {
    Now,
    /// There is a freeze.
    Later,
}

impl Freezer {
    pub(super) fn new(directory: Option<PathBuf>, writable: Vec<PathBuf>) -> Self {
        Self {
            directory,
            writable,
            shared: Arc::default(),
            watcher: OnceLock::new(),
        }
    }

    /// A thread makes a call: the one before is over.
    pub(super) fn see(&self, thread: u32) {
        if self.watcher.get().is_some() {
            self.shared.lock().on_the_way.remove(&thread);
        }
    }

    /// Lets a call that moves names go on, unless there is a freeze. The answer has to be given
    /// to the kernel afterwards, not before.
    pub(super) fn pass(&self, thread: u32, call: i64) -> Result<Passing, Errno> {
        self.watch()?;
        let mut state = self.shared.lock();
        if !state.frozen.is_empty() {
            return Ok(Passing::Later);
        }
        state.begin(thread, call);
        Ok(Passing::Now)
    }

    /// The same, but waits for the end of a freeze.
    pub(super) fn wait_and_pass(&self, thread: u32, call: i64) -> Result<(), Errno> {
        self.watch()?;
        let mut state = self.shared.lock();
        while !state.frozen.is_empty() {
            state = self
                .shared
                .thawed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.begin(thread, call);
        Ok(())
    }

    fn watch(&self) -> Result<(), Errno> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let start = || {
            Watcher::start(directory, self.writable.clone(), &self.shared)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        match self.watcher.get_or_init(start) {
            Ok(_) => Ok(()),
            Err(error) => Err(*error),
        }
    }
}

impl FreezeState {
    fn begin(&mut self, thread: u32, call: i64) {
        if self.on_the_way.len() >= MAX_THREADS {
            self.on_the_way
                .retain(|thread, _| Path::new(&format!("/proc/{thread}")).exists());
        }
        self.on_the_way.insert(thread, call);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, FreezeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no call that moves names is on its way. `false` where that takes too long.
    fn settle(&self) -> bool {
        let mut worked: HashMap<u32, u64> = HashMap::new();
        for _ in 0..MAX_LOOKS {
            let threads = self.lock().on_the_way.clone();
            if threads.is_empty() {
                return true;
            }
            for (thread, call) in threads {
                if is_past(thread, call, &mut worked) {
                    self.lock().on_the_way.remove(&thread);
                }
            }
            thread::sleep(LOOK_INTERVAL);
        }
        false
    }
}

/// Whether a thread is past the call it was let go on with.
fn is_past(thread: u32, call: i64, worked: &mut HashMap<u32, u64>) -> bool {
    let place = match std::fs::read_to_string(format!("/proc/{thread}/syscall")) {
        Ok(place) => place,
        Err(error) => return is_gone(&error),
    };
    let Some(word) = place.split_whitespace().next() else {
        return false;
    };
    if let Ok(number) = word.parse::<i64>() {
        return number != call;
    }
    if has_ended(thread) {
        return true;
    }
    // It runs, or waits for a processor: in the call, or behind it.
    let times = std::fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap_or_default();
    let Some(now) = times
        .split_whitespace()
        .next()
        .and_then(|it| it.parse().ok())
    else {
        return false;
    };
    let then = *worked.entry(thread).or_insert(now);
    now.saturating_sub(then) > CALL_NANOSECONDS
}

/// Whether a thread has ended, and only its parent has not noticed yet.
fn has_ended(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let rest = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    rest.is_some_and(|rest| rest.starts_with(['Z', 'X']))
}

fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

impl Watcher {
    fn start(
        directory: &Path,
        writable: Vec<PathBuf>,
        shared: &Arc<Shared>,
    ) -> std::io::Result<Self> {
        create_directory(directory)?;
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let name = format!("{TREE}{}-{number}", std::process::id());
        // Whoever had this name before is gone.
        remove_pipe(directory, &name);
        let scope = FreezeScope {
            places: writable.clone(),
            keeper: None,
        };
        write_scope(directory, &name, &scope)?;
        let pipe = make_open_pipe(directory, &name)?;
        let (wake, woken) = UnixStream::pair()?;
        let mut listening = Listening {
            directory: directory.to_owned(),
            writable,
            known: BTreeSet::new(),
            name,
            pipe,
            woken,
            shared: Arc::clone(shared),
        };
        // What began before anybody could tell us. From here on the pipe does.
        listening.look();
        thread::Builder::new()
            .name("freezer".to_owned())
            .spawn(move || listening.serve())?;
        Ok(Self { _wake: wake })
    }
}

/// What the watcher's thread has.
struct Listening {
    directory: PathBuf,
    writable: Vec<PathBuf>,
    /// The freezes that were there at the last look.
    known: BTreeSet<KnownFreeze>,
    name: String,
    pipe: File,
    woken: UnixStream,
    shared: Arc<Shared>,
}

impl Listening {
    fn serve(&mut self) {
        loop {
            let patience = match self.shared.lock().frozen.is_empty() {
                true => None,
                false => Timespec::try_from(POLL_INTERVAL).ok(),
            };
            let mut events = [
                PollFd::new(&self.pipe, PollFlags::IN),
                PollFd::new(&self.woken, PollFlags::IN),
            ];
            match poll(&mut events, patience.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let [_, woken] = events;
            if !woken.revents().is_empty() {
                break;
            }
            drain(&mut self.pipe, &mut Vec::new());
            self.look();
        }
        // Nobody would end a freeze any more.
        self.shared.lock().frozen.clear();
        self.shared.thawed.notify_all();
    }

    /// Looks which freezes there are, and answers those that are new.
    fn look(&mut self) {
        let now = self.standing();
        let new: Vec<KnownFreeze> = now.difference(&self.known).cloned().collect();
        let held = |freeze: &&KnownFreeze| freeze.concerns_us;
        {
            let mut state = self.shared.lock();
            state.frozen = now.iter().filter(held).map(|it| it.name.clone()).collect();
            if state.frozen.is_empty() {
                self.shared.thawed.notify_all();
            }
        }
        self.known = now;
        let is_settled = !new.iter().any(|it| it.concerns_us) || self.shared.settle();
        for freeze in new {
            if freeze.concerns_us && !is_settled {
                continue;
            }
            let path = self.directory.join(freeze.name);
            // Whoever has asked may be gone.
            if let Ok(mut pipe) = open_pipe(&path, Ends::Writing) {
                let _ = pipe.write_all(format!("{}\n", self.name).as_bytes());
            }
        }
    }

    /// Freezes that have not ended.
    fn standing(&self) -> BTreeSet<KnownFreeze> {
        let standing = standing_freezes(&self.directory).unwrap_or_default();
        let known = standing.into_iter().map(|it| KnownFreeze {
            made: it.made,
            concerns_us: it.concerns(&self.writable),
            name: it.name,
        });
        known.collect()
    }
}

/// One freeze. Another one under its name is another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KnownFreeze {
    name: String,
    made: (u64, i64, i64),
    /// Whether this tree can move a name of it.
    concerns_us: bool,
}

impl Drop for Listening {
    fn drop(&mut self) {
        remove_pipe(&self.directory, &self.name);
    }
}
