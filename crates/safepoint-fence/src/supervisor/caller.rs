//! The thread that makes a call: its memory, its descriptors, its directories.
//!
//! Whatever is read here can be exchanged a moment later. So it is copied once, and what is done
//! on behalf of the caller uses the copy.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, socket_timeout, socket_type};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::listener::{Listener, Notification};

/// The longest path, with its end.
const MAX_PATH_BYTES: usize = 4096;
/// Reading stops at the end of a page: the next one may not be there.
const PAGE: u64 = 4096;

/// `pidfd_open` for a thread (Linux 6.9).
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// The memory of a process, where a sandbox around this one denies the calls that reach for it.
fn memory_of(process: nix::unistd::Pid) -> std::io::Result<File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the memory of a caller: no file is written"
    )]
    File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/{process}/mem"))
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::FAULT)
}

/// The thread behind a notification.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) notification: &'a Notification,
    pub(super) listener: &'a Listener,
    pub(super) threads: &'a ThreadCache,
    pub(super) closer: &'a Closer,
}

/// Where sockets are closed: closing the last descriptor of one can take as long as its owner wants
/// (`SO_LINGER`).
#[derive(Debug)]
pub(super) enum Closer {
    /// In a thread of its own. No other call waits for that.
    Thread(Sender<OwnedFd>),
    /// In the thread that has it, which answers one call alone.
    Here,
}

impl Closer {
    pub(super) fn start() -> std::io::Result<Self> {
        let (sender, receiver) = channel::<OwnedFd>();
        std::thread::Builder::new()
            .name("closer".to_owned())
            .spawn(move || receiver.into_iter().for_each(drop))?;
        Ok(Self::Thread(sender))
    }
}

/// A descriptor of a caller, under a number of ours.
pub(super) struct TakenDescriptor<'a> {
    descriptor: Option<OwnedFd>,
    closer: &'a Closer,
}

impl TakenDescriptor<'_> {
    /// Closes it here: a file on a disk is closed at once.
    pub(super) fn close_file(mut self) {
        drop(self.descriptor.take());
    }
}

impl AsFd for TakenDescriptor<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.descriptor {
            Some(descriptor) => descriptor.as_fd(),
            // Only while it is dropped.
            None => rustix::stdio::stdin(),
        }
    }
}

impl Drop for TakenDescriptor<'_> {
    fn drop(&mut self) {
        if let (Some(descriptor), Closer::Thread(closer)) = (self.descriptor.take(), self.closer) {
            let _ = closer.send(descriptor);
        }
    }
}

/// Handles of the threads that have called. A handle stays with its thread, whoever gets the
/// number later.
#[derive(Debug, Default)]
pub(super) struct ThreadCache(Mutex<HashMap<u32, Arc<OwnedFd>>>);

/// More threads are not remembered at once.
const MAX_THREADS: usize = 64;

