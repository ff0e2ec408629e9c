//! Passwords: taken from where `psql` takes them, and seen by nobody else.

use std::os::unix::fs::PermissionsExt;

use safepoint_database::{Access, Database, DatabaseError};

use crate::support::Room;

const PASSWORD: &str = "hunter2 with: colons \\ and 'quotes'";
/// The one role that the test server asks for a password.
const ROLE: &str = "safepoint_secret";

/// A room whose server asks [`ROLE`] for a password. All other roles of a test server are
/// trusted; the line for this one is added once, and stays as long as the server.
fn guarded() -> Room {
    let room = Room::with(
        "CREATE TABLE t (a integer); INSERT INTO t VALUES (1); GRANT SELECT ON t TO PUBLIC",
    );
    let mut client = room.server();
    let password = PASSWORD.replace('\'', "''");
    client
        .batch_execute(&format!(
            "SELECT pg_advisory_lock(77); SET standard_conforming_strings = on; SET password_encryption = 'scram-sha-256'; \
             DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN \
             CREATE ROLE {ROLE} LOGIN; END IF; END $do$; ALTER ROLE {ROLE} PASSWORD '{password}'"
        ))
        .unwrap();
    let known = format!("SELECT 1 FROM pg_hba_file_rules WHERE '{ROLE}' = ANY (user_name)");
    if client.query_opt(&known, &[]).unwrap().is_none() {
        let file: String = client.query_one("SHOW hba_file", &[]).unwrap().get(0);
        let program = format!(
            "{{ echo ''local all {ROLE} scram-sha-256''; cat {file}; }} > {file}.new && mv {file}.new {file}; cat > /dev/null"
        );
        client
            .batch_execute(&format!(
                "COPY (SELECT 1) TO PROGRAM '{program}'; SELECT pg_reload_conf()"
            ))
            .unwrap();
    }
    // The server reads its file when it gets to it.
    let place = room.address_as(ROLE);
    let server = place.server().unwrap();
    let mut config = postgres::Config::new();
    config.host(&server.host).user(ROLE).dbname(&room.name);
    while config.connect(postgres::NoTls).is_ok() {
        std::thread::yield_now();
    }
    room
}

fn database(room: &Room, access: Access) -> Database {
    Database::new(room.address_as(ROLE), access)
}

#[test]
fn st_16_a_wrong_password_is_refused_with_advice() {
    let room = guarded();
    let mut access = room.access();
    access.variables.remove(std::ffi::OsStr::new("HOME"));
    for password in [None, Some("wrong secret")] {
        if let Some(password) = password {
            access
                .variables
                .insert("PGPASSWORD".into(), password.into());
        }
        let error = database(&room, access.clone())
            .capture(&room.memory)
            .unwrap_err();
        assert!(matches!(error, DatabaseError::Refused { .. }), "{error}");
        let said = format!("{error} {error:?}");
        assert!(
            said.contains("set `PGPASSWORD`, or write the password into `~/.pgpass`"),
            "{said}"
        );
        assert!(!said.contains("wrong secret"), "{said}");
    }
}

#[test]
fn st_16_a_password_is_seen_by_the_server_alone() {
    let room = guarded();
    let directory = room.directory.path();
    let tools = directory.join("tools");
    std::fs::create_dir(&tools).unwrap();
    // A `pg_dump` that writes down what others could see of it.
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|path| path.join("pg_dump"))
        .find(|path| path.exists())
        .unwrap();
    let program = tools.join("pg_dump");
    let seen = directory.join("seen");
    let script = format!(
        "#!/bin/sh\ntr '\\0' '\\n' < /proc/$$/cmdline >> {0}\nenv | cut -d= -f1 >> {0}\nexec {1} \"$@\"\n",
        seen.display(),
        real.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let mut access = room.access();
    let path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(
        &access.variables[std::ffi::OsStr::new("PATH")],
    )));
    access.variables.insert("PATH".into(), path.unwrap());
    access
        .variables
        .insert("PGPASSWORD".into(), PASSWORD.into());
    access
        .variables
        .insert("AWS_SECRET_ACCESS_KEY".into(), "not for a child".into());
    let database = database(&room, access);
    let image = database.capture(&room.memory).unwrap();
    assert_eq!(image.rows(), 1);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(
        seen.contains("--section=pre-data") && seen.contains("PGPASSWORD"),
        "{seen}"
    );
    assert!(
        !seen.contains("hunter2") && !seen.contains("AWS_SECRET"),
        "{seen}"
    );
    assert!(!room.memory.holds("hunter2"));
    let kept = serde_json::to_string(&image).unwrap();
    assert!(!kept.contains("hunter2"));
    assert!(!format!("{database:?}").contains("hunter2"));
    // What it may not do is refused without it too.
    let error = database
        .restore(&image, &room.memory)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("permission denied") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn st_16_a_password_may_be_in_a_file_of_our_own() {
    let room = guarded();
    let file = room.directory.path().join("passwords");
    let escaped = PASSWORD.replace('\\', "\\\\").replace(':', "\\:");
    std::fs::write(
        &file,
        format!(
            "# ours\n*:*:other:*:no\n*:*:{}:{ROLE}:{escaped}\n",
            room.name
        ),
    )
    .unwrap();
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    let mut access = room.access();
    access
        .variables
        .insert("PGPASSFILE".into(), file.clone().into());
    mode(0o600);
    assert!(
        database(&room, access.clone())
            .capture(&room.memory)
            .is_ok()
    );
    mode(0o640);
    let error = database(&room, access)
        .capture(&room.memory)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("others can read it: `chmod 600` it"),
        "{error}"
    );
}
