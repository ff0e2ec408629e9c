//! A whole database: captured, damaged, and brought back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use safepoint_database::compare;

use crate::everything::{DAMAGE, EVERYTHING};
use crate::support::Room;

#[test]
fn st_16_everything_that_a_database_can_hold_comes_back() {
    let room = Room::with(EVERYTHING);
    let (before, image) = (room.dump(&[]), room.capture(""));
    assert_eq!(room.capture("").digest(), image.digest());
    room.run(DAMAGE);
    assert_ne!(room.capture("").digest(), image.digest());
    room.restore("", &image);
    room.assert_dump(&before);
    assert_eq!(room.capture("").digest(), image.digest());
    // Once more, over what is already as it should be.
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_a_database_comes_back_from_nothing() {
    let room = Room::with(EVERYTHING);
    let (before, image) = (room.dump(&[]), room.capture(""));
    room.run(
        "DROP EVENT TRIGGER watched; DROP PUBLICATION feed; DROP SCHEMA public, audit, \"we.ird \"\"schema\"\"\" CASCADE",
    );
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_an_empty_database_is_empty_again() {
    let room = Room::with("DROP SCHEMA public");
    let (before, image) = (room.dump(&[]), room.capture(""));
    assert!(image.tables.is_empty());
    room.run("CREATE SCHEMA public");
    room.run(EVERYTHING);
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_extensions_stay_and_come_back() {
    let room = Room::with(
        "CREATE EXTENSION citext; CREATE SCHEMA tools; CREATE EXTENSION pg_trgm WITH SCHEMA tools; \
         CREATE TABLE words (word citext PRIMARY KEY); INSERT INTO words VALUES ('Hello'); \
         CREATE INDEX alike ON words USING gin ((word::text) tools.gin_trgm_ops); \
         CREATE FUNCTION tools.own() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
    );
    let (before, image) = (room.dump(&[]), room.capture(""));
    let citext = "SELECT oid FROM pg_extension WHERE extname = 'citext'";
    let number = room.cell(citext);
    room.run(
        "DROP EXTENSION pg_trgm CASCADE; CREATE EXTENSION hstore; INSERT INTO words VALUES ('there'); \
         CREATE TABLE maps (map hstore); DROP FUNCTION tools.own()",
    );
    room.restore("", &image);
    room.assert_dump(&before);
    assert_eq!(
        room.cell(citext),
        number,
        "what is as it was is not made anew"
    );
    room.run("DROP EXTENSION citext CASCADE; DROP SCHEMA tools CASCADE");
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_a_capture_beside_writers_is_of_one_moment() {
    let room = Room::with(
        "CREATE TABLE accounts (id integer PRIMARY KEY, money integer NOT NULL); \
         INSERT INTO accounts SELECT g, 100 FROM generate_series(1, 50) g; \
         CREATE TABLE moves (id bigserial PRIMARY KEY, account integer NOT NULL REFERENCES accounts, amount integer NOT NULL)",
    );
    let done = AtomicBool::new(false);
    let images = thread::scope(|threads| {
        for writer in 0..2 {
            let (room, done) = (&room, &done);
            threads.spawn(move || {
                let mut client = room.client();
                let mut round = 0;
                while !done.load(Ordering::SeqCst) {
                    round += 1;
                    let (from, to) = ((round * 7 + writer) % 50 + 1, (round * 13) % 50 + 1);
                    let moved = client.batch_execute(&format!(
                        "BEGIN; UPDATE accounts SET money = money - 1 WHERE id = {from}; \
                         UPDATE accounts SET money = money + 1 WHERE id = {to}; \
                         INSERT INTO moves (account, amount) VALUES ({from}, -1), ({to}, 1); COMMIT"
                    ));
                    if moved.is_err() {
                        client.batch_execute("ROLLBACK").unwrap(); // a deadlock of the two
                    }
                }
            });
        }
        // Until the writers have got in between.
        let mut images = vec![room.capture("")];
        while images.len() < 4 || images[0].digest() == images[images.len() - 1].digest() {
            images.push(room.capture(""));
        }
        done.store(true, Ordering::SeqCst);
        images
    });
    for image in images {
        room.restore("", &image);
        assert_eq!(room.cell("SELECT sum(money) FROM accounts"), "5000");
        assert_eq!(room.cell("SELECT coalesce(sum(amount), 0) FROM moves"), "0");
        let agreed = "SELECT count(*) FROM accounts a WHERE money <> 100 + \
             (SELECT coalesce(sum(amount), 0) FROM moves m WHERE m.account = a.id)";
        assert_eq!(room.cell(agreed), "0");
        let next =
            "SELECT (SELECT coalesce(max(id), 0) FROM moves) <= last_value FROM moves_id_seq";
        assert_eq!(room.cell(next), "true");
    }
}

#[test]
fn st_16_a_capture_beside_changes_of_structure_is_of_one_moment() {
    let room =
        Room::with("CREATE TABLE stays (a integer); CREATE TABLE comes_and_goes (a integer)");
    let done = AtomicBool::new(false);
    let images = thread::scope(|threads| {
        threads.spawn(|| {
            let mut client = room.client();
            while !done.load(Ordering::SeqCst) {
                let swap = "BEGIN; DROP TABLE comes_and_goes; CREATE TABLE comes_and_goes (a integer, b text); \
                     INSERT INTO comes_and_goes VALUES (1, 'x'); INSERT INTO stays VALUES (1); COMMIT";
                // It may have to wait for a capture too long.
                if client.batch_execute(&format!("SET lock_timeout = '100ms'; {swap}")).is_err() {
                    client.batch_execute("ROLLBACK").unwrap();
                }
            }
        });
        let mut images = Vec::new();
        while images.len() < 5 {
            match room.database("").capture(&room.memory) {
                Ok(image) => images.push(image),
                // `pg_dump` waits in line behind the other, who waits for us.
                Err(safepoint_database::DatabaseError::Locked { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        done.store(true, Ordering::SeqCst);
        images
    });
    for image in images {
        room.restore("", &image);
    }
}

#[test]
fn st_16_big_rows_and_many_tables_come_back() {
    let room = Room::with(
        "CREATE TABLE big (id integer, body bytea, words text); \
         INSERT INTO big SELECT g, decode(repeat(md5(g::text), 50000), 'hex'), repeat(E'\\t\\n\\\\', 100000) \
           FROM generate_series(1, 3) g; \
         DO $$ BEGIN FOR i IN 1..150 LOOP \
           EXECUTE format('CREATE TABLE many_%s (id serial PRIMARY KEY, a text)', i); \
           EXECUTE format('INSERT INTO many_%s (a) VALUES (''x'')', i); END LOOP; END $$",
    );
    let (before, image) = (room.dump(&[]), room.capture(""));
    assert_eq!(image.tables.len(), 151);
    room.run("UPDATE big SET body = NULL; DROP TABLE many_1; TRUNCATE many_2");
    room.restore("", &image);
    room.assert_dump(&before);
}

#[test]
fn differences_are_told_in_columns_and_rows() {
    let room = Room::with(
        "CREATE TABLE users (id integer PRIMARY KEY, twice integer GENERATED ALWAYS AS (id * 2) STORED, name text, note text); \
         INSERT INTO users (id, name) VALUES (1, 'Ann'), (2, 'Bob')",
    );
    let before = room.capture("");
    room.run(
        "CREATE INDEX by_name ON users (name); \
         DELETE FROM users WHERE id = 2; INSERT INTO users (id, name, note) VALUES (3, 'Cid', '')",
    );
    let after = room.capture("");
    let found = compare(&before, &after, &room.memory, room.directory.path(), 10).unwrap();
    let text = found.to_text();
    for line in [
        "+ index public.by_name CREATE INDEX by_name ON public.users USING btree (name)",
        "~ public.users: 2 → 2 rows",
        "-   id=2, name='Bob', note=NULL",
        "+   id=3, name='Cid', note=''",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    room.run("ALTER TABLE users ADD COLUMN status varchar(20) DEFAULT 'active'");
    let altered = room.capture("");
    let found = compare(&after, &altered, &room.memory, room.directory.path(), 10).unwrap();
    assert_eq!(
        found.to_text(),
        "+ column public.users.status character varying(20) DEFAULT 'active'::character varying\n\
         ~ public.users: 2 → 2 rows, not compared because its columns differ\n"
    );
}

#[test]
fn what_a_capture_does_not_hold_is_named() {
    let room = Room::with(
        "CREATE EXTENSION postgres_fdw; CREATE SERVER away FOREIGN DATA WRAPPER postgres_fdw; \
         CREATE USER MAPPING FOR CURRENT_USER SERVER away OPTIONS (password 'hunter2'); \
         CREATE FOREIGN TABLE far (a integer) SERVER away; SELECT lo_create(0); \
         CREATE MATERIALIZED VIEW seen AS SELECT 1 AS one",
    );
    let image = room.capture("");
    assert_eq!(
        image.not_covered,
        [
            "foreign server `away` and its user mappings",
            "large objects (1)",
            "the rows of foreign table `public.far`",
            "the rows of materialized view `public.seen`, which are computed again instead",
        ]
    );
    assert!(!room.memory.holds("hunter2"));
    let before = room.dump(&["--schema-only"]);
    room.run("DROP FOREIGN TABLE far; CREATE TABLE new (a integer)");
    room.restore("", &image);
    assert_eq!(room.dump(&["--schema-only"]), before);
}

#[test]
fn st_16_event_triggers_do_not_act_on_a_restore() {
    let room = Room::with(
        "CREATE TABLE changes (tag text); CREATE TABLE other (a integer); \
         CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS $$ \
           BEGIN INSERT INTO public.changes VALUES (tg_tag); END $$; \
         CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted(); COMMENT ON TABLE changes IS 'log'",
    );
    let (before, image) = (room.dump(&[]), room.capture(""));
    assert_eq!(image.rows(), 1);
    room.run("DROP TABLE other; CREATE TABLE new (a integer)");
    room.restore("", &image);
    room.assert_dump(&before);
    // Of a part, it stays in force; what it writes there is seen.
    let image = room.capture("#other,changes");
    room.run("ALTER TABLE other ADD COLUMN b integer");
    let before = room.dump(&[]);
    let error = room
        .database("#other,changes")
        .restore(&image, &room.memory);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`public.changes` was written to"), "{error}");
    room.assert_dump(&before);
}
