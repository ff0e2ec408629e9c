//! How fast the trail is, beside what the machine itself can do.
//!
//! `cargo bench -p safepoint-trail --bench trail [-- single|group|memory|large]`, with `SAFEPOINT_BENCH_ENTRIES=10000000`
//! for the large trail and `SAFEPOINT_BENCH_DIR` for the disk to measure.
//! Ratios are against a raw write and `fdatasync` in the same run.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark reads clocks and writes files"
)]

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use safepoint_model::{Clock, EntryId, next_after};
use safepoint_store::{Blobs, Durability, Flow, Location, Options, Store};
use safepoint_trail::{Draft, LostStore, Query, Surroundings, Trail, TrailError, tree};
use testkit::{RealClock, Seeded};

fn main() {
    let base = std::env::var_os("SAFEPOINT_BENCH_DIR").map_or_else(std::env::temp_dir, Into::into);
    let entries: usize =
        std::env::var("SAFEPOINT_BENCH_ENTRIES").map_or(1_000_000, |text| text.parse().unwrap());
    // `cargo bench -- group` runs that one alone; cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|name| !name.starts_with('-'))
        .collect();
    let run = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if run("single") {
        single_append(&base);
    }
    if run("group") {
        group_commit(&base, 64);
    }
    if run("memory") && Path::new("/dev/shm").is_dir() {
        without_database(Path::new("/dev/shm"));
        on_ram_disk(Path::new("/dev/shm"));
    }
    if run("large") {
        large_trail(&base, entries);
    }
}

fn open(room: &Path) -> Trail {
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
    Trail::open(store, &around).unwrap()
}

fn draft(number: usize) -> Draft {
    Draft {
        stream: format!("ses_{:016}", number % 100).parse().unwrap(),
        actor: "agent:claude-code".parse().unwrap(),
        kind: ["proposed", "judged", "permitted", "done"][number % 4]
            .parse()
            .unwrap(),
        action_id: Some(format!("act_{:016}", number / 4).parse().unwrap()),
        body: serde_json::json!({
            "action": "file.write", "path": format!("src/module_{}.rs", number % 1000),
            "decision": "allow", "bytes": 4096 + number, "reason": "inside the envelope",
        }),
    }
}

/// One durable append by one writer, beside a raw append and `fdatasync` of the
/// same bytes: first each alone, then in turns.
fn single_append(base: &Path) {
    let room = tempfile::tempdir_in(base).unwrap();
    let trail = open(room.path());
    let mut file = File::create(room.path().join("raw")).unwrap();
    let bytes = trail.append(draft(0), Durability::Sync).unwrap().to_leaf();
    let mut raw = || {
        let start = Instant::now();
        file.write_all(&bytes).unwrap();
        file.sync_data().unwrap();
        start.elapsed()
    };
    let ours = |number| {
        let start = Instant::now();
        trail.append(draft(number), Durability::Sync).unwrap();
        start.elapsed()
    };
    let raw_alone: Vec<_> = (0..5_000).map(|_| raw()).collect();
    let ours_alone: Vec<_> = (0..5_000).map(ours).collect();
    let in_turns = (0..5_000).map(|number| (raw(), ours(number)));
    let (raw_in_turn, ours_in_turn): (Vec<_>, Vec<_>) = in_turns.unzip();
    compare("alone", raw_alone, ours_alone);
    compare("in turns", raw_in_turn, ours_in_turn);
}

fn compare(how: &str, mut raw: Vec<Duration>, mut ours: Vec<Duration>) {
    let (raw, raw_mean) = summary(&mut raw);
    let (ours, ours_mean) = summary(&mut ours);
    println!("raw write + fdatasync, {how:<9}       median {raw:?}, mean {raw_mean:?}");
    println!(
        "one durable append, {how:<9}          median {ours:?} ({:.2}×), mean {ours_mean:?} ({:.2}×)",
        ours.as_secs_f64() / raw.as_secs_f64(),
        ours_mean.as_secs_f64() / raw_mean.as_secs_f64()
    );
}

fn summary(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    (times[times.len() / 2], total / times.len() as u32)
}

/// Many threads, each waiting for its own entry to be on disk.
fn group_commit(base: &Path, writers: usize) {
    let room = tempfile::tempdir_in(base).unwrap();
    let trail = open(room.path());
    let each = 2_000;
    let start = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let trail = &trail;
            scope.spawn(move || {
                for number in 0..each {
                    trail
                        .append(draft(writer * each + number), Durability::Sync)
                        .unwrap();
                }
            });
        }
    });
    let rate = (writers * each) as f64 / start.elapsed().as_secs_f64();
    println!("{writers} durable writers, group commit        {rate:.0}/s");
}

