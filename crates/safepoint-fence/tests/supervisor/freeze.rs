//! Calls that move names wait while somebody outside relies on where paths lead.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use safepoint_fence::{Freeze, FreezeScope, Frozen, Gate, NameMove, NameMoveStart, find_freeze};

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

/// The names of the workspace must not move.
fn of_room(room: &Room) -> FreezeScope {
    FreezeScope {
        places: vec![room.path("work").canonicalize().unwrap()],
        keeper: None,
    }
}

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
        let freezer = room.supervision.freezer.as_deref().unwrap();
        let freeze = Freeze::new(freezer, &format!("f{round}"));
        let other = Freeze::new(freezer, "other");
        assert_eq!(freeze.begin(&of_room(&room)).unwrap(), Frozen::Yes);
        assert_eq!(
            other.begin(&of_room(&room)).unwrap(),
            Frozen::Yes,
            "another one beside it"
        );
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
    assert_eq!(
        freeze.begin(&of_room(&room)).unwrap(),
        Frozen::Yes,
        "nobody is there"
    );
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
    freeze.begin(&of_room(&room)).unwrap();
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
    assert_eq!(freeze.begin(&of_room(&room)).unwrap(), Frozen::Yes);
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
    assert_eq!(freeze.begin(&of_room(&room)).unwrap(), Frozen::Yes);
    freeze.end();
    fs::write(room.path("work/over"), "").unwrap();
    assert!(started.child.wait_with_output().unwrap().status.success());
}

/// Makes the freeze look as if it had been asked for so long ago.
fn age(freezer: &Path, name: &str, seconds: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    let since = then.duration_since(std::time::UNIX_EPOCH).unwrap();
    let time = rustix::fs::Timespec {
        tv_sec: since.as_secs().try_into().unwrap(),
        tv_nsec: 0,
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    let flags = rustix::fs::AtFlags::empty();
    let path = freezer.join(format!("freeze-{name}"));
    rustix::fs::utimensat(rustix::fs::CWD, &path, &times, flags).unwrap();
}

#[test]
fn fe_05_a_freeze_lasts_while_its_process_lives_and_nobody_goes_on() {
    let room = Room::new();
    let freezer = room.supervision.freezer.as_deref().unwrap();
    let moves = || {
        room.run(room.command("sh", &["-c", "rm -rf a b; mkdir a && mv a b"]))
            .succeeded();
    };
    let own = safepoint_fence::Process::look(std::process::id()).unwrap();
    let attended = FreezeScope {
        keeper: Some((own.pid, own.started)),
        ..of_room(&room)
    };
    // One whose process has ended, or is another by now, ends by itself.
    let gone = FreezeScope {
        keeper: Some((own.pid, own.started + 1)),
        ..of_room(&room)
    };
    let freeze = Freeze::new(freezer, "f");
    assert_eq!(freeze.begin(&gone).unwrap(), Frozen::Yes);
    age(freezer, "f", 60);
    moves();
    // One whose process lives stands, until that goes on with something else.
    assert_eq!(freeze.begin(&attended).unwrap(), Frozen::Yes);
    age(freezer, "f", 60);
    let command = room.command("sh", &["-c", "mkdir c && mv c d"]);
    let gate = Arc::clone(&room.gate) as Arc<dyn Gate>;
    let started = room.fence().spawn_asking(command, gate).unwrap();
    while !room.path("work/c").exists() {
        std::thread::yield_now();
    }
    assert!(stays(&room.path("work/c"), 20_000));
    freeze.let_expire().unwrap();
    assert!(started.child.wait_with_output().unwrap().status.success());
    assert!(room.path("work/d").exists());
    // But not for ever.
    assert_eq!(freeze.begin(&attended).unwrap(), Frozen::Yes);
    age(freezer, "f", safepoint_fence::MAX_FREEZE.as_secs() + 60);
    moves();
}

#[test]
fn fe_05_a_freeze_holds_every_tree_that_can_move_one_of_its_names() {
    let room = Room::new();
    fs::create_dir_all(room.path("work/sub")).unwrap();
    let work = room.path("work").canonicalize().unwrap();
    let freeze = Freeze::new(room.supervision.freezer.as_deref().unwrap(), "f");
    let begin = |place: &Path| {
        let scope = FreezeScope {
            places: vec![place.to_owned()],
            keeper: None,
        };
        assert_eq!(freeze.begin(&scope).unwrap(), Frozen::Yes);
    };
    // Of a place in which it can write, and of one above that.
    for (number, place) in [work.join("sub"), work.parent().unwrap().to_owned()]
        .iter()
        .enumerate()
    {
        begin(place);
        let script = format!("mkdir c{number} && mv c{number} d{number}");
        let command = room.command("sh", &["-c", &script]);
        let gate = Arc::clone(&room.gate) as Arc<dyn Gate>;
        let started = room.fence().spawn_asking(command, gate).unwrap();
        let made = room.path(&format!("work/c{number}"));
        while !made.exists() {
            std::thread::yield_now();
        }
        assert!(stays(&made, 20_000));
        freeze.end();
        assert!(started.child.wait_with_output().unwrap().status.success());
    }
    // A control: a place where it cannot write is none of its business.
    begin(Path::new("/nowhere/at/all"));
    room.run(room.command("sh", &["-c", "mkdir e && mv e f"]))
        .succeeded();
    assert!(room.path("work/f").exists());
    freeze.end();
}

#[test]
fn fe_05_no_name_is_moved_where_a_freeze_stands() {
    let room = Room::new();
    let freezer = room.supervision.freezer.as_deref().unwrap();
    let place = room.path("work");
    let freeze = Freeze::new(freezer, "f");
    assert_eq!(freeze.begin(&of_room(&room)).unwrap(), Frozen::Yes);
    let begin = |place: &Path| NameMove::begin(freezer, &[place.to_owned()]).unwrap();
    for concerned in [place.as_path(), &place.join("deep"), &room.path("")] {
        let scope = match begin(concerned) {
            NameMoveStart::Frozen(freeze) => freeze.scope,
            NameMoveStart::Begun(_) => None,
        };
        assert_eq!(scope, Some(of_room(&room)), "{}", concerned.display());
    }
    let elsewhere = begin(&room.path("outside"));
    assert!(matches!(elsewhere, NameMoveStart::Begun(_)));
    // One that did not begin holds nobody, and one elsewhere holds no freeze here.
    let second = Freeze::new(freezer, "second");
    assert_eq!(second.begin(&of_room(&room)).unwrap(), Frozen::Yes);
    second.end();
    freeze.end();
    assert!(matches!(begin(&place), NameMoveStart::Begun(_)));
}

#[test]
fn fe_05_a_freeze_waits_for_the_end_of_a_move_of_names() {
    let room = Room::new();
    let freezer = room.supervision.freezer.as_deref().unwrap();
    let place = [room.path("work")];
    let begun = NameMove::begin(freezer, &place).unwrap();
    assert!(matches!(begun, NameMoveStart::Begun(_)));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let frozen = Freeze::new(freezer, "f").begin(&of_room(&room)).unwrap();
            (frozen, is_over.load(Ordering::SeqCst))
        });
        while find_freeze(freezer, &place).unwrap().is_none() {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::SeqCst);
        drop(begun);
        assert_eq!(asked.join().unwrap(), (Frozen::Yes, true));
    });
}
