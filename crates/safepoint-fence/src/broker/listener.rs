//! Outside the fence: a socket in a directory of this user, and its calls.
//!
//! The socket is made under a name that nobody looks for and then renamed, so a
//! socket under its true name that refuses connections has lost its process, and
//! may be removed. Nothing else in the directory is touched.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};

use crate::FenceError;

use super::call::Call;
use super::socket::{address, open_place, send_all};
use super::wire::{Answer, CallRefusal};

/// So many calls are served at once; others wait.
const AT_ONCE: usize = 64;
/// How often the wish to stop is looked at.
const HEARTBEAT: Duration = Duration::from_millis(50);
/// So many names are tried. Containers that share a directory share numbers.
const ATTEMPTS: u32 = 1000;
const BEGIN: &str = "call-";
const END: &str = ".sock";

/// A socket that programs inside the fence connect to. It is removed when this
/// is dropped.
#[derive(Debug)]
pub struct Listener {
    listener: UnixListener,
    directory: OwnedFd,
    name: OsString,
    path: PathBuf,
}

impl Listener {
    /// Makes a socket in `directory`, which is made where it is missing. It must
    /// belong to this user, and be closed to all others.
    ///
    /// # Errors
    ///
    /// When the directory is not ours alone, or the socket cannot be made.
    pub fn bind(directory: &Path) -> Result<Self, FenceError> {
        let failed = |source| FenceError::Socket {
            path: directory.to_owned(),
            source,
        };
        let held = private(directory)?;
        sweep(directory, &held);
        let number = std::process::id();
        for attempt in 0..ATTEMPTS {
            let unnamed = OsString::from(format!(".{number}-{attempt}.new"));
            let name = OsString::from(format!("{BEGIN}{number}-{attempt}{END}"));
            let listener = match UnixListener::bind(address(&held, &unnamed)) {
                Ok(listener) => listener,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => continue,
                Err(error) => return Err(failed(error)),
            };
            let renamed = renameat_with(&held, &unnamed, &held, &name, RenameFlags::NOREPLACE);
            if let Err(error) = renamed {
                let _ = unlinkat(&held, &unnamed, AtFlags::empty());
                if error == rustix::io::Errno::EXIST {
                    continue;
                }
                return Err(failed(error.into()));
            }
            listener.set_nonblocking(true).map_err(failed)?;
            return Ok(Self {
                listener,
                path: directory.join(&name),
                directory: held,
                name,
            });
        }
        Err(failed(io::ErrorKind::AddrInUse.into()))
    }

    /// Where the socket is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Serves calls until `stop` is set, each in a thread of its own. What the
    /// handler returns is the exit code that the client gets. When it is to stop,
    /// every call is gone ([`Call::is_gone`]), and this returns once all handlers
    /// have.
    ///
    /// A handler that waits for another call keeps its place meanwhile.
    ///
    /// # Errors
    ///
    /// When the socket fails. Handlers are told, and awaited, first.
    pub fn serve(
        &self,
        handle: impl Fn(Call) -> u8 + Sync + Send,
        stop: &AtomicBool,
    ) -> Result<(), FenceError> {
        let desk = Desk::default();
        thread::scope(|scope| {
            let mut result = Ok(());
            while !stop.load(Ordering::Acquire) {
                if !desk.has_room() {
                    continue;
                }
                match self.accept() {
                    Ok(None) => {}
                    Ok(Some(connection)) => {
                        let connection = Arc::new(connection);
                        let (desk, handle, served) = (&desk, &handle, Arc::clone(&connection));
                        desk.enter(&connection);
                        let thread = thread::Builder::new().spawn_scoped(scope, move || {
                            answer(&served, handle);
                            desk.leave(&served);
                        });
                        if thread.is_err() {
                            desk.leave(&connection); // and hang up
                        }
                    }
                    Err(source) => {
                        result = Err(FenceError::Socket {
                            path: self.path.clone(),
                            source,
                        });
                        break;
                    }
                }
            }
            desk.close();
            result
        })
    }

