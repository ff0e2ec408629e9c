//! Killed at any instant: what was acknowledged is there, all else is as if it had never been
//! begun, and whoever comes next brings to its end what was cut off.
//!
//! `SAFEPOINT_PROGRESS_ROUNDS` says how often the loads are killed.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod story;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use safepoint_model::WorkspaceId;
use safepoint_progress::state::State;
use safepoint_progress::{Created, FAULT_POINTS, ProgressError};
use safepoint_store::StoreError;
use safepoint_trail::TrailError;
use story::{all_delivered_in_order, emit_without_move, of_kind, open};
use testkit::{Database, Room, Seeded, on_every_store};

/// The example that cargo builds beside the tests.
fn worker() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let path = here.ancestors().nth(2).unwrap().join("examples/worker");
    let missing = "run all tests with `cargo test`";
    assert!(path.is_file(), "no {}: {missing}", path.display());
    path
}

fn spawn(room: &Room, words: &[&str], fault: &str) -> Child {
    Command::new(worker())
        .args([&room.address(), &room.path().display().to_string()])
        .args(words)
        .env("SAFEPOINT_FAULT", fault)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

/// Runs to its end, and returns the lines and the signal that ended it.
fn run(room: &Room, words: &[&str], fault: &str) -> (Vec<String>, Option<i32>) {
    let mut child = spawn(room, words, fault);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let lines = lines.map(Result::unwrap).collect();
    (lines, child.wait().unwrap().signal())
}

fn begin(room: &Room, workers: usize) -> Vec<Created> {
    let (lines, signal) = run(room, &["begin", &workers.to_string()], "");
    assert_eq!(signal, None);
    lines.iter().map(|line| created(line)).collect()
}

fn created(line: &str) -> Created {
    let (id, token) = line.split_once(' ').unwrap();
    Created {
        workspace_id: id.parse().unwrap(),
        token: token.to_owned(),
    }
}

/// What the processes in one workspace were told is safe.
#[derive(Default)]
struct Acknowledged {
    lines: BTreeMap<String, Vec<String>>,
    /// How many processes were killed there: each may have left one more, of each sort.
    killed: BTreeMap<String, usize>,
}

impl Acknowledged {
    fn add(&mut self, id: &WorkspaceId, lines: &[String], killed: bool) {
        let known = self.lines.entry(id.to_string()).or_default();
        known.extend_from_slice(lines);
        *self.killed.entry(id.to_string()).or_default() += usize::from(killed);
    }
}

/// Recovers, and checks everything that may be relied upon.
#[track_caller]
fn check(room: &Room, all: &[Created], acknowledged: &Acknowledged, when: &str) {
    let progress = open(room, 1);
    let recovered = progress.recover().unwrap();
    assert_eq!(recovered.workspaces_failed, 0, "{when}: {recovered:?}");
    let again = progress.recover().unwrap();
    let left = (again.signals_requeued, again.transitions_made);
    assert_eq!(left, (0, 0), "{when}");
    let trail = room.trail();
    assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None, "{when}");
    for made in all {
        let id = &made.workspace_id;
        let verified = progress.verify(id).unwrap();
        assert!(verified.valid, "{when}: {verified:?}");
        let records = progress.log(id).unwrap().into_iter();
        let records: Vec<String> = records.map(|it| format!("record {}", it.id)).collect();
        let signals = progress.signals(id).unwrap().into_iter();
        let signals: Vec<String> = signals
            .filter(|it| it.from == *id && it.kind.as_str() == "escalation")
            .map(|it| format!("signal {}", it.id))
            .collect();
        let empty = Vec::new();
        let told = acknowledged.lines.get(id.as_str()).unwrap_or(&empty);
        for line in told {
            let there = records.contains(line) || signals.contains(line);
            assert!(there, "{when}: {line} was acknowledged");
        }
        let extra = records.len() + signals.len() - told.len();
        let killed = acknowledged.killed.get(id.as_str()).copied();
        assert!(extra <= killed.unwrap_or(0), "{when}: {extra} more");
    }
    all_delivered_in_order(room, &trail, &all[0].workspace_id, when);
}

