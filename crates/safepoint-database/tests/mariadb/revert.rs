//! One change taken out of a database that others have written to since.

use safepoint_database::{Reverted, Revisions};

use crate::support::Room;

const SHOP: &str = "
    CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), raw VARBINARY(9));
    CREATE TABLE notes (id INT PRIMARY KEY, owner INT, FOREIGN KEY (owner) REFERENCES users (id));
    CREATE TABLE plain (a VARCHAR(9), b INT);
    INSERT INTO users (name, raw) VALUES ('Ann', NULL), ('it''s, (Bob)', x'00ff'), ('Eve', '');
    INSERT INTO plain VALUES ('x', 1), ('x', 1), (NULL, 2);
";

fn revert(ours: &str, theirs: &str) -> (Room, Reverted) {
    let room = Room::with(SHOP);
    let before = room.capture();
    room.sql(ours);
    let after = room.capture();
    room.sql(theirs);
    let now = room.capture();
    let revisions = Revisions {
        before: &before,
        after: &after,
        now: &now,
    };
    let database = room.database();
    let reverted = database.revert(revisions, &room.store, &room.store);
    (room, reverted.unwrap())
}

#[test]
fn st_35_only_the_rows_of_a_change_go_back() {
    let ours = "UPDATE users SET name = 'Anna' WHERE id = 1; DELETE FROM users WHERE id = 2; \
                INSERT INTO users (name) VALUES ('Mal'); DELETE FROM plain WHERE a = 'x'";
    let theirs = "INSERT INTO users (name) VALUES ('Theirs'); UPDATE users SET raw = 'r' WHERE id = 3; \
                  INSERT INTO plain VALUES ('z', 9)";
    let (room, reverted) = revert(ours, theirs);
    let Reverted::Image(image) = reverted else {
        panic!("{reverted:?}");
    };
    room.restore(&image);
    assert_eq!(
        room.sql("SELECT id, name, HEX(raw) FROM users ORDER BY id"),
        "1\tAnn\tNULL\n2\tit's, (Bob)\t00FF\n3\tEve\t72\n5\tTheirs\tNULL\n"
    );
    assert_eq!(
        room.sql("SELECT a, b FROM plain ORDER BY b, a"),
        "x\t1\nx\t1\nNULL\t2\nz\t9\n"
    );
}

#[test]
fn st_35_rows_that_others_have_changed_since_are_conflicts() {
    let table = [
        (
            "UPDATE users SET name = 'Anna' WHERE id = 1",
            "UPDATE users SET name = 'Hannah' WHERE id = 1",
            "id=1, name='Anna', raw=NULL (changed since)",
        ),
        (
            "DELETE FROM users WHERE id = 3",
            "INSERT INTO users VALUES (3, 'Other', NULL)",
            "id=3, name='Eve'",
        ),
        (
            "INSERT INTO users VALUES (9, 'Mal', NULL)",
            "INSERT INTO notes VALUES (1, 9)",
            "refers to `users`",
        ),
        (
            "ALTER TABLE plain ADD COLUMN c INT",
            "INSERT INTO users (name) VALUES ('Theirs')",
            "the change altered the structure",
        ),
    ];
    for (ours, theirs, named) in table {
        let (_room, reverted) = revert(ours, theirs);
        let Reverted::Conflict(conflicts) = &reverted else {
            panic!("{ours}: {reverted:?}");
        };
        assert!(format!("{conflicts:?}").contains(named), "{conflicts:?}");
    }
}
