//! The thread that makes a call: its memory, its descriptors, its directories.
//!
//! Whatever is read here can be exchanged a moment later. So it is copied once, and what is done
//! on behalf of the caller uses the copy.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::listener::{Listener, Notification};

/// The longest path, with its end.
const MAX_PATH_BYTES: usize = 4096;
/// Reading stops at the end of a page: the next one may not be there.
const PAGE: u64 = 4096;

/// `pidfd_open` for a thread (Linux 6.9).
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());

/// The thread behind a notification.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) notification: &'a Notification,
    pub(super) listener: &'a Listener,
    pub(super) threads: &'a ThreadCache,
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

impl Caller<'_> {
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
        process_vm_readv(self.pid(), &mut [IoSliceMut::new(buffer)], &remote)
            .map_err(|error| Errno::from_raw_os_error(error as i32))
    }

    /// Puts bytes into the caller's memory.
    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Errno> {
        let base = usize::try_from(address).map_err(|_| Errno::FAULT)?;
        let len = bytes.len();
        let remote = [RemoteIoVec { base, len }];
        match process_vm_writev(self.pid(), &[IoSlice::new(bytes)], &remote) {
            Ok(written) if written == len => Ok(()),
            Ok(_) => Err(Errno::FAULT),
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

    /// Where a path of the caller starts: `/`, its working directory, or a descriptor of it. The
    /// path is one that we can open.
    pub(super) fn locate(&self, directory: i32, path: &OsStr) -> PathBuf {
        let thread = self.notification.thread();
        if path.as_bytes().starts_with(b"/") {
            return self.own_names(path);
        }
        let mut place = match directory {
            libc::AT_FDCWD => PathBuf::from(format!("/proc/{thread}/cwd")),
            number => self.descriptor(number),
        };
        if !path.is_empty() {
            place.push(path);
        }
        place
    }

    /// What a descriptor of the caller leads to, as a link that we can follow.
    pub(super) fn descriptor(&self, number: i32) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{number}", self.notification.thread()))
    }

    /// Names by which a process finds itself mean another one to us.
    fn own_names(&self, path: &OsStr) -> PathBuf {
        let thread = self.notification.thread();
        let names: [(&str, String); 6] = [
            ("/dev/stdin", format!("/proc/{thread}/fd/0")),
            ("/dev/stdout", format!("/proc/{thread}/fd/1")),
            ("/dev/stderr", format!("/proc/{thread}/fd/2")),
            ("/dev/fd", format!("/proc/{thread}/fd")),
            ("/proc/self", format!("/proc/{thread}")),
            ("/proc/thread-self", format!("/proc/{thread}")),
        ];
        if !path.as_bytes().starts_with(b"/dev/") && !path.as_bytes().starts_with(b"/proc/") {
            return path.into();
        }
        let path = PathBuf::from(path);
        for (name, meaning) in names {
            if let Ok(rest) = path.strip_prefix(name) {
                return match rest.as_os_str().is_empty() {
                    true => meaning.into(),
                    false => PathBuf::from(meaning).join(rest),
                };
            }
        }
        path
    }

    /// The caller's descriptor: the same open file, under a number of ours.
    pub(super) fn take(&self, number: i32) -> Result<OwnedFd, Errno> {
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

/// Opens what a path leads to without touching it.
pub(super) fn open_path(path: &std::path::Path, follow: Follow) -> Result<OwnedFd, Errno> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if follow == Follow::No {
        flags |= OFlags::NOFOLLOW;
    }
    openat(CWD, path, flags, Mode::empty())
}

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    /// What it leads to is meant.
    Yes,
    /// The link itself is meant.
    No,
}
