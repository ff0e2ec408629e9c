//! Named tables and schemas: brought back, and nothing else touched.

use safepoint_database::DatabaseError;

use crate::everything::EVERYTHING;
use crate::support::{Interrupted, Room};

/// Two tables that point at each other's rows, one of them with all that hangs on a table.
const SHOP: &str = "
    CREATE TABLE users (id serial PRIMARY KEY, name text NOT NULL);
    CREATE TABLE orders (id serial PRIMARY KEY, owner integer NOT NULL, amount integer);
    ALTER TABLE orders ADD CONSTRAINT owned FOREIGN KEY (owner) REFERENCES users (id) ON DELETE CASCADE;
    COMMENT ON CONSTRAINT owned ON orders IS 'by somebody';
    CREATE VIEW named AS SELECT name FROM users;
    CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.name = upper(NEW.name); RETURN NEW; END $$;
    CREATE TRIGGER loud BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION loud();
    ALTER TABLE users ENABLE ALWAYS TRIGGER loud;
    INSERT INTO users (name) VALUES ('Ann'), ('Bob'), ('Cid');
    INSERT INTO orders (owner, amount) VALUES (1, 10), (2, 20), (2, 30);
    UPDATE users SET name = initcap(name);";

#[test]
fn st_16_a_table_is_brought_back_and_others_are_not() {
    let room = Room::with(SHOP);
    let (before, image) = (room.dump(&[]), room.capture("#users"));
    assert_eq!(image.tables.len(), 1);
    let number = room.cell("SELECT 'users'::regclass::oid");
    room.run("UPDATE users SET name = 'x'; INSERT INTO users (name) VALUES ('new'); SELECT nextval('users_id_seq')");
    room.restore("#users", &image);
    room.assert_dump(&before);
    assert_eq!(room.cell("SELECT 'users'::regclass::oid"), number);
    room.run("DELETE FROM users WHERE id = 3; INSERT INTO orders (owner, amount) VALUES (1, 40)");
    room.restore("#users", &image);
    assert_eq!(room.cell("SELECT count(*) FROM users"), "3");
    assert_eq!(room.cell("SELECT count(*) FROM orders"), "4");
    assert_eq!(room.capture("#users").digest(), image.digest());
}

#[test]
fn st_16_a_table_with_another_structure_is_made_anew() {
    let room = Room::with(SHOP);
    room.run("CREATE STATISTICS together ON id, owner FROM orders; CREATE PUBLICATION feed FOR TABLE orders");
    let (before, image) = (room.dump(&[]), room.capture("#orders"));
    for damage in [
        "ALTER TABLE orders DROP COLUMN amount, ADD COLUMN more text DEFAULT 'x'",
        "DROP TABLE orders",
        "CREATE INDEX more ON orders (amount)",
        "ALTER TABLE orders DROP CONSTRAINT owned",
        "COMMENT ON COLUMN orders.owner IS 'x'",
        "ALTER SEQUENCE orders_id_seq INCREMENT BY 7",
        "DROP STATISTICS together",
    ] {
        room.run(damage);
        assert_ne!(
            room.capture_any("#orders"),
            Some(image.digest()),
            "{damage}"
        );
        room.restore("#orders", &image);
        room.assert_dump(&before);
    }
}

