//! How fast records are made, beside what the machine itself can do, and whether long chains
//! stay as fast as short ones.
//!
//! `cargo bench -p safepoint-progress --bench records [-- single|group|chain|recovery]`, with
//! `SAFEPOINT_BENCH_SAMPLES` for what is timed one by one, `SAFEPOINT_BENCH_RECORDS` for the long
//! chain, `SAFEPOINT_BENCH_ENTRIES` for the store that is recovered and `SAFEPOINT_BENCH_DIR` for
//! the disk to measure. The long ones run in a RAM file system where there is one: what grows with
//! a chain would be work, not waiting for the disk.
//!
//! What is compared runs in turns, so that both have the same disk and the same neighbours, and
//! medians are compared. Beside the time that passed stands the time that the processors worked
//! for it: that does not depend on what else the machine has to do.
//!
//! The agent's account of itself is one that nobody disagrees with: where they disagree, a record
//! has one more entry.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark reads clocks and writes files"
)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use safepoint_model::RecordId;
use safepoint_progress::record::Record;
use safepoint_progress::taxonomy::Taxonomy;
use safepoint_progress::{Beginning, Created, Given, Progress};
use safepoint_store::{Blobs, Location, Options, Store};
use safepoint_trail::{Actor, LostStore, Surroundings, Trail};
use serde_json::json;
use testkit::{RealClock, Seeded};

