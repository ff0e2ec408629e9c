//! How fenced processes start, part, signal and talk.

use super::*;

#[test]
fn au_42_grandchildren_and_daemons_are_fenced() {
    let room = Room::new();
    room.denied("sh -c 'sh -c \"echo x > $ROOM/outside/grandchild\"'");
    room.denied("setsid -w sh -c 'echo x > $ROOM/outside/session'");
    // A daemon that outlives everyone: it tells through a pipe how it went.
    let daemon = "mkfifo told; (setsid sh -c '(echo x > $ROOM/outside/daemon) 2>/dev/null; \
                  (cat $ROOM/home/data/secret/key) 2>/dev/null; echo x > $ROOM/work/daemon; \
                  echo done > told' >/dev/null 2>&1 &) ; read word < told";
    room.allowed(daemon);
    assert!(!room.path("outside/daemon").exists());
    assert_eq!(room.read("work/daemon"), "x\n");
    fs::remove_file(room.path("work/told")).unwrap();
    assert!(room.free(daemon).status.success());
    assert_eq!(room.read("outside/daemon"), "x\n");
}

#[test]
fn au_42_whoever_starts_a_fenced_process_stays_free() {
    let room = Room::new();
    room.denied("echo x > $ROOM/outside/file");
    fs::write(room.path("outside/file"), "ours\n").unwrap();
    assert_eq!(room.read("home/data/secret/key"), "before\n");
    let same = std::thread::scope(|scope| {
        let thread = scope.spawn(|| fs::write(room.path("outside/file"), "thread\n"));
        thread.join().unwrap()
    });
    same.unwrap();
    assert!(room.free("echo x > $ROOM/outside/file").status.success());
}

#[test]
fn au_42_exit_codes_and_signals_come_through() {
    let room = Room::new();
    assert_eq!(room.fenced("exit 37").status.code(), Some(37));
    assert_eq!(room.fenced("kill -9 $$").status.signal(), Some(9));
    let mut child = room.start("echo up; exec sleep 600");
    let mut up = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn au_42_processes_outside_are_not_signalled() {
    let room = Room::new();
    let mut outside = room.shell("exec sleep 600").spawn().unwrap();
    let pid = outside.id();
    for script in [
        format!("kill -0 {pid}"),
        format!("kill {pid}"),
        "kill -0 $PPID".into(),
    ] {
        let output = room.fenced(&script);
        assert!(
            talk(&output).contains("not permitted"),
            "{script}: {}",
            talk(&output)
        );
    }
    assert_eq!(outside.try_wait().unwrap(), None);
    // Inside they are, and outside everyone can.
    room.allowed("sleep 600 & kill $! && ! wait $!");
    assert!(room.free(&format!("kill {pid}")).status.success());
    assert_eq!(outside.wait().unwrap().signal(), Some(15));
}

#[test]
fn au_42_processes_outside_are_not_looked_into() {
    let room = Room::new();
    let mut outside = room.shell("echo up; exec sleep 600").spawn().unwrap();
    let mut up = [0; 3];
    outside
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut up)
        .unwrap();
    let pid = outside.id();
    // Neither its open files, nor places through its eyes.
    room.denied(&format!("ls -l /proc/{pid}/fd"));
    room.denied(&format!("cat /proc/{pid}/root$ROOM/home/data/secret/key"));
    room.allowed("ls -l /proc/self/fd");
    // Root may read the memory of any process, with or without a fence.
    if !rustix::process::geteuid().is_root() {
        room.denied(&format!("cat /proc/{pid}/environ"));
    }
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn au_42_a_socket_by_path_is_reached() {
    let room = Room::new();
    let listener = UnixListener::bind(room.path("outside/socket")).unwrap();
    let client = "perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => \
                  \"$ENV{ROOM}/outside/socket\") or die \"$!\\n\"; print $s \"hello\\n\";'";
    let child = room.start(client);
    let (mut connection, _) = listener.accept().unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn au_42_an_abstract_socket_outside_is_not_reached() {
    let room = Room::new();
    let name = room.path("abstract");
    let address = SocketAddr::from_abstract_name(name.as_os_str().as_encoded_bytes()).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    room.denied(
        "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die; \
         connect($s, pack_sockaddr_un(\"\\0$ENV{ROOM}/abstract\")) or die \"$!\\n\"'",
    );
    listener.accept().unwrap();
}

#[test]
fn au_42_both_ways_of_starting_a_process_are_fenced() {
    // The standard library forks where something is asked for that
    // `posix_spawn` cannot do, such as another user.
    let room = Room::new();
    for (number, forks) in [(0, false), (1, true)] {
        let script = format!("echo x > made-{number}; echo x > $ROOM/outside/made-{number}");
        let mut command = room.shell(&script);
        if forks {
            command.uid(rustix::process::geteuid().as_raw());
        }
        let child = room.fence().spawn(command).unwrap().child;
        let output = child.wait_with_output().unwrap();
        assert!(
            talk(&output).contains("Permission denied"),
            "{}",
            talk(&output)
        );
        assert!(room.path(&format!("work/made-{number}")).exists());
        assert!(!room.path(&format!("outside/made-{number}")).exists());
    }
}

#[test]
fn au_42_a_fence_within_a_fence_only_gets_tighter() {
    let room = Room::new();
    let program = std::env::current_exe().unwrap();
    let nested = |fenced: bool| {
        let mut command = Command::new(&program);
        command
            .args(["--exact", "processes::nested", "--ignored", "--nocapture"])
            .current_dir(room.path("work"))
            .env("ROOM", room.directory.path())
            .env("FENCED", if fenced { "yes" } else { "no" });
        if fenced {
            room.fence().spawn(command).unwrap().child.wait().unwrap()
        } else {
            command.status().unwrap()
        }
    };
    assert!(nested(false).success());
    assert!(nested(true).success());
}

/// Started by the test above: fences a shell with the whole room writable.
#[test]
#[ignore = "started by another test"]
fn nested() {
    let room = PathBuf::from(std::env::var_os("ROOM").unwrap());
    let already = std::env::var_os("FENCED").unwrap() == "yes";
    let fence = Fence {
        writable: vec![room.join("work"), room.join("outside")],
        exact: Vec::new(),
        hidden: vec![room.join("home/data/secret")],
        listing: Listing::NotOnTheWay,
        terminals: Terminals::Held,
        supervision: None,
        caches: Caches::None,
    };
    let run = |script: &str| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let mut child = fence.spawn(command).unwrap().child;
        child.wait().unwrap().success()
    };
    assert!(run("echo x > file && cat /etc/passwd >/dev/null"));
    assert_eq!(run("echo x > $ROOM/outside/file"), !already);
    assert!(!run("cat $ROOM/home/data/secret/key"));
}
