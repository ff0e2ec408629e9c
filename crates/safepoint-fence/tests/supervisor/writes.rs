//! Who wrote what.

use std::os::unix::fs::PermissionsExt;

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

#[test]
fn fe_05_a_guarded_name_is_not_written_however_it_is_reached() {
    let ways = [
        "echo x > conf/settings",
        "echo x >> conf/settings",
        "rm -f conf/settings",
        "mv conf/settings taken",
        "mv file conf/settings",
        "ln -f file conf/settings",
        "ln -s ../file conf/later",
        "ln conf/settings other; echo x > other",
        "ln -s conf short; echo x > short/settings",
        "ln -s conf/settings short; echo x > short",
        "mv conf moved; echo x > moved/settings",
        "cp -r conf moved; echo x > moved/settings; mv conf old; mv moved conf",
        "ln -s deep absent",
        "mkdir x; touch x/settings; mv x absent",
        "mkdir absent; echo x > absent/settings",
        "chmod 777 conf/settings",
        "truncate -s 0 conf/settings",
        "echo x > real/target",
        "mkdir -p hooks/deep; echo x > hooks/deep/new",
    ];
    for script in ways {
        let mut room = Room::new();
        for directory in ["work/conf", "work/real", "work/hooks"] {
            fs::create_dir(room.path(directory)).unwrap();
        }
        fs::write(room.path("work/conf/settings"), "before\n").unwrap();
        fs::write(room.path("work/real/target"), "before\n").unwrap();
        std::os::unix::fs::symlink("../real/target", room.path("work/conf/link")).unwrap();
        let names = [
            "conf/settings",
            "conf/later",
            "conf/link",
            "absent/settings",
            "hooks",
        ];
        room.supervision.guarded.names = names.map(|it| room.path("work").join(it)).into();
        let ran = room.shell(&format!("{script}; true"));
        for (place, content) in [("conf/settings", "before\n"), ("real/target", "before\n")] {
            let path = room.path("work").join(place);
            assert_eq!(fs::read_to_string(&path).unwrap(), content, "{script}");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        }
        for absent in ["absent/settings", "conf/later", "hooks/deep"] {
            let found = room.path("work").join(absent).symlink_metadata();
            assert!(found.is_err(), "{script}: {absent}");
        }
        let is_told = |it: &Refusal| matches!(it, Refusal::Outside(path) if path.starts_with(room.path("work")));
        assert!(
            ran.seen.refused.iter().any(is_told),
            "{script}: {:?}",
            ran.seen
        );
        // A control: what is not guarded, beside it; and what was released.
        let all = "echo x > conf/notes; mkdir -p absent; echo x > absent/notes; echo x > file";
        room.shell(all).succeeded();
        room.supervision.guarded.released = vec![room.path("work/conf/settings")];
        room.shell("echo y > conf/settings").succeeded();
        assert_eq!(
            fs::read_to_string(room.path("work/conf/settings")).unwrap(),
            "y\n"
        );
    }
}
