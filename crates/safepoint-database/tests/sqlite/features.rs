//! Everything that a SQLite database can hold comes back with it.

use crate::support::Room;

/// A database with all that there is.
const EVERYTHING: &str = r#"
CREATE TABLE users(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL COLLATE NOCASE, email UNIQUE, note, CHECK (length(name) < 100));
INSERT INTO users(name, email, note) VALUES ('Ann', 'ann@example.org', NULL), ('Bob', NULL, ''), ('Eve', NULL, x'00ff'), ('Gone', NULL, 1.5);
DELETE FROM users WHERE name = 'Gone';
CREATE TABLE plain(a, b DEFAULT (1 + 1));
INSERT INTO plain(rowid, a) VALUES (5, 'five'), (-3, 'minus three'), (9223372036854775807, 'last');
CREATE TABLE keyed(k TEXT, n INT, v REAL, PRIMARY KEY (n DESC, k)) WITHOUT ROWID;
INSERT INTO keyed VALUES ('x', 1, 1), ('y', 2, 2.5), ('z', 1, NULL);
CREATE TABLE strict(i INTEGER, r REAL, t TEXT, b BLOB, a ANY) STRICT;
INSERT INTO strict VALUES (1, 2, 'three', x'04', 5.0), (NULL, 1e300, '', x'', 'any');
CREATE TABLE generated(w INT, h INT, area INT AS (w * h) STORED, around INT GENERATED ALWAYS AS (2 * (w + h)) VIRTUAL);
INSERT INTO generated(w, h) VALUES (2, 3), (4, 5);
CREATE TABLE child(id INTEGER PRIMARY KEY, parent INT REFERENCES users(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED);
INSERT INTO child VALUES (1, 1), (2, 2);
CREATE TABLE empty(x);
CREATE TABLE large(id INTEGER PRIMARY KEY, content);
INSERT INTO large VALUES (1, zeroblob(300000)), (2, randomblob(70000)), (3, 'small');
CREATE TABLE "odd ""name""; -- ü
x"("select" INT, "a b" TEXT, 'q''uote', [brackets], "rowid" TEXT);
INSERT INTO "odd ""name""; -- ü
x" VALUES (1, 'x', 'y', 'z', 'w');
CREATE INDEX "odd index" ON "odd ""name""; -- ü
x"("a b");
CREATE INDEX partial ON users(name) WHERE note IS NOT NULL;
CREATE UNIQUE INDEX expression ON plain(lower(a), b + 1);
CREATE VIEW names AS SELECT name FROM users UNION SELECT a FROM plain;
CREATE TRIGGER hurry AFTER UPDATE ON users BEGIN UPDATE plain SET b = b + 1; SELECT 'a;b'; END;
CREATE TRIGGER instead INSTEAD OF INSERT ON names BEGIN INSERT INTO users(name) VALUES (new.name); END;
CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'porter');
INSERT INTO docs VALUES ('first', 'the quick brown foxes'), ('second', 'jumping over lazy dogs');
CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1);
INSERT INTO boxes VALUES (1, 0, 10), (2, 5, 15);
PRAGMA user_version = -7;
PRAGMA application_id = 1234567;
ANALYZE;
"#;

/// As much of it undone, changed and added as possible.
const HAVOC: &str = r#"
PRAGMA foreign_keys = OFF;
DROP TABLE users; DROP TABLE keyed; DROP VIEW names; DROP TABLE docs; DROP TABLE boxes;
CREATE TABLE users(entirely, different); INSERT INTO users VALUES (1, 2);
ALTER TABLE plain RENAME COLUMN a TO renamed; ALTER TABLE strict ADD COLUMN more TEXT DEFAULT 'x';
DROP INDEX expression; CREATE INDEX new_index ON large(id);
DELETE FROM large; INSERT INTO large VALUES (7, 'other'); UPDATE generated SET w = 9;
CREATE TABLE created(since); CREATE VIEW names AS SELECT 1; CREATE TRIGGER new_one AFTER INSERT ON plain BEGIN SELECT 1; END;
PRAGMA user_version = 3; PRAGMA application_id = 3; ANALYZE;
"#;

pub(crate) fn everything(room: &Room, name: &str, pragmas: &str) {
    room.run(name, &format!("{pragmas}; {EVERYTHING}"));
}

fn comes_back(pragmas: &str, mode: &str) {
    let room = Room::new();
    everything(
        &room,
        "app.db",
        &format!("{pragmas}; PRAGMA journal_mode = {mode}"),
    );
    let image = room.capture("app.db");
    let dump = room.dump("app.db");
    assert_eq!(
        room.capture("app.db"),
        image,
        "the same state is the same image"
    );

    room.run("app.db", HAVOC);
    let changed = room.capture("app.db");
    assert_ne!(changed.digest(), image.digest());
    let changed_dump = room.dump("app.db");

    assert_eq!(room.restore("app.db", &image), Vec::<String>::new());
    assert_eq!(room.dump("app.db"), dump);
    assert_eq!(room.capture("app.db").digest(), image.digest());
    assert_eq!(room.pragma("app.db", "journal_mode"), mode);
    room.assert_sound("app.db");
    let found = room.ask("app.db", "SELECT title FROM docs WHERE docs MATCH 'fox'");
    assert_eq!(found, "first");
    let found = room.ask(
        "app.db",
        "SELECT count(*) FROM boxes WHERE x0 < 7 AND x1 > 12",
    );
    assert_eq!(found, "1");
    room.run("app.db", "INSERT INTO users(name) VALUES ('next')");
    assert_eq!(room.ask("app.db", "SELECT max(id) FROM users"), "5");

    // There and back again.
    room.restore("app.db", &changed);
    assert_eq!(room.dump("app.db"), changed_dump);
    room.restore("elsewhere.db", &image);
    assert_eq!(room.dump("elsewhere.db"), dump);

    // Rows and structure are the same however the pages lie.
    room.run("elsewhere.db", "VACUUM");
    assert_eq!(room.capture("elsewhere.db").digest(), image.digest());
}

