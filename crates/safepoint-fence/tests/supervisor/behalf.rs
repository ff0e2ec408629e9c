//! Calls that the supervisor makes on behalf of the caller.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

/// A room in which these names outside were allowed, and no others.
fn room_with(given: &[&str]) -> Room {
    let room = Room::new();
    let given = given.iter().map(|name| room.path("outside").join(name));
    *room.gate.given.lock().unwrap() = given.collect();
    room
}

#[test]
fn fe_01_what_was_allowed_outside_is_written_and_nothing_beside_it() {
    for script in [
        "echo x > ../outside/given && echo y >> ../outside/given",
        "echo x > ../outside/file && echo y > ../outside/given && mv ../outside/given ../outside/file",
        "rm ../outside/file && echo x > ../outside/file && truncate -s 1 ../outside/file",
        "cp -p file ../outside/given && chmod 600 ../outside/given && touch ../outside/given",
        "ln -s file ../outside/given && rm ../outside/given",
        "mkdir ../outside/given && cp -r . ../outside/given/all && rm -r ../outside/given",
        "mv file ../outside/given && mv ../outside/given file",
        "perl -e 'truncate(\"../outside/file\", 0) or die'",
        "exec 3> ../outside/given && sh -c 'echo inherited >&3'",
    ] {
        room_with(&["file", "given"]).shell(script).succeeded();
        // Control: without leave none of it works.
        Room::new().shell(script).failed();
    }
    for script in [
        "echo x > ../outside/other",
        "mv ../outside/given ../outside/other",
        "mv ../outside/file ../outside/other",
        "mkdir ../outside/d",
        "ln ../outside/given linked",
        "mkfifo ../outside/given2",
        // What was allowed was the name, and not what a link leads to.
        "rm ../outside/given && ln -s file ../outside/given && echo x > ../outside/given",
    ] {
        let room = room_with(&["given"]);
        fs::write(room.path("outside/given"), "given\n").unwrap();
        let ran = room.shell(script);
        assert!(!ran.output.status.success(), "{script}");
        assert_eq!(fs::read(room.path("outside/file")).unwrap(), b"before\n");
        assert!(!room.path("outside/other").exists() && !room.path("outside/d").exists());
    }
}

#[test]
fn fe_04_nothing_hidden_is_written_on_behalf_whatever_was_allowed() {
    for script in [
        "echo x > ../registry/new",
        "echo x > ../registry/kept",
        "rm ../registry/kept",
        "mv ../registry ../outside/registry",
        "mv file ../registry/kept",
        "chmod 777 ../registry/kept",
        "mkdir ../registry/d",
        "ln -s file ../registry/link",
    ] {
        let room = Room::new();
        fs::write(room.path("registry/kept"), "kept\n").unwrap();
        *room.gate.given.lock().unwrap() = vec![room.path("")];
        assert!(!room.shell(script).output.status.success(), "{script}");
        assert_eq!(fs::read(room.path("registry/kept")).unwrap(), b"kept\n");
        for name in ["registry/new", "registry/d", "registry/link"] {
            assert!(room.path(name).symlink_metadata().is_err(), "{script}");
        }
        // Beside it the leave is good.
        room.shell("echo x > ../outside/new && mv ../outside ../moved")
            .succeeded();
    }
}

#[test]
fn fe_02_a_file_that_is_made_on_behalf_is_as_the_caller_would_have_made_it() {
    let room = room_with(&["given"]);
    let script = "umask 027; echo x > ../outside/given; umask 0; python3 -c '
import fcntl, os
name = \"../outside/given\"
for flags, error in [(os.O_CREAT | os.O_EXCL, 17), (os.O_NOFOLLOW, None)]:
    try:
        os.open(name, os.O_WRONLY | flags)
        assert error is None
    except OSError as found:
        assert found.errno == error, found
made = os.open(name, os.O_RDWR | os.O_APPEND)
assert os.get_inheritable(made) is False
assert fcntl.fcntl(made, fcntl.F_GETFL) & os.O_NONBLOCK == 0
os.write(made, b\"y\")
'";
    let seen = room.shell(script).succeeded().seen;
    let made = fs::metadata(room.path("outside/given")).unwrap();
    assert_eq!(made.permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read(room.path("outside/given")).unwrap(), b"x\ny");
    assert_eq!(made.nlink(), 1);
    assert!(seen.written.paths.contains(&room.path("outside/given")));
}

#[test]
fn fe_01_the_kernel_gets_no_call_that_writes_before_it_may_go_on() {
    // The kernel reads a path again, so what was looked at proves nothing. Until a checkpoint is
    // there, calls are made on behalf, or somebody is asked.
    for (script, is_asked) in [
        ("echo x > /dev/null; cat file 2> /dev/null", false),
        ("bash -c 'cat file'; true > /dev/tty || true", false),
        ("echo x > beside/a; rm beside/a; mkdir beside/d", false),
        ("echo x > beside/a; mv beside/a beside/b", false),
        ("mkfifo beside/pipe", true),
        ("echo x > beside/none/a || true", false),
        ("echo x > deep/a", true),
        ("rm ../outside/file || true", true),
        ("mv beside/c deep/c", true),
    ] {
        let room = Room::new();
        fs::create_dir(room.path("work/beside")).unwrap();
        fs::write(room.path("work/beside/c"), "c").unwrap();
        *room.gate.given.lock().unwrap() = vec![room.path("work/beside"), "/dev/null".into()];
        *room.gate.kernel.lock().unwrap() = Some(true);
        room.shell(script).succeeded();
        let asked = *room.gate.kernel_asked.lock().unwrap() > 0;
        assert_eq!(asked, is_asked, "{script}");
        // Where the answer is no, nothing is written.
        let room = Room::new();
        *room.gate.kernel.lock().unwrap() = Some(false);
        room.shell("echo x > deep/new; rm file; mkdir d; mv file deep/file; echo > /dev/null");
        assert!(room.path("work/file").exists());
        assert_eq!(fs::read_dir(room.path("work/deep")).unwrap().count(), 0);
    }
}
