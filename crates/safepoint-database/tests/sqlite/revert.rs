//! One change taken out of a database that others have written to since.

use safepoint_database::{Image, Reverted, Revisions};

use crate::features::everything;
use crate::support::Room;

/// The captures before and after a change.
struct Change {
    before: Image,
    after: Image,
}

fn changed(room: &Room, sql: &str) -> Change {
    let before = room.capture("app.db");
    room.run("app.db", sql);
    let after = room.capture("app.db");
    Change { before, after }
}

fn revert(room: &Room, change: &Change) -> Reverted {
    let now = room.capture("app.db");
    let revisions = Revisions {
        before: &change.before,
        after: &change.after,
        now: &now,
    };
    let reverted = room
        .database("app.db")
        .revert(revisions, &room.memory, &room.memory)
        .unwrap();
    room.nothing_left_behind();
    reverted
}

/// Takes the change out, and puts the result in place.
fn take_out(room: &Room, change: &Change) {
    match revert(room, change) {
        Reverted::Image(image) => assert_eq!(room.restore("app.db", &image), [] as [String; 0]),
        other => panic!("{other:?}"),
    }
    room.assert_sound("app.db");
    assert_eq!(revert(room, change), Reverted::AlreadyGone);
}

fn conflicts(room: &Room, change: &Change) -> String {
    match revert(room, change) {
        Reverted::Conflict(conflicts) => format!("{conflicts:?}"),
        other => panic!("{other:?}"),
    }
}

const USERS: &str = "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT UNIQUE, note);
    INSERT INTO users VALUES (1, 'Ann', NULL), (2, 'Bob', x'00ff'), (3, 'Eve', 2.5);
    CREATE TABLE plain (a TEXT, b); INSERT INTO plain VALUES ('x', 1), ('x', 1), ('y', 2);
    CREATE TABLE keyed (k TEXT, n INTEGER, PRIMARY KEY (k, n)) WITHOUT ROWID;
    INSERT INTO keyed VALUES ('a', 1), ('b', 2);
    CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, owner REFERENCES users(id));
    CREATE TABLE log (text);
    CREATE TRIGGER told AFTER DELETE ON users BEGIN INSERT INTO log VALUES ('gone'); END;";

#[test]
fn st_35_only_the_rows_of_a_change_go_back() {
    for mode in ["wal", "delete"] {
        let room = Room::new();
        room.run("app.db", &format!("PRAGMA journal_mode = {mode}; {USERS}"));
        let kept = room.dump("app.db");
        let change = changed(
            &room,
            "UPDATE users SET name = 'Anna' WHERE id = 1; DELETE FROM users WHERE id = 2;
             INSERT INTO users VALUES (4, 'Mal', 1); DELETE FROM plain WHERE rowid = 1;
             UPDATE keyed SET n = 9 WHERE k = 'a'; DELETE FROM log",
        );
        // Nobody else was there: it is as it was, rows and structure.
        take_out(&room, &change);
        assert_eq!(room.dump("app.db"), kept, "{mode}");

        let change = changed(
            &room,
            "UPDATE users SET name = 'Anna' WHERE id = 1; DELETE FROM users WHERE id = 2;
             INSERT INTO users VALUES (4, 'Mal', 1); DELETE FROM plain WHERE rowid = 1;
             UPDATE keyed SET n = 9 WHERE k = 'a'; DELETE FROM log",
        );
        room.run(
            "app.db",
            "INSERT INTO users VALUES (5, 'Theirs', 7); UPDATE users SET note = 'seen' WHERE id = 3;
             INSERT INTO plain VALUES ('z', 9); INSERT INTO keyed VALUES ('c', 3);
             INSERT INTO notes(owner) VALUES (1), (5)",
        );
        take_out(&room, &change);
        let users = "SELECT group_concat(id || name || coalesce(note, '-'), ' ') FROM \
                     (SELECT id, name, CASE typeof(note) WHEN 'blob' THEN hex(note) ELSE note END AS note \
                      FROM users ORDER BY id)";
        assert_eq!(
            room.ask("app.db", users),
            "1Ann- 2Bob00FF 3Eveseen 5Theirs7"
        );
        let plain = "SELECT group_concat(a || b, ' ') FROM (SELECT * FROM plain ORDER BY rowid)";
        assert_eq!(room.ask("app.db", plain), "x1 x1 y2 z9");
        let keyed = "SELECT group_concat(k || n, ' ') FROM keyed";
        assert_eq!(room.ask("app.db", keyed), "a1 b2 c3");
        // No trigger has run for it.
        assert_eq!(room.ask("app.db", "SELECT count(*) FROM log"), "0");
        assert_eq!(room.ask("app.db", "SELECT count(*) FROM notes"), "2");
        assert_eq!(room.pragma("app.db", "journal_mode"), mode);
    }
}

