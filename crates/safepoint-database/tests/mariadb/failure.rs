//! Each failure leaves the database as it was, and says what to do.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use safepoint_database::{Address, Database, DatabaseError, Image, Verdict};

use crate::support::{Disturbed, Room, change, values};

const SHOP: &str = "
    CREATE TABLE users (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20));
    CREATE TABLE orders (id INT PRIMARY KEY, user INT, CONSTRAINT who FOREIGN KEY (user) REFERENCES users (id));
    CREATE TRIGGER tell BEFORE INSERT ON orders FOR EACH ROW SET @told = 1;
    CREATE VIEW names AS SELECT name FROM users;
    CREATE FUNCTION one() RETURNS INT DETERMINISTIC RETURN 1;
";

pub(crate) const DAMAGE: &str = "
    DELETE FROM orders; DELETE FROM users WHERE id > 100; ALTER TABLE users ADD late INT; CREATE TABLE late (id INT PRIMARY KEY);
    DROP TRIGGER tell; CREATE TRIGGER tell BEFORE INSERT ON orders FOR EACH ROW SET @told = 2;
    CREATE TRIGGER late BEFORE INSERT ON late FOR EACH ROW SET @late = 1;
    CREATE OR REPLACE VIEW names AS SELECT 1; DROP FUNCTION one;
";

/// A shop with so many users, each with an order.
pub(crate) fn shop(users: u32) -> Room {
    let rows = values(1..=users, |number| format!("{number}, 'user {number}'"));
    let room = Room::with(SHOP);
    room.sql(&format!(
        "INSERT INTO users VALUES {rows}; INSERT INTO orders SELECT id, id FROM users"
    ));
    room
}

/// A room that was captured and then damaged, with both states.
fn damaged() -> (Room, Image, Image) {
    let room = shop(2000);
    let image = room.capture();
    room.sql(DAMAGE);
    let before = room.capture();
    (room, image, before)
}

/// Restores while something happens at the run with this number.
fn disturbed(
    room: &Room,
    image: &Image,
    at: u64,
    disturb: &(dyn Fn() -> Result<(), DatabaseError> + Sync),
) -> DatabaseError {
    let contents = Disturbed {
        store: &room.store,
        runs: Mutex::new(0),
        at,
        disturb,
    };
    room.database().restore(image, &contents).unwrap_err()
}

#[test]
fn st_16_a_connection_lost_while_loading_changes_nothing() {
    let (room, image, before) = damaged();
    // The first runs are the structure, before anything is opened; then come rows.
    let structure = image.pieces[0].1.size / 1009 + 1;
    for at in [1, 20, 50] {
        let error = disturbed(&room, &image, structure + at, &|| {
            room.kill_connections();
            Ok(())
        });
        assert!(matches!(error, DatabaseError::Lost { .. }), "{error:?}");
        room.assert_is(&before);
    }
    room.restore(&image);
}

#[test]
fn st_16_a_killed_client_changes_nothing() {
    let (room, image, before) = damaged();
    let structure = image.pieces[0].1.size / 1009 + 1;
    let error = disturbed(&room, &image, structure + 20, &|| {
        assert!(kill_clients(&room) > 0);
        Ok(())
    });
    assert!(matches!(error, DatabaseError::Lost { .. }), "{error:?}");
    room.assert_is(&before);
    room.restore(&image);
}

/// Kills the clients of this room, which have its directory as their home.
fn kill_clients(room: &Room) -> u32 {
    let home = format!("HOME={}\0", room.directory.path().display());
    let mut killed = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let pid = entry.file_name().to_string_lossy().parse::<i32>();
        if let Ok(pid) = pid
            && String::from_utf8_lossy(&environment).contains(&home)
        {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            killed += 1;
        }
    }
    killed
}

#[test]
fn st_16_a_store_that_fails_changes_nothing() {
    let (room, image, before) = damaged();
    for at in [1, 20, 60] {
        let error = disturbed(&room, &image, at, &|| {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            Err(DatabaseError::Kept(Arc::new(full)))
        });
        assert!(matches!(error, DatabaseError::Kept(_)), "{error:?}");
        room.assert_is(&before);
    }
}

#[test]
fn st_16_rows_that_are_not_those_captured_are_found_before_they_are_in_place() {
    let (room, mut image, before) = damaged();
    let users = image
        .tables
        .iter()
        .position(|one| one.name == "users")
        .unwrap();
    let orders = image
        .tables
        .iter()
        .position(|one| one.name == "orders")
        .unwrap();
    image.tables[users].checksum = image.tables[orders].checksum;
    let error = room.database().restore(&image, &room.store).unwrap_err();
    assert!(
        matches!(error, DatabaseError::NotIdentical { .. }),
        "{error:?}"
    );
    room.assert_is(&before);
}

