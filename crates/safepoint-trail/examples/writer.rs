//! A process that appends, for tests that need several, or one to kill.
//!
//! `writer STORE ROOM NAME COUNT THREADS`: appends COUNT durable entries to
//! the stream NAME from each thread, and prints `SEQ ID` for each one that was
//! acknowledged. COUNT 0 means: until killed.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a tool of the tests"
)]

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use safepoint_store::{Blobs, Durability, Options, Store};
use safepoint_trail::{LostStore, Surroundings, Trail};
use testkit::{RealClock, Seeded, draft};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, store, room, name, count, threads] = arguments.as_slice() else {
        eprintln!("usage: writer STORE ROOM NAME COUNT THREADS");
        std::process::exit(7);
    };
    let (room, count): (&Path, usize) = (room.as_ref(), count.parse().unwrap());
    let store = Store::open(&store.parse().unwrap(), Options::default()).unwrap();
    let around = Surroundings {
        keys: room.join("keys"),
        witnesses: room.join("witness"),
        blobs: Blobs::new(room.join("blobs")),
        clock: Arc::new(RealClock),
        entropy: Arc::new(Seeded::new(u64::from(std::process::id()))),
        lost_store: LostStore::Refuse,
    };
    let trail = Trail::open(Arc::new(store), &around).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads.parse().unwrap() {
            let trail = &trail;
            scope.spawn(move || {
                let stream = format!("{name}-{thread}");
                for number in (0..).take_while(|number| count == 0 || *number < count) {
                    let entry = trail
                        .append(draft(&stream, number), Durability::Sync)
                        .unwrap();
                    // One write a line, so that a kill never leaves half of one.
                    let line = format!("{} {}\n", entry.seq, entry.id);
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}
