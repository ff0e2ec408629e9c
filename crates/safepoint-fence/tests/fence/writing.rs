//! Where a fenced shell writes, and where not.

use super::*;

#[test]
fn au_42_this_kernel_holds_a_full_fence() {
    // Said aloud, so that a run on an older kernel is seen to prove less.
    match strength() {
        Strength::Full => {}
        other => panic!("the tests of the fence need Linux 6.12 or later: {other:?}"),
    }
}

#[test]
fn au_42_the_workspace_and_temporary_folders_are_writable() {
    let room = Room::new();
    room.allowed("echo after > file && echo new > new && mkdir made && echo x > made/x");
    room.allowed("echo x > $ROOM/temporary/x && mv $ROOM/temporary/x moved && ln moved linked");
    room.allowed("mv deep made/deep && rm -r made && ln -s nowhere link && mkfifo pipe");
    // A rename proper, between directories and between writable places.
    room.allowed(&format!(
        "mkdir a b && echo x > a/x && {RENAME} a/x b/x && {RENAME} b a/b"
    ));
    room.allowed(&format!(
        "{RENAME} a $ROOM/temporary/a && test -f $ROOM/temporary/a/b/x"
    ));
    room.allowed(": > linked && truncate -s 3 file && rm link pipe");
    assert_eq!(room.read("work/new"), "new\n");
    assert_eq!(room.read("work/file"), "aft");
    assert_eq!(room.read("work/moved"), "");
}

#[test]
fn au_42_nothing_outside_is_written() {
    let room = Room::new();
    for script in [
        "echo after > $ROOM/outside/file",
        "echo more >> $ROOM/outside/file",
        "perl -e 'truncate($ARGV[0], 0) or die \"$!\\n\"' $ROOM/outside/file",
        "echo new > $ROOM/outside/new",
        "mkdir $ROOM/outside/made",
        "ln -s x $ROOM/outside/symbolic",
        "mkfifo $ROOM/outside/pipe",
        "rm $ROOM/outside/new",
        "rmdir $ROOM/outside/made",
        "mv $ROOM/outside/pipe $ROOM/outside/renamed",
        "echo x > leaf && ln leaf $ROOM/outside/leaf",
        "ln $ROOM/outside/file stolen",
        "mv -T deep $ROOM/outside/carried",
    ] {
        room.denied(script);
    }
    // The last one again, as a rename that nothing replaces by a copy.
    room.denied(&format!("{RENAME} leaf $ROOM/outside/renamed"));
    room.denied(&format!("{RENAME} $ROOM/outside/renamed leaf"));
}

#[test]
fn au_42_a_refusal_changes_nothing() {
    let room = Room::new();
    let output = room.fenced("echo after > $ROOM/outside/file; rm -rf $ROOM/outside $ROOM/home");
    assert!(!output.status.success());
    assert_eq!(room.read("outside/file"), "before\n");
    assert_eq!(room.read("home/data/secret/key"), "before\n");
    assert_eq!(room.read("home/notes/file"), "before\n");
}

#[test]
fn au_42_a_link_out_of_the_workspace_does_not_lead_out() {
    let room = Room::new();
    symlink(room.path("outside"), room.path("work/out")).unwrap();
    symlink(room.path("home/data/secret"), room.path("work/in")).unwrap();
    room.denied("echo after > out/file");
    room.denied("cat in/key");
    room.allowed("cat out/file");
}

#[test]
fn au_42_reading_and_running_goes_on_everywhere_else() {
    let room = Room::new();
    room.allowed("cat $ROOM/outside/file $ROOM/home/notes/file $ROOM/home/data/beside");
    room.allowed("ls $ROOM/outside $ROOM/home/notes /usr > list && test -s list");
    room.allowed("uname > system && cat /etc/passwd > copy && test -s copy");
}

