//! Some tables brought back, and the others left alone.

use safepoint_database::DatabaseError;

use crate::features::everything;
use crate::support::Room;

const CHANGES: &str = r#"
UPDATE users SET name = name || ' changed'; INSERT INTO users(name) VALUES ('new');
ALTER TABLE users ADD COLUMN status VARCHAR(20) DEFAULT 'active'; DROP INDEX partial;
UPDATE plain SET a = a || ' changed'; DELETE FROM keyed; INSERT INTO strict VALUES (9, 9, '9', x'09', 9);
DELETE FROM generated WHERE w = 2; DELETE FROM large; DELETE FROM "odd ""name""; -- ü
x";
DELETE FROM docs; INSERT INTO docs VALUES ('third', 'a wolf'); DELETE FROM boxes;
"#;

/// Restores some tables, and looks at all of them.
fn only(names: &[&str], pragmas: &str) {
    let room = Room::new();
    everything(&room, "app.db", pragmas);
    let before = room.capture("app.db");
    room.run("app.db", CHANGES);
    let changed = room.capture("app.db");
    let address = format!("app.db#{}", names.join(","));
    // From an image of all of it, and from one that is about these alone.
    let part = {
        room.restore("copy.db", &before);
        room.capture(&address.replace("app.db", "copy.db"))
    };
    assert_eq!(part.piece("file"), None);
    for image in [&before, &part] {
        room.restore("app.db", &changed);
        room.restore(&address, image);
        room.assert_sound("app.db");
        let found = room.capture("app.db");
        for table in &found.tables {
            let is_meant = part.tables.iter().any(|known| known.name == table.name);
            let expected = if is_meant { &before } else { &changed };
            let expected = expected
                .tables
                .iter()
                .find(|known| known.name == table.name);
            if !table.name.starts_with("sqlite_stat") {
                assert_eq!(Some(table), expected, "{names:?}");
            }
        }
        assert_eq!(room.capture(&address).digest(), part.digest(), "{names:?}");
    }
    // A partial image never touches anything else, even where all is asked for.
    room.restore("app.db", &changed);
    room.restore("app.db", &part);
    assert_eq!(room.capture(&address).digest(), part.digest());
    let untouched = room.ask("app.db", "SELECT count(*) FROM empty");
    assert_eq!(untouched, "0");
}

#[test]
fn st_16_named_tables_come_back_and_others_stay() {
    only(&["users"], "");
    only(&["USERS", "child"], "PRAGMA journal_mode = wal");
    only(
        &["plain", "keyed", "strict", "generated", "large", "empty"],
        "",
    );
    only(
        &["odd%20%22name%22%3B%20--%20%C3%BC%0Ax"],
        "PRAGMA journal_mode = wal",
    );
}

#[test]
fn st_16_virtual_tables_come_back_by_name() {
    only(&["docs", "boxes"], "");
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    room.run("app.db", "DROP TABLE docs; CREATE TABLE docs(x)");
    room.restore("app.db#docs", &image);
    assert_eq!(
        room.ask("app.db", "SELECT title FROM docs WHERE docs MATCH 'fox'"),
        "first"
    );
    // Statistics come back too, in another order.
    let statistics =
        "SELECT group_concat(tbl || stat, ' ') FROM (SELECT * FROM sqlite_stat1 ORDER BY tbl, idx)";
    room.restore("copy.db", &image);
    assert_eq!(
        room.ask("app.db", statistics),
        room.ask("copy.db", statistics)
    );
}

#[test]
fn st_16_a_named_table_that_was_dropped_or_made_a_view_is_back() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    room.run(
        "app.db",
        "DROP TABLE users; CREATE VIEW users AS SELECT 1; DROP TABLE plain",
    );
    room.restore("app.db#users,plain", &image);
    assert_eq!(room.capture("app.db#users,plain").digest(), {
        room.restore("copy.db", &image);
        room.capture("copy.db#users,plain").digest()
    });
    room.run("app.db", "INSERT INTO users(name) VALUES ('next')");
    assert_eq!(room.ask("app.db", "SELECT max(id) FROM users"), "5");
}

#[test]
fn st_16_a_named_table_that_was_not_there_is_gone() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    room.run(
        "app.db",
        "CREATE TABLE created(x); INSERT INTO created VALUES (1)",
    );
    room.restore("app.db#created", &image);
    assert_eq!(room.capture("app.db").digest(), image.digest());
    let error = room
        .database("app.db#nope")
        .restore(&image, &room.memory)
        .unwrap_err();
    assert!(matches!(error, DatabaseError::NotFound { .. }), "{error:?}");
}

#[test]
fn st_16_rows_that_lost_their_parents_are_told() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    room.run(
        "app.db",
        "INSERT INTO users(id, name) VALUES (50, 'late'); INSERT INTO child VALUES (50, 50)",
    );
    assert_eq!(
        room.restore("app.db#users", &image),
        ["1 rows of `child` refer to rows of `users` that are not there"]
    );
    assert_eq!(room.ask("app.db", "SELECT count(*) FROM child"), "3");
}

#[test]
fn st_16_a_table_that_cannot_come_back_leaves_all_as_it_was() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    // An index of another table has taken the name that one of these had.
    room.run(
        "app.db",
        "DROP INDEX partial; CREATE INDEX partial ON keyed(v); DELETE FROM users",
    );
    let changed = room.capture("app.db");
    let error = room
        .database("app.db#users")
        .restore(&image, &room.memory)
        .unwrap_err();
    assert!(error.to_string().contains("partial"), "{error}");
    assert_eq!(room.capture("app.db").digest(), changed.digest());
    room.nothing_left_behind();
    // A table of an image that is about others.
    let part = room.capture("app.db#plain");
    let error = room
        .database("app.db#users")
        .restore(&part, &room.memory)
        .unwrap_err();
    assert!(matches!(error, DatabaseError::NotFound { .. }), "{error:?}");
}

/// Rows from before `ALTER TABLE ADD COLUMN` are shorter than others, and row numbers have
/// gaps; both come back.
#[test]
fn st_16_altered_tables_come_back_by_name() {
    let room = Room::new();
    room.run(
        "app.db",
        "CREATE TABLE a(id INTEGER PRIMARY KEY, x); CREATE TABLE b(k TEXT PRIMARY KEY, x); CREATE TABLE c(x);
         INSERT INTO a VALUES (1, 2); INSERT INTO b VALUES ('k', 1); INSERT INTO c(rowid, x) VALUES (3, 1), (9, 2);
         ALTER TABLE a ADD COLUMN y DEFAULT 5; ALTER TABLE b ADD COLUMN y REAL DEFAULT 5; ALTER TABLE c ADD COLUMN y TEXT DEFAULT 'd';
         INSERT INTO a VALUES (2, 2, 2); INSERT INTO c VALUES (1, 2);",
    );
    let image = room.capture("app.db");
    let dump = room.dump("app.db");
    room.run("app.db", "DELETE FROM a; DELETE FROM b; DELETE FROM c");
    room.restore("app.db#a,b,c", &image);
    assert_eq!(room.dump("app.db"), dump);
    let (before, after) = (room.capture("app.db#a,b").digest(), {
        room.restore("copy.db", &image);
        room.capture("copy.db#a,b").digest()
    });
    assert_eq!(before, after);
}
