//! Sockets by path, and descriptors sent over them.
//!
//! A socket is reached through its open directory: its path may then be longer
//! than the 107 bytes that an address has room for, and what was checked is what
//! is used.

use std::ffi::OsStr;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, send, sendmsg,
};

/// Three streams and a directory.
pub(crate) const DESCRIPTORS: usize = 4;

/// One more than is sent, so that too many are seen.
const ROOM: usize = DESCRIPTORS + 1;

/// Opens a directory as a place: it need not be readable.
pub(crate) fn open_place(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, directory, flags, Mode::empty())?)
}

/// The address of a name in an open directory.
pub(crate) fn address(directory: &OwnedFd, name: &OsStr) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(directory.as_raw_fd().to_string())
        .join(name)
}

/// Connects to a socket, however long its path is.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    UnixStream::connect(address(&open_place(parent)?, name))
}

/// Sends all bytes, with the descriptors beside the first of them.
pub(crate) fn send_with(
    socket: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ROOM))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let part = [IoSlice::new(bytes)];
    let sent = again(|| sendmsg(socket, &part, &mut control, SendFlags::NOSIGNAL))?;
    send_all(socket, bytes.get(sent..).unwrap_or_default())
}

/// Sends all bytes. A reader that is gone is an error, never a signal.
pub(crate) fn send_all(socket: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = again(|| send(socket, bytes, SendFlags::NOSIGNAL))?;
        bytes = bytes.get(sent..).unwrap_or_default();
    }
    Ok(())
}

/// Fills `bytes`, and takes the descriptors that came beside them. `None` where
/// fewer or more than all came.
pub(crate) fn receive_with(
    mut socket: &UnixStream,
    bytes: &mut [u8],
) -> io::Result<Option<[OwnedFd; DESCRIPTORS]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ROOM))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = {
        let mut part = [IoSliceMut::new(bytes)];
        again(|| recvmsg(socket, &mut part, &mut control, flags))?
    };
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // Taken out whatever else is wrong: what is dropped is closed.
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            descriptors.extend(more);
        }
    }
    // Later bytes are read without room for descriptors, and lose theirs.
    if let Some(rest) = bytes.get_mut(received.bytes..) {
        socket.read_exact(rest)?;
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Ok(None);
    }
    Ok(descriptors.try_into().ok())
}

/// Waits until the other side has hung up, for this long at most. It never sends
/// anything while it waits: if it does, it is as good as gone.
pub(crate) fn hung_up(socket: impl AsFd, timeout: Timespec) -> bool {
    let asked = PollFlags::IN | PollFlags::RDHUP;
    let mut waited = [PollFd::new(&socket, asked)];
    match poll(&mut waited, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => false,
        Ok(_) | Err(_) => true,
    }
}

/// A signal that interrupts is no failure.
fn again<T>(mut step: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match step() {
            Err(rustix::io::Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}