/// The trail's own work on one core: redaction, canonical JSON, id, chain, hash and tree, without a database.
fn without_database(base: &Path) {
    let room = tempfile::tempdir_in(base).unwrap();
    let trail = open(room.path());
    let (count, random) = (500_000, Seeded::new(3));
    let drafts: Vec<Draft> = (0..count).map(draft).collect();
    let mut frontier = tree::Frontier::empty();
    let mut time = RealClock.now();
    let mut last = None;
    let start = Instant::now();
    for (number, draft) in drafts.into_iter().enumerate() {
        time = next_after(Some(time), &RealClock);
        let id = EntryId::new(time, &random).unwrap();
        let entry = trail
            .prepare(draft)
            .unwrap()
            .place(number as u64, id, time, last);
        last = Some(entry.hash);
        frontier.push(entry.hash, |_, _| {});
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    std::hint::black_box(frontier.root());
    println!("append in memory, one core             {rate:.0}/s");
}

/// Everything but the disk: canonical JSON, redaction, hashing, the tree, SQLite, in a RAM file system.
fn on_ram_disk(base: &Path) {
    let room = tempfile::tempdir_in(base).unwrap();
    let trail = open(room.path());
    let count = 600_000;
    let start = Instant::now();
    fill(&trail, count);
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("append to SQLite on a RAM disk         {rate:.0}/s");
}

/// Appends `count` entries, a thousand to a transaction, preparing them on a second thread.
fn fill(trail: &Trail, count: usize) {
    let (send, receive) = std::sync::mpsc::sync_channel(4);
    std::thread::scope(|scope| {
        let preparing = std::thread::Builder::new().name("prepare".into());
        let prepared = preparing.spawn_scoped(scope, move || {
            for first in (0..count).step_by(1_000) {
                let batch: Vec<_> = (first..count.min(first + 1_000))
                    .map(|number| trail.prepare(draft(number)).unwrap())
                    .collect();
                send.send(batch).unwrap();
            }
        });
        prepared.unwrap();
        for batch in receive {
            let added: Result<(), TrailError> = trail.write(Durability::Async, |writing| {
                for prepared in batch {
                    writing.append_prepared(prepared)?;
                }
                Ok(())
            });
            added.unwrap();
        }
    });
    trail.flush().unwrap();
}

fn large_trail(base: &Path, entries: usize) {
    let room = tempfile::tempdir_in(base).unwrap();
    let trail = open(room.path());
    fill(&trail, entries);

    let start = Instant::now();
    let verified = trail.verify(|_| {}).unwrap();
    assert_eq!(verified.first_bad, None);
    let rate = verified.checked as f64 / start.elapsed().as_secs_f64();
    println!(
        "verify {} entries             {rate:.0}/s",
        verified.checked
    );

    let mut times = Vec::new();
    let random = Seeded::new(7);
    for _ in 0..1_000 {
        let place = random.next() % entries as u64;
        let entry = trail.find(&place.to_string()).unwrap();
        let start = Instant::now();
        trail.prove(&entry).unwrap();
        times.push(start.elapsed());
    }
    let (median, _) = summary(&mut times);
    println!(
        "inclusion proof                        median {median:?}, worst {:?}",
        times[times.len() - 1]
    );

    let before = resident();
    let start = Instant::now();
    let (mut query, mut listed) = (Query::default(), 0);
    loop {
        let mut page = 0;
        trail
            .entries(&query, |entry| -> Result<Flow, TrailError> {
                query_from(&mut page, &mut listed);
                std::hint::black_box(&entry);
                Ok(if page < 1_000 {
                    Flow::More
                } else {
                    Flow::Enough
                })
            })
            .unwrap();
        query.from += page;
        if page < 1_000 {
            break;
        }
    }
    println!(
        "list {listed} entries by pages of 1000  {:.0}/s, {} KiB more memory",
        listed as f64 / start.elapsed().as_secs_f64(),
        resident().saturating_sub(before)
    );

    for (name, query) in [
        (
            "by action",
            Query {
                action: Some(format!("act_{:016}", entries / 8)),
                ..Query::default()
            },
        ),
        (
            "by field",
            Query {
                fields: vec![safepoint_trail::FieldFilter::parse("bytes=4100").unwrap()],
                ..Query::default()
            },
        ),
    ] {
        let start = Instant::now();
        let mut found = 0;
        trail
            .entries(&query, |_| -> Result<Flow, TrailError> {
                found += 1;
                Ok(Flow::More)
            })
            .unwrap();
        println!("query {name}: {found} found in {:?}", start.elapsed());
    }
    let size = std::fs::metadata(room.path().join("store.db"))
        .unwrap()
        .len();
    println!("store: {:.0} bytes an entry", size as f64 / entries as f64);
}

fn query_from(page: &mut u64, listed: &mut u64) {
    *page += 1;
    *listed += 1;
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .trim()
                .strip_suffix(" kB")?
                .trim()
                .parse()
                .ok()
        })
        .unwrap_or(0)
}
