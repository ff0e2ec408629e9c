//! Databases from the outside: in a checkpoint, in a roll back, under a change.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests do what the product may not"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::TestEnv;
use testkit::tree::{assert_same, look};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn id(reply: &Value) -> String {
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

const SHOP: &str = "CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, created_at TEXT);
    INSERT INTO users VALUES (1, 'ann@x', '2024'), (2, 'ben@x', '2024');";

fn sqlite(path: &Path, statements: &str) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(statements).unwrap();
    connection
}

fn one(connection: &Connection, query: &str) -> String {
    connection
        .query_row(query, [], |row| row.get::<_, rusqlite::types::Value>(0))
        .map(|value| match value {
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Text(text) => text,
            other => format!("{other:?}"),
        })
        .unwrap()
}

#[test]
fn st_16_a_sqlite_database_comes_back_in_place() {
    let env = env();
    let path = env.project().join("app.db");
    // A program that has it open all the time.
    let open = sqlite(&path, &format!("PRAGMA journal_mode = WAL; {SHOP}"));
    let reply = env.json(&["checkpoint", "sqlite:app.db", "--reason", "before"]);
    assert_eq!(reply["checkpoint"]["type"], "database_savepoint");
    assert_eq!(reply["checkpoint"]["scope"]["files"], json!([]));
    let databases = &reply["checkpoint"]["scope"]["databases"];
    assert!(databases[0].as_str().unwrap().ends_with("/app.db"));
    open.execute_batch("DROP TABLE users; CREATE TABLE other (x)")
        .unwrap();
    let diff = env.json(&["diff", &id(&reply)])["diff"].to_string();
    assert!(
        diff.contains("- table users") && diff.contains("+ table other"),
        "{diff}"
    );
    let back = env.json(&["rollback", &id(&reply)]);
    assert_eq!(back["verification"]["match"], true);
    assert_eq!(
        back["verification"]["post_state_hash"],
        back["verification"]["checkpoint_hash"]
    );
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    env.json(&["redo"]);
    assert_eq!(one(&open, "SELECT count(*) FROM other"), "0");
    assert_eq!(env.run(&["verify", &id(&reply)]).code, 0);
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

#[test]
fn st_16_a_plain_checkpoint_never_tears_a_live_database() {
    for mode in ["WAL", "DELETE"] {
        let env = env();
        let path = env.project().join("app.db");
        let bank = format!(
            "PRAGMA journal_mode = {mode}; CREATE TABLE bank (id INTEGER PRIMARY KEY, v INT);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
             INSERT INTO bank SELECT i, 100 FROM n;"
        );
        let connection = sqlite(&path, &bank);
        let stop = AtomicBool::new(false);
        let mut kept = Vec::new();
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                connection
                    .busy_timeout(std::time::Duration::from_secs(60))
                    .unwrap();
                let mut step = 0;
                while !stop.load(Ordering::Relaxed) {
                    step += 1;
                    let (a, b) = (step * 7 % 2000 + 1, step * 13 % 2000 + 1);
                    let moved = format!(
                        "BEGIN IMMEDIATE;
                         UPDATE bank SET v = v - 3 WHERE id = {a};
                         UPDATE bank SET v = v + 3 WHERE id = {b};
                         COMMIT"
                    );
                    connection.execute_batch(&moved).unwrap();
                }
            });
            for _ in 0..4 {
                kept.push(id(&env.json(&["checkpoint"])));
            }
            stop.store(true, Ordering::Relaxed);
        });
        for id in kept {
            assert_eq!(env.run(&["rollback", &id]).code, 0, "{mode}");
            let found = Connection::open(&path).unwrap();
            assert_eq!(one(&found, "PRAGMA integrity_check"), "ok", "{mode}");
            assert_eq!(one(&found, "SELECT sum(v) FROM bank"), "200000", "{mode}");
        }
    }
}

#[test]
fn st_16_a_database_that_rests_comes_back_byte_for_byte() {
    let env = env();
    let path = env.project().join("app.db");
    let open = sqlite(&path, &format!("PRAGMA journal_mode = WAL; {SHOP}"));
    let before = look(&env.project());
    let reply = env.json(&["checkpoint"]);
    assert_same(&before, &look(&env.project()));
    drop(open); // which copies the log into the database, and removes it
    assert!(!env.project().join("app.db-wal").exists());
    env.json(&["rollback", &id(&reply)]);
    assert_same(&before, &look(&env.project()));
    let again = Connection::open(&path).unwrap();
    assert_eq!(one(&again, "SELECT count(*) FROM users"), "2");
}

