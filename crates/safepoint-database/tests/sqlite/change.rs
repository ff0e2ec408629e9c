//! SQL that is tried, judged, and kept or rolled back.

use std::time::Duration;

use safepoint_database::{Changed, DatabaseError, SqlChange, Trial, Verdict};

use crate::child::Other;
use crate::features::everything;
use crate::support::Room;

fn change(room: &Room, statements: &str, check: Option<&str>) -> Result<Changed, DatabaseError> {
    let change = SqlChange {
        statements: statements.to_owned(),
        check: check.map(str::to_owned),
    };
    room.database("app.db")
        .change(&change, &mut |trial| match trial.passes() {
            true => Verdict::Keep,
            false => Verdict::Drop,
        })
}

#[test]
fn st_16_a_check_decides_between_commit_and_roll_back() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        everything(&room, "app.db", &format!("PRAGMA journal_mode = {mode}"));
        let before = room.capture("app.db");
        let alter = "ALTER TABLE users ADD COLUMN status VARCHAR(20) DEFAULT 'active'";
        let wrong = "SELECT count(*) = 99 FROM users WHERE status = 'active'";
        let tried = change(&room, alter, Some(wrong)).unwrap();
        assert!(!tried.kept);
        assert_eq!(tried.trial.check, Some(vec![vec![Some("0".into())]]));
        assert_eq!(room.capture("app.db").digest(), before.digest());

        let right = "SELECT count(*) = 3 FROM users WHERE status = 'active'";
        assert!(change(&room, alter, Some(right)).unwrap().kept);
        assert_eq!(
            room.ask("app.db", "SELECT max(status) FROM users"),
            "active"
        );
        // After the commit, the image undoes it.
        room.restore("app.db", &before);
        assert_eq!(room.capture("app.db").digest(), before.digest());
    }
}

#[test]
fn st_16_several_statements_are_one_change() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let before = room.capture("app.db");
    let tried = change(
        &room,
        "DELETE FROM plain; -- all of it\nINSERT INTO plain(a) VALUES ('x;y'), ('z'); SELECT * FROM plain;;",
        None,
    )
    .unwrap();
    assert_eq!(
        tried,
        Changed {
            trial: Trial {
                rows: Some(5),
                check: None,
                committed: false
            },
            kept: true
        }
    );
    room.restore("app.db", &before);
    let failing = [
        "DELETE FROM plain; DELETE FROM nothing",
        "DELETE FROM plain; INSERT INTO child VALUES (7, 777)",
        "DELETE FROM plain; INSERT OR ROLLBACK INTO large VALUES (1, 1)",
        "DELETE FROM plain; INSERT INTO strict(i) VALUES ('text')",
        "DELETE FROM plain; DELETE FROM users WHERE id = ?",
        "DELETE FROM plain; SELECT 1 \0 FROM nothing",
        "DELETE FROM plain; nonsense",
    ];
    for statements in failing {
        let error = change(&room, statements, None).unwrap_err();
        assert!(
            matches!(error, DatabaseError::Sql { .. }),
            "{statements}: {error:?}"
        );
        assert_eq!(
            room.capture("app.db").digest(),
            before.digest(),
            "{statements}"
        );
    }
}

