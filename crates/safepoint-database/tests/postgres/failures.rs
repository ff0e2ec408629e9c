//! Whatever fails leaves the database as it was, and says what to do.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use safepoint_database::{Address, Contents, Database, DatabaseError, Piece};

use crate::everything::{DAMAGE, EVERYTHING};
use crate::support::{Interrupted, Memory, Room};

/// A damaged database, what `pg_dump` says of it, and the capture from before.
fn damaged() -> (Room, String, safepoint_database::Image) {
    let room = Room::with(EVERYTHING);
    let image = room.capture("");
    room.run(DAMAGE);
    let before = room.dump(&[]);
    (room, before, image)
}

#[test]
fn st_16_a_connection_that_is_lost_leaves_everything_as_it_was() {
    let (room, before, image) = damaged();
    let nothing = || Ok(());
    let counted = Interrupted::new(&room.memory, usize::MAX, &nothing);
    room.database("").restore(&image, &counted).unwrap();
    let runs = counted.count.into_inner();
    room.run(DAMAGE);
    room.assert_dump(&before);
    for at in [runs / 3, runs / 2, runs * 3 / 4, runs - 1] {
        let cut = || {
            let ended = room.cell(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                 WHERE application_name = 'safepoint' AND datname = current_database()",
            );
            assert_eq!(ended, "1");
            Ok(())
        };
        let contents = Interrupted::new(&room.memory, at, &cut);
        let error = room.database("").restore(&image, &contents).unwrap_err();
        assert!(contents.has_happened(), "{at}");
        assert!(matches!(error, DatabaseError::Lost { .. }), "{at}: {error}");
        room.assert_dump(&before);
    }
}

#[test]
fn st_16_contents_that_cannot_be_read_leave_everything_as_it_was() {
    let (room, before, image) = damaged();
    for at in [0, 5, 60] {
        let fails = || {
            Err(DatabaseError::Sql {
                message: "not readable".into(),
            })
        };
        let contents = Interrupted::new(&room.memory, at, &fails);
        let error = room.database("").restore(&image, &contents).unwrap_err();
        assert_eq!(error.to_string(), "not readable");
        room.assert_dump(&before);
    }
}

#[test]
fn st_16_rows_that_are_not_those_of_the_capture_are_not_committed() {
    struct Forged<'a>(&'a Memory);
    impl Contents for Forged<'_> {
        fn copy(
            &self,
            piece: &Piece,
            take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
        ) -> Result<(), DatabaseError> {
            let text = String::from_utf8(self.0.read(piece)?).unwrap();
            take(text.replace("event 17\n", "event 18\n").as_bytes())
        }
    }
    let (room, before, image) = damaged();
    let error = room.database("").restore(&image, &Forged(&room.memory));
    let error = error.unwrap_err();
    assert!(
        matches!(error, DatabaseError::NotIdentical { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("audit.events_2023"), "{error}");
    room.assert_dump(&before);
}

#[test]
fn st_16_a_process_that_dies_leaves_everything_as_it_was() {
    let (room, before, image) = damaged();
    let directory = room.directory.path();
    let memory = directory.join("memory.json");
    std::fs::write(&memory, room.memory.to_json(&image)).unwrap();
    for at in ["0", "50"] {
        let status = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "failures::child_that_dies",
                "--ignored",
                "--nocapture",
            ])
            .env("SAFEPOINT_TEST_ADDRESS", room.address("").to_string())
            .env("SAFEPOINT_TEST_MEMORY", &memory)
            .env("SAFEPOINT_TEST_AT", at)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), None, "it was ended by a signal");
        // The server notices the end of a connection when it next reads from it.
        room.run("SET lock_timeout = '20s'; BEGIN; LOCK TABLE public.people IN ACCESS SHARE MODE; COMMIT");
        room.assert_dump(&before);
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_that_dies() {
    let address = std::env::var("SAFEPOINT_TEST_ADDRESS").unwrap();
    let memory = std::env::var("SAFEPOINT_TEST_MEMORY").unwrap();
    let at = std::env::var("SAFEPOINT_TEST_AT").unwrap().parse().unwrap();
    let (memory, image) = Memory::from_json(&std::fs::read(memory).unwrap());
    let address = Address::parse(&address, std::path::Path::new("/")).unwrap();
    let die = || std::process::abort();
    let contents = Interrupted::new(&memory, at, &die);
    let _ = Database::new(address, Room::access_in(std::path::Path::new("/")))
        .restore(&image, &contents);
}

