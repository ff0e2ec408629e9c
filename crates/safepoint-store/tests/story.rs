//! The store as the crates above see it, told once and run on both databases.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail loudly"
)]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;

use safepoint_store::{
    Component, Durability, Flow, Location, Migration, Sql, Store, StoreError, Value, query_all,
    query_one,
};
use support::{FIRST, NOTES, add, ids, ids_in, insert};
use testkit::{Database, Room, on_every_store};

/// A store with the table of notes.
fn with_notes(room: &Room) -> Arc<Store> {
    let store = room.store();
    store.migrate(&NOTES).unwrap();
    store
}

/// A note as it is written, and as it is read.
type Row<'a> = (i64, Option<&'a str>, Option<&'a [u8]>);
type Note = (i64, Option<String>, Option<Vec<u8>>);

fn notes(store: &Store) -> Vec<Note> {
    store
        .read(|sql| {
            query_all(
                sql,
                "SELECT id, text, data FROM notes ORDER BY id",
                &[],
                |row| {
                    Ok((
                        row.integer(0)?,
                        row.optional_text(1)?.map(str::to_owned),
                        row.bytes(2)?.map(<[u8]>::to_vec),
                    ))
                },
            )
        })
        .unwrap()
}

fn versions(store: &Store) -> Vec<(String, i64)> {
    store
        .read(|sql| {
            query_all(
                sql,
                "SELECT component, version FROM schema_versions ORDER BY component",
                &[],
                |row| Ok((row.text(0)?.to_owned(), row.integer(1)?)),
            )
        })
        .unwrap()
}

/// The steps that have been applied, in their order.
fn steps(store: &Store) -> Vec<(i64, String)> {
    store
        .read(|sql| {
            query_all(
                sql,
                "SELECT place, step FROM steps ORDER BY place, step",
                &[],
                |row| Ok((row.integer(0)?, row.text(1)?.to_owned())),
            )
        })
        .unwrap()
}

const STEP_ONE: Migration = Migration {
    sqlite: "CREATE TABLE steps (place BIGINT, step TEXT);\nINSERT INTO steps SELECT count(*), 'one' FROM steps;",
    postgres: "CREATE TABLE steps (place BIGINT, step TEXT);\nINSERT INTO steps SELECT count(*), 'one' FROM steps;",
};
const STEP_TWO: Migration = Migration {
    sqlite: "-- a comment; with a semicolon\nINSERT INTO steps SELECT count(*), 'two' FROM steps;\nALTER TABLE steps ADD COLUMN more TEXT;",
    postgres: "-- a comment; with a semicolon\nINSERT INTO steps SELECT count(*), 'two' FROM steps;\nALTER TABLE steps ADD COLUMN more TEXT;",
};
/// Does something, and then fails.
const STEP_BROKEN: Migration = Migration {
    sqlite: "INSERT INTO steps SELECT count(*), 'broken' FROM steps;\nCREATE TABLE half (id BIGINT);\nINSERT INTO nowhere VALUES (1);",
    postgres: "INSERT INTO steps SELECT count(*), 'broken' FROM steps;\nCREATE TABLE half (id BIGINT);\nINSERT INTO nowhere VALUES (1);",
};
const AT_ONE: Component = Component {
    name: "steps",
    migrations: &[STEP_ONE],
};
const AT_TWO: Component = Component {
    name: "steps",
    migrations: &[STEP_ONE, STEP_TWO],
};
const AT_BROKEN: Component = Component {
    name: "steps",
    migrations: &[STEP_ONE, STEP_TWO, STEP_BROKEN],
};

