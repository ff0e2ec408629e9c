//! Several processes with one store: who does the work, and who hears of it.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests fail loudly")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use safepoint_store::{Durability, Lease, Leases, StoreError, Woken};
use support::{NOTES, add};
use testkit::{Database, Room, on_every_store};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);
/// Over as soon as it is taken.
const OVER: Duration = Duration::ZERO;

fn replica(room: &Room, name: &str) -> Leases {
    Leases::open(room.store(), name).unwrap()
}

/// Whether a transaction that does the work is kept.
fn works(room: &Room, leases: &Leases, lease: &Lease) -> Result<(), StoreError> {
    room.store()
        .write(Durability::Sync, |sql| leases.check(sql, lease))
}

on_every_store! {
    fn su_09_one_process_has_the_work_until_it_gives_it_back(room: Room) {
        let (one, other) = (replica(&room, "one"), replica(&room, "other"));
        let lease = one.take("publish", LONG).unwrap().unwrap();
        assert_eq!((lease.name(), lease.fence()), ("publish", 1));
        assert_eq!(other.take("publish", LONG).unwrap(), None);
        assert_eq!(other.take("expire", LONG).unwrap().unwrap().fence(), 1);
        // Renewed, it has not changed hands.
        assert_eq!(one.take("publish", LONG).unwrap().unwrap(), lease);
        works(&room, &one, &lease).unwrap();

        one.give_back(&lease).unwrap();
        let taken = other.take("publish", LONG).unwrap().unwrap();
        assert_eq!(taken.fence(), 2);
        // What was given up cannot be given back a second time.
        one.give_back(&lease).unwrap();
        assert_eq!(one.take("publish", LONG).unwrap(), None);
    }

    fn su_09_a_holder_that_was_too_slow_can_do_nothing_any_more(room: Room) {
        let (slow, other) = (replica(&room, "slow"), replica(&room, "other"));
        let lease = slow.take("deliver", OVER).unwrap().unwrap();
        let lost = works(&room, &slow, &lease).unwrap_err();
        assert!(matches!(&lost, StoreError::LeaseLost { name } if name == "deliver"), "{lost}");
        let taken = other.take("deliver", LONG).unwrap().unwrap();
        assert_eq!(taken.fence(), 2);
        assert!(works(&room, &slow, &lease).is_err());
        works(&room, &other, &taken).unwrap();
        assert_eq!(slow.take("deliver", LONG).unwrap(), None);
    }

    fn su_09_of_many_that_ask_at_once_one_gets_it(room: Room) {
        replica(&room, "first");
        let barrier = Arc::new(Barrier::new(8));
        let stores: Vec<_> = (0..8).map(|_| room.store()).collect();
        let threads: Vec<_> = stores
            .into_iter()
            .enumerate()
            .map(|(number, store)| {
                let barrier = Arc::clone(&barrier);
                thread::spawn(move || {
                    let leases = Leases::open(store, format!("replica-{number}")).unwrap();
                    barrier.wait();
                    leases.take("publish", LONG).unwrap()
                })
            })
            .collect();
        let taken = threads.into_iter().filter_map(|thread| thread.join().expect("it ends"));
        assert_eq!(taken.count(), 1);
    }

    fn su_09_a_write_of_another_process_is_heard(room: Room) {
        let (one, other) = (room.store(), room.store());
        one.migrate(&NOTES).unwrap();
        let mut watch = one.watch().unwrap();
        assert_eq!(watch.wait(OVER).unwrap(), Woken::Quiet);
        add(&other, 1).unwrap();
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Written);
        assert_eq!(watch.wait(OVER).unwrap(), Woken::Quiet);
        // What is undone wakes nobody.
        other
            .write(Durability::Sync, |sql| {
                support::insert(sql, 2, "undone")?;
                Err::<(), _>(StoreError::corrupted("the test", "it is taken back"))
            })
            .unwrap_err();
        assert_eq!(watch.wait(OVER).unwrap(), Woken::Quiet);
        add(&one, 3).unwrap();
        assert_eq!(watch.wait(LONG).unwrap(), Woken::Written);
    }
}

#[test]
fn su_09_a_listener_that_was_cut_off_listens_again() {
    let room = Room::new(Database::Postgres);
    let store = room.store();
    store.migrate(&NOTES).unwrap();
    let mut watch = store.watch().unwrap();
    room.tamper(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'LISTEN %'",
    );
    // Nobody knows what was missed: so it is as if something had been written.
    assert_eq!(watch.wait(LONG).unwrap(), Woken::Written);
    assert_eq!(watch.wait(OVER).unwrap(), Woken::Quiet);
    add(&store, 1).unwrap();
    assert_eq!(watch.wait(LONG).unwrap(), Woken::Written);
}
