//! A change runs under a savepoint, and its check decides.

use std::time::Duration;

use safepoint_database::{Changed, Database, DatabaseError, Trial, Verdict};

use crate::support::{Room, change};

const USERS: &str = "
    CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) NOT NULL, age INT);
    CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM;
    INSERT INTO users (name, age) VALUES ('Ann', 30), ('Bob', 40), ('Eve', 50);
";

/// Keeps what passes.
fn by_check(trial: &Trial) -> Verdict {
    match trial.passes() {
        true => Verdict::Keep,
        false => Verdict::Drop,
    }
}

fn tried(room: &Room, statements: &str, check: Option<&str>) -> Result<Changed, DatabaseError> {
    room.database()
        .change(&change(statements, check), &mut by_check)
}

#[test]
fn st_16_a_change_that_passes_is_committed() {
    let room = Room::with(USERS);
    let statements = "UPDATE users SET age = age + 1 WHERE name <> 'it''s; not'; -- all of them;\nDELETE FROM users WHERE id = 3; SELECT * FROM users";
    let changed = tried(
        &room,
        statements,
        Some("SELECT COUNT(*) = 2, NULL, 'a\tb' FROM users;"),
    )
    .unwrap();
    assert!(changed.kept && !changed.trial.committed);
    assert_eq!(changed.trial.rows, Some(4));
    let row = vec![Some("1".to_owned()), None, Some("a\tb".to_owned())];
    assert_eq!(changed.trial.check, Some(vec![row]));
    assert_eq!(room.sql("SELECT id, age FROM users"), "1\t31\n2\t41\n");
}

#[test]
fn st_16_a_change_that_fails_its_check_is_rolled_back() {
    let room = Room::with(USERS);
    let before = room.capture();
    for check in [
        "SELECT COUNT(*) > 0 FROM users",
        "SELECT NULL",
        "SELECT id FROM old",
        "SELECT 1 UNION SELECT 2",
        "SELECT 'yes'",
    ] {
        let changed = tried(&room, "DELETE FROM users", Some(check)).unwrap();
        assert!(!changed.kept && !changed.trial.committed, "{check}");
        room.assert_is(&before);
    }
    let changed = room
        .database()
        .change(&change("DELETE FROM users", None), &mut |trial| {
            assert_eq!((trial.rows, &trial.check), (Some(3), &None));
            assert!(trial.passes());
            Verdict::Drop
        });
    assert!(!changed.unwrap().kept);
    room.assert_is(&before);
}

#[test]
fn st_16_an_error_in_the_middle_rolls_everything_back() {
    let room = Room::with(USERS);
    let before = room.capture();
    for (statements, message) in [
        (
            "DELETE FROM users; INSERT INTO users (nosuch) VALUES (1); DELETE FROM old",
            "Unknown column 'nosuch'",
        ),
        (
            "DELETE FROM users; SELEKT 1",
            "You have an error in your SQL syntax",
        ),
        (
            "DELETE FROM users; UPDATE users SET name = 'it",
            "does not end",
        ),
        ("DELETE FROM users; \\! touch here", "outside quotes"),
        (
            "DELETE FROM users; system touch here",
            "You have an error in your SQL syntax",
        ),
        (
            "DELETE FROM users; source /etc/passwd",
            "You have an error in your SQL syntax",
        ),
        (
            "DELETE FROM users; LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE users",
            "oca",
        ),
        (
            "DELETE FROM users; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no\nERROR 1 (x): y'",
            "y",
        ),
    ] {
        let error = tried(&room, statements, None).unwrap_err();
        let DatabaseError::Sql { message: found } = &error else {
            panic!("{statements}: {error:?}");
        };
        assert!(found.contains(message), "{statements}: {found}");
        room.assert_is(&before);
    }
    for check in [
        "SELECT nosuch FROM users",
        "SELECT 1; DELETE FROM users",
        "",
    ] {
        let error = tried(&room, "DELETE FROM users", Some(check)).unwrap_err();
        assert!(
            matches!(error, DatabaseError::Sql { .. }),
            "{check}: {error:?}"
        );
        room.assert_is(&before);
    }
}

