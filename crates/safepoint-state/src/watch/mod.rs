//! Knowing what changed without looking: a process that listens to the file
//! system, and a checkpoint that asks it.
//!
//! It is a help and no more. A checkpoint that cannot ask, or is told that
//! something may have been missed, looks at everything; and a roll back always
//! does.

mod base;
mod client;
mod listen;
mod protocol;

pub(crate) use base::Base;
pub(crate) use client::ask;
pub use client::{Standing, standing};
pub use listen::serve;
pub(crate) use protocol::Cursor;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

/// A short name for a socket, for as long as the handle is open: names of sockets
/// may have no more than about a hundred bytes.
fn reach(socket: &Path) -> std::io::Result<(OwnedFd, PathBuf)> {
    let directory = socket.parent().unwrap_or(socket);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = openat(CWD, directory, flags, Mode::empty())?;
    let name = socket.file_name().unwrap_or_default();
    let number = handle.as_raw_fd();
    let short = PathBuf::from(format!("/proc/self/fd/{number}")).join(name);
    Ok((handle, short))
}

/// Where the listener of a workspace is reached.
pub fn socket(runtime: &Path, workspace: &Path) -> PathBuf {
    runtime
        .join("watch")
        .join(format!("{}.sock", crate::state::key(workspace)))
}
