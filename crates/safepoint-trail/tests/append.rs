//! Appending: order, chains, one transaction with the state, failure.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]

use std::collections::HashMap;
use std::sync::Arc;

use safepoint_model::Digest;
use safepoint_store::{Component, Durability, Migration, StoreError, Value, query_one};
use safepoint_trail::{Trail, TrailError, tree};
use testkit::{Room, Seeded, append, draft, on_every_store};

const STATE: Component = Component {
    name: "test-state",
    migrations: &[Migration {
        sqlite: "CREATE TABLE things (name TEXT PRIMARY KEY);",
        postgres: "CREATE TABLE things (name TEXT PRIMARY KEY);",
    }],
};

fn things(trail: &Trail) -> i64 {
    let counted: Result<_, StoreError> = trail.store().read(|sql| {
        query_one(sql, "SELECT count(*) FROM things", &[], |row| {
            row.integer(0)
        })
    });
    counted.unwrap().unwrap()
}

fn add_thing(trail: &Trail, name: &str, outcome: Result<(), TrailError>) -> Result<(), TrailError> {
    trail.write(Durability::Sync, |writing| {
        writing
            .sql()
            .execute("INSERT INTO things VALUES (?1)", &[Value::Text(name)])?;
        writing.append(draft("things", 1))?;
        outcome
    })
}

