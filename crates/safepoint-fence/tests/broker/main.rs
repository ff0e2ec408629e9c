//! Calls over real sockets, with real pipes and real processes.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start processes, and stop where they fail"
)]

mod calls;
mod frames;
mod places;

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{Read, Write, pipe};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use safepoint_fence::{
    Call, CallRefusal, Fence, FenceError, Listener, Listing, Streams, Terminals, hand_over,
    hand_over_streams,
};

/// Serves while `clients` runs, and stops.
fn served<T>(handle: impl Fn(Call) -> u8 + Sync + Send, clients: impl FnOnce(&Path) -> T) -> T {
    let directory = tempfile::tempdir().unwrap();
    let listener = Listener::bind(&directory.path().join("calls")).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let server = scope.spawn(|| listener.serve(&handle, &stop));
        // Set even when a client fails, so that the test ends.
        let _stop = Stop(&stop);
        let result = clients(listener.path());
        stop.store(true, Ordering::Release);
        server.join().unwrap().unwrap();
        result
    })
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap()
}

fn nothing() -> OwnedFd {
    let null = File::options().read(true).write(true).open("/dev/null");
    null.unwrap().into()
}

/// A call whose streams nobody needs.
fn call(socket: &Path, arguments: &[OsString]) -> Result<u8, FenceError> {
    let null = nothing();
    let streams = Streams {
        stdin: null.as_fd(),
        stdout: null.as_fd(),
        stderr: null.as_fd(),
    };
    hand_over_streams(socket, arguments, &here(), &[], streams)
}