fn main() {
    let base = std::env::var_os("SAFEPOINT_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let number =
        |name: &str, usual: usize| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let memory = PathBuf::from("/dev/shm");
    let memory = if memory.is_dir() { &memory } else { &base };
    let samples = number("SAFEPOINT_BENCH_SAMPLES", 1_000).max(1);
    if run("single") {
        single(&base, samples);
        work_of_one(memory, samples);
    }
    if run("group") {
        group(&base, samples);
    }
    if run("chain") {
        chain(memory, number("SAFEPOINT_BENCH_RECORDS", 100_000));
    }
    if run("recovery") {
        recovery(memory, number("SAFEPOINT_BENCH_ENTRIES", 1_000_000));
    }
}

fn open(room: &Path) -> (Progress, Trail) {
    let location = Location::Sqlite(room.join("store.db"));
    let store = Arc::new(Store::open(&location, Options::default()).unwrap());
    let around = Surroundings {
        keys: room.join("keys"),
        witnesses: room.join("witness"),
        blobs: Blobs::new(room.join("blobs")),
        clock: Arc::new(RealClock),
        entropy: Arc::new(Seeded::new(1)),
        lost_store: LostStore::Refuse,
    };
    let trail = Trail::open(store, &around).unwrap();
    let entropy = Arc::new(Seeded::new(2));
    let progress = Progress::open(trail.clone(), Arc::new(RealClock), entropy).unwrap();
    (progress, trail)
}

/// A run with so many workers.
fn begin(progress: &Progress, workers: usize) -> Vec<Created> {
    let given = Given {
        directive: Some("work"),
        ..Given::default()
    };
    let by: Actor = "user:ada".parse().unwrap();
    let empty = Taxonomy::empty();
    let root = progress
        .create(&Beginning::Root(&empty), &given, &by)
        .unwrap();
    let below = Beginning::Below(&root.workspace_id, "worker".parse().unwrap());
    (0..workers)
        .map(|_| progress.create(&below, &given, &by).unwrap())
        .collect()
}

fn body(parent: Option<&RecordId>, status: &str) -> Vec<u8> {
    let body = json!({
        "type": "artifact",
        "payload": {
            "files_changed": ["src/lib.rs", "src/main.rs"],
            "content": "what was done, in a sentence or two. ".repeat(10),
            "artifacts": ["file:src/lib.rs"],
        },
        "intent": "because it was asked for", "parent": parent,
        "status": status, "confidence": "medium",
        "resource_usage": {"tokens_consumed": 1200},
    });
    body.to_string().into_bytes()
}

/// One record upon `parent`, and how long that took.
fn record(progress: &Progress, to: &Created, parent: Option<&RecordId>) -> (Record, Duration) {
    let body = body(parent, "provisional");
    let start = Instant::now();
    let made = progress
        .checkpoint(&to.workspace_id, &to.token, &body, None, None)
        .unwrap()
        .unwrap();
    (made, start.elapsed())
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// What the processors worked for this process so far. Counted in hundredths of a second.
fn worked() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// How long something took, and how long the processors worked for it.
fn timed<T>(what: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (start, before) = (Instant::now(), worked());
    let done = what();
    (done, start.elapsed(), worked().saturating_sub(before))
}

fn verdict(holds: bool) -> &'static str {
    if holds { "met" } else { "MISSED" }
}

/// One durable record by one writer, beside a raw write and `fdatasync` of as many bytes.
fn single(base: &Path, samples: usize) {
    let room = tempfile::tempdir_in(base).unwrap();
    let (progress, trail) = open(room.path());
    let worker = &begin(&progress, 1)[0];
    let before = trail.head().unwrap().size();
    let (first, _) = record(&progress, worker, None);
    // What it comes to: the record, and the entries that tell of it.
    let mut bytes = first.to_canonical().unwrap();
    let after = trail.head().unwrap().size();
    for place in before..after {
        bytes.extend(trail.find(&place.to_string()).unwrap().to_leaf());
    }
    let entries = after - before;
    println!("a record and its {entries} entries: {} bytes", bytes.len());
    let mut file = File::create(room.path().join("raw")).unwrap();
    let mut raw = || {
        let start = Instant::now();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        start.elapsed()
    };
    let mut head = first.id;
    let mut ours = || {
        let (made, took) = record(&progress, worker, Some(&head));
        head = made.id;
        took
    };
    for in_a_row in [1, 50] {
        let (mut raws, mut all) = (Vec::new(), Vec::new());
        for _ in 0..samples.div_ceil(in_a_row) {
            raws.extend((0..in_a_row).map(|_| raw()));
            all.extend((0..in_a_row).map(|_| ours()));
        }
        let (raw, ours) = (median(&mut raws), median(&mut all));
        let ratio = ours.as_secs_f64() / raw.as_secs_f64();
        let verdict = verdict(ratio <= 1.5);
        println!(
            "in turns of {in_a_row:<2} raw write + fdatasync {raw:?}, one durable record {ours:?}: {ratio:.2}× (at most 1.5×: {verdict})"
        );
    }
}

/// What a record costs besides the disk.
fn work_of_one(memory: &Path, samples: usize) {
    let room = tempfile::tempdir_in(memory).unwrap();
    let (progress, _) = open(room.path());
    let worker = &begin(&progress, 1)[0];
    let count = 10 * samples;
    let (_, took, worked) = timed(|| chained(&progress, worker, count));
    let each = |all: Duration| all / count as u32;
    println!(
        "without a disk: {:?} a record, of which the processor works {:?}",
        each(took),
        each(worked)
    );
}

/// A chain of so many records.
fn chained(progress: &Progress, worker: &Created, count: usize) {
    let mut head = None;
    for _ in 0..count {
        head = Some(record(progress, worker, head.as_ref()).0.id);
    }
}

/// As many chains as there are workers, all at once.
fn chained_at_once(progress: &Progress, workers: &[Created], each: usize) {
    std::thread::scope(|scope| {
        for worker in workers {
            scope.spawn(move || chained(progress, worker, each));
        }
    });
}

/// Eight writers, each in a workspace of its own, beside one.
fn group(base: &Path, samples: usize) {
    let each = samples.div_ceil(4);
    let rate = |writers: usize| {
        let room = tempfile::tempdir_in(base).unwrap();
        let (progress, _) = open(room.path());
        let workers = begin(&progress, writers);
        let ((), took, worked) = timed(|| chained_at_once(&progress, &workers, each));
        let count = (writers * each) as f64;
        (count / took.as_secs_f64(), worked.as_secs_f64() / count)
    };
    let (mut ones, mut eights): (Vec<_>, Vec<_>) = (0..5).map(|_| (rate(1), rate(8))).unzip();
    let middle = |rates: &mut Vec<(f64, f64)>| {
        rates.sort_by(|one, other| one.0.total_cmp(&other.0));
        rates[rates.len() / 2]
    };
    let ((one, lonely), (eight, together)) = (middle(&mut ones), middle(&mut eights));
    let (ratio, lonely, together) = (eight / one, lonely * 1e6, together * 1e6);
    let verdict = verdict(ratio >= 4.0);
    println!(
        "durable records: 1 writer {one:.0}/s ({lonely:.0}µs of work each), 8 writers {eight:.0}/s ({together:.0}µs): {ratio:.2}× (at least 4×: {verdict})"
    );
}

/// What is done with a chain, when it is short and when it is long.
fn chain(base: &Path, records: usize) {
    let room = tempfile::tempdir_in(base).unwrap();
    let (progress, _) = open(room.path());
    let worker = &begin(&progress, 1)[0];
    let id = &worker.workspace_id;
    let body = body(None, "final");
    let made = progress.checkpoint(id, &worker.token, &body, None, None);
    let mut head = made.unwrap().unwrap().id;
    let mut grow = |count: usize| {
        let mut times: Vec<Duration> = (0..count)
            .map(|_| {
                let (made, took) = record(&progress, worker, Some(&head));
                head = made.id;
                took
            })
            .collect();
        let last = times.len().saturating_sub(1_000);
        median(&mut times[last..])
    };
    let look = |length: usize| {
        let time = |times: usize, what: &dyn Fn()| {
            let start = Instant::now();
            (0..times).for_each(|_| what());
            start.elapsed() / times as u32
        };
        let head = time(1_000, &|| drop(progress.head(id).unwrap()));
        let last = time(1_000, &|| drop(progress.newest_final(id).unwrap()));
        let verify = time(1, &|| assert!(progress.verify(id).unwrap().valid));
        [head, last, verify / length as u32]
    };
    let short_create = grow(2_000);
    let short = look(2_001);
    let start = Instant::now();
    let long_create = grow(records - 2_000);
    println!("{} records in {:?}", records - 2_000, start.elapsed());
    let long = look(records + 1);
    for (place, what) in ["create", "head", "final", "verify, per record"]
        .iter()
        .enumerate()
    {
        let (short, long) = match place {
            0 => (short_create, long_create),
            _ => (short[place - 1], long[place - 1]),
        };
        let ratio = long.as_secs_f64() / short.as_secs_f64();
        let verdict = verdict(ratio <= 1.5);
        println!(
            "{what:<19} 2000 records {short:?}, {records} records {long:?}: {ratio:.2}× (at most 1.5×: {verdict})"
        );
    }
}

/// A full recovery of a store with so many entries.
fn recovery(base: &Path, entries: usize) {
    let room = tempfile::tempdir_in(base).unwrap();
    let (progress, trail) = open(room.path());
    let workers = begin(&progress, 8);
    chained_at_once(&progress, &workers, entries / (3 * 8));
    let size = trail.head().unwrap().size();
    let (verified, took, worked) = timed(|| trail.verify(|_| {}).unwrap());
    assert_eq!(verified.first_bad, None);
    println!("the trail alone, {size} entries: {took:?}, {worked:?} of work");
    let mut times: Vec<Duration> = (0..3)
        .map(|_| {
            let (recovered, took, worked) = timed(|| progress.recover().unwrap());
            assert_eq!(recovered.workspaces_failed, 0);
            println!("recovery of {size} entries: {took:?}, {worked:?} of work");
            took
        })
        .collect();
    let verdict = verdict(median(&mut times) <= Duration::from_secs(5));
    println!("recovery, at most 5 s: {verdict}");
    let marks = room.path().join("present");
    let presence = safepoint_progress::Presence::enter(&marks, &Seeded::new(3)).unwrap();
    let start = Instant::now();
    (0..1_000).for_each(|_| drop(progress.resume(&presence).unwrap()));
    println!("resuming with nothing to do: {:?}", start.elapsed() / 1_000);
}