#[test]
fn st_16_a_locked_database_is_left_alone() {
    let (room, before, image) = damaged();
    let mut other = room.client();
    other
        .batch_execute("BEGIN; SELECT * FROM public.empty")
        .unwrap();
    let error = room.database("").restore(&image, &room.memory);
    assert!(
        matches!(error, Err(DatabaseError::Locked { .. })),
        "{error:?}"
    );
    other.batch_execute("COMMIT").unwrap();
    room.assert_dump(&before);
    other
        .batch_execute("BEGIN; LOCK TABLE public.empty IN ACCESS EXCLUSIVE MODE")
        .unwrap();
    let error = room.database("").capture(&room.memory);
    assert!(
        matches!(error, Err(DatabaseError::Locked { .. })),
        "{error:?}"
    );
    // What is not in scope may be locked as long as it likes.
    assert!(room.database("#people").capture(&room.memory).is_ok());
    other.batch_execute("COMMIT").unwrap();
    room.restore("", &image);
}

#[test]
fn st_16_two_restores_at_once_do_not_mix() {
    let (room, _, image) = damaged();
    let inner = || {
        let error = room.database("").restore(&image, &room.memory);
        assert!(
            matches!(error, Err(DatabaseError::Locked { .. })),
            "{error:?}"
        );
        Ok(())
    };
    let contents = Interrupted::new(&room.memory, 30, &inner);
    room.database("").restore(&image, &contents).unwrap();
    assert!(contents.has_happened());
    assert_eq!(room.capture("").digest(), image.digest());
}

#[test]
fn a_table_made_by_somebody_else_meanwhile_stops_the_restore() {
    let (room, _, image) = damaged();
    let other = || {
        room.run("CREATE SCHEMA another CREATE TABLE mine (a integer)");
        Ok(())
    };
    let contents = Interrupted::new(&room.memory, 60, &other);
    let error = room.database("").restore(&image, &contents).unwrap_err();
    assert!(
        error.to_string().contains("`another.mine` is new"),
        "{error}"
    );
    assert_eq!(room.cell("SELECT count(*) FROM public.since"), "0");
}

#[test]
fn nobody_there_is_told_from_nothing_there() {
    let room = Room::new();
    let directory = room.directory.path().to_str().unwrap().replace('/', "%2F");
    let at = |text: &str| {
        let address = Address::parse(text, std::path::Path::new("/")).unwrap();
        let database = Database::new(address, room.access());
        database.capture(&room.memory).unwrap_err()
    };
    let error = at(&format!("postgres://me@{directory}/shop"));
    assert!(
        matches!(error, DatabaseError::Unreachable { .. }),
        "{error}"
    );
    let error = at("postgres://me@127.0.0.1:1/shop");
    assert!(
        matches!(error, DatabaseError::Unreachable { .. }),
        "{error}"
    );
    let address = room
        .address("")
        .to_string()
        .replace(&room.name, "no_such_database");
    let error = at(&address).to_string();
    assert!(
        error.starts_with("there is no database `no_such_database`"),
        "{error}"
    );
}

#[test]
fn a_missing_or_old_or_failing_tool_is_named() {
    let room = Room::with(EVERYTHING);
    let image = room.capture("");
    let tools = room.directory.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let mut access = room.access();
    access.variables.insert("PATH".into(), tools.clone().into());
    let database = Database::new(room.address(""), access);
    let error = database.capture(&room.memory).unwrap_err();
    assert!(
        matches!(&error, DatabaseError::MissingTool { tool, package } if tool == "pg_dump" && package == "postgresql-client"),
        "{error}"
    );
    // Bringing back needs no tool.
    room.run(DAMAGE);
    database.restore(&image, &room.memory).unwrap();
    let program = tools.join("pg_dump");
    let says = |text: &str| {
        std::fs::write(&program, format!("#!/bin/sh\necho '{text}' >&2\nexit 1\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        database.capture(&room.memory).unwrap_err()
    };
    let error = says(
        "pg_dump: error: aborting because of server version mismatch\npg_dump: detail: server version: 15.1; pg_dump version: 9.6.24",
    );
    assert!(
        matches!(&error, DatabaseError::OldTool { found, .. } if found == "9.6.24"),
        "{error}"
    );
    let error =
        says("pg_dump: error: query failed: ERROR:  canceling statement due to lock timeout");
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error}");
    let error = says("pg_dump: error: something else");
    assert_eq!(error.to_string(), "`pg_dump` failed: something else");
}

#[test]
fn a_capture_of_another_kind_is_refused() {
    let room = Room::with(EVERYTHING);
    let mut image = room.capture("");
    image.format += 1;
    let error = room.database("").restore(&image, &room.memory);
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("the capture has format 2")
    );
    image.engine = safepoint_database::Engine::Sqlite;
    assert!(room.database("").restore(&image, &room.memory).is_err());
}
