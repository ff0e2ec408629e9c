//! Who wrote what.

use super::*;

fn written(room: &Room, script: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let seen = room.shell(script).succeeded().seen;
    assert!(seen.written.is_complete);
    let work = room.path("work");
    let names = |paths: &BTreeSet<PathBuf>| {
        let inside = paths
            .iter()
            .filter_map(|path| path.strip_prefix(&work).ok());
        inside.map(|path| path.display().to_string()).collect()
    };
    (names(&seen.written.paths), names(&seen.written.trees))
}

#[test]
fn fe_33_every_kind_of_write_is_seen_with_its_path() {
    for (script, paths) in [
        ("echo x > file", &["file"][..]),
        ("echo x >> new", &["new"]),
        ("cat file > /dev/null", &[]),
        ("mkdir made", &["made"]),
        ("rmdir deep", &["deep"]),
        ("rm file", &["file"]),
        ("ln file other", &["other"]),
        ("ln -s nowhere link", &["link"]),
        ("mkfifo pipe", &["pipe"]),
        ("chmod 600 file", &["file"]),
        ("mv file moved", &["file", "moved"]),
        (
            "cd deep && echo x > ../file && echo y > ./a",
            &["deep/a", "file"],
        ),
        ("cp file 'a b'", &["a b"]),
        (
            "python3 -c 'import os; os.truncate(\"file\", 0)'",
            &["file"],
        ),
        (
            "python3 -c 'open(\"file\", \"r+\").write(\"x\")'",
            &["file"],
        ),
        (
            "(echo x > one &) ; sh -c 'echo y > two'; wait",
            &["one", "two"],
        ),
    ] {
        let room = Room::new();
        let (found, trees) = written(&room, script);
        let expected: BTreeSet<String> = paths.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(found, expected, "{script}");
        assert!(trees.is_empty(), "{script}");
    }
}

#[test]
fn fe_33_a_directory_that_is_moved_is_written_as_a_whole() {
    let room = Room::new();
    let (paths, trees) = written(&room, "echo x > deep/x; mv deep moved");
    // What it wrote there moves with it: beside that others may have written.
    assert_eq!(paths, ["deep/x".to_owned(), "moved/x".to_owned()].into());
    assert_eq!(trees, ["deep".to_owned(), "moved".to_owned()].into());
}

#[test]
fn fe_33_links_are_followed_to_what_is_written() {
    let room = Room::new();
    let (paths, _) = written(
        &room,
        "ln -s deep short; ln -s new deep/link; echo x > short/link",
    );
    let expected = ["short", "deep/link", "deep/new"];
    assert_eq!(paths, expected.map(str::to_owned).into());
    let (paths, _) = written(
        &room,
        "exec 7<> file; echo x > /proc/self/fd/7; echo y > /dev/fd/7",
    );
    assert_eq!(paths, ["file".to_owned()].into());
}

#[test]
fn fe_16_writing_outside_is_refused_by_path() {
    let room = Room::new();
    let ran = room.shell("echo x > ../outside/new; rm -f ../outside/file; mkdir $ROOM/outside/d");
    let ran = ran.failed();
    let outside = |name: &str| Refusal::Outside(room.path("outside").join(name));
    assert_eq!(ran.seen.refused, ["d", "file", "new"].map(outside).into());
    assert_eq!(fs::read_dir(room.path("outside")).unwrap().count(), 1);
    assert!(ran.seen.written.paths.is_empty());
}

#[test]
fn fe_01_nothing_is_written_before_it_may_be() {
    let room = Room::new();
    *room.gate.closed_to_writes.lock().unwrap() = Some(room.path("work/deep"));
    let ran =
        room.shell("echo x > deep/new; mkdir deep/d; mv file deep/file; touch deep; echo y > ok");
    ran.succeeded();
    assert_eq!(fs::read_dir(room.path("work/deep")).unwrap().count(), 0);
    assert!(room.path("work/ok").exists() && room.path("work/file").exists());
}

#[test]
fn fe_33_a_path_that_is_hard_to_follow_is_recorded_or_said_to_be_missing() {
    for (script, is_known) in [
        // Without `O_CREAT`, `O_EXCL` follows a link.
        (
            "import os; os.symlink('file', 'l'); os.close(os.open('l', os.O_WRONLY | os.O_EXCL))",
            true,
        ),
        ("open('//proc/self/cwd/file', 'w')", true),
        ("open('/proc//self/./cwd/deep/../file', 'w')", true),
        // Links to what a process finds itself by lead us elsewhere.
        (
            "import os; os.symlink('/proc/self', 'me'); open('me/cwd/file', 'w')",
            false,
        ),
        (
            "import os; os.symlink('file', 'l0'); [os.symlink('l%d' % i, 'l%d' % (i + 1)) for i in range(30)]; open('l30', 'w')",
            true,
        ),
        ("open('./' * 2040 + 'file', 'w')", true),
        // No supervisor of a workspace that cannot be reached from above.
        (
            "import os; os.chdir('deep'); os.symlink('../file', 'f'); os.chmod('..', 0o300); open('f', 'w')",
            true,
        ),
    ] {
        let room = Room::new();
        let seen = room.python(script).succeeded().seen;
        let is_recorded = seen.written.paths.contains(&room.path("work/file"));
        assert!(
            is_recorded || !seen.written.is_complete,
            "{script}: {seen:?}"
        );
        assert_eq!(is_recorded, is_known, "{script}: {seen:?}");
        std::os::unix::fs::symlink("x", room.path("work/y")).unwrap();
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(room.path("work"), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
