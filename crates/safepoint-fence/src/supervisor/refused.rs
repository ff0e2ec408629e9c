//! Calls that no rule opens. They are rare, so the supervisor answers them itself, with `EPERM`:
//! what was refused is recorded then, and whoever reads the record knows why a program failed.

use libc::c_long;
use rustix::io::Errno;

use super::Refusal;
use super::caller::Caller;
use super::filter::{CONSOLE, TYPE_INTO_TERMINAL};
use super::listener::Answer;
use super::watch::Watch;

/// The calls, with their names.
pub(super) const CALLS: &[(c_long, &str)] = &[
    (libc::SYS_mount, "mount"),
    (libc::SYS_umount2, "umount2"),
    (libc::SYS_pivot_root, "pivot_root"),
    (libc::SYS_chroot, "chroot"),
    (libc::SYS_setns, "setns"),
    (libc::SYS_move_mount, "move_mount"),
    (libc::SYS_open_tree, "open_tree"),
    (libc::SYS_fsopen, "fsopen"),
    (libc::SYS_fsconfig, "fsconfig"),
    (libc::SYS_fsmount, "fsmount"),
    (libc::SYS_fspick, "fspick"),
    (libc::SYS_mount_setattr, "mount_setattr"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at"),
    (libc::SYS_process_vm_readv, "process_vm_readv"),
    (libc::SYS_process_vm_writev, "process_vm_writev"),
    (libc::SYS_pidfd_getfd, "pidfd_getfd"),
    (libc::SYS_add_key, "add_key"),
    (libc::SYS_request_key, "request_key"),
    (libc::SYS_keyctl, "keyctl"),
    (libc::SYS_bpf, "bpf"),
    (libc::SYS_perf_event_open, "perf_event_open"),
    (libc::SYS_userfaultfd, "userfaultfd"),
    (libc::SYS_swapon, "swapon"),
    (libc::SYS_swapoff, "swapoff"),
    (libc::SYS_reboot, "reboot"),
    (libc::SYS_init_module, "init_module"),
    (libc::SYS_finit_module, "finit_module"),
    (libc::SYS_delete_module, "delete_module"),
    (libc::SYS_kexec_load, "kexec_load"),
    (libc::SYS_kexec_file_load, "kexec_file_load"),
    (libc::SYS_settimeofday, "settimeofday"),
    (libc::SYS_clock_settime, "clock_settime"),
    (libc::SYS_sethostname, "sethostname"),
    (libc::SYS_setdomainname, "setdomainname"),
];

/// Calls by which a program builds a sandbox of its own: `clone` and `unshare` where they make a
/// namespace, and what is done in one.
const SANDBOXES: [&str; 14] = [
    "clone",
    "unshare",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "setns",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
];

/// Whether a program that makes this call builds a sandbox of its own.
pub fn builds_sandbox(call: &str) -> bool {
    SANDBOXES.contains(&call)
}

/// Refuses a call that is in the list, that makes a namespace, or an `ioctl` that the filter hands
/// over. `None` for any other.
pub(super) fn refuse(caller: &Caller<'_>, watch: &Watch) -> Option<Answer> {
    let (name, error) = match caller.notification.call() {
        libc::SYS_clone => ("clone", Errno::PERM),
        libc::SYS_unshare => ("unshare", Errno::PERM),
        libc::SYS_ioctl => match caller.notification.unsigned(1) {
            TYPE_INTO_TERMINAL | CONSOLE => ("typing into a terminal", Errno::PERM),
            // As on a file system that has none: programs go on without.
            _ => ("changing attributes of a file system", Errno::OPNOTSUPP),
        },
        call => {
            let known = CALLS.iter().find(|(known, _)| *known == call)?;
            (known.1, Errno::PERM)
        }
    };
    watch.refuse(Refusal::Call(name.to_owned()));
    Some(Answer::Fail(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_03_calls_that_build_sandboxes_are_known_by_their_names() {
        for (call, name) in CALLS {
            let is_known = CALLS.iter().filter(|(other, _)| other == call).count();
            assert_eq!(is_known, 1, "{name}");
        }
        let named = |name: &&str| CALLS.iter().any(|(_, known)| known == name);
        let made = ["clone", "unshare"];
        for name in SANDBOXES.iter().filter(|name| !made.contains(name)) {
            assert!(named(name), "{name}");
        }
        assert!(builds_sandbox("unshare") && !builds_sandbox("bpf"));
    }
}