#[test]
fn st_35_rows_that_others_have_changed_since_are_conflicts() {
    let table = [
        // What the change did, what others did, and which row is named.
        (
            "UPDATE users SET name = 'Anna' WHERE id = 1",
            "UPDATE users SET note = 1 WHERE id = 1",
            "id=1, name='Anna', note=NULL (changed since)",
        ),
        (
            "UPDATE users SET name = 'Anna' WHERE id = 1",
            "DELETE FROM users WHERE id = 1",
            "(deleted since)",
        ),
        (
            "INSERT INTO users VALUES (9, 'Mal', 1)",
            "UPDATE users SET note = 2 WHERE id = 9",
            "id=9, name='Mal', note=1 (changed since)",
        ),
        (
            "DELETE FROM users WHERE id = 2",
            "INSERT INTO users VALUES (2, 'Other', 1)",
            "id=2, name='Bob'",
        ),
        (
            "DELETE FROM users WHERE id = 2",
            "INSERT INTO users VALUES (8, 'Bob', 1)",
            "stands in the way",
        ),
        (
            "INSERT INTO users VALUES (9, 'Mal', 1)",
            "INSERT INTO notes(owner) VALUES (9)",
            "would go",
        ),
        (
            "ALTER TABLE users ADD COLUMN more",
            "INSERT INTO plain VALUES ('new', 1)",
            "the change altered the structure",
        ),
        (
            "DELETE FROM plain",
            "ALTER TABLE users ADD COLUMN more",
            "its structure was altered since",
        ),
    ];
    for (ours, theirs, named) in table {
        let room = Room::new();
        room.run("app.db", USERS);
        let change = changed(&room, ours);
        room.run("app.db", theirs);
        let found = conflicts(&room, &change);
        assert!(found.contains(named), "{ours} / {theirs}: {found}");
        let quoted = room.dump("app.db");
        assert_eq!(quoted, room.dump("app.db"), "nothing was touched");
    }
}

#[test]
fn st_35_what_others_have_taken_back_already_is_no_conflict() {
    let room = Room::new();
    room.run("app.db", USERS);
    let change = changed(&room, "INSERT INTO users VALUES (9, 'Mal', 1)");
    room.run("app.db", "DELETE FROM users WHERE id = 9; DELETE FROM log");
    assert_eq!(revert(&room, &change), Reverted::AlreadyGone);
}

#[test]
fn st_35_tables_of_an_index_that_belong_together_are_not_mixed() {
    let room = Room::new();
    everything(&room, "app.db", "");
    room.run(
        "app.db",
        "CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('one')",
    );
    let change = changed(&room, "INSERT INTO words VALUES ('two')");
    let kept = room.dump("app.db");
    room.run("app.db", "INSERT INTO plain(a) VALUES ('theirs')");
    take_out(&room, &change);
    assert_eq!(room.ask("app.db", "SELECT count(*) FROM words"), "1");
    let theirs = "SELECT count(*) FROM plain WHERE a = 'theirs'";
    assert_eq!(room.ask("app.db", theirs), "1");

    let change = changed(&room, "INSERT INTO words VALUES ('three')");
    room.run("app.db", "INSERT INTO words VALUES ('theirs')");
    assert!(conflicts(&room, &change).contains("words"));
    assert_ne!(room.dump("app.db"), kept);
}

#[test]
fn st_35_some_tables_go_back_row_by_row_too() {
    let room = Room::new();
    room.run("app.db", USERS);
    let before = room.capture("app.db#users");
    room.run("app.db", "DELETE FROM users WHERE id = 2");
    let after = room.capture("app.db#users");
    room.run(
        "app.db",
        "INSERT INTO users VALUES (5, 'Theirs', 7); INSERT INTO plain VALUES ('z', 9)",
    );
    let now = room.capture("app.db#users");
    let revisions = Revisions {
        before: &before,
        after: &after,
        now: &now,
    };
    let database = room.database("app.db#users");
    let reverted = database.revert(revisions, &room.memory, &room.memory);
    let Reverted::Image(image) = reverted.unwrap() else {
        panic!("a conflict");
    };
    room.run("app.db", "INSERT INTO plain VALUES ('later', 9)");
    assert_eq!(room.restore("app.db#users", &image), [] as [String; 0]);
    let names = "SELECT group_concat(name, ' ') FROM (SELECT name FROM users ORDER BY id)";
    assert_eq!(room.ask("app.db", names), "Ann Bob Eve Theirs");
    assert_eq!(room.ask("app.db", "SELECT count(*) FROM plain"), "5");
}