    /// The next connection, if there is one soon.
    fn accept(&self) -> io::Result<Option<UnixStream>> {
        let timeout = Timespec::try_from(HEARTBEAT).ok();
        let mut waited = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut waited, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match self.listener.accept() {
            Ok((connection, _)) => {
                connection.set_nonblocking(false)?;
                Ok(Some(connection))
            }
            Err(error) => match error.kind() {
                // Gone again.
                io::ErrorKind::ConnectionAborted
                | io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock => Ok(None),
                _ if is_full(&error) => {
                    // Calls that end make room.
                    thread::sleep(HEARTBEAT);
                    Ok(None)
                }
                _ => Err(error),
            },
        }
    }
}

/// Are there too many open files?
fn is_full(error: &io::Error) -> bool {
    let full = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    full.iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Where it cannot be removed the next one sweeps it up.
        let _ = unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

fn answer(connection: &Arc<UnixStream>, handle: &(impl Fn(Call) -> u8 + Sync)) {
    let answer = match Call::receive(connection) {
        Ok(call) => catch_unwind(AssertUnwindSafe(|| handle(call)))
            .map_or(Answer::Refused(CallRefusal::Failed), Answer::Exit),
        Err(refusal) => Answer::Refused(refusal),
    };
    // Whoever does not wait for the answer does not get it.
    let _ = send_all(connection, &answer.encode());
    let _ = connection.shutdown(Shutdown::Both);
}

/// The calls that are being served.
#[derive(Default)]
struct Desk {
    present: Mutex<Vec<Arc<UnixStream>>>,
    left: Condvar,
}

impl Desk {
    /// Is there room for one more? Waits for it for a moment.
    fn has_room(&self) -> bool {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .left
            .wait_timeout_while(present, HEARTBEAT, |present| present.len() >= AT_ONCE);
        let (present, _) = waited.unwrap_or_else(PoisonError::into_inner);
        present.len() < AT_ONCE
    }

    fn enter(&self, connection: &Arc<UnixStream>) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.push(Arc::clone(connection));
    }

    fn leave(&self, connection: &Arc<UnixStream>) {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.retain(|one| !Arc::ptr_eq(one, connection));
        self.left.notify_all();
    }

    /// Hangs up on everyone.
    fn close(&self) {
        let present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in present.iter() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}

/// Opens a directory that nobody else can look into.
fn private(directory: &Path) -> Result<OwnedFd, FenceError> {
    let failed = |source| FenceError::Socket {
        path: directory.to_owned(),
        source,
    };
    let unsafe_because = |why| FenceError::Directory {
        path: directory.to_owned(),
        why,
    };
    let mut builder = std::fs::DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed)?;
    let metadata = directory.symlink_metadata().map_err(failed)?;
    if metadata.is_symlink() {
        return Err(unsafe_because("it is a link"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unsafe_because("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(unsafe_because("others can look into it; `chmod 700` helps"));
    }
    let held = open_place(directory).map_err(failed)?;
    let same = rustix::fs::fstat(&held).map_err(|error| failed(error.into()))?;
    if same.st_ino != metadata.ino() || same.st_dev != metadata.dev() {
        return Err(unsafe_because("it was exchanged meanwhile"));
    }
    Ok(held)
}

/// Removes sockets whose processes ended without removing them.
fn sweep(directory: &Path, held: &OwnedFd) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if !is_socket || !is_ours(&name) {
            continue;
        }
        let connected = UnixStream::connect(address(held, &name));
        if connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let _ = unlinkat(held, &name, AtFlags::empty());
        }
    }
}

fn is_ours(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(BEGIN.as_bytes()) && name.ends_with(END.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_desk_has_room_again_when_somebody_leaves() {
        let desk = Desk::default();
        let pairs: Vec<_> = (0..AT_ONCE).map(|_| UnixStream::pair().unwrap()).collect();
        let (present, others): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let present: Vec<_> = present.into_iter().map(Arc::new).collect();
        for connection in &present {
            assert!(desk.has_room());
            desk.enter(connection);
        }
        assert!(!desk.has_room());
        desk.leave(&present[0]);
        assert!(desk.has_room());
        desk.close();
        // Hung up on all who are there, and on nobody else.
        let gone = |other: &UnixStream| super::super::socket::hung_up(other, Timespec::default());
        let hung_up: Vec<bool> = others.iter().map(gone).collect();
        assert!(!hung_up[0] && hung_up[1..].iter().all(|gone| *gone));
    }
}