#[test]
fn st_16_sql_runs_under_a_savepoint_and_its_query_decides() {
    let env = env();
    let path = env.project().join("app.db");
    let open = sqlite(&path, SHOP);
    let first = id(&env.json(&["checkpoint", "sqlite:app.db"]));
    let change = |sql: &str, verify: &str| {
        json!({"type": "sql", "description": "Add status column with default value",
               "sql": sql, "verify": verify})
        .to_string()
    };
    let alter = "ALTER TABLE users ADD COLUMN status VARCHAR(20) DEFAULT 'active'";
    let arguments = |operation: &str| {
        [
            "mutate",
            "sqlite:app.db",
            "--checkpoint",
            &first,
            "--operation",
            operation,
            "--json",
        ]
        .map(str::to_owned)
    };
    let run = |operation: &str| {
        let words = arguments(operation);
        env.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let failed = run(&change(alter, "SELECT count(*) = 99 FROM users"));
    assert_eq!(failed.code, 1, "{failed:?}");
    let reply: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(reply["error"]["code"], "F513");
    assert_eq!(reply["success"], false);
    let columns = "SELECT count(*) FROM pragma_table_info('users')";
    assert_eq!(one(&open, columns), "3");
    let failed = run(&change(
        "UPDATE users SET email = NULL; SELECT nonsense",
        "SELECT 1",
    ));
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(one(&open, "SELECT count(email) FROM users"), "2");
    // A failed one does not use the checkpoint up.
    let done = run(&change(
        alter,
        "SELECT count(*) = 2 FROM users WHERE status = 'active'",
    ));
    assert_eq!(done.code, 0, "{done:?}");
    let reply: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(reply["diff"]["type"], "structural");
    let content = reply["diff"]["content"].as_str().unwrap();
    assert!(
        content.contains("+ column users.status VARCHAR(20) DEFAULT 'active'"),
        "{content}"
    );
    assert_eq!(
        reply["previous_state"]["snapshot"]["tables"]["users"]["columns"],
        json!(["id", "email", "created_at"])
    );
    assert_eq!(
        reply["new_state"]["snapshot"]["tables"]["users"]["columns"],
        json!(["id", "email", "created_at", "status"])
    );
    assert_eq!(one(&open, columns), "4");
    // After the commit, the way back leads over the snapshot; as printed.
    let command = reply["rollback_command"].as_str().unwrap();
    let mut shell = env.command(&[]);
    let variables: Vec<_> = shell
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    shell = Command::new("sh");
    let output = shell
        .args(["-c", command])
        .envs(variables)
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(one(&open, columns), "3");
}

#[test]
fn st_27_a_check_that_fails_after_a_commit_brings_the_database_back() {
    let env = env();
    let open = sqlite(&env.project().join("app.db"), SHOP);
    env.write("project/note.txt", "one\n");
    let batch = json!([
        {"type": "write", "target": "note.txt", "content": "two\n"},
        {"type": "sql", "target": "sqlite:app.db", "sql": "DELETE FROM users"},
        {"type": "write", "target": "more.txt", "content": "three\n"},
    ])
    .to_string();
    let arguments = [
        "mutate",
        "--auto-checkpoint",
        "--operation",
        &batch,
        "--verify",
    ];
    let failed = env.run(&[&arguments[..], &["test -e never"]].concat());
    assert_eq!(failed.code, 1, "{failed:?}");
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    assert_eq!(fs::read(env.project().join("note.txt")).unwrap(), b"one\n");
    assert!(!env.project().join("more.txt").exists());
    let done = env.run(&[&arguments[..], &["test -e more.txt"]].concat());
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "0");
    env.json(&["undo"]);
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    assert_eq!(fs::read(env.project().join("note.txt")).unwrap(), b"one\n");
}