on_every_store! {
    fn tr_10_what_came_to_nothing_is_counted_alone_and_in_company(room: Room) {
        let trail = room.trail();
        append(&trail, "things", 1);
        assert_eq!(trail.undone(), 0);
        trail.store().migrate(&STATE).unwrap();
        let failed = || Err(TrailError::ReservedField);
        add_thing(&trail, "alone", failed()).unwrap_err();
        assert_eq!(trail.undone(), 1);
        std::thread::scope(|scope| {
            let (begun, has_begun) = std::sync::mpsc::channel();
            let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
            let store = trail.store();
            let holder = scope.spawn(move || {
                store.write(Durability::Sync, |_| {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    Ok::<_, StoreError>(())
                })
            });
            has_begun.recv().unwrap();
            let joined = scope.spawn(|| {
                trail.write_shared(Durability::Sync, |writing| {
                    writing.append(draft("things", 2))?;
                    Err::<(), _>(TrailError::ReservedField)
                })
            });
            while store.left() == 0 {
                std::thread::yield_now();
            }
            go_on.send(()).unwrap();
            holder.join().unwrap().unwrap();
            joined.join().unwrap().unwrap_err();
        });
        assert_eq!(trail.undone(), 2);
        add_thing(&trail, "kept", Ok(())).unwrap();
        assert_eq!((trail.undone(), things(&trail)), (2, 1));
    }

    fn tr_01_an_entry_has_all_its_fields(room: Room) {
        let trail = room.trail();
        let mut draft = draft("ses_x", 7);
        draft.action_id = Some("act_0123456789abcdef".parse().unwrap());
        let entry = trail.append(draft, Durability::Sync).unwrap();
        let wire = serde_json::to_value(&entry).unwrap();
        for (field, value) in [
            ("seq", serde_json::json!(1)),
            ("stream", serde_json::json!("ses_x")),
            ("actor", serde_json::json!("agent:test")),
            ("kind", serde_json::json!("tested")),
            ("action_id", serde_json::json!("act_0123456789abcdef")),
            ("prev_hash", serde_json::Value::Null),
            ("time", serde_json::json!("2026-11-15T07:00:00.000001Z")),
            ("hash", serde_json::json!(entry.hash)),
            ("body", serde_json::json!({"number": 7, "text": "naïve 日本語 \u{1f600}\n"})),
        ] {
            assert_eq!(wire[field], value, "{field}");
        }
        assert_eq!(trail.find(entry.id.as_str()).unwrap(), entry);
    }

    fn tr_01_times_rise_even_when_the_clock_does_not(room: Room) {
        let mut times = Vec::new();
        for step in [0, 5, -3_600_000_000, 0, 1] {
            room.clock.move_by(step);
            // A new process each time: the last time is read from the store.
            times.push(append(&room.trail(), "s", 1).time);
        }
        assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    }

    fn tr_02_streams_are_chains_and_all_entries_are_leaves(room: Room) {
        let trail = room.filled_trail(30);
        let entries = room.entries(&trail);
        let mut last: HashMap<String, Digest> = HashMap::new();
        let mut frontier = tree::Frontier::empty();
        for entry in &entries {
            assert_eq!(entry.prev_hash.as_ref(), last.get(entry.stream.as_str()));
            assert_eq!(entry.hash, tree::leaf_hash(&entry.to_leaf()));
            last.insert(entry.stream.to_string(), entry.hash);
            frontier.push(entry.hash, |_, _| {});
        }
        assert_eq!(last.len(), 4);
        assert_eq!(trail.head().unwrap().root(), frontier.root());
    }

    fn tr_03_the_head_is_signed_with_every_commit_and_copied_outside(room: Room) {
        let trail = room.trail();
        for number in 0..5 {
            append(&trail, "s", number);
            let head = trail.head().unwrap();
            assert_eq!(head.size(), number as u64 + 2);
            let id = trail.key().name().rsplit('/').next().unwrap();
            let copy = std::fs::read_to_string(room.witnesses().join(id).join("head")).unwrap();
            assert!(copy.contains(head.note()), "{copy}");
        }
    }

    fn tr_10_state_and_trail_are_kept_together_or_not_at_all(room: Room) {
        let trail = room.trail();
        trail.store().migrate(&STATE).unwrap();
        add_thing(&trail, "kept", Ok(())).unwrap();
        let refused = add_thing(&trail, "refused", Err(TrailError::NotFound("x".into())));
        assert!(refused.is_err());
        let twice = add_thing(&trail, "kept", Ok(()));
        assert!(twice.is_err(), "the table refuses a second one");
        assert_eq!(things(&trail), 1);
        assert_eq!(room.entries(&trail).len(), 2);
        add_thing(&trail, "later", Ok(())).unwrap();
        assert_eq!((things(&trail), room.entries(&trail).len()), (2, 3));
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn tr_10_failures_among_many_writers_leave_no_gap(room: Room) {
        let trail = room.trail();
        trail.store().migrate(&STATE).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let trail = &trail;
                scope.spawn(move || {
                    for number in 0..20 {
                        let name = format!("{writer}-{number}");
                        let fails = (writer + number) % 3 == 0;
                        let outcome = if fails { Err(TrailError::NotFound(name.clone())) } else { Ok(()) };
                        assert_eq!(add_thing(trail, &name, outcome).is_err(), fails);
                    }
                });
            }
        });
        let kept = (0..16).flat_map(|w| (0..20).map(move |n| w + n)).filter(|sum| sum % 3 != 0).count();
        assert_eq!(things(&trail), kept as i64);
        assert_eq!(room.entries(&trail).len(), kept + 1);
        let found = trail.verify(|_| {}).unwrap();
        assert_eq!((found.first_bad, found.witnessed), (None, kept as u64 + 1));
    }

    fn tr_10_asynchronous_entries_are_signed_for_at_once_and_witnessed_when_on_disk(room: Room) {
        let trail = room.trail();
        for number in 0..10 {
            trail.append(draft("s", number), Durability::Async).unwrap();
        }
        assert_eq!(trail.head().unwrap().size(), 11);
        let found = trail.verify(|_| {}).unwrap();
        assert_eq!((found.first_bad, found.witnessed), (None, 1));
        trail.flush().unwrap();
        assert_eq!(trail.verify(|_| {}).unwrap().witnessed, 11);
        // Another process sees them, and its durable write covers them too.
        trail.append(draft("s", 10), Durability::Async).unwrap();
        append(&room.trail(), "s", 11);
        assert_eq!(trail.verify(|_| {}).unwrap().witnessed, 13);
    }

    fn tr_10_commands_that_write_a_little_and_go_do_not_leave_the_copy_far_behind(room: Room) {
        let mut behind = Vec::new();
        for number in 0..150 {
            let trail = room.trail();
            trail.append(draft("s", number), Durability::Async).unwrap();
            behind.push(trail.head().unwrap().size() - trail.witnessed().unwrap());
        }
        let most = behind.iter().max().unwrap();
        let caught_up = behind.iter().filter(|behind| **behind == 0).count();
        assert_eq!((*most, caught_up), (64, 2));
    }

    fn tr_10_one_command_that_writes_much_does_not_leave_the_copy_far_behind(room: Room) {
        let trail = room.trail();
        let mut behind = Vec::new();
        for hundred in 0..50 {
            trail
                .write(Durability::Async, |writing| {
                    (0..100).try_for_each(|number| {
                        writing.append(draft("s", hundred * 100 + number)).map(drop)
                    })
                })
                .unwrap();
            behind.push(trail.head().unwrap().size() - trail.witnessed().unwrap());
        }
        assert_eq!(behind[0], 100);
        assert_eq!(behind.iter().max(), Some(&4000));
        assert_eq!(behind.iter().filter(|behind| **behind == 0).count(), 1);
    }

    fn tr_09_secrets_never_reach_the_store(room: Room) {
        let trail = room.trail();
        let mut secret = draft("s", 1);
        secret.body = serde_json::json!({
            "command": "deploy --token ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "password": "correct horse battery staple",
        });
        let entry = trail.append(secret, Durability::Sync).unwrap();
        assert!(entry.body.contains("[redacted:"), "{}", entry.body);
        for file in files(room.path()) {
            let bytes = std::fs::read(&file).unwrap();
            for secret in ["ghp_abcdef", "correct horse"] {
                let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
                assert!(!found, "{secret} in {}", file.display());
            }
        }
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn tr_10_an_entry_that_failed_fails_what_it_guarded(room: Room) {
        let trail = room.trail();
        trail.store().migrate(&STATE).unwrap();
        let mut reserved = draft("s", 1);
        reserved.body = serde_json::json!({"$blob": {"sha256": "0".repeat(64), "size": 1}});
        assert!(matches!(trail.append(reserved, Durability::Sync), Err(TrailError::ReservedField)));
        // The caller overlooks that the entry was not written.
        let overlooked: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            writing.sql().execute("INSERT INTO things VALUES (?1)", &[Value::Text("x")])?;
            let rename = "ALTER TABLE trail_blocks RENAME TO gone";
            writing.sql().execute(rename, &[])?;
            let mut other = draft("s", 1);
            other.kind = "never_seen".parse().unwrap();
            let _ = writing.append(other);
            Ok(())
        });
        assert!(overlooked.is_err());
        assert_eq!(things(&trail), 0);
        append(&trail, "s", 2);
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn a_machine_without_the_key_cannot_append(room: Room) {
        drop(room.filled_trail(2));
        let mut elsewhere = room.surroundings();
        elsewhere.keys = room.path().join("other-keys");
        let error = Trail::open(room.store(), &elsewhere).unwrap_err();
        let TrailError::KeyMissing { path, .. } = &error else { panic!("{error}") };
        // A directory in its place is there, and cannot be read.
        safepoint_store::durable::create_directory(path).unwrap();
        let error = Trail::open(room.store(), &elsewhere).unwrap_err();
        assert!(matches!(error, TrailError::KeyUnreadable { .. }), "{error}");
    }

    fn a_machine_with_the_key_takes_the_trail_up(room: Room) {
        drop(room.filled_trail(300));
        let mut elsewhere = room.surroundings();
        elsewhere.witnesses = room.path().join("other-witness");
        elsewhere.entropy = Arc::new(Seeded::new(12345));
        let trail = Trail::open(room.store(), &elsewhere).unwrap();
        // With the entry that says so.
        assert_eq!(trail.verify(|_| {}).unwrap().witnessed, 302);
        append(&trail, "s", 1);
        // The first machine goes on, having missed one.
        append(&room.trail(), "s", 2);
        assert_eq!(room.trail().verify(|_| {}).unwrap().first_bad, None);
        assert_eq!(trail.verify(|_| {}).unwrap().first_bad, None);
    }

    fn a_full_range_of_sizes_crosses_every_stored_level(room: Room) {
        let trail = room.trail();
        let added: Result<(), TrailError> = trail.write(Durability::Sync, |writing| {
            for number in 0..70_000 {
                writing.append(draft("s", number))?;
            }
            Ok(())
        });
        added.unwrap();
        for place in ["0", "255", "256", "65535", "65536", "70000"] {
            let entry = trail.find(place).unwrap();
            let proof = trail.prove(&entry).unwrap();
            safepoint_trail::proof::check(&proof, trail.key()).unwrap();
        }
        let proof = trail.prove_consistency(65_537).unwrap();
        safepoint_trail::proof::check(&proof, trail.key()).unwrap();
        let id = trail.key().name().rsplit('/').next().unwrap();
        let level = |n: u32| std::fs::read(room.witnesses().join(id).join(format!("hashes.{n}"))).unwrap();
        let (leaves, tiles, above) = (level(0), level(1), level(2));
        assert_eq!((leaves.len(), tiles.len(), above.len()), (70_001 * 32, 273 * 32, 32));
        let mut frontier = tree::Frontier::empty();
        for hash in leaves[..256 * 32].as_chunks::<32>().0 {
            frontier.push(Digest::from_bytes(*hash), |_, _| {});
        }
        assert_eq!(&tiles[..32], frontier.root().as_bytes());
    }
}

#[test]
fn tr_10_nothing_happens_when_the_trail_cannot_be_written() {
    let room = Room::new(testkit::Database::Sqlite);
    let trail = room.filled_trail(3);
    trail.store().migrate(&STATE).unwrap();
    room.tamper("UPDATE trail_head SET note = 'x'");
    assert!(matches!(
        add_thing(&trail, "x", Ok(())),
        Err(TrailError::Tampered(_))
    ));
    assert_eq!(things(&trail), 0);
}

fn files(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
