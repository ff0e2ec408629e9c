//! What the fence costs a line is most of all the calls that are handed over. Times depend on the
//! machine (`benches/fence-cost` measures them); the number of these calls does not.

use std::time::{Duration, SystemTime};

use super::*;

/// How many calls a command hands over.
fn calls(room: &Room, command: Command) -> u64 {
    let started = room.fence().spawn(command).unwrap();
    let supervisor = started.supervisor.unwrap();
    let output = started.child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    supervisor.wait_until_unused();
    supervisor.count_calls()
}

#[test]
fn fe_50_what_only_reads_hands_no_call_over() {
    for script in [
        "true",
        "cat file; head -n 1 file; wc -l < file",
        "ls -aR .; ls -a /etc | wc -l",
        "grep -rn before . | sort | uniq -c",
        "find . -type f -newermt 2000-01-01 -exec wc -c {} +",
        "test -e file && echo \"$(cat file)\" && pwd",
        "(cat file & wait); for i in 1 2 3; do true; done | cat",
    ] {
        let room = Room::new();
        let found = calls(&room, room.command("/bin/sh", &["-c", script]));
        assert_eq!(found, 0, "{script}");
    }
}

#[test]
fn fe_50_what_writes_hands_over_one_call_for_each_name() {
    for (script, expected) in [
        ("echo x > new", 1),
        ("echo x > new; rm new", 2),
        ("cat file 2> /dev/null", 1),
        ("mv file other", 1),
        ("mkdir made", 1),
    ] {
        let room = Room::new();
        let found = calls(&room, room.command("/bin/sh", &["-c", script]));
        assert_eq!(found, expected, "{script}");
    }
}

#[test]
fn fe_50_git_status_hands_over_three_calls_however_many_files_there_are() {
    let room = Room::new();
    let git = |arguments: &[&str]| {
        let mut command = room.command("git", arguments);
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            command.env(name, "/dev/null");
        }
        command
    };
    // Files of the same moment as the index are read again, and the index is written.
    let old = SystemTime::UNIX_EPOCH + Duration::from_hours(24 * 365 * 30);
    for number in 0..100 {
        let path = room.path(&format!("work/deep/{number}"));
        fs::write(&path, "content\n").unwrap();
        fs::File::open(&path).unwrap().set_modified(old).unwrap();
    }
    for arguments in [&["init", "--quiet"][..], &["add", "deep"]] {
        assert!(git(arguments).status().unwrap().success());
    }
    // `/dev/null`, which git opens in case a standard stream is closed, the lock of the index, and
    // its removal.
    let found = calls(&room, git(&["status", "--short"]));
    assert!((1..=3).contains(&found), "{found}");
}
