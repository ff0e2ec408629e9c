//! Calls that go there and back, end early, or come in crowds.

use super::*;

#[test]
fn au_42_a_call_goes_there_and_back_with_its_streams() {
    let strange = OsString::from_vec(vec![b'a', 0xff, b'\n']);
    let arguments = ["exec".into(), "--".into(), strange.clone(), "".into()];
    let variables = [
        (OsString::from("A"), strange.clone()),
        ("B".into(), "".into()),
    ];
    let handle = |mut call: Call| {
        assert_eq!(
            call.arguments,
            ["exec".into(), "--".into(), strange.clone(), "".into()]
        );
        assert_eq!(
            call.variables,
            [("A".into(), strange.clone()), ("B".into(), "".into())]
        );
        assert_eq!(call.directory, here());
        let place = rustix::fs::fstat(&call.place).unwrap();
        assert_eq!(place.st_ino, here().metadata().unwrap().ino());
        assert_eq!(call.peer.pid, std::process::id());
        assert_eq!(call.peer.uid, rustix::process::geteuid().as_raw());
        assert!(!call.is_gone());
        let mut text = String::new();
        File::from(call.stdin.try_clone().unwrap())
            .read_to_string(&mut text)
            .unwrap();
        call.stdin = nothing();
        write!(File::from(call.stdout), "data {text}").unwrap();
        write!(File::from(call.stderr), "talk {text}").unwrap();
        37
    };
    served(handle, |socket| {
        let (stdin, mut to_stdin) = pipe().unwrap();
        let (mut from_stdout, stdout) = pipe().unwrap();
        let (mut from_stderr, stderr) = pipe().unwrap();
        to_stdin.write_all(b"hello").unwrap();
        drop(to_stdin);
        let streams = Streams {
            stdin: stdin.as_fd(),
            stdout: stdout.as_fd(),
            stderr: stderr.as_fd(),
        };
        let code = hand_over_streams(socket, &arguments, &here(), &variables, streams);
        assert_eq!(code.unwrap(), 37);
        drop((stdout, stderr));
        let (mut data, mut talk) = (String::new(), String::new());
        from_stdout.read_to_string(&mut data).unwrap();
        from_stderr.read_to_string(&mut talk).unwrap();
        assert_eq!((data.as_str(), talk.as_str()), ("data hello", "talk hello"));
    });
}

#[test]
fn au_42_arguments_may_take_two_mebibytes_and_no_more() {
    let sum = |call: Call| {
        let size: usize = call.arguments.iter().map(|one| one.len()).sum();
        u8::from(size == (2 << 20) - 12)
    };
    served(sum, |socket| {
        let arguments = |size: usize| ["x".into(), OsString::from("y".repeat(size - 1))];
        assert_eq!(call(socket, &arguments((2 << 20) - 12)).unwrap(), 1);
        let result = call(socket, &arguments((2 << 20) - 11));
        assert!(
            matches!(result, Err(FenceError::TooLarge { .. })),
            "{result:?}"
        );
    });
}

#[test]
fn au_42_a_hundred_calls_at_once_are_all_answered_64_at_a_time() {
    let now = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    let asked = AtomicUsize::new(0);
    // Nobody leaves before 64 are there: so many are served together.
    let together = Barrier::new(64);
    let first = AtomicUsize::new(0);
    let handle = |call: Call| {
        let present = now.fetch_add(1, Ordering::SeqCst) + 1;
        most.fetch_max(present, Ordering::SeqCst);
        if first.fetch_add(1, Ordering::SeqCst) < 64 {
            together.wait();
            while asked.load(Ordering::SeqCst) < 100 {
                thread::yield_now();
            }
        }
        now.fetch_sub(1, Ordering::SeqCst);
        call.arguments[0].to_str().unwrap().parse().unwrap()
    };
    served(handle, |socket| {
        let ask = |number: u8| {
            asked.fetch_add(1, Ordering::SeqCst);
            call(socket, &[number.to_string().into()])
        };
        thread::scope(|scope| {
            let ask = &ask;
            let calls: Vec<_> = (0..100)
                .map(|number| scope.spawn(move || ask(number)))
                .collect();
            for (number, call) in calls.into_iter().enumerate() {
                assert_eq!(usize::from(call.join().unwrap().unwrap()), number);
            }
        });
    });
    assert_eq!(most.into_inner(), 64);
}