impl ThreadCache {
    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Caller<'a> {
    /// A socket of the caller: anything else is refused.
    pub(super) fn take_socket(&self, number: i32) -> Result<TakenDescriptor<'a>, Errno> {
        let descriptor = self.take(number)?;
        socket_type(&descriptor)?;
        Ok(descriptor)
    }

    /// Waits until something can be done with a descriptor, for as long as the caller waits too.
    pub(super) fn wait_for(&self, socket: impl AsFd, slices: &mut Slices) -> Result<(), Errno> {
        let mut events = [PollFd::new(&socket, PollFlags::OUT)];
        match poll(&mut events, Some(&SLICE)) {
            Ok(0) | Err(Errno::INTR) => self.go_on_waiting(slices),
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits a little, where there is nothing to wait for.
    pub(super) fn pause(&self, slices: &mut Slices) -> Result<(), Errno> {
        let _ = poll(&mut [], Some(&SLICE));
        self.go_on_waiting(slices)
    }

    fn go_on_waiting(&self, slices: &mut Slices) -> Result<(), Errno> {
        self.confirm()?;
        if self.has_signal() {
            return Err(Errno::INTR);
        }
        match &mut slices.0 {
            None => Ok(()),
            Some(0) => Err(Errno::AGAIN),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }

    /// Whether a signal waits for the caller: without us it would have ended its call.
    fn has_signal(&self) -> bool {
        let status = self.status().unwrap_or_default();
        let set = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
                .unwrap_or_default()
        };
        (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
    }

    /// Whether it still waits, so that what was read of it was its own.
    pub(super) fn confirm(&self) -> Result<(), Errno> {
        match self.listener.is_waiting(self.notification) {
            true => Ok(()),
            false => Err(Errno::SRCH),
        }
    }

    pub(super) fn int(&self, index: usize) -> i32 {
        self.notification.int(index)
    }

    pub(super) fn argument(&self, index: usize) -> u64 {
        self.notification.argument(index)
    }

    fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.notification.thread().cast_signed())
    }

    /// Fills the buffer from the caller's memory.
    pub(super) fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let length = buffer.len();
        match self.read_some(address, buffer)? {
            read if read == length => Ok(()),
            _ => Err(Errno::FAULT),
        }
    }

    /// The bytes at an address.
    pub(super) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0; length];
        if length > 0 {
            self.read(address, &mut buffer)?;
        }
        Ok(buffer)
    }

    fn read_some(&self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let base = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let len = buffer.len();
        let remote = [RemoteIoVec { base, len }];
        match process_vm_readv(self.pid(), &mut [IoSliceMut::new(buffer)], &remote) {
            Ok(read) => Ok(read),
            Err(nix::errno::Errno::EPERM) => memory_of(self.pid())
                .and_then(|memory| memory.read_at(buffer, address))
                .map_err(errno),
            Err(error) => Err(Errno::from_raw_os_error(error as i32)),
        }
    }

    /// Puts bytes into the caller's memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let base = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let len = bytes.len();
        let remote = [RemoteIoVec { base, len }];
        match process_vm_writev(self.pid(), &[IoSlice::new(bytes)], &remote) {
            Ok(written) if written == len => Ok(()),
            Ok(_) => Err(Errno::FAULT),
            Err(nix::errno::Errno::EPERM) => memory_of(self.pid())
                .and_then(|memory| memory.write_all_at(bytes, address))
                .map_err(errno),
            Err(error) => Err(Errno::from_raw_os_error(error as i32)),
        }
    }

    /// The string at an address, without its end.
    pub(super) fn string(&self, address: u64, limit: usize) -> Result<Vec<u8>, Errno> {
        let mut found = Vec::new();
        let mut address = address;
        while found.len() < limit {
            let in_page = usize::try_from(PAGE - address % PAGE).unwrap_or(1);
            let mut part = vec![0; in_page.min(limit - found.len())];
            let read = self.read_some(address, &mut part)?;
            let part = part.get(..read).unwrap_or_default();
            if read == 0 {
                return Err(Errno::FAULT);
            }
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                found.extend(part.iter().take(end));
                return Ok(found);
            }
            found.extend(part);
            address = address.saturating_add(read as u64);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// The path at an address, as the caller wrote it.
    pub(super) fn path(&self, address: u64) -> Result<OsString, Errno> {
        self.string(address, MAX_PATH_BYTES).map(OsString::from_vec)
    }

    /// What a path of the caller names, in a form that means the same to us.
    pub(super) fn locate(&self, directory: i32, path: &OsStr) -> Place {
        let thread = self.notification.thread();
        let link = |name: &str| Some(PathBuf::from(format!("/proc/{thread}/{name}")));
        if !path.as_bytes().starts_with(b"/") {
            let start = match directory {
                libc::AT_FDCWD => link("cwd"),
                number => link(&format!("fd/{number}")),
            };
            return Place::new(start, path);
        }
        let path = Path::new(path);
        let beneath = |name: &str| path.strip_prefix(name).ok();
        for (name, number) in [("stdin", 0), ("stdout", 1), ("stderr", 2)] {
            if let Some(rest) = beneath(&format!("/dev/{name}")) {
                return Place::new(link(&format!("fd/{number}")), rest);
            }
        }
        let own = beneath("/proc/self").or_else(|| beneath("/proc/thread-self"));
        let descriptor =
            beneath("/dev/fd").or_else(|| own.and_then(|it| it.strip_prefix("fd").ok()));
        if let Some(descriptor) = descriptor
            && let Some(number) = descriptor.iter().next()
        {
            let rest = descriptor.strip_prefix(number).unwrap_or(descriptor);
            return Place::new(link(&format!("fd/{}", number.display())), rest);
        }
        for name in ["cwd", "root"] {
            if let Some(rest) = own.and_then(|it| it.strip_prefix(name).ok()) {
                return Place::new(link(name), rest);
            }
        }
        match own {
            Some(rest) => Place::new(None, Path::new(&format!("/proc/{thread}")).join(rest)),
            None => Place::new(None, path),
        }
    }

    /// The caller's descriptor: the same open file, under a number of ours.
    pub(super) fn take(&self, number: i32) -> Result<TakenDescriptor<'a>, Errno> {
        if number < 0 {
            return Err(Errno::BADF);
        }
        let thread = self.notification.thread();
        let known = self.threads.lock().get(&thread).map(Arc::clone);
        let take = |handle: Arc<OwnedFd>| pidfd_getfd(handle, number, PidfdGetfdFlags::empty());
        let taken = match known.map(take) {
            // Another thread has the number by now.
            None | Some(Err(Errno::SRCH)) => take(self.open_thread()?),
            Some(other) => other,
        }?;
        // From here on the closer closes it, also where the caller is gone by now.
        let taken = TakenDescriptor {
            descriptor: Some(taken),
            closer: self.closer,
        };
        self.confirm()?;
        Ok(taken)
    }

    fn open_thread(&self) -> Result<Arc<OwnedFd>, Errno> {
        let thread = self.notification.thread();
        let pid = Pid::from_raw(thread.cast_signed()).ok_or(Errno::SRCH)?;
        let handle = match pidfd_open(pid, THREAD) {
            Err(Errno::INVAL) => pidfd_open(self.process()?, PidfdFlags::empty()),
            other => other,
        }?;
        // While it waits, the number is its own.
        self.confirm()?;
        let handle = Arc::new(handle);
        let mut known = self.threads.lock();
        if known.len() == MAX_THREADS {
            known.clear();
        }
        known.insert(thread, Arc::clone(&handle));
        Ok(handle)
    }

    /// The process that the thread belongs to.
    fn process(&self) -> Result<Pid, Errno> {
        let status = self.status()?;
        let field = status
            .lines()
            .find_map(|line| line.strip_prefix("Tgid:"))
            .and_then(|rest| rest.trim().parse().ok());
        field.and_then(Pid::from_raw).ok_or(Errno::SRCH)
    }

    fn status(&self) -> Result<String, Errno> {
        fs::read_to_string(format!("/proc/{}/status", self.notification.thread()))
            .map_err(|_| Errno::SRCH)
    }

    /// The device number of its terminal; zero where it has none.
    pub(super) fn terminal(&self) -> Result<u64, Errno> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.notification.thread()));
        let text = text.map_err(|_| Errno::SRCH)?;
        // The name of the program stands in brackets, and may hold anything.
        let (_, fields) = text.rsplit_once(')').ok_or(Errno::SRCH)?;
        let number = fields.split_ascii_whitespace().nth(4);
        number.and_then(|it| it.parse().ok()).ok_or(Errno::SRCH)
    }

    /// The rights that it takes off what it makes.
    pub(super) fn mask(&self) -> Result<u32, Errno> {
        let status = self.status()?;
        let field = status
            .lines()
            .find_map(|line| line.strip_prefix("Umask:"))
            .and_then(|rest| u32::from_str_radix(rest.trim(), 8).ok());
        field.ok_or(Errno::SRCH)
    }

    /// Whether no other thread can exchange its descriptors.
    pub(super) fn is_single(&self) -> bool {
        let place = format!("/proc/{}/task", self.notification.thread());
        // One for each thread, beside itself and its parent.
        fs::metadata(place).is_ok_and(|it| it.nlink() == 3)
    }

    /// Whether the caller has the rights of this process, no fewer.
    pub(super) fn has_our_rights(&self) -> bool {
        let own = rustix::process::geteuid().as_raw();
        // Only root can have given any up.
        own != 0
            || fs::metadata(format!("/proc/{}", self.notification.thread()))
                .is_ok_and(|it| it.uid() == own)
    }
}

