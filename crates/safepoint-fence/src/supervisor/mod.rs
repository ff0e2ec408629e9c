//! A supervisor for what Landlock does not hold: addresses, names, sockets with
//! a path, metadata of files outside, and the record of who wrote what.
//!
//! ```text
//! filter, bpf ───── which calls are handed over, which are closed
//! listener ──────── the kernel's side: calls and their answers
//! caller, places ── whose call it is, and what its paths and descriptors really are
//! writes ────────── recorded, then the kernel goes on: Landlock holds them
//! guarded ───────── what nobody inside writes, although it lies where that is possible
//! freezer ───────── what moves names waits while somebody outside relies on them
//! refused ───────── closed, and recorded
//! metadata ──────── done on behalf of the caller
//! network, send ─── done on behalf of the caller, where `reach` allows it
//! reach, names, dns, sockets, registry ── what may be reached, and what is the session's own
//! watch ─────────── what was seen
//! workers ───────── threads for calls that may wait
//! ```
//!
//! The supervisor never makes a decision that the rules do not make, and it never
//! lets the kernel go on with a call whose arguments lie in memory that the
//! caller can still change, unless Landlock holds that call too.

mod address;
mod behalf;
mod bpf;
mod caller;
mod dns;
mod filter;
mod freezer;
mod gate;
mod guarded;
mod journal;
mod listener;
mod metadata;
mod names;
mod network;
mod observation;
mod places;
mod reach;
mod refused;
mod registry;
mod rule;
mod send;
mod sockets;
mod watch;
mod workers;
mod writes;

use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;

use caller::{Caller, Closer, ThreadCache};
use freezer::{Freezer, Passing};
use listener::{Answer, Listener, Notification};
use places::DirectoryCache;
use reach::Reach;
use send::{Patience, Sent};
use watch::Watch;
use workers::Workers;

pub(crate) use filter::lone_program;
pub use gate::{Gate, WriteAccess};
pub use guarded::GuardedNames;
pub(crate) use listener::install_plain;
pub(crate) use names::{Lookup, SystemLookup};
pub use observation::{Observation, Refusal, Writes};
pub(crate) use places::Places;
pub use refused::builds_sandbox;
pub use rule::{HostRule, HostRuleError, NetworkAccess, Supervision};

/// Watches over a process tree, from threads of this process. It stands as long
/// as this process does: when that ends, supervised calls fail with `ENOSYS`.
#[derive(Debug)]
pub struct Supervisor {
    watch: Arc<Watch>,
    end: Arc<End>,
}

/// Whether the last process behind the filter is gone.
#[derive(Debug, Default)]
struct End {
    is_over: Mutex<bool>,
    over: Condvar,
}

impl End {
    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that will answer calls. It is started before anything is restricted: what it does on
/// behalf of others needs the rights of this process.
///
/// It has descriptors of its own. Whoever closes a descriptor of a file loses the locks that its
/// process has on it, and the descriptors that it takes from callers would be in the way.
#[derive(Debug)]
pub(crate) struct SupervisorThread {
    listener: SyncSender<Listener>,
    ready: Receiver<io::Result<()>>,
    watch: Arc<Watch>,
    end: Arc<End>,
    network: NetworkAccess,
}

impl SupervisorThread {
    pub(crate) fn start(
        supervision: Supervision,
        places: Places,
        gate: Option<Arc<dyn Gate>>,
        lookup: Box<dyn Lookup>,
    ) -> io::Result<Self> {
        let (sender, receiver) = sync_channel::<Listener>(1);
        let (told, ready) = sync_channel(1);
        let watch = Arc::new(Watch::new(
            gate,
            supervision.journal.clone(),
            supervision.guarded.clone().resolved(),
        ));
        let end = Arc::new(End::default());
        let network = supervision.network;
        let own_streams = own_streams();
        let (seen, over) = (Arc::clone(&watch), Arc::clone(&end));
        thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || {
                let Ok(listener) = receiver.recv() else {
                    return;
                };
                let started = separate_descriptors(&listener).and_then(|()| Closer::start());
                let closer = match started {
                    Ok(closer) => closer,
                    Err(error) => {
                        let _ = told.send(Err(error));
                        return;
                    }
                };
                let desk = Desk {
                    listener,
                    directories: DirectoryCache::default(),
                    threads: ThreadCache::default(),
                    freezer: Freezer::new(supervision.freezer.clone(), places.writable.clone()),
                    places,
                    closer,
                    own_streams,
                    reach: Reach::new(supervision, lookup, Arc::clone(&seen)),
                    watch: seen,
                    waiting: AtomicUsize::new(0),
                    workers: Workers::default(),
                };
                if told.send(Ok(())).is_ok() {
                    Arc::new(desk).serve();
                }
                *over.lock() = true;
                over.over.notify_all();
            })?;
        Ok(Self {
            listener: sender,
            ready,
            network,
            watch,
            end,
        })
    }