fn work<'a>(made: &'a Created, count: &'a str) -> [&'a str; 4] {
    ["work", made.workspace_id.as_str(), &made.token, count]
}

on_every_store! {
    fn pr_40_killed_at_every_fault_point(room: Room) {
        let all = begin(&room, 2);
        let mut acknowledged = Acknowledged::default();
        let below = safepoint_trail::fault_points().filter(|point| point.starts_with("write.") || point.starts_with("witness."));
        let mut passed = 0;
        for point in FAULT_POINTS.into_iter().chain(below) {
            if point == "progress.recover.moved" {
                continue; // needs a move that is missing: see below
            }
            let (command, nth): (Vec<&str>, u64) = match point.split('.').nth(1).unwrap() {
                "create" => (vec!["begin", "1"], 2),
                "move" => (vec!["move", all[2].workspace_id.as_str(), if passed % 2 == 0 { "blocked" } else { "suspended" }], 1),
                "recover" => (vec!["recover"], 1),
                _ => (work(&all[1], "9").to_vec(), 4),
            };
            let nth = if point.starts_with("progress.signal.acknowledged") { 2 } else { nth };
            let (lines, signal) = run(&room, &command, &format!("{point}:{nth}"));
            assert_eq!(signal, Some(9), "{point} was never passed");
            if command[0] == "work" {
                acknowledged.add(&all[1].workspace_id, &lines, true);
            }
            check(&room, &all, &acknowledged, point);
            // Work goes on from the head.
            let (lines, signal) = run(&room, &work(&all[1], "1"), "");
            assert_eq!((lines.len(), signal), (1, None), "{point}");
            acknowledged.add(&all[1].workspace_id, &lines, false);
            passed += 1;
        }
        assert_eq!(passed, FAULT_POINTS.len() - 1 + 7);
        check(&room, &all, &acknowledged, "at the end");
        // Whoever came next saw that somebody had been cut off.
        assert!(of_kind(&room, &room.trail(), "recovery_completed").len() > 3 * passed);
    }

    fn pr_40_killed_at_random_under_load(room: Room) {
        let rounds = rounds(5);
        let all = begin(&room, 4);
        let random = Seeded::new(2026);
        let mut acknowledged = Acknowledged::default();
        for round in 0..rounds {
            let mut children: Vec<_> = all[1..].iter().map(|made| spawn(&room, &work(made, "0"), "")).collect();
            // All of them at one moment, when the first has been told of some random number.
            let mut first = BufReader::new(children[0].stdout.take().unwrap()).lines();
            let mut told = vec![Vec::new(); 4];
            for _ in 0..1 + random.next() % 40 {
                told[0].push(first.next().unwrap().unwrap());
            }
            for child in &mut children {
                child.kill().unwrap();
            }
            told[0].extend(first.map_while(Result::ok));
            for (child, told) in children.iter_mut().zip(&mut told).skip(1) {
                told.extend(BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok));
            }
            for ((mut child, made), told) in children.into_iter().zip(&all[1..]).zip(told) {
                assert_eq!(child.wait().unwrap().signal(), Some(9));
                acknowledged.add(&made.workspace_id, &told, true);
            }
            // The recovery is killed too, somewhere, and done again by another.
            let points = ["progress.recover.verified", "progress.recover.compared", "progress.recover.lined_up", "progress.recover.delivered", "write.changed", "write.sealed", "write.committed", "write.durable"];
            let point = points[random.next() as usize % points.len()];
            assert_eq!(run(&room, &["recover"], point).1, Some(9), "{point}");
            check(&room, &all, &acknowledged, &format!("round {round}, recovery killed at {point}"));
        }
    }
}

