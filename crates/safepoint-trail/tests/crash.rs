//! Killed at any instant: what was acknowledged is there, and the trail verifies.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use safepoint_store::Durability;
use safepoint_trail::TrailError;
use testkit::{Database, Room, Seeded, draft, on_every_store};

/// The example that cargo builds beside the tests.
fn writer() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.ancestors().nth(2).unwrap().join("examples/writer");
    assert!(
        path.is_file(),
        "no {}: run all tests with `cargo test`",
        path.display()
    );
    path
}

fn spawn(room: &Room, name: &str, count: usize, threads: usize, fault: &str) -> Child {
    Command::new(writer())
        .args([&room.address(), &room.path().display().to_string(), name])
        .args([count.to_string(), threads.to_string()])
        .env("SAFEPOINT_FAULT", fault)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a writer has been told is safe: places and ids.
fn acknowledged(child: &mut Child) -> Vec<(u64, String)> {
    let output = BufReader::new(child.stdout.take().unwrap());
    output
        .lines()
        .map(|line| {
            let line = line.unwrap();
            let (seq, id) = line.split_once(' ').unwrap();
            (seq.parse().unwrap(), id.to_owned())
        })
        .collect()
}

/// Everything acknowledged is there, the trail verifies, and it can be written to.
#[track_caller]
fn check(room: &Room, acknowledged: &[(u64, String)], when: &str) {
    let trail = room.trail();
    for (seq, id) in acknowledged {
        let entry = trail.find(&seq.to_string()).expect(when);
        assert_eq!(entry.id.as_str(), id, "{when}");
    }
    assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None, "{when}");
    room.clock.move_by(1_000);
    let entry = trail.append(draft("after", 0), Durability::Sync).unwrap();
    trail.prove(&entry).unwrap();
    assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None, "{when}");
}

on_every_store! {
    fn tr_10_killed_at_every_fault_point(room: Room) {
        let mut seen = Vec::new();
        for point in safepoint_trail::fault_points() {
            // A point of making a trail is passed only in an empty room.
            let fresh;
            let room = if point.starts_with("create.") || point.starts_with("file.") {
                fresh = Room::new(room.database());
                &fresh
            } else {
                &room
            };
            let nth = if point.starts_with("write.") { 3 } else { 1 };
            let mut child = spawn(room, "killed", 20, 1, &format!("{point}:{nth}"));
            let acknowledged = acknowledged(&mut child);
            let status = child.wait().unwrap();
            assert_eq!(status.signal(), Some(9), "{point} was never passed");
            check(room, &acknowledged, point);
            seen.push(point);
        }
        assert_eq!(seen.len(), 11, "{seen:?}");
    }

    fn tr_10_killed_at_random_under_load(room: Room) {
        let rounds = std::env::var("SAFEPOINT_KILLS").map_or(10, |text| text.parse().unwrap());
        let random = Seeded::new(2026);
        let mut safe = Vec::new();
        for round in 0..rounds {
            let mut children: Vec<_> = (0..2)
                .map(|name| spawn(&room, &format!("{round}-{name}"), 0, 4, ""))
                .collect();
            // Kill each after it has acknowledged some random number of entries.
            for child in &mut children {
                let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
                let mut told: Vec<String> = Vec::new();
                for _ in 0..1 + random.next() % 60 {
                    told.push(output.next().unwrap().unwrap());
                }
                child.kill().unwrap();
                told.extend(output.map_while(Result::ok));
                safe.extend(told.iter().map(|line| {
                    let (seq, id) = line.split_once(' ').unwrap();
                    (seq.parse::<u64>().unwrap(), id.to_owned())
                }));
            }
            for mut child in children {
                assert_eq!(child.wait().unwrap().signal(), Some(9));
            }
        }
        check(&room, &safe, "after the kills");
    }

    fn tr_10_many_processes_append_at_once(room: Room) {
        let count = std::env::var("SAFEPOINT_APPENDS").map_or(40, |text| text.parse().unwrap());
        let mut children: Vec<_> = (0..16)
            .map(|name| spawn(&room, &format!("p{name}"), count, 1, ""))
            .collect();
        let mut all = Vec::new();
        for child in &mut children {
            let told = acknowledged(child);
            assert!(child.wait().unwrap().success());
            assert_eq!(told.len(), count);
            // In the order in which they were made.
            assert!(told.is_sorted_by_key(|(seq, _)| *seq));
            all.extend(told);
        }
        all.sort_unstable();
        let places: Vec<u64> = all.iter().map(|(seq, _)| *seq).collect();
        let expected: Vec<u64> = (1..=16 * count as u64).collect();
        assert_eq!(places, expected, "nothing lost, nothing twice");
        // Within a stream, in the order in which its process made them.
        let mut streams: HashMap<String, Vec<u64>> = HashMap::new();
        for entry in room.entries(&room.trail()).iter().skip(1) {
            let body: serde_json::Value = serde_json::from_str(&entry.body).unwrap();
            let numbers = streams.entry(entry.stream.to_string()).or_default();
            numbers.push(body["number"].as_u64().unwrap());
        }
        assert_eq!(streams.len(), 16);
        for numbers in streams.values() {
            assert_eq!(*numbers, (0..count as u64).collect::<Vec<_>>());
        }
        check(&room, &all, "after the race");
    }
}