#[test]
fn au_42_standard_streams_are_inherited() {
    let room = Room::new();
    let mut command =
        room.shell("cat; echo talk >&2; echo again > /dev/stdout; cat /proc/self/fd/0");
    command.stdin(Stdio::piped());
    let mut child = room.fence().spawn(command).unwrap().child;
    child.stdin.take().unwrap().write_all(b"data\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"data\nagain\n");
    assert_eq!(output.stderr, b"talk\n");

    // A file that is already open is written wherever it is.
    let mut command = room.shell("echo data");
    command.stdout(fs::File::create(room.path("outside/output")).unwrap());
    let mut child = room.fence().spawn(command).unwrap().child;
    assert!(child.wait().unwrap().success());
    assert_eq!(room.read("outside/output"), "data\n");
}

#[test]
fn au_42_the_usual_devices_work() {
    let room = Room::new();
    room.allowed(
        "echo x > /dev/null && head -c 1 /dev/zero >/dev/null && head -c 4 /dev/urandom > r",
    );
    room.allowed("n=/dev/shm/safepoint-test-$$; echo x > $n && rm $n");
    // A terminal: its device is written, and asked for its settings.
    let room = Room {
        terminals: Terminals::All,
        ..room
    };
    room.allowed(
        "script -qec 'stty -a > settings && echo x > /dev/tty' /dev/null && test -s settings",
    );
}

/// Makes a terminal, tells its name and keeps it until its input ends.
const TERMINAL: &str = r#"exec perl -e 'open(my $m, "+<", "/dev/ptmx") or die;
    my $lock = pack("i", 0); ioctl($m, 0x40045431, $lock) or die;
    my $number = pack("I", 0); ioctl($m, 0x80045430, $number) or die;
    $| = 1; print "/dev/pts/", unpack("I", $number), "\n"; <STDIN>'"#;

#[test]
fn fe_13_terminals_of_others_are_not_read() {
    let room = Room::new();
    let mut holder = room.shell(TERMINAL).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let terminal = lines.next().unwrap().unwrap();
    let read = format!(
        "perl -e 'use Fcntl; sysopen(my $t, \"{terminal}\", O_RDONLY | O_NONBLOCK | O_NOCTTY) or die \"$!\\n\"'"
    );
    room.denied(&read);
    // What everybody reads can be read.
    room.allowed("head -c 1 /dev/zero > r && test -e /dev/stdin");
    let room = Room {
        terminals: Terminals::All,
        ..room
    };
    room.allowed(&read);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
}

#[test]
fn au_42_terminals_of_others_are_not_written_to() {
    let room = Room::new();
    let mut holder = room.shell(TERMINAL).stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let terminal = lines.next().unwrap().unwrap();
    let write = format!("echo x > {terminal}");
    let make = "perl -e 'open(my $m, \"+<\", \"/dev/ptmx\") or die \"$!\\n\"'";
    room.denied(&write);
    room.denied(make);
    // Whoever makes terminals gets at all of them: there is no rule for one that is to come.
    let room = Room {
        terminals: Terminals::All,
        ..room
    };
    room.allowed(make);
    room.allowed(&write);
    let room = Room {
        terminals: Terminals::None,
        ..room
    };
    room.denied(&write);
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
}

#[test]
fn au_42_what_landlock_does_not_cover_is_known() {
    // Not wishes but facts, as docs/confinement.md tells them: when a kernel
    // covers these too, this test says that the page is out of date.
    let room = Room::new();
    let file = room.path("outside/file");
    room.allowed(
        "chmod 600 $ROOM/outside/file && touch -d 2001-01-01T00:00:00Z $ROOM/outside/file",
    );
    let metadata = fs::metadata(&file).unwrap();
    assert_eq!(metadata.mode() & 0o777, 0o600);
    assert_eq!(metadata.mtime(), 978_307_200);
    room.allowed("stat $ROOM/home/data/secret/key && chmod 600 $ROOM/home/data/secret/key");
    let socket = room.path("home/data/secret/socket");
    let listener = UnixListener::bind(socket).unwrap();
    room.allowed(
        "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Peer => \
         \"$ENV{ROOM}/home/data/secret/socket\") or die \"$!\\n\"'",
    );
    listener.accept().unwrap();
    assert_eq!(room.read("outside/file"), "before\n");
}

#[test]
fn au_42_paths_that_are_not_clear_are_refused() {
    let room = Room::new();
    let fence = |path: &str| Fence {
        writable: vec![room.path("work")],
        exact: Vec::new(),
        hidden: vec![path.into()],
        listing: Listing::Everywhere,
        terminals: Terminals::Held,
        supervision: None,
        caches: Caches::None,
    };
    for path in ["relative", "/absent-place/../x/.."] {
        let result = fence(path).spawn(room.shell("echo x > ran"));
        assert!(matches!(result, Err(FenceError::Unclear { .. })), "{path}");
    }
    // A link that leads nowhere yet may lead anywhere later.
    symlink(room.path("later"), room.path("dangling")).unwrap();
    let dangling = room.path("dangling/keys");
    let result = fence(dangling.to_str().unwrap()).spawn(room.shell("echo x > ran"));
    assert!(matches!(result, Err(FenceError::Path { .. })), "{result:?}");
    assert!(!room.path("work/ran").exists());

    let mut relative = fence("/absent-place");
    relative.writable.push("work".into());
    let result = relative.spawn(room.shell("echo x > ran"));
    assert!(
        matches!(result, Err(FenceError::Unclear { .. })),
        "{result:?}"
    );
    assert!(!room.path("work/ran").exists());
    let mut child = fence("/absent-place/x")
        .spawn(room.shell("echo x > ran"))
        .unwrap()
        .child;
    assert!(child.wait().unwrap().success());
    assert_eq!(room.read("work/ran"), "x\n");
}
