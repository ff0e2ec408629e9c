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
    assert_eq!(paths, ["deep/x".to_owned()].into());
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
