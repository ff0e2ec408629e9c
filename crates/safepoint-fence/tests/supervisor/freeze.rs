//! Calls that move names wait while somebody outside relies on where paths lead.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use safepoint_fence::{Freeze, Frozen, Gate};

use super::Room;

/// Moves `a` to `b` and back, or exchanges what they are, for ever.
const MOVES: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
os.mkdir("a"); os.symlink(sys.argv[1], "b")
open("ready", "w").close()
while os.path.exists("ready") and not os.path.exists("over"):
    libc.renameat2(-100, b"a", -100, b"b", 2)
"#;

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().unwrap().is_symlink()
}

/// Whether what is at the path stays what it is for so many looks.
fn stays(path: &Path, looks: usize) -> bool {
    let first = path.symlink_metadata().unwrap().ino();
    (0..looks).all(|_| path.symlink_metadata().unwrap().ino() == first)
}

#[test]
fn fe_05_what_moves_names_waits_while_there_is_a_freeze() {
    let room = Room::new();
    let outside = room.path("outside");
    let command = room.command("python3", &["-c", MOVES, outside.to_str().unwrap()]);
    let gate = Arc::clone(&room.gate) as Arc<dyn Gate>;
    let started = room.fence().spawn_asking(command, gate).unwrap();
    let place = room.path("work/a");
    while !room.path("work/ready").exists() {
        std::thread::yield_now();
    }
    for round in 0..50 {
        // A control: it moves.
        let mut looks = 0;
        while stays(&place, 1000) {
            looks += 1;
            assert!(looks < 100_000, "nothing moves in round {round}");
        }
        let freeze = Freeze::new(
            room.supervision.freezer.as_deref().unwrap(),
            &format!("f{round}"),
        );
        let other = Freeze::new(room.supervision.freezer.as_deref().unwrap(), "other");
        assert_eq!(freeze.begin().unwrap(), Frozen::Yes);
        assert_eq!(other.begin().unwrap(), Frozen::Yes, "another one beside it");
        assert!(stays(&place, 2000), "{}", is_link(&place));
        other.end();
        assert!(stays(&place, 2000), "the first one stands");
        freeze.end();
    }
    fs::write(room.path("work/over"), "").unwrap();
    let supervisor = started.supervisor.unwrap();
    assert!(started.child.wait_with_output().unwrap().status.success());
    supervisor.wait_until_unused();
}

#[test]
fn fe_05_a_freeze_of_the_dead_holds_nobody() {
    let room = Room::new();
    let freezer = room.supervision.freezer.as_deref().unwrap();
    let freeze = Freeze::new(freezer, "left");
    assert_eq!(freeze.begin().unwrap(), Frozen::Yes, "nobody is there");
    let old = std::time::UNIX_EPOCH;
    let left = freezer.join("freeze-left");
    let times = rustix::fs::Timestamps {
        last_access: rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
        last_modification: rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        },
    };
    let flags = rustix::fs::AtFlags::empty();
    rustix::fs::utimensat(rustix::fs::CWD, &left, &times, flags).unwrap();
    assert_eq!(left.metadata().unwrap().modified().unwrap(), old);
    room.run(room.command("sh", &["-c", "mkdir a && mv a b"]))
        .succeeded();
    assert!(room.path("work/b").exists());
    assert!(!left.exists());
    // A control: one that stands holds it.
    freeze.begin().unwrap();
    let command = room.command("sh", &["-c", "mkdir c && mv c d"]);
    let gate = Arc::clone(&room.gate) as Arc<dyn Gate>;
    let started = room.fence().spawn_asking(command, gate).unwrap();
    while !room.path("work/c").exists() {
        std::thread::yield_now();
    }
    assert!(stays(&room.path("work/c"), 20_000));
    freeze.end();
    assert!(started.child.wait_with_output().unwrap().status.success());
    assert!(room.path("work/d").exists());
    // A supervisor that has ended leaves nothing that anybody would wait for.
    assert_eq!(freeze.begin().unwrap(), Frozen::Yes);
    freeze.end();
}

#[test]
fn fe_05_a_program_that_has_ended_and_one_that_spins_are_waited_for_no_longer_than_they_move() {
    let room = Room::new();
    // The first moves a name and ends, and its parent does not look; the parent moves one too,
    // and then does nothing but work.
    let script = r#"
import os
if os.fork() == 0:
    os.mkdir("a"); os.rename("a", "b"); os._exit(0)
while not os.path.exists("b"): pass
os.rename("b", "c")
open("ready", "w").close()
while not os.path.exists("over"): pass
"#;
    let command = room.command("python3", &["-c", script]);
    let gate = Arc::clone(&room.gate) as Arc<dyn Gate>;
    let started = room.fence().spawn_asking(command, gate).unwrap();
    while !room.path("work/ready").exists() {
        std::thread::yield_now();
    }
    let freeze = Freeze::new(room.supervision.freezer.as_deref().unwrap(), "f");
    assert_eq!(freeze.begin().unwrap(), Frozen::Yes);
    freeze.end();
    fs::write(room.path("work/over"), "").unwrap();
    assert!(started.child.wait_with_output().unwrap().status.success());
}