#[test]
fn st_16_a_full_table_changes_nothing() {
    let room = Room::with(
        "CREATE TABLE kept (id INT PRIMARY KEY); INSERT INTO kept VALUES (1);
         SET max_heap_table_size = 64 << 20; CREATE TABLE m (id INT PRIMARY KEY, t CHAR(200)) ENGINE=MEMORY;
",
    );
    let rows = values(1..=60_000, |number| format!("{number}, 'x'"));
    room.sql(&format!("INSERT INTO m VALUES {rows}"));
    let image = room.capture();
    room.sql("DELETE FROM m WHERE id > 10; INSERT INTO kept VALUES (2)");
    let before = room.capture();
    // More than such a table may hold by default, as on a disk that is full.
    let error = room.database().restore(&image, &room.store).unwrap_err();
    let DatabaseError::Sql { message } = &error else {
        panic!("{error:?}");
    };
    assert!(message.contains("is full"), "{message}");
    room.assert_is(&before);
}

#[test]
fn st_16_a_locked_table_is_told_and_nothing_is_changed() {
    let (room, image, before) = damaged();
    for hold in [
        "LOCK TABLES users WRITE; SELECT 'locked'; SELECT SLEEP(600);",
        "BEGIN; INSERT INTO orders VALUES (7, 7); SELECT 'locked'; SELECT SLEEP(600);",
        "BEGIN; SELECT COUNT(*) FROM late; SELECT 'locked'; SELECT SLEEP(600);",
    ] {
        let mut other = room.client_at_work(hold);
        room.wait_for_line(&mut other, "locked");
        let error = room.hasty().restore(&image, &room.store).unwrap_err();
        assert!(
            matches!(error, DatabaseError::Locked { .. }),
            "{hold}: {error:?}"
        );
        room.end(other);
        room.assert_is(&before);
    }
    let mut other =
        room.client_at_work("LOCK TABLES users WRITE; SELECT 'locked'; SELECT SLEEP(600);");
    room.wait_for_line(&mut other, "locked");
    let error = room.hasty().capture(&room.store).unwrap_err();
    assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
    room.end(other);
    room.restore(&image);
}

#[test]
fn st_16_a_view_that_was_broken_does_no_harm() {
    let room = Room::with(
        "CREATE TABLE t (a INT); CREATE TABLE u (a INT); CREATE VIEW broken AS SELECT a FROM t; DROP TABLE t",
    );
    let image = room.capture();
    room.sql("INSERT INTO u VALUES (1)");
    room.restore(&image);
    room.sql("DROP VIEW broken");
    let restored = room.database().restore(&image, &room.store).unwrap();
    assert_eq!(
        restored.warnings,
        ["view `broken` was broken, and is not there any more"]
    );
}

#[test]
fn st_16_two_restores_at_once_exclude_each_other() {
    let (room, image, _) = damaged();
    let inner = AtomicU32::new(0);
    let contents = Disturbed {
        store: &room.store,
        runs: Mutex::new(0),
        at: 20,
        disturb: &|| {
            let error = room.hasty().restore(&image, &room.store).unwrap_err();
            assert!(matches!(error, DatabaseError::Locked { .. }), "{error:?}");
            // A capture meanwhile neither waits nor cleans up what is being built.
            room.hasty().capture(&room.store).unwrap();
            inner.fetch_add(1, Ordering::Relaxed);
            Ok(())
        },
    };
    room.database().restore(&image, &contents).unwrap();
    assert_eq!(inner.into_inner(), 1);
    room.assert_is(&image);
}