#[test]
fn st_16_a_change_that_commits_by_itself_is_told_and_restored() {
    for statements in [
        "ALTER TABLE users ADD status INT; UPDATE users SET status = 1",
        "UPDATE users SET age = 0; CREATE TABLE other (a INT)",
        "UPDATE users SET age = 0; TRUNCATE old",
        "UPDATE users SET age = 0; COMMIT",
        "UPDATE users SET age = 0; START TRANSACTION; UPDATE users SET age = 1",
        "UPDATE users SET age = 0; COMMIT AND CHAIN; UPDATE users SET age = 1",
        "UPDATE users SET age = 0; SET autocommit = 0; SET autocommit = 1",
        "DELIMITER //\nUPDATE users SET age = 0//\nCREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END//",
    ] {
        let room = Room::with(USERS);
        let before = room.capture();
        let changed = tried(&room, statements, Some("SELECT 0")).unwrap();
        assert!(changed.trial.committed && changed.kept, "{statements}");
        assert_ne!(room.capture().digest(), before.digest(), "{statements}");
        room.restore(&before);
        let changed = tried(&room, statements, Some("SELECT 1")).unwrap();
        assert!(changed.trial.committed && changed.kept, "{statements}");
        // Roll back after commit.
        room.restore(&before);
    }
}

#[test]
fn st_16_an_error_after_a_commit_says_so() {
    let room = Room::with(USERS);
    for statements in [
        "ALTER TABLE users ADD a INT; SELEKT",
        "INSERT INTO old VALUES (1); SELEKT",
        "UPDATE users SET age = 7; ALTER TABLE nosuch ADD a INT",
    ] {
        let error = tried(&room, statements, None).unwrap_err();
        assert!(
            matches!(error, DatabaseError::PartlyKept { .. }),
            "{statements}: {error:?}"
        );
    }
    assert_eq!(
        room.sql("SELECT COUNT(*) FROM old; SELECT DISTINCT age FROM users"),
        "1\n7\n"
    );
}

#[test]
fn st_16_tables_without_transactions_are_told() {
    let room = Room::with(USERS);
    let before = room.capture();
    let changed = tried(&room, "INSERT INTO old VALUES (1)", Some("SELECT 0")).unwrap();
    assert!(changed.trial.committed && changed.kept);
    room.restore(&before);
}

#[test]
fn st_16_statements_run_under_the_servers_own_mode() {
    let room = Room::with(USERS);
    let error = tried(&room, "INSERT INTO users (name) VALUES (NULL)", None).unwrap_err();
    assert!(matches!(error, DatabaseError::Sql { .. }), "{error:?}");
    let statements = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; INSERT INTO users (name) VALUES ('a\\'); SET sql_mode = ''; INSERT INTO users (name) VALUES ('b\\\\')";
    assert!(tried(&room, statements, None).unwrap().kept);
    assert_eq!(
        room.sql("SELECT name FROM users WHERE id > 3"),
        "a\\\\\nb\\\\\n"
    );
}

#[test]
fn st_16_a_locked_row_is_told_and_nothing_is_kept() {
    let room = Room::with(USERS);
    let before = room.capture();
    let mut other = room.client_at_work(
        "BEGIN; DELETE FROM users WHERE id = 1; SELECT 'locked'; SELECT SLEEP(600);",
    );
    room.wait_for_line(&mut other, "locked");
    let statements = change(
        "UPDATE users SET age = 1 WHERE id = 2; DELETE FROM users WHERE id = 1",
        None,
    );
    let error = room.hasty().change(&statements, &mut by_check).unwrap_err();
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
    room.end(other);
    room.assert_is(&before);
}

#[test]
fn st_16_a_connection_lost_before_the_commit_keeps_nothing() {
    let room = Room::with(USERS);
    let before = room.capture();
    let result = room
        .database()
        .change(&change("DELETE FROM users", None), &mut |_| {
            room.kill_connections();
            Verdict::Keep
        });
    let error = result.unwrap_err();
    assert!(matches!(error, DatabaseError::Lost { .. }), "{error:?}");
    room.assert_is(&before);
    let result = room.database().change(
        &change(
            "DELETE FROM users; KILL CONNECTION_ID(); DELETE FROM old",
            None,
        ),
        &mut by_check,
    );
    let error = result.unwrap_err();
    assert!(matches!(error, DatabaseError::Lost { .. }), "{error:?}");
    room.assert_is(&before);
}

#[test]
fn st_16_what_is_waited_for_is_bounded() {
    let room = Room::with(USERS);
    let mut access = room.access();
    access.lock_timeout = Duration::ZERO;
    let database = Database::new(room.address("root", ""), access);
    let changed = database
        .change(&change("DELETE FROM users", None), &mut by_check)
        .unwrap();
    assert!(changed.kept);
}