#[test]
fn st_16_foreign_keys_of_other_tables_stay() {
    let room = Room::with(SHOP);
    room.run("DROP VIEW named");
    let (before, image) = (room.dump(&[]), room.capture("#users"));
    room.run("ALTER TABLE users ADD COLUMN more text; UPDATE users SET name = 'x'");
    room.restore("#users", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_a_table_that_others_depend_on_is_not_torn_away() {
    let room = Room::with(SHOP);
    let image = room.capture("#users");
    room.run("ALTER TABLE users ADD COLUMN more text");
    let before = room.dump(&[]);
    let error = room.database("#users").restore(&image, &room.memory);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("view `public.named` is missing"), "{error}");
    room.assert_dump(&before);
}

#[test]
fn st_16_a_row_outside_that_would_point_at_nothing_stops_it() {
    let room = Room::with(SHOP);
    let image = room.capture("#users");
    room.run("INSERT INTO users (name) VALUES ('new'); INSERT INTO orders (owner) VALUES (4)");
    let before = room.dump(&[]);
    let error = room.database("#users").restore(&image, &room.memory);
    let error = error.unwrap_err();
    assert!(matches!(error, DatabaseError::Unsupported { .. }));
    assert!(
        error
            .to_string()
            .contains("foreign key `owned` of `public.orders`"),
        "{error}"
    );
    // Not even the sequence has moved, which no transaction holds.
    room.assert_dump(&before);
}

#[test]
fn st_16_rights_alone_are_set_back_in_place() {
    let room = Room::with(SHOP);
    room.run("GRANT SELECT ON users TO PUBLIC");
    let (before, image) = (room.dump(&[]), room.capture("#users,orders"));
    room.run("GRANT ALL ON users TO PUBLIC; GRANT UPDATE (amount) ON orders TO PUBLIC; REVOKE ALL ON users FROM CURRENT_USER");
    room.restore("#users,orders", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_a_schema_is_brought_back_and_others_are_not() {
    let room = Room::with(EVERYTHING);
    // What lies between the two schemas is in the way of making one anew.
    room.run("DROP MATERIALIZED VIEW count CASCADE; DROP TRIGGER people_noted ON people; DROP TRIGGER people_off ON people; \
              DROP EVENT TRIGGER watched");
    let (before, image) = (room.dump(&[]), room.capture("#audit.*"));
    assert!(
        image
            .tables
            .iter()
            .all(|table| table.name.starts_with("audit."))
    );
    room.run("DELETE FROM audit.noted; DELETE FROM audit.events WHERE id > 5; SELECT nextval('audit.counter')");
    room.restore("#audit.*", &image);
    room.assert_dump(&before);
    room.run(
        "DROP TABLE audit.events CASCADE; CREATE TABLE audit.since (a integer); CREATE TYPE audit.later AS ENUM ('x'); \
         DROP VIEW audit.happier; CREATE OR REPLACE PROCEDURE audit.nothing() LANGUAGE sql AS 'SELECT 1'; \
         ALTER DEFAULT PRIVILEGES IN SCHEMA audit GRANT ALL ON TABLES TO PUBLIC; COMMENT ON SCHEMA audit IS NULL; \
         INSERT INTO empty VALUES (5, 'outside')",
    );
    room.restore("#audit.*", &image);
    room.run("DELETE FROM empty WHERE a = 5");
    room.assert_dump(&before);
    room.run("DROP SCHEMA audit CASCADE");
    room.restore("#audit.*", &image);
    room.assert_dump(&before);
}

#[test]
fn st_16_a_schema_that_others_depend_on_is_not_torn_away() {
    let room = Room::with(EVERYTHING);
    let image = room.capture("#audit.*");
    room.run("DROP TABLE audit.noted");
    let before = room.dump(&[]);
    let error = room.database("#audit.*").restore(&image, &room.memory);
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("materialized view `public.count` is missing"),
        "{error}"
    );
    room.assert_dump(&before);
}

#[test]
fn st_16_a_partitioned_table_comes_with_its_partitions() {
    let room = Room::with(EVERYTHING);
    let (before, image) = (room.dump(&[]), room.capture("#audit.events"));
    let names: Vec<&str> = image
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    assert_eq!(names, ["audit.events_2023", "audit.events_2024_rest"]);
    room.run("DELETE FROM audit.events WHERE id > 100");
    room.restore("#audit.events", &image);
    room.assert_dump(&before);
    room.run(
        "CREATE TABLE audit.events_2025 PARTITION OF audit.events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01'); \
         ALTER TABLE audit.events DETACH PARTITION audit.events_2024",
    );
    room.restore("#audit.events", &image);
    room.assert_dump(&before);
    // One partition alone.
    let image = room.capture("#audit.events_2023");
    room.run("DELETE FROM audit.events WHERE id > 50");
    room.restore("#audit.events_2023", &image);
    assert_eq!(room.cell("SELECT count(*) FROM audit.events_2023"), "213");
    assert_eq!(room.cell("SELECT count(*) FROM audit.events_2024"), "0");
}

#[test]
fn st_16_hostile_names_are_names() {
    let room = Room::with(EVERYTHING);
    let before = room.dump(&[]);
    let scope = "#%22select%20%22%22x%22%22;%20--%22,%22we.ird%20%22%22schema%22%22%22.%22t.a%22";
    let image = room.capture(scope);
    assert_eq!(image.tables.len(), 2);
    room.run(DAMAGE_OF_NAMES);
    room.restore(scope, &image);
    room.assert_dump(&before);
    let schema = "#%22we.ird%20%22%22schema%22%22%22.*";
    let image = room.capture(schema);
    room.run("DROP SCHEMA \"we.ird \"\"schema\"\"\" CASCADE");
    room.restore(schema, &image);
    room.assert_dump(&before);
}

const DAMAGE_OF_NAMES: &str = r#"
    ALTER TABLE public."select ""x""; --" DROP COLUMN "it's";
    TRUNCATE "we.ird ""schema"""."t.a";"#;

#[test]
fn what_is_not_there_is_named() {
    let room = Room::with(SHOP);
    for (scope, expected) in [
        ("#nobody", "there is no table `nobody`"),
        ("#audit.users", "there is no table `audit.users`"),
        ("#audit.*", "there is no schema `audit.*`"),
        ("#pg_catalog.*", "there is no schema `pg_catalog.*`"),
        ("#named", "there is no table `named`"),
    ] {
        let error = room.database(scope).capture(&room.memory).unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn less_than_was_captured_is_not_restored() {
    let room = Room::with(SHOP);
    let image = room.capture("#users,orders");
    for scope in ["#users", "#audit.*"] {
        let error = room.database(scope).restore(&image, &room.memory);
        assert!(
            error.unwrap_err().to_string().contains("holds more"),
            "{scope}"
        );
    }
    room.restore("#public.*", &image);
    room.restore("", &image);
}

#[test]
fn st_16_sequences_outside_a_transaction_stand_where_they_did() {
    let room = Room::with(SHOP);
    let image = room.capture("#users");
    room.run("INSERT INTO users (name) SELECT 'x' FROM generate_series(1, 1000)");
    let before = room.dump(&[]);
    let fails = || {
        Err(DatabaseError::Sql {
            message: "enough".into(),
        })
    };
    let contents = Interrupted::new(&room.memory, 0, &fails);
    assert!(room.database("#users").restore(&image, &contents).is_err());
    room.assert_dump(&before);
}