#[test]
fn pr_40_a_missing_move_is_made_once_though_its_recovery_is_killed() {
    let room = Room::new(Database::Sqlite);
    let all = begin(&room, 1);
    let id = &all[1].workspace_id;
    run(&room, &work(&all[1], "3"), "");
    emit_without_move(&room, id, "complete");
    let (_, signal) = run(&room, &["recover"], "progress.recover.moved");
    assert_eq!(signal, Some(9));
    let progress = open(&room, 3);
    assert_eq!(progress.workspace(id).unwrap().state, State::Integrating);
    let again = progress.recover().unwrap();
    assert_eq!((again.transitions_made, again.signals_requeued), (0, 1));
    assert!(progress.verify(id).unwrap().valid);
    all_delivered_in_order(&room, &room.trail(), &all[0].workspace_id, "moved");
}

#[test]
fn pr_41_a_torn_last_write_is_not_tampering() {
    for cut in [1, 100, 4_119, 9_000] {
        let room = Room::new(Database::Sqlite);
        let all = begin(&room, 1);
        // Killed when the last commit was written, but was not yet known to be on disk.
        let (lines, signal) = run(&room, &work(&all[1], "9"), "write.committed:9");
        assert_eq!(signal, Some(9));
        let log = room.path().join("store.db-wal");
        let length = std::fs::metadata(&log).unwrap().len();
        let file = std::fs::File::options().write(true).open(&log).unwrap();
        file.set_len(length - cut).unwrap(); // the power went while it was written
        let mut acknowledged = Acknowledged::default();
        acknowledged.add(&all[1].workspace_id, &lines, true);
        check(&room, &all, &acknowledged, &format!("cut by {cut}"));
    }
}

#[test]
fn pr_40_a_full_disk_is_an_error_and_loses_nothing() {
    let room = Room::new(Database::Sqlite);
    let Some(mount) = Mount::over(&room, "3m") else {
        eprintln!("not run: only root can mount a file system that is full soon");
        return;
    };
    let mut acknowledged = Acknowledged::default();
    let all = begin(&room, 1);
    let id = &all[1].workspace_id;
    {
        let progress = open(&room, 2);
        let mut error = None;
        for _ in 0..2_000 {
            let parent = progress.head(id).unwrap();
            let mut body = story::body(parent.as_ref());
            body["payload"]["content"] = "full ".repeat(1_000).into();
            match progress.checkpoint(id, &all[1].token, body.to_string().as_bytes(), None, None) {
                Ok(record) => {
                    let line = format!("record {}", record.unwrap().id);
                    acknowledged.add(id, &[line], false);
                }
                Err(found) => {
                    error = Some(found);
                    break;
                }
            }
        }
        let full = matches!(
            error,
            Some(
                ProgressError::Store(StoreError::Full { .. })
                    | ProgressError::Trail(TrailError::Store(StoreError::Full { .. }))
            )
        );
        assert!(full, "{error:?}");
        let told = acknowledged.lines.get(id.as_str()).unwrap().len();
        assert!(told > 10, "{told}");
        assert_eq!(
            progress.log(id).unwrap().len(),
            told,
            "it can still be read"
        );
    }
    mount.grow("16m");
    check(&room, &all, &acknowledged, "after a full disk");
    let (lines, signal) = run(&room, &work(&all[1], "2"), "");
    assert_eq!((lines.len(), signal), (2, None));
}

fn rounds(few: usize) -> usize {
    std::env::var("SAFEPOINT_PROGRESS_ROUNDS").map_or(few, |text| text.parse().unwrap())
}

/// A small file system over the directory of a room.
struct Mount(PathBuf);

impl Mount {
    /// `None` where the test may not mount: it needs root.
    fn over(room: &Room, size: &str) -> Option<Self> {
        let me = Command::new("id").arg("-u").output().unwrap().stdout;
        if me != b"0\n" {
            return None;
        }
        let mount = Self(room.path().to_owned());
        mount.run(&[
            "-t",
            "tmpfs",
            "-o",
            &format!("size={size},mode=700"),
            "tmpfs",
        ]);
        Some(mount)
    }

    fn grow(&self, size: &str) {
        self.run(&["-o", &format!("remount,size={size}")]);
    }

    fn run(&self, words: &[&str]) {
        let status = Command::new("mount").args(words).arg(&self.0).status();
        assert!(status.unwrap().success(), "mount {words:?}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a failing test may still have files open here.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