#[test]
fn st_16_a_password_is_in_no_argument_and_in_no_message() {
    let room = shop(3);
    let user = format!("user_{}", &room.name[5..15]);
    room.on_server(&format!(
        "CREATE USER {user}@localhost IDENTIFIED BY 'hunter2'; GRANT ALL ON *.* TO {user}@localhost"
    ));
    // A client that writes its arguments down.
    let bin = room.directory.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("mariadb");
    let script = "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$HOME/arguments\"\nPATH=${PATH#*:}\nexec mariadb \"$@\"\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut access = room.access();
    let path = access.variables[std::ffi::OsStr::new("PATH")].clone();
    let path = format!("{}:{}", bin.display(), path.to_string_lossy());
    access.variables.insert("PATH".into(), path.into());

    let without = Database::new(room.address(&user, ""), access.clone());
    let error = without.capture(&room.store).unwrap_err();
    assert!(matches!(error, DatabaseError::Refused { .. }), "{error:?}");
    access
        .variables
        .insert("MYSQL_PWD".into(), "hunter3".into());
    let wrong = Database::new(room.address(&user, ""), access.clone());
    let error = wrong.capture(&room.store).unwrap_err();
    assert!(matches!(error, DatabaseError::Refused { .. }), "{error:?}");
    assert!(!format!("{error} {error:?} {wrong:?}").contains("hunter"));

    access
        .variables
        .insert("MYSQL_PWD".into(), "hunter2".into());
    let right = Database::new(room.address(&user, ""), access.clone());
    let image = right.capture(&room.store).unwrap();
    right
        .change(&change("DELETE FROM orders", None), &mut |_| Verdict::Keep)
        .unwrap();
    right.restore(&image, &room.store).unwrap();
    assert!(!serde_json::to_string(&image).unwrap().contains("hunter"));
    let arguments = std::fs::read_to_string(room.directory.path().join("arguments")).unwrap();
    assert!(arguments.contains(&format!("--user={user}")) && !arguments.contains("hunter"));

    // The user's own file works as well.
    access.variables.remove(std::ffi::OsStr::new("MYSQL_PWD"));
    std::fs::write(
        room.directory.path().join(".my.cnf"),
        "[client]\npassword=hunter2\n",
    )
    .unwrap();
    let by_file = Database::new(room.address(&user, ""), access);
    by_file.capture(&room.store).unwrap();
    room.on_server(&format!("DROP USER {user}@localhost"));
}

#[test]
fn st_16_a_user_without_rights_changes_nothing() {
    let (room, image, before) = damaged();
    let user = format!("user_{}", &room.name[5..15]);
    room.on_server(&format!(
        "CREATE USER {user}@localhost; GRANT ALL ON `{}`.* TO {user}@localhost",
        room.name
    ));
    let database = Database::new(room.address(&user, ""), room.access());
    let error = database.restore(&image, &room.store).unwrap_err();
    assert!(matches!(error, DatabaseError::Refused { .. }), "{error:?}");
    room.assert_is(&before);
    // What may be missing because it may not be seen is told.
    let seen = database.capture(&room.store).unwrap();
    assert_eq!(seen.not_covered, Vec::<String>::new());
    room.on_server(&format!(
        "REVOKE EVENT ON `{}`.* FROM {user}@localhost",
        room.name
    ));
    let seen = database.capture(&room.store).unwrap();
    assert_eq!(
        seen.not_covered,
        ["events that the user has no right to see"]
    );
    room.on_server(&format!("DROP USER {user}@localhost"));
}

#[test]
fn st_16_a_missing_client_and_a_missing_server_are_told() {
    let room = Room::new();
    let mut access = room.access();
    let empty = room.directory.path().as_os_str().to_owned();
    access.variables.insert("PATH".into(), empty);
    let database = Database::new(room.address("root", ""), access);
    let error = database.capture(&room.store).unwrap_err();
    let DatabaseError::MissingTool { tool, package } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (tool.as_str(), package.as_str()),
        ("mariadb", "mariadb-client")
    );

    let address = Address::parse("mariadb://root@%2Fno%2Fsuch%2Fsocket/x", Path::new("/")).unwrap();
    let error = Database::new(address, room.access())
        .capture(&room.store)
        .unwrap_err();
    assert!(
        matches!(error, DatabaseError::Unreachable { .. }),
        "{error:?}"
    );
}

#[test]
fn st_16_the_directory_of_a_socket_and_settings_of_the_user_are_fine() {
    let room = shop(3);
    let image = room.capture();
    let settings = "[client]\nsocket=/no/such/socket\n[mysql]\nxml\ntable\nvertical\nraw\ncolumn-names\nforce=0\nreconnect\nsafe-updates\ninit-command=SELECT 'no'\ndefault-character-set=latin1\nskip-quick\nshow-warnings\n";
    std::fs::write(room.directory.path().join(".my.cnf"), settings).unwrap();
    let address = room
        .address("root", "")
        .to_string()
        .replace("%2Fsocket/", "/");
    let address = Address::parse(&address, Path::new("/")).unwrap();
    let found = Database::new(address, room.access())
        .capture(&room.store)
        .unwrap();
    assert_eq!(found.digest(), image.digest());
    std::fs::write(room.directory.path().join(".my.cnf"), "[mysql]\nverbose\n").unwrap();
    let error = room.database().capture(&room.store).unwrap_err();
    assert!(error.to_string().contains("`verbose`"), "{error}");
}