#[test]
fn tr_04_a_torn_last_write_is_not_tampering() {
    for cut in [1, 23, 100, 4_095, 4_119, 4_120, 8_000] {
        let room = Room::new(Database::Sqlite);
        // Killed with the last commit written, but not yet known to be on disk.
        let mut child = spawn(&room, "torn", 20, 1, "write.committed:9");
        let acknowledged = acknowledged(&mut child);
        assert_eq!(child.wait().unwrap().signal(), Some(9));
        let log = room.path().join("store.db-wal");
        let length = std::fs::metadata(&log).unwrap().len();
        let file = std::fs::File::options().write(true).open(&log).unwrap();
        file.set_len(length - cut).unwrap(); // the power went while it was written
        check(&room, &acknowledged, &format!("cut by {cut}"));
    }
}

#[test]
fn tr_04_a_torn_copy_of_the_head_is_not_tampering() {
    let room = Room::new(Database::Sqlite);
    let trail = room.filled_trail(9);
    let id = trail.key().name().rsplit('/').next().unwrap().to_owned();
    let path = room.witnesses().join(id).join("head");
    let slots = std::fs::read(&path).unwrap();
    let newest = usize::from(!slots.starts_with(trail.head().unwrap().note().as_bytes()));
    drop(trail);
    for torn in [10, 40, 200] {
        let mut bytes = slots.clone();
        let place = newest * 512 + torn;
        bytes.splice(place..place + 100, [b'x'; 100]);
        std::fs::write(&path, &bytes).unwrap();
        let found = room.trail().verify(|_| {}).unwrap();
        assert_eq!((found.first_bad, found.witnessed), (None, 9), "{torn}");
    }
    check(&room, &[], "after the torn copies");
}

#[test]
fn tr_04_hashes_lost_outside_are_made_anew_and_not_tampering() {
    let room = Room::new(Database::Sqlite);
    let trail = room.trail();
    let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
        (0..700).try_for_each(|number| writing.append(draft("s", number)).map(drop))
    });
    added.unwrap();
    let id = trail.key().name().rsplit('/').next().unwrap().to_owned();
    drop(trail);
    let path = |level: u32| room.witnesses().join(&id).join(format!("hashes.{level}"));
    let whole = [
        std::fs::read(path(0)).unwrap(),
        std::fs::read(path(1)).unwrap(),
    ];
    let damages: [&dyn Fn(); 5] = [
        &|| cut(&path(0), 64),
        &|| cut(&path(0), 700 * 32),
        &|| cut(&path(1), 40),
        &|| zero(&path(0), 100 * 32, 32),
        &|| zero(&path(1), 0, 64),
    ];
    for (number, damage) in damages.iter().enumerate() {
        // First by a look at one entry, then by verification, by a proof, and by the next entry.
        damage();
        let trail = room.trail();
        assert!(
            trail.is_genuine(&trail.find("100").unwrap()).unwrap(),
            "{number}"
        );
        drop(trail);
        damage();
        let found = room.trail().verify(|_| {}).unwrap();
        assert_eq!(found.first_bad, None, "{number}");
        damage();
        let trail = room.trail();
        let entry = trail.find("100").unwrap();
        trail.prove(&entry).unwrap();
        drop(trail);
        damage();
        check(&room, &[], &format!("damage {number}"));
        let now = [
            std::fs::read(path(0)).unwrap(),
            std::fs::read(path(1)).unwrap(),
        ];
        for (whole, now) in whole.iter().zip(now) {
            assert!(now.starts_with(whole), "{number} is not mended");
        }
    }
}

fn cut(path: &std::path::Path, bytes: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - bytes.min(length)).unwrap();
}

fn zero(path: &std::path::Path, place: u64, bytes: usize) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&vec![0; bytes], place).unwrap();
}