/// Opens what a path leads to without touching it. Links of the kernel on the way, such as
/// `/proc/self/cwd`, would lead us to places of our own: they are an error.
pub(super) fn open_plain(
    start: impl AsFd,
    path: impl rustix::path::Arg,
    follow: Follow,
) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if follow == Follow::No {
        flags |= OFlags::NOFOLLOW;
    }
    openat2(
        start,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    )
}

/// The same for a path of ours, which may be such a link.
pub(super) fn open_path(path: &Path, follow: Follow) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if follow == Follow::No {
        flags |= OFlags::NOFOLLOW;
    }
    openat(CWD, path, flags, Mode::empty())
}

/// How long is waited at once.
const SLICE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// So often is waited. Without a number: as long as the caller does.
pub(super) struct Slices(Option<u64>);

impl Slices {
    /// As long as the socket lets its owner wait for sending.
    pub(super) fn of(socket: impl AsFd) -> Self {
        let limit = socket_timeout(socket, Timeout::Send).ok().flatten();
        Self(limit.map(|limit| u64::try_from(limit.as_millis() / 50).unwrap_or(u64::MAX)))
    }

    pub(super) fn some(number: u64) -> Self {
        Self(Some(number))
    }
}

/// What a path of a caller names: where it starts, if that is a link of the kernel to something
/// of the caller, and how it goes on from there.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) start: Option<PathBuf>,
    pub(super) rest: OsString,
}

impl Place {
    fn new(start: Option<PathBuf>, rest: impl AsRef<OsStr>) -> Self {
        Self {
            start,
            rest: rest.as_ref().to_owned(),
        }
    }

    /// Opens it without touching it.
    pub(super) fn open(&self, follow: Follow) -> Result<OwnedFd, Errno> {
        match &self.start {
            None => open_plain(CWD, &*self.rest, follow),
            Some(start) if self.rest.is_empty() => open_path(start, Follow::Yes),
            Some(start) => open_plain(open_path(start, Follow::Yes)?, &*self.rest, follow),
        }
    }
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// What it leads to is meant.
    Yes,
    /// The link itself is meant.
    No,
}