#[test]
fn au_42_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        // Only root can become somebody else; the directory keeps others out.
        return;
    }
    let handled = AtomicBool::new(false);
    let handle = |_| {
        handled.store(true, Ordering::SeqCst);
        9
    };
    served(handle, |socket| {
        // Opened wide, so that only the check on the socket is left.
        for place in socket.ancestors().take(3) {
            fs::set_permissions(place, Permissions::from_mode(0o777)).unwrap();
        }
        let script = "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) \
                      or die $!; local $/; print unpack('H*', <$s>)";
        let ask = |id: &str| {
            let mut command = Command::new("setpriv");
            command.args([
                &format!("--reuid={id}"),
                "--clear-groups",
                "perl",
                "-e",
                script,
            ]);
            let output = command.arg(socket).output().unwrap();
            (
                String::from_utf8(output.stdout).unwrap(),
                output.status.success(),
            )
        };
        assert_eq!(ask("65534"), ("0104".to_owned(), true));
    });
    assert!(!handled.into_inner());
}

#[test]
fn au_42_a_client_that_is_killed_is_noticed() {
    let (started, has_started) = channel();
    let (ended, has_ended) = channel();
    let handle = |call: Call| {
        assert!(!call.is_gone());
        started.send(call.peer.pid).unwrap();
        while !call.wait_gone(Duration::from_secs(600)) {}
        ended.send(call.is_gone()).unwrap();
        0
    };
    served(handle, |socket| {
        for signal in ["-TERM", "-KILL"] {
            let mut client = client(socket).spawn().unwrap();
            let pid = has_started.recv().unwrap();
            assert_eq!(pid, client.id());
            let kill = Command::new("kill")
                .args([signal, &pid.to_string()])
                .status();
            assert!(kill.unwrap().success());
            assert!(has_ended.recv().unwrap());
            assert_eq!(client.wait().unwrap().code(), None, "ended by a signal");
        }
    });
}

/// This program again, as a client.
fn client(socket: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            "calls::client_of_other_tests",
            "--ignored",
            "--nocapture",
        ])
        .env("SOCKET", socket)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

#[test]
#[ignore = "started by other tests"]
fn client_of_other_tests() {
    let socket = PathBuf::from(std::env::var_os("SOCKET").unwrap());
    let code = hand_over(&socket, &["wait".into()], &here(), &[]).unwrap();
    assert_eq!(code, 5);
}

#[test]
fn au_42_a_fenced_client_reaches_the_broker_and_writes_through_it() {
    let room = tempfile::tempdir().unwrap();
    let secret = room.path().join("secret");
    fs::create_dir(&secret).unwrap();
    let handle = |call: Call| {
        // What the client may not do itself is done outside.
        fs::write(secret.join("done"), call.peer.pid.to_string()).unwrap();
        5
    };
    served(handle, |socket| {
        let fence = Fence {
            writable: Vec::new(),
            exact: Vec::new(),
            hidden: vec![secret.clone()],
            listing: Listing::NotOnTheWay,
            terminals: Terminals::Held,
            supervision: None,
            caches: safepoint_fence::Caches::None,
        };
        let mut child = fence.spawn(client(socket)).unwrap().child;
        assert!(child.wait().unwrap().success());
        let done = fs::read_to_string(secret.join("done")).unwrap();
        assert_eq!(done, child.id().to_string());
    });
}

#[test]
fn au_42_a_server_that_stops_ends_its_calls() {
    let directory = tempfile::tempdir().unwrap();
    let listener = Listener::bind(&directory.path().join("calls")).unwrap();
    let path = listener.path().to_owned();
    let stop = AtomicBool::new(false);
    let (started, has_started) = channel();
    let handle = |call: Call| {
        started.send(()).unwrap();
        while !call.wait_gone(Duration::from_secs(600)) {}
        0
    };
    thread::scope(|scope| {
        let server = scope.spawn(|| listener.serve(handle, &stop));
        let client = scope.spawn(|| call(&path, &[]));
        has_started.recv().unwrap();
        stop.store(true, Ordering::Release);
        let result = client.join().unwrap();
        assert!(
            matches!(result, Err(FenceError::Unanswered { .. })),
            "{result:?}"
        );
        server.join().unwrap().unwrap();
    });
    drop(listener);
    assert!(!path.exists());
    let result = call(&path, &[]);
    assert!(
        matches!(result, Err(FenceError::Absent { .. })),
        "{result:?}"
    );
}

#[test]
fn au_42_a_handler_that_breaks_down_is_told_and_others_go_on() {
    let handle = |call: Call| match call.arguments.len() {
        0 => std::panic::panic_any("on purpose"),
        _ => 9,
    };
    served(handle, |socket| {
        let result = call(socket, &[]);
        let told = matches!(
            result,
            Err(FenceError::Refused {
                refusal: CallRefusal::Failed,
                ..
            })
        );
        assert!(told, "{result:?}");
        assert_eq!(call(socket, &["x".into()]).unwrap(), 9);
    });
}
