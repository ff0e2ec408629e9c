//! The kernel's side of the supervisor: calls that a filter hands over, and the answers.
//!
//! This is the only module that uses the library for seccomp.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use seccompy::{
    AddDescriptorError, AddDescriptorOptions, FilterAction, FilterFlags, FilterWithListenerFlags,
    ReceiveNotificationError, SeccompNotif,
};

/// Calls of the threads behind one filter.
#[derive(Debug)]
pub(super) struct Listener {
    descriptor: OwnedFd,
    /// Whether waiting for a call ends when nobody is left (Linux 6.11).
    notices_end: bool,
}

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification(SeccompNotif);

/// What comes of a call.
#[derive(Debug)]
pub(super) enum Answer {
    /// The kernel goes on with it. It reads the caller's memory again.
    Continue,
    /// It was done on behalf of the caller, and returned this.
    Return(i64),
    /// A file was opened on behalf of the caller, which gets it.
    Descriptor { file: OwnedFd, close_on_exec: bool },
    /// It fails.
    Fail(Errno),
}

impl From<Result<i64, Errno>> for Answer {
    fn from(result: Result<i64, Errno>) -> Self {
        match result {
            Ok(value) => Self::Return(value),
            Err(error) => Self::Fail(error),
        }
    }
}

impl Notification {
    /// The thread that calls.
    pub(super) fn thread(&self) -> u32 {
        self.0.pid
    }

    /// The number of the system call.
    pub(super) fn call(&self) -> i64 {
        i64::from(self.0.data.nr)
    }

    /// An argument, as the kernel got it.
    pub(super) fn argument(&self, index: usize) -> u64 {
        self.0.data.args.get(index).copied().unwrap_or_default()
    }

    /// An argument that is an `int`.
    pub(super) fn int(&self, index: usize) -> i32 {
        let [a, b, c, d, ..] = self.argument(index).to_le_bytes();
        i32::from_le_bytes([a, b, c, d])
    }

    /// An argument that is an `unsigned int`.
    pub(super) fn unsigned(&self, index: usize) -> u32 {
        self.int(index).cast_unsigned()
    }
}

impl Listener {
    /// Puts the calling thread, and every process that it starts, behind a filter.
    pub(super) fn install(program: &[libc::sock_filter]) -> io::Result<Self> {
        let flags = FilterWithListenerFlags {
            // A call that is done on behalf of its caller happens once.
            ignore_non_fatal_signals: true,
            ..FilterWithListenerFlags::default()
        };
        let descriptor =
            seccompy::set_filter_with_listener(flags, program).map_err(io::Error::other)?;
        Ok(Self {
            descriptor,
            notices_end: kernel() >= Some((6, 11)),
        })
    }

    /// The number of its descriptor.
    pub(super) fn number(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    /// Blocks until there is a call. `None` when nobody is left behind the filter.
    pub(super) fn next(&self) -> io::Result<Option<Notification>> {
        loop {
            if !self.notices_end && self.is_unused(None)? {
                return Ok(None);
            }
            match seccompy::receive_notification(self.descriptor.as_raw_fd()) {
                Ok(notification) => return Ok(Some(Notification(notification))),
                Err(ReceiveNotificationError::Unknown(libc::EINTR)) => {}
                // The caller was killed meanwhile, or there is none any more.
                Err(ReceiveNotificationError::Interrupted) => {
                    if self.is_unused(Some(&Timespec::default()))? {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Waits for a call, or for the end of the last caller, and says if it was that.
    fn is_unused(&self, patience: Option<&Timespec>) -> io::Result<bool> {
        loop {
            let mut events = [PollFd::new(&self.descriptor, PollFlags::IN)];
            match poll(&mut events, patience) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [event] = events;
            let is_over = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
            return Ok(
                !event.revents().contains(PollFlags::IN) && event.revents().intersects(is_over)
            );
        }
    }

    /// Whether the caller still waits: its number has not been given to another thread.
    pub(super) fn is_waiting(&self, notification: &Notification) -> bool {
        seccompy::check_validity(self.descriptor.as_raw_fd(), &notification.0).unwrap_or(false)
    }

    /// Lets the caller go on. Where it has died meanwhile nobody hears the answer.
    pub(super) fn answer(&self, notification: &Notification, answer: Answer) {
        let notification = notification.0;
        let failure = |error: Errno| {
            let number = u16::try_from(error.raw_os_error());
            let number = number.unwrap_or(libc::EPERM.unsigned_abs() as u16);
            seccompy::fail_syscall(notification, number)
        };
        let response = match answer {
            Answer::Continue => seccompy::continue_syscall(notification),
            Answer::Return(value) => seccompy::return_syscall(notification, value),
            Answer::Fail(error) => failure(error),
            Answer::Descriptor {
                file,
                close_on_exec,
            } => match self.hand_over(&notification, &file, close_on_exec) {
                Ok(()) => return,
                Err(error) => failure(error),
            },
        };
        let _ = seccompy::send_response(self.descriptor.as_raw_fd(), response);
    }

    /// Gives the caller a descriptor, and lets its call return the number.
    fn hand_over(
        &self,
        notification: &SeccompNotif,
        file: &OwnedFd,
        close_on_exec: bool,
    ) -> Result<(), Errno> {
        let options = AddDescriptorOptions {
            add_and_respond: true,
            set_descriptor_close_on_exec: close_on_exec,
            ..AddDescriptorOptions::default()
        };
        let listener = self.descriptor.as_raw_fd();
        let added =
            seccompy::add_descriptor_to_target(listener, notification, file.as_raw_fd(), options);
        match added {
            // Where it has died meanwhile nobody misses it.
            Ok(_) | Err(AddDescriptorError::Interrupted) => Ok(()),
            Err(AddDescriptorError::InvalidTargetDescriptor) => Err(Errno::MFILE),
            Err(_) => Err(Errno::ACCESS),
        }
    }
}

/// Puts the calling thread, and every process that it starts, behind a filter that hands nothing
/// over. Says whether the kernel has such filters at all.
pub(crate) fn install_plain(program: &[libc::sock_filter]) -> io::Result<bool> {
    if !seccompy::is_action_available(FilterAction::Errno { errno: 0 }).unwrap_or(false) {
        return Ok(false);
    }
    nix::sys::prctl::set_no_new_privs()?;
    seccompy::set_filter(FilterFlags::default(), program).map_err(io::Error::other)?;
    Ok(true)
}

/// The version of the kernel.
fn kernel() -> Option<(u32, u32)> {
    let name = rustix::system::uname();
    let mut parts = name.release().to_str().ok()?.split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}