#[test]
fn st_16_sql_that_fails_takes_nothing_from_others() {
    let env = env();
    let path = env.project().join("app.db");
    let other = sqlite(&path, &format!("PRAGMA journal_mode = WAL; {SHOP}"));
    let update = "UPDATE users SET email = NULL";
    let broken = format!("{update}; SELECT nonsense");
    let cases = [
        (update, "SELECT 0"),
        (&broken, "SELECT 1"),
        (update, "SELECT nonsense"),
    ];
    for (sql, verify) in cases {
        // It captures the database, says what it is about to do, and waits for us.
        let users = "INSERT INTO users (email) VALUES ('new@x')";
        other
            .execute_batch(&format!("BEGIN IMMEDIATE; {users}"))
            .unwrap();
        let operation = json!({ "type": "sql", "sql": sql, "verify": verify }).to_string();
        let target = ["mutate", "sqlite:app.db", "--auto-checkpoint"];
        let mut command = env.command(&[&target[..], &["--operation", &operation]].concat());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        while !is_begun(&env) {
            assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
            std::thread::yield_now();
        }
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{sql}; {verify}");
    }
    assert_eq!(one(&other, "SELECT count(email) FROM users"), "5");
    assert_eq!(env.json(&["log"])["actions"], json!([]));
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

/// Whether a change says on disk what it is about to do.
fn is_begun(env: &TestEnv) -> bool {
    let journals = fs::read_dir(env.home().join("state/journals"));
    journals
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| entry.path().extension() == Some("json".as_ref()))
}

#[test]
fn st_31_what_a_failed_check_took_from_a_database_is_kept() {
    let env = env();
    let path = env.project().join("app.db");
    let open = sqlite(&path, SHOP);
    let operation = json!({ "type": "sql", "sql": "DELETE FROM users WHERE id = 1" }).to_string();
    let target = ["mutate", "sqlite:app.db", "--auto-checkpoint"];
    let more = ["--operation", &operation, "--verify", "false"];
    assert_eq!(env.run(&[&target[..], &more].concat()).code, 1);
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    let list = env.json(&["list", "--automatic"]);
    let all = list["checkpoints"].as_array().unwrap();
    let half_way = |one: &&Value| one["reason"].to_string().contains("found half-way");
    let found = all.iter().find(half_way).unwrap();
    let kept = found["id"].as_str().unwrap();
    env.json(&["rollback", kept, "--expired", "sqlite:app.db"]);
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "1");
}

#[test]
fn st_16_what_stands_in_the_way_is_told_and_changes_nothing() {
    let mut env = env();
    env.set("SAFEPOINT_LOCK_TIMEOUT", "200ms");
    let path = env.project().join("app.db");
    let open = sqlite(&path, SHOP);
    let first = id(&env.json(&["checkpoint", "sqlite:app.db"]));
    open.execute_batch("DELETE FROM users WHERE id = 1; BEGIN EXCLUSIVE")
        .unwrap();
    let run = env.run(&["rollback", &first, "--json"]);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &reply["error"]["code"]),
        (9, &json!("C904")),
        "{reply}"
    );
    open.execute_batch("COMMIT").unwrap();
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "1");
    // Garbage in its place is kept, and replaced.
    drop(open);
    fs::write(&path, "no database at all").unwrap();
    assert_eq!(env.run(&["rollback", &first]).code, 0);
    assert_eq!(
        one(
            &Connection::open(&path).unwrap(),
            "SELECT count(*) FROM users"
        ),
        "2"
    );
    env.json(&["redo"]);
    assert_eq!(fs::read(&path).unwrap(), b"no database at all");
    // A file that is no database makes no checkpoint.
    let run = env.run(&["checkpoint", "sqlite:app.db", "--json"]);
    assert_eq!(run.code, 1, "{run:?}");
    // Deleted altogether, it is made again; taking that back deletes it.
    fs::remove_file(&path).unwrap();
    env.json(&["rollback", &first]);
    assert_eq!(
        one(
            &Connection::open(&path).unwrap(),
            "SELECT count(*) FROM users"
        ),
        "2"
    );
    env.json(&["redo"]);
    assert!(!path.exists());
    for (scope, code) in [
        ("sqlite:none.db", 7),
        ("sqlite:", 7),
        ("postgres://me:secret@localhost/shop", 7),
        ("postgres://localhost:1/shop", 1),
    ] {
        let run = env.run(&["checkpoint", scope, "--json"]);
        assert_eq!(run.code, code, "{scope}: {run:?}");
        assert!(
            !run.stdout.contains("secret") && !run.stderr.contains("secret"),
            "{run:?}"
        );
    }
}

/// A database on one of the servers that the tests start. It is gone when this is.
struct Served {
    client: &'static str,
    options: Vec<String>,
    name: String,
    address: String,
}

