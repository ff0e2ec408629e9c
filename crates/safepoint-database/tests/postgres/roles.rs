//! Other roles: who owns what, who may do what, and what we may not.

use std::sync::atomic::{AtomicU32, Ordering};

use safepoint_database::Database;

use crate::support::Room;

/// Roles belong to the whole server, so each gets a name of its own; it is gone with this.
struct Role<'a> {
    room: &'a Room,
    name: String,
}

impl<'a> Role<'a> {
    fn new(room: &'a Room) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let name = format!("role_{number}_{}", room.name);
        room.run(&format!("CREATE ROLE {name} LOGIN"));
        Self { room, name }
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        let name = &self.name;
        let drop = format!(
            "REASSIGN OWNED BY {name} TO CURRENT_USER; DROP OWNED BY {name}; DROP ROLE {name}"
        );
        let _ = self.room.client().batch_execute(&drop);
    }
}

#[test]
fn st_16_owners_and_rights_come_back() {
    let room = Room::new();
    let (one, two) = (Role::new(&room), Role::new(&room));
    let (a, b) = (&one.name, &two.name);
    room.run(&format!(
        "CREATE SCHEMA theirs AUTHORIZATION {a}; GRANT USAGE ON SCHEMA theirs TO {b} WITH GRANT OPTION; \
         CREATE TABLE theirs.things (id serial PRIMARY KEY, secret text); ALTER TABLE theirs.things OWNER TO {a}; \
         GRANT SELECT (id) ON theirs.things TO {b}; GRANT INSERT ON theirs.things TO {b} WITH GRANT OPTION; \
         SET ROLE {b}; GRANT INSERT ON theirs.things TO PUBLIC; GRANT USAGE ON SCHEMA theirs TO PUBLIC; RESET ROLE; \
         CREATE FUNCTION theirs.f() RETURNS integer LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION theirs.f() OWNER TO {b}; \
         CREATE TYPE theirs.t AS ENUM ('x'); ALTER TYPE theirs.t OWNER TO {b}; REVOKE ALL ON TYPE theirs.t FROM PUBLIC; \
         ALTER DEFAULT PRIVILEGES FOR ROLE {a} GRANT SELECT ON TABLES TO {b}; \
         ALTER DEFAULT PRIVILEGES FOR ROLE {a} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; \
         CREATE VIEW public.seen AS SELECT id FROM theirs.things; ALTER VIEW public.seen OWNER TO {b}"
    ));
    let (before, image) = (room.dump(&[]), room.capture(""));
    for damage in [
        "DROP SCHEMA theirs CASCADE".to_owned(),
        format!(
            "ALTER TABLE theirs.things OWNER TO {b}; GRANT ALL ON theirs.things TO PUBLIC; ALTER SCHEMA theirs OWNER TO {b}; \
             GRANT ALL ON SCHEMA theirs TO PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE {b} GRANT ALL ON TABLES TO PUBLIC; \
             ALTER DEFAULT PRIVILEGES FOR ROLE {a} REVOKE SELECT ON TABLES FROM {b}; ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO {a}"
        ),
    ] {
        room.run(&damage);
        room.restore("", &image);
        room.assert_dump(&before);
        assert_eq!(room.capture("").digest(), image.digest());
    }
}

#[test]
fn st_16_a_role_that_is_gone_costs_its_rights_and_nothing_else() {
    let room = Room::new();
    let role = Role::new(&room);
    let name = role.name.clone();
    room.run(&format!(
        "CREATE TABLE a (id integer); INSERT INTO a VALUES (1); ALTER TABLE a OWNER TO {name}; \
         CREATE TABLE b (id integer); GRANT SELECT ON b TO {name}; GRANT SELECT ON b TO PUBLIC"
    ));
    let image = room.capture("");
    room.run("DROP TABLE a, b");
    drop(role);
    let restored = room.database("").restore(&image, &room.memory).unwrap();
    let warnings = restored.warnings.join("\n");
    assert_eq!(restored.warnings.len(), 2, "{warnings}");
    assert!(
        warnings.contains(&format!("role \"{name}\" does not exist")),
        "{warnings}"
    );
    assert_eq!(room.cell("SELECT count(*) FROM a"), "1");
    assert_eq!(
        room.cell("SELECT has_table_privilege('public', 'b', 'SELECT')"),
        "true"
    );
}

#[test]
fn st_16_a_role_without_power_restores_what_is_its_own() {
    let room = Room::new();
    let (one, two) = (Role::new(&room), Role::new(&room));
    let (me, other) = (&one.name, &two.name);
    room.run(&format!(
        "ALTER DATABASE {} OWNER TO {me}; SET ROLE {me}; CREATE SCHEMA mine; \
         CREATE TABLE mine.a (id serial PRIMARY KEY, name text); CREATE VIEW mine.v AS SELECT * FROM mine.a; \
         INSERT INTO mine.a (name) VALUES ('x'), ('y'); GRANT SELECT ON mine.a TO {other}",
        room.name
    ));
    let (before, database) = (
        room.dump(&[]),
        Database::new(room.address_as(me), room.access()),
    );
    let image = database.capture(&room.memory).unwrap();
    room.run("DELETE FROM mine.a; ALTER TABLE mine.a ADD COLUMN more text; DROP VIEW mine.v");
    assert_eq!(
        database.restore(&image, &room.memory).unwrap().warnings,
        Vec::<String>::new()
    );
    room.assert_dump(&before);
    // What another role owns cannot be given back to it, but it is there.
    room.run(&format!(
        "ALTER TABLE mine.a OWNER TO {other}; GRANT ALL ON mine.a TO {me}; GRANT ALL ON SEQUENCE mine.a_id_seq TO {me}"
    ));
    let image = database.capture(&room.memory).unwrap();
    room.run("DROP TABLE mine.a CASCADE");
    let restored = database.restore(&image, &room.memory).unwrap();
    assert!(
        restored.warnings[0].contains("must be"),
        "{:?}",
        restored.warnings
    );
    assert_eq!(room.cell("SELECT count(*) FROM mine.a"), "2");
}

#[test]
fn st_16_rows_that_we_may_not_see_are_not_left_out_in_silence() {
    let room = Room::new();
    let role = Role::new(&room);
    let me = &role.name;
    room.run(&format!(
        "CREATE TABLE hidden (id integer, owner text); INSERT INTO hidden VALUES (1, 'a'), (2, 'b'); \
         ALTER TABLE hidden ENABLE ROW LEVEL SECURITY; CREATE POLICY partly ON hidden USING (owner = 'a'); \
         GRANT SELECT ON hidden TO {me}; CREATE TABLE closed (id integer)"
    ));
    let capture = |scope: &str| {
        let text = format!("{}{scope}", room.address_as(me));
        let address = safepoint_database::Address::parse(&text, std::path::Path::new("/")).unwrap();
        let database = Database::new(address, room.access());
        database.capture(&room.memory).unwrap_err().to_string()
    };
    let error = capture("#hidden");
    assert!(error.contains("row-level security policy"), "{error}");
    let error = capture("#closed");
    assert!(
        error.contains("permission denied for table closed"),
        "{error}"
    );
}
