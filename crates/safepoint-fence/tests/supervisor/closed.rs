//! Calls that are closed, and a supervisor that is gone.

use std::io::{BufRead, BufReader};

use super::*;

/// Makes a system call by number, and prints how it failed.
fn call(number: i64, arguments: &str) -> String {
    format!(
        "import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({number}, {arguments})
print(os.strerror(ctypes.get_errno()) if result < 0 else 'done')"
    )
}

#[test]
fn fe_13_ways_around_are_closed() {
    let room = Room::new();
    for (number, arguments, told) in [
        (
            425,
            "8, ctypes.create_string_buffer(256)",
            "Function not implemented",
        ), // io_uring_setup
        (310, "os.getpid(), 0, 0, 0, 0, 0", "Operation not permitted"), // process_vm_readv
        (311, "os.getpid(), 0, 0, 0, 0, 0", "Operation not permitted"), // process_vm_writev
        (250, "0, -3, 0, 0, 0", "Operation not permitted"),             // keyctl
        (321, "0, 0, 0", "Operation not permitted"),                    // bpf
        (272, "0x10000000", "Operation not permitted"), // unshare, for a user namespace
        (56, "0x10000011, 0, 0, 0, 0", "Operation not permitted"), // clone, likewise
        (435, "0, 0", "Function not implemented"),      // clone3
        (438, "0, 0, 0", "Operation not permitted"),    // pidfd_getfd
        (304, "-100, 0, 0", "Operation not permitted"), // open_by_handle_at
        (
            165,
            "b'none', b'/mnt', b'tmpfs', 0, 0",
            "Operation not permitted",
        ), // mount
    ] {
        let ran = room.python(&call(number, arguments)).succeeded();
        assert_eq!(ran.talk().trim(), told, "{number}");
    }
}

#[test]
fn fe_03_calls_that_no_fence_allows_are_recorded_by_their_names() {
    let room = Room::new();
    let mount = "b'none', b'/mnt', b'tmpfs', 0, 0";
    for (number, arguments, name) in [
        (libc::SYS_unshare, "0x10000000", Some("unshare")),
        (libc::SYS_clone, "0x10000011, 0, 0, 0, 0", Some("clone")),
        (libc::SYS_mount, mount, Some("mount")),
        (libc::SYS_chroot, "b'/'", Some("chroot")),
        (
            libc::SYS_ioctl,
            "os.open('.', 0), 0x40086602, 0",
            Some("changing attributes of a file system"),
        ),
        // The control: a question, and a call that is closed and that programs do without.
        (
            libc::SYS_ioctl,
            "os.open('.', 0), 0x80086601, ctypes.create_string_buffer(8)",
            None,
        ),
        (libc::SYS_clone3, "0, 0", None),
        (libc::SYS_getpid, "", None),
    ] {
        let ran = room.python(&call(number, arguments)).succeeded();
        let names: Vec<Refusal> = ran.seen.refused.iter().cloned().collect();
        let expected = name.map(|name| Refusal::Call(name.to_owned()));
        assert_eq!(names, Vec::from_iter(expected), "{number}");
    }
}

#[test]
fn fe_13_a_process_cannot_shut_its_supervisor_out() {
    let room = Room::new();
    // PR_SET_DUMPABLE is answered, and does nothing.
    let ran = room.python(
        "import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(libc.prctl(4, 0, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0))
open('after', 'w').close()
",
    );
    let ran = ran.succeeded();
    assert_eq!(ran.talk(), "0 1\n");
    assert!(ran.seen.written.paths.contains(&room.path("work/after")));
}

const FE_15: &str = "closed::fe_15_without_a_supervisor_nothing_more_is_possible_and_nothing_hangs";

#[test]
fn fe_15_without_a_supervisor_nothing_more_is_possible_and_nothing_hangs() {
    // The supervisor lives in a process of its own, which is killed: this test, started again.
    if let Some(place) = std::env::var_os("FE_15_ROOM") {
        return supervise(&PathBuf::from(place));
    }
    let this = std::env::current_exe().unwrap();
    let room = Room::new();
    let mut supervisor = Command::new(this)
        .args(["--exact", FE_15, "--nocapture"])
        .env("FE_15_ROOM", room.path(""))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(supervisor.stdout.take().unwrap()).lines();
    lines
        .find(|line| line.as_ref().is_ok_and(|line| line.ends_with("ready")))
        .unwrap()
        .unwrap();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    fs::write(room.path("work/go"), "").unwrap();
    // The child reports through a pipe that it has open already.
    let told = lines.map_while(Result::ok).last().unwrap();
    assert_eq!(told, "refused refused refused");
    assert!(!room.path("work/late").exists());
}

fn supervise(place: &Path) {
    let fence = Fence {
        writable: vec![place.join("work")],
        exact: Vec::new(),
        hidden: Vec::new(),
        listing: Listing::Everywhere,
        terminals: Terminals::None,
        supervision: Some(Supervision {
            hosts: Vec::new(),
            services: Vec::new(),
            sockets: Vec::new(),
            registry: place.join("registry"),
            journal: None,
            guarded: GuardedNames::default(),
            freezer: Some(place.join("freezes")),
            network: NetworkAccess::Closed,
        }),
        caches: Caches::None,
    };
    let mut command = Command::new("python3");
    command.current_dir(place.join("work")).args([
        "-c",
        "import os, socket, time
print('\\nready', flush=True)
while not os.path.exists('go'):
    time.sleep(0.01)
def attempt(work):
    try:
        work()
        return 'done'
    except OSError:
        return 'refused'
print(attempt(lambda: open('late', 'w')), attempt(lambda: os.chmod('file', 0o600)),
      attempt(lambda: socket.socket().connect(('127.0.0.1', 1))), flush=True)",
    ]);
    let mut started = fence.spawn(command).unwrap();
    started.child.wait().unwrap();
}