impl Served {
    fn new(variable: &str) -> Self {
        let server = std::env::var(variable).unwrap_or_else(|_| {
            panic!("{variable} is not set: run ./test, or start a server with scripts/")
        });
        let unique = tempfile_name();
        let base = server.rsplit_once('/').unwrap().0;
        let host = base.rsplit_once('@').unwrap().1.replace("%2F", "/");
        let (client, options) = match variable {
            "SAFEPOINT_TEST_POSTGRES" => (
                "psql",
                vec![
                    "-qAtX".into(),
                    "-h".into(),
                    host,
                    "-U".into(),
                    "postgres".into(),
                ],
            ),
            _ => (
                "mariadb",
                vec![
                    "-N".into(),
                    "-B".into(),
                    "-u".into(),
                    "root".into(),
                    format!("--socket={host}"),
                ],
            ),
        };
        let served = Self {
            client,
            options,
            address: format!("{base}/{unique}"),
            name: unique,
        };
        served.on(
            if client == "psql" {
                "postgres"
            } else {
                "mysql"
            },
            &format!("CREATE DATABASE {}", served.name),
        );
        served
    }

    fn on(&self, database: &str, statements: &str) -> String {
        let mut command = Command::new(self.client);
        command.args(&self.options);
        match self.client {
            "psql" => command.args(["-d", database, "-v", "ON_ERROR_STOP=1", "-c", statements]),
            _ => command.args(["-D", database, "-e", statements]),
        };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{statements}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn sql(&self, statements: &str) -> String {
        self.on(&self.name, statements)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let database = if self.client == "psql" {
            "postgres"
        } else {
            "mysql"
        };
        self.on(database, &format!("DROP DATABASE {}", self.name));
    }
}

/// A name that nobody else has.
fn tempfile_name() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!(
        "cli_{}_{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The same story on every server.
fn story(variable: &str) {
    let served = Served::new(variable);
    served.sql("CREATE TABLE users (id INT PRIMARY KEY, email VARCHAR(50), created_at VARCHAR(9))");
    served.sql("INSERT INTO users VALUES (1, 'ann', '2024'), (2, 'ben', '2024')");
    served.sql("CREATE INDEX by_email ON users (email)");
    let address = served.address.replace("//root@", "//cli_shop@");
    if address != served.address {
        served.sql("CREATE OR REPLACE USER cli_shop@localhost IDENTIFIED BY 'pass-word-4711'");
        served.sql("GRANT ALL PRIVILEGES ON *.* TO cli_shop@localhost");
    }
    let mut env = env();
    env.set("SHOP", &address.replace('@', ":pass-word-4711@"));
    env.write("project/note.txt", "one\n");
    let reply = env.json(&["checkpoint", "note.txt", "env:SHOP"]);
    let first = id(&reply);
    assert_eq!(reply["checkpoint"]["scope"]["databases"], json!([address]));
    // Change it, under the checkpoint.
    let operation = json!({"type": "sql", "sql": "DELETE FROM users WHERE id = 1",
        "verify": "SELECT count(*) = 1 FROM users"})
    .to_string();
    let done = env.json(&[
        "mutate",
        "env:SHOP",
        "--checkpoint",
        &first,
        "--operation",
        &operation,
    ]);
    assert_eq!(done["diff"]["type"], "structural");
    assert!(
        done["diff"]["content"].to_string().contains("email='ann'"),
        "{done}"
    );
    assert_eq!(served.sql("SELECT count(*) FROM users"), "1");
    env.write("project/note.txt", "two\n");
    served.sql("DROP TABLE users");
    served.sql("CREATE TABLE other (x INT)");
    // And back: database and file.
    let back = env.json(&["rollback", &first]);
    assert_eq!(back["verification"]["match"], true, "{back}");
    assert_eq!(served.sql("SELECT count(*) FROM users"), "2");
    assert_eq!(fs::read(env.project().join("note.txt")).unwrap(), b"one\n");
    env.json(&["redo"]);
    assert_eq!(served.sql("SELECT count(*) FROM other"), "0");
    env.json(&["rollback", &first]);
    let log = env.json(&["log"]).to_string();
    assert!(log.contains(&address), "{log}");
    // Nothing knows the password.
    let output = Command::new("grep")
        .args(["-rlaF", "pass-word-4711"])
        .args([env.home(), env.project()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
    // Some tables only.
    served.sql("CREATE TABLE apart (x INT)");
    let scope = format!("{}#users", served.address);
    let second = id(&env.json(&["checkpoint", &scope]));
    served.sql("INSERT INTO apart VALUES (1)");
    served.sql("DELETE FROM users");
    env.json(&["rollback", &second]);
    assert_eq!(served.sql("SELECT count(*) FROM users"), "2");
    assert_eq!(served.sql("SELECT count(*) FROM apart"), "1");
    let missing = format!("{}#nobody", served.address);
    assert_eq!(env.run(&["checkpoint", &missing]).code, 7);
}

#[test]
fn st_16_postgresql_comes_back_and_no_password_is_kept() {
    story("SAFEPOINT_TEST_POSTGRES");
}

#[test]
fn st_16_mariadb_comes_back_and_no_password_is_kept() {
    story("SAFEPOINT_TEST_MARIADB");
}

/// A server that answers each connection with these bytes and then says nothing. Gives back its
/// port; it ends with the test.
fn silent_server(says: &'static [u8]) -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut connection in listener.incoming().flatten() {
            let _ = connection.write_all(says);
            open.push(connection);
        }
    });
    port
}

#[test]
fn st_16_a_server_that_accepts_and_says_nothing_is_given_up() {
    let env = env();
    // The second one lets us in, and never says that it is ready.
    let authenticated: &[u8] = b"R\0\0\0\x08\0\0\0\0";
    for (scheme, says) in [
        ("postgres", &b""[..]),
        ("postgres", authenticated),
        ("mariadb", b""),
    ] {
        let address = format!("{scheme}://u@127.0.0.1:{}/db", silent_server(says));
        let mut command = env.command(&["checkpoint", &address, "--json"]);
        command.env("PGPASSWORD", "p").env("PGCONNECT_TIMEOUT", "1");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{address}: {output:?}");
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(reply["checkpoint_created"], false, "{reply}");
        assert_eq!(reply["error"]["name"], "DATABASE_FAILED", "{reply}");
        let message = reply["error"]["message"].as_str().unwrap();
        // The client of MariaDB has words of its own for it.
        let is_told = message.contains("cannot reach") || message.contains("handshake");
        assert!(is_told, "{reply}");
    }
}

#[test]
fn st_16_a_missing_tool_is_named() {
    let served = Served::new("SAFEPOINT_TEST_POSTGRES");
    let mut env = env();
    env.set("PATH", "/nonexistent");
    let run = env.run(&["checkpoint", &served.address, "--json"]);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &reply["error"]["code"]),
        (1, &json!("F516")),
        "{reply}"
    );
    assert!(
        reply["error"]["suggestion"]
            .to_string()
            .contains("postgresql-client"),
        "{reply}"
    );
    assert_eq!(reply["checkpoint_created"], false);
}