#[test]
fn st_16_no_statement_escapes_from_the_transaction() {
    let room = Room::new();
    everything(&room, "app.db", "PRAGMA journal_mode = wal");
    let before = room.capture("app.db");
    let other = room.path("other.db");
    let attach = format!("ATTACH '{}' AS other", other.display());
    let escapes = [
        "COMMIT",
        "END",
        "ROLLBACK",
        "BEGIN",
        "commit transaction",
        &attach,
        "DETACH main",
        "PRAGMA journal_mode = delete",
        "PRAGMA writable_schema = ON",
        "PRAGMA synchronous = OFF",
        "PRAGMA main.wal_checkpoint(TRUNCATE)",
        "PRAGMA locking_mode = exclusive",
        "RELEASE safepoint_change",
        "ROLLBACK TO \"SAFEPOINT_CHANGE\"",
        "SAVEPOINT safepoint_change",
        "VACUUM",
        "VACUUM INTO '/tmp/never'",
        "SELECT load_extension('x')",
    ];
    for escape in escapes {
        for statements in [
            format!("DELETE FROM plain; {escape}"),
            format!("DELETE FROM plain; {escape}; DELETE FROM large"),
        ] {
            let error = change(&room, &statements, None).unwrap_err();
            assert!(
                matches!(error, DatabaseError::Sql { .. }),
                "{escape}: {error:?}"
            );
            assert_eq!(room.capture("app.db").digest(), before.digest(), "{escape}");
        }
    }
    assert!(!other.exists());
    // Savepoints of one's own are no escape, nor is asking.
    let own = "SAVEPOINT mine; DELETE FROM users; ROLLBACK TO mine; RELEASE mine; PRAGMA table_info(users); PRAGMA user_version = 9";
    assert!(
        change(&room, own, Some("SELECT count(*) > 0 FROM users"))
            .unwrap()
            .kept
    );
    assert_eq!(room.pragma("app.db", "user_version"), "9");
}

#[test]
fn st_16_a_check_is_a_query_and_nothing_else() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let before = room.capture("app.db");
    for check in [
        "DELETE FROM users",
        "COMMIT",
        "SELECT 1; DELETE FROM users",
        "",
        "SELECT nonsense FROM nothing",
        "PRAGMA user_version = 4",
    ] {
        let tried = change(&room, "DELETE FROM plain", Some(check));
        assert!(
            tried
                .as_ref()
                .is_err_and(|error| matches!(error, DatabaseError::Sql { .. })),
            "{check}: {tried:?}"
        );
        assert_eq!(room.capture("app.db").digest(), before.digest(), "{check}");
    }
    for check in [
        "SELECT 0",
        "SELECT NULL",
        "SELECT 1 WHERE 0",
        "SELECT 1 UNION SELECT 2",
        "SELECT 'no'",
    ] {
        assert!(
            !change(&room, "DELETE FROM plain", Some(check))
                .unwrap()
                .kept,
            "{check}"
        );
        assert_eq!(room.capture("app.db").digest(), before.digest(), "{check}");
    }
}

#[test]
fn st_16_a_change_waits_for_others_and_gives_up_in_time() {
    let mut room = Room::new();
    everything(&room, "app.db", "");
    room.run("app.db", "CREATE TABLE accounts(id)");
    room.patience = Duration::from_millis(30);
    let before = room.capture("app.db");
    let other = Other::start("lock", &room.path("app.db"));
    let error = change(&room, "DELETE FROM plain", None).unwrap_err();
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
    other.end();
    // A reader lets us try, but not commit.
    let other = Other::start("read", &room.path("app.db"));
    let error = change(&room, "DELETE FROM plain", None).unwrap_err();
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
    other.end();
    assert_eq!(room.capture("app.db").digest(), before.digest());
    let change = SqlChange {
        statements: "SELECT 1".into(),
        check: None,
    };
    let error = room
        .database("none.db")
        .change(&change, &mut |_| Verdict::Keep)
        .unwrap_err();
    assert!(matches!(error, DatabaseError::NotFound { .. }), "{error:?}");
    assert!(!room.path("none.db").exists());
}

/// Reading the file beside our own connection, in the same process, must not cost that
/// connection its locks.
#[test]
fn st_16_a_capture_beside_a_change_of_the_same_process_frees_no_lock() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        everything(&room, "app.db", &format!("PRAGMA journal_mode = {mode}"));
        let before = room.capture("app.db");
        let may_write = || Other::start("try", &room.path("app.db")).end() == 1;
        let change = SqlChange {
            statements: "DELETE FROM plain".into(),
            check: None,
        };
        let judged = room.database("app.db").change(&change, &mut |_| {
            assert_eq!(room.capture("app.db").digest(), before.digest());
            assert!(!may_write(), "{mode}");
            Verdict::Keep
        });
        assert!(judged.unwrap().kept);
        assert!(may_write());
        room.assert_sound("app.db");
        assert_eq!(room.ask("app.db", "SELECT count(*) FROM plain"), "0");
    }
}
