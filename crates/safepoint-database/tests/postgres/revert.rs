//! One change taken out of a database that others have written to since.

use safepoint_database::{Reverted, Revisions};

use crate::support::Room;

const SHOP: &str = "
    CREATE TABLE users (id serial PRIMARY KEY, name text UNIQUE, twice text GENERATED ALWAYS AS (name || name) STORED);
    CREATE TABLE notes (id serial PRIMARY KEY, owner integer REFERENCES users ON DELETE CASCADE);
    CREATE TABLE plain (a text, b integer);
    INSERT INTO users (name) VALUES ('Ann'), ('Bob'), (E'tab\\tEve\\n');
    INSERT INTO plain VALUES ('x', 1), ('x', 1), (NULL, 2)";

fn revert(ours: &str, theirs: &str) -> (Room, Reverted) {
    let room = Room::with(SHOP);
    let before = room.capture("");
    room.run(ours);
    let after = room.capture("");
    room.run(theirs);
    let now = room.capture("");
    let revisions = Revisions {
        before: &before,
        after: &after,
        now: &now,
    };
    let database = room.database("");
    let reverted = database.revert(revisions, &room.memory, &room.memory);
    (room, reverted.unwrap())
}

#[test]
fn st_35_only_the_rows_of_a_change_go_back() {
    let ours = "UPDATE users SET name = 'Anna' WHERE id = 1; DELETE FROM users WHERE id = 3; \
                INSERT INTO users (name) VALUES ('Mal'); DELETE FROM plain WHERE a = 'x'";
    let theirs = "INSERT INTO users (name) VALUES ('Theirs'); UPDATE users SET name = 'Rob' WHERE id = 2; \
                  INSERT INTO notes (owner) VALUES (1); INSERT INTO plain VALUES ('z', 9)";
    let (room, reverted) = revert(ours, theirs);
    let Reverted::Image(image) = reverted else {
        panic!("{reverted:?}");
    };
    room.restore("", &image);
    assert_eq!(
        room.cell("SELECT string_agg(id || twice, ',' ORDER BY id) FROM users"),
        "1AnnAnn,2RobRob,3tab\tEve\ntab\tEve\n,5TheirsTheirs"
    );
    assert_eq!(room.cell("SELECT count(*) FROM notes"), "1");
    assert_eq!(
        room.cell("SELECT string_agg(coalesce(a, '-') || b, ',' ORDER BY a, b) FROM plain"),
        "x1,x1,z9,-2"
    );
    // A number that was given once is not given again.
    assert_eq!(room.cell("SELECT nextval('users_id_seq')"), "6");
}

#[test]
fn st_35_rows_that_others_have_changed_since_are_conflicts() {
    let table = [
        (
            "UPDATE users SET name = 'Anna' WHERE id = 1",
            "UPDATE users SET name = 'Hannah' WHERE id = 1",
            "id=1, name='Anna' (changed since)",
        ),
        (
            "DELETE FROM users WHERE id = 2",
            "INSERT INTO users VALUES (2, 'Other')",
            "id=2, name='Bob'",
        ),
        (
            "UPDATE plain SET b = 3 WHERE a IS NULL",
            "UPDATE plain SET b = 4 WHERE a IS NULL",
            "(changed or deleted since)",
        ),
        (
            "ALTER TABLE plain ADD COLUMN c integer",
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

#[test]
fn st_35_a_row_that_others_refer_to_does_not_go() {
    let ours = "INSERT INTO users (name) VALUES ('Mal')";
    let (room, reverted) = revert(ours, "INSERT INTO notes (owner) VALUES (4)");
    let Reverted::Image(image) = reverted else {
        panic!("{reverted:?}");
    };
    // The server itself checks that, and nothing has happened.
    room.database("").restore(&image, &room.memory).unwrap_err();
    assert_eq!(room.cell("SELECT count(*) FROM users"), "4");
    assert_eq!(room.cell("SELECT count(*) FROM notes"), "1");
}
