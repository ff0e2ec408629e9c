//! The filter: which system calls are handed to the supervisor, and which are closed.
//!
//! The kernel runs it before each call, and sees the call's number and arguments, but no memory.
//! So it tells calls that matter from those that do not, and nothing more.

use libc::{c_long, sock_filter};

use super::bpf::{ALLOW, Body, HAND_OVER, assemble, fail};
use super::{NetworkAccess, refused};

// Calls and constants that the library for them does not name yet.
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;
pub(super) const TYPE_INTO_TERMINAL: u32 = 0x5412;
pub(super) const CONSOLE: u32 = 0x541C;
const TCP_FASTOPEN_NO_COOKIE: i32 = 34;

/// The part of an `ioctl` that says whose it is, and those of file systems: `f`, `X`, `v`, `r` and
/// that of Btrfs. They change metadata through a descriptor that can only read.
const REQUEST_KIND: u32 = 0xff00;
const FILE_SYSTEM_KINDS: [u32; 5] = [0x6600, 0x5800, 0x7600, 0x7200, 0x9400];
/// Those of them that only ask, or that copy into a file that is open for writing.
const FILE_SYSTEM_QUESTIONS: [u32; 9] = [
    0x8008_6601, // FS_IOC_GETFLAGS
    0x8004_6601, // FS_IOC32_GETFLAGS
    0x801c_581f, // FS_IOC_FSGETXATTR
    0x8008_7601, // FS_IOC_GETVERSION
    0xc020_660b, // FS_IOC_FIEMAP
    0x4004_9409, // FICLONE
    0x4020_940d, // FICLONERANGE
    0xc018_9436, // FIDEDUPERANGE
    0x8100_9431, // FS_IOC_GETFSLABEL
];

