//! Whatever is written: what we read is what SQLite's own backup gives.

use proptest::prelude::*;
use rusqlite::Connection;
use safepoint_database::Contents;

use crate::child::Other;
use crate::support::Room;

/// One thing that a transaction does.
#[derive(Clone, Debug)]
enum Step {
    Insert(u16),
    Update(u8, u16),
    Delete(u8),
    Vacuum,
    Checkpoint(&'static str),
    Index,
    Spill(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0u16..9000).prop_map(Step::Insert),
        5 => (any::<u8>(), 0u16..9000).prop_map(|(which, size)| Step::Update(which, size)),
        3 => any::<u8>().prop_map(Step::Delete),
        1 => Just(Step::Vacuum),
        2 => prop_oneof![Just("PASSIVE"), Just("FULL"), Just("RESTART"), Just("TRUNCATE")].prop_map(Step::Checkpoint),
        1 => Just(Step::Index),
        1 => (2u8..40).prop_map(Step::Spill),
    ]
}

fn sql(step: &Step) -> String {
    match step {
        Step::Insert(size) => format!("INSERT INTO t(x) VALUES (randomblob({size}))"),
        Step::Update(which, size) => {
            format!("UPDATE t SET x = randomblob({size}) WHERE id % 17 = {which} % 17")
        }
        Step::Delete(which) => format!("DELETE FROM t WHERE id % 23 = {which} % 23"),
        Step::Vacuum => "VACUUM".into(),
        Step::Checkpoint(mode) => format!("PRAGMA wal_checkpoint({mode})"),
        Step::Index => "DROP INDEX IF EXISTS i; CREATE INDEX i ON t(x)".into(),
        // More than the cache holds, in one transaction, and then never committed.
        Step::Spill(count) => format!(
            "BEGIN; INSERT INTO t(x) SELECT randomblob(3000) FROM t LIMIT {count}; UPDATE t SET x = x || 'y'; ROLLBACK"
        ),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn st_16_the_image_is_what_sqlite_itself_would_back_up(
        steps in prop::collection::vec(step(), 1..40),
        power in 9u32..14,
        auto_vacuum in 0..3,
    ) {
        let room = Room::new();
        let page_size = 1usize << power;
        room.run("app.db", &format!(
            "PRAGMA page_size = {page_size}; PRAGMA auto_vacuum = {auto_vacuum}; PRAGMA journal_mode = wal;
             CREATE TABLE t(id INTEGER PRIMARY KEY, x)"
        ));
        // Somebody else stays connected, so that the log stays when we close ours.
        let keeper = Other::start("connect", &room.path("app.db"));
        for step in &steps {
            room.run("app.db", &format!("PRAGMA cache_size = 5; PRAGMA wal_autocheckpoint = 30; {}", sql(step)));
        }
        let image = room.capture("app.db");
        let ours = room.memory.read(image.piece("file").unwrap()).unwrap();
        {
            let source = Connection::open(room.path("app.db")).unwrap();
            source.backup("main", room.path("copy.db"), None::<fn(rusqlite::backup::Progress)>).unwrap();
        }
        keeper.end();
        let theirs = std::fs::read(room.path("copy.db")).unwrap();
        prop_assert_eq!(ours.len(), theirs.len());
        for (number, (ours, theirs)) in ours.chunks(page_size).zip(theirs.chunks(page_size)).enumerate() {
            let mask = |page: &[u8]| {
                let mut page = page.to_vec();
                if number == 0 {
                    // Counters that every write sets.
                    for at in (24..28).chain(40..44).chain(92..100) {
                        page[at] = 0;
                    }
                }
                page
            };
            prop_assert!(mask(ours) == mask(theirs), "page {} differs", number + 1);
        }
        room.restore("again.db", &image);
        prop_assert_eq!(room.capture("again.db").digest(), image.digest());
    }
}