    /// Puts the calling thread, and every process that it starts, under supervision.
    pub(crate) fn supervise_this_thread(self) -> io::Result<Supervisor> {
        let gone = || io::Error::other("nobody answers supervised calls");
        let listener = Listener::install(&filter::program(self.network))?;
        let number = listener.number();
        self.listener.send(listener).map_err(|_| gone())?;
        self.ready.recv().map_err(|_| gone())??;
        // The other thread has it among its own descriptors. Here it would keep calls waiting
        // when that one is gone.
        nix::unistd::close(number)?;
        Ok(Supervisor {
            watch: self.watch,
            end: self.end,
        })
    }
}

/// Gives the calling thread, and those that it starts, descriptors of their own: the listener, and
/// nothing else of this process. What stayed open here would not be closed for others.
fn separate_descriptors(listener: &Listener) -> io::Result<()> {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES)?;
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir("/proc/thread-self/fd")? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    #[expect(clippy::disallowed_methods, reason = "nothing is kept there")]
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let kept = [listener.number(), null.as_raw_fd()];
    for number in numbers {
        if number > 2 && !kept.contains(&number) {
            // That of the list itself is closed already.
            let _ = nix::unistd::close(number);
        }
    }
    Ok(())
}

/// Where the calls of one supervised tree are answered.
#[derive(Debug)]
struct Desk {
    listener: Listener,
    places: Places,
    directories: DirectoryCache,
    threads: ThreadCache,
    own_streams: Vec<(u64, u64)>,
    reach: Reach,
    watch: Arc<Watch>,
    freezer: Freezer,
    closer: Closer,
    /// Calls that wait, each with a thread of its own.
    waiting: AtomicUsize,
    workers: Workers,
}

/// More calls of one tree do not wait at once.
const MAX_WAITING: usize = 256;

impl Supervisor {
    /// Whether this kernel hands calls over. Nothing is restricted by asking.
    ///
    /// The kernel names a caller by the number that it has where this process lives. In a sandbox
    /// whose `/proc` is that of another namespace, the same number names somebody else there.
    pub(crate) fn is_possible() -> bool {
        let own = std::process::id().to_string();
        let named = std::fs::read_link("/proc/self");
        named.is_ok_and(|named| named == Path::new(&own))
            && seccompy::is_action_available(seccompy::FilterAction::UserNotif).unwrap_or(false)
    }

    /// What was seen so far.
    pub fn observe(&self) -> Observation {
        self.watch.seen()
    }

    /// How many calls the kernel has handed over so far. Each one costs its caller two switches
    /// between processes, so programs that only read should make hardly any.
    pub fn count_calls(&self) -> u64 {
        self.watch.count_calls()
    }

    /// Begins a new record, of what is written by programs that were left running, and keeps it in
    /// a journal at `file`. Returns what was written until now.
    pub fn begin_late(&self, file: &Path) -> Writes {
        self.watch.begin_late(file)
    }

    /// Keeps no more paths in the journal of the [`Supervision`]: the end of the action is recorded.
    pub fn end_journal(&self) {
        self.watch.end_journal();
    }

    /// Does any process still live behind the filter?
    pub fn is_in_use(&self) -> bool {
        !*self.end.lock()
    }

