//! Many at once: one head has one child, chains stay linear, whoever writes from wherever.
//!
//! `SAFEPOINT_PROGRESS_ROUNDS` and `SAFEPOINT_PROGRESS_RECORDS` say how often and how many.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod story;

use safepoint_progress::record::Record;
use safepoint_progress::rejection::{Reason, Rejection};
use safepoint_progress::{Created, Progress};
use story::{all_delivered_in_order, below, body, of_kind, open, root, send};
use testkit::{Room, on_every_store};

fn number(name: &str, few: usize) -> usize {
    std::env::var(name).map_or(few, |text| text.parse().unwrap())
}

/// Sixty-four at once on the present head: one gets it, and the others hear why they did not.
fn race(all: &[Progress], worker: &Created, head: Option<&Record>) -> Record {
    let next = body(head);
    let each = 64 / all.len();
    let outcomes: Vec<Result<Record, Rejection>> = std::thread::scope(|scope| {
        let writers: Vec<_> = all
            .iter()
            .flat_map(|progress| (0..each).map(move |_| progress))
            .map(|progress| scope.spawn(|| send(progress, worker, &next)))
            .collect();
        let outcomes = writers.into_iter();
        outcomes.map(|writer| writer.join().unwrap()).collect()
    });
    let lost = outcomes.iter().filter(
        |outcome| matches!(outcome, Err(rejection) if rejection.reason == Reason::InvalidParent),
    );
    assert_eq!(lost.count(), 63);
    outcomes.into_iter().find_map(Result::ok).unwrap()
}

/// Linear, and everything in it later than what is before it.
fn check_chain(progress: &Progress, worker: &Created, length: usize) {
    let chain = progress.log(&worker.workspace_id).unwrap();
    assert_eq!(chain.len(), length);
    assert_eq!(chain[0].parent, None);
    for pair in chain.windows(2) {
        assert_eq!(pair[1].parent.as_ref(), Some(&pair[0].id));
        assert!(pair[0].id < pair[1].id && pair[0].timestamp < pair[1].timestamp);
    }
    let verified = progress.verify(&worker.workspace_id).unwrap();
    assert_eq!((verified.valid, verified.checked), (true, length as u64));
}

fn one_head(room: &Room, all: &[Progress]) {
    let rounds = number("SAFEPOINT_PROGRESS_ROUNDS", 2);
    let root = root(&all[0]);
    let worker = below(&all[0], &root);
    let mut head: Option<Record> = None;
    for _ in 0..rounds {
        head = Some(race(all, &worker, head.as_ref()));
    }
    check_chain(&all[0], &worker, rounds);
    let trail = room.trail();
    all[0].deliver().unwrap();
    all_delivered_in_order(room, &trail, &root.workspace_id, "after the races");
    let created = of_kind(room, &trail, "checkpoint_created").len();
    let rejected = of_kind(room, &trail, "checkpoint_rejected").len();
    assert_eq!((created, rejected), (rounds, 63 * rounds));
    assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
}

on_every_store! {
    fn pr_14_of_64_writers_with_one_store_one_succeeds_every_time(room: Room) {
        one_head(&room, &[open(&room, 1)]);
    }

    fn pr_14_of_64_writers_with_stores_of_their_own_one_succeeds_every_time(room: Room) {
        let all: Vec<Progress> = (0..16).map(|seed| open(&room, 100 + seed)).collect();
        one_head(&room, &all);
    }

    fn pr_14_eight_workspaces_grow_at_once(room: Room) {
        let records = number("SAFEPOINT_PROGRESS_RECORDS", 20);
        let progress = open(&room, 3);
        let root = root(&progress);
        let workers: Vec<Created> = (0..8).map(|_| below(&progress, &root)).collect();
        // Half of them share a store, and half have their own.
        let others: Vec<Progress> = (0..4).map(|seed| open(&room, 200 + seed)).collect();
        std::thread::scope(|scope| {
            for (place, worker) in workers.iter().enumerate() {
                let progress = others.get(place).unwrap_or(&progress);
                scope.spawn(move || story::chain(progress, worker, records));
            }
        });
        for worker in &workers {
            check_chain(&progress, worker, records);
        }
        progress.deliver().unwrap();
        let trail = room.trail();
        all_delivered_in_order(&room, &trail, &root.workspace_id, "eight at once");
        assert_eq!(of_kind(&room, &trail, "signal_delivered").len(), 8 * records);
        let times: Vec<_> = room.entries(&trail).iter().map(|entry| entry.time).collect();
        assert!(times.is_sorted_by(|one, other| one < other));
    }
}