#[test]
fn st_02_files_states_and_databases_are_parts_of_one_checkpoint() {
    let env = env();
    let open = sqlite(&env.project().join("app.db"), SHOP);
    env.write("project/a.txt", "one\n");
    let reply = env.json(&[
        "checkpoint",
        ".",
        "sqlite:app.db",
        "--state",
        "phase={\"n\": 1}",
    ]);
    assert_eq!(reply["checkpoint"]["type"], "file_backup");
    assert_eq!(reply["checkpoint"]["scope"]["state_keys"], json!(["phase"]));
    assert_eq!(reply["checkpoint"]["scope"]["files"], json!(["a.txt"]));
    open.execute_batch("DELETE FROM users").unwrap();
    env.write("project/a.txt", "two\n");
    let operation = r#"{"type": "state", "value": {"n": 2}}"#;
    env.json(&[
        "mutate",
        "state:phase",
        "--auto-checkpoint",
        "--operation",
        operation,
    ]);
    assert_eq!(env.json(&["state", "phase"])["states"]["phase"]["n"], 2);
    env.json(&["rollback", &id(&reply)]);
    assert_eq!(env.json(&["state", "phase"])["states"]["phase"]["n"], 1);
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    assert_eq!(fs::read(env.project().join("a.txt")).unwrap(), b"one\n");
    // Of one checkpoint, one part alone.
    open.execute_batch("DELETE FROM users").unwrap();
    env.write("project/a.txt", "three\n");
    env.json(&["rollback", &id(&reply), "sqlite:app.db"]);
    assert_eq!(one(&open, "SELECT count(*) FROM users"), "2");
    assert_eq!(fs::read(env.project().join("a.txt")).unwrap(), b"three\n");
    for (kind, code) in [("database_savepoint", 7), ("state_snapshot", 7)] {
        assert_eq!(env.run(&["checkpoint", "a.txt", "--type", kind]).code, code);
    }
    assert_eq!(
        env.run(&["checkpoint", "sqlite:app.db", "--type", "git_stash"])
            .code,
        7
    );
}