on_every_store! {
    fn tr_10_every_kind_of_value_comes_back(room: Room) {
        let store = with_notes(&room);
        let every_byte: Vec<u8> = (0..=255).collect();
        let large = "ß\u{1f600}".repeat(100_000);
        let rows: [Row<'_>; 7] = [
            (i64::MIN, None, None),
            (-1, Some(""), Some(b"")),
            (0, Some("naïve 日本語 \u{1f600} e\u{301}\r\n\t"), Some(b"\0")),
            (1, Some("'; DROP TABLE notes; --"), Some(&every_byte)),
            (2, Some("a ? and a ?1 and a $1"), None),
            (3, Some(&large), Some(large.as_bytes())),
            (i64::MAX, None, Some(b"text")),
        ];
        store
            .write(Durability::Sync, |sql| {
                for (id, text, data) in rows {
                    let changed = sql.execute(
                        "INSERT INTO notes (id, text, data) VALUES (?1, ?2, ?3)",
                        &[id.into(), text.into(), data.into()],
                    )?;
                    assert_eq!(changed, 1);
                }
                Ok::<_, StoreError>(())
            })
            .unwrap();

        let expected: Vec<Note> = rows
            .into_iter()
            .map(|(id, text, data)| (id, text.map(str::to_owned), data.map(<[u8]>::to_vec)))
            .collect();
        assert!(notes(&store) == expected);
        drop(store);
        assert!(notes(&room.store()) == expected, "after reopening");
    }

    fn store_a_write_returns_what_its_closure_does_and_sees_its_own_changes(room: Room) {
        let store = with_notes(&room);
        let seen = store
            .write(Durability::Sync, |sql| {
                insert(sql, 1, "one")?;
                insert(sql, 2, "two")?;
                ids_in(sql)
            })
            .unwrap();
        assert_eq!(seen, [1, 2]);
    }

    fn store_a_statement_tells_how_many_rows_it_changed(room: Room) {
        let store = with_notes(&room);
        for id in 1..=5 {
            add(&store, id).unwrap();
        }
        let changed = store
            .write(Durability::Sync, |sql| {
                Ok::<_, StoreError>([
                    sql.execute("UPDATE notes SET text = ?1 WHERE id > ?2", &["new".into(), 3.into()])?,
                    sql.execute("DELETE FROM notes WHERE id = ?1", &[99.into()])?,
                    // Without a value, which is another way through the PostgreSQL client.
                    sql.execute("DELETE FROM notes WHERE id < 3", &[])?,
                ])
            })
            .unwrap();
        assert_eq!(changed, [2, 0, 2]);
        assert_eq!(ids(&store).unwrap(), [3, 4, 5]);
    }

    fn store_a_column_of_another_type_is_an_error(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        let ask = |read: fn(&dyn safepoint_store::Row) -> Result<(), StoreError>| {
            store.read(|sql| query_one(sql, "SELECT id, text, data FROM notes", &[], read))
        };
        for (column, answer) in [
            (0, ask(|row| row.blob(0).map(drop))),
            (1, ask(|row| row.integer(1).map(drop))),
            (2, ask(|row| row.integer(2).map(drop))),
            (2, ask(|row| row.text(2).map(drop))),
            (2, ask(|row| row.blob(2).map(drop))),
            (9, ask(|row| row.integer(9).map(drop))),
            (9, ask(|row| row.bytes(9).map(drop))),
        ] {
            match answer.unwrap_err() {
                StoreError::Column { column: found, .. } => assert_eq!(found, column),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ids(&store).unwrap(), [1]);
    }

    fn tr_10_an_error_in_the_closure_leaves_nothing(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        let error = store
            .write(Durability::Sync, |sql| {
                insert(sql, 2, "two")?;
                sql.execute("CREATE TABLE other (id BIGINT)", &[])?;
                Err::<(), _>(StoreError::corrupted("here", "on purpose"))
            })
            .unwrap_err();
        assert!(matches!(error, StoreError::Corrupted { ref place, .. } if place == "here"), "{error:?}");
        assert_eq!(ids(&store).unwrap(), [1]);
        let other = store.read(|sql| query_one(sql, "SELECT id FROM other", &[], |row| row.integer(0)));
        assert!(matches!(other, Err(StoreError::Statement { .. })), "{other:?}");
        add(&store, 3).unwrap();
        assert_eq!(ids(&store).unwrap(), [1, 3]);
    }

    fn tr_10_a_broken_rule_is_an_error_and_leaves_nothing(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        let error = store
            .write(Durability::Sync, |sql| {
                insert(sql, 2, "two")?;
                insert(sql, 1, "one again")
            })
            .unwrap_err();
        match &error {
            StoreError::Statement { place, .. } => {
                assert!(room.location().to_string().ends_with(place.as_str()), "{place}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(ids(&store).unwrap(), [1]);
    }

    /// What is acknowledged is kept: a closure that overlooks a failed
    /// statement either fails as a whole or keeps what it did.
    fn tr_10_an_overlooked_error_never_loses_an_acknowledged_write(room: Room) {
        let store = with_notes(&room);
        let result = store.write(Durability::Sync, |sql| {
            insert(sql, 1, "one")?;
            let _ = insert(sql, 1, "one again");
            Ok::<_, StoreError>(())
        });
        let kept = ids(&store).unwrap();
        assert_eq!(result.is_ok(), kept == [1], "{result:?}, but kept are {kept:?}");
        add(&store, 2).unwrap();
    }

    fn tr_10_a_panic_leaves_nothing_and_reaches_the_caller(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            store.write(Durability::Sync, |sql| {
                insert(sql, 2, "two")?;
                if ids_in(sql)?.len() == 2 {
                    panic!("on purpose");
                }
                Ok::<_, StoreError>(())
            })
        }))
        .unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
        assert_eq!(ids(&store).unwrap(), [1]);

        // In the middle of an answer, which is the worst moment.
        catch_unwind(AssertUnwindSafe(|| {
            store.write(Durability::Sync, |sql| {
                insert(sql, 2, "two")?;
                sql.query("SELECT id FROM notes", &[], &mut |_| panic!("on purpose"))
            })
        }))
        .unwrap_err();
        catch_unwind(AssertUnwindSafe(|| {
            store.read(|sql| sql.query("SELECT id FROM notes", &[], &mut |_| panic!("on purpose")))
        }))
        .unwrap_err();

        add(&store, 3).unwrap();
        assert_eq!(ids(&store).unwrap(), [1, 3]);
        assert_eq!(ids(&room.store()).unwrap(), [1, 3], "another handle is not locked out");
    }

    fn store_a_reader_sees_one_moment_while_others_write(room: Room) {
        let store = with_notes(&room);
        let elsewhere = room.store();
        add(&store, 1).unwrap();
        store
            .read(|sql| {
                assert_eq!(ids_in(sql)?, [1]);
                add(&store, 2)?;
                assert_eq!(ids_in(sql)?, [1], "after a commit of this handle");
                add(&elsewhere, 3)?;
                assert_eq!(ids_in(sql)?, [1], "after a commit of another handle");
                assert_eq!(ids(&store)?, [1, 2, 3], "in another reader at the same time");
                Ok::<_, StoreError>(())
            })
            .unwrap();
        assert_eq!(ids(&store).unwrap(), [1, 2, 3]);
    }

    fn store_a_reader_does_not_see_what_is_not_committed(room: Room) {
        let store = with_notes(&room);
        store
            .write(Durability::Sync, |sql| {
                insert(sql, 1, "one")?;
                assert_eq!(ids(&store)?, [0; 0]);
                Ok::<_, StoreError>(())
            })
            .unwrap();
        assert_eq!(ids(&store).unwrap(), [1]);
    }

    fn store_a_reader_cannot_write(room: Room) {
        let store = with_notes(&room);
        let error = store.read(|sql| insert(sql, 1, "one")).unwrap_err();
        assert!(matches!(error, StoreError::ReadOnly { .. }), "{error:?}");
        assert_eq!(ids(&store).unwrap(), [0; 0]);
        add(&store, 1).unwrap();
    }

    fn store_an_error_of_a_reader_reaches_the_caller(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        let error = store
            .read(|sql| {
                sql.query("SELECT id FROM notes", &[], &mut |_| {
                    Err(StoreError::corrupted("here", "on purpose"))
                })
            })
            .unwrap_err();
        assert!(matches!(error, StoreError::Corrupted { .. }), "{error:?}");
        assert_eq!(ids(&store).unwrap(), [1]);
    }

    fn store_a_query_stops_when_it_is_told(room: Room) {
        let store = with_notes(&room);
        store
            .write(Durability::Async, |sql| {
                (0..3_000).try_for_each(|id| insert(sql, id, "some text"))
            })
            .unwrap();
        store
            .read(|sql| {
                let mut seen = Vec::new();
                sql.query("SELECT id FROM notes ORDER BY id", &[], &mut |row| {
                    seen.push(row.integer(0)?);
                    Ok(if seen.len() == 3 { Flow::Enough } else { Flow::More })
                })?;
                assert_eq!(seen, [0, 1, 2]);
                // What was not asked for does not leak into the next answer.
                let last = query_one(sql, "SELECT id FROM notes ORDER BY id DESC", &[], |row| row.integer(0))?;
                assert_eq!(last, Some(2_999));
                let none = query_one(sql, "SELECT id FROM notes WHERE id = ?1", &[(-5).into()], |row| row.integer(0))?;
                assert_eq!(none, None);
                assert_eq!(ids_in(sql)?.len(), 3_000);
                Ok::<_, StoreError>(())
            })
            .unwrap();
    }

    fn tr_10_both_durabilities_keep_what_they_acknowledge(room: Room) {
        let store = with_notes(&room);
        for (id, durability) in [(1, Durability::Async), (2, Durability::Sync), (3, Durability::Async)] {
            store.write(durability, |sql| insert(sql, id, "kept")).unwrap();
            assert_eq!(ids(&store).unwrap().last(), Some(&id));
        }
        // A sync of a write that changed nothing, on a handle that has written nothing yet.
        let fresh = room.store();
        fresh.write(Durability::Sync, |_| Ok::<_, StoreError>(())).unwrap();
        drop((store, fresh));
        assert_eq!(ids(&room.store()).unwrap(), [1, 2, 3]);
    }

    fn su_03_a_store_is_found_again_under_its_address(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        assert_eq!(store.location(), room.location());
        drop(store);

        let location: Location = room.address().parse().unwrap();
        let store = Store::open(&location, safepoint_store::Options::default()).unwrap();
        store.migrate(&NOTES).unwrap();
        assert_eq!(ids(&store).unwrap(), [1]);
        assert!(format!("{store:?}").contains(&room.location().to_string()));
    }

    fn store_migrations_are_applied_in_order_and_once(room: Room) {
        let store = room.store();
        store.migrate(&AT_ONE).unwrap();
        store.migrate(&AT_ONE).unwrap();
        store.migrate(&NOTES).unwrap();
        assert_eq!(steps(&store), [(0, "one".into())]);
        store.migrate(&AT_TWO).unwrap();
        store.migrate(&AT_TWO).unwrap();
        assert_eq!(steps(&store), [(0, "one".into()), (1, "two".into())]);
        assert_eq!(versions(&store), [("notes".into(), 1), ("steps".into(), 2)]);
        drop(store);
        let store = room.store();
        store.migrate(&AT_TWO).unwrap();
        assert_eq!(steps(&store).len(), 2);
    }

    fn store_migrations_are_applied_once_by_many_at_once(room: Room) {
        const MANY: usize = 8;
        let (room, barrier) = (&room, Barrier::new(MANY));
        thread::scope(|scope| {
            for number in 0..MANY {
                let barrier = &barrier;
                scope.spawn(move || {
                    let component = if number % 2 == 0 { &AT_ONE } else { &AT_TWO };
                    barrier.wait();
                    let store = room.store();
                    match store.migrate(component) {
                        Ok(()) => {}
                        // One that knows less came too late.
                        Err(StoreError::Newer { found: 2, known: 1, .. }) if number % 2 == 0 => {}
                        Err(other) => panic!("{other:?}"),
                    }
                });
            }
        });
        let store = room.store();
        assert_eq!(steps(&store), [(0, "one".into()), (1, "two".into())]);
        assert_eq!(versions(&store), [("steps".into(), 2)]);
    }

    fn store_a_failing_migration_leaves_the_old_version(room: Room) {
        let store = room.store();
        store.migrate(&AT_ONE).unwrap();
        let error = store.migrate(&AT_BROKEN).unwrap_err();
        assert!(matches!(error, StoreError::Statement { .. }), "{error:?}");
        assert_eq!(versions(&store), [("steps".into(), 1)]);
        assert_eq!(steps(&store), [(0, "one".into())]);
        store.migrate(&AT_TWO).unwrap();
        assert_eq!(steps(&store), [(0, "one".into()), (1, "two".into())]);
    }

    fn store_a_newer_store_is_refused_and_left_alone(room: Room) {
        let store = room.store();
        store.migrate(&AT_TWO).unwrap();
        let before = (versions(&store), steps(&store));
        drop(store);

        let store = room.store();
        let error = store.migrate(&AT_ONE).unwrap_err();
        match &error {
            StoreError::Newer { place, component, found, known } => {
                assert_eq!((place.as_str(), *component), (room.location().to_string().as_str(), "steps"));
                assert_eq!((*found, *known), (2, 1));
            }
            other => panic!("{other:?}"),
        }
        let message = error.to_string();
        for part in [&room.location().to_string(), "newer", "`steps`", "version 2", "knows 1"] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!((versions(&store), steps(&store)), before);
    }

    fn store_a_new_store_is_opened_by_many_at_once(room: Room) {
        const MANY: usize = 8;
        // A new SQLite file each time; PostgreSQL has one database per room.
        let rounds = match room.database() {
            Database::Sqlite => 40,
            Database::Postgres => 1,
        };
        for round in 0..rounds {
            let location = match room.location() {
                Location::Sqlite(_) => Location::Sqlite(room.path().join(format!("{round}/store.db"))),
                postgres => postgres.clone(),
            };
            let (location, barrier) = (&location, Barrier::new(MANY));
            thread::scope(|scope| {
                for number in 0..MANY {
                    let barrier = &barrier;
                    scope.spawn(move || {
                        barrier.wait();
                        let store = Store::open(location, safepoint_store::Options::default()).expect("opens");
                        store.migrate(&NOTES).expect("migrates");
                        add(&store, i64::try_from(number).unwrap()).expect("writes");
                    });
                }
            });
            let store = Store::open(location, safepoint_store::Options::default()).unwrap();
            assert_eq!(ids(&store).unwrap().len(), MANY);
        }
    }

    fn store_a_room_lets_a_test_reach_under_the_store(room: Room) {
        let store = with_notes(&room);
        add(&store, 1).unwrap();
        room.tamper("UPDATE notes SET text = 'changed' WHERE id = 1; INSERT INTO notes (id) VALUES (2)");
        assert_eq!(notes(&store), [(1, Some("changed".into()), None), (2, None, None)]);
    }

    /// PostgreSQL sends values in binary form, where a number is any eight bytes.
    fn store_a_value_of_the_wrong_type_is_never_stored_as_garbage(room: Room) {
        let store = with_notes(&room);
        let number = i64::from_be_bytes(*b"AAAAAAAA");
        let result = store.write(Durability::Sync, |sql: &mut dyn Sql| {
            sql.execute(
                "INSERT INTO notes (id, text) VALUES (?1, ?2)",
                &[Value::Integer(1), Value::Integer(number)],
            )
        });
        match result {
            Ok(_) => assert_eq!(notes(&store), [(1, Some(number.to_string()), None)]),
            Err(error) => assert!(matches!(error, StoreError::Statement { .. }), "{error:?}"),
        }
    }
}

/// Versions and migrations of one component do not touch those of another.
#[test]
fn store_components_do_not_share_versions() {
    let room = Room::new(Database::Sqlite);
    let store = room.store();
    store.migrate(&AT_TWO).unwrap();
    let other = Component {
        name: "other",
        migrations: &[FIRST],
    };
    store.migrate(&other).unwrap();
    assert_eq!(versions(&store), [("other".into(), 1), ("steps".into(), 2)]);
}
