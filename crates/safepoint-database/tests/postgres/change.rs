//! Changes by SQL: tried in a transaction, kept or dropped, and taken back after all.

use safepoint_database::{Changed, DatabaseError, SqlChange, Trial, Verdict};

use crate::support::Room;

const USERS: &str = "
    CREATE TABLE users (id integer PRIMARY KEY, active boolean NOT NULL DEFAULT true);
    CREATE TABLE notes (id integer PRIMARY KEY, owner integer REFERENCES users ON DELETE CASCADE);
    INSERT INTO users SELECT g FROM generate_series(1, 10) g;
    INSERT INTO notes SELECT g, 1 FROM generate_series(1, 5) g";

fn change(room: &Room, statements: &str, check: Option<&str>) -> Result<Changed, DatabaseError> {
    let change = SqlChange {
        statements: statements.to_owned(),
        check: check.map(str::to_owned),
    };
    let mut judge = |trial: &Trial| match trial.passes() {
        true => Verdict::Keep,
        false => Verdict::Drop,
    };
    room.database("").change(&change, &mut judge)
}

#[test]
fn st_16_a_change_that_passes_its_check_is_committed() {
    let room = Room::with(USERS);
    let check = "SELECT count(*) = 7 FROM users WHERE active";
    let done = change(
        &room,
        "UPDATE users SET active = false WHERE id > 7",
        Some(check),
    )
    .unwrap();
    assert!(done.kept && !done.trial.committed);
    assert_eq!(done.trial.rows, Some(3));
    assert_eq!(done.trial.check, Some(vec![vec![Some("t".to_owned())]]));
    assert_eq!(room.cell("SELECT count(*) FROM users WHERE active"), "7");
}

#[test]
fn st_16_a_change_that_fails_its_check_is_rolled_back() {
    let room = Room::with(USERS);
    let before = room.dump(&[]);
    for check in [
        "SELECT count(*) > 0 FROM users",
        "SELECT count(*) FROM users",
        "SELECT NULL",
        "SELECT true FROM generate_series(1, 2)",
        "SELECT true WHERE false",
    ] {
        let done = change(
            &room,
            "DELETE FROM notes; DELETE FROM users; ALTER TABLE users DROP COLUMN active",
            Some(check),
        );
        let done = done.unwrap();
        assert!(!done.kept, "{check}");
        assert_eq!(done.trial.rows, Some(15));
        room.assert_dump(&before);
    }
}

#[test]
fn st_16_rows_that_a_cascade_touches_are_counted() {
    let room = Room::with(USERS);
    let done = change(
        &room,
        "DELETE FROM users WHERE id = 1 RETURNING id; SELECT 1",
        None,
    )
    .unwrap();
    assert_eq!(done.trial.rows, Some(6));
}

#[test]
fn st_16_statements_that_fail_change_nothing() {
    let room = Room::with(USERS);
    let before = room.dump(&[]);
    for (statements, check, expected) in [
        ("DELETE FROM notes; SELECT 1 / 0", None, "division by zero"),
        ("DELETE FROM notes; nonsense", None, "syntax error"),
        (
            "DELETE FROM notes",
            Some("SELECT nothing"),
            "does not exist",
        ),
        (
            "DELETE FROM notes",
            Some("DELETE FROM users RETURNING true"),
            "read-only transaction",
        ),
        (
            "DELETE FROM notes; VACUUM users",
            None,
            "cannot run inside a transaction block",
        ),
        (
            "CREATE INDEX CONCURRENTLY i ON users (active)",
            None,
            "cannot run inside a transaction block",
        ),
        (
            "CREATE DATABASE another",
            None,
            "cannot run inside a transaction block",
        ),
        (
            "DELETE FROM notes; COMMIT",
            None,
            "`COMMIT` would end the transaction",
        ),
        (
            "DELETE FROM notes; ROLLBACK; SELECT 1",
            None,
            "`ROLLBACK` would end the transaction",
        ),
        (
            "DELETE FROM notes; PREPARE TRANSACTION 'x'",
            None,
            "`PREPARE TRANSACTION` would end",
        ),
        (
            "DELETE FROM notes",
            Some("SELECT true; END"),
            "`END` would end the transaction",
        ),
        (
            "DO $$ BEGIN DELETE FROM notes; COMMIT; END $$",
            None,
            "invalid transaction termination",
        ),
        (
            "DELETE FROM notes; COPY users FROM STDIN",
            None,
            "`COPY` from or to the client",
        ),
    ] {
        let error = change(&room, statements, check).unwrap_err().to_string();
        assert!(error.contains(expected), "{statements}: {error}");
        room.assert_dump(&before);
    }
}

#[test]
fn st_16_a_constraint_that_waits_for_the_commit_is_heard_before() {
    let room = Room::with(
        "CREATE TABLE a (id integer PRIMARY KEY); \
         CREATE TABLE b (a integer REFERENCES a DEFERRABLE INITIALLY DEFERRED)",
    );
    let error = change(&room, "INSERT INTO b VALUES (1)", None).unwrap_err();
    assert!(
        error.to_string().contains("violates foreign key"),
        "{error}"
    );
    assert_eq!(room.cell("SELECT count(*) FROM b"), "0");
}

#[test]
fn st_16_a_change_waits_for_others_only_so_long() {
    let room = Room::with(USERS);
    let mut other = room.client();
    other
        .batch_execute("BEGIN; UPDATE users SET active = false WHERE id = 1")
        .unwrap();
    let error = change(&room, "UPDATE users SET active = false WHERE id = 1", None);
    assert!(
        matches!(error, Err(DatabaseError::Locked { .. })),
        "{error:?}"
    );
}

#[test]
fn st_16_a_change_can_be_taken_back_after_its_commit() {
    let room = Room::with(USERS);
    let (before, image) = (room.dump(&[]), room.capture(""));
    let statements = "ALTER TABLE users ADD COLUMN status text DEFAULT 'x'; DELETE FROM users WHERE id = 1; CREATE TABLE t ()";
    assert!(change(&room, statements, None).unwrap().kept);
    assert_ne!(room.dump(&[]), before);
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn a_judge_may_drop_what_passes() {
    let room = Room::with(USERS);
    let before = room.dump(&[]);
    let statements = SqlChange {
        statements: "TRUNCATE notes; SAVEPOINT mine; ROLLBACK TO mine; RELEASE SAVEPOINT safepoint"
            .into(),
        check: Some("SELECT 1".into()),
    };
    let done = room
        .database("")
        .change(&statements, &mut |_| Verdict::Drop);
    assert!(!done.unwrap().kept);
    room.assert_dump(&before);
}
