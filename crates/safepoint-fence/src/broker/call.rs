//! Outside the fence: a call that came in, read and checked.
//!
//! The arguments, the directory's name and the variables are what somebody
//! inside the fence wrote. A handler that starts a program takes only those
//! variables that it knows: `LD_PRELOAD` or `PATH` would carry code outside.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::Timespec;
use rustix::fs::fstat;

use super::socket::{hung_up, receive_with};
use super::wire::{self, CallRefusal, HEAD};

/// A request has this long to arrive: whoever connects and says nothing does not
/// keep a place for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// A command that somebody inside the fence wants to be run.
#[derive(Debug)]
pub struct Call {
    /// Its arguments, without the name of the program.
    pub arguments: Vec<OsString>,
    /// Its working directory, as a path: it was the same place as
    /// [`Call::place`] when the call came in.
    pub directory: PathBuf,
    /// Its working directory itself, whatever happens to the path.
    pub place: OwnedFd,
    /// Its variables.
    pub variables: Vec<(OsString, OsString)>,
    /// What it reads.
    pub stdin: OwnedFd,
    /// Where data goes.
    pub stdout: OwnedFd,
    /// Where talk goes.
    pub stderr: OwnedFd,
    /// Who asks.
    pub peer: Peer,
    connection: Arc<UnixStream>,
}

/// Who is at the other end, as the kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The process that connected. It may be gone, and its number given away:
    /// compare when it began ([`crate::ancestors`]) while the call is not gone.
    pub pid: u32,
    /// Its user: always ours.
    pub uid: u32,
}

impl Call {
    /// Has the client vanished, or is the server being stopped? Nobody waits for
    /// an answer then, and the handler should end what it started.
    pub fn is_gone(&self) -> bool {
        self.wait_gone(Duration::ZERO)
    }

    /// As [`Call::is_gone`], but waits for it, this long at most.
    pub fn wait_gone(&self, longest: Duration) -> bool {
        let timeout = Timespec::try_from(longest).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        hung_up(&*self.connection, timeout)
    }

    /// What to poll for reading beside other things: it becomes readable when
    /// the call is gone. It must not be read or written.
    pub fn gone(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Reads a call from a connection. Nothing is taken from another user.
    pub(super) fn receive(connection: &Arc<UnixStream>) -> Result<Self, CallRefusal> {
        let malformed = |_: io::Error| CallRefusal::Malformed;
        let peer = peer(connection)?;
        let patience = Some(PATIENCE);
        connection.set_read_timeout(patience).map_err(malformed)?;
        connection.set_write_timeout(patience).map_err(malformed)?;
        let mut head = [0; HEAD];
        let descriptors = receive_with(connection, &mut head).map_err(malformed)?;
        let length = wire::body_length(&head)?;
        let mut body = Vec::new();
        let limit = u64::try_from(length).map_err(|_| CallRefusal::TooLarge)?;
        (&**connection)
            .take(limit)
            .read_to_end(&mut body)
            .map_err(malformed)?;
        if body.len() != length {
            return Err(CallRefusal::Malformed);
        }
        let request = wire::decode(&body)?;
        let [stdin, stdout, stderr, place] = descriptors.ok_or(CallRefusal::Malformed)?;
        same_place(&request.directory, &place).ok_or(CallRefusal::Directory)?;
        Ok(Self {
            arguments: request.arguments,
            directory: request.directory,
            place,
            variables: request.variables,
            stdin,
            stdout,
            stderr,
            peer,
            connection: Arc::clone(connection),
        })
    }
}

/// Who connected, if it is our own user.
fn peer(connection: &UnixStream) -> Result<Peer, CallRefusal> {
    let credentials = getsockopt(connection, PeerCredentials).map_err(|_| CallRefusal::User)?;
    // A process that this one cannot see has the number 0.
    let pid = u32::try_from(credentials.pid()).unwrap_or(0);
    let uid = credentials.uid();
    if pid == 0 || uid != rustix::process::geteuid().as_raw() {
        return Err(CallRefusal::User);
    }
    Ok(Peer { pid, uid })
}

/// Is the path where the descriptor is?
fn same_place(path: &std::path::Path, place: &OwnedFd) -> Option<()> {
    let named = path.metadata().ok()?;
    let held = fstat(place).ok()?;
    let same = named.is_dir()
        && path.is_absolute()
        && named.dev() == held.st_dev
        && named.ino() == held.st_ino;
    same.then_some(())
}