#[test]
fn st_16_everything_comes_back_with_a_log() {
    comes_back("", "wal");
}

#[test]
fn st_16_everything_comes_back_with_a_journal() {
    comes_back("PRAGMA page_size = 1024", "delete");
}

#[test]
fn st_16_everything_comes_back_from_small_pages_and_auto_vacuum() {
    comes_back("PRAGMA page_size = 512; PRAGMA auto_vacuum = FULL", "wal");
}

#[test]
fn st_16_everything_comes_back_from_large_pages_and_incremental_vacuum() {
    comes_back(
        "PRAGMA page_size = 65536; PRAGMA auto_vacuum = INCREMENTAL",
        "delete",
    );
}

#[test]
fn st_16_everything_comes_back_in_other_encodings() {
    comes_back("PRAGMA encoding = 'UTF-16le'", "wal");
    comes_back("PRAGMA encoding = 'UTF-16be'", "delete");
}

#[test]
fn st_16_pages_of_another_size_are_no_obstacle() {
    for mode in ["wal", "delete"] {
        for (before, after) in [(1024, 8192), (8192, 1024)] {
            let room = Room::new();
            let pragmas = format!("PRAGMA page_size = {before}; PRAGMA journal_mode = {mode}");
            everything(&room, "app.db", &pragmas);
            let image = room.capture("app.db");
            let dump = room.dump("app.db");
            std::fs::remove_file(room.path("app.db")).unwrap();
            room.run(
                "app.db",
                &format!(
                    "PRAGMA page_size = {after}; PRAGMA journal_mode = {mode}; CREATE TABLE t(x)"
                ),
            );
            room.restore("app.db", &image);
            assert_eq!(room.dump("app.db"), dump);
            assert_eq!(room.capture("app.db").digest(), image.digest());
            assert_eq!(room.pragma("app.db", "journal_mode"), mode);
            room.assert_sound("app.db");
        }
    }
}

#[test]
fn st_16_the_journal_mode_is_that_of_the_destination() {
    let room = Room::new();
    everything(&room, "log.db", "PRAGMA journal_mode = wal");
    everything(&room, "journal.db", "");
    let (log, journal) = (room.capture("log.db"), room.capture("journal.db"));
    room.restore("log.db", &journal);
    room.restore("journal.db", &log);
    assert_eq!(room.pragma("log.db", "journal_mode"), "wal");
    assert_eq!(room.pragma("journal.db", "journal_mode"), "delete");
    assert_eq!(room.capture("log.db").digest(), journal.digest());
    assert_eq!(room.capture("journal.db").digest(), log.digest());
}

#[test]
fn st_16_an_empty_database_is_one_too() {
    let room = Room::new();
    std::fs::write(room.path("app.db"), "").unwrap();
    let image = room.capture("app.db");
    assert_eq!(image.rows(), 0);
    everything(&room, "app.db", "PRAGMA journal_mode = wal");
    room.restore("app.db", &image);
    assert_eq!(
        room.ask("app.db", "SELECT count(*) FROM sqlite_schema"),
        "0"
    );
    assert_eq!(room.capture("app.db").digest(), image.digest());
    room.restore("other.db", &image);
    assert_eq!(room.capture("other.db").digest(), image.digest());
}

#[test]
fn the_structure_is_told_apart() {
    let room = Room::new();
    everything(&room, "app.db", "");
    let image = room.capture("app.db");
    let tables: Vec<&str> = image
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    for table in [
        "users",
        "keyed",
        "docs_content",
        "sqlite_stat1",
        "odd \"name\"; -- ü\nx",
    ] {
        assert!(tables.contains(&table), "{table} in {tables:?}");
    }
    let users = image
        .schema
        .tables
        .iter()
        .find(|table| table.name == "users")
        .unwrap();
    assert_eq!(users.key, ["id"]);
    assert_eq!(users.columns[1].definition, "TEXT NOT NULL COLLATE NOCASE");
    let object = |kind: &str, name: &str| {
        let found = image
            .schema
            .objects
            .iter()
            .find(|object| (object.kind.as_str(), object.name.as_str()) == (kind, name));
        found
            .unwrap_or_else(|| panic!("{kind} {name}"))
            .definition
            .clone()
    };
    assert_eq!(object("sequence", "users"), "at 4");
    assert_eq!(object("constraint", "users CHECK (length(name) < 100)"), "");
    assert_eq!(object("options", "keyed"), "WITHOUT ROWID");
    assert_eq!(object("setting", "user_version"), "-7");
    assert!(object("virtual table", "docs").contains("fts5"));
    assert!(object("trigger", "instead").contains("INSTEAD OF"));
    assert_eq!(image.not_covered, Vec::<String>::new());
    let rows = |name: &str| {
        image
            .tables
            .iter()
            .find(|table| table.name == name)
            .unwrap()
            .rows
    };
    assert_eq!(
        (rows("users"), rows("keyed"), rows("empty"), rows("large")),
        (3, 3, 0, 3)
    );
}