    /// Blocks until the last process behind the filter is gone.
    pub fn wait_until_unused(&self) {
        let mut is_over = self.end.lock();
        while !*is_over {
            is_over = self
                .end
                .over
                .wait(is_over)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The files that this process has as its standard streams: what it starts has them too, open
/// for writing wherever they lie.
fn own_streams() -> Vec<(u64, u64)> {
    let streams = [
        rustix::fs::fstat(io::stdin()),
        rustix::fs::fstat(io::stdout()),
        rustix::fs::fstat(io::stderr()),
    ];
    let known = streams.into_iter().flatten();
    known.map(|it| (it.st_dev, it.st_ino)).collect()
}

impl Desk {
    fn serve(self: &Arc<Self>) {
        while let Ok(Some(notification)) = self.listener.next() {
            self.watch.add_call();
            let handled = catch_unwind(AssertUnwindSafe(|| self.handle(&notification)));
            match handled {
                Ok(Some(answer)) => self.listener.answer(&notification, answer),
                Ok(None) => {}
                Err(_) => self.fail(&notification),
            }
        }
    }

    /// An error of ours is a refusal, and what it may have hidden is not known.
    fn fail(&self, notification: &Notification) {
        self.watch.lose_track();
        self.listener
            .answer(notification, Answer::Fail(Errno::PERM));
    }

    /// Answers a call, or leaves that to a thread that can wait.
    fn handle(self: &Arc<Self>, notification: &Notification) -> Option<Answer> {
        let caller = Caller {
            notification,
            listener: &self.listener,
            threads: &self.threads,
            closer: &self.closer,
        };
        let (reach, watch, places) = (&self.reach, &self.watch, &self.places);
        self.freezer.see(notification.thread());
        if let Some(names) = writes::names(&caller) {
            return self.write(notification, &caller, &names);
        }
        match notification.call() {
            libc::SYS_connect => self.defer(notification, |desk, caller| {
                network::connect(caller, &desk.reach, &desk.watch)
            }),
            libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => {
                match send::send(&caller, Patience::None, 0, reach, watch) {
                    Sent::Answered(answer) => Some(answer),
                    Sent::Waits(before) => self.defer(notification, move |desk, caller| {
                        let patience = Patience::Unlimited;
                        match send::send(caller, patience, before, &desk.reach, &desk.watch) {
                            Sent::Answered(answer) => answer,
                            Sent::Waits(_) => Answer::Fail(Errno::AGAIN),
                        }
                    }),
                }
            }
            libc::SYS_bind => Some(network::bind(
                &caller,
                reach,
                places,
                &self.directories,
                watch,
            )),
            libc::SYS_listen => Some(network::listen(&caller, reach, watch)),
            libc::SYS_socket => Some(network::socket(&caller, watch)),
            _ => {
                if let Some(refused) = refused::refuse(&caller, watch) {
                    return Some(refused);
                }
                let changed = metadata::change(&caller, places, &self.own_streams, watch);
                Some(changed.unwrap_or(Answer::Fail(Errno::NOSYS)))
            }
        }
    }

    /// Answers a call that writes. One that moves names waits while there is a freeze.
    fn write(
        self: &Arc<Self>,
        notification: &Notification,
        caller: &Caller<'_>,
        names: &[writes::NameArgument],
    ) -> Option<Answer> {
        let call = notification.call();
        if !writes::leads_elsewhere(call) {
            return Some(self.record(caller, names));
        }
        match self.freezer.pass(notification.thread(), call) {
            Ok(Passing::Now) => Some(self.record(caller, names)),
            Ok(Passing::Later) => {
                let names = names.to_vec();
                self.defer(notification, move |desk, caller| {
                    let thread = caller.notification.thread();
                    match desk.freezer.wait_and_pass(thread, call) {
                        // What was remembered meanwhile is of before it.
                        Ok(()) => desk.record(caller, &names),
                        Err(error) => Answer::Fail(error),
                    }
                })
            }
            Err(error) => Some(Answer::Fail(error)),
        }
    }

    fn record(&self, caller: &Caller<'_>, names: &[writes::NameArgument]) -> Answer {
        writes::record(caller, names, &self.places, &self.directories, &self.watch)
    }

    /// Has another thread answer, since that may take its time.
    fn defer(
        self: &Arc<Self>,
        notification: &Notification,
        work: impl FnOnce(&Self, &Caller<'_>) -> Answer + Send + 'static,
    ) -> Option<Answer> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Some(Answer::Fail(Errno::AGAIN));
        }
        let (desk, notification) = (Arc::clone(self), *notification);
        let work = move || {
            let caller = Caller {
                notification: &notification,
                listener: &desk.listener,
                threads: &desk.threads,
                // This thread can wait for it.
                closer: &Closer::Here,
            };
            match catch_unwind(AssertUnwindSafe(|| work(&desk, &caller))) {
                Ok(answer) => desk.listener.answer(&notification, answer),
                Err(_) => desk.fail(&notification),
            }
            desk.waiting.fetch_sub(1, Ordering::Relaxed);
        };
        match self.workers.run(work) {
            Ok(()) => None,
            Err(_) => {
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                Some(Answer::Fail(Errno::AGAIN))
            }
        }
    }
}