/// Socket options that send packets elsewhere than to the address that was checked, or later, when
/// somebody else may answer there, or share our memory with the kernel: level and name.
const CLOSED_OPTIONS: [(i32, i32); 11] = [
    (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
    (libc::IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE),
    (libc::IPPROTO_TCP, libc::TCP_REPAIR),
    (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
    (libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX),
    (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
    (libc::SOL_IP, libc::IP_OPTIONS),
    (libc::SOL_IPV6, libc::IPV6_RTHDR),
    (libc::SOL_IPV6, libc::IPV6_2292RTHDR),
    (libc::SOL_IPV6, libc::IPV6_2292PKTOPTIONS),
    (libc::SOL_IPV6, libc::IPV6_2292DSTOPTS),
];

/// Flags with which an opened file can be written, made or emptied.
const OPENS_FOR_WRITING: i32 = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC;

/// Flags that make a namespace.
pub(super) const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// Calls that change names, contents or metadata.
const WRITING: &[c_long] = &[
    libc::SYS_truncate,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mknodat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Those of them that only x86-64 still has.
#[cfg(target_arch = "x86_64")]
const OLD_WRITING: &[c_long] = &[
    libc::SYS_creat,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_mknod,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_WRITING: &[c_long] = &[];

/// Calls that nobody behind the fence makes, and that programs do well without. They are told
/// `ENOSYS`, and take another way then.
const CLOSED: &[c_long] = &[
    libc::SYS_openat2,
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
    OPEN_TREE_ATTR,
];

/// The whole filter.
pub(super) fn program(network: NetworkAccess) -> Vec<sock_filter> {
    let mut rules = vec![
        // The calls that are made most come first.
        (
            libc::SYS_openat,
            Body::new().any_bit(2, OPENS_FOR_WRITING, HAND_OVER),
        ),
        #[cfg(target_arch = "x86_64")]
        (
            libc::SYS_open,
            Body::new().any_bit(1, OPENS_FOR_WRITING, HAND_OVER),
        ),
        (
            libc::SYS_ioctl,
            FILE_SYSTEM_QUESTIONS
                .iter()
                .fold(Body::new(), |body, question| {
                    body.equals(1, *question, ALLOW)
                })
                .equals(1, TYPE_INTO_TERMINAL, HAND_OVER)
                .equals(1, CONSOLE, HAND_OVER)
                .masked(1, REQUEST_KIND, &FILE_SYSTEM_KINDS, HAND_OVER),
        ),
        (
            libc::SYS_prctl,
            // A process that cannot be looked into could not be supervised.
            Body::new().equals(0, libc::PR_SET_DUMPABLE.cast_unsigned(), fail(0)),
        ),
        (
            libc::SYS_fcntl,
            // Whoever holds a lease keeps all others from opening the file, us too.
            Body::new().equals(1, libc::F_SETLEASE.cast_unsigned(), fail(libc::EINVAL)),
        ),
        (
            libc::SYS_clone,
            Body::new()
                .any_bit(0, NAMESPACES, HAND_OVER)
                // Descriptors that another process can exchange make every look at one useless.
                .without_companion(libc::CLONE_FILES, libc::CLONE_THREAD, fail(libc::EINVAL))
                // Children of the supervisor would be nobody's.
                .without_companion(libc::CLONE_PARENT, libc::CLONE_THREAD, fail(libc::EINVAL)),
        ),
        (
            libc::SYS_unshare,
            Body::new().any_bit(0, NAMESPACES, HAND_OVER),
        ),
        (
            libc::SYS_prlimit64,
            // Limits of other processes: it names one, and has new ones for it.
            Body::new().neither_zero(0, 2, fail(libc::EPERM)),
        ),
    ];
    if network == NetworkAccess::Closed {
        rules.extend(network_rules());
    }
    let writing = WRITING.iter().chain(OLD_WRITING);
    rules.extend(writing.map(|call| (*call, Body::always(HAND_OVER))));
    // Whoever misses one of these should know why: the supervisor refuses it, and says so.
    let refused = refused::CALLS.iter().map(|(call, _)| *call);
    rules.extend(refused.map(|call| (call, Body::always(HAND_OVER))));
    let closed = CLOSED.iter();
    rules.extend(closed.map(|call| (*call, Body::always(fail(libc::ENOSYS)))));
    assemble(rules)
}

/// The filter for one program that Safepoint runs for its answer: it has no sockets, and where it
/// `starts_nothing` it makes no processes. It begins with the thread that starts the program, so
/// what a library does for that (`clone` with shared memory) is let through, and `fork` is not.
pub(crate) fn lone_program(starts_nothing: bool) -> Vec<sock_filter> {
    let mut rules = vec![
        (libc::SYS_socket, Body::always(fail(libc::EACCES))),
        (libc::SYS_ptrace, Body::always(fail(libc::EPERM))),
    ];
    if starts_nothing {
        rules.push((
            libc::SYS_clone,
            Body::new()
                .any_bit(0, libc::CLONE_VM, ALLOW)
                .finally(fail(libc::EPERM)),
        ));
        #[cfg(target_arch = "x86_64")]
        rules.extend([
            (libc::SYS_fork, Body::always(fail(libc::EPERM))),
            (libc::SYS_vfork, Body::always(fail(libc::EPERM))),
        ]);
    }
    // Nobody answers it: what a supervisor would refuse fails at once.
    let refused = refused::CALLS.iter().map(|(call, _)| *call);
    rules.extend(refused.map(|call| (call, Body::always(fail(libc::EPERM)))));
    let closed = CLOSED.iter();
    rules.extend(closed.map(|call| (*call, Body::always(fail(libc::ENOSYS)))));
    assemble(rules)
}

fn network_rules() -> Vec<(c_long, Body)> {
    let fast_open = || fail(libc::EOPNOTSUPP);
    vec![
        (libc::SYS_connect, Body::always(HAND_OVER)),
        (libc::SYS_bind, Body::always(HAND_OVER)),
        (libc::SYS_listen, Body::always(HAND_OVER)),
        (
            libc::SYS_sendto,
            Body::new()
                .any_bit(3, libc::MSG_FASTOPEN, fast_open())
                .not_zero(4, HAND_OVER),
        ),
        (
            libc::SYS_sendmsg,
            Body::new()
                .any_bit(2, libc::MSG_FASTOPEN, fast_open())
                .finally(HAND_OVER),
        ),
        (
            libc::SYS_sendmmsg,
            Body::new()
                .any_bit(3, libc::MSG_FASTOPEN, fast_open())
                .finally(HAND_OVER),
        ),
        (
            libc::SYS_socket,
            Body::new()
                .equals(0, libc::AF_UNIX.cast_unsigned(), ALLOW)
                .finally(HAND_OVER),
        ),
        (
            libc::SYS_setsockopt,
            CLOSED_OPTIONS
                .iter()
                .fold(Body::new(), |body, (level, name)| {
                    body.both_equal(
                        (1, level.cast_unsigned()),
                        (2, name.cast_unsigned()),
                        fail(libc::EPERM),
                    )
                }),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::bpf::{
        AND, ARCHITECTURE, FIRST_ARGUMENT, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, LOAD,
        RETURN, X32,
    };
    use super::*;

    /// What the filter returns for a call: a small interpreter of the few instructions it uses.
    fn run(call: c_long, arguments: [u64; 6]) -> u32 {
        run_of(ARCHITECTURE, u32::try_from(call).unwrap(), arguments)
    }

    fn run_of(architecture: u32, call: u32, arguments: [u64; 6]) -> u32 {
        run_in(
            &program(NetworkAccess::Closed),
            architecture,
            call,
            arguments,
        )
    }

    fn run_in(code: &[sock_filter], architecture: u32, call: u32, arguments: [u64; 6]) -> u32 {
        trace(code, architecture, call, arguments).action
    }

    /// What running the filter comes to.
    struct Run {
        action: u32,
        steps: usize,
        /// Whether the number of the call alone was not enough.
        reads_arguments: bool,
    }

    fn trace(code: &[sock_filter], architecture: u32, call: u32, arguments: [u64; 6]) -> Run {
        let mut data = Vec::new();
        data.extend(call.to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend([0; 8]);
        data.extend(arguments.iter().flat_map(|it| it.to_le_bytes()));
        let (mut at, mut accumulator) = (0, 0_u32);
        let (mut steps, mut reads_arguments) = (0, false);
        loop {
            let step = code[at];
            steps += 1;
            let mut next = at + 1;
            let value = step.k;
            let mut branch =
                |holds: bool| next += usize::from(if holds { step.jt } else { step.jf });
            match step.code {
                LOAD => {
                    reads_arguments |= value >= FIRST_ARGUMENT;
                    let offset = usize::try_from(value).unwrap();
                    accumulator = u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap());
                }
                AND => accumulator &= value,
                JUMP_IF_EQUAL => branch(accumulator == value),
                JUMP_IF_AT_LEAST => branch(accumulator >= value),
                JUMP_IF_ANY_BIT => branch(accumulator & value != 0),
                RETURN => {
                    return Run {
                        action: value,
                        steps,
                        reads_arguments,
                    };
                }
                other => panic!("{other:#x}"),
            }
            at = next;
        }
    }

    fn bits(flags: i32) -> u64 {
        u64::from(flags.cast_unsigned())
    }

    #[test]
    fn fe_33_opening_is_handed_over_if_it_can_write() {
        let open = |flags| run(libc::SYS_openat, [0, 0, bits(flags), 0, 0, 0]);
        assert_eq!(open(libc::O_RDONLY | libc::O_CLOEXEC), ALLOW);
        assert_eq!(open(libc::O_PATH), ALLOW);
        for flags in [
            libc::O_WRONLY,
            libc::O_RDWR,
            libc::O_CREAT,
            libc::O_TRUNC,
            libc::O_TMPFILE | libc::O_RDWR,
        ] {
            assert_eq!(open(flags), HAND_OVER, "{flags:#o}");
        }
    }

    #[test]
    fn fe_50_calls_that_only_read_never_run_the_filter_and_opening_runs_little_of_it() {
        let code = program(NetworkAccess::Closed);
        let run = |call: c_long| trace(&code, ARCHITECTURE, u32::try_from(call).unwrap(), [0; 6]);
        for call in [
            libc::SYS_read,
            libc::SYS_pread64,
            libc::SYS_write,
            libc::SYS_close,
            libc::SYS_fstat,
            libc::SYS_newfstatat,
            libc::SYS_statx,
            libc::SYS_getdents64,
            libc::SYS_readlinkat,
            libc::SYS_faccessat,
            libc::SYS_lseek,
            libc::SYS_mmap,
            libc::SYS_munmap,
            libc::SYS_brk,
            libc::SYS_futex,
            libc::SYS_execve,
            libc::SYS_exit_group,
            libc::SYS_wait4,
            libc::SYS_recvfrom,
        ] {
            let run = run(call);
            assert!(run.action == ALLOW && !run.reads_arguments, "{call}");
        }
        let open = run(libc::SYS_openat);
        assert!(open.action == ALLOW && open.steps <= 9, "{}", open.steps);
    }

    #[test]
    fn fe_14_requests_that_change_metadata_are_closed_whatever_the_file_system() {
        let ioctl = |request: u64| run(libc::SYS_ioctl, [3, request, 0, 0, 0, 0]);
        for change in [
            0x4008_6602, // FS_IOC_SETFLAGS
            0x4008_6604, // EXT4_IOC_SETVERSION
            0x401c_5820, // FS_IOC_FSSETXATTR
            0x800c_6613, // FS_IOC_SET_ENCRYPTION_POLICY
            0x4080_6685, // FS_IOC_ENABLE_VERITY
            0x4004_7211, // FAT_IOCTL_SET_ATTRIBUTES
            0x5000_940e, // BTRFS_IOC_SUBVOL_CREATE
        ] {
            assert_eq!(ioctl(change), HAND_OVER, "{change:#x}");
        }
        assert_eq!(ioctl(0x5412), HAND_OVER);
        for question in FILE_SYSTEM_QUESTIONS.map(u64::from) {
            assert_eq!(ioctl(question), ALLOW);
        }
        // Terminals are asked for their size.
        assert_eq!(ioctl(0x5413), ALLOW);
    }

    #[test]
    fn fe_13_nobody_inside_takes_a_lease() {
        let fcntl = |command: i32| run(libc::SYS_fcntl, [3, bits(command), 0, 0, 0, 0]);
        assert_eq!(fcntl(libc::F_SETLEASE), fail(libc::EINVAL));
        for command in [libc::F_GETFL, libc::F_SETLK, libc::F_DUPFD_CLOEXEC] {
            assert_eq!(fcntl(command), ALLOW);
        }
    }

    #[test]
    fn fe_13_other_architectures_and_ways_around_are_closed() {
        let arguments = [0; 6];
        assert_eq!(run_of(0x4000_0003, 1, arguments), fail(libc::ENOSYS));
        assert_eq!(run_of(ARCHITECTURE, X32 + 1, arguments), fail(libc::ENOSYS));
        for call in CLOSED {
            assert_eq!(run(*call, arguments), fail(libc::ENOSYS));
        }
        for (call, _) in refused::CALLS {
            assert_eq!(run(*call, arguments), HAND_OVER);
        }
        assert_eq!(run(libc::SYS_read, arguments), ALLOW);
    }

    #[test]
    fn fe_01_a_lone_program_has_no_sockets_and_makes_no_process() {
        let run = |code: &[sock_filter], call: c_long, first: u64| {
            let call = u32::try_from(call).unwrap();
            run_in(code, ARCHITECTURE, call, [first, 0, 0, 0, 0, 0])
        };
        let (alone, itself) = (lone_program(true), lone_program(false));
        let fork = bits(libc::SIGCHLD | libc::CLONE_CHILD_SETTID);
        let spawn = bits(libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD);
        assert_eq!(run(&alone, libc::SYS_clone, fork), fail(libc::EPERM));
        assert_eq!(run(&alone, libc::SYS_clone, spawn), ALLOW);
        assert_eq!(run(&alone, libc::SYS_clone3, 0), fail(libc::ENOSYS));
        assert_eq!(run(&itself, libc::SYS_clone, fork), ALLOW);
        for code in [&alone, &itself] {
            let unix = bits(libc::AF_UNIX);
            assert_eq!(run(code, libc::SYS_socket, unix), fail(libc::EACCES));
            assert_eq!(run(code, libc::SYS_openat, 0), ALLOW);
        }
    }

    #[test]
    fn fe_10_sending_is_handed_over_where_it_names_somebody() {
        assert_eq!(run(libc::SYS_sendto, [3, 9, 9, 0, 0, 0]), ALLOW);
        assert_eq!(run(libc::SYS_sendto, [3, 9, 9, 0, 1, 16]), HAND_OVER);
        assert_eq!(run(libc::SYS_sendto, [3, 9, 9, 0, 1 << 40, 16]), HAND_OVER);
        let fast = bits(libc::MSG_FASTOPEN);
        assert_eq!(
            run(libc::SYS_sendto, [3, 9, 9, fast, 1, 16]),
            fail(libc::EOPNOTSUPP)
        );
        assert_eq!(run(libc::SYS_sendmsg, [3, 9, 0, 0, 0, 0]), HAND_OVER);
        let unix = bits(libc::AF_UNIX);
        assert_eq!(run(libc::SYS_socket, [unix, 1, 0, 0, 0, 0]), ALLOW);
        assert_eq!(run(libc::SYS_socket, [40, 1, 0, 0, 0, 0]), HAND_OVER);
        let (level, device) = (bits(libc::SOL_SOCKET), bits(libc::SO_BINDTODEVICE));
        assert_eq!(
            run(libc::SYS_setsockopt, [3, level, device, 0, 0, 0]),
            fail(libc::EPERM)
        );
        for (level, name) in CLOSED_OPTIONS {
            let arguments = [3, bits(level), bits(name), 0, 0, 0];
            assert_eq!(run(libc::SYS_setsockopt, arguments), fail(libc::EPERM));
        }
        assert_eq!(run(libc::SYS_setsockopt, [3, level, 2, 0, 0, 0]), ALLOW);
        assert_eq!(run(libc::SYS_setsockopt, [3, 6, device, 0, 0, 0]), ALLOW);
    }

    #[test]
    fn fe_13_processes_are_made_without_namespaces_and_without_shared_descriptors() {
        let clone = |flags| run(libc::SYS_clone, [bits(flags), 0, 0, 0, 0, 0]);
        assert_eq!(clone(libc::SIGCHLD), ALLOW);
        assert_eq!(clone(libc::CLONE_VM | libc::CLONE_VFORK), ALLOW);
        let thread = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_THREAD;
        assert_eq!(clone(thread), ALLOW);
        assert_eq!(clone(libc::CLONE_FILES), fail(libc::EINVAL));
        assert_eq!(clone(libc::CLONE_PARENT), fail(libc::EINVAL));
        assert_eq!(clone(libc::CLONE_NEWUSER), HAND_OVER);
        let dumpable = bits(libc::PR_SET_DUMPABLE);
        assert_eq!(run(libc::SYS_prctl, [dumpable, 0, 0, 0, 0, 0]), fail(0));
        assert_eq!(run(libc::SYS_prctl, [15, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(run(libc::SYS_prlimit64, [0, 7, 9, 0, 0, 0]), ALLOW);
        assert_eq!(run(libc::SYS_prlimit64, [1, 7, 0, 9, 0, 0]), ALLOW);
        assert_eq!(
            run(libc::SYS_prlimit64, [1, 7, 9, 0, 0, 0]),
            fail(libc::EPERM)
        );
    }
}
